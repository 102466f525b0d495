"""Particles in an open space or a periodic box: the input of everything that deals with clusters.

A `Particles` that exists is valid: positions are finite, of one floating-point type, contiguous, and inside the box. All
checks happen here, once, so that no algorithm has to repeat them. Checked arrays must not change later: `taking.py` says
which are copied for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data.columns import LEAVE_OUT, NONE, checked_columns, columns_without_units
from workbench.data.extent import extent
from workbench.data.labelled import joined, without_units
from workbench.data.masses import Masses, checked_masses
from workbench.data.outline import Placed
from workbench.data.summary_html import size, summary
from workbench.data.taking import as_array, conversion, lengths, taken, unmasked
from workbench.data.triclinic import in_triclinic_cell
from workbench.errors import WorkbenchError

Box = float | Sequence[float] | None
COMPANIONS = ("velocities", "ids", "masses")   # what may belong to each position, beside columns of other names
MOST_PARTICLES = 2**31 - 2   # indices inside the kernels are 32 bits
MOST_EXACT = 2**53           # integers up to here are exact in float64


@dataclass(frozen=True, eq=False, repr=False)
class Particles(Placed):
    """Positions (N, 2) or (N, 3) in float32 or float64, in an open space or a periodic box.

    `box` is None (open), one length, or a length per axis (periodic; positions then live in [0, box)).
    `velocities`, `ids`, `masses` (one for each, or one number for all), `columns` of any other name (numbers or flags, of
    shape (N,) or (N, k)) and `metadata` (such as the header of the file) belong to the particles and stay with them.
    Quantities of astropy, pint and unyt bring their units as metadata; a box with a unit is converted to that of the
    positions.

    A writeable NumPy array is copied, so that later writes to it change nothing here. Set `array.flags.writeable = False`
    to hand over a large one without a copy. CuPy arrays are never copied, and must not be written to afterwards.

    >>> particles = Particles([[0.1, 0.2, 0.9], [0.4, 0.4, 0.4]], box=1.0)
    >>> particles
    Particles(2 in 3-D, float64, box 1 x 1 x 1)
    >>> particles.spacing
    0.7937005259840998
    >>> Particles([[0.1, 0.2], [0.4, 0.4]], columns={"Potential": [-1.5, -2.5]}).columns["Potential"].tolist()
    [-1.5, -2.5]
    """

    positions: Array
    box: tuple[float, ...] | None = None
    velocities: Array | None = None
    ids: Array | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    masses: Masses | None = None
    columns: Mapping[str, Array] = field(default_factory=lambda: NONE)
    _ends: tuple[np.ndarray, np.ndarray] = field(init=False)

    def __init__(
        self,
        positions: Any,
        box: Box = None,
        velocities: Any = None,
        ids: Any = None,
        metadata: Mapping[str, Any] | None = None,
        masses: Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        bare, units = without_units(positions=positions, velocities=velocities, masses=masses, box=box)
        bare_columns, units_of_columns = columns_without_units(columns)
        units |= units_of_columns
        positions, velocities, masses, box = bare["positions"], bare["velocities"], bare["masses"], bare["box"]
        checked = _positions(positions)
        periods = _box(box, checked.shape[1])
        lower, upper = _extent(checked)
        _check_inside(lower, upper, periods)
        values = {
            "positions": checked,
            "box": periods,
            "velocities": _companion("velocities", velocities, checked, checked.shape),
            "ids": _companion("ids", ids, checked, checked.shape[:1]),
            "metadata": joined({"units": units} if units else {}, metadata),
            "masses": _masses(masses, checked),
            "columns": checked_columns(bare_columns, checked),
            "_ends": (lower, upper),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def wrapped(
        cls, positions: Any, box: Box, velocities: Any = None, ids: Any = None, metadata: Any = None, masses: Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Particles:
        """Particles whose positions may lie outside the periodic box: each is replaced by its image inside.

        >>> Particles.wrapped([[-0.25, 1.5]], box=1.0).positions.tolist()
        [[0.75, 0.5]]
        """
        bare, units = without_units(positions=positions, velocities=velocities, masses=masses, box=box)
        box, velocities, masses = bare["box"], bare["velocities"], bare["masses"]
        columns, units_of_columns = columns_without_units(columns)
        units |= units_of_columns
        metadata = joined({"units": units} if units else {}, metadata)
        values = _positions(bare["positions"])   # at most one copy: the arrays derived below are handed over
        periods = _box(box, values.shape[1])
        if periods is None:
            raise WorkbenchError("wrapping needs a periodic box; got box=None")
        xp = backend.namespace(values)
        length = xp.asarray(periods, xp.float64)
        with np.errstate(invalid="ignore", over="ignore"):   # the constructor refuses non-finite values
            inside = (values - xp.floor(values / length) * length).astype(values.dtype)
        if bool(xp.isinf(inside).any()):
            raise WorkbenchError(
                f"positions must have an image in the box that {values.dtype} can hold; got a box of {periods} and "
                f"positions of {float(values.min()):.6g} to {float(values.max()):.6g}: check the units"
            )
        inside[(inside >= length) | (inside < 0)] = 0   # what rounding left on or beyond a face: both faces are one
        return cls(backend.read_only(inside), box, velocities, ids, metadata, masses, columns)

    def __reduce__(self) -> tuple[Callable[..., Particles], tuple[Any, ...]]:
        own = self.positions, self.box, self.velocities, self.ids, dict(self.metadata), self.masses
        return Particles, ((*own, dict(self.columns)) if self.columns else own)

    def __len__(self) -> int:
        return int(self.positions.shape[0])

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinate along each axis."""
        return self._ends

    def select(self, chosen: Array) -> Particles:
        """The particles at these indices, or where this mask is true, with all that belongs to them.

        >>> Particles([[0.0, 0.0], [1.0, 1.0]], ids=[7, 8]).select([1]).ids.tolist()
        [8]
        """
        xp = backend.namespace(self.positions)
        index = xp.asarray(chosen)
        rows = {name: backend.read_only(array[index]) for name, array in self.companions.items()}
        own = {"masses": self.masses, **named(rows)}
        return Particles(backend.read_only(self.positions[index]), self.box, metadata=self.metadata, **own)

    @property
    def companions(self) -> dict[str, Array]:
        """The arrays besides positions by name: those of velocities, ids and masses that there are, and the columns.

        >>> list(Particles([[0.0, 0.0]], ids=[7], masses=[2.5], columns={"Type": [1]}).companions)
        ['ids', 'masses', 'Type']
        """
        own = {name: getattr(self, name) for name in COMPANIONS}
        there = {name: array for name, array in own.items() if array is not None and not isinstance(array, float)}
        return {**there, **self.columns}

    def __repr__(self) -> str:
        where = self._space() if self.box is None else "box " + " x ".join(f"{length:g}" for length in self.box)
        rest = [*(name for name in COMPANIONS if getattr(self, name) is not None), *self.columns]
        return f"Particles({len(self):,} in {self.dimensions}-D, {', '.join([str(self.positions.dtype), where, *rest])})"

    def _space(self) -> str:
        """Where particles without a box are."""
        return "triclinic cell" if in_triclinic_cell(self.metadata) else "open"

    def _repr_html_(self) -> str:
        units, there = self.metadata.get("units"), {"positions": self.positions, **self.companions}
        ends = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        rows = {
            "particles": f"{len(self):,}",
            "space": self._space() if self.box is None else f"periodic, {' x '.join(f'{length:g}' for length in self.box)}",
            "range": ", ".join(f"{axis} {low:.6g} to {high:.6g}" for axis, (low, high) in zip("xyz", ends, strict=False)),
            "mean spacing": f"{self.spacing:.6g}",
            "units": units if isinstance(units, str) else "",
            **{name: f"{array.dtype}, {' x '.join(f'{n:,}' for n in array.shape)}" for name, array in there.items()},
            "mass": f"{self.masses:.6g} each" if isinstance(self.masses, float) else "",
            "size": size(sum(array.nbytes for array in there.values())),
        }
        return summary(repr(self), rows, self.metadata)


