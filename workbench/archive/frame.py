"""The bytes of one chunk: named sections, each with its length and its checksum.

A chunk may be truncated, overwritten or forged, and a reader must detect this before it uses any number in it. So a frame
states the shape it decodes to, the name, length and CRC-32 of every section, and the CRC-32 of this header; the lengths
must add up to the last byte. A reader needs only the first few dozen bytes for the layout, allocates no memory for missing
data, and can name the damaged chunk while the others stay readable.

Sections are views into the bytes that were read. The sections named by `lazy` are not checked when a chunk is unpacked.

    offset         content, little-endian
    0              magic LBC1
    4              number of dimensions d (1 byte), number of sections s (1 byte)
    6              d sizes of 8 bytes
    6 + 8d         s times: tag (4 bytes of ASCII), length (8 bytes), CRC-32 of the section (4 bytes)
    6 + 8d + 16s   CRC-32 of all of the above, and then the sections
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise

from workbench.archive.key import is_document
from workbench.errors import GuaranteeBroken, WorkbenchError

MAGIC = b"LBC1"
MOST_DIMENSIONS = 5
MOST_SECTIONS = 16
MOST_VALUES = 2**31   # in one chunk

HINT = "open it with damaged=True, or run `workbench salvage`, to get the undamaged part"

_START = struct.Struct("<4sBB")
_SECTION = struct.Struct("<4sQI")
_CHECKSUM = struct.Struct("<I")


class Damaged(GuaranteeBroken):
    """A chunk or a document cannot be trusted; `where` is its key in the archive, `reason` what was found.

    >>> raise Damaged("positions/c/3/0", "its section 'code' fails its checksum")
    Traceback (most recent call last):
    workbench.archive.frame.Damaged: chunk positions/c/3/0 is damaged: its section 'code' fails its checksum (the other
    chunks can still be read)
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)   # from which the exception is unpickled in another process
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        if is_document(self.where):
            return f"document {self.where} is damaged: {self.reason} (data that do not depend on it can still be read)"
        return f"chunk {self.where} is damaged: {self.reason} (the other chunks can still be read)"


def distinct(damage: Iterable[Damaged]) -> list[Damaged]:
    """Each damage once: that of a shard is found in all its chunks."""
    return list({found.where: found for found in damage}.values())


@contextmanager
def as_source(name: str) -> Iterator[None]:
    """Turn damage of an archive that is read as a source into an error that names it: what is made of it is not damaged."""
    try:
        yield
    except Damaged as damage:
        raise WorkbenchError(f"{name}: {damage}") from damage


@dataclass(frozen=True)
class Frame:
    """An unpacked chunk: the shape it decodes to, and its sections as views into the bytes that were read."""

    where: str
    shape: tuple[int, ...]
    sections: Mapping[str, memoryview]
    checksums: Mapping[str, int]

    def section(self, tag: str) -> memoryview:
        """The section of this name; a chunk that lacks it is damaged."""
        if tag not in self.sections:
            raise Damaged(self.where, f"it has no {tag} section")
        return self.sections[tag]

    def check(self, tag: str) -> None:
        """Compare one section with its checksum."""
        if zlib.crc32(self.section(tag)) != self.checksums[tag]:
            raise Damaged(self.where, f"its section {tag!r} fails its checksum")


def pack(shape: tuple[int, ...], sections: Mapping[str, bytes]) -> bytes:
    """The bytes of a chunk that decodes to this shape; a tag is four letters, digits or underscores.

    >>> data = pack((2, 3), {"code": b"...", "mask": b""})
    >>> frame = unpack(data, "temperature/c/0/0")
    >>> frame.shape, bytes(frame.sections["code"])
    ((2, 3), b'...')
    """
    shape = tuple(int(size) for size in shape)
    if reason := _wrong_shape(shape):
        raise WorkbenchError(f"the shape of a chunk {reason}; got {shape}")
    if reason := _wrong_tags([tag.encode("utf-8", "replace") for tag in sections]):
        raise WorkbenchError(f"the tags of a chunk's sections {reason}; got {', '.join(map(repr, sections)) or 'none'}")
    header = b"".join([
        _START.pack(MAGIC, len(shape), len(sections)),
        *(size.to_bytes(8, "little") for size in shape),
        *(_SECTION.pack(tag.encode(), len(data), zlib.crc32(data)) for tag, data in sections.items()),
    ])
    return b"".join([header, _CHECKSUM.pack(zlib.crc32(header)), *sections.values()])


