"""Stuck cells, pruning and low rank: what they do to a digits network and to SmolLM2-135M, beside bounded errors.

python benchmarks/reductions.py [--only cells coverage block all] [--parts 3]

Digits are drawn (`wb.synthetic.digits`) and, where scikit-learn is installed, handwritten (the 1797 of UCI). The texts for
SmolLM2 are docstrings of NumPy and a page of this project, in parts of 256 tokens; all predictions count.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")   # read when NumPy is imported

import numpy as np
import timing
from kv_cache import two_texts

import workbench as wb
from workbench.propagation import Bounded, LowRank, Perturbation, Prune, StuckCells, accuracy, tolerated

TOKENS = 256
FAULTS: Mapping[str, Callable[[float], tuple[float, float]]] = {   # shares stuck off and on
    "stuck on": lambda rate: (0.0, rate), "stuck off": lambda rate: (rate, 0.0),
    "84% on, 16% off": lambda rate: (0.16 * rate, 0.84 * rate),
}
SITES = tuple(f"weights {number}" for number in (1, 2, 3))


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["cells", "coverage", "block", "all"])
    parser.add_argument("--parts", type=int, default=3, help="parts of each of the two texts, in the comparison of a block")
    asked = parser.parse_args()
    print(timing.machine(), flush=True)
    tables = {"cells": cells, "coverage": coverage, "block": lambda: block(asked.parts), "all": all_blocks}
    for name in asked.only:
        start = time.process_time()
        tables[name]()
        print(f"\n{time.process_time() - start:.0f} s of the processor.", flush=True)


Labelled = tuple[np.ndarray, np.ndarray]


def sets() -> dict[str, tuple[Labelled, Labelled]]:
    """Images and labels to train on, and others."""
    found = {"drawn": (wb.synthetic.digits(1400), wb.synthetic.digits(800, seed=1))}
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        return found
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).astype(np.float32), labels[order]
    found["handwritten"] = ((images[:1397], labels[:1397]), (images[1397:], labels[1397:]))
    return found


def cells() -> None:
    for name, (known, (images, labels)) in sets().items():
        quality = accuracy(labels)
        print(f"\n## A network 64-128-64-10 on digits, {name}: {len(labels)} images that it was not trained on\n")
        rows: list[list[object]] = []
        for keep in (1.0, 0.2, 0.1):
            network = wb.propagation.perceptron(*known, keep=keep)
            run = network.run(images)
            own = f"{keep:.0%} kept, {quality(run.results):.4f}"
            for fault, shares in FAULTS.items():
                found = {
                    mapping: tolerated(network, run, of_rate(shares, mapping), quality=quality, draws=100)
                    for mapping in ("two-column", "mirrored")
                }
                ratio = found["mirrored"].rate / found["two-column"].rate
                rows.append([own, fault, *(interval(each) for each in found.values()), f"{ratio:.3g}"])
        print(timing.table(["weights, accuracy", "cells", "two-column, %", "mirrored, %", "mirrored / two-column"], rows))


def of_rate(shares: Callable[[float], tuple[float, float]], mapping: str) -> Callable[[float], list[Perturbation]]:
    """Faults in all layers."""
    def made(rate: float) -> list[Perturbation]:
        off, on = shares(rate)
        return [StuckCells(site, off, on, mapping) for site in SITES]   # type: ignore[arg-type]

    return made


def interval(found: wb.propagation.Tolerated) -> str:
    """The largest rate in percent, between what is certainly tolerated and what certainly is not."""
    return f"{100 * found.rate:.3g} [{100 * found.certain:.3g}, {100 * found.too_much:.3g}]"


def coverage(repeats: int = 50, many: int = 1000) -> None:
    """How often the statements of `tolerated` are true, judged by many more draws."""
    known, (images, labels) = sets()["drawn"]
    network = wb.propagation.perceptron(*known)
    rows: list[list[object]] = []
    for mapping in ("two-column", "mirrored"):
        of = of_rate(FAULTS["stuck on"], mapping)
        truth = tolerated(network, images, of, quality=accuracy(labels), draws=many, seed=10**6)
        for draws in (10, 30):
            found = [
                tolerated(network, images, of, quality=accuracy(labels), draws=draws, seed=seed) for seed in range(repeats)
            ]
            right = sum(each.certain < truth.too_much and each.too_much > truth.certain for each in found)
            widths = np.median([each.too_much / max(each.certain, 1e-5) for each in found])
            rates = np.array([each.rate for each in found]) / truth.rate
            span = f"{rates.min():.2f} to {rates.max():.2f}"
            rows.append([mapping, draws, f"{right} of {repeats}", f"{widths:.2f}", span])
    print(f"\n## Are the statements at 95% true? {repeats} studies, judged by {many} draws\n")
    print(timing.table(["mapping", "draws", "both true", "too much / certain, median", "rate over the true one"], rows))


def texts(parts: int) -> tuple[wb.propagation.LanguageModel, list[np.ndarray]]:
    """The model, and parts of both texts."""
    lm = wb.propagation.language_model()
    tokens = [lm.tokens(text) for text in two_texts()]
    return lm, [each[at : at + TOKENS] for each in tokens for at in range(0, parts * TOKENS, TOKENS)]


def block(parts: int) -> None:
    lm, inputs = texts(parts)
    print(f"\n## SmolLM2-135M, the three matrices of the MLP of block 15; {len(inputs)} parts of {TOKENS} tokens\n")
    compare(lm, inputs, [15], {
        "within 0.2 rms": bounded(0.2), "75% kept": pruned(0.75), "50% kept": pruned(0.5), "2:4": pruned(0.5, "2:4"),
        "blocks of 4 x 4, 50% kept": pruned(0.5, "block"), "rank, 50% of the size": lambda lm, site: LowRank(site, 0.5),
        "cells of 4 bits, 0.1% stuck on, mirrored": lambda lm, site: StuckCells(site, 0.0, 0.001, "mirrored", 4),
        "cells of 4 bits, 0.1% stuck on": lambda lm, site: StuckCells(site, 0.0, 0.001, "two-column", 4),
    })


def all_blocks() -> None:
    lm, inputs = texts(1)
    print(f"\n## SmolLM2-135M, the MLPs of all blocks; {len(inputs)} parts of {TOKENS} tokens\n")
    compare(lm, inputs, range(lm.layers), {
        "within 0.1 rms": bounded(0.1), "75% kept": pruned(0.75), "blocks of 4 x 4, 75% kept": pruned(0.75, "block"),
    })


Made = Callable[[wb.propagation.LanguageModel, str], Perturbation]


def bounded(share: float) -> Made:
    """Weights within a share of their root mean square."""
    def made(lm: wb.propagation.LanguageModel, site: str) -> Perturbation:
        size = float(np.sqrt(np.mean(lm.weights[site.removesuffix(" weight")].astype(np.float64) ** 2)))
        return Bounded(site, wb.Absolute(share * size), "prequantised")

    return made


def pruned(keep: float, pattern: str = "free") -> Made:
    """The largest weights."""
    return lambda lm, site: Prune(site, keep, pattern)   # type: ignore[arg-type]


def compare(
    lm: wb.propagation.LanguageModel, inputs: list[np.ndarray], layers: Sequence[int], made: Mapping[str, Made]
) -> None:
    names = [f"block {layer} {part}" for layer in layers for part in ("gate", "up", "down")]
    pipeline = lm.pipeline(weights=names, layers=[])
    given = {name: [each(lm, f"{weight} weight") for weight in names] for name, each in made.items()}
    found = wb.propagation.compare_reductions(pipeline, inputs, given, draws=5)
    print(timing.table(found.heads, [list[object](row) for row in found.rows()]))


if __name__ == "__main__":
    main()
