"""What is computed is what the library says, and can be cancelled."""

import dataclasses

import numpy as np
import pytest

import workbench as wb
from lab.limits_panel.samples import ALL, results, sample
from workbench.lab.limits_panel import LimitsState, theory
from workbench.lab.memory import size_of
from workbench.progress import Cancelled


@pytest.mark.long_with("two")
@pytest.mark.parametrize("name", ["plane", "two"])
def test_the_figures_are_those_of_the_library(name):
    eb = LimitsState.for_(sample(name)).eb
    found, limits = results(name), wb.rate_distortion(sample(name))
    figures, fixed, tiled = found["figures"], found["fixed length"], limits.tiled(4)
    distortion = eb**2 / 3
    assert figures.distortion == distortion
    assert figures.rate == pytest.approx(limits.rate(distortion), rel=1e-12)
    assert (figures.low, figures.high) == pytest.approx(limits.interval(distortion), rel=1e-12)
    assert figures.tiled - figures.rate == pytest.approx(limits.price_of_tiles(4, distortion), abs=1e-12)
    assert figures.pooled == pytest.approx(limits.price_of_one_model(distortion), abs=1e-12)
    assert figures.pointwise == pytest.approx(limits.pointwise(eb), rel=1e-12)
    assert fixed.converse == pytest.approx(tiled.converse(distortion, 0.01, per="tile"), rel=1e-9)
    assert fixed.achievable == pytest.approx(tiled.achievable(distortion, 0.01, per="tile"), rel=1e-9)
    assert fixed.normal == pytest.approx(tiled.normal_approximation(distortion, 0.01, per="tile"), rel=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_curves_are_in_their_order(name):
    found = results(name)
    curves, tiled, band = found["curves"], found["tiled"], found["band"]
    assert (np.diff(curves.rate) < 0).all()
    assert (curves.low <= curves.rate).all()
    assert (curves.rate <= curves.high).all()
    assert (curves.rate <= curves.pooled + 1e-12).all()
    assert (curves.rate <= tiled.rate + 1e-9).all()
    assert (band.converse <= band.achievable).all()
    assert all(size_of(found[stage]) > 0 for stage in ("model", "curves", "news", "tiled", "band"))


def test_without_tiles_nothing_is_computed_twice():
    found = results("plane", tile=None)
    assert found["tiled"].limits is found["model"].limits
    assert found["tiled"].rate is found["curves"].rate


def test_a_radial_spectrum_keeps_the_variance():
    fit = results("two")["model"].limits.source.fits[0]
    found = theory.radial(0, fit)
    weights = fit.seen.multiplicity
    frequency = np.sqrt(sum(along**2 for along in fit.seen.frequencies))[weights > 0]
    bins = np.geomspace(found.frequency[0] * 0.5, 1, 4)
    rings = np.histogram(frequency, bins=bins, weights=weights[weights > 0])[0]
    assert rings.sum() == weights.sum()
    assert (np.diff(found.frequency) > 0).all()
    total = float(np.sum(weights * fit.seen.power) / weights.sum())
    assert found.measured.min() <= total <= found.measured.max()


def test_a_white_region_has_a_flat_spectrum_of_its_variance():
    field = wb.Field(3.0 * np.random.default_rng(1).normal(size=(128, 128)))
    (found,) = theory.fit_model(field, LimitsState(0.1, regions=1), lambda share, text: None).spectra
    assert found.fitted == pytest.approx(np.full(len(found.fitted), 9.0), rel=0.1)
    assert np.median(found.measured) == pytest.approx(9.0, rel=0.1)


def test_shares_of_regions_are_of_valid_values():
    model = results("coast")["model"]
    assert sum(model.shares) == pytest.approx(1.0)
    assert model.limits.source.size == int(sample("coast").valid.sum())


SLOW = {
    "fixed length": lambda found, progress: theory.fixed_length(found["tiled"], LimitsState(0.1), progress),
    "band": lambda found, progress: theory.band(found["curves"], found["tiled"], LimitsState(0.1), progress),
    "news": lambda found, progress: theory.news(found["model"], progress),
}


@pytest.mark.parametrize("stage", SLOW)
def test_slow_work_stops_when_nobody_waits(stage):
    calls = []

    def progress(share, text):
        calls.append(share)
        raise Cancelled

    with pytest.raises(Cancelled):
        SLOW[stage](results("plane"), progress)
    assert len(calls) == 1


def test_a_rarer_failure_costs_more():
    found, state = results("plane"), LimitsState(0.1)
    usual, rare = (
        theory.fixed_length(found["tiled"], dataclasses.replace(state, eps=eps), lambda share, text: None)
        for eps in (0.1, 1e-6)
    )
    assert usual.converse < rare.converse
    assert usual.achievable < rare.achievable
    assert usual.normal < rare.normal


def test_constant_regions_have_a_bound_of_0_at_any_distortion():
    field = wb.Field(np.repeat([0.0, 1.0], 32) * np.ones((16, 1)))
    state = LimitsState.for_(field)
    model = theory.fit_model(field, state, nothing)
    found = theory.curves(model, nothing)
    tiled = theory.tiled(model, found, dataclasses.replace(state, tile=4), nothing)
    band = theory.band(found, tiled, state, nothing)
    for rates in (found.rate, found.pooled, tiled.rate, band.converse, band.achievable):
        assert (rates == 0).all()
    assert theory.figures(model, tiled, state).rate == 0


def nothing(share, text):
    """Progress that nobody looks at."""
