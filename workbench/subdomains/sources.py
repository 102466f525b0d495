"""What the distributed functions accept as particles, and what they must know about them before any work."""

from __future__ import annotations

import functools
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles, ParticlesInMemory, even_sizes
from workbench.data.outline import Outline, Outlined
from workbench.data.readers import open_chunked
from workbench.errors import WorkbenchError, briefly
from workbench.run.clients import require_shared
from workbench.run.dask_particles import ParticlesInDask, from_dask, is_dask_array
from workbench.run.executors import Executor, OnDask
from workbench.run.owner import remove_owned
from workbench.run.scratch_files import load, save
from workbench.run.scratch_table import in_scratch_files

PART = 2**20          # particles in a subdomain: at the usual linking length, less than a tenth of them have ghosts
SAMPLE = 2**17        # positions that decide where subdomains are divided, at least,
SAMPLED = 256         # and for each subdomain: its size then differs from the mean by about a sixteenth

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
        if min(given.sizes, default=0) < 1:
            raise WorkbenchError(f"{given.name} must have chunks of at least one particle each; got sizes {given.sizes}")
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
        paths[name] = folder / f"column-{name}.npy"   # apart from the other files there
        save(paths[name], backend.to_host(array))
    mass = given.masses if isinstance(given.masses, float) else None
    found = in_scratch_files("particles in memory", [paths], given.box, mass, given.metadata)
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
        ends = self.executor.map("find-extent", _extent, range(len(source.sizes)), "chunk", shared=source)
        return Outline.around(ends, len(source), source.dtype, source.box)


def outline_of(source: ChunkedParticles, executor: Executor) -> LazyOutline:
    """What is known about the particles: number, type and box at once, the extent when it is asked for."""
    return LazyOutline(source, executor)


@dataclass(frozen=True)
class Sampling:
    """The same share of every chunk, since chunks may be anywhere in space; it gets here by files, not with the tasks."""

    source: ChunkedParticles
    share: float
    folder: Path

    def sample(self, chunk: int) -> None:
        """Draw the share of a chunk."""
        save(self._file(chunk), self.source.sample(chunk, self.share).astype(self.source.dtype))

    def survey(self, chunk: int) -> Ends:
        """Do so with the extent, reading the chunk once."""
        particles = self.source.chunk(chunk)
        save(self._file(chunk), particles.positions[self.source.drawn(chunk, self.share)])
        return particles.lower, particles.upper

    def drawn(self) -> np.ndarray:
        """The positions of all chunks."""
        files = [self._file(chunk) for chunk in range(len(self.source.sizes))]
        positions = np.concatenate([load(file) for file in files]).astype(np.float64)
        for file in files:
            file.unlink()
        return positions

    def _file(self, chunk: int) -> Path:
        return self.folder / f"sample-{chunk}.npy"


def sample_of(source: ChunkedParticles, executor: Executor, folder: Path, parts: int, times: int = 1) -> np.ndarray:
    """Positions (float64) for a division into so many subdomains, or `times` as many of them."""
    sampling = Sampling(source, share_of(source, parts, times), folder)
    executor.map("sample-particles", Sampling.sample, range(len(source.sizes)), "chunk", shared=sampling)
    return sampling.drawn()


def surveyed(source: ChunkedParticles, executor: Executor, folder: Path, parts: int) -> tuple[Outline, np.ndarray]:
    """The outline with its extent, and the sample: each chunk is read once for both."""
    if source.extent is not None:
        return outline_of(source, executor).known, sample_of(source, executor, folder, parts)
    sampling = Sampling(source, share_of(source, parts), folder)
    ends = executor.map("survey-particles", Sampling.survey, range(len(source.sizes)), "chunk", shared=sampling)
    return Outline.around(ends, len(source), source.dtype, source.box), sampling.drawn()


def share_of(source: ChunkedParticles, parts: int, times: int = 1) -> float:
    """The share of the particles that is a sample for so many subdomains."""
    return min(1.0, times * max(SAMPLE, SAMPLED * parts) / len(source))


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
            remove_owned(folder)


def _extent(source: ChunkedParticles, number: int) -> Ends:
    chunk = source.chunk(number)
    return chunk.lower, chunk.upper


