"""Slices of a field as pictures: the values of each pixel, in a window.

Pictures shown together share a pixel grid and a scale, so that differences between panes are differences of the data. A
slice larger than the picture is averaged over blocks of values; for errors a pixel shows the largest of its block, because
a mean would hide it. `Raster.block` is the size of the blocks, for notes.

Row 0 of a picture is at its top, and the vertical axis points up.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from workbench.arguments import whole_number
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.lab.description import PIXELS, Axes, Window
from workbench.lab.grid import Grid, GridAxis, plain_grid
from workbench.lab.remembered import remembered

DECADES = 6   # of a logarithmic scale, at most
ACROSS, UPWARDS = 4, 6   # ticks of an axis without a scale, at most

@dataclass(frozen=True)
class Cut:
    """The visible part of a field: the slice at `index` along `axis`, at one `time`, within a window.

    Axes are counted among the last three; the first of four is time. Fields of two axes have one slice. A `grid` with
    coordinates turns round what descends; all pictures of a slice need the same.
    """

    axis: int = 0
    index: int = 0
    time: int = 0
    window: Window | None = None
    pixels: int = PIXELS
    grid: Grid | None = None

    def plane(self, values: np.ndarray) -> np.ndarray:
        """The slice of an array with the field's shape, rows from the bottom up: a view.

        >>> Cut(axis=1, index=2).plane(np.arange(24).reshape(2, 3, 4)).tolist()
        [[8, 9, 10, 11], [20, 21, 22, 23]]
        """
        if values.ndim == 4:
            values = values[whole_number("time", self.time, 0, len(values) - 1)]
        if values.ndim == 3:
            axis = whole_number("axis", self.axis, 0, 2)
            return np.moveaxis(values, axis, 0)[whole_number("index", self.index, 0, values.shape[axis] - 1)]
        if values.ndim != 2:
            raise WorkbenchError(f"a slice needs a field of two to four axes; got shape {values.shape}: see `envelope`")
        return values

    def shown_axes(self, field: Field) -> tuple[GridAxis, GridAxis]:
        """The axes down and across a slice."""
        shown = list((self.grid or plain_grid(field))[-3:])
        if len(shown) == 3:
            del shown[self.axis]
        return shown[0], shown[1]

    def cells(self, field: Field) -> tuple[slice, slice]:
        """The rows and columns of the slice that the window touches; at least one of each."""
        self.plane(field.values)
        down, across = self.shown_axes(field)
        if self.window is None:
            return slice(0, down.count), slice(0, across.count)
        left, right, bottom, top = self.window
        return down.touched(bottom, top), across.touched(left, right)

    def covered(self, field: Field) -> Window:
        """The area of these cells: the window of the picture."""
        (down, across), (rows, columns) = self.shown_axes(field), self.cells(field)
        return *across.covered(columns), *down.covered(rows)

    def cell(self, field: Field, x: float, y: float) -> tuple[int, ...] | None:
        """The index of the cell at a place of the picture; None beyond the field.

        >>> Cut(axis=0, index=1).cell(Field(np.zeros((2, 3, 4)), spacing=0.5), 1.2, 0.1)
        (1, 0, 2)
        """
        down, across = self.shown_axes(field)
        row, column = down.cell(y), across.cell(x)
        if row is None or column is None:
            return None
        place = [row, column]
        if len(field.shape) > 2:
            place.insert(self.axis, self.index)
        return tuple(place) if len(field.shape) < 4 else (self.time, *place)

    def axes(self, field: Field) -> Axes:
        """The names of the axes of the picture, and where the slice is.

        >>> Cut(axis=0, index=12).axes(Field(np.zeros((192, 4, 4)), metadata={"dimensions": ["z", "y", "x"]}))
        Axes(across='x', up='y', unit='', depth='z = 12 of 192')
        >>> Cut().axes(Field(np.zeros((2, 2)), metadata={"dimensions": ["lat", "lon"], "units": "degC"})).unit
        ''
        """
        grid, (down, across), (rows, columns) = self.grid or plain_grid(field), self.shown_axes(field), self.cells(field)
        depth = [grid[-3:][self.axis].where(self.index)] if len(grid) > 2 else []
        if len(grid) == 4:
            depth.append(grid[0].where(self.time, time=True))
        ticks, named = (across.ticks(columns, ACROSS), down.ticks(rows, UPWARDS)), ", ".join(depth)
        if across.unit == down.unit:
            return Axes(across.name, down.name, across.unit, named, ticks)
        return Axes(across.named, down.named, "", named, ticks)


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
    grid = field if like is None else like
    values, valid = _cut_out(field, cut)
    if like is not None:
        valid &= _cut_out(like, cut)[1]
    if max(values.shape) <= cut.pixels:
        return _raster(np.where(valid, values, np.nan), grid, cut)
    sums = _blocks(np.where(valid, values, 0).astype(np.float64, copy=False), cut.pixels, np.add)
    counts = _blocks(valid.astype(np.uint32), cut.pixels, np.add)
    with np.errstate(invalid="ignore"):
        return _raster(sums / counts, grid, cut)   # 0 / 0 where nothing is valid


def error_raster(original: Field, decoded: Field, limit: Limit, cut: Cut) -> Raster:
    """Decoded minus original in units of the limit; a pixel shows the difference farthest from zero.

    If the limit is zero, no error is allowed, and the unit is that of the data.
    """
    error, valid = _error(original, decoded, limit, cut)
    high = _blocks(np.where(valid, error, -np.inf), cut.pixels, np.maximum)
    low = _blocks(np.where(valid, error, np.inf), cut.pixels, np.minimum)
    worst = np.where(high >= -low, high, low)
    return _raster(np.where(high >= low, worst, np.nan), original, cut)


def slice_range(field: Field, cut: Cut, logarithmic: bool = False) -> tuple[float, float]:
    """The ends of a scale for a whole slice, beyond the window: the smallest and largest value (if logarithmic, positive).

    A logarithmic scale spans six decades at most.
    """
    whole = Cut(cut.axis, cut.index, cut.time)

    def made() -> tuple[float, float]:
        values, valid = _cut_out(field, whole)
        shown = values[valid & (values > 0) if logarithmic else valid]
        if not shown.size:
            return (1.0, 10.0) if logarithmic else (0.0, 1.0)
        low, high = float(shown.min()), float(shown.max())
        return (max(low, high * 10.0**-DECADES), high) if logarithmic else (low, high)

    return remembered(field, "slice range", (whole, logarithmic), made)


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
    part = GridAxis("", len(values), step=step).touched(left, right)
    valid = np.isfinite(field.values[part]) if field.mask is None else np.isfinite(field.values[part]) & ~field.mask[part]
    shown = np.where(valid, values[part], np.nan)
    places = (np.arange(part.start, part.stop) + 0.5) * step
    if len(shown) <= 2 * points:
        return places, shown
    first = _first_of_blocks(len(shown), points)
    ends = np.stack([np.fmin.reduceat(shown, first), np.fmax.reduceat(shown, first)], axis=1)
    return np.repeat(places[first], 2), ends.ravel()


def _cut_out(field: Field, cut: Cut) -> tuple[np.ndarray, np.ndarray]:
    """The values in the window, and the mask of valid ones."""
    place = cut.cells(field)
    values = cut.plane(field.values)[place]
    valid = np.isfinite(values)
    return values, valid if field.mask is None else valid & ~cut.plane(field.mask)[place]


def _error(original: Field, decoded: Field, limit: Limit, cut: Cut) -> tuple[np.ndarray, np.ndarray]:
    """Errors in units of the limit, and the mask of existing ones; the error of a lost value is infinite."""
    values, valid = _cut_out(original, cut)
    returned = cut.plane(decoded.values)[cut.cells(original)]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = returned.astype(np.float64) - values
        if limit.value > 0:
            allowed = limit.value * np.abs(values, dtype=np.float64) if limit.relative else limit.value
            error = np.where(error == 0, 0.0, error / allowed)
    error[~np.isfinite(returned)] = np.inf
    return error, valid


def _raster(values: np.ndarray, field: Field, cut: Cut) -> Raster:
    rows, columns = cut.cells(field)
    block = [-(-(part.stop - part.start) // points) for part, points in zip((rows, columns), values.shape, strict=True)]
    down, across = (slice(None, None, 1 if axis.step > 0 else -1) for axis in cut.shown_axes(field))
    return Raster(values[down, across][::-1], cut.covered(field), (block[0], block[1]))


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

