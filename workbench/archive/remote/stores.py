"""Stores of archives at addresses: a zip file of which ranges are read, or a folder with a file for each part.

A zip file is the better form for a server: its last bytes hold the directory and the root, so opening it takes one request,
and a chunk takes one. In a folder of an object store a listing says how long the parts are. HTTP has no listings: there the
size of a part is asked for where it is needed before its bytes are.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from workbench.archive.frame import Damaged
from workbench.archive.key import ROOT, is_key
from workbench.archive.members import LOCAL_HEADER, LOCAL_SIGNATURE, Member, listed_in
from workbench.archive.remote.file import AsFile, LastBytes, RemoteFile, exactly
from workbench.archive.remote.http import OPTIONS, HTTPFile
from workbench.archive.remote.object_store import ObjectFile, ObjectStore
from workbench.archive.store import Listed, Store, range_of
from workbench.data.readers.address import name_of, plain_address, scheme_of
from workbench.errors import WorkbenchError

LAST = 2**16          # bytes of a zip file that are read when it is opened
MOST_LARGE = 2**31    # bytes of a part in a folder of HTTP that is read as a whole
WEB = ("http", "https")
HERE = "other files are read from this machine: download it first"


class RemoteZip(Listed):
    """An archive as one zip file, of which the last bytes are here."""

    def __init__(self, file: RemoteFile) -> None:
        try:
            self._bytes = LastBytes(file, LAST)
            listing = listed_in(AsFile(self._bytes), file.name, "no archive of Lossbench", HERE)
        except FileNotFoundError:
            raise WorkbenchError(f"there is no {file.name} at its address: check it") from None
        self._begins = _begins(listing.members, listing.end)
        self._deflated = {member.key: member for member in listing.members if member.deflated}
        super().__init__(file.name, {member.key: member.size for member in listing.members})

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        begin, end = range_of(key, begin, size, self.size(key), most)
        try:
            if (member := self._deflated.get(key)) is not None:
                data = self._bytes.part(self._begin(key), member.stored)
                return member.inflated(exactly(data, member.stored, self.name))[begin:end]
            return exactly(self._bytes.part(self._begin(key) + begin, end - begin), end - begin, self.name)
        except FileNotFoundError:
            raise WorkbenchError(f"{self.name} was deleted since it was opened") from None

    def _begin(self, key: str) -> int:
        """Where the bytes of a part begin, behind its header: known for parts that directly follow each other."""
        offset, begin = self._begins[key]
        if begin is None:
            header = self._bytes.part(offset, LOCAL_HEADER.size)
            signature, *_, name_length, extra_length = LOCAL_HEADER.unpack(header)
            if signature != LOCAL_SIGNATURE:
                raise Damaged(key, "the zip file holds something else in its place")
            begin = offset + LOCAL_HEADER.size + name_length + extra_length
            self._begins[key] = offset, begin
        return begin


def _begins(members: list[Member], end: int) -> dict[str, tuple[int, int | None]]:
    """Where each member's header is; and where its bytes are, if nothing but the next header can follow them.

    >>> _begins([Member("a", 0, 10, 10), Member("b", 41, 5, 5)], 80)
    {'a': (0, 31), 'b': (41, None)}
    """
    inside = sorted(members, key=lambda member: member.offset)
    following = [*(member.offset for member in inside[1:]), end]
    known = {}
    for member, behind in zip(inside, following, strict=True):
        begin = member.offset + LOCAL_HEADER.size + len(member.key.encode())
        known[member.key] = member.offset, begin if begin + member.stored == behind else None
    return known


class ObjectFolder(Listed):
    """An archive as a folder of an object store, which is listed when it is opened."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        try:
            sizes = store.sizes()
        except FileNotFoundError:
            sizes = {}
        if not sizes:
            raise WorkbenchError(f"there is no file or folder {plain_address(store.address)}: check the address")
        super().__init__(store.name, {key: size for key, size in sizes.items() if is_key(key)})

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        begin, end = range_of(key, begin, size, self.size(key), most)
        try:
            return self.store.read(key, begin, end - begin)
        except FileNotFoundError:
            raise Damaged(key, f"it was deleted from {self.name} since that was opened") from None


class WebFolder:
    """An archive as a folder of a web server, with a file for each part."""

    in_memory = False

    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        self.address, self.name, self._options = address, name_of(address), dict(options)
        self._sizes: dict[str, int | None] = {}
        self._files: dict[str, HTTPFile] = {}
        self._kept: HTTPFile | None = None
        self._lock = threading.Lock()

    def size(self, key: str, missing: int | None = None) -> int:
        """How many bytes there are, without reading them; asked for once."""
        if key not in self._sizes:
            self._sizes[key] = self._reached(key, HTTPFile.size)
        size = self._sizes[key]
        if size is None:
            size = missing
        if size is None:
            raise self._missing(key)
        return size

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        if begin or size is not None:
            begin, end = range_of(key, begin, size, self.size(key), most)
            data = self._reached(key, partial(HTTPFile.read, begin=begin, size=end - begin))
        else:
            data = self._reached(key, partial(HTTPFile.all_of_it, most=MOST_LARGE if most is None else most))
        if data is None:
            raise self._missing(key)
        return data

    def keys(self) -> list[str]:
        """A web server does not list its files."""
        raise WorkbenchError(f"{self.name} is a folder of a web server, which is not listed: download it first")

    def _reached(self, key: str, use: Any) -> Any:
        if not is_key(key):
            return None
        with self._lock:
            if key not in self._files:
                self._files[key] = HTTPFile(_below(self.address, key), **self._options)
                self._files[key].name = f"{self.name}/{key}"
            file = self._files[key]
        try:
            return use(file)
        except FileNotFoundError:
            return None
        finally:
            self._keep_alone(file)

    def _keep_alone(self, file: HTTPFile) -> None:
        """Of a server that ignores ranges, keep one whole file, not all that were read."""
        with self._lock:
            if file.is_kept and self._kept is not file:
                if self._kept is not None:
                    self._kept.forget()
                self._kept = file

    def _missing(self, key: str) -> Damaged:
        return Damaged(key, f"it is missing from {self.name}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": {}, "_kept": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


def remote_store(address: str, damaged: bool, options: Mapping[str, Any] | None) -> Store:
    """The store at an address: a zip file or a folder; `options` are those of its library, or headers for HTTP."""
    if damaged:
        raise WorkbenchError(f"{plain_address(address)} must be here to read what is left of it: download it first")
    given = dict(options or {})
    if scheme_of(address) not in WEB:
        store = ObjectStore(address, given)
        return RemoteZip(ObjectFile(store)) if store.size() is not None else ObjectFolder(store)
    if unknown := set(given) - set(OPTIONS):
        raise WorkbenchError(f"storage_options of http are {' and '.join(OPTIONS)}; got {sorted(map(str, unknown))[0]!r}")
    file, folder = HTTPFile(address, **given), WebFolder(address, given)
    if not urlsplit(address).path.endswith(".zip") and folder.size(ROOT, missing=-1) >= 0:
        return folder
    return RemoteZip(file)


def _below(address: str, key: str) -> str:
    """The address of a file in a folder, before a query.

    >>> _below("https://example.org/a.zarr?token=1", "values/c/0")
    'https://example.org/a.zarr/values/c/0?token=1'
    """
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{key}"))
