"""Abacus (AbacusSummit) particles in ASDF files, whose blocks are compressed by Blosc.

Positions and velocities come as floats in the columns `pos` and `vel`, or packed. `rvint` has one 32-bit integer per axis:
the upper 20 bits are a signed position in millionths of the box, the lower 12 an unsigned velocity from -6000 km/s up in
steps of 6000 / 2048. `pack9` has nine bytes per particle (`pack9.py`). Ids share 64 bits with densities and marks, in the
same file or in one beside it, which Abacus names by `pid`. Positions are relative to the centre of the box and are
returned in [0, box); those of light cones are in an open space.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.abacus_files import Column, opened
from workbench.data.readers.format import Format
from workbench.data.readers.further import Wanted, chosen, offered
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.options import FROM_FILE, Cell, FileBox
from workbench.data.readers.pack9 import ROW, is_header, unpack_pack9
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source, plain
from workbench.data.readers.tables import IDS, POSITIONS, VELOCITIES, Table
from workbench.errors import SeveralArrays, WorkbenchError

VELOCITY_BITS = 12
BOX_STEPS = 1_000_000
FASTEST = 6000.0   # km/s
SPAN = 2**20       # rows of pack9 that are looked at, or decoded, together
PACKED_IDS = ("pid", "packedpid")
ID_BITS = np.uint64(0x7FFF_7FFF_7FFF)   # the place of a particle in the initial grid, 15 bits for each axis
SPEED = "VelZSpace_to_kms"
NAMES = {   # in the metadata: in the header
    "redshift": "Redshift",
    "scale_factor": "ScaleFactor",
    "omega_m": "Omega_M",
    "hubble": "H0",
    "simulation": "SimName",
    "particle_mass": "ParticleMassHMsun",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class SlabTable(Table):
    """The particles of one file, which is a slab of the box."""

    length: float
    packed: Column                       # rvint, pack9 or pos
    speed: float | None = None           # the unit of velocities in pack9
    velocities: Column | None = None     # where they are apart from the positions
    ids: Column | None = None
    cells: np.ndarray | None = None      # of pack9, (K, 2): rows that begin cells, and the particles before them
    others: Mapping[str, Column] = field(default_factory=dict)   # columns of other names, which are in the file

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the file or beside it, without positions."""
        has_velocities = self.packed.name != "pos" or self.velocities is not None
        own = (*((VELOCITIES,) if has_velocities else ()), *((IDS,) if self.ids is not None else ()))
        return (*own, *self.further)

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`."""
        if column in self.further:
            return self.others[column].rows(start, stop)
        if column == IDS and self.ids is not None:
            return unpacked_ids(self.ids.rows(start, stop))
        if column == VELOCITIES and self.velocities is not None:
            return self.velocities.rows(start, stop)
        if self.cells is not None:
            return self._from_cells(self.cells, column, start, stop)
        packed = self.packed.rows(start, stop)
        if self.packed.name == "pos":
            return packed
        positions, velocities = unpack_rvint(packed.astype(np.int32), self.length)
        return positions if column == POSITIONS else velocities

    def sizes(self, most: int) -> tuple[int, ...]:
        """Chunks of pack9 begin with a cell."""
        if self.cells is None:
            return super().sizes(most)
        sizes: list[int] = []
        for count in np.diff(self.cells[:, 1], append=self.count).tolist():
            if sizes and sizes[-1] + count <= most:
                sizes[-1] += count
            elif count:
                sizes.append(count)
        return tuple(sizes)

    def _from_cells(self, cells: np.ndarray, column: str, start: int, stop: int) -> np.ndarray:
        """Rows of pack9, decoded from the last marked cell before them."""
        first, last = int(np.searchsorted(cells[:, 1], start, side="right")) - 1, int(np.searchsorted(cells[:, 1], stop))
        row, before = cells[first].tolist()
        end = int(cells[last, 0]) if last < len(cells) else len(self.packed)
        found = unpack_pack9(self.packed.rows(row, end), self.length, self.speed or np.nan, (column,))[column]
        return found[start - before : stop - before]


def read(source: Source, *, box: FileBox = FROM_FILE, wrap: bool = False, columns: Wanted = None) -> Particles:
    """The particles of one file, from `rvint`, `pack9`, or `pos` and `vel`."""
    return snapshot([source], columns=columns).within(source.limits).particles(box, wrap)


def snapshot(sources: Sequence[Source], *, columns: Wanted = None) -> Snapshot:
    """The particles of these files, with the ids that are in them or beside them."""
    found = [_examined(source) for source in sources]
    tables, headers = [table for table, _, _ in found], found[0][1]
    wanted = chosen(columns, [offered(table.others, table.count) for table in tables if table.count], sources[0].name)
    tables = [replace(table, further=dict(wanted)) for table in tables]
    others = {name for one in found for name in one[2]} - wanted.keys()
    known = {ours: headers[theirs] for ours, theirs in NAMES.items() if theirs in headers}
    metadata = noted({"format": "Abacus ASDF", **known, "units": "Mpc/h, km/s", "header": headers}, named("column", others))
    light_cone = [_is_light_cone(source, header) for source, (_, header, _) in zip(sources, found, strict=True)]
    if len(set(light_cone)) > 1:
        names = [sources[light_cone.index(kind)].name for kind in (True, False)]
        raise WorkbenchError(f"{names[0]} is a light cone, and {names[1]} is not: open one of them")
    if light_cone[0]:
        metadata["light_cone"] = True
    cell = None if light_cone[0] else Cell((tables[0].length,) * 3)
    return Snapshot.of(sources[0].name, tables, cell, metadata, images=Images.CENTRE)


def _examined(source: Source) -> tuple[SlabTable, dict[str, Any], set[str]]:
    """The table of a file, its header, and the columns that are not read."""
    columns, header = opened(source)
    packed = next((found for name in ("rvint", "pack9", "pos") if (found := columns.get(name)) is not None), None)
    if packed is None:
        listed = ", ".join(columns) or "none"
        raise SeveralArrays(
            f"{source.name} has no column rvint, pack9 or pos; its columns are {listed}. If it is another ASDF file, give "
            "wb.compress a bound for each array"
        )
    length = _box_length(source, header)
    speed, mass, time = header.get(SPEED), header.get("ParticleMassHMsun"), header.get("Redshift")
    if packed.name == "pack9" and not isinstance(speed, int | float):
        raise WorkbenchError(f"{source.name} has velocities in pack9, which need {SPEED} in the header; got {speed!r}")
    cells: np.ndarray | None = None
    if packed.name == "rvint" and len(packed.shape) == 1 and len(packed) % 3 == 0:
        packed = replace(packed, shape=(len(packed) // 3, 3))
    if packed.name == "pack9" and packed.dtype == np.int8:   # as Abacus writes it: bytes, whose sign means nothing
        packed = replace(packed, dtype=np.dtype(np.uint8))
    _require_shape(source, packed)
    count = len(packed)
    if packed.name == "pack9":
        count, cells = _cells(source, packed)
    own = next((columns[name] for name in PACKED_IDS if columns.get(name) is not None), None)
    velocities = columns.get("vel") if packed.name == "pos" else None
    table = SlabTable(
        path=source.path, count=count, dtype=packed.dtype.newbyteorder("=") if packed.name == "pos" else np.dtype("f4"),
        length=length, packed=packed, speed=speed, velocities=velocities, cells=cells,
        ids=_ids_beside(source, count) if own is None else own, box=(length,) * 3,
        mass=float(mass) if isinstance(mass, int | float) else None,
        time=time if isinstance(time, int | float) and not _is_light_cone(source, header) else None,
    )
    used = {one.name for one in (packed, velocities, own) if one is not None}
    others = {name: column for name, column in columns.items() if name not in used and column is not None}
    return replace(table, others=others), header, columns.keys() - used


def _require_shape(source: Source, packed: Column) -> None:
    """Refuse columns of positions that are not as Abacus has them."""
    dtype, shape = packed.dtype, packed.shape
    kind, wanted, what = {
        "rvint": (dtype.kind == "i" and dtype.itemsize == 4, 3, "three int32 per particle"),
        "pack9": (dtype == np.uint8, ROW, "nine bytes per row"),
        "pos": (dtype.kind == "f", 3, "three numbers per particle"),
    }[packed.name]
    if not kind or len(shape) != 2 or shape[1] != wanted:
        raise source.damaged(f"{packed.name} must hold {what}; got {dtype} of shape {shape}")


def _cells(source: Source, packed: Column) -> tuple[int, np.ndarray]:
    """The number of particles in pack9, and cells that divide its rows; all rows are looked at, a part at a time."""
    marked, headers = [(0, 0)], 0
    for start, rows in packed.in_parts(SPAN):
        places = np.flatnonzero(is_header(rows)) + start
        if start == 0 and not (len(places) and places[0] == 0):
            raise source.damaged("pack9 must begin with the header of a cell")
        chosen = int(np.searchsorted(places, marked[-1][0] + SPAN))
        if chosen < len(places):
            marked.append((int(places[chosen]), int(places[chosen]) - headers - chosen))
        headers += len(places)
    return len(packed) - headers, np.array(marked)


def _ids_beside(source: Source, count: int) -> Column | None:
    """The ids in the file that belongs to this one, if it is there: `halo_pid_A` beside `halo_rv_A`, `L0_pack9_pid`."""
    for place in _places_of_ids(source.path.absolute()):
        if place.is_file():
            columns, _ = opened(Source.at(place))
            found = next((columns[name] for name in PACKED_IDS if columns.get(name) is not None), None)
            if found is None or found.shape != (count,):
                got = "no ids" if found is None else f"{found.shape} ids"
                wanted = f"the ids of the {count:,} particles of {source.name}"
                raise WorkbenchError(f"{place.name} must hold {wanted}; got {got}")
            return found
    return None


def _places_of_ids(path: Path) -> list[Path]:
    """Where Abacus puts the ids of the particles in a file.

    >>> [place.as_posix() for place in _places_of_ids(Path("z0.5/halo_rv_A/halo_rv_A_000.asdf"))]
    ['z0.5/halo_pid_A/halo_pid_A_000.asdf', 'z0.5/halo_rv_A/halo_pid_A_000.asdf']
    >>> [place.as_posix() for place in _places_of_ids(Path("z0.5/L0_pack9/slab0000.L0.pack9.asdf"))]
    ['z0.5/L0_pack9_pid/slab0000.L0.pack9.pid.asdf', 'z0.5/L0_pack9/slab0000.L0.pack9.pid.asdf']
    """
    def renamed(name: str) -> str:
        return re.sub(r"(?<![A-Za-z0-9])rv(?![A-Za-z0-9])", "pid", name)

    if path.name.endswith("pack9.asdf"):
        name, folder = f"{path.name.removesuffix('.asdf')}.pid.asdf", f"{path.parent.name}_pid"
    else:
        name, folder = renamed(path.name), renamed(path.parent.name)
    places = [path.parent.with_name(folder) / name, path.with_name(name)] if path.parent.name else [path.with_name(name)]
    return [place for place in dict.fromkeys(places) if place != path]


def unpacked_ids(packed: np.ndarray) -> np.ndarray:
    """Ids without the density and the marks that share their 64 bits.

    >>> unpacked_ids(np.array([(7 << 49) | (1 << 48) | (3 << 32) | (2 << 16) | 1], np.uint64)).tolist()
    [12885032961]
    """
    found: np.ndarray = packed.astype(np.uint64) & ID_BITS
    return found


def _is_light_cone(source: Source, header: dict[str, Any]) -> bool:
    """A light cone surrounds an observer, across copies of the box. Abacus marks it by names of files and folders."""
    names = [source.path.name, *(part.name for part in source.path.resolve().parents)]
    said = str(header.get("OutputType", "")).lower().replace(" ", "")
    return said == "lightcone" or names[0].startswith(("lc_", "LightCone")) or "halo_light_cones" in names


def unpack_rvint(packed: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions around the centre of a box of this length, and velocities in km/s, as float32.

    >>> positions, velocities = unpack_rvint(np.array([[250_000 << 12, -250_000 << 12, 4095]], np.int32), 1000.0)
    >>> positions.tolist(), velocities[0, 2].item()
    ([[250.0, -250.0, 0.0]], 5997.0703125)
    """
    steps = packed >> VELOCITY_BITS   # an arithmetic shift: the sign stays
    middle = 1 << (VELOCITY_BITS - 1)
    speeds = (packed & ((1 << VELOCITY_BITS) - 1)) - middle
    return (steps * (length / BOX_STEPS)).astype(np.float32), (speeds * (FASTEST / middle)).astype(np.float32)


def _box_length(source: Source, header: Any) -> float:
    length = plain(header.get("BoxSize")) if hasattr(header, "get") else None
    if not isinstance(length, int | float) or not 0 < length < float(np.finfo(np.float32).max):
        raise WorkbenchError(f"{source.name} is ASDF, but not from Abacus: expected BoxSize in a header; got {length!r}")
    return float(length)


ABACUS = Format("abacus", "Abacus particles (ASDF)", lambda source: source.starts_with(b"#ASDF"), read, snapshot)
