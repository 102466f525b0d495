"""What an audit promises: it passes only what is identical or within a promise, and says why it does not pass the rest."""

import json

import numpy as np
import pytest

import workbench as wb
from workbench.archive.stated_filters import Stated
from workbench.auditing.promised import Promise, stated
from workbench.guarantees import Absolute, Exact, PointwiseRelative

WAVE = np.sin(np.linspace(0, 20, 900)).reshape(30, 30)


def test_what_was_not_promised_does_not_pass():
    found = wb.audit({"T": WAVE}, {"T": WAVE + 1e-9 * np.cos(5 * WAVE)})
    assert not found.passed
    (finding,) = found.findings
    assert finding.kind == "no promise"
    assert "--abs T=" in finding.sentence
    assert wb.audit({"T": WAVE}, {"T": WAVE.copy()}).passed


def test_the_bound_is_exact_to_the_last_bit():
    size = abs(np.float64(WAVE) - np.round(WAVE, 2)).max()
    assert wb.audit(WAVE, np.round(WAVE, 2), wb.Absolute(size)).passed
    found = wb.audit(WAVE, np.round(WAVE, 2), wb.Absolute(np.nextafter(size, 0)))
    assert not found.passed
    assert found["values"].over == int((abs(WAVE - np.round(WAVE, 2)) == size).sum())


def test_the_place_of_the_largest_error_has_coordinates():
    xr = pytest.importorskip("xarray")
    time = np.datetime64("2001-01-01") + np.arange(30) * np.timedelta64(1, "D")
    original = xr.Dataset({"T": (("time", "lat"), WAVE)}, {"time": time, "lat": np.linspace(-90, 90, 30)})
    lossy = original.copy(deep=True)
    lossy["T"][7, 11] += 0.5
    place = wb.audit(original, lossy, {"T": wb.Absolute(0.1)})["T"].largest_at
    assert place == {"index": [7, 11], "time": "2001-01-08T00:00:00", "lat": pytest.approx(-90 + 11 * 180 / 29)}


def test_figures_are_those_of_compare():
    lossy, report = np.round(WAVE, 1), wb.compare(WAVE, np.round(WAVE, 1))
    row = wb.audit(WAVE, lossy, wb.Absolute(0.1))["values"]
    assert {name: row.figures[name] for name in ("ssim", "psnr", "rms_error", "spectrum_worst")} == {
        name: report[name] for name in ("ssim", "psnr", "rms_error", "spectrum_worst")}
    error = lossy - WAVE
    steps = [[np.square(np.diff(values, axis=axis)).sum() for values in (error, WAVE)] for axis in (0, 1)]
    assert row.figures["gradient_error"] == pytest.approx(max(np.sqrt(of_error / own) for of_error, own in steps))


@pytest.mark.parametrize(
    ("tolerance", "passes"),
    [
        ({"spectrum_worst": 10.0}, True), ({"values": {"ssim": 0.5}}, True), ({"values": {"ssim": 0.99999}}, False),
        ({"max_error": 0.01}, False), ({"v*": {"psnr": 20.0}}, True), ({"halo_recall": 0.9}, False),
    ],
)
def test_figures_have_tolerances(tolerance, passes):
    found = wb.audit(WAVE, np.round(WAVE, 1), wb.Absolute(0.1), tolerance=tolerance)
    assert found.passed == passes, found
    assert {one.kind for one in found.findings} == (set() if passes else {"tolerance"})


def test_a_tolerance_alone_promises_nothing_of_values():
    assert not wb.audit(WAVE, np.round(WAVE, 3), tolerance={"ssim": 0.9}).passed


@pytest.mark.parametrize(
    ("original", "lossy", "rules", "sentence"),
    [
        ({"T": WAVE}, {"T": WAVE.copy()}, {"Q": wb.Absolute(1)}, "expected the name of a member"),
        ({"T": WAVE}, {"T": WAVE.copy()}, 0.1, "must be a bound"),
        ({"T": WAVE, "p": WAVE}, {"q": WAVE, "r": WAVE}, None, "must have a member in common; got 'T', 'p' and 'q', 'r'"),
        ("absent.nc", "other.nc", None, "there is no original absent.nc"),
    ],
)
def test_input_that_is_no_audit_is_refused(original, lossy, rules, sentence):
    with pytest.raises(wb.WorkbenchError, match=sentence):
        wb.audit(original, lossy, rules)


def test_one_thing_twice_is_refused(tmp_path):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, WAVE)
    one, pattern, both = tmp_path / "a.npy", str(tmp_path / "*.npy"), [tmp_path / "a.npy", tmp_path / "b.npy"]
    address = "https://example.invalid/a.zip"
    for own, other in ((WAVE, WAVE), (one, one), ([one], [one]), (pattern, both), (one, pattern), (address, str(address))):
        with pytest.raises(wb.WorkbenchError, match="must be two"):
            wb.audit(own, other)


