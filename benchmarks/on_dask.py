"""Friends of friends and archives on two workers, against one process with two threads; and more particles than memory.

python benchmarks/on_dask.py [--n 128 256] [--copies 4] [--of 128] [--memory 1536MiB] [--folder /tmp]
                             [--skip-large] [--skip-archives] [--skip-divided] [--repeats 3]

Each worker has one thread. Medians of several runs are compared; processor times, which other programs on the machine
hardly change, stand beside. The large set consists of periodic copies of one snapshot, so its groups are known: those of
the snapshot, once for each copy. Workers have a memory limit, may not spill to disk, and must never be restarted. With 4
copies of 128³ along each axis there are 1.3 · 10⁸ particles, 1.6 GB of positions and, while an archive in free order with
its clusters is written, about 9 GB of scratch files in the folder. Traffic is what the loopback interface carries, so
nothing else should use it.
The last table has every figure that must be reached beside its target. To try all of it: --n 32 --of 32 --memory 400MiB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import timing
from distributed import Client, LocalCluster

import workbench as wb
from workbench import backend
from workbench.data.chunked import ChunkedParticles
from workbench.memory import release_memory
from workbench.subdomains.plan import default_parts

LINKING = 0.2
MOST_RATIO, MOST_GHOSTS, MOST_MEMORY, MOST_BYTES, FLAT = 1.6, 0.10, 6.0, 0.03, 1.3   # the targets
MOST_SCRATCH, MOST_TRAFFIC, MOST_SLOWER = 4.0, 60.0, 4.0   # over the positions; MB; the time of 64 subdomains
NO_SPILLING = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": 0.95,
    "distributed.worker.memory.terminate": 0.98,
}
FEW = 2 * 10**6   # particles: with fewer, the steps themselves take longer
Costs = tuple[float, float]   # processor time for each particle in µs: of the search, and with the catalogue


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[128, 256], help="particles along each axis")
    parser.add_argument("--copies", type=int, default=4, help="copies of a snapshot along each axis")
    parser.add_argument("--of", type=int, default=128, help="particles along each axis of the snapshot that is copied")
    parser.add_argument("--memory", default="1536MiB", help="the limit of each worker")
    parser.add_argument("--repeats", type=int, default=3, help="runs of which the median counts")
    parser.add_argument("--folder", help="where files are written; all is deleted at the end")
    parser.add_argument("--skip-large", action="store_true")
    parser.add_argument("--skip-archives", action="store_true")
    parser.add_argument("--skip-divided", action="store_true", help="leave out the search in 954 subdomains")
    given = parser.parse_args()
    print(f"# Two workers of one thread against one process with two\n\n{timing.machine()}\n")
    reached = Reached()
    backend.threads()   # loads the kernels: Dask then sets OMP_NUM_THREADS=1, here too, for the workers that it starts
    with tempfile.TemporaryDirectory(dir=given.folder) as name, two_workers(given.memory) as client:
        folder = Path(name)
        warm(client)
        agreeing(client, reached)
        costs = searched(given, folder, client, reached)
        if not given.skip_archives:
            archived(given.n, folder, client, reached)
            small(folder, client, given.repeats)
        if not given.skip_divided:
            divided(folder, client, given.repeats, reached)
        if not given.skip_large:
            costs.append(out_of_core(given, folder, client, reached))
    for what, spent in zip(("search", "search and catalogue"), zip(*costs, strict=True), strict=False):
        reached.add(f"processor time of {what} for each particle, largest over smallest", max(spent) / min(spent), FLAT)
    print(timing.table(["must reach", "measured", "target", ""], reached.rows))


@dataclass
class Reached:
    """The figures that must be reached, and whether they are."""

    rows: list[list[object]] = field(default_factory=list)

    def add(self, what: str, found: float, most: float) -> None:
        """A figure that must be at most so large."""
        self.rows.append([what, f"{found:.3g}", f"≤ {most:g}", "reached" if found <= most else "MISSED"])

    def require(self, what: str, holds: bool) -> None:
        """What must be so."""
        self.rows.append([what, "yes" if holds else "no", "yes", "reached" if holds else "MISSED"])


def agreeing(client: Client, reached: Reached) -> None:
    """The labels of one process, for any number of subdomains, in two and three dimensions, with and without a box."""
    snapshot, same = wb.synthetic.cosmic_web(n=24, seed=2), []
    for axes in (2, 3):
        for box in (snapshot.box[:axes] if snapshot.box else None, None):
            particles = wb.Particles(np.ascontiguousarray(snapshot.positions[:, :axes]), box)
            expected = wb.friends_of_friends(particles)
            for parts in (1, 2, 5, 17, 64):
                with wb.friends_of_friends(particles, client=client, parts=parts) as found:
                    same.append(found.gathered().equals(expected))
    reached.require("labels of one process, 1 to 64 subdomains, 2-D and 3-D, open and periodic", all(same))


def warm(client: Client) -> None:
    """Load all code, here and on the workers."""
    small = wb.synthetic.cosmic_web(n=16, seed=1)
    wb.friends_of_friends(small)
    wb.friends_of_friends(small, client=client, parts=4).close()


def searched(given: argparse.Namespace, folder: Path, client: Client, reached: Reached) -> list[Costs]:
    """The same search on the cluster and in this process; returns the costs of sets that are not small."""
    rows, rounds = [], set()
    costs: list[Costs] = []
    for n in given.n:
        particles, source = stored(n, folder)
        steps: set[str] = set()
        groups, here = repeated(partial(wb.friends_of_friends, particles, LINKING), own_time, given.repeats)
        found, there = repeated(
            partial(
                wb.friends_of_friends, source, LINKING, client=client,
                progress=partial(noted, steps),
            ),
            partial(time_of_workers, client), given.repeats,
        )
        reached.require(f"labels of one process at {n}³", np.array_equal(found.gathered().labels, groups.labels))
        reached.add(f"search of {n}³, time over one process", there.wall / here.wall, MOST_RATIO)
        taken = len(steps)
        rounds.add(taken)
        planned = wb.distributed.plan(len(particles), LINKING, workers=2, memory=given.memory, parts=found.parts)
        cost, catalogue = (
            spent / len(particles) * 1e6 for spent in (there.processor, time_of_catalogue(client, found))
        )
        costs += [(cost, cost + catalogue)] if len(particles) >= FEW else []
        rows.append([
            f"{n}³", found.parts, f"{here.wall:.2f}", f"{there.wall:.2f}", f"{there.wall / here.wall:.2f}",
            f"{there.processor / here.processor:.2f}", f"{cost:.3f}", f"{catalogue:.3f}", taken,
            f"{found.ghosts / len(particles):.2%} ({planned.ghosts:.2%})", f"{planned.seconds:.1f}",
        ])
        found.close()
    print(timing.table(
        [
            "particles", "subdomains", "one process, s", "cluster, s", "ratio (target: 1.6)", "ratio of processor time",
            "µs each", "catalogue, µs each", "steps", "ghosts (planned)", "planned, s",
        ],
        rows,
    ))
    reached.require(f"as many steps at every size ({', '.join(map(str, sorted(rounds)))})", len(rounds) == 1)
    return costs


def noted(steps: set[str], share: float, what: str) -> None:
    """Remember the names of steps."""
    steps.add(what)


def archived(sizes: list[int], folder: Path, client: Client, reached: Reached) -> None:
    """The same archives on the cluster and in this process; the files are the same or, where clusters are kept, similar."""
    rows: list[list[object]] = []
    for n in sizes:
        particles, source = stored(n, folder)
        bound = wb.Absolute(0.1 * LINKING * particles.spacing)
        for number, (order, keep) in enumerate((("keep", []), ("free", []), ("keep", [wb.KeepClusters(LINKING)]))):
            one, many = folder / f"one-{n}-{number}.zarr", folder / f"many-{n}-{number}.zarr"
            before = own_time(), time_of_workers(client)
            _, here = timed(partial(written_here, particles, bound, order, keep, one))
            scratch = folder / "scratch"
            scratch.mkdir()
            with peak_memory(client) as peak, peak_size(scratch) as size:
                _, there = timed(partial(
                    wb.compress, source, bound, keep=keep, order=order, out=many, client=client, scratch=scratch,
                    progress=peak.step,
                ))
            scratch.rmdir()
            files = size.most / particles.positions.nbytes
            grown = (peak.most - peak.idle) / positions_of_subdomain(particles)
            work = (time_of_workers(client) - before[1]) / (own_time() - before[0])
            sizes_of = [sum(path.stat().st_size for path in top.rglob("*") if path.is_file()) for top in (one, many)]
            what, more = f"order {order}{', clusters kept' if keep else ''}", sizes_of[1] / sizes_of[0] - 1
            reached.add(f"archive of {n}³, {what}, time over one process", there / here, MOST_RATIO)
            if keep:
                reached.add(f"archive of {n}³, {what}, more bytes", more, MOST_BYTES)
                reached.add(f"archive of {n}³, {what}, scratch files over the positions", files, MOST_SCRATCH)
            else:
                reached.require(f"archive of {n}³, {what}, the same bytes", same_files(one, many))
            rows.append([
                f"{n}³", what, f"{here:.2f}", f"{there:.2f}", f"{there / here:.2f}", f"{work:.2f}", f"{more:+.2%}",
                f"{grown:.1f} ({max(peak.of_steps, key=lambda name: peak.of_steps[name])})", f"{files:.1f}",
            ])
            for path in (one, many):
                shutil.rmtree(path)
    print(timing.table(
        [
            "particles", "archive", "one process, s", "cluster, s", "ratio (target: 1.6)", "ratio of processor time",
            "more bytes (target: 3%)", "memory of a worker over positions of a subdomain (step)",
            "scratch files over all positions",
        ],
        rows,
    ))


def divided(folder: Path, client: Client, repeats: int, reached: Reached) -> None:
    """The same search in few and in many subdomains: what passes through the scheduler, and how long it takes."""
    particles, source = stored(128, folder)
    rows: list[list[object]] = []
    walls: list[float] = []
    expected = wb.friends_of_friends(particles, LINKING).labels
    for parts in (64, 954):
        before = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
        groups, took = repeated(
            partial(wb.friends_of_friends, source, LINKING, client=client, parts=parts),
            partial(time_of_workers, client), repeats,
        )
        traffic = (psutil.net_io_counters(pernic=True)["lo"].bytes_sent - before) / repeats / 1e6
        same = np.array_equal(groups.gathered().labels, expected)
        groups.close()
        walls.append(took.wall)
        rows.append([parts, f"{took.wall:.2f}", f"{took.processor:.2f}", f"{traffic:.1f}"])
        reached.require(f"labels of one process in {parts} subdomains", same)
    print(timing.table(["subdomains of 128³ particles", "s", "processor time of workers, s", "traffic, MB"], rows))
    reached.add("search of 128³ in 954 subdomains, MB of traffic", traffic, MOST_TRAFFIC)
    reached.add("search of 128³ in 954 subdomains, time over 64", walls[1] / walls[0], MOST_SLOWER)


def small(folder: Path, client: Client, repeats: int) -> None:
    """Archives of so few particles that their steps take all the time."""
    rows: list[list[object]] = []
    particles = wb.Particles(np.random.default_rng(0).random((1000, 3), np.float32), box=1.0)
    np.save(folder / "small.npy", particles.positions)
    source = wb.open_chunked(folder / "small.npy", box=particles.box)
    bound = wb.Absolute(0.1 * LINKING * particles.spacing)
    for order, keep in (("keep", []), ("free", []), ("keep", [wb.KeepClusters(LINKING)])):
        _, took = repeated(
            partial(
                wb.compress, source, bound, keep=keep, order=order, out=folder / "small.zarr", client=client,
                overwrite=True,
            ),
            own_time, repeats + 1,   # the first one finds nothing to overwrite
        )
        rows.append([f"order {order}{', clusters kept' if keep else ''}", f"{took.wall:.2f}"])
    print(timing.table(["archive of 1,000 particles", "s"], rows))


def positions_of_subdomain(particles: wb.Particles) -> float:
    """The bytes of the positions in a subdomain of a search or an archive of these particles."""
    size: int = particles.positions.nbytes
    return size / default_parts(len(particles))


def stored(n: int, folder: Path) -> tuple[wb.Particles, ChunkedParticles]:
    """A snapshot of n³ particles, in memory and in a file."""
    snapshot = tiled(n)
    path = folder / f"{n}.npy"
    np.save(path, snapshot.positions)
    source = wb.open_chunked(path, box=snapshot.box)
    return wb.Particles(snapshot.positions, snapshot.box, metadata=source.metadata), source


def written_here(particles: wb.Particles, bound: wb.Absolute, order: str, keep: list[Any], path: Path) -> None:
    """The archive of one process."""
    wb.compress(particles, bound, keep=keep, order=order).save(path)


def time_of_catalogue(client: Client, found: wb.distributed.DistributedGroups) -> float:
    """The processor time of all workers for the catalogue."""
    before = time_of_workers(client)
    found.catalogue(20)
    return time_of_workers(client) - before


def out_of_core(given: argparse.Namespace, folder: Path, client: Client, reached: Reached) -> Costs:
    """Many copies of one snapshot, in workers with little memory; returns the processor times for each particle."""
    snapshot, copies = on_grid(tiled(given.of), 2.0**-14), given.copies   # so that shifted copies have the same distances
    path = folder / "large.npy"
    written(path, snapshot, copies)
    assert snapshot.box is not None
    source = wb.open_chunked(path, box=tuple(copies * length for length in snapshot.box))
    workers = set(client.scheduler_info(-1)["workers"])
    length = LINKING * snapshot.spacing
    before = time_of_workers(client)
    with peak_memory(client) as peak:
        found, seconds = timed(partial(
            wb.friends_of_friends, source, length, "length", client, scratch=folder, progress=peak.step,
        ))
        searching = time_of_workers(client) - before
        whole = searching + time_of_catalogue(client, found)
    members = found.catalogue(20).members
    cost, both = (spent / len(source) * 1e6 for spent in (searching, whole))
    stayed = set(client.scheduler_info(-1)["workers"]) == workers
    groups = wb.friends_of_friends(wb.Particles(snapshot.positions, snapshot.box), length, "length")
    expected = np.bincount(groups.sizes[groups.sizes >= 20]) * copies**3
    counted = np.bincount(members, minlength=len(expected))
    same = bool((counted[: len(expected)] == expected).all())
    held = len(source) / found.parts * snapshot.dimensions * snapshot.positions.itemsize
    planned = wb.distributed.plan(len(source), LINKING, workers=2, memory=given.memory, parts=found.parts)
    print(f"{len(source):,} particles in {found.parts} subdomains: {seconds:.0f} s (planned: {planned.seconds:.0f} s).")
    print(f"Processor time of each particle: {cost:.3f} µs, and {both - cost:.3f} µs for the catalogue.")
    print(f"The positions of a subdomain are {held / 2**20:.0f} MiB, a worker has at most {given.memory}.")
    print(f"Largest memory of a worker: {peak.most / 2**20:.0f} MiB, {peak.idle / 2**20:.0f} MiB of it before any work.")
    rows: list[list[object]] = [
        [name or "before", f"{most / 2**20:.0f}", f"{(most - peak.idle) / held:.1f}"]
        for name, most in peak.of_steps.items()
    ]
    print("\n" + timing.table(["step", "largest memory, MiB", "growth over the positions of a subdomain"], rows))
    reached.require(f"{len(source):,} particles: groups as in every copy", same)
    reached.require("no worker restarted", stayed)
    reached.add("growth of a worker over the positions of a subdomain", (peak.most - peak.idle) / held, MOST_MEMORY)
    each = f"{len(source) / found.parts:,.0f} in a subdomain"
    reached.add(f"ghosts over particles, {each}", found.ghosts / len(source), MOST_GHOSTS)
    found.close()
    kept_out_of_core(folder, source, length, client, reached)
    path.unlink()
    return cost, both


def kept_out_of_core(folder: Path, source: ChunkedParticles, length: float, client: Client, reached: Reached) -> None:
    """An archive in free order of more particles than memory, with their clusters kept; then its verification."""
    scratch, out = folder / "scratch", folder / "large.zarr"
    scratch.mkdir()
    workers = set(client.scheduler_info(-1)["workers"])
    with peak_memory(client) as peak, peak_size(scratch) as size:
        _, seconds = timed(partial(
            wb.compress, source, wb.Absolute(0.1 * length), order="free", keep=[wb.KeepClusters(length, unit="length")],
            out=out, client=client, scratch=scratch, progress=peak.step,
        ))
    report, verifying = timed(partial(wb.open(out).verify, client=client))
    files = size.most / (len(source) * source.dimensions * source.dtype.itemsize)
    print(f"{len(source):,} particles in free order, clusters kept: {seconds:.0f} s, and {verifying:.0f} s to verify.")
    print(f"Scratch files: {files:.1f} times the positions. Largest memory of a worker: {peak.most / 2**20:.0f} MiB.\n")
    reached.require(f"{len(source):,} particles in free order, clusters kept: verified", report.passed)
    reached.require("no worker restarted", set(client.scheduler_info(-1)["workers"]) == workers)
    reached.add(f"{len(source):,} particles, clusters kept: scratch files over the positions", files, MOST_SCRATCH)
    shutil.rmtree(out)
    scratch.rmdir()


def tiled(n: int) -> wb.Particles:
    """A clustered snapshot of n³ particles: beyond 128³, periodic copies with a small random displacement."""
    base = wb.synthetic.cosmic_web(n=min(n, 128), seed=1)
    if n <= 128:
        return base
    assert base.box is not None
    count, length = n // 128, base.box[0]
    random = np.random.default_rng(0)
    shifts = np.stack(np.meshgrid(*[np.arange(count)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * length
    positions = np.concatenate([base.positions + shift for shift in shifts]).astype(np.float32)
    positions += random.normal(0, 0.02 * base.spacing, positions.shape).astype(np.float32)
    return wb.Particles.wrapped(positions, count * length)


def on_grid(snapshot: wb.Particles, step: float) -> wb.Particles:
    """The particles with coordinates rounded to multiples of a power of two."""
    assert snapshot.box is not None
    return wb.Particles.wrapped(np.round(snapshot.positions / step) * step, snapshot.box)


def written(path: Path, snapshot: wb.Particles, copies: int) -> None:
    """A file of copies of a snapshot side by side, one copy after the other."""
    assert snapshot.box is not None
    count, dimensions = snapshot.positions.shape
    out = np.lib.format.open_memmap(path, "w+", snapshot.positions.dtype, (count * copies**3, dimensions))
    for number, place in enumerate(np.ndindex(*[copies] * dimensions)):
        shifted = snapshot.positions.astype(np.float64) + np.array(place) * np.array(snapshot.box)
        out[number * count : (number + 1) * count] = shifted
    out.flush()


@dataclass
class Took:
    """The medians of several runs, in seconds."""

    wall: float
    processor: float


def repeated(work: Callable[[], Any], clock: Callable[[], float], repeats: int) -> tuple[Any, Took]:
    """The last result, and what the runs took; `clock` gives the processor time so far."""
    walls, processors = [], []
    for number in range(repeats):
        before = clock()
        result, wall = timed(work)
        walls.append(wall)
        processors.append(clock() - before)
        if number < repeats - 1 and hasattr(result, "close"):
            result.close()
    return result, Took(statistics.median(walls), statistics.median(processors))


def own_time() -> float:
    """The processor time of this process."""
    return time.process_time()


def time_of_workers(client: Client) -> float:
    """The processor time of all workers."""
    return sum(client.run(time.process_time).values())


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the time of one call."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files."""
    found = [sorted(path.relative_to(top) for path in top.rglob("*") if path.is_file()) for top in (one, other)]
    return found[0] == found[1] and all((one / path).read_bytes() == (other / path).read_bytes() for path in found[0])


