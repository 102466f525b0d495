"""What the distributed functions accept as particles, and what they must know about them before any work."""

from __future__ import annotations

import functools
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from workbench import backend
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles, ParticlesInMemory, even_sizes
from workbench.data.outline import Outline, Outlined
from workbench.data.readers import open_chunked
from workbench.data.readers.numpy_files import NpyTable
from workbench.data.readers.snapshots import Snapshot
from workbench.errors import WorkbenchError, briefly
from workbench.run.clients import require_shared
from workbench.run.dask_particles import ParticlesInDask, from_dask, is_dask_array
from workbench.run.executors import Executor, OnDask
from workbench.run.scratch_files import save

PART = 2**20          # particles in a subdomain: at the usual linking length, less than a tenth of them have ghosts
SAMPLE = 2**17        # positions that decide where subdomains are divided,
SAMPLED_CHUNKS = 64   # from so many chunks

Files = str | os.PathLike[str]
Ends = tuple[np.ndarray, np.ndarray]
Given = ChunkedParticles | Particles | Files | Sequence[Files] | Any   # the last: a Dask array


def chunked(given: Given, executor: Executor, folder: Path) -> ChunkedParticles:
    """The particles in chunks. What only this process or a Dask graph has is written to the folder, for workers to read."""
    if isinstance(given, Particles):
        if not isinstance(executor, OnDask):
            return ParticlesInMemory(given, even_sizes(len(given), PART))
        return _saved(given, folder)
    if is_dask_array(given):
        given = from_dask(given)
    if isinstance(given, ParticlesInDask):
        return given.saved(executor.client, folder) if isinstance(executor, OnDask) else given
    if isinstance(given, ChunkedParticles):
        return given
    names = given if isinstance(given, list | tuple) else [given]
    if names and all(isinstance(name, str | os.PathLike) for name in names):
        return open_chunked(given)
    raise WorkbenchError(
        "source must be wb.Particles, particles in chunks, or what wb.open_chunked takes: a file, a list of files, a "
        f"pattern, a folder; got {briefly(given)}"
    )


def _saved(given: Particles, folder: Path) -> ChunkedParticles:
    """Particles in the memory of this process, as files that workers can read."""
    paths = {}
    for name, array in {"positions": given.positions, **given.companions}.items():
        paths[name] = folder / f"{name}.npy"
        save(paths[name], backend.to_host(array))
    table = NpyTable.of(paths, given.masses if isinstance(given.masses, float) else None)
    found = Snapshot.of("particles in memory", [table], None, given.metadata).in_chunks(given.box)
    return replace(found, extent=(given.lower, given.upper))


class LazyOutline(Outlined):
    """The outline of a source; all particles are read when the extent is first asked for, unless the source knows it.

    Lengths in units of the mean spacing do not need the extent where there is a box.
    """

    def __init__(self, source: ChunkedParticles, executor: Executor) -> None:
        self.source, self.executor, self.box = source, executor, source.box

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return self.source.dimensions

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinate along each axis."""
        return self.known.ends()

    @property
    def corners(self) -> np.ndarray:
        """The lower and the upper corner (2, D), in the type of the positions."""
        return self.known.corners

    def __len__(self) -> int:
        return len(self.source)

    @functools.cached_property
    def known(self) -> Outline:
        """The outline with its extent."""
        source = self.source
        if source.extent is not None:
            return Outline(len(source), source.dtype, *source.extent, source.box)
        ends = self.executor.map("find-extent", functools.partial(_extent, source), range(len(source.sizes)), "chunk")
        return Outline.around(ends, len(source), source.dtype, source.box)


def outline_of(source: ChunkedParticles, executor: Executor) -> LazyOutline:
    """What is known about the particles: number, type and box at once, the extent when it is asked for."""
    return LazyOutline(source, executor)


def sample_of(source: ChunkedParticles, executor: Executor) -> np.ndarray:
    """Positions from all over the source; where it has many chunks, from some of them."""
    chunks, share = _sampled(source)
    step = functools.partial(source.sample, share=share)
    return np.concatenate(executor.map("sample-particles", step, chunks, "sampled chunk"))


def surveyed(source: ChunkedParticles, executor: Executor) -> tuple[Outline, np.ndarray]:
    """The outline with its extent, and the sample: each chunk is read once for both."""
    if source.extent is not None:
        return outline_of(source, executor).known, sample_of(source, executor)
    chunks, share = _sampled(source)
    step = functools.partial(_survey, source, frozenset(chunks), share)
    found = executor.map("survey-particles", step, range(len(source.sizes)), "chunk")
    outline = Outline.around([ends for ends, _ in found], len(source), source.dtype, source.box)
    return outline, np.concatenate([sample for _, sample in found])


def _sampled(source: ChunkedParticles) -> tuple[list[int], float]:
    """The chunks that are sampled, and the share of their particles."""
    chunks = np.unique(np.linspace(0, len(source.sizes) - 1, SAMPLED_CHUNKS).astype(int)).tolist()
    return chunks, min(1.0, SAMPLE / sum(source.sizes[chunk] for chunk in chunks))


@contextmanager
def scratch_folder(scratch: str | Path | None, executor: Executor, keep: bool = False) -> Iterator[Path]:
    """A new folder that all workers see; removed at the end or, with `keep`, only after an error."""
    if scratch is None:
        folder = Path(tempfile.mkdtemp(prefix="lossbench-"))
    else:
        folder = Path(scratch).absolute() / f"lossbench-{uuid.uuid4().hex[:12]}"
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            why = error.strerror or error
            raise WorkbenchError(f"scratch must be a folder that can be written to; got {scratch} ({why})") from None
    try:
        require_shared(executor, folder)
        yield folder
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            rmtree(folder, ignore_errors=True)


def _extent(source: ChunkedParticles, number: int) -> Ends:
    chunk = source.chunk(number)
    return chunk.lower, chunk.upper


def _survey(source: ChunkedParticles, sampled: frozenset[int], share: float, number: int) -> tuple[Ends, np.ndarray]:
    """The extent of a chunk, and its share of the sample."""
    chunk = source.chunk(number)
    rows = source.drawn(number, share) if number in sampled else slice(0)
    return (chunk.lower, chunk.upper), chunk.positions[rows].astype(np.float64)
