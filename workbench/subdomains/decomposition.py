"""Division of space into subdomains with equally many particles, and the ghost particles that each subdomain needs.

Recursive bisection, as in a k-d tree: each cut is across the longest side of its cuboid, at a quantile of a sample of the
particles. Halos are dense, so subdomains of equal volume would differ in size by orders of magnitude. A decomposition is a
small value without particles: it says for any positions who owns them and who needs copies of them.

Every pair of particles within the ghost width of each other is complete in the subdomain that owns either of them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.errors import WorkbenchError
from workbench.subdomains.exchange import Destinations

SLACK = 1e-9   # ghosts are taken from a little beyond the ghost width: more than all rounding errors of distances


@dataclass(frozen=True)
class Cut:
    """A plane across `axis`: positions below `place` belong to the child `below`, the others to `above`.

    A child is the number of another cut or, if negative, the subdomain -1 - child.
    """

    axis: int
    place: float
    below: int
    above: int


@dataclass(frozen=True)
class Decomposition:
    """The cuts that divide a space; cut 0 is the first, and there is none if there is one subdomain.

    >>> halves = Decomposition.of(np.array([[0.1, 0.5], [0.2, 0.5], [0.7, 0.5], [0.9, 0.5]]), 2, box=(1.0, 1.0))
    >>> halves.owners(np.array([[0.3, 0.0], [0.8, 0.0]])).tolist()
    [0, 1]
    >>> rows, parts = halves.ghosts(np.array([[0.3, 0.0], [0.44, 0.0], [0.95, 0.0]]), width=0.1)
    >>> rows.tolist(), parts.tolist()
    ([1, 2], [1, 0])
    """

    cuts: tuple[Cut, ...]
    dimensions: int
    box: tuple[float, ...] | None = None

    @classmethod
    def of(cls, sample: np.ndarray, parts: int, box: tuple[float, ...] | None = None) -> Self:
        """Subdomains with about equally many particles of a sample (N, D)."""
        whole_number("parts", parts, least=1)
        points = np.asarray(sample, np.float64)
        if points.ndim != 2 or not len(points):
            raise WorkbenchError(f"the sample must be positions of shape (N, D), at least one; got shape {points.shape}")
        low, high = (np.zeros(len(box)), np.array(box)) if box is not None else (points.min(axis=0), points.max(axis=0))
        cuts: list[Cut | None] = []
        numbers = itertools.count()

        def divide(chosen: np.ndarray, low: np.ndarray, high: np.ndarray, count: int) -> int:
            if count == 1:
                return -1 - next(numbers)
            axis, fewer = int(np.argmax(high - low)), count // 2
            place = _quantile(points[chosen, axis], fewer / count, float(low[axis]), float(high[axis]))
            number = len(cuts)
            cuts.append(None)
            is_below = points[chosen, axis] < place
            middle = np.array([place if each == axis else np.nan for each in range(len(low))])
            ends = np.where(np.isnan(middle), high, middle), np.where(np.isnan(middle), low, middle)
            below = divide(chosen[is_below], low, ends[0], fewer)
            above = divide(chosen[~is_below], ends[1], high, count - fewer)
            cuts[number] = Cut(axis, place, below, above)
            return number

        divide(np.arange(len(points)), low, high, parts)
        return cls(tuple(cut for cut in cuts if cut is not None), points.shape[1], box)

    @property
    def parts(self) -> int:
        """How many subdomains there are."""
        return len(self.cuts) + 1

    @cached_property
    def faces(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and upper faces (parts, D) of the subdomains; infinite where no other subdomain lies beyond."""
        lower, upper = np.full((2, self.parts, self.dimensions), [[[-np.inf]], [[np.inf]]])
        across = {cut.axis for cut in self.cuts}
        for axis, period in enumerate(self.box or ()):
            if axis in across:   # otherwise all images of a position lie in one subdomain
                lower[:, axis], upper[:, axis] = 0.0, period
        waiting = [(0, lower[0].copy(), upper[0].copy())] if self.cuts else []
        while waiting:
            number, low, high = waiting.pop()
            cut = self.cuts[number]
            middle = np.arange(self.dimensions) == cut.axis
            for child, ends in (
                (cut.below, (low, np.where(middle, cut.place, high))), (cut.above, (np.where(middle, cut.place, low), high))
            ):
                if child < 0:
                    lower[-1 - child], upper[-1 - child] = ends
                else:
                    waiting.append((child, *ends))
        return lower, upper

    def owners(self, positions: np.ndarray) -> np.ndarray:
        """The subdomain (int32) that owns each position."""
        return self._divided(positions, 0.0)[0]

    def ghosts(self, positions: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """Which positions (rows) other subdomains (int32) need copies of: all that are within `width` of them.

        The pairs are sorted by row, then by subdomain. Periodic images count.
        """
        return self.divided(positions, width)[1:]

    def divided(self, positions: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The owners of all positions, and the ghosts (rows and subdomains)."""
        wide = width * (1 + SLACK) + 8 * float(np.spacing(max(self.box or (0.0,))))
        owner, near = self._divided(positions, wide)
        chosen = np.flatnonzero(near)
        image, places = map(np.concatenate, zip(*self._images(positions[chosen], wide), strict=True))
        of_pair, parts = self._near(places, wide)
        rows = chosen[image[of_pair]]
        code = np.sort((rows * self.parts + parts)[parts != owner[rows]])
        code = code[np.diff(code, prepend=-1) > 0]   # several images of a position may be near one subdomain
        return owner, code // self.parts, (code % self.parts).astype(np.int32)

    def _divided(self, positions: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """The owners of all positions, and which positions are within `width` of a face of their subdomain."""
        given, count = np.ascontiguousarray(positions), len(positions)
        owner, near = np.empty(count, np.int32), np.empty(count, np.uint8)
        lower, upper = self.faces
        backend.kernel("division", "divide", given.dtype, self.dimensions)(
            count, self._tree, cuts=len(self.cuts), low=lower + width, high=upper - width, position=given, owner=owner,
            near=near,
        )
        return owner, near

    @cached_property
    def _tree(self) -> dict[str, Any]:
        """The cuts as the kernel takes them."""
        return {
            "axis": np.array([cut.axis for cut in self.cuts], np.int32),
            "place": np.array([cut.place for cut in self.cuts], np.float64),
            "child": np.array([(cut.below, cut.above) for cut in self.cuts], np.int32).reshape(-1),
        }

    def neighbours(self, part: int, width: float) -> np.ndarray:
        """The subdomains (rising) that may need copies of particles of this one: those within `width` of it."""
        lower, upper = self.faces
        near = np.ones(self.parts, bool)
        near[part] = False
        largest = max([float(np.abs(self._tree["place"]).max(initial=0)), *(self.box or ())])
        reach = width * (1 + 2 * SLACK) + 32 * float(np.spacing(largest))
        for axis in range(self.dimensions):
            period = 0.0 if self.box is None else self.box[axis]
            low, high = lower[:, axis], upper[:, axis]
            shifts = np.array([[-period], [0.0], [period]])
            near &= ((low + shifts <= high[part] + reach) & (high + shifts >= low[part] - reach)).any(axis=0)
        return np.flatnonzero(near)

    def _images(self, positions: np.ndarray, width: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """The rows and the coordinates of all positions, and of the images of those within `width` of a face of the box."""
        images = [(np.arange(len(positions)), positions.astype(np.float64))]
        for axis, period in enumerate(self.box or ()):
            for rows, places in list(images):
                for near, shift in ((places[:, axis] < width, period), (places[:, axis] >= period - width, -period)):
                    if not len(chosen := np.flatnonzero(near)):
                        continue
                    moved = places[chosen]
                    moved[:, axis] += shift
                    images.append((rows[chosen], moved))
        return images

    def _near(self, places: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """The subdomains within `width` of each place, as pairs; all places go down the tree of cuts together."""
        rows, child = np.arange(len(places)), np.full(len(places), 0 if self.cuts else -1)
        axis, place, below = self._tree["axis"], self._tree["place"], self._tree["child"].reshape(-1, 2)
        pairs = []
        while True:
            is_part = child < 0
            pairs.append((rows[is_part], -1 - child[is_part]))
            rows, child = rows[~is_part], child[~is_part]
            if not len(rows):
                break
            along, cut = places[rows, axis[child]], place[child]
            to_below, to_above = along < cut + width, along >= cut - width
            rows = np.concatenate([rows[to_below], rows[to_above]])
            child = np.concatenate([below[child[to_below], 0], below[child[to_above], 1]])
        first, second = map(np.concatenate, zip(*pairs, strict=True))
        return first, second


@dataclass(frozen=True)
class WithGhosts:
    """A division by a decomposition, with ghosts within `width` of each subdomain."""

    decomposition: Decomposition
    width: float

    @property
    def parts(self) -> int:
        """How many subdomains there are."""
        return self.decomposition.parts

    def neighbours(self, part: int) -> np.ndarray:
        """The subdomains (rising) that may have ghosts of particles of this one."""
        return self.decomposition.neighbours(part, self.width)

    def destinations(self, positions: np.ndarray) -> Destinations:
        """The owners of all positions, and who gets ghosts."""
        owner, rows, parts = self.decomposition.divided(positions, self.width)
        return Destinations(owner, rows.astype(np.int32), parts)


@dataclass(frozen=True)
class Owners:
    """A division by a decomposition, without ghosts."""

    decomposition: Decomposition

    @property
    def parts(self) -> int:
        """How many subdomains there are."""
        return self.decomposition.parts

    def destinations(self, positions: np.ndarray) -> Destinations:
        """The owners of all positions."""
        return Destinations.without_copies(self.decomposition.owners(positions))


def _quantile(values: np.ndarray, share: float, low: float, high: float) -> float:
    """A place between two values with this share of them below; without values, the middle."""
    if not len(values):
        return (low + high) / 2
    order = min(int(share * len(values)), len(values) - 1)
    ordered = np.partition(values, [max(order - 1, 0), order])
    return float((ordered[max(order - 1, 0)] + ordered[order]) / 2)
