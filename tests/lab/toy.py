"""A small panel, as a user would write one: it draws a circle and counts what is inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.charts.description import Axis, Chart, Series
from workbench.errors import WorkbenchError
from workbench.lab.choices import told_how_to_change
from workbench.lab.controls import Choice, LogSlider
from workbench.lab.description import Charts, Fact, Marks, Picture, Shown, Table, Window
from workbench.lab.engine import Results, Stage
from workbench.lab.panel import Panel


@told_how_to_change
@dataclass(frozen=True)
class ToyState:
    radius: float = 0.5
    colours: str = "density"
    window: Window | None = None

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise WorkbenchError(f"radius must be positive; got {self.radius}")


@dataclass(frozen=True)
class Counted:
    inside: int
    nbytes: int = 8


@dataclass(eq=False)
class Calls:
    counted: list[float] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)


class ToyPanel(Panel[ToyState]):
    title = "Toy"

    def __init__(self, points: np.ndarray, work: Any = None) -> None:
        self.points = points
        self.calls = Calls()
        self.work = work
        self.clicks: list[tuple[str, int]] = []
        stages = [
            Stage("counted", lambda state: state.radius, self._count),
            Stage("slow", lambda state: state.radius, self._slow, on_demand=True),
        ]
        super().__init__(f"{len(points)} points", ToyState(), stages)

    def rows(self) -> Sequence[Sequence[Any]]:
        return [[LogSlider("radius", "radius", 1e-2, 1.0), Choice("colours", "colours", ["density", "values"])]]

    def draw(self, state: ToyState, results: Results) -> Shown:
        counts, _, _ = np.histogram2d(*self.points.T, bins=32, range=[(-1, 1), (-1, 1)])
        pixels = np.minimum(60 * counts.T[::-1], 255).astype(np.uint8)
        marks = Marks("circles", [[0, 0, state.radius]], "#56b4e9", "circle", ids=np.array([7]))
        picture = Picture("points", pixels, (-1, 1, -1, 1), state.colours, 0, 4, marks=(marks,))
        count = results["counted"].inside if "counted" in results else 0
        axes = Axis.around("radius", [0, state.radius]), Axis.around("inside", [0, count])
        curve = Chart("Growth", *axes, (Series("inside", [0, state.radius], [0, count]),))
        inside = str(results["counted"].inside) if "counted" in results else "…"
        table = Table(("radius",), ((f"{state.radius:g}",),))
        facts = (Fact("inside", inside, "good"),)
        return Shown((picture,), None, Charts({"curve": curve}), facts, {"tried": table}, "A note.")

    def code_for(self, state: ToyState) -> str:
        return f"inside = (np.hypot(*points.T) <= {state.radius!r}).sum()"

    def picked(self, label: str, chosen: int) -> None:
        self.clicks.append((label, chosen))

    def _count(self, state: ToyState, results: Results, job: Any) -> Counted:
        self.calls.counted.append(state.radius)
        if self.work is not None:
            self.work(state, job)
        return Counted(int((np.hypot(*self.points.T) <= state.radius).sum()))

    def _slow(self, state: ToyState, results: Results, job: Any) -> Counted:
        self.calls.slow.append(state.radius)
        if self.work is not None:
            self.work(state, job)
        return Counted(results["counted"].inside + 1)
