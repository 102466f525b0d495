"""A collection: one archive of many named members, as `wb.compress` returns it for a dataset.

Each member is an archive like any other, with its own bound and certificate; it is looked at when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Collection as Names
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.archive.archive import Archive
from workbench.archive.collection.dataset import LEFT_OUT, Dataset, texts_of
from workbench.archive.collection.description import CollectionRoot
from workbench.archive.collection.names import require_known
from workbench.archive.collection.reports import Reports, Row, has_errors, table
from workbench.archive.collection.sources import opened_dataset
from workbench.archive.earlier import EarlierSteps
from workbench.archive.frame import Damaged
from workbench.archive.members import nbytes_in_zip
from workbench.archive.root import IntactRoot, documents_differing
from workbench.archive.store import Store, open_store
from workbench.archive.trust import DEFAULT, Trust
from workbench.archive.writing import in_order, write
from workbench.charts.table import html_table
from workbench.data.summary_html import size, summary
from workbench.errors import GuaranteeBroken, WorkbenchError, briefly
from workbench.progress import Progress
from workbench.run.submission import submittable


class Collection(Mapping[str, Archive]):
    """Archives by the names of their members: `archive["T"]`, or of those in groups, `archive["ocean/T"]`.

    >>> import numpy as np, workbench as wb
    >>> data = {"T": np.linspace(0, 1, 1000).reshape(10, 100), "station": np.array(["A", "B"])}
    >>> archive = wb.compress(data, {"T": wb.Absolute(1e-3)})
    >>> archive["T"].certificate["values"].bound, archive["station"].decompress().values.tolist()
    (Absolute(eb=0.001), ['A', 'B'])
    >>> archive.verify(data).passed
    True
    """

    kind = "collection"

    def __init__(
        self, store: Store, trust: Trust = DEFAULT, damaged: bool = False, root: IntactRoot | None = None,
        steps: Callable[[str], EarlierSteps] | None = None,
    ) -> None:
        self.store, self._trust, self._damaged, self._steps = store, trust, damaged, steps
        self._root = CollectionRoot.read(store, damaged, root)
        self._opened: dict[str, Archive] = {}

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        codecs: Names[str] | None = None,
        most_bytes: int | None = None,
        isolate: bool = True,
        patience: float | None = None,
        damaged: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Collection:
        """The collection at a path; the options are those of `wb.Archive.open`, and `wb.open` opens all known formats."""
        return cls(open_store(path, damaged, storage_options), Trust(codecs, most_bytes, isolate, patience), damaged)

    def __getitem__(self, name: str) -> Archive:
        if name not in self._opened:
            require_known(name, self._root.members, "a member")
            try:
                step = None if self._steps is None else self._steps(name)
                self._opened[name] = Archive(self._root.member(self.store, name), self._trust, self._damaged, step=step)
            except Damaged:
                raise
            except WorkbenchError as error:
                raise WorkbenchError(f"{name!r} in {self.store.name}: {error}") from None
            self._opened[name].beside = Beside(self, name)
        return self._opened[name]

    def coordinates_beside(self, name: str) -> dict[str, str]:
        """The coordinates of the group of a member, by their own names: their whole names."""
        group = name.rpartition("/")[0]
        given = texts_of(self.groups.get(group, {}).get("coordinates"))
        whole = {own: f"{group}/{own}" if group else own for own in given}
        return {own: other for own, other in whole.items() if other in self._root.members and other != name}

    def __iter__(self) -> Iterator[str]:
        return iter(self._root.members)

    def __len__(self) -> int:
        return len(self._root.members)

    @property
    def groups(self) -> dict[str, Mapping[str, Any]]:
        """What is known of each group of members: attributes, and which members are coordinates; "" is the whole."""
        return self._root.groups

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the dataset."""
        return dict(self.groups[""].get("attributes", {}))

    # Size.

    @property
    def nbytes(self) -> int:
        """The size of all parts together, as in a zip file: in a folder, documents are not deflated, and take more."""
        return nbytes_in_zip(self._root.documents) + sum(row.nbytes for row in self.rows())

    @property
    def original_nbytes(self) -> int:
        """The size of the original numbers in their own types; of fields, of the valid values only."""
        return sum(row.original_nbytes for row in self.rows())

    @property
    def ratio(self) -> float:
        """The compression ratio, `original_nbytes` divided by `nbytes`."""
        return self.original_nbytes / self.nbytes

    def rows(self) -> list[Row]:
        """What each member costs: its kind, shape, type, bound, bytes and ratio."""
        return [Row.of(name, self[name]) for name in self]

    def to_dataframe(self) -> Any:
        """What each member costs, as a DataFrame of pandas."""
        import pandas

        return pandas.DataFrame([row.to_dict() for row in self.rows()]).set_index("name")

    # Contents.

    def decompress(self) -> Dataset:
        """All members, decoded."""
        members = {name: self.decompress_member(name) for name in self}
        return Dataset(members, self.groups, (name for name in self if has_errors(self[name])))

    @property
    def notes(self) -> list[str]:
        """What of its files the dataset lacks, and what was unusual about the bounds, with the name of the member."""
        left_out = [f"left out: {one}" for one in texts_of(self.groups[""].get(LEFT_OUT))]
        return left_out + [f"{name}: {note}" for name in self for note in self[name].certificate.notes]

    def decompress_member(self, name: str) -> Any:
        """A member, decoded; damage is that of its key in the collection."""
        with self.naming_damage(name):
            return self[name].decompress()

    def to_xarray(self) -> Any:
        """All members as a Dataset of xarray, decoded; `xarray.open_dataset` of the file decodes when values are used."""
        return self.decompress().to_xarray()

    def read(self, region: Mapping[str, Any]) -> Dataset:
        """The members that have one of these dimensions, in this region: a slice or a pair (start, stop) for each.

        The other dimensions are read whole, and so are members that have only these, such as coordinates. Only the chunks
        that hold the region are decoded.

        >>> import numpy as np, workbench as wb
        >>> field = wb.Field(np.zeros((4, 5)), metadata={"dimensions": ["time", "x"]})
        >>> archive = wb.compress({"T": field}, wb.Absolute(0.1))
        >>> archive.read({"time": (1, 3)})["T"]
        Field(2 x 5, float64)
        """
        wanted = self.inside(region)
        members = {name: self._read(name, region) for name in wanted}
        return Dataset(members, self.groups, (name for name in wanted if has_errors(self[name])))

    def inside(self, region: Mapping[str, Any]) -> list[str]:
        """The names of the members in a region: those that have one of its dimensions, and others along their axes."""
        if not isinstance(region, Mapping) or not region:
            raise WorkbenchError(f'region must be as {{"time": (0, 10)}}; got {briefly(region)}')
        axes = {name: self.dimensions(name) for name in self}
        for dimension in region:
            require_known(dimension, dict.fromkeys(axis for names in axes.values() for axis in names), "a dimension")
        around = {axis for names in axes.values() if set(names) & set(region) for axis in names}
        return [name for name, names in axes.items() if set(names) <= around and self[name].kind != "particles"]

    def dimensions(self, name: str) -> tuple[str, ...]:
        """The names of the axes of a field, or of an array; particles have none."""
        archive = self[name]
        given = archive.attributes.get("metadata", {}).get("dimensions")
        return tuple(given) if isinstance(given, list) and archive.kind != "particles" else ()

    def _read(self, name: str, region: Mapping[str, Any]) -> Any:
        with self.naming_damage(name):
            return self[name].read([region.get(axis) for axis in self.dimensions(name)])

    @contextmanager
    def naming_damage(self, name: str) -> Iterator[None]:
        """Damage that is seen is that of a key in the collection, so that it names the member."""
        try:
            yield
        except Damaged as damage:
            raise self._here(name, damage) from None

    # Writing.

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write one file (`x.zip`) or a directory (`x.zarr` or `x`), completely or not at all."""
        return write(path, self._parts(), overwrite)

    def upload(self, address: str, overwrite: bool = False, storage_options: Mapping[str, Any] | None = None) -> str:
        """Write one file to an object store, such as `s3://bucket/x.zip`, completely or not at all; returns its address."""
        from workbench.archive.remote.sending import upload

        return upload(address, self._parts(), overwrite, storage_options)

    def _parts(self) -> Iterator[tuple[str, bytes]]:
        """All parts by their keys, in the order of a zip file."""
        documents = self._root.documents
        keys = in_order([*documents, *self._root.file_keys()])
        return ((key, documents[key] if key in documents else self.store.read(key)) for key in keys)

    # Checking.

    def damage(self) -> list[Damaged]:
        """Every damaged document and chunk, each with the reason; empty if all is intact."""
        found = self.damaged_documents()
        for name in self:
            found += self.damage_of(name)
        return found

    def damage_of(self, name: str) -> list[Damaged]:
        """Every damaged chunk of a member, under its key in the collection."""
        return [self._here(name, one) for one in self[name].damage()]

    def damaged_documents(self) -> list[Damaged]:
        """Every document that is damaged or missing, with the reason."""
        return documents_differing(self.store, self._root.documents, self._root.damage)

    def salvage(self) -> tuple[Dataset, list[Damaged]]:
        """The undamaged values, and the damage; members of which nothing is left are not among them."""
        damage, members = self.damaged_documents(), {}
        for name in self:
            data, lost = self.salvage_member(name)
            damage += lost
            if data is not None:
                members[name] = data
        if not members:
            raise WorkbenchError(f"nothing of {self.store.name} can be read: {len(damage)} parts are damaged")
        return Dataset(members, self.groups, (name for name in members if has_errors(self[name]))), damage

    def salvage_member(self, name: str) -> tuple[Any, list[Damaged]]:
        """The undamaged values of a member, None if nothing of it is left; and its damage."""
        try:
            data, damage = self[name].salvage()
        except GuaranteeBroken:   # nothing of it can be read
            data, damage = None, self[name].damage()
        return data, [self._here(name, one) for one in damage]

    @submittable
    def verify(
        self,
        original: Any = None,
        *,
        client: Any = None,
        parts: int | None = None,
        scratch: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Reports:
        """Decode every member and check it, against its checksums and, when given, against the original or its file.

        Raises `wb.GuaranteeBroken` with the reason and the name of each member whose promise does not hold. The arguments
        are those of `Archive.verify`.
        """
        options = {"client": client, "parts": parts, "scratch": scratch}
        if original is None:
            return self._verified(None, progress, options)
        with opened_dataset(original) as dataset:
            return self._verified(dataset, progress, options)

    def _verified(self, given: Dataset | None, progress: Progress | None, options: Mapping[str, Any]) -> Reports:
        """The report of each member, which may be compared with that of the original."""
        if given is not None and (strangers := sorted(set(given) ^ set(self))):
            raise WorkbenchError(
                f"the original must have the members of the archive; only one of them has {strangers[0]!r}"
            )
        reports, broken = {}, []
        for number, name in enumerate(self):
            within = share_of(progress, name, number, len(self))
            member = None if given is None else given[name]
            try:
                reports[name] = self[name].verify(member, progress=within, **options)
            except GuaranteeBroken as error:
                broken.append(f"{name!r}: {error}")
            except WorkbenchError as error:
                raise WorkbenchError(f"{name!r}: {error}") from error
        if damaged := self.damaged_documents():
            broken.append(str(damaged[0]))
        if broken:
            raise GuaranteeBroken(f"{len(broken)} of {len(self)} members do not hold: " + "; ".join(broken))
        return Reports(reports)

    def _here(self, name: str, damage: Damaged) -> Damaged:
        """The damage of a member under its key in the collection."""
        array, slash, rest = damage.where.partition("/")
        stored = self._root.members[name]["arrays"].get(array, array)
        return Damaged(f"{stored}{slash}{rest}", damage.reason)

    def within(self, name: str, damage: Damaged) -> Damaged:
        """The damage of a member under its key in an archive of its own.

        >>> import workbench as wb
        >>> archive = wb.compress({"ocean": {"T": [1.0, 2.0]}}, wb.Absolute(0.1))
        >>> archive.within("ocean/T", Damaged("ocean/T/c/0", "it is cut")).where
        'values/c/0'
        """
        for array, stored in self._root.members[name]["arrays"].items():
            if damage.where == stored or damage.where.startswith(f"{stored}/"):
                return Damaged(array + damage.where.removeprefix(stored), damage.reason)
        return damage

    def __repr__(self) -> str:
        rows = self.rows()
        return "\n".join([self._in_one_line(), table(rows), *(f"note: {note}" for note in self.notes)])

    def _in_one_line(self) -> str:
        ratio = self.ratio
        change = f"{ratio:.3g}x smaller" if ratio >= 1 else f"{1 / ratio:.3g}x larger" if ratio else "no valid value"
        return f"Collection of {len(self)} members, {self.nbytes:,} bytes, {change}"

    def _repr_html_(self) -> str:
        rows = [row.in_words() for row in self.rows()]
        below = html_table(list(rows[0]), [list(row.values()) for row in rows], texts=range(len(rows[0])))
        original = f"{size(self.original_nbytes)}: {self.ratio:.4g} times as large"
        return summary(self._in_one_line(), {"size": size(self.nbytes), "original": original}, self.attributes, below)


class Beside(Mapping[str, Archive]):
    """The coordinates beside a member of a collection, by their own names; opened when they are asked for."""

    def __init__(self, collection: Collection, name: str) -> None:
        self._collection, self._name = collection, name

    def __getitem__(self, name: str) -> Archive:
        return self._collection[self._collection.coordinates_beside(self._name)[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._collection.coordinates_beside(self._name))

    def __len__(self) -> int:
        return len(self._collection.coordinates_beside(self._name))


def share_of(progress: Progress | None, name: str, number: int, count: int) -> Progress | None:
    """The progress of one member as that of all."""
    if progress is None:
        return None
    return lambda share, text: progress((number + (share or 0.0)) / count, f"{name}: {text}")


