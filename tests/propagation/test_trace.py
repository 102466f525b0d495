"""Traces: floors, growth, predictions beside measurements, badges; and the ready-made pipelines against plain code."""

import json
import math

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import (
    BitFlip,
    Bounded,
    Noise,
    Pipeline,
    Stage,
    derivatives,
    halos,
    histogram,
    kmeans,
    kuramoto_sivashinsky,
    power_spectrum,
    principal_components,
    trace,
    vorticity,
)
from workbench.propagation.error_sizes import norm, relative_error
from workbench.propagation.floor import measured_floor


def density(n=16, dtype=float):
    return np.exp(wb.synthetic.gaussian_field((n, n, n), seed=1).values.astype(float)).astype(dtype)


@pytest.mark.parametrize("share", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("make", [power_spectrum, derivatives])
def test_predictions_are_within_a_percent_of_bounded_errors_on_linear_stages(make, share):
    rho = density()
    pipeline = make(rho)
    eb = share * np.sqrt((rho**2).mean())
    found = trace(pipeline, rho, Bounded("input", wb.Absolute(eb), codec="prequantised"))
    for each in found.stages:
        linear = each.stage is None or next(s for s in pipeline.stages if s.name == each.stage).linear
        if linear and each.site != "spectrum":   # whose input, the power, is not linear in the error
            assert each.ratio == pytest.approx(1, abs=0.01), each.site
            assert each.cosine > 0.999
        assert each.holds in (True, None)
        assert each.floor < 1e-14
    assert found["input"].guaranteed == eb
    assert found.first_divergence == "input"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stages_without_a_derivative_are_predicted_by_differences(dtype):
    x = (1 + np.random.default_rng(0).random(4096)).astype(dtype)
    pipeline = Pipeline([("logarithm", np.log), ("both", lambda y: y * y), ("mean", lambda y: y.mean(dtype=np.float64))])
    found = trace(pipeline, x, Noise("input", 1e-3))
    assert [each.badge for each in found.stages[:3]] == ["linear"] * 3
    for each in found.stages[:3]:
        assert each.ratio == pytest.approx(1, abs=0.01)
    x[0] = 1e-3
    assert trace(pipeline, x, Bounded("input", wb.Absolute(9e-4)))["logarithm"].badge == "non-linear"


def test_errors_below_the_floor_are_called_rounding():
    x = np.random.default_rng(0).normal(size=4096)
    pipeline = Pipeline([("waves", np.fft.rfft), ("back", lambda w: np.fft.irfft(w, 4096))])
    found = trace(pipeline, x, BitFlip("input", bit=0, index=9))
    assert found.badges == {"input": "round-off-limited", "waves": "round-off-limited", "back": "round-off-limited"}
    assert found.first_divergence is None
    assert trace(pipeline, x, BitFlip("input", bit=40, index=9)).first_divergence == "input"


def test_the_floor_is_that_of_a_lower_precision():
    x = np.random.default_rng(0).normal(size=4096)
    pipeline = Pipeline([("waves", np.fft.fft), ("back", lambda w: np.fft.ifft(w).real)])
    floor = measured_floor(pipeline, pipeline.run(x.astype(np.float32)))
    exact = np.fft.ifft(np.fft.fft(x.astype(np.float32).astype(float))).real
    rounded = np.fft.ifft(np.fft.fft(x.astype(np.float32))).real
    assert relative_error(exact, rounded) < 2 * floor["back"] < 1e-6


def test_every_badge_is_given():
    pipeline = Pipeline([
        ("shifted", lambda x: x + 1),
        ("square", lambda y: y * y),
        Stage("large", lambda s: (s > 4.1).astype(int), categorical=True),
    ])
    x = np.linspace(0, 3, 16)
    assert trace(pipeline, x, BitFlip("input", bit="sign", index=10)).badges == {
        "input": "linear", "shifted": "linear", "square": "non-linear", "large": "discrete",
    }
    assert set(trace(pipeline, x, BitFlip("input", bit=62, index=7)).badges.values()) >= {"NaN"}
    assert trace(pipeline, x, BitFlip("input", bit=63, index=0))["shifted"].badge == "unchanged"


def test_a_nan_does_not_stay_where_it_began():
    def attention(x):
        mask = np.tril(np.ones((8, 8)))
        return (mask / mask.sum(axis=1, keepdims=True)) @ x   # a masked weight of 0 times NaN is NaN

    x = np.ones((8, 4))
    found = trace(Pipeline([("attention", attention)]), x, BitFlip("input", bit=62, index=(5, 0)))
    assert not np.isfinite(found.changed["attention"][:, 0]).any()
    assert found["attention"].badge == "NaN"
    assert found["attention"].not_finite == 8


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_profiles_follow_one_axis_in_any_unit(unit):
    x = np.full((6, 4), unit)
    pipeline = Pipeline([("sums", lambda x: np.cumsum(x, axis=0))])
    found = trace(pipeline, x, BitFlip("input", bit=51, index=(2, 1)))
    change = abs(float(found.changed["input"][2, 1]) / unit - 1)
    assert (found.profile("sums")[:2] == 0).all()
    assert (found.profile("sums")[2:] > 0).all()
    np.testing.assert_allclose(found.profile("input")[2], change / 2)
    with pytest.raises(wb.WorkbenchError, match="axis must be one of the 2 axes of 'sums'; got 2"):
        found.profile("sums", axis=2)


def test_a_trace_can_be_shown_plotted_and_written():
    rho = density(8)
    found = trace(power_spectrum(rho), rho, BitFlip("contrast", bit=52, index=3))
    described = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [each["site"] for each in described["stages"]] == ["contrast", "waves", "power", "spectrum"]
    assert described["notes"]["contrast"][0]["bit"] == 52
    assert "contrast" in found._repr_html_()
    assert found.plot().svg.startswith("<svg")
    assert found.difference("contrast").argmax() == 3
    assert found.growth == found["spectrum"].error / found["contrast"].error
    with pytest.raises(wb.WorkbenchError, match="the error reaches contrast, waves"):
        found["input"]
    with pytest.raises(wb.WorkbenchError, match="at least one perturbation"):
        trace(power_spectrum(rho), rho, [])


def test_several_perturbations_are_followed_together():
    rho = density(8)
    pipeline = power_spectrum(rho)
    found = trace(pipeline, rho, [Noise("input", 1e-3), BitFlip("waves", bit="sign", index=5)])
    assert found.stages[0].site == "input"
    assert found.stages[-1].error > 0


def test_the_spectrum_is_that_of_the_metrics():
    rho = density()
    for field in (wb.Field(rho, spacing=0.7), wb.Field(rho[:, :9, 0], spacing=(1.0, 2.0)), wb.Field(rho[:, 0, 0])):
        values = field.values
        expected = wb.metrics.field_spectrum(wb.Field(values / values.mean() - 1, spacing=field.spacing)).power
        np.testing.assert_allclose(power_spectrum(field)(field), expected, rtol=1e-10, atol=1e-25)


def test_derivatives_are_those_of_waves():
    n = 32
    x, y = np.meshgrid(*[2 * np.pi * np.arange(n) / n] * 2, indexing="ij")
    wave, h = np.sin(x) * np.cos(2 * y), 2 * np.pi / n
    run = derivatives(wb.Field(wave, spacing=h)).run(wave)
    np.testing.assert_allclose(run["gradient"][0], np.cos(x) * np.cos(2 * y) * np.sin(h) / h, atol=1e-12)
    np.testing.assert_allclose(run["laplacian"], wave * (2 * math.cos(h) + 2 * math.cos(2 * h) - 4) / h**2, atol=1e-10)
    np.testing.assert_allclose(run["steepness"], np.hypot(*run["gradient"]))
    flow = np.stack([-np.sin(y), np.sin(x)])
    turning = vorticity(flow, h).run(flow)["vorticity"]
    np.testing.assert_allclose(turning, (np.cos(x) + np.cos(y)) * np.sin(h) / h, atol=1e-12)
    solid = np.zeros((3, 8, 8, 8))
    solid[2] = np.sin(2 * np.pi * np.arange(8) / 8)[:, None, None]   # w(x): the curl has a component along y alone
    curl = vorticity(solid).run(solid)["vorticity"]
    assert abs(curl[[0, 2]]).max() == 0
    np.testing.assert_allclose(curl[1], -(np.roll(solid[2], -1, 0) - np.roll(solid[2], 1, 0)) / 2)


def test_complex_velocities_keep_their_type():
    flow = np.full((2, 8, 8), 1 + 2j, np.complex64)
    assert vorticity(flow).run(flow)["vorticity"].dtype == np.complex64


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i1", "u8", "?"])
def test_norms_are_those_of_double_precision_for_numbers_of_any_type(dtype):
    values = (10 * np.random.default_rng(1).random(99)).astype(dtype)
    assert norm(values) == pytest.approx(np.linalg.norm(values.astype(np.complex128)), rel=1e-14)


@pytest.mark.parametrize("exponent", [-1060, -1030, 500, 1000])
def test_the_size_of_complex_arrays_is_a_number_whatever_their_unit(exponent):
    size = norm(np.array([3 + 4j, 12 + 0j]) * 2.0**exponent)
    assert size == pytest.approx(13 * 2.0**exponent, rel=1e-3)


def test_halos_are_those_of_friends_of_friends():
    snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    pipeline = halos(snapshot, min_members=10)
    run = pipeline.run(snapshot)
    groups = wb.friends_of_friends(snapshot)
    np.testing.assert_array_equal(run["groups"], groups.labels)
    assert run["mass_function"].sum() == groups.count(min_members=10)
    kept = trace(pipeline, snapshot, Bounded("input", wb.Absolute(0.05), keep=wb.KeepClusters(0.2)))
    assert kept["groups"].badge == "unchanged"
    assert trace(pipeline, snapshot, Bounded("input", wb.Absolute(0.05)))["groups"].badge == "discrete"


def test_histograms_and_components_are_those_of_numpy():
    values = np.random.default_rng(0).normal(size=(40, 5)) * [5, 4, 3, 2, 1]
    counts = histogram(values, bins=7)
    np.testing.assert_array_equal(counts(values), np.histogram(values, 7)[0])
    found = principal_components(values).run(values)
    np.testing.assert_allclose(found["variances"], np.linalg.svd(values - values.mean(axis=0))[1] ** 2 / 39)
    np.testing.assert_allclose(found["covariance"] @ found["axes"][0], found["variances"][0] * found["axes"][0])


def test_kmeans_of_integers_has_centres_between_them():
    points = np.array([[0, 0], [1, 1], [100, 100], [101, 101]], np.int8)
    run = kmeans(points, clusters=2, rounds=2).run(points)
    assert sorted(run["centres 2"][:, 0].tolist()) == [0.5, 100.5]
    assert run["labels"][0] == run["labels"][1] != run["labels"][2] == run["labels"][3]


def test_kmeans_finds_separate_clusters_and_outlives_a_fault():
    random = np.random.default_rng(0)
    centres = np.array([[0, 0], [10, 0], [0, 10], [10, 10]])
    points = (centres[:, None] + random.normal(size=(4, 50, 2))).reshape(-1, 2)
    pipeline = kmeans(points, clusters=4, rounds=4)
    labels = pipeline(points).reshape(4, 50)
    assert (labels == labels[:, :1]).all()
    assert len(set(labels[:, 0])) == 4
    found = trace(pipeline, points, BitFlip("labels 1", bit=0, index=7))
    assert found["labels 1"].changed == 1
    assert found["centres 1"].error > 0
    assert found["labels"].badge == "unchanged"


def test_errors_grow_in_a_chaotic_equation_as_its_exponent_says():
    start = np.cos(np.arange(64) * 2 * np.pi / 64) * (1 + np.sin(np.arange(64) * 2 * np.pi / 64))
    settled = kuramoto_sivashinsky(time=400.0, snapshots=1)(start)
    pipeline = kuramoto_sivashinsky(time=400.0, snapshots=8)
    found = trace(pipeline, settled, Noise("input", 1e-10))
    assert [each.site for each in found.stages][-1] == "t=400"
    exponent = math.log(found["t=400"].error / found["t=100"].error) / 300
    assert 0.02 < exponent < 0.09   # 0.048 in the long run
    assert found["t=50"].badge == "linear"
    assert found["t=400"].floor > 100 * found["t=50"].floor   # rounding grows as well


@pytest.mark.parametrize("bad", [
    lambda: power_spectrum(np.ones((2, 2, 2, 2))),
    lambda: power_spectrum(np.ones((1, 1))),
    lambda: vorticity(np.ones((3, 4, 4))),
    lambda: histogram(np.ones(3)),
    lambda: kmeans(np.ones(3)),
    lambda: kmeans(np.full((3, 2), "word"), clusters=1),
    lambda: kmeans(np.ones((3, 2), complex), clusters=1),
    lambda: vorticity(None),
    lambda: histogram(np.full(3, np.nan)),
    lambda: kmeans(np.array([[0.0, np.nan], [1.0, 2.0]]), clusters=1),
    lambda: kmeans(np.array([[0.0, 1e200], [1.0, 2.0]]), clusters=1),
    lambda: kmeans(np.ones((3, 2)), clusters=4),
    lambda: principal_components(np.ones((1, 2))),
    lambda: kuramoto_sivashinsky(points=4),
])
def test_unfit_data_are_refused(bad):
    with pytest.raises(wb.WorkbenchError):
        bad()


def test_the_guaranteed_limits_are_relative_errors_and_drawn():
    waves = wb.synthetic.gaussian_field((16, 16), seed=1)
    pipeline = wb.propagation.derivatives(waves)
    found = wb.propagation.trace(pipeline, waves, wb.propagation.Bounded("input", wb.Relative(1e-3), codec="prequantised"))
    for each in found.stages:
        size = np.sqrt(np.mean(np.asarray(found.original[each.site], float) ** 2))
        assert found.limits[each.site] == pytest.approx(each.guaranteed / size)
        assert each.error <= found.limits[each.site]
    (drawn,) = [part for part in found.plot().parts if part.name == "guaranteed limit"]
    assert drawn.y.tolist() == list(found.limits.values())


def test_the_chart_of_many_sites_names_the_last_and_some_others():
    names = [f"layers.{number}.feed_forward" for number in range(30)]
    pipeline = wb.propagation.Pipeline([(name, lambda x: x + 1) for name in names])
    chart = wb.propagation.trace(pipeline, np.arange(4.0), wb.propagation.Noise("input", 0.1)).plot()
    assert len(chart.x.names) <= 12
    assert chart.x.names[-1] == (31.0, "layers.29.fee…")
