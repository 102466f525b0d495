"""`wb.lab.limits`: the distance between codecs and the theoretical bound, and its causes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from workbench.bounds import Run
from workbench.data import Field
from workbench.guarantees import Absolute
from workbench.lab.bounds_panel.state import exponents, slices
from workbench.lab.cells import name_of
from workbench.lab.choices import whole
from workbench.lab.controls import Button, Choice, LogSlider, Row, Steps
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.limits_panel import drawing, theory
from workbench.lab.limits_panel.code import code
from workbench.lab.limits_panel.measuring import Measured, measure
from workbench.lab.limits_panel.pictures import pictures, reading
from workbench.lab.limits_panel.state import LEAST_EPS, MOST_EPS, MOST_REGIONS, LimitsState, require_field, tile_sides
from workbench.lab.limits_panel.theory import Model
from workbench.lab.limits_panel.tile_slider import TileSlider
from workbench.lab.panel import Panel
from workbench.lab.unusual import unusual


def limits(field: Field | np.ndarray, **choices: Any) -> LimitsPanel:
    """A panel that compares codecs with the bound of a field: its regions, their spectra, rate-distortion, gaps.

    All bounds are those of a Gaussian model fitted to each region of the field. `choices` are fields of `LimitsState`: eb,
    tile, eps, regions, above; picture, axis, index, time, window.

    >>> from workbench.data.synthetic import gaussian_field
    >>> panel = limits(gaussian_field((64, 64), seed=1), eb=0.05)
    >>> panel.change(tile=8)
    True
    >>> found = panel.result["figures"]
    >>> 0 < found.rate < found.tiled
    True
    >>> panel.close()
    """
    return LimitsPanel(require_field(field), name_of(field, "field"), **choices)


class LimitsPanel(Panel[LimitsState]):
    """The panel of `wb.lab.limits`; its results are "model", "curves", "tiled", "figures" and "news".

    On request also "fixed length" and "band", for codes of fixed length, and "points": operating points of codecs, and runs
    without one.
    """

    title = "Limits"

    def __init__(self, field: Field, name: str, **choices: Any) -> None:
        self.field, self.name = field, name
        self.measured: dict[Hashable, dict[str, Measured]] = {}   # by the choice of regions, which determines the bound
        stages = [
            Stage("model", _regions, self._fit, text="finding regions, fitting their spectra"),
            Stage("curves", _regions, lambda state, found, job: theory.curves(found["model"], job)),
            Stage(
                "tiled", lambda state: (state.regions, state.tile),
                lambda state, found, job: theory.tiled(found["model"], found["curves"], state, job),
                text="components of the tiles",
            ),
            Stage(
                "figures", lambda state: (state.regions, state.tile, state.eb),
                lambda state, found, job: theory.figures(found["model"], found["tiled"], state),
            ),
            Stage("news", _regions, self._news),
            Stage(
                "fixed length", lambda state: (state.regions, state.tile, state.eps, state.eb),
                lambda state, found, job: theory.fixed_length(found["tiled"], state, job), True,
                "fixed-length codes: converse",
            ),
            Stage(
                "band", lambda state: (state.regions, state.tile, state.eps),
                lambda state, found, job: theory.band(found["curves"], found["tiled"], state, job), True,
                "fixed-length codes at other errors",
            ),
            Stage("points", _regions, self._compare, on_demand=True, text="comparing codecs"),
        ]
        super().__init__(repr(field), LimitsState.for_(field, **choices), stages)

    def rows(self) -> Sequence[Row]:
        """The question above, the view below."""
        low, high = exponents(self.field, "absolute")
        failing = LogSlider("eps", "fails at most (ε)", LEAST_EPS, MOST_EPS, about="chance of failure")
        regions = {"as many as found": "auto", **{f"at most {most}": most for most in range(1, MOST_REGIONS + 1)}}
        ask = [
            LogSlider("eb", "error bound", 10.0**low, 10.0**high),
            TileSlider("tile", "tiles of", tile_sides(self.field)),
        ]
        compare = Button(
            "compare codecs", lambda: self.ask("points"), "run codecs at this error bound and at others", primary=True
        )
        fixed = Button("fixed-length codes", self.compute_fixed_length, "compute the bounds for codes of fixed length")
        scale = Choice("above", "", {"bits": False, "bits above the bound": True}, about="bits above the bound", tabs=True)
        return [
            Row(*ask, compare), Row(Choice("regions", "regions", regions), failing, fixed, place="folded"),
            Row(scale, place="side"), *([Row(*look, place="strip")] if (look := self._slice()) else []),
        ]

    def compute_fixed_length(self) -> None:
        """Compute the bounds for codes of fixed length at this error bound, and then at others."""
        self.ask("fixed length", then=lambda: self.ask("band"))

    def picture_chosen(self, title: str) -> None:
        """Show another picture in front."""
        self.request(picture=title)

    def draw(self, state: LimitsState, results: Results) -> Shown:
        """Pictures, charts and figures of what is known so far."""
        measured = tuple(self.measured.get(state.regions, {}).values())
        return drawing.draw(self.field, state, results, measured)

    def code_for(self, state: LimitsState) -> str:
        """The limits; codecs and codes of fixed length as far as they were asked for."""
        measured = self.measured.get(state.regions, {}).values()
        compared = {run.bound.eb for each in measured for run in [each if isinstance(each, Run) else each.run]}
        return code(state, self.name, compared, fixed="fixed length" in self._engine.results(state))

    def check(self, state: LimitsState) -> None:
        """Refuse slices that this field does not have."""
        state.check(self.field)

    def remark(self, state: LimitsState) -> str:
        """Bounds that are too large or too small for this field."""
        return unusual(self.field, Absolute(state.eb))

    def ready(self, results: Results) -> bool:
        """Drawing waits for the figures; the field alone is shown only at the beginning."""
        return "figures" in results

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """Value, region and new information at a place."""
        state, results = self.displayed
        return reading(self.field, state, results.get("model"), results.get("news"), (x, y))

    def implied(self, fields: Fields) -> Fields:
        """Another axis resets the window, and shows the middle slice."""
        if (axis := fields.get("axis", self.state.axis)) == self.state.axis:
            return fields
        return {"window": None, "index": slices(self.field, whole("the axis", axis, least=0)) // 2, **fields}

    def fit_controls(self) -> None:
        """The ends of the slice are those of its axis."""
        self._index.reach(slices(self.field, self.state.axis) - 1)

    def _slice(self) -> list[Any]:
        """The controls that choose the slice of the field."""
        shape = self.field.shape
        self._index = Steps("index", "slice", 0, slices(self.field, self.state.axis) - 1)
        if len(shape) < 3:
            return []
        moments = [Steps("time", "time", 0, shape[0] - 1)] if len(shape) == 4 else []
        return [*moments, Choice("axis", "slice across axis", {"0": 0, "1": 1, "2": 2}), self._index]

    # Stages.

    def _fit(self, state: LimitsState, results: Results, job: Job) -> Model:
        model = theory.fit_model(self.field, state, job)
        pictures(self.field, state, model, None)   # cached, so that drawing takes no time
        return model

    def _news(self, state: LimitsState, results: Results, job: Job) -> theory.News:
        news = theory.news(results["model"], job)
        pictures(self.field, state, results["model"], news)
        return news

    def _compare(self, state: LimitsState, results: Results, job: Job) -> tuple[Measured, ...]:
        """Every run is kept as soon as it is measured, so that a cancelled comparison shows its partial results."""
        found = self.measured.setdefault(state.regions, {})
        for name, measured in measure(results["model"].limits, self.field, state.eb, found, job):
            found[name] = measured
            job.show({"points": tuple(found.values())})
        job(1.0, "compared")   # which ends here if it was cancelled: a sweep only stops
        return tuple(found.values())


def _regions(state: LimitsState) -> Hashable:
    return state.regions
