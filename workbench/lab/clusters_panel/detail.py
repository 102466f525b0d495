"""The close-up of one halo or link: its particles before and after, the error bound of each, and the links.

Places are relative to the middle, by nearest image, so that a halo across a face of the box is whole, and so that no
precision is lost for tiny distances far from the origin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.clusters.discord import discords
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.errors import WorkbenchError
from workbench.lab.clusters_panel.breakage import Halos, Links, Outcome
from workbench.lab.clusters_panel.density import shown_axes
from workbench.lab.clusters_panel.panes import AFTER, FALSE, JOINED, MISSING, OUTLINE, TORN, WHOLE
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.description import Marks, Picture, Window
from workbench.lab.projection import Projection, density_bytes, density_range, grid_of
from workbench.lab.remembered import remembered

MOST_POINTS = 2500   # particles drawn one by one; beyond, a sample over their density
MOST_LINES = 5000    # links of each kind; beyond, those nearest to breaking, or of the largest groups
ROOM = 1.3           # around the chosen halo or link

LINKED, FAINT = "#8a97b5", "#56607a"
EMPTY = np.zeros((64, 64), np.uint8)


@dataclass(frozen=True)
class Sight:
    """The visible cube."""

    middle: tuple[float, ...]
    reach: float
    title: str

    @property
    def window(self) -> Window:
        """The window of the picture, relative to the middle."""
        return -self.reach, self.reach, -self.reach, self.reach


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The particles of the original in a cube (ascending indices), relative to its middle."""

    index: np.ndarray
    places: np.ndarray

    def locally(self, links: Links) -> tuple[np.ndarray, np.ndarray]:
        """The links with both ends in the cube, as numbers of particles in it, and their rows."""
        if not len(self.index):
            return np.empty((0, 2), np.intp), np.empty(0, np.intp)
        found = np.minimum(np.searchsorted(self.index, links.pairs), len(self.index) - 1)
        rows = np.flatnonzero((self.index[found] == links.pairs).all(axis=1))
        return found[rows], rows


@dataclass(frozen=True, eq=False)
class Aftermath:
    """The decoded particles of a neighbourhood: their places, their links, and the broken links."""

    places: np.ndarray
    links: np.ndarray     # whole ones, the longest first
    missing: np.ndarray
    false: np.ndarray
    rows: tuple[np.ndarray, np.ndarray]   # of the missing and the false links

    @property
    def ends(self) -> np.ndarray:
        """The particles at the ends of broken links (ascending)."""
        return np.unique(np.concatenate([self.missing.ravel(), self.false.ravel()]))


def detail(particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None) -> tuple[Picture, str]:
    """The picture of the chosen halo or link, and a sentence about what is not drawn."""
    assert state.chosen is not None
    sight = sight_of(particles, halos, state.chosen)
    near = _neighbourhood(particles, sight)
    after = _aftermath(particles, outcome, near, sight, halos.groups.linking_length)
    drawn = _drawn(len(near.index), after.ends)
    axes = shown_axes(particles, state.axis)
    marks = _marks(near.places[:, axes], after.places[:, axes], after, drawn, state.bound)
    marks += _chosen_link(near, after, axes, state.chosen)
    pixels, low, high = _background(near.places[:, axes], sight)
    title = f"{sight.title}, around ({', '.join(f'{middle:.6g}' for middle in sight.middle)})"
    picture = Picture(title, pixels, sight.window, "density", low, high, True, "particles", marks=tuple(marks))
    if len(drawn) == len(near.index):
        return picture, ""
    return picture, (
        f"Of {len(near.index):,} particles in the close-up, {len(drawn):,} are drawn one by one, with broken links only: "
        "choose a link to see all around it."
    )


