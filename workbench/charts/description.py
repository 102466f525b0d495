"""Charts as frozen values: axes, and what is drawn between them. The forms of a chart are made from these alone.

`svg.py` draws a chart without a library, for reports, notebooks and files, and `to_holoviews.py` makes the live one. So
marks, ticks, colours and words are the same in all of them, and tests look at numbers instead of at drawings. The key names
every part that has a name and something to show, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from workbench.charts.looks import GREY, Dash, Look, Marker, looks_of
from workbench.charts.ticks import texts, ticks
from workbench.text_files import write_text

Values = Sequence[float] | np.ndarray
Box = tuple[float, float, float, float]   # left, bottom, right, top
Names = Sequence[tuple[float, str]]

LONG_AXIS = 30        # ratio of the largest to the smallest value above which an axis is logarithmic
MOST_SAID = 16        # values of a series, or boxes, in the words of a chart
LARGEST = 1e307       # of what is drawn: beyond it, room beside the values is no number


@dataclass(frozen=True)
class Axis:
    """An axis with its ends. `names` are ticks with texts of their own, turned if there are many."""

    title: str
    low: float
    high: float
    logarithmic: bool = False
    names: Names = ()
    turned: bool = False

    @classmethod
    def around(
        cls, title: str, values: Values, logarithmic: bool | None = False, room: float = 0.05, names: Names = ()
    ) -> Axis:
        """An axis that shows these values; `logarithmic=None` if they span more than about a decade.

        >>> Axis.around("size", [1.0, 1000.0], None).logarithmic, Axis.around("size", [60.0, 80.0], None).logarithmic
        (True, False)
        """
        if logarithmic is None:
            logarithmic = len(values) > 0 and min(values) > 0 and max(values) / LONG_AXIS >= min(values)
        return cls(title, *limits(values, logarithmic, room), logarithmic, names)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The ticks and their texts."""
        marks = [] if self.names else ticks(self.low, self.high, self.logarithmic)
        return [*self.names, *zip(marks, texts(marks), strict=True)]

    def share(self, values: Any) -> np.ndarray:
        """Where values are, from 0 at the low end to 1 at the high one; NaN for those without a place.

        >>> Axis("k", 1.0, 100.0, logarithmic=True).share([10.0, -1.0]).tolist()
        [0.5, nan]
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            numbers, low, high = (
                np.log10(each) if self.logarithmic else np.asarray(each, np.float64) / 2
                for each in (np.asarray(values, np.float64), self.low, self.high)
            )
            share = (numbers - low) / (high - low)
        return np.where(np.isfinite(share), np.clip(share, -50, 50), np.nan)


def limits(values: Values, logarithmic: bool = False, room: float = 0.05) -> tuple[float, float]:
    """The ends of an axis for these values, with some room; values without a place on the axis are ignored.

    >>> limits([1.0, 100.0, float("nan")], logarithmic=True, room=0.5)
    (0.1, 1000.0)
    >>> limits([]), limits([3.0])
    ((0.0, 1.0), (1.5, 4.5))
    """
    places = np.asarray(values, np.float64).ravel()
    places = places[np.isfinite(places) & (places > 0 if logarithmic else True)]
    if not places.size:
        return (1.0, 10.0) if logarithmic else (0.0, 1.0)
    places = np.clip(places, -LARGEST, LARGEST)
    if logarithmic:
        places = np.log10(places)
    low, high = float(places.min()), float(places.max())
    beside = (high - low) * room or (0.5 if logarithmic else abs(low) / 2 or 0.5)
    low, high = low - beside, high + beside
    return (max(10.0**low, 1e-307), 10.0 ** min(high, 308)) if logarithmic else (low, high)


@dataclass(frozen=True, eq=False)
class Series:
    """Places that are joined by a line, have marks, or both. `tooltips` are the words under the pointer at each place."""

    name: str
    x: Values
    y: Values
    colour: str = GREY
    dash: Dash | None = "solid"     # None: no line
    marker: Marker | None = None    # None: no marks
    width: float = 1.8
    size: float = 8.0
    opacity: float = 1.0
    hollow: bool = False
    tooltips: Sequence[str] = ()
    meaning: str = ""               # of the entry in the key

    def __post_init__(self) -> None:
        for axis in "xy":
            values = np.array(getattr(self, axis), np.float64)
            values.flags.writeable = False
            object.__setattr__(self, axis, values)

    @property
    def shown(self) -> bool:
        """Whether any place is a number."""
        return bool((np.isfinite(self.x) & np.isfinite(self.y)).any())


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two lines."""

    name: str
    x: Values
    low: Values
    high: Values
    colour: str = GREY
    opacity: float = 0.18

    @property
    def outline(self) -> tuple[np.ndarray, np.ndarray]:
        """Its corners that are numbers."""
        x, y = np.concatenate([self.x, self.x[::-1]]), np.concatenate([self.low, self.high[::-1]])
        kept = np.isfinite(x) & np.isfinite(y)
        return x[kept], y[kept]

    @property
    def shown(self) -> bool:
        """Whether it has corners."""
        return bool(len(self.outline[0]))


@dataclass(frozen=True)
class Span:
    """A strip across the whole chart, between two places of an axis."""

    name: str
    axis: Literal["x", "y"]
    low: float
    high: float
    colour: str = GREY
    opacity: float = 0.18
    meaning: str = ""
    shown = True


