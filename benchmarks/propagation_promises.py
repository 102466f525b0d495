"""Whether propagation keeps its promises: budgets on new fields, intervals of rare outcomes, false alarms of checksums.

python benchmarks/propagation_promises.py [--parts budgets series intervals alarms escapes] [--budgets 8] [--runs 100000]
    [--results spectrum derivatives histogram] [--codecs sz3 interpolation] [--series FILE]

FILE holds one field for each time, as an array of NumPy. Each share is printed with its number and its standard error. The
whole takes about half an hour of processor time; budgets with the codec interpolation take most of it.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")   # read when NumPy is imported

import numpy as np
import timing
from scipy.spatial import cKDTree
from scipy.stats import binom

import workbench as wb
from workbench.propagation import (
    Bounded,
    Budget,
    Pipeline,
    Run,
    Until,
    budget,
    derivatives,
    each_within,
    histogram,
    power_spectrum,
)
from workbench.propagation.dose import dose
from workbench.propagation.intervals import Rate, clopper_pearson, weighted
from workbench.propagation.protection import Findings, protected_convolve, protected_matmul
from workbench.propagation.protection.transforms import checked_rfftn

SIDE = 64
NEW = 200    # fields on which a budget is tried
MAKERS: dict[str, Callable[[Any], Pipeline]] = {
    "spectrum": power_spectrum, "derivatives": derivatives, "histogram": histogram,
}


def main() -> None:
    """Print all tables that are asked for."""
    parts = {"budgets": budgets, "series": series, "intervals": intervals, "alarms": alarms, "escapes": escapes}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--budgets", type=int, default=8, help="budgets of each kind")
    parser.add_argument("--results", nargs="+", choices=MAKERS, default=list(MAKERS))
    parser.add_argument("--codecs", nargs="+", default=["sz3", "interpolation"])
    parser.add_argument("--runs", type=int, default=100_000, help="protected runs without a fault")
    parser.add_argument("--series", type=Path)
    asked = parser.parse_args()
    print(timing.machine(), flush=True)
    for part in asked.parts:
        parts[part](asked)


def share(found: Sequence[float], trials: int) -> str:
    """A mean of shares with its standard error: of the shares, or of a single one of so many trials."""
    mean = float(np.mean(found))
    error = np.std(found, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.sqrt(mean * (1 - mean) / trials)
    return f"{mean:.3f} ± {error:.3f}"


# Budgets.

def gaussian(seed: int) -> np.ndarray:
    """A field of mean 1 and standard deviation 0.1."""
    return (1 + 0.1 * wb.synthetic.gaussian_field((SIDE, SIDE), seed=seed).values.astype(np.float64)).astype(np.float32)


def damages(runs: Sequence[Run], found: Budget, codec: str) -> np.ndarray:
    """What the bounds of a budget do to other fields."""
    tolerance = runs[0].pipeline.tolerance
    assert tolerance is not None
    bounded = [Bounded(site, bound, codec) for site, bound in found.bounds.items()]
    return np.array([dose(run, bounded, tolerance)[0].damage for run in runs])


def budgets(asked: argparse.Namespace) -> None:
    """Budgets from 1, 20 and 46 fields, the first of which tunes the bounds, on new fields of the same process."""
    print(f"\n## Budgets: Gaussian fields of {SIDE}², {NEW} new ones for each of {asked.budgets} budgets\n")
    heads = ["result, codec", "fields", "says", "held on new fields", "held as often as it says", "worst damage", "price"]
    print(timing.table(heads, []).rstrip(), flush=True)
    for codec in asked.codecs:
        for name in asked.results:
            rows: dict[int, list[tuple[Budget, np.ndarray]]] = {1: [], 20: [], 46: []}
            for repeat in range(asked.budgets):
                fields = [gaussian(10_000 * (repeat + 1) + number) for number in range(46 + NEW)]
                pipeline = MAKERS[name](fields[0])
                new = [pipeline.run(each) for each in fields[46:]]
                for count, found in rows.items():
                    made = budget(pipeline, fields[:count] if count > 1 else fields[0], codec=codec)
                    found.append((made, damages(new, made, codec)))
            for count, found in rows.items():
                print(budget_row(f"{name}, {codec}", count, found, NEW), flush=True)


def budget_row(name: str, count: int, found: Sequence[tuple[Budget, np.ndarray]], new: int) -> str:
    """How often budgets of this kind held on new fields."""
    held = [float(np.mean(each <= 1)) for _, each in found]
    holds = found[0][0].holds
    says = "this field alone" if holds is None else f"{holds.share:.1%}, confidence {holds.confidence:.0%}"
    kept = "" if holds is None else f"{sum(each >= holds.share for each in held)} of {len(held)}"
    worst, price = max(each.max() for _, each in found), np.mean([each.price for each, _ in found])
    return f"| {name} | {count} | {says} | {share(held, new)} | {kept} | {worst:.2f} | {price:.2f} |"


def series(asked: argparse.Namespace) -> None:
    """A budget from the first half of a series of positions, for pair counts, tried on the second half, and the reverse."""
    if asked.series is None:
        return
    frames = [np.ascontiguousarray(each) for each in np.load(asked.series)]
    half = len(frames) // 2
    print(f"\n## A real series: {half} of {len(frames)} times for a budget, the others to try it; pair counts within 2%\n")
    heads = ["result, codec", "fields", "says", "held on the other half", "", "worst damage", "price"]
    print(timing.table(heads, []).rstrip())
    halves = ("first half", frames[:half], frames[half:]), ("second half", frames[half:], frames[:half])
    for name, first, second in halves:
        for count in (1, 46, half):
            pipeline = Pipeline([("pairs", pair_counts)], tolerance=each_within(0.02), name="pairs")
            given = first[0] if count == 1 else first[:: half // count][:count]
            made = budget(pipeline, given, codec="sz3")
            found = damages([pipeline.run(each) for each in second], made, "sz3")
            print(budget_row(f"{name}, sz3", count, [(made, found)], len(second)), flush=True)


def pair_counts(positions: np.ndarray) -> np.ndarray:
    """How many pairs are closer than each of some distances; without the box, whose faces are the same for all times."""
    tree = cKDTree(positions)
    return tree.count_neighbors(tree, np.linspace(1.2, 3.0, 10)).astype(np.float64) - len(positions)


# Intervals of campaigns.

def wilson(successes: int, trials: int) -> Rate:
    """The interval that campaigns had before."""
    z2, part = NormalDist().inv_cdf(0.975) ** 2, successes / trials
    middle = (part + z2 / (2 * trials)) / (1 + z2 / trials)
    half = math.sqrt(z2 * (part * (1 - part) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    low = 0.0 if successes == 0 else max(middle - half, 0.0)
    return Rate(part, low, 1.0 if successes == trials else min(middle + half, 1.0), trials)


def root_of_squares(rates: Sequence[Rate], weights: Sequence[float]) -> Rate:
    """How campaigns combined strata before (Zou and Donner 2008), of the intervals of Wilson."""
    rates = [wilson(round(rate.estimate * rate.trials), rate.trials) for rate in rates]
    part, total = np.average([rate.estimate for rate in rates], weights=weights), sum(weights)
    pairs = list(zip(rates, weights, strict=True))
    below = math.sqrt(sum((weight * (rate.estimate - rate.low) / total) ** 2 for rate, weight in pairs))
    above = math.sqrt(sum((weight * (rate.high - rate.estimate) / total) ** 2 for rate, weight in pairs))
    return Rate(float(part), max(part - below, 0.0), min(part + above, 1.0), sum(rate.trials for rate in rates))


def intervals(asked: argparse.Namespace) -> None:
    """Exact coverage of 95% intervals of one stratum; of several by draws."""
    print("\n## Intervals of 95%: one stratum, exact coverage, and mean length\n")
    rows: list[list[object]] = []
    for trials in (50, 200, 1000, 2000):
        for part in (0.1, 0.01, 0.002, 0.001):
            chances = binom.pmf(range(trials + 1), trials, part)
            cells = [covered(make, chances, part, trials) for make in (clopper_pearson, wilson)]
            rows.append([trials, part, *(f"{cover:.3f}, {length:.4f}" for cover, length in cells)])
    print(timing.table(["trials", "share", "Clopper-Pearson", "before (Wilson)"], rows))
    stopped()
    strata()


def covered(make: Callable[[int, int], Rate], chances: Sequence[float], part: float, trials: int) -> tuple[float, float]:
    """How often an interval holds the share, and its mean length."""
    likely = [(chance, make(successes, trials)) for successes, chance in enumerate(chances) if chance > 1e-12]
    cover = sum(chance for chance, rate in likely if rate.low <= part <= rate.high)
    return cover, sum(chance * (rate.high - rate.low) for chance, rate in likely)


def stopped() -> None:
    """Exact coverage where a stratum ends as soon as its interval is short enough, looked at every 25 trials."""
    rule, rows = Until(), []
    for part in (0.5, 0.3, 0.1, 0.01, 0.002, 0.001):
        going, cover, mean, trials = np.array([1.0]), 0.0, 0.0, 0
        while going.sum() > 1e-9:
            trials += 25
            going = np.convolve(going, binom.pmf(range(26), 25, part))
            for successes in np.flatnonzero(going > 1e-12):
                if rule.enough({"masked": trials - int(successes), "silent": int(successes)}):
                    rate = clopper_pearson(int(successes), trials)
                    cover += going[successes] * (rate.low <= part <= rate.high)
                    mean, going[successes] = mean + going[successes] * trials, 0.0
        rows.append([part, f"{cover:.3f}", f"{mean:.0f}"])
    print("Stopped by `Until()`, which looks at the interval every 25 trials:\n")
    print(timing.table(["share", "coverage", "trials, mean"], rows))


BITS = [1.0, 11.0, 52.0] * 2   # the faults that fields of bits stand for
STRATA: list[tuple[str, list[float], list[float]]] = [
    ("six, .002 each", [0.002] * 6, [1.0] * 6), ("six, .002 each, weights of bits", [0.002] * 6, BITS),
    ("six, .001 each", [0.001] * 6, [1.0] * 6), ("24, .01 each", [0.01] * 24, [1.0] * 24),
    ("six, .05 to .001, weights of bits", [0.05, 0.02, 0.001, 0.01, 0.005, 0.002], BITS),
    ("six, .9 to .02, weights of bits", [0.5, 0.3, 0.1, 0.8, 0.9, 0.02], BITS),
]
DRAWS = 4000


def strata() -> None:
    """Coverage of the share of all possible faults, from several strata."""
    print(f"\nSeveral strata, {DRAWS:,} draws of each:\n")
    rows: list[list[object]] = []
    combined, before = cache(combine(weighted)), cache(combine(root_of_squares))
    for name, shares, weights in STRATA:
        for trials in (50, 200):
            random, true = np.random.default_rng(0), float(np.average(shares, weights=weights))
            order = sorted(range(len(shares)), key=lambda place: weights[place])
            draws = random.binomial(trials, np.array(shares)[order], (DRAWS, len(shares)))
            if len(set(weights)) == 1:
                draws.sort(axis=1)
            kept = tuple(weights[place] for place in order)
            cells = []
            for make in (combined, before):
                found = [make(tuple(map(int, draw)), trials, kept) for draw in draws]
                cover = float(np.mean([rate.low <= true <= rate.high for rate in found]))
                length = float(np.mean([rate.high - rate.low for rate in found]))
                cells.append(f"{share([cover], DRAWS)}, {length:.4f}")
            rows.append([name, trials, *cells])
    print(timing.table(["strata and shares", "trials of each", "now", "before"], rows))


def combine(make: Callable[[Sequence[Rate], Sequence[float]], Rate]) -> Callable[..., Rate]:
    """A combination of strata as a function of their counts."""
    def of_counts(counts: tuple[int, ...], trials: int, weights: tuple[float, ...]) -> Rate:
        return make([Rate(count / trials, 0.0, 1.0, trials) for count in counts], weights)
    return of_counts


# Checksums.

KINDS = ("constant", "offset", "subnormal")
TYPES = ("float32", "float64")


def values(kind: str, shape: Any, dtype: str, random: np.random.Generator) -> np.ndarray:
    """Data whose round-off is not random, or whose products underflow."""
    normal, tiny = random.normal(size=shape), float(np.finfo(dtype).tiny)
    if kind == "constant":
        normal = np.full(shape, random.choice([1 / 3, 0.1, 0.7, 9.1, random.random(), 10 ** random.uniform(-8, 8)]))
    elif kind == "offset":
        normal += random.choice([10.0, 1000.0, 1e5])
    elif kind == "subnormal":
        normal = tiny * (normal * 2.0 ** -random.integers(0, 20) if random.random() < 0.7 else np.full(shape, 1 / 3))
    return normal.astype(dtype)


def product(kind: str, dtype: str, random: np.random.Generator) -> Findings:
    """A product of matrices of these data, or of these data and normal ones."""
    rows, terms, columns = random.integers(1, 150, 3)
    other = kind if random.random() < 0.6 else "normal"
    left, right = values(kind, (rows, terms), dtype, random), values(other, (terms, columns), dtype, random)
    if random.random() < 0.5:
        left, right = right.T.copy(), left.T.copy()
    return protected_matmul(left, right)[1]


def convolution(kind: str, dtype: str, random: np.random.Generator) -> Findings:
    """A convolution in one to three dimensions."""
    axes = int(random.integers(1, 4))
    shape, size = random.integers(5, [400, 60, 20][axes - 1], axes), random.integers(1, 6, axes)
    stencil = values(str(random.choice([kind, "constant", "normal"])), size, dtype, random)
    return protected_convolve(values(kind, shape, dtype, random), stencil, random.choice(["periodic", "zero", "valid"]))[1]


def transform(kind: str, dtype: str, random: np.random.Generator) -> Findings:
    """A Fourier transform in one to three dimensions."""
    axes = int(random.integers(1, 4))
    given = values(kind, random.integers(2, [600, 60, 20][axes - 1], axes), dtype, random)
    return checked_rfftn(given, np.fft.rfftn(given), np.fft.rfftn)[1]


WORK: dict[str, Callable[[str, str, np.random.Generator], Findings]] = {
    "product": product, "convolution": convolution, "transform": transform,
}


def alarms(asked: argparse.Namespace) -> None:
    """Runs without a fault, of random shapes, that report one."""
    print(f"\n## False alarms in {asked.runs:,} runs\n")
    random, runs, found = np.random.default_rng(0), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    with np.errstate(all="ignore"):
        for number in range(asked.runs):
            name, kind, dtype = list(WORK)[number % 3], str(random.choice(KINDS)), str(random.choice(TYPES))
            found[name, f"{kind} {dtype}"] += WORK[name](kind, dtype, random).detected > 0
            runs[name, f"{kind} {dtype}"] += 1
    data = [f"{kind} {dtype}" for kind in KINDS for dtype in TYPES]
    rows: list[list[object]] = [[each, *(f"{found[name, each]} of {runs[name, each]:,}" for name in WORK)] for each in data]
    print(timing.table(["data", *WORK], rows))
    print(timing.targets([("false alarms", float(sum(found.values())), "<=", 0.0)]))


TRIED = 4000


def escapes(asked: argparse.Namespace) -> None:
    """The largest fault in normal data that no check sees: one value of a result is changed by a random amount."""
    print(f"\n## The largest of {TRIED:,} faults that escaped, by one value of normal data changed by a random amount\n")
    rows: list[list[object]] = []
    for dtype in TYPES:
        random, worst = np.random.default_rng(0), {"product": 0.0, "transform": 0.0}
        unit = float(np.finfo(dtype).eps)
        for _ in range(TRIED):
            for name, work in (("product", struck_product), ("transform", struck_transform)):
                size, seen = work(dtype, unit * 10 ** random.uniform(0, 4), random)
                worst[name] = worst[name] if seen else max(worst[name], size)
        cells = f"{worst['product'] / unit:.1f}", f"{worst['transform'] / unit:.1f} ({worst['transform']:.1e})"
        rows.append([dtype, *cells])
    heads = ["type", "product, in eps times the sum of the sizes of its terms", "transform, in eps times the rms wave"]
    print(timing.table(heads, rows))


def struck_product(dtype: str, part: float, random: np.random.Generator) -> tuple[float, bool]:
    """A fault of this size, and whether it was seen."""
    rows, terms, columns = random.integers(2, 100, 3)
    a, b = random.normal(size=(rows, terms)).astype(dtype), random.normal(size=(terms, columns)).astype(dtype)
    wrong, row, column = a @ b, random.integers(rows), random.integers(columns)
    size = float(abs(a[row]).astype(np.float64) @ abs(b[:, column]))
    before = float(wrong[row, column])
    wrong[row, column] += part * size
    results = [wrong]
    found = protected_matmul(a, b, product=lambda a, b: results.pop() if results else a @ b)[1]
    return abs(float(wrong[row, column]) - before) / size, found.detected > 0


def struck_transform(dtype: str, part: float, random: np.random.Generator) -> tuple[float, bool]:
    """A fault of this size, and whether it was seen."""
    given = random.normal(size=random.integers(2, 40, 2)).astype(dtype)
    waves = np.fft.rfftn(given)
    size, place = float(np.sqrt(np.mean(abs(waves) ** 2))), tuple(random.integers(waves.shape))
    before = complex(waves[place])
    waves[place] += part * size
    return abs(complex(waves[place]) - before) / size, checked_rfftn(given, waves, np.fft.rfftn)[1].detected > 0


if __name__ == "__main__":
    main()
