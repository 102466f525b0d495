"""The result of keeping clusters: the moves of decoded particles, and their encoding as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.groups import Groups
from workbench.clusters.keep.edits import Edits, Surmise, apply_edits
from workbench.clusters.keep.promise import KeepClusters
from workbench.clusters.keep.repair import Step
from workbench.guarantees.correction import apply_correction, encode_correction
from workbench.guarantees.sections import EDIT, PIN


@dataclass(frozen=True, eq=False)
class Correction:
    """The edits of decoded positions that keep clusters, and the corrected positions.

    `index` are the particles that move (ascending, int32), `rank` their moves, `pinned` the particles that get their
    original coordinates. `opened` counts the groups that were split or joined before; `violations` the particles that the
    finder sees in other groups in the end (always 0, otherwise an error is raised); `close_calls` the deciding pairs that
    remain within `margin` of a linking length because they are so in the original; `evaluated` the distances that moves
    took.
    """

    positions: Array
    promise: KeepClusters
    lengths: tuple[float, ...]
    margin: float
    step: float
    box: tuple[float, ...] | None
    largest_error: float
    index: np.ndarray
    rank: np.ndarray
    pinned: np.ndarray
    opened: int
    needs: int
    attempts: int
    violations: int
    close_calls: int
    evaluated: int
    descent: tuple[Step, ...] = field(repr=False)
    decoded: Array = field(repr=False)
    surmise: Surmise = field(repr=False)
    groups: tuple[Groups, ...] = field(repr=False)   # of the original and the corrected positions, at each linking length

    @property
    def edited(self) -> int:
        """How many particles the correction changes."""
        return len(self.index) + len(self.pinned)

    @property
    def nbytes(self) -> int:
        """The size of the correction in bytes, stored as one chunk."""
        return sum(map(len, self.sections().values()))

    def side_information(self, rows: slice) -> Surmise:
        """What a reader computes to apply the sections of these particles."""
        return self.surmise.part(rows)

    @property
    def bits_per_particle(self) -> float:
        """The stored bits per particle."""
        return 8 * self.nbytes / len(self.positions)

    def sections(self, rows: slice = slice(None)) -> dict[str, bytes]:
        """The correction of a run of particles as sections of their chunk; empty if nothing is corrected."""
        begin, end, _ = rows.indices(len(self.decoded))
        first, last = np.searchsorted(self.index, [begin, end])
        index, rank = (self.index[first:last] - begin).astype(np.int32), self.rank[first:last]
        decoded, wanted = self.decoded[begin:end], self.positions[begin:end]
        first, last = np.searchsorted(self.pinned, [begin, end])
        edits = Edits(index, rank, self.step, self.lengths, self.box)
        return sections_of(edits, self.pinned[first:last] - begin, decoded, wanted, self.surmise.part(rows))


def sections_of(
    edits: Edits, pinned: np.ndarray, decoded: Array, wanted: Array, surmise: Surmise | None = None
) -> dict[str, bytes]:
    """The correction of a chunk as sections: moves, and the original coordinates of `pinned` particles, as in `wanted`."""
    found = {EDIT: edits.to_bytes(decoded, surmise), PIN: _pins(pinned, wanted, decoded)}
    return {tag: data for tag, data in found.items() if data}


def corrected(decoded: Array, sections: Mapping[str, bytes], known: Surmise | None = None) -> Array:
    """The decoded positions of a chunk with the correction in these sections applied, as in every reader.

    A reader computes the side information; the writer knows it.

    >>> decoded = np.zeros((2, 3))
    >>> corrected(decoded, {}) is decoded
    True
    """
    return apply_correction(apply_edits(decoded, sections.get(EDIT, b""), known), sections.get(PIN, b""))


def _pins(index: np.ndarray, wanted: Array, decoded: Array) -> bytes:
    """The original coordinates, encoded as corrections of the decoded ones."""
    if not len(index):
        return b""
    xp, dimensions = backend.namespace(decoded), decoded.shape[1]
    flat = (index.astype(np.int64)[:, None] * dimensions + np.arange(dimensions)).ravel()
    return encode_correction(xp.asarray(flat), wanted, decoded)
