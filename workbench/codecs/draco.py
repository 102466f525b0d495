"""Draco: positions as a k-d tree of counts (order free), or one after the other (order kept).

Draco quantises in float32, with an error that cannot be chosen. Here the positions are first rounded to an integer lattice
of twice the tolerance, and Draco gets the lattice points in a range where its own quantisation is the identity. This works
for float64 too. Bits beyond the 23 for which this holds are stored separately, point by point.

In free order Draco drops points that coincide and returns the others in an order of its own. So Draco gets each cell once,
and the number of points in each is stored in the order in which Draco returns the cells.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs import pieces
from workbench.codecs.codec import CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.prequantised import lattice_step
from workbench.codecs.rounding import largest_magnitude
from workbench.data import Particles
from workbench.errors import WorkbenchError

ORDERS = ("keep", "free")
MOST_BITS = 23      # of a coordinate in Draco: with more, its float32 arithmetic no longer returns the same integers
MOST_POINTS = 2**24

_HEADER = struct.Struct("<d3dBBIQQ")   # step, origin, low bits, kept or free, cells, bytes of Draco, bytes of the counts


@dataclass(frozen=True)
class Draco(pieces.InPieces, ParticleCodec):
    """Draco on a lattice of twice the tolerance.

    >>> positions = np.random.default_rng(0).random((1000, 3))
    >>> codec, tolerance = Draco(order="free"), Tolerance(absolute=0.01)
    >>> data = codec.encode(positions, tolerance)
    >>> decoded = codec.decode(data, positions.shape, positions.dtype)
    >>> bool(abs(decoded - positions[codec.permutation(positions, data)]).max() <= 0.01)
    True
    """

    id: ClassVar[str] = "draco"
    title: ClassVar[str] = "Draco: point clouds"
    look: ClassVar[Look | None] = Look("#66734a", "star", "dotted")
    module: ClassVar[str | None] = "DracoPy"
    needs_extra: ClassVar[str | None] = "codecs"
    most_values: ClassVar[int] = 3 * MOST_POINTS

    order: str = option("keep", "whether points may come back in another order", choices=ORDERS)
    level: int = option(5, "how hard Draco looks for fewer bits", minimum=0, maximum=10)

    @property
    def reorders(self) -> bool:
        """Whether decoded points are in Draco's order."""
        return self.order == "free"

    def prepared(self, whole: Particles, order: str = "free") -> Self:
        """The codec in this order."""
        return replace(self, order=order)

    def permutation(self, positions: np.ndarray, data: bytes) -> np.ndarray | None:
        """The original index of each decoded point: decoded[i] is positions[permutation[i]]; None if the order is kept.

        `data` is their encoding. Among points of one cell, those that came first in `positions` come first.
        """
        if not self.reorders:
            return None
        found = np.empty(len(positions), np.int64)
        for piece, part in pieces.split(self.id, data, positions.shape, positions.dtype):
            rows = slice(piece.start // positions.shape[1], piece.stop // positions.shape[1])
            lattice, decoded = _stream(part, piece.shape)
            given = lattice.numbers(positions[rows])
            by_place, given_by_place = _by_place(decoded), _by_place(given)
            if not np.array_equal(decoded[by_place], given[given_by_place]):
                raise WorkbenchError("the permutation needs the positions that were encoded; these are others")
            found[rows][by_place] = given_by_place + rows.start
        return found

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        if values.shape[1] not in (2, 3):
            raise WorkbenchError(f"draco takes positions of shape (N, 2) or (N, 3); got {values.shape}")
        lattice = _Lattice.around(values, tolerance)
        numbers = lattice.numbers(values)
        low_bits = max(int(numbers.max()).bit_length() - MOST_BITS, 0)
        cells, low = numbers >> low_bits, numbers & ((1 << low_bits) - 1)
        if self.reorders:
            body, count, counts, order = self._free(cells, low)
            low = low[order]
        else:
            body, count, counts = _to_draco(cells, self.level, keep=True), len(cells), b""
        head = _HEADER.pack(lattice.step, *lattice.origin, low_bits, self.reorders, count, len(body), len(counts))
        packed = pack_integers(low.astype(np.uint32).reshape(-1)) if low_bits else b""
        return b"".join([head, body, counts, packed])

    def _free(self, cells: np.ndarray, low: np.ndarray) -> tuple[bytes, int, bytes, np.ndarray]:
        """Draco's bytes of the distinct cells, their number, the number of points in each, and the points in order."""
        by_place = _by_place(np.concatenate([low, cells], axis=1))
        ordered = cells[by_place]
        first = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))
        held = np.diff(first, append=len(cells))
        body = _to_draco(ordered[first], self.level, keep=False)
        returned = np.empty(len(first), np.int64)   # the distinct cell of each returned one
        returned[_by_place(_from_draco(body, len(first)))] = np.arange(len(first))
        starts, sizes = first[returned], held[returned]
        runs = np.arange(len(cells)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        counts = b"" if len(first) == len(cells) else pack_integers(sizes.astype(np.uint32))
        return body, len(first), counts, by_place[runs]

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        lattice, numbers = _stream(data, shape)
        return lattice.positions(numbers, dtype, shape[1])


@dataclass(frozen=True, slots=True)
class _Lattice:
    """The lattice of the points: `origin` + number * `step`."""

    step: float
    origin: tuple[float, float, float]

    @classmethod
    def around(cls, positions: np.ndarray, tolerance: Tolerance) -> _Lattice:
        step = lattice_step(tolerance.absolute_for(positions), largest_magnitude(positions), positions.dtype)
        return cls(step, (*map(float, positions.min(axis=0)), *(0.0,) * (3 - positions.shape[1])))

    def numbers(self, positions: np.ndarray) -> np.ndarray:
        """The nearest lattice point of each position: three integers."""
        numbers = np.zeros((len(positions), 3), np.int64)
        dimensions = positions.shape[1]
        numbers[:, :dimensions] = np.rint((positions.astype(np.float64) - self.origin[:dimensions]) / self.step)
        return numbers

    def positions(self, numbers: np.ndarray, dtype: np.dtype, dimensions: int) -> np.ndarray:
        return (numbers[:, :dimensions] * self.step + self.origin[:dimensions]).astype(dtype)


def _stream(data: bytes, shape: tuple[int, ...]) -> tuple[_Lattice, np.ndarray]:
    """The lattice and its points, in the order in which they are decoded."""
    step, x, y, z, low_bits, free, cells, size, counts_size = _HEADER.unpack_from(data)
    body, rest = data[_HEADER.size : _HEADER.size + size], data[_HEADER.size + size :]
    if not (0 < cells <= shape[0] and low_bits <= 32 and counts_size <= len(rest) and 0 < step < np.inf):
        raise CodecFailed(f"draco: the bytes do not hold positions of shape {shape}")
    numbers = _from_draco(body, cells)
    if cells != shape[0]:
        counts = unpack_integers(rest[:counts_size], cells, np.uint32).astype(np.int64)
        if not free or counts.sum() != shape[0]:
            raise CodecFailed(f"draco: {cells} cells hold {counts.sum()} positions; there must be {shape[0]}")
        numbers = np.repeat(numbers, counts, axis=0)
    if low_bits:
        low = unpack_integers(rest[counts_size:], numbers.size, np.uint32)
        numbers = (numbers << low_bits) | low.reshape(numbers.shape)
    return _Lattice(step, (x, y, z)), numbers


def _by_place(numbers: np.ndarray) -> np.ndarray:
    """The stable order that sorts these points, by the last coordinate first."""
    return np.lexsort(numbers.T)


def _to_draco(cells: np.ndarray, level: int, *, keep: bool) -> bytes:
    """Cells as Draco's bytes. With a range of 2^bits - 1 its steps are one, and whole numbers stay what they are."""
    import DracoPy

    bits = max(int(cells.max()).bit_length(), 1)
    options: dict[str, Any] = {"quantization_range": float(2**bits - 1), "quantization_origin": np.zeros(3, np.float32)}
    points = cells.astype(np.float32)
    return DracoPy.encode(points, quantization_bits=bits, compression_level=level, preserve_order=keep, **options)


def _from_draco(data: bytes, count: int) -> np.ndarray:
    import DracoPy

    points = DracoPy.decode(data).points
    if points.shape != (count, 3):
        raise CodecFailed(f"draco must decode to {count} points; got {len(points)}")
    return np.rint(points).astype(np.int64)
