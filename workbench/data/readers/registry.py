"""All formats in the order in which they are tried. A new one is one line here, or `register` from a higher layer.

The order matters only where one format is a special case of another: AMBER is NetCDF, which may be HDF5. Text formats
come last, since their first lines prove less than magic bytes do.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from workbench.data.readers.abacus import ABACUS
from workbench.data.readers.amber import AMBER
from workbench.data.readers.bov import BOV
from workbench.data.readers.dcd import DCD
from workbench.data.readers.fast_food import FAST_FOOD
from workbench.data.readers.format import Format
from workbench.data.readers.gadget import GADGET
from workbench.data.readers.genericio import GENERICIO
from workbench.data.readers.gro import GRO
from workbench.data.readers.gsd_files import GSD
from workbench.data.readers.h5md import H5MD
from workbench.data.readers.hdf5_grids import HDF5_GRID
from workbench.data.readers.hdf5_snapshots import HDF5_SNAPSHOT
from workbench.data.readers.lammps import LAMMPS
from workbench.data.readers.named_columns import NAMED
from workbench.data.readers.netcdf import NETCDF
from workbench.data.readers.numpy_files import NPY, NPZ
from workbench.data.readers.raw import RAW, what_it_may_be
from workbench.data.readers.source import Source
from workbench.data.readers.trr import TRR
from workbench.data.readers.unread import refuse_unread
from workbench.data.readers.xtc import XTC
from workbench.data.readers.xyz import XYZ
from workbench.data.readers.zarr_stores import ZARR
from workbench.errors import WorkbenchError

FORMATS: list[Format] = [
    NPY,
    GENERICIO,
    GSD,
    ABACUS,
    TRR,
    XTC,
    DCD,
    GADGET,
    FAST_FOOD,
    AMBER,
    NETCDF,
    H5MD,
    HDF5_SNAPSHOT,
    HDF5_GRID,
    ZARR,
    NPZ,
    LAMMPS,
    GRO,
    BOV,
    XYZ,
    NAMED,
    RAW,
]


def formats() -> list[Format]:
    """All of them: archives register themselves when the layer that reads them is imported."""
    importlib.import_module("workbench.archive")
    return FORMATS


def register(new: Format) -> None:
    """Add a format from a higher layer to `open_file`; it is tried before all others.

    >>> register(Format("npy", "my own arrays", lambda source: source.path.suffix == ".npy", lambda source: None))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: there is already a format 'npy'
    """
    if new.key in {known.key for known in FORMATS}:
        raise WorkbenchError(f"there is already a format {new.key!r}")
    FORMATS.insert(0, new)


def format_of(source: Source, wanted: str | None, options: Mapping[str, Any]) -> Format:
    """The format that the caller names, else the first that recognises the content, else raw floats if a shape is given."""
    if source.address is not None:
        return _at_address(source, wanted)
    if wanted is not None:
        return _named(wanted)
    if options.get("positions") is not None and NAMED.recognises(source):
        return NAMED
    found = next((known for known in formats() if known.recognises(source)), None)
    if found is not None:
        return found
    if "shape" in options and not source.is_folder:
        return RAW
    refuse_unread(source)
    if source.is_folder:
        raise WorkbenchError(f"the folder {source.name} has no known format: check the path, or open one of its files")
    raise WorkbenchError(
        f"the file {source.name} has no known format (docs/formats.md has those that are known; format=... overrides "
        f"recognition by content). {what_it_may_be(source)}"
    )


def check_options(found: Format, source: Source, options: Mapping[str, Any], applicable: tuple[str, ...]) -> None:
    """Refuse unknown options, and options that do not apply to what is done with this format."""
    known = {option for one in formats() for option in (*one.options, *one.snapshot_options)}
    for option in options:
        if option in applicable:
            continue
        problem = "makes no sense for" if option in known else "is not an option of"
        takes = f"it takes {', '.join(applicable)}" if applicable else "it takes no options"
        raise WorkbenchError(f"{option!r} {problem} {source.name}, which is read as {found.title}: {takes}")


def _at_address(source: Source, wanted: str | None) -> Format:
    """The format that is read from other machines."""
    found = next(known for known in formats() if known.reads_addresses)
    if wanted not in (None, found.key):
        raise WorkbenchError(f"{_named(wanted).title} is read from files of this machine: download {source.name} first")
    return found


def _named(key: str) -> Format:
    for known in formats():
        if known.key == key:
            return known
    raise WorkbenchError(f"format must be one of {', '.join(sorted(one.key for one in formats()))}; got {key!r}")
