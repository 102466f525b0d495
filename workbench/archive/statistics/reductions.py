"""Statistics of an archived field, each with an interval that contains the figure of the original data.

A codec with exact statistics of its blocks (`staged`) answers from these; of others, chunks are decoded one by one, and
their sums are kept. What the limit of the archive implies follows in `sums.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.archive.statistics import sums
from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart
from workbench.archive.statistics.figure import Statistic
from workbench.archive.statistics.selection import part_of_grid
from workbench.archive.statistics.sums import Ends, Sums
from workbench.errors import WorkbenchError, briefly
from workbench.run.executors import Executor

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

KNOWN: dict[str, Callable[[list[Sums]], Ends]] = {
    "mean": sums.mean, "sum": sums.total, "std": sums.deviation, "min": sums.least, "max": sums.largest,
}


def statistic(archive: Archive, name: str, region: Any = None) -> Statistic:
    """A statistic of the field of an archive, or of a region of it."""
    return statistics(archive, [name], region)[0]


def statistics(
    archive: Archive, names: Sequence[str], region: Any = None, executor: Executor | None = None
) -> list[Statistic]:
    """Several statistics, from one pass over what they need; in this process, unless an executor is given.

    >>> import numpy as np, workbench as wb
    >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
    >>> [str(figure) for figure in statistics(archive, ["mean", "max"])]
    ['0.50037 ± 0.00101', '0.99960 ± 0.00101']
    """
    require_known(names)
    field = FieldPart(archive, part_of_grid(archive, region), executor)
    parts = _sums(field)
    count = sum(part.count for part in parts)
    return [field.statistic(name, KNOWN[name](parts), count) for name in names]


def require_known(names: Sequence[str]) -> None:
    """Refuse what is no list of names of statistics."""
    if not isinstance(names, list | tuple):
        raise WorkbenchError(f"names must be a list of some of {', '.join(KNOWN)}; got {briefly(names)}")
    for name in names:
        if not isinstance(name, str) or name not in KNOWN:
            raise WorkbenchError(f"no statistic is called {briefly(name)}; available: {', '.join(KNOWN)}")


def error_norm(archive: Archive) -> Fraction:
    """At least the root of the sum of the squared differences between the decoded and the original field."""
    parts = _sums(FieldPart(archive, part_of_grid(archive, None)))
    return sums.roots(sum((part.moved_squares for part in parts), Fraction(0)))[1]


def _sums(field: FieldPart) -> list[Sums]:
    """The sums of all chunks; of several at once, but only their sums are kept."""
    return [part for several in field.each(ChunkPart.sums) for part in several]
