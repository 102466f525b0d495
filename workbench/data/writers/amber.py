"""AMBER NetCDF trajectories, in the 64-bit offset format that all programs read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.libraries import library
from workbench.data.trajectory import Trajectory
from workbench.data.writers.written import Output, Written, six

UNITS = {
    "coordinates": "angstrom", "velocities": "angstrom/picosecond", "cell_lengths": "angstrom", "cell_angles": "degree",
    "cell_origin": "angstrom", "time": "picosecond",
}


def write_amber(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames, in ångströms unless the trajectory states other attributes, such as scale factors."""
    module = library("netCDF4", "NetCDF files")
    output = Output(trajectory, "angstrom", ("velocities", "cells", "origins", "times"), ())
    stated = trajectory.metadata.get("attributes")
    attributes = stated if isinstance(stated, Mapping) and output.factor == 1.0 else {}
    with module.Dataset(str(path), "w", format="NETCDF3_64BIT_OFFSET") as file:
        variables, begin = _variables(file, trajectory, attributes), 0
        for part, block in zip(trajectory.blocks(), output.blocks(), strict=True):
            end = begin + len(block.positions)
            found = {
                "coordinates": block.positions, "velocities": block.velocities, "cell_origin": block.origins,
                "time": block.times,
            }
            if part.cells is not None and block.edges is not None:
                as_stated = part.cells.shape[1:] == (6,) and output.factor == 1.0
                known = part.cells if as_stated else six(block.edges)
                found |= {"cell_lengths": known[:, :3], "cell_angles": known[:, 3:]}
            for name, values in found.items():
                if values is not None:
                    variables[name][begin:end] = values
            output.cast(block.positions, trajectory.dtype)
            begin = end
    return output.done()


def _variables(file: Any, trajectory: Trajectory, attributes: Mapping[str, Any]) -> dict[str, Any]:
    file.setncatts({"Conventions": "AMBER", "ConventionVersion": "1.0", "program": "Lossbench", "programVersion": "0"})
    for name, size in (("frame", None), ("spatial", 3), ("atom", trajectory.n_atoms), ("cell_spatial", 3), ("label", 5),
                       ("cell_angular", 3)):
        file.createDimension(name, size)
    file.createVariable("spatial", "S1", ("spatial",))[:] = np.array(list("xyz"), "S1")
    file.createVariable("cell_spatial", "S1", ("cell_spatial",))[:] = np.array(list("abc"), "S1")
    angles = np.array([list("alpha"), list("beta "), list("gamma")], "S1")
    file.createVariable("cell_angular", "S1", ("cell_angular", "label"))[:] = angles
    of_atoms = ("frame", "atom", "spatial")
    places: dict[str, dict[str, tuple[str, ...]]] = {
        "positions": {"coordinates": of_atoms}, "velocities": {"velocities": of_atoms},
        "cells": {"cell_lengths": ("frame", "cell_spatial"), "cell_angles": ("frame", "cell_angular")},
        "origins": {"cell_origin": ("frame", "spatial")}, "times": {"time": ("frame",)},
    }
    found = {}
    for array, of_array in places.items():
        if array not in trajectory.arrays:
            continue
        for name, dimensions in of_array.items():
            dtype = trajectory.arrays[array][1]
            kind = "f8" if dtype == np.float64 or dtype.kind in "iu" else "f4"
            found[name] = file.createVariable(name, kind, dimensions)
            found[name].set_auto_maskandscale(False)
            found[name].setncatts({"units": UNITS[name], **attributes.get(name, {})})
    return found
