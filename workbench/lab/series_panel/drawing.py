"""Everything the clusters panel of a series shows, as a fast, pure function of state and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from workbench.charts.description import Axis, Chart, Rule, Series
from workbench.charts.looks import INK, Dash
from workbench.clusters.descent import Descent
from workbench.clusters.descent.differences import KEPT, KINDS, NO_LINK
from workbench.clusters.descent.step import NOBODY
from workbench.clusters.descent.succession import FATES, ORIGINS
from workbench.clusters.descent.tree_chart import BROKEN, MAIN
from workbench.data import Particles
from workbench.lab.clusters_panel.panes import AFTER, JOINED, MOST_HALOS, OUTLINE, TORN, WHOLE
from workbench.lab.density import density_picture, pixels_of
from workbench.lab.description import Charts, Fact, Marks, Picture, Shown, Table
from workbench.lab.figures import group
from workbench.lab.projection import shown_axes
from workbench.lab.series_panel.halos import Descents, Followed, Snapshot
from workbench.lab.series_panel.state import SeriesState

DECODED, ORIGINAL = "decoded", "original"
HALOS, OF_MAIN, OF_OTHERS, ALONE = "halos", "main branch", "branches that merge", "no counterpart"
LOOKS = (   # label, colour, width, dash and opacity; the last on top
    (HALOS, WHOLE, 1.4, "", 0.35), (ALONE, AFTER, 1.8, "2 3", 1.0), (OF_OTHERS, JOINED, 2.0, "5 4", 1.0),
    (OF_MAIN, TORN, 2.6, "", 1.0),
)
ROWS = 200   # of halos in the table


def draw(state: SeriesState, times: Sequence[float], snapshot: Snapshot | None, descents: Descents | None) -> Shown:
    """The map of a step with its halos, the merger tree of the chosen one, and what is known of all links."""
    pictures, note = ((), "") if snapshot is None else _pictures(state, snapshot, descents)
    when = f"time {times[state.step]:.4g} (step {state.step} of 0 to {len(times) - 1})"
    settings = {
        "step": when, "linking length": f"{state.linking_length:.6g} ({state.unit})",
        "halos": f"groups of at least {state.min_members:,} members",
    }
    if descents is None:
        return Shown(pictures=pictures, settings=settings, note=note or "following halos ...")
    facts = _facts(state, descents)
    return Shown(
        answer=_answer(state, descents, when), pictures=pictures, charts=Charts(_charts(state, descents)), facts=facts,
        tables={"halos": _halo_table(state, descents), "steps": _step_table(state, descents)}, settings=settings, note=note,
        beside=("growth",),
    )


def chosen_of(state: SeriesState, descents: Descents) -> tuple[int, int] | None:
    """The step and the number of the halo whose tree is shown; None if there are no halos at the end."""
    steps = descents.reference.descent.steps
    if state.chosen is not None:
        at, name = state.chosen
        found = np.flatnonzero(steps[at].halos == name)
        return (at, int(found[0])) if len(found) else None
    return (len(steps) - 1, 0) if len(steps[-1]) else None


def _pictures(state: SeriesState, snapshot: Snapshot, descents: Descents | None) -> tuple[tuple[Picture, ...], str]:
    """The map of the original and of the decoded particles, on one scale."""
    first = snapshot.original or snapshot.decoded
    base, _ = density_picture(first, state.axis, state.window, state.pixels)
    both: dict[str, tuple[Particles | None, Followed | None]] = {
        ORIGINAL: (snapshot.original, None if descents is None else descents.original),
        DECODED: (snapshot.decoded, None if descents is None else descents.decoded),
    }
    pictures, note = [], ""
    for title, (particles, followed) in both.items():
        if particles is None:
            continue
        pixels = base.pixels if particles is first else pixels_of(particles, state.axis, base)
        marks: tuple[Marks, ...] = ()
        if followed is not None and descents is not None:
            marks, note = _marks(state, particles, followed, descents)
        pictures.append(replace(base, title=title, pixels=pixels, marks=marks))
    return tuple(pictures), note


def _marks(
    state: SeriesState, particles: Particles, followed: Followed, descents: Descents
) -> tuple[tuple[Marks, ...], str]:
    """Circles around the halos of the step: those of the chosen tree, those without a counterpart, and the others."""
    at = state.step
    step, axes = followed.descent.steps[at], shown_axes(particles, state.axis)
    circles = np.column_stack([followed.centres[at][:, axes], OUTLINE * followed.radii[at]])
    there = descents.counterparts(at)
    if followed is descents.reference:
        names, alone = np.arange(len(step)), there == NOBODY
    else:
        names = np.full(len(step), NOBODY)
        names[there[there != NOBODY]] = np.flatnonzero(there != NOBODY)
        alone = names == NOBODY
    main, others = _family(state, followed, descents)
    kind = np.where(alone, 1, 0)
    kind[others] = 2
    if main != NOBODY:
        kind[main] = 3
    drawn = np.union1d(np.arange(min(len(step), MOST_HALOS)), np.flatnonzero(kind > 1))
    marks = []
    for number, (label, colour, width, dash, opacity) in enumerate(LOOKS):
        these = drawn[kind[drawn] == number]
        titles = [f"halo {step.halos[one]}: {step.members[one]:,} members" for one in these.tolist()]
        marks.append(Marks(
            "circles", circles[these], colour, label, width, bool(dash), names[these], dash, titles, opacity,
        ))
    left_out = f"{len(drawn):,} of {len(step):,} halos are drawn: the largest." if len(drawn) < len(step) else ""
    return tuple(marks), left_out


def _family(state: SeriesState, followed: Followed, descents: Descents) -> tuple[int, np.ndarray]:
    """The main progenitor of the chosen halo at the step, and the others, in one of both descents."""
    chosen = chosen_of(state, descents)
    if chosen is None:
        return NOBODY, np.zeros(0, np.int64)
    at, number = chosen
    if followed is not descents.reference:
        number = int(descents.counterparts(at)[number])
    return (NOBODY, np.zeros(0, np.int64)) if number == NOBODY else followed.family(at, number, state.step)


def _charts(state: SeriesState, descents: Descents) -> dict[str, Callable[[], Chart]]:
    """The merger tree of the chosen halo, with the visible step, and the members of its main branch."""
    chosen = chosen_of(state, descents)
    if chosen is None:
        return {}
    at, number = chosen
    reference, other = descents.reference.descent, descents.decoded.descent
    name = int(reference.steps[at].halos[number])
    here = Rule("", "x", reference.times[state.step], INK, "dotted", 1.4)

    def tree() -> Chart:
        chart = reference.plot(name, at, other if descents.original is not None else None)
        return replace(chart, parts=(*chart.parts, here))

    def growth() -> Chart:
        lines = [_branch("original" if descents.original else "decoded", MAIN[1], reference, name, at)]
        there = int(descents.counterparts(at)[number])
        if descents.original is not None and there != NOBODY:
            lines.append(_branch("decoded", BROKEN[1], other, int(other.steps[at].halos[there]), at, "dashed"))
        members = [float(each) for line in lines for each in line.y]
        up = Axis.around("members", members, None)
        across = Axis.around(reference.unit_of_time, reference.times)
        return Chart(f"Main branch of halo {name}", across, up, (*lines, here))

    return {"merger tree": tree, "growth": growth}


def _branch(name: str, colour: str, descent: Descent, halo: int, at: int, dash: Dash = "solid") -> Series:
    rows = descent.main_branch(halo, at)
    x, y = [row["time"] for row in rows], [row["members"] for row in rows]
    tooltips = [f"{name}, step {row['step']}: halo {row['halo']}, {row['members']:,} members" for row in rows]
    return Series(name, x, y, colour, dash, "circle", size=6, tooltips=tooltips)


def _answer(state: SeriesState, descents: Descents, when: str) -> tuple[str | Fact, ...]:
    """How many halos there are at the step, and how many links of all are kept."""
    count = Fact("halos", f"{len(descents.reference.descent.steps[state.step]):,}")
    if descents.differences is None:
        return count, f"halos at {when}"
    found = descents.differences.counts
    kept = Fact(
        "links kept", f"{found['kept']:,} of {found['links']:,}", "bad" if descents.differences.broken else "good",
        "links from halos to their descendants that decoded particles have, too",
    )
    return count, f"halos at {when} ·", kept, "links of descent kept"


def _facts(state: SeriesState, descents: Descents) -> tuple[Fact, ...]:
    counts = descents.reference.descent.counts
    meanings = {
        "continue": "halos that are the main progenitor of their descendant", "merge": "halos that join a larger branch",
        "dissolve": "halos of which no member is in a halo of the next step",
        "split off": "halos without progenitors, most of whose members were in one halo before",
        "form": "other halos without progenitors",
        "over a gap": "links to a later step than the next one, at which the halo is not found",
    }
    of_all = [Fact(name, f"{counts[name]:,}", meaning=text) for name, text in meanings.items() if name in counts]
    if descents.differences is None:
        return group("all steps", of_all)
    found = descents.differences.counts
    links = [Fact(kind, f"{found[kind]:,}", "" if kind == "kept" else "bad" if found[kind] else "good",
                  "links of the original's descent") for kind in (*KINDS, "added")]
    whole = f"{descents.differences.whole_branches:,} of {descents.differences.branches:,}"
    links.append(Fact("main branches whole", whole, meaning="halos of the last step whose main branch is the same"))
    return *group("all steps", of_all), *group("links", links)


def _halo_table(state: SeriesState, descents: Descents) -> Table:
    """The largest halos of the step."""
    at, descent = state.step, descents.reference.descent
    step, links = descent.steps[at], None if descents.differences is None else descents.differences.links
    rows = []
    for number in range(min(len(step), ROWS)):
        origin = ORIGINS[descent.successions[at - 1].origin[number]] if at else ""
        fate = FATES[descent.successions[at].fate[number]] if at < len(descent) - 1 else ""
        if fate and (over := int(descent.successions[at].over[number])):
            fate += f" {over + 1} steps on"
        row = [str(step.halos[number]), f"{step.members[number]:,}", origin, fate]
        if links is not None:
            kind = int(links[at][number]) if at < len(links) else NO_LINK
            row.append(KINDS[kind] if kind != NO_LINK else "")
        rows.append(tuple(row))
    columns = ("halo", "members", "comes", "goes", *(() if links is None else ("link",)))
    main, _ = _family(state, descents.reference, descents)
    chosen = main if 0 <= main < len(rows) else None
    return Table(columns, tuple(rows), chosen, len(step), "show the merger tree of this halo")


def _step_table(state: SeriesState, descents: Descents) -> Table:
    """Each step, with the links that lead from it."""
    descent, rows = descents.reference.descent, []
    for at, step in enumerate(descent.steps):
        fates = np.bincount(descent.successions[at].fate, minlength=3).tolist() if at < len(descent) - 1 else ["", "", ""]
        row = [str(at), f"{step.time:.4g}", f"{len(step):,}", *map(str, fates)]
        if descents.differences is not None:
            broken = int((~np.isin(descents.differences.links[at], (KEPT, NO_LINK))).sum()) if at < len(descent) - 1 else ""
            row.append(str(broken))
        rows.append(tuple(row))
    last = () if descents.differences is None else ("broken links",)
    columns = ("step", "time", "halos", "continue", "merge", "dissolve", *last)
    return Table(columns, tuple(rows), state.step, None, "show this step")
