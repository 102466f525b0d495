"""Friends of friends: speed against other finders, memory, and how the cost grows with size, threads and clustering.

python benchmarks/fof.py [--n 128] [--repeats 5] [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import finders
import numpy as np
import timing
from side_by_side import side_by_side

import workbench as wb
from workbench import backend


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=128, help="particles per axis of the clustered snapshot (default 128)")
    parser.add_argument("--repeats", type=int, default=5, help="counted runs of each finder (default 5)")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    n, repeats = (32, 2) if options.quick else (options.n, options.repeats)
    snapshot = wb.synthetic.cosmic_web(n=n)
    print(f"{timing.machine()}, {backend.threads()} threads\n")
    against_others(snapshot, repeats)
    memory(snapshot)
    threads(snapshot, repeats)
    sizes(repeats, copies=(1, 2) if options.quick else (1, 2, 3, 4, 5))
    clustering(snapshot, repeats)


def against_others(snapshot: wb.Particles, repeats: int) -> None:
    """All finders on one clustered snapshot, and whether they agree particle by particle."""
    assert snapshot.box is not None
    ours = wb.friends_of_friends(snapshot)
    in_halos = ours.sizes[ours.sizes >= 20].sum() / len(snapshot)
    print(f"## Clustered snapshot, {len(snapshot):,} particles, b = 0.2\n")
    print(f"{ours.count():,} groups of at least 20 particles hold {in_halos:.0%} of all.\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "positions.npy"
        np.save(path, snapshot.positions)
        tasks = {
            name: finders.Task(finder, path, name != "workbench", ours.linking_length, snapshot.box[0])
            for name, finder in finders.installed().items()
        }
        times = timing.interleaved(tasks, repeats)
        agreement = {name: _agreement(name, task, ours) for name, task in tasks.items()}
    rows: list[list[object]] = [
        [name, f"{len(snapshot) / time / 1e6:.2f}", f"{time / times['workbench']:.1f} x", agreement[name]]
        for name, time in times.items()
    ]
    print(timing.table(["finder", "M particles/s", "time / ours", "same groups"], rows))


def _agreement(name: str, task: finders.Task, ours: wb.Groups) -> str:
    if name in finders.NOT_PERIODIC:
        return "not periodic"
    theirs = timing.in_fresh_process(task).astype(np.int64)
    return "yes" if ours.equals(wb.Groups.from_labels(theirs, ours.linking_length)) else "NO"


def memory(snapshot: wb.Particles) -> None:
    """Peak memory beyond the positions, labels included."""
    peak = timing.peak_bytes(lambda: wb.friends_of_friends(snapshot))
    print(f"Extra memory at the peak: {peak / len(snapshot):.0f} bytes a particle (target: at most 100)\n")


def threads(snapshot: wb.Particles, repeats: int) -> None:
    """One thread, two, four, ... up to all of them."""
    print("## Threads\n")
    most, counts = backend.threads(), [1]
    while counts[-1] * 2 <= most:
        counts.append(counts[-1] * 2)
    rows: list[list[object]] = []
    for count in counts:
        with backend.using_threads(count):
            time = timing.seconds(lambda: wb.friends_of_friends(snapshot), repeats)
        rows.append([count, f"{len(snapshot) / time / 1e6:.2f}"])
    print(timing.table(["threads", "M particles/s"], rows))


def sizes(repeats: int, copies: tuple[int, ...]) -> None:
    """Equally clustered, from 10^5 to 10^7 particles: the cost of one particle must stay within 1.5 times."""
    print("## Size (copies of one clustered snapshot, shuffled)\n")
    snapshot = wb.synthetic.cosmic_web(n=46)
    costs: list[float] = []
    rows: list[list[object]] = []
    for count in copies:
        ordered = side_by_side(snapshot, count)
        particles = ordered.select(np.random.default_rng(0).permutation(len(ordered)))
        time = timing.seconds(lambda p=particles: wb.friends_of_friends(p), repeats)   # type: ignore[misc]
        costs.append(time / len(particles))
        rows.append([f"{len(particles):,}", f"{1e9 * costs[-1]:.0f}", f"{1e-6 / costs[-1]:.2f}"])
    print(timing.table(["particles", "ns a particle", "M particles/s"], rows))
    print(f"Largest cost over smallest: {max(costs) / min(costs):.2f} (target: at most 1.5)\n")


def clustering(snapshot: wb.Particles, repeats: int) -> None:
    """From a uniform box to everything in one place."""
    print("## Clustering\n")
    count = len(snapshot)
    random = np.random.default_rng(0)
    shuffled = snapshot.select(random.permutation(count))
    million = 1_000_000 if count > 10**6 else count
    clump = wb.Particles(random.random((million, 3)) * 0.1)
    cases = {
        "uniform": (wb.Particles(random.random((count, 3)).astype(np.float32), box=1.0 + 1e-6), 0.2, "spacing"),
        "clustered, in order": (snapshot, 0.2, "spacing"),
        "clustered, shuffled": (shuffled, 0.2, "spacing"),
        "clustered, b = 0.05": (shuffled, 0.05, "spacing"),
        "clustered, b = 0.5": (shuffled, 0.5, "spacing"),
        "clustered, b = 1.0": (shuffled, 1.0, "spacing"),
        "one clump inside one linking length": (clump, 0.2, "length"),
        "all in one point": (wb.Particles(np.full((million, 3), 0.5)), 0.2, "length"),
    }
    rows: list[list[object]] = []
    for name, (particles, length, unit) in cases.items():
        time = timing.seconds(lambda p=particles, b=length, u=unit: wb.friends_of_friends(p, b, u), repeats)   # type: ignore[misc]
        rows.append([name, f"{len(particles):,}", f"{1e9 * time / len(particles):.0f}"])
    print(timing.table(["particles", "count", "ns a particle"], rows))


if __name__ == "__main__":
    main()
