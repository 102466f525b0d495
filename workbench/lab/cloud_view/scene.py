"""What a cloud shows: the points of one or two sets of particles in 16 bits per coordinate, in an order made for prefixes.

The points are shuffled, so that the first thousand are a fair sample of all, and the first million a better one: the
browser draws the first picture from the first bytes and, while the cloud turns, as many points as time allows. 16 bits are
finer than any screen, and around one halo also much finer than the error bounds that are of interest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.data.units import unit_of_length
from workbench.errors import WorkbenchError
from workbench.lab.cloud_view.fates import HALO_BITS, MOST_HALOS, Fates

MOST_POINTS = 2**22   # on each side; more would take more memory of the browser than they show
STEPS = 2**16 - 1     # along each axis
SEED = 0
RADII = 3.0           # of a halo that are shown around its centre; its radius is a root mean square
ROOM = 1.15           # around the farthest member


@dataclass(frozen=True)
class Frame:
    """The cuboid that is shown; places in it are whole numbers of 16 bits along each axis.

    >>> frame = Frame((0.0, 0.0, 0.0), (1.0, 2.0, 4.0))
    >>> frame.steps(np.array([[0.0, 1.0, 4.0]])).tolist(), round(frame.exact, 8)
    ([[0, 32768, 65535]], 3.052e-05)
    """

    lower: tuple[float, float, float]
    lengths: tuple[float, float, float]

    @classmethod
    def around(cls, lower: Any, upper: Any) -> Frame:
        """The frame between two corners, never without extent along an axis."""
        low, high = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        room = float((high - low).max()) or 1.0
        thin = high - low <= 1e-6 * room
        low, high = np.where(thin, low - room / 2, low), np.where(thin, high + room / 2, high)
        return cls(_triple(low), _triple(high - low))

    @property
    def exact(self) -> float:
        """The largest error of a coordinate that is drawn, half a step of the longest axis."""
        return max(self.lengths) / STEPS / 2

    def steps(self, positions: np.ndarray) -> np.ndarray:
        """Positions as whole numbers of steps; those outside are put on the nearest face."""
        scaled = (positions - np.array(self.lower)) * (STEPS / np.array(self.lengths))
        return np.clip(np.rint(scaled), 0, STEPS).astype(np.uint16)


@dataclass(frozen=True, eq=False)
class Scene:
    """One or two sides with a title each. `points` has for every side and point three coordinates in steps, and its tag.

    A tag is the number of the point's halo and, in its two highest bits, LEFT or JOINED. Point i of both sides is the same
    particle. `total` counts the particles in the frame, of which the points are a sample if they are too many.
    """

    titles: tuple[str, ...]
    points: tuple[np.ndarray, ...]
    frame: Frame
    fates: Fates
    total: int
    unit: str = ""
    box: tuple[float, ...] | None = None   # of the particles
    halo: int | None = None   # the number of the halo that is shown alone, with its surroundings

    @property
    def nbytes(self) -> int:
        """Its memory in bytes."""
        return sum(side.nbytes for side in self.points)

    @property
    def centres(self) -> np.ndarray:
        """The centre of each halo from the frame's lower corner; in a periodic box, of the image nearest to the frame."""
        middle = np.array(self.frame.lower) + np.array(self.frame.lengths) / 2
        return nearest_image(self.fates.halos.centres - middle, self.box) + np.array(self.frame.lengths) / 2

    @property
    def ranks(self) -> np.ndarray:
        """The rank of each halo among those in the frame, by size and from 0; that which is shown alone is the first."""
        seen = np.bincount(self.points[0][:, 3] & HALO_BITS, minlength=len(self.fates.halos) + 1)[1:] > 0
        first = np.zeros(len(seen), bool)
        first[: self.halo or 0][-1:] = self.halo is not None
        order = np.lexsort((np.arange(len(seen)), ~seen, ~first))
        ranks = np.empty(len(seen), np.int32)
        ranks[order] = np.arange(len(seen))
        ranks[~seen] = MOST_HALOS
        return ranks

    def __len__(self) -> int:
        return len(self.points[0])