@pytest.mark.parametrize("rules", [Exact(), {"*": Exact()}, {"T": Exact()}])
def test_a_rule_of_equal_values_counts_before_what_the_file_states(rules):
    xr = pytest.importorskip("xarray")
    original = xr.Dataset({"T": (("y", "x"), WAVE)})
    lossy = xr.Dataset({"T": (("y", "x"), np.round(WAVE, 2), {"least_significant_digit": 2})})
    assert wb.audit(original, lossy, quick=True).passed
    assert wb.audit(original, lossy, rules, quick=True)["T"].outcome == "broken"


def test_equal_values_have_equal_signs():
    zeros, negative = np.zeros(5), -np.zeros(5)
    assert wb.audit({"a": zeros}, {"a": negative}).passed
    assert wb.audit({"a": zeros}, {"a": negative}, {"a": Exact()})["a"].outcome == "broken"


def test_limits_of_slices_stay_with_their_axis():
    xr = pytest.importorskip("xarray")
    sizes = np.array([1.0, 10, 100, 1e3, 1e4, 1e5])[:, None]
    original = xr.Dataset({"T": (("level", "x"), sizes * np.random.default_rng(0).normal(size=(6, 6)))})
    archive = wb.compress(original, {"T": wb.PerSlice(wb.Relative(0.05), "level")})
    other = original.copy(deep=True)
    other["T"][0, 3] += 1.0   # far more than this slice may change, far less than the last one may
    for one, over in ((original, 0), (other, 1)):
        assert wb.audit(one, archive, quick=True)["T"].over == over
        assert wb.audit(one.transpose("x", "level"), archive, quick=True)["T"].over == over
        found = wb.audit(one.isel(level=slice(0, 4)), archive, quick=True)
        assert (found["T"].over, found.passed) == (over, False)


def test_each_name_of_only_must_be_known():
    particles = wb.Particles(np.random.default_rng(0).random((50, 3)), velocities=np.ones((50, 3)))
    changed = wb.Particles(particles.positions, velocities=np.zeros((50, 3)))
    for original, lossy, names in (({"T": WAVE, "Q": WAVE}, {"T": WAVE.copy(), "Q": -WAVE}, ["T", "q"]),
                                   (particles, changed, ["positions", "velocites"])):
        with pytest.raises(wb.WorkbenchError, match=f"got .?{names[1]}"):
            wb.audit(original, lossy, only=names)
        assert wb.audit(original, lossy, only=names[0]).passed


def test_a_tolerance_of_a_signed_figure_is_about_its_size():
    assert not wb.audit(WAVE, WAVE - 0.5, wb.Absolute(1), tolerance={"mean_error": 0.1}).passed


def test_packing_beyond_the_range_of_float32_is_broken():
    xr = pytest.importorskip("xarray")
    original = xr.Dataset({"T": ("x", np.array([1.0, 1e39]))})
    lossy = xr.Dataset({"T": ("x", np.array([1.0, 3e38], np.float32))})
    lossy["T"].encoding = {"scale_factor": 0.5, "dtype": np.dtype("i2")}
    assert wb.audit(original, lossy)["T"].over == 1


def test_values_of_a_truncated_array_need_a_promise_too():
    wave = np.sin(np.arange(60.0)).reshape(20, 3)
    found = wb.audit({"T": wave}, {"T": np.round(wave[:11], 2)}, quick=True)
    assert {one.kind for one in found.findings} == {"truncated", "no promise"}


