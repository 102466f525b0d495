"""Runs of `wb.compress` that are disturbed at a moment, and what must be true after each: for `test_killed.py`.

A moment is the n-th time that a run creates, renames or removes a file or a folder, or a time after its begin. There it is
killed, or there is no room on the disk from then on. The same call follows, undisturbed.
"""

import logging
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench.cli.orphans import orphans_in

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["workbench", "workbench.cli.orphans", "distributed", "subdomains.killed"])
CLUSTERS = wb.KeepClusters(0.2)
DEADLINE = 300.0
SETTLED = 5.0   # seconds after which workers have ended the steps of a run that was killed
CASES: dict[str, dict[str, Any]] = {
    "a field in a file": {"source": "field", "bound": wb.Relative(1e-3), "chunk_values": 300, "codec": "prequantised"},
    "a masked field": {"source": "masked", "bound": wb.Absolute(1e-3), "chunk_values": 300},
    "particles in chunks": {"source": "chunks", "bound": wb.Absolute(0.05), "chunk_values": 900, "parts": 2},
    "particles along a curve": {
        "source": "chunks", "bound": wb.Absolute(0.05), "chunk_values": 900, "parts": 2, "order": "free",
        "store_permutation": True, "velocities": wb.Absolute(0.01),
    },
    "kept clusters": {"source": "chunks", "bound": wb.Absolute(0.1), "chunk_values": 900, "parts": 2, "keep": CLUSTERS},
    "kept clusters along a curve": {
        "source": "chunks", "bound": wb.Absolute(0.1), "chunk_values": 900, "parts": 2, "keep": CLUSTERS, "order": "free",
    },
    "a trajectory": {"source": "frames", "bound": wb.Absolute(0.01), "chunks": (5, 40, 3), "velocities": wb.Absolute(0.1)},
    "particles in memory": {"source": "memory", "bound": wb.Absolute(0.05), "chunk_values": 900, "order": "free"},
}
ON_WORKERS = ("a field in a file", "particles along a curve", "kept clusters", "a trajectory")


def source_of(name: str, folder: Path) -> Any:
    if name in ("field", "masked"):
        values = np.random.default_rng(1).standard_normal((24, 100)).cumsum(1)
        if name == "masked":
            return wb.Field(values, mask=values > 5)
        if not (folder / "values.npy").exists():
            np.save(folder / "values.npy", values)
        return wb.distributed.ChunkedField(folder / "values.npy")
    if name == "frames":
        noise = np.random.default_rng(3).normal(size=(2, 20, 80, 3))
        return wb.Trajectory(0.1 * noise[0].cumsum(0) % 4, cells=np.full((20, 3), 4.0), velocities=noise[1])
    web = wb.synthetic.cosmic_web(n=14, seed=2)
    particles = wb.Particles(web.positions, web.box, web.velocities, np.arange(len(web))[::-1].copy())
    if name == "memory":
        return particles
    from workbench.data.chunked import ParticlesInMemory, even_sizes

    return ParticlesInMemory(particles, even_sizes(len(particles), 500))


@dataclass(frozen=True)
class Run:
    """One call: a case, where its archive goes, and on which cluster, if any, its steps run."""

    case: str
    folder: Path
    name: str
    address: str | None = None
    overwrite: bool = False

    @property
    def out(self) -> Path:
        return self.folder / "out" / self.name

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    def call(self) -> None:
        options = dict(CASES[self.case])
        source = source_of(options.pop("source"), self.folder)
        if self.case != "particles in memory":   # which are written without any
            options["scratch"] = self.scratch
        wb.compress(source, **options, out=self.out, overwrite=self.overwrite, client=self.address)

    def started(self, **disturbance: Any) -> "Started":
        """The call in a process of its own."""
        here, there = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=child, args=(self, there), kwargs=disturbance)
        process.start()
        there.close()
        return Started(process, here)

    def ended(self, **disturbance: Any) -> "Ended":
        return self.started(**disturbance).ended()

    def found(self) -> Any:
        """What is under the name of the archive: the bytes of all its files."""
        if not self.out.is_dir():
            return self.out.read_bytes() if self.out.exists() else None
        return {path.relative_to(self.out).as_posix(): path.read_bytes() for path in self.out.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Ended:
    """How a call in another process ended: its status, its error, and the events and encoded chunks that it counted."""

    status: int | None
    kind: str = ""
    error: str = ""
    events: int = 0
    encoded: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.status} {self.kind} {self.error}".strip()


@dataclass(frozen=True)
class Started:
    """A call in another process, which tells that it begins, and how it ended."""

    process: Any
    told: Any

    def begun(self) -> None:
        assert self.told.poll(DEADLINE)
        assert self.told.recv() == {}

    def ended(self) -> Ended:
        told: dict[str, Any] = {}
        with suppress(EOFError, ConnectionResetError):
            while self.told.poll(DEADLINE):
                told = self.told.recv()
        self.process.join(DEADLINE)
        return Ended(self.process.exitcode, **told)


