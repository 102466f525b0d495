"""Predictions against archives, on synthetic and real fields; what is refused; what is said of strange data."""

import gc
import itertools
import sys
import weakref

import numpy as np
import pytest

import workbench as wb
from combinations import in_pairs
from workbench.bounds.prediction.expert import SHIPPED, shipped, to_bytes
from workbench.bounds.prediction.real_fields import real_fields
from workbench.bounds.prediction.surveyed import surveyed
from workbench.bounds.prediction.train import conformal_quantile
from workbench.bounds.prediction.training_fields import KINDS, training_fields
from workbench.codecs import Tolerance

CODECS = ("sz3", "zfp", "sperr", "prequantised", "staged", "interpolation")
BOUNDS = [wb.Relative(10**-power) for power in (4.0, 3.0, 2.0)]


@pytest.fixture(scope="module")
def turbulence(request) -> wb.Field:
    folder = request.getfixturevalue("shared_data")
    return wb.open(folder / "sperr_fields/vorticity.128_128_41", shape=(41, 128, 128), dtype="float32")


@pytest.mark.few(1)
@pytest.mark.parametrize("codec", [*CODECS[::2], *(pytest.param(codec, marks=pytest.mark.long) for codec in CODECS[1::2])])
def test_a_real_field_is_predicted_well(turbulence, codec):
    runs = wb.sweep(turbulence, codec, BOUNDS, workers=1)
    within = 0.25   # samples are few, turbulence is not the same everywhere, and the interval knows
    for run, row in zip(runs, wb.predict(turbulence, codec, BOUNDS), strict=True):
        assert row.ratio == pytest.approx(run["ratio"], rel=within)
        assert row.psnr == pytest.approx(run["psnr"], abs=1.5)
        assert row.ssim == pytest.approx(run["ssim"], abs=0.05)
        assert row.ratio_low < row.ratio < row.ratio_high
        assert row.psnr_low < row.psnr < row.psnr_high
        assert row.ratio_low < run["ratio"] < row.ratio_high


def test_predictions_are_the_same_each_time():
    field = wb.synthetic.gaussian_field((48, 48, 48), 3, seed=11)
    one, other = (wb.predict(field, "sz3", BOUNDS).to_dict() for _ in range(2))
    assert one == other
    plain = wb.predict(field.values, "sz3", BOUNDS).to_dict()
    assert wb.predict(wb.Field(field.values), "sz3", BOUNDS).to_dict() == plain


def test_a_second_codec_looks_at_a_field_no_more(monkeypatch):
    field = wb.synthetic.gaussian_field((20, 24, 30), 3, seed=11)
    field = wb.Field(field.values)
    fresh = wb.predict(field.values, "zfp", BOUNDS).to_dict()
    wb.predict(field, "sz3", BOUNDS)
    monkeypatch.setattr(sys.modules[surveyed.__module__], "Survey", None)
    assert wb.predict(field, "zfp", BOUNDS).to_dict() == fresh
    with pytest.raises(TypeError):
        wb.predict(field.values, "zfp", BOUNDS)


def test_surveys_are_forgotten_with_their_fields_and_never_keep_filled_copies():
    fields = [wb.synthetic.gaussian_field((8, 9), seed=seed) for seed in range(6)]
    known = [surveyed(field) for field in fields]
    assert surveyed(fields[-1]) is known[-1]
    assert surveyed(fields[0]) is not known[0]   # only the last few are kept
    gone = weakref.ref(fields.pop())
    gc.collect()
    assert gone() is None
    masked = wb.Field(fields[0].values, mask=fields[0].values > 0)
    assert surveyed(masked) is not surveyed(masked)


def test_what_an_archive_says_of_a_field_counts():
    values = wb.synthetic.gaussian_field((32, 32, 32), 3, seed=11).values
    told = wb.Field(values, metadata={"history": "; ".join(f"step {number} of the processing" for number in range(100))})
    for field in (wb.Field(values), told):
        runs = wb.sweep(field, "prequantised", wb.Relative(0.03), workers=1)
        row = wb.predict(field, "prequantised", wb.Relative(0.03))[0]
        documents = runs[0]["nbytes"] - runs[0]["chunk_nbytes"]
        without = values.nbytes / row.ratio - documents   # what is left for the chunk
        assert without == pytest.approx(runs[0]["chunk_nbytes"], rel=0.15)


def test_more_error_makes_smaller_archives():
    field = wb.synthetic.gaussian_field((48, 48, 48), 3, seed=11)
    rows = wb.predict(field, "sz3", [wb.Absolute(0.01 * 4**step) for step in range(5)]).rows
    assert all(a.ratio < b.ratio and a.psnr > b.psnr for a, b in itertools.pairwise(rows))