@dataclass(frozen=True)
class Rule:
    """A straight line across the whole chart, at a place of an axis."""

    name: str
    axis: Literal["x", "y"]
    place: float
    colour: str = GREY
    dash: Dash = "dashed"
    width: float = 1.2

    @property
    def shown(self) -> bool:
        """Whether the place is a number."""
        return math.isfinite(self.place)


@dataclass(frozen=True)
class Cells:
    """Boxes, such as bars and the cells of a map. `tooltips` are the words under the pointer, `texts` those in the boxes.

    `colours` are those of the boxes, if they differ.
    """

    name: str
    boxes: Sequence[Box]
    colour: str = GREY
    opacity: float = 1.0
    tooltips: Sequence[str] = ()
    texts: Sequence[str] = ()
    colours: Sequence[str] = ()
    outlined: bool = True

    @property
    def shown(self) -> bool:
        """Whether there are boxes."""
        return bool(len(self.boxes))


Part = Series | Band | Span | Rule | Cells


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """A chart, shown by notebooks and written by `save`.

    `about` says in words what it shows, instead of its axes and the last values of its series; where places have names, all
    values. `note` stands below it, and `scale` is in the key instead of the parts. `height` is in pixels of the page.

    >>> Chart("growth", Axis("k", 1, 10), Axis("power", 0, 4), (Series("found", [1, 10], [1, 3]),)).words
    'growth: power by k. found: 3 at 10.'
    >>> stages = Axis("stage", 0, 1, names=((0, "input"), (1, "waves")))
    >>> Chart("errors", stages, Axis("error", 0, 4), (Series("measured", [0, 1], [1, 3]),)).words
    'errors: error by stage. measured: 1 at input, 3 at waves.'
    """

    title: str
    x: Axis
    y: Axis
    parts: tuple[Part, ...]
    about: str = ""
    height: int = 220
    note: str = ""
    scale: tuple[Part, ...] = ()
    grid: bool = True

    def of(self, kind: type) -> list[Any]:
        """The parts of a kind."""
        return [part for part in self.parts if isinstance(part, kind)]

    @property
    def key(self) -> dict[str, list[Part]]:
        """The parts that are in the key, by name."""
        entries: dict[str, list[Part]] = {}
        for part in self.scale or [part for part in self.parts if part.name and part.shown]:
            entries.setdefault(part.name, []).append(part)
        return entries

    @property
    def words(self) -> str:
        """What the chart shows, in words."""
        if self.about:
            return self.about
        said = {part.name: words for part in self.parts if part.name and part.shown if (words := self._values(part))}
        head = f"{self.title}: " if self.title else ""
        return f"{head}{self.y.title} by {self.x.title}. {'; '.join(said.values())}{'.' if said else ''}".strip()

    def _values(self, part: Part) -> str:
        """The values of a series at all places that have names, or the last one; boxes by their tooltips, if few."""
        if isinstance(part, Cells):
            told = part.tooltips if self.x.names and len(part.tooltips) <= MOST_SAID else ()
            return f"{part.name}: {', '.join(told)}" if told else ""
        if not isinstance(part, Series):
            return ""
        x, y = np.asarray(part.x), np.asarray(part.y)
        there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if not self.x.names or len(there) > MOST_SAID:
            there = there[[np.argmax(x[there])]]
        return f"{part.name}: {', '.join(f'{y[at]:.4g} at {self.place(x[at])}' for at in there)}"

    def place(self, x: float) -> str:
        """A place on the x axis in words."""
        return dict(self.x.names).get(float(x), f"{x:.4g}")

    def tooltips_of(self, part: Series) -> Sequence[str]:
        """The words under the pointer at each place of a series."""
        name = f"{part.name}: " if part.name else ""
        return part.tooltips or [f"{name}{y:.6g} at {self.place(x)}" for x, y in zip(part.x, part.y, strict=True)]

    @property
    def svg(self) -> str:
        """The drawing as SVG."""
        from workbench.charts.svg import drawing

        return drawing(self)

    def save(self, path: str | Path) -> Path:
        """Write the drawing as an SVG file."""
        return write_text(path, self.svg, "a chart", ".svg")

    def __repr__(self) -> str:
        return f"Chart({self.title})"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}</div>"


@dataclass(frozen=True)
class Point:
    """A place that belongs to a codec or another line, and the words for it."""

    line: str
    x: float
    y: float
    tooltip: str

    @property
    def finite(self) -> bool:
        """Whether it has a place."""
        return math.isfinite(self.x) and math.isfinite(self.y)


def joined(points: Iterable[Point], known: Mapping[str, Look] = MappingProxyType({})) -> list[Series]:
    """A series for each line, from left to right, in its look; `known` are the looks of codecs.

    Points without a place are left out.

    >>> [(each.name, each.marker) for each in joined([Point("a", 1, 2, "")], {"a": Look("#d4524f", "square")})]
    [('a', 'square')]
    """
    lines: dict[str, list[Point]] = {}
    for point in points:
        if point.finite:
            lines.setdefault(point.line, []).append(point)
    looks, series = looks_of(lines, known), []
    for name, line in lines.items():
        line.sort(key=lambda point: point.x)
        look, places = looks[name], ([point.x for point in line], [point.y for point in line])
        tooltips = [point.tooltip for point in line]
        series.append(Series(name, *places, look.colour, look.dash, look.marker, tooltips=tooltips))
    return series
