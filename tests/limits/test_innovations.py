"""Innovations against dense normal distributions, against theory, and on data with holes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from workbench.data.synthetic import Region, piecewise_field
from workbench.data.synthetic.regions import gauss_markov
from workbench.errors import WorkbenchError
from workbench.limits import innovations as module
from workbench.limits.correlation import Autoregressive, Correlation, Matern, Sampled
from workbench.limits.innovations import conditionals, default_neighbours, innovations


def dense(correlation: Correlation, shape: tuple[int, ...]) -> np.ndarray:
    places = np.indices(shape).reshape(len(shape), -1)
    apart = [axis[:, None] - axis for axis in places]
    return correlation.at(*apart) + correlation.nugget * np.eye(places.shape[1])


def exact_bits(values: np.ndarray, covariance: np.ndarray) -> float:
    return -float(multivariate_normal(np.zeros(values.size), covariance).logpdf(values.ravel())) / np.log(2)


def drawn(correlation: Correlation, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(int(np.prod(shape)))
    return (np.linalg.cholesky(dense(correlation, shape)) @ noise).reshape(shape)


def one_region(shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, np.int32)


@pytest.mark.parametrize(
    ("correlation", "shape"),
    [
        (Autoregressive(2.0, (0.9,)), (40,)),
        (Autoregressive(2.0, (-0.7,)), (40,)),
        (Autoregressive(2.0, (0.95, 0.6)), (9, 11)),
        (Autoregressive(0.5, (0.95, 0.95, 0.9)), (5, 6, 4)),
        (Autoregressive(1.0, (0.5, 0.3, 0.8, 0.0)), (3, 4, 3, 3)),
    ],
    ids=str,
)
def test_the_density_of_a_separable_recursion_on_a_box_is_exact(correlation, shape):
    values = drawn(correlation, shape)
    found = innovations(values, one_region(shape), [correlation], means=[0.0])
    assert found.total_bits == pytest.approx(exact_bits(values, dense(correlation, shape)), rel=1e-9)
    lorenzo = [step for step in default_neighbours(len(shape)) if min(step) >= -1 and max(step) <= 0]
    assert len(lorenzo) == 2 ** len(shape) - 1
    least = innovations(values, one_region(shape), [correlation], means=[0.0], neighbours=lorenzo)
    assert least.total_bits == pytest.approx(found.total_bits, rel=1e-9)


@pytest.mark.parametrize(
    ("correlation", "shape", "excess"),
    [
        (Matern(1.0, (8.0,), 1.5, nugget=0.01), (150,), 0.01),
        (Matern(1.0, (5.0, 3.0), 1.5, nugget=0.01), (12, 12), 0.005),
        (Matern(1.0, (5.0, 5.0), 2.5, nugget=1e-4), (12, 12), 0.03),
        (Matern(1.0, (4.0, 4.0, 4.0), 1.5, nugget=0.01), (7, 7, 7), 0.015),
        (Matern(1.0, (4.0, 4.0, 4.0), 2.5, nugget=1e-3), (7, 7, 7), 0.12),
        (Autoregressive(1.0, (0.9, 0.9), nugget=0.05), (12, 12), 0.01),
    ],
    ids=str,
)
def test_descriptions_are_hardly_longer_than_the_exact_one_on_average(correlation, shape, excess):
    root = np.linalg.cholesky(dense(correlation, shape))
    size = len(root)
    noise = np.random.default_rng(0).standard_normal((40, size))
    exact = 0.5 * size * np.log2(2 * np.pi) + np.log2(root.diagonal()).sum() + 0.5 * (noise**2).sum(axis=1) / np.log(2)
    fields = [(root @ each).reshape(shape) for each in noise]
    bits = [innovations(each, one_region(shape), [correlation], means=[0.0]).total_bits for each in fields]
    assert -0.002 < np.mean(bits - exact) / size < excess


def test_with_all_that_came_before_any_model_is_exact():
    shape, correlation = (3, 4), Matern(2.0, (2.0, 3.0), 1.5, nugget=0.1)
    everything = [(down, across) for down in range(-2, 1) for across in range(-3, 4) if (down, across) < (0, 0)]
    values = drawn(correlation, shape)
    found = innovations(values, one_region(shape), [correlation], means=[0.0], neighbours=everything)
    assert found.total_bits == pytest.approx(exact_bits(values, dense(correlation, shape)), rel=1e-9)


def test_each_value_has_the_conditional_normal_distribution_given_its_neighbours():
    correlation = Matern(1.0, (2.0, 3.0), 0.8, nugget=0.02)
    shape, offsets = (6, 7), default_neighbours(2)
    random = np.random.default_rng(3)
    values, labels = random.standard_normal(shape), random.integers(-1, 3, shape)
    found = innovations(values, labels, [correlation] * 3, means=[0.5, 0.0, -1.0])
    for place in np.ndindex(shape):
        if labels[place] < 0:
            assert np.isnan(found.bits[place])
            assert np.isnan(found.residuals[place])
            continue
        near = [tuple(np.add(place, step)) for step in offsets]
        near = [each for each in near if min(each) >= 0 and np.less(each, shape).all() and labels[each] == labels[place]]
        places = np.array([*near, place])
        apart = np.abs(places[:, None] - places)
        covariance = correlation.at(apart[..., 0], apart[..., 1]) + correlation.nugget * np.eye(len(places))
        inverse = np.linalg.inv(covariance)   # its last row is the conditional distribution of the last
        centred = np.array([values[each] for each in [*near, place]]) - [0.5, 0.0, -1.0][labels[place]]
        error = inverse[-1] @ centred / inverse[-1, -1]
        assert found.residuals[place] == pytest.approx(error * inverse[-1, -1] ** 0.5, rel=1e-9)
        density = np.exp(-0.5 * error**2 * inverse[-1, -1]) * np.sqrt(inverse[-1, -1] / (2 * np.pi))
        assert found.bits[place] == pytest.approx(-np.log2(density), rel=1e-9, abs=1e-9)


def test_the_plane_of_the_reference_needs_7_6573_bits_a_value_at_a_thousandth():
    model = Autoregressive(1.0, (0.95, 0.95))
    field = piecewise_field((1024, 1024), [Region(1, 0.95)], seed=0)
    found = innovations(field.values, one_region(field.shape), [model], means=[0.0])
    assert found.samples == 2**20
    assert found.description_length(1e-3) / 2**20 == pytest.approx(7.6573, abs=0.003)
    assert np.std(found.residuals) == pytest.approx(1, abs=0.004)
    for axis in (0, 1):   # white, up to chance
        ahead, behind = np.delete(found.residuals, 0, axis), np.delete(found.residuals, -1, axis)
        assert abs(np.mean(ahead * behind)) < 0.004


def test_the_ensemble_of_the_reference_needs_7_6577():
    length, rho = 1024, 0.95
    differential = 0.5 * np.log2(2 * np.pi * np.e) + (1 - 1 / length) * np.log2(1 - rho**2)
    assert differential - np.log2(2e-3) == pytest.approx(7.6577, abs=5e-5)
    random = np.random.Generator(np.random.Philox(1))
    bits = []
    for _ in range(20):
        values = gauss_markov(random, (64, 64), rho)
        found = innovations(values, one_region((64, 64)), [Autoregressive(1.0, (rho, rho))], means=[0.0])
        bits.append(found.description_length(1e-3))
    small = 0.5 * np.log2(2 * np.pi * np.e) + (1 - 1 / 64) * np.log2(1 - rho**2) - np.log2(2e-3)
    assert np.mean(bits) / 64**2 == pytest.approx(small, abs=0.012)   # three standard errors


def test_the_bound_counts_cubes_of_the_error_bound():
    values = np.array([0.3, -1.2, 0.7])
    found = innovations(values, one_region((3,)), [Autoregressive(1.0, (0.0,))], means=[0.0])
    expected = 0.5 * np.log2(2 * np.pi) + 0.5 * values**2 / np.log(2)
    assert np.allclose(found.bits, expected)
    assert found.description_length(0.25) == pytest.approx(expected.sum() + 3)
    for eb in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(WorkbenchError, match="eb must be a positive error bound"):
            found.description_length(eb)


def test_regions_know_nothing_of_each_other():
    correlations = [Matern(1.0, (4.0, 4.0), 1.5, nugget=0.01), Autoregressive(3.0, (0.8, 0.2))]
    random = np.random.default_rng(1)
    values = random.standard_normal((30, 40))
    labels = (random.random((30, 40)) < 0.3).astype(np.int8)
    found = innovations(values, labels, correlations, means=[0.0, 0.0])
    for region in (0, 1):
        alone = innovations(values, np.where(labels == region, 0, -1), [correlations[region]], means=[0.0])
        assert np.allclose(alone.bits[labels == region], found.bits[labels == region], rtol=1e-12)
        other = np.where(labels == region, values, 1e6)
        assert np.array_equal(innovations(other, labels, correlations, [0.0, 0.0]).bits[labels == region],
                              found.bits[labels == region])


def test_means_are_those_of_the_regions_when_not_given():
    values = np.random.default_rng(0).standard_normal((20, 20)).astype(np.float32) + 300
    labels = np.where(np.arange(20) < 7, 0, 1) * np.ones((20, 1), int)
    values[labels == 1] *= 2
    model = Autoregressive(1.0, (0.5, 0.5))
    means = [values[labels == region].astype(np.float64).mean() for region in (0, 1)]
    assert np.allclose(innovations(values, labels, [model] * 2).bits, innovations(values, labels, [model] * 2, means).bits)


def test_what_does_not_vary_costs_nothing_and_is_no_sample():
    values = np.random.default_rng(0).standard_normal((12, 12))
    labels = np.zeros((12, 12), int)
    values[:, :5], labels[:, :5] = 1e20, 1
    values[3, 7], labels[3, 7] = np.nan, -1
    found = innovations(values, labels, [Autoregressive(1.0, (0.0, 0.0)), Autoregressive(0.0, (0.0, 0.0))])
    assert found.samples == 12 * 7 - 1
    assert not found.bits[:, :5].any()
    assert not found.residuals[:, :5].any()
    assert np.isnan(found.bits[3, 7])
    with pytest.raises(WorkbenchError, match="region 0 has variance 0 and values from"):
        innovations(values, labels, [Autoregressive(0.0, (0.0, 0.0))] * 2)


def test_a_field_of_nothing_but_constants_has_a_description_of_no_length():
    found = innovations(np.full((4, 4), 7.0), one_region((4, 4)), [Autoregressive(0.0, (0.5, 0.5))])
    assert found.samples == 0
    assert found.total_bits == 0
    assert found.description_length(1e-3) == 0


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 300), st.integers(0, 2**32), st.data())
def test_what_is_visited_together_does_not_matter(shape, slab, seed, data):
    random = np.random.default_rng(seed)
    values, labels = random.standard_normal(shape), random.integers(-1, 2, shape)
    correlations = [Matern(1.0, [3.0] * len(shape), 1.5, nugget=0.1), Autoregressive(2.0, [0.6] * len(shape))]
    steps = default_neighbours(len(shape))
    chosen = data.draw(st.lists(st.sampled_from(steps), unique=True, max_size=5)) if data.draw(st.booleans()) else None
    at_once = innovations(values, labels, correlations, [0.0, 0.1], chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SLAB", slab)
        patch.setattr(module, "TOGETHER", 3)
        in_parts = innovations(values, labels, correlations, [0.0, 0.1], chosen)
    assert np.allclose(at_once.bits, in_parts.bits, rtol=1e-11, equal_nan=True)
    assert np.allclose(at_once.residuals, in_parts.residuals, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert np.array_equal(np.isfinite(at_once.bits), labels >= 0)


def test_very_smooth_models_without_noise_still_give_a_density():
    for shape in [(60,), (20, 20), (8, 8, 8)]:
        model = Matern(1.0, [30.0] * len(shape), 6.0)
        found = innovations(np.random.default_rng(0).standard_normal(shape), one_region(shape), [model], means=[0.0])
        assert np.isfinite(found.bits).all()
        weights, variances = conditionals(model, default_neighbours(len(shape)), np.array([0, 1, 2 ** 4 - 1]))
        assert np.isfinite(weights).all()
        assert (variances > 0).all()
        assert (variances <= model.variance).all()


def test_more_neighbours_never_make_a_value_less_certain():
    model = Matern(1.0, (4.0, 4.0), 1.5, nugget=0.01)
    steps = default_neighbours(2)
    patterns = 2 ** np.arange(len(steps) + 1) - 1   # the nearest, one after the other
    _, variances = conditionals(model, steps, patterns)
    assert variances[0] == pytest.approx(model.variance)
    assert (np.diff(variances) <= 1e-12).all()
    assert variances[-1] < 0.2 * model.variance


def test_neighbours_have_all_been_visited_and_contain_the_cube_behind():
    for dimensions, number in ((1, 4), (2, 18), (3, 28), (4, 44)):
        steps = default_neighbours(dimensions)
        assert len(steps) == len(set(steps)) == number
        assert all(step < (0,) * dimensions for step in steps)
        assert set(np.ndindex((2,) * dimensions)) - {(0,) * dimensions} <= {
            tuple(-each for each in step) for step in steps
        }


MODEL = Autoregressive(1.0, (0.5, 0.5))
WRONG = [
    ({"labels": np.zeros((2, 2), int)}, r"labels must be whole numbers in the shape of the field, \(3, 3\)"),
    ({"labels": np.zeros((3, 3))}, "got float64"),
    ({"labels": np.full((3, 3), 1)}, "correlations must be one for each region, 2; got 1"),
    ({"correlations": [Autoregressive(1.0, (0.5,))]}, "correlations must have 2 dimensions"),
    ({"values": np.full((3, 3), np.nan)}, "values must be finite in all regions"),
    ({"means": [1.0, 2.0]}, "means must be 1 finite numbers"),
    ({"means": [np.inf]}, "means must be 1 finite numbers"),
    ({"neighbours": [(0, 0)]}, "neighbours must be up to 62 different offsets of 2 whole numbers"),
    ({"neighbours": [(0, 1)]}, "with a negative first nonzero number"),
    ({"neighbours": [(-1, 0), (-1, 0)]}, "different"),
    ({"neighbours": [(-1,)]}, "offsets of 2"),
    ({"neighbours": [(-1.5, 0)]}, "each step of neighbours must be a whole number"),
]


@pytest.mark.parametrize(("changes", "complaint"), WRONG)
def test_what_does_not_fit_is_refused(changes, complaint):
    fitting = {"values": np.ones((3, 3)), "labels": np.zeros((3, 3), int), "correlations": [MODEL]}
    with pytest.raises(WorkbenchError, match=complaint):
        innovations(**{**fitting, **changes})


def test_a_measured_table_serves_as_a_model():
    model = Autoregressive(2.0, (0.7, 0.4))
    table = Sampled(model.at(*np.ogrid[:6, :6]))
    values = drawn(model, (10, 10))
    exact = innovations(values, one_region((10, 10)), [model], [0.0]).total_bits
    assert innovations(values, one_region((10, 10)), [table], [0.0]).total_bits == pytest.approx(exact, rel=1e-9)
