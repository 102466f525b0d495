"""Numbers of particles that workers write to one Zarr array, a chunk each."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.run.executors import Executor
from workbench.run.new_folder import new_folder

Between = Callable[[int, int], np.ndarray]   # the numbers of the particles from an index up to another


def write_zarr(
    path: str | os.PathLike[str], count: int, chunk: int, between: Between, attributes: Mapping[str, Any],
    executor: Executor,
) -> Path:
    """Write `count` numbers (int64) to a Zarr array in chunks of this size; returns where it is.

    >>> import tempfile
    >>> from workbench.run.executors import InProcess
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     labels = write_zarr(Path(folder) / "labels.zarr", 5, 2, np.arange, {}, InProcess())
    ...     __import__("zarr").open_array(labels)[:].tolist()
    [0, 1, 2, 3, 4]
    """
    try:
        import zarr
    except ImportError:
        raise WorkbenchError("to_zarr needs Zarr, which is not installed: pip install 'lossbench[io]'") from None
    with new_folder(path, executor) as folder:
        zarr.create_array(
            store=folder, shape=(count,), chunks=(chunk,), dtype=np.int64, attributes=dict(attributes),
            dimension_names=["particle"],
        )
        executor.map("write-labels", functools.partial(_write, folder, between), range(-(-count // chunk)), "chunk")
    return Path(path)


def _write(folder: Path, between: Between, number: int) -> None:
    """Write one chunk of the array."""
    import zarr

    array = zarr.open_array(folder, mode="r+")
    start = number * array.chunks[0]
    end = min(start + array.chunks[0], array.shape[0])
    array[start:end] = between(start, end)
