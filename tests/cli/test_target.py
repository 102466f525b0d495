"""What commands write: never over the input, never unasked, entirely or not at all; and what killed runs left is found."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run, names, particles
from workbench.cli.leftovers import ABANDONED, clear_leftovers

LONG_AGO = time.time() - ABANDONED - 60


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def linked(kind: str, source: Path) -> Path:
    """Another name of the same file or folder."""
    other = source.parent / f"other{source.suffix}"
    if kind == "same":
        return source
    os.link(source, other) if kind == "hard" else other.symlink_to(source)
    return other


@pytest.mark.parametrize("kind", ["same", "symbolic", "hard"])
def test_fof_never_replaces_its_input(run: Run, snapshot: Path, kind: str) -> None:
    out = linked(kind, snapshot)
    before = contents(snapshot.parent)
    for options in ([], ["--overwrite"]):
        refused = run("fof", snapshot, "-o", out, *options)
        assert (refused.status, refused.out) == (2, "")
        assert "is the input, contains it or is part of it: choose another name" in refused.err
    assert contents(snapshot.parent) == before


@pytest.mark.parametrize("kind", ["same", "symbolic"])
def test_an_archive_is_never_replaced_by_what_is_made_from_it(run: Run, archive: Path, kind: str) -> None:
    before = contents(archive.parent)
    out = linked(kind, archive)
    refused = run("compress", archive, out, "--abs", 1, "--overwrite")
    assert refused.status == 2
    assert "is the input" in refused.err
    inside = run("decompress", archive, out / "back.npz")
    assert inside.status == 2
    assert "part of it" in inside.err
    assert contents(archive.parent) == before


def test_a_folder_that_holds_the_input_is_not_replaced(run: Run, archive: Path) -> None:
    np.save(archive / "field.npy", np.ones((4, 4), np.float32))
    before = contents(archive)
    refused = run("compress", archive / "field.npy", archive, "--abs", 1, "--overwrite")
    assert refused.status == 2
    assert "contains it" in refused.err
    assert contents(archive) == before


@pytest.mark.parametrize("command", ["fof", "demo"])
def test_nothing_is_replaced_unasked(run: Run, snapshot: Path, tmp_path: Path, command: str) -> None:
    out = tmp_path / {"fof": "groups.npz", "demo": "demo.html"}[command]
    arguments = {"fof": ["fof", snapshot, "-o", out], "demo": ["demo", "-n", 8, "-o", out]}[command]
    out.write_text("dear to someone")
    refused = run(*arguments)
    assert (refused.status, refused.out) == (2, "")
    assert "exists: choose another name, or pass --overwrite" in refused.err
    assert "simulating" not in refused.err
    assert out.read_text() == "dear to someone"
    assert run(*arguments, "--overwrite").status == 0
    assert out.stat().st_size > 100
    assert names(tmp_path) == {"snapshot.npz", out.name}


@pytest.mark.parametrize("command", ["fof", "demo"])
def test_after_a_full_disk_nothing_is_left(
    run: Run, snapshot: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / {"fof": "groups.npz", "demo": "demo.html"}[command]
    monkeypatch.setattr(os, "fsync", full)
    ended = run(*{"fof": ["fof", snapshot, "-o", out], "demo": ["demo", "-n", 8, "-o", out]}[command])
    assert ended.status == 2
    assert ended.err.endswith(f"workbench: cannot write {out}: No space left on device\n")
    assert names(tmp_path) == {"snapshot.npz"}


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
def test_where_nobody_can_write_is_one_sentence(run: Run, snapshot: Path) -> None:
    ended = run("fof", snapshot, "--out", "/proc/g.npz")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("workbench: cannot write /proc/g.npz: ")
    assert ended.err.count("\n") == 1


def test_fof_refuses_before_the_work(run: Run, snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.cli.fof.open_data", lambda options: pytest.fail("the file was read"))
    for out in ("groups.txt", "missing/groups.npz", "-", "snapshot.npz"):
        monkeypatch.chdir(tmp_path)
        assert run("fof", snapshot, "--out", out).status == 2
    assert "--overwrite needs --out" in run("fof", snapshot, "--overwrite").err


@pytest.mark.parametrize("out", ["a.hdf5", "a.npy", "a.zip.tmp", "-"])
def test_names_that_promise_something_else_are_refused(
    run: Run, field: Path, tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("compress", field, out, "--abs", 0.1)
    assert (refused.status, refused.out) == (2, "")
    assert ("OUT must be a file or folder" if out == "-" else "an archive must end in .zip (one file)") in refused.err
    assert names(tmp_path) == {"field.npy"}


def test_the_library_refuses_them_too(tmp_path: Path) -> None:
    made = wb.compress(np.ones(8), wb.Absolute(1))
    with pytest.raises(wb.WorkbenchError, match=r"must end in .zip .* got x.hdf5"):
        made.save(tmp_path / "x.hdf5")
    assert made.save(tmp_path / "plain").is_dir()
    assert names(tmp_path) == {"plain"}


def leave(path: Path, when: float | None) -> Path:
    """A partial file, or a partial folder with a file in it, of this age."""
    place = path
    if ".zarr." in path.name:
        place = path / "positions" / "c"
        place.parent.mkdir(parents=True)
    place.write_text("half")
    for each in (place, place.parent, path) if when is not None and place != path else (path,) if when is not None else ():
        os.utime(each, (when, when))
    return path


@pytest.mark.parametrize("out", ["a.zip", "a.zarr"])
def test_what_a_killed_run_left_is_removed_by_the_next(run: Run, snapshot: Path, tmp_path: Path, out: str) -> None:
    old = leave(tmp_path / f".{out}.0123abcd.partial", LONG_AGO)
    mine = [leave(tmp_path / f".{out}.{name}", LONG_AGO) for name in ("xyz.partial", "0123abcd.old")]
    mine.append(leave(tmp_path / ".b.zip.0123abcd.partial", LONG_AGO))
    made = run("compress", snapshot, tmp_path / out, "--abs", 0.1)
    assert made.status == 0
    assert f"note: {old} was left by a killed run and has been removed\n" in made.err
    assert f"note: {mine[1]} is the data that an interrupted run was replacing" in made.err
    assert names(tmp_path) == {"snapshot.npz", out, *(path.name for path in mine)}


def test_what_may_still_be_written_is_kept(tmp_path: Path) -> None:
    fresh = leave(tmp_path / ".a.zip.00000001.partial", None)
    growing = leave(tmp_path / ".a.zip.00000002.partial", LONG_AGO)
    growing.write_text("half and more")
    folder = leave(tmp_path / ".a.zarr.00000003.partial", LONG_AGO)
    (folder / "positions" / "c").write_text("more")
    for name in ("a.zip", "a.zarr"):
        assert all("may belong to a run that is still writing" in note for note in clear_leftovers(tmp_path / name))
    assert names(tmp_path) == {fresh.name, growing.name, folder.name}


def test_links_are_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years")
    (tmp_path / ".a.zarr.00000001.partial").symlink_to(precious)
    os.utime(tmp_path / ".a.zarr.00000001.partial", (LONG_AGO, LONG_AGO), follow_symlinks=False)
    clear_leftovers(tmp_path / "a.zarr")
    assert names(tmp_path) == {"precious", ".a.zarr.00000001.partial"}
    assert (precious / "thesis.tex").read_text() == "years"


def test_fof_is_quiet_when_asked_to(run: Run, snapshot: Path, tmp_path: Path) -> None:
    made = run("fof", snapshot, "-q", "-o", tmp_path / "groups.npz")
    assert (made.status, made.err) == (0, "")
    written = np.load(tmp_path / "groups.npz")
    np.testing.assert_array_equal(written["labels"], wb.friends_of_friends(particles(), 0.2).labels)
