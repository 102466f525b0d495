"""Trajectories of molecular dynamics: the same atoms at many times, read by frames and never all at once.

What a frame holds is as its file has it: positions are neither wrapped nor unwrapped, cells are edges or lengths and
angles, times keep their type. So a difference between two trajectories is a plain difference of coordinates. Where the
frames are (a file, an archive, memory) is known to `Frames` alone.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from workbench import backend
from workbench.data.particles import Particles
from workbench.data.summary_html import summary
from workbench.data.taking import as_array, taken
from workbench.data.triclinic import edges_of, is_triclinic, kept_cell
from workbench.errors import WorkbenchError, briefly

POSITIONS = "positions"
OF_ATOMS = (POSITIONS, "velocities", "images")             # a row for each atom
ARRAYS = (*OF_ATOMS, "cells", "origins", "times", "steps")   # all that frames may have
NAMED = ("name", "element", "type")   # the columns of atoms by which they are chosen
MOST_NAMES = 12   # that a message lists

Frame = tuple[tuple[int, ...], np.dtype]   # the shape and type of an array in one frame


class Frames(ABC):
    """Where the frames of a trajectory are: how many, which arrays each has, and how to read some of them.

    It can be pickled, for workers that read parts.
    """

    count: int
    arrays: Mapping[str, Frame]
    in_memory: ClassVar[bool] = False
    together: int = 16   # frames that are best read at once

    @abstractmethod
    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`, frames along the first axis."""


