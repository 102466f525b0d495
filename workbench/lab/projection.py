"""Conversion of data to pictures: a slice of a field, or particles seen along an axis, in a window, as bytes.

Pictures shown together share a pixel grid and a scale, so that differences between panes are differences of the data. A
slice larger than the picture is averaged over blocks of values; for errors a pixel shows the largest of its block, because
a mean would hide it. `Raster.block` is the size of the blocks, for notes.

Densities are particles per area on one scale for all windows, so that neither the size of a pixel nor zooming changes them.

Row 0 of a picture is at its top, and the vertical axis points up. Levels from 1 are the scale, from `low` to `high`; level
0 means no value.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.lab.description import Axes, Window
from workbench.lab.remembered import remembered
from workbench.lab.units import axis_names, unit_of_length

PIXELS = 1024          # along the longer side
FEWEST_PIXELS = 64
PARTICLES_PER_PIXEL = 1.0   # on average, at least: smaller pixels show dust
MIDDLE, STEPS = 128, 127     # the byte of zero in a picture of differences, and the number of steps to each side


# A field.

@dataclass(frozen=True)
class Cut:
    """The visible part of a field: the slice at `index` along `axis`, at one `time`, within a window.

    Axes are counted among the last three; the first of four is time. Fields of two axes have one slice.
    """

    axis: int = 0
    index: int = 0
    time: int = 0
    window: Window | None = None
    pixels: int = PIXELS

    def plane(self, values: np.ndarray) -> np.ndarray:
        """The slice of an array with the field's shape, rows from the bottom up: a view.

        >>> Cut(axis=1, index=2).plane(np.arange(24).reshape(2, 3, 4)).tolist()
        [[8, 9, 10, 11], [20, 21, 22, 23]]
        """
        if values.ndim == 4:
            values = values[_within("time", self.time, len(values))]
        if values.ndim == 3:
            axis = _within("axis", self.axis, 3)
            found = _within("index", self.index, values.shape[axis])
            return np.moveaxis(values, axis, 0)[found]
        if values.ndim != 2:
            raise WorkbenchError(f"a slice needs a field of two to four axes; got shape {values.shape}: see `envelope`")
        return values

    def steps(self, field: Field) -> tuple[float, float]:
        """The spacing down and across a slice."""
        spacing = list(field.spacing[-3:])
        if len(spacing) == 3:
            del spacing[self.axis]
        return spacing[0], spacing[1]

    def cells(self, field: Field) -> tuple[slice, slice]:
        """The rows and columns of the slice that the window touches; at least one of each."""
        rows, columns = self.plane(field.values).shape
        down, across = self.steps(field)
        left, right, bottom, top = self.window or (0.0, columns * across, 0.0, rows * down)
        return _touched(bottom / down, top / down, rows), _touched(left / across, right / across, columns)

    def covered(self, field: Field) -> Window:
        """The area of these cells: the window of the picture."""
        down, across = self.steps(field)
        rows, columns = self.cells(field)
        return columns.start * across, columns.stop * across, rows.start * down, rows.stop * down

    def cell(self, field: Field, x: float, y: float) -> tuple[int, ...] | None:
        """The index of the cell at a place of the picture; None beyond the field.

        >>> Cut(axis=0, index=1).cell(Field(np.zeros((2, 3, 4)), spacing=0.5), 1.2, 0.1)
        (1, 0, 2)
        """
        down, across = self.steps(field)
        row, column = math.floor(y / down), math.floor(x / across)
        rows, columns = self.plane(field.values).shape
        if not (0 <= row < rows and 0 <= column < columns):
            return None
        if len(field.shape) == 2:
            return row, column
        place = [row, column]
        place.insert(self.axis, self.index)
        return tuple(place) if len(field.shape) == 3 else (self.time, *place)

    def axes(self, field: Field) -> Axes:
        """The names of the axes of the picture, and where the slice is.

        >>> Cut(axis=0, index=12).axes(Field(np.zeros((192, 4, 4)), metadata={"dimensions": ["z", "y", "x"]}))
        Axes(across='x', up='y', unit='', depth='z = 12 of 192')
        """
        names, unit = axis_names(field), unit_of_length(field.metadata)
        shown = [own for own in range(len(names)) if len(names) < 3 or own != self.axis + len(names) - 3][-2:]
        depth = []
        if len(names) >= 3:
            own = self.axis + len(names) - 3
            place = (self.index + 0.5) * field.spacing[own]
            at = f", {place:.4g} {unit}".rstrip() if unit or field.spacing[own] != 1 else ""
            depth = [f"{names[own]} = {self.index} of {field.shape[own]}{at}"]
        if len(names) == 4:
            depth.append(f"{names[0] if names[0] != 'axis 0' else 'time'} = {self.time} of {field.shape[0]}")
        return Axes(names[shown[1]], names[shown[0]], unit, ", ".join(depth))


def whole_window(field: Field, axis: int = 0) -> Window:
    """The window of a whole slice across this axis.

    >>> whole_window(Field(np.zeros((2, 3, 4)), spacing=(1.0, 0.5, 10.0)), axis=0)
    (0.0, 40.0, 0.0, 1.5)
    """
    return Cut(axis).covered(field)


@dataclass(frozen=True, eq=False)
class Raster:
    """Numbers to show, NaN where there is no value. A pixel represents at most `block` (rows, columns) values."""

    values: np.ndarray
    window: Window
    block: tuple[int, int]


def slice_raster(field: Field, cut: Cut, like: Field | None = None) -> Raster:
    """The mean of the valid values of each pixel; NaN where `like` has no valid value.

    >>> slice_raster(Field([[1.0, 3.0], [5.0, np.nan]]), Cut(pixels=1)).values.tolist()
    [[3.0]]
    """
    values, valid = _cut_out(field, cut)
    if like is not None:
        valid &= _cut_out(like, cut)[1]
    if max(values.shape) <= cut.pixels:
        return _raster(np.where(valid, values, np.nan), field, cut)
    sums = _blocks(np.where(valid, values, 0).astype(np.float64, copy=False), cut.pixels, np.add)
    counts = _blocks(valid.astype(np.uint32), cut.pixels, np.add)
    with np.errstate(invalid="ignore"):
        return _raster(sums / counts, field, cut)   # 0 / 0 where nothing is valid


def error_raster(original: Field, decoded: Field, limit: Limit, cut: Cut) -> Raster:
    """Decoded minus original in units of the limit; a pixel shows the difference farthest from zero.

    If the limit is zero, no error is allowed, and the unit is that of the data.
    """
    error, valid = _error(original, decoded, limit, cut)
    high = _blocks(np.where(valid, error, -np.inf), cut.pixels, np.maximum)
    low = _blocks(np.where(valid, error, np.inf), cut.pixels, np.minimum)
    worst = np.where(high >= -low, high, low)
    return _raster(np.where(high >= low, worst, np.nan), original, cut)


def bytes_of(
    values: np.ndarray, low: float, high: float, logarithmic: bool = False, levels: type[np.unsignedinteger] = np.uint8
) -> np.ndarray:
    """Values as levels from 1 to the largest (of bytes, 255) from low to high, clipped; 0 where NaN.

    On a logarithmic scale, both ends must be positive; values that are not positive are shown as the low end.

    >>> bytes_of(np.array([[0.0, 1.0, 2.0, np.nan, 9.0]]), 0.0, 2.0).tolist()
    [[1, 128, 255, 0, 255]]
    >>> bytes_of(np.array([[0.0, 1.0, 2.0]]), 0.0, 2.0, levels=np.uint16).tolist()
    [[1, 32768, 65535]]
    """
    top = np.iinfo(levels).max
    shown = values
    if logarithmic:
        shown, low, high = np.log(np.maximum(values, low)), math.log(low), math.log(high)
    scale = (top - 1) / (high - low) if high > low else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        shown = np.clip((shown - low) * scale + 1.5, 1, top)
    return np.where(np.isnan(shown), 0, shown).astype(levels)


def difference_bytes(values: np.ndarray, most: float) -> np.ndarray:
    """Differences as bytes: 128 is zero, 1 and 255 are -`most` and `most`; 0 where NaN.

    >>> difference_bytes(np.array([[-1.0, 0.0, 0.5, 7.0, np.nan]]), 1.0).tolist()
    [[1, 128, 192, 255, 0]]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        shown = np.clip(np.rint(values * (STEPS / most)), -STEPS, STEPS) + MIDDLE
    return np.where(np.isnan(shown), 0, shown).astype(np.uint8)


