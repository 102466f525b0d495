"""The built-in codec for particles: cells of a lattice, in the order of a curve or in their own.

A coordinate within ±ξ needs a lattice of step 2ξ and no more. When the order of the particles is free, their cells are
sorted along a Morton curve and the differences between neighbouring keys are stored: that saves log₂N − 1.44 bits a
particle over any code that keeps the order, and the differences are small where particles are dense. When the order must
be kept, the differences between the cells of successive particles are stored. Either way the numbers go to one of three
coders (`entropy.py`, `packing.py`). In free order `coder="small"` also codes the keys themselves (`counts.py`), which takes
2 to 5% less room and several times as long, and keeps what is smaller. In kept order, chunks whose first particles look
like atoms of molecules are coded by bonds (`molecules.py`), which mostly takes a fifth to a half less room, and ten times
as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from workbench import backend, ordering
from workbench.backend import Array
from workbench.charts.looks import Look
from workbench.codecs.codec import CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.counts import CodedCounts
from workbench.codecs.curve import Lattice
from workbench.codecs.entropy import sampled_blocks
from workbench.codecs.lattice_stream import CODERS, COUNTS, MOLECULES, ORDERS, Coded, Numbers, Stream, decoded
from workbench.codecs.molecules import BLOCK_ATOMS, CodedMolecules
from workbench.codecs.packing import PackedIntegers
from workbench.codecs.together import Pieces
from workbench.data import Particles
from workbench.data.extent import extent

SAMPLED = 8    # one block in so many decides between coders
SMALL = 2**16  # few numbers are not represented by a part
TRIED = "context", "pcodec"
ALL_CODERS = "auto", "small", *CODERS, COUNTS, MOLECULES
FIRST = 1024   # particles of a chunk, on which the coder of molecules is tried
WORTH = 0.95   # of the size of deltas: the most that molecules may take there, as they take longer


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
    look: ClassVar[Look | None] = Look("#c2609a", "hex")
    module: ClassVar[str | None] = "pcodec"
    explanation: ClassVar[str] = (
        "the built-in codec for particles: positions are rounded to a lattice whose spacing is twice the error bound"
    )
    on_device: ClassVar[bool] = True
    contained: ClassVar[bool] = True

    order: str = option("free", "whether particles may come back sorted along the curve", choices=ORDERS)
    coder: str = option("auto", "what is coded, and how: small takes longest", choices=ALL_CODERS)
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

    def permutation(self, positions: Array, data: bytes) -> Array | None:
        """The original index of each decoded point: decoded[i] is positions[permutation[i]]; None if the order is kept."""
        stream = Stream.of(data, tuple(positions.shape))
        return None if stream.in_place else _sorted_keys(stream.lattice, positions)[1]

    def _encode(self, values: Array, tolerance: Tolerance) -> bytes:
        _check_shape(values)
        lattice = self.lattice(values, tolerance)
        pieces = Pieces.of(len(values), len(values))
        if self.order == "keep":
            return next(self._in_order(lattice, values, pieces)).to_bytes()
        keys, order = _sorted_keys(lattice, values)
        positions = values[order] if lattice.shift and order is not None else values   # needed for the low bits alone
        return next(self._along_curve(lattice, positions, keys, order is None, pieces)).to_bytes()

    def _encode_together(self, values: Array, rows: int, tolerance: Tolerance) -> list[bytes] | None:
        _check_shape(values)
        if self.lower is None or self.upper is None or tolerance.absolute is None:
            return None   # each piece has a lattice of its own
        lattice, pieces = self.lattice(values, tolerance), Pieces.of(len(values), rows)
        if self.order == "keep":
            return [stream.to_bytes() for stream in self._in_order(lattice, values, pieces)]
        keys = lattice.keys(values)
        if not _is_sorted(keys):
            return None   # each piece is sorted by itself
        return [stream.to_bytes() for stream in self._along_curve(lattice, values, keys, True, pieces)]

    def _along_curve(
        self, lattice: Lattice, positions: Array, keys: Array, in_place: bool, pieces: Pieces
    ) -> Iterator[Stream]:
        """The deltas between sorted keys, of each piece."""
        if self.coder == MOLECULES:
            raise CodecFailed('coder="molecules" codes particles in their own order; got "free": choose another coder')
        block = self.block
        gaps, first = lattice.gaps(keys, pieces, block)
        coded: list[Coded] = []
        if self.coder != COUNTS:
            coded += self._coded(gaps, pieces, block, signs=False)
        if self.coder in ("small", COUNTS):
            counts = CodedCounts.of_pieces(keys, pieces, block, lattice.dimensions, lattice.key_bits)
            coded = [min(pair, key=_length) for pair in zip(coded or counts, counts, strict=True)]
        low: list[PackedIntegers | None] = [None] * len(pieces)
        if lattice.shift:
            low = [*PackedIntegers.of_pieces(lattice.low_bits(positions), pieces.length * lattice.dimensions, block)]
        for number, (items, own) in enumerate(zip(pieces, pieces.blocks_by_piece(block), strict=True)):
            count = items.stop - items.start
            yield Stream("free", in_place, lattice, block, count, first[own], coded[number], low[number])

    def _in_order(self, lattice: Lattice, positions: Array, pieces: Pieces) -> Iterator[Stream]:
        """Each piece, as molecules or as deltas."""
        if self.coder == COUNTS:
            raise CodecFailed('coder="counts" codes particles in free order; got order="keep": choose another coder')
        suits = CodedMolecules.suits(lattice)
        if self.coder == MOLECULES and not suits:
            raise CodecFailed(
                f'coder="molecules" takes at most 2³⁰ cells along each of three axes; the last are {lattice.last}: '
                "choose another coder"
            )
        chosen = [self.coder == MOLECULES] * len(pieces)
        if self.coder in ("auto", "small") and suits:
            chosen = self._are_molecules(lattice, positions, pieces)
        found = {kind: self._of_kind(kind, chosen, lattice, positions, pieces) for kind in set(chosen)}
        yield from (next(found[kind]) for kind in chosen)

    def _of_kind(
        self, molecules: bool, chosen: list[bool], lattice: Lattice, positions: Array, pieces: Pieces
    ) -> Iterator[Stream]:
        """The pieces for which molecules, or deltas, are chosen: coded together."""
        own = [positions[items] for items, kind in zip(pieces, chosen, strict=True) if kind == molecules]
        part = positions if len(own) == len(pieces) else backend.namespace(positions).concatenate(own)
        way = self._as_molecules if molecules else self._as_deltas
        return way(lattice, part, Pieces.of(len(part), pieces.length))

    def _are_molecules(self, lattice: Lattice, positions: Array, pieces: Pieces) -> list[bool]:
        """Which pieces take less room as molecules, by their first particles; by all of them with `coder="small"`."""
        sample, taken, most = positions, pieces, 1.0
        if self.coder != "small":
            sample, most = _beginnings(positions, pieces, FIRST), WORTH
            taken = Pieces.of(len(sample), min(FIRST, pieces.length))
        molecules = CodedMolecules.of_pieces(lattice.cells(sample), taken, lattice)
        steps, _ = lattice.steps(sample, taken, self.block)
        deltas = zip(*self._sizes(steps, taken, self.block, signs=True), strict=True)
        return [_length(one) < most * min(sizes) for one, sizes in zip(molecules, deltas, strict=True)]

    def _as_molecules(self, lattice: Lattice, positions: Array, pieces: Pieces) -> Iterator[Stream]:
        """The cells of each piece, by bond lengths, bond angles and dihedral angles."""
        cells = lattice.cells(positions)
        coded = CodedMolecules.of_pieces(cells, pieces, lattice)
        begin = backend.namespace(cells).asarray(pieces.block_starts(BLOCK_ATOMS)[:-1])
        first = backend.to_host(cells[begin]).astype(np.int64)
        for number, (items, own) in enumerate(zip(pieces, pieces.blocks_by_piece(BLOCK_ATOMS), strict=True)):
            yield Stream("keep", True, lattice, BLOCK_ATOMS, items.stop - items.start, first[own], coded[number], None)

    def _as_deltas(self, lattice: Lattice, positions: Array, pieces: Pieces) -> Iterator[Stream]:
        """The deltas from one particle to the next, of each piece."""
        block = self.block
        steps, first = lattice.steps(positions, pieces, block)
        coded, cells = self._coded(steps, pieces, block, signs=True), backend.to_host(first)
        for number, (items, own) in enumerate(zip(pieces, pieces.blocks_by_piece(block), strict=True)):
            yield Stream("keep", True, lattice, block, items.stop - items.start, cells[own], coded[number], None)

    def _coded(self, numbers: Array, pieces: Pieces, block: int, signs: bool) -> list[Numbers]:
        """The numbers of each piece, by the coder of the options or by the one that suits this piece."""
        if self.coder not in ("auto", "small"):
            return [*CODERS[self.coder].of_pieces(numbers, pieces.length, block, signs)]
        chosen = self._chosen(numbers, pieces, block, signs)
        if len(set(chosen)) == 1:
            return [*CODERS[chosen[0]].of_pieces(numbers, pieces.length, block, signs)]
        return [CODERS[name].of(numbers[items], block, signs) for name, items in zip(chosen, pieces, strict=True)]

    def _chosen(self, numbers: Array, pieces: Pieces, block: int, signs: bool) -> list[str]:
        """The coder of each piece: the smaller of context coding and pcodec on a sample.

        Both machines compare the same bytes, so both make the same choice and write the same archive.
        """
        large, last = pieces.length > SMALL, [*pieces][-1]
        if large != (last.stop - last.start > SMALL):   # the last piece is so short that all of it is tried
            ends = Pieces.of(last.start, pieces.length), Pieces.of(last.stop - last.start, pieces.length)
            parts = numbers[: last.start], numbers[last.start :]
            return [name for part, own in zip(parts, ends, strict=True) for name in self._chosen(part, own, block, signs)]
        sample, taken = sampled_blocks(numbers, pieces, block, SAMPLED if large else 1)
        sizes = self._sizes(sample, taken, block, signs)
        return [min(zip(own, TRIED, strict=True), key=lambda found: found[0])[1] for own in zip(*sizes, strict=True)]

    def _sizes(self, numbers: Array, pieces: Pieces, block: int, signs: bool) -> list[list[int]]:
        """How many bytes each coder that is tried makes of each piece."""
        tried = [CODERS[name].of_pieces(numbers, pieces.length, block, signs) for name in TRIED]
        return [[_length(one) for one in coded] for coded in tried]

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self._decode_on(np, data, shape, dtype)

    def _decode_on(self, xp: Any, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return decoded([Stream.of(data, shape)], xp, dtype)

    def _decode_together(self, xp: Any, data: Sequence[bytes], shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> Array:
        return decoded([Stream.of(one, shape) for one, shape in zip(data, shapes, strict=True)], xp, dtype)


def _length(coded: Coded) -> int:
    return len(coded.to_bytes())


def _beginnings(positions: Array, pieces: Pieces, rows: int) -> Array:
    """The first so many rows of each piece."""
    if pieces.length <= rows:
        return positions
    parts = [positions[items][:rows] for items in pieces]
    return parts[0] if len(parts) == 1 else backend.namespace(positions).concatenate(parts)


def _check_shape(positions: Array) -> None:
    if positions.shape[1] not in (2, 3):
        raise CodecFailed(f"lattice takes positions of shape (N, 2) or (N, 3); got {positions.shape}")


def _sorted_keys(lattice: Lattice, positions: Array) -> tuple[Array, Array | None]:
    """The keys in order, and the order that sorts them: None where they are sorted already, as in part of a sorted set."""
    keys = lattice.keys(positions)
    return keys, None if _is_sorted(keys) else ordering.sort_by_key(keys, lattice.key_bits)


def _is_sorted(keys: Array) -> bool:
    chunks = backend.chunks(len(keys), keys)
    descents = backend.namespace(keys).empty(chunks, np.int64)
    backend.kernel("lattice", "count_descents")(chunks, len(keys), keys, descents)
    return not int(descents.sum())
