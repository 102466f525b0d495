"""The suffix of the name of an archive, which must match the kind that is written: one file or a folder."""

from __future__ import annotations

from pathlib import Path

from workbench.errors import WorkbenchError

SUFFIXES = (".zip", ".zarr", "")


def require_suffix(target: Path) -> Path:
    """The target itself, if its suffix fits an archive: a folder named `x.hdf5` would mislead.

    >>> require_suffix(Path("snapshot.hdf5"))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: an archive must end in .zip (one file), or in .zarr or without a suffix (a folder); ...
    """
    if target.suffix not in SUFFIXES:
        raise WorkbenchError(
            f"an archive must end in .zip (one file), or in .zarr or without a suffix (a folder); got {target.name}"
        )
    return target
