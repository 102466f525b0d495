"""Regions of any shape: against matrices written down, closed forms, and the tables of the theory."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limits.test_blocks import CORRELATED, assert_same, covariance, log_determinant, printed, recursion
from workbench.errors import WorkbenchError
from workbench.limits import converse, shapes
from workbench.limits.achievability import achievable
from workbench.limits.blocks import block_spectrum, dense_spectrum, lattice_spectrum, tile_lengths
from workbench.limits.correlation import Autoregressive, Matern
from workbench.limits.shapes import chord_spectrum, region_spectrum
from workbench.limits.spectrum import Spectrum


def faces(inside, tile=None):
    """How many sides of cells look out of the region or into another tile, one cell at a time."""
    total, sizes = 0, tile_lengths(tile, inside.shape)
    for cell in zip(*np.nonzero(inside), strict=True):
        for k, step in itertools.product(range(inside.ndim), (-1, 1)):
            other = list(map(int, cell))
            other[k] += step
            away = not 0 <= other[k] < inside.shape[k] or not inside[tuple(other)]
            total += away or other[k] // sizes[k] != cell[k] // sizes[k]
    return total


def disc(radius):
    rows, columns = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return rows**2 + columns**2 <= radius**2


def ell():
    inside = np.ones((24, 30), bool)
    inside[:11, 13:] = False
    return inside


def holes():
    return np.random.default_rng(3).random((20, 23)) < 0.7


def ball():
    x, y, z = np.ogrid[-6:7, -6:7, -6:7]
    return x**2 + y**2 + z**2 <= 30


@pytest.mark.parametrize("tile", [None, 8, (5, 7, 4)])
@pytest.mark.parametrize("inside", [disc(13), ell(), ball()], ids="disc ell ball".split())
def test_a_compact_region_costs_its_cells_and_its_faces(inside, tile):
    tile = tile[: inside.ndim] if isinstance(tile, tuple) else tile
    found = region_spectrum(recursion(0.95, inside.ndim), inside, tile)
    cells, boundary = int(inside.sum()), faces(inside, tile)
    assert found.size == pytest.approx(cells, rel=1e-13)
    assert found.variance == pytest.approx(1, rel=1e-12)
    assert log_determinant(found) == pytest.approx(-(inside.ndim * cells - boundary / 2) * CORRELATED, rel=1e-10)


def test_a_unit_of_boundary_costs_what_the_table_says():
    line = np.ones((1, 40), bool)
    model = Autoregressive(1.0, (0.0, 0.95))
    longer, shorter = (region_spectrum(model, line[:, :n]) for n in (40, 39))
    apart = Spectrum.joined([region_spectrum(model, line[:, :n]) for n in (20, 19)])
    entropy = 0.5 * log_determinant(apart) - 0.5 * log_determinant(shorter)
    assert entropy / 2 == printed(0.839613, 6)   # one cut has two faces
    assert 0.5 * (log_determinant(longer) - log_determinant(shorter)) == pytest.approx(-0.5 * CORRELATED, rel=1e-10)


@pytest.mark.parametrize(("shape", "bits"), [((8, 8), -376.146845), ((4, 16), -362.713029), ((16, 16), -1612.057906)])
def test_rectangles_have_the_determinants_of_the_table(shape, bits):
    model = recursion(0.95, 2)
    for found in (block_spectrum(model, shape), region_spectrum(model, np.ones(shape, bool)), dense_spectrum(model, shape)):
        assert log_determinant(found) == printed(bits, 6)


@given(st.lists(st.tuples(st.integers(1, 14), st.integers(1, 9)), min_size=1, max_size=3))
@settings(max_examples=40)
def test_a_region_that_is_the_whole_lattice_is_the_lattice(sides):
    shape, tile = zip(*sides, strict=True)
    model = recursion(0.8, len(shape), nugget=0.05)
    assert_same(region_spectrum(model, np.ones(shape, bool), tile), lattice_spectrum(model, shape, tile))
    assert_same(region_spectrum(model, np.ones(shape, bool)), lattice_spectrum(model, shape))


def test_a_rectangle_anywhere_is_the_boxes_into_which_tiles_cut_it():
    inside = np.zeros((30, 40), bool)
    inside[3:21, 6:33] = True   # rows 5 8 5, columns 2 8 8 8 1
    for model in (recursion(0.9, 2, nugget=0.1), Matern(1.0, (4.0, 3.0), 1.5)):
        boxes = [block_spectrum(model, box) for box in itertools.product((5, 8, 5), (2, 8, 8, 8, 1))]
        assert_same(region_spectrum(model, inside, 8), Spectrum.joined(boxes))


def test_a_tile_cut_by_an_edge_is_two_smaller_tiles():
    left = np.zeros((8, 8), bool)
    left[:, :3] = True
    model = recursion(0.9, 2)
    both = Spectrum.joined([region_spectrum(model, left, 8), region_spectrum(model, ~left, 8)])
    assert_same(both, Spectrum.joined([block_spectrum(model, (8, 3)), block_spectrum(model, (8, 5))]))


@given(st.integers(1, 3), st.integers(0, 2**32 - 1), st.floats(0.05, 0.95), st.none() | st.integers(1, 6))
def test_boxes_of_mean_chords_keep_cells_and_faces(dimensions, seed, share, tile):
    random = np.random.default_rng(seed)
    inside = random.random(tuple(random.integers(1, 10, dimensions))) < share
    inside.flat[random.integers(inside.size)] = True
    cells, runs = shapes._cells_and_runs(inside, tile_lengths(tile, inside.shape))
    found = chord_spectrum(recursion(0.6, dimensions), dimensions, cells, runs)
    assert found.size == pytest.approx(int(inside.sum()), rel=1e-12)
    expected = (dimensions * inside.sum() - faces(inside, tile) / 2) * math.log2(1 - 0.36)
    assert log_determinant(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 3), st.integers(0, 2**32 - 1), st.floats(0.05, 0.95), st.none() | st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_a_small_region_of_any_shape_has_the_eigenvalues_of_its_matrix(dimensions, seed, share, tile):
    random = np.random.default_rng(seed)
    inside = random.random(tuple(random.integers(1, (0, 30, 8, 5)[dimensions], dimensions))) < share
    inside.flat[random.integers(inside.size)] = True
    model = Matern(1.0, (2.0,) * dimensions, 1.5, 0.01)
    points, sides = np.argwhere(inside), tile_lengths(tile, inside.shape)
    owner = np.unique(points // np.array(sides), axis=0, return_inverse=True)[1].ravel()
    matrices = [covariance(model, points[owner == one]) for one in range(owner.max() + 1)]
    true = Spectrum.of(np.concatenate([np.linalg.eigvalsh(matrix) for matrix in matrices]))
    found = region_spectrum(model, inside, tile)
    assert_same(found, true, rel=1e-9)
    assert found.slack == 0


def striped(side):
    return np.repeat(np.arange(side) % 2 == 0, side).reshape(side, side)


LARGE = {   # more cells than are diagonalised as they are
    "10% missing": np.random.default_rng(1).random((40, 40)) > 0.1,
    "30% missing": np.random.default_rng(2).random((40, 40)) > 0.3,
    "every other row": striped(40),
    "checkerboard": np.add.outer(np.arange(40), np.arange(40)) % 2 == 0,
    "squares of 5": np.add.outer(np.arange(45) // 5, np.arange(45) // 5) % 2 == 0,
    "annulus": np.abs(np.hypot(*np.ogrid[-20:20, -20:20]) - 15) < 1.5,
    "line": np.arange(1200) % 2 == 0,
    "cube": np.random.default_rng(3).random((10, 10, 10)) > 0.2,
}
MODELS = {"recursion": 0.95, "smooth": 1.5, "smoother": 2.5}


SLOW_ONES = [   # up to twenty seconds
    ("squares of 5", "recursion"), ("10% missing", "smoother"), ("10% missing", "recursion"), ("checkerboard", "recursion"),
    ("every other row", "recursion"), ("annulus", "recursion"), ("30% missing", "recursion"), ("every other row", "smooth"),
]


@pytest.mark.long_with("annulus-smooth")
@pytest.mark.parametrize(("name", "kind"), [
    ("line", "recursion"), ("cube", "recursion"), ("annulus", "smooth"),
    *(pytest.param(*each, marks=pytest.mark.long) for each in SLOW_ONES),
])
def test_holes_in_large_regions_are_seen_through(name, kind, monkeypatch):
    inside = LARGE[name]
    if inside.ndim == 3 and kind != "recursion":
        inside = inside[:8]
    model = recursion(0.95, inside.ndim) if kind == "recursion" else Matern(1.0, (6.0,) * inside.ndim, MODELS[kind], 1e-3)
    true = shapes.spectrum_of_points(model, np.argwhere(inside))
    monkeypatch.setattr(shapes, "DENSE", 0)
    found = region_spectrum(model, inside)
    assert found.size == pytest.approx(inside.sum())
    assert found.variance == pytest.approx(model.variance)
    assert found.slack > 0
    allowed = 0.006 if inside.ndim < 3 and name != "annulus" else 0.015 if inside.ndim == 3 else 0.028
    assert found.slack > allowed / 2
    for distortion in (1e-4, 1e-3, 0.01, 0.05, 0.1, 0.3):
        assert found.rate(distortion) == pytest.approx(true.rate(distortion), abs=allowed)
    assert converse.converse(found, 0.01, 0.01) <= achievable(true, 0.01, 0.01)


def test_a_region_without_holes_is_not_looked_at_through_windows(monkeypatch):
    monkeypatch.setattr(shapes, "_changes_by_holes", None)
    inside = np.hypot(*np.ogrid[-80:80, -80:80]) < 70
    assert 0 < region_spectrum(recursion(0.9, 2), inside).slack <= 0.01
    apart = np.zeros((400, 200), bool)
    apart[:60], apart[300:390] = True, True   # nothing is known across so wide a gap
    apart[0, 0] = False
    assert region_spectrum(recursion(0.9, 2), apart).slack <= 0.01


def test_tiles_of_a_region_with_holes_are_diagonalised_or_sampled(monkeypatch):
    inside = np.random.default_rng(5).random((128, 128)) > 0.2
    exact = region_spectrum(recursion(0.9, 2), inside, 8)
    assert exact.slack == 0
    monkeypatch.setattr(shapes, "WORK", 64.0**3 * 40)
    sampled = region_spectrum(recursion(0.9, 2), inside, 8)
    assert sampled.size == pytest.approx(exact.size)
    for distortion in (1e-3, 0.1):
        assert sampled.rate(distortion) == pytest.approx(exact.rate(distortion), abs=sampled.slack)


@pytest.mark.long
def test_a_disc_is_nearly_as_its_true_matrix_at_every_rate():
    inside, model = disc(15), recursion(0.95, 2)
    true = Spectrum.of(np.linalg.eigvalsh(covariance(model, list(zip(*np.nonzero(inside), strict=True)))))
    found = region_spectrum(model, inside)
    for distortion in (1e-4, 1e-3, 0.01, 0.1, 0.5):
        assert found.rate(distortion) == pytest.approx(true.rate(distortion), rel=0.05, abs=5e-4)


def test_many_kinds_of_cut_tiles_are_counted_together():
    inside = np.tri(64, 64, dtype=bool)   # a stairway: every tile on the diagonal is a triangle
    boxes, others = shapes._box_tiles(*shapes._cells_and_runs(inside, (8, 8)), (8, 8))
    assert boxes == [([8, 8], 28)]
    assert others.sum() == 8
    comb = np.arange(200) % 101 < np.repeat(np.arange(40), 5)[:200]   # runs of all lengths
    boxes, _ = shapes._box_tiles(*shapes._cells_and_runs(comb, (37,)), (37,))
    assert len(boxes) <= 3
    assert region_spectrum(Autoregressive(1.0, 0.5), comb, 37).size == pytest.approx(comb.sum(), rel=1e-14)


REFUSED = [
    (lambda: region_spectrum(recursion(0.5, 2), np.zeros((4, 4), bool)), "inside must be a boolean array of 2 axes, true"),
    (lambda: region_spectrum(recursion(0.5, 2), np.ones((4, 4))), "inside must be a boolean array.*got float64"),
    (lambda: region_spectrum(recursion(0.5, 2), np.ones(4, bool)), r"inside must be a boolean array.*of shape \(4,\)"),
]


@pytest.mark.parametrize(("nonsense", "complaint"), REFUSED)
def test_nonsense_is_refused(nonsense, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        nonsense()