def child(
    run: Run, told: Any, at: int | None = None, how: str | None = None, size: int | None = None, log: Path | None = None
) -> None:
    """Make the call, and disturb it: `at` which event, or with `size` as the most bytes of a file."""
    logging.disable()
    counted, encodes = Counted(str(run.folder), at, how), recording(log)
    if size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    sys.addaudithook(counted)
    told.send({})
    began, error = time.monotonic(), {}
    try:
        run.call()
    except Exception as raised:
        error = {"kind": type(raised).__name__, "error": str(raised)}
    counted.folder = "\0"
    told.send({"events": counted.events, "encoded": len(encodes), "seconds": time.monotonic() - began, **error})


def recording(log: Path | None) -> list[Path]:
    """Chunks that are encoded from now on, by their records; the log has those that have one."""
    from workbench.archive import encoded

    records, put = [], encoded.put_hidden

    def recorded(place: Path, data: bytes) -> None:
        put(place, data)
        if encoded.RECORDS in place.parts:
            records.append(place)
            if log is not None:
                with log.open("a") as file:
                    file.write(f"{place}\n")

    encoded.put_hidden = recorded
    return records


class Counted:
    """Counts what a process does to files and folders, and ends it at one event, or refuses what takes room from there."""

    MAKE = ("open", "os.mkdir", "os.link")
    OTHERS = ("os.rename", "os.remove", "os.rmdir", "os.truncate")

    def __init__(self, folder: str, at: int | None, how: str | None) -> None:
        self.folder, self.at, self.how, self.events = folder, at, how, 0

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        if event not in self.MAKE and event not in self.OTHERS:
            return
        if event == "open" and not (given[2] or 0) & (os.O_WRONLY | os.O_RDWR):
            return
        within = event in ("os.remove", "os.rmdir") and given[1] != -1   # as of `rmtree`
        if not within and (not isinstance(given[0], str | os.PathLike) or not str(given[0]).startswith(self.folder)):
            return
        if not within and str(given[0]).endswith("/log"):
            return
        self.events += 1
        if self.at is None or self.events < self.at:
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif event in self.MAKE and (self.how == "full" or self.events == self.at):
            raise OSError(28, os.strerror(28))


@dataclass(frozen=True)
class Moment:
    """A disturbance: `kill` at an event or `killed later` after a share of the time, `full` from an event on, `once` at it
    alone, `size` for the most bytes of a file, `worker` killed after a share of the time, `twice` called then."""

    case: str
    how: str
    share: float
    suffix: str
    replaces: bool
    on_workers: bool

    def __str__(self) -> str:
        where, name = " on workers" if self.on_workers else "", "over another" if self.replaces else "new"
        return f"{self.case}{where}, {self.suffix}, {name}: {self.how} at {self.share:.4f}"


HERE = ("kill", "kill", "kill", "killed later", "full", "once", "size", "twice")
THERE = ("killed later", "killed later", "worker", "twice", "kill", "full")


def moments(count: int, seed: int, on_workers: bool) -> Iterator[Moment]:
    """Moments of all cases and kinds, spread over the whole run."""
    rng, cases = random.Random(seed), list(ON_WORKERS if on_workers else CASES)
    kinds = THERE if on_workers else HERE
    for number in range(count):
        share = (number + rng.random()) / count
        late = rng.random() < 0.25   # the archive gets its name at the end
        yield Moment(
            cases[number % len(cases)], rng.choice(kinds), 1 - 0.1 * rng.random() if late else (share * 7919) % 1,
            rng.choice((".zarr", ".zip")), rng.random() < 0.5, on_workers,
        )


