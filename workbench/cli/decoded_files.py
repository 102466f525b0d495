"""The file that `decompress` and `salvage` write: of NumPy for the arrays of one archive, NetCDF or Zarr for datasets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.archive import Archive, Collection, particle_files
from workbench.archive.collection import dataset_files
from workbench.archive.collection.model import ModelArchive
from workbench.cli import numpy_files
from workbench.cli.leftovers import clear_leftovers
from workbench.cli.notes import show_notes
from workbench.cli.target import add_target, is_plain_store, new_path, require_free
from workbench.data import Trajectory, writers
from workbench.data.units import unit_of
from workbench.errors import WorkbenchError
from workbench.guarantees import SliceLimits

OF_FRAMES, OF_TENSORS = writers.SUFFIXES, ".safetensors"
SUFFIXES = tuple(dict.fromkeys((
    *numpy_files.SUFFIXES, *dataset_files.SUFFIXES, *particle_files.SUFFIXES, *OF_FRAMES, OF_TENSORS,
)))


def add_decoded_target(parser: argparse.ArgumentParser) -> None:
    """Add OUT."""
    text = (
        "file to write: .npy for the positions or values alone, .npz for all arrays of one archive, .nc (NetCDF-4) or "
        ".zarr for fields and datasets, .hdf5 for particles, as snapshots of Gadget, AREPO and SWIFT; for trajectories "
        f"{', '.join(OF_FRAMES)}; {OF_TENSORS} for the weights of a model"
    )
    add_target(parser, text)
    text = "lossless filter of .nc and .hdf5 (default: that of the source, or deflate); hdf5plugin may have to read others"
    parser.add_argument("--compression", choices=tuple(dataset_files.FILTERS), help=text)


def require_decoded_target(options: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, before any work."""
    suffix = Path(options.out).suffix
    if suffix not in SUFFIXES:
        raise WorkbenchError(f"OUT must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}; got {options.out}")
    if options.compression is not None and suffix not in (*dataset_files.NETCDF, *particle_files.SUFFIXES):
        raise WorkbenchError(f"--compression is for .nc and .hdf5; got OUT {options.out}: leave it out")
    if suffix in dataset_files.SUFFIXES:
        dataset_files.require_library(suffix)
    target = require_free(options.out, options.overwrite, options.archive)
    if suffix == dataset_files.ZARR and os.path.lexists(target) and not is_plain_store(target):
        raise WorkbenchError(
            f"--overwrite replaces a folder only if it is one of Zarr alone, and no archive; {options.out} is not: remove "
            "it, or choose another name"
        )
    show_notes(clear_leftovers(target))


def holds_names(out: str) -> bool:
    """Whether the file has names for arrays and dimensions: one of NetCDF or Zarr."""
    return Path(out).suffix in dataset_files.SUFFIXES


def require_fitting_target(archive: Archive | Collection, options: argparse.Namespace) -> None:
    """Refuse a kind of file that does not suit the contents."""
    if isinstance(archive, Archive) and archive.kind == "trajectory":
        if Path(options.out).suffix not in (*OF_FRAMES, *numpy_files.SUFFIXES):
            raise WorkbenchError(f"{options.archive} holds a trajectory: let OUT end in .npz, {', '.join(OF_FRAMES)}")
        return
    if Path(options.out).suffix == OF_TENSORS:
        of_all = getattr(options, "region", ...) is None   # salvage has none
        if not isinstance(archive, Collection) or not of_all:
            raise WorkbenchError(f"{OF_TENSORS} is for all tensors of an undamaged model: let OUT end in .npz or .nc")
        return
    named = holds_names(options.out)
    if Path(options.out).suffix in OF_FRAMES and not named:
        words = archive.content.words if isinstance(archive, Archive) else "members"
        raise WorkbenchError(
            f"{Path(options.out).suffix} is for trajectories; {options.archive} holds {words}: let OUT end in .npz, .hdf5 "
            "(for particles), .nc or .zarr (for fields)"
        )
    if isinstance(archive, Collection) and not named:
        raise WorkbenchError(
            f"{options.archive} holds {len(archive)} members: choose one by --member, or let OUT end in .nc or .zarr"
        )
    if isinstance(archive, Archive) and named and archive.kind not in ("field", "variable"):
        raise WorkbenchError(f"{options.archive} holds {archive.content.words}: let OUT end in .hdf5, .npy or .npz")
    if isinstance(archive, Archive) and holds_particles(options.out) and archive.kind != "particles":
        raise WorkbenchError(f"{options.archive} holds {archive.content.words}; .hdf5 is for particles: let OUT end in .nc")


