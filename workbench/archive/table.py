"""The particles of an archive as a table of rows, so that they can be read in chunks: each chunk is decoded alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.region import grid_part
from workbench.data.chunked import even_sizes
from workbench.data.particles import COMPANIONS
from workbench.data.readers.tables import Table


@dataclass(frozen=True, kw_only=True)
class ArchiveTable(Table):
    """The columns of an archive, in its own order."""

    trust: tuple[tuple[str, Any], ...]   # the options of `Archive.open`
    names: tuple[str, ...]
    unit: int                            # particles in a chunk

    @classmethod
    def of(cls, archive: Archive, path: Path, trust: dict[str, Any]) -> ArchiveTable:
        """The table of an archive of particles."""
        layout = archive.data.layout
        count, dimensions = layout.shape
        names = tuple(name for name in COMPANIONS if name in archive.arrays)
        return cls(
            path=path, count=count, dtype=layout.dtype, dimensions=dimensions, box=archive.box,
            mass=archive.mass, trust=tuple(trust.items()), names=names, unit=layout.chunk_shape[0],
        )

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the archive, without positions."""
        return self.names

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`; only chunks that hold them are decoded."""
        stored = _archive_at(self.path, self.trust, self.path.stat().st_mtime_ns).arrays[column]
        whole = tuple(slice(0, size) for size in stored.layout.shape[1:])
        return grid_part(stored, (slice(start, stop), *whole))

    def _require_room(self, column: str, nbytes: int) -> None:
        """Archives have limits of their own."""

    def sizes(self, most: int) -> tuple[int, ...]:
        """Whole chunks of the positions, so that none is decoded twice."""
        return even_sizes(self.count, most, self.unit)


@functools.lru_cache(maxsize=2)
def _archive_at(path: Path, trust: tuple[tuple[str, Any], ...], modified: int) -> Archive:
    """An archive that was opened for another chunk before."""
    return Archive.open(path, **dict(trust))
