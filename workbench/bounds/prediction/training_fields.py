"""The fields that predictors are trained on, all made from a seed: many kinds of structure, few of each.

What matters is variety: smooth and rough, Gaussian and heavy-tailed, homogeneous and not, with fronts, zeros, layers,
noise, coasts, holes and grids without neighbours. Some kinds are left out in turn, to see how well a predictor does on data
it has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from workbench.data import Field
from workbench.data.synthetic import Region, cosmic_web, gaussian_field, piecewise_field

SHAPES: tuple[tuple[int, ...], ...] = (
    (48, 56, 64), (64, 64, 64), (256, 256), (200, 360), (12, 90, 160), (60_000,), (6, 24, 40, 60),
)
Shape = tuple[int, ...]
Maker = Callable[[np.random.Generator, Shape], np.ndarray]


def training_fields(count: int = 200, seed: int = 0) -> Iterator[tuple[str, Field]]:
    """Fields with the names of their kinds; the first ones are the same for every `count`. Some have masks.

    >>> [(kind, field.shape) for kind, field in training_fields(2)]
    [('gaussian', (48, 56, 64)), ('lognormal', (64, 64, 64))]
    """
    kinds = list(KINDS.items())
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name, make = kinds[number % len(kinds)]
        shape = SHAPES[(number + number // len(SHAPES)) % len(SHAPES)]
        values = np.ascontiguousarray(make(rng, shape), np.float32)
        missing = np.isnan(values)
        yield name, Field(values, name=name, mask=missing if missing.any() else None)


def _waves(rng: np.random.Generator, shape: Shape, low: float = 0.0, high: float = 7.0) -> np.ndarray:
    """A Gaussian field of a random slope of its spectrum, steeper by the number of axes."""
    slope = rng.uniform(low, high) * (0.4 + 0.2 * len(shape))
    return gaussian_field(shape, slope, int(rng.integers(2**31))).values.astype(np.float64)


def _smooth(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return _waves(rng, shape, 4.0, 7.0)


def _lognormal(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return np.exp(rng.uniform(0.5, 2.5) * _waves(rng, shape, 1.5, 6.0))


def _noisy(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return _smooth(rng, shape) + 10 ** rng.uniform(-4, -0.5) * rng.standard_normal(shape)


def _uneven_noise(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    amplitude = 10 ** (-2 + rng.uniform(0.3, 1.0) * _smooth(rng, shape))
    return _smooth(rng, shape) + amplitude * _waves(rng, shape, 0.0, 3.0)


def _intermittent(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return _waves(rng, shape, 2.0, 6.0) * np.abs(_waves(rng, shape, 2.0, 6.0)) ** rng.uniform(0.5, 2.0)


def _gradient(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    parts = np.gradient(_waves(rng, shape, 4.0, 7.0))
    parts = parts if isinstance(parts, list | tuple) else [parts]
    return np.sqrt(sum(part * part for part in parts))


def _derivative(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    axis = int(rng.integers(len(shape)))
    return np.gradient(_intermittent(rng, shape) if rng.random() < 0.5 else _smooth(rng, shape), axis=axis)


def _fronts(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    fronts = np.tanh(10 ** rng.uniform(0.3, 1.7) * _waves(rng, shape, 3.0, 7.0))
    return fronts + 10 ** rng.uniform(-4, -1) * _waves(rng, shape)


def _rain(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return np.maximum(_waves(rng, shape, 2.0, 6.0) - rng.uniform(0, 1.5), 0) ** rng.uniform(1.0, 2.5)


def _layers(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """A profile along the first and another along the second axis, and weather of another strength in each layer."""
    depth = np.linspace(0, 1, shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    profile = rng.uniform(5, 40) * np.cos(rng.uniform(1, 4) * depth + rng.uniform(0, 6))
    if len(shape) > 1:
        place = np.linspace(-1, 1, shape[-2]).reshape(-1, 1)
        profile = profile + rng.uniform(5, 40) * np.cos(rng.uniform(1, 2) * place) ** 2
    strength = np.exp(rng.uniform(0, 1.5) * np.sin(rng.uniform(1, 6) * depth + rng.uniform(0, 6)))
    return profile + strength * _waves(rng, shape, 3.0, 6.0)


def _separate_layers(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Neighbours along the first axis have little in common, as with time steps that are far apart."""
    if len(shape) == 1:
        return _smooth(rng, shape)
    common = _smooth(rng, shape[1:])
    own = np.stack([_waves(rng, shape[1:], 3.0, 6.0) for _ in range(shape[0])])
    return 280 + 20 * common + 10 ** rng.uniform(-1, 1) * own


