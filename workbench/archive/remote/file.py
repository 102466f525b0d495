"""A file on another machine, of which ranges of bytes are read: what stores need to know of one."""

from __future__ import annotations

import io
from typing import Any, Protocol

from workbench.errors import WorkbenchError


class RemoteFile(Protocol):
    """A file that does not change: where its bytes come from is known to one class each."""

    @property
    def name(self) -> str:
        """What messages call it."""

    def last(self, count: int) -> tuple[bytes, int]:
        """Its last bytes, at most so many, and its size."""

    def read(self, begin: int, size: int) -> bytes:
        """Exactly so many bytes from this place on."""


class LastBytes:
    """The last bytes of a file, which are here, and how others are asked for."""

    def __init__(self, file: RemoteFile, count: int) -> None:
        self._file = file
        self._data, self.size = file.last(count)

    def part(self, begin: int, size: int) -> bytes:
        """Bytes from a place on; only those that are not here are asked for."""
        first = self.size - len(self._data)
        before = self._file.read(begin, min(size, first - begin)) if begin < first else b""
        inside = max(begin - first, 0)
        return before + self._data[inside : inside + size - len(before)]

    def need(self, begin: int, before: int) -> None:
        """If the byte at a place is not here, ask for it and all behind it, with some before it, and keep them."""
        if begin < self.size - len(self._data):
            begin = max(begin - before, 0)
            self._data = self.part(begin, self.size - begin)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_data": b""}


class AsFile(io.RawIOBase):
    """The file as `zipfile` reads it to list its members: from the end. A long directory is kept, and what is before it."""

    BEFORE = 2**14   # bytes: the root of an archive is the last of its members

    def __init__(self, data: LastBytes) -> None:
        super().__init__()
        self._data, self._at = data, 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """Every place of it."""
        return True

    def tell(self) -> int:
        """The place that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._data.size}[whence]
        if start + offset < 0:
            raise OSError(f"expected a place within {self._data.size:,} bytes; got {start + offset}")
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, or all that follow."""
        rest = max(self._data.size - self._at, 0)
        count = rest if size is None or size < 0 else min(size, rest)
        self._data.need(self._at, self.BEFORE)
        data = self._data.part(self._at, count)
        self._at += count
        return data


def exactly(data: bytes, size: int, name: str) -> bytes:
    """These bytes, if there are so many."""
    if len(data) != size:
        raise WorkbenchError(f"{name} must send the {size:,} bytes that were asked for; it sent {len(data):,}")
    return data
