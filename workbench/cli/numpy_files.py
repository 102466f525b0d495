"""The data of an archive as a NumPy file: `.npy` for the main array, `.npz` for all arrays."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from workbench.archive import Archive
from workbench.cli.target import new_file

SUFFIXES = (".npy", ".npz")


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
