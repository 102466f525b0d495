"""Storage of the parts of an archive, bytes by keys such as `positions/c/3/0`: in memory, a directory or a zip file.

An archive may come from anywhere, so a store checks its list of parts when it is opened: a key is a plain relative path of
plain names, links are refused, and the members of a zip file must be stored without compression, once, within the file.
A read returns exactly the listed number of bytes, which is known (`size`) before anything is allocated.

Stores hold no open files. So they need no closing, can be pickled, and any number of threads may read at once. They detect
a file that was replaced after opening.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from workbench.archive.frame import Damaged
from workbench.archive.key import is_key, require_key
from workbench.archive.members import LOCAL_HEADER, LOCAL_SIGNATURE, listed, scanned
from workbench.errors import WorkbenchError


class Store(Protocol):
    """Bytes by key. A missing key is damage, because keys come from the archive's own description."""

    name: str

    def read(self, key: str) -> bytes:
        """The bytes of this key."""

    def size(self, key: str) -> int:
        """How many bytes there are, without reading them."""

    def keys(self) -> list[str]:
        """All keys, sorted."""

    @property
    def nbytes(self) -> int:
        """The size of all parts together."""


class _Listed:
    """The common part of all stores: the size of every part is known from the beginning."""

    def __init__(self, name: str, sizes: Mapping[str, int]) -> None:
        self.name = name
        self._sizes = dict(sizes)

    def size(self, key: str) -> int:
        """How many bytes there are, without reading them."""
        if key not in self._sizes:
            raise Damaged(key, f"it is missing from {self.name}")
        return self._sizes[key]

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._sizes)

    @property
    def nbytes(self) -> int:
        """The size of all parts together."""
        return sum(self._sizes.values())


class MemoryStore(_Listed):
    """An archive that is not written yet.

    >>> store = MemoryStore({"zarr.json": b"{}", "positions/c/0/0": b"LBC1"})
    >>> store.keys(), store.nbytes
    (['positions/c/0/0', 'zarr.json'], 6)
    """

    def __init__(self, entries: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self._entries = {require_key(key): bytes(data) for key, data in entries.items()}
        super().__init__("the archive in memory", {key: len(data) for key, data in self._entries.items()})

    def put(self, key: str, data: bytes) -> None:
        """Add a part; several threads may."""
        self._entries[require_key(key)], self._sizes[key] = data, len(data)

    def read(self, key: str) -> bytes:
        """The bytes of this key."""
        self.size(key)
        return self._entries[key]


class DirectoryStore(_Listed):
    """An archive as a directory. Files whose names cannot be keys are not part of it; links are refused."""

    def __init__(self, path: str | os.PathLike[str], damaged: bool = False) -> None:
        self.path = Path(path)
        try:
            self._seen = _place(os.stat(self.path))
            super().__init__(self.path.name, dict(_files(self.path, "", damaged)))
        except OSError as error:
            raise WorkbenchError(f"cannot open the archive {path}: {error.strerror or error}") from None

    def read(self, key: str) -> bytes:
        """The bytes of this key."""
        size = self.size(key)
        try:
            if _place(os.stat(self.path)) != self._seen:
                raise WorkbenchError(f"{self.name} was replaced since it was opened: open it again")
            descriptor = os.open(self.path / key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                if os.fstat(descriptor).st_size != size:
                    raise Damaged(key, "its size changed since the archive was opened")
                return _exactly(file.read(size), size, key)
        except OSError as error:
            raise Damaged(key, f"it cannot be read ({error.strerror or error})") from None


class ZipStore(_Listed):
    """An archive as one zip file whose members are stored without compression.

    When `damaged`, the members are found by their own headers and not by the directory at the end of the file.
    """

    def __init__(self, path: str | os.PathLike[str], damaged: bool = False) -> None:
        self.path = Path(path)
        try:
            self._seen = _identity(os.stat(self.path))
            listing = scanned(self.path) if damaged else listed(self.path)
        except OSError as error:
            raise WorkbenchError(f"cannot open the archive {path}: {error.strerror or error}") from None
        self._end = listing.end
        self._offsets = {member.key: member.offset for member in listing.members}
        super().__init__(self.path.name, {member.key: member.size for member in listing.members})

    def read(self, key: str) -> bytes:
        """The bytes of this key."""
        size = self.size(key)
        try:
            with self.path.open("rb") as file:
                if _identity(os.fstat(file.fileno())) != self._seen:
                    raise WorkbenchError(f"{self.name} changed since it was opened: open it again")
                file.seek(self._offsets[key])
                header = _exactly(file.read(LOCAL_HEADER.size), LOCAL_HEADER.size, key)
                signature, *_, name_length, extra_length = LOCAL_HEADER.unpack(header)
                if signature != LOCAL_SIGNATURE or file.read(name_length) != key.encode():
                    raise Damaged(key, "the zip file holds something else in its place")
                if file.seek(extra_length, os.SEEK_CUR) + size > self._end:
                    raise Damaged(key, "it reaches beyond the parts of the zip file")
                return _exactly(file.read(size), size, key)
        except OSError as error:
            raise Damaged(key, f"it cannot be read ({error.strerror or error})") from None


def open_store(path: str | os.PathLike[str], damaged: bool = False) -> Store:
    """The store at a path: a directory, or a zip file. When `damaged`, its readable part.

    >>> open_store("no/such.zarr")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: there is no archive no/such.zarr: check the path
    """
    try:
        place = Path(path).expanduser()
        is_folder, is_file = place.is_dir(), place.is_file()
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise WorkbenchError(f"cannot open {path!r}: {error}") from None
    if not (is_folder or is_file):
        raise WorkbenchError(f"there is no archive {path}: check the path")
    return DirectoryStore(place, damaged) if is_folder else ZipStore(place, damaged)


def _files(folder: Path, prefix: str, damaged: bool) -> Iterator[tuple[str, int]]:
    """The key and size of every file below a folder; links and devices are refused or, when `damaged`, left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            key = prefix + entry.name
            if not is_key(key):
                continue
            mode = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(mode.st_mode):
                yield from _files(folder / entry.name, f"{key}/", damaged)
            elif stat.S_ISREG(mode.st_mode):
                yield key, mode.st_size
            elif not damaged:
                raise WorkbenchError(f"an archive holds plain files; {key} is a link or a device: remove it")


def _place(status: os.stat_result) -> tuple[int, ...]:
    """Values that change when another file or directory takes the name."""
    return status.st_dev, status.st_ino


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """Values that change also when a file is rewritten."""
    return *_place(status), status.st_size, status.st_mtime_ns


def _exactly(data: bytes, size: int, key: str) -> bytes:
    if len(data) != size:
        raise Damaged(key, f"it must have {size:,} bytes; {len(data):,} could be read")
    return data
