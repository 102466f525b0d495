"""The content of a panel as plain values, returned by pure functions, drawn by views and inspected by tests.

Large pictures are bytes with a window into the data, drawn on a canvas; charts are HoloViews elements, which are
descriptions already. This module does not depend on widgets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from workbench.errors import WorkbenchError

STATIC = "LOSSBENCH_STATIC"   # if set, panels and charts display as HTML: for pages without a kernel

Window = tuple[float, float, float, float]   # left, right, bottom, top, in the unit of the data
ColourMap = Literal["density", "values", "difference"]
Shape = Literal["circles", "lines", "points", "boxes"]

COLUMNS: Mapping[str, int] = {"circles": 3, "lines": 4, "points": 2, "boxes": 4}


def checked_window(given: Any) -> Window | None:
    """A window as floats; raises for anything else. None means everything.

    >>> checked_window([0, 1, 0, 2])
    (0.0, 1.0, 0.0, 2.0)
    """
    if given is None:
        return None
    try:
        left, right, bottom, top = map(float, given)
    except (TypeError, ValueError):
        raise WorkbenchError(f"window must be left, right, bottom and top; got {given!r}") from None
    if not (math.isfinite(right - left) and left < right and math.isfinite(top - bottom) and bottom < top):
        raise WorkbenchError(f"window must be finite, with left < right and bottom < top; got {given!r}")
    return left, right, bottom, top


@dataclass(frozen=True, eq=False)
class Marks:
    """Shapes over a picture, in the unit of the data.

    `places` has a row for each: (x, y, radius) of circles, (x0, y0, x1, y1) of lines, (x, y) of points,
    (left, right, bottom, top) of boxes. `ids` makes them clickable: the panel receives the id of a clicked shape.

    >>> Marks("circles", [[0.5, 0.5, 0.1]], "#ffffff", "halos").places.shape
    (1, 3)
    """

    shape: Shape
    places: np.ndarray
    colour: str
    label: str = ""
    width: float = 1.5
    dashed: bool = False
    ids: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.shape not in get_args(Shape):
            raise WorkbenchError(f"shape must be one of {', '.join(get_args(Shape))}; got {self.shape!r}")
        columns = COLUMNS[self.shape]
        places = np.asarray(self.places, np.float32).reshape(-1, columns)
        object.__setattr__(self, "places", places)
        if self.ids is not None and len(self.ids) != len(places):
            raise WorkbenchError(f"ids must be one for each of the {len(places)} {self.shape}; got {len(self.ids)}")

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, eq=False)
class Picture:
    """One pane: bytes (height, width), row 0 at the top, in a colour map whose ends mean `low` and `high`.

    `window` is the area of the picture. On a logarithmic scale the byte is linear in the logarithm of the value. If `empty`
    is true, byte 0 means no value, as in masked cells.
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

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 2:
            raise WorkbenchError(f"pixels must be bytes (height, width); got {self.pixels.dtype} {self.pixels.shape}")
        if self.colours not in get_args(ColourMap):
            raise WorkbenchError(f"colours must be one of {', '.join(get_args(ColourMap))}; got {self.colours!r}")


Severity = Literal["", "good", "bad"]


@dataclass(frozen=True)
class Fact:
    """A figure with its name; `verdict` selects its colour and a sign before it."""

    name: str
    value: str
    verdict: Severity = ""
    meaning: str = ""   # the tooltip


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of text under a heading; `chosen` is the emphasised row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    chosen: int | None = None


class Charts(Mapping[str, Any]):
    """Charts by name, each made at its first access, because making one is too slow for every slider step.

    Only charts with data exist. Those named by `coming` are still being computed: a view keeps what it showed before.

    >>> charts = Charts({"curve": lambda: print("made") or "a curve"})
    >>> list(charts), charts["curve"], charts["curve"]
    made
    (['curve'], 'a curve', 'a curve')
    """

    def __init__(self, makers: Mapping[str, Callable[[], Any]], coming: Iterable[str] = ()) -> None:
        self._makers = dict(makers)
        self.coming = frozenset(coming) - makers.keys()
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True, eq=False)
class Shown:
    """Everything that a panel shows at one time.

    `pictures` are side by side with linked windows, `detail` is independent; `charts` are HoloViews elements by name, those
    that have data. A chart of a name always has the same structure in one panel, so that views can update it.
    """

    pictures: tuple[Picture, ...] = ()
    detail: Picture | None = None
    charts: Mapping[str, Any] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    note: str = ""   # one sentence under the pictures
