"""Velocities, ids and masses of an archive from workers: the same arrays, bit for bit, as from one process.

Their chunks are shorter than those of positions, so a step encodes several that follow each other. In a free order the
values travel with the positions in the exchange, and whoever sorts the positions of a chunk leaves them beside it, sorted.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.archive.chunk import EncodedChunk, exact_chunk
from workbench.archive.encoding import (
    EncodedArray,
    ReadyChunk,
    Slices,
    Task,
    assembled,
    encode_values,
    even_chunks,
    exact_layout,
    exactly,
    layout_for,
)
from workbench.archive.layout import ArrayLayout
from workbench.archive.particles import COMPANIONS, Plan, velocity_codec
from workbench.archive.request import Request
from workbench.data.chunked import MASSES, ChunkedParticles
from workbench.data.particles import COMPANIONS as NAMES
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.enforce import Figures
from workbench.run.executors import Executor
from workbench.subdomains.sources import PART

VELOCITIES = "velocities"
Done = tuple[EncodedChunk, Figures | None]   # a chunk without its bytes, and the figures of one that a codec encoded


@dataclass(frozen=True)
class Companions:
    """The columns of a source that an archive keeps beside the positions, by name; as cargo, their bytes side by side."""

    source: ChunkedParticles
    dtypes: dict[str, np.dtype]

    @classmethod
    def of(cls, source: ChunkedParticles, executor: Executor) -> Self:
        """Those that the source has; the first chunk tells their types."""
        names = tuple(name for name in NAMES if name in source.columns and (name != MASSES or source.mass is None))
        if not names:
            return cls(source, {})
        found = executor.map("read-types", functools.partial(_dtypes, names), [0], "chunk", shared=source)[0]
        if VELOCITIES in found and found[VELOCITIES].name not in ("float32", "float64"):
            given = found[VELOCITIES]
            raise WorkbenchError(f"velocities must be float32 or float64; got {given}: convert with .astype(...)")
        return cls(source, found)

    @property
    def row_bytes(self) -> int:
        """The bytes of all columns of one particle."""
        return sum(dtype.itemsize * self.width(name) for name, dtype in self.dtypes.items())

    def width(self, name: str) -> int:
        """The numbers of a column in one row."""
        return self.source.dimensions if name == VELOCITIES else 1

    def rows(self, chunk: int) -> np.ndarray:
        """The bytes of all columns in a chunk of the source."""
        columns = self._read(chunk, tuple(self.dtypes)).items()
        return np.concatenate([column.reshape(len(column), -1).view(np.uint8) for _, column in columns], axis=1)

    def unpacked(self, cargo: np.ndarray, name: str) -> np.ndarray:
        """A column, from rows of bytes."""
        begin = 0
        for other, dtype in self.dtypes.items():
            end = begin + dtype.itemsize * self.width(other)
            if other == name:
                break
            begin = end
        found = np.ascontiguousarray(cargo[:, begin:end]).view(self.dtypes[name])
        return found if name == VELOCITIES else found[:, 0]

    def between(self, name: str, begin: int, end: int) -> np.ndarray:
        """A column of the particles at these places in the source."""
        starts = self.source.starts
        first, last = int(np.searchsorted(starts, begin, "right")) - 1, int(np.searchsorted(starts, end))
        pieces = [
            self._read(chunk, (name,))[name][max(begin - starts[chunk], 0) : end - starts[chunk]]
            for chunk in range(first, last)
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _read(self, chunk: int, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Columns of a chunk of the source, checked."""
        particles, found = self.source.chunk(chunk, names), {}
        for name in names:
            found[name] = column = np.ascontiguousarray(getattr(particles, name))
            if column.dtype != self.dtypes[name]:
                raise WorkbenchError(
                    f"{name} must have one type in all of {self.source.name}: chunk 1 has {self.dtypes[name]}, "
                    f"chunk {chunk + 1} has {column.dtype}"
                )
        return found


@dataclass(frozen=True)
class CompanionArray:
    """One column as an array of an archive that is made; `read` returns it between two places in the archive's order."""

    name: str
    layout: ArrayLayout
    read: Callable[[str, int, int], np.ndarray]
    put: Callable[[str, bytes], None]
    task: Task | None   # of velocities, which a codec encodes

    def encode(self, numbers: range) -> list[Done]:
        """Encode and write chunks that follow each other; returns everything but their bytes."""
        indices = [(number, *[0] * (len(self.layout.shape) - 1)) for number in numbers]
        ranges = [self.layout.chunk_slices(index)[0] for index in indices]
        values, done = self.read(self.name, ranges[0].start, ranges[-1].stop), []   # type: np.ndarray, list[Done]
        for index, rows in zip(indices, ranges, strict=True):
            here = values[rows.start - ranges[0].start : rows.stop - ranges[0].start]
            ready = None if self.task is None else encode_values(self.task, np.ascontiguousarray(here))
            chunk = exact_chunk(here) if ready is None else ready.data
            self.put(self.layout.chunk_key(index), chunk.data)
            done.append((EncodedChunk(b"", chunk.checksum), None if ready is None else ready.figures))
        return done


def encode_companions(
    companions: Companions,
    read: Callable[[str, int, int], np.ndarray],
    plan: Plan,
    request: Request,
    put: Callable[[str, bytes], None],
    executor: Executor,
) -> Iterator[EncodedArray]:
    """Encode and write all columns, in the order in which archives list them; the arrays are without bytes."""
    few = min(plan.chunk, even_chunks(plan.count, COMPANIONS))
    for name, dtype in companions.dtypes.items():
        if name == VELOCITIES:
            codec = velocity_codec(request)
            layout = layout_for(name, (plan.count, plan.dimensions), dtype, (few, plan.dimensions), codec)
            task = Task(layout, _nothing, codec, request.velocities, Limit("absolute", 0.0))
        else:
            layout, task = exact_layout(name, (plan.count,), dtype, (few,)), None
        array, together = CompanionArray(name, layout, read, put, task), max(1, PART // few)
        numbers = [
            range(start, min(start + together, layout.chunk_count)) for start in range(0, layout.chunk_count, together)
        ]
        encoded = executor.map(f"encode-{name}", CompanionArray.encode, numbers, "group of chunks", shared=array)
        done = list(itertools.chain(*encoded))
        if task is None:
            yield exactly(layout, [chunk for chunk, _ in done])
        else:
            ready = [ReadyChunk(chunk, figures, None, None, None) for chunk, figures in done if figures is not None]
            yield assembled(task, ready)


def _nothing(slices: Slices) -> np.ndarray:
    """Values are given to the codec chunk by chunk; there is no array to take them from."""
    raise AssertionError("chunks of companions are encoded from values that are read already")


def _dtypes(names: tuple[str, ...], source: ChunkedParticles, chunk: int) -> dict[str, np.dtype]:
    particles = source.chunk(chunk, names)
    return {name: getattr(particles, name).dtype for name in names}
