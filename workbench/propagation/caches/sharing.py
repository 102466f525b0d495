"""`wb.propagation.cache_budget`: how coarse the keys and the values of each group of layers may be, for a given divergence.

Layers differ in what an error does to predictions, and so do keys and values. The steps of each group alone are raised, and
the divergence measured; the error budget of pipelines (`budget.py`) then raises those that save most for what they add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from workbench.arguments import positive, whole_number
from workbench.charts.table import html_table
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute
from workbench.progress import Progress
from workbench.propagation.budget import allocated
from workbench.propagation.caches.comparison import predictions
from workbench.propagation.caches.kv_cache import KVCache
from workbench.propagation.caches.layers import StreamLayer
from workbench.propagation.dose import Dose
from workbench.propagation.language.cache import ExactCache
from workbench.propagation.language.model import LanguageModel, Text
from workbench.propagation.language.quality import relative_entropies
from workbench.propagation.report import figure

FIRST = {"keys": 0.25, "values": 0.125}   # the smallest steps that are tried
FACTOR, LEVELS = 2.0, 6
NEARLY_EXACT = 1 / 64                   # the steps of all else, while one group is measured


@dataclass(frozen=True, eq=False, repr=False)
class CacheBudget:
    """Steps for each layer, as an empty `cache`, with the divergence and the bits per value that were measured with them.

    `steps` are those of each site: the keys or values of a group of layers. `curves` are what each does alone.
    """

    cache: KVCache
    steps: Mapping[str, float]
    divergence: float
    bits: float
    limit: float
    curves: Mapping[str, tuple[Dose, ...]]

    def __repr__(self) -> str:
        return f"CacheBudget({self.bits:.2f} bits per value; a divergence of {self.divergence:.3g} of {self.limit:g})"

    def _repr_html_(self) -> str:
        rows = [
            [site, figure(step), figure(self.limit * self.curves[site][0].damage)] for site, step in self.steps.items()
        ]
        return html_table(["site", "step", "divergence alone at the smallest step"], rows, title=repr(self))


def cache_budget(
    lm: LanguageModel,
    text: Text,
    divergence: float = 0.01,
    groups: int = 3,
    *,
    prompt: int = 256,
    tokens: int = 256,
    progress: Progress | None = None,
) -> CacheBudget:
    """The steps of keys and values in each group of layers with the fewest bytes that keep predictions this close.

    The divergence is that of Kullback and Leibler from the predictions with exact keys and values, in nats, over `tokens`
    predictions after the prompt.
    """
    limit, count = positive("divergence", divergence), whole_number("groups", groups, 1, lm.layers)
    length = whole_number("prompt", prompt, 1) + whole_number("tokens", tokens, 1) + 1
    given = lm.tokens(text)
    if len(given) < length:
        raise WorkbenchError(f"a budget needs a text of {length} tokens, prompt and predictions; got {len(given)}")
    measure = _Measure(lm, given[:length], prompt, limit, np.arange(lm.layers) * count // lm.layers)
    tell = progress or (lambda share, what: None)
    sites = [f"{kind} {group + 1}" for group in range(count) for kind in FIRST]
    curves = {}
    for number, site in enumerate(sites):
        tell(number / len(sites), f"raising the steps of {site}")
        curves[site] = measure.curve(site)
    chosen = {site: bound.eb for site, bound in allocated(curves, measure.together, tell).items()}
    damage, _ = measure.together({site: Absolute(step) for site, step in chosen.items()})
    cache = measure.last
    return CacheBudget(cache.empty(), chosen, damage * limit, cache.bits_per_value, limit, curves)


class _Measure:
    """Runs of a cache with steps by site, on one text."""

    def __init__(self, lm: LanguageModel, tokens: np.ndarray, prompt: int, limit: float, group_of: np.ndarray) -> None:
        self.run = partial(predictions, lm, tokens, prompt)
        self.limit, self.group_of = limit, group_of
        self.exact = self.run(ExactCache())
        self.last = KVCache()

    def curve(self, site: str) -> tuple[Dose, ...]:
        """The damage and the bytes of one site alone at rising steps, up to the first that is too much."""
        found: list[Dose] = []
        for level in range(LEVELS):
            bound = Absolute(FIRST[site.split()[0]] * FACTOR**level)
            damage, nbytes = self.together({site: bound}, only=site)
            found.append(Dose(site, bound, 2 * self.last.coded_numbers / len(self.group_of) / nbytes, nbytes, damage))
            if not damage <= 1:
                break
        if not found[0].damage <= 1:
            raise WorkbenchError(
                f"a divergence of {self.limit:g} must allow the step {found[0].bound.eb:g} of {site}; its damage there is "
                f"{found[0].damage:.3g} of it: allow more"
            )
        return tuple(found)

    def together(self, bounds: Mapping[str, Absolute], only: str | None = None) -> tuple[float, int]:
        """The divergence in units of the limit, and the bytes of all sites, or of `only` one."""
        steps: dict[str, Any] = {
            kind: [
                bounds[site].eb if (site := f"{kind} {group + 1}") in bounds else NEARLY_EXACT for group in self.group_of
            ]
            for kind in FIRST
        }
        self.last = KVCache(steps["keys"], steps["values"])
        change = float(relative_entropies(self.exact, self.run(self.last)).mean())
        return change / self.limit, self._bytes(only)

    def _bytes(self, only: str | None) -> int:
        total = 0
        for layer, group in enumerate(self.group_of):
            coded = self.last.coded(layer)
            if not isinstance(coded, StreamLayer):
                raise WorkbenchError("a budget needs a text that fills blocks: give a longer one, or more tokens")
            for place, kind in enumerate(FIRST):
                if only is None or only == f"{kind} {group + 1}":
                    total += sum(map(len, coded.blocks[place::2]))
        return total
