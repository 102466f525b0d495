"""`wb.lab.statistics`: figures of an archived field with proven bounds, its histogram and its slices, mostly undecoded."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from workbench.archive import Archive
from workbench.lab.cells import name_of
from workbench.lab.choices import whole
from workbench.lab.controls import Button, Choice, Row, Steps
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.panel import Panel
from workbench.lab.reading import cell_text, value_text
from workbench.lab.remembered import remembered
from workbench.lab.script import script
from workbench.lab.slices import Cut
from workbench.lab.statistics_panel import measuring
from workbench.lab.statistics_panel.drawing import draw
from workbench.lab.statistics_panel.measuring import Coarse, Decoded, Figures, Slice
from workbench.lab.statistics_panel.state import PARTS, StatisticsState, require_field, slices


def statistics(archive: Archive, **choices: Any) -> StatisticsPanel:
    """A panel of the statistics of an archived field: each with a proven bound, and what was read for it.

    A large archive of the codec `staged` is shown at once, by the means of its blocks, and then slice by slice. `choices`
    are fields of `StatisticsState`: of ("field", "slice" or "window"), bins, axis, index, time, window.

    >>> import workbench as wb
    >>> archive = wb.compress(wb.synthetic.gaussian_field((64, 64), seed=1), wb.Relative(1e-3), "staged")
    >>> with statistics(archive) as panel:
    ...     panel.result["figures"]["mean"] == archive.mean()
    True
    """
    return StatisticsPanel(require_field(archive), name_of(archive, "archive"), **choices)


class StatisticsPanel(Panel[StatisticsState]):
    """The panel of `wb.lab.statistics`; its results are "figures", "coarse", "slice" and "histogram".

    On request also "decoded": the same figures of decoded values.
    """

    title = "Statistics"

    def __init__(self, archive: Archive, name: str, **choices: Any) -> None:
        self.archive, self.name = archive, name
        stages = [
            Stage("coarse", lambda state: "", lambda state, results, job: measuring.coarse(archive, job)),
            Stage("figures", self._part, self._figures, text="statistics"),
            Stage("slice", self._slice, self._exact, later=True, text="slice"),
            Stage("histogram", self._bins, self._histogram, later=True, text="histogram"),
            Stage("decoded", self._part, self._decoded, on_demand=True, text="decoding"),
        ]
        super().__init__(repr(archive), StatisticsState.for_(archive, **choices), stages)

    def rows(self) -> Sequence[Row]:
        """What statistics are of above, the slice below."""
        volume = len(self.archive.data.layout.shape) > 2
        parts = PARTS if volume else {words: part for words, part in PARTS.items() if part != "slice"}
        compare = Button("compare with decoding", lambda: self.ask("decoded"), "decode the same part, and compute by NumPy")
        above = Row(Choice("of", "statistics of", parts, tabs=True), compare)
        folded = Row(Steps("bins", "bins", 2, 200), place="folded")
        return [above, folded, *([Row(*self._slice_controls(), place="strip")] if volume else [])]

    def draw(self, state: StatisticsState, results: Results) -> Shown:
        """The content for what is known so far; a slice that is not decoded yet is shown by the means of blocks."""
        view: Slice | None = results.get("slice")
        coarse: Coarse = results.get("coarse", Coarse(None))
        if view is None and (means := coarse.means) is not None:
            region, crossed = state.slice_of(self.archive), state.crossed(self.archive)
            view = remembered(
                means, "slice", region, lambda: measuring.coarse_slice(self.archive, means, region, crossed)
            )
        return draw(self.archive, state, results, view)

    def code_for(self, state: StatisticsState) -> str:
        """The same figures by calls."""
        region = state.region(self.archive)
        whole_field = all(end == (0, size) for end, size in zip(region, self.archive.data.layout.shape, strict=True))
        given, named = ("", "") if whole_field else ("region", ", region=region")
        several = (f"{self.name}.{name}({given})" for name in ("mean", "std", "min", "max"))
        lines = [] if whole_field else [f"region = {list(region)}"]
        lines += [f"print({', '.join(several)}, sep='\\n')", f"counts = {self.name}.histogram({state.bins}{named})"]
        return script(lines)

    def check(self, state: StatisticsState) -> None:
        """Refuse slices that this field does not have."""
        state.check(self.archive)

    def ready(self, results: Results) -> bool:
        """Drawing waits for the figures."""
        return "figures" in results

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """The value at a place of the decoded slice."""
        state, results = self.displayed
        view: Slice | None = results.get("slice")
        if view is None:
            return None
        cell = Cut(window=state.window, pixels=state.pixels).cell(view.field, x, y)
        return None if cell is None else Reading((value_text(view.field, cell),), cell_text(cell))

    def implied(self, fields: Fields) -> Fields:
        """Another axis resets the window, and shows the middle slice."""
        if (axis := fields.get("axis", self.state.axis)) == self.state.axis:
            return fields
        return {"window": None, "index": slices(self.archive, whole("the axis", axis, least=0)) // 2, **fields}

    def fit_controls(self) -> None:
        """The ends of the slice are those of its axis."""
        if len(self.archive.data.layout.shape) > 2:
            self._index.reach(slices(self.archive, self.state.axis) - 1)

    def _slice_controls(self) -> list[Any]:
        shape = self.archive.data.layout.shape
        names = (self.archive.attributes.get("metadata") or {}).get("dimensions") or ("0", "1", "2")
        axes = {str(name): axis for axis, name in enumerate(names[-3:])}
        self._index = Steps("index", "slice", 0, slices(self.archive, self.state.axis) - 1)
        moments = [Steps("time", "time", 0, shape[0] - 1)] if len(shape) == 4 else []
        return [*moments, Choice("axis", "slice across axis", axes), self._index]

    # Stages.

    def _part(self, state: StatisticsState) -> Hashable:
        return state.region(self.archive)

    def _bins(self, state: StatisticsState) -> Hashable:
        return self._part(state), state.bins

    def _slice(self, state: StatisticsState) -> Hashable:
        return state.slice_of(self.archive), state.axis

    def _figures(self, state: StatisticsState, results: Results, job: Job) -> Figures:
        return measuring.figures(self.archive, state.region(self.archive), job)

    def _exact(self, state: StatisticsState, results: Results, job: Job) -> Slice:
        return measuring.exact_slice(self.archive, state.slice_of(self.archive), state.crossed(self.archive), job)

    def _histogram(self, state: StatisticsState, results: Results, job: Job) -> Figures:
        return measuring.with_histogram(self.archive, results["figures"], state.bins, job)

    def _decoded(self, state: StatisticsState, results: Results, job: Job) -> Decoded:
        return measuring.after_decoding(self.archive, state.region(self.archive), job)
