"""The content of a panel as plain values, returned by pure functions, drawn by views and inspected by tests.

Large pictures are bytes with a window into the data, drawn on a canvas; charts are those of `workbench/charts`, which are
descriptions already. This module does not depend on widgets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from workbench.charts.description import Chart
from workbench.errors import WorkbenchError, briefly

PIXELS = 1024   # of a picture along its longer side, unless the screen says otherwise
STATIC = "LOSSBENCH_STATIC"   # if set, panels and charts display as HTML: for pages without a kernel

Window = tuple[float, float, float, float]   # left, right, bottom, top, in the unit of the data
ColourMap = Literal["density", "values", "difference", "viridis", "grey"]
Shape = Literal["circles", "lines", "points", "boxes"]
Limits = Literal["full", "1-99", "0.1-99.9"]   # of the colours: the whole scale, or percentiles of what is shown

COLUMNS: Mapping[str, int] = {"circles": 3, "lines": 4, "points": 2, "boxes": 4}
DASHES = "5 4"   # pixels of line and gap, unless stated otherwise


def checked_window(given: Any) -> Window | None:
    """A window as floats; raises for anything else. None means everything.

    >>> checked_window([0, 1, 0, 2])
    (0.0, 1.0, 0.0, 2.0)
    """
    if given is None:
        return None
    try:
        left, right, bottom, top = map(float, given)
    except (OverflowError, TypeError, ValueError):
        raise WorkbenchError(f"window must be left, right, bottom and top; got {briefly(given)}") from None
    if not (math.isfinite(right - left) and left < right and math.isfinite(top - bottom) and bottom < top):
        raise WorkbenchError(f"window must be finite, with left < right and bottom < top; got {briefly(given)}")
    return left, right, bottom, top


@dataclass(frozen=True, eq=False)
class Marks:
    """Shapes over a picture, in the unit of the data.

    `places` has a row for each: (x, y, radius) of circles, (x0, y0, x1, y1) of lines, (x, y) of points,
    (left, right, bottom, top) of boxes. `ids` makes them clickable: the panel receives the id of a clicked shape. `titles`
    names each shape under the pointer. `dash` has the lengths of lines and gaps in pixels; points with a dash are rings.
    `opacity` is that of these shapes alone; those that are `near` are drawn in a window of a quarter of the whole, or less.

    >>> Marks("circles", [[0.5, 0.5, 0.1]], "#ffffff", "halos").places.shape
    (1, 3)
    >>> Marks("lines", [[0, 0, 1, 1]], "#ffffff", dash="2 3").dashed
    True
    """

    shape: Shape
    places: np.ndarray
    colour: str
    label: str = ""
    width: float = 1.5
    dashed: bool = False
    ids: np.ndarray | None = None
    dash: str = ""
    titles: Sequence[str] | None = None
    opacity: float = 1.0
    near: bool = False

    def __post_init__(self) -> None:
        if self.shape not in get_args(Shape):
            raise WorkbenchError(f"shape must be one of {', '.join(get_args(Shape))}; got {self.shape!r}")
        columns = COLUMNS[self.shape]
        places = np.asarray(self.places, np.float32).reshape(-1, columns)
        object.__setattr__(self, "places", places)
        if self.ids is not None and len(self.ids) != len(places):
            raise WorkbenchError(f"ids must be one for each of the {len(places)} {self.shape}; got {len(self.ids)}")
        if self.titles is not None and len(self.titles) != len(places):
            raise WorkbenchError(f"titles must be one for each of the {len(places)} {self.shape}; got {len(self.titles)}")
        object.__setattr__(self, "dash", self.dash or (DASHES if self.dashed else ""))
        object.__setattr__(self, "dashed", bool(self.dash))

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True)
class Axes:
    """What the edges of a picture mean: the names of both axes, their unit of length, and the extent along the third.

    `ticks` are places and texts across and up, for an axis whose places are no numbers, such as dates; else there are none.

    >>> Axes("x", "y", "Mpc/h", "all 48 Mpc/h along z").unit
    'Mpc/h'
    """

    across: str = ""
    up: str = ""
    unit: str = ""
    depth: str = ""
    ticks: tuple[tuple[tuple[float, str], ...], tuple[tuple[float, str], ...]] = field(default=((), ()), repr=False)


@dataclass(frozen=True)
class Reading:
    """The exact content of one place: a text for each picture, and `place` in words, such as the index of a cell.

    What is too long to stand above a picture is in `lines`, which are shown beside the pointer.

    >>> Reading(("0.25", "0.2501", "0.0001 = 0.01 bounds"), "cell [3, 4]").values[0]
    '0.25'
    """

    values: tuple[str, ...] = ()
    place: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Picture:
    """One pane: levels (height, width), row 0 at the top, in a colour map whose ends mean `low` and `high`.

    Levels are bytes or, where limits of the colours may be narrow, 16-bit integers. `window` is the area of the picture.
    On a logarithmic scale the level is linear in the logarithm of the value. If `empty` is true, level 0 means no value, as
    in masked cells. The colour bar names `quantity` and `unit`; without a range, `low` being `high`, there is none.
    `palette` has a colour for each of the whole numbers from `low` to `high`, instead of a colour map. Skewed data are
    visible with `limits` of percentiles; the reader may choose others.
    """

    title: str
    pixels: np.ndarray
    window: Window
    colours: ColourMap = "values"
    low: float = 0.0
    high: float = 1.0
    logarithmic: bool = False
    unit: str = ""
    empty: bool = False
    marks: tuple[Marks, ...] = ()
    axes: Axes = Axes()
    palette: tuple[str, ...] = ()
    quantity: str = ""
    limits: Limits = "full"

    def __post_init__(self) -> None:
        if self.pixels.dtype not in (np.uint8, np.uint16) or self.pixels.ndim != 2:
            got = f"{self.pixels.dtype} {self.pixels.shape}"
            raise WorkbenchError(f"pixels must be bytes or 16-bit integers (height, width); got {got}")
        if self.colours not in get_args(ColourMap):
            raise WorkbenchError(f"colours must be one of {', '.join(get_args(ColourMap))}; got {self.colours!r}")


Severity = Literal["", "good", "bad"]


@dataclass(frozen=True)
class Fact:
    """A figure with its name; `verdict` selects its colour and a sign before it. Figures of one `group` stand together."""

    name: str
    value: str
    verdict: Severity = ""
    meaning: str = ""   # the tooltip
    unit: str = ""
    group: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of text under a heading; `chosen` is the emphasised row.

    `total` counts all things of which the rows are the first. `action` says what a click on a row does: the panel's
    `row_chosen` is called. Without it, rows cannot be chosen, and those of `fixed` never can. `foot` stands below all rows,
    however these are sorted. A table that stands `above` the controls is what they are about: it is always open.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    chosen: int | None = None
    total: int | None = None
    action: str = ""
    foot: tuple[str, ...] = ()
    fixed: frozenset[int] = frozenset()
    above: bool = False

    @property
    def extent(self) -> str:
        """How many rows there are, for the title.

        >>> Table(("halo",), (("7",), ("9",)), total=308).extent
        '2 of 308'
        """
        count = f"{len(self.rows):,}"
        return count if self.total is None or self.total == len(self.rows) else f"{count} of {self.total:,}"


class Charts(Mapping[str, Chart]):
    """Charts by name, or functions that make them at their first access, because that is too slow for every slider step.

    Only charts with data exist. Those named by `coming` are still being computed: a view keeps what it showed before.

    >>> charts = Charts({"curve": lambda: print("made") or "a curve"})
    >>> list(charts), charts["curve"], charts["curve"]
    made
    (['curve'], 'a curve', 'a curve')
    """

    def __init__(self, makers: Mapping[str, Chart | Callable[[], Chart]], coming: Iterable[str] = ()) -> None:
        self._makers = dict(makers)
        self.coming = frozenset(coming) - makers.keys()
        self._made: dict[str, Chart] = {}

    def __getitem__(self, name: str) -> Chart:
        if name not in self._made:
            maker = self._makers[name]
            self._made[name] = maker() if callable(maker) else maker
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True, eq=False)
class Shown:
    """Everything that a panel shows at one time.

    `answer` is the sentence that a reader looks for, of words and its few figures; all `facts` stand under a fold then.
    `pictures` have linked windows: they are side by side or, with a number in `front`, in one place, where the reader can
    choose another. `detail` is independent. `charts` are by name, those that have data; those `among` the pictures stand
    where these do, such as lines of values, and those in `beside` at their right, below the sentence `remark`, the others
    below. If `stale`, all content belongs to an earlier state and is dimmed. `settings` are the choices in words, for
    reports.
    """

    pictures: tuple[Picture, ...] = ()
    detail: Picture | None = None
    charts: Charts = field(default_factory=lambda: Charts({}))
    facts: tuple[Fact, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    note: str = ""   # one sentence under the pictures
    settings: Mapping[str, str] = field(default_factory=dict)
    stale: bool = False
    answer: tuple[str | Fact, ...] = ()
    front: int | None = None
    among: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    remark: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.charts, Charts):
            raise WorkbenchError(f"charts must be Charts; got {type(self.charts).__name__}: use Charts({{name: chart}})")
