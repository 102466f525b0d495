"""Particles from HDF5 files and Zarr groups of any layout: the caller names the data sets of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.data.chunked import even_sizes, holds_positions
from workbench.data.columns import can_be_column, require_names
from workbench.data.particles import Particles
from workbench.data.readers import hdf5, zarr_files
from workbench.data.readers.format import Format
from workbench.data.readers.further import ALL, Wanted, names_of
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, checked_box
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source
from workbench.data.readers.tables import (
    IDS,
    MASSES,
    OWN,
    POSITIONS,
    VELOCITIES,
    Hdf5Table,
    Table,
    arrays_in,
    dataset_at,
    require_positions,
    require_rows,
    row_of,
    side_by_side,
)
from workbench.errors import WorkbenchError

Names = str | Sequence[str]   # a data set, or one for each axis
Columns = Mapping[str, Names] | Wanted


@dataclass(frozen=True, kw_only=True)
class ZarrTable(Table):
    """Columns in Zarr arrays: one for each column, or one for each axis; the name "" is the store itself, an array."""

    sets: Mapping[str, tuple[str, ...]]
    unit: int   # rows of a chunk, or of a shard

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the store, without positions."""
        return tuple(name for name in self.sets if name != POSITIONS)

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`."""
        with zarr_files.opened(Source.at(self.path, self.limits)) as (_, node):
            return side_by_side([np.asarray(_array(node, name, self.name)[start:stop]) for name in self.sets[column]])

    def sizes(self, most: int) -> tuple[int, ...]:
        """Whole chunks of the store, so that none is decoded twice."""
        return even_sizes(self.count, most, self.unit)


def read(
    source: Source,
    *,
    positions: Names | None = None,
    velocities: Names | None = None,
    ids: str | None = None,
    masses: str | None = None,
    columns: Columns = None,
    box: FileBox = FROM_FILE,
    wrap: bool = False,
) -> Particles:
    """The particles in data sets that the caller names; without a box, also of the store, they are in an open space."""
    found = snapshot([source], positions=positions, velocities=velocities, ids=ids, masses=masses, columns=columns)
    return found.within(source.limits).particles(box, wrap)


def snapshot(
    sources: Sequence[Source],
    *,
    positions: Names | None = None,
    velocities: Names | None = None,
    ids: str | None = None,
    masses: str | None = None,
    columns: Columns = None,
) -> Snapshot:
    """The particles in these data sets of all the files; `columns` are named by their data sets, or name these."""
    if positions is None:
        raise WorkbenchError("positions=... must name the data set of positions, or one for each axis")
    given = {POSITIONS: positions, VELOCITIES: velocities, IDS: ids, MASSES: masses}
    sets = {column: _names(column, names) for column, names in given.items() if names is not None}
    sets |= _further(columns, sources, sets)
    tables = [_table(source, sets) for source in sources]
    kind = "HDF5" if isinstance(tables[0], Hdf5Table) else "Zarr"
    metadata = {"format": f"{kind}, data sets named", "data_sets": {column: list(names) for column, names in sets.items()}}
    cell = next((Cell(table.box) for table in tables if table.count and table.box), None)
    return Snapshot.of(sources[0].name, tables, cell, metadata)


def zarr_snapshot(
    sources: Sequence[Source], *, positions: Names | None = None, columns: Columns = None
) -> Snapshot:
    """Positions in a Zarr array (N, 2) or (N, 3), or in the group's array `positions` with those that belong to it."""
    with zarr_files.opened(sources[0]) as (zarr, node):
        alone = isinstance(node, zarr.Array)
        others = {} if alone else {name: name for name in (VELOCITIES, IDS, MASSES) if name in node}
        fits = not alone or holds_positions(node)
    if alone and not fits:
        raise WorkbenchError(f"{sources[0].name} must be positions (N, 2) or (N, 3); got {node.dtype} {node.shape}")
    return snapshot(sources, positions=positions or ("" if alone else POSITIONS), columns=columns, **others)


def _further(
    wanted: Columns, sources: Sequence[Source], sets: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The data sets of the further columns that are wanted, by the names of the columns."""
    if isinstance(wanted, Mapping):
        found = {name: _names(str(name), names) for name, names in wanted.items()}
    elif wanted == ALL:
        read_anyway = {name for names in sets.values() for name in names}
        paths = [path for path in _possible(sources[0], sets[POSITIONS][0]) if path not in read_anyway]
        found = {path.rpartition("/")[2]: (path,) for path in paths}
        if len(found) < len(paths):
            listed = ", ".join(paths)
            raise WorkbenchError(f"several data sets would be columns of one name: name them by columns={{...}}: {listed}")
    else:
        found = {path.rpartition("/")[2]: (path,) for path in (one.strip("/") for one in names_of(wanted, ()))}
    require_names(found)
    return found


def _possible(source: Source, positions: str) -> list[str]:
    """The data sets of a file that can be columns of its particles."""
    if hdf5.kind(source) is not None:
        with hdf5.opened(source) as file:
            return _with_rows(file, dataset_at(file, positions, source.name).shape[0])
    with zarr_files.opened(source) as (_, node):
        return [] if not positions else _with_rows(node, _array(node, positions, source.name).shape[0])


def _with_rows(group: Any, count: int) -> list[str]:
    """The arrays in a group, or a group of it, that can be columns of so many particles."""
    nodes = arrays_in(group).items()
    return sorted(path for path, node in nodes if can_be_column(path.rpartition("/")[2], node, count))


def _names(column: str, given: Names) -> tuple[str, ...]:
    """The data sets of a column: a name, names separated by commas, or a list of names; a leading slash means nothing.

    >>> _names("positions", "x, y,z"), _names("positions", "/PartType1/Coordinates")
    (('x', 'y', 'z'), ('PartType1/Coordinates',))
    """
    names = given.split(",") if isinstance(given, str) else list(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise WorkbenchError(f"{column} must be the name of a data set, or of one for each axis; got {given!r}")
    return tuple(name.strip().strip("/") for name in names)


def _table(source: Source, sets: Mapping[str, tuple[str, ...]]) -> Table:
    if hdf5.kind(source) is not None:
        with hdf5.opened(source) as file:
            for name in (name for names in sets.values() for name in names):
                hdf5.refuse_missing_sources(dataset_at(file, name, source.name), source.path)
            return Hdf5Table.of(file, source.path, sets)
    zarr_files.require_inside(source)
    with zarr_files.opened(source) as (_, node):
        found = [_array(node, name, source.name) for name in sets[POSITIONS]]
        require_positions(found, sets[POSITIONS], source.name)
        count, axes = found[0].shape[0], found[0].shape[1] if len(found) == 1 else len(found)
        for column, names in sets.items():
            for name in names:
                require_rows(_array(node, name, source.name), column, name, count, len(names), axes, source.name)
                zarr_files.require_room(_array(node, name, source.name), name or "the array", source)
            _require_written([_array(node, name, source.name) for name in names], source, column == POSITIONS)
        unit = (found[0].shards or found[0].chunks)[0]
        dtype = found[0].dtype.newbyteorder("=")
        stated = dict(node.attrs).get("box")
        box = None if stated is None else checked_box(stated, axes)
        arrays = {column: [_array(node, name, source.name) for name in names] for column, names in sets.items()}
        further = {column: row_of(parts) for column, parts in arrays.items() if column not in OWN}
        return ZarrTable(
            path=source.path, count=count, dtype=dtype, dimensions=axes, sets=dict(sets), unit=unit, box=box,
            further=further,
        )


def _require_written(arrays: Sequence[Any], source: Source, positions: bool) -> None:
    """Refuse a column with chunks that were never written, or not copied: Zarr shows their fill value, which is none of it.

    Zarr writes no chunk that has the fill value alone, as when all velocities are 0, one axis of the positions is, or the
    last chunk has one particle. So an array without any chunk counts as written, but not all axes of the positions.
    """
    lacking = [array for array in arrays if array.nchunks_initialized < array.nchunks and not _last_alone(array)]
    part = [array for array in lacking if array.nchunks_initialized]
    if wrong := lacking[:1] if positions and len(lacking) == len(arrays) else part[:1]:
        array = wrong[0]
        there = f"{array.nchunks_initialized:,} of {array.nchunks:,} chunks"
        raise source.damaged(f"{array.path or 'the array'} has {there}; the others were never written, or not copied")


def _last_alone(array: Any) -> bool:
    """Whether one chunk lacks, and the last chunk has one row, which may be 0."""
    return array.nchunks - array.nchunks_initialized == 1 and array.shape[0] % array.chunks[0] == 1 % array.chunks[0]


def _array(node: Any, name: str, where: str) -> Any:
    return node if not name else dataset_at(node, name, where)


NAMED = Format(
    "named",
    "particles in data sets of HDF5 or Zarr that positions=... names",
    lambda source: hdf5.kind(source) is not None or zarr_files.is_store(source),   # after all formats that need no names
    read,
    snapshot,
)
