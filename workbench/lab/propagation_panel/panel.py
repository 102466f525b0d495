"""`wb.lab.propagation`: put an error into an analysis, and see what it does downstream."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from workbench import codecs
from workbench.archive.choice import FREE
from workbench.charts.ticks import texts
from workbench.errors import WorkbenchError
from workbench.lab.cells import name_of
from workbench.lab.controls import Button, Choice, LogSlider, Number, Row, Steps, Toggle, Words
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.panel import Panel
from workbench.lab.part import Part
from workbench.lab.propagation_panel import budgeting, dosing, drawing, tables, tabs
from workbench.lab.propagation_panel.arrays import arrangement, field_shape, shown_slice
from workbench.lab.propagation_panel.bit_slider import BitSlider
from workbench.lab.propagation_panel.budgeting import Budgeted
from workbench.lab.propagation_panel.code import code
from workbench.lab.propagation_panel.counting import Asked, Counted, asked_of, count, drawn_bit, worst_trial
from workbench.lab.propagation_panel.figures import any_values_pass
from workbench.lab.propagation_panel.graph import StageGraph
from workbench.lab.propagation_panel.layout import arrows
from workbench.lab.propagation_panel.nodes import explained, nodes, scale
from workbench.lab.propagation_panel.pictures import pictures
from workbench.lab.propagation_panel.protected_sites import ProtectedSites
from workbench.lab.propagation_panel.reading import reading
from workbench.lab.propagation_panel.slice_slider import SliceSlider
from workbench.lab.propagation_panel.state import (
    IN_BITS,
    LEAST_BOUND,
    MOST_BOUND,
    MOST_TRIALS,
    MOST_VALUES,
    UNPROTECTED,
    PropagationState,
    Tab,
    number_format,
)
from workbench.lab.propagation_panel.tolerance_entry import ToleranceEntry
from workbench.lab.propagation_panel.travel import (
    Baseline,
    Floor,
    Traced,
    Travel,
    floor_of,
    protected_run,
    traced,
    travel,
)
from workbench.propagation import Pipeline, Run
from workbench.propagation.campaign_result import HARMFUL
from workbench.propagation.trials import OUTCOMES

KINDS = {   # as verbs: the first row reads as a sentence
    "flip": "flip", "clear": "stuck at 0", "set": "stuck at 1", "compress": "compression", "add noise to": "noise",
}
ON_REQUEST = "campaign", "doses", "budget"   # results that are shown for the kind of error they belong to
WORST = 2   # sites that are protected as the most vulnerable ones


def propagation(pipeline: Pipeline, x: Any, **choices: Any) -> PropagationPanel:
    """A panel that puts an error into a pipeline and shows what it does at every site: a bit flip, or compression.

    `x` is what the pipeline takes, or a finished run of it. `choices` are fields of `PropagationState`: site, kind, bit,
    bound, codec, count, trial, seed; checksums, twice, ranges, finite, protect; look, scale, axis, index, component,
    window; bits, trials, outcome.

    >>> from workbench.data.synthetic import gaussian_field
    >>> from workbench.propagation import derivatives
    >>> waves = gaussian_field((32, 32), seed=1)
    >>> panel = propagation(derivatives(waves), waves, bit=20)
    >>> panel.change(look="laplacian")
    True
    >>> panel.result["trace"].trace.badges["laplacian"]
    'linear'
    >>> panel.close()
    """
    if not isinstance(pipeline, Pipeline):
        raise WorkbenchError(
            f"the propagation panel needs a pipeline; got {type(pipeline).__name__}: make one with "
            "wb.propagation.Pipeline([(name, function), ...])"
        )
    names = name_of(pipeline, "pipeline"), name_of(x, "x")
    run = x if isinstance(x, Run) else pipeline.run(x)
    if run.pipeline is not pipeline:
        raise WorkbenchError("the run must be one of this pipeline: give pipeline.run(x)")
    return PropagationPanel(run, names, **choices)


class PropagationPanel(Panel[PropagationState]):
    """The panel of `wb.lab.propagation`; its results are "travel", "floor", "trace", and those `ON_REQUEST`."""

    title = "Propagation"
    on_screen = frozenset({"pixels", "tab"})

    def __init__(self, run: Run, names: tuple[str, str], **choices: Any) -> None:
        self.base, self.names = Baseline(run), names
        self.counted: Counted | None = None   # the latest campaign, whatever is shown
        self._unprotected: dict[Asked, Counted] = {}   # to compare those with protection
        self._looking = False
        stages = [
            Stage("travel", _error, self._put_in),
            Stage("floor", lambda state: None, self._measure, later=True),
            Stage("trace", _error, self._predict, later=True),
            Stage("doses", dosing.asked_of, self._dose, on_demand=True, text="sweeping the bound"),
            Stage("budget", budgeting.asked_of, self._find_budget, on_demand=True, text="looking for the budget"),
            Stage("campaign", asked_of, self._count_outcomes, on_demand=True, text="counting outcomes"),
        ]
        subject = f"{run.pipeline.name}: {', '.join(run.pipeline.sites)}"
        super().__init__(subject, PropagationState.for_(run, **choices), stages)

    @property
    def run(self) -> Run:
        """The run without an error."""
        return self.base.run

    def rows(self) -> Sequence[Row]:
        """The error as a sentence, the graph, the answer with its tolerance, and the tabs beside the pictures."""
        self.graph = StageGraph(self.show_site, arrows(self.run.pipeline))
        self._make_sentence()
        self._make_view()
        self._make_tabs()
        tab = Choice("tab", "", tabs.TITLES, about="beside the pictures", tabs=True)
        self._tolerance = ToleranceEntry(self.run.pipeline)
        kind = Choice("kind", "", KINDS, about="kind of error")
        return [
            Row(kind, self._of, self._bit, self._which, self._bound, self._codec, self._trial, self._at),
            Row(self._count_of, Number("seed", "seed", whole=True), place="folded"),
            Row(self.graph, place="top"),
            Row(self._tolerance, place="answer"),
            Row(tab, place="side"),
            *(Row(*parts, place="side") for rows in self._tabs.values() for parts in rows),
            Row(self._index, self._axis, self._along, self._component, self._scale, place="strip"),
        ]

    def _make_sentence(self) -> None:
        """The parts of the sentence of the error, such as: flip bit 26 of a random value, trial 0, at the input."""
        sites = self.run.pipeline.sites
        self._of = Choice("site", "", sites, about="site of the error")
        self._at = Choice("site", "at", sites, about="site of the error")
        self._bit = BitSlider("bit", "bit", number_format(self.run, self.state.site))
        self._which = Words("of a random value,")
        self._bound = LogSlider(
            "bound", "within", LEAST_BOUND, MOST_BOUND, unit="of its range", about="share of the range"
        )
        self._codec = Choice(
            "codec", "with", [*FREE, *(name for name in codecs.available() if name != "numcodecs")], about="codec"
        )
        self._trial = Steps("trial", "trial", 0, MOST_TRIALS)
        self._count_of = Steps("count", "values hit", 1, MOST_VALUES)

    def _make_view(self) -> None:
        """What chooses the part of an array that is seen."""
        self._index = SliceSlider("index", "slice", 0)
        self._axis = Choice("axis", "across axis", {"0": 0, "1": 1, "2": 2}, about="slice across axis")
        self._component = SliceSlider("component", "component", 0)
        self._along = Choice("axis", "seen", {"along z": 0, "along y": 1, "along x": 2}, about="line of sight")
        self._scale = Choice("scale", "difference", {"size, log scale": "size", "with its sign": "sign"})

    def _make_tabs(self) -> None:
        """The controls of each tab, in rows."""
        self._sweep = Button(
            "sweep the bound", lambda: self.ask("doses"), "compress this site within many bounds", True
        )
        self._use = Button("use this bound", self.use_tolerated, "the largest bound of the sweep that is tolerated")
        self._start = Button(
            "run campaign", lambda: self.ask("campaign"), "try such faults everywhere, and count outcomes", primary=True
        )
        self._find = Button("find bounds", lambda: self.ask("budget"), "the largest bounds that are tolerated", True)
        self._use_budget = Button("use", self.use_budget, "compress the site within its bound of the budget")
        self._compare = Button("compare", lambda: self.ask("campaign"), "run the campaign without protection, and with it")
        self._worst = Button(
            "only the worst", self.protect_worst, "only the sites where a campaign finds the most harm"
        )
        self._flip = Button("flip a bit", lambda: self.request(kind="flip"), "choose a bit flip as the error")
        self._compress = Button(
            "compress", lambda: self.request(kind="compression"), "choose compression as the error"
        )
        tried: list[Part] = [
            Choice("bits", "over", {"fields of bits": "fields", "each bit": "each"}, about="campaign over"),
            Number("trials", "", whole=True, unit="trials each", about="trials of each"),
        ]
        budgeted = Choice("budgeted", "for", {"inputs": "inputs", "all sites": "sites"}, about="sites of a budget")
        outcome = Choice("outcome", "ended", list(OUTCOMES), about="heat map of")
        self._sites = ProtectedSites()
        self._tabs: dict[Tab, list[list[Part]]] = {
            "sweep": [[self._sweep, self._use]],
            "campaign": [tried, [self._start, outcome, self._flip]],
            "budget": [[budgeted, self._find, self._use_budget, self._compress]],
            "protect": [[*self._protections(), self._compare], [self._sites, self._worst]],
        }

    def _protections(self) -> list[Toggle]:
        """Switches for the protections that the stages have."""
        pipeline = self.run.pipeline
        offered = {
            "checksums": any(stage.verify for stage in pipeline.stages), "compute twice": not pipeline.whole,
            "limit ranges": True, "replace NaN": True,
        }
        fields = dict(zip(offered, ("checksums", "twice", "ranges", "finite"), strict=True))
        return [Toggle(fields[label], label) for label, there in offered.items() if there]

    def draw(self, state: PropagationState, results: Results) -> Shown:
        """Pictures, charts, figures and tables of what is known so far."""
        return drawing.draw(self.base, state, self._known(state, results))

    def _known(self, state: PropagationState, results: Results) -> dict[str, Any]:
        """The results that belong to the kind of error that is chosen.

        The latest campaign of a kind stays while that kind is chosen, to be compared.
        """
        known = {name: result for name, result in results.items() if name not in ON_REQUEST}
        if (campaign := self._campaign(state, results)) is not None:
            known["campaign"] = campaign
            if campaign.asked.protection != UNPROTECTED:
                known["unprotected"] = self._unprotected.get(campaign.asked._replace(protection=UNPROTECTED))
        for name, asked in (("doses", dosing.asked_of(state)), ("budget", budgeting.asked_of(state))):
            found = results.get(name)
            if found is not None and state.kind == "compression" and found.asked == asked:
                known[name] = found
        return known

    def _campaign(self, state: PropagationState, results: Results) -> Counted | None:
        """The campaign of this state, or else the latest one of the same kind of error."""
        found = [results.get("campaign"), self.counted]
        return next((each for each in found if each is not None and each.asked.kind == state.kind), None)

    def code_for(self, state: PropagationState) -> str:
        """The trace, and the sweep, the budget and the campaign if there were such."""
        reached = self.run.pipeline.after(state.site)
        looked_at = state.look if state.look in reached else reached[-1]
        return code(state, self.run.pipeline, self.names, looked_at, self._known(state, self._engine.results(state)))

    def check(self, state: PropagationState) -> None:
        """Refuse sites, bits and slices that this pipeline does not have."""
        state.check(self.run)
        protected_run(self.base, state.protection)   # refuses what does not suit the sites
        shape = field_shape(self.base, state.look)
        if len(shape) >= 3 and state.axis <= 2 and state.index is not None and state.index >= shape[-3:][state.axis]:
            raise WorkbenchError(f"the slice must be from 0 to {shape[-3:][state.axis] - 1}; got {state.index}")
        if state.axis > 2:
            raise WorkbenchError(f"the axis must be 0, 1 or 2; got {state.axis}")
        if len(shape) == 4 and state.component is not None and state.component >= shape[0]:
            raise WorkbenchError(f"the component must be from 0 to {shape[0] - 1}; got {state.component}")

    def remark(self, state: PropagationState) -> str:
        """Bounds that allow any values."""
        if not any_values_pass(state):
            return ""
        return f"the error bound, {state.bound:g} of the range, is not below the range: nearly any values would satisfy it"

    def ready(self, results: Results) -> bool:
        """Drawing waits for the changed arrays; figures follow."""
        return "travel" in results

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """The value at a place, before and after."""
        state, results = self.displayed
        return reading(self.base, results.get("travel"), state, picture, (x, y))

    def row_chosen(self, table: str, row: int) -> None:
        """Look at a site, or put in the worst error of a row of the campaign."""
        if table == tables.SITES:
            reached = self.run.pipeline.after(self.state.site)
            if 0 <= row < len(reached):
                self.show_site(reached[row])
        elif table == tables.BOUNDS:
            found = self._present().get("budget")
            if found is not None and 0 <= row < len(found.budget.bounds):
                self.use_budget(list(found.budget.bounds)[row])
        elif table == tables.STRATA:
            counted = self._campaign(*self.displayed)
            if counted is not None and 0 <= row < len(counted.campaign.strata):
                self.put_in_worst(counted, row)

    def put_in_worst(self, counted: Counted, stratum: int) -> None:
        """Put in the error of the campaign's worst trial for one site and field of bits."""
        trial = worst_trial(counted, stratum, OUTCOMES)
        if trial is None:
            return
        site = counted.campaign.strata[stratum][0].site
        bit = drawn_bit(self.run, counted, trial)
        seed = counted.campaign.seed
        self.request(site=site, kind=counted.asked.kind, bit=bit, count=1, trial=trial.trial, seed=seed, look=site)

    def protect_worst(self) -> None:
        """Protect the sites where a campaign finds the most harm; by all that suits if nothing is chosen."""
        counted = self._campaign(*self.displayed)
        if counted is None:
            self.ask("campaign", self._protect_worst)
        else:
            self._protect_worst()

    def _protect_worst(self) -> None:
        counted = self._present().get("campaign")
        if counted is None:
            return
        harmful = [site for outcome in HARMFUL for site in counted.campaign.most_vulnerable(WORST, outcome)]
        worst = tuple(dict.fromkeys(harmful))[:WORST]
        if worst:
            chosen = {} if self.state.protections else {"twice": True, "ranges": True, "finite": True}
            self.request(protect=worst, **chosen)

    def use_tolerated(self) -> None:
        """Choose the largest bound that the sweep has found to be tolerated."""
        bound = self._tolerated()
        if bound is not None:
            self.request(bound=bound)

    def use_budget(self, site: str = "") -> None:
        """Compress a site within its bound of the budget: by default, the one that is chosen, or else the first."""
        found: Budgeted | None = self._present().get("budget")
        if found is None:
            return
        chosen = next(each for each in (site, self.state.site, *found.budget.bounds) if each in found.budget.bounds)
        self.request(kind="compression", site=chosen, bound=found.shares[chosen])

    def _present(self) -> dict[str, Any]:
        """What is known for the present state."""
        return self._known(self.state, {**self._engine.results(), **self._engine.partial})

    def _tolerated(self) -> float | None:
        doses: dosing.Doses | None = self._present().get("doses")
        return None if doses is None or doses.best is None else float(doses.best.bound.eb)

    def show_site(self, site: str, playing: bool = False) -> None:
        """Show the array at a site; sites shown one after the other are one step to undo."""
        self._looking = True
        try:
            self.request(look=site)
        finally:
            self._looking = False

    def implied(self, fields: Fields) -> Fields:
        """Another array is shown as a whole; another site keeps the bit if its numbers have one like it."""
        if fields.get("look", self.state.look) != self.state.look:
            fields = dict.fromkeys(("index", "component", "window")) | {"axis": 0} | fields
        if fields.get("axis", self.state.axis) != self.state.axis:
            fields = dict.fromkeys(("index", "window")) | fields
        site = fields.get("site", self.state.site)
        if site != self.state.site and "bit" not in fields and site in self.run.pipeline.sites:
            fields["bit"] = min(self.state.bit, number_format(self.run, site).bits - 1)
        return fields

    def movement(self) -> Hashable:
        """Sites shown one after the other are one movement."""
        return "site shown" if self._looking else super().movement()

    # Controls and graph.

    def fit_controls(self) -> None:
        """Show the controls that the kind of error, the tab and the array have, with their ends."""
        state, shape = self.state, field_shape(self.base, self.state.look)
        form = arrangement(self.base, state.look).form
        in_bits, grid, packed = state.kind in IN_BITS, form == "field", state.kind == "compression"
        if in_bits:
            self._bit.offer(number_format(self.run, state.site))
        self._which.set(text="of a random value," if state.count == 1 else f"of {state.count:,} random values,")
        self._index.reach(shape[-3:][state.axis] - 1 if grid and len(shape) >= 3 else 0)
        self._component.reach(shape[0] - 1 if len(shape) == 4 else 0)
        solid = form in ("positions", "labels") and self._positions_shape(form)[1] == 3
        wanted: dict[Part, bool] = {
            self._bit: in_bits, self._which: in_bits, self._at: in_bits, self._of: not in_bits, self._bound: not in_bits,
            self._codec: packed, self._trial: not packed, self._count_of: in_bits, self._scale: grid,
            self._index: grid and len(shape) >= 3, self._axis: grid and len(shape) >= 3,
            self._along: solid, self._component: grid and len(shape) == 4,
        }
        for part, shown in (wanted | self._wanted_in_tabs()).items():
            part.set(hidden=not shown)

    def _wanted_in_tabs(self) -> dict[Part, bool]:
        """The controls of the tab that is open; where it needs another kind of error, only the button to choose that."""
        state, known = self.state, self._present()
        suits = tabs.suits(state.tab, state.kind)
        wanted = {part: tab == state.tab and suits for tab, rows in self._tabs.items() for row in rows for part in row}
        in_bits, protects = state.kind in IN_BITS, state.tab == "protect"
        return wanted | {
            self._use: state.tab == "sweep" and suits and self._tolerated() not in (None, state.bound),
            self._use_budget: state.tab == "budget" and "budget" in known,
            self._flip: state.tab == "campaign" and not suits,
            self._compress: state.tab in ("sweep", "budget") and not suits,
            self._worst: protects and in_bits, self._compare: protects and in_bits and bool(state.protections),
            self._sites: protects and bool(state.protections),
        }

    def _positions_shape(self, form: str) -> tuple[int, ...]:
        site = self.state.look if form == "positions" else arrangement(self.base, self.state.look).positions
        shape: tuple[int, ...] = self.run[site].shape
        return shape

    def show_parts(self) -> None:
        """The controls, and the graph: until there is a result, that of the settings before, with what is chosen now."""
        self.fit_controls()
        results = self._engine.results()
        found: Travel | None = results.get("travel")
        floor: Floor | None = results.get("floor")
        theory: Traced | None = results.get("trace")
        if found is not None:
            component, index = shown_slice(self.base, found, self.state)
            self._component.show_found(component)
            self._index.show_found(index)
        if found is None and (before := self.graph.content["nodes"]):
            chosen = [{**node, "chosen": node["site"] == self.state.look, "hit": node["site"] == self.state.site}
                      for node in before]
            self.graph.set(nodes=chosen, stale=True)
            return
        self.graph.set(
            nodes=nodes(self.run, self.state, found, floor, theory), path=[] if found is None else list(found.reached),
            ends=texts(scale(found, floor)),
            key="" if theory is None else explained({each.site: each for each in theory.trace.stages}), stale=False,
        )

    # Stages.

    def _put_in(self, state: PropagationState, results: Results, job: Job) -> Travel:
        job(0.0, "the error travels")
        found = travel(self.base, state.perturbation, state.seed, state.trial, state.protection, state.tolerance)
        pictures(self.base, found, state)   # cached, so that drawing takes no time
        return found

    def _measure(self, state: PropagationState, results: Results, job: Job) -> Floor:
        job(0.0, "measuring the round-off floor")
        return floor_of(self.run)

    def _predict(self, state: PropagationState, results: Results, job: Job) -> Traced:
        job(0.0, "predicting the error")
        return traced(results["travel"], state.perturbation, results["floor"])

    def _count_outcomes(self, state: PropagationState, results: Results, job: Job) -> Counted:
        """What is counted so far is kept, so that a cancelled campaign shows its partial results.

        With protection, the same campaign is first counted without, to be compared.
        """
        bare = replace(state, checksums=False, twice=False, ranges=False, finite=False)
        if asked_of(bare) not in self._unprotected:
            self._unprotected[asked_of(bare)] = self._counted(bare, job)
        return self._counted(state, job) if state.protections else self._unprotected[asked_of(bare)]

    def _counted(self, state: PropagationState, job: Job) -> Counted:
        def tell(counted: Counted) -> None:
            self.counted = counted
            job.show({"campaign": counted})

        self.counted = count(protected_run(self.base, state.protection), state, job, tell)
        return self.counted

    def _find_budget(self, state: PropagationState, results: Results, job: Job) -> Budgeted:
        return budgeting.found_budget(self.run, state, job)

    def _dose(self, state: PropagationState, results: Results, job: Job) -> dosing.Doses:
        return dosing.dose(self.run, state, job, lambda doses: job.show({"doses": doses}))


def _error(state: PropagationState) -> Hashable:
    return state.error
