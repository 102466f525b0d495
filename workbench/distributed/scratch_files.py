"""Files of one run in the scratch folder: complete or absent, whatever happens to the worker that writes them.

A file is written under a name of its own and then renamed. So a worker that dies leaves no file that looks complete, and
two workers that write the same file (one was given up for dead, and lives) do not disturb each other.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from workbench.errors import WorkbenchError


@contextmanager
def complete(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name when the block ends without an error."""
    staged = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with staged.open("xb") as file:
            yield file
        staged.replace(path)
    except OSError as error:
        staged.unlink(missing_ok=True)
        raise WorkbenchError(
            f"{path} cannot be written ({error.strerror or error}): give scratch=, a folder with enough room that all "
            "workers may write to"
        ) from error
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def save(path: Path, array: np.ndarray) -> None:
    """Write an array.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "labels.npy", np.arange(3))
    ...     load(Path(folder) / "labels.npy").tolist()
    [0, 1, 2]
    """
    with complete(path) as file:
        np.save(file, array)


def save_together(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write several arrays to one file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_together(Path(folder) / "a.npz", {"labels": np.arange(3)})
    ...     np.load(Path(folder) / "a.npz")["labels"].tolist()
    [0, 1, 2]
    """
    with complete(path) as file:
        np.savez(file, **arrays)   # type: ignore[arg-type]


def save_blocks(path: Path, shape: tuple[int, ...], dtype: np.dtype, blocks: Iterable[np.ndarray]) -> None:
    """Write an array of this shape, of which one block after the other is in memory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_blocks(Path(folder) / "a.npy", (2, 2), np.dtype(np.int64), (np.full(2, row) for row in range(2)))
    ...     load(Path(folder) / "a.npy").tolist()
    [[0, 0], [1, 1]]
    """
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with complete(path) as file:
        np.lib.format.write_array_header_1_0(file, described)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)


def load(path: Path) -> np.ndarray:
    """An array of which only what is used will be read."""
    try:
        return np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> WorkbenchError:
    """The error for a file that must be there.

    >>> str(unreadable(Path("labels.npy"), OSError("no such file")))
    'labels.npy cannot be read (no such file): was the scratch folder deleted? Search again'
    """
    return WorkbenchError(f"{path} cannot be read ({error}): was the scratch folder deleted? Search again")
