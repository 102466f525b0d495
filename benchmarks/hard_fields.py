"""Fields that are hard for interpolation: coarse bounds, steps, counts, classes, series, fill values, stacked levels.

python benchmarks/hard_fields.py [--only WORDS]

For each field and bound: the bytes of the smallest peer (SZ3 in three modes, SPERR, ZFP, prequantised), with all
corrections that the bound needs; those of `interpolation` and of what `codec="auto"` chooses over them; and the codec
that it chooses.
"""


import argparse
import math
from collections.abc import Iterator

import numpy as np
import timing

import workbench as wb
from workbench import codecs
from workbench.archive import choice
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import encode_guarded

Case = tuple[str, np.ndarray, tuple[float, ...]]   # its name, the values, bounds as shares of the range

MOST = 1.02   # times the smallest peer, in every case
PEERS: tuple[tuple[str, dict[str, str]], ...] = (
    ("sz3", {}), ("sz3", {"algorithm": "interp"}), ("sz3", {"algorithm": "lorenzo_reg"}), ("sperr", {}), ("zfp", {}),
    ("prequantised", {}),
)
COARSE = (0.3, 0.2, 0.1, 0.05, 1e-2)
USUAL = (1e-1, 1e-2, 1e-3, 1e-4)


def main() -> None:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="fields with these words in their names")
    options = parser.parse_args()
    ours, chosen = [], []
    for name, values, bounds in hard_fields():
        for bound in bounds if options.only in name else ():
            row = sizes(np.ascontiguousarray(values), bound)
            ours.append(row[1] / row[0])
            chosen.append(row[2] / row[0])
            print(f"| {name} | {bound:g} | {row[0]:,} | {ours[-1]:.3f} | {chosen[-1]:.3f} | {row[3]} |", flush=True)
    figures: list[list[object]] = []
    for who, found in (("interpolation", ours), ("auto", chosen)):
        larger = sum(ratio > MOST for ratio in found)
        mean = math.exp(sum(map(math.log, found)) / len(found))
        figures.append([who, f"{mean:.3f}", f"{max(found):.3f}", f"at most {MOST}", f"{larger} of {len(found)} are larger"])
    header = ["codec", "mean over the smallest peer", "worst", "target", ""]
    print(f"\n{timing.table(header, figures)}")


def sizes(values: np.ndarray, bound: float) -> tuple[int, int, int, str]:
    """The bytes of the smallest peer, of interpolation, and of the automatic choice; and which codec that is."""
    limit = wb.Relative(bound).limit(values)
    peers = [codecs.get(name, **options) for name, options in PEERS if name in codecs.available()]
    best = min(encoded(codec, values, limit) for codec in peers)
    found, _ = choice.chosen(values[choice.middle(values.shape)], None, limit)
    ours = codecs.get("interpolation").tuned(values[choice.middle(values.shape)], limit.tolerance)
    return int(best), int(encoded(ours, values, limit)), int(encoded(found, values, limit)), found.id


def encoded(codec: Codec, values: np.ndarray, limit: wb.guarantees.Limit) -> float:
    """The bytes of all values in one chunk; infinite where the codec cannot take them."""
    try:
        return float(encode_guarded(codec, values, limit).nbytes)
    except WorkbenchError:
        return math.inf


def hard_fields() -> Iterator[Case]:
    """All of them, made up."""
    rng = np.random.default_rng(0)
    yield from _series(rng)
    yield from _steps_and_classes(rng)
    yield from _counts(rng)
    yield from _filled(rng)
    yield from _smooth()
    yield from _stacked(rng)


