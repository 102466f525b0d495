"""What is shown: the same form whatever the data, the right numbers in it, and nothing made twice."""

import dataclasses

import numpy as np
import pytest

import workbench as wb
from lab.bounds_panel.samples import ALL, FIELDS, PARTICLES, quiet, sample
from workbench.bounds.run import Run
from workbench.charts.description import Series
from workbench.lab.bounds_panel import BoundsState, draw, spectra_of, try_bound
from workbench.lab.bounds_panel.number_texts import short
from workbench.lab.bounds_panel.plots import rate_distortion_chart
from workbench.lab.chart_part import ChartPart


def shown(name, runs=(), **changes):
    data = sample(name)
    state = dataclasses.replace(BoundsState.for_(data), **changes)
    trial = try_bound(data, state, quiet)
    return draw(data, state, trial, runs, spectra_of(data, trial, quiet))


@pytest.mark.parametrize("name", ALL)
def test_the_form_is_the_same_before_and_after(name):
    data = sample(name)
    state = BoundsState.for_(data)
    wrong = BoundsState("lattice")   # which fails for fields
    failed = draw(data, state, try_bound(data, wrong, quiet))
    before, after, finer = draw(data, state), shown(name), shown(name, eb=state.eb / 8)
    assert not before.charts.keys() - {"values"}   # a line has values before it is compressed
    assert name in PARTICLES or not failed.charts.keys() - {"values"}
    assert after.charts.keys() == finer.charts.keys()
    assert list(before.tables) == list(after.tables)
    assert after.tables["tried so far"].chosen == 0


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in ("cube", "four", "cloud"))) for name in ALL]
)
def test_every_chart_can_be_drawn_and_changed(name):
    before, after = shown(name), shown(name, eb=BoundsState.for_(sample(name)).eb / 8)
    assert "rate-distortion" in before.charts or name in ("constant", "nothing", "one point")
    for chart, element in before.charts.items():
        view = ChartPart(element)
        view.show(after.charts.get(chart, element))
        figure = view.plot.state
        assert figure.background_fill_alpha == figure.border_fill_alpha == 0
        assert figure.toolbar_location is None
        assert figure.tags[0]["about"].startswith(figure.tags[0]["name"])
        assert figure.sizing_mode == "stretch_width"
        ends = [figure.x_range.start, figure.x_range.end, figure.y_range.start, figure.y_range.end]
        assert np.isfinite(ends).all()
        view.close()


@pytest.mark.parametrize("name", [name for name in ALL if name != "line"])
def test_pictures_are_side_by_side_on_one_scale(name):
    original, decoded, error = shown(name).pictures
    assert original.pixels.shape == decoded.pixels.shape == error.pixels.shape
    assert original.window == decoded.window == error.window
    assert (original.low, original.high, original.logarithmic) == (decoded.low, decoded.high, decoded.logarithmic)
    assert error.low == -error.high < 0
    assert error.colours == "difference"


def test_a_line_is_drawn_as_curves():
    found = shown("line", window=(100.0, 200.0, 0, 1))
    assert found.pictures == ()
    (curve, _), (errors,) = (found.charts[name].of(Series) for name in ("values", "errors"))
    assert 99 <= len(curve.x) <= 102
    assert np.abs(errors.y).max() <= 1 + 1e-6


def test_errors_are_coloured_in_units_of_the_bound():
    data = sample("plane")
    state = BoundsState("prequantised", eb=0.1)
    trial = try_bound(data, state, quiet)
    error = draw(data, state, trial).pictures[2]
    expected = np.rint((trial.decoded.values.astype(float) - data.values) / 0.1 * 127)[::-1]
    assert (error.low, error.high, error.unit) == (-1, 1, "bounds")
    assert (error.pixels.astype(int) - 128 == expected).all()


def test_masked_and_missing_cells_are_empty_everywhere():
    data = sample("coast")
    found = shown("coast", index=3)
    empty = ~data.valid[3][::-1]
    assert empty.any()
    for picture in found.pictures:
        assert picture.empty
        assert ((picture.pixels == 0) == empty).all()


@pytest.mark.parametrize("name", PARTICLES)
def test_the_difference_of_particles_is_that_of_their_numbers(name):
    found = shown(name, codec="pcodec")   # exact
    original, decoded, difference = found.pictures
    assert (original.pixels == decoded.pixels).all()
    assert (difference.pixels == 128).all()


def test_what_did_not_change_is_the_same_object():
    data = sample("cube")
    state = BoundsState.for_(data)
    trial = try_bound(data, state, quiet)
    spectra = spectra_of(data, trial, quiet)
    one, other = draw(data, state, trial, (), spectra), draw(data, state, trial, (), spectra)
    assert all(a is b for a, b in zip(one.pictures, other.pictures, strict=True))
    assert all(one.charts[name] is other.charts[name] for name in one.charts)
    finer = dataclasses.replace(state, eb=state.eb / 2)
    later = draw(data, finer, try_bound(data, finer, quiet), (trial.run,), spectra)
    assert later.pictures[0] is one.pictures[0]
    assert later.pictures[1] is not one.pictures[1]
    assert later.charts["rate-distortion"] is not one.charts["rate-distortion"]


