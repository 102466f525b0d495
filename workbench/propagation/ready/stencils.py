"""Derivatives by central differences on a periodic grid: linear and local, so with a sharp interval and an exact update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array, to_host
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.propagation.containers import array_of
from workbench.propagation.enclosures import WIDER, Ball, rounding, unless_overflowing
from workbench.propagation.error_sizes import norm as norm_of
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.protection.convolutions import checked_convolve
from workbench.propagation.protection.findings import Findings
from workbench.propagation.stage import Stage, Where
from workbench.propagation.tolerance import within

REACH = 3   # points along each axis of the stencils here
Term = tuple[int, tuple[int, ...], float]   # component of the input, offset, factor


def derivatives(field: Field | Array, share: float = 0.01) -> Pipeline:
    """Gradient, its size, and Laplacian of a periodic field: sites `gradient`, `steepness`, `laplacian`.

    >>> wave = np.sin(2 * np.pi * np.arange(64) / 64)
    >>> round(float(derivatives(wave).run(wave)["gradient"].max()) * 64 / (2 * np.pi), 3)
    0.998
    """
    given = Field.of(field)
    axes, steps = range(len(given.shape)), given.spacing
    gradient = Stencil(tuple(_central(0, axis, steps) for axis in axes), len(steps), stacked=True)
    second: list[Term] = [(0, (0,) * len(steps), sum(-2 / step**2 for step in steps))]
    for axis in axes:
        second += [(0, _offset(axis, side, len(steps)), 1 / steps[axis] ** 2) for side in (1, -1)]
    stages = [
        gradient.stage("gradient", "input"),
        Stage("steepness", _length, inputs=("gradient",), derivative=_length_change, enclose=_length_enclosure),
        Stencil((tuple(second),), len(steps)).stage("laplacian", "input"),
    ]
    return Pipeline(stages, tolerance=within(share), name="derivatives")


def vorticity(velocity: Array, spacing: float = 1.0, share: float = 0.01) -> Pipeline:
    """The curl of a periodic velocity field of shape (3, n, n, n) or (2, n, n): sites `vorticity`, `enstrophy`.

    >>> velocity = np.random.default_rng(0).normal(size=(3, 8, 8, 8))
    >>> vorticity(velocity).run(velocity)["vorticity"].shape
    (3, 8, 8, 8)
    """
    shape = tuple(array_of(velocity).shape)
    dimensions = len(shape) - 1
    if dimensions not in (2, 3) or shape[0] != dimensions:
        raise WorkbenchError(f"velocity must have the shape (3, n, n, n) or (2, n, n); got {shape}")
    steps = (float(spacing),) * dimensions
    planes = [(1, 2), (2, 0), (0, 1)] if dimensions == 3 else [(0, 1)]
    curl = tuple((*_central(b, a, steps), *_scaled(_central(a, b, steps), -1)) for a, b in planes)
    stages = [
        Stencil(curl, dimensions, stacked=dimensions == 3, several=True).stage("vorticity", "input"),
        Stage("enstrophy", _mean_square, derivative=_mean_square_change, enclose=_mean_square_enclosure),
    ]
    return Pipeline(stages, tolerance=within(share), name="vorticity")


@dataclass(frozen=True)
class Stencil:
    """Weighted sums of neighbours on a periodic grid: one tuple of terms for each component of the result."""

    components: tuple[tuple[Term, ...], ...]
    dimensions: int
    stacked: bool = False   # whether the result has an axis of components
    several: bool = False   # whether the input has one

    def stage(self, name: str, read: str) -> Stage:
        """The stage of this stencil."""
        verify = None if self.several else self.verify   # sums of convolutions have no checksums here
        return Stage(name, self.apply, (read,), linear=True, enclose=self.enclosure, update=self.update, verify=verify)

    @property
    def sizes(self) -> Stencil:
        """The same stencil with the sizes of the factors."""
        parts = tuple(tuple((c, offset, abs(factor)) for c, offset, factor in terms) for terms in self.components)
        return replace(self, components=parts)

    def apply(self, values: Array) -> Array:
        """The sums at every point."""
        xp = backend.namespace(values)
        parts = [self._sum(terms, values) for terms in self.components]
        return xp.stack(parts) if self.stacked else parts[0]

    def _sum(self, terms: Sequence[Term], values: Array) -> Array:
        xp, axes = backend.namespace(values), tuple(range(self.dimensions))
        total = None
        for component, offset, factor in terms:
            source = values[component] if self.several else values
            part = _floats(values).type(factor) * xp.roll(source, [-step for step in offset], axes)
            total = part if total is None else total + part
        return total

    def verify(self, inputs: Sequence[Any], output: Array) -> tuple[Array, Findings]:
        """The sums, corrected by their checksums: each component is a convolution. Narrow grids are not checked."""
        values, found = inputs[0], Findings()
        parts = list(output) if self.stacked else [output]
        if min(values.shape) < REACH or values.ndim > 3 or values.dtype not in (np.float32, np.float64):
            return output, Findings(unchecked=output.size)
        for number, terms in enumerate(self.components):
            sums = partial(self._sum, terms, values)
            parts[number], seen = checked_convolve(values, self._weights(terms, values), parts[number], sums)
            found += seen
        return (backend.namespace(output).stack(parts) if self.stacked else parts[0]), found

    def _weights(self, terms: Sequence[Term], values: Array) -> Array:
        """The factors as the stencil of a convolution."""
        weights = np.zeros((REACH,) * self.dimensions, values.dtype)
        for _, offset, factor in terms:
            weights[tuple(REACH // 2 - step for step in offset)] += values.dtype.type(factor)
        return backend.namespace(values).asarray(weights)

    def enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
        """The sizes of the factors times the radius; the same for the norm."""
        ball, values = enclosures[0], to_host(inputs[0])
        if not isinstance(ball, Ball):
            return None
        dtype, terms = _floats(values), max(map(len, self.components))
        radius = np.broadcast_to(np.asarray(ball.radius, np.float64), values.shape)
        largest = self.sizes.apply(abs(values.astype(np.promote_types(values.dtype, np.float64))) + radius)
        tiny = terms * float(np.finfo(dtype).tiny)   # products that underflow
        slack = 2 * rounding(2 * terms + 4, dtype) * largest + tiny
        most = unless_overflowing(WIDER * (self.sizes.apply(radius) + slack), largest, dtype)
        gain = math.sqrt(sum(sum(abs(factor) for _, _, factor in terms) ** 2 for terms in self.components))
        norm = WIDER * (gain * ball.norm + norm_of(slack))
        return Ball(most, norm if np.isfinite(most).all() else math.inf)

    def update(self, inputs: Sequence[Any], before: Sequence[Any], outputs: Sequence[Any], where: Sequence[Where]) -> Any:
        """Compute only the points within reach of what changed, with the same operations in the same order."""
        values, result = inputs[0], outputs[0]
        if where[0] is None or len(where[0]) * len(self.components[0]) > values.size // 8:
            return None
        xp = backend.namespace(values)
        shape = values.shape[1:] if self.several else values.shape
        changed = xp.unravel_index(where[0] % math.prod(shape), shape)
        result, touched = result.copy(), []
        for number, terms in enumerate(self.components):
            offsets = {offset for _, offset, _ in terms}
            places = [self._moved(changed, offset, shape, -1) for offset in offsets]
            target = xp.unique(xp.concatenate([xp.ravel_multi_index(place, shape) for place in places]))
            at = xp.unravel_index(target, shape)
            total = None
            for component, offset, factor in terms:
                source = values[component] if self.several else values
                part = _floats(values).type(factor) * source[self._moved(at, offset, shape, 1)]
                total = part if total is None else total + part
            (result[number] if self.stacked else result)[at] = total
            touched.append(target + number * math.prod(shape))
        return [(result, xp.concatenate(touched))]

    @staticmethod
    def _moved(place: Sequence[Array], offset: Sequence[int], shape: Sequence[int], sign: int) -> tuple[Array, ...]:
        return tuple((along + sign * step) % n for along, step, n in zip(place, offset, shape, strict=True))


def _floats(values: Array) -> np.dtype:
    """The type of the factors and results: that of the values, or float64 for integers."""
    return values.dtype if values.dtype.kind in "fc" else np.dtype(np.float64)


def _central(component: int, axis: int, steps: Sequence[float]) -> tuple[Term, ...]:
    return tuple((component, _offset(axis, side, len(steps)), side / (2 * steps[axis])) for side in (1, -1))


def _scaled(terms: Sequence[Term], by: float) -> tuple[Term, ...]:
    return tuple((component, offset, by * factor) for component, offset, factor in terms)


def _offset(axis: int, side: int, dimensions: int) -> tuple[int, ...]:
    return tuple(side if each == axis else 0 for each in range(dimensions))


def _length(gradient: Array) -> Array:
    return backend.namespace(gradient).sqrt((gradient * gradient).sum(axis=0))


def _length_change(inputs: Sequence[Any], changes: Sequence[Any]) -> Array:
    xp = backend.namespace(inputs[0])
    length = _length(inputs[0])
    return (inputs[0] * changes[0]).sum(axis=0) / xp.where(length > 0, length, 1)


def _length_enclosure(inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
    """A length changes by no more than the length of the change."""
    ball, values = enclosures[0], to_host(inputs[0])
    if not isinstance(ball, Ball):
        return None
    full = np.broadcast_to(ball.radius, values.shape)
    radius, largest = np.sqrt(np.sum(full**2, axis=0)), np.sum((abs(values.astype(np.float64)) + full) ** 2, axis=0)
    slack = rounding(16, values.dtype) * (2 * to_host(outputs[0]).astype(np.float64) + radius)
    tiny = math.sqrt(float(np.finfo(values.dtype).tiny))   # squares below this are lost
    norm = ball.norm + norm_of(slack + tiny)
    most = unless_overflowing(WIDER * (radius + slack + tiny), largest, values.dtype)
    return Ball(most, WIDER * norm if np.isfinite(most).all() else math.inf)


def _mean_square(values: Array) -> Array:
    return 0.5 * (values * values).mean()


def _mean_square_change(inputs: Sequence[Any], changes: Sequence[Any]) -> Array:
    return (inputs[0] * changes[0]).mean()


def _mean_square_enclosure(inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
    ball, values = enclosures[0], to_host(inputs[0])
    if not isinstance(ball, Ball):
        return None
    norm = min(ball.norm, norm_of(np.broadcast_to(ball.radius, values.shape)))
    size = norm_of(values.astype(np.promote_types(values.dtype, np.float64)))
    largest = np.square(size + norm)
    slack = rounding(values.size + 8, values.dtype) * largest + values.size * float(np.finfo(values.dtype).tiny)
    radius = WIDER * (norm * (2 * size + norm) / 2 + slack) / values.size
    return Ball(unless_overflowing(radius, largest, values.dtype))
