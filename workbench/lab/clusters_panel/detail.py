"""The close-up of one halo or link: its particles before and after, the error bound of each, and the links.

Places are relative to the middle, by nearest image, so that a halo across a face of the box is whole, and so that no
precision is lost for tiny distances far from the origin. Up to a thousand particles are drawn one by one; more would cover
each other, so their density is drawn, with the broken links over it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.clusters.discord import discords
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.lab.clusters_panel.breakage import Halos, Links, Outcome
from workbench.lab.clusters_panel.chosen import title_of_chosen
from workbench.lab.clusters_panel.panes import AFTER, FALSE, JOINED, MISSING, OUTLINE, TORN, WHOLE, titles_of
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.description import Axes, Marks, Picture, Reading, Window
from workbench.lab.levels import density_bytes, density_range
from workbench.lab.projection import Projection, grid_of, shown_axes, view_axes
from workbench.lab.remembered import remembered
from workbench.lab.units import density_unit

MOST_POINTS = 1000   # particles drawn one by one; beyond, their density
MOST_BOXES = 300     # boxes of the error bound; more would cover the particles
MOST_LINES = 5000    # links of each kind; beyond, those nearest to breaking, or of the largest groups
ROOM = 1.3           # around the chosen halo or link
POINTED = 0.04       # of the close-up's half width: a particle so near to the pointer is meant

LINKED, BOUND, OTHERS, PAIR, RULER = "#8a97b5", "#8f9bb8", "#b9b3c9", "#ffe14d", "#ffffff"
EMPTY = np.zeros((64, 64), np.uint8)


@dataclass(frozen=True)
class Sight:
    """The visible cube."""

    middle: tuple[float, ...]
    reach: float

    @property
    def window(self) -> Window:
        """The window of the picture, relative to the middle."""
        return -self.reach, self.reach, -self.reach, self.reach


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The particles of the original in a cube (ascending indices), relative to its middle."""

    index: np.ndarray
    places: np.ndarray

    @property
    def is_drawn_singly(self) -> bool:
        """Whether each particle is drawn."""
        return len(self.index) <= MOST_POINTS

    def locally(self, links: Links) -> tuple[np.ndarray, np.ndarray]:
        """The links with both ends in the cube, as numbers of particles in it, and their rows."""
        if not len(self.index):
            return np.empty((0, 2), np.intp), np.empty(0, np.intp)
        places = np.minimum(np.searchsorted(self.index, links.pairs), len(self.index) - 1)
        rows = np.flatnonzero((self.index[places] == links.pairs).all(axis=1))
        return places[rows], rows


@dataclass(frozen=True, eq=False)
class Aftermath:
    """The decoded particles of a neighbourhood: their places, their links, and the broken links."""

    places: np.ndarray
    links: np.ndarray     # whole ones, the longest first; none if particles are not drawn one by one
    missing: np.ndarray
    false: np.ndarray
    rows: tuple[np.ndarray, np.ndarray]   # of the missing and the false links

    @property
    def ends(self) -> np.ndarray:
        """The particles at the ends of broken links, each once."""
        return np.unique(np.concatenate([self.missing.ravel(), self.false.ravel()]))

    def touching(self, own: np.ndarray) -> Aftermath:
        """The same with those broken links only that have an end among these particles."""
        first, second = (own[pairs].any(axis=1) for pairs in (self.missing, self.false))
        rows = self.rows[0][first], self.rows[1][second]
        return replace(self, missing=self.missing[first], false=self.false[second], rows=rows)


def detail(particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None) -> tuple[Picture, str]:
    """The picture, and a sentence if particles are not drawn one by one; of a halo, only its own broken links are drawn."""
    assert state.chosen is not None
    sight = sight_of(particles, halos, state.chosen)
    near = neighbourhood(particles, sight)
    after = aftermath(particles, outcome, near, sight, halos.groups.linking_length)
    labels = halos.groups.labels
    own = np.isin(labels[near.index], labels[list(state.chosen.particles)])
    if state.chosen.kind == "halo":
        after = after.touching(own)
    axes = shown_axes(particles, state.axis)
    before, now = near.places[:, axes], after.places[:, axes]
    pair = np.searchsorted(near.index, state.chosen.particles if state.chosen.kind == "link" else ())
    over = (
        *_broken(now, after, outcome), *_moves(before[pair], now[pair]), *_pair(now[pair], sight),
        *_rulers(sight, halos.groups.linking_length, state.bound),
    )
    title = title_of_chosen(halos, outcome, state.chosen, state.min_members)
    seen = view_axes(particles, state.axis)
    apart = Axes(f"Δ{seen.across}", f"Δ{seen.up}", seen.unit)   # distances from the middle, which the ticks count
    if near.is_drawn_singly:
        marks = (*_bounds(before, state.bound), *_links_of(now, after, pair), *_particles(before, now, own), *over)
        return Picture(title, EMPTY, sight.window, "density", 1.0, 1.0, marks=_not_empty(marks), axes=apart), ""
    marks = (Marks("points", now[after.ends], AFTER, "ends of broken links", 1.6), *over)
    note = f"The close-up shows the density of {len(near.index):,} particles: choose a link to see single ones."
    picture = _density(title, now, sight, _not_empty(marks))
    return replace(picture, axes=apart, unit=density_unit(particles)), note


