"""The root of an archive: its description and promises, the documents of all its arrays, and a copy of the whole.

One damaged byte in a document must not cost more than that document. So the root carries the documents of the arrays, in
the form that Zarr calls consolidated metadata. The same bytes stand a second time, deflated, in the folder of the data,
under a name that Zarr ignores. A reader takes the first intact root. The arrays' own documents are for plain Zarr;
they are compared with the root when the archive is checked.

Archives of format 1 have one root without the documents, which names the arrays with the checksum of each document.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.archive import document
from workbench.archive.frame import HINT, Damaged
from workbench.archive.key import COPY, ROOT
from workbench.archive.layout import ArrayLayout
from workbench.archive.store import Store
from workbench.errors import GuaranteeBroken, WorkbenchError

COPY_AT = "lossbench:copy"          # the attribute that holds its key
CONSOLIDATED = "consolidated_metadata"
ARRAYS = "arrays"                   # in format 1, the attribute that names the arrays


@dataclass(frozen=True)
class Description:
    """The contents of the documents of an archive.

    `documents` are their correct bytes by key; those of format 1 have no copies and are not included. `damage` lists the
    documents found damaged while reading. `consolidated` states whether the root carries the documents of the arrays.
    """

    attributes: dict[str, Any]
    layouts: dict[str, ArrayLayout]
    consolidated: bool
    documents: Mapping[str, bytes]
    damage: tuple[Damaged, ...] = ()

    def checked(self, store: Store) -> list[Damaged]:
        """Every damaged document."""
        found = {damaged.where: damaged for damaged in self.damage}
        for key, expected in self.documents.items():
            if key not in found and (reason := _difference(store, key, expected)):
                found[key] = Damaged(key, reason)
        return list(found.values())


def group_metadata(attributes: Mapping[str, Any], layouts: Sequence[ArrayLayout] = ()) -> dict[str, Any]:
    """The root document of an archive with these arrays.

    >>> group_metadata({"kind": "field"})["node_type"]
    'group'
    """
    copy = {COPY_AT: f"{layouts[0].name}/{COPY}"} if layouts else {}
    arrays = {layout.name: layout.metadata() for layout in layouts}
    return document.sealed({
        "zarr_format": 3,
        "node_type": "group",
        "attributes": document.plain({**attributes, **copy}, "attributes"),
        CONSOLIDATED: {"kind": "inline", "must_understand": False, "metadata": arrays},
    })


def documents_of(attributes: Mapping[str, Any], layouts: Sequence[ArrayLayout]) -> dict[str, bytes]:
    """The documents of an archive by key: the copy of the root first, the root last."""
    root = group_metadata(attributes, layouts)
    data = document.to_bytes(root)
    arrays = {f"{layout.name}/{ROOT}": document.to_bytes(layout.metadata()) for layout in layouts}
    copy = {root["attributes"][COPY_AT]: zlib.compress(data, 9)} if layouts else {}
    return {**copy, **arrays, ROOT: data}


def read_root(store: Store, damaged: bool = False) -> Description:
    """The description of an archive, from its first intact root.

    When `damaged`, a missing root is replaced by its copy, and arrays of format 1 whose documents are damaged are left out.

    >>> from workbench.archive.store import MemoryStore
    >>> import numpy as np
    >>> layout = ArrayLayout("density", (5, 8), (4, 4), np.dtype("float32"))
    >>> described = read_root(MemoryStore(documents_of({"kind": "field"}, [layout])))
    >>> described.attributes["kind"], described.layouts["density"] == layout
    ('field', True)
    """
    keys = store.keys()
    copies = [key for key in keys if key.count("/") == 1 and key.endswith(f"/{COPY}")]
    if ROOT not in keys and not (copies and damaged):
        hint = f"; a copy of it exists: {HINT}" if copies else ""
        raise WorkbenchError(f"{store.name} is not an archive: it has no {ROOT}{hint}")
    damage: list[Damaged] = []
    first: WorkbenchError | None = None
    for key in [ROOT, *copies]:
        try:
            root = document.unsealed(read_document(store, key), key)
        except WorkbenchError as error:
            first = first or error
            damage.append(Damaged(key, error.reason if isinstance(error, Damaged) else str(error)))
            continue
        return _described(store, root, key, tuple(damage), damaged)
    assert first is not None   # there is at least one candidate
    raise first


def read_document(store: Store, key: str) -> dict[str, Any]:
    """The JSON document at a key."""
    if (size := store.size(key)) > document.MOST_BYTES:
        raise WorkbenchError(f"{key} must have at most {document.MOST_BYTES:,} bytes; it has {size:,}")
    return document_of(store.read(key), key)


def document_of(data: bytes, key: str) -> dict[str, Any]:
    """The JSON document in these bytes: plain or, under the key of a copy, deflated."""
    if key.rsplit("/", 1)[-1] != COPY:
        return document.from_bytes(data, key)
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, document.MOST_BYTES + 1)
    except zlib.error as error:
        raise WorkbenchError(f"{key} cannot be inflated ({error}): copy or download it again") from None
    if not inflater.eof or inflater.unused_data:
        raise WorkbenchError(f"{key} must be one deflated document of at most {document.MOST_BYTES:,} bytes: it is damaged")
    return document.from_bytes(inflated, key)


def _described(
    store: Store, root: Mapping[str, Any], key: str, damage: tuple[Damaged, ...], damaged: bool
) -> Description:
    form = {"zarr_format": 3, "node_type": "group", "attributes": root["attributes"]}
    if root == form:
        layouts, lost = _separate(store, damaged)
        return Description(root["attributes"], layouts, False, {}, (*damage, *lost))
    match root:
        case {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {**arrays}}}:
            consolidated = {"kind": "inline", "must_understand": False, "metadata": arrays}
            if root == {**form, CONSOLIDATED: consolidated}:
                layouts = {str(name): _layout(name, described, key) for name, described in arrays.items()}
                return _consolidated(root["attributes"], layouts, damage)
    raise WorkbenchError(f"{key} must describe a group of Zarr format 3 with its arrays, and nothing else")


def _consolidated(
    attributes: dict[str, Any], layouts: dict[str, ArrayLayout], damage: tuple[Damaged, ...]
) -> Description:
    """The description of an archive whose root carries its arrays."""
    copy = attributes.pop(COPY_AT, None)
    ordered = list(layouts.values())
    if layouts and (not isinstance(copy, str) or copy not in [f"{name}/{COPY}" for name in layouts]):
        raise WorkbenchError(f"{ROOT} must say where its copy is, in the folder of an array; got {copy!r:.80}")
    first = [layout for layout in ordered if f"{layout.name}/{COPY}" == copy]
    ordered = first + [layout for layout in ordered if layout not in first]
    return Description(attributes, layouts, True, documents_of(attributes, ordered), damage)


def _layout(name: Any, described: Any, key: str) -> ArrayLayout:
    if not isinstance(described, Mapping):
        raise WorkbenchError(f"{key} must describe each array by a document; got {described!r:.80}")
    return ArrayLayout.from_metadata(name, described)


def _separate(store: Store, damaged: bool) -> tuple[dict[str, ArrayLayout], list[Damaged]]:
    """The arrays of an archive of format 1; when `damaged`, those with intact documents, and the damage of the others."""
    keys = [key for key in store.keys() if key.count("/") == 1 and key.endswith(f"/{ROOT}")]   # noqa: SIM118
    layouts, lost = {}, []
    for key in keys:
        name = key.split("/")[0]
        try:
            layouts[name] = ArrayLayout.from_metadata(name, read_document(store, key))
        except WorkbenchError as error:
            if not damaged:
                raise unreadable(error) from error
            lost.append(Damaged(key, str(error)))
    return layouts, lost


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


def unreadable(error: WorkbenchError) -> GuaranteeBroken:
    """The error for an archive that cannot be opened as it is, with advice on getting the undamaged part."""
    return GuaranteeBroken(f"{error}; {HINT}")
