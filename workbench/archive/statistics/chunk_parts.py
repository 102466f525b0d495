"""The part of an archive that a statistic is of, chunk by chunk: ranges of values whose ends are known, and the rest.

Chunks of the codec `staged` give the count and the extremes of each block, so many blocks need not be decoded to count
values or to find one of a rank. Of all other codecs, a chunk is all rest. Chunks are opened one after another in each pass,
and only what the work on them returns is kept: so memory does not grow with the field.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from workbench import backend
from workbench.archive import region as regions
from workbench.archive.certificate import Promise
from workbench.archive.frame import Damaged
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.archive.statistics.figure import METADATA, SOME, VALUES, Statistic, interval
from workbench.archive.statistics.staged_chunk import Division, StagedChunk
from workbench.archive.statistics.staged_sums import sums_of
from workbench.archive.statistics.sums import Ends, Sums
from workbench.codecs.staged import Staged
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.run.executors import Executor
from workbench.slabs import Slices

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Ranges:
    """Sets of values of which are known how many there are, the least and the largest."""

    count: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def joined(cls, parts: Iterable[Ranges]) -> Ranges:
        """All of them."""
        columns = [(one.count, one.low, one.high) for one in parts]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


class ChunkPart:
    """The part of one chunk: its ranges, and values that are decoded on demand."""

    def __init__(self, field: FieldPart, index: Index) -> None:
        stored, mask = field.stored, field.mask
        self.index, self.limit = index, field.limits[index]
        self.place = regions.inside_chunk(stored.layout, index, field.slices)
        self.decoded = 0   # cells
        self._hidden = None if mask is None else functools.cache(functools.partial(mask.chunk, index))
        self._stored, self._field_starts = stored, [one.start for one in field.slices]
        self.staged = StagedChunk.opened(stored, index, self._hidden)
        self._division = None if self.staged is None else self.staged.divided(self.place)
        self._touched = np.empty(0, np.int64)   # groups of blocks
        self._by_chunk = False                  # whether values were decoded without regard to groups

    @functools.cached_property
    def ranges(self) -> Ranges:
        """The valid values of whole blocks, between the extremes of each."""
        if self.staged is None or self._division is None:
            empty = np.empty(0, self._stored.layout.dtype)
            return Ranges(np.empty(0, np.int64), empty, empty)
        return Ranges(*self.staged.ends_of(self._blocks))

    @functools.cached_property
    def _blocks(self) -> np.ndarray:
        """The whole blocks with valid values."""
        assert self.staged is not None
        assert self._division is not None
        return self._division.blocks[self.staged.ends_of(self._division.blocks)[0] > 0]

    @property
    def cells(self) -> int:
        """How many cells it has, valid or not."""
        return math.prod(one.stop - one.start for one in self.place)

    @property
    def in_grid(self) -> Slices:
        """Where it is in the grid."""
        chunk = self._stored.layout.chunk_slices(self.index)
        return tuple(slice(a.start + b.start, a.start + b.stop) for a, b in zip(chunk, self.place, strict=True))

    @property
    def in_region(self) -> Slices:
        """Where it is in the region."""
        starts = zip(self.in_grid, self._field_starts, strict=True)
        return tuple(slice(one.start - start, one.stop - start) for one, start in starts)

    @property
    def decided_blocks(self) -> int:
        """How many blocks were not decoded, as their metadata sufficed; none where all cells were."""
        return 0 if self._division is None or self.decoded >= self.cells else len(self._division.blocks)

    def of(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The values in some of the ranges: all of them, or the different ones and how often each occurs."""
        chunk, division = self.staged, self._division
        if chunk is None or division is None or not wanted.any():
            return np.empty(0, self._stored.layout.dtype), None
        blocks = self._blocks[wanted]
        self._read(chunk, division, blocks)
        self.decoded += int(self.ranges.count[wanted].sum())
        with self._naming_chunk():
            return chunk.numbers_of(blocks) or (chunk.values_of(blocks), None)

    def rest(self) -> np.ndarray:
        """The valid values that are in no range."""
        chunk, division = self.staged, self._division
        if chunk is None or division is None:
            values, valid = self.whole()
            return values.reshape(-1) if valid is None else values[valid]
        self._read(chunk, division, np.empty(0, np.int64))
        with self._naming_chunk():
            parts = list(chunk.values_in(division.boxes))
        self.decoded += sum(map(len, parts))
        return np.concatenate(parts) if parts else np.empty(0, self._stored.layout.dtype)

    def whole(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All values in their places, and which are valid; None if all are."""
        return self._at(self.place)

    def sums(self, place: Slices | None = None) -> list[Sums]:
        """The sums of it, or of the part of the chunk at a place, from the metadata of blocks where these answer."""
        place = self.place if place is None else place
        chunk, limit = self.staged, self.limit
        if chunk is not None and limit is not None and not limit.relative:
            division = self._division if place == self.place else chunk.divided(place)
            if division is not None:
                self._read(chunk, division, np.empty(0, np.int64))
                self.decoded += division.cells_in_boxes
                with self._naming_chunk():
                    return sums_of(chunk, division, limit)
        values, valid = self._at(place)
        kept = values if valid is None else values[valid]
        return [Sums.of(kept, limit)] if kept.size else []

    def is_one_place(self, axes: tuple[int, ...], most: int) -> bool:
        """Whether blocks have one place along all but these axes, and there are at most so many places."""
        sides = None if self.staged is None else self.staged.stream.grid.sides_along(self.staged.shape)
        if sides is None:
            return False
        kept = [axis for axis in range(len(sides)) if axis not in axes]
        few = math.prod(self.place[axis].stop - self.place[axis].start for axis in kept) <= most
        return few and all(sides[axis] == 1 for axis in kept)

    def nbytes(self, mask: StoredArray | None) -> int:
        """The bytes that were read for what was asked of it."""
        read = self._stored.chunk_nbytes(self.index)
        if self.staged is not None and self._division is not None and not self._by_chunk:
            read -= self.staged.untouched(self._touched)
        if mask is not None and self._hidden is not None and self._hidden.cache_info().currsize:
            read += mask.chunk_nbytes(self.index)
        return read

    def _at(self, place: Slices) -> tuple[np.ndarray, np.ndarray | None]:
        """All values at a place of the chunk, and which are valid; None if all are."""
        if self.staged is None:
            values, all_valid = regions.chunk_part(self._stored, self.index, place), False
        else:
            with self._naming_chunk():
                values, all_valid = self.staged.values_at(place)
        self.decoded += values.size
        self._by_chunk = True
        if all_valid:
            return values, None
        valid = np.isfinite(values) if self._hidden is None else np.isfinite(values) & ~self._hidden()[place]
        return values, None if valid.all() else valid

    def _read(self, chunk: StagedChunk, division: Division, blocks: np.ndarray) -> None:
        self._touched = np.union1d(self._touched, chunk.groups_of(division, blocks))

    @contextmanager
    def _naming_chunk(self) -> Iterator[None]:
        """Errors of decoding name the chunk."""
        try:
            yield
        except WorkbenchError as error:
            raise Damaged(self._stored.layout.chunk_key(self.index), str(error)) from error


class FieldPart:
    """A region of the field of an archive, who reads it (this process, unless an executor is given), and what was read."""

    def __init__(self, archive: Archive, slices: Slices, executor: Executor | None = None) -> None:
        self._executor = executor
        self.stored, self.mask, self.slices = archive.data, archive.arrays.get("mask"), slices
        promise = archive.certificate[self.stored.layout.name]   # read once
        self.indices = regions.chunks_in(self.stored.layout, slices)
        self.limits = {index: limit_at(promise, self.stored, index) for index in self.indices}
        self.shape = tuple(part.stop - part.start for part in slices)
        self._nbytes: dict[Index, int] = dict.fromkeys(self.indices, 0)
        self._decided_blocks = self._decoded = 0

    @property
    def cells(self) -> int:
        """How many cells it has, valid or not."""
        return math.prod(self.shape)

    def each(self, work: Callable[[ChunkPart], Result]) -> Iterator[Result]:
        """The results of some work on each chunk, in order; several chunks at once where that helps.

        With an executor, the work must be a function of a module, or a partial one of such, and all results are kept.
        """
        together = not (self.stored.decoder.holds_gil or isinstance(self.stored.codec, Staged))   # these use threads
        results: Iterable[tuple[Result, tuple[int, int, int]]]
        if self._executor is not None:
            sent = copy.copy(self)
            sent._executor = None
            given = sent, work
            results = self._executor.map("read-chunks", _worked, self.indices, "chunk", shared=given, together=together)
        else:
            step = functools.partial(_worked, (self, work))
            results = backend.side_by_side(step, self.indices) if together else map(step, self.indices)
        for index, (result, (nbytes, blocks, decoded)) in zip(self.indices, results, strict=True):
            self._nbytes[index] = max(self._nbytes[index], nbytes)
            self._decided_blocks += blocks
            self._decoded += decoded
            yield result

    @property
    def nbytes(self) -> int:
        """The bytes of chunks that were read so far."""
        return sum(self._nbytes.values())

    @property
    def nbytes_of_chunks(self) -> int:
        """The bytes of all chunks in the region, and of their masks, without reading them."""
        arrays = [self.stored, *([] if self.mask is None else [self.mask])]
        return sum(one.chunk_nbytes(index) for one in arrays for index in self.indices)

    @property
    def nbytes_stored(self) -> int:
        """The bytes of all chunks of the values and of their mask."""
        return self.stored.nbytes + (0 if self.mask is None else self.mask.nbytes)

    @property
    def stage(self) -> str:
        """What had to be decoded so far."""
        return VALUES if not self._decided_blocks else SOME if self._decoded else METADATA

    @property
    def reading(self) -> tuple[str, int, int]:
        """What figures state of it: the stage, and the bytes that were read and that are stored."""
        return self.stage, self.nbytes, self.nbytes_stored

    def statistic(self, name: str, ends: Ends, count: int) -> Statistic:
        """A figure of so many values of it, between these ends."""
        value, bound = interval(name, ends)
        return Statistic(name, value, bound, *self.reading, count, self.cells - count)

    @property
    def limit_of_all(self) -> tuple[bool, Limit | None]:
        """Whether all chunks have the same limit, and which."""
        different = set(self.limits.values())
        return len(different) == 1, next(iter(different))


def _worked(given: tuple[FieldPart, Callable[[ChunkPart], Result]], index: Index) -> tuple[Result, tuple[int, int, int]]:
    """The result of some work on a chunk; how many bytes were read, blocks not decoded, and cells decoded for it."""
    field, work = given
    part = ChunkPart(field, index)
    result = work(part)
    return result, (part.nbytes(field.mask), part.decided_blocks, part.decoded)


def limit_at(promise: Promise, stored: StoredArray, index: Index) -> Limit | None:
    """What is promised of a chunk; None for the same bits."""
    limit = promise.limit_at(stored.layout.chunk_slices(index))
    return None if limit is None or limit.value == 0 else limit
