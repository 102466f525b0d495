"""The bounds panel of one field, or of particles: drag an error bound, and see its cost and its errors at once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import codecs
from workbench.bounds import find_bound, iter_sweep
from workbench.bounds.measure import observe
from workbench.bounds.run import Run, label_of
from workbench.codecs import Codec
from workbench.codecs.interpolation import Interpolation
from workbench.codecs.interpolation_model import Model
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Exact
from workbench.lab.bounds_panel import drawing
from workbench.lab.bounds_panel.code import code
from workbench.lab.bounds_panel.consequences import implied
from workbench.lab.bounds_panel.examined import Examined
from workbench.lab.bounds_panel.forecast import Forecast, forecast_of
from workbench.lab.bounds_panel.goals import Answer, Goal, answer_of, code_of, goals_of, target_of
from workbench.lab.bounds_panel.pictures import pictures
from workbench.lab.bounds_panel.reading import reading
from workbench.lab.bounds_panel.state import (
    BOUNDS,
    PARTS,
    BoundsState,
    applicable,
    exponents,
    kind_of,
    kinds_of,
    other_questions,
)
from workbench.lab.bounds_panel.trial import Spectra, Trial, spectra_of, try_bound
from workbench.lab.controls import Button, Choice, LogSlider, Number, Row, Steps, Toggle, Words
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.grid import GridAxis, grid_of
from workbench.lab.jobs import Job
from workbench.lab.live.examples import example_of
from workbench.lab.panel import Panel
from workbench.lab.part import Part
from workbench.lab.saving import SaveArchive
from workbench.lab.unusual import unusual

NOTHING = "nothing"   # in place of a second target
SLICES = {"index": "slice", "time": "time"}   # names of the sliders over slices, by the fields that they choose


class BoundsPanel(Panel[BoundsState]):
    """The panel of `wb.lab.bounds`; its results are "trial", "forecast" and "spectra", and "search" after `find`.

    `called` is the model of the first state as Python. With a model, "plain" has the run without it.
    """

    title = "Bounds"

    def __init__(self, data: Any, name: str, called: str = "model", **choices: Any) -> None:
        self.name, self._called = name, called
        self._offered: Model | None = choices.get("model")
        super().__init__(*self.opened(data, choices), self.stages())

    def opened(self, data: Any, choices: dict[str, Any]) -> tuple[str, BoundsState]:
        """Take the data; returns them in words, and the first state."""
        self._examined = Examined.of(data)
        return repr(data), BoundsState.for_(self._examined.data, **choices)

    def stages(self) -> list[Stage]:
        """The computation."""
        return [
            Stage("trial", self._question, self._try),
            Stage("forecast", lambda state: (self.part(state), state.codec), self._forecast),
            Stage("plain", self._question, self._plain),
            Stage("spectra", self._question, self._spectra),
            Stage("search", self._wanted, self._find, on_demand=True, text="searching"),
            Stage("others", self._question, self._compare, on_demand=True, text="comparing codecs"),
        ]

    def examined(self, state: BoundsState) -> Examined:
        """The data that a state is about, with what was measured of them."""
        return self._examined

    @property
    def data(self) -> Particles | Field:
        """The data on display."""
        return self.examined(self.state).data

    @property
    def history(self) -> dict[str, Run]:
        """The latest runs of these data."""
        return self.examined(self.state).runs

    def live_example(self) -> dict[str, Any]:
        """The data, with the present bound if that is an absolute one."""
        state = self.state
        return example_of(self.data, self.name, start=state.eb if state.kind == "absolute" else None)

    def rows(self) -> Sequence[Row]:
        """The bound and the search for one above, the view below the pictures."""
        save = SaveArchive(f"{self.name}.zip", self.save_archive, self.when_settled)
        return [*self._control_rows(goals_of(self.data)), Row(save, save.download, place="foot")]

    def _control_rows(self, goals: Mapping[str, Goal], *more: Part) -> list[Row]:
        """The controls of the bound, of the search for one, with more behind, and of the view."""
        bound, compare = self._bound_controls(), [self._compare_button(), *more]
        self._outcome = Words(wide=True)
        view = Row(*self._view_controls(), place="strip")
        if not goals:
            return [Row(*bound, *compare), view]
        return [Row(*bound), Row(*self._search_controls(goals), *compare), view]

    def _bound_controls(self) -> list[Any]:
        """The controls that choose the codec and the bound."""
        low, high = exponents(self.data, self.state.kind)
        self._slider = LogSlider("eb", "error bound", 10.0**low, 10.0**high, spoken=lambda state: PARTS[state.kind])
        codecs = [codec.id for codec in applicable(self.data)]
        kinds = Choice("kind", "kind of bound", kinds_of(self.data))
        choose: list[Any] = [Choice("codec", "codec", codecs, text_of=_text_of), kinds]
        if isinstance(self.data, Particles):
            choose.append(Choice("order", "order", {"kept": "keep", "free": "free"}))
        if self._offered is not None:
            choose.insert(1, Choice("model", "model", {self._called: self._offered, "none": None}))
        return [*choose, self._slider]

    def _search_controls(self, goals: Mapping[str, Goal]) -> list[Any]:
        """The controls that search for a bound, with what was found."""
        find = Button("find", self.find, "search for the bound that meets the target, with a few compressions of all data")
        self._second_goal = Number("second_goal", "at", about="number of the second target")
        more = {NOTHING: None, **{words: goal for words, goal in goals.items() if goal != "total"}}
        return [Choice("target", "target", goals, about="target"), Number("goal", "at", about="number of the target"),
                Choice("second", "and", more, about="second target"), self._second_goal, find, self._outcome]

    def _compare_button(self) -> Button:
        return Button("compare codecs", lambda: self.ask("others"), "try all other codecs at this bound")

    def draw(self, state: BoundsState, results: Results) -> Shown:
        """Pictures, charts and figures of the trial, and all earlier runs."""
        examined, plain = self.examined(state), next(iter(results.get("plain", ())), None)
        return drawing.draw(
            examined.data, state, results.get("trial"), tuple(examined.runs.values()), results.get("spectra"),
            results.get("forecast"), self.answer(state, results), plain, results.get("others", ()),
        )

    def answer(self, state: BoundsState, results: Results) -> Answer | None:
        """What a search has found, if the state is what it was about, or has come of it."""
        answer = results.get("search")
        return answer if isinstance(answer, Answer) and answer.bound in (None, state.bound) else None

    def code_for(self, state: BoundsState) -> str:
        """Compress, decompress, compare; after a search, the search too."""
        examined = self.examined(state)
        return code(state, self.name, examined.riders, examined.searched.get(_key(state), ""), self._called)

    def check(self, state: BoundsState) -> None:
        """Refuse slices that these data do not have."""
        state.check(self.examined(state).data)

    def remark(self, state: BoundsState) -> str:
        """Bounds that are too large or too small for these data."""
        return "" if state.exact else unusual(self.examined(state).data, state.bound)

    def ready(self, results: Results) -> bool:
        """Pictures wait for the trial."""
        return "trial" in results

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """Original, decoded and error at a place."""
        state, results = self.displayed
        return reading(self.examined(state).data, state, results.get("trial"), (x, y))

    def implied(self, fields: Fields) -> Fields:
        """What follows from a change; a text that is no coordinate is refused with an example of one."""
        for field, axis in self._axes().items():
            if axis.texts and isinstance(typed := fields.get(field), str):
                raise WorkbenchError(f"the {SLICES[field]} must be {axis.expected}; {typed!r:.60} is not one")
        return implied(self.state, self.data, fields)

    def fit_controls(self) -> None:
        """The ends of the bound are those of its kind, the ends of the slice those of its axis."""
        low, high = exponents(self.data, self.state.kind)
        self._slider.span(10.0**low, 10.0**high)
        self._fit_slices()

    def show_parts(self) -> None:
        """The outcome of a search, beside its button."""
        answer = self.answer(self.state, self._engine.results())
        self._outcome.set(text="" if answer is None else answer.words)
        self._second_goal.set(hidden=self.state.second is None)

    def find(self) -> None:
        """Search for the bound that meets the target, and choose it."""
        asked = self._wanted(self.state)
        self.ask("search", lambda: self._choose(asked))

    def _choose(self, asked: Hashable) -> None:
        """Choose the bound that was found, unless the user has chosen something else in the meantime."""
        answer = self._engine.results().get("search")
        if asked == self._wanted(self.state) and isinstance(answer, Answer) and answer.bound is not None:
            self.request(eb=answer.bound.eb, **self._codec_searched())

    def _codec_searched(self) -> dict[str, Codec]:
        """The codec of the search, where it is not the chosen one: for a PSNR, it has options that lower mean errors."""
        codec = _suited(self.state, self.state.given)
        return {} if codec == self.state.given else {"codec": codec}

    def row_chosen(self, table: str, row: int) -> None:
        """Show an earlier run again."""
        tried = list(self.history.values())
        if row >= len(tried):
            return   # the present run, which the history has forgotten
        run = tried[row]
        codec = codecs.from_dict(run.codec)
        model = self._offered
        if isinstance(codec, Interpolation) and model is not None and codec.model == model.text:
            codec = dataclasses.replace(codec, model=None)
        else:
            model = None
        named = codec.id if codec == codecs.get(codec.id) else codec
        exact = isinstance(run.bound, Exact)
        bound = {} if exact else {"kind": kind_of(run.bound), "eb": run.bound.eb}
        self.request(codec=named, model=model, exact=exact, order=run.order, **bound)

    def save_archive(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the archive that is shown; returns its path."""
        trial: Trial = self.result["trial"]
        return trial.archive.save(path, overwrite).resolve()

    def _view_controls(self) -> list[Any]:
        """The controls that choose the visible part of the data."""
        self._steps = {field: Steps(field, name, 0, 0) for field, name in SLICES.items()}
        if isinstance(self.data, Particles):
            axes = {"along x": 0, "along y": 1, "along z": 2} if self.data.dimensions == 3 else {}
            return [Choice("axis", "seen", axes, about="line of sight")] if axes else []
        controls: list[Any] = [Toggle("logarithmic", "log colours")] if len(self.data.shape) > 1 else []
        names = [axis.name.removeprefix("axis ") for axis in grid_of(self.data)[-3:]]
        if len(names) == 3:
            across = names if len({*names}) == 3 else "012"   # an axis may stand twice, as in a covariance
            numbered = dict(zip(across, range(3), strict=True))
            controls = [Choice("axis", "slice across axis", numbered), self._steps["index"], *controls]
        self._fit_slices()
        return controls if len(self.data.shape) < 4 else [self._steps["time"], *controls]

    def _fit_slices(self) -> None:
        for field, axis in self._axes().items():
            self._steps[field].reach(axis.count - 1, axis.texts, axis.index)

    def _axes(self) -> dict[str, GridAxis]:
        """The axes across which slices are chosen, by the fields that choose them."""
        grid = () if isinstance(self.data, Particles) else grid_of(self.data)
        across = {"index": grid[-3:][self.state.axis]} if len(grid) > 2 else {}
        return {**across, "time": grid[0]} if len(grid) > 3 else across

    # Stages.

    def _try(self, state: BoundsState, results: Results, job: Job) -> Trial:
        examined = self.examined(state)
        trial = try_bound(examined.data, state, job)
        examined.note(trial.run)
        pictures(examined.data, state, trial)   # cached, so that drawing takes no time
        return trial

    def _forecast(self, state: BoundsState, results: Results, job: Job) -> Forecast:
        job(0.8, "predicting other bounds")
        return forecast_of(self.examined(state).data, state.chosen)

    def _plain(self, state: BoundsState, results: Results, job: Job) -> tuple[Run, ...]:
        """The run without the model; none if there is no model."""
        if state.model is None:
            return ()
        without = dataclasses.replace(state, model=None).question
        examined = self.examined(state)
        run = observe(examined.data, without, lambda share, what: job(share, f"without the model: {what}"))[0]
        examined.note(run)
        return (run,)

    def _find(self, state: BoundsState, results: Results, job: Job) -> Answer:
        examined = self.examined(state)

        def watch(run: Run) -> None:
            examined.note(run)
            job.show({"search": run})

        target = target_of(state.wanted)
        search = find_bound(
            examined.data, target, state.chosen, kind=BOUNDS[state.kind].kind, order=state.order,
            progress=lambda share, what: job(share or 0.0, what), watch=watch,
        )
        if search.met:
            chosen = dataclasses.replace(state, eb=search.bound.eb, exact=False, codec=_suited(state, state.given))
            examined.searched[_key(chosen)] = code_of(state.wanted)
        return answer_of(state.wanted, search)

    def _spectra(self, state: BoundsState, results: Results, job: Job) -> Spectra:
        return spectra_of(self.examined(state).data, results["trial"], job)

    def _compare(self, state: BoundsState, results: Results, job: Job) -> tuple[Run, ...]:
        examined, runs = self.examined(state), []   # type: Examined, list[Run]
        others = [question.codec for question in other_questions(examined.data, state)]
        for run in iter_sweep(examined.data, others, state.bound, order=state.order, cancel=job, progress=job):
            examined.note(run)
            runs.append(run)
            job.show({"others": tuple(runs)})
        job(1.0, "compared")
        return tuple(runs)

    def _question(self, state: BoundsState) -> Hashable:
        """What a trial depends on."""
        return self.part(state), _key(state)

    def _wanted(self, state: BoundsState) -> Hashable:
        """What a search depends on: everything of a trial but the bound."""
        return self.part(state), state.wanted, str(_suited(state, state.chosen)), state.kind, state.order


def _text_of(codec: str | Codec) -> str:
    """A codec that is not offered, as a choice: the panel of a dataset chooses by name."""
    return codec if isinstance(codec, str) else label_of(codec)


def _suited(state: BoundsState, codec: Codec) -> Codec:
    """The codec with which a search looks for the target of the state."""
    return codec.for_mean_errors() if any(each.goal == "psnr" for each in state.wanted) else codec


def _key(state: BoundsState) -> str:
    return json.dumps(state.question.to_dict(), sort_keys=True)
