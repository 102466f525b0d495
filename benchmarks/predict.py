"""How good predictions of codecs are, how often intervals hold, what they cost, and how many compressions searches take.

python benchmarks/predict.py [--fields FOLDER ...] [--data FOLDER] [--bounds 5] [--quick]
                             [--only coverage steps cost searches]

Coverage is measured on real fields of families that no expert was trained or calibrated with; where they come from and
which families these are is said in `workbench/bounds/prediction/real_fields.py`; `--fields` are folders with their files.
Families are the units of standard errors, as fields and bounds of one family are alike. Costs are processor time, the best
of several turns. `--cache` names a folder in which measured archives are kept.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import workbench as wb
from workbench.bounds.prediction.expert import shipped
from workbench.bounds.prediction.real_fields import real_fields
from workbench.codecs import Tolerance

CODECS = ("sz3", "zfp", "sperr", "prequantised", "staged", "interpolation")
DECADES = (-5.0, -1.3)     # of bounds, as shares of the range
SIMILAR = 1e-6             # losses of similarity below this are alike for all purposes
BOUNDS_OF_ONE_SURVEY = 10
REPEATS = 12               # of each call that is timed
SEARCHED = ("sz3", "zfp", "sperr", "prequantised", "interpolation", "auto")
RATIOS = (6.0, 12.0, 25.0)
DECIBELS = (45.0, 60.0, 75.0)


@dataclass(frozen=True)
class Case:
    """One figure of one field at one bound: how far off its prediction is, and whether its interval holds."""

    codec: str
    family: str
    figure: str
    error: float
    held: bool
    unlike: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of real files (default: shared/data beside the checkout)")
    parser.add_argument("--fields", type=Path, nargs="+", help="folders of files with real fields, unpacked from packages")
    parser.add_argument("--cache", type=Path, help="a folder of measured archives")
    parser.add_argument("--bounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="only small fields")
    parts = ("coverage", "steps", "cost", "searches")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="parts of the benchmark")
    options = parser.parse_args()
    folder = options.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        print(f"the folder of real files is not there: {folder}")
        return
    fields = dict(fields_of(folder))
    if options.quick:
        fields = {name: each for name, each in fields.items() if each.values.size < 10**6}
    if "coverage" in options.only and options.fields:
        coverage(list(tested([*options.fields, folder], options.bounds, options.cache)))
    if "steps" in options.only:
        steps(folder)
    if "cost" in options.only:
        cost(fields)
    if "searches" in options.only:
        searches(fields)


def fields_of(folder: Path) -> Iterator[tuple[str, wb.Field]]:
    """The fields of the folder that are there."""
    for month, values in enumerate(months(folder)):
        yield f"temperature, month {month}", values
    yield "surface temperature", wb.open(folder / "cesm/ihesp14.TS.12mon.nc", name="TS")
    for name in ("baryon_density", "dark_matter_density", "temperature", "velocity_x", "velocity_y", "velocity_z"):
        yield f"Nyx {name}", wb.open(folder / "hacc_nyx_toy/z255_32.h5", name=f"native_fields/{name}")
    shapes = {"wmag91.float": (91, 91, 91), "vorticity.128_128_41": (41, 128, 128), "vorticity.512_512": (512, 512)}
    for name, shape in shapes.items():
        yield name, wb.open(folder / "sperr_fields" / name, shape=shape, dtype="float32")


def months(folder: Path) -> list[wb.Field]:
    """The monthly means of temperature."""
    whole = wb.open(folder / "cesm/cam-fv.T.3months.nc", name="T")
    return [wb.Field(values) for values in whole.values]


def bounds_for(count: int) -> list[wb.Relative]:
    """Bounds over the usual decades, off any grid of the training."""
    return [wb.Relative(float(10**power)) for power in np.linspace(*DECADES, count)]


def tested(folders: list[Path], count: int, cache: Path | None) -> Iterator[Case]:
    """Predicted against true figures of archives of all fields of the tested families."""
    bounds = bounds_for(count)
    for each in real_fields():
        if not each.is_test:
            continue
        field = each.read(folders)
        for codec in CODECS:
            rows = wb.predict(field, codec, bounds)
            for run, row in zip(wb.sweep(field, codec, bounds, workers=1, cache=cache), rows, strict=True):
                for figure, error, held in judged(run, row):
                    yield Case(codec, each.family, figure, error, held, rows.unlike)


def judged(run: wb.bounds.Run, row: wb.bounds.Predicted) -> Iterator[tuple[str, float, bool]]:
    """The error of each figure that was measured, and whether its interval holds."""
    ratio, decibels = float(run["ratio"]), float(run["psnr"])
    yield "ratio", abs(row.ratio / ratio - 1), row.ratio_low <= ratio <= row.ratio_high
    if np.isfinite(decibels):
        yield "PSNR", abs(row.psnr - decibels), row.psnr_low <= decibels <= row.psnr_high
    if "ssim" in run.figures and np.isfinite(row.ssim) and (loss := 1 - float(run["ssim"])) > SIMILAR:
        yield "SSIM", abs((1 - row.ssim) / loss - 1), row.ssim_low <= 1 - loss <= row.ssim_high


def coverage(cases: list[Case]) -> None:
    """Median errors, and the share of intervals that hold, with standard errors of families."""
    families = {case.family for case in cases}
    print(f"\n{len(families)} families; goal .87 to .95; errors of ratios and of 1 - SSIM are shares, of PSNR in dB")
    print("| codec | figure | n | families | median error | covered, each family alike | of all pairs |")
    print("|---|---|---|---|---|---|---|")
    for codec in (*CODECS, "all"):
        for figure in ("ratio", "PSNR", "SSIM"):
            some = [case for case in cases if codec in (case.codec, "all") and case.figure == figure]
            size = np.median([case.error for case in some])
            held, error, count = by_family(some)
            print(f"| {codec} | {figure} | {len(some)} | {count} | {size:.3f} | {held:.2f} ± {error:.2f} | "
                  f"{np.mean([case.held for case in some]):.2f} |", flush=True)
    for unlike in (False, True):
        some = [case for case in cases if case.unlike is unlike]
        if some:
            held, error, count = by_family(some)
            print(f"{'unlike the training' if unlike else 'like the training'}: {len(some)} intervals of {count} families, "
                  f"{np.mean([case.held for case in some]):.2f} hold, {held:.2f} ± {error:.2f} where families count alike")


def by_family(cases: list[Case]) -> tuple[float, float, int]:
    """The mean share of families, its standard error, and how many there are."""
    held: dict[str, list[bool]] = defaultdict(list)
    for case in cases:
        held[case.family].append(case.held)
    shares = [np.mean(each) for each in held.values()]
    error = np.std(shares, ddof=1) / len(shares) ** 0.5 if len(shares) > 1 else np.nan
    return float(np.mean(shares)), float(error), len(shares)


def steps(folder: Path) -> None:
    """Later time steps predicted from an earlier one, against the ratio of the earlier step itself (persistence)."""
    print()
    surface = wb.open(folder / "cesm/ihesp14.TS.12mon.nc", name="TS")
    series = {
        "temperature": months(folder), "surface temperature": [wb.Field(values) for values in surface.values],
        "made waves": made_series(),
    }
    bounds = bounds_for(6)
    for name, each in series.items():
        for codec in ("sz3", "zfp", "sperr"):
            expert = shipped()[codec]
            known, expected = [], []
            for before, after in itertools.pairwise(each):
                runs, later = (wb.sweep(step, codec, bounds, workers=1) for step in (before, after))
                rows = wb.predict(after, codec, bounds, expert=wb.bounds.calibrated(expert, before, runs))
                known += [abs(float(old["ratio"]) / float(new["ratio"]) - 1) for old, new in zip(runs, later, strict=True)]
                expected += [abs(row.ratio / float(new["ratio"]) - 1) for row, new in zip(rows, later, strict=True)]
            line(f"{codec}, {name}: next step, median error (largest)", spread(expected), f"persistence {spread(known)}")


def made_series(count: int = 5) -> list[wb.Field]:
    """Waves that steepen and grow from step to step."""
    slow, fast = (wb.synthetic.gaussian_field((48, 56, 64), slope, seed=seed).values for slope, seed in ((5, 1), (2, 2)))
    return [wb.Field(np.float32(1.2**step) * slow + np.float32(0.05 * 1.5**step) * fast) for step in range(count)]


def spread(errors: list[float]) -> str:
    return f"{percent(np.median(errors))} ({percent(max(errors))})"


def cost(fields: dict[str, wb.Field]) -> None:
    """Processor time of predicting ten bounds, as a share of one compression."""
    print("\nten bounds predicted, in percent of one wb.compress (goal 15%, of 32³ 25%), of the codec; and again")
    bounds = bounds_for(BOUNDS_OF_ONE_SURVEY)
    for name, each in fields.items():
        shares = []
        for codec in CODECS:
            limit = wb.Relative(1e-3).limit(each.values).value
            made = wb.codecs.get(codec)

            fresh = [wb.Field(each.values, mask=each.mask, metadata=each.metadata) for _ in range(REPEATS)]

            def predicted(codec: str = codec, fresh: list[wb.Field] = fresh) -> object:
                return wb.predict(fresh.pop(), codec, bounds)   # of which nothing is known yet

            def again(codec: str = codec, each: wb.Field = each) -> object:
                return wb.predict(each, codec, bounds)

            def archive(codec: str = codec, limit: float = limit, each: wb.Field = each) -> object:
                return wb.compress(each, wb.Absolute(limit), codec)

            def encode(made: wb.codecs.Codec = made, limit: float = limit, values: np.ndarray = each.values) -> object:
                return made.encode(values, Tolerance(absolute=limit))

            own, known, whole, alone = processor_times(predicted, again, archive, encode)
            shares.append(f"{codec} {percent(own / whole)} ({percent(own / alone)}), again {percent(known / whole)}")
        print(f"  {name} ({each.values.size:,} values): {', '.join(shares)}", flush=True)


def searches(fields: dict[str, wb.Field]) -> None:
    """Full compressions until targets are met, and how many answers are within tolerance; each is checked again."""
    print("\nsearches: met of asked, those within tolerance, compressions (median, 90th percentile)")
    targets: dict[str, tuple[list[wb.bounds.Target], str]] = {
        "Ratio": ([wb.Ratio(value) for value in RATIOS], "3"), "PSNR": ([wb.PSNR(value) for value in DECIBELS], "3"),
        "KeepSpectrum": ([wb.KeepSpectrum(0.01)], "8"), "All": ([wb.All(wb.PSNR(60), wb.SSIM(0.999), wb.Ratio(3))], "4"),
    }
    known: dict[tuple[str, str], list[wb.Found]] = {}
    for codec in SEARCHED:
        for name, (wanted, goal) in targets.items():
            answers = [wb.find_bound(each, target, codec) for each in fields.values() for target in wanted]
            known[codec, name] = answers
            met = [found for found in answers if found.met]
            if any(found.target.room_of(found.values) < 0 for found in met):
                raise SystemExit(f"{codec}, {name}: an answer fails its own check")
            close = sum(found.target.leading_room(found.values) <= found.target.stop for found in met)
            counts = [len(found.runs) for found in answers]
            share = f"{len(met)} of {len(answers)}, {percent(close / max(len(met), 1))} within tolerance"
            line(f"{codec}, {name}: {share}", f"{np.median(counts):.0f}, {np.quantile(counts, 0.9):.0f}", goal)
    for name in targets:
        lacking = [
            max(figure_at(known[codec, name][place]) for codec in wb.codecs.automatic() if (codec, name) in known) - own
            for place, own in enumerate(map(figure_at, known["auto", name]))
        ]
        unit = "dB below the best of its codecs" if name == "Ratio" else "% larger than the smallest of its codecs"
        line(f"auto, {name}: {unit}, median and most", f"{np.median(lacking):.2f}, {max(lacking):.2f}", "1")


def figure_at(found: wb.Found) -> float:
    """What is compared at an equal target: the PSNR at a ratio, the logarithm of the ratio, in percent, at a quality."""
    if isinstance(found.target.targets[0], wb.Ratio):
        return float(found.nearest["psnr"])
    return 100 * float(np.log(found.nearest["ratio"]))


def processor_times(*runs: Callable[[], object]) -> list[float]:
    """The least processor time of each, taken in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(REPEATS):
        for each, run in zip(times, runs, strict=True):
            start = time.process_time()
            run()
            each.append(time.process_time() - start)
    return [min(each) for each in times]


def percent(value: float | np.floating) -> str:
    return f"{100 * float(value):.1f}%"


def line(name: str, value: str, goal: str) -> None:
    print(f"  {name:<75} {value:>24}   goal {goal}", flush=True)


if __name__ == "__main__":
    main()
