"""AMBER trajectories: NetCDF files with coordinates, velocities and cells by frame.

They are read by the NetCDF library itself. The usual trajectory libraries require units that these files need not state
(the tests have two files that they refuse) and apply scale factors in their own way. Here, as for other floats in NetCDF,
coordinates are returned as stored; `scaled=True` applies the scale factors of the file to coordinates, velocities and
cell, which then are float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers import cf, netcdf
from workbench.data.readers.format import Format
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import named, noted, other_frames
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles, shifted
from workbench.data.readers.source import Source, plain
from workbench.data.triclinic import edges_of
from workbench.errors import WorkbenchError

LABELS = ("spatial", "cell_spatial", "cell_angular")   # names of axes
READ = {"coordinates", "velocities", "cell_origin", "cell_lengths", "cell_angles", "time", *LABELS}


def read(
    source: Source, *, frame: int = 0, scaled: bool | None = None, box: FileBox = FROM_FILE, wrap: bool = False
) -> Particles:
    """One frame; a cell origin is subtracted, and positions are wrapped into the box."""
    with netcdf.opened(source) as dataset:
        frames = len(dataset.dimensions["frame"])
        at = chosen_frame(frame, frames)
        found = {name: _read(source, dataset, name, at, scaled) for name in ("coordinates", "velocities", "cell_origin")}
        lengths, angles = (_read(source, dataset, name, at, scaled) for name in ("cell_lengths", "cell_angles"))
        others = named("variable", set(dataset.variables) - READ)
        metadata = noted(_metadata(dataset, at, frames, scaled), other_frames(at, frames), others)
    positions = found["coordinates"]
    if positions is None:
        raise WorkbenchError(f"frame {at} of {source.name} has no coordinates: expected a variable of that name")
    if found["cell_origin"] is not None:
        positions = shifted(positions, found["cell_origin"])
        metadata["origin"] = plain(found["cell_origin"])
    cell, velocities = _cell(lengths, angles), found["velocities"]
    return particles(positions, cell, box, velocities, metadata=metadata, images=Images.ANY, wrap=wrap)


def _read(source: Source, dataset: Any, name: str, frame: int, scaled: bool | None) -> np.ndarray | None:
    if name not in dataset.variables:
        return None
    variable = dataset[name]
    source.require_room(name, variable.dtype.itemsize * math.prod(variable.shape[1:]))
    return cf.unpacked(variable[frame], {key: variable.getncattr(key) for key in variable.ncattrs()}, scaled)


def _cell(lengths: np.ndarray | None, angles: np.ndarray | None) -> Cell | None:
    if lengths is None:
        return None
    if angles is None or not lengths.all():
        return Cell(tuple(lengths.tolist()))
    return Cell.of_edges(edges_of(lengths, angles))


def _metadata(dataset: Any, frame: int, frames: int, scaled: bool | None) -> dict[str, Any]:
    described = {
        name: {key: plain(dataset[name].getncattr(key)) for key in dataset[name].ncattrs()}
        for name in ("time", "coordinates", "velocities", "cell_lengths")
        if name in dataset.variables
    }
    return {
        "format": "AMBER NetCDF trajectory",
        "frame": frame,
        "frames": frames,
        "time": plain(dataset["time"][frame]) if "time" in dataset.variables else None,
        "scaled": scaled is True,
        "units": described.get("coordinates", {}).get("units", "not stated; AMBER's convention is angstrom"),
        "attributes": described,
        "program": plain(getattr(dataset, "program", None)),
    }


def _recognises(source: Source) -> bool:
    if not netcdf.is_netcdf(source):
        return False
    with netcdf.opened(source) as dataset:
        return "AMBER" in str(getattr(dataset, "Conventions", ""))


AMBER = Format("amber", "AMBER NetCDF trajectory", _recognises, read)
