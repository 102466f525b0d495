"""What the distributed functions accept as particles, and what they must know about them before any work."""

from __future__ import annotations

import functools
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import numpy as np

from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles, ParticlesInMemory, ParticlesInNpy, even_sizes
from workbench.data.outline import Outline
from workbench.distributed.clients import require_shared
from workbench.distributed.executors import Executor, OnDask
from workbench.errors import WorkbenchError

PART = 2**20          # particles in a subdomain: at the usual linking length, less than a tenth of them have ghosts
SAMPLE = 2**17        # positions that decide where subdomains are divided,
SAMPLED_CHUNKS = 64   # from so many chunks

Given = ChunkedParticles | Particles | str | Path


def chunked(given: Given, executor: Executor, folder: Path) -> ChunkedParticles:
    """The particles in chunks. Those in the memory of this process are written to the folder, for workers to read."""
    if isinstance(given, ChunkedParticles):
        return given
    if isinstance(given, Particles):
        if not isinstance(executor, OnDask):
            return ParticlesInMemory(given, even_sizes(len(given), PART))
        np.save(folder / "positions.npy", given.positions)
        return ParticlesInNpy.open(folder / "positions.npy", given.box)
    if isinstance(given, str | Path) and Path(given).suffix == ".npy":
        return ParticlesInNpy.open(given)
    raise WorkbenchError(f"source must be particles in chunks, wb.Particles, or a .npy file; got {given!r:.100}")


def outline_of(source: ChunkedParticles, executor: Executor) -> Outline:
    """The extent of the particles; reads all of them."""
    ends = executor.map("find-extent", functools.partial(_extent, source), range(len(source.sizes)))
    return Outline.around(ends, len(source), source.dtype, source.box)


def sample_of(source: ChunkedParticles, executor: Executor) -> np.ndarray:
    """Positions from all over the source; where it has many chunks, from some of them."""
    chunks = np.unique(np.linspace(0, len(source.sizes) - 1, SAMPLED_CHUNKS).astype(int)).tolist()
    share = min(1.0, SAMPLE / sum(source.sizes[chunk] for chunk in chunks))
    return np.concatenate(executor.map("sample-particles", functools.partial(source.sample, share=share), chunks))


@contextmanager
def scratch_folder(scratch: str | Path | None, executor: Executor, keep: bool = False) -> Iterator[Path]:
    """A new folder that all workers see; removed at the end or, with `keep`, only after an error."""
    if scratch is None:
        folder = Path(tempfile.mkdtemp(prefix="lossbench-"))
    else:
        folder = Path(scratch).absolute() / f"lossbench-{uuid.uuid4().hex[:12]}"
        folder.mkdir(parents=True)
    try:
        require_shared(executor, folder)
        yield folder
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            rmtree(folder, ignore_errors=True)


def _extent(source: ChunkedParticles, number: int) -> tuple[np.ndarray, np.ndarray]:
    chunk = source.chunk(number)
    return chunk.lower, chunk.upper