class Laboratory:
    """Undisturbed runs, each made once, and moments tried against them."""

    def __init__(self, folder: Path, cluster: Any = None) -> None:
        self.folder, self.cluster = folder, cluster
        self._whole: dict[tuple[Any, ...], tuple[Any, Ended]] = {}

    @cached_property
    def other(self) -> Path:
        """An archive of other data, to be replaced."""
        wb.compress(np.arange(99.0), wb.Absolute(0.1), out=self.folder / "other.zarr")
        wb.compress(np.arange(99.0), wb.Absolute(0.1), out=self.folder / "other.zip")
        return self.folder / "other"

    def run(self, moment: Moment, folder: Path) -> Run:
        for name in ("out", "scratch"):
            (folder / name).mkdir(parents=True)
        source_of(CASES[moment.case]["source"], folder)   # its file is there before a disturbance
        address = self.cluster.client().scheduler.address if moment.on_workers else None
        run = Run(moment.case, folder, f"a{moment.suffix}", address, moment.replaces)
        if moment.replaces:
            copy = shutil.copytree if moment.suffix == ".zarr" else shutil.copy
            copy(self.other.with_suffix(moment.suffix), run.out)
        return run

    def whole(self, moment: Moment) -> tuple[Any, Ended]:
        """The bytes of an undisturbed run, and what it counted."""
        key = (moment.case, moment.suffix, moment.on_workers, moment.replaces)
        if key not in self._whole:
            folder = self.folder / f"whole-{len(self._whole)}"
            run = self.run(moment, folder)
            ended = run.ended()
            assert (ended.status, ended.kind) == (0, ""), ended
            assert [path.name for path in (folder / "out").iterdir()] == [run.name]
            assert not list((folder / "scratch").iterdir())
            self._whole[key] = run.found(), ended
        return self._whole[key]

    def try_at(self, moment: Moment) -> str:
        """Disturb a run, and call again; returns what happened in words."""
        expected, undisturbed = self.whole(moment)
        folder = Path(tempfile.mkdtemp(prefix="moment-", dir=self.folder))
        run = self.run(moment, folder)
        before, log = run.found(), folder / "log"
        words = self._disturbed(run, moment, undisturbed, log)
        after = run.found()
        assert after in (before, expected), f"what has the name of the archive is neither the old nor the new one ({words})"
        require_found_by_clean(run)
        recorded = len(set(log.read_text().splitlines())) if log.exists() else 0
        if after == before or moment.replaces:
            again = run.ended()
            assert (again.status, again.kind) == (0, ""), again
            repeated = again.encoded + recorded - undisturbed.encoded
            if after == before and not moment.on_workers:
                assert repeated <= 0, f"{repeated} of {recorded} chunks were encoded again ({words})"
        else:
            again = run.ended()
            assert "exists: choose another name" in again.error, again
        assert run.found() == expected
        left = [path for path in (folder / "out").iterdir() if path.name != run.name]
        if after == before or moment.replaces:   # all but what was being removed
            assert all(re.fullmatch(r".*\.[0-9a-f]{8}\.partial", path.name) for path in left), left
        require_found_by_clean(run)
        shutil.rmtree(folder)
        return f"{words}; {recorded} chunks were done, {again.encoded} encoded again"

    def _disturbed(self, run: Run, moment: Moment, undisturbed: Ended, log: Path) -> str:
        event = 1 + int(moment.share * undisturbed.events)
        if moment.how in ("kill", "full", "once"):
            ended = run.ended(at=event, how=moment.how, log=log)
            require_sentence(ended)
            return f"event {event} of {undisturbed.events}: {ended}"
        if moment.how == "size":
            size = int(200 * 1000 ** moment.share)
            ended = run.ended(size=size)   # which limits the log, too
            require_sentence(ended)
            return f"files of {size} bytes: {ended}"
        first, wait = run.started(log=log), moment.share * undisturbed.seconds
        first.begun()
        time.sleep(wait)
        if moment.how == "twice":
            second, ended = run.ended(log=log), first.ended()
            assert not (second.kind and ended.kind), (ended, second)
            require_sentence(second)
            require_sentence(ended)
            return f"after {wait:.2f} s: {ended} and {second}"
        if moment.how == "worker":
            workers = list(self.cluster.client().run(os.getpid).values())
            os.kill(random.Random(wait).choice(workers), signal.SIGKILL)
        else:
            first.process.kill()
        ended = first.ended()
        require_sentence(ended)
        return f"after {wait:.2f} of {undisturbed.seconds:.2f} s: {ended}"


def require_sentence(ended: Ended) -> None:
    """A run ends well, is killed, or ends with an error of our own."""
    assert ended.status in (0, -signal.SIGKILL), ended
    assert ended.kind in ("", "WorkbenchError"), ended


def require_found_by_clean(run: Run) -> None:
    """Everything beside the archive, but folders that are empty, is what `workbench clean` would list once it is old.

    Workers may still write for a moment when the run that asked them has been killed.
    """
    deadline = time.monotonic() + SETTLED
    while missed := not_found_by_clean(run):
        assert time.monotonic() < deadline, f"not found by clean: {missed}"
        time.sleep(0.2)


def not_found_by_clean(run: Run) -> set[Path]:
    """What `workbench clean` would not list of what is left, were all of it old."""
    missed = set()
    for folder in (run.folder / "out", run.scratch):
        left = {path for path in folder.iterdir() if path != run.out and not (path.is_dir() and not any(path.iterdir()))}
        for path in (path for each in left for path in (each, *each.rglob("*"))):
            with suppress(FileNotFoundError):
                os.utime(path, (0, 0))
        missed |= left - {orphan.path for orphan in orphans_in(folder, 3600.0)}
    return missed
