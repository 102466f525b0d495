"""`compare`: real reconstructions with known errors, and what a report holds for each kind of data."""

import json
import math

import numpy as np
import pytest

import workbench as wb
from workbench.metrics import compare, particle_spectrum


@pytest.fixture(scope="module")
def sz(shared_data) -> tuple[wb.Field, wb.Field]:
    original = wb.open(shared_data / "cesm" / "ihesp14.TS.12mon.nc")
    return wb.Field(original.values[:11], name="TS"), wb.open(shared_data / "cesm" / "d.sz1e-1.ihesp14.TS.12mon.nc")


@pytest.fixture(scope="module")
def fpzip(shared_data) -> tuple[wb.Field, wb.Field]:
    return tuple(wb.open(shared_data / "cesm" / name) for name in ("cam-fv.T.3months.nc", "c.fpzip.cam-fv.T.3months.nc"))


def test_a_field_that_went_through_sz(sz):
    report = compare(*sz, bound=0.1)
    assert report.passed
    assert report.max_error == 0.0999908447265625
    assert report.rms_error == pytest.approx(0.0575634, abs=5e-8)
    assert report.nrmse * report.value_range == pytest.approx(report.rms_error)
    assert report.max_error / report.value_range == pytest.approx(8.6294e-4, abs=5e-9)
    assert (report.values, report.exceeding) == (534_622, 0)
    assert abs(report.mean_error) < 1e-3


def test_a_bound_that_sz_did_not_keep(sz):
    report = compare(*sz, bound=0.0999, quick=True)
    assert report.passed is False
    assert report.exceeding == 494
    assert "max_error <= 0.0999: FAILED, got 0.0999908447265625" in str(report)


def test_a_shift_of_one_month_is_seen(sz, shared_data):
    later = wb.open(shared_data / "cesm" / "ihesp14.TS.12mon.nc").values[1:12]
    assert compare(later, sz[1].values, quick=True).max_error == pytest.approx(28.24, abs=0.005)


def test_a_field_that_went_through_fpzip(fpzip):
    report = compare(*fpzip, bound=0.125)
    assert report.passed
    assert report.max_error == 0.124969482421875
    assert report.rms_error == pytest.approx(0.0494862, abs=5e-8)
    assert report.max_relative_error == pytest.approx(4.87567e-4, abs=5e-10)
    assert report.max_relative_error < 2**-11
    assert (report.differing, report.values) == (4_975_373, 4_976_640)
    assert report.mean_error < -0.7 * report.rms_error   # all errors have one sign
    assert report.curves["error_histogram"][32:].sum() == 4_976_640 - 4_975_373
    assert 0.9 < report.ssim < 1
    assert compare(*fpzip, bound=0.1249, quick=True).passed is False


FIELD_FIGURES = {
    "values", "differing", "max_error", "rms_error", "mean_error", "max_relative_error", "value_range", "psnr", "nrmse",
    "ssim",
}
ERROR_AND_SPECTRUM = {"error_autocorrelation", "spectrum_worst", "spectrum_worst_half"}
PARTICLE_FIGURES = {
    "particles", "differing", "max_error", "rms_error", "mean_error", "max_distance", "rms_distance", "psnr", "nrmse"
}
HALO_FIGURES = {
    "clusters_kept", "halos_original", "halos_decoded", "halos_matched", "halos_identical", "halos_broken", "halos_split",
    "halos_merged", "halos_new", "halo_recall", "halo_shift_max", "halo_shift_rms", "mass_function_worst",
}


@pytest.fixture(scope="module")
def snapshot() -> wb.Particles:
    return wb.synthetic.cosmic_web(n=32, seed=1, steps=12)


def shaken(particles: wb.Particles, amplitude: float) -> wb.Particles:
    noise = np.random.default_rng(0).uniform(-amplitude, amplitude, particles.positions.shape).astype(np.float32)
    return wb.Particles.wrapped(particles.positions + noise, particles.box)


@pytest.mark.parametrize("quick", [False, True])
def test_figures_of_fields_have_stable_names(quick):
    wave = wb.synthetic.gaussian_field((16, 16, 16), seed=1)
    report = compare(wave, wave.values + np.float32(1e-3) * wave.values[::-1], quick=quick)
    assert set(report.figures) == (FIELD_FIGURES if quick else FIELD_FIGURES | ERROR_AND_SPECTRUM)
    assert report.passed is None
    assert report.notes == ()
    assert all(type(value) in (int, float, bool) for value in report.figures.values())


@pytest.mark.parametrize("quick", [False, True])
def test_figures_of_particles_have_stable_names(snapshot, quick):
    report = compare(snapshot, shaken(snapshot, 0.02), quick=quick)
    spectra = {"spectrum_worst", "spectrum_worst_half"}
    assert set(report.figures) == (PARTICLE_FIGURES if quick else PARTICLE_FIGURES | spectra | HALO_FIGURES)
    assert all(type(value) in (int, float, bool) for value in report.figures.values())
    json.dumps(report.to_dict(), allow_nan=False)


