"""The values of an array at earlier steps of a series, decoded from the archives of these steps.

Codecs that predict in time begin from them (`Codec.following`). An array that was predicted says so in its configuration;
its chunks are decoded after those of earlier steps that have the same points of a grid, or the same particles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive.archive import IDS, Archive
from workbench.archive.chunk import CHECKSUMS
from workbench.archive.decoded_chunks import ChunksOfMember
from workbench.archive.encoding import Task
from workbench.archive.frame import Damaged
from workbench.archive.layout import EARLIER, ArrayLayout
from workbench.archive.reading import DamagedBefore, StoredArray
from workbench.archive.region import chunks_in, common
from workbench.archive.series.order import order_of, ordered
from workbench.codecs import Codec
from workbench.codecs.earlier import Earlier
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles, joined
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.ordering import stored_index
from workbench.slabs import Slices

SERIES = "series"   # the attribute of an archive that is a step of a series
RATES = {"positions": "velocities"}   # arrays whose time derivatives another array may be


@dataclass(frozen=True, eq=False)
class EarlierValues:
    """An array at one or two earlier steps, the latest first; `at` returns what a codec needs for a part of it.

    `rows` say for each of them where the rows of this step were then, -1 for none; None where all rows are where they were.
    """

    arrays: tuple[StoredArray, ...]
    times: tuple[float, ...]
    rows: tuple[np.ndarray | None, ...]
    rates: StoredArray | None = None

    @property
    def latest(self) -> EarlierValues:
        """The array one step before, alone."""
        return EarlierValues(self.arrays[:1], self.times[:2], self.rows[:1])

    def at(self, place: Slices) -> Earlier:
        """The values of a part of the array at the earlier steps."""
        pairs = list(zip(self.arrays, self.rows, strict=True))
        values = tuple(_read(stored, place, rows) for stored, rows in pairs)
        rates = None if self.rates is None else _read(self.rates, place, self.rows[0])
        return Earlier(values, self.times, rates)


@dataclass(frozen=True, eq=False)
class EarlierSteps:
    """What an archive needs to know of the series that it is a step of: the archives of earlier steps, the latest first.

    `times` are that of the step, then those of the archives; a step that needs no others has none. `about` is what the
    archive states of the series; `indexes` are arrays that it keeps beside its data; `kept` are chunks that were decoded.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    times: tuple[float, ...] = ()
    archives: tuple[Archive, ...] = ()
    rows: tuple[np.ndarray | None, ...] = ()
    indexes: Mapping[str, np.ndarray] = field(default_factory=dict)
    kept: ChunksOfMember | None = None
    ids: StoredArray | None = None   # of the particles, where another step stores them

    def before(self, layout: ArrayLayout) -> EarlierValues | None:
        """The array of this layout at the earlier steps that have it; None where none has."""
        found = []
        for archive in self.archives:
            stored = archive.arrays.get(layout.name)
            if stored is None or not _alike(stored.layout, layout, bool(self.rows)):
                break
            found.append(stored)
        if not found:
            return None
        count = len(found)
        rows = self.rows[:count] or (None,) * count
        return EarlierValues(tuple(found), self.times[: count + 1], rows, self._rates(layout))

    def _rates(self, layout: ArrayLayout) -> StoredArray | None:
        stored = self.archives[0].arrays.get(RATES.get(layout.name, ""))
        fits = stored is not None and stored.layout.dtype.kind == "f" and stored.layout.shape[1:] == layout.shape[1:]
        return stored if fits else None

    def task(self, task: Task, may_stay: bool = False) -> Task:
        """The task of an array that is predicted from earlier steps, if its codec and its limit allow that.

        One that is kept exactly, and `may_stay` as it was, takes no bytes in chunks where nothing has changed.
        """
        task = dataclasses.replace(task, kept=self.kept)
        stays = may_stay and task.limit.value == 0 and task.slices is None and not task.codec.bare
        before = self.before(task.layout) if stays or in_time(task.codec, task.limit, task.layout.dtype) else None
        if before is not None and stays:
            before = before.latest
        if before is None:
            return task
        configuration = {**task.layout.configuration, EARLIER: len(before.arrays)}
        return dataclasses.replace(
            task, layout=dataclasses.replace(task.layout, configuration=configuration), earlier=before
        )

    def sample(self, name: str, shape: tuple[int, ...], dtype: np.dtype, place: Slices) -> Earlier | None:
        """The earlier values of a part of a field, on which codecs are tried; None where shape or type differ."""
        stored = self.archives[0].arrays.get(name) if self.archives else None
        if stored is None or (stored.layout.shape, stored.layout.dtype) != (shape, dtype):
            return None
        before = self.before(stored.layout)
        return None if before is None else before.at(place)

    def in_order(self, archive: Archive, original: Any) -> Any:
        """An original in the order of the series, in which particles are found by their ids."""
        if archive.reordered or not isinstance(original, Particles | ChunkedParticles):
            return original
        if isinstance(original, ChunkedParticles) and (IDS not in archive.arrays or IDS not in original.columns):
            return original
        particles: Particles = joined(original)
        return ordered(particles, _order_in(archive, particles))

    def permutation(self, archive: Archive, original: Any) -> np.ndarray:
        """The index of each particle of a step in its original, which may be in another order."""
        particles = joined(original)
        if not isinstance(particles, Particles):
            raise WorkbenchError(f"the original of a step of particles must be particles; got {original!r}")
        order, count = _order_in(archive, particles), len(archive)
        return np.arange(count, dtype=stored_index(count)) if order is None else order.astype(stored_index(count))

    def token(self) -> Any:
        """What tells this step from others: a run that was killed goes on only with the same earlier steps."""
        stated = [stored.layout.attributes.get(CHECKSUMS) for one in self.archives for stored in one.arrays.values()]
        return [dict(self.about), list(self.times), stated]


