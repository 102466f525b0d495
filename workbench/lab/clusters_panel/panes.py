"""The two large pictures: the density of original and decoded particles, with halos outlined and broken links marked.

Both have one grid and one scale. If there are too many halos or links in the window, only the largest halos and their links
are drawn, and a sentence says how many there are.
"""

from __future__ import annotations

import numpy as np

from workbench.clusters.matching import INTACT, MERGED, SPLIT
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.lab.clusters_panel.breakage import Halos, Links, Outcome
from workbench.lab.clusters_panel.density import density_of, shown_axes
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.description import Marks, Picture, Window
from workbench.lab.projection import view_axes
from workbench.lab.units import density_unit

MOST_HALOS, MOST_LINKS = 400, 300   # drawn at once, of each kind
SHORT = 1 / 100                     # of the window: shorter lines get a point, to be visible
OUTLINE = 2.0                         # radius of a circle, in root mean square radii of its halo

# On the colours of densities, which run from dark blue over red to yellow; kinds differ in their lines as well.
WHOLE, TORN, JOINED, AFTER = "#69c3ff", "#ffffff", "#86f28a", "#ffa02f"

HALO_MARKS = {
    INTACT: ("halo", WHOLE, ""), SPLIT: ("split halo", TORN, "7 3"), MERGED: ("merged halo", JOINED, "2 3"),
}
STATUS = {INTACT: "same", SPLIT: "split", MERGED: "merged"}
MISSING, FALSE = "missing link", "false link"


def chosen_mark(label: str, number: int, outcome: Outcome | None) -> Chosen | None:
    """The halo or link of a clicked mark with this label and id; None if the mark is neither.

    >>> chosen_mark("split halo", 7, None)
    Chosen(kind='halo', particles=(7,))
    """
    if label in [name for name, *_ in HALO_MARKS.values()]:
        return Chosen.halo(number)
    links = {} if outcome is None else {MISSING: outcome.missing, FALSE: outcome.false}
    if label not in links or not 0 <= number < len(links[label]):
        return None
    one, other = links[label].pairs[number].tolist()
    return Chosen.link(one, other)


def title_of(halos: Halos, place: int, outcome: Outcome | None) -> str:
    """A halo in words, by its place among all groups, the largest being number 1; with its status, if known.

    >>> from workbench.clusters import Catalogue, Groups
    >>> found = Catalogue(np.array([0]), np.array([4511]), np.zeros((1, 3)), np.ones(1))
    >>> title_of(Halos(Groups(np.zeros(4511, int), 0.2), found), 0, None)
    'halo 1: 4,511 members'
    """
    status = "" if outcome is None else f", {STATUS[int(outcome.status[place])]}"
    return f"halo {place + 1:,}: {int(halos.catalogue.members[place]):,} members{status}"


def titles_of(name: str, rows: np.ndarray, count: int) -> list[str]:
    """Broken links in words, by their number among all of their kind.

    >>> titles_of("missing link", np.array([2]), 1563)
    ['missing link 3 of 1,563']
    """
    return [f"{name} {row + 1:,} of {count:,}" for row in rows.tolist()]


def panes(
    particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None, title: str
) -> tuple[tuple[Picture, ...], str]:
    """The pictures, and a sentence about what is not drawn; without an outcome, the original alone."""
    axes, density = shown_axes(particles, state.axis), density_of(particles, state.axis, state.window, state.pixels)
    window = density.window
    circles, notes = _circles(particles, state, halos, outcome, window)
    given = {
        "window": window, "colours": "density", "low": density.low, "high": density.high, "logarithmic": True,
        "unit": density_unit(particles), "axes": view_axes(particles, state.axis),
    }
    original = Picture("original", density.pixels, marks=circles, **given)   # type: ignore[arg-type]
    if outcome is None:
        return (original,), " ".join(notes)
    pixels = density.of(outcome.decoded)
    links = []
    for name, found, colour in ((MISSING, outcome.missing, TORN), (FALSE, outcome.false, JOINED)):
        marks, note = _link_marks(name, found, outcome.decoded, axes, window, colour)
        links += marks
        notes += note
    decoded = Picture(title, pixels, marks=(*circles, *links), **given)   # type: ignore[arg-type]
    return (original, decoded), " ".join(notes)


def _circles(
    particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None, window: Window
) -> tuple[tuple[Marks, ...], list[str]]:
    """A circle around each halo, in the style of its status."""
    found, count, axes = halos.catalogue, halos.count(state.min_members), shown_axes(particles, state.axis)
    centres = found.centres[:count][:, axes]
    inside = np.flatnonzero(_within(centres, window))
    drawn = inside[:MOST_HALOS]
    status = np.full(len(drawn), INTACT) if outcome is None else outcome.status[drawn]
    circles = np.column_stack([centres[drawn], OUTLINE * found.radii[drawn]])
    marks = []
    for kind, (name, colour, dash) in HALO_MARKS.items():
        these = status == kind
        titles = [title_of(halos, int(place), outcome) for place in drawn[these]]
        ids = found.labels[drawn][these]
        marks.append(Marks("circles", circles[these], colour, name, 1.4, bool(dash), ids, dash, titles))
    return tuple(marks), _left_out(len(inside), len(drawn), "halos", "the largest")


def _link_marks(
    name: str, links: Links, decoded: Particles, axes: list[int], window: Window, colour: str
) -> tuple[list[Marks], list[str]]:
    """A line for each link, and a point in its middle if the line would be only a few pixels long."""
    inside = np.flatnonzero(_within(links.middles[:, axes], window))
    drawn = inside[:MOST_LINKS]
    one, other = (decoded.positions[links.pairs[drawn, end]].astype(np.float64) for end in (0, 1))
    ends = np.column_stack([one[:, axes], (one + nearest_image(other - one, decoded.box))[:, axes]])
    lines = Marks("lines", ends, colour, name, 1.6, colour == TORN, drawn, "", titles_of(name, drawn, len(links)))
    dotted = drawn[links.lengths[drawn] < SHORT * (window[1] - window[0])]
    size = 2.4 if name == MISSING else 1.5   # a ring and a dot
    titles = titles_of(name, dotted, len(links))
    points = Marks("points", links.middles[dotted][:, axes], colour, name, size, name == MISSING, dotted, "", titles)
    return [lines, points], _left_out(len(inside), len(drawn), f"{name}s", "those of the largest groups")


def _within(places: np.ndarray, window: Window) -> np.ndarray:
    left, right, bottom, top = window
    across, up = places[:, 0], places[:, 1]
    return (across >= left) & (across <= right) & (up >= bottom) & (up <= top)


def _left_out(count: int, drawn: int, what: str, which: str) -> list[str]:
    return [f"Of {count:,} {what} in sight, {drawn:,} are drawn: {which}."] if drawn < count else []
