"""Caches of keys and values of SmolLM2-135M: bits and damage of each coding, products with packed keys, attention bounds.

python benchmarks/kv_cache.py [--parts 3] [--only table products bounds]

The texts are docstrings of NumPy and a page of this project. Products are timed on one thread, compared functions in turns.
"""

from __future__ import annotations

import argparse
import inspect
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")   # read when NumPy is imported

import numpy as np
import timing

import workbench as wb
from workbench import backend
from workbench.propagation import KVCache, LanguageModel, baseline_cache, compare_caches
from workbench.propagation.caches.packed_blocks import PackedBlocks
from workbench.propagation.language import ExactCache

PROMPT, TOKENS = 256, 511   # 768 tokens a part, with the last, which is only predicted
FUNCTIONS = (
    "einsum", "histogram", "gradient", "percentile", "convolve", "interp", "unwrap", "cov", "median", "meshgrid", "average",
)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=3, help="parts of 768 tokens of each of the two texts")
    parser.add_argument("--only", nargs="*", default=["products", "bounds", "table"])
    asked = parser.parse_args()
    print(timing.machine(), flush=True)
    for name in asked.only:
        if name == "products":
            products()
            continue
        lm = wb.propagation.language_model()
        texts = [lm.tokens(text)[: asked.parts * (PROMPT + TOKENS + 1)] for text in two_texts()]
        (table if name == "table" else bounds)(lm, texts)


def two_texts() -> list[str]:
    """Documentation of a library, and prose about science."""
    page = Path(__file__).parents[1] / "docs" / "how-it-works.md"
    return ["\n\n".join(inspect.getdoc(getattr(np, name)) or "" for name in FUNCTIONS), page.read_text()]


def table(lm: LanguageModel, texts: list[np.ndarray]) -> None:
    print(f"\n## {len(texts)} texts, prompts of {PROMPT} tokens, {TOKENS} predictions after each; NumPy {np.__version__}\n")
    caches = [
        KVCache(0.5, 0.25), KVCache(1.0, 0.4), KVCache(1.0, 0.6), KVCache(1.5, 0.9), KVCache(1.7, 0.9), KVCache(2.0, 0.9),
        KVCache(1.0, 0.6, coder="packed"), *(KVCache(*steps, turns=lm.turns) for steps in ((0.5, 0.25), (1.0, 0.4))),
        *(baseline_cache("kivi", bits, bits) for bits in (4, 3)),
        *(baseline_cache("hadamard", bits, bits) for bits in (4, 3)),
        *(baseline_cache("turboquant", bits, bits) for bits in (4, 3)),
        *(baseline_cache("kvcomp", share, 2 * share) for share in (0.02, 0.05, 0.1)),
        *(baseline_cache("packkv", share, 2 * share) for share in (0.02, 0.05, 0.1)),
    ]
    start, processor = time.perf_counter(), time.process_time()
    found = compare_caches(lm, texts, caches, prompt=PROMPT, tokens=TOKENS)
    took, worked = time.perf_counter() - start, time.process_time() - processor
    print(timing.table(found.heads, [list[object](row) for row in found.rows()]))
    runs = (len(caches) + 1) * found.predictions // TOKENS
    print(
        f"\nExact perplexity {found.perplexity:.2f}. {runs} runs of {PROMPT + TOKENS} tokens in {took:.0f} s, "
        f"{worked:.0f} s of the processor: {worked / runs:.1f} s each on one thread."
    )


def bounds(lm: LanguageModel, texts: list[np.ndarray]) -> None:
    print("\n## Attention beside its bound\n")
    rows: list[list[object]] = []
    for scores, values in ((0.02, 0.1), (0.1, 0.1), (0.3, 0.6), (1.0, 0.6)):
        cache, watch = KVCache(scores, values), Watched()
        watch.other = cache
        for at in [0, *range(PROMPT, PROMPT + TOKENS, 64)]:
            lm.forward(texts[0][at : PROMPT if at == 0 else at + 64], watch, last=True)
        rows.append([
            f"{scores:g} / {values:g}", f"{watch.components:,}", watch.broken, f"{watch.looseness:.0f}",
            f"{cache.certificate.score_bound:.2f}", f"{watch.largest:.3g}",
        ])
    heads = [
        "steps of scores / values", "components", "beyond the bound", "bound over error (median)", "score bound",
        "largest error",
    ]
    print(timing.table(heads, rows))