@pytest.mark.parametrize("name", ["plane", "web"])
def test_every_run_has_a_place_and_each_codec_its_own_mark(name):
    data = sample(name)
    start = BoundsState.for_(data)
    bounds = [wb.Absolute(start.eb * factor) for factor in (0.5, 2)]
    runs = wb.sweep(data, ["zfp", "sperr", "pcodec", "prequantised"], bounds).rows
    found = shown(name, runs)
    _, *lines, ring = found.charts["rate-distortion"].of(Series)
    drawn = [run for run in runs if run["max_error"] > 0]
    assert sum(len(line.x) for line in lines) == len(drawn) + 1
    assert len(ring.x) == 1
    assert ring.hollow
    assert len(lines) == len({(line.colour, line.marker) for line in lines}) == len({run.label for run in drawn}) + 1
    table = found.tables["tried so far"]
    assert len(table.rows) == len(runs) + 1
    assert table.rows[table.chosen][0] == start.codec


def test_a_run_that_was_measured_before_is_the_current_one():
    data = sample("plane")
    state = BoundsState.for_(data)
    (run,) = wb.sweep(data, state.chosen, state.bound)
    found = draw(data, state, try_bound(data, state, quiet), [run])
    assert len(found.tables["tried so far"].rows) == 1
    assert found.tables["tried so far"].chosen == 0


def test_no_runs_are_a_chart_too():
    chart = rate_distortion_chart(sample("plane"), [Run({"id": "a"}, "a", wb.Absolute(1), error="no")], None)
    assert not any(part.shown for part in chart.parts)
    assert chart.svg


def line(found):
    return " ".join(part if isinstance(part, str) else f"{part.value} {part.unit}".strip() for part in found.answer)


def test_the_answer_has_the_size_the_ratio_the_bound_and_the_error():
    for name, unit, error in (("coast", "bits/value", "PSNR"), ("web", "bits/particle", "rms distance")):
        data = sample(name)
        state = BoundsState.for_(data)
        trial = try_bound(data, state, quiet)
        run, of = trial.run, " m" if name == "coast" else " Mpc/h"
        size, figure = ("bits_per_value", "psnr") if error == "PSNR" else ("bits_per_particle", "rms_distance")
        after = " dB" if error == "PSNR" else " Mpc/h"
        assert line(draw(data, state, trial)) == (
            f"{run[size]:.3g} {unit} · {run['ratio']:.3g}x · within {state.eb:g}{of} · "
            f"{error} {run[figure]:.{4 if error == 'PSNR' else 3}g}{after}"
        )
        kept = next(part for part in draw(data, state, trial).answer if getattr(part, "name", "") == "largest error")
        assert kept.verdict == "good"


@pytest.mark.parametrize(("changes", "said"), [
    ({"exact": True}, "exact"), ({"kind": "relative", "eb": 0.001}, "within 0.001 of the range"),
    ({"kind": "pointwise", "eb": 0.01}, "within 0.01 of each value"),
])
def test_the_answer_names_the_kind_of_bound(changes, said):
    assert f"· {said}" in line(shown("plane", **changes))


def test_the_smallest_codec_is_told_once_codecs_were_compared():
    data = sample("plane")
    state = BoundsState("sz3", eb=0.01)
    trial = try_bound(data, state, quiet)
    failed = Run({"id": "a"}, "a", wb.Absolute(0.01), error="no")
    for factor, words in ((0.5, "zfp is the smallest of 2 codecs within this bound: "), (2, "sz3 is the smallest of 2")):
        figures = {**trial.run.figures, "bits_per_value": factor * trial.run["bits_per_value"]}
        other = dataclasses.replace(trial.run, label="zfp", codec={"id": "zfp"}, figures=figures)
        assert draw(data, state, trial, others=(failed, other)).remark.startswith(words)
    assert draw(data, state, trial).remark == ""


def test_an_ssim_has_four_digits_and_a_ratio_no_exponent():
    data = sample("plane")
    trial = try_bound(data, BoundsState.for_(data), quiet)
    figures = {**trial.run.figures, "ssim": 0.99795412, "ratio": 1086.7}
    changed = dataclasses.replace(trial, run=dataclasses.replace(trial.run, figures=figures))
    found = draw(data, BoundsState.for_(data), changed)
    facts = {fact.name: fact.value for fact in found.facts}
    assert (facts["SSIM"], facts["ratio"]) == ("0.998", "1,087")
    assert "· 1,087x ·" in line(found)
    assert found.tables["tried so far"].rows[0][3] == "1,087"


