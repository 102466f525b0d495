"""The caches of keys and values that the panel compares on its text, and the code that does the same."""

from __future__ import annotations

from workbench.lab.jobs import Job
from workbench.lab.language_panel.state import LanguageState
from workbench.propagation import CacheComparison, KVCache, LanguageModel, Run, baseline_cache, compare_caches

PUBLISHED = ("kivi", "kvcomp", "packkv", "turboquant")
FEWEST = 34   # tokens of a text: a block, as many predictions, and the last token
LONG = 384    # tokens from which blocks are as large as by default, and the latest tokens stay exact


def sizes(tokens: int) -> tuple[int, int]:
    """How many of the latest tokens stay exact, and the tokens of a block: so that a short text has coded ones, too."""
    return (64, 64) if tokens >= LONG else (0, 16)


def compared(model: LanguageModel, run: Run, state: LanguageState, job: Job) -> CacheComparison:
    """The user's cache and the published ones, after a prompt of half the text."""
    tokens = len(run["tokens"])
    recent, block = sizes(tokens)
    caches = [
        KVCache(state.score_step, state.value_step, recent, block),
        *(baseline_cache(name, recent=recent, block=block) for name in PUBLISHED),
    ]
    return compare_caches(model, run["tokens"], caches, prompt=tokens // 2, tokens=tokens - tokens // 2 - 1, progress=job)


def code(state: LanguageState, model: str, text: str, tokens: int) -> list[str]:
    """The same as lines of Python."""
    recent, block = sizes(tokens)
    given = f"recent={recent}, block={block}"
    return [
        f"caches = [wb.propagation.KVCache({state.score_step!r}, {state.value_step!r}, {given})]",
        f"caches += [wb.propagation.baseline_cache(name, {given}) for name in {PUBLISHED!r}]",
        f"comparison = wb.propagation.compare_caches({model}, {text}, caches, prompt={tokens // 2}, "
        f"tokens={tokens - tokens // 2 - 1})",
    ]
