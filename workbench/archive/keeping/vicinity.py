"""Which particles are near which places, by coarse cells: a few too many, and none too few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.data.extent import extent
from workbench.subdomains.merging import distinct

MOST_CELLS = 40    # bits of the number of a cell; where space is too large for that, cells are larger
MOST_BITS = 2**27  # of the table that has a bit for each cell (a power of 2); of more cells, some have a bit together
BLOCK = 2**16      # positions that are looked up together


def near(
    positions: np.ndarray, places: np.ndarray, tags: np.ndarray, width: float, box: tuple[float, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a row of `positions` and a tag such that a place with this tag may be within `width`; sorted by tag.

    >>> near(np.array([[0.05, 0.5], [0.5, 0.5], [0.95, 0.5]]), np.array([[0.02, 0.5]]), np.array([7]), 0.1, (1.0, 1.0))
    (array([0, 2]), array([7, 7]))
    """
    if not len(positions) or not len(places):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if box is None:
        ends = [extent(np.ascontiguousarray(points)) for points in (positions, places)]
        low, high = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
    else:
        low, high = np.zeros(len(box)), np.array(box)
    grid = _Grid.of(low, high - low, width, box is not None)
    seen = distinct((tags << MOST_CELLS) + grid.cells(places))
    tag, around = seen >> MOST_CELLS, grid.around(seen & (2**MOST_CELLS - 1))
    rows = grid.rows(positions, around)
    if tag[0] == tag[-1]:
        return rows, np.full(len(rows), tag[0])
    wanted = distinct(np.concatenate([((tag << MOST_CELLS) + cells)[inside] for cells, inside in around]))
    tag, wanted = wanted >> MOST_CELLS, wanted & (2**MOST_CELLS - 1)
    code = grid.cells(positions[rows])
    order = np.argsort(code, kind="stable")
    rows, code = rows[order], code[order]
    first, last = (np.searchsorted(code, wanted, side) for side in ("left", "right"))
    count = last - first
    owner = np.repeat(np.arange(len(wanted)), count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    found, tags = rows[first[owner] + offset], tag[owner]
    by_tag = np.lexsort((found, tags))
    return found[by_tag], tags[by_tag]


@dataclass(frozen=True)
class _Grid:
    """Cells at least so wide that what is near a place is in the cells around that of the place."""

    low: np.ndarray
    edge: np.ndarray
    along: np.ndarray
    periodic: bool

    @classmethod
    def of(cls, low: np.ndarray, size: np.ndarray, width: float, periodic: bool) -> Self:
        most = 2 ** (MOST_CELLS // len(size))
        along = np.clip(np.floor(size / (width * (1 + 1e-9))), 1, most).astype(np.int64)
        return cls(low, np.maximum(size / along, np.finfo(np.float64).tiny), along, periodic)

    @property
    def strides(self) -> np.ndarray:
        return np.concatenate([np.cumprod(self.along[:0:-1])[::-1], [1]])

    @property
    def count(self) -> int:
        return int(self.along.prod())

    def cells(self, points: np.ndarray) -> np.ndarray:
        """The number of the cell of each point."""
        found = np.zeros(len(points), np.int64)
        for axis, stride in enumerate(self.strides):
            place = points[:, axis] - self.low[axis]
            place *= 1 / self.edge[axis]
            cell = place.astype(np.int64)
            found += np.multiply(np.clip(cell, 0, self.along[axis] - 1, out=cell), stride, out=cell)
        return found

    def around(self, cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """These cells and those beside them, for each direction; and which of these exist."""
        beside = []   # on each axis, one cell before, at, one after: its share in the number, and whether it exists
        for along, stride in zip(self.along, self.strides, strict=True):
            steps = cells // stride % along + np.array([[-1], [0], [1]])
            inside = np.full(steps.shape, True) if self.periodic else (steps >= 0) & (steps < along)
            beside.append((steps % along * stride, inside))
        found = []
        for step in np.ndindex(*[3] * len(self.along)):
            each = [(number[one], inside[one]) for one, (number, inside) in zip(step, beside, strict=True)]
            number, inside = each[0]
            for further, also in each[1:]:
                number, inside = number + further, inside & also
            found.append((number, inside))
        return found

    def rows(self, positions: np.ndarray, around: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """The positions (rising) in these cells, and a few others where cells have bits together."""
        table = np.zeros(-(-min(self.count, MOST_BITS) // 8), np.uint8)
        for cells, inside in around:
            bit = cells[inside] & (MOST_BITS - 1)
            np.bitwise_or.at(table, bit >> 3, np.uint8(1) << (bit & 7).astype(np.uint8))
        found = []
        for start in range(0, len(positions), BLOCK):   # what is computed for all positions would be large
            bit = self.cells(positions[start : start + BLOCK]) & (MOST_BITS - 1)
            found.append(start + np.flatnonzero(table[bit >> 3] >> (bit & 7).astype(np.uint8) & 1))
        return np.concatenate(found)
