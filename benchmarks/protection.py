"""Protection: what it costs, what it finds, and what it changes without need.

python benchmarks/protection.py [--repeats 15]

Times are those of the processor, on one thread, and compared functions take turns; so ratios hold on a busy machine, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")   # read when NumPy is imported

import numpy as np
import timing

import workbench as wb
from workbench import backend
from workbench.clusters import ProductFlips
from workbench.clusters.kmeans_assignment import Assignment
from workbench.propagation.protection import Findings, Finite, Shielded, learn_ranges, protected_convolve, protected_matmul
from workbench.propagation.protection.convolutions import _Lines
from workbench.propagation.protection.matrices import _Sums


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    asked = parser.parse_args()
    print(timing.machine(), flush=True)
    with backend.using_threads(1):
        for part in (assignment, peers, faults_in_kmeans, products, product_coverage, convolutions, guards, pipelines):
            part(asked.repeats)


def processor_time(runs: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The median time of each run; all of them once a round, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def clumps(count: int, axes: int, k: int, dtype: str, seed: int = 0) -> np.ndarray:
    """Overlapping Gaussian clumps."""
    random = np.random.default_rng(seed)
    centres = 2 * random.normal(size=(k, axes))
    return (centres[random.integers(0, k, count)] + random.normal(size=(count, axes))).astype(dtype)


def assignment(repeats: int) -> None:
    print("\n## k-means: the assignment step\n")
    rows: list[list[object]] = []
    overhead, alarms, checks = {}, 0, 0
    for count, axes, k, dtype in (
        (100_000, 64, 64, "f4"), (100_000, 64, 64, "f8"), (300_000, 3, 64, "f4"), (300_000, 3, 64, "f8"),
        (50_000, 16, 500, "f4"), (50_000, 256, 32, "f4"),
    ):
        points = clumps(count, axes, k, dtype)
        found = wb.clusters.kmeans(points, k, max_iterations=5, protect=True)
        assert found.integrity is not None
        steps = {"plain": Assignment(points, k, False), "checked": Assignment(points, k, True)}
        arguments = found.centres, found.labels.copy()
        took = processor_time({name: partial(step.run, *arguments) for name, step in steps.items()}, repeats)
        integrity = found.integrity
        alarms, checks = alarms + integrity.detected, checks + integrity.checks
        overhead[count, axes, dtype] = 100 * (took["checked"] / took["plain"] - 1)
        rows.append([
            f"{count:,} x {axes}, k = {k}, {dtype}", f"{1e3 * took['plain']:.1f} ms", f"{1e3 * took['checked']:.1f} ms",
            f"{took['checked'] / took['plain'] - 1:+.1%}", f"{integrity.detected} of {integrity.checks:,}",
        ])
    print(timing.table(["points", "plain", "protected", "overhead", "false alarms"], rows))
    print(timing.targets([
        ("overhead on the assignment step of 100,000 x 64, k = 64, f4, in %", overhead[100_000, 64, "f4"], "<=", 11.0),
        ("checks", float(checks), ">=", 1e4), ("false alarms in them", float(alarms), "<=", 0.0),
    ]))


def peers(repeats: int) -> None:
    print("\n## k-means: 10 iterations from the same centres, one thread\n")
    from scipy.cluster.vq import kmeans2

    rows: list[list[object]] = []
    for count, axes, k, dtype in ((100_000, 64, 64, "f4"), (100_000, 64, 64, "f8"), (300_000, 3, 64, "f4")):
        points = clumps(count, axes, k, dtype)
        start = points[:k].copy()

        ours = partial(wb.clusters.kmeans, points, k, initial=start, max_iterations=10)
        runs: dict[str, Callable[[], Any]] = {
            "ours": ours,
            "ours, protected": partial(ours, protect=True),
            "NumPy (product, argmin)": partial(lloyd, points, start),
            "SciPy kmeans2": partial(kmeans2, points, start, iter=10, minit="matrix"),
        }
        try:
            from sklearn.cluster import KMeans

            theirs = KMeans(k, init=start, n_init=1, max_iter=10, tol=0, algorithm="lloyd")
            runs["scikit-learn"] = partial(theirs.fit, points)
        except ImportError:
            pass
        took = processor_time(runs, max(repeats // 5, 2))
        rows += [
            [f"{count:,} x {axes}, k = {k}, {dtype}", name, f"{seconds:.3f} s", f"{seconds / took['ours']:.2f}"]
            for name, seconds in took.items()
        ]
    print(timing.table(["points", "implementation", "time", "relative"], rows))


def lloyd(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Plain Lloyd iterations, as one writes them with NumPy."""
    for _ in range(11):
        labels = ((centres**2).sum(axis=1) / 2 - points @ centres.T).argmin(axis=1)
        counts = np.bincount(labels, minlength=len(centres))
        sums = np.stack([np.bincount(labels, axis, len(centres)) for axis in points.T], axis=1)
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres).astype(points.dtype)
    return labels


