"""The shell command as a user meets it: output, files, exit status, and what it says when something is wrong."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    particles = wb.synthetic.cosmic_web(n=16, seed=1)
    path = tmp_path / "snapshot.npz"
    np.savez(path, positions=particles.positions, box=particles.box[0])
    return path


def test_fof_finds_what_the_library_finds(snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "groups.npz"
    assert main(["fof", str(snapshot), "-b", "0.3", "-m", "10", "--out", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    groups = wb.friends_of_friends(wb.open(snapshot), 0.3)
    assert printed["groups"] == len(groups)
    assert printed["groups_of_at_least_10"] == groups.count(10)
    assert printed["largest"][0] == groups.sizes.max()
    written = np.load(out)
    np.testing.assert_array_equal(written["labels"], groups.labels)
    np.testing.assert_array_equal(written["sizes"], groups.sizes)
    assert written["linking_length"] == groups.linking_length


def test_fof_for_people(snapshot: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["fof", str(snapshot)]) == 0
    out = capsys.readouterr().out
    assert "4,096" in out
    assert "groups of at least 20" in out


def test_info(snapshot: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["info", str(snapshot), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["kind"], printed["count"], printed["box"]) == ("particles", 4096, [16.0, 16.0, 16.0])


def test_info_of_a_raw_field(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "field.f32"
    np.arange(24, dtype="<f4").tofile(path)
    assert main(["info", str(path), "--shape", "2,3,4", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["kind"], printed["shape"], printed["maximum"]) == ("field", [2, 3, 4], 23.0)


@pytest.mark.parametrize(("given", "box"), [("open", None), ("20", [20.0] * 3), ("16,17,18", [16.0, 17.0, 18.0])])
def test_box_of_ones_own(given: str, box: list[float] | None, snapshot: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["info", str(snapshot), "--box", given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["box"] == box


def test_doctor(capsys: pytest.CaptureFixture) -> None:
    assert main(["doctor", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["lossbench"] == wb.__version__
    assert printed["kernels"].startswith("compiled")


def test_demo_writes_a_page_that_fetches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    page = tmp_path / "demo.html"
    assert main(["demo", "-n", "16", "--out", str(page)]) == 0
    captured = capsys.readouterr()
    assert "4,096 particles" in captured.out
    assert "simulating" in captured.err
    text = page.read_text(encoding="utf-8")
    assert "data:image/png;base64," in text
    assert "http" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fof", "missing.npz"], "missing.npz"),
        (["info", "missing.npz"], "missing.npz"),
        (["fof", "SNAPSHOT", "-b", "-1"], "--linking-length must be positive and finite; got -1.0"),
        (["fof", "SNAPSHOT", "--out", "groups.txt"], "must end in .npz"),
        (["fof", "SNAPSHOT", "--out", "missing/groups.npz"], "does not exist"),
        (["demo", "--out", "missing/demo.html"], "does not exist"),
        (["demo", "-n", "2"], "n must be"),
        (["lab", "missing-folder"], "missing-folder does not exist"),
    ],
)
def test_wrong_input_says_what_is_wrong(
    arguments: list[str], message: str, snapshot: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(snapshot.parent)
    assert main([str(snapshot) if a == "SNAPSHOT" else a for a in arguments]) == 2
    captured = capsys.readouterr()
    *progress, last = captured.err.splitlines()
    assert last.startswith("workbench: ")
    assert message in last
    assert not any("Traceback" in line for line in progress)
    assert not captured.out


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["fof"], ["fof", "x", "--unit", "mpc"], ["fof", "x", "-b", "far"], ["info", "x", "--box", "a,b"]],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture) -> None:
    assert main(arguments) == 2
    usage, shown, last = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: workbench")
    assert shown.startswith("help: ")
    assert last.startswith("workbench: ")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["compres", "a", "b"], "there is no command 'compres': did you mean compress? There are demo,"),
     (["weather"], "there is no command 'weather'. There are demo,"),
     (["fof", "a", "--linking-lenght=0.2"], "did you mean --linking-length?"),
     (["compress", "a", "b", "--abs", "1", "--ordre", "free"], "arguments: --ordre free: did you mean --order?")],
)
def test_a_slip_of_the_pen_is_answered_by_the_nearest_name(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture
) -> None:
    assert main(arguments) == 2
    assert meant in capsys.readouterr().err


def test_no_command_shows_all_of_them(capsys: pytest.CaptureFixture) -> None:
    assert main([]) == 2
    assert re.search(r"salvage +recover the undamaged parts of a damaged\s+archive", capsys.readouterr().err)
