"""Blocks with exact statistics, decodable in stages: a fast codec for fields whose analysis needs less than their values.

Values are rounded to a lattice, and the lattice numbers are coded in blocks that know nothing of each other. Small blocks,
of 512, have the lattice of `prequantised`, twice the tolerance wide; their differences are stored in bit planes. Large ones
are for smooth fields: 4096 numbers are predicted from coarse to fine, on a lattice five times as fine, so that what a
number tells beyond the tolerance is not lost for the prediction of the next ones. A trial decides.

Beside each block stand the sum, the sum of squares, the extremes and the number of its valid cells. These are sums of
integers, so they are exact, and what follows from them has a proven error: that of the lattice. Means, deviations and
extremes need this metadata alone; others need differences or lattice numbers of some blocks.

A codec that sees one block at a time predicts worse than one that sees all values, so its files are larger: it is for
speed, for reading parts, and for statistics. Each direction is one pass over the data (`kernels/staged.cu`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.charts.looks import Look
from workbench.codecs.codec import Codec, CodecFailed, Imitation, Tolerance, option
from workbench.codecs.gaps import filled
from workbench.codecs.prequantised import MOST_BITS, lattice_step
from workbench.codecs.staged_blocks import LOG_VALUES, VALUES, Grid, Lattice, encode_blocks, grid_size, usual
from workbench.codecs.staged_groups import Groups
from workbench.codecs.staged_large import LARGE, MULTIPLE, Logs
from workbench.codecs.staged_statistics import first_wrong
from workbench.codecs.staged_stream import Stream
from workbench.errors import WorkbenchError
from workbench.slabs import Slices

Lattices = tuple[Lattice, Lattice | None]

MOST_BITS_LARGE = 49   # of a number in large blocks: the sum of 4096 of them has 64 bits

METADATA = 8      # bytes beside a block, about
SLOWER = 1.1      # large blocks must be so much smaller: they take more time
TRIED = ((1, 1, 2**15), (1, 128, 256), (32, 32, 32))   # cells of the parts on which blocks are tried, by axes


@dataclass(frozen=True)
class Staged(Codec):
    """Lattice numbers in blocks of 512, as differences, or of 4096, coarse ones first; exact sums of each block.

    >>> values = np.sin(np.arange(4096.0) / 50).reshape(64, 64)
    >>> codec = Staged()
    >>> data = codec.encode(values, Tolerance(absolute=0.01))
    >>> bool(abs(codec.decode(data, values.shape, values.dtype) - values).max() <= 0.01), len(data) < 4000
    (True, True)
    """

    id: ClassVar[str] = "staged"
    title: ClassVar[str] = "Staged: blocks with exact statistics"
    look: ClassVar[Look | None] = Look("#2ba02b", "diamond", "dashed")
    explanation: ClassVar[str] = (
        "a built-in codec for fields: lattice numbers in independent blocks, each with exact sums, so that "
        "statistics and parts are read without the rest"
    )
    for_fields: ClassVar[bool] = True
    imitation: ClassVar[Imitation] = "lattice"
    module: ClassVar[str | None] = "pcodec"   # for the metadata
    contained: ClassVar[bool] = True
    on_device: ClassVar[bool] = True
    most_values: ClassVar[int] = 2**40

    sides: tuple[int, ...] | None = option(None, "the sides of a block of 512 or 4096, along three axes (none: by trial)")
    deflate: bool = option(False, "whether blocks are deflated: smaller by 2 to 18 %, and slower")
    step: float | None = option(None, "the step of the lattice (none: as large as the bound allows)", minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step == 0:
            raise WorkbenchError(f"{self.id}: step must be positive; got {self.step!r}")
        if self.sides is not None:
            whole = isinstance(self.sides, tuple) and all(type(side) is int and side > 0 for side in self.sides)
            if not whole or len(self.sides) != 3 or math.prod(self.sides) not in (VALUES, LARGE):   # so powers of two
                raise WorkbenchError(
                    f"{self.id}: sides must be three numbers with product {VALUES} or {LARGE}; got {self.sides!r}"
                )

    def tuned(self, sample: np.ndarray, tolerance: Tolerance) -> Self:
        """The codec with blocks that suit these values."""
        takes = sample.dtype.name in self.dtypes and sample.ndim in self.dimensions and sample.size > 0
        if self.sides is not None or not takes or tolerance.absolute is None or tolerance.value == 0:
            return self
        try:
            values = filled(sample, np.isfinite(sample))
            first, second, third = self._logs(values, self._lattices(values, tolerance.value))
        except WorkbenchError:   # this tolerance is too small for a lattice, as encoding will say
            return self
        return replace(self, sides=(1 << first, 1 << second, 1 << third))

    def _lattices(self, values: Array, bound: float) -> Lattices:
        """The lattice of small blocks, and that of large ones unless numbers could be too large for their sums."""
        low, high = float(values.min()), float(values.max())
        largest = max(abs(low), abs(high))
        if self.step is None:
            step = lattice_step(bound, largest, values.dtype)
            finer = math.nextafter(step / MULTIPLE, 0)
        else:
            step = finer = self.step
            if largest >= step * 2.0**MOST_BITS:
                least = largest / 2**MOST_BITS
                raise WorkbenchError(f"{self.id}: values up to {largest:.3g} need a step above {least:.3g}")
        small = Lattice.between(step, low, high)
        fits = largest < finer * 2.0**MOST_BITS_LARGE
        return small, Lattice.between(finer, low, high, exact=self.step is not None) if fits else None

    def _logs(self, values: Array, lattices: Lattices) -> Logs:
        """The logarithms of the sides of blocks: as the option says, or those that are smallest on some parts."""
        choices = [logs for logs in usual(grid_size(values.shape)) if sum(logs) == LOG_VALUES or lattices[1]]
        if self.sides is not None and (math.prod(self.sides) == VALUES or lattices[1]):
            first, second, third = (side.bit_length() - 1 for side in self.sides)
            choices = [(first, second, third)]
        return choices[0] if len(choices) == 1 else _smallest(values.reshape(grid_size(values.shape)), lattices, choices)

    def encode_with_gaps(self, values: Array, valid: Array, tolerance: Tolerance) -> bytes:
        """What `encode` returns, with statistics of the valid values alone."""
        given = filled(values, valid)
        self._check_values(given)
        return self._encoded(given, valid, tolerance)

    def _encode(self, values: Array, tolerance: Tolerance) -> bytes:
        return self._encoded(values, None, tolerance)

    def _encoded(self, values: Array, valid: Array | None, tolerance: Tolerance) -> bytes:
        lattices = self._lattices(values, tolerance.absolute_for(values))
        grid = Grid.of(values.shape, self._logs(values, lattices))
        lattice = _of(lattices, grid)
        facts, first, coded = map(backend.to_host, encode_blocks(values, valid, grid, lattice))
        groups = Groups.of(coded, first, self.deflate)
        return Stream(grid, lattice, valid is not None, facts, groups).to_bytes(values.shape, values.dtype)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self._decode_on(np, data, shape, dtype)

    def _decode_on(self, xp: Any, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        stream = Stream.from_bytes(data, shape, dtype)
        return stream.values(stream.grid.whole, dtype, xp).reshape(shape)

    def part(
        self, data: bytes | memoryview, shape: tuple[int, ...], dtype: np.dtype, slices: Slices
    ) -> np.ndarray:
        """The values in a part, from the blocks that it touches."""
        stream = Stream.from_bytes(data, shape, dtype)
        window, sizes, inside = stream.grid.window(shape, slices)
        return np.ascontiguousarray(np.asarray(stream.values(window, dtype)).reshape(sizes)[inside])

    def contradiction(self, data: bytes, decoded: Array, valid: Array, sound: Array) -> str | None:
        """What is wrong with the sums beside the blocks: they are computed again, from numbers that give these values."""
        block = first_wrong(Stream.from_bytes(data, decoded.shape, decoded.dtype), decoded, valid, sound)
        return None if block is None else f"the sums of its block {block} are not those of its values"

    def coarse(self, spacing: int) -> Codec:
        """A decoder of the first values of blocks, where these are all that is wanted."""
        return _FirstValues(self, spacing)


def _of(lattices: Lattices, grid: Grid) -> Lattice:
    """The lattice of blocks of this size."""
    small, large = lattices
    return large if grid.large and large is not None else small


def _smallest(cells: Array, lattices: Lattices, choices: Sequence[Logs]) -> Logs:
    """Which blocks are smallest on parts at the beginning, in the middle and at the end of a field of four axes."""
    tried = TRIED[sum(size > 1 for size in cells.shape[1:3])]
    sizes = [1, *(min(size, side) for size, side in zip(cells.shape[1:], tried, strict=True))]
    parts = []
    for place in range(3):
        corner = [(whole - size) * place // 2 for whole, size in zip(cells.shape, sizes, strict=True)]
        part = cells[tuple(slice(start, start + size) for start, size in zip(corner, sizes, strict=True))]
        parts.append(backend.namespace(cells).ascontiguousarray(part))

    def taken(logs: Logs) -> float:
        grids = [Grid.of(part.shape, logs) for part in parts]
        coded = [encode_blocks(part, None, grid, _of(lattices, grid))[2] for part, grid in zip(parts, grids, strict=True)]
        size = sum(len(each) + METADATA * grid.blocks for each, grid in zip(coded, grids, strict=True))
        return size * (SLOWER if grids[0].large else 1)

    return min(choices, key=taken)


@dataclass(frozen=True)
class _FirstValues(Codec):
    """Decodes the first value of each block alone, if all points with a spacing are among these; others are 0."""

    id: ClassVar[str] = "first values"
    title: ClassVar[str] = "The first values of staged blocks"

    codec: Staged
    spacing: int

    def _encode(self, values: Array, tolerance: Tolerance) -> NoReturn:
        raise CodecFailed(f"{self.id} only decodes: encode with {self.codec.id}")

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        stream = Stream.from_bytes(data, shape, dtype)
        sides = stream.grid.sides_along(shape)
        if sides is None or any(self.spacing % side for side in sides):
            return self.codec._decode(data, shape, dtype)
        values = np.zeros(shape, dtype)
        values[tuple(slice(None, None, side) for side in sides)] = stream.first_values(dtype).reshape(
            [-(-size // side) for size, side in zip(shape, sides, strict=True)]
        )
        return values
