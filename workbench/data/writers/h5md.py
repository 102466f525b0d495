"""H5MD files: one group of particles in the unit and the precision of the trajectory, so that nothing is rounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.h5md import ELEMENTS, SPECIES, TYPE
from workbench.data.readers.libraries import library
from workbench.data.trajectory import Trajectory
from workbench.data.units import unit_of
from workbench.data.writers.written import Output, Written

GROUP = "particles/all"
TAKEN = {*ELEMENTS.values(), "box", SPECIES}   # names that a column cannot have


def write_h5md(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames; without steps, frames are counted, as the format needs steps."""
    h5py, begin = library("h5py", "HDF5 files"), 0
    columns = [name for name in trajectory.atoms if re.fullmatch(r"\w[\w .+-]*", name) and name not in TAKEN]
    output = Output(trajectory, "", ("velocities", "images", "cells", "times", "steps"), columns)
    with h5py.File(path, "w") as file:
        group = _described(file, trajectory)
        found = _elements(group, trajectory)
        for name in columns:
            _add_column(h5py, group, name, trajectory.atoms[name])
        for block in output.blocks():
            end = begin + len(block.positions)
            given = {
                "positions": block.positions, "velocities": block.velocities, "images": block.images,
                "cells": block.edges, "times": block.times,
                "steps": np.arange(begin, end) if block.steps is None else block.steps,
            }
            for name, data_set in found.items():
                data_set[begin:end] = given[name]
            output.cast(block.positions, trajectory.dtype)
            begin = end
    return output.done()


def _described(file: Any, trajectory: Trajectory) -> Any:
    """The group of particles, in a file that says what it is."""
    about = file.create_group("h5md")
    about.attrs["version"] = np.array([1, 1], np.int32)
    about.create_group("author").attrs["name"] = "not stated"
    about.create_group("creator").attrs.update({"name": "Lossbench", "version": "0"})
    about.create_group("modules/units").attrs["version"] = np.array([1, 0], np.int32)
    group = file.create_group(GROUP)
    first = trajectory[0].edges()
    periodic = np.zeros(3, bool) if first is None else first[0].any(axis=1)
    group.create_group("box").attrs["dimension"] = 3
    group["box"].attrs["boundary"] = ["periodic" if one else "none" for one in periodic]
    return group


def _elements(group: Any, trajectory: Trajectory) -> dict[str, Any]:
    """The data sets of all arrays; those of the same frames share steps and times."""
    units, count, found = _units(trajectory), len(trajectory), {}
    position = group.create_group("position")
    found["steps"] = position.create_dataset("step", (count,), np.int64)
    if "times" in trajectory.arrays:
        found["times"] = position.create_dataset("time", (count,), trajectory.arrays["times"][1])
    for name, element in {**ELEMENTS, "cells": "box/edges"}.items():
        if name not in trajectory.arrays:
            continue
        own = group.require_group(element)
        for shared in ("step", "time"):
            if shared in position and shared not in own:
                own[shared] = position[shared]   # the same data set
        shape, dtype = trajectory.arrays[name]
        if name == "cells" and shape != (3, 3):   # lengths and angles
            shape, dtype = (3, 3), np.dtype(np.float64)
        found[name] = own.create_dataset("value", (count, *shape), dtype)
    for name, of in {"positions": "length", "cells": "length", "velocities": "velocity", "times": "time"}.items():
        if name in found and units.get(of):
            found[name].attrs["unit"] = units[of]
    return found


def _units(trajectory: Trajectory) -> dict[str, str]:
    """Those that are stated, as other programs expect them: nm/ps as nm ps-1, and angstrom with a capital."""
    stated = trajectory.metadata.get("units")
    known = {"length": unit_of(trajectory)}
    if isinstance(stated, Mapping):
        known |= {key: stated[key] for key in ("time", "velocity") if isinstance(stated.get(key), str)}
    spelled = {key: re.sub(r"^([^\W\d]+)/([^\W\d]+)$", r"\1 \2-1", unit) for key, unit in known.items()}
    return {key: re.sub(r"^angstrom\b", "Angstrom", unit) for key, unit in spelled.items()}


def _add_column(h5py: Any, group: Any, name: str, column: np.ndarray) -> None:
    """A column of numbers or words; types that are whole numbers are species."""
    if column.dtype.kind != "U":
        group[SPECIES if name == TYPE and column.dtype.kind in "iu" else name] = column
        return
    words = np.char.encode(column, "utf-8")
    group.create_dataset(name, data=words.astype(h5py.string_dtype("utf-8", max(words.dtype.itemsize, 1))))