def test_equal_fields():
    wave = wb.synthetic.gaussian_field((20, 20), seed=2)
    report = compare(wave, wave, bound=0.0)
    assert report.passed
    assert (report.differing, report.max_error, report.psnr, report.ssim) == (0, 0.0, math.inf, 1.0)
    assert (report.error_autocorrelation, report.spectrum_worst) == (0.0, 0.0)


def test_equal_particles(snapshot):
    report = compare(snapshot, snapshot, bound=0.0)
    assert report.passed
    assert (report.max_distance, report.spectrum_worst, report.halo_shift_max, report.mass_function_worst) == (0, 0, 0, 0)
    assert report.clusters_kept
    assert report.halos_original == report.halos_identical > 10
    assert (report.velocity_max_error, report.velocity_rms_error) == (0, 0)


def test_particles_in_another_order(snapshot):
    order = np.random.default_rng(3).permutation(len(snapshot))
    report = compare(snapshot, snapshot.select(order), order=order, bound=0.0)
    assert report.passed
    assert report.clusters_kept
    assert report.velocity_max_error == 0
    forgotten = compare(snapshot, snapshot.select(order), bound=1.0)
    assert forgotten.passed is False
    assert forgotten.halos_identical == 0
    assert forgotten.spectrum_worst < 1e-9


def test_more_noise_does_more_harm(snapshot):
    reports = [compare(snapshot, shaken(snapshot, amplitude)) for amplitude in (0.002, 0.02, 0.2)]
    for name in ("max_error", "rms_distance", "spectrum_worst", "halos_broken"):
        figures = [report[name] for report in reports]
        assert figures == sorted(figures), name
        assert figures[0] < figures[2], name
    for report in reports:
        assert report.halos_broken == report.halos_split + report.halos_merged
        assert report.halos_original == report.halos_identical + report.halos_broken
    for name in ("psnr", "halo_recall", "halos_identical"):
        figures = [report[name] for report in reports]
        assert figures == sorted(figures, reverse=True), name


def test_halos_can_be_asked_for_otherwise(snapshot):
    few, many = (compare(snapshot, snapshot, min_members=members).halos_original for members in (100, 5))
    assert few < many
    assert compare(snapshot, snapshot, linking_length=0.05).halos_original < many


def test_invalid_values_have_their_own_check():
    values = np.random.default_rng(4).random((12, 12))
    values[2, 3], values[4, 5] = np.nan, np.inf
    kept = compare(values, values.copy(), bound=0.1)
    assert (kept.passed, kept.invalid, kept.invalid_kept) == (True, 2, True)
    changed = values.copy()
    changed[2, 3] = 0.5
    report = compare(values, changed, bound=0.1)
    assert (report.passed, report.invalid_kept, report.max_error) == (False, False, 0.0)
    mask = np.zeros((12, 12), bool)
    mask[0, 0] = True
    changed = values.copy()
    changed[0, 0] = -1
    masked = compare(wb.Field(values, mask=mask), changed, bound=0.1)
    assert (masked.passed, masked.invalid, masked.invalid_kept) == (True, 3, False)


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_lost_values_fail_every_bound(lost):
    values = np.random.default_rng(5).random((12, 12))
    decoded = values.copy()
    decoded[1, 1] = lost
    report = compare(values, decoded, bound=1e300)
    assert (report.passed, report.lost, report.exceeding, report.max_error) == (False, 1, 1, math.inf)
    assert (report.rms_error, report.psnr) == (math.inf, -math.inf)
    assert report.notes == ("no structural figures: some errors are infinite",)
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["figures"]["max_error"] is None


@pytest.mark.parametrize(("shape", "note"), [
    ((100,), "no ssim: it is defined for two and three dimensions"),
    ((5, 100), "no ssim: it needs 7 points along each axis"),
    ((1,), "no power spectrum: it needs at least 2 points along an axis"),
])
def test_what_does_not_apply_is_noted(shape, note):
    values = np.random.default_rng(6).random(shape)
    report = compare(values, values + 1e-3)
    assert note in report.notes
    assert note in str(report)
    assert ("ssim" in report.figures) is False


def test_constant_and_empty_originals():
    constant = compare(np.ones((9, 9)), np.ones((9, 9)), bound=0.1)
    assert constant.passed
    assert constant.spectrum_worst == 0
    assert "no ssim: the original is constant" in constant.notes
    nothing = compare(np.full((9, 9), np.nan), np.full((9, 9), np.nan), bound=0.1)
    assert (nothing.passed, nothing.values) == (True, 0)
    assert nothing.notes == ("no structural figures: the original has no valid value",)


def test_spectra_are_of_the_values_that_both_have():
    values = np.random.default_rng(7).random((30, 30))
    filled = values.copy()
    values[:, 4], filled[:, 4] = np.nan, 1e10
    assert compare(values, filled).spectrum_worst == 0


