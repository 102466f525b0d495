"""The root of a collection: what is said of each member, and the documents of all their arrays, as one Zarr group.

The attributes of the dataset are those of the group, so that other programs show them; ours are under one name beside them.
As the arrays of an archive have no documents of their own, so have the members none: a collection is opened by reading one
document, however many members it has, and each of these is looked at when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from workbench.archive import document
from workbench.archive.archive import Archive
from workbench.archive.collection.dataset import MOST_MEMBERS
from workbench.archive.collection.member import MemberStore, description_of
from workbench.archive.collection.names import groups_of, has_own_key, require_name, require_no_group
from workbench.archive.content.consistency import FORMAT, reader_of
from workbench.archive.frame import Damaged
from workbench.archive.key import COPY_OF_COLLECTION, ROOT, is_key
from workbench.archive.layout import CONFIGURATION, ArrayLayout
from workbench.archive.root import CONSOLIDATED, IntactRoot, documents_of, intact_root
from workbench.archive.second_copy import deflated
from workbench.archive.store import Store
from workbench.errors import WorkbenchError

OURS = "lossbench:collection"   # the attribute of the group that says what belongs to which member
UNNAMED = re.compile(r"axis_\d")
MOST_ARRAYS = 4 * MOST_MEMBERS


@dataclass(frozen=True)
class CollectionRoot:
    """What the root of a collection says; the members are looked at one by one."""

    root: Mapping[str, Any]
    damage: tuple[Damaged, ...] = ()

    @classmethod
    def read(cls, store: Store, damaged: bool = False, known: IntactRoot | None = None) -> Self:
        """The first intact root in a store, which may be known."""
        root, key, damage = known or intact_root(store, damaged)
        found = cls(root, damage)
        found._require_plain(f"{key} of {store.name}")
        return found

    @classmethod
    def of(cls, members: Mapping[str, Archive], groups: Mapping[str, Mapping[str, Any]], notes: bool = True) -> Self:
        """The root of a collection of these members, which are in their places; with the notes on their bounds."""
        arrays: dict[str, Any] = {}
        described = {}
        for name, archive in members.items():
            store = archive.store
            assert isinstance(store, MemberStore)
            for array, stored in archive.arrays.items():
                key = store.stored[array]
                arrays[key] = with_own_axes(stored.layout.metadata(), key.rpartition("/")[2])
                if stored.layout.bare and array == archive.content.data:
                    arrays[key]["attributes"] = {**arrays[key]["attributes"], **_coordinates(name, members, groups)}
            described[name] = {"arrays": dict(store.stored), **description_of(archive, notes)}
        shown = {name: dict(group.get("attributes", {})) for name, group in groups.items() if has_own_key(name)}
        about = {
            name: {key: entry for key, entry in group.items() if key != "attributes" or name not in shown}
            for name, group in groups.items()
        }
        first = next(iter(members.values()))
        ours = {
            "format": FORMAT, "machine": first.attributes.get("machine"), "members": described,
            "groups": about,
        }
        if OURS in shown.get("", {}):
            raise WorkbenchError(f"{OURS} is the collection's own attribute: rename that of the dataset")
        return cls(_group({**shown.get("", {}), OURS: ours}, _with_groups(arrays, shown)))

    @property
    def about(self) -> Mapping[str, Any]:
        """What is said of members and groups."""
        ours: Mapping[str, Any] = self.root["attributes"][OURS]
        return ours

    @property
    def members(self) -> Mapping[str, Mapping[str, Any]]:
        """What is said of each member."""
        members: Mapping[str, Mapping[str, Any]] = self.about["members"]
        return members

    @property
    def groups(self) -> dict[str, Mapping[str, Any]]:
        """What is known of each group, by its name."""
        whole = {name: value for name, value in self.root["attributes"].items() if name != OURS}
        named = self.root[CONSOLIDATED]["metadata"]
        known: dict[str, Mapping[str, Any]] = {}
        for name, group in {"": {}, **self.about["groups"]}.items():
            shown = whole if not name else named.get(name, {}).get("attributes", {})
            known[name] = {**group, **({"attributes": shown} if shown else {})}
        for name in [group for member in self.members for group in groups_of(member)]:
            known.setdefault(name, {})
        return known

    @property
    def documents(self) -> dict[str, bytes]:
        """The correct bytes of the documents, by key."""
        data, known = document.to_bytes(document.sealed(dict(self.root))), self.root[CONSOLIDATED]["metadata"]
        portable = any(CONFIGURATION in one.get("attributes", {}) for one in known.values())
        own = {f"{key}/{ROOT}": document.to_bytes(one) for key, one in known.items()} if portable else {}
        return {COPY_OF_COLLECTION: deflated(data), **own, ROOT: data}

    def member(self, store: Store, name: str) -> MemberStore:
        """The parts of a member, with the documents that it would have alone."""
        described = dict(self.members[name])
        stored, metadata = described.pop("arrays"), described.pop("metadata", {})
        arrays = self.root[CONSOLIDATED]["metadata"]
        where = f"{ROOT} of {store.name}"
        layouts = [ArrayLayout.from_metadata(array, arrays[key], where) for array, key in stored.items()]
        shared = {"machine": self.about.get("machine"), "metadata": metadata}
        attributes = {"format": self.about["format"], **described, **shared}
        return MemberStore(store, f"{name} in {store.name}", stored, documents_of(attributes, layouts))

    def file_keys(self) -> list[str]:
        """The keys of all chunks."""
        keys = []
        arrays = self.root[CONSOLIDATED]["metadata"]
        for described in self.members.values():
            for array, key in described["arrays"].items():
                layout = ArrayLayout.from_metadata(array, arrays[key])
                keys += [f"{key}{file.removeprefix(array)}" for file in layout.file_keys()]
        return keys

    def _require_plain(self, where: str) -> None:
        """Refuse a root that is none of a collection, or in which an array belongs to no member, or to two."""
        match self.root:
            case {
                "zarr_format": 3, "node_type": "group", "attributes": {**attributes},
                "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {**arrays}},
            } if len(self.root) == 4:
                pass
            case _:
                raise WorkbenchError(f"{where} must describe a group of Zarr format 3 with its arrays, and nothing else")
        match attributes.get(OURS):
            case {"format": int(known), "members": {**members}, "groups": {**groups}} if known == FORMAT and members:
                pass
            case _:
                ours = attributes.get(OURS)
                stated = ours.get("format") if isinstance(ours, Mapping) else None
                raise WorkbenchError(
                    f"{where} must describe a collection of format {FORMAT}; got {stated!r:.40}: {reader_of(stated)}"
                )
        if len(arrays) > MOST_ARRAYS or len(members) > MOST_MEMBERS:
            raise WorkbenchError(f"{where} must describe at most {MOST_MEMBERS:,} members; it describes {len(members):,}")
        taken: set[str] = set()
        for name, described in members.items():
            require_name(name)
            stored = described.get("arrays") if isinstance(described, Mapping) else None
            if not isinstance(stored, Mapping) or not stored:
                raise WorkbenchError(f"{where} must say where the arrays of {name!r} are")
            for array, key in stored.items():
                if not (isinstance(key, str) and is_key(key) and key in arrays and key not in taken):
                    raise WorkbenchError(f"{where} must say where {array!r} of {name!r} is; got {key!r:.80}")
                taken.add(key)
        require_no_group(list(map(str, members)), map(str, groups))
        if not all(isinstance(group, Mapping) for group in groups.values()):
            raise WorkbenchError(f"{where} must describe each group by a mapping")


def is_collection(root: Mapping[str, Any]) -> bool:
    """Whether this is the root of a collection, and not of one archive."""
    attributes = root.get("attributes")
    return isinstance(attributes, Mapping) and OURS in attributes


def _group(attributes: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "zarr_format": 3, "node_type": "group", "attributes": document.plain(attributes, "attributes"),
        CONSOLIDATED: {"kind": "inline", "must_understand": False, "metadata": document.plain(arrays, "arrays")},
    }


def _coordinates(name: str, members: Mapping[str, Archive], groups: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The attribute by which CF names the coordinates of a member that are not named as an axis."""
    group, _, own = name.rpartition("/")
    begin, axes = f"{group}/" if group else "", set(_axes(members[name]))
    known = [one for one in groups.get(group, {}).get("coordinates", ()) if f"{begin}{one}" in members and " " not in one]
    beside = [one for one in known if one not in axes and set(_axes(members[f"{begin}{one}"])) <= axes]
    return {} if own in known or not beside else {"coordinates": " ".join(beside)}


def _axes(archive: Archive) -> tuple[str, ...]:
    """The axes of an array; none of one that is a single number."""
    return () if archive.attributes.get("shape") == [] else archive.data.layout.dimension_names or ()


def with_own_axes(array: dict[str, Any], name: str) -> dict[str, Any]:
    """The document of an array whose axes without names do not bear those of another array.

    >>> with_own_axes({"dimension_names": ["axis_0", "lat"]}, "T")
    {'dimension_names': ['T_axis_0', 'lat']}
    """
    names = [f"{name[:48]}_{axis}" if UNNAMED.fullmatch(axis) else axis for axis in array.get("dimension_names") or ()]
    return {**array, "dimension_names": names} if names else array


def _with_groups(arrays: Mapping[str, Any], shown: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The documents of all arrays, and of the groups around them."""
    around = (group for key in (*arrays, *filter(None, shown)) for group in groups_of(key))
    names = dict.fromkeys([*around, *filter(None, shown)])
    groups = {
        name: {"zarr_format": 3, "node_type": "group", "attributes": dict(shown.get(name, {}))} for name in names
    }
    return {**groups, **arrays}