@pytest.mark.parametrize("codec", ["sz3", "zfp", "prequantised"])
def test_similarity_counts_in_the_range_of_all_values_however_rare_the_largest(codec):
    values = wb.synthetic.gaussian_field((160, 200), 3, seed=5).values.copy()
    values[80, 100] = 40 * values.std()   # no sample hits it
    bounds = [wb.Absolute(limit * float(values.std())) for limit in (0.05, 0.3)]
    for run, row in zip(wb.sweep(values, codec, bounds, workers=1), wb.predict(values, codec, bounds), strict=True):
        assert 0.5 < (1 - row.ssim) / (1 - run["ssim"]) < 2


def test_axes_that_the_codec_for_fields_leaves_out_are_left_out():
    layers = [wb.synthetic.gaussian_field((64, 72), 5, seed=seed).values for seed in range(24)]
    field = wb.Field(np.stack(layers))
    runs = wb.sweep(field, "interpolation", BOUNDS, workers=1)
    for run, row in zip(runs, wb.predict(field, "interpolation", BOUNDS), strict=True):
        assert row.ratio == pytest.approx(run["ratio"], rel=0.15)


def test_a_line_has_no_similarity_and_gaps_are_predicted():
    values = np.cumsum(np.random.default_rng(0).standard_normal(20_000))
    assert np.isnan(wb.predict(values, "sz3", wb.Absolute(0.1))[0].ssim)
    values[100:200] = np.nan
    found = wb.predict(values, "sz3", wb.Absolute(0.1))
    assert not found.notes
    assert found[0].ratio == pytest.approx(wb.compress(values, wb.Absolute(0.1), "sz3").ratio, rel=0.25)


@pytest.mark.few(2)
@pytest.mark.parametrize(("codec", "fill"), in_pairs(CODECS, [1e20, None]))
def test_a_coast_is_predicted_with_its_mask_and_what_it_hides(codec, fill):
    values = wb.synthetic.gaussian_field((160, 240), 4, seed=1).values.astype(np.float32)
    land = wb.synthetic.gaussian_field((160, 240), 6, seed=2).values > 0.5
    values[land] = np.random.default_rng(0).standard_normal(int(land.sum())) if fill is None else fill
    field = wb.Field(values, mask=land)
    runs = wb.sweep(field, codec, BOUNDS, workers=1)
    rows = wb.predict(field, codec, BOUNDS)
    for run, row in zip(runs, rows, strict=True):
        assert row.ratio == pytest.approx(run["ratio"], rel=0.25)
        assert row.psnr == pytest.approx(run["psnr"], abs=1.5)
    assert sum(row.ratio_low < run["ratio"] < row.ratio_high for run, row in zip(runs, rows, strict=True)) >= 2   # of 90%


def test_data_unlike_the_training_have_wide_intervals_and_are_named():
    usual = wb.synthetic.gaussian_field((48, 48, 48), 3, seed=1)
    near = wb.predict(usual, "sz3", BOUNDS)
    assert not near.unlike
    strange = np.zeros((64, 64))
    strange[::17, ::13] = 10.0 ** np.arange(20).reshape(4, 5)
    far = wb.predict(strange, "sz3", wb.Absolute(1e-9))
    assert far.unlike
    assert far.distance > near.distance
    assert "unlike" in repr(far)
    assert far[0].ratio_high / far[0].ratio_low > max(row.ratio_high / row.ratio_low for row in near)


def test_new_kinds_are_covered_where_rows_of_one_kind_are_alike():
    rng, held = np.random.default_rng(0), []
    for _ in range(200):   # kinds have scores of their own; the quantile of all rows would hold for too few new kinds
        kinds = np.abs(rng.standard_normal(25))
        counts = rng.integers(1, 30, 24)
        scores = np.repeat(kinds[:24], counts) * rng.uniform(0.9, 1.1, counts.sum())
        held.append(kinds[24] <= conformal_quantile(scores, np.repeat(np.arange(24), counts).tolist()))
    assert 0.86 <= np.mean(held) <= 0.98


def test_no_family_of_real_fields_is_both_tested_and_used():
    of = {}
    for each in real_fields():
        of.setdefault(each.family, set()).add(each.is_test)
    assert all(len(tested) == 1 for tested in of.values())
    assert 15 < sum(min(tested) for tested in of.values()) < len(of) - 25


