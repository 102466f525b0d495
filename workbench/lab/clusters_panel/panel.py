"""`wb.lab.clusters`: drag the error bound, watch halos break, and keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import numpy as np

from workbench.bounds.sweep import require_data
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.lab.bounds_panel.state import applicable
from workbench.lab.cells import name_of
from workbench.lab.clusters_panel import drawing
from workbench.lab.clusters_panel.breakage import Breakage, Halos, break_halos, groups_of
from workbench.lab.clusters_panel.cloud_of import CloudPart
from workbench.lab.clusters_panel.code import code
from workbench.lab.clusters_panel.keeping import Kept, Trace, keep_halos
from workbench.lab.clusters_panel.panes import chosen_mark
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.controls import Choice, LogSlider, Number, button
from workbench.lab.description import Shown
from workbench.lab.engine import Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.panel import Panel
from workbench.lab.saving import SaveArchive
from workbench.lab.view import View

SHARES_OF_LENGTH = (1e-3, 1.0)   # the ends of the slider of the bound
LENGTHS = (0.05, 1.0)            # the ends of the slider of the linking length, in mean spacings


def clusters(particles: Particles) -> ClustersPanel:
    """A panel that shows which halos an error bound breaks, and keeps them: press *preserve*.

    >>> from workbench.data.synthetic import cosmic_web
    >>> panel = clusters(cosmic_web(n=16, seed=1))
    >>> panel.ask("kept"); panel.wait()
    >>> panel.result["kept"].verified
    True
    >>> panel.close()
    """
    data = require_data(particles)
    if not isinstance(data, Particles):
        raise WorkbenchError(f"the clusters panel needs particles; got {data!r}: use wb.lab.bounds(...) for fields")
    return ClustersPanel(data, name_of(particles, "particles"))


class ClustersPanel(Panel[ClustersState]):
    """The panel of `wb.lab.clusters`; its results are "halos", "breakage" and, once they were preserved, "kept"."""

    title = "Clusters"

    def __init__(self, particles: Particles, name: str) -> None:
        self.particles, self.name = particles, name
        self._last_link = -1
        self.cloud: CloudPart | None = None   # made with the controls
        stages = [
            Stage("halos", _groups, lambda state, results, job: groups_of(particles, state, job)),
            Stage("breakage", _decoded, self._break),
            Stage("kept", _promised, self._keep, on_demand=True),
        ]
        super().__init__(repr(particles), ClustersState.for_(particles), stages)

    def rows(self) -> Sequence[Sequence[Any]]:
        """The promise above, the view below."""
        particles, state = self.particles, self.state
        low, high = (share * state.length(particles) for share in SHARES_OF_LENGTH)
        self._bound = LogSlider("bound", "error bound ξ", low, high)
        self._length = LogSlider("linking_length", "linking length b", *self._lengths())
        self.cloud = CloudPart(particles, lambda halo: self.change(chosen=halo))
        codecs = Choice("codec", "codec", [codec.id for codec in applicable(particles)])
        axes = {"along x": 0, "along y": 1, "along z": 2} if particles.dimensions == 3 else {}
        look = [
            *([Choice("axis", "seen", axes)] if axes else []),
            Choice("shows", "second picture", {"decoded": "decoded", "halos kept": "kept"}),
            self.cloud.toggle,
            Number("min_members", "halo: at least", whole=True),
            Number("keep_members", "keep groups of", whole=True),
            Choice("solver", "solver", {"descent (pgd)": "pgd", "smallest (auto)": "auto", "more bits (refine)": "refine"}),
        ]
        preserve = button("preserve", self.preserve, "keep every halo, and watch the descent")
        preserve.button_style = "primary"
        act: list[widgets.Widget] = [
            preserve,
            button("next broken link", self.next_link, "look at the next pair that broke"),
            button("no close-up", lambda: self.change(chosen=None)),
            SaveArchive(f"{self.name}.zip", self.save_archive).widget,
        ]
        return [[self._bound, codecs, Choice("order", "order", {"free": "free", "kept": "keep"})],
                [self._length, Choice("unit", "", {"mean spacings": "spacing", "unit of the box": "length"}), *look], act]

    def draw(self, state: ClustersState, results: Results) -> Shown:
        """Maps, close-up, mass function, descent and certificate."""
        halos: Halos | None = results.get("halos")
        if halos is None:
            return Shown(note="searching for halos ...")
        breakage, kept, trace = (results.get(name) for name in ("breakage", "kept", "trace"))
        return drawing.draw(self.particles, state, halos, breakage, kept, trace)

    def code_for(self, state: ClustersState) -> str:
        """Compress, and compare the groups; with the promise when it is shown."""
        return code(state, self.name, kept=state.shows == "kept")

    def ready(self, results: Results) -> bool:
        """Pictures wait for the decoded particles; the original alone is shown only at the beginning."""
        return "breakage" in results or ("halos" in results and not (self._shown and self._shown.pictures))

    def _show_in(self, view: View) -> None:
        """The pictures, and below them the cloud of the same results."""
        super()._show_in(view)
        assert self.cloud is not None
        if self.cloud.box not in view.widget.children:
            place = view.widget.children.index(view.canvas) + 1
            view.widget.children = (*view.widget.children[:place], self.cloud.box, *view.widget.children[place:])
        results = self._engine.results()
        kept: Kept | None = results.get("kept")
        outcome = drawing.shown_outcome(self.state, results.get("breakage"), kept)
        if outcome is not None:
            title = "kept" if kept is not None and outcome is kept.outcome else "decoded"
            self.cloud.show(self.state, results["halos"], outcome, title)

    def close(self) -> None:
        """Stop, and release everything."""
        if self.cloud is not None:
            self.cloud.close()
        super().close()

    def picked(self, label: str, chosen: int) -> None:
        """Show the clicked halo or link in the close-up."""
        results = self._engine.results()
        outcome = drawing.shown_outcome(self.state, results.get("breakage"), results.get("kept"))
        mark = chosen_mark(label, chosen, outcome)
        if mark is not None:
            self.change(chosen=mark)

    def change(self, **fields: Any) -> bool:
        """Change fields; another unit keeps the linking length."""
        unit = fields.get("unit", self.state.unit)
        if unit != self.state.unit and "linking_length" not in fields and unit in ("spacing", "length"):
            fields["linking_length"] = self.state.in_unit(self.particles, unit).linking_length
        changed = super().change(**fields)
        if changed and self._view is not None and "unit" in fields:
            self._length.span(*self._lengths())
            self._view.show_state(self.state)
        return changed

    def preserve(self) -> None:
        """Keep every halo; the second picture shows it when it is done."""
        self.ask("kept", then=lambda: self.change(shows="kept"))

    def next_link(self) -> None:
        """Show the next broken link: missing merges first, and those of the largest halos first."""
        results = self._engine.results()
        outcome = drawing.shown_outcome(self.state, results.get("breakage"), results.get("kept"))
        pairs = [] if outcome is None else [*outcome.missing.pairs, *outcome.false.pairs]
        if pairs:
            self._last_link = (self._last_link + 1) % len(pairs)
            self.change(chosen=Chosen.link(*np.asarray(pairs[self._last_link]).tolist()))

    def save_archive(self, path: str | Path) -> Path:
        """Write the archive that is shown, with its promise if halos are kept; returns its path."""
        results = self.result
        if self.state.shows == "kept" and "kept" not in results:
            raise WorkbenchError("halos have not been kept at this bound yet: press preserve, or show decoded particles")
        shown: Kept | Breakage = results["kept" if self.state.shows == "kept" else "breakage"]
        return shown.archive.save(path).resolve()

    def _lengths(self) -> tuple[float, float]:
        unit = 1.0 if self.state.unit == "spacing" else self.particles.spacing
        return LENGTHS[0] * unit, LENGTHS[1] * unit

    # Stages.

    def _break(self, state: ClustersState, results: Results, job: Job) -> Breakage:
        return break_halos(self.particles, state, results["halos"], job)

    def _keep(self, state: ClustersState, results: Results, job: Job) -> Kept:
        trace = Trace()
        return keep_halos(self.particles, state, results["halos"], _Live(job, trace), trace)


@dataclass(eq=False)
class _Live:
    """Progress that shows the steps so far."""

    job: Job
    trace: Trace

    def __call__(self, share: float, text: str) -> None:
        self.job(share, text)
        self.job.show({"trace": Trace(list(self.trace.steps))})


def _groups(state: ClustersState) -> tuple[Any, ...]:
    return state.linking_length, state.unit


def _decoded(state: ClustersState) -> tuple[Any, ...]:
    return *_groups(state), state.bound, state.codec, state.order


def _promised(state: ClustersState) -> tuple[Any, ...]:
    return *_decoded(state), state.keep_members, state.solver