def named(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays beside positions as the arguments of `Particles`: those of other names become its columns.

    >>> named({"ids": [1], "Type": [2]})
    {'ids': [1], 'columns': {'Type': [2]}}
    """
    own = {name: array for name, array in arrays.items() if name in COMPANIONS}
    columns = {name: array for name, array in arrays.items() if name not in COMPANIONS}
    return {**own, "columns": columns} if columns else own


def _positions(given: Any) -> Array:
    array = as_array("positions", unmasked("positions", given, LEAVE_OUT))
    if array.dtype.kind in "iu":
        array = _floats(array)
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise WorkbenchError(f"positions must be float32 or float64; got {array.dtype}: {conversion(array.dtype)}")
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise WorkbenchError(f"positions must have shape (N, 2) or (N, 3); got {array.shape}")
    if len(array) == 0:
        raise WorkbenchError("positions must hold at least one particle; got an empty array")
    if len(array) > MOST_PARTICLES:
        raise WorkbenchError(f"one set holds at most {MOST_PARTICLES:,} particles; got {len(array):,}: split it into parts")
    return taken(array)


def _floats(integers: Array) -> Array:
    """Whole coordinates as float64, where that changes none of them."""
    if integers.size and max(int(integers.max()), -int(integers.min())) > MOST_EXACT:
        raise WorkbenchError(
            f"integer positions must be at most 2^53, which float64 holds exactly; got {int(integers.min())} to "
            f"{int(integers.max())}: shift them towards zero first, or convert with .astype('float64') to round them"
        )
    return backend.read_only(integers.astype(np.float64))


def _companion(name: str, given: Any, positions: Array, shape: tuple[int, ...]) -> Array | None:
    if given is None:
        return None
    array = as_array(name, unmasked(name, given, LEAVE_OUT))
    backend.namespace(array, positions)
    if array.shape != shape:
        raise WorkbenchError(f"{name} must have shape {shape}, to match the positions; got {array.shape}")
    if name == "ids" and array.dtype.kind not in "iu":
        raise WorkbenchError(f"ids must be integers; got {array.dtype}")
    return taken(array)


def _masses(given: Any, positions: Array) -> Masses | None:
    if given is None:
        return None
    masses = checked_masses(unmasked("masses", given, LEAVE_OUT), len(positions))
    if isinstance(masses, float):
        return masses
    backend.namespace(masses, positions)
    return taken(masses)


def _box(given: Box, dimensions: int) -> tuple[float, ...] | None:
    if given is None:
        return None
    sides = lengths(given, dimensions)
    if sides is None:
        raise WorkbenchError(f"box must be None, a length, or {dimensions} lengths; got {given!r}")
    if not all(0 < side < math.inf for side in sides):
        raise WorkbenchError(f"box lengths must be positive and finite; got {given!r} (use None for an open space)")
    return sides


def _extent(positions: Array) -> tuple[np.ndarray, np.ndarray]:
    """The extent of the positions; refused if one is not finite."""
    lower, upper = extent(positions)
    bad = np.flatnonzero(~np.isfinite(lower) | ~np.isfinite(upper))
    if len(bad):
        raise WorkbenchError(f"positions must be finite; got nan or infinity on axis {', '.join(map(str, bad))}")
    return lower, upper


def _check_inside(lower: np.ndarray, upper: np.ndarray, box: tuple[float, ...] | None) -> None:
    if box is None:
        return
    outside = np.flatnonzero((lower < 0) | (upper >= np.asarray(box)))
    if len(outside):
        axis = int(outside[0])
        raise WorkbenchError(
            f"positions in a periodic box must lie in [0, {box[axis]:g}) on axis {axis}; got "
            f"[{lower[axis]:.9g}, {upper[axis]:.9g}]: use Particles.wrapped(...) to bring them inside, or box=None"
        )