def scene_of(
    particles: Particles,
    fates: Fates,
    other: Particles | None = None,
    halo: int | None = None,
    titles: tuple[str, str] = ("original", "decoded"),
    most: int = MOST_POINTS,
) -> Scene:
    """The scene of all particles, or of one halo (by its number) and its surroundings; `other` has the same order.

    >>> particles = Particles(np.random.default_rng(0).random((100, 3)), box=1.0)
    >>> from workbench.clusters import friends_of_friends
    >>> from workbench.lab.cloud_view.fates import fates_of
    >>> scene = scene_of(particles, fates_of(particles, friends_of_friends(particles, 0.9)))
    >>> len(scene), scene.points[0].dtype, scene.frame.lengths
    (100, dtype('uint16'), (1.0, 1.0, 1.0))
    """
    _require_three_dimensions(particles)
    if other is not None and (len(other) != len(particles) or fates.after is None):
        raise WorkbenchError(
            f"other must be the same {len(particles):,} particles, with fates that follow them; got {len(other):,}"
            f"{'' if fates.after is not None else ' without'}: find fates with the groups of both"
        )
    sets = [particles] if other is None else [particles, other]
    places, index, frame = _everything(sets) if halo is None else _surroundings(sets, fates, halo)
    total = len(places[0])
    shuffled = np.random.default_rng(SEED).permutation(total)[:most]
    chosen = shuffled if index is None else index[shuffled]
    points = tuple(
        np.column_stack([frame.steps(side[shuffled]), tags[chosen]]) for side, tags in zip(places, fates.tags, strict=False)
    )
    return Scene(titles[: len(sets)], points, frame, fates, total, unit_of_length(particles.metadata), particles.box, halo)



def _require_three_dimensions(particles: Particles) -> None:
    if particles.dimensions != 3:
        raise WorkbenchError(f"a cloud needs particles in 3-D; got {particles!r}: wb.lab.clusters(...) shows those in 2-D")


Chosen = tuple[list[np.ndarray], np.ndarray | None, Frame]


def _everything(sets: list[Particles]) -> Chosen:
    """All particles, and the box or, in open space, the extent of both sets."""
    places = [particles.positions for particles in sets]
    box = sets[0].box
    if box is not None:
        return places, None, Frame.around(np.zeros(3), box)
    lower, upper = (bound([getattr(each, name) for each in sets], axis=0) for name, bound in _EXTENT)
    return places, None, Frame.around(lower, upper)


_EXTENT = ("lower", np.min), ("upper", np.max)


def _surroundings(sets: list[Particles], fates: Fates, halo: int) -> Chosen:
    """The particles of a cube around a halo, of the nearest images; both sides have those of the original cube."""
    halos = fates.halos
    if not 1 <= halo <= len(halos):
        raise WorkbenchError(f"halo must be a number from 1, the largest, to {len(halos):,}; got {halo}")
    particles, box = sets[0], sets[0].box
    centre = halos.centres[halo - 1].astype(np.float64)
    offsets = nearest_image(particles.positions.astype(np.float64) - centre, box)
    farthest = float(np.abs(offsets[fates.before == halo]).max())
    reach = max(RADII * float(halos.radii[halo - 1]), ROOM * farthest) or 1.0
    chosen = np.flatnonzero((np.abs(offsets) <= reach).all(axis=1))
    places = [offsets[chosen] + centre]
    for other in sets[1:]:
        moved = other.positions[chosen].astype(np.float64) - particles.positions[chosen]
        places.append(places[0] + nearest_image(moved, box))
    lower = np.min([side.min(axis=0) for side in places], axis=0)
    upper = np.max([side.max(axis=0) for side in places], axis=0)
    return places, chosen, Frame.around(np.minimum(lower, centre - reach), np.maximum(upper, centre + reach))


def _triple(values: np.ndarray) -> tuple[float, float, float]:
    one, two, three = map(float, values)
    return one, two, three
