"""Operators on archives, and means of blocks: the exact figure of the original is in every interval."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import workbench as wb
from archive.test_statistics import FIELD_CODECS, KINDS, field
from combinations import in_pairs
from workbench import backend
from workbench.archive import Archive
from workbench.archive.reading import StoredArray
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
        stated = (end if np.isinf(end) else Fraction(end.item()) for end in (low[cell], high[cell]))
        for below, above in ((Fraction(value) - Fraction(bound), Fraction(value) + Fraction(bound)), tuple(stated)):
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


# Lattice numbers at the limits of a type round to infinity, and are corrected.
OVERFLOWS = pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")


@OVERFLOWS
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in (1, 2))])
def test_the_exact_figure_is_in_every_interval(part):
    assert sum(check_operators(seed) for seed in range(100 * part, 100 * part + 20)) > 100
    assert sum(check_vectors(seed) for seed in range(100 * part, 100 * part + 6)) > 20


@OVERFLOWS
@pytest.mark.long
@pytest.mark.parametrize("part", range(3))
def test_the_exact_figure_is_in_every_interval_of_many_random_cases(part):
    assert sum(check_operators(seed) for seed in range(1000 * (part + 1), 1000 * (part + 1) + 110)) > 1000


def second_differences(values: np.ndarray, spacing: tuple[float, ...]) -> np.ndarray:
    total = np.zeros(values.shape)
    for axis, step in enumerate(spacing):
        along, into = np.moveaxis(values, axis, 0), np.moveaxis(total, axis, 0)
        places = np.clip(np.arange(len(along)), 1, len(along) - 2)
        into += (along[places - 1] - 2 * along[places] + along[places + 1]) / step**2
    return total


@pytest.mark.parametrize(("codec", "shape"), in_pairs(FIELD_CODECS, [(5000,), (90, 70), (17, 18, 19), (5, 11, 9, 10)]))
def test_numpy_has_the_same_figures_of_the_decoded_values(codec, shape):
    values = field(np.random.default_rng(1), shape, np.float64, "smooth")
    spacing = (0.5, 2.0, 3.0, 0.25)[: len(shape)]
    archive = wb.compress(wb.Field(values, spacing=spacing), wb.Absolute(1e-4), codec, chunk_values=2000)
    decoded = archive.decompress().values
    slopes = np.gradient(decoded, *spacing)
    slopes = slopes if isinstance(slopes, list | tuple) else [slopes]
    for axis, slope in enumerate(slopes):
        assert archive.derivative(axis).values == pytest.approx(slope, rel=1e-12, abs=1e-12)
    length = np.sqrt(sum(slope**2 for slope in slopes))
    assert archive.gradient_magnitude().values == pytest.approx(length, rel=1e-12, abs=1e-12)
    assert archive.laplacian().values == pytest.approx(second_differences(decoded, spacing), rel=1e-11, abs=1e-11)


def test_bounds_are_about_what_the_limit_implies():
    values = field(np.random.default_rng(1), (30, 40), np.float64, "smooth")
    archive = wb.compress(wb.Field(values, spacing=(0.5, 0.25)), wb.Absolute(1e-3), "staged")
    slope = archive.derivative(0).bound
    assert slope[1:-1].max() == pytest.approx(1e-3 / 0.5, rel=1e-6)
    assert slope[0].max() == slope[-1].min() == pytest.approx(2e-3 / 0.5, rel=1e-6)
    inside = [(1, 29), (1, 39)]
    assert archive.derivative(0, inside).bound == pytest.approx(1e-3 / 0.5, rel=1e-6)
    assert archive.gradient_magnitude(inside).bound == pytest.approx(1e-3 * math.hypot(2, 4), rel=1e-6)
    assert archive.laplacian().bound == pytest.approx(1e-3 * 4 * (4 + 16), rel=1e-6)
    for name, stated in (("derivative", 2e-3), ("laplacian", 0.08), ("gradient_magnitude", 1e-3 * math.hypot(2, 4))):
        assert archive.explain(name).bound == pytest.approx(stated, rel=1e-6)
    assert archive.explain("derivative", axis=1).bound == pytest.approx(4e-3, rel=1e-6)
    plain = wb.compress(values, wb.Exact())
    assert plain.laplacian().bound < 1e-13
    assert plain.explain("laplacian").bound == 0
    relative = wb.compress(values, wb.PointwiseRelative(1e-3))
    assert relative.derivative(0).bound.shape == values.shape
    assert relative.explain("derivative").bound is None


def test_limits_of_slices_are_those_of_their_neighbours():
    values = field(np.random.default_rng(1), (6, 9), np.float64, "smooth")
    errors = [1.0, 1e-3, 0.0, 1e-2, 1e-3, 1e-1]
    archive = wb.compress(values, wb.PerSlice([wb.Absolute(each) for each in errors], 0))
    along, across = archive.derivative(0).bound, archive.derivative(1).bound
    for row, expected in enumerate([1.001, 0.5, 5.5e-3, 5e-4, 5.5e-2, 0.101]):
        assert along[row].max() == pytest.approx(expected, rel=1e-6)
        assert across[row, 1:-1].max() == pytest.approx(errors[row], rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("codec", ["staged", "prequantised"])
def test_chunks_are_decoded_once_and_only_where_they_are_needed(codec, monkeypatch):
    values = field(np.random.default_rng(3), (64, 64), np.float32, "smooth")
    archive = wb.compress(values, wb.Absolute(1e-3), codec, chunk_values=256)
    read: list[tuple[int, ...]] = []
    true = StoredArray.frame
    monkeypatch.setattr(StoredArray, "frame", lambda self, index, lazy=(): read.append(index) or true(self, index, lazy))
    monkeypatch.setattr("workbench.archive.statistics.operators.LAYER", 256)
    archive.laplacian()
    assert len(read) == len(set(read)) == archive.data.layout.chunk_count == 16
    read.clear()
    found = archive.derivative(0, [(16, 17), (1, 4)])
    assert read == [(0, 0), (1, 0)]
    assert found.bytes_read < 0.3 * found.bytes_stored


def test_integers_have_operators_too():
    values = np.random.default_rng(1).integers(-(2**62), 2**62, (7, 6))
    for bound in (wb.Exact(), wb.Absolute(5)):
        archive = wb.compress(values, bound)
        truth = exact(values, np.zeros(values.shape, bool), (1.0, 1.0))
        for name, found in answers(archive).items():
            assert found.values.dtype == np.float64
            require_inside(found, truth[name], (0, 0), 99, np.random.default_rng(0))


def test_figures_beyond_all_numbers_are_infinite_and_so_are_their_bounds():
    top = np.finfo(np.float64).max
    values = np.array([top, -top, top, 0.0, np.nan, 1.0, 2.0, 3.0])
    found = wb.compress(values, wb.Exact()).laplacian()
    assert np.isinf(found.values[:3]).all()
    assert np.isnan(found.values[3:6]).all()
    assert found.values[6:].tolist() == [0, 0]
    assert np.isinf(found.bound[:3]).all()
    assert (found.low[0], found.high[0]) == (-math.inf, math.inf)
    assert found.missing == 3


def test_block_means_of_staged_fields_take_the_metadata_alone():
    values = field(np.random.default_rng(3), (40, 64, 64), np.float32, "smooth")
    archive = wb.compress(values, wb.Absolute(1e-3), wb.codecs.get("staged", sides=(8, 8, 8)))
    found = archive.block_means()
    assert (found.stage, found.sides, found.values.shape) == ("metadata of blocks", (8, 8, 8), (5, 8, 8))
    assert found.bytes_read < 0.2 * found.bytes_stored
    assert found.bound == pytest.approx(1e-3, rel=0.01)
    require_means_inside(found, values, np.isfinite(values))
    assert archive.block_means(16).values.shape == (3, 4, 4)
    assert archive.block_means(16).stage == "metadata of blocks"
    assert archive.block_means((8, 8, 12)).stage == "values"
    assert archive.explain("block_means").bytes_read == found.bytes_read


def test_axes_have_names():
    import xarray

    values = field(np.random.default_rng(3), (30, 40), np.float64, "smooth")
    archive = wb.compress(xarray.DataArray(values, dims=("lat", "lon")), wb.Absolute(1e-3))
    assert (archive.derivative("lon").values == archive.derivative(1).values).all()
    with pytest.raises(WorkbenchError, match="axis must be the name of a dimension; got 'time': there are 'lat', 'lon'"):
        archive.derivative("time")


def test_wrong_calls_are_refused_in_words():
    archive = wb.compress(np.zeros((20, 2)), wb.Absolute(1e-3), "staged")
    with pytest.raises(WorkbenchError, match=r"laplacian needs at least 3 points along axis 1; got 2\. Available: deriv"):
        archive.laplacian()
    with pytest.raises(WorkbenchError, match="axis must be one of the 2 axes"):
        archive.derivative(2)
    with pytest.raises(WorkbenchError, match="axis must be the number of an axis"):
        archive.derivative(None)
    with pytest.raises(WorkbenchError, match=r"available: mean.*derivative.*laplacian"):
        archive.explain("curvature")
    with pytest.raises(WorkbenchError, match="differences need a spacing between"):
        wb.compress(wb.Field(np.zeros(9), spacing=1e-200), wb.Absolute(1e-3)).derivative(0)
    with pytest.raises(WorkbenchError, match="divergence takes two archives of one shape with two axes, or three with"):
        wb.divergence([archive, archive, archive])
    other = wb.compress(wb.Field(np.zeros((20, 2)), spacing=2.0), wb.Absolute(1e-3))
    with pytest.raises(WorkbenchError, match="curl needs components with one spacing"):
        wb.curl([archive, other])
    with pytest.raises(WorkbenchError, match="takes a sequence of archives of fields"):
        wb.curl(np.zeros((2, 20, 2)))
    with pytest.raises(WorkbenchError, match="takes a sequence of archives of fields"):
        wb.divergence(archive)
    with pytest.raises(WorkbenchError, match="sides must be one number, or one for each of 2 axes"):
        archive.block_means((2, 2, 2))
    particles = wb.compress(wb.synthetic.cosmic_web(n=8), wb.Absolute(0.1))
    for call in (particles.laplacian, particles.block_means):
        with pytest.raises(WorkbenchError, match="archive holds particles"):
            call()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("operation", Operation)
def test_both_machines_find_the_same_bits(stand_in, operation, dtype):
    assert_same_stencils(stand_in, operation, dtype)


def assert_same_stencils(cupy: ModuleType, operation: Operation, dtype: type) -> None:
    rng = np.random.default_rng(1)
    for shape in [(50,), (9, 11), (5, 6, 7), (3, 4, 5, 6)]:
        values = (rng.normal(size=shape) * 10.0 ** rng.integers(-30, 39, shape)).astype(dtype)
        values[rng.random(shape) < 0.02] = np.nan
        values[rng.random(shape) < 0.02] = -np.inf
        inside = tuple(slice(0, n) if n % 2 else slice(1, n - 1) for n in shape)
        axes = [(axis,) for axis in range(len(shape))] if operation is Operation.DERIVATIVE else [tuple(range(len(shape)))]
        for chosen, sizes in itertools.product(axes, (False, True)):
            spacing = [0.3 if axis in chosen else None for axis in range(len(shape))]
            given = np.abs(values) if sizes else values
            with np.errstate(all="ignore"):
                here = apply_stencil(operation, given, inside, spacing, sizes)
                there = apply_stencil(operation, cupy.asarray(given), inside, spacing, sizes)
            assert backend.on_device(there)
            assert backend.to_host(there).tobytes() == here.tobytes()