@pytest.mark.parametrize("fill", [1e20, np.nan, None])
def test_gaps_and_documents_are_counted_and_not_estimated(fill):
    values = wb.synthetic.gaussian_field((60, 90), 4, seed=1).values.astype(np.float32)
    land = wb.synthetic.gaussian_field((60, 90), 6, seed=2).values > 0.5
    values[land] = np.random.default_rng(0).standard_normal(int(land.sum())) if fill is None else fill
    field = wb.Field(values, mask=land)
    known = surveyed(field)
    codec, bound = wb.codecs.get("zfp"), wb.Relative(1e-3)
    code = len(codec.encode_with_gaps(values, ~land, Tolerance(absolute=bound.limit(values, ~land).value)))
    figures = {name: np.full((3, 1), value) for name, value in (("bits", 8 * code / values.size), ("noise", 1.0))}
    (row,) = known.whole.rows([bound], np.array([0.01]), figures, codec)
    assert row.ratio == pytest.approx(wb.compress(field, bound, "zfp").ratio, rel=0.02)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_few_values_are_predicted_too(count):
    values = np.random.default_rng(count).standard_normal(count)
    for codec in CODECS:
        row = wb.predict(values, codec, wb.Relative(0.01))[0]
        assert 0 < row.ratio_low < row.ratio <= row.ratio_high
        assert row.ratio_low < wb.compress(values, wb.Relative(0.01), codec).ratio


def test_bounds_finer_than_those_of_the_training_reach_to_archives_without_loss():
    field = wb.synthetic.gaussian_field((64, 64), 3, seed=1)
    found = wb.predict(field, "sz3", [wb.Relative(1e-9), wb.Relative(1e-4)])
    assert found[0].ratio_low < wb.compress(field, wb.Relative(1e-9), "sz3").ratio < found[0].ratio_high
    assert "as low as without loss" in str(found)
    assert found[1].ratio_low > 0.5 * found[1].ratio
    assert wb.predict(field, "sz3", wb.Relative(1e-4)).notes == ()


@pytest.mark.parametrize(
    ("data", "codec", "bounds", "message"),
    [
        (np.array([2.0]), "sz3", wb.Absolute(1), "values that differ"),
        (np.full((9, 9), 2.0), "sz3", wb.Absolute(1), "values that differ"),
        (np.full((9, 9), np.nan), "sz3", wb.Absolute(1), "masked or not finite"),
        (np.arange(9), "sz3", wb.Absolute(1), "floating-point"),
        (wb.Particles(np.eye(3)), "sz3", wb.Absolute(1), "is for fields"),
        (wb.Particles(np.eye(3), velocities=np.eye(3)), "sz3", wb.Absolute(1), r"wb\.predict\(particles\.velocities"),
        (np.arange(9.0), "lattice", wb.Absolute(1), "needs an expert"),
        (np.arange(9.0), wb.codecs.get("sz3", algorithm="lorenzo_reg"), wb.Absolute(1), "needs an expert"),
        (np.arange(9.0), "sz3", wb.Absolute(0), "above 0"),
        (np.arange(9.0), "sz3", wb.PointwiseRelative(0.1), "absolute or relative"),
        (np.arange(9.0), "sz3", [], "at least one"),
        (np.arange(9.0) * 1e-320, "sz3", wb.Relative(0.1), "values that differ, by"),
        (np.array([-1e308, 1e308]), "sz3", wb.Relative(0.1), "values that differ, by"),
    ],
)
def test_bad_input_is_refused(data, codec, bounds, message):
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.predict(data, codec, bounds)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("limit", [1e-300, 1e300])
def test_absurd_bounds_are_predicted_like_the_last_that_makes_a_difference(codec, limit):
    field = wb.synthetic.gaussian_field((40, 48), 3, seed=1)
    row = wb.predict(field, codec, wb.Absolute(limit))[0]
    true = wb.compress(field, wb.Absolute(limit), codec).ratio
    assert row.limit == limit
    assert row.ratio == pytest.approx(true, rel=0.6)
    assert np.isfinite([row.psnr, row.ssim]).all()


def test_an_expert_is_an_expert():
    with pytest.raises(wb.WorkbenchError, match=r"expert must be one of wb\.bounds\.train"):
        wb.predict(np.arange(64.0), "sz3", wb.Absolute(1), expert="sz3")


def test_the_shipped_experts_are_small_and_know_every_figure():
    assert len(to_bytes(list(shipped().values()))) < 2e6
    for expert in shipped().values():
        assert set(expert.learned) == {"bits", "noise", "loss"}


@pytest.mark.long
def test_training_fields_are_finite_and_reproducible():
    for (kind, one), (_, other) in zip(training_fields(len(KINDS)), training_fields(len(KINDS)), strict=True):
        assert one.valid.mean() > 0.05, kind
        assert (one.mask is not None) == (kind in ("coast", "holes"))
        assert np.ptp(one.values[one.valid]) > 0, kind
        assert np.array_equal(one.values, other.values, equal_nan=True), kind


@pytest.fixture(scope="module")
def steps() -> list[wb.Field]:
    """Time steps that differ little."""
    first, change = (wb.synthetic.gaussian_field((40, 44, 48), 3, seed=seed).values for seed in (1, 2))
    return [wb.Field(np.cos(0.1 * step) * first + np.sin(0.1 * step) * change) for step in range(2)]


