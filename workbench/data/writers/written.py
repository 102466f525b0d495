"""What all writers of trajectories share: units, the precision of rounded formats, cells, and what is said of the file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.data.trajectory import Trajectory, as_edges
from workbench.data.triclinic import lengths_and_angles
from workbench.data.unit_grammar import factor_between
from workbench.data.units import unit_of
from workbench.errors import WorkbenchError

USUAL_PRECISION = 1000.0   # of xtc: steps in a nanometre
INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True)
class Written:
    """The largest change of a coordinate by rounding, in the unit of the trajectory, and what the file does not have."""

    rounding: float = 0.0
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """Some frames in the unit of the file."""

    positions: np.ndarray        # in float64 if the unit is another one, else as they are
    velocities: np.ndarray | None
    edges: np.ndarray | None
    origins: np.ndarray | None
    images: np.ndarray | None
    times: np.ndarray | None
    steps: np.ndarray | None


class Output:
    """The frames of a trajectory in the unit of a format, and the largest rounding so far."""

    def __init__(
        self, trajectory: Trajectory, unit: str, takes: Sequence[str], columns: Sequence[str],
        steps: range = range(-(2**63), 2**63),
    ) -> None:
        self.trajectory, self.rounding, own = trajectory, 0.0, unit_of(trajectory)
        known = trajectory.steps
        self.has_steps = known is not None and int(known.min()) in steps and int(known.max()) in steps
        self.factor, notes = 1.0, []   # type: float, list[str]
        if unit and own:
            self.factor = float(f"{factor_between(own, unit):.12g}")
        if self.factor != 1.0:
            notes.append(f"lengths in {own} are written in {unit}, as the format has them")
        if unit and not own:
            notes.append(f"the unit of lengths is not stated: the numbers are written as they are, where {unit} is usual")
        takes = [name for name in takes if name != "steps" or self.has_steps]
        left = [name for name in trajectory.arrays if name not in takes and name != "positions"]
        left += [f"the column {name} of atoms" for name in trajectory.atoms if name not in columns]
        self.left_out, self.notes = left, notes

    def blocks(self) -> Iterator[Block]:
        """All frames, a few at a time."""
        for part in self.trajectory.blocks():
            cells, length = part.cells, self._length
            yield Block(
                length(part.positions), None if part.velocities is None else length(part.velocities),
                None if cells is None else length(as_edges(cells)),
                None if part.origins is None else length(part.origins), part.images, part.times,
                part.steps if self.has_steps else None,
            )

    def _length(self, values: np.ndarray) -> np.ndarray:
        return values if self.factor == 1.0 else values.astype(np.float64) * self.factor

    def rounded(self, positions: np.ndarray, written: np.ndarray) -> np.ndarray:
        """The positions as they are in the file, after a look at how far they are from those given."""
        finite = np.isfinite(positions)
        if not np.isfinite(written[finite]).all():
            largest = float(np.abs(positions[finite]).max())
            raise WorkbenchError(f"{written.dtype} holds no coordinate as large as {largest:g}: write .npz")
        change = np.abs(written[finite].astype(np.float64) - positions[finite].astype(np.float64)).max(initial=0.0)
        self.rounding = max(self.rounding, float(change) / self.factor)
        return written

    def cast(self, positions: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The positions in the type of the file, after the same look."""
        with np.errstate(over="ignore"):   # refused
            return self.rounded(positions, positions.astype(dtype, copy=False))

    def words(self, column: str, unknown: str, width: int | None = None, ascii: bool = False) -> list[str]:
        """A column of atoms as words that a format can hold: without spaces, of so many characters, of ASCII alone."""
        given = [str(one) for one in self.trajectory.atoms[column].tolist()]
        found = [re.sub(r"\s+", "_", one.strip())[:width] or unknown for one in given]
        if ascii:
            found = [one.encode("ascii", "replace").decode() for one in found]
        if found != given:
            self.notes.append(f"the column {column} of atoms is written otherwise where the format does not hold its words")
        return found

    def done(self) -> Written:
        """What is said of the file."""
        return Written(self.rounding, tuple(self.left_out), tuple(self.notes))


def require_finite(positions: np.ndarray, suffix: str) -> None:
    """Refuse coordinates that are not numbers, where a format has none."""
    if not np.isfinite(positions).all():
        raise WorkbenchError(f"{suffix} holds finite coordinates alone; got NaN or infinity: write .trr or .npz")


def precision_for(trajectory: Trajectory, within: float | None, factor: float) -> float:
    """How many steps a unit of the format has: as the file had, or so many that rounding is within the error.

    >>> walk = Trajectory(np.zeros((1, 1, 3)))
    >>> precision_for(walk, None, 1.0), precision_for(walk, 2e-5, 1.0)
    (1000.0, 100000.0)
    """
    stated = trajectory.metadata.get("precision")
    if isinstance(stated, int | float) and 0 < stated < 1e9 and factor == 1.0:
        return float(stated)
    if not within:
        return USUAL_PRECISION
    return max(USUAL_PRECISION, 10.0 ** min(math.ceil(math.log10(0.5 / (within * factor)) - 1e-9), 7))


def six(edges: np.ndarray) -> np.ndarray:
    """Cells as lengths and angles."""
    return np.array([lengths_and_angles(one) for one in edges])


def require_lower(edges: np.ndarray, suffix: str) -> None:
    """Refuse a cell whose first edge is not along x, or whose second is outside of the plane of x and y."""
    if np.triu(edges, 1).any():
        raise WorkbenchError(f"{suffix} takes cells whose edges are a lower triangle; got {edges.tolist()}")
