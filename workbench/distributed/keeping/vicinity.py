"""Which particles are near which places, by coarse cells: a few too many, and none too few."""

from __future__ import annotations

import numpy as np

from workbench.distributed.merging import distinct

MOST_CELLS = 40      # bits of the number of a cell; where space is too large for that, cells are larger
MOST_FLAGS = 2**27   # cells of which one table has a flag each


def near(
    positions: np.ndarray, places: np.ndarray, tags: np.ndarray, width: float, box: tuple[float, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a row of `positions` and a tag such that a place with this tag may be within `width`; sorted by tag.

    >>> near(np.array([[0.05, 0.5], [0.5, 0.5], [0.95, 0.5]]), np.array([[0.02, 0.5]]), np.array([7]), 0.1, (1.0, 1.0))
    (array([0, 2]), array([7, 7]))
    """
    dimensions = positions.shape[1]
    if not len(positions) or not len(places):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if box is None:
        low = np.minimum(positions.min(axis=0), places.min(axis=0))
        high = np.maximum(positions.max(axis=0), places.max(axis=0))
    else:
        low, high = np.zeros(dimensions), np.array(box)
    size = high.astype(np.float64) - low
    along = np.clip(np.floor(size / (width * (1 + 1e-9))), 1, 2 ** (MOST_CELLS // dimensions)).astype(np.int64)
    edge = np.maximum(size / along, np.finfo(np.float64).tiny)
    strides = np.concatenate([np.cumprod(along[:0:-1])[::-1], [1]])
    code, target = (_cells(points, low, edge, along, strides) for points in (positions, places))
    seen = distinct((tags << MOST_CELLS) + target)
    tag, target = seen >> MOST_CELLS, (seen & (2**MOST_CELLS - 1))[:, None] // strides % along
    around = []
    for step in np.ndindex(*[3] * dimensions):
        moved = target + np.array(step) - 1
        inside = np.full(len(tag), True) if box is not None else ((moved >= 0) & (moved < along)).all(axis=1)
        around.append(((tag << MOST_CELLS) + (moved % along) @ strides)[inside])
    wanted = distinct(np.concatenate(around))
    tag, wanted = wanted >> MOST_CELLS, wanted & (2**MOST_CELLS - 1)
    rows = np.flatnonzero(_is_in(code, wanted, int(along.prod())))
    if tag[0] == tag[-1]:
        return rows, np.full(len(rows), tag[0])
    rows = rows[np.argsort(code[rows], kind="stable")]
    first, last = (np.searchsorted(code[rows], wanted, side) for side in ("left", "right"))
    count = last - first
    owner = np.repeat(np.arange(len(wanted)), count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    found, tags = rows[first[owner] + offset], tag[owner]
    by_tag = np.lexsort((found, tags))
    return found[by_tag], tags[by_tag]


def _cells(
    points: np.ndarray, low: np.ndarray, edge: np.ndarray, along: np.ndarray, strides: np.ndarray
) -> np.ndarray:
    """The number of the cell of each point."""
    found = np.zeros(len(points), np.int64)
    for axis in range(points.shape[1]):
        place = ((points[:, axis] - float(low[axis])) / edge[axis]).astype(np.int64)
        found += np.clip(place, 0, along[axis] - 1, out=place) * strides[axis]
    return found


def _is_in(code: np.ndarray, wanted: np.ndarray, cells: int) -> np.ndarray:
    """Which of these numbers of cells are among the wanted ones."""
    if cells > MOST_FLAGS:
        return np.isin(code, wanted)
    flags = np.zeros(cells, bool)
    flags[wanted] = True
    found: np.ndarray = flags[code]
    return found
