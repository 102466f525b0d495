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
from workbench.lab.choices import within
from workbench.lab.controls import Button, Choice, LogSlider, Number, Row, Steps, Toggle, Words
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.language_panel.panel import LanguagePanel
from workbench.lab.panel import Panel
from workbench.lab.part import Part
from workbench.lab.propagation_panel import budgeting, dosing, drawing, tables, tabs
from workbench.lab.propagation_panel.arrays import arrangement, field_shape, shown_slice
from workbench.lab.propagation_panel.budgeting import Budgeted
from workbench.lab.propagation_panel.code import Names, code
from workbench.lab.propagation_panel.counting import Counted, count, drawn_bit, worst_trial
from workbench.lab.propagation_panel.entries import BitSlider, ProtectedSites, SliceSlider, ToleranceEntry
from workbench.lab.propagation_panel.figures import any_values_pass
from workbench.lab.propagation_panel.graph import StageGraph, arrows, explained, nodes, scale
from workbench.lab.propagation_panel.pictures import pictures
from workbench.lab.propagation_panel.reading import reading
from workbench.lab.propagation_panel.state import (
    IN_BITS,
    LEAST_BOUND,
    MOST_BOUND,
    MOST_TRIALS,
    MOST_VALUES,
    UNPROTECTED,
    CampaignChoices,
    PropagationState,
    Tab,
    number_format,
)
from workbench.lab.propagation_panel.travel import (
    Baseline,
    Floor,
    Travel,
    floor_of,
    protected_run,
    traced,
    travel,
)
from workbench.propagation import LanguageModel, Pipeline, Run, Trace
from workbench.propagation.campaign_result import HARMFUL
from workbench.propagation.realisations import listed_realisations, run_of
from workbench.propagation.trials import OUTCOMES

KINDS = {   # as verbs: the first row reads as a sentence
    "flip": "flip", "clear": "stuck at 0", "set": "stuck at 1", "compress": "compression", "add noise to": "noise",
}
WORST = 2   # sites that are protected as the most vulnerable ones


def propagation(pipeline: Pipeline | LanguageModel, x: Any, **choices: Any) -> PropagationPanel | LanguagePanel:
    """A panel that puts an error into a pipeline and shows what it does at every site: a bit flip, or compression.

    Of a language model, it shows errors by block and token, and the texts that it writes without the error and with it;
    `x` is a text then, and `choices` are fields of `LanguageState`: kind, part, layer, token, channel, bit, format,
    amplitude, seed; shown, tokens.

    Otherwise, `x` is what the pipeline takes, or a finished run of it; or a list of several of one kind, of which the first
    is shown, and all count for a budget. `choices` are fields of `PropagationState`: site,
    kind, bit, bound, codec, count, trial, seed; checksums, twice, ranges, finite, protect; look, scale, axis, index,
    component, window; bits, trials, outcome.

    >>> from workbench.data.synthetic import gaussian_field
    >>> from workbench.propagation import derivatives
    >>> waves = gaussian_field((32, 32), seed=1)
    >>> panel = propagation(derivatives(waves), waves, bit=20)
    >>> panel.change(look="laplacian")
    True
    >>> panel.result["trace"].badges["laplacian"]
    'linear'
    >>> panel.close()
    """
    if isinstance(pipeline, LanguageModel):
        return LanguagePanel(pipeline, x, (name_of(pipeline, "lm"), name_of(x, "text")), **choices)
    if not isinstance(pipeline, Pipeline):
        raise WorkbenchError(
            f"the propagation panel needs a pipeline; got {type(pipeline).__name__}: make one with "
            "wb.propagation.Pipeline([(name, function), ...])"
        )
    several, name = listed_realisations(pipeline, x), name_of(x, "x")
    run = run_of(pipeline, several[0] if several else x)
    if run.pipeline is not pipeline:
        raise WorkbenchError("the run must be one of this pipeline: give pipeline.run(x)")
    names = Names(name_of(pipeline, "pipeline"), f"{name}[0]" if several else name, name)
    return PropagationPanel(run, names, several[1:], **choices)


