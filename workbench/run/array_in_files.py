"""Arrays in the scratch folder that many steps write, part by part, and read at any place.

Each part is a file of its own: two workers never write to the same one, and a part is there completely or not at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.run.scratch_files import Mapped, save
from workbench.slabs import Slices


@dataclass(frozen=True)
class ArrayInFiles:
    """An array of which the parts, numbered in its order, are files whose names begin with `stem`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     array = ArrayInFiles(Path(folder) / "part", (5,), np.dtype("i8"), (3,))
    ...     array.write(0, np.array([0, 1, 2]))
    ...     array.write(1, np.array([3, 4]))
    ...     array[1:4,].tolist()
    [1, 2, 3]
    """

    stem: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    chunks: tuple[int, ...]

    def write(self, number: int, values: np.ndarray) -> None:
        """Write a part."""
        save(self._path(number), np.ascontiguousarray(values, self.dtype))

    def __getitem__(self, place: Slices) -> np.ndarray:
        values = np.empty([part.stop - part.start for part in place], self.dtype)
        for number, inside, target in self._overlaps(place):
            values[target] = Mapped(self._path(number))[inside]
        return values

    def _overlaps(self, place: Slices) -> Iterator[tuple[int, Slices, Slices]]:
        """The number of each part that has values there, where they are in the part, and where in what is read."""
        counts = [-(-size // step) for size, step in zip(self.shape, self.chunks, strict=True)]
        ranges = [
            range(part.start // step, -(-part.stop // step)) for part, step in zip(place, self.chunks, strict=True)
        ]
        for index in itertools.product(*ranges):
            inside, target = [], []
            for at, part, step in zip(index, place, self.chunks, strict=True):
                begin, end = max(part.start, at * step), min(part.stop, (at + 1) * step)
                inside.append(slice(begin - at * step, end - at * step))
                target.append(slice(begin - part.start, end - part.start))
            yield int(np.ravel_multi_index(index, counts)), tuple(inside), tuple(target)

    def _path(self, number: int) -> Path:
        return self.stem.with_name(f"{self.stem.name}-{number}.npy")
