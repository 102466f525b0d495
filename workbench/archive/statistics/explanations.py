"""How statistics beyond plain sums are answered: `Archive.explain` for all of them.

What a chunk of the codec `staged` must decode depends on the extremes of its blocks and on the question, so for these
archives the question is answered, and its figures are stated. Of others, every chunk of the region is decoded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from workbench.archive.statistics.along_axes import reduced
from workbench.archive.statistics.block_means import Sides, block_means
from workbench.archive.statistics.chunk_parts import FieldPart
from workbench.archive.statistics.distributions import histogram, median, quantiles
from workbench.archive.statistics.figure import VALUES, Explanation
from workbench.archive.statistics.operators import OPERATIONS, explain_operator
from workbench.archive.statistics.products import dot, norm
from workbench.archive.statistics.reductions import KNOWN
from workbench.archive.statistics.selection import part_of_grid
from workbench.archive.statistics.value_counts import count_between
from workbench.archive.statistics.weights import WEIGHTED
from workbench.codecs.staged import Staged
from workbench.errors import WorkbenchError, briefly

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


def _reduction(name: str) -> Callable[..., Any]:
    def weighted(archive: Archive, region: Any, axis: Any = None, weights: Any = None) -> Any:
        return reduced(archive, name, region, axis, weights)

    def plain(archive: Archive, region: Any, axis: Any = None) -> Any:
        return reduced(archive, name, region, axis)

    return weighted if name in WEIGHTED else plain


def _quantile(archive: Archive, region: Any, q: Any = 0.5) -> Any:
    several = quantiles(archive, q, region)
    return several[0] if isinstance(several, list) else several


def _count(archive: Archive, region: Any, above: float | None = None, below: float | None = None) -> Any:
    return count_between(FieldPart(archive, part_of_grid(archive, region)), above, below)


def _histogram(archive: Archive, region: Any, bins: Any = 10, range: tuple[float, float] | None = None) -> Any:
    return histogram(archive, bins, range, region)


def _block_means(archive: Archive, region: Any, sides: Sides = None) -> Any:
    return block_means(archive, sides)


def _norm(archive: Archive, region: Any, order: float = 2) -> Any:
    return norm(archive, order, region)


def _dot(archive: Archive, region: Any, other: Archive) -> Any:
    return dot(archive, other, region)


ANSWERS: dict[str, Callable[..., Any]] = {
    **{name: _reduction(name) for name in KNOWN}, "quantile": _quantile, "median": median, "count": _count,
    "histogram": _histogram, "norm": _norm, "dot": _dot, "block_means": _block_means,
}
OF_THE_WHOLE = ("block_means",)   # no region
AS_THE_VALUES = ("mean", "std", "min", "max", "quantile", "median", "block_means")   # these move no more than the values do


def explained(archive: Archive, name: str, region: Any = None, **options: Any) -> Explanation:
    """How a statistic is answered; options are those of its method, and others are refused.

    >>> import numpy as np, workbench as wb
    >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "prequantised")
    >>> print(explained(archive, "quantile", q=0.9))
    quantile: from values; reads ... of ... bytes; bound 0.001
    """
    if not isinstance(name, str) or name not in {*ANSWERS, *OPERATIONS}:
        raise WorkbenchError(f"no statistic is called {briefly(name)}; available: {', '.join([*ANSWERS, *OPERATIONS])}")
    if name in OPERATIONS:
        _require_options(name, ("axis",) if name == "derivative" else (), options)
        return explain_operator(archive, name, options.get("axis", 0) if name == "derivative" else None, region)
    _require_options(name, list(inspect.signature(ANSWERS[name]).parameters)[2:], options, region)
    if name == "dot" and "other" not in options:
        raise WorkbenchError('explain("dot") needs other=, the archive of the second field')
    field = FieldPart(archive, part_of_grid(archive, region))
    if isinstance(archive.codec, Staged):
        answer = ANSWERS[name](archive, region, **options)
        bound = answer.bound if isinstance(getattr(answer, "bound", None), float) else None
        return Explanation(name, bound, answer.stage, answer.bytes_read, answer.bytes_stored)
    same, limit = field.limit_of_all
    known = same and name in AS_THE_VALUES and not (limit is not None and limit.relative)
    bound = (limit.value if limit else 0.0) if known else None
    return Explanation(name, bound, VALUES, field.nbytes_of_chunks, field.nbytes_stored)


def _require_options(name: str, takes: Collection[str], options: Mapping[str, Any], region: Any = None) -> None:
    """Refuse options that the method of this name does not take."""
    given = [*options, *(["region"] if region is not None and name in OF_THE_WHOLE else [])]
    if unknown := [option for option in given if option not in takes]:
        available = ", ".join(f"{each}=" for each in takes) or "none"
        raise WorkbenchError(f"{name} takes no {unknown[0]}=; its options are: {available}")
