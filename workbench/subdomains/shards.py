"""Files of groups: what subdomains send to the owners of groups that several of them know, and shards of a catalogue."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Literal, Protocol

import numpy as np

from workbench.clusters import Catalogue
from workbench.clusters.moments import Moments
from workbench.errors import WorkbenchError
from workbench.run.pieces import pieces_of, write_pieces
from workbench.run.scratch_files import complete, save_together

MORE_ROOM = "choose a folder with enough room that all workers may write to"


@dataclass(frozen=True)
class Sent:
    """What one subdomain sends to all owners, in one file: a piece for each."""

    folder: Path
    part: int

    def write(self, groups: Moments, owners: int) -> None:
        """Write groups; the owner of each follows from its label."""
        owner = groups.label % owners
        order = np.argsort(owner, kind="stable")
        rows = np.empty(len(order), _row(groups.mean.shape[1], groups.velocity.shape[1]))
        for name in rows.dtype.names or ():
            rows[name] = getattr(groups, name)[order]
        ends = np.searchsorted(owner[order], np.arange(owners + 1))
        write_pieces(self._file, owners, ([rows[begin:end]] for begin, end in itertools.pairwise(ends)))

    def read(self, owner: int, axes: tuple[int, int]) -> Moments:
        """The groups for one of the owners; `axes` are the numbers of coordinates of a place and of a velocity."""
        row = _row(*axes)
        with pieces_of(self._file) as file:
            rows = file.read(owner, (row.itemsize,), range(1))[0].view(row)
        return Moments(*(np.ascontiguousarray(rows[field.name]) for field in fields(Moments)))

    @property
    def _file(self) -> Path:
        return self.folder / f"subdomain-{self.part}"


def _row(axes: int, moving: int) -> np.dtype:
    """One group in a file."""
    shapes = {"label": "<i8", "members": "<i8", "mean": ("<f8", (axes,)), "velocity": ("<f8", (moving,))}
    return np.dtype([(field.name, shapes.get(field.name, "<f8")) for field in fields(Moments)])


class Format(Protocol):
    """A format of shards."""

    suffix: str

    def write(self, path: Path, catalogue: Catalogue, attributes: Mapping[str, Any]) -> None:
        """Write one shard; it has its name once it is complete."""


class Numpy:
    """Arrays of one catalogue in a scratch folder, from where the client reads them."""

    suffix = ".npz"

    def write(self, path: Path, catalogue: Catalogue, attributes: Mapping[str, Any]) -> None:
        """Write one shard."""
        columns = {field.name: getattr(catalogue, field.name) for field in fields(catalogue)}
        save_together(path, {name: column for name, column in columns.items() if column is not None})


class Parquet:
    """A table for pandas, Dask, Spark and others, by pyarrow."""

    suffix = ".parquet"

    def __init__(self) -> None:
        _pyarrow()   # before any work

    def write(self, path: Path, catalogue: Catalogue, attributes: Mapping[str, Any]) -> None:
        """Write one shard."""
        pyarrow = _pyarrow()
        table = pyarrow.table(catalogue.columns(), metadata={name: repr(value) for name, value in attributes.items()})
        with complete(path, MORE_ROOM) as file:
            pyarrow.parquet.write_table(table, file)


class Zarr:
    """A group with an array for each column."""

    suffix = ".zarr"

    def __init__(self) -> None:
        _zarr()

    def write(self, path: Path, catalogue: Catalogue, attributes: Mapping[str, Any]) -> None:
        """Write one shard; one that is there is complete, and the same."""
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            group = _zarr().create_group(store=Path(folder) / "group", attributes=dict(attributes))
            for name, column in catalogue.columns().items():
                array = group.create_array(name, shape=column.shape, dtype=column.dtype, chunks=(max(len(column), 1),))
                array[:] = column
            try:
                (Path(folder) / "group").replace(path)
            except OSError:
                if not path.is_dir():
                    raise


FormatName = Literal["parquet", "zarr"]
FORMATS: dict[FormatName, Callable[[], Format]] = {"parquet": Parquet, "zarr": Zarr}


@dataclass(frozen=True)
class Shards:
    """Shards of a catalogue in a folder; what they state about all groups are `attributes`."""

    folder: Path
    format: Format
    attributes: Mapping[str, Any]

    def write(self, number: int, catalogue: Catalogue) -> None:
        """Write one shard."""
        self.format.write(self.file(number), catalogue, self.attributes)

    def file(self, number: int) -> Path:
        """The place of a shard."""
        return self.folder / f"part-{number:06}{self.format.suffix}"


def _pyarrow() -> ModuleType:
    try:
        import pyarrow.parquet
    except ImportError:
        raise WorkbenchError("Parquet needs pyarrow, which is not installed: pip install pyarrow") from None
    return pyarrow


def _zarr() -> ModuleType:
    try:
        import zarr
    except ImportError:
        raise WorkbenchError("Zarr needs zarr, which is not installed: pip install 'lossbench[io]'") from None
    return zarr
