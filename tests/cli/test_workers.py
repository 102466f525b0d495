"""`--workers` and `--scheduler`: the results of one process, from workers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import workbench as wb
from cli.conftest import Run, names, particles, wave
from workbench.run import local

distributed = pytest.importorskip("distributed", reason="needs the dask extra")


@pytest.fixture(scope="module")
def scheduler():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit="1GiB"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def positions(tmp_path: Path) -> Path:
    path = tmp_path / "positions.npy"
    np.save(path, particles().positions)
    return path


def test_workers_find_the_groups_of_one_process(run: Run, positions: Path, tmp_path: Path, scheduler: str) -> None:
    how = ("-b", 0.3, "-m", 10, "--json", "--quiet")
    for box in ((), ("--box", 16)):
        alone = run("fof", positions, *how, *box, "--out", tmp_path / "alone.npz", "--overwrite").json
        found = run("fof", positions, *how, *box, "--scheduler", scheduler, "--workers", 2, "--scratch", tmp_path,
                    "--out", tmp_path / "found.npz", "--overwrite")
        assert found.status == 0
        assert found.json["linking_length_in_spacings"] == pytest.approx(alone.pop("linking_length_in_spacings"))
        assert {name: found.json[name] for name in alone if name != "seconds"} | {"seconds": 0} == alone | {"seconds": 0}
        one, other = (np.load(tmp_path / f"{name}.npz") for name in ("alone", "found"))
        assert all(np.array_equal(one[name], other[name]) for name in one)
    assert names(tmp_path) == {"positions.npy", "alone.npz", "found.npz"}


def test_a_pattern_of_files_is_one_snapshot(run: Run, tmp_path: Path, scheduler: str) -> None:
    for number, part in enumerate(np.array_split(particles().positions, 3)):
        np.save(tmp_path / f"part.{number}.npy", part)
    found = run("fof", tmp_path / "part.*.npy", "--box", 16, "--scheduler", scheduler, "--json", "-q")
    assert found.status == 0
    alone = wb.friends_of_friends(wb.Particles(particles().positions, 16.0))
    assert (found.json["groups"], found.json["largest"][0]) == (len(alone), alone.sizes.max())


def test_workers_write_the_archive_of_one_process(run: Run, positions: Path, tmp_path: Path, scheduler: str) -> None:
    expected, found = tmp_path / "alone.zip", tmp_path / "found.zip"
    assert run("compress", positions, expected, "--abs", 0.01, "--order", "free", "--box", 16, "-q").status == 0
    done = run("compress", positions, found, "--abs", 0.01, "--order", "free", "--box", 16, "--scheduler", scheduler)
    assert done.status == 0
    assert "bits per particle" in done.out
    assert "dashboard: http://127.0.0.1" in done.err
    assert wb.open(found).bits_per_particle == wb.open(expected).bits_per_particle
    assert wb.open(found).verify(wb.Particles(particles().positions, 16.0)).passed
    assert run("compress", positions, found, "--abs", 0.01, "--scheduler", scheduler).status == 2


def test_workers_compress_a_field(run: Run, field: Path, tmp_path: Path, scheduler: str) -> None:
    out = tmp_path / "field.zip"
    done = run("compress", field, out, "--rel", 1e-3, "--kind", "field", "--scheduler", scheduler, "--json", "-q")
    assert (done.status, done.err) == (0, "")
    assert done.json["archive_bytes"] == wb.compress(wb.Field(wave().values), wb.Relative(1e-3)).nbytes
    assert wb.open(out).verify(wb.Field(wave().values)).passed


@pytest.mark.few(3)
@pytest.mark.parametrize(("arguments", "told"), [
    (("--workers", 0), "workers must be a whole number"),
    (("--workers", "two"), "invalid int value"),
    (("--scratch", "."), "--scratch needs --workers N or --scheduler ADDRESS"),
    (("--workers", 1, "--frame", 2), "--frame makes no sense for positions.npy"),
    (("--workers", 1, "--velocities-abs", 2), "--velocities-abs bounds the velocities of particles; these have none"),
    (("--workers", 1, "--kind", "field", "--box", 2), "--box is for input in one process"),
    (("--scheduler", "nonsense://1"), "no scheduler answers at nonsense://1"),
])
def test_what_cannot_be_is_refused_in_one_sentence(
    run: Run, positions: Path, tmp_path: Path, arguments: tuple[object, ...], told: str
) -> None:
    done = run("compress", positions, tmp_path / "a.zip", "--abs", 1, *arguments, "--json", "-q")
    assert (done.status, names(tmp_path)) == (2, {"positions.npy"})
    assert told in done.json["error"]


def test_too_few_workers_are_an_error(run: Run, positions: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PATIENCE", 0.1)
    done = run("fof", positions, "--scheduler", scheduler, "--workers", 3, "-q")
    assert done.status == 2
    assert "must have 3 workers; it has 2 after 0.1 seconds" in done.err


@pytest.mark.long
def test_new_workers_end_with_the_command(positions: Path, tmp_path: Path) -> None:
    running = in_session("fof", positions, "--workers", 1, "--json")
    out, told = running.communicate(timeout=120)
    assert (running.returncode, told) == (0, "")
    assert json.loads(out)["particles"] == 4096
    psutil.wait_procs(processes_of(running), timeout=60)
    assert processes_of(running) == []


@pytest.mark.long
def test_an_interrupt_leaves_neither_workers_nor_files(tmp_path: Path) -> None:
    np.save(tmp_path / "positions.npy", np.random.default_rng(0).random((3_000_000, 3), np.float32))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    running = in_session("fof", tmp_path / "positions.npy", "--workers", 2, "--scratch", scratch)
    while not list(scratch.iterdir()) and running.poll() is None:
        time.sleep(0.05)
    assert len(processes_of(running)) > 2
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 143, told
    assert told.splitlines()[-1] == "workbench: ended by SIGTERM"
    assert names(tmp_path) == {"positions.npy", "scratch"}
    assert not list(scratch.iterdir())
    psutil.wait_procs(processes_of(running), timeout=60)
    assert processes_of(running) == []


def in_session(*arguments: object) -> subprocess.Popen[str]:
    """The command in a session of its own, to which the processes that it starts belong."""
    command = [sys.executable, "-m", "workbench.cli", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def processes_of(running: subprocess.Popen[str]) -> list[psutil.Process]:
    """The living processes of its session."""
    return [process for process in psutil.process_iter() if session_of(process) == running.pid]


def session_of(process: psutil.Process) -> int | None:
    """The session of a living process."""
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else os.getsid(process.pid)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None