class PropagationPanel(Panel[PropagationState]):
    """The panel of `wb.lab.propagation`; its results are "travel", "floor" and "trace".

    On request also "campaign", "doses" and "budget": these are `kept`, by what they depend on, the latest last.
    """

    title = "Propagation"
    on_screen = frozenset({"pixels", "tab"})

    def __init__(self, run: Run, names: Names, others: Sequence[Any] = (), **choices: Any) -> None:
        self.base, self.names, self.others = Baseline(run), names, others
        self.kept: dict[Hashable, Any] = {}
        self._looking = False
        stages = [
            Stage("travel", lambda state: state.error, self._put_in),
            Stage("floor", lambda state: None, self._measure, later=True),
            Stage("trace", lambda state: state.error, self._predict, later=True),
            Stage("doses", lambda state: state.sweep, self._dose, True, "sweeping the bound"),
            Stage("budget", lambda state: state.budget, self._find_budget, True, "looking for the budget"),
            Stage("campaign", lambda state: state.campaign, self._count_outcomes, True, "counting outcomes"),
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
        self._of, self._at = (Choice("site", label, sites, about="site of the error") for label in ("", "at"))
        self._bit = BitSlider("bit", "bit", number_format(self.run, self.state.site))
        self._which = Words("of a random value,")
        self._bound = LogSlider("bound", "within", LEAST_BOUND, MOST_BOUND, "of its range", "share of the range")
        offered = [name for name in codecs.available() if name != "numcodecs"]
        self._codec = Choice("codec", "with", [*FREE, *offered], about="codec")
        self._trial = Steps("trial", "trial", 0, MOST_TRIALS)
        self._count_of = Steps("count", "values hit", 1, MOST_VALUES)

    def _make_view(self) -> None:
        """What chooses the part of an array that is seen."""
        self._index = SliceSlider("index", "slice", 0, 0)
        self._axis = Choice("axis", "across axis", {"0": 0, "1": 1, "2": 2}, about="slice across axis")
        self._component = SliceSlider("component", "component", 0, 0)
        self._along = Choice("axis", "seen", {"along z": 0, "along y": 1, "along x": 2}, about="line of sight")
        self._scale = Choice("scale", "difference", {"size, log scale": "size", "with its sign": "sign"})

    def _make_tabs(self) -> None:
        """The controls of each tab, in rows."""
        self._sweep = Button("sweep the bound", lambda: self.ask("doses"), "compress this site within many bounds", True)
        self._use = Button("use this bound", self.use_tolerated, "the largest bound of the sweep that is tolerated")
        self._start = Button("run campaign", lambda: self.ask("campaign"), "try such faults at every site", True)
        self._find = Button("find bounds", lambda: self.ask("budget"), "the largest bounds that are tolerated", True)
        self._use_budget = Button("apply", self.use_budget, "compress the site within its bound of the budget")
        self._compare = Button("compare", lambda: self.ask("campaign"), "run the campaign without protection, and with it")
        self._worst = Button("only the worst", self.protect_worst, "only the sites where a campaign finds the most harm")
        self._flip = Button("flip a bit", lambda: self.request(kind="flip"), "choose a bit flip as the error")
        self._compress = Button("compress", lambda: self.request(kind="compression"), "choose compression as the error")
        tried: list[Part] = [
            Choice("bits", "over", {"fields of bits": "fields", "each bit": "each"}, about="campaign over"),
            Number("trials", "", whole=True, unit="trials each", about="trials of each"),
        ]
        budgeted = Choice("budgeted", "for", {"inputs": "inputs", "all sites": "sites"}, about="sites of a budget")
        outcome = Choice("outcome", "ended", list(OUTCOMES), about="heat map of")
        self._sites = ProtectedSites("protect", "protect", {"all sites": None}, about="protected sites")
        self._tabs: dict[Tab, list[list[Part]]] = {
            "sweep": [[self._sweep, self._use]],
            "campaign": [tried, [self._start, outcome, self._flip]],
            "budget": [[budgeted, self._find, self._use_budget, self._compress]],
            "protect": [[*self._protections(), self._compare], [self._sites, self._worst]],
        }

    def _protections(self) -> list[Toggle]:
        """Switches for the protections that the stages have."""
        offered = {
            "checksums": any(stage.verify for stage in self.run.pipeline.stages), "twice": not self.run.pipeline.whole,
            "ranges": True, "finite": True,
        }
        labels = {"twice": "compute twice", "ranges": "limit ranges", "finite": "replace NaN"}
        return [Toggle(field, labels.get(field, field)) for field, there in offered.items() if there]

    def draw(self, state: PropagationState, results: Results) -> Shown:
        """Pictures, charts, figures and tables of what is known so far."""
        return drawing.draw(self.base, state, self._known(state, results))

    def _known(self, state: PropagationState, results: Results) -> dict[str, Any]:
        """The results with those on request that belong to the kind of error; None for those that are not there.

        The latest campaign of a kind stays while that kind is chosen, beside the same one without protection.
        """
        kept, compressed = self.kept, state.kind == "compression"
        campaigns = {key: each for key, each in kept.items() if isinstance(key, CampaignChoices) and key.kind == state.kind}
        campaign = campaigns.get(state.campaign) or next(reversed(campaigns.values()), None)
        bare = None if campaign is None else campaigns.get(campaign.asked._replace(protection=UNPROTECTED))
        doses, budget = (kept.get(key) if compressed else None for key in (state.sweep, state.budget))
        return {**results, "campaign": campaign, "unprotected": bare, "doses": doses, "budget": budget}

    @property
    def known(self) -> dict[str, Any]:
        """What is known for the present state, with results of running stages."""
        return self._known(self.state, {**self._engine.results(), **self._engine.partial})

    def _keep(self, name: str, key: Hashable, result: Any, job: Job) -> Any:
        """Keep a result on request, and show it; what is so far there of a cancelled one stays."""
        self.kept = {**{other: each for other, each in self.kept.items() if other != key}, key: result}
        job.show({name: result})
        return result

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
        within("the axis", state.axis, 3)
        if len(shape) >= 3:
            within("the slice", state.index or 0, shape[-3:][state.axis])
        if len(shape) == 4:
            within("the component", state.component or 0, shape[0])

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
        return reading(self.base, results.get("travel"), state, (x, y))

    def row_chosen(self, table: str, row: int) -> None:
        """Look at a site, or put in the worst error of a row of the campaign."""
        if table == tables.SITES:
            reached = self.run.pipeline.after(self.state.site)
            if 0 <= row < len(reached):
                self.show_site(reached[row])
        elif table == tables.BOUNDS:
            found = self.known["budget"]
            if found is not None and 0 <= row < len(found.budget.bounds):
                self.use_budget(list(found.budget.bounds)[row])
        elif table == tables.STRATA:
            counted = self.known["campaign"]
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
        counted = self.known["campaign"]
        if counted is None:
            self.ask("campaign", self.protect_worst)
            return
        harmful = [site for outcome in HARMFUL for site in counted.campaign.most_vulnerable(WORST, outcome)]
        if worst := tuple(dict.fromkeys(harmful))[:WORST]:
            chosen = {} if self.state.protections else {"twice": True, "ranges": True, "finite": True}
            self.request(protect=worst, **chosen)

    def use_tolerated(self) -> None:
        """Choose the largest bound that the sweep has found to be tolerated."""
        if (doses := self.known["doses"]) is not None and doses.best is not None:
            self.request(bound=float(doses.best.bound.eb))

    def use_budget(self, site: str = "") -> None:
        """Compress a site within its bound of the budget: by default, the one that is chosen, or else the first."""
        if (found := self.known["budget"]) is not None:
            chosen = next(each for each in (site, self.state.site, *found.budget.bounds) if each in found.budget.bounds)
            self.request(kind="compression", site=chosen, bound=found.shares[chosen])

    def show_site(self, site: str) -> None:
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
        form, positions = arrangement(self.base, state.look)
        in_bits, grid, packed = state.kind in IN_BITS, form == "field", state.kind == "compression"
        if in_bits:
            self._bit.offer(number_format(self.run, state.site))
        self._which.set(text="of a random value," if state.count == 1 else f"of {state.count:,} random values,")
        self._index.reach(shape[-3:][state.axis] - 1 if grid and len(shape) >= 3 else 0)
        self._component.reach(shape[0] - 1 if len(shape) == 4 else 0)
        solid = bool(positions) and self.run[positions].shape[1] == 3
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
        state, known = self.state, self.known
        best = None if known["doses"] is None else known["doses"].best
        suits = tabs.suits(state.tab, state.kind)
        wanted = {part: tab == state.tab and suits for tab, rows in self._tabs.items() for row in rows for part in row}
        in_bits, protects = state.kind in IN_BITS, state.tab == "protect"
        return wanted | {
            self._use: state.tab == "sweep" and suits and best is not None and best.bound.eb != state.bound,
            self._use_budget: state.tab == "budget" and known["budget"] is not None,
            self._flip: state.tab == "campaign" and not suits,
            self._compress: state.tab in ("sweep", "budget") and not suits,
            self._worst: protects and in_bits, self._compare: protects and in_bits and bool(state.protections),
            self._sites: protects and bool(state.protections),
        }

    def show_parts(self) -> None:
        """The controls, and the graph: until there is a result, that of the settings before, with what is chosen now."""
        self.fit_controls()
        found, floor, theory = (self._engine.results().get(name) for name in ("travel", "floor", "trace"))
        if found is not None:
            component, index = shown_slice(self.base, found, self.state)
            self._component.show_largest(component)
            self._index.show_largest(index)
        if found is None and (before := self.graph.content["nodes"]):
            chosen = [{**node, "chosen": node["site"] == self.state.look, "hit": node["site"] == self.state.site}
                      for node in before]
            self.graph.set(nodes=chosen, stale=True)
            return
        self.graph.set(
            nodes=nodes(self.run, self.state, found, floor, theory), path=[] if found is None else list(found.reached),
            ends=texts(scale(found, floor)),
            key="" if theory is None else explained(theory), stale=False,
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

    def _predict(self, state: PropagationState, results: Results, job: Job) -> Trace:
        job(0.0, "predicting the error")
        return traced(results["travel"], state.perturbation, results["floor"])

    def _count_outcomes(self, state: PropagationState, results: Results, job: Job) -> Counted:
        """The campaign of this state; with protection, the same one is counted without before, to be compared."""
        bare = replace(state, checksums=False, twice=False, ranges=False, finite=False)
        for each in (bare, state):
            known = self.kept.get(each.campaign)
            if known is None or not known.campaign.complete:
                run = protected_run(self.base, each.protection)
                count(run, each, job, lambda counted: self._keep("campaign", counted.asked, counted, job))
        return self._keep("campaign", state.campaign, self.kept[state.campaign], job)

    def _find_budget(self, state: PropagationState, results: Results, job: Job) -> Budgeted:
        return self._keep("budget", state.budget, budgeting.found_budget(self.run, self.others, state, job), job)

    def _dose(self, state: PropagationState, results: Results, job: Job) -> dosing.Doses:
        return dosing.dose(self.run, state, job, lambda doses: self._keep("doses", state.sweep, doses, job))
