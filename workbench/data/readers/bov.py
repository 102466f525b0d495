"""BOV (brick of values): a short text header that names a raw file and says its size, type and byte order."""

from __future__ import annotations

import math

import numpy as np

from workbench.data.field import Field
from workbench.data.readers.format import Format
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

TYPES = {"FLOAT": "f4", "REAL": "f4", "DOUBLE": "f8"}
HEADER_BYTES = 1 << 16   # far more than any header has


def read(source: Source) -> Field:
    """The field that a `.bov` header describes, from the raw file it names."""
    entries = _entries(source)
    shape = tuple(reversed(_whole_numbers(source, entries, "DATA_SIZE")))   # the fastest axis stands first in the header
    raw = _raw_file(source, entries)
    dtype, offset = _dtype(source, entries), _offset(source, entries)
    count = math.prod(shape)
    if count < 1 or raw.size != offset + count * dtype.itemsize:
        raise WorkbenchError(
            f"{source.name} describes {' x '.join(map(str, shape))} {dtype.name} from byte {offset}, which is "
            f"{offset + count * dtype.itemsize:,} bytes; {raw.name} has {raw.size:,}: they do not belong together"
        )
    values = raw.array(offset, count, dtype, "values").reshape(shape)
    metadata = {"format": "BOV", **{key.lower(): value for key, value in entries.items()}}
    return Field(values, _spacing(source, entries, shape), entries.get("VARIABLE"), metadata=metadata)


def _entries(source: Source) -> dict[str, str]:
    text = source.bytes(0, min(source.size, HEADER_BYTES), "header").decode("utf-8", "replace")
    pairs = (line.split("#")[0].partition(":") for line in text.splitlines())
    entries = {key.strip().upper(): value.strip().strip('"') for key, _, value in pairs if value.strip()}
    missing = [key for key in ("DATA_FILE", "DATA_SIZE", "DATA_FORMAT") if key not in entries]
    if missing:
        raise source.damaged(f"expected the lines DATA_FILE, DATA_SIZE and DATA_FORMAT; missing {', '.join(missing)}")
    if entries.get("DATA_COMPONENTS", "1") != "1":
        components = entries["DATA_COMPONENTS"]
        raise WorkbenchError(f"{source.name} holds vectors (DATA_COMPONENTS {components}); only scalars are supported")
    return entries


def _raw_file(source: Source, entries: dict[str, str]) -> Source:
    try:
        named = source.path.parent / entries["DATA_FILE"]
        source.limits.require_inside(named, source.path)
        raw = Source.at(named, source.limits)
    except WorkbenchError as error:
        raise WorkbenchError(f"{source.name} is only a header, for {entries['DATA_FILE']!r} beside it: {error}") from None
    if raw.is_folder:
        raise WorkbenchError(f"{source.name} names {entries['DATA_FILE']!r} as its data, which is a folder")
    return raw


def _dtype(source: Source, entries: dict[str, str]) -> np.dtype:
    kind = entries["DATA_FORMAT"].upper()
    if kind not in TYPES:
        raise WorkbenchError(f"DATA_FORMAT in {source.name} must be FLOAT or DOUBLE; got {entries['DATA_FORMAT']!r}")
    order = entries.get("DATA_ENDIAN", "LITTLE").upper()
    if order not in ("LITTLE", "BIG"):
        raise WorkbenchError(f"DATA_ENDIAN in {source.name} must be LITTLE or BIG; got {order!r}")
    return np.dtype(("<" if order == "LITTLE" else ">") + TYPES[kind])


def _offset(source: Source, entries: dict[str, str]) -> int:
    return _whole_numbers(source, {"BYTE_OFFSET": "0"} | entries, "BYTE_OFFSET")[0]


def _spacing(source: Source, entries: dict[str, str], shape: tuple[int, ...]) -> list[float] | None:
    """BRICK_SIZE is the distance between the first and last node, or the width of all zones together."""
    if "BRICK_SIZE" not in entries:
        return None
    sizes = _numbers(source, entries, "BRICK_SIZE")[::-1]
    if len(sizes) != len(shape):
        raise WorkbenchError(f"BRICK_SIZE in {source.name} must have {len(shape)} numbers, as DATA_SIZE; got {len(sizes)}")
    gap = 0 if entries.get("CENTERING", "NODAL").upper() == "ZONAL" else 1
    return [size / max(points - gap, 1) for size, points in zip(sizes, shape, strict=True)]


def _numbers(source: Source, entries: dict[str, str], key: str) -> list[float]:
    try:
        numbers = [float(word) for word in entries[key].split()]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise WorkbenchError(f"{key} in {source.name} must be numbers separated by spaces; got {entries[key]!r}")
    return numbers


def _whole_numbers(source: Source, entries: dict[str, str], key: str) -> list[int]:
    numbers = _numbers(source, entries, key)
    if any(number != int(number) or number < 0 for number in numbers):
        raise WorkbenchError(f"{key} in {source.name} must be whole numbers; got {entries[key]!r}")
    return [int(number) for number in numbers]


def _recognises(source: Source) -> bool:
    keys = {line.partition(b":")[0].strip().upper() for line in source.head.splitlines()}
    return {b"DATA_FILE", b"DATA_SIZE"} <= keys


BOV = Format("bov", "BOV header (.bov) with its raw file", _recognises, read)
