"""One chunk of an array: from values to the bytes of a frame, and back.

Everything that decodes a chunk comes through `decode_chunk`: our reader, plain Zarr, and the check before an archive is
returned. A chunk of floats holds what `workbench.guarantees` made of it; integers and masks are kept losslessly.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench import codecs
from workbench.archive import frame
from workbench.archive.frame import Damaged, Frame
from workbench.archive.layout import ArrayLayout
from workbench.backend import Array
from workbench.clusters.keep.correction import corrected
from workbench.codecs import Codec, Tolerance
from workbench.codecs.pcodec import PCodec
from workbench.errors import WorkbenchError
from workbench.guarantees import Guarded, decode_guarded
from workbench.guarantees.sections import BYTES, CHECKSUM, EDIT, PIN, SAME

CHECKSUMS = "lossbench:chunks"   # an array's attribute: those of all its chunks, so that none takes another's place


class EncodedChunk(NamedTuple):
    """The frame of a chunk, and the checksum of the values that it decodes to."""

    data: bytes
    checksum: bytes


def framed(shape: tuple[int, ...], sections: Mapping[str, bytes], checksum: bytes) -> EncodedChunk:
    """The frame of these sections and the checksum."""
    return EncodedChunk(frame.pack(shape, {**sections, CHECKSUM: checksum}), checksum)


def guarded_chunk(guarded: Guarded) -> EncodedChunk:
    """The frame of a chunk of floats."""
    return framed(tuple(guarded.decoded.shape), guarded.sections, guarded.figures.crc.to_bytes(4, "little"))


def exact_chunk(values: np.ndarray) -> EncodedChunk:
    """The frame of a chunk that is kept bit for bit.

    >>> chunk = exact_chunk(np.array([3, 1, 2]))
    >>> decode_chunk(chunk.data, {"codec": {"id": "pcodec"}}, np.dtype("int64"), "ids/c/0").tolist()
    [3, 1, 2]
    """
    values = np.ascontiguousarray(values)
    if values.dtype.name in PCodec.dtypes:
        sections = {SAME: PCodec().encode(values, Tolerance(absolute=0.0))}
    else:
        packed = np.packbits(values) if values.dtype.kind == "b" else values
        sections = {BYTES: zlib.compress(packed.tobytes(), 6)}
    return framed(values.shape, sections, _checksum(values))


def with_checksums(layout: ArrayLayout, chunks: Sequence[EncodedChunk]) -> ArrayLayout:
    """The layout of an array that consists of these chunks and no others."""
    found = "".join(chunk.checksum.hex() for chunk in chunks)
    return dataclasses.replace(layout, attributes={**layout.attributes, CHECKSUMS: found})


def checksums_of(layout: ArrayLayout) -> list[bytes]:
    """What each chunk of an array must have as its checksum, in order."""
    stated, count = layout.attributes.get(CHECKSUMS), layout.chunk_count
    if not (isinstance(stated, str) and len(stated) == 8 * count and re.fullmatch("[0-9a-f]*", stated)):
        raise WorkbenchError(f"{layout.name} must state {CHECKSUMS}, a checksum for each of its {count:,} chunks")
    together = bytes.fromhex(stated)
    return [together[i : i + 4] for i in range(0, len(together), 4)]


def codec_of(configuration: Mapping[str, Any], where: str) -> Codec:
    """The codec that an array's document names."""
    described = configuration.get("codec")
    if not isinstance(described, Mapping):
        raise WorkbenchError(f"the codec of {where} must be described by names and values; got {described!r:.100}")
    try:
        return codecs.from_dict(described)
    except Exception as error:   # what a made-up description does to the constructor of some codec
        raise WorkbenchError(f"{where} cannot be decoded here: {error}") from error


def decode_chunk(data: bytes, configuration: Mapping[str, Any], dtype: np.dtype, where: str) -> np.ndarray:
    """The values of a chunk; `where` is its key, for messages."""
    return decode_frame(frame.unpack(data, where), codec_of(configuration, where), dtype)


def decode_frame(opened: Frame, codec: Codec, dtype: np.dtype, xp: Any = np) -> Array:
    """The values of a chunk that was taken apart, as an array of `xp`: numpy or cupy."""
    codec.require()
    if BYTES in opened.sections:
        return xp.asarray(_from_bytes(opened, dtype))
    sections = {tag: bytes(part) for tag, part in opened.sections.items() if tag != CHECKSUM}
    beside = {tag: sections.pop(tag) for tag in (EDIT, PIN) if tag in sections}
    if dtype.kind != "f" and set(sections) != {SAME}:
        raise Damaged(opened.where, f"{dtype} values must be kept exactly; it has {', '.join(sections)}")
    try:
        values = decode_guarded(codec, sections, opened.shape, dtype, xp)
        return corrected(values, beside)
    except Damaged:
        raise
    except WorkbenchError as error:
        raise Damaged(opened.where, str(error)) from error


def decodes_as_written(opened: Frame, values: np.ndarray) -> bool:
    """Whether these are the values that came out when the chunk was written, bit for bit."""
    return _checksum(values) == bytes(opened.section(CHECKSUM))


def _checksum(values: np.ndarray) -> bytes:
    return zlib.crc32(np.ascontiguousarray(values).data).to_bytes(4, "little")


def _from_bytes(opened: Frame, dtype: np.dtype) -> np.ndarray:
    count = int(np.prod(opened.shape, dtype=np.int64))
    expected = -(-count // 8) if dtype.kind == "b" else count * dtype.itemsize
    try:
        inflated = zlib.decompressobj().decompress(bytes(opened.section(BYTES)), expected + 1)   # never more than is due
    except zlib.error as error:
        raise Damaged(opened.where, f"its bytes cannot be inflated ({error})") from None
    if len(inflated) != expected:
        raise Damaged(opened.where, f"it must inflate to {expected:,} bytes")
    if dtype.kind != "b":
        return np.frombuffer(inflated, dtype).reshape(opened.shape).copy()
    return np.unpackbits(np.frombuffer(inflated, np.uint8), count=count).astype(bool).reshape(opened.shape)