def unpack(data: bytes | memoryview, where: str, lazy: Collection[str] = ()) -> Frame:
    """Unpack a chunk and check everything except the sections named by `lazy`, which `Frame.check` checks."""
    frame = _unchecked(data, where)
    for tag in frame.sections:
        if tag not in lazy:
            frame.check(tag)
    return frame


def bare(data: bytes | memoryview, where: str, shape: tuple[int, ...], sections: Mapping[str, bytes]) -> Frame:
    """A chunk without a frame, from what is known of it elsewhere; its bytes are the section `code`."""
    parts = {"code": memoryview(data), **{tag: memoryview(part) for tag, part in sections.items()}}
    return Frame(where, shape, parts, {tag: zlib.crc32(part) for tag, part in parts.items()})


def shape_of(data: bytes | memoryview, where: str) -> tuple[int, ...]:
    """The shape that a chunk claims to decode to; only its header is read.

    >>> shape_of(pack((2, 3), {"code": b"..."}), "temperature/c/0/0")
    (2, 3)
    """
    return _unchecked(data, where).shape


def _unchecked(data: bytes | memoryview, where: str) -> Frame:
    """The frame with its header checked and its sections unchecked."""
    view = memoryview(data)
    size, dimensions = _header_size(view, where)
    if zlib.crc32(view[: size - 4]) != _CHECKSUM.unpack_from(view, size - 4)[0]:
        raise Damaged(where, "its header fails its checksum")
    shape = struct.unpack_from(f"<{dimensions}Q", view, _START.size)
    table = view[_START.size + 8 * dimensions : size - 4]
    tags, lengths, checksums = zip(*_SECTION.iter_unpack(table), strict=True)
    if reason := _wrong_shape(shape):
        raise Damaged(where, f"its shape {reason}; it claims {shape}")
    if reason := _wrong_tags(tags):
        raise Damaged(where, f"the tags of its sections {reason}")
    if size + sum(lengths) != len(view):
        raise Damaged(where, f"it must have {size + sum(lengths):,} bytes; it has {len(view):,}")
    names = [tag.decode("ascii") for tag in tags]
    bodies = [view[start:end] for start, end in pairwise(accumulate(lengths, initial=size))]
    return Frame(where, shape, dict(zip(names, bodies, strict=True)), dict(zip(names, checksums, strict=True)))


def _header_size(view: memoryview, where: str) -> tuple[int, int]:
    """How long the header is, and how many dimensions it describes."""
    if len(view) < _START.size:
        raise Damaged(where, f"it has {len(view)} bytes, which is too short for a chunk")
    magic, dimensions, count = _START.unpack_from(view)
    if magic != MAGIC:
        raise Damaged(where, f"it must begin with {MAGIC!r}; it begins with {magic!r}")
    if not (1 <= dimensions <= MOST_DIMENSIONS and 1 <= count <= MOST_SECTIONS):
        raise Damaged(where, f"its header claims {dimensions} dimensions and {count} sections")
    size = _START.size + 8 * dimensions + _SECTION.size * count + _CHECKSUM.size
    if len(view) < size:
        raise Damaged(where, f"it ends within its header, after {len(view)} of {size} bytes")
    return size, dimensions


def _wrong_shape(shape: tuple[int, ...]) -> str | None:
    """The requirement that a shape does not meet, if any."""
    if not 1 <= len(shape) <= MOST_DIMENSIONS:
        return f"must have 1 to {MOST_DIMENSIONS} dimensions"
    if min(shape) < 1 or math.prod(shape) > MOST_VALUES:
        return f"must hold 1 to {MOST_VALUES:,} values"
    return None


def _wrong_tags(tags: Collection[bytes]) -> str | None:
    """The requirement that the names of sections do not meet, if any."""
    if not 1 <= len(tags) <= MOST_SECTIONS:
        return f"must be 1 to {MOST_SECTIONS}"
    if not all(len(tag) == 4 and tag.replace(b"_", b"0").isalnum() for tag in tags):
        return "must be four ASCII letters, digits or underscores"
    return "must differ" if len(set(tags)) < len(tags) else None
