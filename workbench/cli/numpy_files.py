"""The data of an archive as a NumPy file: `.npy` for the main array, `.npz` for all arrays."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from workbench.archive import Archive
from workbench.cli.leftovers import clear_leftovers
from workbench.cli.notes import show_notes
from workbench.cli.target import add_target, new_file, require_free
from workbench.errors import WorkbenchError

SUFFIXES = (".npy", ".npz")


def add_numpy_target(parser: argparse.ArgumentParser) -> None:
    """Add OUT, a NumPy file."""
    add_target(parser, "file to write: .npy for the positions or values alone, .npz for all arrays")


def require_numpy_target(options: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, before any work."""
    if Path(options.out).suffix not in SUFFIXES:
        raise WorkbenchError(f"OUT must end in {' or '.join(SUFFIXES)}; got {options.out}")
    show_notes(clear_leftovers(require_free(options.out, options.overwrite, options.archive)))


def what_is_written(archive: Archive, data: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The file, and the main array in it."""
    main = archive.content.arrays(data)[archive.content.data]
    return {
        "file": options.archive,
        "out": options.out,
        "holds": archive.kind,
        "shape": list(main.shape),
        "dtype": str(main.dtype),
    }


def _save_all(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """What `np.savez` writes, also for names that are its arguments, such as `file`."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)


def write_arrays(archive: Archive, data: Any, options: argparse.Namespace) -> dict[str, list[str]]:
    """Write the file; returns the names of the arrays written and left out."""
    arrays = {name: np.asarray(values) for name, values in archive.content.exported(data).items()}
    main, *rest = arrays
    alone = Path(options.out).suffix == ".npy"
    with new_file(options.out, options.overwrite, options.archive) as file:
        if alone:
            np.save(file, arrays[main])
        else:
            _save_all(file, arrays)
    return {"arrays": [main] if alone else [main, *rest], "left_out": rest if alone else []}