def _unstructured(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """A plane read along a winding path in short pieces: jumps between pieces, as with unstructured grids."""
    length = shape[-1] if len(shape) == 1 else int(np.prod(shape[1:]))
    rows = 1 if len(shape) == 1 else shape[0]
    side = int(np.ceil(np.sqrt(length)))
    plane = _smooth(rng, (side, side))
    pieces = int(rng.integers(4, 40))
    blocks = [plane[i : i + pieces, j : j + pieces].ravel() for i in range(0, side, pieces) for j in range(0, side, pieces)]
    line = np.concatenate(blocks)[:length]
    noisy = [line * rng.uniform(0.8, 1.2) + 10 ** rng.uniform(-3, -1) * rng.standard_normal(length) for _ in range(rows)]
    return np.stack(noisy).reshape(shape)


def _regions(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    regions = [
        Region(float(10 ** rng.uniform(-2, 0.5)), float(rng.uniform(0, 0.99)), float(rng.normal() * 2))
        for _ in range(int(rng.integers(2, 5)))
    ]
    return piecewise_field(shape, regions, int(rng.integers(2**31))).values.astype(np.float64)


def _cells(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """A number for each cell around random points, and waves in it."""
    points = rng.random((int(rng.integers(6, 20)), len(shape)))
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij"), -1)
    nearest, label = np.full(shape, np.inf), np.zeros(shape, int)
    for number, point in enumerate(points):
        distance = ((grid - point) ** 2).sum(-1)
        closer = distance < nearest
        nearest[closer], label[closer] = distance[closer], number
    return rng.normal(size=len(points))[label] * 3 + 10 ** rng.uniform(-3, 0) * _waves(rng, shape, 2.0, 6.0)


def _ripples(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    grid = np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")
    total = np.zeros(shape)
    for _ in range(int(rng.integers(2, 6))):
        phase = sum(rng.normal() * 10 ** rng.uniform(-1.5, 0) * axis for axis in grid)
        total += rng.normal() * np.sin(phase + rng.uniform(0, 6))
    return total * np.exp(-0.5 * _smooth(rng, shape)) + 10 ** rng.uniform(-5, -2) * rng.standard_normal(shape)


def _rounded(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    return np.round(_waves(rng, shape, 2.0, 7.0), int(rng.integers(1, 4)))


def _universe(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Density or velocity of a small simulated universe, on a mesh of its own, repeated until it fills the shape."""
    particles = cosmic_web(n=32, seed=int(rng.integers(4)))
    cells = 64
    where = tuple((particles.positions / particles.box * cells).astype(int).T % cells)
    weights = np.ones(len(particles)) if rng.random() < 0.6 else np.asarray(particles.velocities)[:, 0]
    mesh = np.zeros((cells,) * 3)
    np.add.at(mesh, where, weights)
    waves = np.fft.rfftn(mesh)
    k = [np.fft.fftfreq(cells), np.fft.fftfreq(cells), np.fft.rfftfreq(cells)]
    squared = k[0][:, None, None] ** 2 + k[1][:, None] ** 2 + k[2] ** 2
    smoothing = np.exp(-0.5 * squared * (2 * np.pi * rng.uniform(0.6, 2.0)) ** 2)
    mesh = np.fft.irfftn(waves * smoothing, s=mesh.shape, axes=(0, 1, 2))
    mesh = np.log10(np.abs(mesh) + 0.01) if rng.random() < 0.3 else mesh
    needed = int(np.prod(shape))
    if len(shape) == 3:
        return np.pad(mesh, [(0, max(0, n - cells)) for n in shape], mode="wrap")[tuple(slice(n) for n in shape)]
    if len(shape) == 2:
        return np.pad(mesh[int(rng.integers(cells))], [(0, max(0, n - cells)) for n in shape], mode="wrap")
    return np.resize(mesh, needed).reshape(shape)


def _coast(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Land without values: the same in all layers, or more of it the deeper the layer."""
    maker = (_smooth, _layers, _intermittent, _fronts)[int(rng.integers(4))]
    heights = _waves(rng, shape[-2:], 4.0, 7.0)
    shore = np.quantile(heights, rng.uniform(0.4, 0.95)) * np.ones(shape)
    if len(shape) > 2 and rng.random() < 0.5:
        shore = shore - rng.uniform(0, 1) * np.linspace(0, 1, shape[-3])[:, None, None]
    return np.where(heights > shore, np.nan, maker(rng, shape))


def _holes(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Values missing here and there, alone or in clouds."""
    clouds = _waves(rng, shape, 0.0, 4.0)
    maker = (_smooth, _noisy, _derivative, _rain)[int(rng.integers(4))]
    return np.where(clouds > np.quantile(clouds, 1 - 10 ** rng.uniform(-2.5, -0.5)), np.nan, maker(rng, shape))


KINDS: dict[str, Maker] = {
    "gaussian": _waves,
    "lognormal": _lognormal,
    "noisy": _noisy,
    "uneven noise": _uneven_noise,
    "intermittent": _intermittent,
    "gradient": _gradient,
    "derivative": _derivative,
    "fronts": _fronts,
    "rain": _rain,
    "layers": _layers,
    "separate layers": _separate_layers,
    "unstructured": _unstructured,
    "regions": _regions,
    "cells": _cells,
    "ripples": _ripples,
    "rounded": _rounded,
    "universe": _universe,
    "smooth": _smooth,
    "coast": _coast,
    "holes": _holes,
}
"""The kinds of training fields."""
