"""Files of one run in the scratch folder: complete or absent, whatever happens to the worker that writes them.

A file is written under a name of its own and then renamed. So a worker that dies leaves no file that looks complete, and
two workers that write the same file (one was given up for dead, and lives) do not disturb each other.

Behind the data are checksums, one for each block of bytes: a part of a file is checked when it is read.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from workbench.errors import WorkbenchError
from workbench.slabs import Slices

BLOCK = 2**12   # bytes that have a checksum together: more are read than are wanted where the wanted ones are few
SUM = np.dtype("<u4")
CHANGED = "its bytes have changed since they were written"

MORE_SCRATCH = "give scratch=, a folder with enough room that all workers may write to"


@contextmanager
def complete(path: Path, remedy: str = MORE_SCRATCH) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name when the block ends without an error.

    `remedy` is what to do where it cannot be written, for people.
    """
    staged = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with staged.open("xb") as file:
            yield file
        staged.replace(path)
    except OSError as error:
        staged.unlink(missing_ok=True)
        raise WorkbenchError(f"{path} cannot be written ({error.strerror or error}): {remedy}") from error
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def make_folder(path: Path, remedy: str = MORE_SCRATCH) -> None:
    """Make a folder for such files, if it is not there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_folder(Path(folder) / "labels" / "0")
    ...     [path.name for path in Path(folder).rglob("*")]
    ['labels', '0']
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkbenchError(f"{path} cannot be made ({error.strerror or error}): {remedy}") from error


def save(path: Path, array: np.ndarray) -> None:
    """Write an array.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "labels.npy", np.arange(3))
    ...     load(Path(folder) / "labels.npy").tolist()
    [0, 1, 2]
    """
    save_blocks(path, array.shape, array.dtype, [array])


def save_together(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write several arrays to one file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_together(Path(folder) / "a.npz", {"labels": np.arange(3)})
    ...     load_together(Path(folder) / "a.npz")["labels"].tolist()
    [0, 1, 2]
    """
    with complete(path) as file:
        np.savez(file, **arrays)   # type: ignore[arg-type]


def load_together(path: Path) -> dict[str, np.ndarray]:
    """The arrays that `save_together` wrote; an error if these have changed since, as the zip file has checksums, too."""
    try:
        with path.open("rb") as file, np.load(file) as found:
            return dict(found)
    except MemoryError:
        raise
    except Exception as error:   # zipfile and NumPy raise errors of many kinds for a damaged file
        raise unreadable(path, error) from error


def save_blocks(path: Path, shape: tuple[int, ...], dtype: np.dtype, blocks: Iterable[np.ndarray]) -> None:
    """Write an array of this shape, of which one block after the other is in memory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_blocks(Path(folder) / "a.npy", (2, 2), np.dtype(np.int64), (np.full(2, row) for row in range(2)))
    ...     load(Path(folder) / "a.npy").tolist()
    [[0, 0], [1, 1]]
    """
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, described)
    first = np.frombuffer(header.getvalue(), np.uint8)
    with complete(path) as file:
        write_summed(file, itertools.chain([first], (np.ascontiguousarray(block, dtype) for block in blocks)))


def write_summed(file: BinaryIO, arrays: Iterable[np.ndarray]) -> None:
    """Write the bytes of arrays, one array after the other, and behind all of them the checksums of their blocks."""
    sums, last, room = [], 0, BLOCK
    for array in arrays:
        data = array.reshape(-1).view(np.uint8).data
        file.write(data)
        while data:
            last, data, room = zlib.crc32(data[:room], last), data[room:], room - len(data[:room])
            if not room:
                sums.append(last)
                last, room = 0, BLOCK
    file.write(np.array(sums if room == BLOCK else [*sums, last], SUM).data)


