"""The result of a baseline: the corrected positions, their cost, and the constraints that they violate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.clusters.friends import friends_of_friends
from workbench.clusters.groups import Groups
from workbench.data import Particles
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False, repr=False)
class Baseline:
    """The outcome of one method.

    `positions` are the decoder's output. `constraints` counts the constrained pairs, and `violated` those that `positions`
    still violate; `edited` counts particles, and `nbytes` is the size of their stored edits. `largest_error` is the largest
    along any axis, in units of the error bound: more than 1 violates the bound.
    """

    name: str
    positions: np.ndarray
    constraints: int
    edited: int
    nbytes: int
    iterations: int
    violated: int
    largest_error: float
    box: tuple[float, ...] | None = None

    @property
    def bits_per_particle(self) -> float:
        """What the edits cost, spread over all particles."""
        return 8 * self.nbytes / len(self.positions)

    def halos_broken(self, groups: Groups, min_members: int = 20) -> int:
        """How many original groups with at least `min_members` members are not groups of `positions`.

        >>> pair = np.array([[0.0, 0.0], [0.1, 0.0], [0.3, 0.0]])
        >>> Baseline("none", pair, 0, 0, 0, 0, 0, 0.0).halos_broken(Groups.from_labels([0, 0, 0], 0.1), min_members=2)
        1
        """
        if len(groups.labels) != len(self.positions):
            raise WorkbenchError(f"groups must be of these {len(self.positions):,} particles; got {len(groups.labels):,}")
        found = friends_of_friends(Particles(self.positions, self.box), groups.linking_length, unit="length")
        large = groups.ids[groups.sizes >= min_members]
        before, after = (np.bincount(each.labels, minlength=len(each.labels)) for each in (groups, found))
        # A label is the smallest index of a group, so equal groups have equal labels.
        stayed = np.bincount(groups.labels[groups.labels == found.labels], minlength=len(before))
        return int(((stayed[large] < before[large]) | (after[large] > before[large])).sum())

    def __repr__(self) -> str:
        return (
            f"Baseline({self.name}: {self.bits_per_particle:.4g} bits per particle, {self.edited:,} edited, "
            f"{self.violated:,} of {self.constraints:,} constraints violated, error up to {self.largest_error:.6g} xi)"
        )
