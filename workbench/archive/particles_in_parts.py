"""`wb.distributed.compress`: an archive whose chunks are encoded, checked and written by workers.

Without `keep`, the bytes are those of `wb.compress` for the same chunks, in both orders. Each worker writes its chunks to a
hidden folder; the description comes last, and then one renaming makes it an archive (`archive/writing.py`). The name of the
hidden folder follows from the arguments and the outline of the particles, so that a run that was killed, or failed, goes on
from the chunks that are done (`encoded.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from workbench.archive import Archive, provenance
from workbench.archive.choice import Speed
from workbench.archive.companions import Companions, encode_companions
from workbench.archive.encoded import DoneChunk, Encoded, put_hidden, token_of
from workbench.archive.encoding import EncodedArray, Slices, assembled
from workbench.archive.fields_in_parts import compress_field
from workbench.archive.finer import smallest
from workbench.archive.keeping.finish import finished_file
from workbench.archive.keeping.keeping import Kept, keep_clusters
from workbench.archive.keeping.terms import Terms
from workbench.archive.key import ROOT
from workbench.archive.particles import Plan, extents_of, guarantee_of
from workbench.archive.plausibility import notes_on_outline
from workbench.archive.request import Request, documents_for, promises, require_storable
from workbench.archive.writing import Draft, require_writable
from workbench.arguments import whole_number
from workbench.clusters.keep import KeepClusters
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.data.chunked import ChunkedParticles
from workbench.data.outline import Outline
from workbench.data.triclinic import require_no_triclinic_cell
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, Relative
from workbench.guarantees.guarantee import Allowance
from workbench.run.chunked_field import ChunkedField
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, Progress
from workbench.subdomains.curve_order import SortedRows, sort_along
from workbench.subdomains.decomposition import Decomposition
from workbench.subdomains.plan import chosen_parts
from workbench.subdomains.sources import Given, chunked, outline_of, scratch_folder, surveyed


def compress(
    source: Given | ChunkedField | Field,
    bound: Bound,
    codec: str | Codec = "auto",
    keep: Any = (),
    order: str = "keep",
    *,
    out: str | os.PathLike[str],
    client: Any = None,
    chunk_values: int | None = None,
    parts: int | None = None,
    overwrite: bool = False,
    scratch: str | Path | None = None,
    metadata: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    speed: Speed = "small",
) -> Archive:
    """Compress particles in chunks, or a field, on a Dask cluster; the archive is written to `out`.

    Positions are kept within the bound; velocities, ids and masses, where the source has them, bit for bit. A field is a
    `wb.distributed.ChunkedField` over an array of Dask, Zarr or h5py, or a `wb.Field`.
    `client` is a Dask client or the address of a scheduler; without one, the work is done in this process. `out` must be on
    a file system that all workers see, and so must `scratch`, which is needed for `order="free"` and for `keep`.
    `parts` is the number of subdomains for that (by default, about a million particles each); the bytes do not depend on
    the number of workers. `metadata` is that of the source, unless it is given. `codec="auto"` reads the middle of a field
    first, to choose, unless `speed="fast"`. `progress` is called with the completed share of each step and the name of the
    step, such as `wb.ProgressBar()`. A run that was killed, or failed, leaves a hidden folder beside `out`: the same call
    goes on from there.

    >>> import tempfile
    >>> from workbench.data.synthetic import cosmic_web
    >>> folder = tempfile.TemporaryDirectory()
    >>> snapshot = cosmic_web(n=16, seed=1)
    >>> kept = compress(snapshot, Absolute(0.01), keep=KeepClusters(0.2), parts=3, out=f"{folder.name}/snapshot.zarr")
    >>> kept.verify(snapshot).passed
    True
    >>> folder.cleanup()
    """
    if isinstance(source, ChunkedField | Field):
        return compress_field(
            source, bound, codec, keep, order, out=out, client=client, chunk_values=chunk_values, overwrite=overwrite,
            scratch=scratch, metadata=metadata, progress=progress, speed=speed,
        )
    if not isinstance(bound, Absolute | Relative):
        raise WorkbenchError(f"the bound must be wb.Absolute(...) or wb.Relative(...) on a cluster; got {bound!r}")
    request = Request(bound, codec, promises(keep), order, chunk_values=chunk_values, speed=speed)
    _clusters_of(request)
    if parts is not None:
        whole_number("parts", parts, least=1)
    require_writable(out, overwrite)
    executor = executor_of(client, progress, source)
    with scratch_folder(scratch, executor) as folder:
        particles = chunked(source, executor, folder)
        described = particles.metadata if metadata is None else metadata
        require_storable(described)
        one = Particles(np.zeros((1, particles.dimensions)), metadata=described)   # says what the unit is
        request = dataclasses.replace(request, bound=bound.for_data(one))
        companions = Companions.of(particles, executor)
        wanted = chosen_parts(parts, len(particles))
        sample = None
        if request.keep:
            require_no_triclinic_cell(particles, "keeping clusters")
        if request.keep or order == "free":
            outline, sample = surveyed(particles, executor)
        else:
            outline = outline_of(particles, executor).known
        draft = Draft(out, overwrite, _token(request, outline, parts, companions))
        run = _Run(particles, companions, outline, sample, request, draft, executor, folder, wanted)
        with draft.continued():
            return Archive.open(run.write(described))


@dataclass(frozen=True, eq=False)
class _Encoding:
    """All positions, encoded within one limit."""

    plan: Plan
    rows: Rows | SortedRows
    encoded: Encoded
    done: list[DoneChunk]

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.done)


@dataclass(frozen=True, eq=False)
class _Run:
    """One call of `compress`, with all that it needs."""

    source: ChunkedParticles
    companions: Companions
    outline: Outline
    sample: np.ndarray | None   # for a free order, and to keep clusters
    request: Request
    draft: Draft
    executor: Executor
    folder: Path
    parts: int

    def write(self, metadata: Mapping[str, Any]) -> Path:
        """Write the archive; returns where it is."""
        limit = self.request.bound.limit(self.outline.corners)
        promise = _clusters_of(self.request)
        requested = self._encoding(limit, promise is not None)
        if promise is None:
            encoding, positions = requested, assembled(requested.encoded.task, [one.ready for one in requested.done])
        else:
            encoding, positions = self._kept(requested, promise, limit)
        extents = extents_of(positions)
        for key, data in extents.entries():
            self.draft.put(key, data)
        rows, permutation, begins = encoding.rows, None, encoding.encoded.starts[:-1]
        read: Callable[[str, int, int], np.ndarray] = self.companions.between
        if isinstance(rows, SortedRows):
            permutation, read = rows.checksum(begins), functools.partial(_sorted_column, self.companions, rows, begins)
        others = list(encode_companions(self.companions, read, encoding.plan, self.request, self.draft.put, self.executor))
        notes = notes_on_outline(self.outline, self.request.bound, self.request.keep)
        described = encoding.plan.described(self.request, permutation)
        if self.source.mass is not None:
            described["mass"] = self.source.mass
        documents = documents_for([positions, extents, *others], described, encoding.plan.codec, metadata, notes)
        root = documents.pop(ROOT)
        for key, data in documents.items():
            self.draft.put(key, data)
        arrays = [array.layout for array in (positions, extents, *others)]
        return self.draft.commit(root, [layout.chunk_key(index) for layout in arrays for index in layout.chunk_indices()])

    def _encoding(self, limit: Limit, corrected: bool) -> _Encoding:
        """Encode all chunks within this limit: as parts of the archive or, if they are to be corrected, beside it."""
        plan = Plan.of(Particles(self.outline.corners, self.outline.box), len(self.outline), self.request, limit)
        rows: Rows | SortedRows = Rows(self.source)
        if plan.curve is not None:
            folder = self.folder / f"sorted-{limit.value.hex()}"
            folder.mkdir()
            chunks, cargo = -(-plan.count // plan.chunk), self.companions if self.companions.dtypes else None
            assert self.sample is not None
            rows = sort_along(plan.curve, self.source, self.sample, chunks, folder, self.executor, corrected, cargo)
        within = self.draft.partial / f".within-{limit.value.hex()}" if corrected else self.draft.partial
        put = functools.partial(_put, within) if corrected else self.draft.put
        encoded = Encoded(plan.task(rows, self.request), within, put)
        done = self.executor.map("encode-chunks", encoded.encode, range(len(encoded.sizes)), "chunk of the archive")
        return _Encoding(plan, rows, encoded, done)

    def _kept(self, requested: _Encoding, promise: KeepClusters, limit: Limit) -> tuple[_Encoding, EncodedArray]:
        """The positions that keep clusters, within the limit or a finer one; their chunks become parts of the archive."""
        assert self.sample is not None
        decomposition = Decomposition.of(self.sample, self.parts, self.outline.box)
        encodings = {limit: requested}

        def encode(finer: Limit, allowance: Allowance) -> Kept:
            if finer not in encodings:
                encodings[finer] = self._encoding(finer, corrected=True)
            found, folder = encodings[finer], self.folder / f"kept-{finer.value.hex()}-{len(encodings)}"
            folder.mkdir(exist_ok=True)
            terms, lasting = Terms.of(promise, finer, self.outline), self.draft.partial / f".kept-{finer.value.hex()}"
            try:
                return keep_clusters(
                    found.encoded, found.done, terms, decomposition, folder, lasting, self.executor, allowance
                )
            finally:
                rmtree(folder, ignore_errors=True)

        shape, shortest = (len(self.outline), self.outline.dimensions), min(promise.lengths(self.outline))
        found = smallest(encode, limit, np.broadcast_to(np.zeros((), self.outline.dtype), shape), shortest)
        encoding = next(one for one in encodings.values() if one.encoded is found.encoded)
        take = functools.partial(_take, found.encoded, self.draft)
        self.executor.map("write-chunks", take, range(len(found.encoded.sizes)))
        assert found.positions.promise is not None
        kept = tuple({**kept, "bytes": found.nbytes - requested.nbytes} for kept in found.positions.promise.keep)
        stated = dataclasses.replace(found.positions.promise, limit=limit, keep=kept)
        return encoding, dataclasses.replace(found.positions, promise=stated)


def _clusters_of(request: Request) -> KeepClusters | None:
    """The promise beyond the bound: others than this one need all particles together."""
    guarantee = guarantee_of(request)
    if guarantee is None or isinstance(guarantee, KeepClusters):
        return guarantee
    raise WorkbenchError(f"keep takes wb.KeepClusters where particles are in parts; got {guarantee!r}: use wb.compress")


@dataclass(frozen=True)
class Rows:
    """The positions of a chunk of the archive, from the chunks of the source."""

    source: ChunkedParticles

    def __call__(self, slices: Slices) -> np.ndarray:
        """The positions at these places."""
        begin, end, starts = slices[0].start, slices[0].stop, self.source.starts
        first, last = np.searchsorted(starts, begin, side="right") - 1, np.searchsorted(starts, end)
        pieces = [
            self.source.chunk(chunk).positions[max(begin - starts[chunk], 0) : end - starts[chunk]]
            for chunk in range(int(first), int(last))
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _sorted_column(
    companions: Companions, rows: SortedRows, begins: tuple[int, ...], name: str, begin: int, end: int
) -> np.ndarray:
    """A column between two places of a free order."""
    return companions.unpacked(rows.cargo(begins, begin, end), name)


def _put(folder: Path, key: str, data: bytes) -> None:
    """Write a chunk that is to be corrected."""
    put_hidden(folder / key, data)


def _take(encoded: Encoded, draft: Draft, chunk: int) -> None:
    """Make a corrected chunk a part of the archive."""
    draft.put(encoded.task.layout.chunk_key((chunk, 0)), finished_file(encoded, chunk).read_bytes())


def _token(request: Request, outline: Outline, parts: int | None, companions: Companions) -> str:
    """A name for this call: the same for the same arguments and particles of the same outline."""
    codec = request.chosen_codec("lattice")
    described = {
        "bound": request.bound.to_dict(), "codec": codec.to_dict(), "order": request.order, "parts": parts,
        "keep": [{**kept.to_dict(), "solver": kept.solver} for kept in request.keep], "chunk": request.chunk_values,
        "versions": provenance.versions(codec), "count": len(outline), "dtype": str(outline.dtype), "box": outline.box,
        "lower": outline.lower.tolist(), "upper": outline.upper.tolist(),
        "columns": {name: str(dtype) for name, dtype in companions.dtypes.items()}, "mass": companions.source.mass,
    }
    return token_of(described)
