"""Fortran records, of which Gadget and fast-food files are made: a byte count, the payload, the same count again.

Only the markers are read first, to the end of the file: two counts that differ, or a record that does not end where the
next one begins, reveal damage before any data is read. The first marker determines the byte order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.data.readers.source import Source

MARKER = 4
MOST_RECORDS = 1000   # real files have fewer than a hundred; damaged ones may seem to have millions


@dataclass(frozen=True)
class Record:
    """Where a payload lies in the file."""

    at: int
    size: int

    def read(self, source: Source, dtype: np.dtype, what: str, skip: int = 0, count: int | None = None) -> np.ndarray:
        """The payload, or `count` items of it after `skip`."""
        items = self.size // dtype.itemsize if count is None else count
        needed = (skip + items) * dtype.itemsize
        if needed > self.size:
            raise source.damaged(f"expected at least {needed:,} bytes of {what}; got {self.size:,}")
        return source.array(self.at + skip * dtype.itemsize, items, dtype, what)


def byte_order(source: Source, first_sizes: tuple[int, ...]) -> str | None:
    """'<' or '>' when the file begins with a record of one of these sizes, else None.

    >>> from pathlib import Path
    >>> marker = (4).to_bytes(4, "big")
    >>> byte_order(Source(Path("tiny"), 12, marker + b"text" + marker), (4, 8))
    '>'
    """
    return next((order for order in "<>" for size in first_sizes if _begins_with(source, order, size)), None)


def _begins_with(source: Source, order: str, size: int) -> bool:
    marker = size.to_bytes(MARKER, "little" if order == "<" else "big")
    return source.head[:MARKER] == marker and source.head[MARKER + size :][:MARKER] == marker


def records(source: Source, order: str) -> list[Record]:
    """All records of a file, checked to fill it exactly."""
    found: list[Record] = []
    at = 0
    while at < source.size:
        if len(found) == MOST_RECORDS:
            raise source.damaged(f"expected a few Fortran records; got more than {MOST_RECORDS}")
        size = _marker(source, order, at)
        if (end := _marker(source, order, at + MARKER + size)) != size:
            raise source.damaged(f"the Fortran record at byte {at:,} begins with the size {size:,} and ends with {end:,}")
        found.append(Record(at + MARKER, size))
        at += size + 2 * MARKER
    return found


def _marker(source: Source, order: str, at: int) -> int:
    return int(source.array(at, 1, np.dtype(f"{order}u4"), "a Fortran record and its size")[0])
