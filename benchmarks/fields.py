"""The built-in codec for fields beside SZ3, SPERR, ZFP and HPEZ: sizes on real fields, speed, memory, models, noise, AR(1).

python benchmarks/fields.py [--repeats 5] [--data FOLDER] [--hpez PROGRAM] [--quick]

Sizes are those of the codecs' bytes for a whole field, with all headers, tables and fitted weights. Times are processor
time on one thread, except of training; compared runs take turns. The last table has every figure beside its target. The
folder of real files is not part of the project; without it, real fields are left out.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hpez
import numpy as np
import timing

import workbench as wb
from workbench import backend
from workbench.codecs import Codec, Tolerance
from workbench.codecs.interpolation_training import STEPS

BOUNDS = (1e-2, 1e-3)   # of the range of the values
LEAST_GAIN, MOST_LOSS = 1.18, 1.02   # how much smaller than SZ3 on average, and how much larger in any case
MOST_DECIBELS = 1.5     # of the PSNR below that of SZ3, in any case
LEAST_OVER_BEST = 1.2   # how much smaller than the best peer of each case, on average
QUALITIES = (45, 52, 60, 75, 90)   # PSNR in dB, at which sizes are compared, too
LEAST_AT_EQUAL_PSNR = 1.0      # how much smaller than SPERR on average, at equal PSNR
LEAST_ENCODE, LEAST_DECODE = 45, 120   # MB/s
MOST_MEMORY = 3         # times the chunk, to encode
LEAST_FAST, MOST_FAST = 300, 1.15      # MB/s to encode with what `speed="fast"` chooses, and its size beside SZ3's
LEAST_WITH_MODEL, MOST_WITH_MODEL = 1.28, 1.01   # the same gain with a trained model, and the most beside none
MOST_BESIDE_SPERR = 1.0   # the size with a model, on the temperature at the first bound
LEAST_MODEL_SPEED = 4   # MB/s each way
MOST_SECONDS = 90       # of training for 10^6 values
MOST_NOISE = 0.02       # bits per value of white noise, over the entropy of its integers
MOST_GAP = 0.079        # bits per value over the pointwise bound of AR(1), at the first bound: that of SZ3
CORRELATION, AR_BOUNDS = 0.95, (1e-3, 1e-2, 0.05, 0.2)
CODECS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "SZ3, interpolation": ("sz3", {"algorithm": "interp"}),
    "SZ3, Lorenzo": ("sz3", {"algorithm": "lorenzo_reg"}),
    "SZ3": ("sz3", {}),
    "SPERR": ("sperr", {}),
    "ZFP": ("zfp", {}),
    "interpolation": ("interpolation", {}),
}
OURS, FAST = "interpolation", "staged, speed=\"fast\""
REAL_FIELDS: Mapping[str, tuple[str, Mapping[str, Any], int | None]] = {
    "vorticity 512²": ("sperr_fields/vorticity.512_512", {"shape": (512, 512)}, None),
    "vorticity 41 x 128²": ("sperr_fields/vorticity.128_128_41", {"shape": (41, 128, 128)}, None),
    "|vorticity| 91³": ("sperr_fields/wmag91.float", {"shape": (91, 91, 91)}, None),
    "temperature (CESM), month 1": ("cesm/cam-fv.T.3months.nc", {"name": "T"}, 1),
}


@dataclass(frozen=True)
class Figure:
    """A measured figure and its target; `most` says if it is an upper limit."""

    name: str
    measured: float
    target: float
    most: bool = True

    def row(self) -> list[object]:
        """The figure as a row of a table."""
        kept = self.measured <= self.target if self.most else self.measured >= self.target
        side = "at most" if self.most else "at least"
        return [self.name, f"{self.measured:.3g}", f"{side} {self.target:g}", "reached" if kept else "**missed**"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="counted runs of each codec (default 5)")
    parser.add_argument("--data", type=Path, help="the folder of real files (default: shared/data beside the checkout)")
    parser.add_argument("--hpez", type=Path, metavar="PROGRAM", help="the program of HPEZ, to compare with it, too")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    quick = options.quick
    folder = options.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    print(f"{timing.machine()}, 1 thread\n")
    most = 1 if quick else len(REAL_FIELDS)
    with backend.using_threads(1):
        figures = [
            *sizes(folder, most, options.hpez),
            *equal_quality(folder, most, QUALITIES[:1] if quick else QUALITIES),
            *speed(folder, most, 1 if quick else options.repeats, 2**16 if quick else 2**20),
            *models(folder, most, 100 if quick else STEPS),
            *noise(),
            *autoregression(128 if quick else 1024, 100 if quick else STEPS),
        ]
    figures += training(2**13 if quick else 10**6)
    print("## Figures and targets\n")
    print(timing.table(["figure", "measured", "target", ""], [figure.row() for figure in figures]))


def codecs() -> dict[str, Codec]:
    """The installed codecs, by the names in the tables."""
    installed = wb.codecs.available()
    return {label: wb.codecs.get(name, **given) for label, (name, given) in CODECS.items() if name in installed}


def fields(folder: Path, most: int) -> Iterator[tuple[str, np.ndarray]]:
    """The real fields that are there."""
    for name, (place, options, month) in list(REAL_FIELDS.items())[:most]:
        if (folder / place).exists():
            values = wb.open(folder / place, **options).values
            yield name, np.ascontiguousarray(values if month is None else values[month])


def sizes(folder: Path, most: int, hpez_program: Path | None) -> list[Figure]:
    """Bits per value and PSNR of every codec on every real field; the gain over SZ3's best mode, and over the best peer."""
    rows: list[list[object]] = []
    gains, over_best, below = [], [], []
    for name, values in fields(folder, most):
        span = float(np.ptp(values))
        for share in BOUNDS:
            bits, psnr = {}, {}
            for label, codec in codecs().items():
                data = codec.encode(values, Tolerance(absolute=share * span))
                error = codec.decode(data, values.shape, values.dtype).astype(np.float64) - values
                assert np.abs(error).max() <= share * span * (1 + 1e-6), label
                bits[label], psnr[label] = 8 * len(data) / values.size, 20 * math.log10(span / error.std())
            best = min((label for label in bits if label.startswith("SZ3")), key=bits.__getitem__)
            gains.append(bits[best] / bits[OURS])
            below.append(psnr[best] - psnr[OURS])
            shown = [f"{bits[label]:.3f} ({psnr[label]:.1f})" for label in bits]
            if hpez_program:
                bits["HPEZ"] = 8 * hpez.smallest(hpez_program, values, share * span) / values.size
                shown.append(f"{bits['HPEZ']:.3f}")
            over_best.append(min(each for label, each in bits.items() if label != OURS) / bits[OURS])
            rows.append([name, f"{share:g}", *shown, f"{gains[-1]:.2f}", f"{over_best[-1]:.2f}", f"{-below[-1]:+.2f}"])
    if not rows:
        return []
    print("## Real fields: bits per value (PSNR in dB)\n")
    peers = [*codecs(), *(["HPEZ, best level"] if hpez_program else [])]
    ratios = ["SZ3's best / ours", "best peer / ours", "PSNR, ours less SZ3's best"]
    print(timing.table(["field", "bound / range", *peers, *ratios], rows))
    return [
        Figure("smaller than the best peer of each case, geometric mean",
               statistics.geometric_mean(over_best), LEAST_OVER_BEST, most=False),
        Figure("smaller than SZ3's best, geometric mean", statistics.geometric_mean(gains), LEAST_GAIN, most=False),
        Figure("size beside SZ3's best, worst case", 1 / min(gains), MOST_LOSS),
        Figure("PSNR below that of SZ3's best, worst case [dB]", max(below), MOST_DECIBELS),
    ]


