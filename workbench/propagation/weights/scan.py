"""`wb.propagation.sensitivity`: the loss and the bytes of each group of tensors at each bound, all of them measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.arguments import function, positive
from workbench.codecs import Codec
from workbench.errors import WorkbenchError, briefly
from workbench.progress import Progress
from workbench.propagation.language.model import LanguageModel
from workbench.propagation.weights.bounding import codec_of, scale_of
from workbench.propagation.weights.groups import chosen_names, groups_of
from workbench.propagation.weights.pruning import pruned_tensors
from workbench.propagation.weights.quality import KL, measure_of
from workbench.propagation.weights.sensitivity import Scanned, Sensitivity
from workbench.propagation.weights.sources import Tensors

USUAL = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)   # bounds, in units of the root mean square
LITTLE = 0.01   # of a loss: the quality of the original must be 0 beside it


def sensitivity(
    tensors: Any,
    quality: Any,
    bounds: Sequence[float] = USUAL,
    codec: str | Codec = "auto",
    groups: str | Mapping[str, str | Sequence[str]] | None = None,
    *,
    exact: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """How much worse a model becomes when each of its tensors alone is kept within each bound, and what that takes.

    The arguments are those of `wb.compress_model`, which chooses bounds by such a table. `within(budget)` of the result is
    that choice, before it is measured.

    >>> weights = {"first": np.eye(4), "second": np.ones((4, 4))}
    >>> def error(tensors):
    ...     return float(sum(abs(tensors[name] - each).max() for name, each in weights.items()))
    >>> sensitivity(weights, error, [0.1, 0.2])
    Sensitivity(2 groups x 3 bounds; most sensitive: first)
    """
    function("progress", progress)
    scanned = prepared(Tensors.of(tensors), quality, LITTLE, codec_of(codec), None, groups, exact)
    return scanned.scan(listed_bounds(bounds), math.inf, progress or (lambda share, what: None))


def prepared(
    given: Tensors, quality: Any, budget: float, codec: Codec, prune: Any, groups: Any, exact: Sequence[str] | None
) -> Scanned:
    """The tensors in their groups, with what measures them; what a call asks for is checked."""
    of_language = isinstance(quality, KL) and isinstance(quality.model, LanguageModel)
    vectors = [name for name, each in given.arrays.items() if each.ndim < 2]
    kept = chosen_names("exact", vectors if of_language and exact is None else exact or (), given.arrays)
    bounded = {name: each for name, each in given.arrays.items() if name not in kept and scale_of(each) > 0}
    if not bounded:
        raise WorkbenchError("a model must have tensors of floating-point numbers that may change; got none")
    grouped = groups_of("layers" if of_language and groups is None else groups, bounded, given.arrays)
    pruned = pruned_tensors(given.arrays, prune, codec)
    measure = measure_of(quality, given, budget)
    start = measure.changed(pruned, "the pruned tensors") if pruned else 0.0
    if start >= budget:
        raise WorkbenchError(
            f"pruning alone must leave some of the budget, {budget:.3g}; it loses {start:.3g}: prune less, or train "
            "after it"
        )
    return Scanned({**given.arrays, **pruned}, pruned, grouped, codec, measure, start)


def listed_bounds(bounds: Any) -> list[float]:
    """Bounds that are given, from the smallest on."""
    listed = list(bounds) if isinstance(bounds, Sequence | np.ndarray) and not isinstance(bounds, str) else []
    if not listed:
        raise WorkbenchError(
            f"bounds must be a list of shares of the root mean square, such as [0.05, 0.1]; got {briefly(bounds)}"
        )
    return sorted({positive("a bound", each) for each in listed})
