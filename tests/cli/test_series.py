"""`--series`, `--step`, and series in `info` and `verify`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb

Run = Callable[..., Any]


@pytest.fixture
def snapshots(tmp_path: Path) -> str:
    """Three of the same particles, whose rows are in another order at each, and a pattern for them."""
    rng = np.random.default_rng(0)
    positions, velocities, ids = rng.uniform(0, 2, (200, 3)), rng.normal(size=(200, 3)), np.arange(200)
    for number in range(3):
        rows = rng.permutation(200)
        moved = ((positions + 0.01 * number * velocities) % 2)[rows].astype("f4")
        arrays = {"positions": np.minimum(moved, np.float32(1.99)), "ids": ids[rows], "velocities": velocities[rows]}
        np.savez(tmp_path / f"snap_{number}.npz", box=2.0, **arrays)
    return str(tmp_path / "snap_*.npz")


def test_snapshots_become_a_series(run: Run, snapshots: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--series", "--abs", "0.01", "--velocities-abs", "0.1", "--order", "free", "--every", "2"]
    done = run("compress", snapshots, out, *options, "--quiet", "--json")
    assert done.status == 0
    assert done.json["steps"] == 3
    assert [row["key"] for row in done.json["certificate"]["steps"]] == [True, False, True]
    assert "2 of 3 are key steps" in run("info", out).out
    alone, compared = run("verify", out), run("verify", out, snapshots)
    assert alone.status == compared.status == 0
    assert ("largest error" in alone.out, "largest error" in compared.out) == (False, True)
    decoded = tmp_path / "last.npz"
    assert run("decompress", out, decoded, "--step", "-1").status == 0
    with np.load(decoded) as last, np.load(tmp_path / "snap_2.npz") as original:
        assert sorted(last["ids"].tolist()) == sorted(original["ids"].tolist())
    assert isinstance(wb.open(out), wb.Series)
    assert wb.open(out).verify().passed
    assert "ids_differing <= 0" in run("verify", out, snapshots).out.splitlines()[-1]   # once for all steps
    assert f"workbench info {out}" in run("info", out / "step-000001.zip").out
    assert "wb.Series(...) opens it" in run("stats", out).err
    (tmp_path / "snap_1.npz").unlink()
    assert "an original for each of 3 steps; got 2" in run("verify", out, snapshots).err
    path = out / "step-000001.zip"
    path.write_bytes(path.read_bytes()[:-300])
    broken = run("verify", out, "--json")
    assert broken.status == 1
    assert "step 1 of run cannot be read" in broken.json["error"]


def test_a_series_without_steps_has_none_to_choose(run: Run, snapshots: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert "states none" in run("compress", snapshots, out, "--series", "--abs", "10 kpc").err
    assert "a series without steps: append one" in run("decompress", out, tmp_path / "a.npz", "--step", "0").err


def test_fields_of_a_pattern_are_gone_on_with(run: Run, tmp_path: Path) -> None:
    pattern, out = tmp_path / "f_*.npy", tmp_path / "run"
    for number in range(2):
        np.save(tmp_path / f"f_{number}.npy", np.sin(np.linspace(0, 9, 500) + 0.1 * number))
    assert run("compress", pattern, out, "--series", "--abs", "0.001").status == 0
    assert run("verify", out, pattern, "--json").json["ok"]
    np.save(tmp_path / "later.npy", np.sin(np.linspace(0, 9, 500) + 0.2))
    assert run("compress", tmp_path / "later.npy", out, "--series", "--abs", "0.001").status == 0
    assert len(wb.Series(out)) == 3
    unquoted = run("compress", tmp_path / "f_0.npy", tmp_path / "f_1.npy", out, "--series", "--abs", "0.001")
    assert "a pattern of files has to be quoted" in unquoted.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["compress", "SNAPSHOTS", "OUT", "--abs", "0.1", "--every", "2"], "--every is for series"),
        (["compress", "SNAPSHOTS", "OUT", "--abs", "0.1", "--series", "--overwrite"], "leave out --overwrite"),
        (["decompress", "SERIES", "x.npz"], "is a series of 1 steps: choose one by --step N"),
        (["decompress", "SERIES", "x.npz", "--step", "1"], "--step must be from 0 to 0; got 1"),
        (["fof", "SERIES", "-b", "0.2"], "is a series of 1 steps, and this command takes one array"),
        (["decompress", "ARCHIVE", "x.npz", "--step", "0"], "--step is for series"),
        (["compress", "SERIES", "OUT", "--abs", "0.1"], "is a series of 1 steps"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Run, snapshots: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    series, particles = wb.Series("series", wb.Absolute(0.1)), wb.Particles([[0.0, 0.0], [1.0, 1.0]])
    series.append(particles)
    wb.compress(particles, wb.Absolute(0.1)).save("one.zip")
    names = {"SNAPSHOTS": snapshots, "OUT": "out", "SERIES": "series", "ARCHIVE": "one.zip"}
    done = run(*[names.get(argument, argument) for argument in arguments])
    assert done.status == 2
    assert reason in done.err


def test_a_series_without_its_document_is_salvaged(run: Run, tmp_path: Path) -> None:
    series = wb.Series(tmp_path / "run", wb.Absolute(1e-3), "interpolation", every=2)
    for number in range(4):
        series.append(wb.Field(np.sin(np.linspace(0, 9, 500) + 0.1 * number)), number)
    (series.path / "series.json").unlink()
    told = run("info", series.path)
    assert (told.status, "note: run has no series.json: steps can be read" in told.err) == (0, True)
    (series.path / "step-000001.zip").unlink()
    done = run("salvage", series.path, tmp_path / "rest", "--json", "--quiet")
    assert (done.status, done.json["steps"], done.json["lost"]) == (1, 3, 2)
    assert [one["chunk"] for one in done.json["damaged"]] == ["step 1", "series.json"]
    assert "note: rest has no series.json" in run("decompress", tmp_path / "rest", tmp_path / "3.npy", "--step", "3").err
    assert run("salvage", series.path, tmp_path / "2.npy", "--step", "2", "--quiet").status == 0
    assert np.abs(np.load(tmp_path / "2.npy") - np.sin(np.linspace(0, 9, 500) + 0.2)).max() <= 1e-3
    assert "OUT a new folder without a suffix" in run("salvage", series.path, tmp_path / "rest.npz").err
