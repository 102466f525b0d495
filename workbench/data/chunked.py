"""Particles that are somewhere else, in chunks: the input of everything that must not load a whole snapshot.

A source is a small value that can be sent to other processes; reading a chunk reads that chunk only. Indices of particles
count through all chunks, in order.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from workbench.arguments import whole_number
from workbench.data.particles import Box, Particles
from workbench.errors import WorkbenchError

CHUNK = 2**20   # particles, where the data have no chunks of their own


class ChunkedParticles(ABC):
    """Particles in chunks of `sizes`; positions have the type `dtype`, and lie in `box` if there is one."""

    name: str
    sizes: tuple[int, ...]
    dtype: np.dtype
    dimensions: int
    box: tuple[float, ...] | None

    @abstractmethod
    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk, as they are stored."""

    def chunk(self, number: int) -> Particles:
        """The particles of a chunk, checked."""
        found = self._read(number)
        shape = self.sizes[number], self.dimensions
        if found.shape != shape or found.dtype != self.dtype:
            got = f"{found.dtype} of shape {found.shape}"
            raise WorkbenchError(f"chunk {number} of {self.name} must be {self.dtype} of shape {shape}; got {got}")
        return Particles(found, self.box)

    def sample(self, number: int, share: float) -> np.ndarray:
        """Positions (float64) in a chunk: this share of them, drawn at random but the same in every run."""
        positions = self.chunk(number).positions
        chosen = np.random.default_rng(number).random(len(positions)) < share
        return positions[chosen].astype(np.float64)

    def _read(self, number: int) -> np.ndarray:
        try:
            return self.read(number)
        except OSError as error:
            which = f"chunk {number + 1} of {len(self.sizes)} of {self.name}"
            raise WorkbenchError(f"{which} cannot be read: {error}") from error

    def __len__(self) -> int:
        return sum(self.sizes)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of the first particle of each chunk, and the end."""
        return (0, *np.cumsum(self.sizes, dtype=np.int64).tolist())

    def chunks(self) -> Iterator[Particles]:
        """All chunks, one after the other."""
        return map(self.chunk, range(len(self.sizes)))

    def __repr__(self) -> str:
        where = "open" if self.box is None else "box " + " x ".join(f"{length:g}" for length in self.box)
        return f"{type(self).__name__}({self.name}: {len(self):,} in {len(self.sizes)} chunks, {self.dtype}, {where})"


def even_sizes(count: int, most: int) -> tuple[int, ...]:
    """Nearly equal sizes, none above `most`.

    >>> even_sizes(10, 4)
    (3, 3, 4)
    """
    chunks = -(-count // whole_number("the size of a chunk", most, least=1))
    ends = [count * number // chunks for number in range(chunks + 1)]
    return tuple(end - start for start, end in itertools.pairwise(ends))


@dataclass(frozen=True, eq=False, repr=False)
class ParticlesInMemory(ChunkedParticles):
    """A set of particles cut into chunks, for tests and comparisons.

    >>> ParticlesInMemory(Particles([[0.1, 0.5], [0.4, 0.5], [0.6, 0.5]], box=1.0), (2, 1)).chunk(1).positions.tolist()
    [[0.6, 0.5]]
    """

    whole: Particles
    sizes: tuple[int, ...]
    name: str = "particles in memory"

    def __post_init__(self) -> None:
        if sum(self.sizes) != len(self.whole) or min(self.sizes) < 1:
            raise WorkbenchError(f"sizes must be positive and add up to {len(self.whole):,}; got {self.sizes}")

    @property
    def dtype(self) -> np.dtype:   # type: ignore[override]
        """The type of the positions."""
        return self.whole.positions.dtype

    @property
    def dimensions(self) -> int:   # type: ignore[override]
        """2 or 3."""
        return self.whole.dimensions

    @property
    def box(self) -> tuple[float, ...] | None:   # type: ignore[override]
        """The periods."""
        return self.whole.box

    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk."""
        return self.whole.positions[self.starts[number] : self.starts[number + 1]]


@dataclass(frozen=True, repr=False)
class ParticlesInNpy(ChunkedParticles):
    """Positions in a .npy file (N, D), read through a memory map."""

    path: Path
    box: tuple[float, ...] | None
    dtype: np.dtype
    dimensions: int
    sizes: tuple[int, ...]

    @classmethod
    def open(cls, path: str | Path, box: Box = None, chunk: int = CHUNK) -> ParticlesInNpy:
        """The file's header is read, and no positions."""
        mapped = np.load(path, mmap_mode="r")
        if mapped.ndim != 2 or mapped.shape[1] not in (2, 3) or mapped.dtype.kind != "f":
            raise WorkbenchError(f"{path} must hold positions of shape (N, 2) or (N, 3); got {mapped.dtype} {mapped.shape}")
        periods = Particles(np.zeros((1, mapped.shape[1])), box).box
        return cls(Path(path).absolute(), periods, mapped.dtype, mapped.shape[1], even_sizes(len(mapped), chunk))

    @property
    def name(self) -> str:   # type: ignore[override]
        """The file."""
        return self.path.name

    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk."""
        return np.array(np.load(self.path, mmap_mode="r")[self.starts[number] : self.starts[number + 1]])


def require_equal(sources: Sequence[ChunkedParticles]) -> None:
    """Refuse parts of one snapshot that differ in box, type or dimensions, and name the part."""
    for part in sources[1:]:
        for what in ("box", "dtype", "dimensions"):
            if getattr(part, what) != getattr(sources[0], what):
                raise WorkbenchError(
                    f"all parts of a snapshot must have one {what}: {sources[0].name} has {getattr(sources[0], what)}, "
                    f"{part.name} has {getattr(part, what)}"
                )