def slice_range(field: Field, cut: Cut, logarithmic: bool = False) -> tuple[float, float]:
    """The ends of a scale for a whole slice, beyond the window: the smallest and largest value (if logarithmic, positive).

    A logarithmic scale spans six decades at most.
    """
    whole = Cut(cut.axis, cut.index, cut.time)

    def found() -> tuple[float, float]:
        values, valid = _cut_out(field, whole)
        shown = values[valid & (values > 0) if logarithmic else valid]
        if not shown.size:
            return (1.0, 10.0) if logarithmic else (0.0, 1.0)
        low, high = float(shown.min()), float(shown.max())
        return (max(low, high * 1e-6), high) if logarithmic else (low, high)

    return remembered(field, "slice range", (whole, logarithmic), found)


def envelope(
    field: Field, values: np.ndarray, window: Window | None = None, points: int = PIXELS
) -> tuple[np.ndarray, np.ndarray]:
    """A line of values as a curve: places and values. `values` belong to the points of a field of one axis.

    If there are too many to draw, the smallest and the largest of each block, so that no peak is missed.

    >>> line = Field([3.0, 1.0, 5.0, 4.0, 2.0, 2.0])
    >>> envelope(line, line.values, points=2)[1].tolist()
    [1.0, 5.0, 2.0, 4.0]
    """
    (step,) = field.spacing
    left, right = (window or (0.0, len(values) * step))[:2]
    part = _touched(left / step, right / step, len(values))
    valid = np.isfinite(field.values[part]) if field.mask is None else np.isfinite(field.values[part]) & ~field.mask[part]
    shown = np.where(valid, values[part], np.nan)
    places = (np.arange(part.start, part.stop) + 0.5) * step
    if len(shown) <= 2 * points:
        return places, shown
    first = _first_of_blocks(len(shown), points)
    ends = np.stack([np.fmin.reduceat(shown, first), np.fmax.reduceat(shown, first)], axis=1)
    return np.repeat(places[first], 2), ends.ravel()


