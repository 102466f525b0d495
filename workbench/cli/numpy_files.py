"""Particles or a field as a NumPy file: `.npy` for the main array, `.npz` for all arrays."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from workbench.cli.leftovers import clear_leftovers
from workbench.cli.notes import show_notes
from workbench.cli.target import add_target, new_file, require_free
from workbench.data import Field, Particles
from workbench.data.triclinic import KEY, in_triclinic_cell
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


def write_arrays(data: Particles | Field, options: argparse.Namespace) -> dict[str, list[str]]:
    """Write the file; returns the names of the arrays written and left out."""
    arrays = arrays_of(data)
    main, *rest = arrays
    alone = Path(options.out).suffix == ".npy"
    with new_file(options.out, options.overwrite, options.archive) as file:
        if alone:
            np.save(file, arrays[main])
        else:
            np.savez(file, **arrays)   # type: ignore[arg-type]
    return {"arrays": [main] if alone else [main, *rest], "left_out": rest if alone else []}


def main_array(data: Particles | Field) -> np.ndarray:
    """The positions, or the values."""
    return np.asarray(data.positions if isinstance(data, Particles) else data.values)


def arrays_of(data: Particles | Field) -> dict[str, np.ndarray]:
    """All arrays by name, positions or values first.

    >>> list(arrays_of(Particles([[0.0, 0.5]], box=1.0, ids=[7])))
    ['positions', 'ids', 'box']
    """
    if isinstance(data, Particles):
        found = {"positions": data.positions, **data.companions, "box": data.box}
        if in_triclinic_cell(data.metadata):
            found["cell"] = data.metadata[KEY]["edges"]
        if isinstance(data.masses, float):
            found["masses"] = data.masses
    else:
        found = {"values": data.values, "mask": data.mask, "spacing": data.spacing}
    return {name: np.asarray(array) for name, array in found.items() if array is not None}
