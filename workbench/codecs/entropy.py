"""Entropy coding of integers whose sizes change slowly: the coder of the lattice codec.

A general entropy coder uses one histogram for all deltas along a curve. But dense regions come in runs: the size of a delta
is well predicted by the deltas before it, and a particle's delta along one axis by its deltas along the others. Here each
number's size is coded by rANS with a frequency table for the local level of sizes (`kernels/entropy.cu`), which saves 0.6
bits per particle of a clustered snapshot. Tables are static, not adaptive, so that decoding is one look-up per number;
blocks are independent, so that they are coded in parallel, can be read alone, and have a checksum each.
"""

from __future__ import annotations

import dataclasses
import functools
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
from workbench.codecs.crc import crc32_of_blocks
from workbench.codecs.pcodec import pack_integers, unpack_integers

SYMBOLS = 256                # as in kernels/entropy.cu
CONTEXTS = 64
PRECISION = 12
MOST_COMPONENTS = 3
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

    @property
    def given(self) -> dict[str, int]:
        """The bundle of kernel arguments."""
        return {**dataclasses.asdict(self), "signs": int(self.signs)}


@dataclass(frozen=True, eq=False)
class CodedIntegers:
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
        xp = backend.namespace(numbers)
        model = _fitted(numbers, block, signs)
        components = model.components
        code, below = _classify(numbers, block, model)
        frequency = frequencies(_histogram(code, components))
        words, word_first = words_of(code, even_blocks(len(code), block * components), frequency)
        bits_first = starts((backend.to_host(below) + 31) // 32)
        bits = xp.empty(int(bits_first[-1]), xp.uint32)
        write = backend.kernel("entropy", "write_bits")
        write(len(below), numbers.size, block * components, int(signs), numbers, xp.asarray(bits_first), bits)
        parts = [(words, xp.asarray(word_first)), (bits, xp.asarray(bits_first))]
        sums = crc32_of_blocks(parts, xp.arange(len(below), dtype=xp.int64))
        words, bits, sums = (backend.to_host(array) for array in (words, bits, sums))
        return cls(len(numbers), block, model, frequency, words, bits, word_first, bits_first, sums)

    def decode(self, blocks: Blocks = None, base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of all blocks or of some; with `base` (one for each of these), running sums that start there."""
        chosen = np.arange(len(self.checksums)) if blocks is None else np.asarray(blocks, np.int64)
        self._check(chosen)
        model, components = self.model, self.model.components
        begin = starts(np.minimum(self.block, self.count - chosen * self.block) * components)
        frequency, start, symbol_at = self._tables
        sums = np.zeros(len(chosen), np.uint64) if base is None else base
        arrays = {
            "chosen": chosen, "begin": begin, "base": sums, "word_first": self.word_first, "words": self.words,
            "bits_first": self.bits_first, "bits": self.bits,
            "symbol_at": symbol_at, "frequency": frequency, "start": start,
        }
        value = xp.empty(int(begin[-1]), xp.uint64)
        backend.kernel("entropy", "decode_symbols")(
            len(chosen), model.given, {name: xp.asarray(array) for name, array in arrays.items()},
            sums=int(base is not None), value=value,
        )
        return value if components == 1 else value.reshape(-1, components)

    def _check(self, blocks: np.ndarray) -> None:
        """Check blocks against their checksums, each of them once."""
        unchecked = blocks[~self._checked[blocks]]
        found = crc32_of_blocks([(self.words, self.word_first), (self.bits, self.bits_first)], unchecked)
        wrong = unchecked[self.checksums[unchecked] != found]
        if len(wrong):
            raise CodecFailed(f"block {wrong[0]} of {len(self.checksums)} fails its checksum")
        self._checked[blocks] = True

    @functools.cached_property
    def _checked(self) -> np.ndarray:
        """Which blocks have passed their checksum."""
        return np.zeros(len(self.checksums), bool)

    @functools.cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Frequency and first slot of each code, and the symbol of each slot."""
        symbol_at = np.zeros((len(self.frequency), 1 << PRECISION), np.uint8)
        used = self.frequency.any(axis=1)
        symbols = np.broadcast_to(np.arange(SYMBOLS, dtype=np.uint8), (int(used.sum()), SYMBOLS))
        symbol_at[used] = np.repeat(symbols.reshape(-1), self.frequency[used].reshape(-1)).reshape(-1, 1 << PRECISION)
        return self.frequency.reshape(-1), slots_of(self.frequency).reshape(-1), symbol_at.reshape(-1)

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


def _fitted(numbers: Array, block: int, signs: bool) -> _Model:
    """The model of these numbers, estimated from every eighth block."""
    xp = backend.namespace(numbers)
    components = 1 if numbers.ndim == 1 else int(numbers.shape[1])
    sample = xp.concatenate([numbers[i : i + block] for i in range(0, len(numbers), SAMPLED * block)])
    octave = min(_mean_octave(backend.to_host(sample[:: max(len(sample) // 1024, 1)])), CONTEXTS - 1)
    code, _ = _classify(sample, block, _Model(components, signs, octave, 0, CONTEXTS - 1))
    lowest, highest = _used_contexts(_histogram(code, components), FEW * len(sample) / len(numbers))
    return _Model(components, signs, octave, lowest, highest)


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


def _classify(numbers: Array, block: int, model: _Model) -> tuple[Array, Array]:
    """The code of every number, and how many bits stand below the symbols of each block."""
    xp = backend.namespace(numbers)
    code, below = xp.empty(numbers.size, xp.uint16), xp.empty(-(-len(numbers) // block), xp.int64)
    backend.kernel("entropy", "classify")(
        len(below), model.given, n=numbers.size, block=block * model.components, value=numbers, code=code, bits=below
    )
    return code, below


def _histogram(code: Array, components: int) -> np.ndarray:
    """How often each symbol occurs in each context of each component."""
    xp = backend.namespace(code)
    parts, codes = backend.chunks(len(code), code), components * CONTEXTS * SYMBOLS
    counts = xp.zeros((min(parts, MOST_HISTOGRAMS) if backend.on_device(code) else parts, codes), xp.uint32)
    backend.kernel("entropy", "count_codes")(parts, len(code), code, codes, len(counts), counts)
    return backend.to_host(counts.sum(axis=0, dtype=xp.int64)).reshape(components * CONTEXTS, SYMBOLS)


def _used_contexts(histogram: np.ndarray, few: float) -> tuple[int, int]:
    """The range of contexts that have enough numbers for a table of their own."""
    counts = histogram.sum(axis=1).reshape(-1, CONTEXTS).sum(axis=0)
    least = min(max(RARE * counts.sum(), few), (counts.sum() - 1) / 2)   # too few for two tables: all share one
    lowest = int(np.searchsorted(np.cumsum(counts), least, side="right"))
    highest = CONTEXTS - 1 - int(np.searchsorted(np.cumsum(counts[::-1]), least, side="right"))
    return min(lowest, highest), max(lowest, highest)


def frequencies(histogram: np.ndarray) -> np.ndarray:
    """Frequencies that sum to 2**PRECISION in every used context, at least 1 for symbols that occur."""
    frequency = np.zeros(histogram.shape, np.int64)
    for row in np.flatnonzero(histogram.sum(axis=1)):
        counts = histogram[row]
        scaled = np.maximum(counts * (1 << PRECISION) // counts.sum(), counts > 0)
        while (excess := int(scaled.sum()) - (1 << PRECISION)) != 0:
            largest = int(np.argmax(scaled))   # the largest frequency absorbs the rounding at the least cost
            scaled[largest] -= min(excess, int(scaled[largest]) - 1) if excess > 0 else excess
        frequency[row] = scaled
    return frequency.astype(np.uint32)


def slots_of(frequency: np.ndarray) -> np.ndarray:
    """The first slot of each symbol of each context."""
    return np.cumsum(frequency, axis=1, dtype=np.uint32) - frequency


def words_of(code: Array, begin: np.ndarray, frequency: np.ndarray) -> tuple[Array, np.ndarray]:
    """Codes (context * symbols + symbol) as the words of all blocks, and where the words of each block begin.

    `begin` says where the codes of each block begin, and the end.
    """
    xp = backend.namespace(code)
    blocks = len(begin) - 1
    table, start = xp.asarray(frequency.reshape(-1)), xp.asarray(slots_of(frequency).reshape(-1))
    room = int(np.diff(begin).max(initial=0)) * PRECISION // 16 + 4   # no symbol takes more than PRECISION bits
    slots, used = xp.empty(blocks * room, xp.uint16), xp.empty(blocks, xp.int64)
    backend.kernel("entropy", "encode_symbols")(blocks, xp.asarray(begin), code, table, start, room, slots, used)
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