def test_particles_in_a_plane_have_neither_spectrum_nor_halos():
    flat = wb.Particles([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    report = compare(flat, flat)
    assert set(report.figures) == PARTICLE_FIGURES
    assert report.notes == ("no power spectrum, no halos: the particles do not fill a volume; give them a box",)


def test_spectra_in_an_open_space_are_seen_in_one_box():
    positions = np.random.default_rng(9).random((500, 3))
    original, decoded = wb.Particles(positions), wb.Particles(positions * 1.2)
    report = compare(original, decoded)
    assert np.array_equal(report.curves["spectrum_decoded"], particle_spectrum(decoded, within=original).power)
    assert report.curves["spectrum_ratio"].shape == report.curves["spectrum_k"].shape


PARTICLES = wb.Particles([[0.1, 0.2], [0.5, 0.6]], box=1.0)


@pytest.mark.parametrize(("original", "decoded", "options", "message"), [
    (PARTICLES, np.zeros((2, 2)), {}, "both must be fields, or both particles; got Particles and ndarray"),
    (wb.Field(np.zeros(3)), PARTICLES, {}, "both must be fields, or both particles; got Field and Particles"),
    (np.zeros((2, 3)), np.zeros((3, 2)), {}, "both fields must have the same shape"),
    (PARTICLES, wb.Particles(PARTICLES.positions, 2.0), {}, r"the same box; got \(1.0, 1.0\) and \(2.0, 2.0\)"),
    (PARTICLES, PARTICLES.select([0]), {}, "both sets must have the same number of particles"),
    (np.zeros(3), np.zeros(3), {"order": [0, 1, 2]}, "order must be None for fields"),
    (np.zeros(3), np.zeros(3), {"bound": -1.0}, "bound must be a finite absolute error, not negative; got -1.0"),
    (np.zeros(3), np.zeros(3), {"bound": math.nan}, "bound must be a finite absolute error"),
    (np.zeros(3), np.zeros(3), {"bound": "small"}, "bound must be a finite absolute error"),
    (PARTICLES, PARTICLES, {"min_members": 0}, "min_members must be a whole number, at least 1"),
    (PARTICLES, PARTICLES, {"linking_length": -0.2}, "linking_length must be positive"),
    (PARTICLES, PARTICLES, {"order": [0, 0]}, "order must contain each of 0 to 1 once"),
])
def test_nonsense_is_refused(original, decoded, options, message):
    with pytest.raises(wb.WorkbenchError, match=message):
        compare(original, decoded, **options)


def test_on_a_device_only_a_quick_comparison(cupy):
    values = np.random.default_rng(8).random((10, 10))
    ours, theirs = (
        compare(to(values), to(values + 0.1), bound=0.2, quick=True) for to in (cupy.asarray, np.asarray)
    )
    assert ours.figures == theirs.figures
    with pytest.raises(wb.WorkbenchError, match="a full comparison needs NumPy arrays; got CuPy"):
        compare(cupy.asarray(values), cupy.asarray(values))


@pytest.mark.parametrize("exponent", [-1000, -700, -399, 399, 520, 1021])
def test_figures_do_not_depend_on_the_unit_however_large_or_small_it_is(exponent):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((9, 10, 12))
    values /= 2 * np.abs(values).max()
    decoded = values + 1e-3 * rng.uniform(-1, 1, values.shape)
    usual, scaled = compare(values, decoded), compare(np.ldexp(values, exponent), np.ldexp(decoded, exponent))
    assert scaled.curves["spectrum_ratio"].tolist() == usual.curves["spectrum_ratio"].tolist()
    for name in ("ssim", "nrmse", "error_autocorrelation", "spectrum_worst", "spectrum_worst_half", "max_relative_error"):
        assert scaled.figures[name] == usual.figures[name]
    assert scaled.psnr == pytest.approx(usual.psnr, abs=1e-9)
    assert any("beyond the range" in note for note in scaled.notes) == (abs(exponent) > 400)


def test_a_range_beyond_the_largest_number_is_no_perfect_score():
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.5, 1.5, (8, 9, 10))
    decoded = values + 1e-3 * rng.uniform(-1, 1, values.shape)
    usual, scaled = compare(values, decoded), compare(np.ldexp(values, 1023), np.ldexp(decoded, 1023))
    assert np.isinf(scaled.value_range)
    for name in ("ssim", "psnr", "nrmse", "spectrum_worst"):
        assert scaled.figures[name] == pytest.approx(usual.figures[name], rel=1e-12)
    hidden = np.zeros(values.shape, bool)
    hidden[0, 0] = True
    masked = [wb.Field(each, mask=hidden) for each in (values, np.ldexp(values, 1023))]
    some = [compare(field, each).ssim for field, each in zip(masked, (decoded, np.ldexp(decoded, 1023)), strict=True)]
    assert some[1] == pytest.approx(some[0], rel=1e-12)
