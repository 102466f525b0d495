"""What a repair starts from: the original and the decoded particles, the bound, and the groups that are to be kept.

Nothing here changes during a repair; `state.py` holds what does.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.friends import link
from workbench.clusters.groups import Groups
from workbench.clusters.keep.edits import Surmise
from workbench.clusters.keep.inside import Inside
from workbench.clusters.keep.moves import PARTS, alphabet
from workbench.clusters.keep.promise import KeepClusters
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.data.outline import Outlined
from workbench.guarantees import Limit

# In place of a group: too small to count, no constraints among such particles.
UNASKED = backend.constant("repair.cu", "UNASKED")

# Moves use no more of a bound, so that their squares can be added up. No linking length is longer.
MOST_BOUND = 1e150


@dataclass(frozen=True, eq=False)
class Problem:
    """The original and the decoded particles, in the same order, and the promise; all figures derived from them."""

    original: Particles
    decoded: Array
    limit: Limit
    promise: KeepClusters
    chunk: int   # particles in a chunk of the file

    def __len__(self) -> int:
        return len(self.decoded)

    @property
    def xp(self) -> Any:
        """The namespace of the arrays."""
        return backend.namespace(self.decoded)

    @functools.cached_property
    def lengths(self) -> tuple[float, ...]:
        """The linking lengths."""
        return self.promise.lengths(self.original)

    @functools.cached_property
    def margin(self) -> float:
        """The distance that deciding pairs keep from a linking length: the error of a distance in single precision.

        With it, a finder that computes in float32, or that tests `<` instead of `<=`, finds the same groups. Such a finder
        first rounds positions in float64, a larger error than the rounding of a difference. The margin is limited to a
        small part of the bound, since a larger one would cost too many bits.
        """
        return margin_of(self.original, self.decoded.dtype, self.bound, self.lengths)

    @functools.cached_property
    def bound(self) -> float:
        """The size of the bound, as far as moves use it; if relative, for a typical coordinate."""
        if not self.limit.relative:
            return min(self.limit.value, MOST_BOUND)
        size = abs(self.original.positions)
        return self.limit.value * float(self.xp.median(size[size > 0])) if bool((size > 0).any()) else 0.0

    @property
    def step(self) -> float:
        """The unit of all moves."""
        return self.bound / PARTS

    def near(self, number: int) -> float:
        """Two particles are linked, at one of the linking lengths, when they are at most this far apart."""
        return self.lengths[number] - self.margin

    def far(self, number: int) -> float:
        """Two particles do not conflict, at one of the linking lengths, when their distance is more than this."""
        return self.lengths[number] + self.margin

    @functools.cached_property
    def original_cells(self) -> list[SortedCells]:
        """The original particles, for each linking length."""
        return [SortedCells.of(self.original, length) for length in self.lengths]

    @functools.cached_property
    def surmise(self) -> Surmise:
        """The side information that a decoder can compute about moves; moves are coded relative to it."""
        return Surmise.of(self.decoded, self.bound, self.lengths, self.original.box, self.chunk)

    @functools.cached_property
    def decoded_cells(self) -> list[SortedCells]:
        """The decoded particles before any move, for each linking length less the margin."""
        decoded = Inside(backend.read_only(self.decoded), self.original.box)
        return [SortedCells.of(decoded, length - self.margin) for length in self.lengths]

    @functools.cached_property
    def decoded_places(self) -> Array:
        """The place of each decoded particle in the cells for the longest linking length.

        Searches sort the particles of a cell in another order; the place still tells the cell.
        """
        place = self.xp.empty(len(self), np.int32)
        self.kernel("surroundings", "invert")(len(self), self.decoded_cells[-1].order, place)
        return place

    @property
    def widest_reach(self) -> float:
        """The largest distance at which the decoded cells find all neighbours of a particle."""
        return self.decoded_cells[-1].grid.widest_reach

    @functools.cached_property
    def wanted(self) -> list[Groups]:
        """The groups of the original particles, at each linking length."""
        return [link(cells) for cells in self.original_cells]

    @functools.cached_property
    def group(self) -> Array:
        """For each linking length the label of every particle's group (int32); UNASKED in groups that are too small."""
        rows = []
        for groups in self.wanted:
            label = groups.labels.astype(self.xp.int32)
            if self.promise.min_members > 1:
                members = self.xp.bincount(groups.labels, minlength=len(self))
                label[members[groups.labels] < self.promise.min_members] = UNASKED
            rows.append(label)
        return self.xp.ascontiguousarray(self.xp.stack(rows))

    @functools.cached_property
    def periods(self) -> Array:
        """The period along each axis; 0 where space is open."""
        return self.xp.asarray(self.original.box or (0.0,) * self.original.dimensions, np.float64)

    def kernel(self, source: str, name: str) -> backend.Kernel:
        """A kernel for these positions."""
        return backend.kernel(source, name, self.decoded.dtype, self.original.dimensions)

    @functools.cached_property
    def given(self) -> dict[str, Any]:
        """The bundle of kernel arguments that hold the problem: moves, positions, bound, groups, squared linking lengths.

        `near_squared` and `far_squared` are a margin below and above `length_squared`: kernels/margin.cuh has the rule.
        """
        numbers, moves = range(len(self.lengths)), alphabet(self.original.dimensions)
        return {
            "all_moves": len(moves.moves), "moves": self.xp.asarray(moves.moves), "along": self.xp.asarray(moves.along),
            "ranks": self.xp.asarray(moves.ranks), "rank_cost": self.xp.asarray(moves.costs),
            "original": self.original.positions, "decoded": self.decoded, "bound": self.limit.value,
            "relative": int(self.limit.relative), "step": self.step, "group": self.group, "lengths": len(self.lengths),
            "particles": len(self), "periods": self.periods, "forward": self.surmise.forward,
            "near_squared": self.xp.asarray([self.near(number) ** 2 for number in numbers]),
            "length_squared": self.xp.asarray([length**2 for length in self.lengths]),
            "far_squared": self.xp.asarray([self.far(number) ** 2 for number in numbers]),
        }


def margin_of(particles: Outlined, dtype: np.dtype, bound: float, lengths: Sequence[float]) -> float:
    """The margin for particles of this outline and type: see `Problem.margin`."""
    reach = max(particles.box or map(abs, (*particles.lower.tolist(), *particles.upper.tolist())))
    last_place = float(np.spacing(np.nextafter(np.float32(min(reach, 1e38)), np.float32(0))))
    places = 0.75 if dtype == np.float32 else 2.0
    return float(min(np.sqrt(particles.dimensions) * places * last_place, bound / 16, min(lengths) / 16))
