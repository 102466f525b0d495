"""H5MD, the layout of HDF5 for molecular dynamics (version 1.1): groups of particles, with their elements and their box.

Elements that are sampled at other steps than positions have no place in frames: such a box is refused, others are left out.
Ids by frame say that particles change places; each frame then has the order of the first one. Files differ in what else
they keep of particles: all that is one number or word for each, and stays, is a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers import hdf5
from workbench.data.readers.format import Format
from workbench.data.readers.frames import trajectory as all_frames
from workbench.data.readers.h5md_elements import Element
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import named, noted, other_frames
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source, plain
from workbench.data.trajectory import OF_ATOMS, Frame, Frames, Trajectory
from workbench.errors import WorkbenchError

ELEMENTS = {"positions": "position", "velocities": "velocity", "images": "image"}
KINDS = {"positions": "f", "velocities": "f", "images": "iu"}   # of their numbers
OF_STEPS = {"times": "time", "steps": "step"}
SPECIES, TYPE = "species", "type"   # H5MD's name of the column, and ours
ANGSTROM = {"A": "angstrom"}        # in lengths; elsewhere an ampere


class H5mdFrames(Frames):
    """The frames of a group of particles."""

    def __init__(self, source: Source, name: str | None) -> None:
        self.source = source
        self.arrays: dict[str, Frame] = {}
        with hdf5.opened(source) as file:
            self.group = _chosen_group(source, file, name)
            group = file["particles"][self.group]
            position = self._position(group)
            self.count = position.count()
            self.arrays["positions"] = position.frame
            self.left_out = self._keep_elements(group, position)
            self.periodic = self._keep_cells(group, position)
            self.ids, self.atoms, others = self._columns(group, position)
            self.metadata = _metadata(file, group, self.group, position)
            groups = {f"particles/{one}" for one in file["particles"] if one != self.group} | {"observables"} & set(file)
        if rest := len(position.values) - self.count if position.by_frame else 0:
            self.left_out.append(f"{rest:,} frames at the end, of which no step or time is stated")
        self.left_out += [*named("element", others), *named("group", groups)]

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`."""
        with hdf5.opened(self.source) as file:
            group = file["particles"][self.group]
            found = {name: self._read(group, name, begin, end) for name in names}
            if self.ids is None:
                return found
            order = self._order(self._element(group, "id").rows(begin, end), begin)
        return {
            name: np.take_along_axis(array, order[..., None], 1) if name in OF_ATOMS else array
            for name, array in found.items()
        }

    def _element(self, group: Any, name: str) -> Element:
        found = Element.of(self.source, group.get(name))
        if found is None:
            raise self.source.damaged(f"particles/{self.group}/{name} must be a data set, or a group with one named value")
        return found

    def _position(self, group: Any) -> Element:
        found = self._element(group, "position")
        if len(found.row) != 2 or found.values.dtype.name not in ("float32", "float64") or not found.values.size:
            raise WorkbenchError(
                f"positions of particles/{self.group} in {self.source.name} must be float32 or float64 of shape (frames, "
                f"atoms, axes); got {found.values.dtype} of shape {found.values.shape}"
            )
        if not found.count():
            raise self.source.damaged("positions have no steps or no times")
        return found

    def _keep_elements(self, group: Any, position: Element) -> list[str]:
        """Add velocities, images, times and steps; returns what cannot be added."""
        left = []
        for name in ("velocities", "images"):
            element = Element.of(self.source, group.get(ELEMENTS[name]))
            if element is None:
                continue
            if not element.is_with(position, self.count):
                left.append(f"{name}, which are sampled at other steps than positions")
            elif element.row != position.row or element.values.dtype.kind not in KINDS[name]:
                left.append(f"{name} of type {element.values.dtype} and shape {element.values.shape}")
            else:
                self.arrays[name] = element.frame
        for name, of in OF_STEPS.items():
            stated = getattr(position, of)
            if stated is not None and stated.dtype.kind in ("iu" if of == "step" else "iuf"):
                dtype = position.numbers(stated, 1).dtype.newbyteorder("=")
                self.arrays[name] = (), dtype if dtype.itemsize in (4, 8) else np.dtype(f"{dtype.kind}8")
        return left

    def _keep_cells(self, group: Any, position: Element) -> list[bool]:
        """Add cells, if there are any; returns which axes are periodic."""
        axes, box = position.row[1], group.get("box")
        if box is None or (edges := Element.of(self.source, box.get("edges"))) is None:
            return []
        stated = plain(box.attrs["boundary"] if "boundary" in box.attrs else ["periodic"] * axes)
        flags = [stated] * axes if isinstance(stated, str) else stated
        periodic = [flag != "none" for flag in flags]
        if edges.row not in ((axes,), (axes, axes)) or edges.values.dtype.kind not in "iuf" or len(periodic) != axes:
            raise self.source.damaged(f"edges of a box along {axes} axes have the shape {edges.values.shape}")
        if not any(periodic):
            return periodic
        if edges.by_frame and not edges.is_with(position, self.count):
            raise WorkbenchError(
                f"the box of particles/{self.group} in {self.source.name} is given at other steps than positions: write it "
                "at the same steps, as H5MD demands"
            )
        known = edges.values.dtype.name in ("float32", "float64")
        self.arrays["cells"] = (axes, axes), edges.frame[1] if known else np.dtype(np.float64)
        return periodic

    def _columns(self, group: Any, position: Element) -> tuple[np.ndarray | None, dict[str, np.ndarray], set[str]]:
        """The ids of the first frame if particles change places; the columns of the atoms; the names of all else."""
        columns, others, ids = {}, set(), None
        for name in sorted(set(group) - {*ELEMENTS.values(), "box"}):
            element = Element.of(self.source, group[name])
            if element is None or element.row != position.row[:1]:
                others.add(name)
                continue
            stays = (not element.by_frame or element.is_with(position, self.count)) and element.is_constant(self.count)
            moves = name == "id" and not stays and element.is_with(position, self.count)
            column = element.column() if stays or moves else None
            if column is None:
                others.add(name)
                continue
            ids = column if moves else ids
            columns[TYPE if name == SPECIES and TYPE not in group else name] = _whole(name, column)
        return ids, columns, others

    def _order(self, ids: np.ndarray, begin: int) -> np.ndarray:
        """For each frame, where the particles of the first one are."""
        assert self.ids is not None
        order = np.empty(ids.shape, np.int64)
        order[:, np.argsort(self.ids, kind="stable")] = np.argsort(ids, axis=1, kind="stable")
        same = (np.take_along_axis(ids, order, 1) == self.ids).all(axis=1)
        if not same.all():
            frame = begin + int(np.argmin(same))
            raise WorkbenchError(
                f"the particles of frame {frame} of {self.source.name} are others than those of frame 0, by their ids: a "
                "trajectory has the same atoms in every frame"
            )
        return order

    def _read(self, group: Any, name: str, begin: int, end: int) -> np.ndarray:
        dtype = self.arrays[name][1]
        if name in OF_STEPS:
            position = self._element(group, "position")
            return position.numbers(getattr(position, OF_STEPS[name]), end)[begin:].astype(dtype)
        if name != "cells":
            return self._element(group, ELEMENTS[name]).rows(begin, end).astype(dtype, copy=False)
        edges = self._element(group["box"], "edges").rows(begin, end)
        if edges.ndim == 2:   # lengths
            edges = edges[:, :, None] * np.eye(edges.shape[1], dtype=edges.dtype)
        return np.where(np.array(self.periodic)[:, None], edges, 0).astype(dtype)


