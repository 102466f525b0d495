"""Numbers of particles, predicted from the particles around them: the built-in codec for velocities and other columns.

Particles that are close move together, and in a halo the spread of its members says how far off a prediction may be. So a
number takes fewer bits beside decoded positions than as an array of its own. The predictor is a hierarchy, as for fields:
every 2^k-th particle along a Hilbert curve is known first; each step predicts those halfway between known ones from the
nearest of these (`kernels/neighbours.cu`). Their residuals are coded like those of fields.

The bytes can be decoded only beside the same positions: `beside` gives them to the codec, and the archive sees to it.
Where prediction saves nothing, as for thermal velocities of atoms, the numbers are coded without it (`prequantised`).
"""

from __future__ import annotations

import dataclasses
import math
import struct
import zlib
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from workbench import backend, ordering
from workbench.backend import Array
from workbench.charts.looks import Look
from workbench.codecs.codec import Codec, CodecFailed, Imitation, Tolerance
from workbench.codecs.columns import Columns
from workbench.codecs.entropy import slots_of, starts, words_of
from workbench.codecs.inflating import inflated
from workbench.codecs.prequantised import Prequantised, lattice_step
from workbench.codecs.residuals import CONTEXTS, SYMBOLS, Tables, counted, symbol_slots
from workbench.codecs.rounding import largest_magnitude
from workbench.data.extent import extent

LEAF_TIER = backend.constant("neighbours.cu", "LEAF_TIER")
COMPONENTS = backend.constant("neighbours.cu", "MOST_COMPONENTS")
MOST = 2**30          # of the size of a number
BLOCK = 2**13         # particles in a block
FARTHEST = 2.0**500   # between two particles: products of two distances, and their sums, are finite
CELL_BITS = 16        # of a coordinate in cells, for sorting
PLAIN, PREDICTED = 0, 1   # the first byte: what follows is as `prequantised` writes it, or as here

_HEADER = struct.Struct("<ddBH")   # the step, particles per length, how many tables there are, their bytes


@dataclass(frozen=True)
class Neighbours(Codec):
    """Columns of particles on a lattice of twice the tolerance, predicted from the nearest particles, rANS.

    >>> random = np.random.default_rng(0)
    >>> positions = random.random((1000, 3))
    >>> codec = Neighbours().beside(positions)
    >>> velocities = np.sin(3 * positions)
    >>> data = codec.encode(velocities, Tolerance(absolute=0.001))
    >>> bool(abs(codec.decode(data, (1000, 3), "float64") - velocities).max() <= 0.001), len(data) < 3500
    (True, True)
    """

    id: ClassVar[str] = "neighbours"
    title: ClassVar[str] = "Neighbours: numbers of particles, predicted from those around them"
    look: ClassVar[Look | None] = Look("#c43adc", "triangle", "dashed")
    explanation: ClassVar[str] = (
        "the built-in codec for velocities and other columns of particles: each is predicted from the particles around it"
    )
    imitation: ClassVar[Imitation] = "lattice"
    module: ClassVar[str | None] = "pcodec"
    dimensions: ClassVar[tuple[int, ...]] = (1, 2)
    contained: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    beside_positions: ClassVar[bool] = True

    positions: Array | None = dataclasses.field(default=None, init=False, repr=False, compare=False)

    def beside(self, positions: Array) -> Self:
        """The codec for particles at these positions, as they are decoded."""
        bound = dataclasses.replace(self)
        object.__setattr__(bound, "positions", positions)
        return bound

    def _encode(self, values: Array, tolerance: Tolerance) -> bytes:
        positions = self._known(values.shape)
        plain = bytes([PLAIN]) + _plain(values.ndim).encode(values, tolerance)
        step = lattice_step(tolerance.absolute_for(values), largest_magnitude(values), values.dtype)
        if largest_magnitude(values) / step >= MOST - 1 or values[0].size > COMPONENTS:
            return plain
        tree = _Tree.of(positions)
        if not tree.has_finite_squares:
            return plain
        table = np.divide(values.reshape(len(values), -1), step, dtype=np.float64)
        predicted = bytes([PREDICTED]) + _encoded(np.rint(table).astype(np.int32), step, tree)
        return min(plain, predicted, key=len)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        positions = self._known(shape)
        if data[:1] == bytes([PLAIN]):
            return _plain(len(shape)).decode(data[1:], shape, dtype)
        components = shape[1] if len(shape) == 2 else 1
        if data[:1] != bytes([PREDICTED]) or not 1 <= components <= COMPONENTS:
            raise CodecFailed(f"{self.id}: {len(data)} bytes begin with {data[:1]!r}: they are damaged")
        numbers, step = _decoded(data[1:], _Tree.of(positions), components)
        with np.errstate(over="ignore"):   # a lattice point beyond all numbers is infinite, and then corrected
            return np.multiply(numbers, step, dtype=np.float64).astype(dtype, copy=False).reshape(shape)

    def _known(self, shape: tuple[int, ...]) -> np.ndarray:
        if self.positions is None:
            raise CodecFailed(
                "these numbers are predicted from the positions of the particles, which were not given: read them with "
                "wb.open(...), which decodes the positions first"
            )
        positions = np.ascontiguousarray(backend.to_host(self.positions))
        if len(positions) != shape[0] or positions.ndim != 2 or positions.shape[1] not in (2, 3):
            raise CodecFailed(
                f"{self.id}: numbers of {shape[0]:,} particles cannot have positions of shape {positions.shape}"
            )
        return positions


