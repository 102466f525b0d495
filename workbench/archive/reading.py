"""Arrays decoded from the parts of an archive: whole, or their undamaged part.

Values are returned only after comparison with the checksum that was recorded when the archive was made.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from workbench import backend
from workbench.archive import provenance
from workbench.archive.array_files import read_chunk, read_index
from workbench.archive.chunk import (
    checksum_of_table,
    checksums_of,
    codec_of,
    decode_as_written,
    opened_chunk,
    require_as_written,
)
from workbench.archive.decoded_chunks import ChunksOfMember
from workbench.archive.frame import Damaged, Frame, distinct
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.sharding import ShardIndex
from workbench.archive.store import Store
from workbench.archive.trust import DEFAULT, Trust
from workbench.codecs import Codec
from workbench.codecs.earlier import Earlier
from workbench.errors import WorkbenchError
from workbench.guarantees.sections import CHECKSUM, SAME, STAY
from workbench.slabs import Slices

Result = TypeVar("Result")

REMEMBERED = 16   # chunks and indexes of shards for each array, of which few are larger than a megabyte
DECODED = 2       # chunks that are kept decoded while others are predicted from them
_REMEMBERING = threading.Lock()   # threads may read one archive at once


class DamagedBefore(Damaged):
    """A chunk that cannot be decoded, since one of an earlier step is damaged from which it was predicted."""


class Before(Protocol):
    """An array at earlier steps of its series."""

    def at(self, place: Slices) -> Earlier:
        """Its values there, in a part of the array."""


@dataclass(frozen=True)
class StoredArray:
    """An array in a store; `trust` limits the work that decoding it may cause."""

    store: Store
    layout: ArrayLayout
    trust: Trust = DEFAULT
    positions: StoredArray | None = None   # those of the same particles, for codecs that predict columns from them
    earlier: Before | None = None   # the same array at earlier steps, for codecs that predict in time
    kept: ChunksOfMember | None = None   # chunks of all steps of a series
    codec: Codec = field(init=False)
    decoder: Codec = field(init=False, repr=False)   # the codec, or one that runs it in another process
    opened: dict[Index, Any] = field(init=False, default_factory=dict, compare=False, repr=False)   # for reading by region
    latest: dict[Index, np.ndarray] = field(init=False, default_factory=dict, compare=False, repr=False)   # decoded chunks
    shards: dict[Index, ShardIndex] = field(init=False, default_factory=dict, compare=False, repr=False)
    checksums: list[bytes] = field(init=False, repr=False)   # of each file, in order

    def __post_init__(self) -> None:
        layout = self.layout
        self.trust.require_codec(layout.configuration.get("codec"), f"{layout.name} in {self.store.name}")
        self.trust.require_room(self.nbytes_of(layout.chunk_shape), f"a chunk of {layout.name}")
        object.__setattr__(self, "codec", codec_of(layout.configuration, layout.name, self.trust.codecs or ()))
        object.__setattr__(self, "decoder", self.trust.decoder(self.codec, self.store))
        object.__setattr__(self, "checksums", checksums_of(self.layout))

    def __getstate__(self) -> dict[str, Any]:
        # Views into bytes cannot be pickled; all are read again.
        return {**self.__dict__, "opened": {}, "latest": {}, "shards": {}}

    @property
    def nbytes(self) -> int:
        """The size of its chunks."""
        return sum(map(self.store.size, self.layout.file_keys()))

    def nbytes_of(self, shape: Iterable[int]) -> int:
        """The size of decoded values of this shape, which is clipped to the shape of the array."""
        return math.prod(map(min, shape, self.layout.shape)) * self.layout.dtype.itemsize

    @property
    def decodes_in_parts(self) -> bool:
        """Whether its bytes decode to the values that were written, even without a comparison of whole chunks.

        Archives that do not state what their values depend on are read by whole chunks.
        """
        return not self.layout.predicted and provenance.decodes_alike(self.layout.configuration, self.codec)

    def frame(self, index: Index, lazy: tuple[str, ...] = ()) -> Frame:
        """An unpacked chunk; sections named by `lazy` are not checked yet."""
        layout = self.layout
        shard, stated = self._placed(index)
        opened = opened_chunk(layout, index, read_chunk(self.store, layout, index, shard), stated, lazy)
        if bytes(opened.section(CHECKSUM)) != stated:
            raise Damaged(opened.where, "it is intact, but not the one that was written here: was it moved, or replaced?")
        return opened

    def _placed(self, index: Index) -> tuple[ShardIndex | None, bytes]:
        """The shard of a chunk, if it is in one, and the checksum of its values."""
        if self.layout.shard_shape is None:
            return None, self._stated(index)
        shard = self._index_of(self.layout.shard_of(index))
        return shard, shard.checksum(self.layout.slot_of(index))

    def chunk_nbytes(self, index: Index) -> int:
        """The size of a chunk, without reading it."""
        layout = self.layout
        if layout.shard_shape is None:
            return self.store.size(layout.chunk_key(index))
        return self._index_of(layout.shard_of(index)).place(layout.slot_of(index))[1]

    def _index_of(self, shard: Index) -> ShardIndex:
        """Where the chunks of a shard are, and their checksums, which are those that were written."""
        known = self.shards.get(shard)
        if known is None:
            known = read_index(self.store, self.layout, shard)
            if checksum_of_table(known.checksums) != self._stated(shard):
                where, count = self.layout.shard_key(shard), int(self.layout.slots(shard).sum())
                raise Damaged(where, f"the table of its {count:,} chunks is damaged, or not the one that was written here")
            remember(self.shards, shard, known)
        return known

    def _stated(self, shard: Index) -> bytes:
        """The checksum of a file in the document."""
        return self.checksums[int(np.ravel_multi_index(shard, self.layout.shard_grid))]

    def chunk(self, index: Index) -> np.ndarray:
        """The values of one chunk, bit-identical to those decoded when it was written."""
        return self.values_of(self.frame(index), index)

    def values_of(self, opened: Frame, index: Index) -> np.ndarray:
        """The values of an unpacked chunk."""
        if STAY in opened.sections and self.layout.predicted:
            values = self._before(index).values[0].copy()
            require_as_written(opened, values, self.codec, self.layout.configuration)
        else:
            decoder = self.decoder if SAME in opened.sections else self._decoder_of(index)
            values = decode_as_written(opened, decoder, self.layout.dtype, self.codec, self.layout.configuration)
        if self.kept is not None:
            values.flags.writeable = False   # others are predicted from it
            self.kept.put(self.layout, index, bytes(opened.section(CHECKSUM)), values)
        return values

    def kept_chunk(self, index: Index) -> np.ndarray:
        """The values of one chunk, which may have been decoded before: not to be changed."""
        if self.kept is not None:
            found = self.kept.get(self.layout, index, self._placed(index)[1])
            if found is not None and found.shape == self.layout.chunk_extent(index):
                return found
        return self.chunk(index)

    def _decoder_of(self, index: Index) -> Codec:
        """The decoder of a chunk, which may need the positions of the same particles, or its values at earlier steps."""
        if self.layout.predicted:
            return self._following(index)
        if not self.codec.beside_positions:
            return self.decoder
        if self.positions is None:
            raise Damaged(self.layout.chunk_key(index), "it was predicted from positions, and there are none")
        rows = self.layout.chunk_slices(index)[0]
        return self.codec.beside(self.positions.rows(rows.start, rows.stop))

    def _following(self, index: Index) -> Codec:
        """The decoder of a chunk that was predicted from earlier steps."""
        return self.trust.decoder(self.codec.following(self._before(index)), self.store)

    def _before(self, index: Index) -> Earlier:
        """The values of a chunk at earlier steps."""
        if self.earlier is None:
            raise WorkbenchError(
                f"{self.layout.name} in {self.store.name} was predicted from earlier steps of its series: open the folder "
                "of the series by wb.Series(...), and choose the step there, or by "
                "`workbench decompress FOLDER OUT --step N`"
            )
        try:
            return self.earlier.at(self.layout.chunk_slices(index))
        except DamagedBefore as damage:
            raise DamagedBefore(self.layout.chunk_key(index), damage.reason) from damage

    def rows(self, start: int, stop: int) -> np.ndarray:
        """The rows between two places. The chunks that hold them are kept for the next such call."""
        length, rest, pieces = self.layout.chunk_shape[0], (0,) * (len(self.layout.shape) - 1), []
        for number in range(start // length, -(-stop // length)):
            values = self.latest.get((number, *rest))
            if values is None:
                values = self.chunk((number, *rest))
                remember(self.latest, (number, *rest), values, DECODED)
            pieces.append(values[max(start - number * length, 0) : stop - number * length])
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def chunks(self, indices: Iterable[Index] | None = None) -> Iterator[tuple[Index, np.ndarray]]:
        """The values of these chunks (by default: of all), in parallel where the codec releases Python's lock."""
        wanted = list(self.layout.chunk_indices() if indices is None else indices)
        return zip(wanted, self._side_by_side(self.chunk, wanted), strict=True)

    def values(self) -> np.ndarray:
        """The whole array. It is allocated after the first chunk was decoded correctly."""
        self.trust.require_room(self.nbytes_of(self.layout.shape), self.layout.name)
        whole: list[np.ndarray] = []
        lock = threading.Lock()

        def place(index: Index) -> None:
            values = self.chunk(index)
            with lock:
                if not whole:
                    whole.append(np.empty(self.layout.shape, self.layout.dtype) if self.layout.chunk_count > 1 else values)
            if self.layout.chunk_count > 1:
                whole[0][self.layout.chunk_slices(index)] = values   # here, so that the threads share the copying

        for _ in self._side_by_side(place, list(self.layout.chunk_indices())):
            pass
        return whole[0]

    def damage(self) -> list[Damaged]:
        """Every chunk or shard that is damaged, or that decodes to other values than when it was written."""

        def look(index: Index) -> Damaged | None:
            found = self._values_or_damage(index)
            return found if isinstance(found, Damaged) else None

        found = self._side_by_side(look, list(self.layout.chunk_indices()))
        return distinct(damage for damage in found if damage is not None)

    def salvaged(self) -> tuple[np.ndarray | None, list[tuple[Slices, Damaged]]]:
        """The array, NaN or zero at lost values (None if all are lost); and every lost part, with the reason."""
        self.trust.require_room(self.nbytes_of(self.layout.shape), self.layout.name)
        whole: np.ndarray | None = None
        lost = []
        indices = list(self.layout.chunk_indices())
        for index, found in zip(indices, self._side_by_side(self._values_or_damage, indices), strict=True):
            slices = self.layout.chunk_slices(index)
            if isinstance(found, Damaged):
                lost.append((slices, found))
                continue
            if whole is None:
                whole = np.full(self.layout.shape, np.nan if self.layout.dtype.kind == "f" else 0, self.layout.dtype)
            whole[slices] = found
        return whole, lost

    def _values_or_damage(self, index: Index) -> np.ndarray | Damaged:
        try:
            return self.chunk(index)
        except Damaged as damage:
            return damage

    def _side_by_side(self, work: Callable[[Index], Result], indices: list[Index]) -> Iterator[Result]:
        return map(work, indices) if self.decoder.holds_gil else backend.side_by_side(work, indices)


def remember(latest: dict[Index, Result], index: Index, value: Result, most: int = REMEMBERED) -> None:
    """Add to the latest few, which are often read again."""
    with _REMEMBERING:
        latest.pop(index, None)   # another thread may have read the same
        while len(latest) >= most:
            latest.pop(next(iter(latest)))
        latest[index] = value