def _whole(name: str, column: np.ndarray) -> np.ndarray:
    """Species that are written as floats, as some programs do, as the integers that they are."""
    is_float = name == SPECIES and column.dtype.kind == "f"
    return column.astype(np.int64) if is_float and (column % 1 == 0).all() and (abs(column) < 2**31).all() else column


def _chosen_group(source: Source, file: Any, name: Any) -> str:
    """The group of particles that is named, or the only one."""
    there = [str(one) for one, group in file["particles"].items() if "position" in group]
    wanted = str(name).strip("/").removeprefix("particles/")
    if name is not None and wanted not in there:
        raise WorkbenchError(f"{source.name} has no group of particles {name!r}; it has {', '.join(there)}")
    if name is None and len(there) > 1:
        raise WorkbenchError(
            f"{source.name} has several groups of particles: choose one by name=...; it has {', '.join(there)}"
        )
    return there[0] if name is None else wanted


def _metadata(file: Any, group: Any, name: str, position: Element) -> dict[str, Any]:
    velocity = Element.of(position.source, group.get("velocity"))
    of = {"length": position.values, "time": position.time, "velocity": None if velocity is None else velocity.values}
    units = {key: plain(node.attrs["unit"]) for key, node in of.items() if node is not None and "unit" in node.attrs}
    if "length" in units:
        units["length"] = ANGSTROM.get(units["length"], units["length"])
    about = file["h5md"].get("creator")
    creator = hdf5.attributes(about) if about is not None else {}
    return {"format": "H5MD", "group": name, "units": units or "not stated", "creator": creator}


def read(
    source: Source, *, frame: int = 0, name: str | None = None, box: FileBox = FROM_FILE, wrap: bool = False
) -> Particles:
    """One frame of a group of particles, wrapped into [0, box)."""
    frames = H5mdFrames(source, name)
    at = chosen_frame(frame, frames.count)
    found = {name: values[0] for name, values in frames.read(at, at + 1, tuple(frames.arrays)).items()}
    cell = Cell.of_edges(found["cells"]) if "cells" in found else None
    stated = {of: found[name].item() for name, of in OF_STEPS.items() if name in found}
    kinds = {"id": "iu", "mass": "iuf"}
    used = {name: column for name, column in frames.atoms.items() if column.dtype.kind in kinds.get(name, "")}
    rest = [*named("column", set(frames.atoms) - set(used)), *(["images of the particles"] if "images" in found else [])]
    metadata = {**frames.metadata, "frame": at, "frames": frames.count, **stated}
    metadata = noted(metadata, other_frames(at, frames.count), rest, frames.left_out)
    own = found.get("velocities"), used.get("id")
    return particles(
        found["positions"], cell, box, *own, metadata, used.get("mass"), images=Images.ANY, wrap=wrap
    )


def trajectory(source: Source, *, name: str | None = None) -> Trajectory:
    """All frames of a group of particles, positions as in the file."""
    frames = H5mdFrames(source, name)
    if (axes := frames.arrays["positions"][0][1]) != 3:
        raise WorkbenchError(
            f"a trajectory has positions along three axes; {source.name} has {axes}: read single frames by "
            "wb.open(..., frame=...)"
        )
    metadata: Mapping[str, Any] = {**frames.metadata, "frames": frames.count}
    return all_frames(frames, frames.atoms, metadata, frames.left_out)


H5MD = Format("h5md", "H5MD trajectory", lambda source: hdf5.kind(source) == "h5md", read, trajectory=trajectory)