def _within(name: str, given: int, count: int) -> int:
    if not 0 <= given < count:
        raise WorkbenchError(f"{name} must be from 0 to {count - 1} for these data; got {given}")
    return given


def _touched(low: float, high: float, count: int) -> slice:
    """The cells between two places, in units of cells; tolerant to rounding errors."""
    start = min(max(math.floor(low + 1e-6), 0), count - 1)
    return slice(start, min(max(math.ceil(high - 1e-6), start + 1), count))


def _cut_out(field: Field, cut: Cut) -> tuple[np.ndarray, np.ndarray]:
    """The values in the window, and the mask of valid ones."""
    place = cut.cells(field)
    values = cut.plane(field.values)[place]
    valid = np.isfinite(values)
    return values, valid if field.mask is None else valid & ~cut.plane(field.mask)[place]


def _error(original: Field, decoded: Field, limit: Limit, cut: Cut) -> tuple[np.ndarray, np.ndarray]:
    """Errors in units of the limit, and the mask of existing ones; the error of a lost value is infinite."""
    values, valid = _cut_out(original, cut)
    found = cut.plane(decoded.values)[cut.cells(original)]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = found.astype(np.float64) - values
        if limit.value > 0:
            allowed = limit.value * np.abs(values, dtype=np.float64) if limit.relative else limit.value
            error = np.where(error == 0, 0.0, error / allowed)
    error[~np.isfinite(found)] = np.inf
    return error, valid


