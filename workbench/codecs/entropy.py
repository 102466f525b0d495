"""Entropy coding of integers whose sizes change slowly: the coder of the lattice codec.

A general entropy coder uses one histogram for all deltas along a curve. But dense regions come in runs: the size of a delta
is well predicted by the deltas before it, and a particle's delta along one axis by its deltas along the others. Here each
number's size is coded by rANS with a frequency table for the local level of sizes (`kernels/entropy.cu`), which saves 0.6
bits per particle of a clustered snapshot. Tables are static, not adaptive, so that decoding is one look-up per number;
blocks are independent, so that they are coded in parallel, can be read alone, and have a checksum each.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.crc import CheckedBlocks, crc32_of_blocks
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.together import Pieces

SYMBOLS = 256                # as in kernels/entropy.cu
CONTEXTS = 64
PRECISION = 12
MOST_COMPONENTS = 3
LEAST_STATE = 2**16
IN_TURNS = backend.constant("entropy.cu", "IN_TURNS")   # blocks that a thread of a CPU codes in turns, to save time
SAMPLED = 8                  # one block in this many is sampled for the contexts that occur
RARE = 1 / 1024              # the contexts at both ends that hold less than this share of the numbers,
FEW = 4000                   # or fewer than this many, use the table of their neighbour
MOST_HISTOGRAMS = 8          # of a GPU, whose threads share them; threads of a CPU have one each
NEAR_INTEGER = 1e-9          # a mean logarithm closer to an integer may have been rounded across it

Blocks = Sequence[int] | np.ndarray | None

_HEADER = struct.Struct("<BBBBBIQIIIQQ")
_CHECKSUM = struct.Struct("<I")   # of the header and the tables; every block has its own


@dataclass(frozen=True)
class Layout:
    """The number of items of coded integers, of items per block, and of numbers per item.

    A reader of coded integers states the expected layout, because the kernels that use the decoded numbers rely on it.
    """

    count: int
    block: int
    components: int

    def __str__(self) -> str:
        return f"{self.count:,} items of {self.components} in blocks of {self.block:,}"

    def require(self, found: Layout) -> None:
        """Refuse coded integers whose header states another layout."""
        if found != self:
            raise CodecFailed(f"coded integers must be {self}; their header says {found}")


@dataclass(frozen=True)
class _Model:
    """The parameters of encoder and decoder besides the frequencies."""

    components: int
    signs: bool
    octave: int    # the level at which every block starts
    lowest: int    # the contexts that have tables of their own
    highest: int


def _given(models: Sequence[_Model], xp: Any) -> dict[str, Any]:
    """The bundle of kernel arguments that hold the model of each piece."""
    levels = np.array([(model.octave, model.lowest, model.highest) for model in models], np.int32).T
    arrays = {name: xp.asarray(row) for name, row in zip(("octave", "lowest", "highest"), levels.copy(), strict=True)}
    return {"components": models[0].components, "signs": int(models[0].signs), **arrays}


@dataclass(frozen=True, eq=False)
class CodedIntegers(CheckedBlocks):
    """Non-negative integers (uint64), coded in blocks: N of them, or N items of two or three components each.

    `signs` says that the lowest bit of each number is a sign.

    >>> numbers = np.arange(10_000, dtype=np.uint64) % 17
    >>> data = CodedIntegers.of(numbers, block=4096).to_bytes()
    >>> bool((CodedIntegers.from_bytes(data, Layout(10_000, 4096, 1)).decode() == numbers).all()), len(data) < 8_000
    (True, True)
    """

    count: int                # of items
    block: int                # items in a block
    model: _Model
    frequency: np.ndarray     # (components * contexts, symbols), each row summing to 2**PRECISION, or zero
    words: np.ndarray         # uint16: the symbols
    bits: np.ndarray          # uint32: the bits below them
    word_first: np.ndarray    # where each block begins in `words`, and the end
    bits_first: np.ndarray
    checksums: np.ndarray     # of each block

    @classmethod
    def of(cls, numbers: Array, block: int, signs: bool = False) -> CodedIntegers:
        """The numbers, coded on the machine where they are."""
        return cls.of_pieces(numbers, len(numbers), block, signs)[0]

    @classmethod
    def of_pieces(cls, numbers: Array, piece: int, block: int, signs: bool = False) -> list[CodedIntegers]:
        """The same for each piece of so many items, together, each with a model of its own."""
        xp, pieces = backend.namespace(numbers), Pieces.of(len(numbers), piece)
        models = _fitted(numbers, pieces, block, signs)
        components = models[0].components
        code, below = _classify(numbers, pieces, block, models)
        histograms = backend.to_host(_histograms(code, pieces.length * components, components))
        tables = frequencies(histograms.reshape(-1, SYMBOLS)).reshape(histograms.shape)
        begin = pieces.block_starts(block) * components
        words, word_first = words_of(code, begin, tables, pieces.blocks_of_each(block), state=0)
        bits_first = starts((backend.to_host(below) + 31) // 32)
        bits = xp.empty(int(bits_first[-1]), xp.uint32)
        backend.kernel("entropy", "write_bits")(
            len(below), numbers.size, pieces.length * components, block * components, int(signs), numbers,
            xp.asarray(bits_first), bits,
        )
        parts = [(words, xp.asarray(word_first)), (bits, xp.asarray(bits_first))]
        sums = crc32_of_blocks(parts, xp.arange(len(below), dtype=xp.int64))
        words, bits, sums = (backend.to_host(array) for array in (words, bits, sums))
        found = []
        for number, (items, own) in enumerate(zip(pieces, pieces.blocks_by_piece(block), strict=True)):
            at, at_bits = (first[own.start : own.stop + 1] for first in (word_first, bits_first))
            own_words, own_bits = words[at[0] : at[-1]], bits[at_bits[0] : at_bits[-1]]
            found.append(cls(
                items.stop - items.start, block, models[number], tables[number], own_words, own_bits,
                at - at[0], at_bits - at_bits[0], sums[own],
            ))
        return found

    def decode(self, blocks: Blocks = None, base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of all blocks or of some; with `base` (one for each of these), running sums that start there."""
        if blocks is None:
            return self.decode_pieces([self], base, xp)
        chosen = np.asarray(blocks, np.int64)
        self._check(chosen)
        begin = starts(np.minimum(self.block, self.count - chosen * self.block) * self.model.components)
        return _decoded([self], chosen, begin, base, xp)

    @classmethod
    def decode_pieces(cls, coded: Sequence[CodedIntegers], base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of equal pieces (the last may be shorter), together; with `base`, running sums in every block."""
        for one in coded:
            one._check(np.arange(len(one.checksums)))
        pieces = Pieces.of(sum(one.count for one in coded), coded[0].count)
        begin = pieces.block_starts(coded[0].block) * coded[0].model.components
        return _decoded(coded, np.arange(len(begin) - 1), begin, base, xp)

    def like(self, other: object) -> bool:
        """Whether `decode_pieces` takes both together, if their lengths allow it."""
        return isinstance(other, CodedIntegers) and (self.model.components, self.model.signs) == (
            other.model.components, other.model.signs
        )

    @property
    def _parts(self) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        return [(self.words, self.word_first), (self.bits, self.bits_first)]

    def to_bytes(self) -> bytes:
        """Everything as bytes."""
        model = self.model
        tables = pack_integers(self._own_tables().astype(np.uint16).reshape(-1))
        word_counts = pack_integers(np.diff(self.word_first).astype(np.uint32))
        bits_counts = pack_integers(np.diff(self.bits_first).astype(np.uint32))
        head = _HEADER.pack(
            model.components, model.signs, model.octave, model.lowest, model.highest, self.block, self.count,
            len(tables), len(word_counts), len(bits_counts), len(self.words), len(self.bits),
        )
        checksums, *body = (a.astype(a.dtype.newbyteorder("<")).tobytes() for a in (self.checksums, self.words, self.bits))
        tables_and_sums = b"".join([tables, word_counts, bits_counts, checksums])
        return b"".join([head, _CHECKSUM.pack(zlib.crc32(tables_and_sums, zlib.crc32(head))), tables_and_sums, *body])

    def _own_tables(self) -> np.ndarray:
        """A view of the frequencies of the contexts that have tables of their own."""
        shaped = self.frequency.reshape(self.model.components, CONTEXTS, SYMBOLS)
        return shaped[:, self.model.lowest : self.model.highest + 1]

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, expected: Layout) -> CodedIntegers:
        """The integers that `to_bytes` wrote with this layout; invalid headers are refused before anything is allocated."""
        view, body = memoryview(data), _HEADER.size + _CHECKSUM.size
        if len(view) < body:
            raise CodecFailed(f"coded integers have a header of {body} bytes; got {len(view)}")
        components, signs, octave, lowest, highest, block, count, *sizes = _HEADER.unpack_from(view)
        known = 1 <= components <= MOST_COMPONENTS and signs <= 1 and lowest <= highest < CONTEXTS
        if not known or octave >= CONTEXTS or block < 1:
            raise CodecFailed(f"coded integers have an impossible header: contexts {lowest}-{highest}, blocks of {block}")
        expected.require(Layout(count, block, components))
        blocks = -(-count // block)
        words, bits = sizes[3:]
        lengths = [*sizes[:3], 4 * blocks, 2 * words, 4 * bits]
        if sum(lengths) != len(view) - body:
            raise CodecFailed(f"coded integers must have {sum(lengths)} bytes after the header; got {len(view) - body}")
        ends = np.cumsum([body, *lengths]).tolist()
        checksum = zlib.crc32(view[body : ends[4]], zlib.crc32(view[: _HEADER.size]))
        if checksum != _CHECKSUM.unpack_from(view, _HEADER.size)[0]:
            raise CodecFailed("the tables of coded integers fail their checksum")
        parts = [view[a:b] for a, b in pairwise(ends)]
        first = [starts(unpack_integers(bytes(p), blocks, np.uint32).astype(np.int64)) for p in parts[1:3]]
        if (first[0][-1], first[1][-1]) != (words, bits):
            raise CodecFailed(f"coded integers promise {first[0][-1]} and {first[1][-1]} words; got {words} and {bits}")
        model = _Model(components, bool(signs), octave, lowest, highest)
        arrays = [_aligned(p, t) for p, t in zip(parts[3:], ("<u4", "<u2", "<u4"), strict=True)]
        frequency = np.zeros((components * CONTEXTS, SYMBOLS), np.uint32)
        coded = cls(count, block, model, frequency, arrays[1], arrays[2], first[0], first[1], arrays[0])
        own = coded._own_tables()
        own[...] = unpack_integers(bytes(parts[0]), own.size, np.uint16).reshape(own.shape)
        sums = frequency.sum(axis=1)
        if ((sums != 0) & (sums != 1 << PRECISION)).any():
            raise CodecFailed("the frequencies of coded integers do not add up")
        return coded


def _aligned(data: memoryview, dtype: str) -> np.ndarray:
    """Bytes at any address as numbers that kernels may read: a copy where they are not aligned."""
    return np.require(np.frombuffer(data, dtype), requirements="A")


def _decoded(
    coded: Sequence[CodedIntegers], chosen: np.ndarray, begin: np.ndarray, base: np.ndarray | None, xp: Any
) -> Array:
    """The numbers of chosen blocks, of all pieces; the numbers of each begin at `begin`."""
    model, components = coded[0].model, coded[0].model.components
    arrays = {
        "chosen": chosen, "begin": begin, "base": np.zeros(len(chosen), np.uint64) if base is None else base,
        "word_first": _all_first([one.word_first for one in coded]), "words": joined([one.words for one in coded]),
        "bits_first": _all_first([one.bits_first for one in coded]), "bits": joined([one.bits for one in coded]),
        "frequency": joined([one.frequency.reshape(-1) for one in coded]),
    }
    moved = {name: xp.asarray(array) for name, array in arrays.items()}
    rows = len(coded) * components * CONTEXTS
    start, symbol_at = xp.empty(rows * SYMBOLS, xp.uint32), xp.zeros(rows << PRECISION, xp.uint8)
    backend.kernel("entropy", "fill_slots")(rows, moved["frequency"], start, symbol_at)
    value = xp.empty(int(begin[-1]), xp.uint64)
    backend.kernel("entropy", "decode_symbols")(
        len(chosen), _given([one.model for one in coded], xp), moved, sharing=len(coded[0].checksums),
        start=start, symbol_at=symbol_at, sums=int(base is not None), value=value,
    )
    return value if model.components == 1 else value.reshape(-1, components)


def _all_first(firsts: Sequence[np.ndarray]) -> np.ndarray:
    """Where each block begins when the pieces stand one after the other, and the end."""
    before = np.cumsum([0, *(first[-1] for first in firsts)])
    return np.append(joined([first[:-1] + ahead for first, ahead in zip(firsts, before[:-1], strict=True)]), before[-1])


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The arrays one after the other; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _fitted(numbers: Array, pieces: Pieces, block: int, signs: bool) -> list[_Model]:
    """The model of each piece, estimated from every eighth block."""
    components = 1 if numbers.ndim == 1 else int(numbers.shape[1])
    sample, taken = sampled_blocks(numbers, pieces, block, SAMPLED)
    octaves = _octaves(sample, taken)
    wide = [_Model(components, signs, octave, 0, CONTEXTS - 1) for octave in octaves]
    code, _ = _classify(sample, taken, block, wide)
    counts = backend.to_host(_histograms(code, taken.length * components, components).sum(axis=-1, dtype=np.int64))
    found = []
    for octave, seen, whole, part in zip(octaves, counts, pieces, taken, strict=True):
        few = FEW * (part.stop - part.start) / max(whole.stop - whole.start, 1)
        found.append(_Model(components, signs, octave, *_used_contexts(seen, few)))
    return found


def sampled_blocks(numbers: Array, pieces: Pieces, block: int, every: int) -> tuple[Array, Pieces]:
    """Every so-many-th block of each piece, and the pieces that these are."""
    if every == 1:
        return numbers, pieces
    xp, components = backend.namespace(numbers), numbers.size // max(len(numbers), 1)
    sizes = [Pieces.of(whole.stop - whole.start, block) for whole in (next(iter(pieces)), list(pieces)[-1])]
    first, last = (sum(b.stop - b.start for b in list(blocks)[::every]) for blocks in sizes)
    taken = Pieces.of(first * (len(pieces) - 1) + last, first)
    sample = xp.empty((taken.count, *numbers.shape[1:]), xp.uint64)
    backend.kernel("entropy", "take_blocks")(
        taken.blocks(block), numbers.size, pieces.length * components, block * components, every, numbers,
        taken.length * components, sample.size, sample,
    )
    return sample, taken


def _octaves(sample: Array, taken: Pieces) -> list[int]:
    """The level at which each piece starts."""
    xp, each = backend.namespace(sample), [sample[part][:: max((part.stop - part.start) // 1024, 1)] for part in taken]
    few, ends = backend.to_host(xp.concatenate(each)), np.cumsum([len(one) for one in each])
    return [min(_mean_octave(part), CONTEXTS - 1) for part in np.split(few, ends[:-1])]


def _mean_octave(numbers: np.ndarray) -> int:
    """The mean of log2(number + 1), rounded down: exact, so that all machines agree.

    Where rounding could decide, it is the number of bits of the product.

    >>> _mean_octave(np.array([0, 1, 7, 7], np.uint64))   # (0 + 1 + 3 + 3) / 4
    1
    """
    octaves = float(np.log2(numbers.astype(np.float64) + 1).mean())
    if abs(octaves - round(octaves)) > NEAR_INTEGER:
        return int(octaves)
    factors = [number + 1 for number in numbers.reshape(-1).tolist()]
    return (math.prod(factors).bit_length() - 1) // len(factors)


def _classify(numbers: Array, pieces: Pieces, block: int, models: Sequence[_Model]) -> tuple[Array, Array]:
    """The code of every number, and how many bits stand below the symbols of each block."""
    xp, components = backend.namespace(numbers), models[0].components
    code, below = xp.empty(numbers.size, xp.uint16), xp.empty(pieces.blocks(block), xp.int64)
    backend.kernel("entropy", "classify")(
        len(below), _given(models, xp), n=numbers.size, piece=pieces.length * components, block=block * components,
        value=numbers, code=code, bits=below,
    )
    return code, below


def _histograms(code: Array, piece: int, components: int) -> Array:
    """How often each symbol occurs in each context of each component, in each piece of so many numbers."""
    xp, codes = backend.namespace(code), components * CONTEXTS * SYMBOLS
    parts, pieces = backend.chunks(min(piece, len(code)), code), max(-(-len(code) // piece), 1)
    several = max(min(parts, MOST_HISTOGRAMS // pieces), 1) if backend.on_device(code) else parts
    counts = xp.zeros((pieces, several, codes), xp.uint32)
    backend.kernel("entropy", "count_codes")(parts * pieces, parts, len(code), piece, code, codes, several, counts)
    total = counts.sum(axis=1, dtype=xp.uint32) if several > 1 else counts
    return total.reshape(pieces, components * CONTEXTS, SYMBOLS)


def _used_contexts(counts: np.ndarray, few: float) -> tuple[int, int]:
    """The range of contexts that have enough numbers for a table of their own, by the numbers in each."""
    counts = counts.reshape(-1, CONTEXTS).sum(axis=0)
    least = min(max(RARE * counts.sum(), few), (counts.sum() - 1) / 2)   # too few for two tables: all share one
    lowest = int(np.searchsorted(np.cumsum(counts), least, side="right"))
    highest = CONTEXTS - 1 - int(np.searchsorted(np.cumsum(counts[::-1]), least, side="right"))
    return min(lowest, highest), max(lowest, highest)


def frequencies(histogram: np.ndarray) -> np.ndarray:
    """Frequencies that sum to 2**PRECISION in every used context, at least 1 for symbols that occur."""
    frequency = np.zeros(histogram.shape, np.int64)
    used = np.flatnonzero(histogram.any(axis=1))
    counts = histogram[used].astype(np.int64)
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    scaled = np.maximum(counts * (1 << PRECISION) // total, counts > 0)
    while (rows := np.flatnonzero(scaled.sum(axis=1) != 1 << PRECISION)).size:
        excess, largest = scaled[rows].sum(axis=1) - (1 << PRECISION), scaled[rows].argmax(axis=1)
        # The largest frequency absorbs the rounding at the least cost.
        scaled[rows, largest] -= np.minimum(excess, scaled[rows, largest] - 1)
    frequency[used] = scaled
    return frequency.astype(np.uint32)


def slots_of(frequency: np.ndarray) -> np.ndarray:
    """The first slot of each symbol of each context."""
    return np.cumsum(frequency, axis=-1, dtype=np.uint32) - frequency


def words_of(
    code: Array, begin: np.ndarray, frequency: np.ndarray, sharing: int | None = None, state: int = LEAST_STATE
) -> tuple[Array, np.ndarray]:
    """Codes (context * symbols + symbol) as the words of all blocks, and where the words of each block begin.

    `begin` says where the codes of each block begin, and the end. `frequency` is the table of all blocks; if `sharing` is
    given, one table for every so many blocks. `state` is that of the coder before the first number it takes.
    """
    xp = backend.namespace(code)
    blocks = len(begin) - 1
    if blocks == 0:
        return xp.empty(0, xp.uint16), starts(np.zeros(0, np.int64))
    sharing = blocks if sharing is None else sharing
    table, start = xp.asarray(frequency.reshape(-1)), xp.asarray(slots_of(frequency).reshape(-1))
    codes = table.size // -(-blocks // sharing)
    room = int(np.diff(begin).max(initial=0)) * PRECISION // 16 + 4   # no symbol takes more than PRECISION bits
    slots, used = xp.empty(blocks * room, xp.uint16), xp.empty(blocks, xp.int64)
    together = 1 if xp is not np else min(max(blocks // backend.threads(), 1), IN_TURNS)
    backend.kernel("entropy", "encode_symbols")(
        -(-blocks // together), together, blocks, xp.asarray(begin), code, sharing, codes, table, start, state, room, slots,
        used,
    )
    first = starts(backend.to_host(used))
    words = xp.empty(int(first[-1]), xp.uint16)
    backend.kernel("entropy", "gather_words")(blocks, room, slots, used, xp.asarray(first), words)
    return words, first


def even_blocks(count: int, block: int) -> np.ndarray:
    """Where blocks of this many items begin, and the end.

    >>> even_blocks(10, 4).tolist()
    [0, 4, 8, 10]
    """
    return np.append(np.arange(0, count, block, dtype=np.int64), count)


def starts(sizes: np.ndarray) -> np.ndarray:
    """The start of each of these when they are concatenated, and the end."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

