"""Everything the clusters panel shows, as a fast, pure function of state and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.data import Particles
from workbench.lab.clusters_panel.breakage import BROKEN, INTACT, MERGED, Breakage, Halos, Outcome
from workbench.lab.clusters_panel.curves import descent_chart, mass_function_chart
from workbench.lab.clusters_panel.density import shown_axes
from workbench.lab.clusters_panel.detail import Sight, detail, sight_of
from workbench.lab.clusters_panel.keeping import Kept, Trace
from workbench.lab.clusters_panel.panes import AFTER, panes
from workbench.lab.clusters_panel.settings import settings
from workbench.lab.clusters_panel.state import ClustersState
from workbench.lab.description import Charts, Fact, Marks, Picture, Shown, Table

LARGEST_HALOS = 12   # in the table
STATUS = {INTACT: "same members", BROKEN: "lost members", MERGED: "joined by others"}


def draw(
    particles: Particles,
    state: ClustersState,
    halos: Halos,
    breakage: Breakage | None = None,
    kept: Kept | None = None,
    trace: Trace | None = None,
) -> Shown:
    """Everything that is shown; `trace` has the steps while halos are being kept."""
    outcome = shown_outcome(state, breakage, kept)
    pictures, note = panes(particles, state, halos, outcome, _title(outcome, kept))
    closeup: Picture | None = None
    if state.chosen is not None:
        closeup, more = detail(particles, state, halos, outcome)
        note = f"{note} {more}".strip()
        frame = _frame(sight_of(particles, halos, state.chosen), shown_axes(particles, state.axis))
        pictures = tuple(replace(picture, marks=(*picture.marks, frame)) for picture in pictures)
    if not halos.count(state.min_members):
        note = f"{note} No group has {state.min_members} members: a longer linking length joins more.".strip()
    if state.shows == "kept" and kept is None:
        note = f"{note} Halos have not been kept at this bound yet: press preserve.".strip()
    sizes = [None if part is None else part.outcome.sizes for part in (breakage, kept)]
    steps = trace if trace is not None else kept.trace if kept is not None else Trace()
    done = tuple(steps.steps)
    return Shown(
        pictures=pictures,
        detail=closeup,
        charts=Charts({
            "mass function": lambda: mass_function_chart(state.min_members, [halos.catalogue.members, *sizes]),
            "descent": lambda: descent_chart(done),
        }),
        facts=_facts(particles, state, halos, breakage, kept),
        tables={"halos": _halo_table(particles, state, halos, outcome), "certificate": _certificate(kept)},
        note=note,
        settings=settings(particles, state),
    )


def shown_outcome(state: ClustersState, breakage: Breakage | None, kept: Kept | None) -> Outcome | None:
    """The outcome that the second picture shows: the chosen one, if available."""
    if state.shows == "kept" and kept is not None:
        return kept.outcome
    return None if breakage is None else breakage.outcome


def _title(outcome: Outcome | None, kept: Kept | None) -> str:
    return "kept" if kept is not None and outcome is kept.outcome else "decoded"


def _frame(sight: Sight, axes: list[int]) -> Marks:
    """The frame of the detail in the large pictures."""
    across, up = (sight.middle[axis] for axis in axes)
    reach = sight.reach
    return Marks("boxes", np.array([[across - reach, across + reach, up - reach, up + reach]]), AFTER, "looked at", 1.2)


def _facts(
    particles: Particles, state: ClustersState, halos: Halos, breakage: Breakage | None, kept: Kept | None
) -> tuple[Fact, ...]:
    count = halos.count(state.min_members)
    found = [
        Fact("halos", f"{count:,}", "", f"groups of at least {state.min_members} members in the original"),
        Fact("linking length", _both_units(particles, halos), "", "in mean spacings, and in the unit of the positions"),
        Fact("error bound", f"{state.bound / halos.groups.linking_length:.3g} b", "", "largest error, in linking lengths"),
    ]
    outcome = shown_outcome(state, breakage, kept)
    if outcome is not None:
        found += _breakage_facts(outcome, count)
    if breakage is not None:
        found += [
            Fact("bits per particle", f"{breakage.bits_per_particle:.3f}", "", f"positions alone; order: {state.order}"),
            Fact("ratio", f"{_ratio(particles, breakage.bits_per_particle):.1f}", "", "times smaller, positions alone"),
        ]
    return (*found, *([] if kept is None else _kept_facts(particles, state, kept)))


def _both_units(particles: Particles, halos: Halos) -> str:
    length = halos.groups.linking_length
    return f"{length / particles.spacing:.4g} spacings = {length:.4g}" if particles.spacing > 0 else f"{length:.4g}"


def _breakage_facts(outcome: Outcome, count: int) -> list[Fact]:
    _, broken, merged = outcome.counts(count)
    figures = {
        "broken": (broken, "halos that lost members"),
        "merged": (merged, "halos that lost none, but were joined by others"),
        "missing merges": (len(outcome.missing), "the fewest lost links that would rejoin every split group"),
        "false links": (len(outcome.false), "friends from different groups; in dense regions, at most 64 for two cells"),
    }
    return [Fact(name, f"{number:,}", "bad" if number else "good", meaning) for name, (number, meaning) in figures.items()]


def _kept_facts(particles: Particles, state: ClustersState, kept: Kept) -> list[Fact]:
    bits = kept.archive.bits_per_particle
    least = f"all of at least {state.keep_members} members" if state.keep_members > 1 else "all of them"
    return [
        Fact("overhead", f"+{kept.overhead:.3f} bits", "", "the cost of keeping groups, per particle"),
        Fact("with halos kept", f"{bits:.3f} bits, {_ratio(particles, bits):.1f}x", "", "per particle, positions alone"),
        Fact(
            "groups verified", "equal" if kept.verified else "different", "good" if kept.verified else "bad",
            f"groups found again in the decoded particles, {least}, compared with the original",
        ),
    ]


def _ratio(particles: Particles, bits: float) -> float:
    return 8 * particles.positions.itemsize * particles.dimensions / bits if bits else float("inf")


def _halo_table(particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None) -> Table:
    """The largest halos, and their status."""
    columns = ("halo", "members", "radius", "what became of it")
    count, chosen, rows = min(halos.count(state.min_members), LARGEST_HALOS), None, []
    label = None
    if state.chosen is not None and state.chosen.kind == "halo":
        label = int(halos.groups.labels[state.chosen.particles[0]])
    found = halos.catalogue
    for place in range(count):
        became = "" if outcome is None else STATUS[int(outcome.status[place])]
        rows.append((f"{found.labels[place]}", f"{found.members[place]:,}", f"{found.radii[place]:.4g}", became))
        chosen = place if found.labels[place] == label else chosen
    return Table(columns, tuple(rows), chosen)


def _certificate(kept: Kept | None) -> Table:
    """The certificate of the archive about the groups that it keeps."""
    columns = ("figure", "value")
    if kept is None:
        return Table(columns)
    return Table(columns, tuple((name.replace("_", " "), text) for name, text in _stated(kept.certificate).items()))


def _stated(certificate: Mapping[str, Any]) -> dict[str, str]:
    return {name: _in_words(value) for name, value in certificate.items() if name != "kind"}


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.9g}"
