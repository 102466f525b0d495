"""Options of readers: the array, the frame, and a box that replaces the file's own."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.data.particles import Box, Particles
from workbench.data.readers.images import Images, require_box_to_wrap, require_placed
from workbench.data.triclinic import is_triclinic, kept_cell
from workbench.errors import NoSuchPart, SeveralArrays, WorkbenchError

FileBox = Box | str
MOST_AXES = 4
FROM_FILE = "file"   # the default of `box=`; None already means an open space


@dataclass(frozen=True)
class Cell:
    """The cell of a simulation as the file states it; a length of 0 means not periodic along that axis.

    `edges` are those of a triclinic cell, one a row.
    """

    lengths: tuple[float, ...]
    edges: np.ndarray | None = None

    @classmethod
    def of_edges(cls, edges: Any) -> Cell:
        """The cell with these edges.

        >>> Cell.of_edges([[2.0, 0.0], [0.0, 3.0]]).box
        (2.0, 3.0)
        """
        rows = np.asarray(edges, np.float64)
        if not is_triclinic(rows):
            return cls(tuple(np.diag(rows).tolist()))
        return cls(tuple(np.linalg.norm(rows, axis=1).tolist()), rows)

    @property
    def box(self) -> tuple[float, ...] | None:
        """The box of `Particles`: rectangular and periodic along every axis, or along none; None for a triclinic cell.

        Partly periodic cells are an error, not an open space: without their periods, distances across faces and the
        clusters there would change silently.

        >>> Cell((10.0, 10.0, 0.0)).box
        Traceback (most recent call last):
        workbench.errors.WorkbenchError: the cell is periodic along some axes only (10 x 10 x 0)...
        """
        size = " x ".join(f"{length:g}" for length in self.lengths)
        advice = "pass box=None to read the positions in an open space, or box=(...) with the lengths to use"
        if not any(self.lengths):
            return None
        if not all(self.lengths):
            raise WorkbenchError(f"the cell is periodic along some axes only ({size}), which is not supported: {advice}")
        return self.lengths if self.edges is None else None


def particles(
    positions: Any,
    cell: Cell | None,
    box: FileBox,
    velocities: Any = None,
    ids: Any = None,
    metadata: Mapping[str, Any] | None = None,
    masses: Any = None,
    *,
    images: Images = Images.CORNER,
    wrap: bool = False,
    columns: Mapping[str, Any] | None = None,
) -> Particles:
    """Particles in the caller's box, else in the file's; `images.py` defines which positions are wrapped into it.

    A triclinic cell is kept in the metadata, and positions in it are as the file has them.

    The arrays belong to the reader alone, and are handed over. A box of the caller implies no periodic images.

    >>> particles([[-1.0, 2.0]], Cell((10.0, 10.0)), FROM_FILE, images=Images.ANY).positions.tolist()
    [[9.0, 2.0]]
    """
    chosen = chosen_box(cell, box)
    if cell is not None and cell.edges is not None:
        metadata = {**(metadata or {}), **kept_cell(cell.edges, isinstance(box, str) and any(cell.lengths))}
    if images is Images.ANY and not isinstance(box, str):
        images = Images.CORNER
    positions = backend.read_only(np.asarray(positions))
    velocities, ids, masses = (
        one if one is None or isinstance(one, float) else backend.read_only(np.asarray(one))
        for one in (velocities, ids, masses)
    )
    columns = {name: backend.read_only(np.asarray(array)) for name, array in (columns or {}).items()}
    if chosen is None:
        require_box_to_wrap(wrap)
    if chosen is None or positions.ndim != 2 or positions.shape[1] not in (2, 3):
        return Particles(positions, chosen, velocities, ids, metadata, masses, columns)
    told = require_placed(positions, checked_box(chosen, positions.shape[1]), images, wrap)
    place = Particles.wrapped if told else Particles
    return place(positions, chosen, velocities, ids, {**(metadata or {}), **told}, masses, columns)


def chosen_box(cell: Cell | None, box: FileBox) -> Box:
    """The caller's box, or the file's.

    >>> chosen_box(Cell((10.0, 10.0)), FROM_FILE), chosen_box(Cell((10.0, 10.0)), None)
    ((10.0, 10.0), None)
    """
    if not isinstance(box, str):
        return box
    if box != FROM_FILE:
        raise WorkbenchError(f"box must be None, a length, a length per axis, or {FROM_FILE!r}; got {box!r}")
    return None if cell is None else cell.box


def checked_box(box: Any, dimensions: int) -> tuple[float, ...]:
    """A length for each axis, positive and finite.

    >>> checked_box(2, dimensions=3)
    (2.0, 2.0, 2.0)
    """
    return Particles(np.zeros((1, dimensions)), box).box or ()


def shifted(positions: np.ndarray, origin: Sequence[float] | np.ndarray) -> np.ndarray:
    """Positions from the low corner of their box, in their own type.

    >>> shifted(np.array([[1.5, 2.0]], np.float32), [1.0, 2.0])
    array([[0.5, 0. ]], dtype=float32)
    """
    with np.errstate(over="ignore", invalid="ignore"):   # Particles refuses non-finite values
        return (positions - np.asarray(origin)).astype(positions.dtype)


def chosen_frame(frame: Any, frames: int | None = None) -> int:
    """The frame of a trajectory, counted from 0.

    >>> chosen_frame(3, frames=2)
    Traceback (most recent call last):
    workbench.errors.NoSuchPart: frame must be between 0 and 1; got 3
    """
    try:
        number = -1 if isinstance(frame, bool) else operator.index(frame)
    except TypeError:
        number = -1
    if number < 0 or (frames is not None and number >= frames):
        span = "a whole number from 0 on" if frames is None else f"between 0 and {frames - 1}"
        kind = WorkbenchError if frames is None or number < 0 else NoSuchPart
        raise kind(f"frame must be {span}; got {frame!r}")
    return number


def chosen_name(name: str | None, shapes: Mapping[str, tuple[int, ...]], what: str) -> str:
    """The array to read: the one named, the only one, or the only one with the most axes (of at least two).

    A name may leave out the groups in front when what remains is unique.

    >>> chosen_name(None, {"grid/rho": (8, 8, 8), "grid/x": (8,)}, "file")
    'grid/rho'
    >>> chosen_name("rho", {"grid/rho": (8, 8, 8), "grid/T": (8, 8, 8)}, "file")
    'grid/rho'
    """
    if not shapes:
        raise WorkbenchError(f"the {what} holds no array of numbers: nothing can be read as a field")
    listed = ", ".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    if name is None:
        most = max(map(len, shapes.values()))
        found = [key for key, shape in shapes.items() if len(shape) == most]
        if len(found) == 1 and (most > 1 or len(shapes) == 1):
            return _with_few_axes(found[0], shapes, listed, SeveralArrays)
        raise SeveralArrays(f"the {what} holds several arrays: choose one by name=...; it has {listed}")
    wanted = str(name).strip("/")
    found = [key for key in shapes if key == wanted] or [key for key in shapes if key.endswith("/" + wanted)]
    if len(found) != 1:
        problem = "has no array" if not found else "has several arrays"
        raise WorkbenchError(f"the {what} {problem} named {name!r}; it has {listed}")
    return _with_few_axes(found[0], shapes, listed)


def _with_few_axes(
    name: str, shapes: Mapping[str, tuple[int, ...]], listed: str, error: type[WorkbenchError] = WorkbenchError
) -> str:
    """The name itself, if that array can be a field."""
    if len(shapes[name]) > MOST_AXES:
        axes = len(shapes[name])
        raise error(f"{name} has {axes} axes and a field at most {MOST_AXES}: choose another of {listed}")
    return name
