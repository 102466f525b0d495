"""A member of a collection, as an archive of its own: only the keys of its parts differ.

So everything that is done with one archive is done with a member: it is encoded into a `MemberPlace`, and read, verified,
salvaged and saved from a `MemberStore`. Its documents are not stored: the root of the collection has what is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.archive.archive import Archive
from workbench.archive.collection.names import Arrays
from workbench.archive.frame import Damaged
from workbench.archive.request import Compression
from workbench.archive.store import Store
from workbench.archive.writing import Place

MEMBERS = "members"   # the folder of a draft for what the same call goes on from


@dataclass(frozen=True)
class MemberStore:
    """The parts of a member, by their keys in an archive of its own."""

    whole: Store
    name: str
    stored: Mapping[str, str]         # the name in the collection of each array
    documents: Mapping[str, bytes]    # that an archive of its own would have

    @property
    def in_memory(self) -> bool:
        """Whether this process made the bytes, and holds them."""
        return self.whole.in_memory

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        if (document := self.documents.get(key)) is not None:
            return document[begin : None if size is None else begin + size]
        try:
            return self.whole.read(self._key(key), begin, size, most)
        except Damaged as damage:
            raise Damaged(key, damage.reason) from damage   # by its name in the member, as all damage of it

    def size(self, key: str, missing: int | None = None) -> int:
        """How many bytes there are, without reading them; `missing` where there is no such part."""
        if (document := self.documents.get(key)) is not None:
            return len(document)
        try:
            return self.whole.size(self._key(key), missing)
        except Damaged:
            if missing is None:
                raise
            return missing

    def keys(self) -> list[str]:
        """All keys, sorted."""
        own = {f"{stored}/": f"{array}/" for array, stored in self.stored.items()}
        found = [
            own[begin] + key.removeprefix(begin) for key in self.whole.keys()   # noqa: SIM118
            for begin in own if key.startswith(f"{begin}c/")
        ]
        return sorted([*self.documents, *found])

    def _key(self, key: str) -> str:
        array, _, rest = key.partition("/")
        if array not in self.stored:
            raise Damaged(key, f"it is missing from {self.name}")
        return f"{self.stored[array]}/{rest}"


@dataclass(frozen=True)
class MemberPlace:
    """Where the parts of a member go while its collection is made; `call` tells this call from another about the member."""

    whole: Place
    name: str
    arrays: Arrays
    call: str = ""

    @property
    def unfinished(self) -> Path | None:
        """The folder for what the same call goes on from."""
        folder = self.whole.unfinished
        return None if folder is None else folder / MEMBERS / self.arrays.at.replace("/", "%") / self.call

    def put(self, key: str, data: bytes) -> None:
        """Add a part."""
        self.whole.put(self.arrays.key(key), data)

    def put_blocks(self, key: str, blocks: Iterable[bytes]) -> None:
        """Add a part that is given in blocks."""
        self.whole.put_blocks(self.arrays.key(key), blocks)

    def remove(self, key: str) -> None:
        """Remove a part, if it is there."""
        self.whole.remove(self.arrays.key(key))

    def parts(self) -> Store:
        """What was put so far, whatever it is."""
        return _Renamed(self.whole.parts(), self.arrays)

    def finished(self, documents: Mapping[str, bytes], chunks: Iterable[str]) -> MemberStore:
        """The member; its documents go into the root of the collection."""
        names = dict.fromkeys(key.partition("/")[0] for key in chunks)
        return MemberStore(self.whole.parts(), self.name, {name: self.arrays.stored(name) for name in names}, documents)


@dataclass(frozen=True)
class _Renamed:
    """The parts of a member that is being made."""

    whole: Store
    arrays: Arrays

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self.whole.name

    @property
    def in_memory(self) -> bool:
        """Whether this process holds the bytes."""
        return self.whole.in_memory

    def read(self, key: str, begin: int = 0, size: int | None = None, most: int | None = None) -> bytes:
        """The bytes of this key."""
        return self.whole.read(self.arrays.key(key), begin, size, most)

    def size(self, key: str, missing: int | None = None) -> int:
        """How many bytes there are."""
        return self.whole.size(self.arrays.key(key), missing)

    def keys(self) -> list[str]:
        """The keys of the collection."""
        return self.whole.keys()


@dataclass(frozen=True, eq=False)
class MemberCall(Compression):
    """A call of `wb.compress` for one member: its archive is a part of the collection."""

    member: MemberPlace

    @contextmanager
    def place(self, token: str | None) -> Iterator[Place]:
        """The place of the member."""
        yield MemberPlace(self.member.whole, self.member.name, self.member.arrays, token or "")

    def kept(self, archive: Archive) -> Archive:
        """An archive in memory as the member."""
        for stored in archive.arrays.values():
            for key in stored.layout.file_keys():
                self.member.put(key, archive.store.read(key))
        keys = [key for stored in archive.arrays.values() for key in stored.layout.file_keys()]
        return Archive(self.member.finished(archive.documents, keys))


def description_of(archive: Archive, notes: bool = True) -> dict[str, Any]:
    """What the root of the collection says of a member, beside the documents of its arrays; with the notes on its bound."""
    shared = ("format", "machine")
    described = {name: value for name, value in archive.attributes.items() if name not in shared}
    if not described.get("metadata"):
        described.pop("metadata", None)
    if not notes:
        described["certificate"] = {name: said for name, said in described["certificate"].items() if name != "notes"}
    return described
