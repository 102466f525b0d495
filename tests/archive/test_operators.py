"""Derivatives, gradients, Laplacians, divergence and curl of archives: the exact figure of the original is in each interval."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from archive.samples import CODECS
from archive.test_statistics import FIELD_CODECS, KINDS, field
from workbench import backend
from workbench.archive import Archive
from workbench.archive.statistics import BlockMeans, FieldStatistic
from workbench.archive.statistics.stencils import Operation, apply_stencil
from workbench.errors import WorkbenchError

SHAPES = [(3,), (40,), (700,), (4, 3), (13, 17), (33, 12), (5, 4, 6), (9, 11, 7), (3, 3, 5, 4)]
Cell = tuple[int, ...]
Exact = Callable[[Cell], Fraction]


class Missing(Exception):
    """A stencil has a cell without a value."""


def exact(values: np.ndarray, hidden: np.ndarray, spacing: tuple[float, ...]) -> dict[str, Exact]:
    """The figures of a cell, in exact arithmetic; of the length of a gradient, its square."""
    shape = values.shape

    def at(cell: Cell, axis: int, place: int) -> Fraction:
        cell = (*cell[:axis], place, *cell[axis + 1 :])
        if hidden[cell]:
            raise Missing
        return Fraction(values[cell].item())

    def derivative(cell: Cell, axis: int) -> Fraction:
        low, high = max(cell[axis] - 1, 0), min(cell[axis] + 1, shape[axis] - 1)
        return (at(cell, axis, high) - at(cell, axis, low)) / ((high - low) * Fraction(spacing[axis]))

    def second(cell: Cell, axis: int) -> Fraction:
        middle = min(max(cell[axis], 1), shape[axis] - 2)
        low, here, high = (at(cell, axis, middle + step) for step in (-1, 0, 1))
        return (low - 2 * here + high) / Fraction(spacing[axis]) ** 2

    axes = range(len(shape))
    return {
        **{f"derivative {axis}": lambda cell, axis=axis: derivative(cell, axis) for axis in axes},
        "gradient_magnitude": lambda cell: sum((derivative(cell, axis) ** 2 for axis in axes), Fraction(0)),
        "laplacian": lambda cell: sum((second(cell, axis) for axis in axes), Fraction(0)),
    }


def require_inside(found: FieldStatistic, of: Exact, corner: Cell, most: int, rng: np.random.Generator) -> int:
    """Compare some values with the exact ones; returns how many."""
    shape = found.values.shape
    cells = list(itertools.product(*map(range, shape)))
    if len(cells) > most:
        cells = [cells[k] for k in {0, len(cells) - 1, *rng.choice(len(cells), most, replace=False).tolist()}]
    bounds, low, high = np.broadcast_to(found.bound, shape), found.low, found.high
    for cell in cells:
        value, bound = found.values[cell].item(), bounds[cell].item()
        try:
            true = of(tuple(a + b for a, b in zip(cell, corner, strict=True)))
        except Missing:
            assert math.isnan(value), (found, cell, value)
            continue
        assert not math.isnan(value), (found, cell)
        if math.isinf(value) or math.isinf(bound):
            assert bound == math.inf
            continue
        for ends in ((Fraction(value) - Fraction(bound), Fraction(value) + Fraction(bound)), (low[cell], high[cell])):
            below, above = (each if isinstance(each, Fraction) or math.isinf(each) else Fraction(each.item()) for each in ends)
            if found.name == "gradient_magnitude":
                assert (below <= 0 or below**2 <= true), (found, cell, value, bound)
                assert math.isinf(above) or (above >= 0 and true <= above**2), (found, cell, value, bound)
            else:
                assert below <= true <= above, (found, cell, value, bound, float(true))
    return len(cells)


def answers(archive: Archive, region: object = None) -> dict[str, FieldStatistic]:
    axes = range(len(archive.data.layout.shape))
    return {
        **{f"derivative {axis}": archive.derivative(axis, region) for axis in axes},
        "gradient_magnitude": archive.gradient_magnitude(region), "laplacian": archive.laplacian(region),
    }


def require_means_inside(found: BlockMeans, values: np.ndarray, valid: np.ndarray) -> int:
    """Compare the means of all blocks with the exact ones; returns how many there are."""
    bounds, low, high = np.broadcast_to(found.bound, found.values.shape), found.low, found.high
    assert found.values.shape == tuple(len(each) - 1 for each in found.edges)
    for cell in np.ndindex(found.values.shape):
        place = tuple(slice(int(each[k]), int(each[k + 1])) for each, k in zip(found.edges, cell, strict=True))
        inside = values[place][valid[place]].tolist()
        value, bound = found.values[cell].item(), bounds[cell].item()
        if not inside:
            assert math.isnan(value), (found, cell)
            continue
        true = sum(map(Fraction, inside)) / len(inside)
        assert not math.isnan(value), (found, cell)
        if bound < math.inf:
            assert abs(true - Fraction(value)) <= Fraction(bound), (found, cell, value, bound, float(true))
            assert low[cell] <= true <= high[cell]
    return found.values.size


@dataclass(frozen=True)
class Case:
    """A random field and its archive."""

    archive: Archive
    values: np.ndarray
    hidden: np.ndarray
    spacing: tuple[float, ...]
    region: list[list[int]]


def random_case(rng: np.random.Generator, shape: tuple[int, ...], spacing: tuple[float, ...]) -> Case:
    codec = FIELD_CODECS[0] if rng.random() < 0.4 else FIELD_CODECS[int(rng.integers(len(FIELD_CODECS)))]
    kind, dtype = KINDS[int(rng.integers(len(KINDS)))], (np.float32, np.float64)[int(rng.integers(2))]
    values = field(rng, shape, dtype, kind)
    if rng.random() < 0.1:
        values = np.where(rng.random(shape) < 0.5, -1, 1).astype(dtype) * np.finfo(dtype).max
    size, share, choice = float(np.abs(values).max()) or 1.0, 10.0 ** rng.uniform(-8, -0.3), rng.random()
    bound: wb.Absolute | wb.PointwiseRelative | wb.Relative | wb.PerSlice = wb.Absolute(share * size)
    if choice < 0.3:
        bound = wb.PointwiseRelative(share)
    elif choice < 0.4:
        bound = wb.Absolute(0)
    elif choice < 0.6:
        some = [wb.Absolute(0), wb.Absolute(share * size), wb.PointwiseRelative(share), wb.Absolute(0.1 * share * size)]
        axis = int(rng.integers(len(shape)))
        bound = wb.PerSlice([some[int(k)] for k in rng.integers(len(some), size=shape[axis])], axis)
    hidden = np.zeros(shape, bool)
    if rng.random() < 0.25:
        hidden = rng.random(shape) < rng.choice([0.02, 0.5])
        values[hidden] = rng.choice([np.nan, np.inf, -np.inf])
    mask = rng.random(shape) < 0.1 if rng.random() < 0.25 else None
    given = wb.Field(values, spacing=spacing, mask=mask)
    with np.errstate(over="ignore"):   # of lattice numbers at the limits of a type, which are then corrected
        archive = wb.compress(given, bound, codec, chunk_values=int(rng.choice([30, 256, 10**6])))
    region = [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in shape]
    return Case(archive, values, hidden if mask is None else hidden | mask, spacing, region)


def random_spacing(rng: np.random.Generator, count: int) -> tuple[float, ...]:
    if rng.random() < 0.1:
        return (float(rng.choice([1e-140, 1e140])),) * count
    return tuple(float(10.0**k) for k in rng.uniform(-3, 3, count))


def check_operators(seed: int, most: int = 12) -> int:
    """All operators on a random field, whole and in a region; returns how many answers were compared."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    made = random_case(rng, shape, random_spacing(rng, len(shape)))
    truth, checked = exact(made.values, made.hidden, made.spacing), 0
    for region in (None, made.region):
        corner = (0,) * len(shape) if region is None else tuple(low for low, _ in region)
        for name, found in answers(made.archive, region).items():
            assert found.missing == int(np.isnan(found.values).sum())
            assert 0 < found.bytes_read <= found.bytes_stored
            require_inside(found, truth[name], corner, most, rng)
            checked += 1
    for sides in (None, int(rng.integers(1, 9)), [int(n) for n in rng.choice([1, 2, 8, 16, 32], len(shape))]):
        require_means_inside(made.archive.block_means(sides), made.values, ~made.hidden)
        checked += 1
    return checked