def sight_of(particles: Particles, halos: Halos, chosen: Chosen) -> Sight:
    """The cube to show, independent of the bound; a halo is found by any of its members."""
    if max(chosen.particles) >= len(particles):
        raise WorkbenchError(f"the chosen halo or link must be among {len(particles):,} particles; got {chosen.particles}")
    length = halos.groups.linking_length
    positions = particles.positions[list(chosen.particles)].astype(np.float64)
    if chosen.kind == "link":
        along = nearest_image(positions[1] - positions[0], particles.box)
        middle, reach = positions[0] + along / 2, float(np.sqrt((along**2).sum())) / 2 + length
        title = f"link between {chosen.particles[0]} and {chosen.particles[1]}"
    else:
        label = int(halos.groups.labels[chosen.particles[0]])
        place = halos.place(label)
        middle = positions[0] if place is None else halos.catalogue.centres[place]
        radius = 0.0 if place is None else float(halos.catalogue.radii[place])
        reach = OUTLINE * radius + length
        title = f"halo of {1 if place is None else int(halos.catalogue.members[place]):,}"
    if particles.box is not None:
        middle, reach = middle % np.asarray(particles.box), min(reach, max(particles.box))
    return Sight(tuple(middle.tolist()), ROOM * reach, title)


def _neighbourhood(particles: Particles, sight: Sight) -> Neighbourhood:
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


def _aftermath(
    original: Particles, outcome: Outcome | None, near: Neighbourhood, sight: Sight, length: float
) -> Aftermath:
    """The neighbourhood after decoding; without an outcome, the original places and no broken links."""
    decoded = original if outcome is None else outcome.decoded

    def made() -> Aftermath:
        moved = decoded.positions[near.index].astype(np.float64) - original.positions[near.index]
        places = near.places + nearest_image(moved, original.box)
        nothing = np.empty((0, 2), np.intp), np.empty(0, np.intp)
        missing, false = (nothing, nothing) if outcome is None else map(near.locally, (outcome.missing, outcome.false))
        links = _links(places, false[0], length) if 0 < len(places) <= MOST_POINTS else nothing[0]
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


def _drawn(count: int, ends: np.ndarray) -> np.ndarray:
    """The particles drawn one by one: all or, if too many, the ends of broken links and a sample of the others."""
    if count <= MOST_POINTS:
        return np.arange(count)
    first = ends[:: -(-len(ends) // (MOST_POINTS // 2))] if len(ends) else ends
    others = np.arange(0, count, -(-count // (MOST_POINTS - len(first))))
    return np.union1d(first, others)


def _marks(before: np.ndarray, places: np.ndarray, after: Aftermath, drawn: np.ndarray, bound: float) -> list[Marks]:
    """All marks of the particles, from their places in the picture `before` and now (`places`)."""
    before, now = before[drawn], places[drawn]
    boxes = np.column_stack([before[:, 0] - bound, before[:, 0] + bound, before[:, 1] - bound, before[:, 1] + bound])
    whole, missing, false = (
        np.column_stack([places[pairs[:MOST_LINES, end]] for end in (0, 1)])
        for pairs in (after.links, after.missing, after.false)
    )
    return [
        Marks("boxes", boxes, FAINT, "where it may go", 0.7),
        Marks("lines", whole, LINKED, "links", 0.8),
        Marks("points", before, WHOLE, "original", 2.4),
        Marks("points", now, AFTER, "decoded", 1.8),
        Marks("lines", missing, TORN, MISSING, 2.0, True, after.rows[0][:MOST_LINES]),
        Marks("lines", false, JOINED, FALSE, 2.4, False, after.rows[1][:MOST_LINES]),
    ]


def _chosen_link(near: Neighbourhood, after: Aftermath, axes: list[int], chosen: Chosen) -> list[Marks]:
    """A ring around each end of the chosen link, which may be intact at the present bound."""
    ends = np.searchsorted(near.index, chosen.particles if chosen.kind == "link" else ())
    places = after.places[ends][:, axes]
    return [Marks("circles", np.column_stack([places, np.zeros(len(ends))]), AFTER, "chosen", 1.6)]


def _background(places: np.ndarray, sight: Sight) -> tuple[np.ndarray, float, float]:
    """The density of the particles if they are too many to draw one by one; otherwise empty."""
    if len(places) <= MOST_POINTS:
        return EMPTY, 0.5, 1.0
    across, up = np.ascontiguousarray(places.T)
    counts = Projection(across, up, sight.window).counts(grid_of(sight.window, len(places), 256))
    low, high = density_range(counts)
    return density_bytes(counts, low, high), low, high
