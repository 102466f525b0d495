"""The caches of keys and values that the panel compares on its text, and the code that does the same."""

from __future__ import annotations

from workbench.lab.jobs import Job
from workbench.lab.language_panel.state import LanguageState
from workbench.propagation import CacheComparison, KVCache, Run, baseline_cache, compare_caches
from workbench.propagation.language import LanguageModel

PUBLISHED = ("kivi", "kvcomp", "packkv", "turboquant")
FEWEST = 34   # tokens of a text: a block, as many predictions, and the last token
LONG = 384    # tokens from which blocks are as large as by default, and the latest tokens stay exact


def sizes(tokens: int) -> dict[str, int]:
    """The sizes of blocks and of what stays exact, so that a short text has coded tokens, too."""
    return {} if tokens >= LONG else {"recent": 0, "block": 16}


def compared(model: LanguageModel, run: Run, state: LanguageState, job: Job) -> CacheComparison:
    """The user's cache and the published ones, after a prompt of half the text."""
    tokens = len(run["tokens"])
    given = sizes(tokens)
    caches = [KVCache(state.scores, state.values, **given), *(baseline_cache(name, **given) for name in PUBLISHED)]
    return compare_caches(model, run["tokens"], caches, prompt=tokens // 2, tokens=tokens - tokens // 2 - 1, progress=job)


def code(state: LanguageState, model: str, text: str, tokens: int) -> list[str]:
    """The same as lines of Python."""
    given = "".join(f", {name}={size}" for name, size in sizes(tokens).items())
    return [
        f"caches = [wb.propagation.KVCache({state.scores!r}, {state.values!r}{given})]",
        f"caches += [wb.propagation.baseline_cache(name{given}) for name in {PUBLISHED!r}]",
        f"comparison = wb.propagation.compare_caches({model}, {text}, caches, prompt={tokens // 2}, "
        f"tokens={tokens - tokens // 2 - 1})",
    ]