def read_summed(file: BinaryIO, size: int, begin: int, end: int) -> np.ndarray:
    """Bytes (uint8) that `write_summed` wrote from here on, `size` of them; an error if these have changed since."""
    start, (first, last) = file.tell(), (begin // BLOCK, -(-end // BLOCK))
    expected, there = start + size - (-size // BLOCK) * SUM.itemsize, os.fstat(file.fileno()).st_size
    if there != expected:
        raise OSError(f"it must have {expected:,} bytes; it has {there:,}")
    data, sums = np.empty(min(last * BLOCK, size) - first * BLOCK, np.uint8), np.empty(last - first, SUM)
    for place, array in ((start + first * BLOCK, data), (start + size + first * SUM.itemsize, sums)):
        file.seek(place)
        if file.readinto(array.data.cast("B")) != array.nbytes:   # type: ignore[attr-defined]
            raise OSError("it ends too early")
    seen = data.data
    if [zlib.crc32(seen[place : place + BLOCK]) for place in range(0, len(seen), BLOCK)] != sums.tolist():
        raise OSError(CHANGED)
    return data[begin - first * BLOCK : end - first * BLOCK]


def size_of_summed(file: BinaryIO) -> int:
    """How many bytes `write_summed` wrote to a file that holds nothing else."""
    size = os.fstat(file.fileno()).st_size
    return size + size // -(BLOCK + SUM.itemsize) * SUM.itemsize


def load(path: Path, rows: slice = slice(None)) -> np.ndarray:
    """An array that `save` wrote, or some of its rows; an error if these have changed since."""
    try:
        with path.open("rb") as file:
            size = size_of_summed(file)
            shape, dtype, place = _header(read_summed(file, size, 0, min(size, BLOCK)))
            begin, end, _ = rows.indices(shape[0])
            step = dtype.itemsize * math.prod(shape[1:])
            file.seek(0)
            found = read_summed(file, place + step * shape[0], place + step * begin, place + step * end)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    return found.view(dtype).reshape(end - begin, *shape[1:])


def _header(first: np.ndarray) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape and type of an array, and where it begins, from the first bytes of its file."""
    header = io.BytesIO(first.tobytes())
    np.lib.format.read_magic(header)
    shape, _, dtype = np.lib.format.read_array_header_1_0(header)
    return shape, dtype, header.tell()


class Mapped:
    """An array that `save` wrote, of which only what is used is read; that is checked first, each block once.

    Rows are taken as from an array: one, a slice, or an array of places or truth values. Functions of NumPy read all of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "labels.npy", np.arange(10**6))
    ...     Mapped(Path(folder) / "labels.npy")[np.array([7, 900_000])].tolist()
    [7, 900000]
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                size, whole = size_of_summed(file), np.memmap(file, np.uint8, "r").view(np.ndarray)
            self._data, self._sums = whole[:size], whole[size:].view(SUM)
            self._seen = self._data.data   # as `zlib` reads it fastest
            self._checked = np.zeros(len(self._sums), bool)
            self._check(np.zeros(1, np.int64))   # the header
            self.shape, self.dtype, self._place = _header(self._data[:BLOCK])
            self._array = self._data[self._place :].view(self.dtype).reshape(self.shape)
        except (OSError, ValueError, IndexError) as error:   # a file that was cut short may lack any part
            raise unreadable(path, error) from error
        self._step = self.dtype.itemsize * math.prod(self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        place = rows if isinstance(rows, tuple) else (rows,)
        if slices := tuple(itertools.takewhile(lambda part: isinstance(part, slice), place)):
            self._check(self._blocks_at(slices))
        else:
            chosen = np.asarray(place[0])
            chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.reshape(-1) % max(len(self), 1)
            begins = (self._place + self._step * chosen) // BLOCK
            blocks = begins[:, None] + np.arange(self._step // BLOCK + 2)   # a row may begin near the end of a block
            self._check(blocks[blocks <= self._last_block(chosen)[:, None]])
        return np.array(self._array[rows])[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._check(np.arange(len(self._sums)))
        return np.array(self._array, dtype)

    def between(self, begin: int, end: int) -> slice:
        """Where the values from `begin` up to `end` are, of numbers that rise.

        The search itself reads single numbers that are not checked: those around its result, which are, must confirm it.
        """
        first, last = np.searchsorted(self._array, [begin, end]).tolist()
        start = max(first - 1, 0)
        if np.searchsorted(self[start : last + 1], [begin, end]).tolist() != [first - start, last - start]:
            raise unreadable(self._path, OSError(CHANGED))
        return slice(first, last)

    def _blocks_at(self, place: Slices) -> np.ndarray:
        """The blocks of the values at these slices. They lie in runs, along the last axis that is not taken whole."""
        ranges = [range(*part.indices(size)) for part, size in zip(place, self.shape, strict=False)]
        while len(ranges) > 1 and len(ranges[-1]) == self.shape[len(ranges) - 1]:
            ranges.pop()
        if not all(ranges):
            return np.empty(0, np.int64)
        begins, (*outer, inner), strides = np.array([self._place]), ranges, self._array.strides
        for along, stride in zip(outer, strides, strict=False):
            begins = np.add.outer(begins, stride * np.array(along)).ravel()
        stride, first, last = strides[len(outer)], min(inner[0], inner[-1]), max(inner[0], inner[-1])
        blocks = (begins + stride * first)[:, None] // BLOCK + np.arange(stride * (last - first + 1) // BLOCK + 2)
        return blocks[blocks <= (begins + stride * (last + 1) - 1)[:, None] // BLOCK]

    def _last_block(self, row: Any) -> Any:
        """The block where a row ends."""
        return (self._place + self._step * (row + 1) - 1) // BLOCK

    def _check(self, blocks: np.ndarray) -> None:
        """Compare blocks with their checksums, but for those that were."""
        for block in set(blocks[~self._checked[blocks]].tolist()):
            if zlib.crc32(self._seen[block * BLOCK : (block + 1) * BLOCK]) != self._sums[block]:
                raise unreadable(self._path, OSError(CHANGED))
            self._checked[block] = True


def unreadable(path: Path, error: Exception) -> WorkbenchError:
    """The error for a file that must be there.

    >>> str(unreadable(Path("labels.npy"), OSError("no such file")))
    'labels.npy cannot be read (no such file): was the scratch folder deleted or damaged? Try again'
    """
    return WorkbenchError(f"{path} cannot be read ({error}): was the scratch folder deleted or damaged? Try again")
