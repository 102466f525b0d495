"""A trial is what `wb.compress` and `wb.compare` say; its spectra are those of the metrics; nothing is swallowed."""

import dataclasses

import numpy as np
import pytest

import workbench as wb
from lab.bounds_panel.samples import ALL, PARTICLES, quiet, sample
from workbench.bounds.run import TIMES
from workbench.lab.bounds_panel import BoundsState, code, spectra_of, try_bound
from workbench.lab.bounds_panel import trial as trials

WITHOUT_SPECTRUM = {"nothing", "one point"}


def begun(name, **changes):
    data = sample(name)
    state = dataclasses.replace(BoundsState.for_(data), **changes)
    return data, state, try_bound(data, state, quiet)


def values(data):
    return data.positions if isinstance(data, wb.Particles) else data.values


@pytest.mark.parametrize("name", ALL)
def test_a_trial_is_the_row_of_a_sweep(name):
    data, state, trial = begun(name)
    (run,) = wb.sweep(data, state.chosen, state.bound, cache=False)
    assert trial.run.error is None
    assert trial.run.label == run.label
    same = {name: figure for name, figure in run.figures.items() if name not in TIMES}
    found = {name: figure for name, figure in trial.run.figures.items() if name not in TIMES}
    assert repr(found) == repr(same)   # repr: NaN is NaN
    assert trial.nbytes >= trial.archive.nbytes + values(trial.decoded).nbytes


@pytest.mark.parametrize(("name", "order"), [*((name, "keep") for name in ALL), *((name, "free") for name in PARTICLES)])
def test_the_code_does_what_is_shown(name, order):
    data, state, trial = begun(name, order=order)
    made = {"snapshot": data}
    exec(code(state, "snapshot"), made)
    assert made["archive"].nbytes == trial.archive.nbytes
    assert values(made["decoded"]).tobytes() == values(trial.decoded).tobytes()
    assert made["report"].max_error == trial.run["max_error"]


def test_the_code_names_options_and_bounds():
    state = BoundsState(wb.codecs.get("pcodec", level=3), "pointwise", 0.25)
    made = {"line": sample("line")}
    exec(code(state, "line"), made)
    assert made["archive"].codec == state.chosen
    assert made["archive"].certificate["values"].bound == wb.PointwiseRelative(0.25)


@pytest.mark.parametrize("name", ["plane", "coast", "web", "cloud"])
@pytest.mark.parametrize("kind", ["absolute", "relative", "pointwise"])
def test_errors_are_sorted_in_units_of_what_is_allowed(name, kind):
    data = sample(name)
    state = BoundsState.for_(data).with_kind(kind, data)
    state = dataclasses.replace(state, codec="prequantised", order="keep")
    trial = try_bound(data, state, quiet)
    there = np.isfinite(values(data)) if name != "coast" else data.valid
    original = values(data)[there].astype(float)
    error = values(trial.decoded)[there] - original
    if isinstance(data, wb.Particles) and data.box is not None:
        error -= np.round(error / data.box[0]) * data.box[0]
    with np.errstate(invalid="ignore"):
        allowed = trial.limit.value * (np.abs(original) if kind == "pointwise" else np.ones(original.shape))
        scaled = (error / allowed)[allowed > 0]
    expected = np.histogram(scaled, 64, (-1, 1))[0]
    found = trial.histogram
    assert found.counts.sum() + found.below + found.above == scaled.size
    assert np.abs(found.counts - expected).sum() <= 0.002 * scaled.size + 2   # a value on an edge


def test_a_bound_that_comes_to_zero_has_no_errors_to_sort():
    _, _, trial = begun("constant", kind="relative", eb=0.1)
    assert trial.limit.value == 0
    assert trial.histogram is None


@pytest.mark.parametrize("name", ALL)
def test_spectra_are_those_of_the_metrics_or_a_reason(name):
    data, _, trial = begun(name)
    found = spectra_of(data, trial, quiet)
    if name in WITHOUT_SPECTRUM:
        assert found.why_not
        assert not len(found.k)
        return
    report = wb.compare(data, trial.decoded)
    if len(report.curves["spectrum_k"]) <= trials.MOST_SHELLS:
        assert found.k.tolist() == report.curves["spectrum_k"].tolist()
        assert found.ratio == pytest.approx(report.curves["spectrum_ratio"], rel=1e-12)
    assert len(found.k) == len(found.ratio) <= trials.MOST_SHELLS
    assert found.why_not == ""
    assert found.nbytes > found.k.nbytes


def test_a_long_line_has_its_shells_in_bins_of_all_their_power():
    data, _, trial = begun("line")
    report, found = wb.compare(data, trial.decoded), spectra_of(data, trial, quiet)
    k, power, left = (report.curves[f"spectrum_{name}"] for name in ("k", "original", "decoded"))
    starts = [*np.searchsorted(k, found.k[:50]), 50]
    assert found.ratio[:20] == pytest.approx((left / power)[:20])   # where bins are narrower than shells
    assert starts[0] == 0
    middle = (found.k[-1] + found.k[-2]) / 2
    last = k > middle
    assert found.ratio[-1] == pytest.approx(left[last].sum() / power[last].sum(), rel=0.3)


def test_the_spectrum_of_the_original_is_computed_once(monkeypatch):
    data = wb.synthetic.gaussian_field((16, 16), seed=9)
    seen, real = [], trials.field_spectrum
    monkeypatch.setattr(trials, "field_spectrum", lambda field: seen.append(field) or real(field))
    for eb in (0.1, 0.01):
        spectra_of(data, try_bound(data, BoundsState("prequantised", eb=eb), quiet), quiet)
    assert len(seen) == 3


def test_what_a_codec_says_against_it_is_a_sentence():
    data = sample("line")
    failed = try_bound(data, BoundsState("lattice"), quiet)
    assert "lattice is for particles" in failed.run.error
    assert failed.nbytes > 0
    assert "lattice is for particles" in spectra_of(data, failed, quiet).why_not
    with pytest.raises(wb.WorkbenchError, match=r"lattice, absolute 0.001 failed: lattice is for particles"):
        _ = failed.decoded


class Stop(Exception):
    pass


def test_whoever_cancels_is_let_pass():
    def stop(share, text):
        raise Stop

    data = sample("plane")
    with pytest.raises(Stop):
        try_bound(data, BoundsState.for_(data), stop)
    trial = try_bound(data, BoundsState.for_(data), quiet)
    with pytest.raises(Stop):
        spectra_of(data, trial, stop)


def test_a_sentence_of_whoever_cancels_is_not_taken_for_the_codecs():
    def stop(share, text):
        raise wb.WorkbenchError("enough")

    with pytest.raises(wb.WorkbenchError, match="enough"):
        try_bound(sample("plane"), BoundsState("pcodec"), stop)
