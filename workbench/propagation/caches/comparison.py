"""`wb.propagation.compare_caches`: what each way to keep keys and values costs a language model, and how small it is.

All caches see the same text: a prompt, which is computed exactly, and then token after token of the text itself, so that an
error does not change what comes next. Predictions are compared with those of an exact cache: perplexity alone hides damage,
as changes of either sign cancel in it while the most likely token already differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arguments import whole_number
from workbench.backend import to_host
from workbench.charts.description import Axis, Chart, Point, joined
from workbench.charts.looks import looks_of
from workbench.charts.table import html_table
from workbench.errors import WorkbenchError
from workbench.json_values import json_value
from workbench.progress import Progress
from workbench.propagation.caches.baselines import baseline_cache
from workbench.propagation.caches.blocked import BlockedCache
from workbench.propagation.intervals import Mean, mean_of
from workbench.propagation.language.cache import Cache, ExactCache
from workbench.propagation.language.model import LanguageModel, Text
from workbench.propagation.language.quality import log_probabilities, relative_entropies
from workbench.propagation.report import figure

STRETCH = 64   # predictions that are one draw of an interval: errors of neighbours are alike


@dataclass(frozen=True, eq=False)
class CacheFigures:
    """One cache: bits of a key or value with all side information, and what it does to predictions.

    `divergence` is the Kullback-Leibler divergence from the exact predictions in nats, `kept` the share of most likely
    tokens that stay, `perplexity` the factor by which the text becomes less likely. `fewest_bits` is the rate-distortion
    bound of a Gaussian model at the same error.
    """

    name: str
    bits: float
    key_bits: float
    value_bits: float
    fewest_bits: float
    divergence: Mean
    kept: Mean
    perplexity: Mean

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON types."""
        nested = {name: vars(getattr(self, name)) for name in ("divergence", "kept", "perplexity")}
        found: dict[str, Any] = json_value({**vars(self), **nested})
        return found


