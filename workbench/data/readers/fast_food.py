"""Fast-food files (`.ff`), the exchange format of Corrfunc: Fortran records with a short header and one column per axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.fortran import MARKER, Record, byte_order, records
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, particles
from workbench.data.readers.source import Source

INTEGERS, FLOATS = 20, 36   # bytes of the first two records: five int32 (box, count, ...) and nine float32


def read(source: Source, *, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """Positions from the columns x, y, z; a fourth column of weights stays in the file."""
    order = byte_order(source, (INTEGERS,))
    if order is None:
        raise source.damaged("expected five int32 in the first record")
    integers, floats, redshift, *columns = _header_and_columns(source, order)
    length, count = integers.read(source, np.dtype(f"{order}i4"), "header")[:2].tolist()
    if len(columns) < 3 or count < 0 or length < 0:
        got = f"{len(columns)} columns of {count} particles in a box of {length}"
        raise source.damaged(f"expected columns x, y and z in a box of length 0 (open) or more; got {got}")
    positions = np.stack([_column(source, order, column, count) for column in columns[:3]], axis=1)
    metadata: dict[str, Any] = {
        "format": "fast food",
        "redshift": float(redshift.read(source, np.dtype(f"{order}f4"), "redshift")[0]),
        "header": floats.read(source, np.dtype(f"{order}f4"), "header").tolist(),
    }
    if len(columns) > 3:
        metadata["left_out"] = [f"{len(columns) - 3} columns after x, y and z, such as weights"]
    return particles(positions, Cell((float(length),) * 3), box, metadata=metadata, wrap=wrap)


def _header_and_columns(source: Source, order: str) -> list[Record]:
    found = records(source, order)
    sizes = [record.size for record in found[:3]]
    if sizes != [INTEGERS, FLOATS, 4]:
        raise source.damaged(f"expected header records of {INTEGERS}, {FLOATS} and 4 bytes; got {sizes}")
    return found


def _column(source: Source, order: str, record: Record, count: int) -> np.ndarray:
    if record.size not in (4 * count, 8 * count):
        raise source.damaged(f"expected a column of {count:,} floats; got {record.size:,} bytes")
    width = 4 if record.size == 4 * count else 8
    return record.read(source, np.dtype(f"{order}f{width}"), "a column")


def _recognises(source: Source) -> bool:
    order = byte_order(source, (INTEGERS,))
    second = source.head[INTEGERS + 2 * MARKER :][:MARKER]
    return order is not None and int.from_bytes(second, "little" if order == "<" else "big") == FLOATS


FAST_FOOD = Format("ff", "fast-food particles (.ff, Corrfunc)", _recognises, read)
