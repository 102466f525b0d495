"""What a search or an archive on a cluster will take, before anything is read: tasks, files, bytes, memory and time.

What the steps take is in `planned_steps.py`. Ghosts of a uniform distribution follow from geometry: particles within a
linking length of the faces. Halos near a face add some, so a sample of the particles gives a better figure: it is divided
as the particles will be. Rates are particles per second and thread, measured on one machine (`Rates.measured`); the times
of others scale with them. A run takes as long as the slowest of four: workers compute, the scheduler takes up one task
after the other, results pass through it, and files are opened.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from workbench import backend
from workbench.arguments import flag, one_of, positive, whole_number
from workbench.charts.table import html_table
from workbench.clusters import absolute_linking_length
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess, Result
from workbench.subdomains.decomposition import Decomposition
from workbench.subdomains.exchange import ROW
from workbench.subdomains.planned_steps import KEPT_BORDER, Order, RunSize, Step, steps_of_archive, steps_of_search
from workbench.subdomains.sources import PART, SAMPLE, SAMPLED

FEW_PARTS = 64             # subdomains that are allowed for any number of particles, though many will be empty
MOST_PARTS = 4096          # beyond 4 · 10⁹ particles they grow: an exchange counts for pairs of them and runs of chunks
WORKER_BYTES = 2**28       # of a worker without any particles
SEARCH_BYTES = 40          # of each particle while it is searched, beside two copies of its position
LABEL_BYTES = 16           # of each particle in the files, at most: its label and index; half of it up to 2³¹ particles
GHOST_BYTES = 40           # of each ghost there: index and label, and the final labels of groups that others know
CLUSTERED = 1.15           # ghosts of a simulated universe at z = 0 over those of a uniform distribution
UNEVEN = 1.2               # the largest subdomain over the mean: cuts come from a sample
STEP_SECONDS = 0.01        # of one task that does nothing
CHUNK = 2**20              # particles in a chunk of the source, by default,
MOST_CHUNKS = 4096         # or more in each of so many
ARCHIVE_CHUNK = 2**19      # particles in a chunk of an archive
TASK_BYTES = 2000          # of a task for the scheduler, beside its results
CLIENT_BYTES = 2**27       # of a client and a scheduler that do nothing,
CLIENT_TASK = 4000         # for each task,
CLIENT_PAIR = 16           # for each pair of a file of an exchange and a subdomain that reads it: tables of what was sent,
CLIENT_SAMPLED = 16        # and for each coordinate of a sample
GATHER_BYTES = 30          # of each particle while it is gathered, beside two copies of its position
KEPT_BYTES = 150           # of each particle while clusters are kept, beside those of a search
KEPT_WIDTH = 2.3           # the ghost width over the linking length while clusters are kept, at a bound of a tenth of it
KEPT_ROW = 2               # bytes that travel with a decoded position
KEPT_SCRATCH = 10          # bytes of scratch files for each particle of a subdomain, beside its positions,
KEPT_READ = 4              # times that all of these are read again,
KEPT_GHOST = 84            # and for each ghost: its labels, and copies for the repairs at borders
SLOWEST = {
    "workers": "workers compute", "tasks": "the scheduler takes up tasks", "traffic": "results pass through the scheduler",
    "files": "files are opened",
}
UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0))


@dataclass(frozen=True)
class Rates:
    """Particles per second that one thread sends, searches, compares, encodes, keeps in their clusters, and sorts.

    `scratch` is bytes per second of scratch files on a worker, `files` how many it opens. `tasks` and `traffic` are tasks
    and bytes per second of the scheduler. The defaults are from two cores of a cloud machine in 2026 with files in memory.
    """

    send: float = 3.5e7
    search: float = 6.0e6
    compare: float = 1.1e8
    scratch: float = 1e9
    encode: float = 3.2e6
    keep: float = 4e5
    files: float = 1e4
    tasks: float = 300.0
    traffic: float = 1e8
    sort: float = 2e7

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            positive(field.name, getattr(self, field.name))

    @classmethod
    def measured(cls, particles: Particles, scratch: float = 1e9) -> Rates:
        """The rates of one thread of this machine with these particles, some millions or so.

        >>> from workbench.data.synthetic import cosmic_web
        >>> Rates.measured(cosmic_web(n=16, seed=1)).search > 1000
        True
        """
        from workbench.subdomains.groups import search

        watch = _Watch()
        with backend.using_threads(1):
            search(watch, particles, parts=8).close()
        send, finding, compare = (
            len(particles) / watch.seconds[name] for name in ("send-particles", "find-groups", "compare-labels")
        )
        return cls(send, finding, compare, scratch)


@dataclass(frozen=True)
class _Watch(InProcess):
    """Runs steps here, and notes the processor time of each."""

    seconds: dict[str, float] = dataclasses.field(default_factory=dict)

    def map(
        self, name: str, step: Callable[..., Result], items: Sequence[Any], each: str = "item", on_gpu: bool = False,
        shared: Any = None, together: bool = False,
    ) -> list[Result]:
        """The results, in the order of the items."""
        began = time.thread_time()
        results = super().map(name, step, items, each, on_gpu, shared, together)
        self.seconds[name] = max(time.thread_time() - began, 1e-9)
        return results


@dataclass(frozen=True)
class Plan:
    """What a run will take; `print` shows it. Fractions are of the particles, bytes are of the whole run."""

    particles: int
    linking_length: float   # in mean spacings
    workers: int
    threads: int
    chunks: int             # of the source
    parts: int
    ghosts: float           # copies of particles in other subdomains, over particles
    read: int               # bytes of positions read from the source, some of them several times
    moved: int              # bytes of positions and rows that go through scratch files
    scratch: int            # bytes of all scratch files at most
    worker_memory: int      # bytes that a worker needs at most
    memory: int             # bytes that a worker has
    client_memory: int      # bytes that the client and the scheduler need
    steps: tuple[Step, ...]
    limits: Mapping[str, float]   # seconds that each of workers, tasks, traffic and files takes

    @property
    def fits(self) -> bool:
        """Whether a worker has the memory that its subdomains need."""
        return self.worker_memory <= self.memory

    @property
    def tasks(self) -> int:
        """How many tasks pass through the scheduler."""
        return sum(step.tasks for step in self.steps)

    @property
    def files(self) -> int:
        """How often files are opened, at most."""
        return sum(step.files for step in self.steps)

    @property
    def traffic(self) -> int:
        """Bytes that pass through the scheduler."""
        return sum(step.results for step in self.steps) + TASK_BYTES * self.tasks

    @property
    def seconds(self) -> float:
        """The time of the slowest."""
        return max(self.limits.values())

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':<12}{text}" for name, text in self._in_words().items())

    def _repr_html_(self) -> str:
        return html_table(["", "planned"], [[name, text] for name, text in self._in_words().items()], texts=(0, 1))

    def _in_words(self) -> dict[str, str]:
        slowest = max(self.limits, key=lambda name: self.limits[name])
        lines = {
            "particles": f"{self.particles:,} in {self.chunks:,} chunks, "
            f"linking length {self.linking_length:g} of the mean spacing",
            "workers": f"{self.workers:,} with {self.threads} threads and {as_size(self.memory)} each",
            "subdomains": f"{self.parts:,}, about {self.particles / self.parts:,.0f} particles each",
            "ghosts": f"{self.ghosts:.2%} of the particles",
            "read": as_size(self.read),
            "moved": f"{as_size(self.moved)} through scratch files, which grow to {as_size(self.scratch)}",
            "tasks": f"{self.tasks:,}, with {as_size(self.traffic)} through the scheduler",
            "files": f"opened {self.files:,} times at most",
            "memory": f"{as_size(self.worker_memory)} on each worker{'' if self.fits else ', MORE THAN A WORKER HAS'}; "
            f"{as_size(self.client_memory)} for client and scheduler",
            "time": f"{as_duration(self.seconds)}, as {SLOWEST[slowest]}",
        }
        if not any(step.name == "find-groups" for step in self.steps):   # space is not divided
            del lines["subdomains"], lines["ghosts"]
        return lines


def plan(
    n_particles: int,
    linking_length: float = 0.2,
    workers: int = 1,
    memory: str | float = "4GB",
    *,
    threads: int = 1,
    parts: int | None = None,
    chunks: int | None = None,
    dimensions: int = 3,
    dtype: Any = np.float32,
    sample: Particles | None = None,
    rates: Rates | None = None,
    order: Order | None = None,
    keep: bool = False,
) -> Plan:
    """What `friends_of_friends` will take on `workers` workers with `memory` and `threads` each.

    `linking_length` is in mean spacings. `parts` is the number of subdomains; by default, as many as the memory needs and
    a search can have, at least those that it makes by itself: give `parts=plan(...).parts` to it. `chunks` are those of the
    source, which has a box: in open space, all positions are read once more, for the mean spacing. A `sample` of the
    particles, some ten thousand of them in their box, makes the figure for ghosts better. With `order`, "keep" or "free",
    it is the plan of an archive instead; with `keep=True`, of one that keeps clusters, which is an estimate.

    >>> planned = plan(10**9, workers=64, memory="8GB")
    >>> print(planned)
    particles:  1,000,000,000 in 954 chunks, linking length 0.2 of the mean spacing
    workers:    64 with 1 threads and 8.0 GB each
    subdomains: 954, about 1,048,218 particles each
    ghosts:     1.43% of the particles
    read:       24.0 GB
    moved:      32.5 GB through scratch files, which grow to 32.8 GB
    tasks:      4,374, with 9.2 MB through the scheduler
    files:      opened 75,989 times at most
    memory:     378.9 MB on each worker; 163.7 MB for client and scheduler
    time:       15 s, as the scheduler takes up tasks
    """
    count = whole_number("n_particles", n_particles, least=1)
    axes = whole_number("dimensions", dimensions, least=2, most=3)
    width = positive("linking_length", linking_length)
    staff, each = whole_number("workers", workers, least=1), whole_number("threads", threads, least=1)
    room, speed = bytes_of(memory), Rates() if rates is None else rates
    if order is not None:
        one_of("order", order, get_args(Order))
    kept = flag("keep", keep)
    if kept and order is None:
        raise WorkbenchError('keep=True is for archives: give order="keep" or order="free"')
    pieces = min(-(-count // CHUNK), MOST_CHUNKS) if chunks is None else whole_number("chunks", chunks, least=1)
    row = np.dtype(dtype).itemsize * axes
    held = UNEVEN * each * (SEARCH_BYTES + 2 * row + (KEPT_BYTES if kept else 0))   # bytes for each particle of a subdomain
    if parts is None:
        parts = max(default_parts(count), math.ceil(1.1 * count * held / max(room - WORKER_BYTES, 1)))
        if room <= WORKER_BYTES or parts > count:
            raise WorkbenchError(
                f"a worker needs {as_size(WORKER_BYTES)} before it holds any particles; got memory {as_size(room)}: "
                "give more"
            )
        parts = min(parts, MOST_PARTS)
    division = whole_number("parts", parts, least=1)
    divided = order is None or kept   # an archive without clusters has no subdomains
    share = _share(count, division, width * (KEPT_WIDTH if kept else 1.0), axes, sample) if divided else 0.0
    run = RunSize(count, axes, pieces, division, share * count, -(-count // ARCHIVE_CHUNK))
    steps = tuple(steps_of_search(run) if order is None else steps_of_archive(run, order, kept))
    moved, scratch, passed = _scratch(run, row, order, kept)
    read = round(count * row * sum(step.readings for step in steps))
    work, through = _work(run, speed, order, kept), (read + passed) / speed.scratch
    rounds = -(-sum(step.tasks for step in steps) // (staff * each)) + len(steps)
    busy = min(staff * each, division)
    tasks, results, files = (sum(getattr(step, name) for step in steps) for name in ("tasks", "results", "files"))
    limits = {
        "workers": work / busy + through / min(staff, division) + rounds * STEP_SECONDS, "tasks": tasks / speed.tasks,
        "traffic": (results + TASK_BYTES * tasks) / speed.traffic, "files": files / (speed.files * staff),
    }
    largest = max(_held(run, order, kept) * held, _gathered(run, row, order, kept) * each)
    return Plan(
        count, width, staff, each, pieces, division, share, read, moved, scratch, round(WORKER_BYTES + largest), room,
        round(_client(run, tasks, order, kept)), steps, limits,
    )


def _share(count: int, parts: int, width: float, dimensions: int, sample: Particles | None) -> float:
    """The ghosts over the particles."""
    return _uniform(count, parts, width, dimensions) if sample is None else _sampled(count, parts, width, sample)


def _scratch(run: RunSize, row: int, order: Order | None, keep: bool, cargo: int = 0) -> tuple[int, int, int]:
    """Bytes: of positions and rows that go through scratch files, of scratch files at most, and written and read in all.

    `cargo` is what travels with each position to the order of a curve.
    """
    count, copied, exchanges = run.particles, run.particles + run.ghosts, run.exchanged(order, keep)
    last = exchanges[-1] if exchanges else None
    if order is None:
        assert last is not None
        sent = copied * (ROW.itemsize + row)
        labels = count * last.levels * LABEL_BYTES / (2 if count < 2**31 else 1) + run.ghosts * GHOST_BYTES
        moved = last.levels * sent
        return round(moved), round(max(last.room * sent, sent + labels)), round(2 * (moved + labels))
    moved = most = passed = left = 0.0
    if order == "free":
        along, sent = exchanges[0], count * (ROW.itemsize + row + cargo)
        left = count * (cargo + (row if keep else 0))   # chunks in order, which are read again
        moved, most = along.levels * sent, max(along.room * sent, sent + left)
        passed = 2 * moved + (run.sorted_again() - 1) * sent + 2 * left
    if keep:
        assert last is not None
        sent, labels = copied * (ROW.itemsize + 2 * row + KEPT_ROW), copied * KEPT_SCRATCH + run.ghosts * KEPT_GHOST
        moved, most = moved + last.levels * sent, max(most, left + max(last.room * sent, sent + labels))
        passed += 2 * last.levels * sent + KEPT_READ * sent + 2 * labels
    return round(moved), round(most), round(passed)


def _work(run: RunSize, speed: Rates, order: Order | None, keep: bool) -> float:
    """Seconds of all threads together."""
    owned, copied = run.particles, run.particles + run.ghosts
    if order is None:
        return owned / speed.send + copied / speed.search + owned / speed.compare
    sorting = 1 / speed.send + run.sorted_again() / speed.sort if order == "free" else 0.0
    return owned * (1 / speed.encode + sorting) + keep * copied / speed.keep


def _held(run: RunSize, order: Order | None, keep: bool) -> float:
    """The particles that a task holds: a subdomain; or chunks of source and archive, and the ranges of keys of these."""
    if order is None or keep:
        return (run.particles + run.ghosts) / run.parts
    ranges = 2 * run.particles / run.ranges if order == "free" else 0.0
    return max(run.particles / run.chunks, min(ARCHIVE_CHUNK + ranges, run.particles))


def _gathered(run: RunSize, row: int, order: Order | None, keep: bool) -> float:
    """The bytes that a task holds which gathers particles of many chunks for a group of subdomains."""
    exchanges = [exchange for exchange in run.exchanged(order, keep) if exchange.levels > 1]
    bytes_each = GATHER_BYTES + 2 * row * (2 if keep else 1)   # with kept clusters, decoded positions travel along
    return max(((run.particles + run.ghosts) / (one.runs * one.groups) * bytes_each for one in exchanges), default=0.0)


def _client(run: RunSize, tasks: int, order: Order | None, keep: bool) -> float:
    """The bytes that client and scheduler need."""
    tables = CLIENT_PAIR * sum(exchange.runs * exchange.parts for exchange in run.exchanged(order, keep))
    sampled = 0 if order == "keep" and not keep else min(run.particles, max(SAMPLE, SAMPLED * run.parts))
    border = 2 * KEPT_BORDER * run.ghosts if keep else 0.0
    return CLIENT_BYTES + CLIENT_TASK * tasks + tables + CLIENT_SAMPLED * run.dimensions * sampled + border


def chosen_parts(parts: Any, count: int) -> int:
    """The number of subdomains that is asked for, or the default; refused where most would be empty, or too many.

    >>> chosen_parts(None, 10**7), chosen_parts(64, 10)
    (10, 64)
    """
    if parts is None:
        return default_parts(count)
    return whole_number("parts", parts, least=1, most=min(max(count, FEW_PARTS), MOST_PARTS))


def default_parts(count: int) -> int:
    """How many subdomains a search makes by itself: about a million particles each, or more of very many.

    >>> default_parts(10**6), default_parts(10**9), default_parts(10**12)
    (1, 954, 4096)
    """
    return max(1, round(count / max(PART, count / MOST_PARTS)))


def require_room(
    folder: Path, source: ChunkedParticles, parts: int, width: float, archive_chunks: int = 1, order: Order | None = None,
    cargo: int = 0,
) -> None:
    """Refuse a folder without room for the files of a search or, with an order, of an archive.

    `width` is that of ghosts in mean spacings, of an archive whose clusters are kept, and else 0; `cargo` is the size of
    what belongs to each position.
    """
    count, keep, row = len(source), order is not None and width > 0, source.dtype.itemsize * source.dimensions
    ghosts = _uniform(count, parts, width, source.dimensions) * count / CLUSTERED   # no more than there are
    run = RunSize(count, source.dimensions, len(source.sizes), parts, ghosts, archive_chunks)
    needed, free = _scratch(run, row, order, keep, cargo)[1], shutil.disk_usage(folder).free
    if free < needed:
        what = "a search" if order is None else "an archive"
        raise WorkbenchError(
            f"{what} of {count:,} particles needs {as_size(needed)} of scratch files; {folder} has room for "
            f"{as_size(free)}: give scratch=, a folder of a larger file system that all workers see"
        )


def bytes_of(memory: str | float) -> int:
    """Bytes, from a number or a text.

    >>> bytes_of("1.5 GiB"), bytes_of("2GB"), bytes_of(1e6)
    (1610612736, 2000000000, 1000000)
    """
    if not isinstance(memory, str):
        return round(positive("memory", memory))
    text = memory.strip().lower().removesuffix("b")
    powers = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
    base = 1024 if text.endswith("i") else 1000
    text = text.removesuffix("i")
    power = powers.get(text[-1:], 0)
    try:
        return round(positive("memory", float(text[:-1] if power else text)) * base**power)
    except ValueError:
        told = f'memory must be a number of bytes or a text such as "8GB" or "1.5GiB"; got {memory!r}'
        raise WorkbenchError(told) from None


def _uniform(count: int, parts: int, width: float, dimensions: int) -> float:
    """The ghosts of clustered particles in a periodic box that is halved again and again across its longest side."""
    side, halvings, copies = count ** (1 / dimensions), math.log2(parts), 1.0
    for axis in range(dimensions):
        slabs = 2 ** max(0.0, math.floor(halvings / dimensions) + min(1.0, max(0.0, halvings % dimensions - axis)))
        if slabs > 1:
            copies *= min(1 + 2 * width * slabs / side, slabs)
    return CLUSTERED * (copies - 1)


def _sampled(count: int, parts: int, width: float, sample: Particles) -> float:
    """The ghosts among a sample, which is divided as the particles will be."""
    length = absolute_linking_length(sample, width) * (len(sample) / count) ** (1 / sample.dimensions)
    positions = np.ascontiguousarray(backend.to_host(sample.positions))
    return len(Decomposition.of(positions, parts, sample.box).ghosts(positions, length)[0]) / len(sample)


def as_size(count: float) -> str:
    """Bytes as people say them.

    >>> as_size(1.5e9), as_size(20)
    ('1.5 GB', '20.0 bytes')
    """
    unit, size = next(((unit, size) for unit, size in UNITS if count >= size), UNITS[-1])
    return f"{count / size:.1f} {unit}"


def as_duration(seconds: float) -> str:
    """A time as people say it.

    >>> as_duration(4.2), as_duration(300), as_duration(9000)
    ('4 s', '5 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
