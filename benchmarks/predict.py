"""How good predictions of codecs are, what they cost, and how many compressions a search takes; each beside its goal.

python benchmarks/predict.py [--data FOLDER] [--bounds 9] [--quick] [--only accuracy steps cost searches]

The experts were trained on synthetic fields alone; all fields here are real files, which are not part of the project. So
train and test differ by data set. Figures are ratios and counts; costs are processor time, the best of several turns.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import workbench as wb
from workbench.bounds.prediction.expert import shipped
from workbench.codecs import Tolerance

CODECS = ("sz3", "zfp", "sperr", "prequantised", "staged", "interpolation")
DECADES = (-5.0, -1.3)     # of bounds, as shares of the range
MODERATE = 32              # ratios up to this are one stratum
SIMILAR = 1e-6             # losses of similarity below this are alike for all purposes
BOUNDS_OF_ONE_SURVEY = 10
SEARCHED = ("sz3", "zfp", "sperr", "prequantised", "interpolation", "auto")
RATIOS = (6.0, 12.0, 25.0)
DECIBELS = (45.0, 60.0, 75.0)


@dataclass
class Score:
    """Errors of predictions for one codec: of ratios up to `MODERATE` and above, PSNR, SSIM; and which intervals held.

    `losses` are those of 1 - SSIM, as shares of it, where it is more than `SIMILAR`.
    """

    moderate: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    decibels: list[float] = field(default_factory=list)
    similarity: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    ratios_covered: list[bool] = field(default_factory=list)
    decibels_covered: list[bool] = field(default_factory=list)
    similarity_covered: list[bool] = field(default_factory=list)

    def __add__(self, other: Score) -> Score:
        return Score(**{name: values + getattr(other, name) for name, values in vars(self).items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of real files (default: shared/data beside the checkout)")
    parser.add_argument("--bounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="only small fields")
    parts = ("accuracy", "steps", "cost", "searches")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="parts of the benchmark")
    options = parser.parse_args()
    folder = options.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        print(f"the folder of real files is not there: {folder}")
        return
    fields = dict(real_fields(folder))
    if options.quick:
        fields = {name: each for name, each in fields.items() if each.values.size < 10**6}
    if "accuracy" in options.only:
        accuracy(fields, options.bounds)
    if "steps" in options.only:
        steps(folder)
    if "cost" in options.only:
        cost(fields)
    if "searches" in options.only:
        searches(fields)


def real_fields(folder: Path) -> Iterator[tuple[str, wb.Field]]:
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


def accuracy(fields: dict[str, wb.Field], count: int) -> None:
    """Predicted against true figures of archives."""
    total = Score()
    for codec in CODECS:
        score = Score()
        for each in fields.values():
            runs = wb.sweep(each, codec, bounds_for(count), workers=1)
            for run, row in zip(runs, wb.predict(each, codec, bounds_for(count)), strict=True):
                add(score, run, row)
        show(codec, score)
        total += score
    show("all", total)


def add(score: Score, run: wb.bounds.Run, row: wb.bounds.Predicted) -> None:
    true = float(run["ratio"])
    (score.moderate if true <= MODERATE else score.high).append(abs(row.ratio / true - 1))
    score.ratios_covered.append(row.ratio_low <= true <= row.ratio_high)
    decibels = float(run["psnr"])
    if np.isfinite(decibels):
        score.decibels.append(abs(row.psnr - decibels))
        score.decibels_covered.append(row.psnr_low <= decibels <= row.psnr_high)
    if "ssim" in run.figures and (loss := 1 - float(run["ssim"])) > SIMILAR:
        score.similarity.append(abs(1 - row.ssim - loss))
        score.losses.append(abs((1 - row.ssim) / loss - 1))
        score.similarity_covered.append(row.ssim_low <= 1 - loss <= row.ssim_high)


def show(name: str, score: Score) -> None:
    print(f"\n{name}: {len(score.ratios_covered)} pairs of a field and a bound")
    line("ratio up to 32, median error", percent(np.median(score.moderate)), "6%")
    line("ratio up to 32, 90th percentile", percent(np.quantile(score.moderate, 0.9)), "16%")
    if score.high:
        line(f"ratio above 32, median error ({len(score.high)})", percent(np.median(score.high)), "20%")
    line("PSNR, median error", f"{np.median(score.decibels):.2f} dB", "0.2 dB")
    away = score.similarity
    errors = f"{np.median(away):.4f} ({np.quantile(away, 0.9):.3f})"
    line(f"SSIM, median error (90th percentile) ({len(away)})", errors, "none")
    line("1 - SSIM, median error", percent(np.median(score.losses)), "none")
    line("ratios inside their interval", percent(np.mean(score.ratios_covered)), "87 to 93%")
    line("PSNR inside its interval", percent(np.mean(score.decibels_covered)), "87 to 93%")
    line("SSIM inside its interval", percent(np.mean(score.similarity_covered)), "87 to 93%")


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
    print("\nten bounds predicted, in percent of one wb.compress (goal 25%), in brackets of the codec alone; and once more")
    bounds = bounds_for(BOUNDS_OF_ONE_SURVEY)
    for name, each in fields.items():
        shares = []
        for codec in CODECS:
            limit = wb.Relative(1e-3).limit(each.values).value
            made = wb.codecs.get(codec)

            def predicted(codec: str = codec, each: wb.Field = each) -> object:
                fresh = wb.Field(each.values, mask=each.mask, metadata=each.metadata)   # nothing is known of it yet
                return wb.predict(fresh, codec, bounds)

            def again(codec: str = codec, each: wb.Field = each) -> object:
                return wb.predict(each, codec, bounds)

            def archive(codec: str = codec, limit: float = limit, each: wb.Field = each) -> object:
                return wb.compress(each, wb.Absolute(limit), codec)

            def encode(made: wb.codecs.Codec = made, limit: float = limit, values: np.ndarray = each.values) -> object:
                return made.encode(values, Tolerance(absolute=limit))

            own, known, whole, alone = processor_times(predicted, again, archive, encode)
            shares.append(f"{codec} {percent(own / whole)} ({percent(own / alone)}), again {percent(known / whole)}")
        print(f"  {name} ({each.values.size:,} values): {', '.join(shares)}", flush=True)
    print("  in small fields, what limits is the number of calls of NumPy, which does not depend on the size")


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


def processor_times(*runs: Callable[[], object], repeats: int = 8) -> list[float]:
    """The least processor time of each, taken in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
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
