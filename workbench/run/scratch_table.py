"""Particles in scratch files, of which each column is one that `save` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.numpy_files import NpyTable
from workbench.data.readers.snapshots import ParticlesInFiles, Snapshot
from workbench.run.scratch_files import load


@dataclass(frozen=True, kw_only=True)
class ScratchTable(NpyTable):
    """Columns in scratch files: the rows that are read are compared with their checksums."""

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`."""
        return load(self.paths[column], slice(start, stop))


def in_scratch_files(
    name: str, files: Sequence[Mapping[str, Path]], box: Any, mass: float | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> ParticlesInFiles:
    """Particles of which each part has a file for every column."""
    tables = [ScratchTable.of(paths, mass) for paths in files]
    return Snapshot.of(name, tables, None, metadata or {}).in_chunks(box)
