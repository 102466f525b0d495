"""Friends of friends and archives on two workers, against one process with two threads; and more particles than memory.

python benchmarks/on_dask.py [--n 128 256] [--copies 4] [--skip-large]

Each worker has one thread. The large set consists of periodic copies of one snapshot, so its groups are known: those of the
snapshot, once for each copy. Workers have a memory limit, may not spill to disk, and must never be restarted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import timing
from distributed import Client, LocalCluster

import workbench as wb
from workbench.data.chunked import ParticlesInNpy
from workbench.distributed.sources import PART

LINKING = 0.2
MEMORY = "1536MiB"
NO_SPILLING = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": 0.95,
    "distributed.worker.memory.terminate": 0.98,
}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[128, 256], help="particles along each axis")
    parser.add_argument("--copies", type=int, default=4, help="copies of a 128³ snapshot along each axis")
    parser.add_argument("--skip-large", action="store_true")
    given = parser.parse_args()
    print(f"# Two workers of one thread against one process with two\n\n{timing.machine()}\n")
    with tempfile.TemporaryDirectory() as folder, two_workers() as client:
        compared(given.n, Path(folder), client)
        if not given.skip_large:
            out_of_core(given.copies, Path(folder), client)


def compared(sizes: list[int], folder: Path, client: Client) -> None:
    """The same work on the cluster and in this process; the results are compared."""
    rows: list[list[object]] = []
    for n in sizes:
        snapshot = tiled(n)
        particles = wb.Particles(snapshot.positions, snapshot.box)
        np.save(folder / f"{n}.npy", particles.positions)
        source = ParticlesInNpy.open(folder / f"{n}.npy", particles.box)
        groups, here = timed(partial(wb.friends_of_friends, particles, LINKING))
        found, there = timed(partial(wb.distributed.friends_of_friends, source, LINKING, client=client))
        assert np.array_equal(found.gathered().labels, groups.labels)
        rows.append([f"{n}³", "friends of friends", f"{here:.2f}", f"{there:.2f}", f"{there / here:.2f}"])
        found.close()
        bound = wb.Absolute(0.1 * LINKING * particles.spacing)
        for order in ("keep", "free"):
            one, many = folder / f"one-{n}-{order}.zarr", folder / f"many-{n}-{order}.zarr"
            _, here = timed(partial(written_here, particles, bound, order, one))
            _, there = timed(partial(wb.distributed.compress, source, bound, order=order, out=many, client=client))
            assert same_files(one, many)
            rows.append([f"{n}³", f"compress, order {order}", f"{here:.2f}", f"{there:.2f}", f"{there / here:.2f}"])
    print(timing.table(["particles", "work", "one process, s", "cluster, s", "ratio (target: 1.6)"], rows))


def written_here(particles: wb.Particles, bound: wb.Absolute, order: str, path: Path) -> None:
    """The archive of one process."""
    wb.compress(particles, bound, order=order).save(path)


def out_of_core(copies: int, folder: Path, client: Client) -> None:
    """Many copies of one snapshot, in workers with little memory."""
    snapshot = on_grid(tiled(128), 2.0**-14)   # so that shifted copies have the same distances
    path = folder / "large.npy"
    written(path, snapshot, copies)
    assert snapshot.box is not None
    source = ParticlesInNpy.open(path, tuple(copies * length for length in snapshot.box))
    workers = set(client.scheduler_info()["workers"])
    length = LINKING * snapshot.spacing
    with peak_memory(client) as peak:
        found, seconds = timed(lambda: wb.distributed.friends_of_friends(source, length, "length", client))
        members = found.catalogue(20).members
    assert set(client.scheduler_info()["workers"]) == workers, "a worker was restarted"
    groups = wb.friends_of_friends(wb.Particles(snapshot.positions, snapshot.box), length, "length")
    expected = np.bincount(groups.sizes[groups.sizes >= 20]) * copies**3
    counted = np.bincount(members, minlength=len(expected))
    same = bool((counted[: len(expected)] == expected).all())
    part = PART * snapshot.dimensions * snapshot.positions.itemsize
    each = seconds / len(source) * 1e6
    print(f"{len(source):,} particles in {found.parts} subdomains: {seconds:.0f} s, {each:.2f} µs each.")
    print(f"Ghosts: {found.ghosts / len(source):.1%} (target: 10%). Groups as in every copy: {same}.")
    print(f"Largest memory of a worker: {peak[0] / 2**20:.0f} MiB of {MEMORY}; a subdomain has {part / 2**20:.0f} MiB.")
    found.close()


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


@contextmanager
def peak_memory(client: Client) -> Iterator[list[int]]:
    """The largest resident memory of any worker, looked at ten times a second."""
    processes = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            peak[0] = max(peak[0], *(process.memory_info().rss for process in processes))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


if __name__ == "__main__":
    main()
