"""`wb.lab.clusters` of a series: the halos of each step, played in time, and the merger tree of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from workbench.archive import Archive
from workbench.archive.series.series import Series
from workbench.clusters.friends import Unit
from workbench.clusters.keep import KeepClusters
from workbench.data.chunked import POSITIONS
from workbench.errors import WorkbenchError
from workbench.lab.cells import name_of
from workbench.lab.controls import Choice, Number, Row, Steps
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.panel import Panel
from workbench.lab.reading import particle_reading
from workbench.lab.script import script
from workbench.lab.series_panel.drawing import draw
from workbench.lab.series_panel.halos import Descents, Snapshot, descents, snapshot
from workbench.lab.series_panel.state import SeriesState

UNITS = {"mean spacings": "spacing", "unit of the box": "length"}   # of the linking length


class SeriesPanel(Panel[SeriesState]):
    """The panel of `wb.lab.clusters` for a series; its results are "snapshot", the step, and "descents"."""

    title = "Clusters over time"
    looking = frozenset({"window", "pixels", "step"})
    in_passing = frozenset({"window", "step"})

    def __init__(self, series: Series, originals: Sequence[Any] | None, name: str, **choices: Any) -> None:
        self.series, self.originals, self.name = series, originals, name
        self.originals_name = name_of(originals, "originals")
        self._dimensions = series[0].data.layout.shape[1]
        stages = [
            Stage("snapshot", lambda state: state.step, self._snapshot, text="decoding"),
            Stage("descents", _searched, self._descents, text="following halos", later=True),
        ]
        super().__init__(repr(series), SeriesState.for_(len(series), _kept(series[0]), **choices), stages)

    def rows(self) -> Sequence[Row]:
        """The step, which plays, above everything."""
        self._step = Steps("step", "step", 0, len(self.series) - 1, about="step of a series", plays=True)
        self._step.reach(len(self.series) - 1, [f"{time:.4g}" for time in self.series.times], self._step_at)
        seldom = [
            Number("linking_length", "linking length b", about="linking length"),
            Choice("unit", "unit", UNITS, about="unit of the linking length"),
            Number("min_members", "halo: at least", whole=True, unit="members"),
            Number("gap", "links pass over", whole=True, unit="steps"),
        ]
        axes = {"along x": 0, "along y": 1, "along z": 2} if self._dimensions == 3 else {}
        views = [Choice("axis", "seen", axes, about="line of sight")] if axes else []
        return [Row(self._step), Row(*seldom, place="folded"), *([Row(*views, place="over")] if views else [])]

    def draw(self, state: SeriesState, results: Results) -> Shown:
        """The map of the step, the tree and the tables."""
        return draw(state, self.series.times, results.get("snapshot"), results.get("descents"))

    def code_for(self, state: SeriesState) -> str:
        """The descents, their differences and the tree."""
        options = f"linking_length={state.linking_length!r}, unit={state.unit!r}"
        found: Descents | None = self._engine.results(state).get("descents")
        over = f", gap={state.gap}" if state.gap else ""
        lines = [f"decoded = {self.name}.descent({state.min_members}, {options}{over})", "print(decoded)"]
        of, other = "decoded", ""
        if self.originals is not None:
            found_by = f"wb.friends_of_friends(one, {options})"
            lines += [
                f"groups = [{found_by} for one in {self.originals_name}]",
                f"original = wb.descent(groups, {self.originals_name}, {self.name}.times, "
                f"min_members={state.min_members}{over})",
                "print(original.differences(decoded))",
            ]
            of, other = "original", ", other=decoded"
        halo = f"{of}.largest(1)[0]" if state.chosen is None else f"{state.chosen[1]}, step={state.chosen[0]}"
        if found is None or len(found.reference.descent.steps[-1]) or state.chosen is not None:
            lines.append(f'{of}.plot({halo}{other}).save("merger-tree.svg")')
        return script(lines)

    def check(self, state: SeriesState) -> None:
        """Refuse steps that this series does not have."""
        for step in (state.step, *(state.chosen or ())[:1]):
            if step >= len(self.series):
                raise WorkbenchError(f"the step must be from 0 to {len(self.series) - 1}; got {step}")

    def ready(self, results: Results) -> bool:
        """Drawing waits for the step that is to be seen."""
        return "snapshot" in results

    def picked(self, label: str, chosen: int) -> None:
        """A halo was clicked: its tree is shown."""
        state, results = self.displayed
        found: Descents | None = results.get("descents")
        if found is not None and chosen >= 0:
            self.request(chosen=(state.step, int(found.reference.descent.steps[state.step].halos[chosen])))

    def row_chosen(self, table: str, row: int) -> None:
        """A halo or a step was chosen in a table."""
        if table == "steps":
            self.request(step=row)
        else:
            self.picked(table, row)

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """How many particles are in the pixel under the pointer."""
        state, results = self.displayed
        seen: Snapshot | None = results.get("snapshot")
        shown = self._shown
        if seen is None or shown is None or not shown.pictures:
            return None
        first = shown.pictures[0]
        sets = [one for one in (seen.original, seen.decoded) if one is not None]
        return particle_reading(sets, state.axis, first.window, first.pixels.shape, (x, y))

    def implied(self, fields: Fields) -> Fields:
        """Other halos have other names: the largest one is shown. A text that is no time is refused with the times."""
        if isinstance(typed := fields.get("step"), str):
            first, last = self.series.times[0], self.series.times[-1]
            raise WorkbenchError(f"the step must be a time from {first:.4g} to {last:.4g}; {typed!r:.60} is not one")
        other = {"linking_length", "unit", "min_members", "gap"} & fields.keys()
        return {"chosen": None, **fields} if other else fields

    def _step_at(self, text: str) -> int | None:
        """The step of a typed time: the nearest one."""
        try:
            time = float(text)
        except ValueError:
            return None
        times = self.series.times
        return min(range(len(times)), key=lambda step: abs(times[step] - time)) if isfinite(time) else None

    # Stages.

    def _snapshot(self, state: SeriesState, results: Results, job: Job) -> Snapshot:
        return snapshot(self.series, self.originals, state.step)

    def _descents(self, state: SeriesState, results: Results, job: Job) -> Descents:
        return descents(self.series, self.originals, state, job)


def _searched(state: SeriesState) -> tuple[Any, ...]:
    return state.linking_length, state.unit, state.min_members, state.gap


def _kept(archive: Any) -> tuple[float, Unit] | None:
    """The shortest linking length at which clusters are kept, in the unit in which it was given."""
    for kept in archive.certificate[POSITIONS].keep:
        if kept.get("kind") == KeepClusters.kind:
            promise = KeepClusters.from_dict(kept)
            return promise.linking_length[0], promise.unit   # type: ignore[index]
    return None


def require_particles(series: Series, originals: Any) -> None:
    """Refuse a series that has no halos to follow, and originals that are not those of its steps."""
    if not len(series):
        raise WorkbenchError(f"{series!r} has no steps yet: append some")
    if not isinstance(series[0], Archive) or series[0].kind != "particles":
        raise WorkbenchError(f"the clusters panel needs particles; got {series[0]!r} at the first step")
    if originals is not None and len(originals) != len(series):
        raise WorkbenchError(f"originals must have one entry for each of {len(series)} steps; got {len(originals)}")
