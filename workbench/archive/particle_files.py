"""Particles as HDF5 files: the layout of Gadget, AREPO and SWIFT snapshots, which `wb.open` and most programs read.

What an archive knows of the snapshot that it was made from is written back: the particle type, the header, units and
cosmology. Each data set with a bound states its errors, as files of datasets do (`collection/loss_in_files.py`). Particles
from elsewhere get the same layout, type 1 and a header of what a reader needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.loss_in_files import with_loss_in_words
from workbench.backend import to_host
from workbench.data.particles import Particles
from workbench.data.readers.hdf5_snapshots import COLUMNS, TYPES
from workbench.data.readers.libraries import library
from workbench.data.readers.tables import IDS, POSITIONS
from workbench.data.triclinic import KEY
from workbench.errors import WorkbenchError

SUFFIXES = (".hdf5", ".h5")
SUFFIXED = "HDF5 snapshot"     # how the format of a source ends that has this layout
DARK_MATTER = 1
UNITS_OF_SWIFT = "Unit length in cgs (U_L)"


def write_particles(archive: Archive, particles: Particles, path: Path, compression: str | None) -> list[str]:
    """Write particles to a new file; returns the names of the data sets."""
    h5py = library("h5py", "HDF5 files")
    if particles.positions.shape[1] != 3:
        raise WorkbenchError(f"a snapshot in HDF5 has three axes; got {particles!r}: let OUT end in .npz")
    if KEY in particles.metadata:
        raise WorkbenchError(f"a snapshot in HDF5 has no triclinic cell, as that of {particles!r}: let OUT end in .npz")
    metadata, named = particles.metadata, _named(particles)
    rows, filters = _rows_of_types(archive, len(particles.positions)), filters_of(compression)
    with h5py.File(path, "w") as file:
        header = file.create_group("Header")
        _describe(header, _header(particles, metadata, {kind: part.stop - part.start for kind, part in rows.items()}))
        for group, entries in _descriptions(metadata).items():
            _describe(file.create_group(group), entries)
        for kind, part in rows.items():
            for name, (array, values) in named.items():
                made = file.create_dataset(f"PartType{kind}/{name}", data=values[part], **filters)
                _describe(made, _about(archive, array, metadata))
    return list(named)


def filters_of(compression: str | None) -> dict[str, Any]:
    """The filters of h5py for a name: deflate unless another is asked for.

    >>> filters_of(None), filters_of("none")
    ({'compression': 'gzip', 'shuffle': True}, {})
    """
    if compression == "none":
        return {}
    if compression in ("zstd", "blosc"):
        plugin = library("hdf5plugin", f"HDF5 files with {compression}")
        return dict(plugin.Zstd() if compression == "zstd" else plugin.Blosc(cname="zstd", shuffle=1))
    return {"compression": "gzip", "shuffle": True}


def _named(particles: Particles) -> dict[str, tuple[str, np.ndarray]]:
    """The data sets, each with the array that it has."""
    arrays = {POSITIONS: particles.positions, **particles.companions}
    found = {COLUMNS[name][0] if name in COLUMNS else name: (name, to_host(one)) for name, one in arrays.items()}
    if IDS not in particles.companions:   # Gadget's readers want them
        found[COLUMNS[IDS][0]] = (IDS, np.arange(len(particles.positions), dtype=np.int64))
    return found


def _rows_of_types(archive: Archive, count: int) -> dict[int, slice]:
    """The rows of each particle type."""
    metadata = archive.attributes["metadata"]
    kinds, counts = metadata.get("particle_type", DARK_MATTER), metadata.get("particle_counts", {})
    if not isinstance(kinds, list):
        kind = kinds if isinstance(kinds, int) and kinds in TYPES else DARK_MATTER
        return {kind: slice(0, count)}
    sizes = [counts.get(str(kind), 0) if isinstance(counts, Mapping) else 0 for kind in kinds]
    if archive.reordered or sum(sizes) != count:
        listed = ", ".join(map(str, kinds))
        raise WorkbenchError(f"the particles of types {listed} are mixed, as order='free' sorts them: let OUT end in .npz")
    ends = np.cumsum([0, *sizes]).tolist()
    return {kind: slice(begin, end) for kind, begin, end in zip(kinds, ends, ends[1:], strict=True)}


def _header(particles: Particles, metadata: Mapping[str, Any], counts: Mapping[int, int]) -> dict[str, Any]:
    """The header: that of the source, but for what is about this file."""
    stated = metadata.get("header")
    known = dict(stated) if isinstance(stated, Mapping) and _is_snapshot(metadata) else {}
    numbers = [counts.get(kind, 0) for kind in TYPES]
    masses = [0.0] * len(TYPES)
    if isinstance(particles.masses, float):
        for kind in counts:
            masses[kind] = particles.masses
    box = particles.box or (0.0,)
    same = len(set(box)) == 1 and not isinstance(known.get("BoxSize"), list)
    own = {
        "NumPart_ThisFile": np.array(numbers, np.uint64), "NumPart_Total": np.array(numbers, np.uint64) % 2**32,
        "NumPart_Total_HighWord": np.array(numbers, np.uint64) >> 32, "NumFilesPerSnapshot": 1, "MassTable": masses,
        "BoxSize": float(box[0]) if same else list(map(float, box)),
    }
    given = {name: metadata[name] for name in ("time", "redshift") if isinstance(metadata.get(name), int | float)}
    return {**{name.title(): value for name, value in given.items()}, **known, **own}


def _is_snapshot(metadata: Mapping[str, Any]) -> bool:
    return str(metadata.get("format", "")).endswith(SUFFIXED)


def _descriptions(metadata: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The groups of the source that describe it."""
    if not _is_snapshot(metadata):
        return {}
    cosmology, units = metadata.get("cosmology"), metadata.get("units")
    found: dict[str, Mapping[str, Any]] = {}
    if isinstance(cosmology, Mapping) and cosmology:
        found["Cosmology"] = cosmology
    if isinstance(units, Mapping) and not set(units) <= set(metadata.get("header", ())):
        found["InternalCodeUnits" if UNITS_OF_SWIFT in units else "Units"] = units
    name = str(metadata["format"]).removesuffix(SUFFIXED).strip()
    return found | ({"Code": {"Code": name}} if name not in ("", "Gadget") else {})


def _about(archive: Archive, array: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a data set: of positions those of the source; of all with errors, what these are."""
    stated = metadata.get("positions")
    if array != POSITIONS:
        stated = metadata.get("losses", {}).get(array)
    own = dict(stated) if isinstance(stated, Mapping) and _is_snapshot(metadata) else {}
    promised = {promise.array: promise.bound for promise in archive.certificate.promises}
    bound = promised.get(array)
    return own if bound is None or bound.eb == 0 else with_loss_in_words(own, archive, array)


def _describe(node: Any, entries: Mapping[str, Any]) -> None:
    """Give a group or a data set these attributes: those that are numbers, text, or lists of one of them."""
    for name, entry in entries.items():
        value = np.asarray(entry)
        if value.dtype.kind in "biuf":
            node.attrs[name] = value
        elif value.dtype.kind == "U":
            node.attrs[name] = str(entry) if value.ndim == 0 else [str(one) for one in entry]
