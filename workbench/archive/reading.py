"""Arrays decoded from the parts of an archive: whole, or their undamaged part.

Values are returned only after comparison with the checksum that was recorded when the archive was made.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from workbench import backend
from workbench.archive import frame, provenance
from workbench.archive.chunk import checksums_of, codec_of, decode_frame, require_as_written
from workbench.archive.frame import Damaged, Frame
from workbench.archive.layout import ArrayLayout, read_chunk
from workbench.archive.store import Store
from workbench.archive.trust import DEFAULT, Trust
from workbench.codecs import Codec
from workbench.guarantees.sections import CHECKSUM
from workbench.slabs import Slices

Index = tuple[int, ...]
Result = TypeVar("Result")


@dataclass(frozen=True)
class StoredArray:
    """An array in a store; `trust` limits the work that decoding it may cause."""

    store: Store
    layout: ArrayLayout
    trust: Trust = DEFAULT
    codec: Codec = field(init=False)
    decoder: Codec = field(init=False, repr=False)   # the codec, or one that runs it in another process
    opened: dict[Index, Any] = field(init=False, default_factory=dict, compare=False, repr=False)   # for reading by region
    checksums: list[bytes] = field(init=False, repr=False)   # of the decoded values of each chunk, in order

    def __post_init__(self) -> None:
        layout = self.layout
        self.trust.require_codec(layout.configuration.get("codec"), f"{layout.name} in {self.store.name}")
        self.trust.require_room(self.nbytes_of(layout.chunk_shape), f"a chunk of {layout.name}")
        object.__setattr__(self, "codec", codec_of(layout.configuration, layout.name, self.trust.codecs or ()))
        object.__setattr__(self, "decoder", self.trust.decoder(self.codec, self.store))
        object.__setattr__(self, "checksums", checksums_of(self.layout))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "opened": {}}   # views into bytes cannot be pickled; they are read again

    @property
    def nbytes(self) -> int:
        """The size of its chunks."""
        return sum(self.store.size(self.layout.chunk_key(index)) for index in self.layout.chunk_indices())

    def nbytes_of(self, shape: Iterable[int]) -> int:
        """The size of decoded values of this shape, which is clipped to the shape of the array."""
        return math.prod(map(min, shape, self.layout.shape)) * self.layout.dtype.itemsize

    @property
    def decodes_in_parts(self) -> bool:
        """Whether its bytes decode to the values that were written, even without a comparison of whole chunks.

        Archives that do not state what their values depend on are read by whole chunks.
        """
        return provenance.decodes_alike(self.layout.configuration, self.codec)

    def frame(self, index: Index, lazy: tuple[str, ...] = ()) -> Frame:
        """An unpacked chunk; sections named by `lazy` are not checked yet."""
        opened = frame.unpack(read_chunk(self.store, self.layout, index), self.layout.chunk_key(index), lazy)
        number = int(np.ravel_multi_index(index, self.layout.chunk_grid))
        if bytes(opened.section(CHECKSUM)) != self.checksums[number]:
            raise Damaged(opened.where, "it is intact, but not the one that was written here: was it moved, or replaced?")
        return opened

    def chunk(self, index: Index) -> np.ndarray:
        """The values of one chunk, bit-identical to those decoded when it was written."""
        opened = self.frame(index)
        values = decode_frame(opened, self.decoder, self.layout.dtype)
        require_as_written(opened, values, self.codec, self.layout.configuration)
        return values

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

    def examined(self) -> Iterator[tuple[Index, np.ndarray | Damaged]]:
        """Each chunk with its values or, if these differ from the written ones, with the damage."""
        indices = list(self.layout.chunk_indices())
        return zip(indices, self._side_by_side(self._values_or_damage, indices), strict=True)

    def damage(self) -> list[Damaged]:
        """Every chunk that is damaged, or that decodes to other values than when it was written."""

        def look(index: Index) -> Damaged | None:
            found = self._values_or_damage(index)
            return found if isinstance(found, Damaged) else None

        return [found for found in self._side_by_side(look, list(self.layout.chunk_indices())) if found is not None]

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
