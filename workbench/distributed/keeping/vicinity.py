"""Which particles are near which places, by coarse cells: a few too many, and none too few."""

from __future__ import annotations

import numpy as np

MOST_CELLS = 40   # bits of the number of a cell; where space is too large for that, cells are larger


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
    cell, target = (np.clip(((points - low) / edge).astype(np.int64), 0, along - 1) for points in (positions, places))
    tag, target = tags, target @ strides
    seen = _distinct((tag << MOST_CELLS) + target)
    tag, target = seen >> MOST_CELLS, (seen & (2**MOST_CELLS - 1))[:, None] // strides % along
    around = []
    for step in np.ndindex(*[3] * dimensions):
        moved = target + np.array(step) - 1
        inside = np.full(len(tag), True) if box is not None else ((moved >= 0) & (moved < along)).all(axis=1)
        around.append(((tag << MOST_CELLS) + (moved % along) @ strides)[inside])
    wanted = _distinct(np.concatenate(around))
    tag, wanted = wanted >> MOST_CELLS, wanted & (2**MOST_CELLS - 1)
    code = cell @ strides
    cells = _distinct(wanted)
    rows = np.flatnonzero(cells[np.minimum(np.searchsorted(cells, code), len(cells) - 1)] == code)
    rows = rows[np.argsort(code[rows], kind="stable")]
    first, last = (np.searchsorted(code[rows], wanted, side) for side in ("left", "right"))
    count = last - first
    owner = np.repeat(np.arange(len(wanted)), count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    found, tags = rows[first[owner] + offset], tag[owner]
    by_tag = np.lexsort((found, tags))
    return found[by_tag], tags[by_tag]


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, rising: by sorting, which for so many is faster than NumPy's hash table."""
    ordered = np.sort(values)
    found: np.ndarray = ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]
    return found