def equal_quality(folder: Path, most: int, qualities: tuple[int, ...]) -> list[Figure]:
    """Bits per value at equal PSNR beside SPERR, whose errors at equal bounds are smaller than the bound allows."""
    if "SPERR" not in codecs():
        return []
    rows: list[list[object]] = []
    gains: dict[int, list[float]] = {quality: [] for quality in qualities}
    for name, values in fields(folder, most):
        for quality in qualities:
            bits = {label: bits_at_psnr(codecs()[label].for_mean_errors(), values, quality) for label in ("SPERR", OURS)}
            gains[quality].append(bits["SPERR"] / bits[OURS])
            rows.append([name, quality, *(f"{each:.3f}" for each in bits.values()), f"{gains[quality][-1]:.2f}"])
    if not rows:
        return []
    print("## Real fields: bits per value at equal PSNR\n")
    print(timing.table(["field", "PSNR, dB", "SPERR", OURS, "SPERR / ours"], rows))
    means = {quality: statistics.geometric_mean(each) for quality, each in gains.items()}
    return [
        Figure(f"smaller than SPERR at {quality} dB, geometric mean", mean, LEAST_AT_EQUAL_PSNR, most=False)
        for quality, mean in means.items()
    ]


def bits_at_psnr(codec: Codec, values: np.ndarray, quality: float) -> float:
    """Bits per value at a PSNR, from the bounds on its two sides, which bisection brings close to each other."""
    span = float(np.ptp(values))

    def measured(share: float) -> tuple[float, float]:
        data = codec.encode(values, Tolerance(absolute=share * span))
        error = codec.decode(data, values.shape, values.dtype).astype(np.float64) - values
        return 20 * math.log10(span / float(np.sqrt(np.mean(error**2)))), 8 * len(data) / values.size

    fine, coarse = 10 ** (-quality / 20) / 2, 10 ** (-quality / 20) * 32
    ends = {share: measured(share) for share in (fine, coarse)}
    for _ in range(8):
        middle = math.sqrt(fine * coarse)
        ends[middle] = measured(middle)
        if ends[middle][0] >= quality:
            fine = middle
        else:
            coarse = middle
    (better, more), (worse, fewer) = ends[fine], ends[coarse]
    assert worse < quality <= better, "the quality is not between the bounds"
    return fewer + (more - fewer) * (quality - worse) / (better - worse)


