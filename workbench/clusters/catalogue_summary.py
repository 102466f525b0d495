"""What is known about a catalogue that no process holds: counts, a histogram of members, the largest groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.clusters.catalogue import Catalogue


@dataclass(frozen=True, eq=False, repr=False)
class CatalogueSummary:
    """The number of groups with at least `min_members` members, and of `particles` in them.

    `histogram` has the number of groups between `edges`, each twice the one before. `largest` are the groups with most
    members.
    """

    min_members: int
    groups: int
    particles: int
    histogram: np.ndarray
    largest: Catalogue

    @classmethod
    def of(cls, catalogue: Catalogue, min_members: int, largest: int) -> Self:
        """The summary of a catalogue, with so many of the largest groups.

        >>> halos = Catalogue(np.array([4, 0]), np.array([50, 20]), np.zeros((2, 3)), np.ones(2))
        >>> found = CatalogueSummary.of(halos, 20, largest=1)
        >>> found
        CatalogueSummary(2 groups of 20 to 50 members, 70 particles in them)
        >>> found.edges.tolist(), found.histogram.tolist(), found.largest.members.tolist()
        ([20, 40, 80], [1, 1], [50])
        """
        members = catalogue.members
        bins = max(int(members.max(initial=1)) // min_members, 1).bit_length()
        histogram = np.histogram(members, _edges(min_members, bins))[0]
        return cls(min_members, len(catalogue), int(members.sum()), histogram, catalogue.chosen(slice(largest)))

    @classmethod
    def joined(cls, summaries: Sequence[CatalogueSummary], largest: int) -> Self:
        """The summary of catalogues whose groups differ."""
        histogram = np.zeros(max(len(one.histogram) for one in summaries), np.int64)
        for one in summaries:
            histogram[: len(one.histogram)] += one.histogram
        groups, particles = sum(one.groups for one in summaries), sum(one.particles for one in summaries)
        every = Catalogue.joined([one.largest for one in summaries])
        return cls(summaries[0].min_members, groups, particles, histogram, every.chosen(slice(largest)))

    @property
    def edges(self) -> np.ndarray:
        """The edges of the histogram, in members."""
        return _edges(self.min_members, len(self.histogram))

    def __repr__(self) -> str:
        most = int(self.largest.members.max(initial=0))
        sizes = f" of {self.min_members:,} to {most:,} members" if most else ""
        return f"CatalogueSummary({self.groups:,} groups{sizes}, {self.particles:,} particles in them)"


def _edges(least: int, bins: int) -> np.ndarray:
    return least * 2 ** np.arange(bins + 1, dtype=np.int64)
