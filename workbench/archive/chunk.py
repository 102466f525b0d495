"""One chunk of an array: from values to the bytes of a frame, and back.

Our reader and plain Zarr return values only after `require_as_written`: they are bit-identical to the values decoded when
the chunk was written, or there is an error. The bound was checked for those values only, and a new version of a codec's
library may decode the same bytes differently. A chunk of values or positions holds the sections that
`workbench.guarantees` made; ids and masks are stored losslessly.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench import codecs
from workbench.archive import frame, provenance
from workbench.archive.frame import Damaged, Frame
from workbench.archive.layout import EARLIER, ArrayLayout, Index
from workbench.backend import Array
from workbench.clusters.keep.correction import corrected
from workbench.codecs import Codec, CodecFailed, Columns, Tolerance
from workbench.codecs.earlier import Earlier
from workbench.codecs.isolation import CannotIsolate, isolated
from workbench.codecs.mask import pack_mask, unpack_mask
from workbench.codecs.pcodec import PCodec
from workbench.codecs.registry import require_imported
from workbench.errors import WorkbenchError
from workbench.guarantees import Guarded, decode_guarded
from workbench.guarantees.sections import CHECKSUM, CODE, EDIT, FIX, MASK, PIN, SAME

CHECKSUMS = "lossbench:chunks"   # an array's attribute: the checksums of all its files, to detect swapped ones


class EncodedChunk(NamedTuple):
    """The frame of a chunk, and the checksum of the values that it decodes to."""

    data: bytes
    checksum: bytes

    def without_bytes(self) -> EncodedChunk:
        """The checksum alone, of a chunk that is written."""
        return self._replace(data=b"")


def framed(shape: tuple[int, ...], sections: Mapping[str, bytes], checksum: bytes) -> EncodedChunk:
    """The frame of these sections and the checksum."""
    return EncodedChunk(frame.pack(shape, {**sections, CHECKSUM: checksum}), checksum)


def guarded_chunk(guarded: Guarded, bare: bool = False) -> EncodedChunk:
    """The frame of a chunk of floats; of a codec that needs none, its bytes."""
    if bare:
        return EncodedChunk(guarded.sections[CODE], guarded.figures.crc.to_bytes(4, "little"))
    return framed(tuple(guarded.decoded.shape), guarded.sections, guarded.figures.crc.to_bytes(4, "little"))


def exact_chunk(values: np.ndarray, codec: Codec | None = None) -> EncodedChunk:
    """The frame of a chunk that is kept bit for bit; the bytes of a codec that needs no frame.

    >>> chunk = exact_chunk(np.array([3, 1, 2]))
    >>> decode_chunk(chunk.data, {"codec": {"id": "pcodec"}}, np.dtype("int64"), "ids/c/0").tolist()
    [3, 1, 2]
    """
    values = np.ascontiguousarray(values)
    if codec is not None and codec.bare:
        code = codec.encode(values, Tolerance(absolute=0.0))
        if _checksum(codec.decode(code, values.shape, values.dtype)) != _checksum(values):
            raise WorkbenchError(f"{codec.id} does not keep {values.dtype} bit for bit: please report this")
        return EncodedChunk(code, _checksum(values))
    if values.dtype.name in PCodec.dtypes:
        sections = {SAME: PCodec().encode(values, Tolerance(absolute=0.0))}
    else:
        sections = {MASK: pack_mask(values)}
    return framed(values.shape, sections, _checksum(values))


def with_checksums(layout: ArrayLayout, chunks: Sequence[EncodedChunk]) -> ArrayLayout:
    """The layout of an array that consists of these chunks and no others."""
    found = b"".join(chunk.checksum for chunk in chunks)
    if layout.shard_shape is not None:
        found = b"".join(checksum_of_table(table.tobytes()) for table in _tables(layout, np.frombuffer(found, "<u4")))
    return dataclasses.replace(layout, attributes={**layout.attributes, CHECKSUMS: found.hex()})


def checksum_of_table(table: bytes) -> bytes:
    """The checksum of a shard, from those of its chunks."""
    return zlib.crc32(table).to_bytes(4, "little")


def _tables(layout: ArrayLayout, checksums: np.ndarray) -> np.ndarray:
    """The checksum of the chunk in every slot of every shard, 0 in those beyond the array."""
    shards, together, axes = layout.shard_grid, layout.chunks_in_shard, len(layout.shape)
    padded = np.zeros([n * count for n, count in zip(shards, together, strict=True)], "<u4")
    padded[tuple(map(slice, layout.chunk_grid))] = checksums.reshape(layout.chunk_grid)
    split = padded.reshape([size for pair in zip(shards, together, strict=True) for size in pair])
    return split.transpose([*range(0, 2 * axes, 2), *range(1, 2 * axes, 2)]).reshape(layout.shard_count, -1)


def opened_chunk(layout: ArrayLayout, index: Index, data: bytes, checksum: bytes | None, lazy: Sequence[str] = ()) -> Frame:
    """An unpacked chunk; sections named by `lazy` are not checked yet.

    One without a frame takes its shape from the layout, and its checksum from the caller or, if that is None, from itself.
    """
    key = layout.chunk_key(index)
    if not layout.bare:
        return frame.unpack(data, key, lazy)
    extent = layout.chunk_extent(index)
    if checksum is None:
        opened = frame.bare(data, key, extent, {})
        checksum = _checksum(decode_frame(opened, codec_of(layout.configuration, key), layout.dtype))
    return frame.bare(data, key, extent, {CHECKSUM: checksum})


def checksums_of(layout: ArrayLayout) -> list[bytes]:
    """The expected checksum of each file of an array, in order: of its chunk, or of its table of chunks."""
    stated, count = layout.attributes.get(CHECKSUMS), layout.shard_count
    if not (isinstance(stated, str) and len(stated) == 8 * count and re.fullmatch("[0-9a-f]*", stated)):
        files = "chunks" if layout.shard_shape is None else "shards"
        raise WorkbenchError(f"{layout.name} must state {CHECKSUMS}, a checksum for each of its {count:,} {files}")
    together = bytes.fromhex(stated)
    return [together[i : i + 4] for i in range(0, len(together), 4)]


def codec_of(configuration: Mapping[str, Any], where: str, allowed: Collection[str] = ()) -> Codec:
    """The codec that an array's document names; of other packages, those that are `allowed` or imported already."""
    described = configuration.get("codec")
    if not isinstance(described, Mapping):
        raise WorkbenchError(f"the codec of {where} must be described by names and values; got {described!r:.100}")
    require_imported(described, allowed)
    try:
        return codecs.from_dict(described)
    except Exception as error:   # a forged description can make a codec's constructor raise anything
        reason = f"{where} cannot be decoded here: {error}{provenance.other_writer(configuration)}"
        raise WorkbenchError(reason) from error


