"""Statistics of an archived field, each with an interval that contains the figure of the original data.

A codec with exact statistics of its blocks (`staged`) answers from these; of others, chunks are decoded one by one, and
their sums are kept. What the limit of the archive implies follows in `sums.py`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive import region as regions
from workbench.archive.certificate import Promise
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.archive.statistics import sums
from workbench.archive.statistics.chunk_parts import limit_at
from workbench.archive.statistics.figure import METADATA, OPERATORS, SOME, VALUES, Explanation, Statistic, interval
from workbench.archive.statistics.selection import part_of_grid
from workbench.archive.statistics.staged_sums import Partial, from_blocks
from workbench.archive.statistics.sums import Ends, Sums
from workbench.codecs.staged import Staged
from workbench.errors import WorkbenchError, briefly
from workbench.progress import Progress
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, InProcess, OnDask
from workbench.slabs import Slices
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

    >>> import workbench as wb
    >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
    >>> [str(found) for found in statistics(archive, ["mean", "max"])]
    ['0.50000 ± 0.00101', '1.00000 ± 0.00101']
    """
    _require_known(names)
    slices = part_of_grid(archive, region)
    partials = _partials(archive, slices, executor)
    parts = [one for partial in partials for one in partial.sums]
    stage = _stage(partials)
    nbytes, count = sum(partial.nbytes for partial in partials), sum(part.count for part in parts)
    missing = sum(partial.missing for partial in partials)
    found = []
    for name in names:
        value, bound = interval(name, KNOWN[name](parts))
        found.append(Statistic(name, value, bound, stage, nbytes, bytes_stored(archive), count, missing))
    return found


def error_norm(archive: Archive) -> Fraction:
    """At least the root of the sum of the squared differences between the decoded and the original field."""
    partials = _partials(archive, part_of_grid(archive, None))
    return sums.roots(sum((one.moved_squares for partial in partials for one in partial.sums), Fraction(0)))[1]


def explain(archive: Archive, name: str, region: Any = None) -> Explanation:
    """How a statistic is answered. Values are not decoded for this, but what stands beside blocks is read."""
    _require_known([name], OPERATORS)
    slices = part_of_grid(archive, region)
    if isinstance(archive.codec, Staged):
        found = statistic(archive, name, region)
        return Explanation(name, found.stage, found.bytes_read, found.bytes_stored, found.bound)
    arrays = [archive.data, *([archive.arrays["mask"]] if "mask" in archive.arrays else [])]
    nbytes = sum(one.chunk_nbytes(index) for one in arrays for index in regions.chunks_in(one.layout, slices))
    promise = archive.certificate[archive.data.layout.name]
    limits = {limit_at(promise, archive.data, index) for index in regions.chunks_in(archive.data.layout, slices)}
    bound: float | None = None
    if name != "sum" and len(limits) == 1:
        limit = next(iter(limits))
        bound = 0.0 if limit is None else None if limit.relative and limit.value else limit.value
    return Explanation(name, VALUES, nbytes, bytes_stored(archive), bound)


def _require_known(names: Sequence[str], others: tuple[str, ...] = ()) -> None:
    for name in names:
        if name not in KNOWN:
            raise WorkbenchError(f"no statistic is called {briefly(name)}; available: {', '.join([*KNOWN, *others])}")


def bytes_stored(archive: Archive) -> int:
    """The bytes of all chunks of the values and of their mask."""
    return archive.data.nbytes + (archive.arrays["mask"].nbytes if "mask" in archive.arrays else 0)


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


@dataclass(frozen=True)
class _Region:
    """What the steps on all chunks of a part of the grid need."""

    stored: StoredArray
    mask: StoredArray | None
    promise: Promise   # read once
    slices: Slices


def _partials(archive: Archive, slices: Slices, executor: Executor | None = None) -> list[Partial]:
    """The sums of all chunks in a part of the grid; several at once, but only their sums are kept."""
    stored = archive.data
    region = _Region(stored, archive.arrays.get("mask"), archive.certificate[stored.layout.name], slices)
    alone = stored.decoder.holds_gil or isinstance(stored.codec, Staged)   # metadata are sooner read than threads begin
    indices = regions.chunks_in(stored.layout, slices)
    return (executor or InProcess()).map("add-chunks", _partial, indices, "chunk", shared=region, together=not alone)


def _partial(region: _Region, index: Index) -> Partial:
    """The sums of a chunk in the region."""
    stored, mask = region.stored, region.mask
    part, limit = regions.inside_chunk(stored.layout, index, region.slices), limit_at(region.promise, stored, index)
    hidden = None if mask is None else functools.cache(functools.partial(mask.chunk, index))
    known = from_blocks(stored, index, part, limit, hidden)
    if known is None:
        values = regions.chunk_part(stored, index, part)
        valid = np.isfinite(values) if hidden is None else np.isfinite(values) & ~hidden()[part]
        kept = values if valid.all() else values[valid]
        sums_of = (Sums.of(kept, limit),) if kept.size else ()
        known = Partial(sums_of, values.size - kept.size, stored.chunk_nbytes(index), values.size)
    if mask is None or hidden is None or not hidden.cache_info().currsize:
        return known
    return dataclasses.replace(known, nbytes=known.nbytes + mask.chunk_nbytes(index))


def _stage(partials: list[Partial]) -> str:
    if not any(partial.blocks for partial in partials):
        return VALUES
    return SOME if any(partial.decoded for partial in partials) else METADATA