def faults_in_kmeans(_: int) -> None:
    print("\n## k-means: 12 iterations with exponent flips in the products of each (100,000 x 64, k = 64, f4)\n")
    points, k = clumps(100_000, 64, 64, "f4"), 64
    clean = wb.clusters.kmeans(points, k, max_iterations=12)
    rows: list[list[object]] = []
    for number in (50, 1000, 10_000):

        def faults(iteration: int, number: int = number) -> list[ProductFlips]:
            random = np.random.default_rng((iteration, number))
            return [ProductFlips(
                random.integers(0, len(points), number), centre=random.integers(0, k, number),
                bit=random.integers(23, 31, number), axis=random.integers(0, 64, number),
            )]

        bare = wb.clusters.kmeans(points, k, max_iterations=12, faults=faults)
        held = wb.clusters.kmeans(points, k, max_iterations=12, faults=faults, protect=True)
        wrong = int((held.labels != clean.labels).sum())
        assert held.integrity is not None
        rows.append([
            f"{number:,}", f"{(bare.labels != clean.labels).mean():.3%}", wrong,
            f"{held.integrity.detected:,}", f"{held.integrity.corrected:,}", np.array_equal(held.centres, clean.centres),
        ])
    print(timing.table(
        ["flips per iteration", "wrong labels, plain", "wrong, protected", "detected", "corrected", "same centres"], rows
    ))
    print(timing.targets([("wrong labels with 10,000 flips per iteration, protected", float(wrong), "<=", 0.0)]))


def products(repeats: int) -> None:
    print("\n## Matrix products\n")
    rows: list[list[object]] = []
    for dtype in ("f4", "f8"):
        for n in (256, 512, 1024, 2048):
            random = np.random.default_rng(n)
            a, b = (random.normal(size=(n, n)).astype(dtype) for _ in range(2))
            runs = {"plain": partial(np.matmul, a, b), "checked": partial(protected_matmul, a, b)}
            took = processor_time(runs, repeats if n < 2048 else 3)
            found = protected_matmul(a, b)[1]
            rows.append([
                f"{n}², {dtype}", f"{1e3 * took['plain']:.2f} ms", f"{1e3 * took['checked']:.2f} ms",
                f"{took['checked'] / took['plain'] - 1:+.1%}", f"{found.detected} of {found.checks:,}",
            ])
            if (n, dtype) == (1024, "f4"):
                overhead = 100 * (took["checked"] / took["plain"] - 1)
    print(timing.table(["matrices", "plain", "protected", "overhead", "false alarms"], rows))
    print(timing.targets([("overhead of a product of 1024², f4, in %", overhead, "<=", 10.0)]))


def product_coverage(_: int) -> None:
    """A fault that is larger than twice its threshold cannot hide behind round-off."""
    print("\n## One flip in a product of 512² (f4, normal): by bit, 40 trials each\n")
    random = np.random.default_rng(0)
    a, b = (random.normal(size=(512, 512)).astype("f4") for _ in range(2))
    clean, exact = a @ b, a.astype("f8") @ b
    threshold, above, kept = _Sums(a, b).threshold, 0, 0
    rows: list[list[object]] = []
    for bit in (31, 30, 28, 26, 24, 23, 22, 20, 18, 16, 14, 12, 8, 0):
        detected, worst, left = 0, 0.0, 0
        for _ in range(40):
            row, column = random.integers(0, 512, 2)
            struck = clean.copy()
            struck.view("u4")[row, column] ^= np.uint32(1 << bit)
            with np.errstate(all="ignore"):
                seen = not abs(float(struck[row, column]) - float(clean[row, column])) <= 2 * threshold[column]
                result, found = protected_matmul(a, b, product=partial(wrong_once, [struck]))
            detected += found.detected > 0
            above += seen
            kept += seen and abs(result - exact)[row, column] > abs(clean - exact).max()
            left += int((abs(result - exact) > 10 * abs(clean - exact).max()).sum())
            worst = max(worst, float(abs(result - exact).max()))
        rows.append([bit, f"{detected / 40:.0%}", f"{worst:.2g}", left])
    print(timing.table(["bit", "detected", "largest error left", "elements beyond 10 x round-off"], rows))
    print(f"{above} of the flips are above twice the threshold\n")
    print(timing.targets([("flips above twice the threshold that were not corrected", float(kept), "<=", 0.0)]))


