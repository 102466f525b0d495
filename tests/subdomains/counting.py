"""What a run takes, counted step by step: tasks, bytes through the scheduler, files opened, bytes read and written.

Steps run in this process, but each task is pickled with what it carries, run from its pickle, and its result is pickled, as
on a cluster. Files are counted where Python opens them; memory maps of scratch files as if all of them were read.
"""

import builtins
import io
import os
import pickle
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import cloudpickle
import numpy as np

from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles, even_sizes
from workbench.run import shared as shared_values
from workbench.run.executors import InProcess, checked
from workbench.run.shared import Shared, with_shared


@dataclass
class Counts:
    """Of one step."""

    tasks: int = 0
    sent: int = 0       # bytes of what the tasks carry beside their items,
    items: int = 0      # of their items,
    results: int = 0    # and of their results
    largest: int = 0    # of them all, of one task
    opened: int = 0
    read: int = 0       # of scratch files,
    source: int = 0     # and of others
    written: int = 0


class CountedFile(io.FileIO):
    """A file that tells what is read and written; without a buffer, which would read more."""

    def __init__(self, path: Any, mode: str, counts: Counts, is_scratch: bool) -> None:
        super().__init__(path, mode.replace("b", ""))
        self.counts, self.kind = counts, "read" if is_scratch else "source"
        counts.opened += 1

    def counted(self, count: int) -> None:
        setattr(self.counts, self.kind, getattr(self.counts, self.kind) + count)

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        self.counted(count)
        return count

    def read(self, size: int = -1) -> bytes:
        data = super().read(size)
        self.counted(len(data))
        return data

    def readall(self) -> bytes:
        return self.read()

    def write(self, data: Any) -> int:
        written = super().write(data)
        self.counts.written += written
        return written


@dataclass(frozen=True)
class Counting(InProcess):
    """Runs steps here, and counts for each what it takes; `folder` is for what is shared, as on a cluster."""

    steps: dict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    folder: Path | None = None

    def within(self, folder: Path) -> "Counting":
        return replace(self, folder=folder)

    def map(
        self, name: str, step: Any, items: Any, each: str = "item", on_gpu: bool = False, shared: Any = None,
        together: bool = False,
    ) -> list[Any]:
        counts = self.steps[name]
        assert shared is None or self.folder is not None
        file = None if shared is None else Shared.written(self.folder, shared)
        call = checked(with_shared(step, file))

        def counted(item: Any) -> Any:
            carried, given = (cloudpickle.dumps(value) for value in (call, item))
            result = pickle.dumps(pickle.loads(carried)(pickle.loads(given)))
            counts.tasks += 1
            counts.sent += len(carried)
            counts.items += len(given)
            counts.results += len(result)
            counts.largest = max(counts.largest, len(carried) + len(result))
            return pickle.loads(result)

        with self._files(counts):
            results = super().map(name, counted, items, each, on_gpu)
        if file is not None:
            file.delete()
            shared_values._values.pop(file.path, None)
        return results

    @contextmanager
    def _files(self, counts: Counts) -> Iterator[None]:
        real, reach, mapped = builtins.open, os.open, np.memmap
        here = threading.get_ident()   # other threads may be a cluster's

        def opened(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if "b" not in mode or isinstance(path, int) or threading.get_ident() != here:
                return real(path, mode, *args, **options)
            return CountedFile(path, mode, counts, self.folder is not None and self.folder in Path(path).parents)

        def as_memmap(file: Any, *args: Any, **options: Any) -> Any:
            array = mapped(file, *args, **options)
            counts.read += array.nbytes
            return array

        def reached(path: Any, flags: int, *args: Any, **options: Any) -> int:
            counts.opened += not flags & os.O_DIRECTORY
            return reach(path, flags, *args, **options)

        with (
            mock.patch.object(os, "open", reached),
            mock.patch.object(builtins, "open", opened), mock.patch.object(io, "open", opened),
            mock.patch.object(Path, "open", lambda path, *args, **options: opened(path, *args, **options)),
            mock.patch.object(np, "memmap", as_memmap),
        ):
            yield

    def total(self, of: str) -> int:
        return sum(getattr(counts, of) for counts in self.steps.values())

    def __str__(self) -> str:
        columns = ("tasks", "sent", "items", "results", "largest", "opened", "read", "source", "written")
        lines = [f"{'step':<20}" + "".join(f"{name:>12}" for name in columns)]
        for step, counts in self.steps.items():
            lines.append(f"{step:<20}" + "".join(f"{getattr(counts, name):>12,}" for name in columns))
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class ParticlesInFile(ChunkedParticles):
    """Positions in a file without a header, of which a chunk is read exactly."""

    path: Path
    sizes: tuple[int, ...]
    dtype: np.dtype
    dimensions: int
    box: tuple[float, ...] | None
    name: str = "particles in a file"

    @classmethod
    def written(cls, path: Path, particles: Particles, chunks: int) -> "ParticlesInFile":
        path.write_bytes(np.ascontiguousarray(particles.positions).tobytes())
        sizes = even_sizes(len(particles), -(-len(particles) // chunks))
        return cls(path, sizes, particles.positions.dtype, particles.dimensions, particles.box)

    def read(self, number: int) -> np.ndarray:
        return self.read_rows(number, "positions", 0, self.sizes[number])

    def read_rows(self, number: int, name: str, begin: int, end: int) -> np.ndarray:
        assert name == "positions"
        found = np.empty((end - begin, self.dimensions), self.dtype)
        with self.path.open("rb", buffering=0) as file:
            file.seek((self.starts[number] + begin) * self.dtype.itemsize * self.dimensions)
            file.readinto(found.data.cast("B"))
        return found
