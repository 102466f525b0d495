"""Cells for particles whose extent is far larger than their linking length: a distant outlier, or very short links.

A regular grid would need more cells than 64-bit keys can number. But no group crosses a gap wider than the linking length
along an axis, so empty space is cut out: along each axis the particles form segments, each segment has its own cells, and
segments are numbered consecutively. Cells of different segments may then appear as neighbours although they are not; this
costs a comparison and does not affect the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.cells import CELL_BITS, KEY_BITS, MOST_CELLS, CellGrid, block_edge, largest_side
from workbench.data.outline import Placed
from workbench.errors import WorkbenchError


def sparse_cells(particles: Placed, linking_length: float) -> tuple[CellGrid, Array]:
    """A grid without the empty space, and the key of every particle's cell in it."""
    xp = backend.namespace(particles.positions)
    edge = block_edge(particles.dimensions)
    side = largest_side(particles.dimensions, linking_length)
    periods = np.zeros(particles.dimensions) if particles.box is None else np.asarray(particles.box)
    cells, along = [], []
    for axis, period in enumerate(periods):
        numbers, count = _cells_along(particles.positions[:, axis].astype(xp.float64), period, linking_length, side)
        cells.append(numbers)
        along.append(-(-count // edge))
    grid = CellGrid(linking_length, np.full_like(periods, side), np.array(along, np.int64), periods, closed=False)
    if grid.key_bits > KEY_BITS:
        raise _too_short(linking_length, grid.key_bits - KEY_BITS, particles)
    return grid, _keys(cells, grid)


def _cells_along(x: Array, period: float, linking_length: float, side: float) -> tuple[Array, int]:
    """The cell number of every particle along one axis, and how many cells there are."""
    xp = backend.namespace(x)
    if period > 0:
        x = _from_a_gap(x, period, linking_length)
    inorder = xp.sort(x)
    after_gap = xp.flatnonzero(xp.diff(inorder) > 2 * linking_length) + 1
    first = inorder[xp.concatenate([xp.zeros(1, after_gap.dtype), after_gap])]
    last = inorder[xp.concatenate([after_gap - 1, xp.full(1, len(x) - 1, after_gap.dtype)])]
    widest = float((last - first).max())
    if widest / side > MOST_CELLS:
        raise WorkbenchError(
            f"linking_length must be at least about {2.02 * widest / MOST_CELLS:.3g} for positions that fill this much "
            f"space without gaps; got {linking_length:.6g}: check the units"
        )
    cells_in = ((last - first) / side).astype(xp.int64) + 1
    before = xp.cumsum(cells_in) - cells_in
    segment = xp.searchsorted(first, x, side="right") - 1
    return ((x - first[segment]) / side).astype(xp.int64) + before[segment], int(cells_in.sum())


def _from_a_gap(x: Array, period: float, linking_length: float) -> Array:
    """Periodic coordinates measured from the far side of the widest gap, so that no link crosses the periodic boundary."""
    xp = backend.namespace(x)
    inorder = xp.sort(x)
    gaps = xp.concatenate([xp.diff(inorder), inorder[:1] + period - inorder[-1:]])
    widest = int(gaps.argmax())
    if not (float(gaps[widest]) > 2 * linking_length and period / linking_length < MOST_CELLS / 2):
        raise WorkbenchError(
            f"linking_length must be at least about {2.02 * period / MOST_CELLS:.3g} in a box of {period:g}, and longer "
            f"when the particles leave no gaps; got {linking_length:.6g}: check the units"
        )
    start = inorder[(widest + 1) % len(x)]
    return xp.where(x < start, x - start + period, x - start)


def _keys(cells: list[Array], grid: CellGrid) -> Array:
    """Keys as in the kernel `cell_keys`: the block's coordinates in bit fields, then the cell's place in its block."""
    xp = backend.namespace(*cells)
    edge_bits = block_edge(len(cells)).bit_length() - 1
    block, within = xp.zeros(len(cells[0]), xp.uint64), xp.zeros(len(cells[0]), xp.uint64)
    for cell, bits in zip(cells, grid.block_bits.tolist(), strict=True):
        number: Any = cell.astype(xp.uint64)
        block = block << np.uint64(bits) | number >> np.uint64(edge_bits)
        within = within << np.uint64(edge_bits) | number & np.uint64((1 << edge_bits) - 1)
    return block << np.uint64(CELL_BITS) | within


def _too_short(linking_length: float, excess_bits: int, particles: Placed) -> WorkbenchError:
    least = linking_length * 2.0 ** -(-excess_bits // particles.dimensions)
    return WorkbenchError(
        f"linking_length must be at least about {least:.3g} for {len(particles):,} particles that span this much space "
        f"(64-bit cell keys); got {linking_length:.6g}: check the units, or cut out the region of interest"
    )
