"""The moves of particles as bytes beside a chunk, and the decoded positions with the moves made.

Which particles moved costs more than where to: it is coded particle by particle, each with a context that the decoder sees
in the decoded positions. Where someone beside it in the file is just about a linking length away, a move is far more
likely than elsewhere, and it will nearly always go towards that one, or away: so moves are named by where that one is.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.moves import PARTS, alphabet
from workbench.codecs.symbols import decode_symbols, encode_symbols
from workbench.errors import WorkbenchError

# What tells how likely a move is: how far, in bounds, the distance to someone beside it is from a linking length; and how
# near, in linking lengths, the nearest one is. Steps of both; kernels/edits.cu makes one number of them.
_MISSES = (0.5, 1.0, 1.75, 2.5, 3.5)
_SHARES = (0.5, 0.8, 0.95, 1.2, 2.0)
CONTEXTS = (len(_MISSES) + 1) * (len(_SHARES) + 1)

COMMON = 24   # the ranks that are symbols of their own; above, the symbol says how many bits follow
MOST_LENGTHS = 64

_HEADER = struct.Struct("<BBBBd")   # version, dimensions, linking lengths, whether there is a box; and the step
_VERSION = 1


@dataclass(frozen=True, eq=False)
class Surmise:
    """What can be told from decoded positions about the moves of their particles, before any is known.

    `context` (uint8, less than CONTEXTS) is how likely each particle is to have been moved, and `forward` where to:
    kernels/edits.cu says what the numbers mean.
    """

    context: Array
    forward: Array

    @classmethod
    def of(
        cls,
        decoded: Array,
        bound: float,
        lengths: tuple[float, ...],
        box: tuple[float, ...] | None,
        chunk: int | None = None,
    ) -> Surmise:
        """What the particles beside each one in the same chunk of the file give away."""
        xp = backend.namespace(decoded)
        context, forward = xp.empty(len(decoded), xp.uint8), xp.empty(len(decoded), xp.uint8)
        tables = [xp.asarray(np.array(numbers, np.float64)) for numbers in (lengths, _MISSES, np.square(_SHARES))]
        given = xp.ascontiguousarray(decoded), _periods(decoded, box), len(lengths), tables[0], bound, *tables[1:]
        runs, count = backend.chunks(len(decoded), decoded), len(decoded)
        kernel = backend.kernel("edits", "surmise", decoded.dtype, decoded.shape[1])
        kernel(runs, count, chunk or count, *given, context, forward)
        return cls(context, forward)

    def part(self, rows: slice) -> Surmise:
        """That of some chunks."""
        return Surmise(self.context[rows], self.forward[rows])


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

    def surmise(self, decoded: Array) -> Surmise:
        """What a decoder can tell about these edits beforehand."""
        return Surmise.of(decoded, PARTS * self.step, self.lengths, self.box)

    def to_bytes(self, decoded: Array, surmise: Surmise | None = None) -> bytes:
        """The edits as bytes, to be read beside these decoded positions; nothing for none."""
        if not len(self.index):
            return b""
        context = backend.to_host((surmise or self.surmise(decoded)).context)
        moved = np.zeros(len(decoded), np.uint8)
        moved[self.index] = 1
        symbol, bits = _symbols(self.rank)
        head = _HEADER.pack(_VERSION, decoded.shape[1], len(self.lengths), self.box is not None, self.step)
        numbers = np.array([*self.lengths, *(self.box or ())], "<f8").tobytes()
        flags = encode_symbols(moved, context, CONTEXTS)
        ranks = encode_symbols(symbol, np.zeros(len(symbol), np.uint8), 1)
        return b"".join([head, numbers, flags, ranks, np.packbits(bits).tobytes()])

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, decoded: Array) -> tuple[Edits, Surmise]:
        """What `to_bytes` wrote beside these decoded positions, and what could be told of it before."""
        edits, body = _without_moves(memoryview(data), decoded)
        surmise = edits.surmise(decoded)
        moved, used = decode_symbols(body, backend.to_host(surmise.context), CONTEXTS)
        index = np.flatnonzero(moved).astype(np.int32)
        symbol, more = decode_symbols(body[used:], np.zeros(len(index), np.uint8), 1)
        rank = _ranks(symbol, body[used + more :], len(alphabet(decoded.shape[1]).moves))
        return cls(index, rank, edits.step, edits.lengths, edits.box), surmise

    def applied(self, decoded: Array, surmise: Surmise) -> Array:
        """The decoded positions after the moves, as a new array."""
        xp = backend.namespace(decoded)
        moved = xp.ascontiguousarray(decoded).copy()
        index, rank = xp.asarray(self.index), xp.asarray(self.rank)
        moves, periods = xp.asarray(alphabet(decoded.shape[1]).moves), _periods(decoded, self.box)
        kernel = backend.kernel("edits", "move_particles", decoded.dtype, decoded.shape[1])
        kernel(len(index), index, rank, surmise.forward[index], moves, periods, self.step, moved)
        return moved


def apply_edits(decoded: Array, data: bytes | memoryview) -> Array:
    """The decoded positions of a chunk, moved as these bytes say: a new array unless there is nothing to move."""
    if not len(data):
        return decoded
    edits, surmise = Edits.from_bytes(data, decoded)
    return edits.applied(decoded, surmise)


def _without_moves(view: memoryview, decoded: Array) -> tuple[Edits, memoryview]:
    """What the header says, and what follows it."""
    if len(view) < _HEADER.size:
        raise WorkbenchError(f"the edits of a chunk have a header of {_HEADER.size} bytes; got {len(view)}")
    version, dimensions, count, boxed, step = _HEADER.unpack_from(view)
    end = _HEADER.size + 8 * (count + dimensions * boxed)
    fits = dimensions in (2, 3) and 1 <= count <= MOST_LENGTHS
    if version != _VERSION or (2, dimensions) != (decoded.ndim, decoded.shape[-1]) or not fits:
        raise WorkbenchError(f"the edits of a chunk must be of version {_VERSION}, for its number of dimensions: damaged?")
    if boxed > 1 or end > len(view):
        raise WorkbenchError("the edits of a chunk are shorter than they say: they are damaged")
    numbers = np.frombuffer(view[_HEADER.size : end], "<f8").tolist()
    if not (np.isfinite([step, *numbers]).all() and min(step, *numbers) > 0):
        raise WorkbenchError("the edits of a chunk have an impossible step, length or box: they are damaged")
    box = tuple(numbers[count:]) if boxed else None
    return Edits(np.empty(0, np.int32), np.empty(0, np.uint16), step, tuple(numbers[:count]), box), view[end:]


def _symbols(rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A symbol for each rank, and the bits that the symbols of uncommon ranks leave open."""
    above = np.maximum(rank.astype(np.int64) - COMMON, 1)
    count = np.frexp(above)[1] - 1   # bits below the leading one
    symbol = np.where(rank > COMMON, COMMON + count, rank.astype(np.int64) - 1).astype(np.uint8)
    place = np.arange(16)
    open_bits = (place[None, :] < count[:, None]) & (rank > COMMON)[:, None]
    return symbol, (above[:, None] >> place & 1).astype(np.uint8)[open_bits]


def _ranks(symbol: np.ndarray, data: memoryview, most: int) -> np.ndarray:
    """The ranks of these symbols, with the bits that they leave open."""
    count = np.where(symbol >= COMMON, symbol.astype(np.int64) - COMMON, 0)
    if count.max(initial=0) > 16 or len(data) != -(-int(count.sum()) // 8):
        raise WorkbenchError("the edits of a chunk name moves that do not exist: they are damaged")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=int(count.sum())).astype(np.int64)
    place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    above = (np.int64(1) << count) + np.bincount(
        np.repeat(np.arange(len(symbol)), count), weights=bits << place, minlength=len(symbol)
    ).astype(np.int64)
    rank = np.where(symbol >= COMMON, COMMON + above, symbol.astype(np.int64) + 1)
    if rank.max(initial=1) >= most:
        raise WorkbenchError("the edits of a chunk name moves that do not exist: they are damaged")
    return rank.astype(np.uint16)


def _periods(decoded: Array, box: tuple[float, ...] | None) -> Array:
    return backend.namespace(decoded).asarray(box or (0.0,) * decoded.shape[1], np.float64)
