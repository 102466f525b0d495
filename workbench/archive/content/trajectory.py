"""A trajectory: frames of the same atoms, with cells, times and the columns of the atoms beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive import checks
from workbench.archive import region as regions
from workbench.archive.archive import Archive
from workbench.archive.certificate import Promise
from workbench.archive.checks import Inspected
from workbench.archive.content.consistency import type_and_shape, wrong_array
from workbench.archive.content.content import Content, Ends
from workbench.archive.frame import Damaged, as_source
from workbench.archive.layout import ArrayLayout
from workbench.archive.reading import StoredArray
from workbench.archive.request import Compression, Request, require_about
from workbench.archive.salvage import salvage
from workbench.archive.trajectories import (
    ATOM,
    AXES,
    bits_per_atom,
    compress_trajectory,
    labels_of,
    limit_for,
    token_for,
)
from workbench.archive.verify import Examination, decoded
from workbench.backend import Array
from workbench.codecs.portable import Portable
from workbench.data.readers import open_trajectory
from workbench.data.readers.leaving import left_out
from workbench.data.trajectory import ARRAYS, OF_ATOMS, POSITIONS, Frames, InMemory, Trajectory
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import PerSlice
from workbench.subdomains.sources import scratch_folder

ONE_FRAME = "give frame=... for one frame as particles"


class TrajectoryExamination(Examination):
    """The verification of a trajectory: the original is read by blocks of frames."""

    def arrays(self) -> dict[str, Inspected]:
        """The findings in each array."""
        if self.given is None:
            return super().arrays()
        found, original = {}, CONTENT.arrays(self.given)
        for name, stored in self.archive.arrays.items():
            promise, values = None, original.get(name)
            if values is not None:
                promise = self.archive.certificate[name]
                checks.require_shape(stored.layout, values.shape, values.dtype)
                self._require_same_limit(promise, name)
            shared = stored, promise, values
            items, together = range(stored.layout.chunk_grid[0]), not stored.decoder.holds_gil
            pieces = self.executor.map(f"examine-{name}", _rows, items, "block", shared=shared, together=together)
            found[name] = Inspected.joined(pieces)
        own, given = self.archive.attributes["labels"], labels_of(self.given)
        if any(own[name] != words for name, words in given.items() if name in own):
            raise GuaranteeBroken("the atoms of the original have other names: is this the topology that was given?")
        return found

    def _require_same_limit(self, promise: Promise, name: str) -> None:
        if promise.bound is not None:
            checks.require_same_limit(promise, limit_for(self.given, name, promise.bound, self.executor))


def _rows(shared: tuple[StoredArray, Promise | None, Any], block: int) -> Inspected:
    """The findings in the chunks of some frames, of which the original is read once."""
    stored, promise, values = shared
    layout, found = stored.layout, Inspected()
    rest = (0,) * (len(layout.shape) - 2)
    indices = [(block, *piece, *rest) for piece in ([()] if len(layout.shape) == 1 else np.ndindex(layout.chunk_grid[1]))]
    original = None if values is None else values[layout.chunk_slices(indices[0])[0]]
    for index in indices:
        here, of_chunk = decoded(stored, index)
        if here is not None and original is not None and promise is not None:
            place = layout.chunk_slices(index)
            own = original[(slice(None), *place[1:])]
            of_chunk += checks.compared(layout.chunk_key(index), here, own, promise.limit_at(place))
        found += of_chunk
    return found


@dataclass(frozen=True)
class Stored:
    """An array of a trajectory that is read where it is asked for."""

    trajectory: Trajectory
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, and what each has."""
        return len(self.trajectory), *self.trajectory.arrays[self.name][0]

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.trajectory.arrays[self.name][1]

    def __getitem__(self, frames: slice) -> np.ndarray:
        return self.trajectory.read(frames.start, frames.stop, (self.name,))[self.name]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self[slice(0, len(self.trajectory))]
        return found if dtype is None else found.astype(dtype)


class ArchivedFrames(Frames):
    """The frames of an archive, decoded where they are read; the chunks that were read last are kept."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._stored = {name: archive.arrays[name] for name in ARRAYS if name in archive.arrays}
        self.count, self.together = len(archive), archive.data.layout.chunk_shape[0]
        self.arrays = {name: (one.layout.shape[1:], one.layout.dtype) for name, one in self._stored.items()}

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`."""
        with as_source(self.archive.store.name):
            return {name: self._part(name, begin, end) for name in names}

    def _part(self, name: str, begin: int, end: int) -> np.ndarray:
        stored = self._stored[name]
        if name not in OF_ATOMS:
            return self.archive.whole(name)[begin:end]
        return regions.grid_part(stored, (slice(begin, end), *(slice(0, size) for size in stored.layout.shape[1:])))


