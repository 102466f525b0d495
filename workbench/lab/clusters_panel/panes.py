"""The map: the density of the original, the decoded and the kept particles, with halos outlined and broken links marked.

All have one grid and one scale, and are seen in one place. Broken halos stand out from intact ones. Links are drawn in a
small window only, where they can be told apart, but for the chosen one. If there are too many halos or links, those of the
largest groups are drawn, and a sentence says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from workbench.clusters.matching import INTACT, MERGED, SPLIT
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.lab.clusters_panel.breakage import Halos, Links, Outcome
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.density import density_picture, pixels_of
from workbench.lab.description import Marks, Picture, Reading, Window
from workbench.lab.projection import frame_of, shown_axes
from workbench.lab.reading import particle_reading

MOST_HALOS, MOST_LINKS = 400, 300   # drawn at once, of each kind
SHORT = 1 / 100                     # of the window: shorter lines get a point, to be visible
OUTLINE = 2.0                         # radius of a circle, in root mean square radii of its halo
NEAR = 4                              # links are seen in windows so many times smaller than everything
FAINT = 0.25                          # the opacity of intact halos

# On the colours of densities, which run from dark blue over red to yellow. They remain distinct in red-green colour
# blindness, and kinds differ in their lines as well.
WHOLE, TORN, JOINED, AFTER = "#69c3ff", "#ffffff", "#2ee6a6", "#ffa02f"
BROKEN, GROWN = "#ff8a3d", "#ffc86b"

STATUS = {INTACT: "intact", SPLIT: "split", MERGED: "merged"}
HALO_MARKS = {INTACT: (WHOLE, "", FAINT), MERGED: (GROWN, "2 3", 1.0), SPLIT: (BROKEN, "", 1.0)}   # the last on top
MISSING, FALSE = "missing link", "false link"
ORIGINAL, DECODED, KEPT = "original", "decoded", "halos kept"   # the titles of the pictures


def chosen_mark(label: str, number: int, outcome: Outcome | None) -> Chosen | None:
    """The halo or link of a clicked mark with this label and id; None if the mark is neither.

    >>> chosen_mark("split", 7, None)
    Chosen(kind='halo', particles=(7,))
    """
    if label in STATUS.values():
        return Chosen.halo(number)
    links = {} if outcome is None else {MISSING: outcome.missing, FALSE: outcome.false}
    if label not in links or not 0 <= number < len(links[label]):
        return None
    one, other = links[label].pairs[number].tolist()
    return Chosen.link(one, other)


def title_of(halos: Halos, place: int, outcome: Outcome | None) -> str:
    """A halo in words, by its place among all groups, the largest being number 1; with its status, if known.

    >>> from workbench.clusters import Catalogue, Groups
    >>> one = Catalogue(np.array([0]), np.array([4511]), np.zeros((1, 3)), np.ones(1))
    >>> title_of(Halos(Groups(np.zeros(4511, int), 0.2), one), 0, None)
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
    particles: Particles, state: ClustersState, halos: Halos, outcomes: Mapping[str, Outcome], shown: Outcome | None
) -> tuple[tuple[Picture, ...], str]:
    """The original and these outcomes by title, and a sentence about what is not drawn of the one that is `shown`."""
    original, _ = density_picture(particles, state.axis, state.window, state.pixels)
    circles, note = _circles(particles, state, halos, shown, original.window)
    pictures, notes = [replace(original, title=ORIGINAL, marks=circles)], [note]
    for title, outcome in outcomes.items():
        circles, _ = _circles(particles, state, halos, outcome, original.window)
        links, left_out = _links(particles, state, outcome, original.window)
        pixels = pixels_of(outcome.decoded, state.axis, original)
        pictures.append(replace(original, title=title, pixels=pixels, marks=(*circles, *links)))
        notes += left_out if outcome is shown else []
    return tuple(pictures), " ".join(filter(None, notes))


