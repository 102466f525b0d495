"""Several statistics of an archive in one call, read in this process or by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics.along_axes import several_along_axes
from workbench.archive.statistics.distributions import histogram, quantiles
from workbench.archive.statistics.figure import FieldStatistic, Statistic
from workbench.archive.statistics.reductions import require_known, statistics
from workbench.archive.statistics.value_counts import Histogram
from workbench.errors import WorkbenchError
from workbench.progress import Progress
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, InProcess, OnDask
from workbench.subdomains.sources import scratch_folder

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

Answers = dict[str, Statistic | FieldStatistic | Histogram]


@contextmanager
def readers(
    archives: Sequence[Archive], client: Any, scratch: str | Path | None, progress: Progress | None
) -> Iterator[Executor]:
    """Who reads chunks of archives: this process, or the workers of a client, which must see the archives."""
    executor = executor_of(client, progress)
    if isinstance(executor, InProcess):
        yield executor
        return
    if isinstance(executor, OnDask) and any(one.store.in_memory for one in archives):
        raise WorkbenchError("workers read an archive from a file system that all see: save it first, and open its path")
    with scratch_folder(scratch, executor) as folder:
        yield executor.within(folder)


def several(
    archive: Archive, names: Sequence[str], region: Any, axis: Any, shares: Any, bins: Any, executor: Executor
) -> Answers:
    """Statistics by name, over all values or along axes; of all values also quantiles and a histogram."""
    require_known(names)
    if axis is not None:
        if shares is not None or bins is not None:
            raise WorkbenchError("quantiles= and bins= are of all values; got axis=, too: leave one out")
        return {one.name: one for one in several_along_axes(archive, names, axis, region, executor=executor)}
    answers: Answers = {one.name: one for one in statistics(archive, names, region, executor)} if names else {}
    if shares is not None:
        asked = list(shares) if np.ndim(shares) else [shares]
        answers |= {one.name: one for one in quantiles(archive, asked, region, executor)}   # type: ignore[union-attr]
    if bins is not None:
        answers["histogram"] = histogram(archive, bins, None, region, executor)
    return answers