class TrajectoryContent(Content):
    """What an archive knows of a trajectory."""

    kind, words = "trajectory", "a trajectory"
    data, beside = POSITIONS, ARRAYS[1:]
    classes = (Trajectory,)
    told = ("times", "cell")
    examination = TrajectoryExamination

    def require(self, request: Request) -> None:
        if isinstance(request.codec, Portable):
            raise WorkbenchError("profile='portable' is for fields and datasets of them; got a trajectory: leave it out")
        if request.store_permutation or request.order == "free":
            raise WorkbenchError(f"store_permutation and order='free' are for particles; got a trajectory: {ONE_FRAME}")
        if request.columns:
            raise WorkbenchError("columns bounds the columns of particles; those of the atoms of a trajectory are exact")
        if request.keep:
            require_about(self.kind, request.keep)
        if isinstance(request.bound, PerSlice):
            raise WorkbenchError(f"wb.PerSlice is for fields; got {request.bound!r} for a trajectory: give one bound")

    def compressed(self, call: Compression) -> Archive:
        trajectory: Trajectory = call.data
        request = replace(call.request, bound=call.request.bound.for_data(trajectory))
        with scratch_folder(call.scratch, call.executor) as folder, call.place(token_for(trajectory, request)) as place:
            return compress_trajectory(trajectory, call.metadata, request, place, call.executor.within(folder))

    # Description.

    def contradiction(self, attributes: Mapping[str, Any], layouts: Mapping[str, ArrayLayout], damaged: bool) -> str | None:
        positions, labels = layouts[POSITIONS], attributes.get("labels")
        shape = positions.shape
        if len(shape) != 3 or shape[2] != 3 or positions.dtype.kind != "f":
            return f"the positions of a trajectory are floats of shape (frames, atoms, 3); got {type_and_shape(positions)}"
        if positions.chunk_shape[2] != 3:
            return "a chunk of positions must hold all coordinates of its atoms"
        cells = layouts.get("cells")
        of_cells = (shape[0], 6) if cells is not None and len(cells.shape) == 2 else (shape[0], 3, 3)
        if not isinstance(labels, Mapping) or not all(map(_is_text, labels.values())):
            return f"labels must map columns of atoms to text; got {labels!r:.80}"
        columns = {name: one for name, one in layouts.items() if name.startswith(ATOM)}
        strangers = set(layouts) - {*ARRAYS, *columns}
        if missing := [name for name in labels if ATOM + name not in columns and not damaged]:
            return f"there are labels of {missing[0]!r}, but no such column of atoms"
        return (
            wrong_array(layouts.get("velocities"), shape, "f")
            or wrong_array(layouts.get("images"), shape, "iu")
            or wrong_array(cells, of_cells, "f")
            or wrong_array(layouts.get("origins"), (shape[0], 3), "f")
            or wrong_array(layouts.get("times"), shape[:1], "fiu")
            or wrong_array(layouts.get("steps"), shape[:1], "iu")
            or next((wrong for one in columns.values() if (wrong := wrong_array(one, shape[1:2], "fiu"))), None)
            or (f"a trajectory has no array {min(strangers)!r}" if strangers else None)
        )

    def axes(self, layout: ArrayLayout, about: Mapping[str, Any]) -> tuple[str, ...]:
        if layout.name.startswith(ATOM):
            return AXES[1:2]
        others = {"cells": ("edge", "axis") if len(layout.shape) == 3 else ("parameter",), "origins": ("axis",)}
        return (AXES[0], *(AXES[1:] if layout.name in OF_ATOMS else others.get(layout.name, ())))

    def data_names(self, layouts: Mapping[str, ArrayLayout]) -> tuple[str, ...]:
        return (self.data, *self.beside, *(name for name in layouts if name.startswith(ATOM)))

    # Decoding.

    def assembled(self, archive: Archive, arrays: Mapping[str, np.ndarray]) -> Trajectory:
        frames = InMemory({name: backend.read_only(arrays[name]) for name in ARRAYS if name in arrays})
        columns = {name: values for name, values in arrays.items() if name.startswith(ATOM)}
        return Trajectory.of(frames, _labelled(archive, columns), archive.attributes.get("metadata"))

    def source(self, archive: Archive) -> Trajectory:
        columns = {name: archive.whole(name) for name in archive.arrays if name.startswith(ATOM)}
        return Trajectory.of(ArchivedFrames(archive), _labelled(archive, columns), archive.attributes.get("metadata"))

    def read(self, archive: Archive, region: Any) -> Trajectory:
        """The frames and atoms of a pair; both may be slices or None, and atoms indices, a mask or names."""
        frames, atoms = region if isinstance(region, tuple) and len(region) == 2 else (region, None)
        whole = self.source(archive)
        if frames is not None:
            whole = whole[slice(*frames) if isinstance(frames, tuple | list) else frames]
        return (whole if atoms is None else whole.select(atoms)).loaded()

    def region(self, ends: Ends) -> Any:
        raise WorkbenchError("a trajectory has no regions of space: choose frames and atoms")

    def salvaged(self, archive: Archive) -> tuple[Trajectory, list[Damaged]]:
        of_atoms = {name: archive.arrays[name] for name in OF_ATOMS if name in archive.arrays}
        values, gone, damage = salvage(of_atoms, 1, POSITIONS)
        found = {name: whole[~gone] for name, whole in values.items()}
        for name, stored in archive.data_arrays.items():
            if name in OF_ATOMS:
                continue
            lost = stored.damage()
            damage = [*damage, *lost]
            if not lost:
                found[name] = stored.values() if name.startswith(ATOM) else stored.values()[~gone]
        return self.assembled(archive, found), damage

    def lost(self, archive: Archive, data: Any, damage: Sequence[Damaged]) -> int:
        return len(archive) - len(data)

    # Verifying.

    def original(self, given: Any) -> Any:
        if isinstance(given, str | os.PathLike):
            given = open_trajectory(given)
        return super().original(given)

    def arrays(self, data: Trajectory) -> dict[str, Array]:
        columns = {ATOM + name: np.asarray(column) for name, column in data.atoms.items()}
        numbers = {name: np.unique(one, return_inverse=True)[1].astype(np.int32) for name, one in columns.items()
                   if one.dtype.kind == "U"}
        return {**{name: Stored(data, name) for name in data.arrays}, **columns, **numbers}

    # Words and files.

    def exported(self, data: Trajectory) -> dict[str, Any]:
        columns = {ATOM + name: column for name, column in data.atoms.items()}
        return {**{name: Stored(data, name) for name in data.arrays}, **columns}

    def summary(self, data: Trajectory) -> dict[str, Any]:
        times, edges = data.times, data[0].edges()
        found: dict[str, Any] = {"frames": len(data), "atoms": data.n_atoms, "dtype": str(data.dtype)}
        if times is not None:
            found["times"] = [float(times[0]), float(times[-1])]
        if edges is not None:
            cells = data.cells
            changes = cells is not None and bool((cells != cells[0]).any())
            found |= {"cell": edges[0].tolist(), "cell_changes": changes}
        return {
            **found, "arrays": list(data.arrays), "columns_of_atoms": list(data.atoms), "left_out": left_out(data),
        }

    def scale(self, data: Trajectory) -> tuple[dict[str, Any], np.ndarray]:
        positions = data.read(0, 1, (POSITIONS,))[POSITIONS]
        ends = np.array([positions.min(), positions.max()])
        return {"frames": len(data), "atoms": data.n_atoms, "first_frame_from": ends[0], "to": ends[1]}, ends

    def figures(self, archive: Archive) -> dict[str, float]:
        return {"bits_per_atom_and_frame": bits_per_atom(archive)}

    def size(self, archive: Archive) -> str:
        frames, atoms, _ = archive.data.layout.shape
        return f"trajectory of {frames:,} frames of {atoms:,} atoms"


CONTENT = TRAJECTORY = TrajectoryContent()


def _labelled(archive: Archive, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of atoms by their own names, numbers of labels as text."""
    labels, found = archive.attributes["labels"], {}
    for key, values in columns.items():
        name = key.removeprefix(ATOM)
        if name in labels:
            words = np.array(labels[name])
            if values.size and not (values.min() >= 0 and values.max() < len(words)):
                raise Damaged(key, f"the column {name} of atoms has numbers beyond its {len(words)} labels")
            values = words[values]
        found[name] = values
    return found


def _is_text(entry: Any) -> bool:
    return isinstance(entry, list) and bool(entry) and all(isinstance(one, str) for one in entry)
