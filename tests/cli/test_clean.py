"""`workbench clean`: what killed runs have left goes, and nothing of a run that lives."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run, names
from workbench.archive import lock
from workbench.archive.writing import Draft
from workbench.cli import orphans
from workbench.run import owner as owners
from workbench.run.owner import BOOT, OWNER, lives, remove_owned, started, this_process

WEB = wb.synthetic.cosmic_web(n=8, seed=1)
SEARCH = """
import sys, workbench as wb
with wb.friends_of_friends(wb.synthetic.cosmic_web(n=8, seed=1), scratch=sys.argv[1]):
    print("searched", flush=True)
    input()
"""
DEAD = 2**22 - 1


def scratch(folder: Path, name: str, owner: str | None) -> Path:
    place = folder / name
    place.mkdir()
    (place / "chunk-0").write_bytes(bytes(1000))
    if owner is not None:
        (place / OWNER).write_text(owner)
    return place


def named(host: str | None = None, pid: int = DEAD, began: str | None = "1", **machine: str) -> str:
    return json.dumps({"host": socket.gethostname() if host is None else host, "pid": pid, "started": began, **machine})


def age(path: Path, days: float) -> None:
    for place in (*path.rglob("*"), path):
        os.utime(place, (time.time() - 86400 * days,) * 2)


def test_the_scratch_folder_of_a_killed_search_is_removed_and_that_of_a_living_one_is_not(run: Run, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SEARCH, str(tmp_path)]
    searches = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for search in searches:
        assert search.stdout is not None
        assert search.stdout.readline() == "searched\n"
    assert run("clean", tmp_path, "--yes").out == "nothing to remove\n"
    searches[0].send_signal(signal.SIGKILL)
    searches[0].communicate()
    living, ended = sorted(names(tmp_path), key=lambda name: str(searches[0].pid) in (tmp_path / name / OWNER).read_text())
    listed = run("clean", tmp_path)
    assert (listed.status, listed.out.count("\n")) == (0, 2)
    assert f"{tmp_path / ended}  " in listed.out
    assert "nothing was removed: add --yes" in listed.out
    assert names(tmp_path) == {living, ended}
    assert run("clean", tmp_path, "--yes", "--json").json["orphans"][0]["removed"] is True
    assert names(tmp_path) == {living}
    searches[1].communicate("\n")
    assert names(tmp_path) == set()


@pytest.mark.parametrize("owner", [
    named(host="another machine"), named(pid=os.getpid(), began=started(os.getpid())), named(pid=1, began="-1"), "", "{",
    named(pid=-1), None, named(boot="another"), named(pids="pid:[1]"),
], ids=["other machine", "this process", "of unknown age", "empty", "cut off", "no number", "no owner", "restarted",
        "other container"])
def test_what_lives_or_may_live_is_not_touched(run: Run, tmp_path: Path, owner: str | None) -> None:
    age(scratch(tmp_path, "lossbench-a1b2", owner), 365)
    age(scratch(tmp_path, "others-a1b2", named()), 365)
    (tmp_path / "lossbench-link").symlink_to(scratch(tmp_path, "elsewhere", named()))
    assert run("clean", tmp_path, "--yes", "--older-than", 0).out == "nothing to remove\n"
    assert len(names(tmp_path)) == 4


@pytest.mark.skipif(not BOOT.exists(), reason="needs Linux")
def test_machines_without_numbers_of_their_runs_are_known_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    full = this_process()
    monkeypatch.setattr(owners, "BOOT", Path("none"))
    short = this_process()
    assert set(json.loads(full)) - set(json.loads(short)) == {"boot", "pids"}
    assert lives(full) is lives(short) is True


def test_folders_that_are_empty_as_of_a_run_killed_when_it_made_one_are_removed_once_they_are_old(
    run: Run, tmp_path: Path
) -> None:
    for name in ("lossbench-0123456789ab", "lossbench-named", "lossbench-used", "lossbench-results"):
        (tmp_path / name).mkdir()
    (tmp_path / "lossbench-log").touch()
    (tmp_path / "lossbench-named" / f".{OWNER}.0123456789abcdef").touch()
    (tmp_path / "lossbench-used" / "chunk-0").touch()
    assert run("clean", tmp_path, "--yes").out == "nothing to remove\n"
    for name in names(tmp_path):
        age(tmp_path / name, 8)
    run("clean", tmp_path, "--yes")
    assert names(tmp_path) == {"lossbench-used", "lossbench-results", "lossbench-log"}


def test_an_old_archive_is_removed_once_the_new_one_has_its_name(run: Run, tmp_path: Path) -> None:
    old = tmp_path / ".a.zarr.0123abcd.old"
    wb.compress(np.arange(9.0), wb.Absolute(0.1), out=tmp_path / "a.zarr")
    (tmp_path / "a.zarr").rename(old)
    age(old, 8)
    assert run("clean", tmp_path, "--yes").out == "nothing to remove\n"
    wb.compress(np.arange(9.0), wb.Absolute(0.1), out=tmp_path / "a.zarr")
    run("clean", tmp_path, "--yes")
    assert names(tmp_path) == {"a.zarr"}


def test_what_other_programs_have_named_alike_is_not_touched(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("notes", ".notes.20240101.partial", ".notes.20240101.old"):
        (tmp_path / name).write_text("precious")
    for name in ("data", ".data.20240101.partial", ".data.20240101.old"):
        scratch(tmp_path, name, None)
    age(tmp_path, 365)
    assert run("clean", tmp_path, "--yes").out == "nothing to remove\n"

    def refuse(*given: object) -> bool:
        raise PermissionError

    monkeypatch.setattr(orphans, "is_abandoned", refuse)
    assert run("clean", tmp_path, "--yes").out == "nothing to remove\n"
    assert len(names(tmp_path)) == 6


@pytest.mark.parametrize("at", range(3))
def test_a_scratch_folder_names_its_process_until_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    folder, real, removed = scratch(tmp_path, "lossbench-a1b2", named()), os.unlink, []
    for name in ("chunk-1", "a", "z"):
        (folder / name).touch()

    def end(path: str, **where: int) -> None:
        if len(removed) == at:
            raise KeyboardInterrupt
        removed.append(path)
        real(path, **where)

    monkeypatch.setattr(os, "unlink", end)
    with pytest.raises(KeyboardInterrupt):
        remove_owned(folder)
    assert (folder / OWNER).exists()


def test_a_number_that_another_process_has_got_is_not_taken_for_the_run(run: Run, tmp_path: Path) -> None:
    scratch(tmp_path, "lossbench-a1b2", named(pid=os.getpid(), began="1"))
    run("clean", tmp_path, "--yes")
    assert names(tmp_path) == set()


def test_folders_of_other_users_are_not_touched(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch(tmp_path, "lossbench-a1b2", named())
    monkeypatch.setattr(orphans.os, "getuid", lambda: 12345)
    assert run("clean", tmp_path, "--yes").out == "nothing to remove\n"


def test_an_unfinished_archive_stays_until_it_is_old_or_while_a_run_writes_it(run: Run, tmp_path: Path) -> None:
    draft = Draft(tmp_path / "a.zarr", token="0123456789abcdef")
    draft.put("values/c/0", b"LBC1")
    (draft.folder / lock.LOCK).write_text(named())
    zipped = tmp_path / ".b.zip.0123456789abcdef.partial"
    wb.compress(np.arange(9.0), wb.Absolute(0.1), out=tmp_path / "b.zip")
    zipped.write_bytes((tmp_path / "b.zip").read_bytes()[:-100])
    (tmp_path / "b.zip").unlink()
    table = tmp_path / ".c.npz.01234567.lossbench.partial"
    table.touch()
    age(tmp_path, 6)
    assert run("clean", tmp_path, "--yes").out == "nothing to remove\n"
    age(tmp_path, 8)
    (draft.folder / lock.LOCK).write_text(this_process())
    age(tmp_path, 8)
    assert [entry["path"] for entry in run("clean", tmp_path, "--json").json["orphans"]] == [str(zipped), str(table)]
    (draft.folder / lock.LOCK).write_text(named())
    age(tmp_path, 8)
    found = run("clean", tmp_path, "--json").json["orphans"]
    assert [Path(entry["path"]).name for entry in found] == [draft.folder.name, zipped.name, table.name]
    kinds = "archive", "archive", "file"
    assert [entry["why"] for entry in found] == [f"an unfinished {kind} without a change for 7 days" for kind in kinds]
    assert run("clean", tmp_path, "--yes").out.count("removed\n") == 3
    assert names(tmp_path) == set()


@pytest.mark.parametrize(("inside", "ours"), [
    (f"{lock.LOCK}.0123456789abcdef", True), (".within-0x1.9999ap-4", True), (".kept-0x1.0p+2", True), (".lock.b", False),
    (".within", False), (None, False),
])
def test_the_rest_of_a_draft_whose_run_was_killed_when_it_began_or_removed_one_is_removed_once_it_is_old(
    run: Run, tmp_path: Path, inside: str | None, ours: bool
) -> None:
    rest = tmp_path / ".a.zarr.01234567.partial"
    rest.mkdir()
    if inside is not None:
        (rest / inside).touch()
    age(tmp_path, 8)
    assert run("clean", tmp_path, "--yes").out.count("removed\n") == ours
    assert rest.exists() != ours


def test_a_run_that_takes_an_unfinished_archive_up_meanwhile_keeps_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = Draft(tmp_path / "a.zarr", token="0123456789abcdef")
    draft.put("values/c/0", b"LBC1")
    age(tmp_path, 8)
    judged = orphans._judged

    def taken_up(path: Path, seconds: float) -> orphans.Orphan | None:
        orphan = judged(path, seconds)
        (path / lock.LOCK).write_text(this_process())
        return orphan

    monkeypatch.setattr(orphans, "_judged", taken_up)
    done = run("clean", tmp_path, "--yes")
    assert (done.status, "must be written by one run at a time" in done.out) == (1, True)
    assert (draft.partial / "values/c/0").exists()


def test_folders_of_results_name_their_process_while_they_are_written(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    with wb.friends_of_friends(WEB, parts=2) as groups:
        of_chunk = groups._labels.between
        seen = []

        def between(start: int, end: int) -> np.ndarray:
            seen.extend((tmp_path / name / OWNER).read_text() for name in names(tmp_path))
            assert run("clean", tmp_path, "--yes", "--older-than", 0).out == "nothing to remove\n"
            return of_chunk(start, end)

        object.__setattr__(groups._labels, "between", between)
        groups.to_zarr(tmp_path / "labels.zarr")
    assert seen == [this_process()]
    assert not (tmp_path / "labels.zarr" / OWNER).exists()
    scratch(tmp_path, ".labels.zarr.0a1b2c3d.partial", named())
    assert run("clean", tmp_path, "--yes").out.endswith("removed\n")
    assert names(tmp_path) == {"labels.zarr"}


def test_without_a_folder_those_for_temporary_files_and_this_one_are_searched(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "temporary"):
        (tmp_path / name).mkdir()
        scratch(tmp_path / name, f"lossbench-{name}", named())
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert len(run("clean", "--json").json["orphans"]) == 2
    refused = run("clean", tmp_path / "none")
    assert (refused.status, "FOLDER must be a folder" in refused.err) == (2, True)
    assert run("clean", "--older-than", -1).status == 2