@dataclass(frozen=True, eq=False, repr=False)
class CacheComparison:
    """Caches on the same text, in the order that was given; `perplexity` is that of the exact cache."""

    figures: tuple[CacheFigures, ...]
    perplexity: float
    predictions: int
    prompt: int

    def __getitem__(self, place: int) -> CacheFigures:
        return self.figures[place]

    def __len__(self) -> int:
        return len(self.figures)

    def plot(self) -> Chart:
        """Divergence against bits: caches that are further down and to the left are better."""
        names = [each.name for each in self.figures]
        points = [
            Point(each.name, each.bits, each.divergence.value, f"{each.name}: {each.bits:.2f} bits, {each.divergence} nats")
            for each in self.figures if each.divergence.value > 0
        ]
        return Chart(
            "Caches",
            Axis.around("bits per value", [each.x for each in points]),
            Axis.around("KL divergence (nats)", [each.y for each in points], True, 0.1),
            tuple(joined(points, looks_of(names))),
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON types."""
        return {
            "predictions": self.predictions, "prompt": self.prompt, "perplexity": self.perplexity,
            "caches": [each.to_dict() for each in self.figures],
        }

    def rows(self) -> list[list[str]]:
        """The table: a row for each cache."""
        return [
            [
                each.name, f"{each.bits:.2f}", f"{each.fewest_bits:.2f}", str(each.divergence),
                f"{100 * each.kept.value:.1f}% [{100 * each.kept.low:.1f}, {100 * each.kept.high:.1f}]",
                f"{100 * (each.perplexity.value - 1):+.1f}% [{100 * (each.perplexity.low - 1):+.1f}, "
                f"{100 * (each.perplexity.high - 1):+.1f}]",
            ]
            for each in self.figures
        ]

    def __repr__(self) -> str:
        best = min(self.figures, key=lambda each: each.bits)
        fewest = f"the fewest bits per value: {best.bits:.2f}, {best.name}"
        return f"CacheComparison({len(self)} caches, {self.predictions:,} predictions; {fewest})"

    def _repr_html_(self) -> str:
        text = f"{self.predictions:,} predictions after prompts of {self.prompt} tokens"
        title = f"{text}; perplexity of the exact cache {figure(self.perplexity)}"
        return html_table(HEADS, self.rows(), title=title)


MOST_EXPONENT = 709.0   # whose exponential is finite
HEADS = ("cache", "bits per value", "Gaussian bound", "KL divergence (nats)", "most likely token kept", "perplexity")


def compare_caches(
    lm: LanguageModel,
    text: Text | Sequence[Text],
    caches: BlockedCache | str | Iterable[BlockedCache | str],
    *,
    prompt: int = 256,
    tokens: int = 512,
    progress: Progress | None = None,
) -> CacheComparison:
    """Run each cache on the text, or on each of several, and compare its predictions with the exact ones.

    A text is cut into parts of `prompt` and `tokens`; a rest that is too short is left out. Caches are `KVCache`,
    those of `baseline_cache`, or their names; each starts empty for each part.
    """
    given = [caches] if isinstance(caches, BlockedCache | str) else caches
    chosen = [baseline_cache(each) if isinstance(each, str) else each for each in given]
    for each in chosen:
        if not isinstance(each, BlockedCache):
            raise WorkbenchError(f"caches must be KVCache, baseline_cache or their names; got {each!r:.100}")
    if not chosen:
        raise WorkbenchError("a comparison needs at least one cache; got none")
    prompt, tokens = whole_number("prompt", prompt, 1), whole_number("tokens", tokens, 1)
    parts = _parts(lm, text, prompt, tokens)
    tell = progress or (lambda share, what: None)
    measured: list[list[_Part]] = [[] for _ in chosen]
    steps, done, surprises = len(parts) * (len(chosen) + 1), 0, []
    for part in parts:
        tell(done / steps, "the exact cache")
        exact = predictions(lm, part, prompt, ExactCache())
        surprises.append(_surprise(exact, part[prompt + 1 :]))
        done += 1
        for place, cache in enumerate(chosen):
            tell(done / steps, cache.name)
            held = cache.empty()
            changed = predictions(lm, part, prompt, held)
            if not held.coded_numbers:
                raise WorkbenchError(
                    f"{cache.name} codes nothing of {prompt + tokens} tokens, with recent={cache.recent} and "
                    f"block={cache.block}: make these smaller, or parts longer"
                )
            measured[place].append(_compared(exact, changed, part[prompt + 1 :], held))
            done += 1
    figures = tuple(_figures(cache.name, found) for cache, found in zip(chosen, measured, strict=True))
    return CacheComparison(figures, math.exp(float(np.mean(surprises))), len(parts) * tokens, prompt)


def predictions(lm: LanguageModel, tokens: np.ndarray, prompt: int, cache: Cache) -> np.ndarray:
    """The logarithms of the probabilities after each token that follows the prompt, but the last.

    Several tokens are computed at once, up to where the next block of the cache is coded, if it has blocks.
    """
    lm.forward(tokens[:prompt], cache, last=True)
    found, at = [], prompt
    while at < len(tokens) - 1:
        size = cache.block - (at - cache.recent) % cache.block if isinstance(cache, BlockedCache) else STRETCH
        stop = min(at + size, len(tokens) - 1)
        found.append(_logarithms(to_host(lm.forward(tokens[at:stop], cache))))
        at = stop
    return np.concatenate(found)


def _parts(lm: LanguageModel, text: Text | Sequence[Text], prompt: int, tokens: int) -> list[np.ndarray]:
    several = isinstance(text, Sequence) and not isinstance(text, str) and text and isinstance(text[0], str | np.ndarray)
    length, found = prompt + tokens + 1, []
    for each in text if several else [text]:
        numbers = lm.tokens(each)   # type: ignore[arg-type]
        if len(numbers) < length:
            raise WorkbenchError(
                f"a text must have at least {length} tokens, for the prompt and {tokens} predictions; got {len(numbers)}: "
                "give a longer one, or fewer tokens"
            )
        found += [numbers[at : at + length] for at in range(0, len(numbers) - length + 1, length)]
    return found


def _logarithms(logits: np.ndarray) -> np.ndarray:
    """The logarithms of the softmax of each row, which must be finite."""
    if not np.isfinite(logits).all():
        raise WorkbenchError("predictions must be finite; the model's are NaN or infinite: check its weights and the cache")
    return log_probabilities(logits).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Part:
    """One cache on one part of a text."""

    bits: tuple[float, float]
    fewest: float
    divergences: np.ndarray   # of each prediction
    kept: np.ndarray
    surprise: np.ndarray      # by how much the true token is less likely than before, in nats


def _compared(exact: np.ndarray, changed: np.ndarray, truth: np.ndarray, cache: BlockedCache) -> _Part:
    rows = np.arange(len(truth))
    return _Part(
        (cache.bits_per_key, cache.bits_of_values), cache.fewest_bits, relative_entropies(exact, changed),
        exact.argmax(axis=1) == changed.argmax(axis=1), (exact[rows, truth] - changed[rows, truth]).astype(np.float64),
    )


def _surprise(exact: np.ndarray, truth: np.ndarray) -> float:
    return -float(exact[np.arange(len(truth)), truth].mean(dtype=np.float64))


def _figures(name: str, parts: Sequence[_Part]) -> CacheFigures:
    keys, values = (float(np.mean([part.bits[kind] for part in parts])) for kind in (0, 1))
    kept = _mean([part.kept for part in parts])
    less = _mean([part.surprise for part in parts])
    return CacheFigures(
        name=name,
        bits=(keys + values) / 2,
        key_bits=keys,
        value_bits=values,
        fewest_bits=float(np.mean([part.fewest for part in parts])),
        divergence=_mean([part.divergences for part in parts]),
        kept=Mean(kept.value, max(kept.low, 0.0), min(kept.high, 1.0)),
        perplexity=Mean(*(_exponential(each) for each in (less.value, less.low, less.high))),
    )


def _exponential(value: float) -> float:
    return math.exp(value) if value < MOST_EXPONENT else math.inf


def _mean(parts: Sequence[np.ndarray]) -> Mean:
    """The mean of all, and its interval from the means of stretches."""
    means = [float(stretch.mean()) for part in parts for stretch in np.array_split(part, max(len(part) // STRETCH, 1))]
    return mean_of(means, float(np.concatenate(parts).mean()))
