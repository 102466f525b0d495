"""`wb.distributed.verify`: an archive decoded and checked chunk by chunk, by workers.

It is the check of `Archive.verify`: every chunk against its checksum and, if the original is given, every position against
its bound; and the groups of the decoded and of the original particles, found by the distributed search and compared by
their fingerprints. No process holds more than a chunk or a subdomain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.archive import verify as verification
from workbench.archive.certificate import Promise
from workbench.archive.contents import curve_from
from workbench.archive.encoding import Slices
from workbench.archive.frame import Damaged
from workbench.archive.layout import ArrayLayout
from workbench.archive.particles_in_parts import Rows
from workbench.archive.reading import Index, StoredArray
from workbench.archive.store import MemoryStore
from workbench.archive.verify import Inspected, Original
from workbench.clusters.keep import KeepClusters
from workbench.clusters.keep.partition import fingerprint_of
from workbench.clusters.keep.statement import require_certified, require_same_lengths, require_same_original, stated
from workbench.data.chunked import ChunkedParticles
from workbench.data.outline import Outline
from workbench.errors import WorkbenchError
from workbench.guarantees.enforce import decoded_permutation
from workbench.guarantees.guarantee import required
from workbench.metrics.report import Report
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, OnDask, Progress
from workbench.subdomains.curve_order import SortedRows, sort_along
from workbench.subdomains.decomposition import Decomposition, WithGhosts
from workbench.subdomains.fof import Labels, find_groups
from workbench.subdomains.groups import DistributedGroups
from workbench.subdomains.plan import chosen_parts
from workbench.subdomains.sources import Given, chunked, outline_of, sample_of, scratch_folder, surveyed


def verify(
    archive: Archive | str | Path,
    source: Given | None = None,
    client: Any = None,
    *,
    parts: int | None = None,
    scratch: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Decode an archive and check it, chunk by chunk on a Dask cluster; `source` are the original particles.

    Raises `wb.GuaranteeBroken` with the reason when the promise does not hold. Without the original, the bound itself
    cannot be checked. Of the original, positions are compared; velocities and ids are checked against their checksums.
    `parts` is the number of subdomains for the search of groups. `progress` is called with the completed share of each step
    and its name.

    >>> import tempfile
    >>> import workbench as wb
    >>> folder = tempfile.TemporaryDirectory()
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> path = wb.compress(snapshot, wb.Absolute(0.01), keep=wb.KeepClusters(0.2)).save(f"{folder.name}/snapshot.zarr")
    >>> verify(path, snapshot, parts=3).passed
    True
    >>> folder.cleanup()
    """
    opened = archive if isinstance(archive, Archive) else Archive.open(archive)
    wanted = chosen_parts(parts, len(opened))
    executor = executor_of(client, progress, source)
    if isinstance(executor, OnDask) and isinstance(opened.store, MemoryStore):
        raise WorkbenchError("workers read an archive from a file system that all see: save it first, and give its path")
    with scratch_folder(scratch, executor) as folder:
        found = None if source is None else _original(opened, chunked(source, executor, folder), executor, folder)
        return _Check(opened, found, executor, folder, wanted).report()


