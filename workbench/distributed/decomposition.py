"""Division of space into subdomains with equally many particles, and the ghost particles that each subdomain needs.

Recursive bisection, as in a k-d tree: each cut is across the longest side of its cuboid, at a quantile of a sample of the
particles. Halos are dense, so subdomains of equal volume would differ in size by orders of magnitude. A decomposition is a
small value without particles: it says for any positions who owns them and who needs copies of them.

Every pair of particles within the ghost width of each other is complete in the subdomain that owns either of them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.arguments import whole_number
from workbench.errors import WorkbenchError

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

    def owners(self, positions: np.ndarray) -> np.ndarray:
        """The subdomain (int32) that owns each position."""
        found = np.zeros(len(positions), np.int32)
        waiting = [(0 if self.cuts else -1, np.arange(len(positions)))]
        while waiting:
            child, rows = waiting.pop()
            if child < 0:
                found[rows] = -1 - child
                continue
            cut = self.cuts[child]
            is_below = positions[rows, cut.axis] < cut.place
            waiting += [(cut.below, rows[is_below]), (cut.above, rows[~is_below])]
        return found

    def ghosts(self, positions: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """Which positions (rows) other subdomains (int32) need copies of: all that are within `width` of them.

        The pairs are sorted by row, then by subdomain. Periodic images count.
        """
        wide = width * (1 + SLACK) + 8 * float(np.spacing(max(self.box or (0.0,))))
        pairs = [self._near(*image, wide) for image in self._images(np.asarray(positions), wide)]
        rows, parts = (np.concatenate(column) for column in zip(*pairs, strict=True))
        foreign = parts != self.owners(positions)[rows]
        code = np.unique(rows[foreign] * self.parts + parts[foreign])
        return code // self.parts, (code % self.parts).astype(np.int32)

    def _images(self, positions: np.ndarray, width: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """The rows and the coordinates of all positions, and of the images of those within `width` of a face of the box."""
        images = [(np.arange(len(positions)), positions.astype(np.float64))]
        for axis, period in enumerate(self.box or ()):
            for rows, places in list(images):
                for near, shift in ((places[:, axis] < width, period), (places[:, axis] >= period - width, -period)):
                    chosen = np.flatnonzero(near)
                    moved = places[chosen]
                    moved[:, axis] += shift
                    images.append((rows[chosen], moved))
        return images

    def _near(self, rows: np.ndarray, places: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """The subdomains within `width` of each place: pairs of a row and a subdomain."""
        found = []
        waiting = [(0 if self.cuts else -1, np.arange(len(rows)))]
        while waiting:
            child, chosen = waiting.pop()
            if child < 0:
                found.append((rows[chosen], np.full(len(chosen), -1 - child, np.int64)))
                continue
            cut = self.cuts[child]
            along = places[chosen, cut.axis]
            waiting += [(cut.below, chosen[along < cut.place + width]), (cut.above, chosen[along >= cut.place - width])]
        first, second = (np.concatenate(column) for column in zip(*found, strict=True))
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

    def destinations(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of these positions, the subdomain that gets each, and whether it owns it."""
        rows, parts = self.decomposition.ghosts(positions, self.width)
        own = np.arange(len(positions))
        every = np.concatenate([own, rows]), np.concatenate([self.decomposition.owners(positions), parts])
        return *every, np.arange(len(every[0])) < len(positions)


def _quantile(values: np.ndarray, share: float, low: float, high: float) -> float:
    """A place between two values with this share of them below; without values, the middle."""
    if not len(values):
        return (low + high) / 2
    order = min(int(share * len(values)), len(values) - 1)
    ordered = np.partition(values, [max(order - 1, 0), order])
    return float((ordered[max(order - 1, 0)] + ordered[order]) / 2)
