"""Whether an archive keeps its promise: each chunk is decoded once, and compared with its checksum and with the original.

Groups of particles are searched again, in the decoded and in the original particles: in memory, or in subdomains, where no
process holds more than a chunk or a subdomain. The steps are the same for both; see `Archive.verify`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.archive import checks
from workbench.archive.certificate import Promise
from workbench.archive.checks import Inspected
from workbench.archive.contents import curve_from
from workbench.archive.frame import Damaged
from workbench.archive.in_order import Columns, OrderedInChunks, OrderedInMemory, Rows
from workbench.archive.layout import ArrayLayout
from workbench.archive.reading import Index, StoredArray
from workbench.archive.source import source_of
from workbench.archive.store import MemoryStore
from workbench.clusters.keep import KeepClusters
from workbench.clusters.keep.partition import TOO_SMALL, blocks, digest_of, joined
from workbench.clusters.keep.statement import require_certified, require_same_lengths, require_same_original, stated
from workbench.data import Field, Particles
from workbench.data.chunked import POSITIONS, ChunkedParticles
from workbench.data.outline import Outlined
from workbench.errors import WorkbenchError
from workbench.guarantees import Relative
from workbench.guarantees.enforce import decoded_permutation
from workbench.guarantees.guarantee import Guarantee, required
from workbench.metrics.report import Report
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, InProcess, OnDask, Progress
from workbench.slabs import Slices
from workbench.subdomains.curve_order import SortedRows, sort_along
from workbench.subdomains.fof import Labels, find_groups
from workbench.subdomains.groups import DistributedGroups
from workbench.subdomains.plan import chosen_parts
from workbench.subdomains.sources import chunked, outline_of, scratch_folder, surveyed

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

# An array, its promise, the original in its order and its periods, and whether the decoded values are needed afterwards.
_Examination = tuple[
    StoredArray, Promise | None, OrderedInMemory | OrderedInChunks | None, tuple[float, ...] | None, bool
]


def verify(
    archive: Archive, original: Any, client: Any, parts: int | None, scratch: str | Path | None, progress: Progress | None
) -> Report:
    """`Archive.verify`."""
    given = None if original is None else _given(archive, original)
    executor = executor_of(client, progress, given)
    if isinstance(executor, OnDask) and isinstance(archive.store, MemoryStore):
        raise WorkbenchError("workers read an archive from a file system that all see: save it first, and give its path")
    if isinstance(executor, InProcess) and parts is None and (given is None or isinstance(given, Particles | Field)):
        return _verified(archive, given, executor, None, 1)
    division = chosen_parts(parts, len(archive)) if archive.kind == "particles" else 1
    with scratch_folder(scratch, executor) as folder:
        executor = executor.within(folder)
        if isinstance(given, Particles | ChunkedParticles):
            given = chunked(given, executor, folder)
        elif given is not None:
            given = ChunkedField.of(given).reachable(executor, folder, "original")
        return _verified(archive, given, executor, folder, division)


def _given(archive: Archive, original: Any) -> Any:
    """The original as data of the kind that the archive holds."""
    holds, kinds = "particles", (Particles, ChunkedParticles)   # type: str, tuple[type, ...]
    if archive.kind == "field":
        holds, kinds = "a field", (Field, ChunkedField)
    named = isinstance(original, str | os.PathLike | list | tuple) or hasattr(original, "chunked_field")
    given = source_of(original) if archive.kind == "field" or named else original
    if not isinstance(given, kinds):
        raise WorkbenchError(f"this archive holds {holds}; got {type(given).__name__} as its original")
    return given


def _verified(archive: Archive, given: Any, executor: Executor, folder: Path | None, parts: int) -> Report:
    """The report; without a folder, particles are searched in memory."""
    guarantees = _guarantees(archive, folder is not None)
    try:
        if archive.kind == "field":
            found = _field(archive, None if given is None else ChunkedField.of(given), executor)
        else:
            original = None if given is None else _original(archive, given, executor, folder)
            found = _particles(archive, original, executor, keep=bool(guarantees) and folder is None)
    except Damaged:   # the mask, or the permutation, follows from chunks, too
        checks.require_undamaged(archive.damage(), archive.arrays)
        raise
    damage = [Damaged(where, reason) for one in found.values() for where, reason in one.damage]
    damage = [*archive.damaged_documents(), *damage]
    checks.require_undamaged(damage, archive.arrays)
    outcome = checks.outcome(archive.certificate, found, {name: one.layout for name, one in archive.arrays.items()})
    kept: dict[type[Guarantee], dict[str, Any]] = {}
    for number, guarantee in enumerate(guarantees):
        if folder is None:
            kept[guarantee] = _kept_in_memory(archive, number, guarantee, found[POSITIONS].chunks, original)
        else:
            kept[guarantee] = _InSubdomains(archive, original, executor, folder, parts).groups(number)
    return checks.report(outcome, kept, archive.certificate)


def _guarantees(archive: Archive, in_subdomains: bool) -> list[type[Guarantee]]:
    """The kinds of promises beyond the bound about particles; refused where one cannot be checked."""
    if archive.kind != "particles":
        return []
    guarantees = [required(promised.get("kind")) for promised in archive.certificate[POSITIONS].keep]
    if in_subdomains and (others := [one for one in guarantees if one is not KeepClusters]):
        raise WorkbenchError(
            f"{others[0].kind} can only be checked with all particles in memory: verify without client= and parts=, and "
            "give the original as wb.Particles"
        )
    return guarantees


# Fields.

def _field(archive: Archive, original: ChunkedField | None, executor: Executor) -> dict[str, Inspected]:
    """The findings in the values and in the mask."""
    values, mask, promise = archive.data, archive.arrays.get("mask"), archive.certificate["values"]
    step = functools.partial(_field_chunk, (values, mask, promise))
    shape, together = values.layout.chunk_shape, not values.decoder.holds_gil
    if original is None:
        numbers = range(values.layout.chunk_count)
        shared = values, mask, promise
        found = executor.map("examine-values", _field_chunk, numbers, "chunk", shared=shared, together=together)
    else:
        checks.require_shape(values.layout, original.shape, original.dtype)
        if promise.bound is not None:
            pieces = [np.empty(0, original.dtype)]   # type: list[np.ndarray | None]
            if isinstance(promise.bound, Relative):
                pieces = map_parts(executor, "find-range", functools.partial(_ends, mask), shape, [original])
            ends = [piece for piece in pieces if piece is not None]
            if len(ends) == len(pieces):   # otherwise the mask is damaged, as is seen below
                checks.require_same_limit(promise, promise.bound.limit(np.concatenate(ends)))
        found = map_parts(executor, "examine-values", step, shape, [original], together=together)
    return {name: functools.reduce(Inspected.__add__, [of[name] for of in found]) for name in found[0]}


def _field_chunk(
    stored: tuple[StoredArray, StoredArray | None, Promise], number: int, original: Field | None = None
) -> dict[str, Inspected]:
    """The findings in one chunk of a field, and in its mask, which says what must be bit-identical."""
    values, mask, promise = stored
    index = tuple(int(axis) for axis in np.unravel_index(number, values.layout.chunk_grid))
    hidden, of_mask = (None, None) if mask is None else _decoded(mask, index)
    here, of_values = _decoded(values, index)
    if original is not None and here is not None and (mask is None or hidden is not None):
        key, part = values.layout.chunk_key(index), backend.to_host(original.values)
        of_values += checks.compared(key, here, part, promise.limit, None, hidden)
    if of_mask is None:
        return {"values": of_values}
    assert mask is not None
    if original is not None and original.mask is not None and hidden is not None:
        of_mask += checks.compared(mask.layout.chunk_key(index), hidden, backend.to_host(original.mask), None)
    return {"values": of_values, "mask": of_mask}


def _ends(mask: StoredArray | None, number: int, part: Field) -> np.ndarray | None:
    """The smallest and the largest value of a part that are finite and not masked in the archive.

    None if the mask is damaged there.
    """
    values = backend.to_host(part.values)
    valid = np.isfinite(values)
    if mask is not None:
        hidden, _ = _decoded(mask, tuple(int(axis) for axis in np.unravel_index(number, mask.layout.chunk_grid)))
        if hidden is None:
            return None
        valid &= ~hidden
    kept = values[valid]
    return np.array([kept.min(), kept.max()]) if kept.size else kept


def _decoded(stored: StoredArray, index: Index) -> tuple[np.ndarray | None, Inspected]:
    """The values of a chunk, or the damage."""
    try:
        return stored.chunk(index), Inspected()
    except Damaged as damage:
        return None, Inspected([(damage.where, damage.reason)])


# Particles.

@dataclass(frozen=True, eq=False)
class _Original:
    """The original: in its own order, and in that of the archive."""

    outline: Outlined
    ordered: OrderedInMemory | OrderedInChunks
    names: frozenset[str]   # of the arrays that it has
    box: tuple[float, ...] | None


def _original(archive: Archive, given: Any, executor: Executor, folder: Path | None) -> _Original:
    """The original in the order of the archive; refused if it cannot be the one that the archive was made from."""
    promise, layout = archive.certificate[POSITIONS], archive.data.layout
    mass = given.masses if isinstance(given, Particles) else given.mass
    if archive.mass is not None and isinstance(mass, float) and mass != archive.mass:
        raise WorkbenchError(f"the original must have particles of mass {archive.mass:.9g}; got {mass:.9g}")
    if isinstance(given, Particles):
        archive.require_like(given)
        order = archive.permutation(given) if archive.reordered else None
        checks.require_shape(layout, tuple(given.positions.shape), given.positions.dtype)
        if promise.bound is not None:
            checks.require_same_limit(promise, promise.bound.limit(given.positions))
        names = frozenset([POSITIONS, *given.companions])
        return _Original(given, OrderedInMemory(given, order), names, archive.box)
    assert folder is not None
    checks.require_shape(layout, (len(given), given.dimensions), given.dtype)
    if given.box != archive.box:
        raise WorkbenchError(f"the original must be in the box of the archive, {archive.box}; got {given.box}")
    columns, sample = Columns.of(given, executor), None
    if archive.reordered:
        outline, sample = surveyed(given, executor, folder, 1)
    else:
        outline = outline_of(given, executor).known
    if promise.bound is not None:
        checks.require_same_limit(promise, promise.bound.limit(outline.corners))
    rows: Rows | SortedRows = Rows(given)
    begins = tuple(range(0, len(given), layout.chunk_shape[0]))
    if sample is not None:
        curve, cargo = curve_from(archive.attributes.get("curve"), given.dimensions), columns if columns.dtypes else None
        rows = sort_along(curve, given, sample, layout.chunk_count, folder, executor, again=True, cargo=cargo)
        executor.map("sort-particles", _sort, range(layout.chunk_count), "chunk", shared=(rows, begins))
        rows.exchange.delete()
        checks.require_same_checksum(archive.attributes.get("permutation"), rows.checksum(begins))
    return _Original(outline, OrderedInChunks(columns, rows, begins), frozenset([POSITIONS, *columns.dtypes]), archive.box)


def _sort(shared: tuple[SortedRows, tuple[int, ...]], chunk: int) -> None:
    """Sort a chunk of the original, which will be read again."""
    rows, begins = shared
    rows((slice(begins[chunk], (*begins, rows.starts[-1])[chunk + 1]),))


def _particles(archive: Archive, original: _Original | None, executor: Executor, keep: bool) -> dict[str, Inspected]:
    """The findings in each array; `keep` holds on to the decoded positions."""
    found = {}
    for name, stored in archive.arrays.items():
        compared = original is not None and name in original.names
        promise = archive.certificate[name] if compared else None
        ordered, period = (original.ordered, original.box if name == POSITIONS else None) if original else (None, None)
        shared, together = (stored, promise, ordered, period, keep and name == POSITIONS), not stored.decoder.holds_gil
        indices = list(stored.layout.chunk_indices())
        pieces = executor.map(f"examine-{name}", _chunk, indices, "chunk", shared=shared, together=together)
        found[name] = functools.reduce(Inspected.__add__, pieces)
    return found


def _chunk(shared: _Examination, index: Index) -> Inspected:
    """Decode one chunk, and compare it with its checksum and the original."""
    stored, promise, ordered, period, keep = shared
    here, found = _decoded(stored, index)
    if here is None:
        return found
    if promise is not None and ordered is not None:
        rows = stored.layout.chunk_slices(index)[0]
        part = ordered.read(stored.layout.name, rows.start, rows.stop)
        if period is not None or stored.layout.name == POSITIONS:
            _require_order(stored, index, part, promise, ordered)
        found += checks.compared(stored.layout.chunk_key(index), here, part, promise.limit, period)
    return dataclasses.replace(found, chunks=[here]) if keep else found


def _require_order(
    stored: StoredArray, index: Index, rows: np.ndarray, promise: Promise, ordered: OrderedInMemory | OrderedInChunks
) -> None:
    """Refuse an archive whose codec has reordered the particles of a chunk, which only a search in memory undoes."""
    if isinstance(ordered, OrderedInMemory):
        return
    sections = {tag: bytes(part) for tag, part in stored.frame(index).sections.items()}
    if promise.limit is not None and decoded_permutation(stored.decoder, sections, rows, promise.limit) is not None:
        raise WorkbenchError(
            f"{stored.codec.id} returns particles in an order of its own: verify it in one process, with wb.Particles"
        )


# Promises beyond the bound.

def _kept_in_memory(
    archive: Archive, number: int, guarantee: type[Guarantee], chunks: list[np.ndarray], original: _Original | None
) -> dict[str, Any]:
    """Figures of decoded particles that keep a promise; else an error."""
    decoded, wanted = Particles(backend.read_only(np.concatenate(chunks)), archive.box), None
    if original is not None:
        given = original.ordered.read(POSITIONS, 0, len(archive))
        wanted = Particles(backend.read_only(given), archive.box)
    return guarantee.check(archive.certificate[POSITIONS].keep[number], decoded, wanted)


@dataclass(frozen=True)
class Decoded:
    """The positions of an archive, decoded where they are read."""

    stored: StoredArray

    def __call__(self, slices: Slices) -> np.ndarray:
        """The decoded positions at the places of a chunk."""
        return self.stored.chunk((slices[0].start // self.stored.layout.chunk_shape[0], 0))


class InOrder(ChunkedParticles):
    """Particles in the order of an archive, in its chunks."""

    def __init__(
        self, layout: ArrayLayout, rows: Callable[[Slices], np.ndarray], box: tuple[float, ...] | None,
        name: str = "the original in the order of the archive",
    ) -> None:
        self.layout, self.rows, self.box, self.name = layout, rows, box, name
        self.sizes, self.dtype, self.dimensions = layout.chunk_rows, layout.dtype, layout.shape[1]

    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk."""
        return np.asarray(self.rows(self.layout.chunk_slices((number, 0))))