def models(folder: Path, most: int, steps: int) -> list[Figure]:
    """Bits per value with a model that was trained on the field itself, or on the month before; its bytes included."""
    rows: list[list[object]] = []
    gains, losses, slowest, beside_sperr = [], [], math.inf, []
    for name, values in fields(folder, most):
        earlier = values
        if (month := REAL_FIELDS[name][2]) is not None:
            place, options, _ = REAL_FIELDS[name]
            earlier = np.ascontiguousarray(wb.open(folder / place, **options).values[month - 1])
        for share in BOUNDS:
            aim, start = Tolerance(absolute=share * float(np.ptp(values))), time.process_time()
            model = wb.codecs.train(earlier, share, steps=steps)
            trained, codec = time.process_time() - start, wb.codecs.get(OURS, model=model)
            plain = len(wb.codecs.get(OURS).encode(values, aim))
            start = time.process_time()
            data = codec.encode(values, aim)
            middle = time.process_time()
            codec.decode(data, values.shape, values.dtype)
            took = middle - start, time.process_time() - middle
            modelled = len(data) + (model.nbytes if len(data) < plain else 0)
            best = min(len(each.encode(values, aim)) for label, each in codecs().items() if label.startswith("SZ3"))
            gains.append(best / modelled)
            losses.append(len(data) / plain)
            sizes = [f"{8 * size / values.size:.3f}" for size in (best, plain, len(data), modelled)]
            slowest = min(slowest, *(values.nbytes / 1e6 / each for each in took))
            if month is not None and share == BOUNDS[0] and "SPERR" in codecs():
                beside_sperr.append(modelled / len(codecs()["SPERR"].encode(values, aim)))
            speeds = [f"{values.nbytes / 1e6 / each:.0f}" for each in took]
            rows.append([name, f"{share:g}", *sizes, f"{gains[-1]:.2f}", f"{trained:.0f}", *speeds])
    if not rows:
        return []
    print("## With a trained model: bits per value\n")
    print("Trained on the field itself; the temperature on the month before. Encoding is with the model and without.\n")
    head = ["field", "bound / range", "SZ3's best", "no model", "model", "and its bytes", "SZ3's best / ours"]
    print(timing.table([*head, "training, s", "encode, MB/s", "decode, MB/s"], rows))
    found = [
        Figure("with a model: smaller than SZ3's best", statistics.geometric_mean(gains), LEAST_WITH_MODEL, most=False),
        Figure("with a model: size beside none, worst case", max(losses), MOST_WITH_MODEL),
        Figure("with a model: slowest way [MB/s]", slowest, LEAST_MODEL_SPEED, most=False),
    ]
    return found + [Figure("with a model: temperature beside SPERR", each, MOST_BESIDE_SPERR) for each in beside_sperr]


