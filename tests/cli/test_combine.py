"""`workbench combine`: linear combinations of archived fields, with the promise for that of the originals."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb


@pytest.fixture
def sources(tmp_path):
    x = np.linspace(0, 6, 4000)
    values = [np.sin(x), np.cos(x)]
    paths = [tmp_path / "a.zip", tmp_path / "b.zip"]
    for one, path in zip(values, paths, strict=True):
        wb.compress(wb.Field(one, name=path.stem), wb.Absolute(1e-3), "staged").save(path)
    return values, paths


def test_differences_and_sums(run, sources, tmp_path):
    (a, b), paths = sources
    made = run("combine", *paths, tmp_path / "difference.zip", "--coefficients=1,-1", "--json", "-q")
    assert (made.status, made.json["coefficients"]) == (0, [1, -1])
    difference = wb.open(tmp_path / "difference.zip")
    assert difference.verify(a - b).passed
    assert made.json["bound"]["eb"] == difference.certificate["values"].bound.eb == pytest.approx(2e-3)
    words = run("combine", *paths, paths[0], tmp_path / "sum.zarr", "-q").out
    assert "its archive (checksum" in words
    assert abs(wb.open(tmp_path / "sum.zarr").decompress().values - (2 * a + b)).max() <= 3.01e-3


def test_wrong_calls_are_refused(run, sources, tmp_path):
    xarray = pytest.importorskip("xarray")
    (a, _), paths = sources
    out = tmp_path / "out.zip"
    data = xarray.Dataset({"T": ("x", a), "h": ("x", a)})
    many = wb.compress(data, wb.Absolute(1e-3)).save(tmp_path / "many.zip")
    for arguments, why in (
        ((*paths, out, "--coefficients=1"), "a number for each archive; got 1 for 2"),
        ((*paths, out, "--coefficients=1,x"), "expected numbers such as 1,-1"),
        ((many, many, out), "choose one with --member NAME"),
        ((*paths, paths[1], "--overwrite"), "b.zip"),
        ((paths[0], tmp_path / "no.zip", out), "no.zip"),
    ):
        refused = run("combine", *arguments)
        assert (refused.status, why in refused.err) == (2, True), refused
    assert not out.exists()
    assert run("combine", many, many, out, "--member", "T", "--coefficients=1,-0.5", "-q").status == 0
    assert wb.open(out).verify(0.5 * a).passed
