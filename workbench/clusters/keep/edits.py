"""Coding the moves of particles as bytes beside a chunk, and applying them to decoded positions.

The set of moved particles costs more bits than their moves: it is coded particle by particle, each with a context that the
decoder computes from the decoded positions. If a neighbour in the file is about a linking length away, a move is far more
likely, and nearly always towards this neighbour or away from it. So moves are coded relative to its direction.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.moves import PARTS, alphabet
from workbench.codecs.symbols import decode_symbols, encode_symbols
from workbench.errors import WorkbenchError

# The limits of the bins of a context: the difference, in bounds, between the distance to a neighbour in the file and a
# linking length; and the distance, in linking lengths, to the nearest one. kernels/edits.cu combines both to one number.
_MISSES = (0.5, 1.0, 1.75, 2.5, 3.5)
_SHARES = (0.5, 0.8, 0.95, 1.2, 2.0)
CONTEXTS = (len(_MISSES) + 1) * (len(_SHARES) + 1)

# For the choice among moves: the storage cost of a move in each context, in 1/64 of a bit, as in simulated universes at a
# bound of a tenth of the linking length. A fixed table, so that no move depends on particles elsewhere.
COSTS = np.array([
    [388, 283, 212, 151, 100, 100], [412, 320, 218, 216, 160, 160], [475, 372, 326, 310, 230, 230],
    [427, 414, 380, 345, 389, 380], [451, 423, 420, 400, 397, 400], [437, 480, 450, 440, 436, 553],
], np.int32).ravel()

COMMON = 24   # the ranks with a symbol of their own; above, the symbol gives the number of extra bits (an Elias gamma code)
MOST_LENGTHS = 64

_HEADER = struct.Struct("<BBBBd")   # version, dimensions, linking lengths, whether there is a box; and the step
_VERSION = 1
_MOST = 1e300   # of a step, a length or a box; in kernels/edits.cu this distance means that there is no neighbour


@dataclass(frozen=True, eq=False)
class Surmise:
    """Side information about moves, predicted from the decoded positions alone.

    `context` (uint8, less than CONTEXTS) is the class of each particle by its probability of a move, and `forward` the
    predicted direction: kernels/edits.cu defines the numbers. `made_with` are the bound, the linking lengths and the box.
    """

    context: Array
    forward: Array
    made_with: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        decoded: Array,
        bound: float,
        lengths: tuple[float, ...],
        box: tuple[float, ...] | None,
        chunk: int | None = None,
    ) -> Surmise:
        """The prediction for each particle from its neighbours in the same chunk of the file."""
        xp = backend.namespace(decoded)
        context, forward = xp.empty(len(decoded), xp.uint8), xp.empty(len(decoded), xp.uint8)
        tables = {"length": lengths, "misses": _MISSES, "shares": np.square(_SHARES)}
        given = {name: xp.asarray(np.array(numbers, np.float64)) for name, numbers in tables.items()}
        # A GPU's runs have one particle each, so that threads read beside each other.
        runs = len(decoded) if backend.on_device(decoded) else backend.chunks(len(decoded), decoded)
        kernel = backend.kernel("edits", "surmise", decoded.dtype, decoded.shape[1])
        kernel(
            runs, given, n=len(decoded), chunk=chunk or len(decoded),
            position=xp.ascontiguousarray(decoded), periods=_periods(decoded, box), lengths=len(lengths), bound=bound,
            context=context, forward=forward,
        )
        return cls(context, forward, (bound, lengths, box))

    def part(self, rows: slice) -> Surmise:
        """The side information of some chunks."""
        return Surmise(self.context[rows], self.forward[rows], self.made_with)


@dataclass(frozen=True, eq=False)
class Edits:
    """Some particles of a chunk (rising, int32) and the rank of the move of each (uint16, from 1).

    `lengths` are the linking lengths of the kept groups; `box` is that of the particles.
    """

    index: np.ndarray
    rank: np.ndarray
    step: float
    lengths: tuple[float, ...]
    box: tuple[float, ...] | None

    @property
    def made_with(self) -> tuple[Any, ...]:
        """What the side information depends on beside the decoded positions."""
        return PARTS * self.step, self.lengths, self.box

    def surmise(self, decoded: Array) -> Surmise:
        """The side information that the decoder computes, too."""
        return Surmise.of(decoded, *self.made_with)

    def to_bytes(self, decoded: Array, surmise: Surmise | None = None) -> bytes:
        """The edits as bytes, coded relative to these decoded positions; empty without edits."""
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
    def from_bytes(
        cls, data: bytes | memoryview, decoded: Array, known: Surmise | None = None
    ) -> tuple[Edits, Surmise]:
        """The edits that `to_bytes` wrote for these decoded positions, and their side information, which may be known."""
        edits, body = _without_moves(memoryview(data), decoded)
        surmise = known if known is not None and known.made_with == edits.made_with else edits.surmise(decoded)
        moved, used = decode_symbols(body, backend.to_host(surmise.context), CONTEXTS)
        index = np.flatnonzero(moved != 0).astype(np.int32)
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


def apply_edits(decoded: Array, data: bytes | memoryview, known: Surmise | None = None) -> Array:
    """The decoded positions of a chunk with the moves in these bytes: a new array unless there are none.

    `known` is the side information of these positions, if the caller has computed it.
    """
    if not len(data):
        return decoded
    edits, surmise = Edits.from_bytes(data, decoded, known)
    return edits.applied(decoded, surmise)


def _without_moves(view: memoryview, decoded: Array) -> tuple[Edits, memoryview]:
    """The content of the header, and the bytes after it."""
    if len(view) < _HEADER.size:
        raise WorkbenchError(f"the edits of a chunk have a header of {_HEADER.size} bytes; got {len(view)}")
    version, dimensions, count, boxed, step = _HEADER.unpack_from(view)
    end = _HEADER.size + 8 * (count + dimensions * boxed)
    if decoded.ndim != 2 or decoded.shape[1] not in (2, 3) or not len(decoded):
        raise WorkbenchError(f"edits move particles, rows of 2 or 3 coordinates; this chunk has the shape {decoded.shape}")
    if version != _VERSION or dimensions != decoded.shape[1] or not 1 <= count <= MOST_LENGTHS:
        raise WorkbenchError(f"the edits of a chunk must be of version {_VERSION}, for its number of dimensions: damaged?")
    if boxed > 1 or end > len(view):
        raise WorkbenchError("the edits of a chunk are shorter than their header says: they are damaged")
    numbers = np.frombuffer(view[_HEADER.size : end], "<f8").tolist()
    if not all(0 < number < _MOST for number in (step, *numbers)):   # nor are NaN and infinity
        raise WorkbenchError("the edits of a chunk have an invalid step, length or box: they are damaged")
    box = tuple(numbers[count:]) if boxed else None
    return Edits(np.empty(0, np.int32), np.empty(0, np.uint16), step, tuple(numbers[:count]), box), view[end:]


def _symbols(rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A symbol for each rank, and the extra bits of uncommon ranks."""
    uncommon = rank > COMMON
    above, place = rank[uncommon].astype(np.int64) - COMMON, np.arange(16)
    count = np.frexp(above)[1] - 1   # bits below the leading one
    symbol = (rank - 1).astype(np.uint8)
    symbol[uncommon] = COMMON + count
    return symbol, (above[:, None] >> place & 1).astype(np.uint8)[place[None, :] < count[:, None]]


def _ranks(symbol: np.ndarray, data: memoryview, most: int) -> np.ndarray:
    """The ranks of these symbols and their extra bits."""
    count = np.where(symbol >= COMMON, symbol.astype(np.int64) - COMMON, 0)
    if count.max(initial=0) > 16 or len(data) != -(-int(count.sum()) // 8):
        raise WorkbenchError("the edits of a chunk contain moves that do not exist: they are damaged")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=int(count.sum())).astype(np.int64)
    place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    above = (np.int64(1) << count) + np.bincount(
        np.repeat(np.arange(len(symbol)), count), weights=bits << place, minlength=len(symbol)
    ).astype(np.int64)
    rank = np.where(symbol >= COMMON, COMMON + above, symbol.astype(np.int64) + 1)
    if rank.max(initial=1) >= most:
        raise WorkbenchError("the edits of a chunk contain moves that do not exist: they are damaged")
    return rank.astype(np.uint16)


def _periods(decoded: Array, box: tuple[float, ...] | None) -> Array:
    return backend.namespace(decoded).asarray(box or (0.0,) * decoded.shape[1], np.float64)
