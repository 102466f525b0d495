"""Everything the clusters panel shows, as a fast, pure function of state and results.

All of it belongs to one archive: the one with halos kept if that is chosen and there, else the plain one. Figures of the
other one appear only as differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from workbench.charts.description import Chart
from workbench.clusters.keep.words import clusters_in_words
from workbench.data import Particles
from workbench.lab.clusters_panel.breakage import Breakage, Halos, Outcome
from workbench.lab.clusters_panel.chosen import broken_counts, chosen_facts
from workbench.lab.clusters_panel.curves import descent_chart, mass_function_chart
from workbench.lab.clusters_panel.detail import Sight, detail, sight_of
from workbench.lab.clusters_panel.keeping import Kept, Trace
from workbench.lab.clusters_panel.panes import AFTER, DECODED, KEPT, STATUS, panes
from workbench.lab.clusters_panel.state import ClustersState
from workbench.lab.description import Charts, Fact, Marks, Picture, Severity, Shown, Table
from workbench.lab.figures import figure, group
from workbench.lab.projection import shown_axes

LARGEST_HALOS = 200   # in the table


def draw(
    particles: Particles,
    state: ClustersState,
    halos: Halos,
    breakage: Breakage | None = None,
    kept: Kept | None = None,
    trace: Trace | None = None,
) -> Shown:
    """Everything that is shown; `trace` has the steps while halos are being kept."""
    part = shown_part(state, breakage, kept)
    outcome = None if part is None else part.outcome
    outcomes = outcomes_by_title(breakage, kept)
    pictures, note = panes(particles, state, halos, outcomes, outcome)
    closeup: Picture | None = None
    if state.chosen is not None:
        closeup, more = detail(particles, state, halos, outcome)
        note = f"{note} {more}".strip()
        frame = _frame(sight_of(particles, halos, state.chosen), shown_axes(particles, state.axis))
        pictures = tuple(replace(picture, marks=(*picture.marks, frame)) for picture in pictures)
    facts = (*_facts(particles, state, halos, part), *chosen_facts(particles, state, halos, outcome))
    return Shown(
        answer=_answer(state, halos, part, kept),
        pictures=pictures,
        front=0 if state.original else next((n for n, each in enumerate(outcomes.values(), 1) if each is outcome), 0),
        detail=closeup,
        beside=("mass function", "descent"),
        charts=Charts(_charts(state, halos, breakage, kept if part is kept else None, trace)),
        facts=facts,
        tables={"halos": _halo_table(state, halos, outcome), "certificate": _certificate(part)},
        settings=_settings(particles, state, halos, part),
        note=" ".join(filter(None, [note, _no_halos(state, halos), _not_kept(state, kept)])),
    )


def _settings(
    particles: Particles, state: ClustersState, halos: Halos, part: Breakage | Kept | None
) -> dict[str, str]:
    """The choices in words."""
    kept = f"all groups of at least {state.keep_members:,} members" if state.keep_members > 1 else "all groups"
    return {
        "codec": state.codec,
        "error bound": f"{state.bound:.6g}",
        "linking length": _both_units(particles, halos.groups.linking_length),
        "order of particles": {"free": "free", "keep": "kept"}[state.order],
        "halos": f"groups of at least {state.min_members:,} members",
        "kept": f"{kept}, solver {state.solver}" if isinstance(part, Kept) else "no groups",
        **({"seen": f"along {'xyz'[state.axis]}"} if particles.dimensions == 3 else {}),
    }


def shown_part(state: ClustersState, breakage: Breakage | None, kept: Kept | None) -> Breakage | Kept | None:
    """What everything shown belongs to: the archive with halos kept if it is chosen and there, else the plain one."""
    return kept if state.shows == "kept" and kept is not None else breakage


def outcomes_by_title(breakage: Breakage | None, kept: Kept | None) -> Mapping[str, Outcome]:
    """What there is beside the original, in the order of the pictures."""
    return {title: part.outcome for title, part in ((DECODED, breakage), (KEPT, kept)) if part is not None}


def shown_outcome(state: ClustersState, breakage: Breakage | None, kept: Kept | None) -> Outcome | None:
    """The outcome that the second picture shows, if there is one."""
    part = shown_part(state, breakage, kept)
    return None if part is None else part.outcome


def _no_halos(state: ClustersState, halos: Halos) -> str:
    if halos.count(state.min_members):
        return ""
    largest = int(halos.catalogue.members[0]) if len(halos.catalogue) else 1
    if largest == 1:
        return "No two particles are friends: a longer linking length joins some."
    return (
        f"No group has {state.min_members:,} members; the largest has {largest:,}: set \"halo: at least\" to {largest:,} "
        "or less, or choose a longer linking length."
    )


def _not_kept(state: ClustersState, kept: Kept | None) -> str:
    is_missing = state.shows == "kept" and kept is None
    return "Halos have not been kept for these settings: press preserve." if is_missing else ""


def _charts(
    state: ClustersState, halos: Halos, breakage: Breakage | None, kept: Kept | None, trace: Trace | None
) -> dict[str, Callable[[], Chart]]:
    """The charts that have something to show; `kept` only if it is shown."""
    decoded, preserved = (None if part is None else part.outcome.sizes for part in (breakage, kept))
    sizes = [halos.catalogue.members, decoded, preserved]
    steps = tuple((trace or (kept.trace if kept is not None else Trace())).steps)
    makers: dict[str, Callable[[], Chart]] = {}
    if any(each is not None and len(each) and each[0] >= state.min_members for each in sizes):
        makers["mass function"] = lambda: mass_function_chart(state.min_members, sizes)
    if steps:
        makers["descent"] = lambda: descent_chart(steps, steps[-1].within / state.bound)
    return makers


def _answer(
    state: ClustersState, halos: Halos, part: Breakage | Kept | None, kept: Kept | None
) -> tuple[str | Fact, ...]:
    """What has become of the halos, the size of the archive, and what it costs to keep them, once that is known."""
    if part is None:
        return ()
    count = halos.count(state.min_members)
    bits = figure("bits per particle", part.bits_per_particle, form=".2f")
    cost = () if kept is None else (figure("cost of keeping", kept.overhead, form="+.2f"),)
    if isinstance(part, Kept):
        return (*_kept_answer(state, part, count), "·", bits, "bits/particle ·", *cost, "for keeping")
    known = ("· keeping costs", *cost) if cost else ()
    return (*_broken_answer(part.outcome, count), "·", bits, "bits/particle", *known)


def _kept_answer(state: ClustersState, kept: Kept, count: int) -> tuple[str | Fact, ...]:
    """Halos of fewer members than those to keep may be broken."""
    if not kept.verified:
        return Fact("groups verified", "groups differ", "bad"), "from those that are promised"
    if count and sum(kept.outcome.counts(count)[1:]):
        promised = Fact("groups verified", f"all groups of {state.keep_members:,} or more", "good")
        return (*_broken_answer(kept.outcome, count), "·", promised, "equal")
    return Fact("groups verified", f"all {count:,}" if count else "all", "good"), f"{'halos' if count else 'groups'} equal"


def _broken_answer(outcome: Outcome, count: int) -> tuple[str | Fact, ...]:
    if not count:
        return ("no halos",)
    _, split, merged = outcome.counts(count)
    broken = figure("broken", f"{split + merged:,} of {count:,}", verdict=_verdict(split + merged, True))
    return broken, f"halos broken ({split:,} split, {merged:,} merged)" if split + merged else "halos broken"


def _frame(sight: Sight, axes: tuple[int, int]) -> Marks:
    """The frame of the detail in the large pictures."""
    across, up = (sight.middle[axis] for axis in axes)
    reach = sight.reach
    return Marks("boxes", np.array([[across - reach, across + reach, up - reach, up + reach]]), AFTER, width=1.2)


def _facts(particles: Particles, state: ClustersState, halos: Halos, part: Breakage | Kept | None) -> tuple[Fact, ...]:
    count, length = halos.count(state.min_members), halos.groups.linking_length
    counted = f"groups of at least {state.min_members:,} members in the original"
    of_halos = [Fact("halos", f"{count:,}", meaning=counted)]
    of_archive = [
        figure("linking length", _both_units(particles, length)),
        figure("error bound", f"{state.bound:.6g} = {state.bound / length:.3g} b"),
    ]
    if part is not None:
        bits = part.bits_per_particle
        of_halos += _breakage_facts(part.outcome, count, bool(len(halos.catalogue)))
        of_archive += [
            figure("bits per particle", bits, form=".3f"), figure("ratio", _ratio(particles, bits), form=".1f"),
        ]
    if isinstance(part, Kept):
        of_archive += _kept_facts(state, part)
    return *group("halos", of_halos), *group("archive", of_archive)


def _both_units(particles: Particles, length: float) -> str:
    return f"{length:.4g} = {length / particles.spacing:.4g} spacings" if particles.spacing > 0 else f"{length:.4g}"


def _breakage_facts(outcome: Outcome, count: int, are_groups: bool) -> list[Fact]:
    """The broken halos and their parts, and the broken links; nothing is good where nothing could break."""
    _, split, merged = outcome.counts(count)
    missing, false, could_break = len(outcome.missing), len(outcome.false), count > 0
    return [
        *(figure(name, number, form=",", verdict=_verdict(number, could_break))
          for name, number in {"broken": split + merged, "split": split, "merged": merged}.items()),
        figure("missing links", missing, form=",", verdict=_verdict(missing, are_groups), about="missing link"),
        figure("false links", false, form=",", verdict=_verdict(false, are_groups), about="false link",
               more="; in dense regions, at most 64 are listed for two cells"),
    ]


def _verdict(number: int, could_break: bool) -> Severity:
    return "bad" if number else "good" if could_break else ""


def _kept_facts(state: ClustersState, kept: Kept) -> list[Fact]:
    plain = kept.bits_per_particle - kept.overhead
    share = f" ({100 * kept.overhead / plain:+.2g} %)" if plain > 0 else ""
    least = f"all of at least {state.keep_members:,} members" if state.keep_members > 1 else "all of them"
    return [
        figure("cost of keeping", f"{kept.overhead:+.3f} bits{share}"),
        Fact(
            "groups verified", "equal" if kept.verified else "different", "good" if kept.verified else "bad",
            f"groups found again in the decoded particles, {least}, compared with the original",
        ),
    ]


def _ratio(particles: Particles, bits: float) -> float:
    return 8 * particles.positions.itemsize * particles.dimensions / bits if bits else float("inf")


def _halo_table(state: ClustersState, halos: Halos, outcome: Outcome | None) -> Table:
    """The largest halos before and after."""
    columns: tuple[str, ...] = ("halo", "members", "members after", "status", "missing links", "false links", "radius")
    catalogue, total = halos.catalogue, halos.count(state.min_members)
    places = np.arange(min(total, LARGEST_HALOS))
    before = [f"{size:,}" for size in catalogue.members[places]]
    radii = [f"{radius:.4g}" for radius in catalogue.radii[places]]
    numbers = [f"{place + 1:,}" for place in places]
    if outcome is None:
        columns, cells = (*columns[:2], columns[-1]), [numbers, before, radii]
    else:
        links = ([f"{count:,}" for count in counts] for counts in broken_counts(halos, outcome, places))
        status = [STATUS[int(kind)] for kind in outcome.status[places]]
        cells = [numbers, before, [f"{size:,}" for size in outcome.members[places]], status, *links, radii]
    chosen = _chosen_place(state, halos)
    chosen = chosen if chosen is not None and chosen < len(places) else None
    return Table(columns, tuple(zip(*cells, strict=True)), chosen, total, "show this halo in the close-up")


def _chosen_place(state: ClustersState, halos: Halos) -> int | None:
    """The place of the chosen halo in the catalogue."""
    if state.chosen is None or state.chosen.kind != "halo":
        return None
    return halos.place(int(halos.groups.labels[state.chosen.particles[0]]))


def _certificate(part: Breakage | Kept | None) -> Table:
    """What the archive states about the groups that it keeps."""
    rows = clusters_in_words(part.certificate) if isinstance(part, Kept) else []
    return Table(("what", "stated"), tuple(rows))
