"""What the clusters panel of a series computes: a step of it, and the descent of all, with the places of halos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.archive.series.series import Series
from workbench.clusters import Groups, catalogue, friends_of_friends
from workbench.clusters.descent import Descent, DescentDifferences, followed
from workbench.clusters.descent.step import NOBODY
from workbench.data import Particles
from workbench.data.chunked import joined
from workbench.lab.jobs import Job
from workbench.lab.series_panel.state import SeriesState


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A step: decoded, and the original if there is one."""

    decoded: Particles
    original: Particles | None

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(one.positions.nbytes for one in (self.decoded, self.original) if one is not None)


@dataclass(frozen=True, eq=False)
class Followed:
    """A descent, and where its halos are: for each step the centres and radii by the number of the halo."""

    descent: Descent
    centres: tuple[np.ndarray, ...]
    radii: tuple[np.ndarray, ...]

    def family(self, at: int, number: int, step: int) -> tuple[int, np.ndarray]:
        """At a step, the main progenitor of a halo of step `at` and its other progenitors; later, what it has become.

        Numbers of halos; NOBODY where there is none.
        """
        there, main = at, number
        if step > at:
            while there < step and main != NOBODY:
                since = self.descent.successions[there]
                there, main = there + 1 + int(since.over[main]), int(since.descendant[main])
            return main if there == step else NOBODY, np.zeros(0, np.int64)
        branch = dict([(at, number), *self.descent.main_progenitors(at, number)])
        main, others = branch.get(step, NOBODY), self._progenitors(at, number, step)
        return main, others[others != main]

    def _progenitors(self, at: int, number: int, step: int) -> np.ndarray:
        """The halos of an earlier step which become part of a halo, whether in the next step or over a gap."""
        family = {at: np.array([number])}
        for place in range(at - 1, step - 1, -1):
            since = self.descent.successions[place]
            ours = [
                np.flatnonzero((since.over == over) & np.isin(since.descendant, family[place + 1 + over]))
                for over in range(min(self.descent.gap + 1, at - place))
            ]
            family[place] = np.sort(np.concatenate(ours))
        return family[step]


@dataclass(frozen=True, eq=False)
class Descents:
    """The descent of the decoded particles and, if there are originals, theirs and what became of its links."""

    decoded: Followed
    original: Followed | None
    differences: DescentDifferences | None

    @property
    def reference(self) -> Followed:
        """That in which halos are chosen: the original one, if it is known."""
        return self.original or self.decoded

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return sum(
            one.centres[at].nbytes + (0 if step.ids is None else step.ids.nbytes)
            for one in (self.decoded, self.original) if one is not None for at, step in enumerate(one.descent.steps)
        )

    def counterparts(self, step: int) -> np.ndarray:
        """The number of the decoded halo that matches each halo of the reference."""
        if self.differences is None:
            return np.arange(len(self.decoded.descent.steps[step]))
        return self.differences.counterparts[step]


def snapshot(series: Series, originals: Sequence[Any] | None, step: int) -> Snapshot:
    """A step, decoded."""
    return Snapshot(series[step].decompress(), None if originals is None else joined(originals[step]))


def descents(series: Series, originals: Sequence[Any] | None, state: SeriesState, job: Job) -> Descents:
    """The halos of all steps, followed."""
    sides = 1 if originals is None else 2
    decoded = _followed(series, (one.decompress() for one in series), state, job, 0, sides)
    if originals is None:
        return Descents(decoded, None, None)
    original = _followed(series, map(joined, originals), state, job, 1, sides)
    return Descents(decoded, original, original.descent.differences(decoded.descent))


def _followed(
    series: Series, steps: Iterator[Particles], state: SeriesState, job: Job, side: int, sides: int
) -> Followed:
    centres: list[np.ndarray] = []
    radii: list[np.ndarray] = []
    labels: list[np.ndarray] = []

    def searched() -> Iterator[tuple[Groups, Any]]:
        for number, particles in enumerate(steps):
            job((number / len(series) + side) / sides, f"finding halos of step {number}")
            groups = friends_of_friends(particles, state.linking_length, state.unit)
            found = catalogue(particles, groups, state.min_members)
            centres.append(found.centres)
            radii.append(found.radii)
            labels.append(found.labels)
            yield groups, particles.ids

    descent = followed(searched(), series.times, state.min_members, keep_members=True, gap=state.gap)
    orders = [
        np.argsort(one)[np.searchsorted(np.sort(one), step.labels)]
        for one, step in zip(labels, descent.steps, strict=True)
    ]
    return Followed(
        descent, tuple(one[order] for one, order in zip(centres, orders, strict=True)),
        tuple(one[order] for one, order in zip(radii, orders, strict=True)),
    )
