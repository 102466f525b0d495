"""The connected parts of each group, and the label conflicts between groups, from a single neighbour search.

Decoded particles carry the labels of their original groups, and only particles of equal label are linked. The connected
components are then the parts of the groups; no part is connected through particles of another group. The same search
finds the neighbours of different labels, so the sort and the search, nearly all of the time, are done once.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.crowds import Crowded, closest_pairs
from workbench.clusters.dense_cells import build_trees
from workbench.clusters.discord import Pairs, label_cells
from workbench.clusters.sorted_cells import SortedCells
from workbench.ordering import count_of, places_of

MIXED, END = backend.constant("unlike.cuh", "MIXED"), backend.constant("alike.cu", "END")


@dataclass(frozen=True, eq=False)
class Parts:
    """Each particle's part (int32: the smallest particle in it), and the label conflicts: pairs (M, 2) that are too near.

    Of two cells with more than MOST_BETWEEN_CELLS, those of each particle and the closest one are listed. The
    smaller index comes first. `exempt` (uint8) marks the particles of pairs whose original distance took part in a
    decision. `crowded` is the part of the search that was among crowded cells.
    """

    part: Array
    unlike: Array
    exempt: Array
    crowded: Crowded

    @property
    def exempted(self) -> bool:
        """Whether the original distance of some pair took part in a decision."""
        return bool(self.exempt.any())


@dataclass(frozen=True, eq=False)
class Doubt:
    """What may have changed since an earlier search of the same particles; nothing else is searched again.

    `moved` (uint8) are particles that have moved since, or had a conflict. `settled` (uint8, by label) are the labels whose
    particles had one part and have not moved; each is the smallest index of these.
    """

    moved: Array
    settled: Array


@dataclass(frozen=True, eq=False)
class Exempt:
    """The original positions of the same particles, and the linking length: where the original leaves no room for a margin.

    For a pair whose original distance lies between `near` and `far`, the linking length itself decides.
    """

    original: Array
    length: float


def parts_of(
    cells: SortedCells, label: Array, near: float, far: float, exempt: Exempt | None = None,
    link_up_to_far: bool = False, doubt: Doubt | None = None,
) -> Parts:
    """The parts of particles of equal label (int32), linked within `near`; and pairs of unequal label at most `far` apart.

    `link_up_to_far` links all particles of equal label that are not safely apart; `doubt` leaves out what is known. `cells`
    are those for `near`; the order of the particles within each cell changes.

    >>> import numpy as np
    >>> from workbench.data import Particles
    >>> cells = SortedCells.of(Particles([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5], [0.4, 0.5]], box=1.0), 0.15)
    >>> found = parts_of(cells, np.array([0, 0, 2, 0], np.int32), 0.15, 0.15)
    >>> found.part.tolist(), found.unlike.tolist()
    ([0, 0, 2, 3], [[1, 2], [2, 3]])
    """
    xp, positions = backend.namespace(cells.positions, label), cells.positions
    runs = _Runs.of(cells, label)
    count, parent = len(runs.label), xp.arange(len(runs.label), dtype=xp.int32)
    open_runs, marked, unlike = xp.zeros(count, xp.int32), xp.zeros(count, xp.uint8), Pairs.room_for(cells)
    as_cells, used = dataclasses.replace(cells, first=runs.first, rank=runs.rank), xp.zeros(len(label), xp.uint8)
    length = far if exempt is None else exempt.length
    rule = {
        "near_squared": near**2, "length_squared": length**2, "far_squared": far**2, "exempting": exempt is not None,
        "original": positions[:0] if exempt is None else exempt.original,
    }
    given = {
        **as_cells.geometry(far), **rule, "label": runs.label, "runs": runs.of_cell, "order": cells.order,
        "sorted_label": runs.sorted_label, **_doubtful(cells, runs, far, doubt),
    }

    def link(boxes: Array) -> None:
        _kernel("link_alike", cells)(
            len(unlike.listed), given, unlike.given, loose=link_up_to_far, with_trees=len(boxes) > 0, box=boxes,
            open=open_runs, rank=runs.rank, parent=parent, crowd=marked, used=used,
        )

    link(xp.empty((0, 2, positions.shape[1]), positions.dtype))
    # Before trees change the order of particles.
    place = _kernel("place_unlike", cells)
    conflicts, (with_crowds, some_open) = unlike.all(place, given, marked.any(), open_runs.any())
    labels, of_crowds = (runs.label[: len(cells)], runs.sorted_label), {**rule, "lost": False, "used": used}
    crowded = closest_pairs(cells, marked, labels, positions, far, of_crowds) if with_crowds else Crowded.none(xp)
    if some_open:
        link(build_trees(open_runs, as_cells))
    part = xp.empty(len(label), xp.int32)
    _kernel("label_parts", cells)(
        count, first=runs.first, order=cells.order, label=runs.label, doubting=doubt is not None,
        settled=marked[:0] if doubt is None else doubt.settled, rank=runs.rank, parent=parent, part=part,
    )
    return Parts(part, xp.concatenate([conflicts, crowded.pairs]), used, crowded)


@dataclass(frozen=True, eq=False)
class _Runs:
    """A table of all cells, followed by the runs: the particles of one label in a cell of several labels.

    The particles of entry r are those from `first[r]` to `first[r + 1]`. `label` is MIXED for a cell of several labels, and
    END for the entry that closes the runs of a cell. `of_cell` is the first run of each mixed cell, and `sorted_label` the
    label of the particle at each place.
    """

    first: Array
    label: Array
    rank: Array
    of_cell: Array
    sorted_label: Array

    @classmethod
    def of(cls, cells: SortedCells, label: Array) -> _Runs:
        """The runs of these labels; sorts the particles of mixed cells by label, in place."""
        xp, count = backend.namespace(label), len(cells)
        labels_here, of_cell = label_cells(cells, label)
        is_mixed, size = of_cell == MIXED, cells.first[1:] - cells.first[:-1]
        cells_of_several, total = backend.numbers(count_of(is_mixed), xp.where(is_mixed, size, 0).sum())
        end = xp.full(1, END, xp.int32)
        if not cells_of_several:
            return cls(cells.first, xp.concatenate([of_cell, end]), xp.concatenate([cells.rank, end]), of_cell, labels_here)
        mixed = places_of(is_mixed, cells_of_several)
        place, owner = _places(cells, mixed, total)
        along = place[xp.argsort(owner * 2**32 + labels_here[place], kind="stable")]
        for array in (cells.order, cells.positions, labels_here):
            array[place] = array[along]
        sorted_label = labels_here[place]
        begins = xp.ones(len(place) + 1, bool)   # a run begins, or a cell ends
        begins[1:-1] = (sorted_label[1:] != sorted_label[:-1]) | (owner[1:] != owner[:-1])
        run = xp.flatnonzero(begins[:-1])
        # After the runs of each cell, one entry marks the end of the last run.
        entry = count + 1 + xp.arange(len(run)) + owner[run]
        first = xp.empty(count + 1 + len(run) + len(mixed), xp.int32)
        labels, rank = xp.full(len(first), END, xp.int32), xp.zeros(len(first), xp.int32)
        first[: count + 1], labels[:count], rank[:count] = cells.first, of_cell, cells.rank
        first[entry], labels[entry] = place[run], sorted_label[run]
        leads = xp.searchsorted(owner[run], xp.arange(len(mixed)))
        last = xp.concatenate([entry[leads[1:]] - 1, xp.full(1, len(first) - 1)])
        first[last] = cells.first[mixed + 1]
        _kernel("start_runs", cells)(len(entry), entry.astype(xp.int32), first, cells.order, rank)
        of_cell = of_cell.copy()
        of_cell[mixed] = entry[leads]
        return cls(first, labels, rank, of_cell, labels_here)


def _doubtful(cells: SortedCells, runs: _Runs, far: float, doubt: Doubt | None) -> dict[str, Array]:
    """The cells of each block to search, as bits, for links within labels and for conflicts; and the blocks with any."""
    if doubt is None:
        every = backend.namespace(cells.occupied).ones(cells.blocks, np.uint8)
        return {"unsettled": cells.occupied, "suspect": cells.occupied, "wanted": every}
    found = {name: backend.namespace(cells.occupied).empty_like(cells.occupied) for name in ("unsettled", "suspect")}
    _kernel("mark_doubtful", cells)(
        cells.blocks, found, occupied=cells.occupied, first_cell=cells.first_cell, first=cells.first, order=cells.order,
        sorted_label=runs.sorted_label, moved=doubt.moved, settled=doubt.settled,
    )
    wanted = cells.blocks_before(found["suspect"], far) | (found["unsettled"] != 0)
    return {**found, "wanted": wanted}


def _places(cells: SortedCells, chosen: Array, total: int) -> tuple[Array, Array]:
    """The places of all particles of the chosen cells, `total` in all, and for each the index of its cell in `chosen`."""
    xp = backend.namespace(chosen)
    begin = cells.first[chosen].astype(xp.int64)
    size = cells.first[chosen + 1] - begin
    ends = xp.cumsum(size)
    starts = xp.zeros(total, xp.int64)
    starts[(ends - size)[1:]] = 1
    owner = xp.cumsum(starts)
    return xp.arange(len(owner)) - (ends - size)[owner] + begin[owner], owner


def _kernel(name: str, cells: SortedCells) -> backend.Kernel:
    return backend.kernel("alike", name, cells.positions.dtype, cells.positions.shape[1])