def sight_of(particles: Particles, halos: Halos, chosen: Chosen) -> Sight:
    """The cube to show, independent of the bound; a halo is found by any of its members."""
    length = halos.groups.linking_length
    positions = particles.positions[list(chosen.particles)].astype(np.float64)
    if chosen.kind == "link":
        along = nearest_image(positions[1] - positions[0], particles.box)
        middle, reach = positions[0] + along / 2, float(np.sqrt((along**2).sum())) / 2 + length
    else:
        place = halos.place(int(halos.groups.labels[chosen.particles[0]]))
        middle = positions[0] if place is None else halos.catalogue.centres[place]
        radius = 0.0 if place is None else float(halos.catalogue.radii[place])
        reach = OUTLINE * radius + length
    if particles.box is not None:
        middle, reach = middle % np.asarray(particles.box), min(reach, max(particles.box))
    return Sight(tuple(middle.tolist()), ROOM * reach)


def neighbourhood(particles: Particles, sight: Sight) -> Neighbourhood:
    """The particles in the cube, selected axis by axis, which soon leaves few."""

    def made() -> Neighbourhood:
        index: np.ndarray | None = None
        for axis, middle in enumerate(sight.middle):
            along = particles.positions[:, axis] if index is None else particles.positions[index, axis]
            apart = np.abs(along - along.dtype.type(middle))
            if particles.box is not None:
                apart = np.minimum(apart, apart.dtype.type(particles.box[axis]) - apart)
            inside = np.flatnonzero(apart <= sight.reach)
            index = inside if index is None else index[inside]
        assert index is not None
        return Neighbourhood(index, _relative(particles, index, sight))

    return remembered(particles, "neighbourhood", sight, made)


def _relative(particles: Particles, index: np.ndarray, sight: Sight) -> np.ndarray:
    return nearest_image(particles.positions[index].astype(np.float64) - np.array(sight.middle), particles.box)


def aftermath(
    original: Particles, outcome: Outcome | None, near: Neighbourhood, sight: Sight, length: float
) -> Aftermath:
    """The neighbourhood after decoding; without an outcome, the original places and no broken links."""
    decoded = original if outcome is None else outcome.decoded

    def made() -> Aftermath:
        moved = decoded.positions[near.index].astype(np.float64) - original.positions[near.index]
        places = near.places + nearest_image(moved, original.box)
        nothing = np.empty((0, 2), np.intp), np.empty(0, np.intp)
        missing, false = (nothing, nothing) if outcome is None else map(near.locally, (outcome.missing, outcome.false))
        links = _links(places, false[0], length) if len(places) and near.is_drawn_singly else nothing[0]
        return Aftermath(places, links, missing[0], false[0], (missing[1], false[1]))

    return remembered(decoded, "aftermath", (sight, length), made)


def _links(places: np.ndarray, false: np.ndarray, length: float) -> np.ndarray:
    """All links here except false ones; the longest first, as they are the next to break."""
    here = Particles(places)
    pairs = discords(SortedCells.of(here, length), np.arange(len(places), dtype=np.int32), length)
    if len(false):
        pairs = pairs[~np.isin(pairs @ [len(places), 1], false @ [len(places), 1])]
    lengths = ((places[pairs[:, 0]] - places[pairs[:, 1]]) ** 2).sum(axis=1)
    return pairs[np.argsort(-lengths, kind="stable")]


def _particles(before: np.ndarray, now: np.ndarray, own: np.ndarray) -> list[Marks]:
    """Particles of the chosen group or groups before and after, and those of other groups; fewer ones are larger."""
    width = float(np.clip(40 / np.sqrt(max(len(before), 1)), 1.6, 3.2))
    return [
        Marks("points", now[~own], OTHERS, "other groups", 0.8 * width),
        Marks("points", before[own], WHOLE, "original", width),
        Marks("points", now[own], AFTER, "decoded", 0.75 * width),
    ]


def _bounds(before: np.ndarray, bound: float) -> list[Marks]:
    """The square of the error bound around each original place, if these are few."""
    across, up = before[: len(before) if len(before) <= MOST_BOXES else 0].T
    boxes = np.column_stack([across - bound, across + bound, up - bound, up + bound])
    return [Marks("boxes", boxes, BOUND, "± ξ", 0.8)]


