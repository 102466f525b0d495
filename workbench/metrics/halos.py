"""Comparison of halos: their number by size, and whether each still has exactly the same particles.

Both sets are searched with one linking length, the original's. Halos are matched by their members, which the order of the
particles identifies; positions of halos are compared only for matched ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arguments import whole_number
from workbench.clusters import Catalogue, Groups, catalogue, friends_of_friends
from workbench.clusters.friends import Unit
from workbench.clusters.matching import Halos, Match, match_groups
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.errors import WorkbenchError, briefly
from workbench.metrics.pairs import check_particles, checked_order, require_host


@dataclass(frozen=True, eq=False)
class MassFunction:
    """The number of halos by their number of members: `counts[i]` from `edges[i]` members to less than `edges[i + 1]`.

    The first edge is the smallest halo that counts, and each edge is twice the one before.
    """

    edges: np.ndarray
    original: np.ndarray
    decoded: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        """Decoded over original; 1 where both have none, infinite where only the original has none."""
        none = (self.original == 0) & (self.decoded == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(none, 1.0, self.decoded / self.original)

    def worst(self, least: int = 1) -> float:
        """The largest |ratio - 1| over the bins where the original has at least `least` halos; 0 when there is none."""
        counted = self.original >= least
        return float(np.abs(self.ratio[counted] - 1).max()) if counted.any() else 0.0

    def worst_in_errors(self, least: int = 1) -> float:
        """The largest change over the Poisson error, the square root of the original number, over the same bins."""
        counted = self.original >= max(least, 1)
        changes = np.abs(self.decoded - self.original)[counted] / np.sqrt(self.original[counted])
        return float(changes.max()) if counted.any() else 0.0


def mass_function(original: Groups, decoded: Groups, min_members: int = 20) -> MassFunction:
    """How many halos of each size there are before and after.

    >>> before, after = Groups.from_labels([0, 0, 1, 1, 1, 1], 0.1), Groups.from_labels([0, 0, 1, 1, 2, 2], 0.1)
    >>> counted = mass_function(before, after, min_members=2)
    >>> counted.edges.tolist(), counted.original.tolist(), counted.decoded.tolist()
    ([2, 4, 8], [1, 1], [3, 0])
    """
    for name, given in (("original", original), ("decoded", decoded)):
        if not isinstance(given, Groups):
            raise WorkbenchError(f"{name} must be groups of wb.friends_of_friends; got {briefly(given)}")
    min_members = whole_number("min_members", min_members, least=1, most=2**61)
    largest = max(original.largest_size, decoded.largest_size, min_members)
    bins = (largest // min_members).bit_length()
    edges = min_members * 2 ** np.arange(bins + 1)
    return MassFunction(edges, *(np.histogram(groups.sizes, edges)[0] for groups in (original, decoded)))


@dataclass(frozen=True, eq=False)
class HaloMatch(Match):
    """The halos of the original, the largest first, and their counterparts among the groups of the decoded particles.

    `shifts` are the distances between the centres before and after. `decoded_halos` is how many halos there are in the
    decoded particles, and `kept` whether all groups of any size are made of the same particles as before.
    """

    shifts: np.ndarray
    decoded_halos: int
    kept: bool
    mass_function: MassFunction

    @property
    def new(self) -> int:
        """How many decoded halos match none of the original."""
        return self.decoded_halos - int(self.matched.sum())


def match_halos(
    original: Particles,
    decoded: Particles,
    linking_length: float = 0.2,
    unit: Unit = "spacing",
    min_members: int = 20,
    order: Any = None,
) -> HaloMatch:
    """Find the halos of both sets by friends of friends, and match each original halo to a decoded group.

    `decoded[i]` is `original[order[i]]` when an order is given. Linking lengths in spacings are in those of the original.

    >>> before = Particles([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [9.0, 9.0]])
    >>> after = Particles([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [9.0, 9.0]])
    >>> match = match_halos(before, after, 1.2, "length", min_members=2)
    >>> match.members.tolist(), match.shared.tolist(), match.broken.tolist(), match.kept
    ([3], [2], [True], False)
    """
    check_particles(original, decoded)
    require_host("a comparison of halos", original.positions)
    indices = checked_order(order, original)
    before = friends_of_friends(original, linking_length, unit)
    after = friends_of_friends(decoded, before.linking_length, "length")
    min_members = whole_number("min_members", min_members, least=1)
    halos = catalogue(original, before, min_members)
    labels = before.labels if indices is None else before.labels[indices]
    found = match_groups(Halos(halos.labels, halos.members), labels, after, min_members)
    return HaloMatch(
        **vars(found),
        shifts=_shifts(halos, found, decoded, after, _weights(original, indices)),
        decoded_halos=after.count(min_members),
        kept=after.equals(before if indices is None else Groups.from_labels(labels, before.linking_length)),
        mass_function=mass_function(before, after, min_members),
    )


def _weights(original: Particles, order: np.ndarray | None) -> np.ndarray | float:
    """The masses of the decoded particles, as those of the original: centres of both are then of the same kind."""
    if original.masses is None or isinstance(original.masses, float):
        return 1.0
    masses: np.ndarray = original.masses
    return masses if order is None else masses[order]


def _shifts(
    halos: Catalogue, found: Match, decoded: Particles, after: Groups, weights: np.ndarray | float
) -> np.ndarray:
    """The distance of each halo's centre from that of its counterpart, by nearest image."""
    if not len(halos):
        return np.empty(0)
    there = catalogue(decoded, after, int(found.counterpart_members.min()), weights)
    by_label = np.argsort(there.labels)
    place = by_label[np.searchsorted(there.labels[by_label], found.counterpart)]
    return np.sqrt((nearest_image(there.centres[place] - halos.centres, decoded.box) ** 2).sum(axis=1))
