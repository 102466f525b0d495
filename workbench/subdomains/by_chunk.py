"""What subdomains know about the particles that they own, brought back to the chunks of the source.

A chunk may have particles in all subdomains. So each group of subdomains writes one file with a piece for each chunk, and
whoever wants a chunk opens one file for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.errors import WorkbenchError
from workbench.run.pieces import pieces_of, write_pieces
from workbench.run.scratch_files import Mapped
from workbench.subdomains.exchange import ROW, Exchange

UNSET = -2   # instead of a label: those are indices, or TOO_SMALL (-1)


def require_set(labels: np.ndarray, chunk: int, folder: Path) -> None:
    """Refuse labels of a chunk of which files have not named all."""
    if missing := int(np.count_nonzero(labels == UNSET)):
        raise WorkbenchError(
            f"files in {folder} must have a label for each of the {len(labels):,} particles in chunk {chunk + 1}; "
            f"{missing:,} have none: were files deleted or damaged? Try again"
        )


@dataclass(frozen=True)
class Owned:
    """What a subdomain knows about some particles: their indices (rising), and columns for any of their places."""

    index: Mapped
    columns: Callable[[slice], Sequence[np.ndarray]]


@dataclass(frozen=True)
class ByChunk:
    """Columns, of so many bytes a row, of particles that an exchange has sent; the names of the files begin with `name`."""

    exchange: Exchange
    name: str
    widths: tuple[int, ...]

    def write(self, group: int, owned: Sequence[Owned]) -> None:
        """Write what the subdomains of a group know."""
        write_pieces(self._file(group), len(self.exchange.source.sizes), self._pieces(owned))

    def read(self, chunk: int) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """For each group of subdomains: rows of a chunk, and their columns as bytes (rows, width)."""
        widths = ROW.itemsize, *self.widths
        for group in range(len(self.exchange.groups)):
            with pieces_of(self._file(group)) as file:
                row, *columns = file.read(chunk, widths, range(len(widths)))
            yield row.view(ROW), [one.reshape(-1, width) for one, width in zip(columns, self.widths, strict=True)]

    def _pieces(self, owned: Sequence[Owned]) -> Iterator[list[np.ndarray]]:
        """For each chunk, the rows and the columns; a run of chunks is in memory."""
        starts = np.array(self.exchange.source.starts)
        for run in self.exchange.runs:
            places = [of.index.between(*starts[[run.start, run.stop]].tolist()) for of in owned]
            index = np.concatenate([of.index[here] for of, here in zip(owned, places, strict=True)])
            tables = zip(*[of.columns(here) for of, here in zip(owned, places, strict=True)], strict=True)
            order = np.argsort(index)
            index, columns = index[order], [np.concatenate(column)[order] for column in tables]
            ends = np.searchsorted(index, starts[run.start : run.stop + 1])
            for start, begin, end in zip(starts[run], ends[:-1], ends[1:], strict=True):
                yield [(index[begin:end] - start).astype(ROW), *(column[begin:end] for column in columns)]

    def _file(self, group: int) -> Path:
        return self.exchange.folder / f"{self.name}-{group}"
