"""What a search on a cluster will take, before anything is read: subdomains, ghosts, bytes, memory and time.

Ghosts of a uniform distribution follow from geometry: particles within a linking length of the faces. Halos near a face add
some, so a sample of the particles gives a better figure: it is divided as the particles will be. Rates are particles per
second and thread, measured on one machine (`Rates.measured`); the times of others scale with them.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import positive, whole_number
from workbench.clusters import absolute_linking_length
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess, Result
from workbench.subdomains.decomposition import Decomposition
from workbench.subdomains.exchange import FEW, ROW
from workbench.subdomains.sources import PART

FEW_PARTS = 64             # subdomains that are allowed for any number of particles, though many will be empty
MOST_PARTS = 4096          # beyond 4 · 10⁹ particles subdomains grow: an exchange counts for all pairs of them and chunks
WORKER_BYTES = 2**28       # of a worker without any particles
SEARCH_BYTES = 40          # of each particle while it is searched, beside two copies of its position
LABEL_BYTES = 16           # of each particle in the files, at most: its label and index; half of it up to 2³¹ particles
GHOST_BYTES = 40           # of each ghost there: index and label, and the final labels of groups that others know
CLUSTERED = 1.15           # ghosts of a simulated universe at z = 0 over those of a uniform distribution
UNEVEN = 1.2               # the largest subdomain over the mean: cuts come from a sample
STEP_SECONDS = 0.01        # of one task that does nothing
UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0))


@dataclass(frozen=True)
class Rates:
    """Particles per second that one thread sends, searches and compares; bytes per second of scratch files on a worker.

    The defaults are from two cores of a cloud machine in 2026 with files in memory.
    """

    send: float = 3.5e7
    search: float = 6.0e6
    compare: float = 1.1e8
    scratch: float = 1e9

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
    """What a search will take; `print` shows it. Fractions are of the particles, bytes are of the whole run."""

    particles: int
    linking_length: float   # in mean spacings
    workers: int
    threads: int
    parts: int
    ghosts: float           # copies of particles in other subdomains, over particles
    read: int               # bytes of positions read from the source
    moved: int              # bytes of positions and rows that go through scratch files
    scratch: int            # bytes of all scratch files at the end
    worker_memory: int      # bytes that a worker needs at most
    memory: int             # bytes that a worker has
    seconds: float

    @property
    def fits(self) -> bool:
        """Whether a worker has the memory that its subdomains need."""
        return self.worker_memory <= self.memory

    def __str__(self) -> str:
        lines = {
            "particles": f"{self.particles:,}, linking length {self.linking_length:g} of the mean spacing",
            "workers": f"{self.workers:,} with {self.threads} threads and {_size(self.memory)} each",
            "subdomains": f"{self.parts:,}, about {self.particles / self.parts:,.0f} particles each",
            "ghosts": f"{self.ghosts:.2%} of the particles",
            "read": _size(self.read),
            "moved": f"{_size(self.moved)} through scratch files, which grow to {_size(self.scratch)}",
            "memory": _size(self.worker_memory) + (" on each worker" if self.fits else ", MORE THAN A WORKER HAS"),
            "time": _duration(self.seconds),
        }
        return "\n".join(f"{name + ':':<12}{text}" for name, text in lines.items())


def plan(
    n_particles: int,
    linking_length: float = 0.2,
    workers: int = 1,
    memory: str | float = "4GB",
    *,
    threads: int = 1,
    parts: int | None = None,
    dimensions: int = 3,
    dtype: Any = np.float32,
    sample: Particles | None = None,
    rates: Rates | None = None,
) -> Plan:
    """What `friends_of_friends` will take on `workers` workers with `memory` and `threads` each.

    `linking_length` is in mean spacings. `parts` is the number of subdomains; by default, as many as the memory needs, at
    least those that the search makes by itself: give `parts=plan(...).parts` to it. A `sample` of the particles, some ten
    thousand of them in their box, makes the figure for ghosts better.

    >>> planned = plan(10**9, workers=64, memory="8GB")
    >>> print(planned)
    particles:  1,000,000,000, linking length 0.2 of the mean spacing
    workers:    64 with 1 threads and 8.0 GB each
    subdomains: 954, about 1,048,218 particles each
    ghosts:     1.43% of the particles
    read:       12.0 GB
    moved:      32.5 GB through scratch files, which grow to 32.8 GB
    memory:     350.1 MB on each worker
    time:       5 s
    """
    count = whole_number("n_particles", n_particles, least=1)
    axes = whole_number("dimensions", dimensions, least=2, most=3)
    width = positive("linking_length", linking_length)
    staff, each = whole_number("workers", workers, least=1), whole_number("threads", threads, least=1)
    room, speed = bytes_of(memory), Rates() if rates is None else rates
    row = np.dtype(dtype).itemsize * axes
    held = UNEVEN * each * (SEARCH_BYTES + 2 * row)   # bytes of a worker for each particle of a mean subdomain
    if parts is None:
        parts = max(default_parts(count), math.ceil(1.1 * count * held / max(room - WORKER_BYTES, 1)))
        if room <= WORKER_BYTES or parts > count:
            raise WorkbenchError(
                f"a worker needs {_size(WORKER_BYTES)} before it holds any particles; got memory {_size(room)}: give more"
            )
    division = whole_number("parts", parts, least=1)
    share = _uniform(count, division, width, axes) if sample is None else _sampled(count, division, width, sample)
    levels = 1 if division <= FEW else 2   # of the exchange, and of the labels
    sent = count * (1 + share) * (ROW.itemsize + row)
    moved = round(levels * sent)
    labels = round(count * (levels * LABEL_BYTES / (2 if count < 2**31 else 1) + share * GHOST_BYTES))
    scratch = round(max(moved, sent + labels))   # what chunks have sent is deleted when groups have gathered it
    work = count * (1 / speed.send + (1 + share) / speed.search + 1 / speed.compare)
    rounds = -(-2 * division // (staff * each)) + 2   # two steps for each subdomain, and steps that wait for all
    through = (count * row + 2 * (moved + labels)) / speed.scratch
    busy = min(staff * each, division)
    return Plan(
        count, width, staff, each, division, share, count * row, moved, scratch,
        round(WORKER_BYTES + count / division * (1 + share) * held), room,
        work / busy + through / min(staff, division) + rounds * STEP_SECONDS,
    )


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


def require_room(folder: Path, count: int, row: int) -> None:
    """Refuse a folder without room for the files of a search for particles with so many bytes each."""
    needed, free = count * (ROW.itemsize + row + LABEL_BYTES // 2), shutil.disk_usage(folder).free
    if free < needed:
        raise WorkbenchError(
            f"a search of {count:,} particles needs {_size(needed)} of scratch files; {folder} has room for {_size(free)}: "
            "give scratch=, a folder of a larger file system that all workers see"
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


def _size(count: float) -> str:
    unit, size = next(((unit, size) for unit, size in UNITS if count >= size), UNITS[-1])
    return f"{count / size:.1f} {unit}"


def _duration(seconds: float) -> str:
    """A time as people say it.

    >>> _duration(4.2), _duration(300), _duration(9000)
    ('4 s', '5 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
