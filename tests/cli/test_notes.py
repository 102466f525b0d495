"""What is said aloud while compressing: bounds beside the data, what the reader left out, what is unusual."""

import functools
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run, particles, wave
from workbench.cli import compress as command


@pytest.fixture
def rain(tmp_path: Path) -> Path:
    np.save(tmp_path / "rain.npy", np.random.default_rng(1).gamma(0.3, 1e-8, (40, 50)).astype(np.float32))
    return tmp_path / "rain.npy"


@pytest.mark.parametrize("options", [[], ["--json"], ["-q"]])
def test_a_bound_above_the_range_is_said_aloud(run: Run, rain: Path, tmp_path: Path, options: list[str]) -> None:
    made = run("compress", rain, tmp_path / "a.zip", "--abs", 0.01, *options)
    assert made.status == 0
    assert "note: the bound of values, 0.01, is larger than half their range" in made.err
    assert "note:" not in made.out
    assert made.err.startswith("range ") == (options == [])
    if "--json" in options:
        assert made.json["certificate"]["notes"][0].startswith("the bound of values, 0.01")
        assert made.json["range"] < 1e-6
    told = run("info", tmp_path / "a.zip")
    assert "note: the bound of values" in told.err


def test_a_linking_length_names_the_option_for_its_unit(run: Run, snapshot: Path, tmp_path: Path) -> None:
    made = run("compress", snapshot, tmp_path / "a.zip", "--abs", 0.01, "--keep-clusters", 2.8)
    assert "if it is in the unit of positions, pass --cluster-unit length\n" in made.err
    assert "4,096 of 4,096 particles are one group" in made.err


def test_what_the_reader_left_out_is_said(
    run: Run, field: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = ["frames 1 to 101: choose one by frame=...", "forces"]
    found = wb.Field(wave().values, metadata={"left_out": left_out, "units": "K"})
    monkeypatch.setattr(command, "open_all_frames", lambda *options: found)
    made = run("compress", field, tmp_path / "a.zip", "--abs", 0.01)
    assert "note: left out: frames 1 to 101: choose one by --frame\nnote: left out: forces\n" in made.err
    assert "units K, bound 0.01\n" in made.err
    assert run("compress", field, tmp_path / "b.zip", "--abs", 0.01, "--json").json["left_out"] == left_out


def test_a_bound_has_a_unit_of_its_own(run: Run, field: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "open_all_frames", lambda *options: wb.Field(wave().values, metadata={"units": "K"}))
    made = run("compress", field, tmp_path / "a.zip", "--abs", "10 mK")
    assert "units K, bound 0.01\n" in made.err
    assert wb.open(tmp_path / "a.zip").certificate["values"].bound == wb.Absolute(0.01)
    refused = run("compress", field, tmp_path / "b.zip", "--abs", "10 pc")
    assert (refused.status, refused.out) == (2, "")
    assert "pc and K measure different things" in refused.err
    monkeypatch.undo()
    refused = run("compress", field, tmp_path / "b.zip", "--abs", "10 mK")
    assert refused.status == 2
    assert "needs data with a unit" in refused.err
    refused = run("compress", field, tmp_path / "b.zarr", "--abs", "10 mK", "--workers", 1, "--kind", "field")
    assert refused.status == 2
    assert "needs data with a unit" in refused.err


def test_velocities_within_a_share_of_their_range(run: Run, snapshot: Path, tmp_path: Path) -> None:
    made = run("compress", snapshot, tmp_path / "a.zip", "--abs", 0.01, "--velocities-rel", 1e-3)
    assert made.status == 0
    archive = wb.open(tmp_path / "a.zip")
    assert archive.certificate["velocities"].bound == wb.Relative(1e-3)
    known = particles().velocities
    assert abs(archive.decompress().velocities.astype(float) - known).max() <= 1e-3 * float(np.ptp(known)) * (1 + 1e-6)
    both = run("compress", snapshot, tmp_path / "b.zip", "--abs", 1, "--velocities-rel", 1, "--velocities-abs", 1)
    assert both.status == 2


def test_safeguards(run: Run, field: Path, snapshot: Path, tmp_path: Path) -> None:
    compress = functools.partial(run, "compress", field, tmp_path / "a.zip", "--abs", 0.5, "--codec", "prequantised")
    pytest.importorskip("compression_safeguards")
    assert compress("--safeguard", "sign", "--safeguard", '{"kind": "same", "value": 0}').status == 0
    archive = wb.open(tmp_path / "a.zip")
    np.testing.assert_array_equal(np.sign(archive.decompress().values), np.sign(wave().values))
    assert [kept["kind"] for kept in archive.certificate["values"].keep] == ["sign", "same"]
    needs_json = "must be a kind, or JSON"
    wrongs = ("{", needs_json), ('{"eb": 1}', needs_json), ("magic", "magic"), ('{"kind": "sign", "self": 1}', "'self'")
    for wrong, message in wrongs:
        refused = compress("--overwrite", "--safeguard", wrong)
        assert refused.status == 2
        assert message in refused.err
    refused = run("compress", snapshot, tmp_path / "b.zip", "--abs", 1, "--safeguard", "sign")
    assert "--safeguard is for fields; " in refused.err


def test_info_of_several_files(run: Run, snapshot: Path, field: Path, archive: Path, tmp_path: Path) -> None:
    told = run("info", snapshot, field, archive)
    assert (told.status, told.err) == (0, "")
    for path in (snapshot, field, archive):
        assert f"  {path}\n" in told.out
    found = run("info", snapshot, tmp_path / "missing.npy", field, "--json")
    assert (found.status, found.json["status"]) == (2, 2)
    assert [one.get("kind") for one in found.json["files"]] == ["particles", None, "field"]
    assert found.json["files"][1]["error"] in found.err
    assert run("info", field, "--json").json["kind"] == "field"
