"""Arrays in files, of which each process reads parts: a .npy file, a data set of HDF5, a Zarr array in a folder.

Their paths are absolute, and a file that a process does not see is an error.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from workbench.errors import WorkbenchError

ZARR_DOCUMENTS = ("zarr.json", ".zarray")   # of formats 3 and 2


@dataclass(frozen=True)
class InNpy:
    """An array in a .npy file, read through a memory map."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """The header of the file is read, and no values."""
        try:
            mapped = np.lib.format.open_memmap(path, mode="r")
        except (OSError, ValueError) as error:
            raise WorkbenchError(f"{path} must be a .npy file of numbers; open files with wb.open(...): {error}") from None
        return cls(Path(path).absolute(), mapped.shape, mapped.dtype)

    def __getitem__(self, place: Any) -> np.ndarray:
        return np.array(np.lib.format.open_memmap(self.path, mode="r")[place])


@dataclass(frozen=True)
class InHdf5:
    """A data set of an HDF5 file, which each process opens for itself."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    chunks: tuple[int, ...] | None

    @classmethod
    def of(cls, data_set: Any) -> Self:
        """From an open h5py data set."""
        return cls(Path(data_set.file.filename).absolute(), data_set.name, data_set.shape, data_set.dtype, data_set.chunks)

    def __getitem__(self, place: Any) -> np.ndarray:
        import h5py

        with h5py.File(self.path, "r") as file:
            return file[self.name][place]


@dataclass(frozen=True)
class InZarr:
    """A Zarr array in a folder. One that is gone would be read as its fill value, so its document is looked for first."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    chunks: tuple[int, ...]

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """The document of the array is read, and no values."""
        place = Path(path).absolute()
        array = _zarr_array(place)
        return cls(place, array.shape, array.dtype, array.chunks)

    @classmethod
    def of(cls, array: Any) -> Self | Any:
        """From a Zarr array; one that is not in a folder, but in memory or elsewhere, stays as it is."""
        return cls.open(Path(array.store.root) / array.path) if type(array.store).__name__ == "LocalStore" else array

    def __getitem__(self, place: Any) -> Any:
        return _zarr_array(self.path)[place]


def _zarr_array(path: Path) -> Any:
    try:
        documents = [path / name for name in ZARR_DOCUMENTS if (path / name).is_file()]
        if not documents:
            raise FileNotFoundError(f"there is no {' or '.join(ZARR_DOCUMENTS)}")
        return _opened(path, documents[0].stat().st_mtime_ns)
    except ImportError:
        raise WorkbenchError("Zarr arrays need zarr, which is not installed: pip install 'lossbench[io]'") from None
    except Exception as error:   # zarr raises errors of many kinds
        what = "must be a Zarr array that all processes see under this path"
        raise WorkbenchError(f"{path} {what}; open archives with wb.open(...): {error}") from error


@functools.lru_cache(maxsize=16)
def _opened(path: Path, modified: int) -> Any:
    """A Zarr array, which was opened for another part before."""
    import zarr

    return zarr.open_array(str(path), mode="r")
