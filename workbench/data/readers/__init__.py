"""Opening files: particles and fields from the formats in which scientists have them.

A format is recognised by content, because names mislead: `.nc` may contain HDF5, `snap_004.0` says nothing. Raw floats
cannot be recognised and must be described. Every reader keeps the number type on disk, puts the header into `metadata`,
and refuses damaged input with an error of one sentence.
"""

from __future__ import annotations

import os
from typing import Any

from workbench.data.readers.format import Format
from workbench.data.readers.leaving import left_out
from workbench.data.readers.registry import FORMATS, check_options, format_of, register
from workbench.data.readers.source import Source

__all__ = ["FORMATS", "Format", "left_out", "open_file", "register"]


def open_file(path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> Any:
    """Read particles or a field from a file or folder of any supported format; this is `wb.open`.

    Other contents of the file are listed in `.metadata["left_out"]`.

    `format` overrides recognition by content. The other options depend on the format; inapplicable options are refused:

    - `box`: for particles, None (an open space) or the lengths to use instead of the file's own
    - `wrap`: True replaces positions outside the box by their periodic images; otherwise only rounding at faces is accepted
    - `particle_type`: in snapshots, 0 to 5; dark matter (1) unless told otherwise
    - `frame`: in trajectories, counted from 0
    - `name`: which of several arrays; the error lists them
    - `scaled`: apply scale factors in NetCDF, Zarr and HDF5; None does so for packed integers only
    - `shape`, `dtype`: of raw floats; `kind`: whether a bare array is "particles" or a "field"
    - `spacing`: of a field, the distance between grid points
    - `damaged`: True opens what is left of a cut or incomplete archive
    - `codecs`, `most_bytes`, `isolate`: limits for archives from other people (`workbench.Archive.open`)

    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "slice.f32"
    >>> np.linspace(0, 1, 12, dtype=np.float32).tofile(path)
    >>> import workbench as wb
    >>> wb.open(path, shape=(3, 4))
    Field(3 x 4, float32)
    >>> wb.open(path, shape=(4, 3), box=1.5)
    Particles(4 in 3-D, float32, box 1.5 x 1.5 x 1.5)
    >>> wb.open(path, shape=(5, 5))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: shape (5, 5) of float32 takes 100 bytes; slice.f32 has 48: ...
    >>> folder.cleanup()
    """
    source = Source.at(path)
    found = format_of(source, format, options)
    check_options(found, source, options)
    return found.read(source, **options)
