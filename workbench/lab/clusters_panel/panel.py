"""`wb.lab.clusters`: drag the error bound, watch halos break, and keep them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from workbench.archive.series.series import Series
from workbench.bounds.sources import require_data
from workbench.clusters import absolute_linking_length
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute
from workbench.lab.bounds_panel.state import applicable
from workbench.lab.cells import name_of
from workbench.lab.clusters_panel import drawing
from workbench.lab.clusters_panel.breakage import Breakage, Halos, Outcome, break_halos, groups_of
from workbench.lab.clusters_panel.chosen import link_after, place_of_link, sentence_of_chosen
from workbench.lab.clusters_panel.cloud_of import ClustersCloud
from workbench.lab.clusters_panel.code import code
from workbench.lab.clusters_panel.detail import particle_under
from workbench.lab.clusters_panel.keeping import Kept, Trace, keep_halos
from workbench.lab.clusters_panel.panes import DECODED, KEPT, ORIGINAL, chosen_mark, reading
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.controls import Button, Choice, LogSlider, Number, Row, Words
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Fields, Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.live.examples import example_of
from workbench.lab.panel import Panel
from workbench.lab.saving import SaveArchive
from workbench.lab.series_panel.panel import SeriesPanel, require_particles
from workbench.lab.turns import in_turn
from workbench.lab.unusual import unusual

SHARES_OF_LENGTH = (1e-3, 1.0)   # the ends of the slider of the bound
UNITS = {"mean spacings": "spacing", "unit of the box": "length"}   # of the linking length
LENGTHS = (0.05, 1.0)            # the ends of the slider of the linking length, in mean spacings
LOOKS_AT: Mapping[str, dict[str, Any]] = {
    ORIGINAL: {"original": True},
    DECODED: {"original": False, "shows": "decoded"},
    KEPT: {"original": False, "shows": "kept"},
}


@overload
def clusters(particles: Particles, **choices: Any) -> ClustersPanel: ...
@overload
def clusters(particles: Series, originals: Sequence[Any] | None = None, **choices: Any) -> SeriesPanel: ...
def clusters(
    particles: Particles | Series, originals: Sequence[Any] | None = None, **choices: Any
) -> ClustersPanel | SeriesPanel:
    """A panel that shows which halos an error bound breaks, and keeps them: press *preserve*.

    `choices` are fields of `ClustersState`: bound, linking_length, unit, codec, order, min_members, keep_members, solver;
    axis, window, chosen, shows, original.

    Of a `wb.Series`, the panel plays the steps, and shows the merger tree of a halo; with `originals`, a list of the
    particles of all steps, also which of its links have broken. `choices` are then fields of `SeriesState`: step,
    linking_length, unit, min_members, gap, chosen, axis, window.

    >>> from workbench.data.synthetic import cosmic_web
    >>> panel = clusters(cosmic_web(n=16, seed=1), bound=0.03, min_members=10)
    >>> panel.ask("kept"); panel.wait()
    >>> panel.result["kept"].verified
    True
    >>> panel.close()
    """
    if isinstance(particles, Series):
        require_particles(particles, originals)
        return SeriesPanel(particles, originals, name_of(particles, "series"), **choices)
    if originals is not None:
        raise WorkbenchError("originals belong to a series of steps; got them with particles: give wb.Series(...) first")
    data = require_data(particles)
    if not isinstance(data, Particles):
        raise WorkbenchError(f"the clusters panel needs particles; got {data!r}: use wb.lab.bounds(...) for fields")
    return ClustersPanel(data, name_of(particles, "particles"), **choices)


class ClustersPanel(Panel[ClustersState]):
    """The panel of `wb.lab.clusters`; its results are "halos", "breakage" and, once they were preserved, "kept"."""

    title = "Clusters"
    in_passing = frozenset({"window", "chosen"})

    def __init__(self, particles: Particles, name: str, **choices: Any) -> None:
        self.particles, self.name = particles, name
        self._last_link: int | None = None
        self.cloud: ClustersCloud | None = None   # made with the controls
        stages = [
            Stage("halos", _groups, lambda state, results, job: groups_of(particles, state, job)),
            Stage("breakage", _decoded, self._break),
            Stage("kept", _promised, self._keep, on_demand=True, text="keeping halos"),
        ]
        state = ClustersState.for_(particles, **choices)
        super().__init__(repr(particles), dataclasses.replace(state, shows="decoded"), stages)
        if state.shows == "kept":
            self.change(shows="kept")   # which keeps them first

    def rows(self) -> Sequence[Row]:
        """The promise above everything, the choice of what is looked at above the map."""
        particles = self.particles
        self._bound = LogSlider("bound", "error bound ξ", *self._bounds(), about="error bound")
        self._length = LogSlider(
            "linking_length", "linking length b", *self._lengths(), about="linking length",
            spoken=lambda state: "mean spacings" if state.unit == "spacing" else "",
        )
        self.cloud = ClustersCloud(particles, lambda halo: self.request(chosen=halo), self._put_aside)
        codecs = Choice("codec", "codec", [codec.id for codec in applicable(particles)])
        axes = {"along x": 0, "along y": 1, "along z": 2} if particles.dimensions == 3 else {}
        views = [Choice("axis", "seen", axes, about="line of sight"), self.cloud.toggle] if axes else []
        preserve = Button("preserve", self.preserve, "keep every halo, and watch the descent", primary=True)
        self._previous = Button("◀ previous", self.previous_link, "look at the pair before (key p)", key="p")
        self._next = Button("next ▶", self.next_link, "look at the next pair that broke (key n)", key="n")
        self._place_of_link, self._sentence = Words(), Words()
        self._close = Button("no close-up", lambda: self.request(chosen=None))
        self._saving = SaveArchive(self.archive_name, self.save_archive, self.when_settled)
        seldom = [
            Choice("unit", "unit", UNITS, about="unit of the linking length"),
            Choice("order", "order", {"free": "free", "kept": "keep"}),
            Number("min_members", "halo: at least", whole=True, unit="members"),
            Number("keep_members", "keep groups of", whole=True, unit="or more"),
            Choice("solver", "solver", {"smallest (auto)": "auto", "descent (pgd)": "pgd", "more bits (refine)": "refine"}),
        ]
        return [
            Row(self._length, self._bound, codecs, preserve), Row(*seldom, place="folded"),
            Row(*views, self._previous, self._place_of_link, self._next, self._close, place="over"),
            Row(self.cloud, place="pictures"), Row(self._sentence, place="detail"),
            Row(self._saving, self._saving.download, place="foot"),
        ]

    def draw(self, state: ClustersState, results: Results) -> Shown:
        """Maps, close-up, mass function, descent and certificate."""
        halos: Halos | None = results.get("halos")
        if halos is None:
            return Shown(note="searching for halos ...")
        breakage, kept, trace = (results.get(name) for name in ("breakage", "kept", "trace"))
        if trace is not None and trace.promised != _promised(state):
            trace = None   # halos are being kept for another state
        return drawing.draw(self.particles, state, halos, breakage, kept, trace)

    def live_example(self) -> dict[str, Any]:
        """The particles, with the present bound, linking length and smallest halo."""
        state = self.state
        length = absolute_linking_length(self.particles, state.linking_length, state.unit)
        return example_of(self.particles, self.name, length=length, least=state.min_members, start=state.bound)

    def code_for(self, state: ClustersState) -> str:
        """Compress, and compare the groups; with the promise if the archive that is shown has it."""
        return code(state, self.name, kept=self._shows_kept(state))

    def check(self, state: ClustersState) -> None:
        """Refuse linking lengths that cannot be searched with, and choices that are not among these particles."""
        state.length(self.particles)
        chosen, count = state.chosen, len(self.particles)
        if chosen is not None and max(chosen.particles) >= count:
            raise WorkbenchError(f"the chosen halo or link must be among {count:,} particles; got {chosen.particles}")

    def remark(self, state: ClustersState) -> str:
        """Bounds and linking lengths that are too large or too small for these particles."""
        return unusual(self.particles, Absolute(state.bound), [state.promise])

    def ready(self, results: Results) -> bool:
        """Pictures wait for the decoded particles; the original alone is shown only at the beginning."""
        return "breakage" in results or ("halos" in results and not (self._shown and self._shown.pictures))

    @in_turn
    def close(self) -> None:
        """Stop, and release everything."""
        if self.cloud is not None:
            self.cloud.want(False)
        super().close()

    def picked(self, label: str, chosen: int) -> None:
        """Show the clicked halo or link in the close-up."""
        mark = chosen_mark(label, chosen, self._outcome)
        if mark is not None:
            self.request(chosen=mark)

    def picture_chosen(self, title: str) -> None:
        """Show this picture, and the figures of its archive; those of the original are the same."""
        self.request(**LOOKS_AT[title])

    def row_chosen(self, table: str, row: int) -> None:
        """Show the halo of a row of the table in the close-up."""
        halos: Halos | None = self._engine.results().get("halos")
        if table == "halos" and halos is not None and 0 <= row < len(halos.catalogue):
            self.request(chosen=Chosen.halo(int(halos.catalogue.labels[row])))

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """The particles at a place of the maps."""
        state, results = self.displayed
        outcomes = drawing.outcomes_by_title(results.get("breakage"), results.get("kept"))
        return reading(self.particles, state, outcomes.values(), (x, y))

    def reading_of_detail(self, x: float, y: float) -> Reading | None:
        """The particle at a place of the close-up."""
        state, results = self.displayed
        if "halos" not in results:
            return None
        outcome = drawing.shown_outcome(state, results.get("breakage"), results.get("kept"))
        return particle_under(self.particles, state, results["halos"], outcome, (x, y))

    def request(self, **fields: Any) -> bool:
        """Change fields of the state as the controls do.

        Everything that is shown belongs to one archive. So the panel shows decoded particles again when a change makes the
        archive with halos kept that of other choices; and to ask for "halos kept" where they are not is to keep them.
        """
        try:
            wanted = self._engine.after(fields)
        except WorkbenchError:
            return super().request(**fields)   # which says what is wrong
        if wanted.shows != "kept" or self._shows_kept(wanted):
            return super().request(**fields)
        changed = super().request(**fields | {"shows": "decoded"})
        if changed and fields.get("shows") == "kept":
            self.preserve()
        return changed

    def implied(self, fields: Fields) -> Fields:
        """Another unit keeps the linking length."""
        unit = fields.get("unit", self.state.unit)
        if unit != self.state.unit and "linking_length" not in fields and unit in ("spacing", "length"):
            return fields | {"linking_length": self.state.in_unit(self.particles, unit).linking_length}
        return fields

    def fit_controls(self) -> None:
        """The ends of the linking length are in its unit; those of the bound are shares of it."""
        self._length.span(*self._lengths())
        self._bound.span(*self._bounds())

    def preserve(self) -> None:
        """Keep every halo, and show the result when it is done, unless other choices were made meanwhile."""
        self.ask("kept", then=self._show_kept)

    def _show_kept(self) -> None:
        if "kept" in self._engine.results():
            super().request(shows="kept", original=False)

    def next_link(self) -> None:
        """Show the next broken link: missing links first, and those of the largest halos first."""
        self.step_link(1)

    def previous_link(self) -> None:
        """Show the broken link before."""
        self.step_link(-1)

    def step_link(self, step: int) -> None:
        """Show the next broken link, or with -1 the one before; from a halo, the first or the last of its own."""
        results, outcome = self._engine.results(), self._outcome
        if outcome is None:
            return
        link = link_after(results["halos"], outcome, self.state.chosen, self._last_link, step)
        if link is not None:
            self._last_link, chosen = link
            self.request(chosen=chosen)

    @property
    def archive_name(self) -> str:
        """The name proposed for the file of the archive that is shown."""
        return f"{self.name}-halos-kept.zip" if self._shows_kept(self.state) else f"{self.name}.zip"

    def save_archive(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the archive that is shown, with its promise if halos are kept; returns its path."""
        results = self.result
        shown: Kept | Breakage = results["kept" if self._shows_kept(self.state) else "breakage"]
        return shown.archive.save(path, overwrite).resolve()

    def _shows_kept(self, state: ClustersState) -> bool:
        """Whether the archive with halos kept is shown in this state."""
        return state.shows == "kept" and "kept" in self._engine.results(state)

    @property
    def _outcome(self) -> Outcome | None:
        """The outcome that all figures belong to."""
        results = self._engine.results()
        return drawing.shown_outcome(self.state, results.get("breakage"), results.get("kept"))

    def show_parts(self) -> None:
        """The name of the archive, and what stands beside the close-up."""
        self._saving.propose(self.archive_name)
        if self._outcome is not None:
            count, words = place_of_link(self._outcome, self.state.chosen)
            self._place_of_link.set(text=words)
            for step in (self._previous, self._next):
                step.set(enabled=count > 0)
            self._close.set(enabled=self.state.chosen is not None)
            assert self.cloud is not None
            halos: Halos = self._engine.results()["halos"]
            self._sentence.set(text=sentence_of_chosen(self.particles, self.state, halos, self._outcome))
            self.cloud.show_results(self.state, halos, self._outcome, KEPT if self._shows_kept(self.state) else DECODED)

    def _put_aside(self, aside: bool) -> None:
        """Leave the place of the pictures to the cloud, or take it back."""
        if self._view is not None:
            self._view.canvas.set(hidden=aside)
            self._view.detail.set(hidden=aside)

    def _bounds(self) -> tuple[float, float]:
        least, most = SHARES_OF_LENGTH
        length = self.state.length(self.particles)
        return least * length, most * length

    def _lengths(self) -> tuple[float, float]:
        unit = 1.0 if self.state.unit == "spacing" else self.particles.spacing
        return LENGTHS[0] * unit, LENGTHS[1] * unit

    # Stages.

    def _break(self, state: ClustersState, results: Results, job: Job) -> Breakage:
        return break_halos(self.particles, state, results["halos"], job)

    def _keep(self, state: ClustersState, results: Results, job: Job) -> Kept:
        trace = Trace(promised=_promised(state))

        def progress(share: float, text: str) -> None:
            job(share, text)
            job.show({"trace": dataclasses.replace(trace, taken=list(trace.taken))})

        return keep_halos(self.particles, state, results["halos"], progress, trace)


def _groups(state: ClustersState) -> tuple[Any, ...]:
    return state.linking_length, state.unit


def _decoded(state: ClustersState) -> tuple[Any, ...]:
    return *_groups(state), state.bound, state.codec, state.order


def _promised(state: ClustersState) -> tuple[Any, ...]:
    return *_decoded(state), state.keep_members, state.solver
