"""Abacus (AbacusSummit) particles in ASDF files, whose blocks are compressed by Blosc.

Positions and velocities come as floats in the columns `pos` and `vel`, or packed. `rvint` has one 32-bit integer per axis:
the upper 20 bits are a signed position in millionths of the box, the lower 12 an unsigned velocity from -6000 km/s up in
steps of 6000 / 2048. `pack9` has nine bytes per particle (`pack9.py`). Ids share 64 bits with densities and marks, in the
same file or in one beside it, which Abacus names by `pid`. Positions are relative to the centre of the box and are
returned in [0, box); those of light cones are in an open space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.abacus_files import column_of, opened
from workbench.data.readers.format import Format
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.options import FROM_FILE, Cell, FileBox
from workbench.data.readers.pack9 import ROW, is_header, unpack_pack9
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source, plain
from workbench.data.readers.tables import IDS, POSITIONS, VELOCITIES, Table
from workbench.errors import WorkbenchError

VELOCITY_BITS = 12
BOX_STEPS = 1_000_000
FASTEST = 6000.0   # km/s
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


@dataclass(frozen=True, kw_only=True)
class SlabTable(Table):
    """The particles of one file, which is a slab of the box: its columns are compressed as a whole."""

    length: float
    packing: str                  # "rvint", "pack9" or "pos"
    speed: float | None = None    # the unit of velocities in pack9
    has_velocities: bool = True
    ids: tuple[Path, str] | None = None   # the file and the column of ids

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the file or beside it, without positions."""
        return (*((VELOCITIES,) if self.has_velocities else ()), *((IDS,) if self.ids else ()))

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`."""
        if column == IDS:
            assert self.ids is not None
            return unpacked_ids(column_of(*self.ids)[start:stop])
        if self.packing == "pos":
            return column_of(self.path, "pos" if column == POSITIONS else "vel")[start:stop]
        packed = column_of(self.path, self.packing)
        if self.packing == "pack9":
            return unpack_pack9(packed, self.length, self.speed or np.nan, (column,))[column][start:stop]
        positions, velocities = unpack_rvint(packed.reshape(-1, 3)[start:stop].astype(np.int32), self.length)
        return positions if column == POSITIONS else velocities

    def sizes(self, most: int) -> tuple[int, ...]:
        """One chunk: a part of a compressed column cannot be decoded alone."""
        return (self.count,)


def read(source: Source, *, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """The particles of one file, from `rvint`, `pack9`, or `pos` and `vel`."""
    return snapshot([source]).particles(box, wrap)


def snapshot(sources: Sequence[Source]) -> Snapshot:
    """The particles of these files, with the ids that are in them or beside them."""
    found = [_examined(source) for source in sources]
    tables, headers, others = [table for table, _, _ in found], found[0][1], {name for one in found for name in one[2]}
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
    """The table of a file, its header, and the columns that are not read. Cells of pack9 are counted, which decodes it."""
    with opened(source) as (data, header):
        length = _box_length(source, header)
        names = list(data) if hasattr(data, "keys") else []
        packing = next((name for name in ("rvint", "pack9", "pos") if name in names), None)
        if packing is None:
            listed = ", ".join(map(str, names)) or "none"
            raise WorkbenchError(f"{source.name} has no column rvint, pack9 or pos; its columns are {listed}")
        count = {"rvint": _count_rvint, "pack9": _count_pack9, "pos": _count_floats}[packing](source, data[packing])
        own = next((name for name in PACKED_IDS if name in names), None)
        dtype = np.dtype(np.float32) if packing != "pos" else data["pos"].dtype.newbyteorder("=")
        has_velocities = packing != "pos" or "vel" in names
        used = {packing, *(("vel",) if packing == "pos" else ()), own}
        ids = _ids_beside(source, count) if own is None else (source.path, own)
    speed, mass = header.get(SPEED), header.get("ParticleMassHMsun")
    if packing == "pack9" and not isinstance(speed, int | float):
        raise WorkbenchError(f"{source.name} has velocities in pack9, which need {SPEED} in the header; got {speed!r}")
    light_cone, time = _is_light_cone(source, header), header.get("Redshift")
    table = SlabTable(
        path=source.path, count=count, dtype=dtype, length=length, packing=packing, speed=speed,
        has_velocities=has_velocities, ids=ids, box=(length,) * 3, mass=mass if isinstance(mass, float) else None,
        time=time if isinstance(time, int | float) and not light_cone else None,
    )
    return table, header, set(names) - used


def _count_rvint(source: Source, packed: Any) -> int:
    if packed.dtype.kind != "i" or packed.dtype.itemsize != 4 or packed.size % 3:
        raise source.damaged(f"rvint must hold three int32 per particle; got {packed.dtype} of shape {packed.shape}")
    return int(packed.size) // 3


def _count_pack9(source: Source, packed: Any) -> int:
    if packed.dtype != np.uint8 or len(packed.shape) != 2 or packed.shape[1] != ROW:
        raise source.damaged(f"pack9 must hold nine bytes per row; got {packed.dtype} of shape {packed.shape}")
    marks = is_header(np.asarray(packed))
    if len(marks) and not marks[0]:
        raise source.damaged("pack9 must begin with the header of a cell")
    return int(len(marks) - marks.sum())


def _count_floats(source: Source, positions: Any) -> int:
    if len(positions.shape) != 2 or positions.shape[1] != 3:
        raise source.damaged(f"pos must hold three numbers per particle; got {positions.dtype} of shape {positions.shape}")
    return len(positions)


def _ids_beside(source: Source, count: int) -> tuple[Path, str] | None:
    """The file of ids that belongs to this one, if it is there: `halo_pid_A` beside `halo_rv_A`, `L0_pack9_pid`."""
    path = source.path.absolute()
    for place in _places_of_ids(path):
        if place.is_file():
            with opened(Source.at(place)) as (data, _):
                column = next((name for name in PACKED_IDS if hasattr(data, "keys") and name in data), None)
                if column is None or data[column].shape != (count,):
                    got = "no ids" if column is None else f"{data[column].shape} ids"
                    wanted = f"the ids of the {count:,} particles of {source.name}"
                    raise WorkbenchError(f"{place.name} must hold {wanted}; got {got}")
            return place, column
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
