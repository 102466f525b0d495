"""Spectra of boxes and tiles: against matrices written down, closed forms, and the tables of the theory."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag, toeplitz
from scipy.stats import chi2

from workbench.errors import WorkbenchError
from workbench.limits import axis, blocks, converse
from workbench.limits.achievability import achievable
from workbench.limits.blocks import (
    block_spectrum,
    chunks,
    dense_spectrum,
    lattice_spectrum,
    mismatched_dispersion,
    per_tile_excess,
    product_spectrum,
)
from workbench.limits.correlation import Autoregressive, Even, Matern, Sampled
from workbench.limits.spectrum import LOG2E, Spectrum

CORRELATED = -math.log2(1 - 0.95**2)   # bits that a neighbour along an axis says, twice, at rho = .95
RHOS = st.floats(-0.999, 0.999)


def printed(value, digits):
    return pytest.approx(value, abs=0.5000001 * 10**-digits)


def recursion(rho, dimensions, variance=1.0, nugget=0.0):
    return Autoregressive(variance, (rho,) * dimensions, nugget)


def log_determinant(spectrum):
    return float(np.log2(spectrum.values) @ spectrum.counts)


def covariance(model, points):
    """The covariance matrix of these points, one pair at a time."""
    matrix = np.array([[float(model.at(*np.abs(np.subtract(one, other)))) for other in points] for one in points])
    return matrix + model.nugget * np.eye(len(points))


def assert_same(found, expected, rel=1e-11):
    """Two spectra that are grouped differently: all that is asked of a spectrum."""
    assert found.size == pytest.approx(expected.size, rel=1e-12)
    assert found.variance == pytest.approx(expected.variance, rel=rel)
    assert log_determinant(found) == pytest.approx(log_determinant(expected), rel=rel, abs=1e-9)
    for share in (1e-6, 0.01, 0.1, 0.5, 0.9):
        distortion = share * expected.variance
        assert found.rate(distortion) == pytest.approx(expected.rate(distortion), rel=1e-9, abs=1e-12)
        assert found.dispersion(distortion) == pytest.approx(expected.dispersion(distortion), rel=1e-8)


# --- one axis


@given(st.integers(1, 60), RHOS | st.sampled_from([0.0, 0.9999999]))
def test_a_recursion_has_the_eigenvalues_of_its_matrix(length, rho):
    found = block_spectrum(Autoregressive(1.0, rho), length)
    assert found.values == pytest.approx(np.linalg.eigvalsh(toeplitz(rho ** np.arange(length))), rel=1e-9, abs=1e-12)
    assert log_determinant(found) == pytest.approx((length - 1) * math.log2((1 - rho) * (1 + rho)), rel=1e-9, abs=1e-12)
    assert found.variance == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("rho", [0.0, 1e-12, 0.5, -0.95, 0.9999, 1 - 1e-12])
@pytest.mark.parametrize("length", [1, 2, 10, 1001, 300_000])
def test_determinant_and_trace_are_exact_at_any_length(length, rho):
    found = block_spectrum(Autoregressive(1.0, rho), length)
    assert log_determinant(found) == pytest.approx((length - 1) * math.log2((1 - rho) * (1 + rho)), rel=1e-9, abs=1e-9)
    assert found.variance == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("ends", [1, 2])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.99, 0.999999])
def test_the_frequencies_are_roots_and_none_is_missed(rho, ends):
    frequencies = axis.sine_frequencies(50, rho, ends)
    residue = np.exp(51j * frequencies) * (1 - rho * np.exp(-1j * frequencies)) ** ends
    assert np.abs(residue.imag).max() < 1e-12
    assert (np.diff(frequencies) > 0).all()
    assert frequencies[0] > 0
    assert frequencies[-1] < np.pi


@pytest.mark.parametrize("length", [1, 2, 3, 8, 33])
def test_mirrored_halves_have_the_eigenvectors_of_the_whole(length):
    column = Matern(1.0, 4.0, 1.5).along(0, length)
    values, vectors = axis._toeplitz_eigenvectors(column)
    assert np.allclose(toeplitz(column) @ vectors, vectors * values, atol=1e-13)
    assert np.allclose(vectors.T @ vectors, np.eye(length), atol=1e-13)
    assert np.array_equal(values, np.sort(values))
    assert np.allclose(axis._toeplitz_variances(column.tobytes()), values, atol=1e-14)


def test_a_line_of_any_covariance_is_exact():
    for model in (Matern(2.0, 5.0, 1.3, nugget=0.2), Sampled([1.0, 0.5, 0.2, 0.05], nugget=0.01)):
        assert_same(block_spectrum(model, 70), dense_spectrum(model, 70))


# --- boxes


@given(st.lists(RHOS, min_size=1, max_size=3), st.data())
@settings(max_examples=40)
def test_a_separable_box_with_a_nugget_has_the_eigenvalues_of_its_matrix(rhos, data):
    shape = tuple(data.draw(st.integers(1, 6)) for _ in rhos)
    model = Autoregressive(3.0, tuple(rhos), nugget=data.draw(st.sampled_from([0.0, 0.1, 5.0])))
    exact = np.linalg.eigvalsh(covariance(model, list(np.ndindex(shape))))
    assert block_spectrum(model, shape).values == pytest.approx(exact, rel=1e-6, abs=1e-12)
    assert dense_spectrum(model, shape).values == pytest.approx(exact, rel=1e-6, abs=1e-12)


GENERAL = [
    (Matern(2.0, (3.0, 5.0), 1.5, nugget=0.1), (7, 10)),
    (Matern(2.0, (30.0, 2.0), 0.5), (12, 5)),
    (Matern(1.0, (2.0, 3.0, 4.0), 0.8, nugget=0.01), (4, 5, 3)),
    (Matern(1.0, (0.4,) * 4, 2.5), (3, 2, 3, 4)),
    (Sampled(np.exp(-np.hypot(*np.ogrid[:5, :4]) / 2), nugget=0.3), (9, 6)),
]


@pytest.mark.parametrize(("model", "shape"), GENERAL)
def test_a_general_box_has_the_diagonal_of_its_matrix_in_the_basis_of_its_axes(model, shape):
    bases = [np.linalg.eigh(toeplitz(model.along(k, length)))[1] for k, length in enumerate(shape)]
    basis = bases[0]
    for other in bases[1:]:
        basis = np.kron(basis, other)
    diagonal = np.diag(basis.T @ covariance(model, list(np.ndindex(shape))) @ basis)
    assert product_spectrum(model, shape).values == pytest.approx(np.sort(diagonal), rel=1e-9)


@pytest.mark.parametrize(("model", "shape"), GENERAL[:4])
def test_a_general_box_costs_no_less_than_its_eigenvalues_and_little_more(model, shape):
    seen, true = product_spectrum(model, shape), dense_spectrum(model, shape)
    assert block_spectrum(model, shape).values == pytest.approx(true.values, rel=1e-9)
    assert seen.variance == pytest.approx(model.variance, rel=1e-12)
    assert true.variance == pytest.approx(model.variance, rel=1e-12)
    for distortion in model.variance * np.array([0.001, 0.01, 0.1, 0.3, 0.7]):
        excess = seen.rate(distortion) - true.rate(distortion)
        assert -1e-9 <= excess < 0.06


LARGE = [
    (Matern(1.0, (8.0, 8.0), 2.5), (40, 40)), (Matern(1.0, (10.0, 6.0), 1.5), (33, 34)),
    (Matern(1.0, (4.0,) * 3, 2.5), (11,) * 3), (Matern(1.0, (3.0, 12.0), 0.5), (60, 20)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("model", "shape"), LARGE, ids=str)
def test_a_large_general_box_is_nearly_that_of_its_eigenvalues_and_its_converse_is_one(model, shape):
    seen, true, plain = block_spectrum(model, shape), dense_spectrum(model, shape), product_spectrum(model, shape)
    assert seen.variance == pytest.approx(model.variance, rel=1e-12)
    for distortion in model.variance * np.array([1e-6, 1e-4, 0.001, 0.01, 0.1, 0.3]):
        excess, before = (each.rate(distortion) - true.rate(distortion) for each in (seen, plain))
        assert abs(excess) < 0.006
        assert abs(excess) <= max(0.5 * before, 0.001)
        assert excess <= seen.slack + 1e-4
    assert converse.converse(seen, 1e-4, 0.01) <= achievable(true, 1e-4, 0.01)


@pytest.mark.long
def test_lags_in_slabs_and_out_of_reach_change_nothing(monkeypatch):
    model, shape = Matern(1.0, (0.3, 0.4, 0.2), 1.5), (60, 40, 50)
    assert max(model.reach(k, length) for k, length in enumerate(shape)) < 15
    whole = product_spectrum(model, shape)
    monkeypatch.setattr(blocks, "SLAB", 1)
    assert product_spectrum(model, shape).values == pytest.approx(whole.values, rel=1e-11)
    monkeypatch.setattr(Matern, "reach", lambda self, axis, length: length)
    axis._toeplitz_modes.cache_clear()
    assert product_spectrum(model, shape).values == pytest.approx(whole.values, rel=1e-11)
    axis._toeplitz_modes.cache_clear()


@pytest.mark.parametrize("model", [recursion(0.95, 3, nugget=1e-4), Matern(1.0, (9.0, 6.0, 12.0), 1.5, 1e-4)], ids=str)
def test_huge_boxes_have_nearly_equal_modes_made_one(model, monkeypatch):
    shape = (90, 80, 70)
    exact = block_spectrum(model, shape)
    monkeypatch.setattr(blocks, "MOST_VALUES", 2**15)
    grouped = block_spectrum(model, shape)
    assert grouped.values.size <= 2**15
    assert grouped.size == exact.size == math.prod(shape)
    assert grouped.variance == pytest.approx(1 + 1e-4, rel=1e-10)
    for distortion in (1e-5, 1e-3, 0.1, 0.5):
        assert 0 <= grouped.rate(distortion) - exact.rate(distortion) < 0.004
        assert grouped.dispersion(distortion) == pytest.approx(exact.dispersion(distortion), rel=0.02)


@pytest.mark.parametrize(
    ("model", "name"), [(Matern(1.0, 3.0, 1.5), "LONGEST"), (Autoregressive(1.0, 0.9), "LONGEST_KNOWN")], ids=str
)
def test_an_axis_that_is_too_long_is_pieces_and_costs_little_more(model, name, monkeypatch):
    exact = block_spectrum(model, 1000)
    monkeypatch.setattr(blocks, name, 150)
    pieces = block_spectrum(model, 1000)
    assert_same(pieces, Spectrum.joined([block_spectrum(model, length) for length in (143, 143, 143, 143, 142, 143, 143)]))
    assert pieces.size == 1000
    assert 0 < pieces.rate(0.001) - exact.rate(0.001) < 0.03


def test_a_table_that_is_no_covariance_is_refused():
    with pytest.raises(WorkbenchError, match="the correlation must be positive definite; got a variance of -"):
        block_spectrum(Sampled([1.0, 0.9]), 10)
    with pytest.raises(WorkbenchError, match="the correlation must be positive definite"):
        dense_spectrum(Sampled([[1.0, 0.9], [0.9, 0.9]]), (5, 5))


def test_rounding_does_not_make_variances_negative():
    smooth = Matern(1.0, (40.0, 40.0), 20.0)
    assert block_spectrum(smooth, (64, 64)).values.min() > 0
    assert block_spectrum(Matern(1.0, 400.0, 20.0), 256).values.min() > 0
    assert dense_spectrum(smooth, (20, 20)).values.min() > 0


def test_a_field_that_does_not_vary_has_no_variance():
    assert block_spectrum(recursion(0.5, 2, variance=0.0), (5, 5)).variance == 0
    assert block_spectrum(recursion(0.5, 2, variance=0.0, nugget=2.0), (5, 5)).values.tolist() == [2.0] * 25


# --- tiles


@given(st.integers(1, 500), st.none() | st.integers(1, 600))
def test_chunks_fill_an_axis(length, tile):
    pieces = chunks(length, tile)
    assert sum(size * number for size, number in pieces) == length
    assert sum(number for _, number in pieces) == (1 if tile is None else -(-length // tile))
    assert max(size for size, _ in pieces) == (length if tile is None else min(tile, length))


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 15)), min_size=1, max_size=4))
@settings(max_examples=40)
def test_tiles_have_every_point_once(sides):
    shape, tile = zip(*sides, strict=True)
    found = lattice_spectrum(recursion(0.7, len(shape)), shape, tile)
    assert found.size == math.prod(shape)
    assert found.variance == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("model", [recursion(0.9, 2, nugget=0.1), Matern(1.0, (4.0, 2.0), 0.5, nugget=0.1)], ids=str)
def test_tiles_are_boxes_that_know_nothing_of_each_other(model):
    found = lattice_spectrum(model, (10, 7), (4, 3))
    separate = [block_spectrum(model, sides) for sides in itertools.product((4, 4, 2), (3, 3, 1))]
    assert_same(found, Spectrum.joined(separate))
    if model.separable:
        cut = [
            [(i, j) for i in rows for j in columns]
            for rows in (range(4), range(4, 8), range(8, 10))
            for columns in (range(3), range(3, 6), range(6, 7))
        ]
        eigenvalues = np.linalg.eigvalsh(block_diag(*(covariance(model, points) for points in cut)))
        assert_same(found, Spectrum.of(eigenvalues))


def test_a_tile_beyond_the_axis_is_no_tile():
    model = recursion(0.9, 2)
    whole = lattice_spectrum(model, (12, 20))
    for tile in (20, 50, (12, 20), np.array([99, 99])):
        assert np.array_equal(lattice_spectrum(model, (12, 20), tile).values, whole.values)


@given(RHOS, st.integers(1, 40), st.integers(1, 40), st.floats(1e-6, 0.999), st.sampled_from([0.0, 0.05]))
def test_tiles_never_cost_less(rho, length, tile, share, nugget):
    for shape in ((length,), (length, length)):
        model = recursion(rho, len(shape), nugget=nugget)
        distortion = share * model.variance
        whole, tiled = lattice_spectrum(model, shape), lattice_spectrum(model, shape, tile)
        assert tiled.rate(distortion) >= whole.rate(distortion) - 1e-9


@given(st.floats(0.3, 3), st.floats(0.5, 20), st.integers(1, 12), st.integers(1, 12), st.floats(1e-4, 0.999))
@settings(max_examples=30)
def test_tiles_of_a_general_field_never_cost_less(smoothness, length, side, tile, share):
    model = Matern(1.0, (length, 2 * length), smoothness, nugget=1e-6)
    tiled = [
        dense_spectrum(model, (one, other))
        for (one, n), (other, m) in itertools.product(chunks(side, tile), chunks(side, tile))
        for _ in range(n * m)
    ]
    distortion, true = share * model.variance, Spectrum.joined(tiled)
    assert true.rate(distortion) >= dense_spectrum(model, (side, side)).rate(distortion) - 1e-9
    assert lattice_spectrum(model, (side, side), tile).rate(distortion) >= true.rate(distortion) - 1e-9


# rho, dimensions, bits per sample that tiles of side 4, 8, 16, 32, 64 and 256 cost at high resolution
TILE_LOSS = [
    (0.95, 1, (0.4198, 0.2099, 0.1050, 0.0525, 0.0262, 0.0066)),
    (0.95, 2, (0.8396, 0.4198, 0.2099, 0.1050, 0.0525, 0.0131)),
    (0.95, 3, (1.2594, 0.6297, 0.3149, 0.1574, 0.0787, 0.0197)),
    (0.99, 3, (2.1192, 1.0596, 0.5298, 0.2649, 0.1324, 0.0331)),
]


@pytest.mark.parametrize(("rho", "dimensions", "losses"), TILE_LOSS)
def test_tiles_cost_what_the_table_says_at_high_resolution(rho, dimensions, losses):
    model = recursion(rho, dimensions)
    distortion = 0.5 * ((1 - rho) / (1 + rho)) ** dimensions
    endless = 0.5 * math.log2((1 - rho**2) ** dimensions / distortion)
    for side, loss in zip((4, 8, 16, 32, 64, 256), losses, strict=True):
        if side**dimensions <= 2**20:   # otherwise nearly equal modes are made one
            found = block_spectrum(model, (side,) * dimensions).rate(distortion) - endless
            assert found == printed(loss, 4)
            assert found == pytest.approx(-dimensions / (2 * side) * math.log2(1 - rho**2), rel=1e-9)
    thin = (256,) + (4,) * (dimensions - 1)   # each axis has its own loss
    assert block_spectrum(model, thin).rate(distortion) - endless == pytest.approx(
        losses[-1] / dimensions + losses[0] * (dimensions - 1) / dimensions, abs=1e-4
    )


def test_lines_in_tiles_have_the_rates_of_the_table():
    for side, rate in ((4, 2.062508), (8, 1.852604), (16, 1.747653), (64, 1.668939), (256, 1.649261)):
        assert lattice_spectrum(recursion(0.95, 1), 1024, side).rate(0.01) == printed(rate, 6)


# distortion, and rate / dispersion in nats^2 of tiles of side 4, 8, 16, 32 and 64 at rho = .95
LOW_RATE = [
    (0.001, (2.4643, 0.4936), (2.0455, 0.4876), (1.8363, 0.4825), (1.7317, 0.4799), (1.6794, 0.4784)),
    (0.01, (1.0580, 0.2741), (0.7334, 0.2419), (0.5818, 0.2073), (0.5084, 0.1906), (0.4724, 0.1826)),
    (0.05, (0.4371, 0.2212), (0.2563, 0.1335), (0.1764, 0.0920), (0.1406, 0.0762), (0.1247, 0.0692)),
    (0.1, (0.2326, 0.1254), (0.1231, 0.0771), (0.0800, 0.0539), (0.0616, 0.0433), (0.0533, 0.0381)),
]


@pytest.mark.parametrize("row", LOW_RATE)
def test_planes_in_tiles_have_the_rates_and_dispersions_of_the_table(row):
    distortion, *tiles = row
    for side, (rate, dispersion) in zip((4, 8, 16, 32, 64), tiles, strict=True):
        found = lattice_spectrum(recursion(0.95, 2), (256, 256), side)
        assert found.rate(distortion) == printed(rate, 4)
        assert found.dispersion(distortion) / LOG2E**2 == printed(dispersion, 4)


def test_coding_tiles_apart_that_are_not_varies_more_as_the_table_says():
    for side, dispersion in ((4, 1.162567), (8, 0.698685), (16, 0.568602), (64, 0.513238), (256, 0.502644)):
        assert mismatched_dispersion(recursion(0.95, 1), 1024, side) / LOG2E**2 == printed(dispersion, 6)


def test_coding_one_tile_varies_as_a_field_does():
    for model in (recursion(0.9, 2), Matern(1.0, (3.0, 3.0), 1.5, nugget=0.1)):
        assert mismatched_dispersion(model, (6, 8), None) == pytest.approx(0.5 * LOG2E**2, rel=1e-9)
        assert mismatched_dispersion(model, (6, 8), 1) > 0.5 * LOG2E**2


def test_the_mismatched_dispersion_is_that_of_descriptions_of_simulated_fields():
    model, shape, tile = recursion(0.9, 2), (6, 6), (3, 2)
    points = list(np.ndindex(shape))
    matrix = covariance(model, points)
    owner = np.array([(i // 3) * 3 + j // 2 for i, j in points])
    inverse = np.linalg.inv(np.where(np.equal.outer(owner, owner), matrix, 0.0))
    samples = np.random.default_rng(1).multivariate_normal(np.zeros(36), matrix, 200_000, method="cholesky")
    lengths = 0.5 * LOG2E * np.einsum("ij,jk,ik->i", samples, inverse, samples)
    assert mismatched_dispersion(model, shape, tile) == pytest.approx(lengths.var() / 36, rel=0.02)


# tiles, samples in each, penalty in bits per sample if every tile must meet the distortion, and if the whole must
WHO_MUST = [(1000, 64, 0.47758, 0.00935), (4096, 512, 0.19579, 0.00164), (100, 4096, 0.05835, 0.00370)]


@pytest.mark.parametrize(("tiles", "samples", "each", "whole"), WHO_MUST)
def test_every_tile_meeting_the_distortion_costs_what_the_table_says(tiles, samples, each, whole):
    assert 0.5 * math.log2(chi2.isf(per_tile_excess(0.01, tiles), samples) / samples) == printed(each, 5)
    assert 0.5 * math.log2(chi2.isf(0.01, samples * tiles) / (samples * tiles)) == printed(whole, 5)


def test_the_chance_of_each_tile_is_exact_however_small():
    assert per_tile_excess(0.5, 1) == pytest.approx(0.5, rel=1e-15)
    assert per_tile_excess(1e-18, 10**6) == pytest.approx(1e-24, rel=1e-14)
    assert 1 - (1 - per_tile_excess(0.3, 7)) ** 7 == pytest.approx(0.3, rel=1e-14)


REFUSED = [
    (lambda: lattice_spectrum(recursion(0.5, 2), (4, 4), 0), "tile must be a whole number, at least 1; got 0"),
    (lambda: lattice_spectrum(recursion(0.5, 2), (4, 4), (2,)), r"tile must be one length, or one for each of 2 axes; got"),
    (lambda: lattice_spectrum(recursion(0.5, 2), (4, 4), 2.5), "tile must be a whole number"),
    (lambda: block_spectrum(recursion(0.5, 2), 16), "shape must have 2 axes, as the correlation has; got 16"),
    (lambda: block_spectrum(recursion(0.5, 1), 0), "each axis of shape must be a whole number, at least 1"),
    (lambda: dense_spectrum(recursion(0.5, 2), (64, 64)), "shape must have at most 2048 points for a matrix of all pairs"),
    (lambda: mismatched_dispersion(Matern(1.0, 50.0, 20.0), 40, 20), "must be invertible.*add a nugget"),
    (lambda: per_tile_excess(0.0, 4), "eps, the probability of exceeding the distortion, must lie in"),
    (lambda: per_tile_excess(0.01, 0), "tiles must be a whole number, at least 1; got 0"),
]


@pytest.mark.parametrize(("nonsense", "complaint"), REFUSED)
def test_nonsense_is_refused(nonsense, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        nonsense()


@pytest.mark.few(1)
@pytest.mark.parametrize(("lengths", "smoothness", "nugget", "shape", "directions"), [
    ((9.0, 3.0), 0.7, 0.0, (34, 36), ((0.6, 0.8), (-0.8, 0.6))),
    ((9.0, 3.0), 2.5, 1e-6, (34, 36), ((0.8, -0.6), (0.6, 0.8))),
    ((100.0, 1.0), 1.5, 1e-4, (44, 45), ((0.96, 0.28), (-0.28, 0.96))),
    ((4.0, 2.0, 2.0), 0.7, 0.01, (11, 10, 12), ((0.6, 0.8, 0.0), (-0.48, 0.36, 0.8), (0.64, -0.48, 0.6))),
])
def test_waves_of_either_sign_have_the_eigenvalues_of_structures_across_the_axes(
    lengths, smoothness, nugget, shape, directions
):
    across = Matern(1.0, lengths, smoothness, nugget, directions)
    true, found, even = dense_spectrum(across, shape), block_spectrum(across, shape), block_spectrum(Even(across), shape)
    assert found.size == pytest.approx(true.size)
    for distortion in (0.5, 0.1, 0.01, 1e-3, 1e-5):
        assert -0.005 < found.rate(distortion) - true.rate(distortion) < found.slack
    assert even.rate(1e-3) > true.rate(1e-3) + 0.04   # what a model without directions costs


def test_a_centred_table_has_the_spectrum_of_its_model():
    across = Matern(1.0, (3.0, 1.5), 1.0, 0.0, ((0.6, 0.8), (-0.8, 0.6)))
    fade = np.maximum(0, 1 - abs(np.arange(-24, 25)) / 25)
    lags = np.arange(-24, 25)
    table = Sampled(across.at(lags[:, None], lags) * np.multiply.outer(fade, fade), 1e-3, centred=True)
    true, found = dense_spectrum(table, (34, 36)), block_spectrum(table, (34, 36))
    for distortion in (0.3, 0.01, 1e-4):
        assert found.rate(distortion) == pytest.approx(true.rate(distortion), abs=found.slack)
