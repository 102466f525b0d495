"""Propagation: trials per second, reuse of the unperturbed prefix, predictions beside measurements, budgets.

python benchmarks/propagation.py [--side 64] [--trials 600]

Times are of the processor as well as of the clock, because a busy machine changes the latter.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import timing

import workbench as wb
from workbench.propagation import Bounded, Pipeline, budget, campaign, halos, power_spectrum, strata, trace

ROUNDS = 5
LINEAR = ("waves",)   # sites of linear stages behind nothing but small changes
SHARES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--trials", type=int, default=600)
    asked = parser.parse_args()
    print(timing.machine())
    field = wb.synthetic.gaussian_field((asked.side,) * 3, seed=1)
    density = np.exp(field.values.astype(np.float64))
    speed(density, asked.trials)
    predictions(density)
    budgets(density.astype(np.float32))


def speed(density: np.ndarray, trials: int) -> None:
    """Campaigns of bit flips on density to spectrum, at all sites and fields of bits."""
    print(f"\n## Campaign: density to spectrum, {' x '.join(map(str, density.shape))}\n")
    pipeline = power_spectrum(density)
    plain = Pipeline([replace(stage, update=None) for stage in pipeline.stages], tolerance=pipeline.tolerance)
    perturbations = strata(pipeline, density)
    runs: dict[str, Callable[[], Any]] = {
        f"{workers} threads": partial(campaign, pipeline, density, perturbations, until=trials, workers=workers)
        for workers in (1, 2, 4)
    }
    runs["1 thread, every stage of every trial"] = partial(_blind, plain, density, perturbations, trials)
    runs["2 processes, for stages that may crash"] = partial(
        campaign, pipeline, density, perturbations, until=trials, workers=2, isolate=30.0
    )
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    found = {}
    for _ in range(ROUNDS):   # in turn, so that a slow spell of the machine meets all
        for name, work in runs.items():
            *taken, found[name] = _timed(work)
            times[name].append((taken[0], taken[1]))
    rows: list[list[object]] = [
        [name, *(f"{trials / statistics.median(each):.0f}" for each in zip(*pairs, strict=True))]
        for name, pairs in times.items()
    ]
    print(timing.table(["", "trials/s", "trials per processor second"], rows))
    campaigns = [each for each in found.values() if each is not None]
    same = all(each.trials == campaigns[0].trials for each in campaigns)
    print(f"{campaigns[0]!r}\n")
    fastest = trials / min(statistics.median(clock for clock, _ in times[f"{n} threads"]) for n in (1, 2))
    print(timing.targets([
        ("trials/s on at most 2 threads", fastest, ">=", 50.0),
        ("numbers of threads (1, 2, 4) with identical outcomes", 3.0 if same else 1.0, ">=", 3.0),
    ]))


def _blind(pipeline: Pipeline, density: np.ndarray, perturbations: Any, trials: int) -> None:
    """The same trials without any reuse; the outcomes are not even looked at."""
    for trial in range(trials):
        at = pipeline.interventions([perturbations[trial % len(perturbations)]], 0, trial)
        pipeline.run(density, at=at)


def _timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds on the clock and of the processor, also those of processes that have ended, and the result."""
    clock, processor = time.perf_counter(), _processor()
    result = work()
    return time.perf_counter() - clock, _processor() - processor, result


def _processor() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def predictions(density: np.ndarray) -> None:
    """Measured over predicted error of real codecs at bounds in units of the root mean square."""
    print("\n## Measured over predicted error (first order), and the guaranteed interval over the largest change\n")
    pipeline, size = power_spectrum(density), float(np.sqrt((density**2).mean()))
    rows: list[list[object]] = []
    worst, outside = 0.0, 0
    for codec in ("sz3", "zfp", "prequantised"):
        if codec not in wb.codecs.available():
            continue
        for share in SHARES:
            found = trace(pipeline, density, Bounded("input", wb.Absolute(share * size), codec))
            cells = [f"{each.ratio:.4f}, {(each.guaranteed or 0) / each.largest:.0f}x" for each in found.stages[1:]]
            inside = all(each.holds for each in found.stages)
            outside += not inside
            if 1e-4 <= share <= 1e-2:
                worst = max(worst, *(abs((each.ratio or 0) - 1) for each in found.stages if each.site in LINEAR))
            rows.append([codec, f"{share:g}", *cells, found.stages[-1].badge, "yes" if inside else "NO"])
    print(timing.table(["codec", "bound / rms", "contrast", "waves", "power", "spectrum", "end", "inside"], rows))
    print(timing.targets([
        ("measured over predicted on linear stages, from 1, bounds of 1e-4 to 1e-2 rms", worst, "<=", 0.01),
        ("errors outside of their guaranteed interval", float(outside), "<=", 0.0),
    ]))
    print("10⁴ property-based cases of intervals: `pytest -m long tests/propagation/test_enclosures.py`\n")


def budgets(density: np.ndarray) -> None:
    """The ratio that a tolerance at the end allows, and how long it takes to find."""
    print("\n## Budgets\n")
    snapshot = wb.synthetic.cosmic_web(n=64, seed=1)
    cases: list[tuple[str, Pipeline, Any, Any]] = [
        ("spectrum within 1%, input", power_spectrum(density), density, None),
        ("spectrum within 1%, input and waves", power_spectrum(density), density, ["input", "waves"]),
        ("mass function within Poisson errors, 64³ particles", halos(snapshot), snapshot, None),
    ]
    rows: list[list[object]] = []
    for name, pipeline, data, sites in cases:
        clock, processor, found = _timed(partial(budget, pipeline, data, sites=sites))
        bounds = ", ".join(f"{site} {bound.eb:.3g}" for site, bound in found.bounds.items())
        figures = found.ratio, found.damage, found.additivity, clock, processor
        rows.append([name, bounds, *(f"{figure:.2f}" for figure in figures)])
    print(timing.table(["tolerance", "bounds", "ratio", "damage", "additivity", "s", "processor s"], rows))


if __name__ == "__main__":
    main()