def test_a_truncated_file_is_named(tmp_path):
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 5000)
        file.createVariable("T", "f8", ("x",))[:] = np.arange(5000)
    whole = (tmp_path / "a.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(wb.WorkbenchError, match=r"cut\.nc.*truncated or damaged"):
        wb.audit(tmp_path / "a.nc", tmp_path / "cut.nc")


@pytest.mark.parametrize(
    ("original", "lossy", "outcome"),
    [
        (np.arange(10), np.arange(10.0), "identical"), (np.arange(10), np.arange(10) + 1, "broken"),
        (np.array([2**60 + 1]), np.array([2**60 + 1]), "identical"), (np.array([2**60 + 1]), np.array([2**60]), "broken"),
        (np.array([2**60 + 1]), np.array([2.0**60]), "broken"), (np.array([0, 1]), np.array([0, np.inf]), "broken"),
        (np.array([0, 1]), np.array([0, np.nan]), "broken"), (np.array([3, 1], "u1"), np.array([3, 300], "i4"), "broken"),
        (np.array(["a", "b"]), np.array(["a", "c"]), "broken"), (np.array([True, False]), np.array([True, True]), "broken"),
        (np.array([1 + 2j, 3j]), np.array([1 + 2j, 3.01j]), "holds"), (np.full(4, np.nan), np.full(4, np.nan), "identical"),
        (np.array([1.0, np.inf]), np.array([1.0, np.inf]), "identical"),
        (np.array([1.0, np.inf]), np.array([1.0, 2.0]), "broken"),
        (np.array(["2001-01-01"], "M8[s]"), np.array(["2001-01-01"], "M8[ns]"), "identical"),
        (np.array(["3000-01-01"], "M8[s]"), np.array([32503680000], "u8").__mul__(10**9).view("M8[ns]"), "broken"),
        (np.array(["2001-01-01"], "M8[D]"), np.array([11323]), "broken"), (np.array([1], "m8[D]"), np.array([1]), "broken"),
        (np.array([1], "m8[M]"), np.array([30], "m8[D]"), "broken"),
        (np.array([1], "m8[D]"), np.array([1], "m8"), "broken"),
        (np.array([1 + 2j, 3j]), np.array([[1.0, 2.0], [0.0, 3.0]]), "broken"),
        (np.ones((2, 1, 2, 1, 3)), np.ones((3, 1, 2, 1, 2)), "broken"), (np.ones((1, 1, 2, 1, 3)), np.ones(6), "broken"),
        (np.array([2**60 + 1], "u8"), np.array([2**60 + 1]), "identical"),
        (np.array([2**60 + 1], "u8"), np.array([2**60]), "broken"), (np.array([2**63], "u8"), np.array([5]), "broken"),
        (np.zeros(0), np.zeros(0), "identical"), (np.array([1.0, 2.0], "f2"), np.array([1.0, 2.0], "f4"), "identical"),
    ],
)
def test_arrays_of_all_types(original, lossy, outcome):
    exact = original.dtype.kind in "iubUM"
    found = wb.audit({"a": original}, {"a": lossy}, {"a": Exact() if exact else wb.Absolute(0.02)})
    assert found["a"].outcome == outcome, found


def test_what_the_original_states_itself_promises_nothing_new():
    one, other = Stated("least_significant_digit 2", Absolute(0.005)), Stated("HDF5 filter ZFP", Absolute(0.01))
    assert stated([one], [one], lambda: 1.0) is None
    assert stated([], [one, other], lambda: 1.0).bound == Absolute(0.015)
    assert stated([one], [one, other], lambda: 1.0).bound == Absolute(0.01)
    assert stated([], [Stated("HDF5 filter ZFP", None), other], lambda: 1.0).bound is None
    assert stated([], [Stated("bits", PointwiseRelative(0.1)), other], lambda: 2.0).bound.eb == pytest.approx(0.21)


def test_packing_has_room_for_one_more_rounding():
    limit = Promise("packed", Absolute(0.5), "the lossy file", rounds=True).limit(0.0, 300.0, np.dtype("f4"))
    assert limit.value == 0.5 + 2 * np.spacing(np.float32(300))


def test_many_parts_give_what_one_gives(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.run.chunked_field.VALUES", 2**12)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 20, 30)).astype(np.float32)
    lossy = np.round(values * 64) / np.float32(64)
    lossy[17, 3, 5] = 9
    for name, array in (("a", values), ("b", lossy)):
        np.save(tmp_path / f"{name}.npy", array)
    inside = wb.audit(values, lossy, wb.Absolute(1 / 128), quick=True)["values"].to_dict()
    outside = wb.audit(tmp_path / "a.npy", tmp_path / "b.npy", wb.Absolute(1 / 128), quick=True)["values"].to_dict()
    inside["figures"].pop("gradient_error"), outside["figures"].pop("gradient_error")   # of neighbours in a part
    assert inside.pop("figures") == pytest.approx(outside.pop("figures"))
    assert inside == outside
    assert (inside["over"], inside["largest_at"]["index"]) == (1, [17, 3, 5])


def test_results_are_text_json_and_pages(tmp_path):
    found = wb.audit({"T<b>": WAVE}, {"T<b>": np.round(WAVE, 1)}, {"T<b>": wb.Absolute(0.01)})
    assert "FAILED: 1 of 1 arrays; 1 defect" in str(found)
    described = json.loads((found.save(tmp_path / "a.json")).read_text())
    assert (described["rows"][0]["over"], described["passed"]) == (found["T<b>"].over, False)
    page = found.save(tmp_path / "a.html").read_text()
    assert [part in page for part in ("T&lt;b&gt;", "data:image/png", "<b>T<b>", "<script")] == [True, True, False, False]
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "T&lt;b&gt;" in found._repr_html_()
    with pytest.raises(wb.WorkbenchError, match=r"written as \.html or \.json"):
        found.save(tmp_path / "a.txt")
    with pytest.raises(KeyError, match="expected the name of a member of this audit"):
        found["q"]
