"""The sums of a part of a chunk of the codec `staged`, from the metadata of its blocks where that is enough.

The metadata are exact sums of lattice numbers, of the cells that are finite and not masked. The decoded value y is the
lattice number times the step, rounded, and the archive promises |x - y| <= eb of it: so x is within eb, and this rounding,
of the lattice. That is no promise of the codec. Blocks that are partly in the part are decoded, and so are those in which
single values were corrected, as the lattice says nothing of these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from workbench.archive.frame import Damaged
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.archive.statistics.sums import Sums
from workbench.codecs.staged import Staged
from workbench.codecs.staged_blocks import Grid
from workbench.codecs.staged_groups import TOGETHER
from workbench.codecs.staged_statistics import Totals, totals
from workbench.codecs.staged_stream import Stream
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.correction import apply_correction, corrected_places
from workbench.guarantees.sections import CODE, FIX, INFORMATIVE
from workbench.slabs import Slices

MOST_CORRECTED = 64   # blocks that are decoded one by one; with more, the whole part is decoded


@dataclass(frozen=True)
class Partial:
    """The sums of a part of a chunk, how many of its cells do not count, and what was read for it."""

    sums: tuple[Sums, ...]
    missing: int
    nbytes: int
    decoded: int = 0    # cells
    blocks: int = 0     # blocks whose metadata sufficed


def from_blocks(
    stored: StoredArray, index: Index, part: Slices, limit: Limit | None, hidden: Callable[[], np.ndarray] | None
) -> Partial | None:
    """The sums of a part of a chunk; None where its values must be decoded. `hidden` gives the mask of the chunk."""
    if not isinstance(stored.codec, Staged) or limit is None or limit.relative or not stored.decodes_in_parts:
        return None
    frame = stored.frame(index, lazy=(CODE,))
    if CODE not in frame.sections or not set(frame.sections) <= {CODE, FIX} | INFORMATIVE:
        return None
    try:
        stream = Stream.from_bytes(frame.sections[CODE], frame.shape, stored.layout.dtype)
        fix = bytes(frame.sections.get(FIX, b""))
        found = _Chunk(stream, fix, frame.shape, stored.layout.dtype, limit, hidden).sums(part)
    except WorkbenchError as error:
        raise Damaged(frame.where, str(error)) from error
    if found is None:
        return None
    sums, missing, groups, decoded, blocks = found
    ends = stream.groups.ends
    untouched = len(stream.groups.stored) - int((ends[groups + 1] - ends[groups]).sum())
    return Partial(sums, missing, stored.chunk_nbytes(index) - untouched, decoded, blocks)


def wrong_block(stored: StoredArray, index: Index, values: np.ndarray, hidden: np.ndarray | None) -> str | None:
    """What is wrong with the metadata of a chunk of which these are the values and the mask, if anything is."""
    if not isinstance(stored.codec, Staged):
        return None
    frame = stored.frame(index)
    if CODE not in frame.sections or not set(frame.sections) <= {CODE, FIX} | INFORMATIVE:
        return None
    valid = np.isfinite(values) if hidden is None else np.isfinite(values) & ~hidden
    sound = np.ones(values.shape, bool)
    sound.reshape(-1)[corrected_places(bytes(frame.sections.get(FIX, b"")), values.shape, values.dtype)] = False
    return stored.codec.contradiction(bytes(frame.sections[CODE]), values, valid, sound)


@dataclass(frozen=True, eq=False)
class _Chunk:
    stream: Stream
    fix: bytes
    shape: tuple[int, ...]
    dtype: np.dtype
    limit: Limit
    hidden: Callable[[], np.ndarray] | None

    def sums(self, part: Slices) -> tuple[tuple[Sums, ...], int, np.ndarray, int, int] | None:
        """The sums, the cells that do not count, the groups of blocks that were read, and what was decoded and was not."""
        grid = self.stream.grid
        window, sizes, _ = grid.window(self.shape, part)
        if any(size != one.stop - one.start for size, one in zip(sizes, part, strict=True)):   # axes were joined
            return None
        core = _whole_blocks(grid, window)
        wrong = self._corrected()
        if core is not None and core == grid.whole and not len(wrong):
            known = totals(self.stream)
            cells = math.prod(grid.size)
            sums = (self._of_totals(known),) if known.count else ()
            return sums, cells - known.count, np.empty(0, np.int64), 0, grid.blocks
        chosen = np.empty(0, np.int64) if core is None else grid.blocks_in(core)
        wrong = np.intersect1d(wrong, chosen, assume_unique=True)
        if len(wrong) > MOST_CORRECTED:
            return None
        around = [window] if core is None else _around(core, window)
        boxes = [*around, *(_box(grid, int(block)) for block in wrong)]
        chosen = np.setdiff1d(chosen, wrong, assume_unique=True)
        known = totals(self.stream, chosen)
        found = [self._of_totals(known)] if known.count else []
        found += [Sums.of(values, self.limit) for values in self._decoded(boxes) if values.size]
        cells = math.prod(one.stop - one.start for one in window)
        touched = [grid.blocks_in(box) // TOGETHER for box in boxes]
        groups = np.unique(np.concatenate(touched)) if touched else np.empty(0, np.int64)
        decoded = sum(math.prod(one.stop - one.start for one in box) for box in boxes)
        return tuple(found), cells - sum(one.count for one in found), groups, decoded, len(chosen)

    def _of_totals(self, known: Totals) -> Sums:
        """The sums of cells of which only lattice numbers are known."""
        step = Fraction(self.stream.lattice.step)
        assert known.low is not None
        assert known.high is not None
        low, high = step * known.low, step * known.high
        error = Fraction(self.limit.value) + _rounding(max(abs(low), abs(high)), self.dtype)
        return Sums(
            known.count, Fraction(0), step * known.sum, Fraction(0), step**2 * known.squares, Fraction(0),
            known.count * error, known.count * error**2, (low - error, low + error), (high - error, high + error),
        )

    def _corrected(self) -> np.ndarray:
        """The blocks in which cells that count were corrected."""
        grid = self.stream.grid
        places = corrected_places(self.fix, self.shape, self.dtype)
        if places.size and self.hidden is not None:
            places = places[~self.hidden().reshape(-1)[places]]
        if not places.size:
            return places
        along = np.unravel_index(places, grid.size)
        at = tuple(one // side for one, side in zip(along, (1, *grid.sides), strict=True))
        return np.unique(np.ravel_multi_index(at, grid.counts))

    def _decoded(self, boxes: list[Slices]) -> Iterator[np.ndarray]:
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


def _rounding(largest: Fraction, dtype: np.dtype) -> Fraction:
    """How far a lattice number times the step is from the decoded value: rounded to float64, then to the type."""
    double, smallest = Fraction(1, 2**53), Fraction(1, 2**1074)
    if dtype == np.float64:
        return largest * double + smallest
    single = Fraction(1, 2**24)
    return largest * (double + single + double * single) + Fraction(1, 2**149)


def _whole_blocks(grid: Grid, window: Slices) -> Slices | None:
    """The largest box of whole blocks in a window; None if there is none."""
    found = []
    for part, side, size in zip(window, (1, *grid.sides), grid.size, strict=True):
        start, stop = -(-part.start // side) * side, part.stop if part.stop == size else part.stop // side * side
        if start >= stop:
            return None
        found.append(slice(start, stop))
    return tuple(found)


def _around(core: Slices, window: Slices) -> list[Slices]:
    """Disjoint boxes that are a window without a box in it.

    >>> _around((slice(2, 4), slice(0, 8)), (slice(1, 4), slice(0, 9)))
    [(slice(1, 2, None), slice(0, 9, None)), (slice(2, 4, None), slice(8, 9, None))]
    """
    found: list[Slices] = []
    for axis, (inner, outer) in enumerate(zip(core, window, strict=True)):
        for start, stop in ((outer.start, inner.start), (inner.stop, outer.stop)):
            if start < stop:
                found.append((*core[:axis], slice(start, stop), *window[axis + 1 :]))
    return found


def _box(grid: Grid, block: int) -> Slices:
    """The cells of a block."""
    at = np.unravel_index(block, grid.counts)
    starts = [int(place) * side for place, side in zip(at, (1, *grid.sides), strict=True)]
    ends = itertools.starmap(min, zip(
        (start + side for start, side in zip(starts, (1, *grid.sides), strict=True)), grid.size, strict=True
    ))
    return tuple(map(slice, starts, ends))
