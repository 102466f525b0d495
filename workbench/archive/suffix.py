"""What the name of an archive must end in: what is written there has to be what the name says."""

from __future__ import annotations

from pathlib import Path

from workbench.errors import WorkbenchError

SUFFIXES = (".zip", ".zarr", "")


def require_suffix(target: Path) -> Path:
    """The target itself, if its name says what it will be: a file `x.hdf5` that is a folder would surprise everyone.

    >>> require_suffix(Path("snapshot.hdf5"))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: an archive must end in .zip (one file), or in .zarr or without a suffix (a folder); ...
    """
    if target.suffix not in SUFFIXES:
        raise WorkbenchError(
            f"an archive must end in .zip (one file), or in .zarr or without a suffix (a folder); got {target.name}"
        )
    return target
