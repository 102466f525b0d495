"""Friends of friends, the built-in codec and kept clusters on a GPU: bit-identity with the CPU, and speed.

    python benchmarks/gpu.py [--n 128 256] [--copies 8]

Checks GPU = CPU label for label on clustered, uniform and adversarial particles before it times anything; the exit
status is 1 when a label differs, or later a byte. Times are GPU events around the whole call, arrays already on the GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import timing
from side_by_side import side_by_side

import workbench as wb
from workbench import backend
from workbench.data.synthetic import adversarial


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[64, 128], help="particles per axis of the snapshots")
    parser.add_argument("--copies", type=int, default=6, help="largest number of copies of the last one along each axis")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    try:
        cupy = backend.gpu()
    except wb.WorkbenchError as error:
        print(error, file=sys.stderr)
        return 2
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}; {timing.machine()}\n")
    snapshots = [wb.synthetic.cosmic_web(n=n) for n in options.n]
    if not same_labels(cupy, snapshots):
        return 1
    speed(cupy, snapshots, options.copies, options.repeats)
    agrees = codec(cupy, snapshots[-1], options.copies, options.repeats)
    agrees &= keeping_clusters(cupy, snapshots[-1], options.copies, options.repeats)
    return 0 if agrees else 1


def on_gpu(cupy: Any, particles: wb.Particles) -> wb.Particles:
    """The same particles in the memory of the GPU."""
    return wb.Particles(cupy.asarray(particles.positions), particles.box)


def same_labels(cupy: Any, snapshots: list[wb.Particles]) -> bool:
    """Whether every label agrees on both machines, over snapshots, precisions, dimensions and hard cases."""
    cases: dict[str, tuple[wb.Particles, float]] = {}
    for snapshot in snapshots:
        for length in (0.05, 0.2, 0.6):
            cases[f"{snapshot}, b = {length}"] = (snapshot, length)
            as_double = wb.Particles(snapshot.positions.astype(np.float64), snapshot.box)
            cases[f"{as_double}, b = {length}"] = (as_double, length)
    for dimensions in (2, 3):
        for dtype in (np.float32, np.float64):
            for name, case in adversarial.cases(dimensions, dtype).items():
                cases[f"{name}, {dimensions}-D, {np.dtype(dtype)}"] = case
    wrong = 0
    for name, (particles, length) in cases.items():
        expected = wb.friends_of_friends(particles, length, unit="length").labels
        found = backend.to_host(wb.friends_of_friends(on_gpu(cupy, particles), length, unit="length").labels)
        if not np.array_equal(expected, found):
            print(f"DIFFERENT LABELS: {name}: {int((expected != found).sum()):,} of {len(found):,}")
            wrong += 1
    print(f"GPU = CPU label for label in {len(cases) - wrong} of {len(cases)} cases\n")
    return wrong == 0


def speed(cupy: Any, snapshots: list[wb.Particles], copies: int, repeats: int) -> None:
    """Particles per second for growing numbers of particles, and the memory taken."""
    rows = [measured(cupy, on_gpu(cupy, snapshot), repeats) for snapshot in snapshots]
    largest = on_gpu(cupy, snapshots[-1])
    rows += [measured(cupy, side_by_side(largest, count), repeats) for count in range(2, copies + 1)]
    print(timing.table(["particles", "ms", "M particles/s", "extra bytes a particle"], rows))


def measured(cupy: Any, particles: wb.Particles, repeats: int) -> list[object]:
    """One row: the median time of several runs after one that is not counted, and the peak of the memory pool."""
    pool = cupy.get_default_memory_pool()
    length = 0.2 * particles.spacing
    pool.free_all_blocks()
    before = pool.total_bytes()
    time = seconds(cupy, lambda: wb.friends_of_friends(particles, length, unit="length"), repeats)
    extra = (pool.total_bytes() - before) / len(particles)
    return [f"{len(particles):,}", f"{time * 1e3:.2f}", f"{len(particles) / time / 1e6:.0f}", f"{extra:.0f}"]


def codec(cupy: Any, snapshot: wb.Particles, copies: int, repeats: int) -> bool:
    """GB/s of encoding and decoding positions that stay on the GPU; bytes go to the host, as a file would need them."""
    particles = side_by_side(on_gpu(cupy, snapshot), copies)
    positions, aim = particles.positions, wb.codecs.Tolerance(absolute=0.02 * snapshot.spacing)
    rows: list[list[object]] = []
    agrees = True
    for order in ("free", "keep"):
        for coder in ("packed", "context"):
            chosen = wb.codecs.get("lattice", order=order, coder=coder)
            some = positions[:500_000]
            agrees &= chosen.encode(some, aim) == chosen.encode(backend.to_host(some), aim)
            data = chosen.encode(positions, aim)
            encoding = seconds(cupy, partial(chosen.encode, positions, aim), repeats)
            decoding = seconds(cupy, partial(chosen.decode, data, positions.shape, positions.dtype, cupy), repeats)
            speeds = (f"{positions.nbytes / 1e9 / time:.2f}" for time in (encoding, decoding))
            rows.append([order, coder, f"{8 * len(data) / len(positions):.2f}", *speeds])
    print(f"## Built-in codec, {len(positions):,} particles, ξ = 0.1 b; bytes of the CPU: {'yes' if agrees else 'NO'}\n")
    print(timing.table(["order", "coder", "bits a particle", "encode, GB/s", "decode, GB/s"], rows))
    return agrees


def keeping_clusters(cupy: Any, snapshot: wb.Particles, copies: int, repeats: int) -> bool:
    """GB/s of positions whose clusters are kept: original and decoded ones stay on the GPU, the moves come to the host."""
    snapshot = wb.Particles(snapshot.positions, snapshot.box)
    particles = side_by_side(on_gpu(cupy, snapshot), copies)
    searching = seconds(cupy, partial(wb.friends_of_friends, particles), repeats)
    rows: list[list[object]] = []
    agrees = True
    for share in (0.01, 0.1, 0.3):
        bound = share * 0.2 * snapshot.spacing
        decoded = decoded_again(snapshot, bound)
        expected = wb.clusters.correct(snapshot, decoded, bound)
        found = wb.clusters.correct(on_gpu(cupy, snapshot), on_gpu(cupy, decoded), bound)
        agrees &= same_correction(expected, found)
        task = partial(wb.clusters.correct, particles, decoded_again(particles, bound), bound)
        correcting, coding = seconds(cupy, task, repeats), seconds(cupy, task().sections, repeats)
        speeds = (f"{particles.positions.nbytes / 1e9 / time:.2f}" for time in (correcting, correcting + coding))
        rows.append([share, f"{found.bits_per_particle:.4f}", found.attempts, *speeds, f"{correcting / searching:.1f} x"])
    print(f"## Clusters kept, {len(particles):,} particles; moves and bytes of the CPU: {'yes' if agrees else 'NO'}\n")
    print("Correction throughput in GB/s of positions.\n")
    print(timing.table(["ξ / b", "bits a particle", "attempts", "moves", "moves and their bytes", "time / search"], rows))
    return agrees


def decoded_again(particles: wb.Particles, bound: float) -> wb.Particles:
    """The particles as the built-in codec decodes them, in their own order."""
    xp, positions = backend.namespace(particles.positions), particles.positions
    codec = wb.codecs.get("lattice", order="keep", box=particles.box)
    data = codec.encode(positions, wb.codecs.Tolerance(absolute=bound))
    return wb.Particles(codec.decode(data, positions.shape, positions.dtype, xp), particles.box)


def same_correction(expected: wb.clusters.Correction, found: wb.clusters.Correction) -> bool:
    """Whether both lead to the same positions, bit for bit, and to the same bytes."""
    same_positions = expected.positions.tobytes() == backend.to_host(found.positions).tobytes()
    return same_positions and expected.sections() == found.sections()


def seconds(cupy: Any, run: Callable[[], object], repeats: int) -> float:
    """The median time of several runs, by the clock of the GPU, after one that is not counted."""
    times = []
    for _ in range(repeats + 1):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return statistics.median(times[1:])


if __name__ == "__main__":
    sys.exit(main())
