"""Bounds for all variables of a dataset, which together have a ratio."""

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import WorkbenchError


def sample() -> dict[str, np.ndarray]:
    """A smooth, a rough and a very large variable; integers and a constant."""
    random = np.random.default_rng(0)
    x, y = np.meshgrid(np.linspace(0, 6, 90), np.linspace(0, 6, 70))
    return {
        "smooth": np.sin(x) * np.cos(y), "rough": random.normal(size=(70, 90)),
        "large": 1e12 * np.sin(3 * x + y) + 1e10 * random.normal(size=(70, 90)),
        "count": random.integers(0, 9, 500), "constant": np.ones(50), "line": np.linspace(0, 1, 9),
    }


def squared_error(archive: wb.Collection, data: dict[str, np.ndarray]) -> float:
    """The sum over all values, as shares of the standard deviation."""
    shares = [(archive[name].decompress().values - data[name]) / (data[name].std() or 1) for name in data]
    return sum(float(np.square(share).sum()) for share in shares)


@pytest.mark.parametrize("ratio", [*(pytest.param(ratio, marks=pytest.mark.long) for ratio in (3, 8)), 20])
def test_the_ratio_is_met_with_a_smaller_error_than_by_equal_shares_of_the_range(ratio):
    data = sample()
    found = wb.find_bounds(data, wb.Ratio(ratio), "prequantised")
    assert found.met
    assert ratio <= found.archive.ratio <= 1.05 * ratio
    assert found.archive.verify(data).passed
    assert found.rules["rough"] == {"bound": found.bounds["rough"], "codec": "prequantised"}
    assert found.bounds["count"] == found.bounds["constant"] == wb.Exact()
    assert found.bounds["smooth"].eb != found.bounds["rough"].eb
    same = wb.compress(data, dict(found.bounds), "prequantised")
    assert abs(same.ratio / found.archive.ratio - 1) < 0.01
    low, high = 1e-7, 1.0
    for _ in range(16):
        between = (low * high) ** 0.5
        met = wb.compress(data, wb.Relative(between), "prequantised").ratio >= ratio
        low, high = (low, between) if met else (between, high)
    equal = wb.compress(data, wb.Relative(high), "prequantised")
    assert squared_error(found.archive, data) <= 1.05 * squared_error(equal, data)


def test_weights_and_names_say_where_errors_may_be():
    data = sample()
    plain = wb.find_bounds(data, wb.Ratio(8), "prequantised")
    heavy = wb.find_bounds(data, wb.Ratio(8), "prequantised", weights={"smooth": 1000.0})
    assert heavy.bounds["smooth"].eb < plain.bounds["smooth"].eb
    only = wb.find_bounds(data, wb.Ratio(1.5), "prequantised", names=["rough"])
    assert only.bounds["smooth"] == wb.Exact()
    assert only.met
    assert "wb.Absolute(" in only.code()


@pytest.mark.parametrize(("arguments", "message"), [
    ((40,), "target must be wb.Ratio"),
    ((wb.SSIM(0.9), "auto", {"names": "line"}), "'line': SSIM needs a field"),
    ((wb.KeepClusters(0.2),), "targets of a dataset must be of fields"),
    ((wb.PSNR(40), "auto", {"weights": {"smooth": 2.0}}), "weights are for a wb.Ratio alone"),
    ((wb.Ratio(3), "auto", {"names": "Smooth"}), "got 'Smooth': did you mean 'smooth'"),
    ((wb.Ratio(3), "auto", {"names": "count"}), "'count' must be a field of floating-point numbers"),
    ((wb.Ratio(3), "auto", {"weights": {"smooth": 0}}), "the weight of 'smooth' must be positive"),
    ((wb.Ratio(3), "auto", {"weights": {"count": 1}}), "a variable that may have errors; got 'count'"),
])
def test_wrong_arguments_end_in_a_sentence(arguments, message):
    *positional, last = arguments
    options = last if isinstance(last, dict) else {}
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.find_bounds(sample(), *(positional if options else arguments), **options)


def test_a_ratio_that_cannot_be_met_says_what_came_nearest():
    found = wb.find_bounds(sample(), wb.Ratio(1e6), "prequantised")
    assert not found.met
    assert "not met" in repr(found)
    assert "are the archive's documents; a ratio of 1e+06 leaves 0 in all" in found.notes[0]