def _raster(values: np.ndarray, field: Field, cut: Cut) -> Raster:
    rows, columns = cut.cells(field)
    block = [-(-(part.stop - part.start) // points) for part, points in zip((rows, columns), values.shape, strict=True)]
    return Raster(values[::-1], cut.covered(field), (block[0], block[1]))


def _blocks(values: np.ndarray, pixels: int, combined: np.ufunc) -> np.ndarray:
    """An array reduced to at most `pixels` rows and columns by combining blocks; small arrays are unchanged."""
    rows, columns = values.shape
    if rows > pixels:   # one block of rows at a time: each is read once, and in order
        ends = [*_first_of_blocks(rows, pixels), rows]
        blocks = (combined.reduce(values[start:end], axis=0) for start, end in itertools.pairwise(ends))
        values = np.stack(list(blocks))
    return combined.reduceat(values, _first_of_blocks(columns, pixels), axis=1) if columns > pixels else values


def _first_of_blocks(count: int, blocks: int) -> np.ndarray:
    return np.arange(blocks) * count // blocks


# Particles.

@dataclass(frozen=True, eq=False)
class Projection:
    """Particles seen along an axis: the horizontal and vertical place of each in the picture, and the frame around all.

    The other two of three axes keep their order: along z, x points right and y up.
    """

    across: np.ndarray
    up: np.ndarray
    frame: Window

    @classmethod
    def of(cls, particles: Particles, axis: int = 2) -> Projection:
        """The projection of these particles, cached as long as they exist. Particles in 2-D have only one."""

        def made() -> Projection:
            positions = backend.to_host(particles.positions)
            across, up = (np.ascontiguousarray(positions[:, own]) for own in _shown_axes(particles, axis))
            return cls(across, up, frame_of(particles, axis))

        return remembered(particles, "projection", axis, made)

    def __len__(self) -> int:
        return len(self.across)

    def within(self, window: Window) -> Projection:
        """The particles in a window, ends included; the window need not lie in the frame."""
        left, right, bottom, top = window
        if left <= self.frame[0] and self.frame[1] <= right and bottom <= self.frame[2] and self.frame[3] <= top:
            return Projection(self.across, self.up, window)
        inside = (self.across >= left) & (self.across <= right)
        inside &= self.up >= bottom
        inside &= self.up <= top
        chosen = np.flatnonzero(inside)
        return Projection(self.across[chosen], self.up[chosen], window)

    def counts(self, shape: tuple[int, int]) -> np.ndarray:
        """How many are in each pixel of the frame; all must be in it."""
        height, width = shape
        left, right, bottom, top = self.frame
        pixel = _pixels(self.up, bottom, top, height)
        pixel *= np.int32(width)
        pixel += _pixels(self.across, left, right, width)
        return np.bincount(pixel, minlength=height * width).reshape(shape)[::-1]

    def count_at(self, window: Window, shape: tuple[int, int], x: float, y: float) -> int | None:
        """How many are in the pixel at a place of the picture of a window; None beyond it."""
        (height, width), (left, right, bottom, top) = shape, window
        row, column = math.floor((y - bottom) / (top - bottom) * height), math.floor((x - left) / (right - left) * width)
        if not (0 <= row < height and 0 <= column < width):
            return None
        wide, high = (right - left) / width, (top - bottom) / height
        near = self.within((left + (column - 1) * wide, left + (column + 2) * wide,
                            bottom + (row - 1) * high, bottom + (row + 2) * high))
        part = Projection(near.across, near.up, near.frame).within(window)
        here = _pixels(part.up, bottom, top, height) == row
        here &= _pixels(part.across, left, right, width) == column
        return int(here.sum())


def view_axes(particles: Particles, axis: int = 2) -> Axes:
    """The names of the axes of particles seen along an axis, and how far is seen.

    >>> view_axes(Particles([[0.5, 0.5, 0.5]], box=48.0, metadata={"units": "Mpc/h"}))
    Axes(across='x', up='y', unit='Mpc/h', depth='all 48 Mpc/h along z')
    """
    names, unit = axis_names(particles), unit_of_length(particles.metadata)
    across, up = _shown_axes(particles, axis)
    depth = ""
    if particles.dimensions == 3:
        depth = " ".join(filter(None, ("all", f"{particles.lengths[axis]:.4g}", unit, f"along {names[axis]}")))
    return Axes(names[across], names[up], unit, depth)


def density_scale(particles: Particles, axis: int = 2, logarithmic: bool = True) -> tuple[float, float]:
    """The ends of a scale of particles per area, for all windows: those of the picture of all particles."""

    def found() -> tuple[float, float]:
        seen = Projection.of(particles, axis)
        counts = seen.counts(grid_of(seen.frame, len(seen)))
        low, high = density_range(counts, logarithmic)
        area = pixel_area(seen.frame, counts.shape)
        return low / area, high / area

    return remembered(particles, "density scale", (axis, logarithmic), found)


def pixel_area(window: Window, shape: tuple[int, ...]) -> float:
    """The area of a pixel of a picture of this shape.

    >>> pixel_area((0.0, 4.0, 0.0, 1.0), (4, 8))
    0.125
    """
    left, right, bottom, top = window
    return (right - left) / shape[1] * ((top - bottom) / shape[0])


def frame_of(particles: Particles, axis: int = 2) -> Window:
    """The box seen along an axis or, in open space, the extent of the particles; never of zero size.

    >>> frame_of(Particles([[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]), axis=2)
    (1.0, 3.0, 1.0, 3.0)
    """
    own = list(_shown_axes(particles, axis))
    if particles.box is not None:
        return 0.0, particles.box[own[0]], 0.0, particles.box[own[1]]
    low, high = particles.lower[own], particles.upper[own]
    thin = high - low <= 1e-6 * max(float((high - low).max()), float(np.abs([low, high]).max()) * 1e-6)
    room = float((high - low).max()) / 2 or float(np.abs(low).max()) / 2 or 0.5
    low, high = np.where(thin, low - room, low), np.where(thin, high + room, high)
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def grid_of(window: Window, count: int, pixels: int = PIXELS) -> tuple[int, int]:
    """The height and width of a picture with square pixels; fewer pixels for few particles.

    >>> grid_of((0.0, 4.0, 0.0, 1.0), 2_000_000), grid_of((0.0, 1.0, 0.0, 1.0), 10_000)
    ((256, 1024), (100, 100))
    """
    width, height = window[1] - window[0], window[3] - window[2]
    fine = min(max(round(math.sqrt(count / PARTICLES_PER_PIXEL)), FEWEST_PIXELS), pixels)
    size = max(width, height) / fine
    return max(round(height / size), 1), max(round(width / size), 1)


def density_bytes(counts: np.ndarray, low: float, high: float, logarithmic: bool = True) -> np.ndarray:
    """Counts as bytes 0 to 255 from low to high. Empty pixels are 0; a single particle is not.

    >>> density_bytes(np.array([[0, 1, 8, 64]]), 0.5, 64.0).tolist()
    [[0, 36, 146, 255]]
    """
    levels = np.arange(min(int(high), int(counts.max(initial=0))) + 2, dtype=np.float64)
    ends = (math.log(low), math.log(high)) if logarithmic else (low, high)
    places = np.log(np.maximum(levels, low)) if logarithmic else levels
    table = np.clip(np.rint((places - ends[0]) * (255 / (ends[1] - ends[0]))), 1, 255).astype(np.uint8)
    table[0] = 0
    return table[np.minimum(counts, len(table) - 1)]


def density_range(counts: np.ndarray, logarithmic: bool = True) -> tuple[float, float]:
    """The ends of a scale for these counts, on which a single particle differs from an empty pixel.

    A linear scale saturates for the densest pixels, one in a thousand; otherwise all others would look empty.
    """
    most = max(int(counts.max(initial=0)), 1)
    return (0.5, float(most)) if logarithmic else (0.0, max(_quantile(counts, 0.999), 1.0))


def difference_range(difference: np.ndarray) -> float:
    """The end of a scale for differences of counts, which covers all but one in a thousand of the nonzero ones."""
    return max(_quantile(np.abs(difference), 0.999), 1.0)


def _quantile(counts: np.ndarray, share: float) -> float:
    """The quantile of the counts of non-empty pixels at this share."""
    often = np.bincount(counts.ravel())
    often[0] = 0
    return float(np.searchsorted(np.cumsum(often), share * often.sum()))


def _shown_axes(particles: Particles, axis: int) -> tuple[int, int]:
    if particles.dimensions == 2:
        return 0, 1
    _within("axis", axis, 3)
    across, up = (own for own in range(3) if own != axis)
    return across, up


def _pixels(places: np.ndarray, low: float, high: float, count: int) -> np.ndarray:
    """The pixel of each place, computed in the precision of the places."""
    real = places.dtype.type
    scaled = places - real(low)
    scaled *= real(count / (high - low))
    np.clip(scaled, 0, count - 1, out=scaled)   # places on the far edge, or rounded beyond it
    return scaled.astype(np.int32)
