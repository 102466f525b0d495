"""Opening files: particles and fields from the formats in which scientists have them.

A format is recognised by content, because names mislead: `.nc` may contain HDF5, `snap_004.0` says nothing. Raw floats
cannot be recognised and must be described. Every reader keeps the number type on disk, puts the header into `metadata`,
and refuses damaged input with an error of one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from workbench.data.chunked import CHUNK, ChunkedParticles
from workbench.data.readers.format import Format
from workbench.data.readers.leaving import left_out
from workbench.data.readers.limits import ReadLimits, without_limits
from workbench.data.readers.opening import is_set, snapshot_of
from workbench.data.readers.options import FROM_FILE
from workbench.data.readers.registry import check_options, format_of, formats, register
from workbench.data.readers.series import SnapshotSeries, series_of
from workbench.data.readers.source import Source
from workbench.data.readers.trajectories import open_trajectory

__all__ = ["Format", "formats", "left_out", "open_chunked", "open_file", "open_series", "open_trajectory", "register"]

Path = str | os.PathLike[str]
Files = Path | Sequence[Path]


def open_file(path: Files, *, format: str | None = None, **options: Any) -> Any:
    """Read particles or a field from a file or folder of any supported format; this is `wb.open`.

    A snapshot in several files is given as one of them, as their folder, as a pattern such as "snap_099.*.hdf5", or as a
    list. Other contents of the file are listed in `.metadata["left_out"]`.

    `format` overrides recognition by content. The other options depend on the format; inapplicable options are refused:

    - `box`: for particles, None (an open space) or the lengths to use instead of the file's own
    - `wrap`: True replaces positions outside the box by their periodic images; otherwise only rounding at faces is accepted
    - `particle_type`: in snapshots, 0 to 5, "gas", "dark_matter", "stars", "black_holes", "all"; dark matter unless given
    - `positions`, `velocities`, `ids`, `masses`: names of data sets in HDF5 and Zarr files of any layout; of positions and
      velocities one for all axes, or a list of one for each
    - `columns`: further columns of particles, such as ["Potential", "Density"], or "all"; in HDF5
      and Zarr files of any layout the names of data sets, or a mapping of names of columns to these
    - `frame`: in trajectories, counted from 0; all frames are opened by `wb.open_trajectory`
    - `name`: which of several arrays; the error lists them
    - `scaled`: apply scale factors in NetCDF, Zarr and HDF5; None does so for packed integers only
    - `shape`, `dtype`: of raw floats; `kind`: whether a bare array is "particles" or a "field"
    - `spacing`: of a field, the distance between grid points
    - `damaged`: True opens what is left of a cut or incomplete archive
    - `most_bytes`: of one array in memory; unless given, 1,024 for each byte of the file, and 2^28
    - `external`: True also reads data that an HDF5 or BOV file keeps in other files outside of its folder
    - `codecs`, `isolate`, `patience`: limits for archives from other people (`workbench.Archive.open`)
    - `storage_options`: of archives at addresses, such as https://... or s3://...

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
    if is_set(path, format):
        return snapshot_of(path, format, options).particles(options.get("box", FROM_FILE), options.get("wrap", False))
    source = Source.at(path, ReadLimits.among(options))   # type: ignore[arg-type]
    found = format_of(source, format, options)
    own = without_limits(options, found.options)
    check_options(found, source, own, found.options)
    return found.read(source, **own)


def open_chunked(path: Files, *, format: str | None = None, chunk: int = CHUNK, **options: Any) -> ChunkedParticles:
    """Particles of any size in chunks, of which none is read yet; this is `wb.open_chunked`.

    `path` is a file, a list of files, a pattern, or a folder, as for `wb.open`; `chunk` is about the number of particles in
    a chunk. Snapshots of Gadget, AREPO, IllustrisTNG, SWIFT, HACC and Abacus, `.npy` files, Zarr stores, archives, and HDF5
    files with named data sets can be read in chunks. The options are those of `wb.open`.

    Chunks hold positions, and what else is asked for of the `columns` that there are: velocities, ids and masses, and those
    of other names that the option `columns` has chosen.

    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> for part in range(3):
    ...     np.save(f"{folder.name}/part.{part}.npy", np.random.default_rng(part).random((100, 3)))
    >>> import workbench as wb
    >>> particles = wb.open_chunked(f"{folder.name}/part.*.npy", box=1.0, chunk=50)
    >>> particles
    ParticlesInFiles(part.0.npy: 300 in 6 chunks, float64, box 1 x 1 x 1)
    >>> particles.chunk(5)
    Particles(50 in 3-D, float64, box 1 x 1 x 1)
    >>> folder.cleanup()
    """
    found = snapshot_of(path, format, options)
    return found.in_chunks(options.get("box", FROM_FILE), options.get("wrap", False), chunk)


def open_series(path: Files | Sequence[Files], *, chunk: int = CHUNK, **options: Any) -> SnapshotSeries:
    """The snapshots of a simulation as a sequence; each is opened when it is asked for, as by `wb.open_chunked`.

    Files that are only read as a whole, such as the months of a field in NetCDF, are read by `wb.open` each time.

    `path` is a pattern such as "snap_*.hdf5" or "snapdir_*", the folder of the snapshots, or a list of what
    `wb.open_chunked` opens. The files of one snapshot are one entry. The options are those of `wb.open_chunked`, or of
    `wb.open`, such as `name`.

    >>> import tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> for number in (9, 10):
    ...     np.save(f"{folder.name}/step_{number}.npy", np.full((number, 3), 0.5))
    >>> import workbench as wb
    >>> series = wb.open_series(f"{folder.name}/step_*.npy", box=1.0)
    >>> series, [len(snapshot) for snapshot in series]
    (SnapshotSeries(2 snapshots: step_9.npy to step_10.npy), [9, 10])
    >>> folder.cleanup()
    """
    return series_of(path, chunk=chunk, **options)