def test_qualities_hold_for_every_variable_and_a_ratio_for_all():
    data, names = sample(), ["smooth", "rough", "large"]

    def worst(before, after):
        return float(np.abs(before.values - after.values).max() / before.values.std())

    target = wb.All(wb.PSNR(50), wb.All(wb.Quality(worst, at_most=0.02), wb.Ratio(1.5)))
    found = wb.find_bounds(data, target, "prequantised", names=names)
    assert found.met
    again = wb.compress(data, found.rules)
    assert again.nbytes == found.archive.nbytes
    for name in names:
        decoded = again[name].decompress().values
        least = {slack.figure: slack for slack in found.slacks if slack.target.startswith(f"{name}: ")}
        assert least["psnr"].value == pytest.approx(wb.compare(data[name], decoded, quick=True)["psnr"])
        assert least["worst"].value == pytest.approx(np.abs(decoded - data[name]).max() / data[name].std())
        assert min(slack.slack for slack in least.values()) >= 0
        assert sum(slack.decides for slack in least.values()) == 1
    assert found.slacks[-1].slack == found.ratio - 1.5
    assert "  decides" in repr(found)
    names = {"wb": wb, "dataset": data}
    exec(found.code(), names)
    assert names["archive"].nbytes == found.archive.nbytes


def test_a_ratio_that_qualities_exclude_is_said_with_the_ratio_that_they_leave():
    found = wb.find_bounds({"rough": sample()["rough"]}, wb.All(wb.Ratio(40), wb.PSNR(70)), "prequantised")
    assert not found.met
    left = f"a PSNR of at least 70 dB have a ratio of {found.ratio:.4g} in all, which misses a ratio of at least 40"
    assert left in repr(found)
    assert [slack.met for slack in found.slacks] == [True, False]


def test_the_shell_tunes_a_dataset(tmp_path, capsys):
    xarray = pytest.importorskip("xarray")
    data = sample()
    xarray.Dataset({name: (("y", "x"), data[name]) for name in ("smooth", "rough")}).to_netcdf(tmp_path / "x.nc")
    options = ["--ratio", "6", "--codec", "prequantised", "--out", str(tmp_path / "x.zip"), "-q"]
    assert main(["tune", str(tmp_path / "x.nc"), *options]) == 0
    assert "a ratio of at least 6 is met" in capsys.readouterr().out
    assert 6 <= wb.open(tmp_path / "x.zip").ratio <= 6.4
    assert main(["tune", str(tmp_path / "x.nc"), "--psnr", "50", "--psnr", "45", "--ratio", "50", "-q", *options[2:4]]) == 1
    said = capsys.readouterr().out
    assert "a PSNR of at least 45 dB are not met" in said
    assert "rough: a PSNR of at least 50 dB" in said
    assert "in all, which misses a ratio of at least 50" in said


def test_variables_that_are_not_sought_have_the_rules_of_others_and_count() -> None:
    snapshot = wb.synthetic.cosmic_web(n=8, seed=1)
    data = {"gas": snapshot, "T": wb.synthetic.gaussian_field((64, 64), seed=2).values, "P": np.arange(50.0)}
    rule = {"bound": wb.Absolute(0.05), "order": "free"}
    found = wb.find_bounds(data, wb.Ratio(2), names="T", others={"gas": rule})
    assert found.met
    assert found.archive["gas"].certificate["positions"].bound == wb.Absolute(0.05)
    names = {"wb": wb, "dataset": data}
    exec(found.code(), names)
    assert names["archive"]["gas"].certificate["positions"].bound == wb.Absolute(0.05)
    assert found.bounds["P"] == wb.Exact()
    with pytest.raises(WorkbenchError, match=r"'T' must be one of names or of others; got it in both"):
        wb.find_bounds(data, wb.Ratio(2), names="T", others={"T": wb.Absolute(0.1)})


@pytest.mark.parametrize("at", [0.1, 0.25, 0.5])
def test_a_search_stops_where_its_progress_raises(at: float) -> None:
    told = []

    def progress(share: float, what: str) -> None:
        assert what
        told.append(share)
        if share >= at:
            raise KeyboardInterrupt

    data = {"T": np.random.default_rng(0).normal(size=(64, 64)), "id": np.arange(9)}
    with pytest.raises(KeyboardInterrupt):
        wb.find_bounds(data, wb.Ratio(4), progress=progress)
    assert told == sorted(told)
    assert told[-1] < at + 0.2


@pytest.mark.long_with("target1")
@pytest.mark.parametrize("target", [wb.PSNR(50), wb.Ratio(20)])
def test_a_variable_with_a_constant_middle_is_searched(target):
    rain = np.ones((300, 300))
    rain[:20] = np.random.default_rng(0).normal(size=(20, 300))
    sea = wb.Field(np.where(rain == 1, 0, rain), mask=rain == 1)
    found = wb.find_bounds({"rain": rain, "sea": sea}, target, "prequantised")
    assert found.met
    assert min(found.bounds[name].eb for name in ("rain", "sea")) > 0