class InMemory(Frames):
    """Frames that are arrays."""

    in_memory: ClassVar[bool] = True

    def __init__(self, values: Mapping[str, np.ndarray]) -> None:
        self.values, self.count = values, len(values[POSITIONS])
        self.arrays = {name: (array.shape[1:], array.dtype) for name, array in values.items()}

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Views of the arrays."""
        return {name: self.values[name][begin:end] for name in names}


class Trajectory:
    """Frames of the same atoms: positions of shape (frames, atoms, 3), and what else there is of them.

    `cells` are edges as rows (frames, 3, 3) or lengths and angles in degrees (frames, 6); `images` are integers that count
    the periods a wrapped atom has crossed; `origins` is the low corner of each cell, where a file has one. `atoms` are
    columns such as "name", "element", "residue", "residue_name", "type", "id", "mass" and "charge". All may be missing.
    `wb.open_trajectory` opens one that stays in its file. Slices are trajectories, too, and read nothing; the arrays are
    read when they are asked for.

    >>> walk = Trajectory(np.zeros((5, 2, 3)), times=np.arange(5.0), atoms={"name": ["C", "O"]}, metadata={"units": "nm"})
    >>> walk
    Trajectory(5 frames of 2 atoms, float64, times)
    >>> walk[1:3].times.tolist(), walk.select("O").positions.shape
    ([1.0, 2.0], (5, 1, 3))
    """

    def __init__(
        self,
        positions: Any,
        cells: Any = None,
        times: Any = None,
        steps: Any = None,
        velocities: Any = None,
        images: Any = None,
        origins: Any = None,
        atoms: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        given = {
            POSITIONS: positions, "velocities": velocities, "images": images, "cells": cells, "origins": origins,
            "times": times, "steps": steps,
        }
        arrays = {name: backend.to_host(as_array(name, array)) for name, array in given.items() if array is not None}
        _require(arrays)
        self._set(InMemory({name: taken(array) for name, array in arrays.items()}), atoms or {}, metadata or {})

    @classmethod
    def of(cls, frames: Frames, atoms: Mapping[str, Any] | None = None, metadata: Mapping[str, Any] | None = None) -> Self:
        """The trajectory of frames that are somewhere else."""
        made = cls.__new__(cls)
        made._set(frames, atoms or {}, metadata or {})
        return made

    def _set(self, frames: Frames, atoms: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        self.frames, self.metadata = frames, metadata
        self._span, self._chosen = range(frames.count), None   # type: range, np.ndarray | None
        self.atoms = _columns(atoms, frames.arrays[POSITIONS][0][0])

    # What there is.

    def __len__(self) -> int:
        return len(self._span)

    @property
    def n_frames(self) -> int:
        """The number of frames."""
        return len(self._span)

    @property
    def n_atoms(self) -> int:
        """The number of atoms in each frame."""
        return int(self.frames.arrays[POSITIONS][0][0]) if self._chosen is None else len(self._chosen)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Frames, atoms and axes."""
        return self.n_frames, self.n_atoms, 3

    @property
    def dtype(self) -> np.dtype:
        """The type of the positions."""
        return self.frames.arrays[POSITIONS][1]

    @property
    def arrays(self) -> dict[str, Frame]:
        """The shape and type of each array that a frame has, by name."""
        chosen = {name: self.frames.arrays[name] for name in ARRAYS if name in self.frames.arrays}
        return {
            name: ((self.n_atoms, *shape[1:]) if name in OF_ATOMS else shape, dtype)
            for name, (shape, dtype) in chosen.items()
        }

    @property
    def in_memory(self) -> bool:
        """Whether nothing has to be read from a file."""
        return self.frames.in_memory

    # Parts.

    def __getitem__(self, frames: int | slice) -> Trajectory:
        """Some of the frames; one alone is a trajectory of one frame."""
        if isinstance(frames, slice):
            if frames.step is not None and frames.step == 0:
                raise WorkbenchError("frames must be every 1st, 2nd, ... one; got a slice whose step is 0")
            if not (span := self._span[frames]):
                wanted = ":".join("" if end is None else str(end) for end in (frames.start, frames.stop))
                raise WorkbenchError(f"frames must be among 0 to {len(self) - 1}, and at least one frame; got {wanted}")
            return self._part(span, self._chosen, self.atoms)
        try:
            at = self._span[operator.index(frames)]
        except TypeError:
            raise WorkbenchError(f"frames are a number or a slice, as trajectory[10:20]; got {briefly(frames)}") from None
        except IndexError:
            raise WorkbenchError(f"frame must be between 0 and {len(self) - 1}; got {frames}") from None
        return self._part(range(at, at + 1), self._chosen, self.atoms)

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[number] for number in range(len(self)))

    def select(self, atoms: Any) -> Trajectory:
        """Some of the atoms: by index, by a mask, or by name, such as "CA" or ["C", "O"]."""
        index = self._indices(atoms)
        columns = {name: column[index] for name, column in self.atoms.items()}
        return self._part(self._span, index if self._chosen is None else self._chosen[index], columns)

    def _part(self, span: range, chosen: np.ndarray | None, atoms: dict[str, np.ndarray]) -> Trajectory:
        part = type(self).__new__(type(self))
        part.frames, part.metadata, part.atoms, part._span, part._chosen = self.frames, self.metadata, atoms, span, chosen
        return part

    def _indices(self, atoms: Any) -> np.ndarray:
        names = [atoms] if isinstance(atoms, str) else atoms
        if isinstance(names, Sequence) and names and all(isinstance(one, str) for one in names):
            column = next((self.atoms[key] for key in NAMED if key in self.atoms), None)
            if column is None:
                raise WorkbenchError(
                    "the atoms of this trajectory have no names: choose them by index, such as 0 and 5, or name them by a "
                    "topology, such as conf.gro, when the file is opened or compressed"
                )
            known = set(column.tolist())
            if missing := [one for one in names if one not in known]:
                listed, more = ", ".join(map(str, sorted(known, key=str)[:MOST_NAMES])), len(known) - MOST_NAMES
                others = f" and {more} others" if more > 0 else ""
                raise WorkbenchError(f"no atom is named {missing[0]!r}; there are {listed}{others}")
            return np.flatnonzero(np.isin(column, names))
        index = np.arange(self.n_atoms)[atoms] if isinstance(atoms, slice) else np.atleast_1d(np.asarray(atoms))
        if index.dtype == bool and index.shape == (self.n_atoms,):
            index = np.flatnonzero(index)
        inside = index.ndim == 1 and index.dtype.kind in "iu" and index.size > 0
        if not inside or index.min() < 0 or index.max() >= self.n_atoms:
            raise WorkbenchError(
                f"atoms must be indices from 0 to {self.n_atoms - 1}, a mask, or names; got {briefly(atoms)}"
            )
        return index.astype(np.int64)

    # Values.

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`, as they are in the file."""
        span = self._span[begin:end]
        low, high = min(span[0], span[-1]), max(span[0], span[-1]) + 1
        found = self.frames.read(low, high, names)
        if (span.start, span.step) != (low, 1):
            place = np.asarray(span) - low
            found = {name: array[place] for name, array in found.items()}
        if self._chosen is not None:
            found = {name: array[:, self._chosen] if name in OF_ATOMS else array for name, array in found.items()}
        return found

    def blocks(self, frames: int | None = None) -> Iterator[Trajectory]:
        """The trajectory in parts of so many frames, each in memory; by default as many as are best read together."""
        several = frames or self.frames.together
        aligned = frames is None and self._span.step == 1
        first = several - self._span.start % several if aligned else several
        starts = [0, *range(first, len(self), several)]
        return (self[begin:end].loaded() for begin, end in zip(starts, [*starts[1:], len(self)], strict=True))

    def loaded(self) -> Trajectory:
        """The same in memory."""
        return Trajectory.of(InMemory(self.read(0, len(self), tuple(self.arrays))), self.atoms, self.metadata)

    def _whole(self, name: str) -> Any:
        return self.read(0, len(self), (name,))[name] if name in self.arrays else None

    @property
    def positions(self) -> np.ndarray:
        """The positions of all frames, (frames, atoms, 3); of a few, `trajectory[10:20].positions`."""
        found: np.ndarray = self._whole(POSITIONS)
        return found

    @property
    def velocities(self) -> np.ndarray | None:
        """The velocities of all frames, if there are any."""
        return self._whole("velocities")

    @property
    def images(self) -> np.ndarray | None:
        """How many periods each atom has crossed, if the file counts them."""
        return self._whole("images")

    @property
    def cells(self) -> np.ndarray | None:
        """The cell of each frame: edges (frames, 3, 3), or lengths and angles (frames, 6)."""
        return self._whole("cells")

    @property
    def origins(self) -> np.ndarray | None:
        """The low corner of the cell in each frame, where a file has one."""
        return self._whole("origins")

    @property
    def times(self) -> np.ndarray | None:
        """The time of each frame."""
        return self._whole("times")

    @property
    def steps(self) -> np.ndarray | None:
        """The step of the simulation in each frame."""
        return self._whole("steps")

    def edges(self) -> np.ndarray | None:
        """The edges of the cell of each frame as rows, (frames, 3, 3) in float64.

        >>> Trajectory(np.zeros((1, 1, 3)), cells=[[2.0, 3.0, 4.0]]).edges()[0].diagonal().tolist()
        [2.0, 3.0, 4.0]
        """
        cells = self.cells
        return None if cells is None else as_edges(cells)

    def particles(self, frame: int, wrap: bool = False) -> Particles:
        """One frame as particles, in its box if that is rectangular; `wrap` brings all atoms into it."""
        one = self[frame].loaded()
        edges, positions = one.edges(), one.positions[0]
        box, metadata = None, dict(self.metadata)
        if edges is not None and is_triclinic(edges[0]):
            metadata |= kept_cell(edges[0], periodic=True)
        elif edges is not None and edges[0].diagonal().all():
            box = edges[0].diagonal().tolist()
        if one.origins is not None and box is not None:
            positions = (positions - one.origins[0]).astype(positions.dtype)
        velocities = None if one.velocities is None else one.velocities[0]
        make = Particles.wrapped if wrap and box is not None else Particles
        return make(positions, box, velocities, metadata=metadata)

    def __repr__(self) -> str:
        rest = [str(self.dtype), *(name for name in self.arrays if name != POSITIONS)]
        plural = "s" if len(self) != 1 else ""
        return f"Trajectory({len(self):,} frame{plural} of {self.n_atoms:,} atoms, {', '.join(rest)})"

    def _repr_html_(self) -> str:
        rows = {"frames": f"{len(self):,}", "atoms": f"{self.n_atoms:,}"}
        for name, (shape, dtype) in self.arrays.items():
            rows[name] = f"{dtype}, {' x '.join(map(str, shape)) or 'one'} a frame"
        rows["columns of atoms"] = ", ".join(self.atoms)
        return summary(repr(self), rows, self.metadata)


def as_edges(cells: np.ndarray) -> np.ndarray:
    """Cells of lengths and angles as edges; a length of zero is an axis without a period."""
    if cells.shape[1:] == (3, 3):
        return cells.astype(np.float64)
    found = np.zeros((len(cells), 3, 3))
    for edges, (*lengths, alpha, beta, gamma) in zip(found, cells.astype(np.float64).tolist(), strict=True):
        edges[:] = edges_of(lengths, (alpha, beta, gamma)) if all(lengths) else np.diag(lengths)
    return found


def _require(arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays that do not belong together; lengths of cells alone become edges."""
    positions = arrays[POSITIONS]
    if positions.ndim != 3 or positions.shape[2] != 3 or positions.dtype.name not in ("float32", "float64"):
        raise WorkbenchError(
            "positions must be float32 or float64 of shape (frames, atoms, 3); got "
            f"{positions.dtype} of shape {positions.shape}"
        )
    if not positions.size:
        raise WorkbenchError(f"a trajectory must have at least one frame and one atom; got the shape {positions.shape}")
    frames = len(positions)
    if "cells" in arrays and arrays["cells"].shape == (frames, 3):
        edges = np.zeros((frames, 3, 3), arrays["cells"].dtype)
        edges[:, range(3), range(3)] = arrays["cells"]
        arrays["cells"] = edges
    shapes: dict[str, tuple[tuple[int, ...], ...]] = {
        "velocities": (positions.shape,), "images": (positions.shape,), "cells": ((frames, 3, 3), (frames, 6)),
        "origins": ((frames, 3),), "times": ((frames,),), "steps": ((frames,),),
    }
    for name, allowed in shapes.items():
        if name not in arrays:
            continue
        if arrays[name].shape not in allowed:
            listed = " or ".join(map(str, allowed))
            raise WorkbenchError(f"{name} must have the shape {listed}; got {arrays[name].shape}")
        kinds = "iu" if name in ("images", "steps") else "f" if name in ("velocities", "cells", "origins") else "fiu"
        if arrays[name].dtype.kind not in kinds or arrays[name].dtype.itemsize not in (4, 8):
            raise WorkbenchError(
                f"{name} must be {'integers' if kinds == 'iu' else 'numbers'} of 32 or 64 bits; got {arrays[name].dtype}"
            )


def _columns(given: Mapping[str, Any], atoms: int) -> dict[str, np.ndarray]:
    """The columns of atoms: numbers or text, one for each."""
    columns = {name: np.asarray(column) for name, column in given.items()}
    for name, column in columns.items():
        if column.shape != (atoms,) or column.dtype.kind not in "iufU":
            raise WorkbenchError(
                f"the column {name!r} of atoms must be numbers or text, one for each of {atoms:,} atoms; got "
                f"{column.dtype} of shape {column.shape}"
            )
    return columns
