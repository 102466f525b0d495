"""A language model: loading, forward runs, maps of one fault, campaigns; which faults harm it, and what ranges prevent.

python benchmarks/language_model.py [--trials 384]

Set OPENBLAS_NUM_THREADS=1 for campaigns, whose workers are threads themselves. Times are of the processor as well as of the
clock, because a busy machine changes the latter.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import timing

import workbench as wb
from workbench.propagation import BitFlip, LanguageModel, campaign, protected, trace
from workbench.propagation.floor import measured_floor
from workbench.propagation.language import (
    TASKS,
    divergence,
    divergences,
    faults,
    harmful,
    pooled,
    same_tokens,
    token_errors,
    top_agreement,
)
from workbench.propagation.protection import learn_ranges

PROSE = (
    "Error-bounded lossy compression keeps every value within a chosen bound, so that scientists can store ten times more "
    "data without changing their conclusions. In a cosmological simulation, billions of particles move under gravity, and "
    "halos form where the density is high. 12 of 345 snapshots were kept. "
)
ROUNDS = 7
FORMATS = (None, "bfloat16", "float16")
OTHERS = (
    "The Roman Empire lasted a thousand years. It began as a small city in Italy, and grew until it ruled all lands "
    "around the Mediterranean Sea. In 476 the last emperor of the west was deposed.",
    "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(add(i, 2 * i), i ** 2)\n",
    "Water, H2O, boils at 100 degrees Celsius at sea level; salt, NaCl, melts at 801. Chemistry is the study of matter.",
)   # from which ranges are learned, besides the tasks


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=384)
    asked = parser.parse_args()
    print(timing.machine())
    model = speed()
    campaigns(model, asked.trials)
    tasks(model)
    protection(model)


def speed() -> LanguageModel:
    """Seconds to load, to run, and to map one fault."""
    print("\n## Speed, 64 tokens: the fastest of several runs\n")
    clock, processor, model = _timed(wb.propagation.language_model, 1)
    tokens = model.tokens(PROSE)[:64]
    pipeline = model.pipeline()
    run = pipeline.run(tokens)
    flip = BitFlip("block 5 down", bit=30, index=(20, 100))
    floor = measured_floor(pipeline, run)
    work: dict[str, Callable[[], Any]] = {
        "forward": lambda: model.forward(tokens),
        "the pipeline": lambda: pipeline.run(tokens),
        "layer x token map of one fault": lambda: token_errors(run, pipeline.perturbed(run, flip)),
        "layer x token map of one bound": lambda: token_errors(
            run, pipeline.perturbed(run, wb.propagation.Bounded("block 5 keys", wb.Absolute(1e-2), "prequantised"))
        ),
        "the trace, with predictions": lambda: trace(pipeline, run, flip, floor=floor),
        "two more tokens": lambda: list(pipeline.written(run, 2)),
    }
    times = {"loading": (clock, processor)} | {name: _timed(each, ROUNDS)[:2] for name, each in work.items()}
    rows: list[list[object]] = [[name, f"{one:.3f}", f"{other:.3f}"] for name, (one, other) in times.items()]
    print(timing.table(["", "seconds", "processor seconds"], rows))
    print(timing.targets([
        ("loading, s", times["loading"][0], "<=", 4.0), ("forward, s", times["forward"][0], "<=", 0.15),
        ("map of one fault, s", times["layer x token map of one fault"][0], "<=", 0.3),
    ]))
    return model


def campaigns(model: LanguageModel, trials: int) -> None:
    """Flips of any bit in eight parts of all blocks, judged by the next token's probabilities."""
    pipeline = model.pipeline(last=True, tolerance=divergence(0.01))
    run = pipeline.run(model.tokens(PROSE)[:56])
    print(f"\n## Flips in prefill: {trials} trials of each format, 56 tokens, {divergence(0.01).name} at the next token\n")
    flips = {stored: faults(pipeline, format=stored) for stored in FORMATS}
    found = {stored: campaign(pipeline, run, each, until=trials, workers=1) for stored, each in flips.items()}
    clock, processor, again = _timed(partial(campaign, pipeline, run, flips[None], until=trials, workers=2), 1)
    print(f"2 workers: {trials / clock:.1f} trials/s, {trials / processor:.1f} per processor second")
    same = found[None].trials == again.trials
    print("\n" + timing.targets([
        ("trials/s on 2 workers", trials / clock, ">=", 15.0),
        ("numbers of workers with identical outcomes", 2.0 if same else 0.0, ">=", 2.0),
    ]))
    for by in ("all", "field", "part"):
        print(f"\n### Harmful (silent, detected or crash), by {by}, with 95% intervals\n")
        groups = {stored: pooled(found[stored], by) for stored in FORMATS}
        rows: list[list[object]] = [
            [group, *(_harmful(groups[stored].get(group)) for stored in FORMATS)] for group in groups[None]
        ]
        print(timing.table([by, *(str(stored or "float32") for stored in FORMATS)], rows))