def _circles(
    particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None, window: Window
) -> tuple[tuple[Marks, ...], str]:
    """A circle around each halo, in the style of its status."""
    catalogue, count, axes = halos.catalogue, halos.count(state.min_members), shown_axes(particles, state.axis)
    centres = catalogue.centres[:count][:, axes]
    inside = np.flatnonzero(_within(centres, window))
    drawn = inside[:MOST_HALOS]
    status = np.full(len(drawn), INTACT) if outcome is None else outcome.status[drawn]
    circles = np.column_stack([centres[drawn], OUTLINE * catalogue.radii[drawn]])
    marks = []
    for kind, (colour, dash, opacity) in HALO_MARKS.items():
        these = status == kind
        titles = [title_of(halos, int(place), outcome) for place in drawn[these]]
        ids = catalogue.labels[drawn][these]
        marks.append(Marks("circles", circles[these], colour, STATUS[kind], 1.4, bool(dash), ids, dash, titles, opacity))
    return tuple(marks), _left_out(len(inside), len(drawn), "halos", "the largest")


def _links(
    particles: Particles, state: ClustersState, outcome: Outcome, window: Window
) -> tuple[list[Marks], list[str]]:
    """The broken links of an outcome, and sentences about those that are not drawn."""
    left, right, *_ = frame_of(particles, state.axis)
    is_near = NEAR * (window[1] - window[0]) <= right - left
    marks, notes = [], []
    for name, links, colour in ((MISSING, outcome.missing, TORN), (FALSE, outcome.false, JOINED)):
        inside = np.flatnonzero(_within(links.middles[:, shown_axes(particles, state.axis)], window))
        drawn = inside[:MOST_LINKS]
        chosen = np.flatnonzero((links.pairs == np.array(_ends_of(state.chosen))).all(axis=1))
        marks += _link_marks(name, links, drawn, state, outcome, window, colour, near=not is_near)
        marks += _link_marks(name, links, chosen, state, outcome, window, colour) if len(chosen) else []
        notes += [_left_out(len(inside), len(drawn), f"{name}s", "those of the largest groups")] if is_near else []
    return marks, notes


def _link_marks(
    name: str, links: Links, rows: np.ndarray, state: ClustersState, outcome: Outcome, window: Window, colour: str,
    near: bool = False,
) -> list[Marks]:
    """A line for each link, and a point in its middle if the line would be only a few pixels long."""
    axes, box = shown_axes(outcome.decoded, state.axis), outcome.decoded.box
    one, other = (outcome.decoded.positions[links.pairs[rows, end]].astype(np.float64) for end in (0, 1))
    ends = np.column_stack([one[:, axes], (one + nearest_image(other - one, box))[:, axes]])
    lines = Marks("lines", ends, colour, name, 1.6, colour == TORN, rows, "", titles_of(name, rows, len(links)), near=near)
    dotted = rows[links.lengths[rows] < SHORT * (window[1] - window[0])]
    size = 2.4 if name == MISSING else 1.5   # a ring and a dot
    titles, places = titles_of(name, dotted, len(links)), links.middles[dotted][:, axes]
    return [lines, Marks("points", places, colour, name, size, name == MISSING, dotted, "", titles, near=near)]


def _ends_of(chosen: Chosen | None) -> tuple[int, ...]:
    """The particles of the chosen link; no particles without one."""
    return chosen.particles if chosen is not None and chosen.kind == "link" else (-1, -1)


def _within(places: np.ndarray, window: Window) -> np.ndarray:
    left, right, bottom, top = window
    across, up = places[:, 0], places[:, 1]
    return (across >= left) & (across <= right) & (up >= bottom) & (up <= top)


def _left_out(count: int, drawn: int, what: str, which: str) -> str:
    return f"{drawn:,} of {count:,} {what} are drawn: {which}." if drawn < count else ""


def reading(
    particles: Particles, state: ClustersState, outcomes: Iterable[Outcome], place: tuple[float, float]
) -> Reading:
    """How many particles are in the pixel at a place, in each of the maps, and per area."""
    density, _ = density_picture(particles, state.axis, state.window, state.pixels)
    shown = [particles, *(outcome.decoded for outcome in outcomes)]
    return particle_reading(shown, state.axis, density.window, density.pixels.shape, place)