@pytest.mark.long
def test_an_earlier_step_makes_the_next_one_better(steps):
    expert = shipped()["prequantised"]
    bounds = [wb.Absolute(0.02), wb.Absolute(0.1), wb.Absolute(0.5)]
    known = wb.bounds.calibrated(expert, steps[0], wb.sweep(steps[0], "prequantised", bounds, workers=1))
    true = [run["ratio"] for run in wb.sweep(steps[1], "prequantised", bounds, workers=1)]
    plain, better = (
        np.abs([row.ratio / ratio - 1 for row, ratio in zip(wb.predict(steps[1], "prequantised", bounds, expert=each), true,
                                                            strict=True)]).max()
        for each in (expert, known)
    )
    assert better < 0.03
    assert better < plain
    wide, narrow = (
        [np.log(row.ratio_high / row.ratio_low) for row in wb.predict(steps[1], "prequantised", bounds[1], expert=each)]
        for each in (expert, known)
    )
    assert narrow[0] == pytest.approx(0.5 * wide[0], rel=0.1)   # within the limits that were measured a step before
    beyond = wb.Absolute(2.0)
    assert known.last is not None
    assert wb.predict(steps[1], "prequantised", beyond, expert=known)[0].ratio > 1.2 * true[-1]   # nothing persists there
    assert wb.find_bound(steps[1], wb.Ratio(8), "prequantised", expert=known).met
    with pytest.raises(wb.WorkbenchError, match="at least one of prequantised"):
        wb.bounds.calibrated(expert, steps[0], wb.sweep(steps[0], "sz3", bounds, workers=1))


@pytest.mark.long
def test_an_expert_of_ones_own_is_trained_kept_and_used(tmp_path):
    fields = [wb.synthetic.gaussian_field((40, 40), 1 + seed % 5, seed) for seed in range(10)]
    codec = wb.codecs.get("sz3", algorithm="lorenzo_reg")
    expert = wb.bounds.train(fields, codec, [wb.Relative(10**-power) for power in np.linspace(1, 4, 6)])
    again = wb.bounds.Expert.load(expert.save(tmp_path / "mine.npz"))
    one, other = (wb.predict(fields[3], codec, wb.Relative(0.005), expert=each)[0] for each in (expert, again))
    assert one.ratio == pytest.approx(other.ratio, rel=0.05)
    assert one.ratio == pytest.approx(wb.compress(fields[3], wb.Relative(0.005), codec).ratio, rel=0.3)
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04nothing")
    with pytest.raises(wb.WorkbenchError, match=r"written by Expert\.save"):
        wb.bounds.Expert.load(tmp_path / "broken.npz")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"groups": [1]}, "name the kind of each field"),
        ({"bounds": []}, "at least one"),
        ({"bounds": [0.1]}, "bounds must be"),
        ({"bounds": [wb.PointwiseRelative(0.1)]}, "absolute or relative"),
        ({"groups": [1, 1]}, "at least 2 kinds"),
        ({"fields": [np.full((8, 8), np.nan)] * 2}, "masked or not finite"),
    ],
)
def test_training_refuses_what_teaches_nothing(more, message):
    given = {"fields": [np.random.default_rng(n).random((8, 8)) for n in range(2)], "bounds": [wb.Relative(0.1)], **more}
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.bounds.train(given["fields"], "prequantised", given["bounds"], given.get("groups"))


def test_the_file_of_experts_is_part_of_the_package():
    from importlib import resources

    assert resources.files("workbench.bounds.prediction").joinpath(SHIPPED).is_file()


def test_blocks_that_reach_beyond_the_grid_count_in_full():
    values = wb.synthetic.gaussian_field((42, 73, 33), 3, seed=1).values.astype(np.float32).reshape(2, 21, 73, 33)
    bound = wb.Relative(1e-2)
    assert wb.predict(values, "zfp", bound)[0].ratio == pytest.approx(wb.compress(values, bound, "zfp").ratio, rel=0.15)


def test_ratios_of_packed_values_count_their_bytes_in_the_file():
    values = wb.synthetic.gaussian_field((128, 128), 3, seed=2).values.astype("f8")
    plain, packed = (wb.Field(values, metadata={"stored": {"dtype": name}}) for name in ("float64", "int16"))
    bound = wb.Absolute(0.1)
    wide, narrow = (wb.predict(field, "prequantised", bound)[0] for field in (plain, packed))
    assert narrow.ratio == pytest.approx(wide.ratio / 4, rel=1e-2)
    assert narrow.ratio_low < wb.compress(packed, bound, "prequantised").ratio < narrow.ratio_high
