"""Statistics of an archived field, each with an interval that contains the figure of the original data.

A codec with exact statistics of its blocks (`staged`) answers from these; of others, chunks are decoded one by one, and
their sums are kept. What the limit of the archive implies follows in `sums.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.archive.statistics import sums
from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart
from workbench.archive.statistics.figure import Statistic
from workbench.archive.statistics.selection import part_of_grid
from workbench.archive.statistics.sums import Ends, Sums
from workbench.errors import WorkbenchError, briefly
from workbench.progress import Progress
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, InProcess, OnDask
from workbench.subdomains.sources import scratch_folder

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
    ['0.50000 ± 0.00101', '1.00000 ± 0.00101']
    """
    if not isinstance(names, list | tuple):
        raise WorkbenchError(f"names must be a list of some of {', '.join(KNOWN)}; got {briefly(names)}")
    for name in names:
        if not isinstance(name, str) or name not in KNOWN:
            raise WorkbenchError(f"no statistic is called {briefly(name)}; available: {', '.join(KNOWN)}")
    field = FieldPart(archive, part_of_grid(archive, region))
    parts = _sums(field, executor)
    count = sum(part.count for part in parts)
    return [field.statistic(name, KNOWN[name](parts), count) for name in names]


def error_norm(archive: Archive) -> Fraction:
    """At least the root of the sum of the squared differences between the decoded and the original field."""
    parts = _sums(FieldPart(archive, part_of_grid(archive, None)))
    return sums.roots(sum((part.moved_squares for part in parts), Fraction(0)))[1]


def _sums(field: FieldPart, executor: Executor | None = None) -> list[Sums]:
    """The sums of all chunks; of several at once, but only their sums are kept."""
    return [part for several in field.each(ChunkPart.sums, executor or InProcess()) for part in several]


def on_workers(
    archive: Archive, names: Sequence[str], region: Any, client: Any, scratch: str | Path | None,
    progress: Progress | None,
) -> dict[str, Statistic]:
    """Several statistics by name, whose chunks are read in this process or on the workers of a client."""
    executor = executor_of(client, progress)
    if isinstance(executor, OnDask) and archive.store.in_memory:
        raise WorkbenchError("workers read an archive from a file system that all see: save it first, and open its path")
    with scratch_folder(scratch, executor) as folder:
        several = statistics(archive, names, region, executor.within(folder))
    return {one.name: one for one in several}
