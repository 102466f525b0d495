"""Sorted keys as numbers of particles in halved cells: the smallest coder of the lattice codec in free order.

The difference between neighbours along a curve knows the density along the curve only. Here cells are halved until their
particles are alone, and what is coded is how many of n particles are in one half (`kernels/counts.cu`). It depends on the
density on both sides: the half beside which there are fewer particles mostly has fewer. Bits of a particle that is alone
and beside no other are stored as they are, since nothing predicts them: these are more than half of all. Blocks are
independent, as those of `entropy.py`: only neighbours in the same block count, which costs 0.5 to 1.4%.

How particles divide depends on the scale, too, but needs no free table: beta-binomial distributions fit as well as tables
of counts would, within 0.1% of the size, and the parameters of each of some hundred cases take a byte. With chunks of a few
thousand particles, tables would cost more than they save (`benchmarks/octree_contexts.py`).
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.crc import CheckedBlocks, crc32_of_blocks
from workbench.codecs.entropy import Blocks, starts
from workbench.codecs.inflating import streamed
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.together import Pieces

PRECISION = backend.constant("counts.cu", "PRECISION")
MOST = backend.constant("counts.cu", "MOST")
SHORT, SHORT_ROW, LONG_ROW = (backend.constant("counts.cu", name) for name in ("SHORT", "SHORT_ROW", "LONG_ROW"))
CODES = backend.constant("counts.cu", "CODES")
UNEVEN = backend.constant("counts.cu", "UNEVEN")
SIZES = backend.constant("counts.cu", "SIZES")
NODE = backend.constant("counts.cu", "NODE")
EVENTS = backend.constant("counts.cu", "EVENTS")
MOST_IN_BLOCK = backend.constant("counts.cu", "MOST_IN_BLOCK")

# The share in the half with fewer neighbours has a mean, and varies the less the larger the sum of the parameters of the
# beta distribution is. Without end, the number is binomial; negative sums are those of drawing without replacement, for
# particles that keep away from each other.
SHARES = (0.5, 0.48, 0.46, 0.44, 0.42, 0.4, 0.37, 0.34, 0.3, 0.26, 0.22, 0.18, 0.14, 0.1, 0.06, 0.02)
SUMS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 20.0, np.inf, -40.0, -18.0)
USUAL = 5 * len(SHARES) + np.repeat([1, 3, 6, 8], SIZES).astype(np.uint8)   # what levels begin with, from the coarsest on
SAMPLED = 8              # one block in so many decides between distributions
SMALL = 2**16            # of fewer particles, all do
WORTH = 10               # bits that another distribution than that of the level above must save
ROOM = 12                # bits for each particle beside those of its key, at first
_UNIT = 1024             # of the lengths of codes, whose sums are exact in float64

_HEADER = struct.Struct("<HIQ")   # bytes of the distributions, bytes of the lengths of blocks, words
_CHECKSUM = struct.Struct("<I")   # of the header and the tables; every block has its own
_inflate = streamed("deflate", lambda: zlib.decompressobj(-15))


@dataclass(frozen=True, eq=False)
class CodedCounts(CheckedBlocks):
    """Sorted keys, coded in blocks. The first key of each block is kept by the caller.

    >>> keys = np.sort(np.random.default_rng(0).integers(0, 2**30, 5000, dtype=np.uint64))
    >>> coded, = CodedCounts.of_pieces(keys, Pieces.of(5000, 5000), 1024, 3, 30)
    >>> bool((coded.keys(keys[::1024]) == keys).all()), round(len(coded.to_bytes()) * 8 / 5000)
    (True, 19)
    """

    count: int
    block: int
    dimensions: int
    key_bits: int
    chosen: np.ndarray       # the distribution of each cell of the model, level by level
    words: np.ndarray        # uint16
    word_first: np.ndarray   # where each block begins, and the end
    checksums: np.ndarray    # of each block

    @classmethod
    def of_pieces(cls, keys: Array, pieces: Pieces, block: int, dimensions: int, key_bits: int) -> list[CodedCounts]:
        """The keys of each piece, coded together on the machine where they are, each with a model of its own."""
        if block > MOST_IN_BLOCK:
            raise CodecFailed(f"the coder counts takes blocks of at most {MOST_IN_BLOCK:,} particles; got {block:,}")
        given = {"n": len(keys), "piece": pieces.length, "block": block, "key": keys, "key_bits": key_bits}
        chosen = [_chosen(counts) for counts in _histograms(keys, pieces, given, dimensions)]
        words, first = _words(keys, pieces, np.stack(chosen), given, dimensions)
        sums = crc32_of_blocks([(words, backend.namespace(keys).asarray(first))], _numbers(keys, len(first) - 1))
        words, sums = backend.to_host(words), backend.to_host(sums)
        found = []
        for items, own, model in zip(pieces, pieces.blocks_by_piece(block), chosen, strict=True):
            at = first[own.start : own.stop + 1]
            own_words = words[at[0] : at[-1]]
            found.append(cls(
                items.stop - items.start, block, dimensions, key_bits, model, own_words, at - at[0], sums[own]
            ))
        return found

    def keys(self, first: np.ndarray, blocks: Blocks = None, xp: Any = np) -> Array:
        """The keys of all blocks or of some; `first` has the first key of every block."""
        if blocks is None:
            return self.keys_of_pieces([self], first, xp)
        chosen = np.asarray(blocks, np.int64)
        begin = starts(np.minimum(self.block, self.count - chosen * self.block))
        return _decoded([self], chosen, begin, first, xp)

    @classmethod
    def keys_of_pieces(cls, coded: Sequence[CodedCounts], first: np.ndarray, xp: Any = np) -> Array:
        """The keys of equal pieces (the last may be shorter), together; `first` has the first keys of all blocks."""
        pieces = Pieces.of(sum(one.count for one in coded), coded[0].count)
        begin = pieces.block_starts(coded[0].block)
        return _decoded(coded, np.arange(len(begin) - 1), begin, first, xp)

    def like(self, other: object) -> bool:
        """Whether `keys_of_pieces` takes both together, if their lengths allow it."""
        return isinstance(other, CodedCounts) and (self.dimensions, self.key_bits) == (other.dimensions, other.key_bits)

    @property
    def _parts(self) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        return [(self.words, self.word_first)]

    def to_bytes(self) -> bytes:
        """Everything as bytes."""
        model = zlib.compressobj(9, wbits=-15)
        before = np.concatenate([USUAL[np.newaxis], self.chosen[:0:-1]])
        tables = model.compress((self.chosen[::-1] ^ before).tobytes()) + model.flush()
        lengths = np.diff(self.word_first).astype(np.uint32)
        sizes = pack_integers(lengths) if len(lengths) > 1 else b""   # of a single block it is known
        head = _HEADER.pack(len(tables), len(sizes), len(self.words))
        sums, words = self.checksums.astype("<u4").tobytes(), self.words.astype("<u2").tobytes()
        described = tables + sizes + sums
        return b"".join([head, _CHECKSUM.pack(zlib.crc32(described, zlib.crc32(head))), described, words])

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, count: int, block: int, dimensions: int, key_bits: int) -> CodedCounts:
        """The keys that `to_bytes` wrote; what contradicts this layout is refused before anything is allocated."""
        view, body, blocks = memoryview(data), _HEADER.size + _CHECKSUM.size, -(-count // block)
        if len(view) < body:
            raise CodecFailed(f"coded counts have a header of {body} bytes; got {len(view)}")
        if block > MOST_IN_BLOCK:
            raise CodecFailed(f"coded counts have blocks of at most {MOST_IN_BLOCK:,} particles; got {block:,}")
        tables, sizes, words = _HEADER.unpack_from(view)
        ends = np.cumsum([body, tables, sizes, 4 * blocks, 2 * words]).tolist()
        if ends[-1] != len(view):
            raise CodecFailed(f"coded counts of {count:,} particles must have {ends[-1]:,} bytes; got {len(view):,}")
        checksum = zlib.crc32(view[body : ends[3]], zlib.crc32(view[: _HEADER.size]))
        if checksum != _CHECKSUM.unpack_from(view, _HEADER.size)[0]:
            raise CodecFailed("the tables of coded counts fail their checksum")
        chosen = np.empty((-(-key_bits // dimensions), UNEVEN * SIZES), np.uint8)
        _inflate(bytes(view[body : ends[1]]), chosen)
        from_above = np.concatenate([USUAL[np.newaxis], chosen])
        chosen = np.ascontiguousarray(np.bitwise_xor.accumulate(from_above)[:0:-1])
        lengths = np.full(1, words) if blocks == 1 else unpack_integers(bytes(view[ends[1] : ends[2]]), blocks, np.uint32)
        first = starts(lengths)
        if first[-1] != words:
            raise CodecFailed(f"coded counts promise {first[-1]:,} words; got {words:,}")
        sums = np.require(np.frombuffer(view[ends[2] : ends[3]], "<u4"), requirements="A")
        return cls(
            count, block, dimensions, key_bits, chosen,
            np.require(np.frombuffer(view[ends[3] :], "<u2"), requirements="A"), first, sums,
        )


def _numbers(like: Array, count: int) -> Array:
    return backend.namespace(like).arange(count, dtype=np.int64)


def _runs(keys: Array, blocks: int, block: int) -> int:
    """How many blocks are worked on at once, each in a scratch space of its own: a limited one on a GPU."""
    return min(blocks, max(2**20 // block, 1)) if backend.on_device(keys) else backend.chunks(blocks, keys)


def _scratch(keys: Array, runs: int, block: int) -> dict[str, Array]:
    """Room for each run: cells of two levels, what is noted, and what is left of each particle."""
    xp = backend.namespace(keys)
    return {
        "room": xp.empty(runs * (block + 1) * 2 * NODE, xp.uint16),
        "event": xp.empty(runs * block * EVENTS, xp.uint32),
        "left": xp.empty(runs * block, xp.uint8),
    }


def _histograms(keys: Array, pieces: Pieces, given: dict[str, Any], dimensions: int) -> np.ndarray:
    """How often each symbol occurs in each cell of the model, for each piece, by a sample: [piece, cell, code]."""
    xp, block = backend.namespace(keys), given["block"]
    every = SAMPLED if pieces.length > SMALL else 1
    sampled = -(-pieces.blocks_of_each(block) // every)
    runs = max(_runs(keys, min(sampled, backend.chunks(sampled * len(pieces), keys)), block) // len(pieces), 1)
    levels = -(-given["key_bits"] // dimensions)
    counts = xp.empty((len(pieces), runs, levels * UNEVEN * SIZES, CODES), xp.uint32)
    backend.kernel("counts", "count_symbols", dimensions=dimensions)(
        runs * len(pieces), given, _scratch(keys, runs * len(pieces), block), runs=runs, every=every,
        counts=counts.reshape(-1),
    )
    return backend.to_host(counts.sum(axis=1, dtype=xp.uint32)) * np.float64(every)


def _chosen(counts: np.ndarray) -> np.ndarray:
    """The distribution of each cell of the model [level, cell]: that of the level above, unless another saves enough."""
    costs = (counts @ _code_lengths()).reshape(-1, UNEVEN * SIZES, len(_code_lengths()[0]))
    chosen, before, cell = np.empty(costs.shape[:2], np.uint8), USUAL, np.arange(UNEVEN * SIZES)
    for level in range(len(costs))[::-1]:
        least = costs[level].argmin(axis=1)
        saved = costs[level, cell, before] - costs[level, cell, least]
        before = chosen[level] = np.where(saved > WORTH * _UNIT, least, before)
    return chosen


def _words(
    keys: Array, pieces: Pieces, chosen: np.ndarray, given: dict[str, Any], dimensions: int
) -> tuple[Array, np.ndarray]:
    """The words of all blocks, and where those of each block begin."""
    xp, block, blocks = backend.namespace(keys), given["block"], pieces.blocks(given["block"])
    runs = _runs(keys, blocks, block)
    slot = block * (given["key_bits"] + ROOM) // 16 + 8
    scratch = _scratch(keys, runs, block)
    model = {"chosen": xp.asarray(chosen.reshape(-1)), "symbols": xp.asarray(_begins())}
    while True:
        slots, used = xp.empty(blocks * slot, xp.uint16), xp.empty(blocks, xp.int64)
        backend.kernel("counts", "encode_counts", dimensions=dimensions)(
            runs, given, scratch, model, blocks=blocks, slot=slot, words=slots, used=used
        )
        sizes = backend.to_host(used)
        if sizes.min(initial=0) >= 0:
            break
        slot *= 4   # improbable particles: each number that is coded may take a word
    first = starts(sizes)
    words = xp.empty(int(first[-1]), xp.uint16)
    backend.kernel("entropy", "gather_words")(blocks, slot, slots, used, xp.asarray(first), words)
    return words, first


def _decoded(coded: Sequence[CodedCounts], chosen: np.ndarray, begin: np.ndarray, first: np.ndarray, xp: Any) -> Array:
    """The keys of chosen blocks of all pieces; those of each begin at `begin`."""
    one, sharing = coded[0], len(coded[0].checksums)
    for number, piece in enumerate(coded):
        piece._check(chosen[chosen // max(sharing, 1) == number] - number * sharing)
    last = np.uint64((1 << one.key_bits) - 1)
    bound = np.append(first[1:], last)
    bound[np.cumsum([len(piece.checksums) for piece in coded]) - 1] = last
    ahead = np.cumsum([0, *(len(piece.words) for piece in coded)])
    word_first = [piece.word_first[:-1] + at for piece, at in zip(coded, ahead, strict=False)]
    arrays = {
        "number": chosen, "begin": begin, "first": first[chosen], "bound": bound[chosen],
        "word_first": np.append(np.concatenate(word_first), ahead[-1]),
        "words": np.concatenate([piece.words for piece in coded]) if len(coded) > 1 else one.words,
        "chosen": np.concatenate([piece.chosen.reshape(-1) for piece in coded]), "symbols": _begins(),
    }
    moved = {name: xp.asarray(array) for name, array in arrays.items()}
    keys = xp.empty(int(begin[-1]), xp.uint64)
    runs = _runs(keys, len(chosen), one.block)
    backend.kernel("counts", "decode_counts", dimensions=one.dimensions)(
        runs, moved, blocks=len(chosen), block=one.block, sharing=sharing, key_bits=one.key_bits,
        room=xp.empty(runs * (one.block + 1) * 2 * NODE, xp.uint16), key=keys,
    )
    return keys


@functools.cache
def _frequencies() -> np.ndarray:
    """Of each distribution and number of particles: how often each symbol occurs in 2**PRECISION, one after the other.

    Only sums, products and quotients of single numbers, which all machines round alike: the decoder needs the same.
    """
    total, share = np.meshgrid(np.array(SUMS), np.array(SHARES), indexing="ij")
    spread = np.where(np.isinf(total), 1.0, total)
    sign = np.sign(spread)
    poor, rich = np.abs(spread) * share, np.abs(spread) * (1 - share)
    step, least = np.where(np.isinf(total), 0.0, sign), 1e-3 * np.abs(spread)
    found = []
    for n in range(1, MOST + 1):
        weights = []
        for k in range(n + 1):
            weight = np.ones_like(share)
            for i in range(k):
                weight = weight * np.maximum(poor + i * step, least) * (n - i) / (i + 1)
            for i in range(n - k):
                weight = weight * np.maximum(rich + i * step, least)
            weights.append(weight)
        sum_of_all = functools.reduce(np.add, weights)
        shares = [np.floor(weight / sum_of_all * ((1 << PRECISION) - n - 1)) + 1 for weight in weights]
        counts = np.stack(shares).reshape(n + 1, -1).astype(np.int64)
        counts[counts.argmax(axis=0), np.arange(counts.shape[1])] += (1 << PRECISION) - counts.sum(axis=0)
        found.append(counts.T)
    return np.concatenate(found, axis=1)


@functools.cache
def _begins() -> np.ndarray:
    """Of each distribution and number of particles: the slots at which symbols begin, in rows as the kernels read them."""
    counts, at, rows = _frequencies(), 0, []
    for n in range(1, MOST + 1):
        row = np.full((len(counts), SHORT_ROW if n <= SHORT else LONG_ROW), 1 << PRECISION, np.uint16)
        row[:, 0] = 0
        row[:, 1 : n + 1] = np.cumsum(counts[:, at : at + n], axis=1)
        rows.append(row)
        at += n + 1
    return np.concatenate(rows, axis=1).reshape(-1)


@functools.cache
def _code_lengths() -> np.ndarray:
    """What each symbol takes in each distribution [code, distribution], in whole parts of a bit."""
    return np.round(_UNIT * (PRECISION - np.log2(_frequencies().T)))