class Watched(ExactCache):
    """An exact cache that gives the same queries to another, and compares what they see."""

    other: KVCache

    def __init__(self) -> None:
        super().__init__()
        self.components = self.broken = 0
        self.largest, self._ratios = 0.0, [np.zeros(0)]

    def append(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Take new tokens."""
        super().append(layer, keys, values)
        self.other.append(layer, keys, values)

    def attend(self, layer: int, queries: np.ndarray) -> np.ndarray:
        """The exact attention."""
        exact, other = super().attend(layer, queries), self.other.attend(layer, queries)
        if self.other.coded_tokens.get(layer):
            error, allowed = abs(exact - other), self.other.attention_bound(layer, queries)
            self.components += error.size
            self.broken += int((error > allowed + 1e-5).sum())
            self.largest = max(self.largest, float(error.max()))
            self._ratios.append((allowed.max(axis=-1) / np.maximum(error.max(axis=-1), 1e-9)).reshape(-1))
        return exact

    @property
    def looseness(self) -> float:
        """How many times larger than the largest error of a query its bound is, in the median."""
        return float(np.median(np.concatenate(self._ratios)))


def products(tokens: int = 2**17, width: int = 64, repeats: int = 60) -> None:
    print(f"\n## Scores of {tokens:,} tokens of one head of {width} channels, one thread\n")
    random, rows = np.random.default_rng(0), list[list[object]]()
    for spread in (1.0, 3.0):
        scale = spread * np.exp(0.35 * random.normal(size=width))
        numbers = np.rint(random.normal(size=(1, tokens, width)) * scale).astype(np.int32)
        packed = PackedBlocks.of(numbers)
        for queries in (1, 3):
            asked = random.normal(size=(1, queries, width)).astype(np.float32)
            shares = random.random(size=(1, queries, tokens)).astype(np.float32)
            with backend.using_threads(1):
                took = fastest(products_of(packed, numbers[0].astype(np.float32), asked, shares), repeats)
            plain = min(took["keys by token"], took["keys by channel"])
            rows.append([
                f"{packed.bits / numbers.size:.2f}", queries, f"{1e3 * took['fused']:.2f} ms",
                f"{numbers.size / took['fused'] / 1e9:.1f}", f"{plain / took['fused']:.2f}",
                f"{took['decoded first'] / took['fused']:.1f}", f"{took['sums'] / took['fused sums']:.2f}",
            ])
    heads = [
        "bits per value", "queries", "fused", "10⁹ values/s", "times faster than BLAS on float32", "than decoding first",
        "sums of values: than BLAS",
    ]
    print(timing.table(heads, rows))


def products_of(
    packed: PackedBlocks, plain: np.ndarray, asked: np.ndarray, shares: np.ndarray
) -> dict[str, Callable[[], np.ndarray]]:
    """The same products in several ways; NumPy's in both orders of the keys in memory."""
    across = np.ascontiguousarray(plain.T)
    fused = packed.scores(asked)
    assert abs(fused[0] - asked[0] @ plain.T).max() <= 1e-5 * abs(fused).max()
    return {
        "fused": lambda: packed.scores(asked),
        "keys by token": lambda: plain @ asked[0].T,
        "keys by channel": lambda: asked[0] @ across,
        "decoded first": lambda: asked @ packed.by_channel()[:, 0],
        "fused sums": lambda: packed.sums(shares),
        "sums": lambda: shares[0] @ plain,
    }


def fastest(runs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The shortest time of each run; all of them once a round."""
    times: dict[str, float] = {}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name] = min(times.get(name, np.inf), time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