def in_time(codec: Codec, limit: Limit, dtype: np.dtype) -> bool:
    """Whether a codec predicts values within this limit from earlier ones: those relative to each value are logarithms."""
    return codec.predicts_in_time and dtype.kind == "f" and limit.value > 0 and (codec.relative or not limit.relative)


def _order_in(archive: Archive, original: Particles) -> np.ndarray | None:
    """The place of each particle of a step in its original; None where both have one order, or no ids."""
    ids = archive.arrays.get(IDS)
    return None if ids is None or original.ids is None else order_of(ids.values(), original.ids)


def _alike(earlier: ArrayLayout, layout: ArrayLayout, rows: bool) -> bool:
    first = 1 if rows else 0
    return earlier.dtype == layout.dtype and earlier.shape[first:] == layout.shape[first:]


def _read(stored: StoredArray, place: Slices, rows: np.ndarray | None) -> np.ndarray:
    """The values of a part of an array, from chunks that are kept decoded."""
    if rows is None:
        return backend.read_only(_part(stored, place))
    wanted = rows[place[0]]
    there = wanted[wanted >= 0]
    found = np.full((len(wanted), *stored.layout.shape[1:]), np.nan, stored.layout.dtype)
    if len(there):
        begin, end = int(there.min()), int(there.max()) + 1
        found[wanted >= 0] = _part(stored, (slice(begin, end), *place[1:]))[there - begin]
    return backend.read_only(found)


def _part(stored: StoredArray, place: Slices) -> np.ndarray:
    """The values of a part of an array; of the only chunk that holds it, a view where that is contiguous."""
    layout, indices = stored.layout, chunks_in(stored.layout, place)
    try:
        if len(indices) == 1:
            return np.ascontiguousarray(stored.kept_chunk(indices[0])[common(place, layout.chunk_slices(indices[0]))[1]])
        part = np.empty([one.stop - one.start for one in place], layout.dtype)
        for index in indices:
            into, out_of = common(place, layout.chunk_slices(index))
            part[into] = stored.kept_chunk(index)[out_of]
    except DamagedBefore:
        raise
    except Damaged as damage:
        reason = f"it was predicted from {damage.where} of {stored.store.name}, which is damaged: {damage.reason}"
        raise DamagedBefore(damage.where, reason) from damage
    return part


def rows_before(count: int, vanished: np.ndarray, earlier: int) -> np.ndarray:
    """Where each of `count` rows was one step before, when there were `earlier`: those that stay keep their order.

    >>> rows_before(4, np.array([1]), 3).tolist()
    [0, 2, -1, -1]
    """
    stayed = np.ones(earlier, bool)
    stayed[vanished] = False
    found = np.full(count, -1, stored_index(max(count, earlier)))   # opened steps keep these
    found[: earlier - len(vanished)] = np.flatnonzero(stayed)
    return found


def composed(rows: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Where rows were several steps before, from where they were after each of these, the latest first.

    >>> composed([np.array([0, 2, -1]), np.array([1, 0, 3])]).tolist()
    [1, 3, -1]
    """
    found: np.ndarray | None = None
    for one in rows:
        if one is None:
            continue
        found = one if found is None else np.where(found >= 0, one[found], -1)
    return found
