"""Particle snapshots in HDF5: the layout of Gadget-2, 3, 4 and AREPO, with its variants in SWIFT and IllustrisTNG.

They agree on `PartTypeN/Coordinates`, `Velocities`, `ParticleIDs` and on a `Header` whose entries are attributes; they
differ in the place of units and cosmology, in whether the box has one length or three, and in the number of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.data.particles import Particles
from workbench.data.readers import hdf5
from workbench.data.readers.file_sets import completed
from workbench.data.readers.format import Format
from workbench.data.readers.further import Rows, Wanted, chosen, offered
from workbench.data.readers.leaving import named, noted, other_types
from workbench.data.readers.options import FROM_FILE, Cell, FileBox
from workbench.data.readers.particle_types import TypeWanted, chosen_types, described_types
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source
from workbench.data.readers.tables import IDS, MASSES, POSITIONS, VELOCITIES, Hdf5Table
from workbench.errors import WorkbenchError

TYPES = range(7)
COORDINATES = "Coordinates"
COLUMNS = {   # of particles: their names in the groups of particle types
    POSITIONS: (COORDINATES,),
    VELOCITIES: ("Velocities",),
    IDS: ("ParticleIDs",),
    MASSES: ("Masses", "DynamicalMasses"),   # the latter for black holes in SWIFT
}
DESCRIPTIONS = ("Cosmology", "Units", "InternalCodeUnits", "Code")   # groups whose attributes are worth keeping
LOSS_OF_SWIFT, LOSS_OF_ARCHIVES = "Lossy compression filter", "lossy_compression"   # attributes, or how their names begin
NAMES = {   # in the metadata: where the different codes put it in the header
    "redshift": ("Redshift",),
    "time": ("Time",),
    "omega_m": ("Omega0",),
    "omega_lambda": ("OmegaLambda",),
    "hubble": ("HubbleParam",),
}


@dataclass(frozen=True)
class Part:
    """What one file of the set has of one particle type: its table, all other names, and which of them can be columns."""

    table: Hdf5Table | None
    others: tuple[str, ...] = ()
    offered: Rows = field(default_factory=dict)
    losses: dict[str, dict[str, Any]] = field(default_factory=dict)   # what its columns state of their errors

    def with_further(self, wanted: Rows) -> Hdf5Table | None:
        """The table with these further columns."""
        if self.table is None:
            return None
        sets = {name: (f"PartType{self.table.particle_type}/{name}",) for name in wanted}
        return self.table.with_further(sets, wanted)


def read(
    source: Source, *, particle_type: TypeWanted = None, box: FileBox = FROM_FILE, wrap: bool = False,
    columns: Wanted = None,
) -> Particles:
    """The particles of one type, 1 (dark matter) unless told otherwise, of all files of the snapshot."""
    return snapshot([source], particle_type=particle_type, columns=columns).within(source.limits).particles(box, wrap)


def snapshot(sources: Sequence[Source], *, particle_type: TypeWanted = None, columns: Wanted = None) -> Snapshot:
    """The particles of a type, or of all, in these files, or in the set that one of them belongs to."""
    files = completed(sources, files_stated)
    first = sources[0]
    with hdf5.opened(first) as file:
        header = hdf5.attributes(file["Header"])
        metadata = _metadata(file, header)
        periodic = not _says_open(file)
        counts = _counts(file, header, several=len(files) > 1)
    kinds = chosen_types(particle_type, counts, first.name)
    parts = [_part(source, kind) for kind in kinds for source in files]
    for number, kind in enumerate(kinds):
        tables = [part.table for part in parts[number * len(files) : (number + 1) * len(files)]]
        got = sum(table.count for table in tables if table is not None)
        if got != counts[kind]:
            raise first.damaged(f"the header promises {counts[kind]:,} particles of type {kind}; the files hold {got:,}")
    read_anyway = {name for part in parts if part.table for names in part.table.sets.values() for name in names}
    own = {name.rpartition("/")[2] for name in read_anyway}
    wanted = chosen(columns, [part.offered for part in parts if part.table is not None], first.name, own)
    tables = [part.with_further(wanted) for part in parts]
    cell = Cell(_lengths(header, first)) if periodic else None
    metadata |= {**described_types(kinds), "particle_counts": counts, "files": len(files)}
    if losses := {name: stated for part in parts for name, stated in part.losses.items()}:
        metadata["losses"] = losses
    others = {name for part in parts for name in part.others if name not in wanted}
    metadata = noted(metadata, other_types(counts, kinds), named("column", others))
    return Snapshot.of(first.name, [table for table in tables if table is not None], cell, metadata)


def files_stated(source: Source) -> int:
    """How many files the snapshot has, as one of them says."""
    with hdf5.opened(source) as file:
        return int(_number(hdf5.attributes(file["Header"]).get("NumFilesPerSnapshot", 1)))


def _counts(file: Any, header: dict[str, Any], several: bool) -> dict[int, int]:
    """Particles by type: as stored when the snapshot is one file, as the header says when it has several."""
    if several:
        low, high = _list(header.get("NumPart_Total")), _list(header.get("NumPart_Total_HighWord"))
        high += [0] * (len(low) - len(high))
        return {kind: int(count) + (int(more) << 32) for kind, (count, more) in enumerate(zip(low, high, strict=False))}
    groups = {kind: file.get(f"PartType{kind}", ()) for kind in TYPES}
    return {kind: len(group[COORDINATES]) for kind, group in groups.items() if COORDINATES in group}


def _part(source: Source, kind: int) -> Part:
    """The particles of one type in one file."""
    with hdf5.opened(source) as file:
        group = file.get(f"PartType{kind}", {})
        if COORDINATES not in group or not len(group[COORDINATES]):
            return Part(None)
        hdf5.refuse_missing_sources(group[COORDINATES], source.path)
        if group[COORDINATES].dtype.kind != "f":
            raise WorkbenchError(f"{source.name} stores positions as {group[COORDINATES].dtype}; only floats are supported")
        header = hdf5.attributes(file["Header"])
        found = {column: next((n for n in names if n in group), None) for column, names in COLUMNS.items()}
        sets = {column: (f"PartType{kind}/{name}",) for column, name in found.items() if name is not None}
        others = tuple(str(name) for name in group if name not in found.values())
        mass = None if MASSES in sets else _common_mass(header, kind)
        box = None if _says_open(file) else _lengths(header, source)
        table = Hdf5Table.of(file, source.path, sets, mass=mass, box=box, time=_time(header), particle_type=kind)
        there = offered({name: group[name] for name in others}, table.count)
        columns = {ours: name for ours, name in found.items() if name is not None and ours != POSITIONS}
        losses = {ours: _losses(group[name]) for ours, name in (columns | {name: name for name in there}).items()}
    return Part(table, others, there, {ours: stated for ours, stated in losses.items() if stated})


def _losses(node: Any) -> dict[str, Any]:
    """The attributes by which a data set states errors in its values: those of SWIFT, and of files made from archives."""
    stated = {} if not any(name.startswith(("Lossy", "lossy")) for name in node.attrs) else hdf5.attributes(node)
    own = {name: entry for name, entry in stated.items() if name.startswith((LOSS_OF_SWIFT, LOSS_OF_ARCHIVES))}
    return {} if list(own.values()) == ["None"] else own


def _common_mass(header: dict[str, Any], kind: int) -> float | None:
    """The mass of each particle, where the header has one for all of a type."""
    masses = _list(header.get("MassTable"))
    return float(masses[kind]) if kind < len(masses) and masses[kind] else None


def _time(header: dict[str, Any]) -> float | None:
    found = _list(header.get("Time"))
    return float(found[0]) if found and isinstance(found[0], int | float) and found[0] == found[0] else None


def _lengths(header: dict[str, Any], source: Source) -> tuple[float, ...]:
    """BoxSize is one length, or one per axis in SWIFT; 0 or absent means open."""
    lengths = [_number(length) for length in _list(header.get("BoxSize", 0.0))]
    if len(lengths) not in (1, 3):
        raise source.damaged(f"BoxSize in the header must be one length or three; got {lengths}")
    return tuple(lengths * 3 if len(lengths) == 1 else lengths)


def _says_open(file: Any) -> bool:
    """SWIFT writes a BoxSize even for runs that are not periodic."""
    parameters = hdf5.attributes(file["Parameters"]) if "Parameters" in file else {}
    return str(parameters.get("InitialConditions:periodic", "1")) == "0"


def _metadata(file: Any, header: dict[str, Any]) -> dict[str, Any]:
    groups = {name: hdf5.attributes(file[name]) for name in DESCRIPTIONS if name in file}
    code = str(groups.get("Code", {}).get("Code", "")) or ("SWIFT" if "InternalCodeUnits" in file else "Gadget")
    units = groups.get("InternalCodeUnits") or groups.get("Units") or _stated_units(header)
    named = {ours: header[theirs] for ours, keys in NAMES.items() for theirs in keys if theirs in header}
    return {
        "format": f"{code} HDF5 snapshot",
        **named,
        "header": header,
        "cosmology": groups.get("Cosmology", {}),
        "positions": _about_positions(file),
        "units": units or "not stated; Gadget's defaults are kpc/h and km/s",
    }


def _about_positions(file: Any) -> dict[str, Any]:
    """How positions scale with the expansion and with h, where the code says so."""
    groups = (file[key] for key in file if key.startswith("PartType"))
    return next((hdf5.attributes(group[COORDINATES]) for group in groups if COORDINATES in group), {})


def _stated_units(header: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.items() if key.startswith("Unit")}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def _number(value: Any) -> float:
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, int | float):
        raise WorkbenchError(f"expected a number in the snapshot header; got {value!r}")
    return first


HDF5_SNAPSHOT = Format(
    "hdf5-snapshot",
    "HDF5 particle snapshot (Gadget, AREPO, IllustrisTNG, SWIFT)",
    lambda source: hdf5.kind(source) == "snapshot",
    read,
    snapshot,
    files_stated,
)
