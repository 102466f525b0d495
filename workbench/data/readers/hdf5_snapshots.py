"""Particle snapshots in HDF5: the layout of Gadget-2, 3, 4 and AREPO, with its variants in SWIFT and IllustrisTNG.

They agree on `PartTypeN/Coordinates`, `Velocities`, `ParticleIDs` and on a `Header` whose entries are attributes; they
differ in the place of units and cosmology, in whether the box has one length or three, and in the number of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers import hdf5
from workbench.data.readers.file_sets import members
from workbench.data.readers.format import Format
from workbench.data.readers.leaving import named, noted, other_types
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, particles
from workbench.data.readers.particle_types import chosen_type
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

TYPES = range(7)
POSITIONS, VELOCITIES, IDS = "Coordinates", "Velocities", "ParticleIDs"
DESCRIPTIONS = ("Cosmology", "Units", "InternalCodeUnits", "Code")   # groups whose attributes are worth keeping
NAMES = {   # in the metadata: where the different codes put it in the header
    "redshift": ("Redshift",),
    "time": ("Time",),
    "omega_m": ("Omega0",),
    "omega_lambda": ("OmegaLambda",),
    "hubble": ("HubbleParam",),
}


@dataclass(frozen=True)
class Part:
    """What one file of the set contributes."""

    positions: np.ndarray
    velocities: np.ndarray | None
    ids: np.ndarray | None
    others: tuple[str, ...] = ()   # the names of its other columns


def read(source: Source, *, particle_type: int | None = None, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """The particles of one type, 1 (dark matter) unless told otherwise, of all files of the snapshot."""
    with hdf5.opened(source) as file:
        header = hdf5.attributes(file["Header"])
        metadata = _metadata(file, header)
        periodic = not _says_open(file)
        paths = members(source.path, int(_number(header.get("NumFilesPerSnapshot", 1))))
        counts = _counts(file, header, several=len(paths) > 1)
    kind = chosen_type(particle_type, counts, source.name)
    found = (_part(Source.at(path), kind) for path in paths)
    parts = [part for part in found if part is not None]
    got = sum(len(part.positions) for part in parts)
    if got != counts[kind]:
        raise source.damaged(f"the header promises {counts[kind]:,} particles of type {kind}; the files hold {got:,}")
    positions, velocities, ids = (_joined(parts, name) for name in ("positions", "velocities", "ids"))
    cell = Cell(_lengths(header, source)) if periodic else None
    metadata |= {"particle_type": kind, "particle_counts": counts, "files": len(paths)}
    others = {name for part in parts for name in part.others}
    metadata = noted(metadata, other_types(counts, kind), named("column", others))
    return particles(positions, cell, box, velocities, ids, metadata, wrap=wrap)


def _counts(file: Any, header: dict[str, Any], several: bool) -> dict[int, int]:
    """Particles by type: as stored when the snapshot is one file, as the header says when it has several."""
    if several:
        low, high = _list(header.get("NumPart_Total")), _list(header.get("NumPart_Total_HighWord"))
        high += [0] * (len(low) - len(high))
        return {kind: int(count) + (int(more) << 32) for kind, (count, more) in enumerate(zip(low, high, strict=False))}
    return {kind: len(file[f"PartType{kind}"][POSITIONS]) for kind in TYPES if POSITIONS in file.get(f"PartType{kind}", ())}


def _part(source: Source, kind: int) -> Part | None:
    """The particles of one type in one file; None when it has none of them."""
    with hdf5.opened(source) as file:
        group = file.get(f"PartType{kind}", {})
        if POSITIONS not in group or not len(group[POSITIONS]):
            return None
        arrays = {name: _array(group[name], source) for name in (POSITIONS, VELOCITIES, IDS) if name in group}
        others = tuple(str(name) for name in group if name not in arrays)
    if arrays[POSITIONS].dtype.kind != "f":
        raise WorkbenchError(f"{source.name} stores positions as {arrays[POSITIONS].dtype}; only floats are supported")
    return Part(arrays[POSITIONS], arrays.get(VELOCITIES), arrays.get(IDS), others)


def _array(dataset: Any, source: Source) -> np.ndarray:
    hdf5.refuse_missing_sources(dataset, source.path)
    return np.asarray(dataset[()])


def _joined(parts: list[Part], name: str) -> np.ndarray | None:
    arrays = [getattr(part, name) for part in parts]
    return None if any(array is None for array in arrays) else np.concatenate(arrays)


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
    return next((hdf5.attributes(group[POSITIONS]) for group in groups if POSITIONS in group), {})


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
)
