"""Which particles are near which places, by coarse cells: a few too many, and none too few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.data.extent import extent
from workbench.subdomains.merging import distinct

MOST_CELLS = 40    # bits of the number of a cell; where space is too large for that, cells are larger
TAG_BITS = 23
TABLE = 2**24      # whether a cell is listed, by the last bits of its number: nearly all cells are not
BLOCK = 2**16      # positions that are looked up together


def near(
    positions: np.ndarray, places: np.ndarray, tags: np.ndarray, width: float, box: tuple[float, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a row of `positions` and a tag such that a place with this tag may be within `width`; sorted by row.

    >>> near(np.array([[0.05, 0.5], [0.5, 0.5], [0.95, 0.5]]), np.array([[0.02, 0.5]]), np.array([7]), 0.1, (1.0, 1.0))
    (array([0, 2]), array([7, 7]))
    """
    if not len(positions) or not len(places):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    grid = _Grid.around(positions, places, width, box)
    cells, tag = np.divmod(distinct((grid.cells(places) << TAG_BITS) + tags), 2**TAG_BITS)
    cells, tag = grid.with_neighbours(cells, tag)
    listed = np.zeros(TABLE, bool)
    listed[cells & (TABLE - 1)] = True
    rows, codes = [], []
    for start in range(0, len(positions), BLOCK):   # what is computed for all positions would be large
        code = grid.cells(positions[start : start + BLOCK])
        maybe = np.flatnonzero(listed[code & (TABLE - 1)])
        rows.append(start + maybe)
        codes.append(code[maybe])
    first, last = (np.searchsorted(cells, np.concatenate(codes), side) for side in ("left", "right"))
    owner = np.repeat(np.arange(len(first)), last - first)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return np.concatenate(rows)[owner], tag[first[owner] + offset]


@dataclass(frozen=True)
class _Grid:
    """Cells at least so wide that what is near a place is in the cells around that of the place."""

    low: np.ndarray
    edge: np.ndarray
    along: np.ndarray
    periodic: bool

    @classmethod
    def around(cls, positions: np.ndarray, places: np.ndarray, width: float, box: tuple[float, ...] | None) -> Self:
        """The cells of the box or, in an open space, of all these points."""
        low, high = np.zeros(positions.shape[1]), np.array(box or ())
        if box is None:
            ends = [extent(np.ascontiguousarray(points)) for points in (positions, places)]
            low, high = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
        most, size = 2 ** (MOST_CELLS // len(low)), high - low
        along = np.clip(np.floor(size / (width * (1 + 1e-9))), 1, most).astype(np.int64)
        return cls(low, np.maximum(size / along, np.finfo(np.float64).tiny), along, box is not None)

    def cells(self, points: np.ndarray) -> np.ndarray:
        """The number of the cell of each point."""
        number = np.zeros(len(points), np.int64)
        for axis, along in enumerate(self.along):
            cell = ((points[:, axis] - self.low[axis]) * (1 / self.edge[axis])).astype(np.int64)
            number = number * along + np.clip(cell, 0, along - 1)
        return number

    def with_neighbours(self, cells: np.ndarray, tag: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """These cells and those beside them, each once with each tag, and the tags; sorted by cell."""
        axes = np.stack(np.unravel_index(cells, self.along))
        codes = []
        for step in np.ndindex(*[3] * len(self.along)):
            beside = axes + np.array(step)[:, None] - 1
            inside = np.full(len(cells), self.periodic) | ((beside >= 0) & (beside < self.along[:, None])).all(axis=0)
            number = np.ravel_multi_index(tuple(beside[:, inside] % self.along[:, None]), self.along)
            codes.append((number << TAG_BITS) + tag[inside])
        return np.divmod(distinct(np.concatenate(codes)), 2**TAG_BITS)