def decode_chunk(
    data: bytes, configuration: Mapping[str, Any], dtype: np.dtype, where: str, isolate: bool = True,
    earlier: Earlier | None = None,
) -> np.ndarray:
    """The values of a chunk, as they were when it was written; `where` is its key, for messages.

    `isolate` decodes in another process where the codec could harm this one; `earlier` are its values at earlier steps.
    """
    opened, codec = frame.unpack(data, where), codec_of(configuration, where)
    if codec.beside_positions:
        raise WorkbenchError(
            f"{where}: its numbers were predicted from positions of particles, which are not in this chunk: read it with "
            "wb.open(...), or compress with another column_codec"
        )
    if configuration.get(EARLIER) and earlier is None:
        raise WorkbenchError(
            f"{where}: its numbers were predicted from earlier steps of a series, which are not in this chunk: open the "
            "folder of the series by wb.Series(...)"
        )
    decoder = codec if earlier is None else codec.following(earlier)
    return decode_as_written(opened, isolated(decoder) if isolate else decoder, dtype, codec, configuration)


def decode_as_written(
    opened: Frame, decoder: Codec, dtype: np.dtype, codec: Codec, configuration: Mapping[str, Any]
) -> np.ndarray:
    """The values of an unpacked chunk, bit-identical to those decoded when it was written.

    `decoder` is its codec, or one that runs the codec in another process. The bytes are whole. So a codec that
    refuses them, or makes other values of them, is of another version, or they are forged: the message says which versions
    wrote them.
    """
    try:
        values = decode_frame(opened, decoder, dtype)
    except Refused as error:
        raise Damaged(error.where, f"{error.reason} ({_versions(codec, configuration)})") from error
    require_as_written(opened, values, codec, configuration)
    return values


class Refused(Damaged):
    """The codec does not decode bytes that are whole."""


def _versions(codec: Codec, configuration: Mapping[str, Any]) -> str:
    return provenance.compared(configuration.get(provenance.VERSIONS), codec)


def decode_frame(opened: Frame, codec: Codec, dtype: np.dtype, xp: Any = np) -> Array:
    """The decoded values of an unpacked chunk, not yet compared, as an array of `xp`: numpy or cupy."""
    codec.require()
    if MASK in opened.sections:
        return _from_mask(opened, dtype, xp)
    sections = {tag: bytes(part) for tag, part in opened.sections.items() if tag != CHECKSUM}
    beside = {tag: sections.pop(tag) for tag in (EDIT, PIN) if tag in sections}
    if dtype.kind != "f" and (beside or not _holds_integers(set(sections), codec, dtype)):
        raise Damaged(opened.where, f"{dtype} values must be kept exactly or by a codec for integers: {_list(opened)}")
    try:
        values = decode_guarded(codec, sections, opened.shape, dtype, xp)
        return corrected(values, beside)
    except (Damaged, CannotIsolate):
        raise
    except CodecFailed as error:
        raise Refused(opened.where, str(error)) from error
    except WorkbenchError as error:
        raise Damaged(opened.where, str(error)) from error


def _holds_integers(sections: set[str], codec: Codec, dtype: np.dtype) -> bool:
    """Whether these sections can hold values that are not floats: a codec of floats must never see them."""
    return sections == {SAME} or (sections in ({CODE}, {CODE, FIX}) and dtype.name in codec.dtypes)


def _list(opened: Frame) -> str:
    return ", ".join(opened.sections)


def require_as_written(opened: Frame, values: np.ndarray, codec: Codec, configuration: Mapping[str, Any]) -> None:
    """Refuse values that are not bit-identical to those decoded when the chunk was written."""
    if _checksum(values) == bytes(opened.section(CHECKSUM)):
        return
    inner = codec.codec if isinstance(codec, Columns) else codec
    others = {SAME: "pcodec", MASK: "the coder of masks"}
    decoder = next((name for tag, name in others.items() if tag in opened.sections), inner.id)
    said = f"{decoder} decodes it to other values than when it was written ({_versions(codec, configuration)})"
    raise Damaged(opened.where, said)


def _checksum(values: np.ndarray) -> bytes:
    return zlib.crc32(np.ascontiguousarray(values).data).to_bytes(4, "little")


def _from_mask(opened: Frame, dtype: np.dtype, xp: Any) -> Array:
    if dtype.kind != "b":
        raise Damaged(opened.where, f"a mask decodes to truth values, not to {dtype}")
    try:
        return unpack_mask(bytes(opened.section(MASK)), opened.shape, xp)
    except WorkbenchError as error:
        raise Damaged(opened.where, str(error)) from error