def check_vectors(seed: int, most: int = 12) -> int:
    """Divergence and curl of a random vector field; returns how many answers were compared."""
    rng = np.random.default_rng(seed)
    shape = [(13, 17), (4, 3), (5, 4, 6), (9, 11, 7)][int(rng.integers(4))]
    spacing = random_spacing(rng, len(shape))
    parts = [random_case(rng, shape, spacing) for _ in shape]
    truth = [exact(one.values, one.hidden, spacing) for one in parts]
    archives, region = [one.archive for one in parts], parts[0].region
    checked = 0
    for where in (None, region):
        corner = (0,) * len(shape) if where is None else tuple(low for low, _ in where)

        def summed(*terms: tuple[int, int, int]) -> Exact:
            return lambda cell: sum((sign * truth[of][f"derivative {axis}"](cell) for sign, of, axis in terms), Fraction(0))

        require_inside(
            wb.divergence(archives, where), summed(*((1, axis, axis) for axis in range(len(shape)))), corner, most, rng
        )
        curls = wb.curl(archives, where)
        pairs = [(0, 1)] if len(shape) == 2 else [(1, 2), (2, 0), (0, 1)]
        for found, (first, second) in zip(curls if isinstance(curls, tuple) else [curls], pairs, strict=True):
            require_inside(found, summed((1, second, first), (-1, first, second)), corner, most, rng)
        checked += 1 + len(pairs)
    return checked


@pytest.mark.parametrize("part", range(3))
def test_the_exact_figure_is_in_every_interval(part):
    assert sum(check_operators(seed) for seed in range(100 * part, 100 * part + 20)) > 100
    assert sum(check_vectors(seed) for seed in range(100 * part, 100 * part + 6)) > 20


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_the_exact_figure_is_in_every_interval_of_many_random_cases(part):
    assert sum(check_operators(seed) for seed in range(1000 * (part + 1), 1000 * (part + 1) + 110)) > 1000
