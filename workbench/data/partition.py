"""A subdomain ("brick") of a set of particles: the particles that it owns, and ghost particles from its neighbours.

An algorithm that needs neighbours within some distance can process one subdomain at a time if each subdomain also holds
copies (ghosts) of the particles within that distance, the ghost width (`border`). Each particle is owned by exactly one
subdomain. A subdomain stores the index of each of its particles in the whole set, so that results can be merged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data.particles import Particles
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """The particles of one subdomain: first its own, in their original order, then the ghosts (`borrowed`).

    `index` is each particle's index in the whole set; `lower` and `upper` bound the subdomain, which holds positions with
    lower <= x < upper along each axis (the last subdomain of an open space also holds its upper face).

    >>> whole = Particles([[0.1, 0.5], [0.4, 0.5], [0.6, 0.5], [0.9, 0.5]], box=1.0)
    >>> left, right = Partition.split(whole, bricks=(2, 1), border=0.15)
    >>> left.owned.tolist(), left.borrowed.tolist()
    ([0, 1], [2, 3])
    """

    particles: Particles
    index: Array
    owned_count: int
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def owned(self) -> Array:
        """The indices, in the whole set, of the particles that this subdomain owns."""
        return self.index[: self.owned_count]

    @property
    def borrowed(self) -> Array:
        """The indices, in the whole set, of the ghost particles, copied from other subdomains."""
        return self.index[self.owned_count :]

    @classmethod
    def split(cls, particles: Particles, bricks: Sequence[int], border: float) -> Iterator[Partition]:
        """Divide particles into `bricks` subdomains along each axis, each with all ghosts within `border` of it.

        Ghosts cross the faces of a periodic box. Subdomains without particles of their own are left out.
        """
        counts = _counts(bricks, particles.dimensions)
        if not (np.isfinite(border) and border >= 0):
            raise WorkbenchError(f"border must be a length of zero or more; got {border}")
        home = [_brick_along(particles, axis, count) for axis, count in enumerate(counts)]
        edges = [_edges(particles, axis, count) for axis, count in enumerate(counts)]
        for brick in itertools.product(*(range(count) for count in counts)):
            lower = tuple(float(edges[axis][number]) for axis, number in enumerate(brick))
            upper = tuple(float(edges[axis][number + 1]) for axis, number in enumerate(brick))
            owned, borrowed = _members(particles, home, brick, _near(particles, lower, upper, border))
            if len(owned):
                index = backend.namespace(owned).concatenate([owned, borrowed])
                yield cls(particles.select(index), index, len(owned), lower, upper)

    def __reduce__(self) -> tuple[Callable[..., Partition], tuple[Any, ...]]:
        return Partition, (self.particles, self.index, self.owned_count, self.lower, self.upper)

    def __repr__(self) -> str:
        return f"Partition({self.owned_count:,} owned and {len(self.borrowed):,} borrowed particles)"


def _counts(bricks: Sequence[int], dimensions: int) -> tuple[int, ...]:
    counts = tuple(bricks)
    if len(counts) != dimensions or not all(isinstance(count, int | np.integer) and count >= 1 for count in counts):
        raise WorkbenchError(f"bricks must be {dimensions} positive integers, one per axis; got {bricks!r}")
    return counts


def _edges(particles: Particles, axis: int, count: int) -> np.ndarray:
    if particles.box is None:
        return np.linspace(particles.lower[axis], particles.upper[axis], count + 1)
    return np.linspace(0.0, particles.box[axis], count + 1)


def _brick_along(particles: Particles, axis: int, count: int) -> Array:
    """The subdomain number of every particle along one axis."""
    xp = backend.namespace(particles.positions)
    inner = xp.asarray(_edges(particles, axis, count)[1:-1])
    return xp.searchsorted(inner, particles.positions[:, axis].astype(xp.float64), side="right")


def _members(particles: Particles, home: list[Array], brick: tuple[int, ...], near: Array) -> tuple[Array, Array]:
    """The indices of the particles that a subdomain owns, and of its ghosts."""
    xp = backend.namespace(near)
    inside = xp.ones(len(particles), bool)
    for axis, number in enumerate(brick):
        inside &= home[axis] == number
    return xp.flatnonzero(inside), xp.flatnonzero(near & ~inside)


def _near(particles: Particles, lower: tuple[float, ...], upper: tuple[float, ...], border: float) -> Array:
    """Which particles are within `border` of a subdomain along every axis."""
    near = backend.namespace(particles.positions).ones(len(particles), bool)
    for axis, (low, high) in enumerate(zip(lower, upper, strict=True)):
        near &= _distance_to(particles, axis, low, high) <= border
    return near


def _distance_to(particles: Particles, axis: int, low: float, high: float) -> Array:
    """The distance of each particle from the interval [low, high] along one axis, through a face of the box if nearer."""
    xp = backend.namespace(particles.positions)
    x = particles.positions[:, axis].astype(xp.float64)
    distance = xp.maximum(xp.maximum(low - x, x - high), 0.0)
    if particles.box is not None:
        period = particles.box[axis]
        for image in (x - period, x + period):
            distance = xp.minimum(distance, xp.maximum(xp.maximum(low - image, image - high), 0.0))
    return distance
