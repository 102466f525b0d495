"""The built-in codec for particles: cells of a lattice, in the order of a curve or in their own.

A coordinate within ±ξ needs a lattice of step 2ξ and no more. When the order of the particles is free, their cells are
sorted along a Morton curve and the differences between neighbouring keys are stored: that saves log₂N − 1.44 bits a
particle over any code that keeps the order, and the differences are small where particles are dense. When the order must
be kept, the differences between the cells of successive particles are stored. Either way the numbers go to one of three
coders (`entropy.py`, `packing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from workbench import backend, ordering
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.curve import Lattice
from workbench.codecs.lattice_stream import CODERS, ORDERS, Stream
from workbench.codecs.packing import PackedIntegers
from workbench.data import Particles
from workbench.data.extent import extent

SAMPLED = 8    # one block in so many decides between coders
SMALL = 2**16

KEPT_BLOCKS = 64   # in the original order a region is no range of the file: blocks only serve parallel work


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
    title: ClassVar[str] = "Lattice: the built-in codec for particles"
    on_device: ClassVar[bool] = True
    contained: ClassVar[bool] = True

    order: str = option("free", "whether particles may come back sorted along the curve", choices=ORDERS)
    coder: str = option("auto", "how the differences are coded", choices=("auto", *CODERS))
    block: int = option(1024, "particles in a block that is decoded alone", minimum=64, maximum=2**20)
    lower: tuple[float, ...] | None = option(None, "the smallest coordinate along each axis")
    upper: tuple[float, ...] | None = option(None, "the largest coordinate along each axis")
    box: tuple[float, ...] | None = option(None, "the lengths of the periodic box")

    @property
    def reorders(self) -> bool:
        """Whether decoded points are sorted along the curve."""
        return self.order == "free"

    @property
    def in_blocks(self) -> bool:
        """Blocks are key ranges of the curve, which positions in their own order do not follow."""
        return self.order == "free"

    def prepared(self, whole: Particles, order: str = "free") -> Self:
        """The codec with one lattice for all parts of these particles."""
        _check_shape(whole.positions)
        return replace(self._reaching(whole.lower, whole.upper), box=whole.box, order=order)

    def curve(self, positions: Array, tolerance: Tolerance) -> Lattice | None:
        """The codec's own lattice; None where the tolerance is too small: values are then kept exactly."""
        try:
            return self.lattice(positions, tolerance) if tolerance.value > 0 else None
        except CodecFailed:
            return None

    def blocks(self, data: bytes | memoryview, shape: tuple[int, ...]) -> Stream | None:
        """The stream of a chunk, if it is in free order."""
        stream = Stream.of(data, shape)
        return stream if stream.order == "free" else None

    def lattice(self, positions: Array, tolerance: Tolerance) -> Lattice:
        """The lattice for these positions."""
        given = self.lower is not None and self.upper is not None
        ready = self if given else self._reaching(*extent(positions))
        if any(len(axes) != positions.shape[1] for axes in (ready.lower, ready.upper, ready.box or ready.lower) if axes):
            raise CodecFailed(f"the lattice of these options is not one for positions of shape {tuple(positions.shape)}")
        size = tolerance.absolute_for(positions)
        return Lattice.fitted(ready.lower or (), ready.upper or (), size, positions.dtype, self.box)

    def _reaching(self, lower: np.ndarray, upper: np.ndarray) -> Self:
        return replace(self, lower=tuple(lower.tolist()), upper=tuple(upper.tolist()))

    def permutation(self, positions: Array, tolerance: Tolerance, data: bytes) -> Array | None:
        """The original index of each decoded point: decoded[i] is positions[permutation[i]]; None if the order is kept."""
        if Stream.of(data, tuple(positions.shape)).in_place:
            return None
        return _sorted_keys(self.lattice(positions, tolerance), positions)[1]

    def _encode(self, values: Array, tolerance: Tolerance) -> bytes:
        _check_shape(values)
        lattice = self.lattice(values, tolerance)
        return (self._along_curve if self.order == "free" else self._in_order)(lattice, values).to_bytes()

    def _along_curve(self, lattice: Lattice, positions: Array) -> Stream:
        """The deltas between sorted keys."""
        xp, block = backend.namespace(positions), self.block
        keys, order = _sorted_keys(lattice, positions)
        gaps = xp.empty_like(keys)
        backend.kernel("lattice", "key_gaps")(len(keys), block, keys, gaps)
        first = backend.to_host(keys[::block])
        coded = CODERS[self._coder(gaps, block, signs=False)].of(gaps, block)
        low = None
        if lattice.shift:
            low = PackedIntegers.of(lattice.low_bits(positions if order is None else positions[order]), block)
        return Stream("free", order is None, lattice, block, len(keys), first, coded, low)

    def _in_order(self, lattice: Lattice, positions: Array) -> Stream:
        """The deltas from one particle to the next."""
        block = self.block * KEPT_BLOCKS
        steps, first = lattice.steps(positions, block)
        coded = CODERS[self._coder(steps, block, signs=True)].of(steps, block, signs=True)
        return Stream("keep", True, lattice, block, len(positions), backend.to_host(first), coded, None)

    def _coder(self, numbers: Array, block: int, signs: bool) -> str:
        """The coder to use. By default, the smaller of context coding and pcodec on a sample.

        Both machines compare the same bytes, so both make the same choice and write the same archive.
        """
        if self.coder != "auto":
            return self.coder
        every = SAMPLED if len(numbers) > SMALL else 1   # few numbers are not represented by a part
        xp = backend.namespace(numbers)
        sample = xp.concatenate([numbers[i : i + block] for i in range(0, len(numbers), every * block)])
        sizes = {name: len(CODERS[name].of(sample, block, signs).to_bytes()) for name in ("context", "pcodec")}
        return min(sizes, key=lambda name: sizes[name])

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self._decode_on(np, data, shape, dtype)

    def _decode_on(self, xp: Any, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        stream = Stream.of(data, shape)
        if stream.order == "free":
            return stream.lattice.positions(*stream.keys(xp, np.arange(stream.blocks)), dtype)
        return stream.in_order(xp, dtype)


def _check_shape(positions: Array) -> None:
    if positions.shape[1] not in (2, 3):
        raise CodecFailed(f"lattice takes positions of shape (N, 2) or (N, 3); got {positions.shape}")


def _sorted_keys(lattice: Lattice, positions: Array) -> tuple[Array, Array | None]:
    """The keys in order, and the order that sorts them: None where they are sorted already, as in part of a sorted set."""
    xp = backend.namespace(positions)
    keys = lattice.keys(positions)
    chunks = backend.chunks(len(keys), keys)
    descents = xp.empty(chunks, xp.int64)
    backend.kernel("lattice", "count_descents")(chunks, len(keys), keys, descents)
    return keys, ordering.sort_by_key(keys, lattice.key_bits) if int(descents.sum()) else None