def chunks(folder: Path, most: int, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Chunks of an archive whose speeds are measured: two made-up ones with so many values, and the real fields in 3D."""
    side = round(count ** (1 / 3))
    smooth = wb.synthetic.gaussian_field((side, side, side), seed=1).values.astype(np.float64)
    yield f"cumulated noise, {side}³", np.ascontiguousarray(sum(np.cumsum(smooth, axis=a) for a in range(3)), np.float32)
    yield f"Gaussian, k^-4, {side}³", wb.synthetic.gaussian_field((side, side, side), spectrum=4.0, seed=2).values
    yield from ((name, values) for name, values in fields(folder, most) if values.ndim == 3 and values.size > 2**19)


def speed(folder: Path, most: int, repeats: int, count: int) -> list[Figure]:
    """MB/s of processor time each way, memory and sizes, on chunks of an archive."""
    rows: list[list[object]] = []
    ours: list[tuple[float, float, float]] = []
    fast: list[tuple[float, float]] = []
    for name, values in chunks(folder, most, count):
        tolerance = Tolerance(absolute=BOUNDS[1] * float(np.ptp(values)))
        named = {**codecs(), FAST: wb.codecs.get("staged")}
        tried = {label: codec.tuned(values, tolerance) for label, codec in named.items()}
        encoded = {label: codec.encode(values, tolerance) for label, codec in tried.items()}
        runs: dict[str, list[Callable[[], object]]] = {
            label: [
                partial(codec.encode, values, tolerance), partial(codec.decode, encoded[label], values.shape, values.dtype)
            ]
            for label, codec in tried.items()
        }
        times = processor_times(runs, repeats)
        ways = {label: [values.nbytes / 1e6 / statistics.median(way) for way in both] for label, both in times.items()}
        bits = {label: 8 * len(data) / values.size for label, data in encoded.items()}
        rows += [[name, label, *(f"{way:.0f}" for way in ways[label]), f"{bits[label]:.3f}"] for label in tried]
        ours.append((ways[OURS][0], ways[OURS][1], timing.peak_bytes(runs[OURS][0]) / values.nbytes))
        fast.append((ways[FAST][0], bits[FAST] / min(size for label, size in bits.items() if label.startswith("SZ3"))))
    print(f"## Chunks of an archive, float32, bound {BOUNDS[1]:g} of the range: MB/s\n")
    print(timing.table(["chunk", "codec", "encode", "decode", "bits per value"], rows))
    return [
        Figure("encode, slowest chunk [MB/s]", min(each[0] for each in ours), LEAST_ENCODE, most=False),
        Figure("decode, slowest chunk [MB/s]", min(each[1] for each in ours), LEAST_DECODE, most=False),
        Figure("memory of arrays to encode, in chunks", max(each[2] for each in ours), MOST_MEMORY),
        Figure("fast: encode, slowest chunk [MB/s]", min(each[0] for each in fast), LEAST_FAST, most=False),
        Figure("fast: size beside SZ3's best, worst chunk", max(each[1] for each in fast), MOST_FAST),
    ]


def processor_times(runs: Mapping[str, list[Callable[[], object]]], repeats: int) -> dict[str, list[list[float]]]:
    """The times of so many runs of each, which take turns; the first of all are not counted."""
    times: dict[str, list[list[float]]] = {label: [[] for _ in ways] for label, ways in runs.items()}
    for counted in range(repeats + 1):
        for label, ways in runs.items():
            for way, run in enumerate(ways):
                start = time.process_time()
                run()
                if counted:
                    times[label][way].append(time.process_time() - start)
    return times


def noise() -> list[Figure]:
    """White noise, of which nothing can be predicted."""
    values = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
    rows: list[list[object]] = []
    over = []
    for size in (0.3, 0.03, 0.01):
        share = np.unique(np.rint(values / (2 * size)), return_counts=True)[1] / values.size
        entropy = -float((share * np.log2(share)).sum())
        bits = 8 * len(wb.codecs.get(OURS).encode(values, Tolerance(absolute=size))) / values.size
        over.append(bits - entropy)
        rows.append([f"{size:g}", f"{entropy:.3f}", f"{bits:.3f}", f"{over[-1]:.3f}"])
    print("## White noise, 512²: bits per value\n")
    print(timing.table(["bound / standard deviation", "entropy", OURS, "difference"], rows))
    return [Figure("white noise: bits over its entropy", max(over), MOST_NOISE)]


def autoregression(side: int, steps: int) -> list[Figure]:
    """The distance from the pointwise bound of a Gaussian autoregression along two axes, which is known exactly."""
    values = wb.synthetic.piecewise_field((side, side), [wb.synthetic.Region(1.0, CORRELATION)], seed=0).values
    limits = wb.rate_distortion(wb.limits.separable(CORRELATION, values.shape))
    model = wb.codecs.train(values, AR_BOUNDS[0], relative=False, steps=steps)
    ours, modelled = wb.codecs.get(OURS), wb.codecs.get(OURS, model=model)
    tried = {label: codec for label, codec in codecs().items() if label == "SZ3, Lorenzo"}
    tried |= {OURS: ours, f"{OURS} with a model": modelled}
    rows: list[list[object]] = []
    gaps = []
    for size in AR_BOUNDS:
        least = limits.pointwise(size)
        aim = Tolerance(absolute=size)
        bits = {label: 8 * len(codec.encode(values, aim)) / values.size for label, codec in tried.items()}
        bits[f"{OURS} with a model"] += 8 * model.nbytes / values.size
        gaps.append({label: each - max(least, 0.0) for label, each in bits.items()})
        shown = [f"{each:.3f} (+{gaps[-1][label]:.3f})" for label, each in bits.items()]
        rows.append([f"{size:g}", f"{least:.3f}", *shown])
    print(f"## AR(1), rho = {CORRELATION}, {side}²: bits per value, and how many above the pointwise bound\n")
    print(f"The model was trained on the field at {AR_BOUNDS[0]:g}; its bytes are included.\n")
    print(timing.table(["bound / standard deviation", "pointwise bound", *tried], rows))
    return [
        Figure(f"AR(1) at {AR_BOUNDS[0]:g}: bits over the pointwise bound", gaps[0][OURS], MOST_GAP),
        Figure("the same with a model and its bytes", gaps[0][f"{OURS} with a model"], MOST_GAP),
    ]


def training(count: int) -> list[Figure]:
    """The time that training takes as it usually ends, on all cores."""
    side = round(count ** (1 / 3))
    smooth = wb.synthetic.gaussian_field((side, side, side), seed=1).values.astype(np.float64)
    values = np.ascontiguousarray(sum(np.cumsum(smooth, axis=axis) for axis in range(3)), np.float32)
    start = time.perf_counter()
    wb.codecs.train(values, BOUNDS[1])
    return [Figure(f"training on {side}³ values, all cores [s]", time.perf_counter() - start, MOST_SECONDS)]


if __name__ == "__main__":
    main()
