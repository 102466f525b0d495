"""What safety costs: comparing decoded values with their checksums, decoding in another process, and memory.

python benchmarks/safety.py [--n 128] [--repeats 7]

The checksum of the decoded values is compared on every read, so its cost is a share of the CPU time of decoding. Codecs
that run in a child process cost a start and a copy. Memory is the peak of the process beyond the data.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import timing

import workbench as wb
from workbench.archive.chunk import decode_frame, require_as_written
from workbench.archive.reading import StoredArray
from workbench.memory import release_memory

LINKING = 0.2   # in mean spacings
FOREIGN = ("sz3", "zfp", "sperr", "fpzip", "pcodec")


def main() -> None:
    """Print all three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=128, help="particles and cells along each axis")
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    print(f"# What safety costs\n\n{timing.machine()}\n")
    field = wb.synthetic.gaussian_field((given.n,) * 3, seed=1)
    snapshot = wb.synthetic.cosmic_web(n=given.n, seed=1)
    positions = wb.Particles(snapshot.positions, snapshot.box)
    cost_of_checksums(field, positions, given.repeats)
    cost_of_isolation(field, given.repeats)
    memory(positions)


def installed() -> list[str]:
    """The foreign codecs that are there."""
    return [codec for codec in FOREIGN if codec in wb.codecs.available()]


def cost_of_checksums(field: wb.Field, particles: wb.Particles, repeats: int) -> None:
    """The CPU time of decoding with and without the comparison."""
    print("## Comparing decoded values with their checksum: additional CPU time of decoding\n")
    bound = wb.Absolute(0.1 * LINKING * particles.spacing)
    archives = {
        **{codec: wb.compress(field, wb.Relative(1e-3), codec) for codec in installed()},
        "lattice, free order": wb.compress(particles, bound, order="free"),
        "lattice, kept order": wb.compress(particles, bound, order="keep"),
    }
    rows: list[list[object]] = []
    for name, archive in archives.items():
        stored = archive.data
        runs = {False: partial(decoded, stored, False), True: partial(decoded, stored, True)}
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(repeats):
            for compared, run in runs.items():
                times[compared].append(cpu_seconds(run))
        plain, compared_too = min(times[False]), min(times[True])
        rows.append([name, f"{plain * 1e3:.0f} ms", f"+{compared_too / plain - 1:.1%}"])
    print(timing.table(["codec", "decoding", "comparing"], rows))


def decoded(stored: StoredArray, compared: bool) -> None:
    """Decode every chunk in this process."""
    for index in stored.layout.chunk_indices():
        opened = stored.frame(index)
        values = decode_frame(opened, stored.codec, stored.layout.dtype)
        if compared:
            require_as_written(opened, values, stored.codec, stored.layout.configuration)


def cpu_seconds(run: Callable[[], object]) -> float:
    """The CPU time of one run, of all threads."""
    start = time.process_time()
    run()
    return time.process_time() - start


def cost_of_isolation(field: wb.Field, repeats: int) -> None:
    """The time to read a file in this process and in another."""
    print("## Decoding in another process\n")
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for codec in installed():
            path = wb.compress(field, wb.Relative(1e-3), codec, chunk_values=2**18).save(Path(folder) / f"{codec}.zip")
            row: list[object] = [codec]
            for use in (whole, corner):
                here, there = (timing.seconds(partial(use, wb.open(path, isolate=each)), repeats) for each in (False, True))
                row += [f"{here * 1e3:.1f} ms", f"{there * 1e3:.1f} ms"]
            rows.append(row)
    header = ["codec", "whole, here", "whole, in another process", "10³ cells, here", "10³ cells, in another process"]
    print(f"{field!r}; the process is already there.\n")
    print(timing.table(header, rows))


def whole(archive: wb.Archive) -> object:
    """Everything."""
    return archive.decompress()


def corner(archive: wb.Archive) -> object:
    """A few cells."""
    return archive.read([(0, 10)] * 3)


def memory(particles: wb.Particles) -> None:
    """The peak memory of each use, in a process of its own."""
    print("## Peak memory in addition to the positions, bytes per particle\n")
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "positions.npy"
        np.save(path, particles.positions)
        for name, use in USES.items():
            peak = timing.in_fresh_process(partial(peak_of, use, path, particles.box))
            rows.append([name, f"{peak / len(particles):.0f}"])
    print(timing.table(["", "bytes per particle"], rows))


def peak_of(use: str, path: Path, box: tuple[float, ...] | None) -> int:
    """How far the largest memory of this process rises during a use, after one on few particles has loaded everything."""
    few = wb.synthetic.cosmic_web(n=16, seed=1)
    run(use, wb.Particles(few.positions, few.box))()
    prepared = run(use, wb.Particles(np.load(path), box))
    release_memory()   # what preparing has freed
    before = resident_bytes()
    Path("/proc/self/clear_refs").write_text("5")   # sets the largest memory so far to the present one
    prepared()
    return peak_resident_bytes() - before


def run(use: str, particles: wb.Particles) -> Callable[[], object]:
    """A use, ready to be called."""
    bound = wb.Absolute(0.1 * LINKING * particles.spacing)
    if use == "fof":
        return partial(wb.friends_of_friends, particles, LINKING)
    if use in ("free", "keep"):
        return partial(wb.compress, particles, bound, order=use)
    keep = [wb.KeepClusters(LINKING)]
    if use == "clusters":
        return partial(wb.compress, particles, bound, order="free", keep=keep)
    archive = wb.compress(particles, bound, order="free", keep=keep)
    return archive.decompress if use == "decompress" else partial(archive.verify, particles)


USES = {
    "friends of friends": "fof",
    'compress, `order="keep"`': "keep",
    'compress, `order="free"`': "free",
    'compress with `KeepClusters`, `order="free"`': "clusters",
    "decompress, the result included": "decompress",
    "verify against the original, with `KeepClusters`": "verify",
}


def resident_bytes() -> int:
    """The present memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_resident_bytes() -> int:
    """The largest memory of this process since it was set back."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