@pytest.mark.parametrize("name", [name for name in ALL if name != "nothing"])
def test_facts_say_what_the_archive_says(name):
    data = sample(name)
    state = BoundsState.for_(data)
    trial = try_bound(data, state, quiet)
    facts = {fact.name: fact for fact in draw(data, state, trial).facts}
    assert facts["ratio"].value == short(trial.archive.ratio)
    assert {fact.group for fact in facts.values()} == {"size", "error", "speed"}
    assert facts["largest error"].verdict == "good"
    assert all(fact.value and fact.meaning for fact in facts.values())


def test_where_nothing_is_finite_that_is_said_instead_of_a_ratio_and_a_tick():
    data = sample("nothing")
    state = BoundsState.for_(data)
    found = draw(data, state, try_bound(data, state, quiet))
    assert found.answer == ("no finite values: all come back bit for bit",)
    assert found.facts == ()
    assert "larger than" not in found.note


def test_a_failure_is_said_and_nothing_else():
    data = sample("plane")
    found = draw(data, BoundsState("lattice"), try_bound(data, BoundsState("lattice"), quiet))
    said, why = found.answer
    assert (said.value, said.verdict) == ("lattice failed:", "bad")
    assert "lattice is for particles" in why
    assert not found.facts
    assert not found.note
    assert len(found.pictures) == 1
    assert "lattice is for particles" in found.tables["tried so far"].rows[0][-1]


def test_an_archive_larger_than_its_data_is_explained():
    data = wb.Field(np.arange(64, dtype=np.float32).reshape(8, 8))
    state = BoundsState.for_(data)
    trial = try_bound(data, state, quiet)
    assert trial.archive.ratio < 1
    note = draw(data, state, trial).note
    assert "larger than these 256 bytes" in note
    assert f"{trial.archive.nbytes - trial.archive.data.nbytes:,} bytes" in note
    assert "larger than" not in shown("cube").note


def test_a_spectrum_that_is_still_computed_keeps_its_chart():
    data = sample("plane")
    state = BoundsState.for_(data)
    trial = try_bound(data, state, quiet)
    assert draw(data, state, trial).charts.coming == {"spectrum ratio"}
    assert draw(data, state, trial, (), spectra_of(data, trial, quiet)).charts.coming == set()


def test_the_settings_are_in_words():
    data = sample("coast")
    assert draw(data, BoundsState("zfp", "relative", 1e-3, index=3, axis=1)).settings == {
        "codec": "zfp", "error bound": "relative to the range 0.001", "slice": "3 of 24 across axis 1",
    }


def test_corrected_values_are_told():
    run = Run({"id": "zfp"}, "zfp", wb.Absolute(1.0))
    data = sample("plane")
    trial = try_bound(data, BoundsState.for_(data), quiet)
    broken = dataclasses.replace(trial, run=dataclasses.replace(run, figures={**trial.run.figures, "corrected": 0.0125}))
    facts = {fact.name: fact.value for fact in draw(data, BoundsState.for_(data), broken).facts}
    assert facts["corrected"] == "1.25"


@pytest.mark.parametrize(("name", "words"), [
    ("nothing", "no spectrum: a power spectrum needs values"),
    ("one point", "no spectrum: a power spectrum needs particles"),
])
def test_what_cannot_be_shown_has_a_reason(name, words):
    assert words in shown(name).note


def test_a_large_slice_says_what_a_pixel_is():
    data = wb.Field(np.zeros((3, 2500), np.float32) + np.arange(2500, dtype=np.float32))
    state = BoundsState("prequantised", eb=0.1)
    found = draw(data, state, try_bound(data, state, quiet))
    assert "mean of up to 1 x 3 values" in found.note
    assert found.pictures[0].pixels.shape == (3, 1024)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", FIELDS[1:])
def test_real_slices_of_every_axis_can_be_looked_at(name):
    data = sample(name)
    for axis in range(3 if len(data.shape) > 2 else 1):
        found = shown(name, axis=axis, index=1 if len(data.shape) > 2 else 0, logarithmic=True)
        assert found.pictures[0].logarithmic


@pytest.mark.long
def test_real_data_are_shown(shared_data):
    data = wb.Field(np.fromfile(shared_data / "sperr_fields" / "wmag91.float", "<f4").reshape(91, 91, 91))
    state = BoundsState.for_(data)
    trial = try_bound(data, state, quiet)
    found = draw(data, state, trial, (), spectra_of(data, trial, quiet))
    facts = {fact.name: fact.value for fact in found.facts}
    assert float(facts["ratio"].split()[0]) > 4
    assert np.abs(found.charts["spectrum ratio"].of(Series)[0].y).max() < 1   # percent
