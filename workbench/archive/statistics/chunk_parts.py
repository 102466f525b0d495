"""The part of an archive that a statistic is of, chunk by chunk: ranges of values whose ends are known, and the rest.

Chunks of the codec `staged` give the count and the extremes of each block, so many blocks need not be decoded to count
values or to find one of a rank. Of all other codecs, a chunk is all rest. Chunks are opened one after another in each pass,
and only what the work on them returns is kept: so memory does not grow with the field.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from workbench import backend
from workbench.archive import region as regions
from workbench.archive.certificate import Promise
from workbench.archive.frame import Damaged
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.archive.statistics.figure import METADATA, SOME, VALUES
from workbench.archive.statistics.staged_chunk import Division, StagedChunk
from workbench.archive.statistics.staged_sums import sums_of
from workbench.archive.statistics.sums import Sums
from workbench.codecs.staged import Staged
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
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
        self._hidden = None if mask is None else functools.cache(functools.partial(mask.chunk, index))
        self._stored = stored
        self._chunk = StagedChunk.opened(stored, index, self._hidden)
        self._division = None if self._chunk is None else self._chunk.divided(self.place)
        self._touched = np.empty(0, np.int64)
        self.decoded = self.missing = 0   # cells
        empty = np.empty(0, stored.layout.dtype)
        self.ranges = Ranges(np.empty(0, np.int64), empty, empty)
        if self._chunk is not None and self._division is not None:
            self._blocks = self._division.blocks[self._chunk.ends_of(self._division.blocks)[0] > 0]
            self.ranges = Ranges(*self._chunk.ends_of(self._blocks))

    @property
    def cells(self) -> int:
        """How many cells it has, valid or not."""
        return int(np.prod([one.stop - one.start for one in self.place], dtype=int))

    def of(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The values in some of the ranges: all of them, or the different ones and how often each occurs."""
        chunk, division = self._chunk, self._division
        if chunk is None or division is None or not wanted.any():
            return np.empty(0, self._stored.layout.dtype), None
        blocks = self._blocks[wanted]
        self._read(chunk, division, blocks)
        self.decoded += int(self.ranges.count[wanted].sum())
        try:
            return chunk.numbers_of(blocks) or (chunk.values_of(blocks), None)
        except WorkbenchError as error:
            raise Damaged(self._stored.layout.chunk_key(self.index), str(error)) from error

    def rest(self) -> np.ndarray:
        """The valid values that are in no range."""
        chunk, division = self._chunk, self._division
        if chunk is None or division is None:
            values, valid = self.whole()
            return values.reshape(-1) if valid is None else values[valid]
        self._read(chunk, division, np.empty(0, np.int64))
        try:
            parts = list(chunk.values_in(division.boxes))
        except WorkbenchError as error:
            raise Damaged(self._stored.layout.chunk_key(self.index), str(error)) from error
        self.decoded += sum(map(len, parts))
        return np.concatenate(parts) if parts else np.empty(0, self._stored.layout.dtype)

    def whole(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All values in their places, and which are valid; None if all are."""
        if self._chunk is None:
            values, all_valid = regions.chunk_part(self._stored, self.index, self.place), False
        else:
            try:
                values, all_valid = self._chunk.values_at(self.place)
            except WorkbenchError as error:
                raise Damaged(self._stored.layout.chunk_key(self.index), str(error)) from error
        self.decoded = values.size
        if all_valid:
            return values, None
        valid = np.isfinite(values) if self._hidden is None else np.isfinite(values) & ~self._hidden()[self.place]
        return values, None if valid.all() else valid

    def sums(self, place: Slices) -> list[Sums]:
        """The sums of a part of it, from the metadata of blocks where these answer."""
        chunk, limit = self._chunk, self.limit
        division = None if chunk is None or limit is None or limit.relative else chunk.divided(place)
        if chunk is None or division is None or limit is None:
            values = regions.chunk_part(self._stored, self.index, place)
            self.decoded += values.size
            valid = np.isfinite(values) if self._hidden is None else np.isfinite(values) & ~self._hidden()[place]
            return [Sums.of(values[valid], limit)] if valid.any() else []
        self._read(chunk, division, np.empty(0, np.int64))
        self.decoded += division.cells_in_boxes
        try:
            return sums_of(chunk, division, limit)
        except WorkbenchError as error:
            raise Damaged(self._stored.layout.chunk_key(self.index), str(error)) from error

    def is_one_place(self, axes: tuple[int, ...], most: int) -> bool:
        """Whether blocks have one place along all but these axes, and there are at most so many places."""
        sides = None if self._chunk is None else self._chunk.stream.grid.sides_along(self._chunk.shape)
        if sides is None:
            return False
        kept = [axis for axis in range(len(sides)) if axis not in axes]
        few = math.prod(self.place[axis].stop - self.place[axis].start for axis in kept) <= most
        return few and all(sides[axis] == 1 for axis in kept)

    def nbytes(self, mask: StoredArray | None) -> int:
        """The bytes that were read for what was asked of it."""
        read = self._stored.chunk_nbytes(self.index)
        if self._chunk is not None and self._division is not None and self.decoded < self.cells:
            read -= self._chunk.untouched(self._touched)
        if mask is not None and self._hidden is not None and self._hidden.cache_info().currsize:
            read += mask.chunk_nbytes(self.index)
        return read

    def _read(self, chunk: StagedChunk, division: Division, blocks: np.ndarray) -> None:
        self._touched = np.union1d(self._touched, chunk.groups_of(division, blocks))


class FieldPart:
    """A region of the field of an archive, and what was read of it so far."""

    def __init__(self, archive: Archive, slices: Slices) -> None:
        self.stored, self.mask, self.slices = archive.data, archive.arrays.get("mask"), slices
        promise = archive.certificate[self.stored.layout.name]   # read once
        self.indices = regions.chunks_in(self.stored.layout, slices)
        self.limits = {index: limit_at(promise, self.stored, index) for index in self.indices}
        self.shape = tuple(part.stop - part.start for part in slices)
        self._nbytes: dict[Index, int] = dict.fromkeys(self.indices, 0)
        self._ranges = self._decoded = 0

    @property
    def cells(self) -> int:
        """How many cells it has, valid or not."""
        return int(np.prod(self.shape, dtype=int))

    def each(self, work: Callable[[ChunkPart], Result]) -> Iterator[Result]:
        """The results of some work on each chunk, in order; several chunks at once where that helps."""

        def opened(index: Index) -> tuple[Result, ChunkPart]:
            part = ChunkPart(self, index)
            return work(part), part

        alone = self.stored.decoder.holds_gil or isinstance(self.stored.codec, Staged)   # these use threads themselves
        for result, part in map(opened, self.indices) if alone else backend.side_by_side(opened, self.indices):
            self._nbytes[part.index] = max(self._nbytes[part.index], part.nbytes(self.mask))
            self._ranges += len(part.ranges.count) if part.decoded < part.cells else 0
            self._decoded += part.decoded
            yield result

    @property
    def nbytes(self) -> int:
        """The bytes of chunks that were read so far."""
        return sum(self._nbytes.values())

    @property
    def nbytes_stored(self) -> int:
        """The bytes of all chunks of the values and of their mask."""
        return self.stored.nbytes + (0 if self.mask is None else self.mask.nbytes)

    @property
    def nbytes_of_chunks(self) -> int:
        """The bytes of all chunks in the region, and of their masks, without reading them."""
        arrays = [self.stored, *([] if self.mask is None else [self.mask])]
        return sum(one.chunk_nbytes(index) for one in arrays for index in self.indices)

    @property
    def stage(self) -> str:
        """What had to be decoded so far."""
        return VALUES if not self._ranges else SOME if self._decoded else METADATA

    @property
    def limit_of_all(self) -> tuple[bool, Limit | None]:
        """Whether all chunks have the same limit, and which."""
        different = set(self.limits.values())
        return len(different) == 1, next(iter(different))


def limit_at(promise: Promise, stored: StoredArray, index: Index) -> Limit | None:
    """What is promised of a chunk; None for the same bits."""
    limit = promise.limit_at(stored.layout.chunk_slices(index))
    return None if limit is None or limit.value == 0 else limit
