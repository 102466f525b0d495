"""AMBER trajectories: NetCDF files with coordinates, velocities and cells by frame.

They are read by the NetCDF library itself. The usual trajectory libraries require units that these files need not state
(the tests have two files that they refuse) and apply scale factors in their own way. Here, as for other floats in NetCDF,
coordinates are returned as stored; `scaled=True` applies the scale factors of the file to coordinates, velocities and
cell, which then are float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers import cf, netcdf
from workbench.data.readers.format import Format
from workbench.data.readers.frames import trajectory as all_frames
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import named, noted, other_frames
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles, shifted
from workbench.data.readers.source import Source, plain
from workbench.data.trajectory import ARRAYS, Frames, Trajectory
from workbench.data.triclinic import edges_of
from workbench.errors import WorkbenchError

LABELS = ("spatial", "cell_spatial", "cell_angular")   # names of axes
OF_ARRAYS = {"positions": "coordinates", "velocities": "velocities", "origins": "cell_origin", "times": "time"}
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


def _read(source: Source, dataset: Any, name: str, frame: int | slice, scaled: bool | None) -> np.ndarray | None:
    if name not in dataset.variables:
        return None
    variable = dataset[name]
    frames = frame.stop - frame.start if isinstance(frame, slice) else 1
    source.require_room(name, frames * variable.dtype.itemsize * math.prod(variable.shape[1:]))
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


class AmberFrames(Frames):
    """The frames of a file, as they are stored or with their scale factors."""

    def __init__(self, source: Source, scaled: bool | None) -> None:
        self.source, self.scaled = source, scaled
        with netcdf.opened(source) as dataset:
            self.count, first = len(dataset.dimensions["frame"]), self._found(dataset, 0, 1, ARRAYS)
        if "positions" not in first:
            raise WorkbenchError(f"{source.name} has no coordinates: expected a variable of that name")
        self.arrays = {name: (array.shape[1:], array.dtype) for name, array in first.items()}

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`."""
        with netcdf.opened(self.source) as dataset:
            return self._found(dataset, begin, end, names)

    def _found(self, dataset: Any, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        span, found = slice(begin, end), {}
        for name, variable in OF_ARRAYS.items():
            if name in names and (values := _read(self.source, dataset, variable, span, self.scaled)) is not None:
                found[name] = np.ascontiguousarray(values)
        lengths = _read(self.source, dataset, "cell_lengths", span, self.scaled) if "cells" in names else None
        if lengths is not None:
            angles = _read(self.source, dataset, "cell_angles", span, self.scaled)
            right = np.full_like(lengths, 90.0) if angles is None else angles
            found["cells"] = np.concatenate([lengths, right], axis=1)
        return found


def trajectory(source: Source, *, scaled: bool | None = None) -> Trajectory:
    """All frames, as stored unless they are to be scaled."""
    with netcdf.opened(source) as dataset:
        described = _metadata(dataset, 0, 0, scaled)
        others = named("variable", set(dataset.variables) - READ)
    frames = AmberFrames(source, scaled)
    metadata = {name: entry for name, entry in described.items() if name not in ("frame", "time")}
    return all_frames(frames, {}, {**metadata, "frames": frames.count}, others)


def _recognises(source: Source) -> bool:
    if not netcdf.is_netcdf(source):
        return False
    with netcdf.opened(source) as dataset:
        return "AMBER" in str(getattr(dataset, "Conventions", ""))


AMBER = Format("amber", "AMBER NetCDF trajectory", _recognises, read, trajectory=trajectory)
