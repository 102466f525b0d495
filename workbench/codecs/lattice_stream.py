"""The bytes of the lattice codec: a description of the lattice and of where blocks begin, then the coded numbers.

`docs/archive-format.md` describes the layout. The description has a checksum, and the coded numbers have theirs, so that
a few blocks can be read, and trusted, without the rest.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.backend import Array
from workbench.codecs import curve
from workbench.codecs.codec import CodecFailed
from workbench.codecs.counts import CodedCounts
from workbench.codecs.entropy import CodedIntegers, Layout, joined
from workbench.codecs.molecules import BLOCK_ATOMS, CodedMolecules
from workbench.codecs.packing import PackedIntegers, PcodecIntegers, block_items
from workbench.codecs.pcodec import pack_integers, unpack_integers

Numbers = CodedIntegers | PackedIntegers | PcodecIntegers

CODERS: dict[str, type[Numbers]] = {"context": CodedIntegers, "pcodec": PcodecIntegers, "packed": PackedIntegers}
COUNTS = "counts"         # codes keys, not their differences
MOLECULES = "molecules"   # codes cells
Coded = Numbers | CodedCounts | CodedMolecules
ORDERS = ("free", "keep")

_KINDS: tuple[type[Coded], ...] = (*CODERS.values(), CodedCounts, CodedMolecules)   # as they are numbered in bytes
_HEADER = struct.Struct("<BBBBBIQd")   # order, coder, in place, dimensions, periodic, block, count, step
_SIZE = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")   # of all but the coded numbers, which have their own


@dataclass(frozen=True, eq=False)
class Stretches:
    """The keys of some blocks of a chunk, and the indices of their particles in the chunk."""

    lattice: curve.Lattice
    keys: np.ndarray
    low: np.ndarray
    starts: np.ndarray   # the first particle of each block, by its index in the chunk
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class Stream:
    """Positions as the lattice codec writes them; the coded numbers are checked when they are decoded."""

    order: str
    in_place: bool        # the decoded positions are in the order of the encoded ones
    lattice: curve.Lattice
    block: int
    count: int
    first: np.ndarray     # the key (or the cell along each axis) at which each block begins
    coded: Coded          # the deltas of keys, or of cells; or the keys, or the cells
    low: PackedIntegers | None

    def to_bytes(self) -> bytes:
        """The bytes that `of` parses."""
        lattice, coder = self.lattice, _KINDS.index(type(self.coded))
        codes = ORDERS.index(self.order), coder, self.in_place, lattice.dimensions, lattice.periodic
        axes = np.array(lattice.origin, "<f8"), np.array(lattice.last, "<i8"), np.array(lattice.top, "<f8")
        first = np.diff(self.first, prepend=np.uint64(0)) if self.order == "free" else self.first.reshape(-1)
        head = _HEADER.pack(*codes, self.block, self.count, lattice.step)
        described = b"".join([head, *(ends.tobytes() for ends in axes), pack_integers(first)])
        low = [] if self.low is None else [self.low.to_bytes()]
        return _join([described + _CHECKSUM.pack(zlib.crc32(described)), self.coded.to_bytes(), *low])

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.count // self.block)

    @classmethod
    def of(cls, data: bytes | memoryview, shape: tuple[int, ...]) -> Stream:
        """The parts of a stream that must hold positions of this shape."""
        described, *parts = _split(memoryview(data))
        view, checksum = described[: -_CHECKSUM.size], described[-_CHECKSUM.size :]
        if len(view) < _HEADER.size or _CHECKSUM.pack(zlib.crc32(view)) != checksum:
            raise CodecFailed("the description of the lattice fails its checksum")
        order, coder, in_place, dimensions, periodic, block, count, step = _HEADER.unpack_from(view)
        known = order < len(ORDERS) and coder < len(_KINDS) and dimensions in (2, 3) and block > 0 and 0 < step < np.inf
        axes_end = _HEADER.size + 24 * dimensions
        if not known or (count, dimensions) != shape or len(view) < axes_end:
            raise CodecFailed(f"the lattice stream does not hold positions of shape {shape}")
        lattice = _lattice(view[_HEADER.size : axes_end], dimensions, step, bool(periodic))
        free, blocks = ORDERS[order] == "free", -(-count // block)
        if len(parts) != 1 + (free and lattice.shift > 0):
            raise CodecFailed(f"the lattice stream has {len(parts)} parts, which is impossible")
        if free:
            first = np.cumsum(unpack_integers(bytes(view[axes_end:]), blocks, np.uint64), dtype=np.uint64)
        else:
            first = unpack_integers(bytes(view[axes_end:]), blocks * dimensions, np.int64).reshape(blocks, dimensions)
        kind = _KINDS[coder]
        if kind is CodedCounts:
            coded: Coded = _counts(parts[0], free, first, count, block, lattice)
        elif kind is CodedMolecules:
            coded = _molecules(parts[0], free, count, block, lattice)
        else:
            coded = list(CODERS.values())[coder].from_bytes(parts[0], Layout(count, block, 1 if free else dimensions))
        low = PackedIntegers.from_bytes(parts[1], Layout(count * dimensions, block, 1)) if free and lattice.shift else None
        return cls(ORDERS[order], bool(in_place), lattice, block, count, first, coded, low)

    def items(self, blocks: np.ndarray) -> np.ndarray:
        """Which particles are in these blocks."""
        return block_items(blocks, self.block, self.count)

    def reaching(self, cuboids: Sequence[tuple[Any, Any]]) -> np.ndarray:
        """Which blocks may have decoded positions in one of these (lower, upper), of positions in free order."""
        if self.order != "free":
            raise CodecFailed("positions in their own order cannot be read by region: this stream must be in free order")
        final = np.append(self.first[1:], np.uint64(2**64 - 1))
        near = [self.lattice.stretches_in(self.first, final, lower, upper) for lower, upper in cuboids]
        return np.any(near, axis=0) if near else np.zeros(self.blocks, bool)

    def stretches(self, cuboids: Sequence[tuple[Any, Any]]) -> Stretches:
        """The blocks that may reach into one of these (lower, upper), of positions in free order."""
        blocks = np.flatnonzero(self.reaching(cuboids))
        starts = blocks * self.block
        return Stretches(self.lattice, *self.keys(blocks), starts, np.minimum(self.block, self.count - starts))

    def keys(self, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The keys in these blocks, and the low bits that do not fit into them."""
        low = np.zeros(0, np.uint64)
        if self.low is not None:
            low = self.low.decode().reshape(self.count, -1)[self.items(blocks)].reshape(-1)
        if isinstance(self.coded, CodedCounts):
            return self.coded.keys(self.first, blocks), low
        assert not isinstance(self.coded, CodedMolecules)   # which are in kept order
        return self.coded.decode(blocks, self.first[blocks]), low


