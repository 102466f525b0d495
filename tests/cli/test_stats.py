"""`workbench stats`: the figures of archived fields in words and as JSON."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb


@pytest.fixture
def field_archive(tmp_path):
    values = np.sin(np.indices((20, 24, 28)).sum(axis=0) / 9).astype(np.float32)
    values[0, 0, :5] = np.nan
    return values, wb.compress(values, wb.Absolute(1e-3), "staged").save(tmp_path / "one.zip")


def test_figures_of_a_field(run, field_archive):
    values, path = field_archive
    found = run("stats", path, "--json")
    assert found.status == 0
    figures = found.json["statistics"]
    assert figures["mean"]["low"] <= np.nanmean(values, dtype=np.float64) <= figures["mean"]["high"]
    assert (figures["max"]["count"], figures["max"]["missing"]) == (values.size - 5, 5)
    words = run("stats", path, "--region", "4:9,:,2:").out
    assert "±" in words
    assert f"{5 * 24 * 26:,}" in words


def test_figures_by_axis_and_quantiles(run, field_archive):
    values, path = field_archive
    found = run("stats", path, "--by", "0", "--json").json
    mean = found["statistics"]["mean"]
    true = np.nanmean(values.astype(float), axis=(1, 2))
    assert (abs(np.array(mean["values"]) - true) <= mean["bound"]).all()
    assert "all with --json" in run("stats", path, "--by", "1").out
    share = run("stats", path, "--quantiles", "0.5,0.99", "--json").json["statistics"]["quantile 0.99"]
    assert share["low"] <= np.nanquantile(values.astype(float), 0.99) <= share["high"]
    assert run("stats", path, "--by", "time").status == 2
    assert run("stats", path, "--by", "0", "--quantiles", "0.5").status == 2
    assert run("stats", path, "--quantiles", "2").status == 2


def test_members_of_a_dataset(run, field_archive, tmp_path):
    xarray = pytest.importorskip("xarray")
    values, _ = field_archive
    data = xarray.Dataset({"T": (("t", "y", "x"), values), "name": ("y", np.array(["a"] * 24))})
    path = wb.compress(data, {"T": wb.Absolute(1e-3), "*": wb.Exact()}).save(tmp_path / "two.zip")
    found = run("stats", path, "--region", "t=2:5", "--json").json
    assert list(found["members"]) == ["T"]
    assert found["members"]["T"]["mean"]["count"] == 3 * 24 * 28
    assert run("stats", path, "--member", "T", "--json").json["statistics"]["min"]["missing"] == 5
    by_time = run("stats", path, "--by", "t", "--json").json["members"]["T"]["max"]
    assert by_time["values"] == pytest.approx(np.nanmax(values, axis=(1, 2)).tolist(), abs=1e-3)
    assert run("stats", path, "--member", "name").status == 2
    assert run("stats", path, "--region", "z=2:5").status == 2


def test_bounds_of_places_are_rounded_up_and_wrong_quantiles_refused(run, tmp_path):
    path = wb.compress(np.full((2, 300), 5.0), wb.Absolute(0.1013), "prequantised").save(tmp_path / "x.zip")
    assert "± 0.102" in run("stats", path, "--by", "0").out
    wrong = run("stats", path, "--quantiles", "x")
    assert (wrong.status, "expected numbers such as" in wrong.err) == (2, True)