@dataclass(frozen=True, eq=False)
class _InSubdomains:
    """The groups of an archive, searched in subdomains."""

    archive: Archive
    original: _Original | None
    executor: Executor
    folder: Path
    parts: int

    def groups(self, number: int) -> dict[str, Any]:
        """Figures of the groups of the decoded particles; an error unless they are those that the certificate states."""
        archive, original, figures = self.archive, self.original, {}   # type: Archive, _Original | None, dict[str, Any]
        kept = archive.certificate[POSITIONS].keep[number]
        lengths, fingerprints, members = stated(kept)
        decoded = InOrder(archive.data.layout, Decoded(archive.data), archive.box, "the decoded particles")
        if original is not None:
            require_same_lengths(kept, original.outline)
        for length, expected in zip(lengths, fingerprints, strict=True):
            with self._search(decoded, length, f"decoded-{number}-{length.hex()}") as groups:
                require_certified(_fingerprint(groups, members, self.executor), expected, length)
                figures[f"groups_at_{length!r}"] = _count(groups, members)
            if original is not None:
                assert isinstance(original.ordered, OrderedInChunks)
                given = InOrder(archive.data.layout, original.ordered.rows, archive.box)
                with self._search(given, length, f"original-{number}-{length.hex()}") as groups:
                    require_same_original(_fingerprint(groups, members, self.executor), expected)
        return figures

    def _search(self, particles: ChunkedParticles, length: float, name: str) -> DistributedGroups:
        folder = self.folder / name
        folder.mkdir()
        return DistributedGroups(*find_groups(particles, length, self.parts, folder, self.executor), self.executor)


def _fingerprint(groups: DistributedGroups, members: int, executor: Executor) -> str:
    """The fingerprint of the groups that count, of digests that workers compute."""
    counting = None if members <= 1 else np.sort(groups.catalogue(members).labels)
    shared = groups._labels, counting
    return joined(executor.map("hash-labels", _digest, blocks(len(groups.source)), "block of labels", shared=shared))


def _digest(shared: tuple[Labels, np.ndarray | None], block: range) -> bytes:
    """The digest of the labels of a block; particles of groups that do not count have none."""
    labels, counting = shared
    final = labels.between(block.start, block.stop)
    kept = final if counting is None else np.where(np.isin(final, counting), final, TOO_SMALL)
    return digest_of(kept, labels.source.starts[-1])


def _count(groups: DistributedGroups, members: int) -> int:
    """How many groups count."""
    return groups.count(members) if members > 1 else len(groups)
