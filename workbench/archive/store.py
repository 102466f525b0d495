"""Storage of the parts of an archive, bytes by keys such as `positions/c/3/0`: in memory, a directory or a zip file.

Those of other machines are in `remote/`. An archive may come from anywhere. A key is a plain relative path of plain names.
The members of a zip file are listed when it is opened, and must stand there once, within the file, chunks as they are. A
directory is not listed: it may have many files on a slow disk, and its documents say which. No link in it is followed,
wherever on the way to a file. A read returns exactly the number of bytes that is asked for, which is compared with the size
before anything is allocated.

Stores hold no open files. So they need no closing, can be pickled, and any number of threads may read at once. They detect
a file that was replaced after opening.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Protocol, TypeVar

from workbench.archive.frame import Damaged
from workbench.archive.key import is_key, require_key
from workbench.archive.members import LOCAL_HEADER, LOCAL_SIGNATURE, listed, scanned
from workbench.data.readers.address import is_address
from workbench.errors import WorkbenchError

Result = TypeVar("Result")

MOST_AT_ONCE = 2**30   # bytes of one read; systems have limits of their own


class Store(Protocol):
    """Bytes by key. A missing key is damage, because keys come from the archive's own description."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def in_memory(self) -> bool:
        """Whether this process made the bytes, and holds them."""

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key, or so many of them from this place on; more than `most` are damage, and are not read."""

    def size(self, key: str, missing: int | None = None) -> int:
        """How many bytes there are, without reading them; `missing` where there is no such part."""

    def keys(self) -> list[str]:
        """All keys, sorted."""


class Listed:
    """The common part of stores in which the size of every part is known from the beginning."""

    in_memory = False

    def __init__(self, name: str, sizes: Mapping[str, int]) -> None:
        self.name = name
        self._sizes = dict(sizes)

    def size(self, key: str, missing: int | None = None) -> int:
        """How many bytes there are, without reading them."""
        size = self._sizes.get(key, missing)
        if size is None:
            raise Damaged(key, f"it is missing from {self.name}")
        return size

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._sizes)


class MemoryStore(Listed):
    """An archive that is not written yet, or that is being made in memory.

    >>> store = MemoryStore({"zarr.json": b"{}", "positions/c/0/0": b"LBC1"})
    >>> store.keys(), store.size("positions/c/0/0")
    (['positions/c/0/0', 'zarr.json'], 4)
    """

    in_memory = True
    unfinished = None

    def __init__(self, entries: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self._entries = {require_key(key): bytes(data) for key, data in entries.items()}
        super().__init__("the archive in memory", {key: len(data) for key, data in self._entries.items()})

    def parts(self) -> MemoryStore:
        """What was put so far."""
        return self

    def finished(self, documents: Mapping[str, bytes], chunks: Iterable[str]) -> MemoryStore:
        """The archive, when its documents are added."""
        for key, data in documents.items():
            self.put(key, data)
        return self

    def put(self, key: str, data: bytes) -> None:
        """Add a part; several threads may."""
        self._entries[require_key(key)], self._sizes[key] = data, len(data)

    def put_blocks(self, key: str, blocks: Iterable[bytes]) -> None:
        """Add a part that is given in blocks."""
        self.put(key, b"".join(blocks))

    def remove(self, key: str) -> None:
        """Remove a part, if it is there."""
        self._entries.pop(key, None)
        self._sizes.pop(key, None)

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        begin, end = range_of(key, begin, size, self.size(key), most)
        data = self._entries[key]
        return data if end - begin == len(data) else data[begin:end]


class DirectoryStore:
    """An archive as a directory. Files whose names cannot be keys are not part of it; no link is followed."""

    in_memory = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()   # as a change of the working directory, or another process, must not matter
        self.name = self.path.name
        try:
            self._seen = _place(os.stat(self.path))
        except OSError as error:
            raise WorkbenchError(f"cannot open the archive {path}: {error.strerror or error}") from None

    def size(self, key: str, missing: int | None = None) -> int:
        """How many bytes there are, without reading them."""
        size = self._reached(key, _size_at)
        if size is None:
            size = missing
        if size is None:
            raise self._missing(key)
        return size

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        data = self._reached(key, partial(_bytes_at, key, begin, size, most))
        if data is None:
            raise self._missing(key)
        return data

    def keys(self) -> list[str]:
        """All keys, sorted: lists the directory."""
        with _still_there(self.name):
            return sorted(key for key, _ in _files(self.path))

    def _reached(self, key: str, use: Callable[[int, str], Result | None]) -> Result | None:
        """What `use` makes of the folder of a part and of its name there; links are not followed. None if there is none."""
        with ExitStack() as opened:
            try:
                with _still_there(self.name):
                    folder = _descriptor(self.path, os.O_DIRECTORY, opened)
                if _place(os.fstat(folder)) != self._seen:
                    raise WorkbenchError(f"{self.name} was replaced since it was opened: open it again")
                if not is_key(key):
                    return None
                *folders, name = key.split("/")
                for inner in folders:
                    folder = _descriptor(inner, os.O_DIRECTORY | os.O_NOFOLLOW, opened, folder)
                return use(folder, name)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise _unreadable(key, error) from None
        return None

    def _missing(self, key: str) -> Damaged:
        return Damaged(key, f"it is missing from {self.name}, where links are not followed")


class ZipStore(Listed):
    """An archive as one zip file, whose chunks are stored without compression.

    When `damaged`, the members are found by their own headers and not by the directory at the end of the file.
    """

    def __init__(self, path: str | os.PathLike[str], damaged: bool = False) -> None:
        self.path = Path(path).absolute()
        try:
            self._seen = _identity(os.stat(self.path))
            listing = scanned(self.path) if damaged else listed(self.path)
        except OSError as error:
            raise WorkbenchError(f"cannot open the archive {path}: {error.strerror or error}") from None
        self._end = listing.end
        self._members = {member.key: member for member in listing.members}
        super().__init__(self.path.name, {member.key: member.size for member in listing.members})

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        begin, end = range_of(key, begin, size, self.size(key), most)
        member = self._members[key]
        try:
            with ExitStack() as opened:
                with _still_there(self.name):
                    file = opened.enter_context(self.path.open("rb"))
                if _identity(os.fstat(file.fileno())) != self._seen:
                    raise WorkbenchError(f"{self.name} changed since it was opened: open it again")
                file.seek(member.offset)
                header = _exactly(file.read(LOCAL_HEADER.size), LOCAL_HEADER.size, key)
                signature, *_, name_length, extra_length = LOCAL_HEADER.unpack(header)
                if signature != LOCAL_SIGNATURE or file.read(name_length) != key.encode():
                    raise Damaged(key, "the zip file holds something else in its place")
                if (start := file.seek(extra_length, os.SEEK_CUR)) + member.stored > self._end:
                    raise Damaged(key, "it reaches beyond the parts of the zip file")
                if member.deflated:
                    return member.inflated(_read(file, member.stored, key))[begin:end]
                file.seek(start + begin)
                return _read(file, end - begin, key)
        except OSError as error:
            raise _unreadable(key, error) from None


def open_store(
    path: str | os.PathLike[str], damaged: bool = False, storage_options: Mapping[str, Any] | None = None
) -> Store:
    """The store at a path: a directory, or a zip file; or that at an address. When `damaged`, its readable part.

    >>> open_store("no/such.zarr")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: there is no archive no/such.zarr: check the path
    """
    if is_address(path):
        from workbench.archive.remote.stores import remote_store  # which few need

        return remote_store(path, damaged, storage_options)
    if storage_options is not None:
        raise WorkbenchError(f"storage_options are for addresses such as s3://bucket/x.zip; got the path {path}")
    try:
        place = Path(path).expanduser()
        is_folder, is_file = place.is_dir(), place.is_file()
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise WorkbenchError(f"cannot open {path!r}: {error}") from None
    if not (is_folder or is_file):
        raise WorkbenchError(f"there is no archive {path}: check the path")
    return DirectoryStore(place) if is_folder else ZipStore(place, damaged)


@contextmanager
def _still_there(name: str) -> Iterator[None]:
    """An error where the archive itself is gone, which is no damage of one of its parts."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise WorkbenchError(f"{name} was moved or deleted since it was opened: open it again") from None


