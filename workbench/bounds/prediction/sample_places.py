"""Where a survey looks: at places that follow from the shape of a field alone, found once for all fields of a shape.

An interpolating codec refines a grid by a factor of two along one axis after the other. Each refinement is a pass. Coarse
passes hold few values, but at large bounds nearly all that is left to code. So they get more samples than their share, and
every sample has the weight of the values for which it stands.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.bounds.prediction.places import SEED, SHAPES, even_places

CUBIC = np.float32(0.5625), np.float32(-0.0625)   # weights of near and of outer values


@dataclass(frozen=True, eq=False)
class Stencils:
    """Places in a flat field, one column each: one to predict, two beside it, and two more where the grid is `wide`."""

    places: np.ndarray
    wide: np.ndarray

    @classmethod
    def of(cls, places: np.ndarray, step: np.ndarray, wide: np.ndarray) -> Stencils:
        """The places in a row, so far apart."""
        apart = np.where(wide, 3 * step, 0)
        return cls(places + np.stack([0 * step, -step, step, -apart, apart]), wide)

    def errors(self, flat: np.ndarray) -> np.ndarray:
        """The errors of cubic and of linear interpolation, a row each."""
        count = self.wide.size
        found = np.empty((2, count))
        backend.kernel("samples", "interpolate_samples", flat.dtype)(
            count, flat.size, flat, self.places, self.wide.view(np.uint8), found
        )
        return found


@dataclass(frozen=True, eq=False)
class Targets:
    """Samples of the passes along some axes: where they are, number, axis and stride of their pass, and their weights.

    `step` is the distance to the values beside them, and `share` that of the values which are interpolated. Weights add up
    to one.

    >>> targets = Targets.of((64, 64), (0, 1), 6, 1000)
    >>> targets.places.shape, round(float(targets.weight.sum()), 6)
    ((1000,), 1.0)
    """

    size: int
    places: np.ndarray
    step: np.ndarray
    wide: np.ndarray
    number: np.ndarray
    axis: np.ndarray
    stride: np.ndarray
    weight: np.ndarray
    share: float

    @staticmethod
    @functools.lru_cache(4 * SHAPES)
    def of(shape: tuple[int, ...], axes: tuple[int, ...], levels: int, total: int) -> Targets:
        """So many samples of a grid whose axes are refined in this order; none if it is too small."""
        passes = [
            (axis, 1 << level, 2.0**turn / 2.0 ** (len(axes) * (level + 1)))
            for level in range(levels) for turn, axis in enumerate(axes) if shape[axis] > 2 << level
        ]
        size, nothing = math.prod(shape), np.zeros(0, np.int64)
        if not passes:
            return Targets(size, nothing, nothing, nothing > 0, nothing, nothing, nothing, np.zeros(0), 0.0)
        axis, stride, share = (np.array([each[part] for each in passes]) for part in range(3))
        counts = _drawn(share, total)
        wide = np.array(shape)[axis] > 8 * stride
        refined = np.arange(len(shape))[:, None] == axis
        margins = np.where(refined, np.where(wide, 3, 1) * stride, 0)
        places = places_in(shape, np.repeat(margins, counts, axis=1), int(counts.sum()), np.random.default_rng(SEED))
        step = stride * np.array(steps_of(shape))[axis]
        drawn = counts > 0
        weight = np.repeat(share[drawn] / (share[drawn].sum() * counts[drawn]), counts[drawn])
        own = np.repeat(np.arange(len(passes)), counts)
        return Targets(size, places, step[own], wide[own], own, axis[own], stride[own], weight, float(share.sum()))

    @functools.cached_property
    def stencils(self) -> Stencils:
        """Around each place, and then around those of the values that a codec predicts next, for some of them."""
        chosen, beside = self.chosen, self.beside
        joined = [np.append(of, of[chosen]) for of in (self.step, self.wide)]
        return Stencils.of(np.append(self.places, beside), *joined)

    @functools.cached_property
    def chosen(self) -> np.ndarray:
        """Every fourth place, and the first of each pass."""
        begins = np.flatnonzero(np.diff(self.number, prepend=-1))
        found: np.ndarray = np.union1d(begins, np.arange(0, len(self.places), 4))
        return found

    @functools.cached_property
    def beside(self) -> np.ndarray:
        """The place that a codec predicts next to each chosen one."""
        places, step = self.places[self.chosen], self.step[self.chosen]
        found: np.ndarray = np.where(places + 5 * step < self.size, places + 2 * step, places)
        return found

    @functools.cached_property
    def of_chosen(self) -> np.ndarray:
        """The weights of chosen places: they add up to one."""
        own, of_passes = self.number[self.chosen], np.bincount(self.number, self.weight)
        found: np.ndarray = of_passes[own] / np.bincount(own, minlength=len(of_passes))[own]
        return found

    @functools.cached_property
    def noise(self) -> np.ndarray:
        """What even errors of decoded values within 1 add to cubic and to linear interpolation, a row each."""
        uniform = np.random.default_rng(SEED).random((4, len(self.places)), np.float32) * 2 - 1
        near, outer = uniform[0] + uniform[1], uniform[2] + uniform[3]
        halves = np.float32(0.5) * near
        return np.stack([np.where(self.wide, CUBIC[0] * near + CUBIC[1] * outer, halves), halves])


@functools.lru_cache(SHAPES)
def both_orders(shape: tuple[int, ...], levels: int, total: int) -> tuple[Stencils, np.ndarray]:
    """Samples of the passes forwards and backwards, with weights, negative ones of those backwards."""
    axes = tuple(range(len(shape)))
    one, other = (Targets.of(shape, order, levels, total) for order in (axes, axes[::-1]))
    joined = (np.append(getattr(one, name), getattr(other, name)) for name in ("places", "step", "wide"))
    return Stencils.of(*joined), np.append(one.weight, -other.weight)


def steps_of(shape: tuple[int, ...]) -> list[int]:
    """The distance in a flat field between neighbours along each axis."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def places_in(shape: tuple[int, ...], margins: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Places at least so far from the ends of each axis, a row of margins, as indices into the flat field."""
    sizes = np.array(shape)[:, None]
    edges = np.minimum(margins, (sizes - 1) // 2)
    spans = np.maximum(sizes - 2 * edges, 1)
    inside: np.ndarray = (even_places(len(shape), count, rng) * spans).astype(np.int64) + edges
    return np.array(steps_of(shape)) @ inside


@functools.lru_cache(4 * SHAPES)
def places_for(shape: tuple[int, ...], margins: tuple[int, ...], count: int) -> np.ndarray:
    """The same with one margin for each axis."""
    return places_in(shape, np.array(margins)[:, None], count, np.random.default_rng(SEED))


@functools.lru_cache(SHAPES)
def cells_for(shape: tuple[int, ...], count: int) -> np.ndarray:
    """The corners of unit cells, a row each; the first one has the others before it along each axis."""
    places = places_for(shape, (1,) * len(shape), count)
    shifts = [np.dot(shift, steps_of(shape)) for shift in itertools.product((0, 1), repeat=len(shape))]
    return np.maximum(places - np.array(shifts)[:, None], 0)


@functools.lru_cache(SHAPES)
def windows_for(shape: tuple[int, ...], count: int) -> np.ndarray:
    """Windows of up to 7 points along each axis, thinned out, a row each; for four axes, along the last three."""
    inside, margin = np.zeros(1, np.int64), []
    for axis, (points, step) in enumerate(zip(shape, steps_of(shape), strict=True)):
        side = 1 if len(shape) == 4 and axis == 0 else min(7, points)
        shifts = np.arange(0, side, 2) - (side - 1) // 2
        margin.append((side + 1) // 2)
        inside = (inside[:, None] + shifts * step).reshape(-1)
    corner = places_for(shape, tuple(margin), count)
    return np.clip(corner[:, None] + inside, 0, math.prod(shape) - 1)


def _drawn(share: np.ndarray, total: int) -> np.ndarray:
    """How many of so many samples each pass gets: more than its share where the share is small."""
    roots = np.sqrt(share)
    ends = np.floor(total * np.cumsum(roots) / roots.sum() + 0.5).astype(int)
    return np.diff(ends, prepend=0)