def decoded(streams: Sequence[Stream], xp: Any, dtype: Any) -> Array:
    """The positions of streams, one after the other: together where they are equal pieces of one set."""
    first = streams[0]
    if not all(_alike(first, one, last=number == len(streams) - 1) for number, one in enumerate(streams)):
        return xp.concatenate([decoded([one], xp, dtype) for one in streams])
    numbers, firsts = [one.coded for one in streams], joined([one.first for one in streams])
    lattice: curve.Lattice = first.lattice
    if isinstance(first.coded, CodedMolecules):
        cells = CodedMolecules.cells_of_pieces(numbers, firsts, lattice, xp)   # type: ignore[arg-type]
        return lattice.middles(cells, dtype)
    counts = isinstance(first.coded, CodedCounts)
    decode: Any = CodedCounts.keys_of_pieces if counts else type(first.coded).decode_pieces   # type: ignore[union-attr]
    if first.order == "keep":
        steps = decode(numbers, None, xp)
        return lattice.walk(steps.reshape(-1, lattice.dimensions), xp.asarray(firsts), first.count, first.block, dtype)
    low = [one.low for one in streams if one.low is not None]
    low_bits = PackedIntegers.decode_pieces(low, None, xp) if low else xp.zeros(0, xp.uint64)
    return lattice.positions(decode(numbers, firsts, xp), low_bits, dtype)


def _alike(first: Stream, other: Stream, last: bool) -> bool:
    """Whether the second can be decoded together with the first."""
    fits = other.count <= first.count if last else other.count == first.count
    same = (other.order, other.block, other.lattice) == (first.order, first.block, first.lattice)
    return fits and same and other.coded.like(first.coded)


def _counts(
    part: memoryview, free: bool, first: np.ndarray, count: int, block: int, lattice: curve.Lattice
) -> CodedCounts:
    """Keys coded as counts, whose first ones must be keys of the lattice."""
    bits = lattice.key_bits
    if not free or (len(first) and int(first.max()) >> bits):
        raise CodecFailed(f"counts are of keys in free order, of {bits} bits; this stream has others")
    return CodedCounts.from_bytes(part, count, block, lattice.dimensions, bits)


def _molecules(part: memoryview, free: bool, count: int, block: int, lattice: curve.Lattice) -> CodedMolecules:
    """Cells coded as molecules, of a lattice that allows it."""
    if free or block != BLOCK_ATOMS or not CodedMolecules.suits(lattice):
        raise CodecFailed(f"molecules are cells in kept order, in blocks of {BLOCK_ATOMS:,}; this stream has others")
    return CodedMolecules.from_bytes(part, count)


def _lattice(axes: memoryview, dimensions: int, step: float, periodic: bool) -> curve.Lattice:
    """The lattice that the header of a stream describes."""
    types = ("<f8", "<i8", "<f8")
    origin, last, top = (np.frombuffer(axes, t, dimensions, 8 * dimensions * i) for i, t in enumerate(types))
    if not (np.isfinite(origin).all() and (last >= 0).all() and (last < 1 << curve.MOST_CELL_BITS).all()):
        raise CodecFailed("the lattice stream describes no lattice")
    return curve.Lattice(tuple(origin.tolist()), step, tuple(last.tolist()), tuple(top.tolist()), periodic)


def _join(parts: Sequence[bytes]) -> bytes:
    """Parts one after the other, each with its length before it."""
    return b"".join(piece for part in parts for piece in (_SIZE.pack(len(part)), part))


def _split(data: memoryview) -> list[memoryview]:
    parts, at = [], 0
    while at < len(data):
        if at + _SIZE.size > len(data) or (size := _SIZE.unpack_from(data, at)[0]) > len(data) - at - _SIZE.size:
            raise CodecFailed("a part of the lattice stream is cut short")
        parts.append(data[at + _SIZE.size : at + _SIZE.size + size])
        at += _SIZE.size + size
    if not parts:
        raise CodecFailed("the lattice stream is empty")
    return parts