def _series(rng: np.random.Generator) -> Iterator[Case]:
    count = 60_000
    time = np.arange(count, dtype=np.float64)
    yield "series: random walk", np.cumsum(rng.normal(size=count)), USUAL
    innovations, series = rng.normal(size=count), np.zeros(count)
    for rho in (0.5, 0.95):
        for place in range(1, count):
            series[place] = rho * series[place - 1] + innovations[place]
        yield f"series: AR(1), rho {rho}", series.astype(np.float32), USUAL
    yield "series: white noise", rng.normal(size=count), USUAL
    yield "series: sine", np.sin(time / 40), USUAL
    yield "series: sum of sines", np.sin(time / 7) + 0.3 * np.sin(time / 1.7) + 0.1 * np.sin(time / 300), USUAL
    beat = time % 360
    heart = 0.15 * np.exp(-((beat - 80) / 12) ** 2) + np.exp(-((beat - 140) / 4) ** 2)
    heart += 0.3 * np.exp(-((beat - 230) / 20) ** 2) - 0.2 * np.exp(-((beat - 150) / 5) ** 2)
    yield "series: heartbeats", (heart + 0.01 * rng.normal(size=count)).astype(np.float32), USUAL
    steps = np.repeat(rng.normal(size=count // 40), 40)
    yield "series: steps", steps, USUAL
    yield "series: steps, lengths at random", np.repeat(rng.normal(size=count), rng.geometric(0.02, count))[:count], USUAL
    yield "series: short", np.cumsum(rng.normal(size=500)), USUAL


def _steps_and_classes(rng: np.random.Generator) -> Iterator[Case]:
    blocks = rng.normal(size=(16, 16)).repeat(20, axis=0).repeat(20, axis=1)
    yield "steps: blocks of 20²", blocks, USUAL
    y, x = np.mgrid[0:300, 0:300]
    seeds = rng.uniform(0, 300, size=(60, 2))
    nearest = ((y[..., None] - seeds[:, 0]) ** 2 + (x[..., None] - seeds[:, 1]) ** 2).argmin(axis=-1)
    yield "steps: cells of 60 seeds", rng.normal(size=60)[nearest].astype(np.float32), USUAL
    z = np.indices((48, 48, 48))
    three = np.where(((z - 24) ** 2).sum(axis=0) < 300, 1.0, 0.0) + np.where(z[0] > 30, 0.37, 0)
    yield "steps: a ball, in three dimensions", three.astype(np.float32), USUAL
    yield "classes 0-4 at random", rng.integers(0, 5, (300, 300)).astype(np.float64), USUAL
    yield "classes: two, rare", (rng.random((300, 300)) < 0.02).astype(np.float32), USUAL
    smooth = wb.synthetic.gaussian_field((256, 256), seed=3).values
    smooth = np.cumsum(np.cumsum(smooth - smooth.mean(), axis=0), axis=1)
    yield "classes: a map", np.digitize(smooth, np.quantile(smooth, [0.2, 0.4, 0.6, 0.8])).astype(np.float32), USUAL
    yield "classes: terraces", np.rint(12 * smooth / np.ptp(smooth)).astype(np.float64) * 0.7 + 3, USUAL


def _counts(rng: np.random.Generator) -> Iterator[Case]:
    for mean in (0.1, 1, 10):
        yield f"counts: Poisson({mean})", rng.poisson(mean, (300, 300)).astype(np.float32), USUAL
    rate = np.exp(2 * wb.synthetic.gaussian_field((40, 40, 40), seed=5).values / 3)
    yield "counts: Poisson, varying rate", rng.poisson(rate).astype(np.float64), USUAL
    yield "integers: smooth", np.rint(200 * np.sin(np.arange(90_000) / 900).reshape(300, 300)).astype(np.float32), USUAL
    yield "integers: 0-255, an image", np.clip(np.rint(
        128 + 40 * wb.synthetic.gaussian_field((256, 256), seed=7).values), 0, 255).astype(np.float32), USUAL


def _filled(rng: np.random.Generator) -> Iterator[Case]:
    smooth = wb.synthetic.gaussian_field((30, 128, 128), seed=2).values.astype(np.float64)
    smooth = np.cumsum(smooth, axis=1) + np.cumsum(smooth, axis=2)
    land = wb.synthetic.gaussian_field((128, 128), seed=9).values
    land = np.cumsum(np.cumsum(land - land.mean(), axis=0), axis=1)
    land = land < np.quantile(land, 0.4)
    ocean = smooth.copy()
    ocean[:, land] = smooth[:, ~land].mean()
    yield "filled: ocean, its mean on land", ocean.astype(np.float32), (*USUAL, 1e-5)
    ocean[:, land] = 0
    yield "filled: ocean, 0 on land", ocean.astype(np.float32), (*USUAL, 1e-5)
    yield "filled: ocean, one level", ocean[0].astype(np.float32), USUAL
    constant = np.full((200, 300), 3.3)
    constant[50:80, 100:140] += rng.normal(size=(30, 40))
    yield "constant but for a patch", constant, USUAL
    sparse = np.zeros((64, 64, 64))
    sparse[rng.integers(0, 64, 200), rng.integers(0, 64, 200), rng.integers(0, 64, 200)] = rng.lognormal(size=200)
    yield "sparse: 200 points", sparse.astype(np.float32), USUAL
    rain = np.maximum(wb.synthetic.gaussian_field((200, 200), seed=4).values - 1, 0) ** 2
    yield "sparse: rain", rain.astype(np.float32), USUAL


def _smooth() -> Iterator[Case]:
    y, x = np.meshgrid(np.linspace(-1, 1, 300), np.linspace(-1, 1, 300), indexing="ij")
    yield "smooth: a plane", 3 * x - 2 * y, (*COARSE, 1e-3, 1e-4)
    yield "smooth: a bump", np.exp(-4 * (x**2 + y**2)), (*COARSE, 1e-3, 1e-4)
    yield "smooth: waves", np.sin(9 * x + 5 * y * y) * np.cos(7 * y), (*COARSE, 1e-3, 1e-4)
    z = np.linspace(0, 1, 48)
    yield "smooth: three dimensions", np.sin(9 * z)[:, None, None] * np.cos(6 * z)[:, None] + z**2, (*COARSE, 1e-3, 1e-4)
    for steps in (1, 2):
        field = wb.synthetic.gaussian_field((256, 256), seed=1).values.astype(np.float64)
        for _ in range(steps):
            field = np.cumsum(field - field.mean(), axis=0)
            field = np.cumsum(field - field.mean(), axis=1)
        yield f"smooth: noise summed {2 * steps} times", field.astype(np.float32), (*COARSE, 1e-3, 1e-4)
    yield "rough: a Gaussian field", wb.synthetic.gaussian_field((48, 48, 48), seed=8).values, (*COARSE, 1e-3, 1e-4)


def _stacked(rng: np.random.Generator) -> Iterator[Case]:
    y, x = np.mgrid[0:241, 0:480]
    levels = [
        1e4 * (k + 1) ** 2 + 300 * (k + 1) * np.cos(y / 241 * np.pi) + 100 * np.sin(x / 60 + k) for k in range(3)
    ]
    yield "stacked: three levels", np.stack(levels), (*COARSE, 1e-3, 1e-4)
    many = [10.0**k * (1 + 0.1 * np.sin(x[:120, :120] / 20 + k) * np.cos(y[:120, :120] / 30)) for k in range(6)]
    yield "stacked: six magnitudes", np.stack(many).astype(np.float32), (*COARSE, 1e-3, 1e-4, 1e-6)
    rough = np.stack([4.0**k * (2 + rng.normal(size=(100, 100))) for k in range(8)])
    yield "stacked: rough levels", rough, (*COARSE, 1e-3, 1e-4)


if __name__ == "__main__":
    main()
