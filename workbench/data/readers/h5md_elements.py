"""The elements of H5MD: quantities of particles that are one data set for all times, or one with a row for each frame.

Steps and times of the rows are stated one by one, or as an increment with an offset. They belong to the element, so that
two elements have the same frames only if their steps say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench.data.readers import hdf5
from workbench.data.readers.libraries import library
from workbench.data.readers.source import Source, plain
from workbench.data.trajectory import Frame

TOGETHER = 64   # frames that are compared at once
WIDE = {"f": np.dtype(np.float32), "i": np.dtype(np.int32), "u": np.dtype(np.uint32)}   # for types of other sizes


@dataclass(frozen=True, eq=False)
class Element:
    """A quantity as data sets that are open; without time, it is the same in every frame."""

    source: Source
    values: Any
    by_frame: bool
    step: Any = None
    time: Any = None

    @classmethod
    def of(cls, source: Source, node: Any) -> Self | None:
        """The element of a group of particles; None for what is none."""
        data_set = library("h5py", "HDF5 files").Dataset
        if node is None or isinstance(node, data_set):
            return None if node is None else cls(source, node, False)
        values, step, time = node.get("value"), node.get("step"), node.get("time")
        return cls(source, values, True, step, time) if isinstance(values, data_set) and values.shape else None

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of one frame."""
        return tuple(self.values.shape[self.by_frame :])

    @property
    def frame(self) -> Frame:
        """The shape of one frame and the type of its numbers here: of 32 or 64 bits."""
        dtype = self.values.dtype.newbyteorder("=")
        return self.row, dtype if dtype.itemsize in (4, 8) else WIDE[dtype.kind]

    def count(self) -> int:
        """How many frames have values, and all that is said of their times."""
        stated = [len(one) for one in (self.step, self.time) if one is not None and one.shape]
        return min([len(self.values), *stated]) if self.by_frame else 1

    def rows(self, begin: int, end: int) -> np.ndarray:
        """The values of some frames."""
        nbytes = math.prod(self.row) * self.values.dtype.itemsize
        self.source.require_room(f"{self.values.name} of {end - begin:,} frames", (end - begin) * nbytes)
        hdf5.refuse_missing_sources(self.values, self.source.path)
        return np.asarray(self.values[begin:end]) if self.by_frame else np.stack([self.values[()]] * (end - begin))

    def numbers(self, of: Any, count: int) -> np.ndarray:
        """The steps or times of so many frames."""
        self.source.require_room("the steps", 8 * count)
        if of.shape:
            return np.asarray(of[:count])
        kind = np.dtype(f"{of.dtype.kind}8")
        return of.attrs.get("offset", kind.type(0)) + kind.type(of[()]) * np.arange(count, dtype=kind)

    def is_with(self, other: Element, count: int) -> bool:
        """Whether so many rows are at the steps of another element, or neither changes with time."""
        if not (self.by_frame and other.by_frame):
            return self.by_frame == other.by_frame
        if len(self.values) < count:
            return False
        if self.step is None or other.step is None or self.step == other.step:   # one data set of the file
            return True
        ours = min(len(self.step), count) if self.step.shape else count
        return ours == count and np.array_equal(self.numbers(self.step, count), other.numbers(other.step, count))

    def is_constant(self, count: int) -> bool:
        """Whether so many frames have the values of the first one."""
        if not self.by_frame:
            return True
        first, starts = self.rows(0, 1), range(0, count, TOGETHER)
        return all(bool((self.rows(at, min(at + TOGETHER, count)) == first).all()) for at in starts)

    def column(self) -> np.ndarray | None:
        """The first row as names of an enumeration, words or numbers; None for anything else."""
        h5py, dtype = library("h5py", "HDF5 files"), self.values.dtype
        found = self.rows(0, 1)[0] if dtype.kind in "iufSO" else np.empty(0)
        if (known := h5py.check_enum_dtype(dtype)) is not None:
            names = {number: name for name, number in known.items()}
            return np.array([names.get(number, str(number)) for number in found.tolist()])
        if h5py.check_string_dtype(dtype) is not None:
            words = [plain(one) for one in found.tolist()]
            self.source.require_room(self.values.name, 4 * len(words) * max(map(len, words), default=0))
            return np.array(words, str)
        return found.astype(dtype.newbyteorder("=")) if dtype.kind in "iuf" else None