def tasks(model: LanguageModel, trials: int = 48) -> None:
    """What flips of the highest bit of the exponent, in the prompt and in generation, do to the text of an answer."""
    print(f"\n## Answers of 6 tokens: {trials} flips of the highest bit of the exponent of bfloat16 for each task\n")
    pipeline = model.pipeline(new_tokens=6, layers=(), tolerance=same_tokens())
    flips = faults(pipeline, ("values", ""), range(model.layers), ["exponent_top"], (0, 1, 2), "bfloat16")
    rows: list[list[object]] = []
    for name, text in TASKS.items():
        found = campaign(pipeline, model.question(text), flips, until=trials)
        steps = pooled(found, "step")
        rows.append([name, *(_harmful(rates) for rates in (pooled(found, "all")["all"], *map(steps.get, range(3))))])
    print(timing.table(["task", "other text, or none", "in the prompt", "at token 1", "at token 2"], rows))


def _harmful(rates: Any) -> str:
    return "" if rates is None else str(harmful(rates))


def protection(model: LanguageModel, count: int = 80) -> None:
    """Wrong next tokens under flips of the highest bit of the exponent, without and with ranges of other texts."""
    print(f"\n## Ranges of other texts, a fifth wider: {count} flips of the highest bit of the exponent\n")
    pipeline = model.pipeline()
    run = pipeline.run(model.tokens(PROSE)[:56])
    texts = [*OTHERS, *(model.question(text) for text in TASKS.values())]
    ranges = learn_ranges((pipeline.run(text) for text in texts), 0.2)
    safe = pipeline.like(checks=protected(pipeline, run, ranges).checks)
    golden = safe.run(run["tokens"])
    flips = faults(pipeline, bits=["exponent_top"])
    wrong, rows = [], []
    for name, each, start in (("without", pipeline, run), ("with", safe, golden)):
        shares, kinds = [], {"same": 0, "other tokens": 0, "not finite": 0}
        for trial, flip in zip(range(count), itertools.cycle(flips), strict=False):
            logits = each.perturbed(start, flip, trial=trial)["logits"]
            lost = ~np.isfinite(logits).all(axis=1)
            other = lost | (np.where(lost[:, None], 0, logits).argmax(axis=1) != start["logits"].argmax(axis=1))
            kinds["not finite" if lost.any() else "other tokens" if other.any() else "same"] += 1
            shares.append(float(other.mean()))
        wrong.append(statistics.mean(shares))
        rows.append([name, *kinds.values(), f"{wrong[-1]:.2%}"])
    print(timing.table(["ranges", "same", "other tokens", "not finite", "wrong next tokens"], rows))
    agreement, price = top_agreement(run["logits"], golden["logits"]), divergences(run["logits"], golden["logits"]).mean()
    print(f"Without a fault, ranges leave {agreement:.1%} of the next tokens, at a divergence of {price:.2g} nats.\n")
    print(timing.targets([("fewer wrong next tokens, times", wrong[0] / max(wrong[1], 1e-9), ">=", 20.0)]))


def _timed(work: Callable[[], Any], rounds: int) -> tuple[float, float, Any]:
    """The least seconds of the clock and of the processor, and the last result."""
    clocks, processors, result = [], [], None
    for _ in range(rounds):
        clock, processor = time.perf_counter(), time.process_time()
        result = work()
        clocks.append(time.perf_counter() - clock)
        processors.append(time.process_time() - processor)
    return min(clocks), min(processors), result


if __name__ == "__main__":
    main()
