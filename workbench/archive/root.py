"""The root of an archive: its description and promises, the documents of all its arrays, and a copy of the whole.

One damaged byte in a document must not cost more than that document. The root carries the documents of the arrays, in the
form that Zarr calls consolidated metadata: arrays have no documents of their own. The same bytes stand a second time,
deflated, in the folder of the data, under a name that Zarr ignores. A reader takes the first intact root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.archive import document
from workbench.archive.content.registry import copy_keys
from workbench.archive.frame import HINT, Damaged
from workbench.archive.key import COPY, ROOT, SERIES
from workbench.archive.layout import ArrayLayout
from workbench.archive.second_copy import deflated, inflated
from workbench.archive.store import Store
from workbench.errors import WorkbenchError

CONSOLIDATED = "consolidated_metadata"
MOST_ARRAYS = 64


@dataclass(frozen=True)
class Description:
    """The contents of the documents of an archive.

    `documents` are their correct bytes by key. `damage` lists the documents found damaged while reading.
    """

    attributes: dict[str, Any]
    layouts: dict[str, ArrayLayout]
    documents: Mapping[str, bytes]
    damage: tuple[Damaged, ...] = ()

    def checked(self, store: Store) -> list[Damaged]:
        """Every damaged document."""
        return documents_differing(store, self.documents, self.damage)


def documents_differing(store: Store, documents: Mapping[str, bytes], known: Sequence[Damaged]) -> list[Damaged]:
    """Every document in a store that differs from these, and the damage that is known."""
    differing = {damaged.where: damaged for damaged in known}
    for key, expected in documents.items():
        if key not in differing and (reason := _difference(store, key, expected)):
            differing[key] = Damaged(key, reason)
    return list(differing.values())


def group_metadata(attributes: Mapping[str, Any], layouts: Sequence[ArrayLayout] = ()) -> dict[str, Any]:
    """The root document of an archive with these arrays.

    >>> group_metadata({"kind": "field"})["node_type"]
    'group'
    """
    arrays = {layout.name: layout.metadata() for layout in layouts}
    return document.sealed({
        "zarr_format": 3,
        "node_type": "group",
        "attributes": document.plain(attributes, "attributes"),
        CONSOLIDATED: {"kind": "inline", "must_understand": False, "metadata": arrays},
    })


def documents_of(attributes: Mapping[str, Any], layouts: Sequence[ArrayLayout]) -> dict[str, bytes]:
    """The documents of an archive by key: the copy of the root first, the root last."""
    data = document.to_bytes(group_metadata(attributes, layouts))
    names = {layout.name for layout in layouts}
    copies = [key for key in copy_keys() if key.split("/")[0] in names]
    own = {f"{layout.name}/{ROOT}": document.to_bytes(layout.metadata()) for layout in layouts if layout.bare}
    return {**{key: deflated(data) for key in copies[:1]}, **own, ROOT: data}


class IntactRoot(NamedTuple):
    """The first intact root of a store, where it is, and the damage of those before it."""

    root: dict[str, Any]
    key: str
    damage: tuple[Damaged, ...]


def read_root(store: Store, damaged: bool = False, known: IntactRoot | None = None) -> Description:
    """The description of an archive, from its first intact root, which may be known.

    When `damaged`, a missing root is replaced by its copy.

    >>> from workbench.archive.store import MemoryStore
    >>> import numpy as np
    >>> layout = ArrayLayout("density", (5, 8), (4, 4), np.dtype("float32"))
    >>> described = read_root(MemoryStore(documents_of({"kind": "field"}, [layout])))
    >>> described.attributes["kind"], described.layouts["density"] == layout
    ('field', True)
    """
    return _described(*(known or intact_root(store, damaged)))


def intact_root(store: Store, damaged: bool = False) -> IntactRoot:
    """The root, or the first of its copies that is intact; copies are looked for where they are needed."""
    damage: list[Damaged] = []
    first: WorkbenchError | None = None
    for key in _roots(store, damaged):
        try:
            root = document.unsealed(read_document(store, key), key)
        except WorkbenchError as error:
            first = first or error
            damage.append(Damaged(key, error.reason if isinstance(error, Damaged) else str(error)))
            continue
        return IntactRoot(root, key, tuple(damage))
    assert first is not None   # there is at least one candidate
    raise first


def _roots(store: Store, damaged: bool) -> Iterator[str]:
    """The keys of the root and of its copies."""
    missing = store.size(ROOT, missing=-1) < 0
    if not missing:
        yield ROOT
    copies = [key for key in copy_keys() if store.size(key, missing=0)]
    if missing and not (copies and damaged):
        hint = f"; a copy of it exists: {HINT}" if copies else ""
        if store.size(SERIES, missing=-1) >= 0:
            hint = "; it is a series: wb.Series(...) opens it, and `workbench decompress FOLDER OUT --step N` writes a step"
        raise WorkbenchError(f"{store.name} is not an archive: it has no {ROOT}{hint}")
    if missing:
        yield ROOT
    yield from copies


def read_document(store: Store, key: str) -> dict[str, Any]:
    """The JSON document at a key."""
    return document_of(store.read(key, most=document.MOST_BYTES), key)


def document_of(data: bytes, key: str) -> dict[str, Any]:
    """The JSON document in these bytes: plain or, under the key of a copy, deflated."""
    return document.from_bytes(inflated(data, key) if key.rsplit("/", 1)[-1] == COPY else data, key)


def _described(root: Mapping[str, Any], key: str, damage: tuple[Damaged, ...]) -> Description:
    form = {"zarr_format": 3, "node_type": "group", "attributes": root["attributes"]}
    match root:
        case {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {**arrays}}}:
            consolidated = {"kind": "inline", "must_understand": False, "metadata": arrays}
            if root == {**form, CONSOLIDATED: consolidated}:
                _require_few(len(arrays), key)
                layouts = {str(name): _layout(name, described, key) for name, described in arrays.items()}
                documents = documents_of(root["attributes"], list(layouts.values()))
                return Description(root["attributes"], layouts, documents, damage)
    raise WorkbenchError(f"{key} must describe a group of Zarr format 3 with its arrays, and nothing else")


def _require_few(count: int, where: str) -> None:
    """Every array is compared with all parts of the archive."""
    if count > MOST_ARRAYS:
        raise WorkbenchError(f"{where} must describe at most {MOST_ARRAYS} arrays; it describes {count:,}")


def _layout(name: Any, described: Any, key: str) -> ArrayLayout:
    if not isinstance(described, Mapping):
        raise WorkbenchError(f"{key} must describe each array by a document; got {described!r:.80}")
    return ArrayLayout.from_metadata(name, described, key)


def _difference(store: Store, key: str, expected: bytes) -> str | None:
    """How a document differs from what the root says it should be; spaces and the order of keys do not count."""
    try:
        found = read_document(store, key)
    except Damaged as error:
        return error.reason
    except WorkbenchError as error:
        return str(error)
    if found == document_of(expected, key):
        return None
    return "it is not the document that was written with this archive"
