"""Friends of friends and archives on two workers, against one process with two threads; and more particles than memory.

python benchmarks/on_dask.py [--n 128 256] [--copies 4] [--folder /tmp] [--skip-large] [--skip-archives]

Each worker has one thread. Medians of three runs are compared; processor times, which other programs on the machine hardly
change, stand beside. The large set consists of periodic copies of one snapshot, so its groups are known: those of the
snapshot, once for each copy. Workers have a memory limit, may not spill to disk, and must never be restarted. With 4 copies
along each axis there are 1.3 · 10⁸ particles, 1.6 GB of positions and 4.4 GB of scratch files in the folder.
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
from dataclasses import dataclass
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
from workbench.data.chunked import ParticlesInNpy

LINKING = 0.2
MEMORY = "1536MiB"
NO_SPILLING = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": 0.95,
    "distributed.worker.memory.terminate": 0.98,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[128, 256], help="particles along each axis")
    parser.add_argument("--copies", type=int, default=4, help="copies of a 128³ snapshot along each axis")
    parser.add_argument("--folder", help="where files are written; all is deleted at the end")
    parser.add_argument("--skip-large", action="store_true")
    parser.add_argument("--skip-archives", action="store_true")
    given = parser.parse_args()
    print(f"# Two workers of one thread against one process with two\n\n{timing.machine()}\n")
    with tempfile.TemporaryDirectory(dir=given.folder) as name, two_workers() as client:
        folder = Path(name)
        warm(client)
        costs = searched(given.n, folder, client)
        if not given.skip_archives:
            archived(given.n, folder, client)
        if not given.skip_large:
            costs.append(out_of_core(given.copies, folder, client))
        flat = max(costs) / min(costs)
        print(f"Processor time for each particle, from the fewest to the most: {flat:.2f} (target: 1.3).")


def warm(client: Client) -> None:
    """Load all code, here and on the workers."""
    small = wb.synthetic.cosmic_web(n=16, seed=1)
    wb.friends_of_friends(small)
    wb.distributed.friends_of_friends(small, client=client, parts=4).close()


def searched(sizes: list[int], folder: Path, client: Client) -> list[float]:
    """The same search on the cluster and in this process; returns the processor time for each particle on the cluster."""
    rows, costs = [], []
    for n in sizes:
        particles, source = stored(n, folder)
        steps: set[str] = set()
        groups, here = repeated(partial(wb.friends_of_friends, particles, LINKING), own_time)
        found, there = repeated(
            partial(
                wb.distributed.friends_of_friends, source, LINKING, client=client,
                progress=partial(noted, steps),
            ),
            partial(time_of_workers, client),
        )
        assert np.array_equal(found.gathered().labels, groups.labels)
        planned = wb.distributed.plan(len(particles), LINKING, workers=2, memory=MEMORY, parts=found.parts)
        costs.append(there.processor / len(particles) * 1e6)
        rows.append([
            f"{n}³", found.parts, f"{here.wall:.2f}", f"{there.wall:.2f}", f"{there.wall / here.wall:.2f}",
            f"{there.processor / here.processor:.2f}", f"{costs[-1]:.3f}", len(steps),
            f"{found.ghosts / len(particles):.2%} ({planned.ghosts:.2%})", f"{planned.seconds:.1f}",
        ])
        found.close()
    print(timing.table(
        [
            "particles", "subdomains", "one process, s", "cluster, s", "ratio (target: 1.6)", "ratio of processor time",
            "µs each", "steps (constant)", "ghosts (planned)", "planned, s",
        ],
        rows,
    ))
    return costs


def noted(steps: set[str], share: float, what: str) -> None:
    """Remember the names of steps."""
    steps.add(what)


def archived(sizes: list[int], folder: Path, client: Client) -> None:
    """The same archives on the cluster and in this process; the files are the same or, where clusters are kept, similar."""
    rows: list[list[object]] = []
    for n in sizes:
        particles, source = stored(n, folder)
        bound = wb.Absolute(0.1 * LINKING * particles.spacing)
        for number, (order, keep) in enumerate((("keep", []), ("free", []), ("keep", [wb.KeepClusters(LINKING)]))):
            one, many = folder / f"one-{n}-{number}.zarr", folder / f"many-{n}-{number}.zarr"
            _, here = timed(partial(written_here, particles, bound, order, keep, one))
            _, there = timed(
                partial(wb.distributed.compress, source, bound, keep=keep, order=order, out=many, client=client)
            )
            assert keep or same_files(one, many)
            sizes_of = [sum(path.stat().st_size for path in top.rglob("*") if path.is_file()) for top in (one, many)]
            rows.append([
                f"{n}³", f"order {order}{', clusters kept' if keep else ''}", f"{here:.2f}", f"{there:.2f}",
                f"{there / here:.2f}", f"{sizes_of[1] / sizes_of[0] - 1:+.2%}",
            ])
            for path in (one, many):
                shutil.rmtree(path)
    print(timing.table(
        ["particles", "archive", "one process, s", "cluster, s", "ratio (target: 1.6)", "more bytes (target: 3%)"], rows
    ))


def stored(n: int, folder: Path) -> tuple[wb.Particles, ParticlesInNpy]:
    """A snapshot of n³ particles, in memory and in a file."""
    snapshot = tiled(n)
    particles = wb.Particles(snapshot.positions, snapshot.box)
    np.save(folder / f"{n}.npy", particles.positions)
    return particles, ParticlesInNpy.open(folder / f"{n}.npy", particles.box)


def written_here(particles: wb.Particles, bound: wb.Absolute, order: str, keep: list[Any], path: Path) -> None:
    """The archive of one process."""
    wb.compress(particles, bound, keep=keep, order=order).save(path)


def out_of_core(copies: int, folder: Path, client: Client) -> float:
    """Many copies of one snapshot, in workers with little memory; returns the processor time for each particle."""
    snapshot = on_grid(tiled(128), 2.0**-14)   # so that shifted copies have the same distances
    path = folder / "large.npy"
    written(path, snapshot, copies)
    assert snapshot.box is not None
    source = ParticlesInNpy.open(path, tuple(copies * length for length in snapshot.box))
    workers = set(client.scheduler_info(-1)["workers"])
    length = LINKING * snapshot.spacing
    before = time_of_workers(client)
    with peak_memory(client) as peak:
        found, seconds = timed(
            partial(wb.distributed.friends_of_friends, source, length, "length", client, scratch=folder)
        )
        members = found.catalogue(20).members
    processor = (time_of_workers(client) - before) / len(source) * 1e6
    assert set(client.scheduler_info(-1)["workers"]) == workers, "a worker was restarted"
    groups = wb.friends_of_friends(wb.Particles(snapshot.positions, snapshot.box), length, "length")
    expected = np.bincount(groups.sizes[groups.sizes >= 20]) * copies**3
    counted = np.bincount(members, minlength=len(expected))
    same = bool((counted[: len(expected)] == expected).all())
    held = (len(source) + found.ghosts) / found.parts * (snapshot.dimensions * snapshot.positions.itemsize + 9)
    planned = wb.distributed.plan(len(source), LINKING, workers=2, memory=MEMORY, parts=found.parts)
    print(f"{len(source):,} particles in {found.parts} subdomains: {seconds:.0f} s (planned: {planned.seconds:.0f} s).")
    print(f"Ghosts: {found.ghosts / len(source):.1%} (target: 10%). Groups as in every copy: {same}.")
    print(f"A subdomain has {held / 2**20:.0f} MiB (positions, indices, marks), a worker at most {MEMORY}.")
    print(f"Largest memory of a worker: {peak.most / 2**20:.0f} MiB, {peak.idle / 2**20:.0f} MiB of it before any work;")
    print(f"growth over a subdomain: {(peak.most - peak.idle) / held:.1f} (target: 6). No worker was restarted.")
    found.close()
    path.unlink()
    return processor


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


def repeated(work: Callable[[], Any], clock: Callable[[], float], repeats: int = 3) -> tuple[Any, Took]:
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


@contextmanager
def two_workers() -> Iterator[Client]:
    """Two processes of one thread, on the loopback interface alone."""
    with (
        dask.config.set(NO_SPILLING),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=MEMORY
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@dataclass
class Memory:
    """Resident bytes of the largest worker: before any work, and the most of any moment."""

    idle: int
    most: int


@contextmanager
def peak_memory(client: Client) -> Iterator[Memory]:
    """The largest resident memory of any worker, looked at twenty times a second."""
    client.run(backend.release_memory)
    processes = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
    idle = max(process.memory_info().rss for process in processes)
    memory, done = Memory(idle, idle), threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            memory.most = max(memory.most, *(process.memory_info().rss for process in processes))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield memory
    finally:
        done.set()
        watcher.join()


if __name__ == "__main__":
    main()