def wrong_once(wrong: list[np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A product that is wrong the first time."""
    return wrong.pop() if wrong else a @ b


def convolutions(repeats: int) -> None:
    print("\n## Convolutions, periodic\n")
    from scipy import ndimage

    rows: list[list[object]] = []
    for shape, size in (((1024, 1024), 3), ((1024, 1024), 7), ((128, 128, 128), 3), ((128, 128, 128), 5)):
        random = np.random.default_rng(0)
        values, stencil = random.normal(size=shape).astype("f4"), random.normal(size=(size,) * len(shape)).astype("f4")
        field = values.reshape((1,) * (3 - len(shape)) + shape)
        weights = stencil.reshape((1,) * (3 - len(shape)) + stencil.shape)
        lines = _Lines(field, weights)

        runs: dict[str, Callable[[], Any]] = {
            "plain": lines.compute,
            "checked": partial(checked_convolution, field, weights),
            "scipy": partial(ndimage.convolve, values, stencil, mode="wrap"),
        }
        took = processor_time(runs, max(repeats // 3, 2))
        found = protected_convolve(values, stencil)[1]
        rows.append([
            f"{' x '.join(map(str, shape))}, stencil {size}^{len(shape)}", f"{1e3 * took['plain']:.1f} ms",
            f"{1e3 * took['checked']:.1f} ms", f"{took['checked'] / took['plain'] - 1:+.0%}",
            f"{(took['checked'] - took['plain']) / took['scipy']:+.1%}", f"{found.detected} of {found.checks:,}",
        ])
    print(timing.table(["field", "kernel", "protected", "overhead", "of scipy.ndimage", "false alarms"], rows))


def checked_convolution(field: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What a protected convolution does where nothing is wrong, without the copy of the field with its edges."""
    lines = _Lines(field, weights)
    return lines.suspects(lines.compute())


def power(density: np.ndarray) -> np.ndarray:
    """The power spectrum in 20 bins."""
    modes = abs(np.fft.rfftn(density)) ** 2
    k = [np.fft.fftfreq(n) for n in density.shape[:-1]] + [np.fft.rfftfreq(density.shape[-1])]
    size = np.sqrt(sum(axis**2 for axis in np.meshgrid(*k, indexing="ij")))
    bins = np.minimum((40 * size).astype(int), 20).ravel()
    return np.bincount(bins, modes.ravel(), 21)[1:20] / np.bincount(bins, minlength=21)[1:20]


def guards(repeats: int) -> None:
    print("\n## Guards of a density field (64³, f4) before its power spectrum: 200 exponent flips\n")
    fields = [wb.synthetic.gaussian_field((64, 64, 64), seed=seed).values.astype("f4") for seed in range(12)]
    ranges = learn_ranges([{"density": field} for field in fields[:4]])
    stages: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "none": power, "Finite": Shielded(power, reads=(Finite(),)), "Range": Shielded(power, reads=(ranges["density"],)),
    }
    took = processor_time({name: partial(stage, fields[4]) for name, stage in stages.items()}, repeats)
    rows: list[list[object]] = []
    for name, stage in stages.items():
        alarms = Findings()
        if isinstance(stage, Shielded):
            for field in fields[4:]:
                alarms += stage.checked(field)[1]
        random = np.random.default_rng(1)
        clean, harmed, spoiled = power(fields[4]), 0, 0
        for _ in range(200):
            struck = fields[4].copy()
            struck.reshape(-1).view("u4")[random.integers(struck.size)] ^= np.uint32(1 << int(random.integers(23, 31)))
            with np.errstate(all="ignore"):
                result = stage(struck)
            spoiled += not np.isfinite(result).all()
            harmed += bool((abs(result / clean - 1) > 0.01).any()) and bool(np.isfinite(result).all())
        rows.append([name, f"{took[name] / took['none'] - 1:+.1%}", alarms.detected, harmed, spoiled])
    print(timing.table(["protection", "overhead", "false alarms in 8 fields", "off by > 1%", "not finite"], rows))


def pipelines(repeats: int) -> None:
    print("\n## Protected pipelines: a whole run, and 240 flips in the exponents of what stages return\n")
    field = wb.synthetic.gaussian_field((64, 64, 64), seed=1)
    density = np.exp(field.values.astype(np.float64))
    points = clumps(20_000, 16, 16, "f8")
    protections: tuple[Any, ...] = ("none", "checksums", "twice", "range")
    cases: list[tuple[str, Any, Any]] = [
        ("density to spectrum, 64³", wb.propagation.power_spectrum(density), density),
        ("derivatives, 64³", wb.propagation.derivatives(field), field),
        ("k-means, 20,000 x 16, k = 16", wb.propagation.kmeans(points, clusters=16, rounds=2), points),
    ]
    rows: list[list[object]] = []
    for name, pipeline, x in cases:
        inside = [site for site in pipeline.sites if site not in pipeline.inputs]
        faults = [
            wb.propagation.BitFlip(site, bit="exponent") for site in inside if not pipeline.categorical(site)
        ]
        for how in protections:
            safe = pipeline if how == "none" else wb.propagation.protected(pipeline, x, how)
            took = processor_time({"plain": partial(pipeline.run, x), "safe": partial(safe.run, x)}, max(repeats // 3, 2))
            found = wb.propagation.campaign(safe, x, faults, until=240)
            counts = [sum(each[outcome] for each in found.counts) for outcome in ("silent", "detected", "crash")]
            alarms = sum(each.detected for each in safe.run(x).findings.values())
            rows.append([name, how, f"{took['safe'] / took['plain'] - 1:+.0%}", alarms, *counts])
    print(timing.table(["pipeline", "protection", "overhead", "false alarms", "silent", "detected", "crash"], rows))


if __name__ == "__main__":
    main()