def _plain(axes: int) -> Codec:
    """The codec of numbers that neighbours do not help to predict."""
    return Prequantised() if axes == 1 else Columns(Prequantised())


@dataclass(frozen=True, eq=False)
class _Tree:
    """Positions along a curve, and boxes around 16, 32, 64 ... of them that follow each other."""

    position: np.ndarray
    order: np.ndarray       # the place of each in the array
    tier: np.ndarray        # where the boxes of each tier begin, and the end
    box: np.ndarray
    steps: int              # the first one predicts from every 2**steps-th particle

    @classmethod
    def of(cls, positions: np.ndarray) -> _Tree:
        """The boxes of these particles."""
        order = _along_curve(positions)
        position = ordering.gather_rows(positions, order)
        count, axes = position.shape
        steps = max(count.bit_length() - LEAF_TIER, 0)
        tier = starts(np.array([-(-count >> t) for t in range(LEAF_TIER, LEAF_TIER + max(steps, 1))], np.int64))
        box = np.empty(int(tier[-1]) * 2 * axes)
        kernel = backend.kernel("neighbours", "enclose_particles", position.dtype, axes)
        kernel(int(tier[1]), count, position, box)
        kernel = backend.kernel("neighbours", "enclose_boxes", position.dtype, axes)
        for below, at, end in zip(tier[:-2].tolist(), tier[1:-1].tolist(), tier[2:].tolist(), strict=True):
            kernel(end - at, at - below, below, at, int(tier[-1]), box)
        return cls(position, order, tier, box, steps)

    def __len__(self) -> int:
        return len(self.position)

    @property
    def per_spacing(self) -> float:
        """About the inverse of the mean distance between particles, as if they filled the box around all."""
        lower, upper = (end.astype(np.float64) for end in extent(self.position))
        octaves = [math.log2(side) for side in (upper - lower).tolist() if 0 < side < math.inf]
        if not octaves:
            return 1.0
        eighths = round(8 * (math.log2(len(self)) - sum(octaves)) / len(octaves))
        return 2.0 ** (min(max(eighths, -4000), 4000) / 8)

    @property
    def has_finite_squares(self) -> bool:
        """Whether squared distances are finite, in both units: scales read off the bits of NaN differ between machines."""
        lower, upper = (end.astype(np.float64) for end in extent(self.position))
        with np.errstate(over="ignore"):
            return float((upper - lower).max()) * max(1.0, self.per_spacing) < FARTHEST

    def spacings(self) -> list[int]:
        """Half the distance between known particles in each step."""
        return [1 << step for step in reversed(range(self.steps))]

    def between(self, spacing: int) -> int:
        """How many particles a step predicts."""
        return (len(self) + spacing - 1) // (2 * spacing)

    def expected(
        self, spacing: int, per_spacing: float, number: np.ndarray, missed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What the numbers of the particles of a step are expected to be, and the scales of their residuals."""
        n, (count, axes) = self.between(spacing), self.position.shape
        expected, scale = np.empty((n, number.shape[1]), np.int32), np.empty((n, number.shape[1]), np.float32)
        leaf = LEAF_TIER + spacing.bit_length() - 1
        backend.kernel("neighbours", "expect", self.position.dtype, axes)(
            n, count, spacing, leaf, len(self.tier) - 1, self.tier, self.box, self.position, per_spacing, number.shape[1],
            number.reshape(-1), missed, expected.reshape(-1), scale.reshape(-1),
        )
        return expected, scale

    def blocks(self, components: int) -> tuple[np.ndarray, list[range]]:
        """Where the residuals of each block begin, and the end; and the blocks of each step."""
        sizes: list[int] = []
        steps = []
        for n in map(self.between, self.spacings()):
            own = [min(BLOCK, n - first) * components for first in range(0, n, BLOCK)]
            steps.append(range(len(sizes), len(sizes) + len(own)))
            sizes += own
        return starts(np.array(sizes, np.int64)), steps


def _along_curve(positions: np.ndarray) -> np.ndarray:
    """The order of these positions along a Hilbert curve."""
    if not np.isfinite(positions).all():
        raise CodecFailed("neighbours: positions must be finite; some decode to NaN or infinity: they are damaged")
    lower, upper = (end.astype(np.float64) for end in extent(positions))
    with np.errstate(over="ignore"):
        longest = float((upper - lower).max())
    if not 0 < longest < np.inf:
        return np.arange(len(positions), dtype=np.int32)   # all at one place, or so far apart that no cell is finite
    (count, axes), per_length = positions.shape, 2.0**CELL_BITS / max(longest, float(np.finfo(np.float64).tiny))
    keys = np.empty(count, np.uint64)
    backend.kernel("neighbours", "curve_keys", positions.dtype, axes)(count, positions, lower, per_length, CELL_BITS, keys)
    return ordering.sort_by_key(keys, axes * CELL_BITS)


def _first_miss(number: np.ndarray, spread: int) -> np.ndarray:
    """By how much expectations have missed before there are any: how far the first numbers are from each other."""
    missed = np.zeros(len(number), np.float32)
    first = number[::spread].astype(np.int64)
    missed[::spread] = np.float32(int(abs(first - first[0]).sum()) / first.size)
    return missed


def _encoded(values: np.ndarray, step: float, tree: _Tree) -> bytes:
    """These lattice numbers, in the order of the positions."""
    number = values[tree.order]
    components, (begin, _) = number.shape[1], tree.blocks(number.shape[1])
    missed, per_spacing = _first_miss(number, 1 << tree.steps), tree.per_spacing
    code, residual = np.empty(int(begin[-1]), np.uint16), np.empty(int(begin[-1]), np.int64)
    at = 0
    for spacing in tree.spacings():
        expected, scale = tree.expected(spacing, per_spacing, number, missed)
        here = slice(at, at + expected.size)
        backend.kernel("neighbours", "code_residuals")(
            len(expected), len(number), spacing, components, number.reshape(-1), expected.reshape(-1), scale.reshape(-1),
            code[here], residual[here], missed,
        )
        at += expected.size
    tables = Tables.of(counted(code))
    words, word_first = words_of(code, begin, tables.frequency[tables.row])
    blocks = len(begin) - 1
    bits = np.empty(blocks, np.int64)
    backend.kernel("interpolation", "count_rest")(blocks, begin, code, bits)
    rest_first = starts((bits + 31) // 32)
    rest = np.empty(int(rest_first[-1]), np.uint32)
    backend.kernel("neighbours", "write_signs")(blocks, begin, code, residual, rest_first, rest)
    side = zlib.compress(tables.to_bytes(), 9)
    head = _HEADER.pack(step, per_spacing, len(tables.shares), len(side))
    sizes = np.diff(word_first).astype("<u4"), np.diff(rest_first).astype("<u4")
    parts = number[:: 1 << tree.steps].astype("<i4"), *sizes, words.astype("<u2"), rest.astype("<u4")
    return head + side + b"".join(part.tobytes() for part in parts)


def _decoded(data: bytes, tree: _Tree, components: int) -> tuple[np.ndarray, float]:
    """The lattice numbers in the order of the positions, and the step."""
    begin, steps = tree.blocks(components)
    blocks, first = len(begin) - 1, -(-len(tree) >> tree.steps)
    if len(data) < _HEADER.size:
        raise CodecFailed(f"neighbours: {len(data)} bytes hold no header: they are damaged")
    step, per_spacing, count, length = _HEADER.unpack_from(data)
    numbers = _HEADER.size + length
    sizes = numbers + 4 * first * components
    body = sizes + 8 * blocks
    if not (0 < step < math.inf and 0 < per_spacing < math.inf and 1 <= count <= CONTEXTS) or len(data) < body:
        raise CodecFailed(f"neighbours: {len(data)} bytes are not of {len(tree):,} particles: they are damaged")
    tables = Tables.from_bytes(inflated(data[_HEADER.size : numbers], count * (SYMBOLS + 1)), count)
    word_first, rest_first = (starts(each) for each in np.frombuffer(data, "<u4", 2 * blocks, sizes).reshape(2, blocks))
    split = body + 2 * int(word_first[-1])
    if len(data) != split + 4 * int(rest_first[-1]):
        raise CodecFailed(f"neighbours: {len(data)} bytes are not what their blocks take: they are damaged")
    words = np.frombuffer(data, "<u2", int(word_first[-1]), body).astype(np.uint16)
    rest = np.frombuffer(data, "<u4", int(rest_first[-1]), split).astype(np.uint32)
    number = np.zeros((len(tree), components), np.int32)
    number[:: 1 << tree.steps] = np.frombuffer(data, "<i4", first * components, numbers).reshape(first, components)
    missed, sound, frequency = _first_miss(number, 1 << tree.steps), np.ones(blocks, np.uint8), tables.frequency
    coded = {
        "word_first": word_first, "words": words, "rest_first": rest_first, "rest": rest, "row": tables.row,
        "symbol_at": symbol_slots(frequency), "frequency": frequency.reshape(-1), "start": slots_of(frequency).reshape(-1),
    }
    for spacing, own in zip(tree.spacings(), steps, strict=True):
        expected, scale = tree.expected(spacing, per_spacing, number, missed)
        backend.kernel("neighbours", "decode_residuals")(
            len(own), coded, block=own.start, length=BLOCK, n=len(expected), particles=len(tree), spacing=spacing,
            components=components, expected=expected.reshape(-1), scale=scale.reshape(-1), number=number.reshape(-1),
            missed=missed, sound=sound,
        )
    if not sound.all():
        block = int(np.argmin(sound))
        raise CodecFailed(
            f"neighbours: block {block} of {blocks} does not end where it should: it is damaged, or not of these positions"
        )
    back = np.empty_like(number)
    back[tree.order] = number
    return back, step
