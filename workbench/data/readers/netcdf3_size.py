"""The length that a NetCDF-3 file must have, from its header.

The NetCDF library silently reads zeros beyond the end of a truncated NetCDF-3 file. So the header is parsed here as well,
up to the offsets and sizes of the variables, and compared with the size of the file. NetCDF-4 files need no such check:
HDF5 refuses truncated files.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from workbench.data.readers.source import Source

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}   # bytes of each type
STREAMING = (2**32 - 1, 2**64 - 1)   # the number of records of a file that was still being written
MOST = 1 << 16                       # of dimensions, attributes or variables


@dataclass
class Cursor:
    """A read position in the header."""

    source: Source
    count_bytes: int
    place_bytes: int
    at: int = 4
    dimensions: list[int] = field(default_factory=list)

    def number(self, size: int) -> int:
        """A big-endian number."""
        value = int.from_bytes(self.source.bytes(self.at, size, "the NetCDF header"), "big")
        self.at += size
        return value

    def count(self) -> int:
        """The number of entries that follow."""
        return self.number(self.count_bytes)

    def entries(self) -> range:
        """The indices of the entries of a tagged list."""
        self.number(4)
        count = self.count()
        if count > MOST:
            raise self.source.damaged(f"the NetCDF header has a list of {count:,} entries")
        return range(count)

    def skip(self, size: int) -> None:
        """Pass over bytes, which are padded to a multiple of four."""
        self.at += -(-size // 4) * 4

    def skip_attributes(self) -> None:
        """Pass over a list of attributes."""
        for _ in self.entries():
            self.skip(self.count())
            size = self.size_of_type()
            self.skip(self.count() * size)

    def size_of_type(self) -> int:
        """The bytes of a number of the type that is named here."""
        kind = self.number(4)
        if kind not in SIZES:
            raise self.source.damaged(f"the NetCDF header names a type {kind}, which does not exist")
        return SIZES[kind]


@dataclass(frozen=True)
class Stretch:
    """The location of a variable or, if it has records, of its part of the first record."""

    begin: int
    size: int
    has_records: bool


def check_size(source: Source) -> None:
    """Refuse a NetCDF-3 file that ends before its last number."""
    version = source.bytes(3, 1, "the NetCDF version")[0]
    cursor = Cursor(source, 8 if version == 5 else 4, 4 if version == 1 else 8)
    records = cursor.count()
    for _ in cursor.entries():
        cursor.skip(cursor.count())
        cursor.dimensions.append(cursor.count())
    cursor.skip_attributes()
    stretches = [_stretch(cursor) for _ in cursor.entries()]
    repeated = [stretch for stretch in stretches if stretch.has_records]
    step = repeated[0].size if len(repeated) == 1 else sum(-(-stretch.size // 4) * 4 for stretch in repeated)
    ends = [stretch.begin + stretch.size for stretch in stretches if not stretch.has_records]
    if records and records not in STREAMING:
        ends += [stretch.begin + (records - 1) * step + stretch.size for stretch in repeated]
    if (needed := max(ends, default=0)) > source.size:
        raise source.damaged(f"its header needs {needed:,} bytes; the file has {source.size:,}")


def _stretch(cursor: Cursor) -> Stretch:
    cursor.skip(cursor.count())
    rank = cursor.count()
    if rank > MOST:
        raise cursor.source.damaged(f"the NetCDF header has a variable of {rank:,} dimensions")
    chosen = [cursor.count() for _ in range(rank)]
    if any(dimension >= len(cursor.dimensions) for dimension in chosen):
        raise cursor.source.damaged("the NetCDF header has a variable over a dimension that does not exist")
    lengths = [cursor.dimensions[dimension] for dimension in chosen]
    cursor.skip_attributes()
    size = cursor.size_of_type()
    cursor.count()   # the size of the variable, which is wrong for large ones: it follows from the dimensions
    has_records = bool(lengths) and lengths[0] == 0   # the unlimited dimension has length 0 in the list
    size *= int(np.prod(lengths[1:] if has_records else lengths, dtype=object))
    return Stretch(cursor.number(cursor.place_bytes), size, has_records)
