"""Files of pieces: what one task writes for several readers, each of which reads its piece with one open.

A piece is a few columns, with as many rows each. A file begins with the places of its pieces; a column ends with a
checksum, which depends on the place of its piece, too. So a reader reads what it wants and hardly more, however small its
piece is, and notices all that has changed.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import numpy as np

from workbench.run.scratch_files import CHANGED, SUM, complete, unreadable

PLACE = np.dtype("<i8")


def write_pieces(path: Path, count: int, pieces: Iterable[Sequence[np.ndarray]]) -> None:
    """Write so many pieces, each given by its columns, one after the other.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_pieces(Path(folder) / "a", 2, [[np.arange(3), np.ones((3, 2))], [np.arange(1), np.zeros((1, 2))]])
    ...     with pieces_of(Path(folder) / "a") as file:
    ...         [column.view(np.int64).tolist() for column in file.read(0, (8, 16), range(1))]
    [[0, 1, 2]]
    """
    with complete(path) as file:
        places = [PLACE.itemsize * (count + 1)]
        file.seek(places[0])
        for columns in pieces:
            size = sum(column.nbytes + SUM.itemsize for column in columns)
            places.append(places[-1] + size)
            seed = _seed(places[-2], places[-1])
            for column in columns:
                data = np.ascontiguousarray(column).reshape(-1).view(np.uint8).data
                file.write(data)
                file.write(zlib.crc32(data, seed).to_bytes(SUM.itemsize, "little"))
        if len(places) != count + 1:
            raise ValueError(f"{path.name} must get {count} pieces; got {len(places) - 1}")
        file.seek(0)
        file.write(np.array(places, PLACE).data)


@contextmanager
def pieces_of(path: Path) -> Iterator[PieceFile]:
    """A file that `write_pieces` wrote; an error where it has changed since."""
    try:
        with path.open("rb", buffering=0) as file:
            yield PieceFile(file)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


@dataclass(frozen=True)
class PieceFile:
    """An open file of pieces."""

    file: FileIO

    def read(self, number: int, widths: Sequence[int], columns: range) -> list[np.ndarray]:
        """Some adjacent columns (uint8, flat) of a piece, of which these are the bytes of a row of each column."""
        begin, end = np.frombuffer(self._bytes(PLACE.itemsize * number, 2 * PLACE.itemsize), PLACE).tolist()
        rows, rest = divmod(end - begin - SUM.itemsize * len(widths), sum(widths))
        if rest or rows < 0 or end > os.fstat(self.file.fileno()).st_size:
            raise OSError(CHANGED)
        lengths = [widths[column] * rows for column in columns]
        before = sum(widths[: columns.start]) * rows + SUM.itemsize * columns.start
        data = self._bytes(begin + before, sum(lengths) + SUM.itemsize * len(lengths))
        seed, place, arrays = _seed(begin, end), 0, []
        for length in lengths:
            stop = place + length
            if zlib.crc32(data[place:stop], seed) != int.from_bytes(data[stop : stop + SUM.itemsize], "little"):
                raise OSError(CHANGED)
            arrays.append(np.frombuffer(data[place:stop], np.uint8))
            place = stop + SUM.itemsize
        return arrays

    def _bytes(self, begin: int, count: int) -> memoryview:
        data, place = np.empty(count, np.uint8).data, 0
        self.file.seek(begin)
        while got := self.file.readinto(data[place:]):   # systems read less than 2^31 bytes at once
            place += got
        if place != count:
            raise OSError("it ends too early")
        return data


def _seed(begin: int, end: int) -> int:
    """Where the checksums of a piece begin."""
    return zlib.crc32(begin.to_bytes(8, "little") + end.to_bytes(8, "little"))
