"""Particles in Dask arrays: the blocks along the first axis are the chunks.

On a cluster, the workers first write each block to a file of the scratch folder. So each is computed once, whatever it
costs, and has the same values in each step, even where its graph draws random numbers or reads a file that changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend
from workbench.data.chunked import ChunkedParticles, holds_positions
from workbench.data.columns import TYPES, require_names
from workbench.data.particles import Box
from workbench.data.readers.options import checked_box
from workbench.data.readers.snapshots import placed
from workbench.errors import WorkbenchError
from workbench.run.executors import RETRIES, checked
from workbench.run.graph import computed
from workbench.run.scratch_files import save
from workbench.run.scratch_table import in_scratch_files


def is_dask_array(given: Any) -> bool:
    """Whether this is a Dask array; Dask is not imported to find out."""
    return type(given).__module__.partition(".")[0] == "dask" and hasattr(given, "blocks")


def from_dask(
    positions: Any, box: Box = None, velocities: Any = None, ids: Any = None, masses: Any = None,
    columns: Mapping[str, Any] | None = None,
) -> ParticlesInDask:
    """Particles in a Dask array of shape (N, 2) or (N, 3), in chunks that are its blocks along the first axis.

    `velocities`, `ids`, `masses` and `columns` of other names are Dask arrays, too; their blocks may differ from those of
    the positions.

    >>> import dask.array as da
    >>> from_dask(da.random.default_rng(0).random((100, 3), chunks=(40, 3)), box=1.0)
    ParticlesInDask(a Dask array: 100 in 3 chunks, float64, box 1 x 1 x 1)
    """
    if not (is_dask_array(positions) and holds_positions(positions)):
        got = f"{positions.dtype} {positions.shape}" if is_dask_array(positions) else type(positions).__name__
        raise WorkbenchError(f"positions must be a Dask array of float32 or float64, (N, 2) or (N, 3); got {got}")
    if any(np.isnan(size) for size in positions.chunks[0]):
        raise WorkbenchError("the blocks of positions must have known sizes: call positions.compute_chunk_sizes() first")
    given = {"positions": positions, "velocities": velocities, "ids": ids, "masses": masses}
    arrays = {}
    for name, array in given.items():
        if array is None:
            continue
        shape = positions.shape if name in ("positions", "velocities") else positions.shape[:1]
        kind, what = ("iu", "integers") if name == "ids" else ("f", "floats")
        if not is_dask_array(array) or array.shape != shape or array.dtype.kind not in kind:
            raise WorkbenchError(f"{name} must be a Dask array of {what} of shape {shape}; got {array!r:.100}")
        arrays[name] = _in_rows(array, tuple(size for size in positions.chunks[0] if size))
    require_names(columns or ())
    for name, array in (columns or {}).items():
        _require_column(name, array, len(positions))
        arrays[name] = _in_rows(array, tuple(size for size in positions.chunks[0] if size))
    periods = None if box is None else checked_box(box, positions.shape[1])
    return ParticlesInDask(arrays, periods)


def _require_column(name: str, array: Any, count: int) -> None:
    """Refuse what cannot be a column of so many particles."""
    fits = is_dask_array(array) and array.dtype.name in TYPES and array.ndim in (1, 2) and array.shape[0] == count
    if not fits:
        raise WorkbenchError(f"the column {name} must be a Dask array of {count:,} numbers or rows; got {array!r:.100}")


def _in_rows(array: Any, sizes: tuple[int, ...]) -> Any:
    """The array in blocks of whole rows, none of them empty."""
    if not sizes:
        raise WorkbenchError("positions must hold at least one particle; got an empty array")
    return array.rechunk({0: sizes, **({1: -1} if array.ndim == 2 else {})})


class ParticlesInDask(ChunkedParticles):
    """Particles in Dask arrays with equal blocks."""

    def __init__(self, arrays: Mapping[str, Any], box: tuple[float, ...] | None) -> None:
        positions = arrays["positions"]
        self.arrays, self.box, self.name = arrays, box, "a Dask array"
        self.dtype, self.dimensions = positions.dtype.newbyteorder("="), int(positions.shape[1])
        self.sizes = tuple(positions.chunks[0])   # the blocks
        self.columns = tuple(name for name in arrays if name != "positions")

    def read(self, number: int) -> np.ndarray:
        """The positions in a block."""
        return self.read_rows(number, "positions", 0, self.sizes[number])

    def column(self, number: int, name: str) -> np.ndarray:
        """A column of the particles in a block."""
        return self.read_rows(number, name, 0, self.sizes[number])

    def read_rows(self, number: int, name: str, begin: int, end: int) -> np.ndarray:
        """Rows of a block: Dask reads no others, where it can slice what its graph reads."""
        if name not in self.arrays:
            return super().column(number, name)
        found = _host(self.arrays[name].blocks[number][begin:end].compute())
        return placed(found, self.box, len(self)) if name == "positions" else found

    def saved(self, client: Any, folder: Path) -> ChunkedParticles:
        """The same particles in files, which the workers of this client write."""
        from dask.delayed import delayed

        numbers = range(len(self.sizes))
        paths = [{name: folder / f"column-{name}-{number}.npy" for name in self.arrays} for number in numbers]
        blocks = {name: array.to_delayed().ravel() for name, array in self.arrays.items()}
        save = delayed(checked(_save), name="save-blocks", pure=False)
        saves = [save(blocks[name][number], path) for number, one in enumerate(paths) for name, path in one.items()]
        futures = client.compute(saves, retries=RETRIES)
        try:
            for future in futures:
                computed(client, future, f"a block of {self.name}")
        finally:
            if client.status == "running":
                client.cancel(futures)
        return in_scratch_files(self.name, paths, self.box)


def _host(block: Any) -> np.ndarray:
    found = np.ascontiguousarray(backend.to_host(block))
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def _save(block: Any, path: Path) -> None:
    save(path, _host(block))