def _links_of(now: np.ndarray, after: Aftermath, pair: np.ndarray) -> list[Marks]:
    """The links of the chosen pair to its friends, and all others."""
    links = after.links[:MOST_LINES]
    of_pair = np.isin(links, pair).any(axis=1)
    return [
        Marks("lines", _ends(now, links[~of_pair]), LINKED, "links", 0.8),
        Marks("lines", _ends(now, links[of_pair]), AFTER, "links", 1.4),
    ]


def _broken(now: np.ndarray, after: Aftermath, outcome: Outcome | None) -> list[Marks]:
    """The missing and the false links, with their rows as ids."""
    if outcome is None:
        return []
    missing, false = (_ends(now, pairs[:MOST_LINES]) for pairs in (after.missing, after.false))
    torn, joined = (rows[:MOST_LINES] for rows in after.rows)
    return [
        Marks("lines", missing, TORN, MISSING, 2.0, True, torn, "", titles_of(MISSING, torn, len(outcome.missing))),
        Marks("lines", false, JOINED, FALSE, 2.4, False, joined, "", titles_of(FALSE, joined, len(outcome.false))),
    ]


def _moves(before: np.ndarray, now: np.ndarray) -> list[Marks]:
    """The displacements of the chosen pair."""
    return [Marks("lines", np.column_stack([before, now]), WHOLE, "original", 2.4)]


def _pair(now: np.ndarray, sight: Sight) -> list[Marks]:
    """A ring around each end of the chosen link, which may be intact at the present bound."""
    rings = np.column_stack([now, np.full(len(now), 0.03 * sight.reach)])
    return [Marks("circles", rings, PAIR, width=2.2)]


def _rulers(sight: Sight, length: float, bound: float) -> list[Marks]:
    """Bars in the lower left corner, as long as the linking length and the error bound; none that would not fit."""
    reach, marks = sight.reach, []
    for line, (name, long) in enumerate((("b", length), ("ξ", bound))):
        left, height, tick = -0.94 * reach, (-0.94 + 0.07 * line) * reach, 0.018 * reach
        bar = [
            (left, height, left + long, height), (left, height - tick, left, height + tick),
            (left + long, height - tick, left + long, height + tick),
        ]
        colour = (RULER, AFTER)[line]
        marks.append(Marks("lines", np.array(bar if long <= 1.8 * reach else []), colour, f"{name} = {long:.3g}", 2.0))
    return marks


def _density(title: str, now: np.ndarray, sight: Sight, marks: tuple[Marks, ...]) -> Picture:
    """The density of particles that are too many to draw one by one."""
    across, up = np.ascontiguousarray(now.T)
    counts = Projection(across, up, sight.window).counts(grid_of(sight.window, len(now), 256))
    low, high = density_range(counts)
    area = (2 * sight.reach) ** 2 / counts.size
    return Picture(
        title, density_bytes(counts, low, high), sight.window, "density", low / area, high / area, True, marks=marks,
    )


def _not_empty(marks: tuple[Marks, ...]) -> tuple[Marks, ...]:
    """The marks that are seen, so that the legend has no others."""
    return tuple(each for each in marks if len(each))


def _ends(places: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return np.column_stack([places[pairs[:, 0]], places[pairs[:, 1]]])


def particle_under(
    particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None, place: tuple[float, float]
) -> Reading | None:
    """The particle of the close-up whose decoded position is nearest to a place, and how far it was moved.

    None where no particle is near, or where there are so many that the close-up shows their density.
    """
    if state.chosen is None:
        return None
    sight = sight_of(particles, halos, state.chosen)
    near = neighbourhood(particles, sight)
    after = aftermath(particles, outcome, near, sight, halos.groups.linking_length)
    if not len(near.index) or not near.is_drawn_singly:
        return None
    apart = np.hypot(*(after.places[:, shown_axes(particles, state.axis)] - place).T)
    nearest = int(np.argmin(apart))
    if apart[nearest] > POINTED * sight.reach:
        return None
    number = int(near.index[nearest])
    decoded = particles if outcome is None else outcome.decoded
    moved = float(np.abs(after.places[nearest] - near.places[nearest]).max())
    return Reading(lines=(
        f"particle {number:,}",
        f"original  {_coordinates(particles, number)}",
        f"decoded  {_coordinates(decoded, number)}",
        f"error  {moved:.4g} = {moved / state.bound:.4g} bounds",
    ))


def _coordinates(particles: Particles, number: int) -> str:
    """All digits of a position."""
    return ", ".join(str(each) for each in particles.positions[number])
