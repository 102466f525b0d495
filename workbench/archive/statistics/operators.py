"""Derivatives, the length of the gradient and the Laplacian of an archived field, with bounds for the original data.

They are linear in the values but for a norm, so errors of the values of at most eb change them by at most eb times the sum
of the sizes of the weights of their stencil; the length of a gradient by the length of these sums, by the triangle
inequality. To this comes the rounding of what was computed (`stencils.py`). Stencils are applied to decoded values, since
the archive promises |x - y| <= eb of these: lattice numbers, as the codec `staged` has them, would add the rounding of
values to the bound, and to decode them takes as long.

Chunks are decoded once, in layers along the first axis; the last planes of a layer are held for the next. Blocks of the
codec `staged` have checksums of their own, so values decoded from them are not compared with that of their chunk again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.archive import region as regions
from workbench.archive.layout import Index
from workbench.archive.statistics.chunk_parts import FieldPart
from workbench.archive.statistics.figure import VALUES, Explanation, FieldStatistic
from workbench.archive.statistics.selection import dimensions, part_of_grid
from workbench.archive.statistics.stencils import Operation, apply_stencil, require_steps, rounding, weights
from workbench.codecs.staged import Staged
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, Limits, SliceLimits
from workbench.guarantees.per_slice import axis_of
from workbench.rounding import ABOVE, rounded_outwards
from workbench.slabs import Slices, rows_of

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

OPERATIONS = {
    "derivative": Operation.DERIVATIVE, "gradient_magnitude": Operation.GRADIENT, "laplacian": Operation.LAPLACIAN,
}
LAYER = 2**20     # values that are decoded together, at least
SCANNED = 2**19   # values that a thread looks at together
HELD = 2          # planes of a layer that the next one may need, at most


def operator(archive: Archive, name: str, axis: int | str | None = None, region: Any = None) -> FieldStatistic:
    """A figure of `OPERATIONS` at each point of a field, or of a region of it; a derivative is along an axis.

    >>> import workbench as wb
    >>> archive = wb.compress(np.arange(100.0) ** 2, wb.Absolute(1e-3), "staged")
    >>> operator(archive, "derivative", 0, [(10, 13)])
    FieldStatistic(derivative of 3, float64, bound 0.001001, from values, ... bytes read)
    """
    task = _Task.of(archive, name, axis, region)
    shape = [part.stop - part.start for part in task.part]
    archive.data.trust.require_room(archive.data.nbytes_of(shape), f"the {name}")
    values = np.empty(shape, task.dtype)
    bounds = np.empty(shape, task.dtype) if task.error is None else None
    extremes = _Extremes()
    for planes, window, inside in task.pieces():
        figures = apply_stencil(task.operation, window.values, inside, task.spacing, out=values[planes])
        extremes.add(figures, window.values if task.needs_sizes else None)
        if bounds is not None:
            bounds[planes] = task.bounds(window, inside, figures)
    bound = task.bound(extremes) if bounds is None else bounds
    if extremes.infinite:
        each = rounded_up(np.asarray(bound), task.dtype) if isinstance(bound, float) else bound
        bound = np.where(np.isinf(values), task.dtype.type(np.inf), each)
    needed = task.needed
    return FieldStatistic(
        name, values, bound, VALUES, needed.nbytes_of_chunks, needed.nbytes_stored, extremes.missing
    )


def explain_operator(archive: Archive, name: str, axis: int | str | None = None, region: Any = None) -> Explanation:
    """How an operator is answered. The bound is that of most values, without their rounding.

    >>> import workbench as wb
    >>> archive = wb.compress(np.zeros((20, 30), np.float32), wb.Absolute(0.5), "staged")
    >>> print(explain_operator(archive, "laplacian"))
    laplacian: from values; reads ... of ... bytes; bound 4.001
    """
    task = _Task.of(archive, name, axis, region)
    bound = None if task.error is None else float(task.weights.min()) * task.error
    return Explanation(name, bound, VALUES, task.needed.nbytes_of_chunks, task.needed.nbytes_stored)


@dataclass
class _Extremes:
    """The largest sizes so far, and what is not finite."""

    largest: float = 0.0     # size of a finite one
    given: float = 0.0       # the largest size of a decoded value
    missing: int = 0
    infinite: bool = False

    def add(self, figures: np.ndarray, values: np.ndarray | None) -> None:
        largest, missing, infinite = _sizes(figures)
        self.largest, self.missing = max(self.largest, largest), self.missing + missing
        self.infinite |= infinite
        if values is not None:
            self.given = max(self.given, _sizes(values)[0])


@dataclass(frozen=True, eq=False)
class _Window:
    """Decoded values of some planes of the grid, as floating-point numbers; masked ones are NaN."""

    planes: slice
    values: np.ndarray


@dataclass(frozen=True)
class _Task:
    archive: Archive
    operation: Operation
    part: Slices                        # of the grid, of which the result is
    spacing: tuple[float | None, ...]   # None along axes that do not matter

    @classmethod
    def of(cls, archive: Archive, name: str, axis: int | str | None, region: Any) -> _Task:
        part, shape, operation = part_of_grid(archive, region), archive.data.layout.shape, OPERATIONS[name]
        chosen: Sequence[int] = range(len(shape))
        if operation is Operation.DERIVATIVE:
            if not isinstance(axis, int | np.integer | str) or isinstance(axis, bool):
                raise WorkbenchError(f"axis must be the number of an axis, or the name of a dimension; got {axis!r:.80}")
            chosen = [axis_of(axis, len(shape), dimensions(archive))]
        for each in chosen:
            if shape[each] < operation.points:
                others = [str(axis) for axis, size in enumerate(shape) if size > 1]
                instead = f"derivatives along {', '.join(others)}" if others else "statistics, such as archive.mean()"
                raise WorkbenchError(
                    f"{name} needs at least {operation.points} points along axis {each}; got {shape[each]}. "
                    f"Available: {instead}"
                )
        spacing = tuple(step if each in chosen else None for each, step in enumerate(archive.spacing))
        require_steps(spacing)
        return cls(archive, operation, part, spacing)

    @property
    def window(self) -> Slices:
        """The part, and what its stencils need beside it."""
        shape, points = self.archive.data.layout.shape, self.operation.points
        return tuple(
            one if step is None
            else slice(max(0, min(one.start - 1, size - points)), min(size, max(one.stop + 1, points)))
            for one, step, size in zip(self.part, self.spacing, shape, strict=True)
        )

    @property
    def dtype(self) -> np.dtype:
        given = self.archive.data.layout.dtype
        return given if given.kind == "f" else np.dtype(np.float64)

    @property
    def limit(self) -> Limits | None:
        return self.archive.certificate[self.archive.data.layout.name].limit

    @property
    def error(self) -> float | None:
        """The absolute error of each value that is needed, where it is the same for all."""
        limit = self.limit
        if limit is None:
            return 0.0
        limits = {limit} if isinstance(limit, Limit) else set(limit.limits[self.window[limit.axis]])
        errors = {None if one.relative and one.value else one.value for one in limits}
        return errors.pop() if len(errors) == 1 else None

    @property
    def weights(self) -> np.ndarray:
        return weights(self.operation, self.part, self.archive.data.layout.shape, self.spacing)

    @property
    def needed(self) -> FieldPart:
        return FieldPart(self.archive, self.window)

    @property
    def needs_sizes(self) -> bool:
        """Whether the rounding depends on the sizes of values."""
        return self.operation is Operation.LAPLACIAN or self._rounds

    @property
    def _rounds(self) -> bool:
        """Whether values as they were decoded are rounded to floating-point numbers."""
        dtype = self.archive.data.layout.dtype
        return dtype.kind != "f" and dtype.itemsize == 8

    def pieces(self) -> Iterator[tuple[slice, _Window, Slices]]:
        """Planes of the result, the values that they need, and the places of the planes among these."""
        first, last, reach = self.part[0].start, self.part[0].stop, self.spacing[0] is not None
        size = self.archive.data.layout.shape[0]
        rest = tuple(
            slice(one.start - outer.start, one.stop - outer.start)
            for one, outer in zip(self.part[1:], self.window[1:], strict=True)
        )
        width = [one.stop - one.start for one in self.window[1:]]
        thick = self.archive.data.layout.chunk_shape[0]
        thick *= max(1, LAYER // (thick * math.prod(width)))
        room = np.empty((min(thick, self.window[0].stop - self.window[0].start) + HELD, *width), self.dtype)
        at, held = first, 0
        for start in range(self.window[0].start // thick * thick, self.window[0].stop, thick):
            planes = slice(max(start, self.window[0].start), min(start + thick, self.window[0].stop))
            values = room[: held + planes.stop - planes.start]
            self._decode(planes, values[held:])
            begin, ended = planes.start - held, planes.stop == self.window[0].stop
            end = last if ended else planes.stop - reach
            if at < end and (ended or not reach or len(values) >= self.operation.points):
                window = _Window(slice(begin, planes.stop), values)
                yield slice(at - first, end - first), window, (slice(at - begin, end - begin), *rest)
                at = end
            held = planes.stop - max(begin, min(at - 1, size - self.operation.points)) if reach else 0
            room[:held] = values[len(values) - held :].copy()

    def _decode(self, planes: slice, into: np.ndarray) -> None:
        """The values of some planes of the window, as floating-point numbers; masked ones are NaN."""
        stored, mask, place = self.archive.data, self.archive.arrays.get("mask"), (planes, *self.window[1:])
        saved = 1 if isinstance(stored.codec, Staged) else regions.LEAST_SAVED

        def work(index: Index) -> None:
            to, part = regions.common(place, stored.layout.chunk_slices(index))
            into[to] = regions.chunk_part(stored, index, part, saved)

        indices = regions.chunks_in(stored.layout, place)
        for _ in map(work, indices) if stored.decoder.holds_gil else backend.side_by_side(work, indices):
            pass
        if mask is not None:
            into[regions.grid_part(mask, place)] = np.nan

    def bounds(self, window: _Window, inside: Slices, figures: np.ndarray) -> np.ndarray:
        """A bound for each result, where the errors of values differ."""
        shares, errors = _errors(self.limit, (window.planes, *self.window[1:]))
        share, least = rounding(self.operation, _sizes(window.values)[0], self.spacing, self.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            of_values = (shares + self._rounds * 2.0**-52) * np.abs(window.values.astype(np.float64)) + errors
            exact = apply_stencil(self.operation, of_values * ABOVE, inside, self.spacing, sizes=True)
            return rounded_up((exact + share * np.abs(figures.astype(np.float64)) + least) * ABOVE, self.dtype)

    def bound(self, extremes: _Extremes) -> float | np.ndarray:
        """The bound of all results, where the errors of values do not differ: a number, unless ends have another."""
        assert self.error is not None
        error = self.error + self._rounds * extremes.given * 2.0**-52
        share, least = rounding(self.operation, extremes.given, self.spacing, self.dtype)
        with np.errstate(over="ignore"):
            bounds = (self.weights * (error * ABOVE) + share * extremes.largest + least) * ABOVE
        shape = tuple(one.stop - one.start for one in self.part)
        return float(bounds.item()) if bounds.size == 1 else np.broadcast_to(rounded_up(bounds, self.dtype), shape)


def rounded_up(bounds: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """These numbers in another type, where they are not smaller.

    >>> bool(rounded_up(np.array([0.1]), np.dtype(np.float32))[0] > 0.1)
    True
    """
    with np.errstate(over="ignore"):
        return np.nextafter(bounds.astype(dtype), dtype.type(np.inf))


def _sizes(values: np.ndarray) -> tuple[float, int, bool]:
    """The largest size of a finite number, how many are NaN, and whether any is infinite."""
    ends = backend.side_by_side(lambda rows: (values[rows].min(), values[rows].max()), rows_of(values.shape, SCANNED))
    lowest, highest = np.array(list(ends), np.float64).T
    low, high = float(lowest.min()), float(highest.max())
    if math.isfinite(low) and math.isfinite(high):
        return max(-low, high), 0, False
    finite = np.isfinite(values)
    missing = int(np.isnan(values).sum())
    return float(np.abs(values[finite]).max(initial=0)), missing, missing < values.size - int(finite.sum())


def _errors(limit: Limits | None, place: Slices) -> tuple[np.ndarray, np.ndarray]:
    """How far original values are from decoded ones y: a share of |y|, and an absolute error, as arrays to broadcast."""
    assert limit is not None
    several = [limit] if isinstance(limit, Limit) else limit.limits[place[limit.axis]]
    along = [1] * len(place)
    if isinstance(limit, SliceLimits):
        along[limit.axis] = len(several)
    shares = [share_of_decoded(one.value) if one.relative else 0.0 for one in several]
    return np.reshape(shares, along), np.reshape([0.0 if one.relative else one.value for one in several], along)


def share_of_decoded(error: float) -> float:
    """|x - y| <= e |x| implies |x - y| <= e / (1 - e) |y|."""
    return rounded_outwards(Fraction(error) / (1 - Fraction(error)))
