"""The verification of particles: their arrays, in their order, and what is promised of all of them together.

Groups are searched again, in the decoded and in the original particles: in memory, or in subdomains, where no process holds
more than a chunk or a subdomain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive import checks
from workbench.archive.archive import Archive
from workbench.archive.certificate import Promise
from workbench.archive.checks import Inspected
from workbench.archive.content.consistency import is_finite
from workbench.archive.frame import Damaged, Frame
from workbench.archive.in_order import Columns, OrderedInChunks, OrderedInMemory, Rows
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.reading import StoredArray
from workbench.archive.verify import Examination
from workbench.clusters.keep import KeepClusters
from workbench.clusters.keep.partition import TOO_SMALL, blocks, digest_of, joined
from workbench.clusters.keep.statement import require_certified, require_same_lengths, require_same_original, stated
from workbench.codecs.curve import MOST_CELL_BITS, Lattice
from workbench.data import Particles
from workbench.data.chunked import POSITIONS, ChunkedParticles
from workbench.data.outline import Outlined
from workbench.data.particles import COMPANIONS
from workbench.errors import WorkbenchError
from workbench.guarantees.enforce import decoded_permutation
from workbench.guarantees.guarantee import Guarantee, required
from workbench.run.executors import Executor
from workbench.run.scratch_files import make_folder
from workbench.slabs import Slices
from workbench.subdomains.curve_order import SortedRows, sort_along
from workbench.subdomains.fof import Labels, find_groups
from workbench.subdomains.groups import DistributedGroups
from workbench.subdomains.plan import chosen_parts
from workbench.subdomains.sources import chunked, outline_of, surveyed

Ordered = OrderedInMemory | OrderedInChunks


class ParticlesExamination(Examination):
    """The verification of particles; with a folder, in subdomains."""

    def __init__(self, archive: Archive, given: Any, executor: Executor, folder: Path | None, parts: int | None) -> None:
        super().__init__(archive, given, executor, folder, None if folder is None else chosen_parts(parts, len(archive)))
        self._guarantees = [required(promised.get("kind")) for promised in archive.certificate[POSITIONS].keep]
        self._original: _Original | None = None
        if folder is not None and (others := [one for one in self._guarantees if one is not KeepClusters]):
            raise WorkbenchError(
                f"{others[0].kind} can only be checked with all particles in memory: verify without client= and parts=, "
                "and give the original as wb.Particles"
            )

    @classmethod
    def reachable(cls, given: Any, executor: Executor, folder: Path) -> Any:
        """The original in chunks."""
        return chunked(given, executor, folder)

    def arrays(self) -> dict[str, Inspected]:
        """The findings in each array."""
        archive, found = self.archive, {}
        if self.given is not None:
            self._original = _original(archive, self.given, self.executor, self.folder)
        original, holding = self._original, bool(self._guarantees) and self.folder is None
        for name, stored in archive.arrays.items():
            promise = archive.certificate[name] if original is not None and name in original.names else None
            ordered, period = (original.ordered, archive.box if name == POSITIONS else None) if original else (None, None)
            found[name] = self.inspected(name, _chunk, (stored, promise, ordered, period, holding and name == POSITIONS))
        return found

    def kept(self, found: Mapping[str, Inspected]) -> dict[type[Guarantee], Mapping[str, Any]]:
        """The guarantees that hold, and their figures."""
        if self.folder is not None:
            return {one: self._in_subdomains(self.folder, number) for number, one in enumerate(self._guarantees)}
        chunks = found[POSITIONS].chunks
        return {one: self._in_memory(number, one, chunks) for number, one in enumerate(self._guarantees)}

    def _in_memory(self, number: int, guarantee: type[Guarantee], chunks: list[np.ndarray]) -> dict[str, Any]:
        """Figures of decoded particles that keep a promise; else an error."""
        archive, wanted = self.archive, None
        if self._original is not None:
            given = self._original.ordered.read(POSITIONS, 0, len(archive))
            wanted = Particles(backend.read_only(given), archive.box)
        here = Particles(backend.read_only(np.concatenate(chunks)), archive.box)
        return guarantee.check(archive.certificate[POSITIONS].keep[number], here, wanted)

    def _in_subdomains(self, folder: Path, number: int) -> dict[str, Any]:
        """Figures of the groups of the decoded particles; an error unless they are those that the certificate states."""
        archive, original, figures = self.archive, self._original, {}   # type: Archive, _Original | None, dict[str, Any]
        kept, layout = archive.certificate[POSITIONS].keep[number], archive.data.layout
        lengths, fingerprints, members = stated(kept)
        particles = InOrder(layout, DecodedPositions(archive.data), archive.box, "the decoded particles")
        if original is not None:
            require_same_lengths(kept, original.outline)
        for length, expected in zip(lengths, fingerprints, strict=True):
            with self._search(particles, length, folder / f"decoded-{number}-{length.hex()}") as groups:
                require_certified(_fingerprint(groups, members, self.executor), expected, length)
                figures[f"groups_at_{length!r}"] = groups.count(members) if members > 1 else len(groups)
            if original is not None:
                assert isinstance(original.ordered, OrderedInChunks)
                given = InOrder(layout, original.ordered.rows, archive.box)
                with self._search(given, length, folder / f"original-{number}-{length.hex()}") as groups:
                    require_same_original(_fingerprint(groups, members, self.executor), expected)
        return figures

    def _search(self, particles: ChunkedParticles, length: float, folder: Path) -> DistributedGroups:
        assert self.parts is not None
        make_folder(folder)
        return DistributedGroups(*find_groups(particles, length, self.parts, folder, self.executor), self.executor)


def curve_of(archive: Archive) -> Lattice:
    """The curve along which particles were sorted, as an archive describes it."""
    dimensions = archive.data.layout.shape[1]
    try:
        names, given = ("origin", "last", "top"), dict(archive.attributes["curve"])
        origin, last, top = (tuple(given[name]) for name in names)
        numbers = [*origin, *last, *top, given["step"]]
        fits = all(len(axes) == dimensions for axes in (origin, last, top)) and all(map(is_finite, numbers))
        fits = fits and given["step"] > 0 and all(isinstance(n, int) and 0 <= n < 1 << MOST_CELL_BITS for n in last)
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise WorkbenchError("the archive does not state the curve along which its particles are sorted")
    ends = tuple(map(float, origin)), tuple(map(float, top))
    return Lattice(ends[0], float(given["step"]), last, ends[1], bool(given.get("periodic")))


def require_like(archive: Archive, original: Any) -> None:
    """Refuse particles of another number, or in another box."""
    expected = (archive.data.layout.shape, archive.box)
    if not isinstance(original, Particles) or (tuple(original.positions.shape), original.box) != expected:
        raise WorkbenchError(f"the original must be {len(archive):,} particles in {space(archive.box)}; got {original!r}")


def space(box: tuple[float, ...] | None) -> str:
    """A box in words."""
    return "an open space" if box is None else f"a box of {' x '.join(f'{length:g}' for length in box)}"


@dataclass(frozen=True, eq=False)
class _Original:
    """The original: in its own order, and in that of the archive."""

    outline: Outlined
    ordered: Ordered
    names: frozenset[str]   # of the arrays that it has


def _original(archive: Archive, given: Any, executor: Executor, folder: Path | None) -> _Original:
    """The original in the order of the archive; refused if it cannot be the one that the archive was made from."""
    promise, layout = archive.certificate[POSITIONS], archive.data.layout
    mass = given.masses if isinstance(given, Particles) else given.mass
    if archive.mass is not None and isinstance(mass, float) and mass != archive.mass:
        raise WorkbenchError(f"the original must have particles of mass {archive.mass:.9g}; got {mass:.9g}")
    if isinstance(given, Particles):
        require_like(archive, given)
        order = archive.permutation(given) if archive.reordered else None
        checks.require_shape(layout, tuple(given.positions.shape), given.positions.dtype)
        if promise.bound is not None:
            checks.require_same_limit(promise, promise.bound.limit(given.positions))
        ordered = OrderedInMemory(given, order)
        _require_same_columns(archive, ordered.dtypes)
        return _Original(given, ordered, frozenset([POSITIONS, *given.companions]))
    assert folder is not None
    checks.require_shape(layout, (len(given), given.dimensions), given.dtype)
    if given.box != archive.box:
        raise WorkbenchError(f"the original must be in the box of the archive, {archive.box}; got {given.box}")
    columns, sample = Columns.of(given, executor), None
    _require_same_columns(archive, columns.dtypes)
    if archive.reordered:
        outline, sample = surveyed(given, executor, folder, 1)
    else:
        outline = outline_of(given, executor).known
    if promise.bound is not None:
        checks.require_same_limit(promise, promise.bound.limit(outline.corners))
    rows: Rows | SortedRows = Rows(given)
    begins = tuple(range(0, len(given), layout.chunk_shape[0]))
    if sample is not None:
        curve, cargo = curve_of(archive), columns if columns.dtypes else None
        rows = sort_along(curve, given, sample, layout.chunk_count, folder, executor, again=True, cargo=cargo)
        executor.map("sort-particles", _sort, range(layout.chunk_count), "chunk", shared=(rows, begins))
        rows.exchange.delete()
        checks.require_same_checksum(archive.attributes.get("permutation"), rows.checksum(begins))
    return _Original(outline, OrderedInChunks(columns, rows, begins), frozenset([POSITIONS, *columns.dtypes]))


def _require_same_columns(archive: Archive, dtypes: Mapping[str, np.dtype]) -> None:
    """Refuse an original with columns of other types or shapes than those of the same names in the archive."""
    for name, row in dtypes.items():
        if name in archive.arrays and name not in COMPANIONS:
            layout = archive.arrays[name].layout
            checks.require_shape(layout, (layout.shape[0], *row.shape), row.base)


def _sort(shared: tuple[SortedRows, tuple[int, ...]], chunk: int) -> None:
    """Sort a chunk of the original, which will be read again."""
    rows, begins = shared
    rows((slice(begins[chunk], (*begins, rows.starts[-1])[chunk + 1]),))


def _chunk(
    shared: tuple[StoredArray, Promise | None, Ordered | None, tuple[float, ...] | None, bool], index: Index
) -> Inspected:
    """Decode one chunk, and compare it with its checksum and the original; its values may be needed afterwards."""
    stored, promise, ordered, period, holding = shared
    try:
        opened = stored.frame(index)
        here, found = stored.values_of(opened, index), Inspected()
    except Damaged as damage:
        return Inspected([(damage.where, damage.reason)])
    if promise is not None and ordered is not None:
        rows = stored.layout.chunk_slices(index)[0]
        part = ordered.read(stored.layout.name, rows.start, rows.stop)
        if stored.layout.name == POSITIONS and not isinstance(ordered, OrderedInMemory):
            _require_order(stored, opened, part)
        limit = promise.limit_at(stored.layout.chunk_slices(index))
        found += checks.compared(stored.layout.chunk_key(index), here, part, limit, period)
    return dataclasses.replace(found, chunks=[here]) if holding else found


def _require_order(stored: StoredArray, opened: Frame, rows: np.ndarray) -> None:
    """Refuse an archive whose codec has reordered the particles of a chunk, which only a search in memory undoes."""
    sections = {tag: bytes(part) for tag, part in opened.sections.items()}
    if decoded_permutation(stored.decoder, sections, rows) is not None:
        raise WorkbenchError(
            f"{stored.codec.id} returns particles in an order of its own: verify it in one process, with wb.Particles"
        )


@dataclass(frozen=True)
class DecodedPositions:
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
