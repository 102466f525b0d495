"""`wb.lab.propagation`: put an error into an analysis, and see what it does downstream."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from workbench import codecs
from workbench.errors import WorkbenchError
from workbench.lab.cells import name_of
from workbench.lab.controls import Button, Choice, LogSlider, Number, Row, Steps, Toggle
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.panel import Panel
from workbench.lab.part import Part
from workbench.lab.propagation_panel import dosing, drawing
from workbench.lab.propagation_panel.arrays import arrangement, field_shape, shown_slice
from workbench.lab.propagation_panel.bit_slider import BitSlider
from workbench.lab.propagation_panel.code import code
from workbench.lab.propagation_panel.counting import Asked, Counted, asked_of, count, drawn_bit, worst_trial
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
    UNPROTECTED,
    PropagationState,
    number_format,
)
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
from workbench.lab.view import View
from workbench.propagation import Pipeline, Run
from workbench.propagation.campaign_result import HARMFUL
from workbench.propagation.dose import largest_tolerated
from workbench.propagation.trials import OUTCOMES

KINDS = {
    "bit flip": "flip", "bit stuck at 0": "stuck at 0", "bit stuck at 1": "stuck at 1", "compression": "compression",
    "noise": "noise",
}
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
    """The panel of `wb.lab.propagation`; its results are "travel", "floor", "trace" and, on demand, "doses", "campaign"."""

    title = "Propagation"

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
            Stage("campaign", asked_of, self._count_outcomes, on_demand=True, text="counting outcomes"),
        ]
        subject = f"{run.pipeline.name}: {', '.join(run.pipeline.sites)}"
        super().__init__(subject, PropagationState.for_(run, **choices), stages)

    @property
    def run(self) -> Run:
        """The run without an error."""
        return self.base.run

    def rows(self) -> Sequence[Row]:
        """The error above, the view and the graph below."""
        sites = self.run.pipeline.sites
        self._bit = BitSlider("bit", "bit", number_format(self.run, self.state.site))
        self._bound = LogSlider(
            "bound", "error bound", LEAST_BOUND, MOST_BOUND, unit="of the range", about="share of the range"
        )
        self._codec = Choice("codec", "codec", ["auto", *(name for name in codecs.available() if name != "numcodecs")])
        self._trial = Steps("trial", "trial", 0, MOST_TRIALS)
        self._index = SliceSlider("index", "slice", 0)
        self._axis = Choice("axis", "across axis", {"0": 0, "1": 1, "2": 2}, about="slice across axis")
        self._component = SliceSlider("component", "component", 0)
        self._along = Choice("axis", "seen", {"along z": 0, "along y": 1, "along x": 2}, about="line of sight")
        self._scale = Choice("scale", "difference", {"size, log scale": "size", "with its sign": "sign"})
        self._count_of = Steps("count", "values hit", 1, 1000)
        self.graph = StageGraph(self.show_site, arrows(self.run.pipeline))
        self._start = Button("run campaign", lambda: self.ask("campaign"), "try such faults everywhere, and count outcomes", primary=True)
        self._sweep = Button(
            "sweep the bound", lambda: self.ask("doses"), "compress this site within many bounds, and measure the damage"
        )
        self._use = Button("use this bound", self.use_tolerated, "the largest bound of the sweep that is tolerated")
        self._worst = Button(
            "protect the worst sites", self.protect_worst, "only the sites where the campaign has found the most harm"
        )
        error = [
            Choice("kind", "error", KINDS, about="kind of error"), Choice("site", "at", sites, about="site of the error"),
            self._bit, self._bound, self._codec, self._trial,
            self._sweep, self._use,
        ]
        view = [
            Choice("look", "show", sites, about="site shown"), self._index, self._axis, self._along, self._component,
            *self._protections(), self._start, self._worst,
        ]
        seldom = [
            self._scale, self._count_of, Number("seed", "seed", whole=True),
            Choice("bits", "campaign over", {"fields of bits": "fields", "each bit": "each"}),
            Number("trials", "trials of each", whole=True),
            Choice("outcome", "heat map of", list(OUTCOMES)),
            ProtectedSites(),
        ]
        return [Row(*error), Row(*seldom, place="folded"), Row(self.graph, place="top"), Row(*view, place="strip")]

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
        """Pictures, charts, figures and tables of what is known so far.

        The latest campaign of a kind of error stays while that kind is chosen, to be compared.
        """
        known = {name: result for name, result in results.items() if name not in ("campaign", "doses")}
        if (campaign := self._campaign(state, results)) is not None:
            known["campaign"] = campaign
            if campaign.asked.protection != UNPROTECTED:
                known["unprotected"] = self._unprotected.get(campaign.asked._replace(protection=UNPROTECTED))
        if (doses := self._doses(state, results)) is not None:
            known["doses"] = doses
        return drawing.draw(self.base, state, known)

    def _campaign(self, state: PropagationState, results: Results) -> Counted | None:
        """The campaign of this state, or else the latest one of the same kind of error."""
        found = [results.get("campaign"), self.counted]
        return next((each for each in found if each is not None and each.asked.kind == state.kind), None)

    def _doses(self, state: PropagationState, results: Results) -> dosing.Doses | None:
        """The sweep of this state; other errors than compression have none."""
        doses: dosing.Doses | None = results.get("doses")
        suits = doses is not None and state.kind == "compression" and doses.asked == dosing.asked_of(state)
        return doses if suits else None

    def code_for(self, state: PropagationState) -> str:
        """The trace, and the campaign if there was one."""
        reached = self.run.pipeline.after(state.site)
        looked_at = state.look if state.look in reached else reached[-1]
        campaign = self._campaign(state, self._engine.results(state))
        return code(state, *self.names, looked_at, None if campaign is None else campaign.asked)

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
        if state.kind in IN_BITS or state.bound < 1:
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
        if table == drawing.SITES:
            reached = self.run.pipeline.after(self.state.site)
            if 0 <= row < len(reached):
                self.show_site(reached[row])
        elif table == drawing.STRATA:
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
        self.change(site=site, kind=counted.asked.kind, bit=bit, count=1, trial=trial.trial, seed=seed, look=site)

    def protect_worst(self) -> None:
        """Protect the sites where the latest campaign has found the most harm; if nothing is chosen, by all that suits."""
        counted = self._campaign(*self.displayed)
        if counted is None:
            self.ask("campaign")
            return
        harmful = [site for outcome in HARMFUL for site in counted.campaign.most_vulnerable(WORST, outcome)]
        worst = tuple(dict.fromkeys(harmful))[:WORST]
        if worst:
            chosen = {} if self.state.protections else {"twice": True, "ranges": True, "finite": True}
            self.change(protect=worst, **chosen)

    def show_site(self, site: str, playing: bool = False) -> None:
        """Show the array at a site; sites shown one after the other are one step to undo."""
        self._looking = True
        try:
            self.change(look=site)
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

    def _movement(self) -> Hashable:
        return "site shown" if self._looking else super()._movement()

    # Controls and graph.

    def fit_controls(self) -> None:
        """Show the controls that the kind of error and the array have, with their ends."""
        state, shape = self.state, field_shape(self.base, self.state.look)
        form = arrangement(self.base, state.look).form
        in_bits, grid = state.kind in IN_BITS, form == "field"
        if in_bits:
            self._bit.offer(number_format(self.run, state.site))
        self._index.reach(shape[-3:][state.axis] - 1 if grid and len(shape) >= 3 else 0)
        self._component.reach(shape[0] - 1 if len(shape) == 4 else 0)
        solid = form in ("positions", "labels") and self._positions_shape(form)[1] == 3
        wanted: dict[Part, bool] = {
            self._bit: in_bits, self._bound: not in_bits, self._codec: state.kind == "compression",
            self._trial: state.kind != "compression", self._count_of: in_bits, self._scale: grid or form == "line",
            self._index: grid and len(shape) >= 3, self._axis: grid and len(shape) >= 3,
            self._along: solid,
            self._component: grid and len(shape) == 4,
        }
        results = {**self._engine.results(), **self._engine.partial}
        tolerated = self._tolerated(results)
        wanted |= {
            self._start: in_bits, self._worst: self._campaign(state, results) is not None,
            self._sweep: state.kind == "compression", self._use: tolerated not in (None, state.bound),
        }
        for part, shown in wanted.items():
            part.set(hidden=not shown)

    def use_tolerated(self) -> None:
        """Choose the largest bound that the sweep has found to be tolerated."""
        bound = self._tolerated({**self._engine.results(), **self._engine.partial})
        if bound is not None:
            self.change(bound=bound)

    def _tolerated(self, results: Results) -> float | None:
        doses = self._doses(self.state, results)
        best = None if doses is None else largest_tolerated(doses.doses)
        return None if best is None else best.bound.eb

    def _positions_shape(self, form: str) -> tuple[int, ...]:
        site = self.state.look if form == "positions" else arrangement(self.base, self.state.look).positions
        shape: tuple[int, ...] = self.run[site].shape
        return shape

    def _show_freshness(self, view: View) -> None:
        super()._show_freshness(view)
        if "travel" not in self._engine.results():
            chosen = [{**node, "chosen": node["site"] == self.state.look, "hit": node["site"] == self.state.site}
                      for node in self.graph.content["nodes"]]
            self.graph.set(nodes=chosen, stale=bool(chosen))

    def _show_in(self, view: View) -> None:
        super()._show_in(view)
        self.fit_controls()
        results = self._engine.results()
        found: Travel | None = results.get("travel")
        floor: Floor | None = results.get("floor")
        theory: Traced | None = results.get("trace")
        if found is not None:
            component, index = shown_slice(self.base, found, self.state)
            self._component.show_found(component)
            self._index.show_found(index)
        if found is None and self.graph.content["nodes"]:
            return
        self.graph.set(
            nodes=nodes(self.run, self.state, found, floor, theory), path=[] if found is None else list(found.reached),
            ends=[f"{end:.0e}" for end in scale(found, floor)],
            key="" if theory is None else explained({each.site: each for each in theory.trace.stages}), stale=False,
        )

    # Stages.

    def _put_in(self, state: PropagationState, results: Results, job: Job) -> Travel:
        job(0.0, "the error travels")
        found = travel(self.base, state.perturbation, state.seed, state.trial, state.protection)
        pictures(self.base, found, state)   # cached, so that drawing takes no time
        return found

    def _measure(self, state: PropagationState, results: Results, job: Job) -> Floor:
        job(0.0, "measuring the round-off floor")
        return floor_of(self.run)

    def _predict(self, state: PropagationState, results: Results, job: Job) -> Traced:
        job(0.0, "predicting the error")
        return traced(results["travel"], state.perturbation, results["floor"])

    def _count_outcomes(self, state: PropagationState, results: Results, job: Job) -> Counted:
        """What is counted so far is kept, so that a cancelled campaign shows its partial results."""

        def tell(counted: Counted) -> None:
            self.counted = counted
            job.show({"campaign": counted})

        self.counted = count(protected_run(self.base, state.protection), state, job, tell)
        if state.protection == UNPROTECTED:
            self._unprotected[self.counted.asked] = self.counted
        return self.counted

    def _dose(self, state: PropagationState, results: Results, job: Job) -> dosing.Doses:
        return dosing.dose(self.run, state, job, lambda doses: job.show({"doses": doses}))


def _error(state: PropagationState) -> Hashable:
    return state.error
