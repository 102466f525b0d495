"""`wb.lab.bounds` for a dataset: the bounds panel for one variable after the other, and one archive of all of them.

A table above the controls has a row for each variable; the one that is chosen there is what the pictures, controls and
figures are about, as in the panel of one field. Nothing is decided for a variable that nobody has looked at: it is kept
exactly. What costs time for the whole dataset is only done on request.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from workbench.archive import Collection, Dataset, compress
from workbench.archive.collection import reports
from workbench.bounds import find_bounds
from workbench.codecs import Codec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute
from workbench.lab.bounds_panel.code import dataset_code, rules_code
from workbench.lab.bounds_panel.consequences import implied
from workbench.lab.bounds_panel.dataset_state import (
    DatasetState,
    all_rules,
    fields_of,
    key_of,
    key_of_all,
    rule_of,
    rules_of,
)
from workbench.lab.bounds_panel.examined import Examined
from workbench.lab.bounds_panel.goals import GOALS, Answer, code_of, goals_of, target_of
from workbench.lab.bounds_panel.members import Members
from workbench.lab.bounds_panel.panel import BoundsPanel
from workbench.lab.bounds_panel.state import BoundsState, applicable
from workbench.lab.bounds_panel.variables_table import NAME, Total, variables_table
from workbench.lab.controls import Button, Row, Toggle
from workbench.lab.description import Charts, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.grid import grid_of
from workbench.lab.jobs import Job
from workbench.lab.saving import SaveArchive, Written
from workbench.lab.turns import in_turn

VIEW = (   # which a search leaves as they are
    "target", "goal", "second", "second_goal", "axis", "index", "time", "window", "logarithmic", "pixels",
)


@dataclass(frozen=True)
class Allocated(Answer):
    """The outcome of a search for the bounds of several variables; without any, if the target cannot be met."""

    choices: tuple[tuple[str, BoundsState], ...] = ()
    call: str = ""


class DatasetPanel(BoundsPanel):
    """The panel of `wb.lab.bounds` for a dataset. Results are those of the variable on display, and "archive" of all."""

    def opened(self, data: Any, choices: dict[str, Any]) -> tuple[str, BoundsState]:
        """Take the dataset; returns it in words, and the first state."""
        _refuse_model(choices.get("model"))
        self.members = Members(data.decompress() if getattr(data, "kind", None) == "collection" else Dataset.of(data))
        self._measured: dict[tuple[str, str], reports.Row] = {}   # rows of archives, by name and rule
        self._totals: dict[str, Total] = {}               # of all of a dataset, by the rules
        self._controls: dict[Hashable, tuple[Any, ...]] = {}
        self._saver: SaveArchive | None = None
        self._together: dict[str, tuple[BoundsState | None, BoundsState]] = {}   # by a search for all
        name = self.members.require(choices.pop("variable", self.members.first))
        others = choices.pop("others", ())
        state = DatasetState(**fields_of(self._first(name, **choices)), variable=name, others=others)
        return f"{self.name}: {len(self.members.dataset):,} variables", state

    def stages(self) -> list[Stage]:
        """The computation for one variable, and the archive of all."""
        every = Stage("archive", self._rules_key, self._compress, on_demand=True, text="compressing all variables")
        return [*super().stages(), every]

    def part(self, state: BoundsState) -> Hashable:
        """The variable on display."""
        return _of(state).variable

    def parts(self, state: BoundsState) -> Mapping[Hashable, Any]:
        """The choices for all variables that were looked at."""
        return dict(_of(state).choices.items())

    def examined(self, state: BoundsState) -> Examined:
        """The variable on display."""
        return self.members.examined(_of(state).variable)

    def rows(self) -> Sequence[Row]:
        """The controls for the variable on display; variables of one kind share theirs."""
        data = self.data
        shape = data.shape if isinstance(data, Field) else (data.dimensions,)
        codecs = tuple(codec.id for codec in applicable(data))   # which are others for integers
        names = tuple(axis.name for axis in grid_of(data)) if isinstance(data, Field) else ()
        kind = type(data), len(shape), names, codecs
        if kind not in self._controls:
            every = Button("compress all", lambda: self.ask("archive"), "the size of all, with what is chosen for each")
            goals = goals_of(data)
            goals |= {GOALS["total"].words: "total"} if goals else {}
            rows = self._control_rows(goals, every)
            self._controls[kind] = rows, self._slider, self._steps, self._outcome, self._second_goal
        rows, self._slider, self._steps, self._outcome, self._second_goal = self._controls[kind]
        self._saver = self._saver or SaveArchive(f"{self.name}.zip", self.save_archive, begin=self._begin_saving)
        return [*rows, Row(self._saver, self._saver.download, place="foot")]

    def _bound_controls(self) -> list[Any]:
        return [*super()._bound_controls(), Toggle("exact", "keep exactly")]

    def draw(self, state: BoundsState, results: Results) -> Shown:
        """What the panel of this variable shows, with the table of all variables."""
        shown, of = super().draw(state, results), _of(state)
        table = variables_table(self.members, of, self._measured, self._totals.get(key_of_all(self._rules(state))))
        note = [shown.note, f"not in this dataset: {', '.join(missing)}" if (missing := self.members.left_out) else ""]
        return dataclasses.replace(
            shown, charts=_named(of.variable, shown.charts), tables={NAME: table, **shown.tables},
            beside=tuple(_own(of.variable, name) for name in shown.beside), note="; ".join(filter(None, note)),
            settings={"variable": of.variable, **shown.settings},
        )

    def code_for(self, state: BoundsState) -> str:
        """The call that makes the archive of all variables."""
        answer = self.answer(state, self._engine.results(state))
        return dataset_code(self.name, all_rules(self.members, self._rules(state)), getattr(answer, "call", ""))

    def check(self, state: BoundsState) -> None:
        """Refuse variables that cannot be chosen, and slices that the one on display does not have."""
        for name, choices in _of(state).choices.items():
            self.members.require(name)
            _refuse_model(choices.model)
        super().check(state)

    def ready(self, results: Results) -> bool:
        """Pictures wait for the trial, but for the first of another variable."""
        return super().ready(results) or self.part(self.displayed[0]) != self.part(self.state)

    def answer(self, state: BoundsState, results: Results) -> Answer | None:
        """What a search has found, as long as its bounds are those of the state."""
        answer, chosen = results.get("search"), _of(state).choices
        if not isinstance(answer, Allocated):
            return super().answer(state, results)
        same = all(self._key(name, chosen.get(name)) == self._key(name, own) for name, own in answer.choices)
        return answer if same else None

    def implied(self, fields: Fields) -> Fields:
        """What follows from a change; another variable comes with the choices that were made for it."""
        state = _of(self.state)
        name = fields.get("variable", state.variable)
        if name == state.variable:
            return super().implied(fields)
        own = state.choices.get(self.members.require(name)) or self._first(name)
        here = {**fields_of(own), "pixels": state.pixels, "variable": name, "others": state.leaving(name)}
        return {**here, **implied(own, self.members.examined(name).data, fields)}

    def row_chosen(self, table: str, row: int) -> None:
        """Look at another variable, or show an earlier run of this one again."""
        if table != NAME:
            super().row_chosen(table, row)
            return
        name = list(self.members.dataset)[row]
        if self.members.why_not[name] or self.members.is_there(name):
            self.request(variable=name)
            return

        def read(job: Job) -> None:
            job(0.1, f"reading {name}")
            self.members.examined(name)

        self.do(read, f"reading {name}", lambda _, reason: None if reason else self.request(variable=name))

    def find(self) -> None:
        """Search for the bound that meets the target, or for those of all variables, and choose them."""
        if self.state.target != "total":
            super().find()
            return
        asked = self._wanted(self.state)
        self.ask("search", lambda: self._take(asked))

    @in_turn
    def undo(self) -> bool:
        """Take back the last change of the variable on display, or what one search has found for several together."""
        return self._travel_together(1, 0) or super().undo()

    @in_turn
    def redo(self) -> bool:
        """Take back `undo`."""
        return self._travel_together(0, 1) or super().redo()

    def _travel_together(self, here: int, there: int) -> bool:
        """Go from one end of the latest search for all variables to the other, if all of these are as it has left them."""
        state = _of(self.state)
        choices, own = state.choices, self._together.get(state.variable, (None, None))[there]
        if own is None or any(
            self._key(name, choices.get(name)) != self._key(name, ends[here]) for name, ends in self._together.items()
        ):
            return False
        others = dict(state.others)
        for name, ends in self._together.items():
            if name in choices:
                history = self._histories[name]
                history.back(choices[name]) if here else history.forth(choices[name])   # its own step
            if name != state.variable:
                others.pop(name, None)
                others |= {} if (target := ends[there]) is None else {name: target}
        return self.travel_to({**fields_of(own), **_view_of(state), "others": tuple(others.items())})

    def save_archive(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the archive of all variables; returns its path."""
        archive = self._engine.results().get("archive") or self._compress(self.state, {}, lambda share, text: None)
        return archive.save(path, overwrite).resolve()

    # Implementation.

    def _first(self, name: str, **choices: Any) -> BoundsState:
        """The choices for a variable that was not looked at before."""
        if self.members.is_exact(name) and not choices.keys() & {"eb", "kind", "exact"}:
            choices = {"exact": True, "codec": self.members.usual(name), **choices}
        return BoundsState.for_(self.members.examined(name).data, **choices)

    def _rules(self, state: BoundsState) -> dict[str, dict[str, Any]]:
        return rules_of(self.members, _of(state).choices)

    def _rules_key(self, state: BoundsState) -> Hashable:
        return key_of_all(self._rules(state))

    def _key(self, name: str, choices: BoundsState | None) -> str | None:
        """The rule of a variable as a text; None where nobody has looked at it."""
        return None if choices is None else key_of(rule_of(choices, self.members.usual(name)))

    def _wanted(self, state: BoundsState) -> Hashable:
        """What a search depends on; that for all variables, on which may have errors, and on the rules of the others."""
        if state.target != "total":
            return super()._wanted(state)
        sought = self._sought(state)
        return state.wanted, tuple(sought), key_of_all(_without(self._rules(state), sought))

    def _sought(self, state: BoundsState) -> list[str]:
        """The fields that may have errors: as chosen, or else as the dataset suggests."""
        chosen = _of(state).choices
        fields = self.members.fields
        exact = {name: chosen[name].exact if name in chosen else self.members.is_exact(name) for name in fields}
        return [name for name in fields if not exact[name]]

    def _compress(self, state: BoundsState, results: Results, job: Any) -> Collection:
        """The archive of all variables."""
        rules = self._rules(state)
        given: Any = all_rules(self.members, rules)
        archive = compress(self.members.dataset, given, progress=lambda share, what: job(share or 0.0, what))
        assert isinstance(archive, Collection)
        for row in archive.rows():
            self._measured[row.name, key_of(rules.get(row.name, {}))] = row
        self._totals[key_of_all(rules)] = Total(archive.nbytes, archive.original_nbytes)
        return archive

    def _begin_saving(self, path: str | Path, overwrite: bool, written: Written) -> None:
        """Compress all variables and write the archive, in the background."""
        state = self.state

        def write() -> None:
            archive = self._engine.results(state)["archive"]
            self.do(lambda job: archive.save(path, overwrite).resolve(), "writing the archive", written)

        if "archive" in self._engine.results(state):
            write()
        else:
            self.ask("archive", write, lambda reason: written(None, reason))

    def _find(self, state: BoundsState, results: Results, job: Job) -> Answer:
        if state.target != "total":
            return super()._find(state, results, job)
        names = self._sought(state)
        if not names:
            raise WorkbenchError("a ratio of all variables needs one that may have errors; all are kept exactly")
        rules = self._rules(state)
        others = _without(rules, names)
        search = find_bounds(
            self.members.dataset, target_of(state.wanted), names=names, others=others,
            progress=lambda share, what: job(share or 0.0, what),
        )
        wanted = " and ".join(each.words for each in state.wanted)
        if not search.met:
            return Allocated(None, f"no bounds meet {wanted}: nearest is {search.ratio:.4g}x", search.notes)
        chosen = {
            name: self._allocated(state, name, search.bounds[name], search.codecs.get(name, search.archive[name].codec.id))
            for name in names if search.bounds[name].eb > 0   # those whose values are all equal stay as they are
        }
        beside = f", others={rules_code(others)}" if others else ""
        call = f"wb.find_bounds({self.name}, {code_of(state.wanted)}, names={json.dumps(names)}{beside})"
        words = f"bounds of {len(chosen)} variables meet {wanted} ({search.ratio:.4g}x)"
        return Allocated(None, words, search.notes, tuple(chosen.items()), call)

    def _allocated(self, state: BoundsState, name: str, bound: Absolute, codec: str | Codec) -> BoundsState:
        """The choices for a variable with the bound that was found."""
        own = _of(state).choices.get(name)
        if own is None:
            shape = self.members.dataset[name].shape
            own = BoundsState(self.members.usual(name), index=shape[-3] // 2 if len(shape) >= 3 else 0)
        return dataclasses.replace(own, exact=False, kind="absolute", eb=bound.eb, codec=codec)

    def _take(self, asked: Hashable) -> None:
        """Choose the bounds that were found, and compress with them, unless something else was chosen in the meantime."""
        answer = self._engine.results().get("search")
        if asked != self._wanted(self.state) or not isinstance(answer, Allocated) or not answer.choices:
            return
        state = _of(self.state)
        before = state.choices
        chosen = {**before, **dict(answer.choices)}
        self.request(**{**fields_of(chosen.pop(state.variable)), **_view_of(state)}, others=tuple(chosen.items()))
        after = _of(self.state).choices
        self._together = {name: (before.get(name), after[name]) for name, _ in answer.choices}
        self.ask("archive")


def _refuse_model(model: Any) -> None:
    if model is not None:
        raise WorkbenchError("a model is for one field; got a dataset: wb.lab.bounds(dataset[name], model=...)")


def _of(state: BoundsState) -> DatasetState:
    assert isinstance(state, DatasetState)
    return state


def _view_of(state: BoundsState) -> dict[str, Any]:
    """What a search leaves as it is."""
    return {name: getattr(state, name) for name in VIEW}


def _without(rules: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: rule for name, rule in rules.items() if name not in names}


def _named(variable: str, charts: Charts) -> Charts:
    """The charts of one variable, which are others than those of the next: their axes have other units."""
    coming = [_own(variable, name) for name in charts.coming]
    return Charts({_own(variable, name): partial(charts.__getitem__, name) for name in charts}, coming)


def _own(variable: str, name: str) -> str:
    return f"{variable}: {name}"
