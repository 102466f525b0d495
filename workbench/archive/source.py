"""What `wb.compress` takes: data in memory, or data that stay where they are until a part is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from workbench.data import Field, Particles
from workbench.data.chunked import ChunkedParticles
from workbench.data.readers import open_chunked, open_file
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField, is_lazy


def source_of(given: Any) -> Any:
    """The particles or the field; nothing is read that need not be.

    >>> import numpy as np
    >>> source_of(np.zeros((2, 3)))
    Field(2 x 3, float64)
    """
    if isinstance(given, Particles | ChunkedParticles | Field | ChunkedField):
        return given
    if hasattr(given, "chunked_field"):   # an archive
        return given.chunked_field() if given.kind == "field" else given.decompress()
    if isinstance(given, str | os.PathLike):
        return _file(given)
    if isinstance(given, list | tuple) and given and all(isinstance(one, str | os.PathLike) for one in given):
        return open_chunked(given)
    return ChunkedField(given) if is_lazy(given) else Field.of(given)


def _file(path: str | os.PathLike[str]) -> Any:
    """The particles in a file, a pattern or a folder; or the field in a file."""
    try:
        return open_chunked(path)
    except WorkbenchError as no_particles:
        if Path(path).suffix == ".npy" or (Path(path) / "zarr.json").exists() or (Path(path) / ".zarray").exists():
            return ChunkedField(path)
        if not Path(path).is_file():
            raise
        try:
            found = open_file(path)
        except WorkbenchError:
            raise no_particles from None
        return source_of(found)
