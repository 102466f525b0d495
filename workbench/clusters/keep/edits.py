"""The moves of particles as bytes beside a chunk, and the decoded positions with the moves made.

Which particles moved costs far more than where to: it is coded particle by particle, each with a context that the decoder
sees in the decoded positions. Where someone beside it in the file is just about a linking length away, a move is a hundred
times as likely as elsewhere; that saves a quarter of the bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.moves import PARTS, alphabet
from workbench.codecs.symbols import MOST_SYMBOLS, decode_symbols, encode_symbols
from workbench.errors import WorkbenchError

# What tells how likely a move is: how far, in bounds, the distance to someone beside it is from a linking length; and the
# share of a linking length that the nearest one is away. Steps of both; kernels/repair.cu makes one number of them.
_MISSES = (0.5, 1.0, 1.75, 2.5, 3.5)
_SHARES = (0.5, 0.8, 0.95, 1.2, 2.0)
CONTEXTS = (len(_MISSES) + 1) * (len(_SHARES) + 1)
ESCAPE = MOST_SYMBOLS - 1      # the symbol of every rank that has none of its own; the rank follows as a number
MOST_LENGTHS = 64

_HEADER = struct.Struct("<BBBdII")   # version, dimensions, linking lengths, step, bytes of flags and of ranks
_VERSION = 1


@dataclass(frozen=True, eq=False)
class Edits:
    """Some particles of a chunk (rising, int32) and the rank of the move of each (uint16, from 1).

    `lengths` are the linking lengths that the moves are about; `box` is that of the particles.
    """

    index: np.ndarray
    rank: np.ndarray
    step: float
    lengths: tuple[float, ...]
    box: tuple[float, ...] | None

    def to_bytes(self, decoded: Array, context: Array | None = None) -> bytes:
        """The edits as bytes, to be read beside these decoded positions; nothing for none.

        `context` are the contexts of these positions, if they are known already.
        """
        if not len(self.index):
            return b""
        dimensions = decoded.shape[1]
        moved = np.zeros(len(decoded), np.uint8)
        moved[self.index] = 1
        flags = encode_symbols(moved, self._contexts(decoded) if context is None else backend.to_host(context), CONTEXTS)
        symbol = np.minimum(self.rank - 1, ESCAPE).astype(np.uint8)
        ranks = encode_symbols(symbol, np.zeros(len(symbol), np.uint8), 1)
        head = _HEADER.pack(_VERSION, dimensions, len(self.lengths), self.step, len(flags), len(ranks))
        numbers = np.array([*self.lengths, *(self.box or (0.0,) * dimensions)], "<f8").tobytes()
        return b"".join([head, numbers, flags, ranks, self.rank[symbol == ESCAPE].astype("<u2").tobytes()])

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, decoded: Array) -> Edits:
        """What `to_bytes` wrote beside these decoded positions."""
        view = memoryview(data)
        version, dimensions, count, step, flag_bytes, rank_bytes = _header(view, decoded)
        numbers = np.frombuffer(view[_HEADER.size : _HEADER.size + 8 * (count + dimensions)], "<f8")
        lengths, box = tuple(numbers[:count].tolist()), tuple(numbers[count:].tolist())
        if not (np.isfinite([step, *numbers]).all() and min(step, *lengths) > 0 and min(box) >= 0):
            raise WorkbenchError("the edits of a chunk have an impossible step, length or box: they are damaged")
        edits = cls(np.empty(0, np.int32), np.empty(0, np.uint16), step, lengths, box if any(box) else None)
        body = view[_HEADER.size + 8 * (count + dimensions) :]
        moved = decode_symbols(body[:flag_bytes], edits._contexts(decoded), CONTEXTS)
        index = np.flatnonzero(moved).astype(np.int32)
        symbol = decode_symbols(body[flag_bytes : flag_bytes + rank_bytes], np.zeros(len(index), np.uint8), 1)
        rank = symbol.astype(np.uint16) + np.uint16(1)
        others = np.frombuffer(body[flag_bytes + rank_bytes :], "<u2")
        if len(others) != (symbol == ESCAPE).sum() or (len(others) and others.max() >= len(alphabet(dimensions).moves)):
            raise WorkbenchError("the edits of a chunk name moves that do not exist: they are damaged")
        rank[symbol == ESCAPE] = others
        return cls(index, rank, step, lengths, edits.box)

    def applied(self, decoded: Array) -> Array:
        """The decoded positions after the moves, as a new array."""
        xp = backend.namespace(decoded)
        moved = xp.ascontiguousarray(decoded).copy()
        moves = xp.asarray(alphabet(decoded.shape[1]).moves)
        kernel = backend.kernel("repair", "move_particles", decoded.dtype, decoded.shape[1])
        index, rank = xp.asarray(self.index), xp.asarray(self.rank)
        kernel(len(self.index), index, rank, moves, self._periods(decoded), self.step, moved)
        return moved

    def _contexts(self, decoded: Array) -> np.ndarray:
        return backend.to_host(edit_contexts(decoded, self._periods(decoded), PARTS * self.step, self.lengths))

    def _periods(self, decoded: Array) -> Array:
        return backend.namespace(decoded).asarray(self.box or (0.0,) * decoded.shape[1], np.float64)


def edit_contexts(
    decoded: Array, periods: Array, bound: float, lengths: tuple[float, ...], chunk: int | None = None
) -> Array:
    """For each particle a number (uint8, less than CONTEXTS) that says how likely it is to have been moved.

    It follows from the decoded positions beside it in the same chunk of the file.
    """
    xp = backend.namespace(decoded)
    context = xp.empty(len(decoded), xp.uint8)
    about, misses, shares = (xp.asarray(np.array(numbers)) for numbers in (lengths, _MISSES, np.square(_SHARES)))
    kernel = backend.kernel("repair", "edit_contexts", decoded.dtype, decoded.shape[1])
    positions = xp.ascontiguousarray(decoded)
    kernel(len(decoded), chunk or len(decoded), positions, periods, len(lengths), about, bound, misses, shares, context)
    return context


def apply_edits(decoded: Array, data: bytes | memoryview) -> Array:
    """The decoded positions of a chunk, moved as these bytes say: a new array unless there is nothing to move."""
    return Edits.from_bytes(data, decoded).applied(decoded) if len(data) else decoded


def _header(view: memoryview, decoded: Array) -> tuple[int, int, int, float, int, int]:
    if len(view) < _HEADER.size:
        raise WorkbenchError(f"the edits of a chunk have a header of {_HEADER.size} bytes; got {len(view)}")
    version, dimensions, count, step, flags, ranks = _HEADER.unpack_from(view)
    if version != _VERSION or decoded.ndim != 2 or dimensions != decoded.shape[1] or not 1 <= count <= MOST_LENGTHS:
        raise WorkbenchError(f"the edits of a chunk must be of version {_VERSION}, for {decoded.ndim} dimensions: damaged?")
    rest = len(view) - _HEADER.size - 8 * (count + dimensions) - flags - ranks
    if rest < 0 or rest % 2:
        raise WorkbenchError("the edits of a chunk are shorter than they say: they are damaged")
    return version, dimensions, count, step, flags, ranks
