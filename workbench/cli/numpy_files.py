"""The data of an archive as a NumPy file: `.npy` for the main array, `.npz` for all arrays."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

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


def write_arrays(archive: Archive, data: Any, options: argparse.Namespace) -> dict[str, list[str]]:
    """Write the file; returns the names of the arrays written and left out."""
    arrays = {name: np.asarray(values) for name, values in archive.content.exported(data).items()}
    main, *rest = arrays
    alone = Path(options.out).suffix == ".npy"
    with new_file(options.out, options.overwrite, options.archive) as file:
        if alone:
            np.save(file, arrays[main])
        else:
            np.savez(file, **arrays)   # type: ignore[arg-type]
    return {"arrays": [main] if alone else [main, *rest], "left_out": rest if alone else []}