def holds_particles(out: str) -> bool:
    """Whether the file is a snapshot of particles."""
    return Path(out).suffix in particle_files.SUFFIXES


def write_one(archive: Archive, data: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Write the data of one archive as a file of NumPy, or particles as one of HDF5; returns what is said about it."""
    about = numpy_files.what_is_written(archive, data, options)
    if holds_particles(options.out):
        with new_path(options.out, options.overwrite, options.archive) as partial:
            return {**about, "arrays": particle_files.write_particles(archive, data, partial, options.compression)}
    return {**about, **numpy_files.write_arrays(archive, data, options)}


def write_frames(archive: Archive, trajectory: Trajectory, options: argparse.Namespace) -> dict[str, Any]:
    """Write frames as a trajectory, decoded a few at a time, or as a file of NumPy; returns what is said about it."""
    suffix, about = Path(options.out).suffix, numpy_files.what_is_written(archive, trajectory, options)
    if suffix in numpy_files.SUFFIXES:
        return {**about, **numpy_files.write_arrays(archive, trajectory, options)}
    limit = archive.certificate["positions"].limit
    within = None if limit is None or isinstance(limit, SliceLimits) or limit.relative else limit.value
    with new_path(options.out, options.overwrite, options.archive) as partial:
        written = writers.write_trajectory(trajectory, partial, suffix, within)
    notes = list(written.notes)
    unit = unit_of(trajectory)
    if written.rounding:
        total = "" if within is None else f"{within + written.rounding:.6g} {unit}".strip()
        beside = f"; with the bound of the archive, positions are within {total}" if total else ""
        notes.append(f"{suffix} rounds positions, here by up to {f'{written.rounding:.3g} {unit}'.strip()}{beside}")
    show_notes([*notes, *(f"left out: {one}" for one in written.left_out)])
    error = None if within is None else within + written.rounding
    return {
        **about, "rounding": written.rounding, "largest_error": error, **({"units": unit} if unit else {}),
        "left_out": list(written.left_out), "notes": notes,
    }


def write_dataset_of_one(archive: Archive, name: str, dataset: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Write the dataset of an archive of one array as NetCDF or Zarr; returns what is said about it."""
    notes, written = _write({"": dataset}, {name: archive}, options), dataset.variables[name]
    return {
        "file": options.archive, "out": options.out, "holds": archive.kind, "shape": list(written.shape),
        "dtype": str(written.dtype), "arrays": list(dataset.variables), "left_out": [], "notes": notes,
    }


def write_members(collection: Collection, groups: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Write members of a collection, as datasets of xarray by group; returns what is said about them."""
    names = [f"{group}/{own}" if group else own for group, dataset in groups.items() for own in dataset.variables]
    names = [name for name in collection if name in names]
    notes = _write(groups, {name: collection[name] for name in names}, options)
    return {"file": options.archive, "out": options.out, "holds": collection.kind, "members": names, "notes": notes}


def write_tensors(archive: Collection, options: argparse.Namespace) -> dict[str, Any]:
    """Write all members as tensors; returns what is said about them."""
    from workbench.propagation.weights import write_safetensors  # few need it

    tensors = tensors_of(archive)
    write_safetensors(options.out, tensors)
    return {"file": options.archive, "out": options.out, "holds": "tensors", "count": len(tensors)}


def tensors_of(archive: Collection) -> dict[str, Any]:
    """The decoded tensors by name, tied ones under each of their names."""
    if isinstance(archive, ModelArchive):
        return archive.tensors()
    return {name: archive.decompress_member(name).values for name in archive}


def _write(groups: Mapping[str, Any], archives: Mapping[str, Archive], options: argparse.Namespace) -> list[str]:
    """Write a file under a temporary name, and rename it when it is complete; returns what differs from the source."""
    with new_path(options.out, options.overwrite, options.archive) as partial:
        suffix = Path(options.out).suffix
        notes = dataset_files.write_dataset(groups, partial, suffix, archives, options.compression)
        if partial.is_file():
            with partial.open("rb") as file:
                os.fsync(file.fileno())
    show_notes(notes)
    return notes


def without_notes(outcome: Mapping[str, Any], as_json: bool) -> dict[str, Any]:
    """What is printed: as text without the notes, which stand on standard error already."""
    return {name: value for name, value in outcome.items() if as_json or name != "notes"}
