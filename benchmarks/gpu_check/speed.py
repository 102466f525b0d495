"""How fast the public calls are on arrays that are on the card, each beside what a copy within its memory reaches.

Times are those of the card's events around whole calls: medians of several runs after one that is not counted. A copy
reads and writes each byte; its bandwidth counts both. Transfers are measured by themselves and are part of no other
figure, but for the finished bytes, which `compress` and the codec bring to the host.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import workbench as wb
from gpu_check.budget import Budget
from gpu_check.cases import clustered, typed, uniform
from gpu_check.machine import HostKernels, Machine, missing_package, told
from workbench import backend
from workbench.guarantees import Limit, check

MOST_SECONDS = 6.0     # of repeats of one measurement
SHARES = (0.01, 0.1, 0.3)   # the bound as a share of the linking length, where clusters are kept
FEW_REGISTERS = 64     # of a thread, so that 1,024 run at once
JZTREE_LENGTH = 0.7    # mean spacings, uniform particles: the case that jztree's documentation measures


@dataclass(frozen=True)
class Row:
    """One measurement. `amount` particles or bytes took `seconds`; `fraction` is of the bandwidth of a copy."""

    part: str
    what: str
    particles: int
    seconds: float | None
    rate: str = ""
    fraction: float | None = None
    note: str = ""
    failed: bool = False   # neither time nor memory was missing

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the report."""
        return asdict(self)


@dataclass(frozen=True)
class Bench:
    """What the measurements need: the machine, the bandwidth of a copy on it, and a snapshot to repeat."""

    machine: Machine
    bandwidth: float   # bytes per second, read and written
    snapshot: wb.Particles
    source: str        # where the snapshot comes from

    @classmethod
    def on(cls, machine: Machine, host: HostKernels, particles_along: int) -> Bench:
        """A simulated universe, or clumps of random points where the kernels that simulate it are missing."""
        if host.present:
            made = wb.synthetic.cosmic_web(n=particles_along)
            snapshot, source = wb.Particles(made.positions, made.box), f"cosmic_web(n={particles_along})"
        else:
            points = typed(clustered(particles_along**3, 3), np.float32)
            snapshot, source = wb.Particles(machine.moved(points), 1.0), "clumps of random points"
        return cls(machine, machine.copy_bandwidth(), snapshot, source)

    def particles(self, count: int) -> wb.Particles:
        """About so many particles on the machine: copies of the snapshot beside each other in a longer box."""
        assert self.snapshot.box is not None
        copies = copies_for(count / len(self.snapshot))
        box, xp = self.snapshot.box, self.machine.xp
        here = xp.asarray(self.snapshot.positions)
        found = xp.empty((int(np.prod(copies)), len(here), 3), here.dtype)
        limits = [np.nextafter(here.dtype.type(n * side), here.dtype.type(0)) for n, side in zip(copies, box, strict=True)]
        for number, place in enumerate(itertools.product(*map(range, copies))):
            for axis in range(3):   # rounding must not lead out of the longer box
                moved = here[:, axis] + here.dtype.type(place[axis] * box[axis])
                found[number, :, axis] = xp.minimum(moved, limits[axis])
        return wb.Particles(found.reshape(-1, 3), tuple(n * side for n, side in zip(copies, box, strict=True)))

    def row(self, part: str, what: str, particles: int, run: Callable[[], object], data: int = 0) -> Row:
        """The measurement of one call; its rate counts particles, or `data` bytes if they are given."""
        try:
            seconds = self.machine.seconds(run, MOST_SECONDS)
        except Exception as error:   # the other measurements go on
            return self.without_time(part, what, particles, error)
        if not data:
            return Row(part, what, particles, seconds, f"{particles / seconds / 1e6:.1f} M particles/s")
        return Row(part, what, particles, seconds, f"{data / seconds / 1e9:.2f} GB/s", data / seconds / self.bandwidth)

    def without_time(self, part: str, what: str, particles: int, error: BaseException) -> Row:
        """The row of what cannot be measured, and why; memory that is left over is given back."""
        no_room = isinstance(error, self.machine.out_of_memory())
        if no_room:
            self.machine.free_bytes()
            return Row(part, what, particles, None, note=f"does not fit into memory: {error}"[:120])
        if missing := missing_package(error):
            return Row(part, what, particles, None, note=f"left out: {missing} is not installed")
        return Row(part, what, particles, None, note=f"failed: {told(error)}", failed=True)


