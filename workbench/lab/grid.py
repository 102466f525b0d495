"""The axes of a field as pictures, sliders and readings name them: by coordinates, where the data have some.

Coordinates that are evenly spaced are the places in a picture, whose axes ascend upwards and to the right: a latitude that
descends in the file is turned round. Others have no scale, so cells are equally wide, and ticks name some of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench.data import Field
from workbench.data.labelled import coordinates_along
from workbench.data.units import unit_of_axes
from workbench.lab.remembered import remembered
from workbench.lab.units import axis_names

EVEN = 0.1     # of a cell: how far coordinates may be from evenly spaced places
DEGREES = {"degrees_north": "°N", "degrees_east": "°E", "degrees": "°", "degree": "°"}
LONGEST = 7    # characters of a date at a tick, if shorter ones differ
MONTH, DAY, SECOND = 7, 10, 19   # characters of a date in ISO 8601

Ticks = tuple[tuple[float, str], ...]
Coordinates = tuple[np.ndarray, str]   # one for each point, and their unit


@dataclass(frozen=True, eq=False)
class GridAxis:
    """One axis: cell `i` lies from `edge + i * step` to the next; the step is negative where a picture turns it round.

    Without a scale, places are numbers of cells. `coordinates` has one for each cell, or nothing.

    >>> axis = GridAxis.of("lat", np.array([60.0, 30.0, 0.0]), "degrees_north")
    >>> axis.covered(slice(0, 1)), axis.cell(44.0), axis.text(1), axis.named
    ((45.0, 75.0), 1, '30 °N', 'lat [°N]')
    """

    name: str
    count: int
    edge: float = 0.0
    step: float = 1.0
    unit: str = ""
    coordinates: np.ndarray | None = None
    scaled: bool = True

    @classmethod
    def of(cls, name: str, coordinates: np.ndarray, unit: str) -> GridAxis:
        """The axis of these coordinates, which are numbers, dates or texts."""
        count, unit = len(coordinates), DEGREES.get(unit, unit)
        if coordinates.dtype.kind == "m":
            coordinates, unit = coordinates / np.timedelta64(1, "h"), "h"
        if coordinates.dtype.kind in "fiu" and count > 1 and np.isfinite(coordinates).all():
            values = coordinates.astype(np.float64)
            step = float(values[-1] - values[0]) / (count - 1)
            if step and float(abs(values - (values[0] + step * np.arange(count))).max()) <= EVEN * abs(step):
                return cls(name, count, float(values[0]) - step / 2, step, unit, coordinates)
        ends = coordinates[0], coordinates[-1]
        turned = _are_dates(coordinates) or coordinates.dtype.kind in "fiu"
        turned = turned and bool(ends[1] < ends[0])
        return cls(name, count, float(count) if turned else 0.0, -1.0 if turned else 1.0, unit, coordinates, False)

    @property
    def named(self) -> str:
        """The name, with the unit if there is one."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def covered(self, cells: slice) -> tuple[float, float]:
        """The places of both ends of some cells, the lower first."""
        ends = self.edge + self.step * cells.start, self.edge + self.step * cells.stop
        return min(ends), max(ends)

    def touched(self, low: float, high: float) -> slice:
        """The cells between two places, at least one; tolerant to rounding errors."""
        first, last = sorted(((low - self.edge) / self.step, (high - self.edge) / self.step))
        start = min(max(math.floor(first + 1e-6), 0), self.count - 1)
        return slice(start, min(max(math.ceil(last - 1e-6), start + 1), self.count))

    def cell(self, place: float) -> int | None:
        """The cell at a place; None beyond the field."""
        index = math.floor((place - self.edge) / self.step)
        return index if 0 <= index < self.count else None

    def text(self, index: int) -> str:
        """The coordinate of a cell with its unit, or the number of the cell."""
        return str(index) if self.coordinates is None else f"{self._texts[index]} {self.unit}".rstrip()

    def where(self, index: int, time: bool = False) -> str:
        """A cell in words, as the place of a slice; of `time`, the first of four axes."""
        if self.coordinates is not None:
            return f"{self.name} = {self.text(index)} ({index} of {self.count})"
        named = "time" if time and self.name == "axis 0" else self.name
        place = f"{self.edge + (index + 0.5) * self.step:.4g} {self.unit}".rstrip()
        placed = f", {place}" if not time and (self.unit or self.step != 1) else ""
        return f"{named} = {index} of {self.count}{placed}"

    @property
    def texts(self) -> list[str]:
        """Those of all cells, where there are coordinates."""
        return [] if self.coordinates is None else list(map(self.text, range(self.count)))

    def index(self, text: str) -> int | None:
        """The cell whose coordinate is nearest to a typed number, or begins with a typed text; None if there is none.

        >>> GridAxis.of("time", np.array(["2026-01-16", "2026-02-15"], "M8[D]"), "").index("2026-02")
        1
        >>> GridAxis.of("lev", np.array([10.0, 50.0, 500.0]), "hPa").index("60 hPa")
        1
        """
        typed = text.removesuffix(self.unit).strip()
        if self.coordinates is not None and self.coordinates.dtype.kind in "fiu":
            try:
                apart = abs(self.coordinates.astype(np.float64) - float(typed))
            except ValueError:
                return None
            return int(np.nanargmin(apart)) if np.isfinite(apart).any() else None
        return next((index for index, known in enumerate(self._texts) if typed and known.startswith(typed)), None)

    @property
    def expected(self) -> str:
        """What may be typed for a cell of an axis with coordinates, of which numbers are not those of cells.

        >>> GridAxis.of("lev", np.array([10.0, 50.0, 500.0]), "hPa").expected
        'a coordinate such as 50 hPa'
        >>> GridAxis.of("time", np.array(["2026-01-16", "2026-02-15"], "M8[D]"), "").expected
        'a coordinate such as 2026-02-15, or a number from 0 to 1'
        """
        coordinate = f"a coordinate such as {self.text(self.count // 2)}"
        are_numbers = self.coordinates is not None and self.coordinates.dtype.kind in "fiu"
        return coordinate if are_numbers else f"{coordinate}, or a number from 0 to {self.count - 1}"

    def ticks(self, cells: slice, most: int) -> Ticks:
        """Some cells with their coordinates, for an axis without a scale; an axis with one has the ticks of its numbers."""
        if self.scaled:
            return ()
        shown = range(cells.start, cells.stop, -(-(cells.stop - cells.start) // most))
        texts = [self._texts[index] for index in shown]
        if self.coordinates is not None and _are_dates(self.coordinates) and max(map(len, texts)) > MONTH:
            texts = next((short for short in _shortened(texts) if len({*short}) == len(texts)), texts)
        return tuple((self.edge + self.step * (index + 0.5), text) for index, text in zip(shown, texts, strict=True))

    @functools.cached_property
    def _texts(self) -> list[str]:
        """Numbers in six digits; dates as ISO 8601 has them, without a time of day if all begin with their day."""
        if self.coordinates is None:
            return []
        if self.coordinates.dtype.kind in "fiu":
            return [f"{value:.6g}" for value in self.coordinates.tolist()]
        if not _are_dates(self.coordinates):
            return list(map(str, self.coordinates))
        if self.coordinates.dtype.kind == "M":
            texts = np.datetime_as_string(self.coordinates.astype("M8[s]")).tolist()
        else:
            texts = [one.isoformat()[:SECOND] for one in self.coordinates]
        return [text[:DAY] for text in texts] if all(text[DAY:] in ("", "T00:00:00") for text in texts) else texts


Grid = tuple[GridAxis, ...]


def plain_grid(field: Field) -> Grid:
    """The axes of a field with its spacing alone."""
    unit = unit_of_axes(field)
    return tuple(
        GridAxis(name, count, 0.0, step, unit)
        for name, count, step in zip(axis_names(field), field.shape, field.spacing, strict=True)
    )


def grid_of(field: Field, along: Callable[[str, int], Coordinates | None] | None = None) -> Grid:
    """The axes of a field; `along` gives the coordinates of a dimension, which else are those that the field carries.

    It is asked once for each field.

    >>> grid_of(Field(np.zeros((2, 3)), spacing=0.5, metadata={"dimensions": ["y", "x"]}))[1].covered(slice(0, 3))
    (0.0, 1.5)
    """

    def made() -> Grid:
        carried = {} if along else coordinates_along(field.metadata, field.shape)
        known = ((axis, along(axis.name, axis.count) if along else carried.get(axis.name)) for axis in plain_grid(field))
        return tuple(axis if each is None else GridAxis.of(axis.name, *each) for axis, each in known)

    return remembered(field, "grid", "", made)


def _are_dates(coordinates: np.ndarray) -> bool:
    """Whether these are dates, of NumPy or of another calendar."""
    return coordinates.dtype.kind == "M" or all(hasattr(one, "isoformat") for one in coordinates.flat)


def _shortened(texts: list[str]) -> list[list[str]]:
    """Dates as months, as days of one year, and as days."""
    days = [text[:DAY] for text in texts]
    of_year = [[day[5:] for day in days]] if len({day[:4] for day in days}) == 1 else []
    return [[text[:MONTH] for text in texts], *of_year, days]