@dataclass(frozen=True, eq=False)
class InOrder(ChunkedParticles):
    """The original particles in the order of the archive, in its chunks."""

    layout: ArrayLayout
    rows: Callable[[Slices], np.ndarray]
    box: tuple[float, ...] | None
    name: str = "the original in the order of the archive"

    @property
    def sizes(self) -> tuple[int, ...]:   # type: ignore[override]
        """The particles in each chunk."""
        return tuple(self.layout.chunk_extent(index)[0] for index in self.layout.chunk_indices())

    @property
    def dtype(self) -> np.dtype:   # type: ignore[override]
        """The type of the positions."""
        return self.layout.dtype

    @property
    def dimensions(self) -> int:   # type: ignore[override]
        """2 or 3."""
        return self.layout.shape[1]

    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk."""
        return np.asarray(self.rows(self.layout.chunk_slices((number, 0))))


@dataclass(frozen=True)
class Chunk:
    """The positions of an archive as chunks of particles."""

    stored: StoredArray

    def __call__(self, slices: Slices) -> np.ndarray:
        """The decoded positions at the places of a chunk."""
        return self.stored.chunk((slices[0].start // self.stored.layout.chunk_shape[0], 0))


@dataclass(frozen=True, eq=False)
class _Given:
    """The original: in its own order, and in that of the archive."""

    outline: Outline
    rows: InOrder


@dataclass(frozen=True, eq=False)
class _Check:
    """One call of `verify`, with all that it needs."""

    archive: Archive
    original: _Given | None
    executor: Executor
    folder: Path
    parts: int

    def report(self) -> Report:
        """The outcome of all checks."""
        archive, certificate = self.archive, self.archive.certificate
        found = {name: self._inspected(name, stored) for name, stored in archive.arrays.items()}
        damage = [*archive.damaged_documents(), *(damaged for one in found.values() for damaged in one.damage)]
        verification.require_undamaged(damage, archive.arrays)
        # An array's values are compared chunk by chunk above; only the names of the arrays matter here.
        originals = {} if self.original is None else {"positions": Original(np.empty(0))}
        outcome = verification.outcome(certificate, found, originals)
        kept: dict[str, dict[str, Any]] = {}
        if archive.kind == "particles":
            for number, promised in enumerate(certificate["positions"].keep):
                if required(promised.get("kind")) is not KeepClusters:
                    raise WorkbenchError(f"{promised['kind']} needs all particles together: archive.verify(original)")
                kept[KeepClusters.kind] = self._groups(number, promised)
        return verification.report(outcome, originals, kept, certificate)

    def _inspected(self, name: str, stored: StoredArray) -> Inspected:
        """The findings of one pass over the chunks of an array."""
        original = self.original.rows if self.original is not None and name == "positions" else None
        promise = None if original is None else self.archive.certificate[name]
        indices = list(stored.layout.chunk_indices())
        step = functools.partial(_examine, stored, original, promise)
        together = Inspected(stored.layout)
        for one in self.executor.map(f"examine-{name}", step, indices):
            together.damage += [Damaged(where, reason) for where, reason in one.damage]
            together.different += one.different
            together.broken += one.broken
            together.largest_error = max(together.largest_error, one.largest_error)
        return together

    def _groups(self, number: int, kept: Any) -> dict[str, Any]:
        """Figures of the groups of the decoded particles; an error unless they are those that the certificate states."""
        lengths, fingerprints, members = stated(kept)
        decoded = InOrder(self.archive.data.layout, Chunk(self.archive.data), self.archive.box, "the decoded particles")
        figures: dict[str, Any] = {}
        if self.original is not None:
            require_same_lengths(kept, self.original.outline)
        for length, expected in zip(lengths, fingerprints, strict=True):
            with self._search(decoded, length, f"decoded-{number}-{length.hex()}") as groups:
                require_certified(_fingerprint(groups, members), expected, length)
                figures[f"groups_at_{length!r}"] = _count(groups, members)
            if self.original is not None:
                with self._search(self.original.rows, length, f"original-{number}-{length.hex()}") as groups:
                    require_same_original(_fingerprint(groups, members), expected)
        return figures

    def _search(self, particles: ChunkedParticles, length: float, name: str) -> DistributedGroups:
        folder = self.folder / name
        folder.mkdir()
        decomposition = Decomposition.of(sample_of(particles, self.executor), self.parts, particles.box)
        labels = Labels(particles, WithGhosts(decomposition, length), folder)
        find_groups(labels, self.executor)
        return DistributedGroups(labels, self.executor, 0)


@dataclass(frozen=True)
class _Examined:
    """The findings in one chunk; damage as the key and the reason."""

    damage: list[tuple[str, str]]
    different: list[str]
    broken: int = 0
    largest_error: float = 0.0


def _examine(stored: StoredArray, original: InOrder | None, promise: Promise | None, index: Index) -> _Examined:
    """Decode one chunk and compare it with its checksum and the original."""
    try:
        values = stored.chunk(index)
    except Damaged as damage:
        return _Examined([(damage.where, damage.reason)], [])
    found = Inspected(stored.layout)
    if original is not None and promise is not None:
        rows = original.read(index[0])
        _require_order(stored, index, rows, promise)
        verification.compare_chunk(found, index, values, rows, promise.limit, original.box)
    return _Examined([], found.different, found.broken, found.largest_error)


def _require_order(stored: StoredArray, index: Index, rows: np.ndarray, promise: Promise) -> None:
    """Refuse an archive whose codec has reordered the particles of a chunk: those of `compress` here are not."""
    sections = {tag: bytes(part) for tag, part in stored.frame(index).sections.items()}
    if promise.limit is not None and decoded_permutation(stored.decoder, sections, rows, promise.limit) is not None:
        raise WorkbenchError(f"{stored.codec.id} returns particles in an order of its own: use archive.verify(original)")


def _original(archive: Archive, source: ChunkedParticles, executor: Executor, folder: Path) -> _Given:
    """The original in the order of the archive; refused if it cannot be the one that the archive was made from."""
    if archive.kind != "particles":
        raise WorkbenchError("the original of a field is compared in one process: archive.verify(original)")
    layout, promise = archive.data.layout, archive.certificate["positions"]
    verification.require_shape(layout, (len(source), source.dimensions), source.dtype)
    if source.box != archive.box:
        raise WorkbenchError(f"the original must be in the box of the archive, {archive.box}; got {source.box}")
    sample = None
    if archive.reordered:
        outline, sample = surveyed(source, executor)
    else:
        outline = outline_of(source, executor).known
    if promise.bound is not None:
        verification.require_same_limit(promise, promise.bound.limit(outline.corners))
    rows: Rows | SortedRows = Rows(source)
    if sample is not None:
        curve = curve_from(archive.attributes.get("curve"), source.dimensions)
        rows = sort_along(curve, source, sample, layout.chunk_count, folder, executor, again=True)
    original = InOrder(layout, rows, archive.box)
    if isinstance(rows, SortedRows):
        executor.map("sort-particles", functools.partial(_sort, original), range(len(original.sizes)), "chunk")
        verification.require_same_checksum(archive.attributes.get("permutation"), rows.checksum(original.starts[:-1]))
    return _Given(outline, original)


def _sort(original: InOrder, chunk: int) -> None:
    """Sort a chunk of the original, which will be read again."""
    original.read(chunk)


def _fingerprint(groups: DistributedGroups, members: int) -> str:
    return fingerprint_of(_kept(groups, members), len(groups.source))


def _kept(groups: DistributedGroups, members: int) -> Iterator[np.ndarray]:
    """The labels of the groups that count, chunk by chunk; -1 for all other particles."""
    counting = None if members <= 1 else np.sort(groups.catalogue(members).labels)
    for labels in groups.chunks():
        yield labels if counting is None else np.where(np.isin(labels, counting), labels, -1)


def _count(groups: DistributedGroups, members: int) -> int:
    """How many groups count."""
    if members > 1:
        return groups.count(members)
    pairs = zip(groups.source.starts, groups.chunks(), strict=False)
    return sum(int((labels == start + np.arange(len(labels))).sum()) for start, labels in pairs)
