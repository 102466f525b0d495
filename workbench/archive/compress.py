"""`wb.compress`: from particles or a field, a bound and a codec to an archive whose promise was checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.choice import Speed
from workbench.archive.fields import codec_for, compress_field, token_for
from workbench.archive.particles import compress_particles, guarantee_of
from workbench.archive.particles_in_chunks import InChunks
from workbench.archive.particles_in_memory import InMemory
from workbench.archive.request import Request, promises, require_storable
from workbench.archive.source import source_of
from workbench.archive.store import MemoryStore
from workbench.archive.writing import Draft, require_writable
from workbench.arguments import whole_number
from workbench.codecs import Codec
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.run.chunked_field import ChunkedField
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, InProcess, OnDask, Progress
from workbench.run.submission import submittable
from workbench.subdomains.sources import chunked, scratch_folder


@submittable
def compress(
    source: Any,
    bound: Bound,
    codec: str | Codec = "auto",
    keep: Any = (),
    order: str = "keep",
    progress: Progress | None = None,
    *,
    velocities: Bound | None = None,
    store_permutation: bool = False,
    chunk_values: int | None = None,
    speed: Speed = "small",
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    client: Any = None,
    parts: int | None = None,
    scratch: str | Path | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Archive:
    """Compress particles or a field so that the bound holds for every value, decoded and checked before this returns.

    `archive.certificate.notes` names a bound or a linking length that may be in another unit than the data.

    `source` is `wb.Particles`, a `wb.Field` or an array; or data that stay where they are: the file, pattern or folder of a
    snapshot, `wb.open_chunked(...)`, `wb.distributed.from_dask(...)`, an array of Dask, Zarr, h5py or xarray, a
    `wb.distributed.ChunkedField`, the path of a .npy or Zarr array. Arrays are treated as fields, also those of shape
    (N, 3): give `wb.Particles(array)` if they are positions. The mask of a NumPy masked array is kept, and what an array of
    xarray carries.

    `codec` is a name or a codec with options; "auto" takes the built-in codec for particles, and for fields of floats the
    built-in codec that makes a sample smallest, as the certificate states; with `speed="fast"` it takes `prequantised`,
    which is many times as fast and usually larger. `order="free"` sorts the particles along a curve: positions become much
    smaller, consecutive ids larger; `store_permutation` then stores the permutation. `keep` is one promise beyond the
    bound, or several. `velocities` bounds the error of velocities, which are exact otherwise; ids are always exact.
    Velocities are encoded by `codec` or, if it is only for positions, by `prequantised`.

    `out` is where the archive is written: a folder, or a file that ends in .zip; without it, it is in memory. The steps run
    in this process or, with `client` (a Dask client, or the address of a scheduler), on its workers, which must see `out`,
    the source and the `scratch` folder; the bytes are the same, but that kept clusters may be repaired by other moves.
    Sources in Dask or Zarr arrays use Dask's active client. `parts` is the number of subdomains for `order="free"` and
    `keep` (by default, about a million particles each). `metadata` replaces that of the source. A run with `out` that was
    killed, or failed, leaves a hidden folder beside it: the same call goes on from there, and encodes no chunk of a field
    or of positions again. Particles in memory, without `client` and `parts`, are all encoded before any is written: that
    call starts anew.

    `progress` is called with the completed share and the current task; an exception that it raises stops the work. If it
    has a method `watch`, that is called with every step of keeping clusters: its number, phase, violations and loss.

    >>> import workbench as wb
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> archive = wb.compress(snapshot, wb.Absolute(0.01), order="free")
    >>> decoded = archive.decompress()
    >>> order = archive.permutation(snapshot)
    >>> bool(abs(decoded.positions - snapshot.positions[order]).max() <= 0.01)
    True
    """
    request = Request(
        bound, codec, promises(keep), order, progress, velocities, store_permutation, chunk_values, speed=speed
    )
    if parts is not None:
        whole_number("parts", parts, least=1)
    if out is not None:
        require_writable(out, overwrite)
    given = source_of(source)
    described = given.metadata if metadata is None else metadata
    require_storable(described)
    if isinstance(given, Particles | ChunkedParticles):
        guarantee_of(request)
    elif velocities is not None or store_permutation or order == "free":
        raise WorkbenchError("velocities, store_permutation and order='free' are for particles; got a field")
    executor = executor_of(client, progress, given)
    if isinstance(executor, OnDask) and out is None:
        raise WorkbenchError("workers write the archive: give out=, a path on a file system that all of them see")
    writing = _Writing(out, overwrite)
    if isinstance(given, Particles) and isinstance(executor, InProcess) and parts is None:
        particles = given if metadata is None else replace(given, metadata=metadata)
        return _in_memory(particles, request, writing, executor)
    with scratch_folder(scratch, executor) as folder:
        executor = executor.within(folder)
        if isinstance(given, Particles | ChunkedParticles):
            return _in_chunks(given, described, request, writing, executor, folder, parts)
        return _field(ChunkedField.of(given).with_metadata(described), request, writing, executor, folder)


class _Writing:
    """Where an archive goes: to memory, or to a path."""

    def __init__(self, out: str | os.PathLike[str] | None, overwrite: bool) -> None:
        self.out, self.overwrite = out, overwrite

    @contextmanager
    def place(self, token: str | None) -> Iterator[MemoryStore | Draft]:
        """A store, or a draft that the same call would continue after an error."""
        if self.out is None:
            yield MemoryStore()
            return
        draft = Draft(self.out, self.overwrite, token)
        with draft.continued():
            yield draft


def _in_memory(particles: Particles, request: Request, writing: _Writing, executor: Executor) -> Archive:
    """The archive of particles in memory; it is written at the end."""
    request = replace(request, bound=request.bound.for_data(particles))
    archive = compress_particles(InMemory(particles, request), request, MemoryStore(), executor)
    return archive if writing.out is None else Archive.open(archive.save(writing.out, writing.overwrite))


def _in_chunks(
    given: Particles | ChunkedParticles, metadata: Mapping[str, Any], request: Request, writing: _Writing,
    executor: Executor, folder: Path, parts: int | None,
) -> Archive:
    """The archive of particles in chunks; those in memory are brought to files first, for workers."""
    source = chunked(given, executor, folder)
    one = Particles(np.zeros((1, source.dimensions)), metadata=metadata)   # says what the unit is
    request = replace(request, bound=request.bound.for_data(one))
    supply = InChunks(source, metadata, request, executor, folder, parts)
    with writing.place(supply.token()) as place:
        return compress_particles(supply, request, place, executor)


def _field(field: ChunkedField, request: Request, writing: _Writing, executor: Executor, folder: Path) -> Archive:
    request = replace(request, bound=request.bound.for_data(field.described))
    codec_for(field, request)   # refuses what cannot be done, before a draft is begun
    with writing.place(token_for(field, request)) as place:
        return compress_field(field, request, place, executor, folder)
