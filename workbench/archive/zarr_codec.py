"""The codec with which plain Zarr opens archives: `zarr.open("snapshot.zarr")["positions"][:]` gives decoded values.

zarr-python finds this codec by its entry point (group `zarr.codecs`, name `lossbench`), so nobody has to import anything.
It only decodes. The promises of an archive concern the whole data, and Zarr passes single chunks; so writing is refused,
with a pointer to `wb.compress`.

No other file here imports Zarr, and no other file imports this one.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, NDBuffer

from workbench.archive.document import plain
from workbench.archive.frame import Damaged, shape_of
from workbench.archive.layout import CODEC
from workbench.archive.missing import NEEDS_MASK, WARNS
from workbench.errors import WorkbenchError

WHERE = "of a Zarr array"   # Zarr does not tell a codec which chunk it decodes


@dataclass(frozen=True)
class LossbenchCodec(ArrayBytesCodec):
    """Decodes the chunks of archives for zarr-python."""

    is_fixed_size = False
    configuration: Mapping[str, Any]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The codec as an array's document describes it."""
        configuration = data.get("configuration")
        if data.get("name") != CODEC or not isinstance(configuration, Mapping):
            raise WorkbenchError(f"the codec must be {CODEC}, with a configuration; got {data!r:.120}")
        return cls(plain(dict(configuration), "the configuration of a codec"))

    def to_dict(self) -> dict[str, Any]:
        """The codec for an array's document."""
        return {"name": CODEC, "configuration": dict(self.configuration)}

    def compute_encoded_size(self, input_byte_length: int, _chunk_spec: ArraySpec) -> int:
        """Unknown before encoding."""
        raise NotImplementedError("the size of an encoded chunk is not known in advance")

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NoReturn:
        raise WorkbenchError(
            "Zarr cannot write into an archive, because its promises were checked for the archive as a whole: "
            "compress the new values with wb.compress, and save the result"
        )

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        from workbench.archive.chunk import decode_chunk

        if self.configuration.get(WARNS) is True:
            warnings.warn(NEEDS_MASK, stacklevel=2)
        data, shape = chunk_data.to_bytes(), tuple(chunk_spec.shape)
        claimed = shape_of(data, WHERE)
        if len(claimed) != len(shape) or any(given > most for given, most in zip(claimed, shape, strict=True)):
            raise Damaged(WHERE, f"it must hold values of at most the shape {shape}; it claims {claimed}")
        dtype = chunk_spec.dtype.to_native_dtype()
        values = decode_chunk(data, self.configuration, dtype, WHERE)
        if values.shape != claimed or values.dtype != dtype:
            raise Damaged(WHERE, f"it decodes to {values.dtype} of shape {values.shape}; {dtype} of {claimed} was stated")
        return chunk_spec.prototype.nd_buffer.from_numpy_array(_padded(values, shape, chunk_spec.fill_value))


def _padded(values: np.ndarray, shape: tuple[int, ...], fill_value: Any) -> np.ndarray:
    """The chunk padded to its full shape, which Zarr expects even where the array ends within it."""
    if values.shape == shape:
        return values
    whole = np.full(shape, fill_value, values.dtype)
    whole[tuple(slice(size) for size in values.shape)] = values
    return whole
