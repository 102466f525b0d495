"""Into which parts groups have fallen, and which particles of several groups have come too close: both from one walk.

Given labels of decoded particles (those of their original groups), links count only between particles of one label.
What hangs together then is a part of a group, and no part hangs together through particles that belong elsewhere. Pairs
with two labels are found in the same walk; so the sort and the search, which take nearly all of the time, are done once.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from workbench import backend
from workbench.backend import Array
from workbench.clusters.dense_cells import build_trees
from workbench.clusters.sorted_cells import SortedCells

MOST_BETWEEN_CELLS = 64   # pairs found of one pair of cells: piles of particles have so many that no memory would do


@dataclass(frozen=True, eq=False)
class Parts:
    """Each particle's part (int32: the smallest particle in it), and all pairs (M, 2) of unlike particles that are too close.

    Of very many pairs in one place there are only some. The smaller index comes first.
    """

    part: Array
    unlike: Array


def parts_of(cells: SortedCells, label: Array, near: float, far: float) -> Parts:
    """The parts of particles that are alike (int32 labels), linked by at most `near`; and unlike pairs at most `far` apart.

    `cells` are those for `near`; the places of particles within their cells change.

    >>> import numpy as np
    >>> from workbench.data import Particles
    >>> cells = SortedCells.of(Particles([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5], [0.4, 0.5]], box=1.0), 0.15)
    >>> found = parts_of(cells, np.array([0, 0, 2, 0], np.int32), 0.15, 0.15)
    >>> found.part.tolist(), found.unlike.tolist()
    ([0, 0, 2, 3], [[1, 2], [2, 3]])
    """
    xp = backend.namespace(cells.positions, label)
    first, of_cell, run_label = _runs(cells, label)
    runs = len(first) - 1
    rank, parent = xp.empty(runs, xp.int32), xp.arange(runs, dtype=xp.int32)
    _kernel("start_runs", cells)(runs, first, cells.order, rank)
    runs_as_cells = dataclasses.replace(cells, first=first, rank=rank)
    open_runs, found = xp.zeros(runs, xp.int32), xp.empty(cells.blocks, xp.int64)
    geometry = runs_as_cells.geometry(far)
    alike = of_cell, run_label, cells.order, MOST_BETWEEN_CELLS

    def link(boxes: Array) -> None:
        chunks = backend.chunks(cells.blocks, cells.positions)
        _kernel("link_alike", cells)(
            chunks, *geometry[:-1], near**2, far**2, *alike, len(boxes) > 0, boxes, open_runs, rank, parent, found
        )

    link(xp.empty((0, 2, cells.positions.shape[1]), cells.positions.dtype))
    if bool(open_runs.any()):
        link(build_trees(open_runs, runs_as_cells))
    part = xp.empty(len(label), xp.int32)
    _kernel("label_parts", cells)(runs, first, cells.order, rank, parent, part)
    hit = xp.flatnonzero(found)
    ends = xp.cumsum(found[hit])
    pairs = xp.empty((int(ends[-1]) if len(hit) else 0, 2), xp.int32)
    _kernel("place_unlike", cells)(len(hit), hit, ends - found[hit], *geometry, *alike, pairs)
    return Parts(part, pairs)


def _runs(cells: SortedCells, label: Array) -> tuple[Array, Array, Array]:
    """Where each run of equal labels within a cell begins (and the end), the first run of each cell, and each run's label."""
    xp, count = backend.namespace(label), len(cells)
    sorted_label, several = xp.empty(len(label), xp.int32), xp.empty(count, xp.uint8)
    _kernel("label_places", cells)(count, cells.first, cells.order, label, sorted_label, several)
    if len(mixed := xp.flatnonzero(several)):
        _sort_within(cells, mixed, sorted_label)
    runs, of_cell = xp.empty(count, xp.int32), xp.zeros(count + 1, xp.int32)
    _kernel("count_runs_of_cells", cells)(count, cells.first, sorted_label, runs)
    of_cell[1:] = xp.cumsum(runs, dtype=xp.int32)
    total = int(of_cell[-1])
    first, run_label = xp.full(total + 1, len(label), xp.int32), xp.empty(total, xp.int32)
    _kernel("place_runs_of_cells", cells)(count, cells.first, sorted_label, of_cell, first, run_label)
    return first, of_cell, run_label


def _kernel(name: str, cells: SortedCells) -> backend.Kernel:
    return backend.kernel("alike", name, cells.positions.dtype, cells.positions.shape[1])


def _sort_within(cells: SortedCells, mixed: Array, sorted_label: Array) -> None:
    """Put the particles of some cells in the order of their labels, in place."""
    xp = backend.namespace(mixed)
    begin = cells.first[mixed].astype(xp.int64)
    size = cells.first[mixed + 1] - begin
    ends = xp.cumsum(size)
    owner = xp.repeat(xp.arange(len(mixed)), size.tolist() if backend.on_device(size) else size)
    place = xp.arange(int(ends[-1])) - (ends - size)[owner] + begin[owner]
    along = place[xp.argsort(owner * 2**32 + sorted_label[place], kind="stable")]
    for array in (cells.order, cells.positions, sorted_label):
        array[place] = array[along]
