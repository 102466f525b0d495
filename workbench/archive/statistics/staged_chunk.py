"""A chunk of the codec `staged`, opened: what of a part its blocks answer for, and what must be decoded.

Beside each block stand its number of valid cells and its extremes, so whole blocks are known without their values. Blocks
that are partly in the part are decoded, and so are those in which single values were corrected, as the lattice says nothing
of these. Every statistic divides a part in this way.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.archive.frame import Damaged
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.codecs.staged import Staged
from workbench.codecs.staged_blocks import Fact, Grid
from workbench.codecs.staged_groups import TOGETHER
from workbench.codecs.staged_stream import Stream
from workbench.errors import WorkbenchError
from workbench.guarantees.correction import apply_correction, corrected_places
from workbench.guarantees.sections import CODE, FIX, INFORMATIVE
from workbench.slabs import Slices

MOST_CORRECTED = 64   # blocks that are decoded one by one; with more, the whole part is decoded
MOST_NUMBERS = 2**16  # of a lattice that are counted one by one, while they are in a cache

Hidden = Callable[[], np.ndarray] | None   # the mask of a chunk, if there is one


@dataclass(frozen=True, eq=False)
class Division:
    """A part of a chunk: the whole blocks in it whose facts are true of their values, and boxes of cells around them."""

    blocks: np.ndarray
    boxes: list[Slices]
    cells: int

    @property
    def cells_in_boxes(self) -> int:
        """How many cells must be decoded."""
        return sum(math.prod(one.stop - one.start for one in box) for box in self.boxes)


@dataclass(frozen=True, eq=False)
class StagedChunk:
    """The blocks of a chunk, the corrections of its values, and its mask."""

    stream: Stream
    fix: bytes
    corrected: np.ndarray   # the flat places of values that `fix` replaces
    shape: tuple[int, ...]
    dtype: np.dtype
    hidden: Hidden

    @classmethod
    def opened(cls, stored: StoredArray, index: Index, hidden: Hidden) -> Self | None:
        """The chunk at an index; None where it is not in blocks, so that its values must be decoded."""
        if not isinstance(stored.codec, Staged) or not stored.decodes_in_parts:
            return None
        frame = stored.frame(index, lazy=(CODE,))
        if CODE not in frame.sections or not set(frame.sections) <= {CODE, FIX} | INFORMATIVE:
            return None
        dtype, fix = stored.layout.dtype, bytes(frame.sections.get(FIX, b""))
        try:
            places = corrected_places(fix, frame.shape, dtype)
            return cls(Stream.from_bytes(frame.sections[CODE], frame.shape, dtype), fix, places, frame.shape, dtype, hidden)
        except WorkbenchError as error:
            raise Damaged(frame.where, str(error)) from error

    def divided(self, part: Slices) -> Division | None:
        """A part in blocks and boxes; None where it is no box of the grid, or corrected values are all over it."""
        grid = self.stream.grid
        window, sizes, _ = grid.window(self.shape, part)
        if any(size != one.stop - one.start for size, one in zip(sizes, part, strict=True)):   # axes were joined
            return None
        cells, core = math.prod(one.stop - one.start for one in window), _whole_blocks(grid, window)
        if core is None:
            return Division(np.empty(0, np.int64), [window], cells)
        chosen = grid.blocks_in(core)
        wrong = np.intersect1d(self.corrected_blocks(), chosen, assume_unique=True)
        if len(wrong) > MOST_CORRECTED:
            return None
        boxes = [*_around(core, window), *(_box(grid, int(block)) for block in wrong)]
        return Division(np.setdiff1d(chosen, wrong, assume_unique=True) if len(wrong) else chosen, boxes, cells)

    def values_in(self, boxes: list[Slices]) -> Iterator[np.ndarray]:
        """The values of boxes of the grid that are finite and not masked."""
        if not boxes:
            return
        size = self.stream.grid.size
        whole = np.zeros(size, self.dtype)
        for box in boxes:
            whole[box] = self.stream.values(box, self.dtype)
        whole = apply_correction(whole.reshape(self.shape), self.fix).reshape(size)
        mask = None if self.hidden is None else self.hidden().reshape(size)
        for box in boxes:
            values = whole[box]
            yield values[np.isfinite(values) if mask is None else np.isfinite(values) & ~mask[box]]

    def values_at(self, part: Slices) -> tuple[np.ndarray, bool]:
        """All values of a part in their places, from the blocks that it touches; and whether all of them are valid."""
        window, sizes, inside = self.stream.grid.window(self.shape, part)
        values = np.ascontiguousarray(np.asarray(self.stream.values(window, self.dtype)).reshape(sizes)[inside])
        if not self.fix:
            return values, not self.stream.gaps
        whole = np.zeros(self.shape, self.dtype)   # corrections name places in the whole chunk
        whole[part] = values
        return apply_correction(whole, self.fix)[part], False

    def values_of(self, blocks: np.ndarray) -> np.ndarray:
        """The values of whole blocks without corrected ones that are finite and not masked."""
        if not blocks.size:
            return np.empty(0, self.dtype)
        decoded = np.asarray(self.stream.blocks(blocks).values(self.stream.grid.whole, self.dtype, blocks)).reshape(-1)
        if len(blocks) == self.stream.grid.blocks and not self.stream.gaps:
            return decoded
        cells = _cells_of(self.stream.grid, blocks)
        if self.stream.gaps:
            cells = cells[self._valid[cells]]
        return decoded[cells]

    def numbers_of(self, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The different values of such blocks, in order, and how often each occurs; None where they can be too many."""
        facts = self.stream.facts[:, blocks]
        lowest = int((facts[Fact.LOW] + facts[Fact.BASE]).min())
        span = int((facts[Fact.HIGH] + facts[Fact.BASE]).max()) - lowest + 1
        if not 0 < span <= MOST_NUMBERS:   # facts can be forged
            return None
        valid = self._valid if self.stream.gaps else None
        count = self.stream.blocks(blocks).counted(blocks, valid, lowest, span)
        there = np.flatnonzero(count)
        return self._decoded(lowest + there), count[there]

    def ends_of(self, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The number of valid cells of blocks, and their least and largest decoded values."""
        facts = self.stream.facts[:, blocks]
        return facts[Fact.COUNT], self._decoded(facts[Fact.LOW] + facts[Fact.BASE]), self._decoded(
            facts[Fact.HIGH] + facts[Fact.BASE]
        )

    def _decoded(self, numbers: np.ndarray) -> np.ndarray:
        """The values of lattice numbers less the offset, as the kernels decode them: never falling with the number."""
        with np.errstate(over="ignore"):   # they round to infinity
            return ((numbers + self.stream.lattice.offset) * self.stream.lattice.step).astype(self.dtype)

    def groups_of(self, division: Division, blocks: np.ndarray) -> np.ndarray:
        """The groups of blocks that are read to decode these blocks and all boxes."""
        touched = [blocks // TOGETHER, *(self.stream.grid.blocks_in(box) // TOGETHER for box in division.boxes)]
        return np.unique(np.concatenate(touched))

    def untouched(self, groups: np.ndarray) -> int:
        """The bytes that are not read with these groups alone."""
        ends = self.stream.groups.ends
        return len(self.stream.groups.stored) - int((ends[groups + 1] - ends[groups]).sum())

    @functools.cached_property
    def _valid(self) -> np.ndarray:
        """Which cells are finite and not masked: those that no correction makes NaN or infinite."""
        finite = np.isfinite(apply_correction(np.zeros(self.shape, self.dtype), self.fix))
        return (finite if self.hidden is None else finite & ~self.hidden()).reshape(-1)

    def corrected_blocks(self) -> np.ndarray:
        """The blocks in which cells that count were corrected."""
        grid = self.stream.grid
        places = self.corrected
        if places.size and self.hidden is not None:
            places = places[~self.hidden().reshape(-1)[places]]
        if not places.size:
            return places
        along = np.unravel_index(places, grid.size)
        at = tuple(one // side for one, side in zip(along, (1, *grid.sides), strict=True))
        return np.unique(np.ravel_multi_index(at, grid.counts))


def _cells_of(grid: Grid, blocks: np.ndarray) -> np.ndarray:
    """The flat places of the cells of blocks, those of each block together.

    >>> _cells_of(Grid((1, 1, 32, 40), (0, 4, 5)), np.array([1]))[:3].tolist()
    [32, 33, 34]
    """
    sides = (1, *grid.sides)
    place, inside = np.zeros((len(blocks), 1, 1, 1, 1), np.int64), np.ones((len(blocks), 1, 1, 1, 1), bool)
    for axis, at in enumerate(np.unravel_index(blocks, grid.counts)):
        along = (at * sides[axis])[:, None] + np.arange(sides[axis])
        along = along.reshape(len(blocks), *(sides[axis] if each == axis else 1 for each in range(len(sides))))
        place = place + along * math.prod(grid.size[axis + 1 :])
        inside = inside & (along < grid.size[axis])
    return place[np.broadcast_to(inside, place.shape)]


def _whole_blocks(grid: Grid, window: Slices) -> Slices | None:
    """The largest box of whole blocks in a window; None if there is none."""
    core = []
    for part, side, size in zip(window, (1, *grid.sides), grid.size, strict=True):
        start, stop = -(-part.start // side) * side, part.stop if part.stop == size else part.stop // side * side
        if start >= stop:
            return None
        core.append(slice(start, stop))
    return tuple(core)


def _around(core: Slices, window: Slices) -> list[Slices]:
    """Disjoint boxes that are a window without a box in it.

    >>> _around((slice(2, 4), slice(0, 8)), (slice(1, 4), slice(0, 9)))
    [(slice(1, 2, None), slice(0, 9, None)), (slice(2, 4, None), slice(8, 9, None))]
    """
    boxes: list[Slices] = []
    for axis, (inner, outer) in enumerate(zip(core, window, strict=True)):
        for start, stop in ((outer.start, inner.start), (inner.stop, outer.stop)):
            if start < stop:
                boxes.append((*core[:axis], slice(start, stop), *window[axis + 1 :]))
    return boxes


def _box(grid: Grid, block: int) -> Slices:
    """The cells of a block."""
    at = np.unravel_index(block, grid.counts)
    starts = [int(place) * side for place, side in zip(at, (1, *grid.sides), strict=True)]
    ends = itertools.starmap(min, zip(
        (start + side for start, side in zip(starts, (1, *grid.sides), strict=True)), grid.size, strict=True
    ))
    return tuple(map(slice, starts, ends))
