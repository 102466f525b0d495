"""Whether limits keep their promises: masks, holes, converses, intervals, real oceans. Each figure is beside its target.

python benchmarks/limits_promises.py [--fields 40] [--intervals | --kind NAME ...] [--first 0] [--oceans FILE NAME ...]

The whole takes an hour on two cores; `--fields 8` takes some minutes. With `--intervals`, nothing but the intervals; with
`--kind`, those of the kinds whose name has these words. Files of ocean fields are not part of the project.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import timing
from limits_kinds import Kind, coast, kinds

import workbench as wb
from workbench.limits.achievability import achievable
from workbench.limits.blocks import block_spectrum, spectrum_of_points
from workbench.limits.converse import converse
from workbench.limits.correlation import Autoregressive, Correlation, Matern
from workbench.limits.regions import segment
from workbench.limits.shapes import region_spectrum

Region = wb.synthetic.Region
DISTORTIONS = (1e-4, 1e-2, 0.1, 0.5)
COARSE_TO_FINE = (0.5, 0.3, 0.1, 0.01, 0.001)   # shares of the variance
SIDE = 128


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fields", type=int, default=40, help="fields of each kind")
    parser.add_argument("--intervals", action="store_true", help="nothing but the intervals")
    parser.add_argument("--kind", nargs="+", default=[], help="nothing but the intervals of these kinds")
    parser.add_argument("--first", type=int, default=0, help="the first seed of the fields whose intervals are looked at")
    parser.add_argument("--oceans", nargs=2, action="append", default=[], metavar=("FILE", "NAME"))
    asked = parser.parse_args()
    print(timing.machine())
    if asked.intervals or asked.kind:
        intervals(asked.fields, asked.kind, asked.first)
        return
    print(f"\n{asked.fields} fields of each kind\n\n| promise | measured | target |\n|---|---|---|")
    masks(asked.fields)
    holes()
    converses(min(100, 5 * asked.fields))
    borders(max(1, asked.fields // 4))
    speed()
    for path, name in asked.oceans:
        ocean(Path(path), name)
    intervals(asked.fields, [], asked.first)


def print_row(promise: str, measured: str, target: str) -> None:
    """One row."""
    print(f"| {promise} | {measured} | {target} |", flush=True)


def masks(fields: int) -> None:
    """Coast-shaped masks over NaN or 1e20: the estimated rate and the true one, of the model that made the field."""
    near = 0
    for seed in range(fields):
        shape, land = (192, 256), coast((192, 256), seed, 0.3)
        model = Autoregressive(1.0, (0.95, 0.95))
        values = wb.synthetic.piecewise_field(shape, [Region(1.0, 0.95)], seed=seed).values.copy()
        values[land] = np.nan if seed % 2 else 1e20
        found = wb.rate_distortion(wb.Field(values, mask=land if seed % 4 == 0 else None), regions=1)
        true = region_spectrum(model, ~land)
        near += abs(found.rate(0.01) - true.rate(0.01)) < 0.03
    print_row("coasts over NaN or 1e20: within 0.03 bit", f"{near} of {fields}", "95%")


def holes() -> None:
    """Regions with holes, against dense eigenvalues; larger than those that are diagonalised as they are."""
    random = np.random.default_rng(1)
    shapes = {
        "10% missing": random.random((54, 54)) > 0.1, "30% missing": random.random((60, 60)) > 0.3,
        "every other row": np.repeat(np.arange(68) % 2 == 0, 68).reshape(68, 68),
        "20% missing, 3-D": random.random((14, 14, 14)) > 0.2,
    }
    for name, inside in shapes.items():
        model = Autoregressive(1.0, (0.95,) * inside.ndim)
        true, found = spectrum_of_points(model, np.argwhere(inside)), region_spectrum(model, inside)
        worst = max((found.rate(d) - true.rate(d) for d in DISTORTIONS), key=abs)
        print_row(f"{name}: rate above dense eigenvalues", f"{worst:+.4f}, at most {found.slack:.3f} said", "0.02, or said")


def converses(cases: int) -> None:
    """Converses of this package beside an achievable rate of the true spectrum."""
    random, above = np.random.default_rng(2), 0
    for case in range(cases):
        side = int(random.integers(20, 40))
        smoothness = float(random.choice([0.5, 0.8, 1.5, 2.5]))
        lengths, noise = tuple(random.uniform(2, 10, 2).tolist()), 10.0 ** random.uniform(-8, -2)
        model: Correlation = Matern(1.0, lengths, smoothness, noise)
        if case % 3 == 0:
            model = Autoregressive(1.0, (0.95, 0.9))
        inside = random.random((side, side)) >= random.choice([0.0, 0.1, 0.3])
        found = block_spectrum(model, inside.shape) if inside.all() else region_spectrum(model, inside)
        true = spectrum_of_points(model, np.argwhere(inside))
        distortion = float(random.choice([1e-6, 1e-4, 1e-2, 0.1]))
        above += converse(found, distortion, 0.01) > achievable(true, distortion, 0.01)
    print_row("converses above an achievable rate", f"{above} of {cases}", "none")


def intervals(fields: int, asked: list[str], first: int = 0) -> None:
    """The share of the 95% intervals that hold the true rate, with its standard error; biases, widths, warnings."""
    columns = " ".join(f"{distortion:g}" for distortion in COARSE_TO_FINE)
    print(f"\n| kind | n | D / variance = {columns} | ± | bias at 0.1, 0.001 | width | warned | missed without | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, kind in kinds().items():
        if not asked or any(each in name for each in asked):
            number, used = min(fields, kind.fields), time.process_time()
            seen = [of_field(kind, seed) for seed in range(first, first + number)]
            used = (time.process_time() - used) / number
            inside, misses, widths, warned = (np.array([getattr(run, figure) for run in seen])
                                              for figure in ("inside", "misses", "widths", "warned"))
            shares = inside.mean(axis=0)
            error = np.sqrt(np.mean(shares * (1 - shares)) / number)
            silent = np.mean(~inside.all(axis=1) & ~warned)
            figures = [" ".join(f"{share:.2f}" for share in shares), f"{error:.2f}", *(
                " ".join(f"{each:{form}}" for each in array.mean(axis=0)[[2, 4]]) for array, form in
                ((misses, "+.3f"), (widths, ".3f"))), f"{warned.mean():.0%}", f"{silent:.0%}", f"{used:.1f}"]
            print(f"| {name} | {number} | {' | '.join(figures)} |", flush=True)


@dataclass(frozen=True)
class Run:
    """What was said about one field at each distortion, and whether it was warned of."""

    inside: list[bool]
    misses: list[float]
    widths: list[float]
    warned: bool


def of_field(kind: Kind, seed: int) -> Run:
    """The rates and intervals of one field of a kind, beside the truth."""
    limits, true = wb.rate_distortion(kind.made(seed)), kind.true
    levels = [share * true.variance for share in COARSE_TO_FINE]
    ends, rates = [limits.interval(level) for level in levels], [true.rate(level) for level in levels]
    inside = [low - 1e-9 <= rate <= high + 1e-9 for (low, high), rate in zip(ends, rates, strict=True)]
    misses = [limits.rate(level) - rate for level, rate in zip(levels, rates, strict=True)]
    return Run(inside, misses, [high - low for low, high in ends], bool(limits.warnings))


def borders(fields: int) -> None:
    """What the second look at cells at borders changes: cells on the wrong side, and the error of the rate."""
    for name, (layout, models) in REGIONS.items():
        true, wrong, misses = wb.limits.piecewise(layout, models).spectrum(), [], []
        for seed in range(fields):
            field = of_regions(layout, models, seed)
            fitted = wb.rate_distortion(field).source
            covariances = [each.covariance for each in fitted.fits if each is not None]
            if len(covariances) == 2:
                maps = [segment(field).labels, fitted.regions.labels]
                rates = [wb.limits.piecewise(each, covariances).spectrum().rate(1e-3) for each in maps]
                wrong.append([min(np.mean(each == layout), np.mean(each != layout)) for each in maps])
                misses.append([rate - true.rate(1e-3) for rate in rates])
        (before, after), (off, better) = 100 * np.mean(wrong, axis=0), np.mean(misses, axis=0)
        cells = f"cells on the wrong side {before:.2f}% before, {after:.2f}% after"
        print_row(f"borders: {name}, {len(wrong)} fields", f"{cells}; rate at 1e-3 {off:+.4f}, {better:+.4f}", "less")


def speed() -> None:
    """Everything for one field, in seconds of processor time and of the clock."""
    for shape, target in (((512, 512), 3.0), ((128, 128, 128), 8.0)):
        for models in ([Region(1.0, 0.95)], [Region(1.0, 0.95), Region(4.0, 0.6)]):
            field = wb.synthetic.piecewise_field(shape, models, seed=1, layout="blocks")
            start, used = time.perf_counter(), time.process_time()
            limits = wb.rate_distortion(field)
            _ = limits.rate(0.01), limits.interval(0.01), limits.warnings, limits.tiled(16).rate(0.01)
            _ = limits.converse(0.01)
            clock, processor = time.perf_counter() - start, time.process_time() - used
            name = f"{' x '.join(map(str, shape))}, {len(models)} regions"
            print_row(name, f"{clock:.1f} s ({processor:.1f} s of processors)", f"{target:g} s")


def ocean(path: Path, name: str) -> None:
    """A masked field of the user: no figure above 64 bits, and a warning where no model fits."""
    field = wb.open(path, name=name)
    limits = wb.rate_distortion(field)
    eb = 0.03 * float(np.std(np.asarray(field.values)[np.asarray(field.valid)], dtype=np.float64))
    figures = [limits.rate(eb**2 / 3), *limits.interval(eb**2 / 3), limits.pointwise(eb), limits.instance(eb),
               limits.price_of_one_model(eb**2 / 3)]
    print_row(f"{path.name} {name}: largest figure", f"{max(figures):.2f}; {len(limits.warnings)} warnings", "64")


def of_regions(layout: np.ndarray, models: list[Autoregressive], seed: int) -> wb.Field:
    """Two textures; the regions have to be found."""
    regions = [Region(each.variance**0.5, each.rhos[0]) for each in models]
    return wb.synthetic.piecewise_field(layout.shape, regions, seed=seed, layout=layout)


HALVES = np.repeat([0, 1], SIDE // 2) * np.ones((SIDE, 1), int)
STRIPES = np.arange(2 * SIDE) // 16 % 2 * np.ones((2 * SIDE, 1), int)
RING = (np.abs(np.hypot(*np.ogrid[-SIDE:SIDE, -SIDE:SIDE]) - 70) < 16).astype(int)
CHECKER = np.add.outer(np.arange(2 * SIDE) // 32, np.arange(2 * SIDE) // 32) % 2
TEXTURES = [Autoregressive(1.0, (0.95, 0.95)), Autoregressive(1.0, (0.5, 0.5))]
REGIONS = {
    "halves, found": (HALVES, TEXTURES),
    "stripes of 16, found": (STRIPES, TEXTURES),
    "ring, found": (RING, TEXTURES),
    "checker of 32, found": (CHECKER, [Autoregressive(1.0, (0.9, 0.9)), Autoregressive(9.0, (0.9, 0.9))]),
}


if __name__ == "__main__":
    main()
