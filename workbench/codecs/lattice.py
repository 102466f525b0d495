"""The house codec for particles: cells of a lattice, in the order of a curve or in their own.

A coordinate within ±ξ needs a lattice of step 2ξ and no more. When the order of the particles is free, their cells are
sorted along a Morton curve and only the gaps are stored: that saves log₂N − 1.44 bits a particle over anything that keeps
the order, and the gaps are small where particles are dense. When the order must be kept, the steps from one particle to
the next are stored. Either way the numbers go to one of three coders (`entropy.py`, `packing.py`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from workbench import backend, ordering
from workbench.backend import Array
from workbench.codecs import curve
from workbench.codecs.codec import CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.entropy import CodedIntegers
from workbench.codecs.packing import PackedIntegers, PcodecIntegers
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.data.extent import extent

Coded = CodedIntegers | PackedIntegers | PcodecIntegers

CODERS: dict[str, type[Coded]] = {"context": CodedIntegers, "pcodec": PcodecIntegers, "packed": PackedIntegers}
ORDERS = ("free", "keep")
SAMPLED = 8    # one block in so many decides between coders
SMALL = 2**16

KEPT_BLOCKS = 64   # in the original order a region is no stretch of the file: blocks only serve parallel work

_HEADER = struct.Struct("<BBBBBIQd")   # order, coder, in place, dimensions, periodic, block, count, step
_SIZE = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")   # of all but the coded numbers, which have their own


@dataclass(frozen=True)
class LatticeCodec(ParticleCodec):
    """Positions on a lattice of twice the tolerance, sorted along a Morton curve or in their own order.

    `lower`, `upper` and `box` fix one lattice for all chunks of a set; when not given, each array gets its own.

    >>> codec = LatticeCodec(order="keep")
    >>> positions = np.random.default_rng(0).random((1000, 3))
    >>> data = codec.encode(positions, Tolerance(absolute=0.01))
    >>> bool(abs(codec.decode(data, positions.shape, positions.dtype) - positions).max() <= 0.01)
    True
    """

    id: ClassVar[str] = "lattice"
    title: ClassVar[str] = "Lattice: the house codec for particles"
    on_device: ClassVar[bool] = True

    order: str = option("free", "whether particles may come back sorted along the curve", choices=ORDERS)
    coder: str = option("auto", "how the gaps or steps are coded", choices=("auto", *CODERS))
    block: int = option(1024, "particles in a block that is decoded alone", minimum=64, maximum=2**20)
    lower: tuple[float, ...] | None = option(None, "the smallest coordinate along each axis")
    upper: tuple[float, ...] | None = option(None, "the largest coordinate along each axis")
    box: tuple[float, ...] | None = option(None, "the lengths of the periodic box")

    @property
    def reorders(self) -> bool:
        """Whether decoded points come back sorted along the curve."""
        return self.order == "free"

    def prepared(self, values: Array, tolerance: Tolerance, box: Sequence[float] | None = None) -> Self:
        """The codec with the lattice of all these positions, for any part of them."""
        _check_shape(values)
        lower, upper = (tuple(end.tolist()) for end in extent(values))
        return replace(self, lower=lower, upper=upper, box=None if box is None else tuple(map(float, box)))

    def lattice(self, positions: Array, tolerance: Tolerance) -> curve.Lattice:
        """The lattice for these positions."""
        ready = self if self.lower is not None and self.upper is not None else self.prepared(positions, tolerance, self.box)
        if any(len(axes) != positions.shape[1] for axes in (ready.lower, ready.upper, ready.box or ready.lower) if axes):
            raise CodecFailed(f"the lattice of these options is not one for positions of shape {tuple(positions.shape)}")
        size = tolerance.absolute_for(positions)
        return curve.Lattice.fitted(ready.lower or (), ready.upper or (), size, positions.dtype, self.box)

    def permutation(self, positions: Array, tolerance: Tolerance, data: bytes) -> Array | None:
        """Which point each decoded one is: decoded[i] stands for positions[permutation[i]]; None when all stay in place."""
        if Stream.of(data, tuple(positions.shape)).in_place:
            return None
        return _sorted_keys(self.lattice(positions, tolerance), positions)[1]

    def _encode(self, values: Array, tolerance: Tolerance) -> bytes:
        _check_shape(values)
        lattice = self.lattice(values, tolerance)
        encode = self._encode_free if self.order == "free" else self._encode_kept
        in_place, first, coder, body = encode(lattice, values)
        block = self.block if self.order == "free" else self.block * KEPT_BLOCKS
        codes = ORDERS.index(self.order), list(CODERS).index(coder), in_place
        head = _HEADER.pack(*codes, lattice.dimensions, lattice.periodic, block, len(values), lattice.step)
        axes = [np.array(lattice.origin), np.array(lattice.last, np.int64), np.array(lattice.top)]
        described = b"".join([head, *(a.tobytes() for a in axes), pack_integers(first)])
        return _join([described + _CHECKSUM.pack(zlib.crc32(described)), *body])

    def _encode_free(self, lattice: curve.Lattice, positions: Array) -> tuple[bool, np.ndarray, str, list[bytes]]:
        """Whether the positions were in order already, the first key of each block, and the coded gaps between keys."""
        xp = backend.namespace(positions)
        keys, order = _sorted_keys(lattice, positions)
        gaps = xp.empty_like(keys)
        backend.kernel("lattice", "key_gaps")(len(keys), self.block, keys, gaps)
        first = backend.to_host(keys[:: self.block])
        low = lattice.low_bits(positions[order] if order is not None and lattice.shift else positions)
        coder = self._coder(gaps, self.block, signs=False)
        parts = [CODERS[coder].of(gaps, self.block).to_bytes()]
        parts += [PackedIntegers.of(low, self.block).to_bytes()] if lattice.shift else []
        return order is None, np.diff(first, prepend=np.uint64(0)), coder, parts

    def _encode_kept(self, lattice: curve.Lattice, positions: Array) -> tuple[bool, np.ndarray, str, list[bytes]]:
        """True, as nothing moves, the cells where blocks begin, and the coded steps from one particle to the next."""
        block = self.block * KEPT_BLOCKS
        steps, first = lattice.steps(positions, block)
        coder = self._coder(steps, block, signs=True)
        coded = CODERS[coder].of(steps, block, signs=True)
        return True, backend.to_host(first).reshape(-1), coder, [coded.to_bytes()]

    def _coder(self, numbers: Array, block: int, signs: bool) -> str:
        """The coder to use. By itself, the better of the two on a host: contexts, unless nothing follows from them."""
        if self.coder != "auto" or backend.on_device(numbers):
            return "context" if self.coder == "auto" else self.coder
        every = SAMPLED if len(numbers) > SMALL else 1   # of few numbers, a part would tell nothing about the whole
        sample = np.concatenate([numbers[i : i + block] for i in range(0, len(numbers), every * block)])
        sizes = {name: len(CODERS[name].of(sample, block, signs).to_bytes()) for name in ("context", "pcodec")}
        return min(sizes, key=lambda name: sizes[name])

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self._decode_on(np, data, shape, dtype)

    def _decode_on(self, xp: Any, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        stream = Stream.of(data, shape)
        if stream.order == "free":
            return stream.lattice.positions(*stream.keys(xp, np.arange(stream.blocks)), dtype)
        return stream.in_order(xp, dtype)


@dataclass(frozen=True, eq=False)
class Stretches:
    """Some particles of a chunk as keys: where they are along the curve, and which of the chunk they are."""

    lattice: curve.Lattice
    keys: np.ndarray
    low: np.ndarray
    places: np.ndarray


@dataclass(frozen=True, eq=False)
class Stream:
    """The bytes of `LatticeCodec._encode`, taken apart and checked; the coded numbers are checked when they are decoded."""

    order: str
    in_place: bool        # the decoded positions are in the order of the encoded ones
    lattice: curve.Lattice
    block: int
    count: int
    first: np.ndarray     # the key (or the cell along each axis) at which each block begins
    coded: Coded          # the gaps, or the steps
    low: PackedIntegers | None

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
        known = order < len(ORDERS) and coder < len(CODERS) and dimensions in (2, 3) and block > 0 and 0 < step < np.inf
        axes_end = _HEADER.size + 24 * dimensions
        if not known or (count, dimensions) != shape or len(view) < axes_end:
            raise CodecFailed(f"the lattice stream does not hold positions of shape {shape}")
        lattice = _lattice(view[_HEADER.size : axes_end], dimensions, step, bool(periodic))
        free, blocks = ORDERS[order] == "free", -(-count // block)
        if len(parts) != 1 + (free and lattice.shift > 0):
            raise CodecFailed(f"the lattice stream has {len(parts)} parts, which is not right")
        if free:
            first = np.cumsum(unpack_integers(bytes(view[axes_end:]), blocks, np.uint64), dtype=np.uint64)
        else:
            first = unpack_integers(bytes(view[axes_end:]), blocks * dimensions, np.int64).reshape(blocks, dimensions)
        maker = list(CODERS.values())[coder]
        coded = maker.from_bytes(parts[0])
        low = PackedIntegers.from_bytes(parts[1]) if free and lattice.shift else None
        if (coded.count, coded.block) != (count, block) or (low and low.count != count * dimensions):
            raise CodecFailed("the parts of the lattice stream do not fit together")
        return cls(ORDERS[order], bool(in_place), lattice, block, count, first, coded, low)

    def items(self, blocks: np.ndarray) -> np.ndarray:
        """Which particles are in these blocks."""
        starts = (blocks * self.block).tolist()
        return np.concatenate([np.arange(0), *(np.arange(a, min(a + self.block, self.count)) for a in starts)])

    def stretches(self, cuboids: Sequence[tuple[Any, Any]]) -> Stretches:
        """The blocks that may reach into one of these (lower, upper), of positions in free order."""
        final = np.append(self.first[1:], np.uint64(2**64 - 1))
        near = [self.lattice.stretches_in(self.first, final, lower, upper) for lower, upper in cuboids]
        blocks = np.flatnonzero(np.any(near, axis=0))
        return Stretches(self.lattice, *self.keys(np, blocks), self.items(blocks))

    def keys(self, xp: Any, blocks: np.ndarray) -> tuple[Array, Array]:
        """The keys in these blocks, and the bits that they have no room for."""
        keys = self.coded.decode(blocks, self.first[blocks], xp)
        low = xp.zeros(0, xp.uint64)
        if self.low is not None:
            every = self.low.decode(xp=xp).reshape(self.count, -1)
            low = every[xp.asarray(self.items(blocks))].reshape(-1)
        return keys, low

    def in_order(self, xp: Any, dtype: Any) -> Array:
        """The positions in their own order."""
        steps = self.coded.decode(xp=xp).reshape(self.count, -1)
        return self.lattice.walk(steps, xp.asarray(self.first), self.block, dtype)


def _lattice(axes: memoryview, dimensions: int, step: float, periodic: bool) -> curve.Lattice:
    """The lattice that the header of a stream describes."""
    types = ("<f8", "<i8", "<f8")
    origin, last, top = (np.frombuffer(axes, t, dimensions, 8 * dimensions * i) for i, t in enumerate(types))
    if not (np.isfinite(origin).all() and (last >= 0).all() and (last < 1 << curve.MOST_CELL_BITS).all()):
        raise CodecFailed("the lattice stream describes no lattice")
    return curve.Lattice(tuple(origin.tolist()), step, tuple(last.tolist()), tuple(top.tolist()), periodic)


def _check_shape(positions: Array) -> None:
    if positions.shape[1] not in (2, 3):
        raise CodecFailed(f"lattice takes positions of shape (N, 2) or (N, 3); got {positions.shape}")


def _sorted_keys(lattice: curve.Lattice, positions: Array) -> tuple[Array, Array | None]:
    """The keys in order, and the order that sorts them: None where they are sorted already, as in part of a sorted set."""
    xp = backend.namespace(positions)
    keys = lattice.keys(positions)
    chunks = backend.chunks(len(keys), keys)
    descents = xp.empty(chunks, xp.int64)
    backend.kernel("lattice", "count_descents")(chunks, len(keys), keys, descents)
    return keys, ordering.sort_by_key(keys, lattice.key_bits) if int(descents.sum()) else None


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
