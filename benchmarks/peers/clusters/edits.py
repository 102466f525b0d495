"""Edits as bytes: which particles are edited, and a code of a fixed number of bits for each of their coordinates.

A code stands for a value on a regular grid over [-2 xi, 2 xi], the range of all edits. Zero is not on that grid, and
rounding may move a coordinate out of the bound by half of the spacing; both are so in the published format. The published
mask and Huffman codes are replaced by index deltas and codes in pcodec, the coder of our own edits, so that methods are
compared rather than coders. (Opposite edits at the two ends of a link are redundant, which pcodec does not exploit: zstd
makes the codes of a forest 13 to 22% smaller.)
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.data import Particles
from workbench.errors import WorkbenchError

_HEADER = struct.Struct("<2I")   # the number of edited particles, and of bytes for their indices


@dataclass(frozen=True)
class EditCoder:
    """Edits of up to 2 `xi` along each axis in codes of `bits` bits."""

    xi: float
    bits: int

    def __post_init__(self) -> None:
        if not (isinstance(self.bits, int) and 2 <= self.bits <= 32):
            raise WorkbenchError(f"bits must be a whole number from 2 to 32; got {self.bits!r}")

    @property
    def quantum(self) -> float:
        """The spacing of the values that an edit can have."""
        return 4 * self.xi / (2**self.bits - 1)

    def margin(self, dimensions: int) -> float:
        """The most by which rounding two edits can change a distance."""
        return math.sqrt(dimensions) * self.quantum

    def encode(self, edits: np.ndarray) -> bytes:
        """The edits (N, D) as bytes; particles that move by at most the quantum along every axis are left out."""
        chosen = np.flatnonzero((np.abs(edits) > self.quantum).any(axis=1))
        if not len(chosen):
            return b""
        codes = np.rint((edits[chosen] + 2 * self.xi) / self.quantum).clip(0, 2**self.bits - 1)
        gaps = pack_integers(np.diff(chosen, prepend=-1).astype(np.uint32))
        return _HEADER.pack(len(chosen), len(gaps)) + gaps + pack_integers(codes.astype(self._code_type))

    def apply(self, decoded: np.ndarray, data: bytes, box: tuple[float, ...] | None) -> np.ndarray:
        """The decoded positions, edited.

        >>> coder = EditCoder(xi=0.5, bits=2)
        >>> data = coder.encode(np.array([[0.0, 0.0], [1.0, -1.0]]))
        >>> coder.apply(np.zeros((2, 2)), data, box=None).tolist()
        [[0.0, 0.0], [1.0, -1.0]]
        """
        positions = decoded.copy()
        if not data:
            return positions
        count, length = _HEADER.unpack_from(data)
        gaps, codes = data[_HEADER.size : _HEADER.size + length], data[_HEADER.size + length :]
        chosen = np.cumsum(unpack_integers(gaps, count, np.uint32).astype(np.int64)) - 1
        values = unpack_integers(codes, count * decoded.shape[1], self._code_type) * self.quantum - 2 * self.xi
        moved = (decoded[chosen] + values.reshape(count, -1)).astype(decoded.dtype)
        positions[chosen] = moved if box is None else Particles.wrapped(moved, box).positions
        return positions

    @property
    def _code_type(self) -> type[np.unsignedinteger]:
        return np.uint16 if self.bits <= 16 else np.uint32


def count_edits(data: bytes) -> int:
    """How many particles these bytes edit.

    >>> count_edits(b"")
    0
    """
    return int(_HEADER.unpack_from(data)[0]) if data else 0