def copies_for(times: float) -> tuple[int, int, int]:
    """Copies along each axis for about so many times the particles, as even as can be.

    >>> copies_for(1), copies_for(10), copies_for(100), copies_for(0.2)
    ((1, 1, 1), (1, 2, 5), (4, 5, 5), (1, 1, 1))
    """
    whole = max(round(times), 1)
    choices = [(a, b, whole // (a * b)) for a in range(1, 65) for b in range(a, 65) if whole % (a * b) == 0]
    return min((c for c in choices if c[2] >= c[1]), key=lambda c: c[2] - c[0], default=(1, 1, whole))


def measured(bench: Bench, counts: Sequence[int], budget: Budget) -> Iterator[Row]:
    """All measurements, until the time is used up."""
    parts: list[tuple[str, float, Callable[[], Iterator[Row]]]] = [
        ("transfers", 0.05, partial(transfers, bench, counts[-1])),
        ("groups", 0.3, partial(groups, bench, counts)),
        ("bounds", 0.05, partial(bounds, bench, counts[-1])),
        ("codec", 0.25, partial(codec, bench, counts[min(1, len(counts) - 1)])),
        ("compress", 0.15, partial(compress, bench, counts[min(1, len(counts) - 1)])),
        ("kept clusters", 0.2, partial(keeping, bench, counts[0])),
    ]
    for name, share, rows in parts:
        part = budget.part(share * budget.seconds)
        try:
            yield from _within(part, rows())
        except Exception as error:   # its inputs could not be made
            yield bench.without_time(name, "the rest", 0, error)
        if part.over:
            yield Row(name, "the rest", 0, None, note="left out: no time left")


def _within(budget: Budget, rows: Iterator[Row]) -> Iterator[Row]:
    """The rows whose measurement begins while there is time."""
    while not budget.over:
        row = next(rows, None)
        if row is None:
            return
        yield row


def transfers(bench: Bench, count: int) -> Iterator[Row]:
    """Positions to the card and back; and a call without work, below which no time says anything about the work."""
    xp, machine = bench.machine.xp, bench.machine
    one = xp.zeros((1, 3), np.float32)
    yield replace(bench.row("transfers", "a call on one particle", 1, partial(wb.Particles, one)), rate="")
    here = np.zeros((min(count, 10**8), 3), np.float32)
    there = xp.zeros(here.shape, np.float32)
    yield bench.row("transfers", "to the card", count, lambda: machine.moved(here), here.nbytes)
    yield bench.row("transfers", "from the card", count, lambda: backend.to_host(there), here.nbytes)


def groups(bench: Bench, counts: Sequence[int]) -> Iterator[Row]:
    """Friends of friends of clustered particles at growing numbers, then jztree's own case."""
    for count in counts:
        try:
            particles = bench.particles(count)
        except bench.machine.out_of_memory() as error:
            yield bench.without_time("groups", "clustered, b = 0.2", count, error)
            continue
        search = partial(wb.friends_of_friends, particles)
        row = bench.row("groups", "clustered, b = 0.2", len(particles), search)
        yield _per_bandwidth(bench, row)
        if count == counts[min(1, len(counts) - 1)]:
            with few_registers():
                row = bench.row("groups", f"the same, at most {FEW_REGISTERS} registers", len(particles), search)
            yield _per_bandwidth(bench, row)
    count = min(10**7, counts[-1])
    points = wb.Particles(bench.machine.moved(typed(uniform(count, 3), np.float32)), 1.0)
    row = bench.row("groups", f"uniform, b = {JZTREE_LENGTH}", count, partial(wb.friends_of_friends, points, JZTREE_LENGTH))
    yield _per_bandwidth(bench, row)


@contextmanager
def few_registers() -> Iterator[None]:
    """The time in which kernels are compiled so that 1,024 threads fit on a multiprocessor; what lacks goes to memory."""
    flags = (*backend.DEVICE_FLAGS, f"--maxrregcount={FEW_REGISTERS}")
    with mock.patch.object(backend, "DEVICE_FLAGS", flags):
        _compile_again()
        yield
    _compile_again()


def _compile_again() -> None:
    backend._device_function.cache_clear()
    backend._device_module.cache_clear()


def _per_bandwidth(bench: Bench, row: Row) -> Row:
    """The row with the measure of the search: particles per second for each byte per second of a copy."""
    if row.seconds is None:
        return row
    measure = row.particles / row.seconds / 1e6 / (bench.bandwidth / 1e9)
    return Row(row.part, row.what, row.particles, row.seconds, row.rate, None, f"{measure:.3f} M particles/s per GB/s")


def bounds(bench: Bench, count: int) -> Iterator[Row]:
    """The exact comparison of decoded with original positions."""
    xp, count = bench.machine.xp, min(count, 10**8)
    original = xp.zeros((count, 3), np.float32)
    decoded = original + np.float32(1e-4)
    for name, period in (("open", None), ("periodic", (1.0, 1.0, 1.0))):
        run = partial(check, original, decoded, Limit("absolute", 1e-3), period)
        yield bench.row("bounds", name, count, run, 2 * original.nbytes)


def codec(bench: Bench, count: int) -> Iterator[Row]:
    """The built-in codec by order and coder; the bytes come to the host, decoded positions stay on the card."""
    particles = bench.particles(count)
    positions, aim = particles.positions, wb.codecs.Tolerance(absolute=0.02 * particles.spacing)
    size = positions.nbytes
    for order, coder in itertools.product(("free", "keep"), ("packed", "context", "auto")):
        chosen = wb.codecs.get("lattice", order=order, coder=coder, box=particles.box)
        data = chosen.encode(positions, aim)
        name = f"{order} {coder}, {8 * len(data) / len(positions):.2f} bits a particle"
        yield bench.row("codec", f"encode, {name}", len(positions), partial(chosen.encode, positions, aim), size)
        decode = partial(chosen.decode, data, positions.shape, positions.dtype, bench.machine.xp)
        yield bench.row("codec", f"decode, {name}", len(positions), decode, size)


def compress(bench: Bench, count: int) -> Iterator[Row]:
    """A whole archive, checked, from particles on the card."""
    particles = bench.particles(count)
    for order in ("free", "keep"):
        run = partial(wb.compress, particles, wb.Absolute(0.02 * particles.spacing), order=order)
        yield bench.row("compress", f"order {order}", len(particles), run, particles.positions.nbytes)


def keeping(bench: Bench, about: int) -> Iterator[Row]:
    """Positions corrected so that their groups are those of the original; then the bytes of the moves, too."""
    particles = bench.particles(about)
    for share in SHARES:
        bound = share * 0.2 * particles.spacing
        lattice = wb.codecs.get("lattice", order="keep", box=particles.box, coder="packed")
        data = lattice.encode(particles.positions, wb.codecs.Tolerance(absolute=bound))
        decoded = lattice.decode(data, particles.positions.shape, particles.positions.dtype, bench.machine.xp)
        run = partial(wb.clusters.correct, particles, decoded, bound)
        count, size = len(particles), particles.positions.nbytes
        yield bench.row("kept clusters", f"moves, bound {share} b", count, run, size)
        yield bench.row("kept clusters", f"moves and bytes, bound {share} b", count, partial(_with_bytes, run), size)


def _with_bytes(run: Callable[[], wb.clusters.Correction]) -> object:
    return run().sections()