@dataclass
class Size:
    """The most bytes that the files of a folder have had together."""

    most: int = 0


@contextmanager
def peak_size(folder: Path) -> Iterator[Size]:
    """What the files in a folder take, looked at ten times a second; files that are deleted meanwhile count as nothing."""
    size, done = Size(), threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            size.most = max(size.most, sum(map(_size_of, folder.rglob("*"))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield size
    finally:
        done.set()
        watcher.join()


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


@contextmanager
def two_workers(memory: str) -> Iterator[Client]:
    """Two processes of one thread, on the loopback interface alone."""
    with (
        dask.config.set(NO_SPILLING),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=memory
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@dataclass
class Memory:
    """Resident bytes of the largest worker: before any work, the most of any moment, and of each step."""

    idle: int
    most: int
    of_steps: dict[str, int] = field(default_factory=dict)
    now: str = ""

    def step(self, share: float, what: str) -> None:
        """The step that runs now."""
        self.now = what

    def see(self, resident: int) -> None:
        """Note what the largest worker has."""
        self.most = max(self.most, resident)
        self.of_steps[self.now] = max(self.of_steps.get(self.now, 0), resident)


@contextmanager
def peak_memory(client: Client) -> Iterator[Memory]:
    """The largest resident memory of any worker, looked at fifty times a second."""
    client.run(release_memory)
    processes = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
    idle = max(process.memory_info().rss for process in processes)
    memory, done = Memory(idle, idle), threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            memory.see(max(process.memory_info().rss for process in processes))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield memory
    finally:
        done.set()
        watcher.join()


if __name__ == "__main__":
    main()