def _files(folder: Path, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The key and size of every plain file below a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            key = prefix + entry.name
            if not is_key(key):
                continue
            mode = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(mode.st_mode):
                yield from _files(folder / entry.name, f"{key}/")
            elif stat.S_ISREG(mode.st_mode):
                yield key, mode.st_size


def _size_at(folder: int, name: str) -> int | None:
    """The size of a plain file in a folder."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _bytes_at(key: str, begin: int, size: int | None, most: int | None, folder: int, name: str) -> bytes | None:
    """Some bytes of a plain file in a folder."""
    with ExitStack() as opened:
        file = _descriptor(name, os.O_NOFOLLOW | os.O_NONBLOCK, opened, folder)   # no pipe is waited for
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return None
        begin, end = range_of(key, begin, size, status.st_size, most)
        with open(file, "rb", buffering=0, closefd=False) as stream:
            stream.seek(begin)
            return _read(stream, end - begin, key)


def _descriptor(path: Path | str, flags: int, opened: ExitStack, folder: int | None = None) -> int:
    """A file that is opened for reading, and closed with the others."""
    found = os.open(path, os.O_RDONLY | flags, dir_fd=folder)
    opened.callback(os.close, found)
    return found


def _place(status: os.stat_result) -> tuple[int, ...]:
    """Values that change when another file or directory takes the name."""
    return status.st_dev, status.st_ino


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """Values that change also when a file is rewritten."""
    return *_place(status), status.st_size, status.st_mtime_ns


def _unreadable(key: str, error: OSError) -> Damaged:
    return Damaged(key, f"it cannot be read ({error.strerror or error})")


def range_of(key: str, begin: int, size: int | None, whole: int, most: int | None = None) -> tuple[int, int]:
    """From where to where so many bytes are read of the whole; all of them, if `size` is None.

    >>> range_of("values/c/0", 2, 3, 10), range_of("values/c/0", 0, None, 10)
    ((2, 5), (0, 10))
    """
    end = whole if size is None else begin + size
    if not 0 <= begin <= end <= whole:
        raise Damaged(key, f"it must have {end:,} bytes; it has {whole:,}")
    if most is not None and end - begin > most:
        raise Damaged(key, f"it must have at most {most:,} bytes; it has {end - begin:,}")
    return begin, end


def _read(file: IO[bytes], size: int, key: str) -> bytes:
    """So many bytes of a file, from where it is."""
    blocks = []
    while size and (block := file.read(min(size, MOST_AT_ONCE))):
        blocks.append(block)
        size -= len(block)
    data = blocks[0] if len(blocks) == 1 else b"".join(blocks)
    return _exactly(data, size + len(data), key)


def _exactly(data: bytes, size: int, key: str) -> bytes:
    if len(data) != size:
        raise Damaged(key, f"it must have {size:,} bytes; {len(data):,} could be read")
    return data
