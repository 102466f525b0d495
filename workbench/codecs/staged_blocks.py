"""Blocks of 512 or 4096 lattice numbers: their shape, and the kernels that code them and decode them in stages.

A block is a box whose sides are powers of two: 512 in one dimension, 16 x 32 in two; a cube of side 8 in three, or a plane
or a bar where a trial finds these smaller: differences along three axes add up the rounding of eight numbers, along two of
four. Smooth fields have large blocks, which are predicted from coarse to fine: cubes of side 16, squares of side 64. Other
boxes are taken where these would reach far beyond the grid. Fields of four dimensions are series of fields of three. Each
stage of decoding is one launch on the machine of the arrays: differences (of small blocks), lattice numbers, or values, of
chosen blocks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs import staged_large
from workbench.codecs.codec import CodecFailed
from workbench.codecs.staged_large import LARGE_ROOM, LOG_LARGE, Logs
from workbench.slabs import Slices

AXES, LOG_VALUES = 4, 9
VALUES = 1 << LOG_VALUES
USUAL: tuple[tuple[Logs, ...], ...] = (   # logarithms of the sides, by dimensions; rows are long enough for vectors
    ((0, 0, 9), (0, 0, 12)), ((0, 4, 5), (0, 6, 3), (0, 2, 7), (0, 6, 6)),
    ((3, 3, 3), (0, 4, 5), (4, 0, 5), (2, 2, 5), (4, 4, 4)),
)
BESIDE = 0.1       # so much larger a share of cells outside the grid is accepted for each step away from the usual shape
MOST_RUNS = 2**13          # of large blocks side by side on a GPU: each needs 115 KB
NARROW_SPAN = 2**23 - 4   # lattice numbers that differ by less are coded in 32 bits


class Fact(IntEnum):
    """The columns of the metadata of blocks, as in kernels/staged.cu; numbers are relative to the base."""

    BASE = 0
    LOW = 1
    HIGH = 2
    SUM = 3
    SQUARES = 4         # modulo 2^64,
    SQUARES_ABOVE = 5   # and what is above
    COUNT = 6
    SIZE = 7


@dataclass(frozen=True, slots=True)
class Grid:
    """A field as boxes of three axes, of which the first of four counts, and the sides of its blocks.

    >>> Grid.of((100, 200)).sides, Grid.of((100, 200, 300)).sides, Grid.of((1000, 3)).sides
    ((1, 16, 32), (8, 8, 8), (1, 512, 1))
    """

    size: tuple[int, ...]
    logs: Logs

    @classmethod
    def of(cls, shape: Sequence[int], logs: Logs | None = None) -> Grid:
        """The grid of a field of this shape, with these blocks, or the usual ones, unless they reach far beyond it."""
        size = grid_size(shape)
        return cls(size, _fitting(size, logs or usual(size)[0]))

    @property
    def sides(self) -> tuple[int, ...]:
        """The sides of a block, along the last three axes."""
        return tuple(1 << log for log in self.logs)

    @property
    def large(self) -> bool:
        """Whether blocks have 4096 numbers."""
        return sum(self.logs) == LOG_LARGE

    @property
    def counts(self) -> tuple[int, ...]:
        """How many blocks there are along each axis."""
        return self.size[0], *(-(-size // side) for size, side in zip(self.size[1:], self.sides, strict=True))

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return math.prod(self.counts)

    @property
    def whole(self) -> Slices:
        """All cells."""
        return tuple(slice(0, size) for size in self.size)

    def cells(self) -> np.ndarray:
        """How many cells of the grid each block has."""
        found = np.ones(1, np.int64)
        for size, side, count in zip(self.size, (1, *self.sides), self.counts, strict=True):
            along = np.minimum(side, size - side * np.arange(count, dtype=np.int64))
            found = np.multiply.outer(found, along).reshape(-1)
        return found

    def blocks_in(self, window: Slices) -> np.ndarray:
        """The blocks that have cells in a window."""
        ranges = [
            np.arange(part.start // side, -(-part.stop // side), dtype=np.int64)
            for part, side in zip(window, (1, *self.sides), strict=True)
        ]
        return np.asarray(np.ravel_multi_index(np.ix_(*ranges), self.counts)).reshape(-1).astype(np.int64)

    def window(self, shape: Sequence[int], part: Slices) -> tuple[Slices, tuple[int, ...], Slices]:
        """The cells that hold a part of an array of this shape; their shape as cells of the array, and the part in them.

        They are more than the part where the first two axes were joined.

        >>> Grid.of((900, 2, 2, 2)).window((900, 2, 2, 2), (slice(3, 5), slice(1, 2), slice(0, 2), slice(0, 1)))[0][1:]
        (slice(6, 10, None), slice(0, 2, None), slice(0, 1, None))
        """
        long = [each for each, size in zip(part, shape, strict=True) if size > 1] or [slice(0, 1)]
        sizes = [each.stop - each.start for each in part]
        inside = tuple(slice(0, size) for size in sizes)
        joined = len(long) == AXES and self.size[0] == 1
        if joined:
            second = shape[1]
            sizes[1], inside = second, (inside[0], part[1], *inside[2:])
            long = [slice(long[0].start * second, long[0].stop * second), *long[2:]]
        return (slice(0, 1),) * (AXES - len(long)) + tuple(long), tuple(sizes), inside

    def sides_along(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """The sides of a block along each axis of an array of this shape; None where the first two axes were joined."""
        long = [axis for axis, size in enumerate(shape) if size > 1]
        if len(long) == AXES and self.size[0] == 1:
            return None
        sides = [1] * len(shape)
        for axis, side in zip(reversed(long), reversed((1, *self.sides)), strict=False):
            sides[axis] = side
        return tuple(sides)

    def described(self, xp: Any = np) -> dict[str, Any]:
        """The bundle of kernel arguments that describe it."""
        names = ("log_planes", "log_rows", "log_columns")
        return {"grid": xp.asarray(np.array(self.size, np.int64)), **dict(zip(names, self.logs, strict=True))}


def grid_size(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape without axes of length 1, as four axes; short boxes of four dimensions are joined to longer ones.

    >>> grid_size((7,)), grid_size((5, 1, 6)), grid_size((9, 8, 8, 8)), grid_size((900, 2, 2, 2))
    ((1, 1, 1, 7), (1, 1, 5, 6), (9, 8, 8, 8), (1, 1800, 2, 2))
    """
    long = [size for size in shape if size > 1] or [1]
    if len(long) == AXES and math.prod(long[1:]) < VALUES:
        long = [long[0] * long[1], *long[2:]]
    return (1,) * (AXES - len(long)) + tuple(long)


def usual(size: Sequence[int]) -> tuple[Logs, ...]:
    """The sides of blocks (their logarithms) among which a trial decides, the most general ones first."""
    return USUAL[2 if size[0] > 1 or size[1] > 1 else 1 if size[2] > 1 else 0]


@functools.lru_cache(maxsize=256)
def _fitting(size: tuple[int, ...], wanted: Logs) -> Logs:
    """The wanted sides of blocks, or others with which blocks reach far less beyond the grid."""
    def room(logs: Logs) -> float:
        cells = math.prod(-(-n >> log) << log for n, log in zip(size[1:], logs, strict=True))
        away = sum(abs(a - b) for a, b in zip(logs, wanted, strict=True))
        return cells * (1 + BESIDE * away)

    log = sum(wanted)
    shapes = [(a, b, log - a - b) for a in range(log + 1) for b in range(log + 1 - a)]
    return min(shapes, key=lambda logs: (room(logs), logs))


@functools.lru_cache(maxsize=64)
def order_of(logs: Logs) -> np.ndarray:
    """For each predictor, the order in which the differences of a block are stored (uint16).

    Where a block begins along a differenced axis there is nothing to predict from, and differences are larger: these come
    first, so that they share bytes of planes with each other and not with small ones.
    """
    place = np.indices([1 << log for log in logs]).reshape(3, -1)
    orders = []
    for predictor in range(PREDICTORS):
        axes = [2] if predictor == TWICE else [2 - bit for bit in range(3) if predictor >> bit & 1]
        begins = sum(((place[axis] == 0).astype(int) for axis in axes), start=np.zeros(VALUES, int))
        orders.append(np.argsort(-begins, kind="stable"))
    found = np.array(orders, np.uint16).reshape(-1)
    found.flags.writeable = False
    return found


PREDICTORS = backend.constant("staged.cu", "PREDICTORS")
TWICE = backend.constant("staged.cu", "TWICE")
ROOM = {False: backend.constant("planes.cuh", "NARROW_ROOM"), True: backend.constant("planes.cuh", "WIDE_ROOM")}


@dataclass(frozen=True, slots=True)
class Lattice:
    """Values are step · number, and numbers are stored less an offset; `wide` numbers need 64 bits.

    Numbers are the nearest ones to values if they are `exact`. Others, of large blocks, may be two steps from these.

    >>> Lattice.between(0.5, -3.0, 10.0)
    Lattice(step=0.5, offset=7, wide=False, exact=True)
    """

    step: float
    offset: int
    wide: bool
    exact: bool = True

    @classmethod
    def between(cls, step: float, low: float, high: float, exact: bool = True) -> Lattice:
        """The lattice with this step for values in a range."""
        first, last = (int(np.rint(np.float64(end) / step)) for end in (low, high))
        return cls(step, (first + last) // 2, last - first >= NARROW_SPAN, exact)


def room_of(grid: Grid, wide: bool) -> int:
    """The most bytes of a block."""
    return (LARGE_ROOM if grid.large else ROOM)[wide]


def _runs(grid: Grid, wanted: int, array: Array) -> int:
    """How many runs of blocks are worked on side by side."""
    return min(wanted, MOST_RUNS) if grid.large and backend.on_device(array) else backend.chunks(wanted, array)


def _kernel(grid: Grid, name: str, real: Any = np.float32) -> backend.Kernel:
    """The kernel for blocks of this size."""
    if grid.large:
        return backend.kernel("staged_large", name.replace("_", "_large_", 1), real)
    return backend.kernel("staged", name, real)


def _described(grid: Grid, lattice: Lattice, xp: Any) -> dict[str, Any]:
    """The bundle of kernel arguments that describe blocks."""
    own = staged_large.described(grid.logs, xp) if grid.large else {"order": xp.asarray(order_of(grid.logs))}
    return {**grid.described(xp), **own, "wide": int(lattice.wide), "exact": int(lattice.exact)}


def _work(grid: Grid, runs: int, xp: Any) -> dict[str, Array]:
    """The memory that runs of large blocks need."""
    return {"work": xp.empty(staged_large.WORK * runs if grid.large else 0, xp.uint64)}


def encode_blocks(values: Array, valid: Array | None, grid: Grid, lattice: Lattice) -> tuple[Array, Array, Array]:
    """The facts of all blocks (int64, a row for each), where the bytes of each begin, and the bytes.

    The bytes do not depend on how many runs of blocks are coded side by side.
    """
    xp, blocks, room = backend.namespace(values), grid.blocks, room_of(grid, lattice.wide)
    given = _described(grid, lattice, xp)
    runs = blocks if backend.on_device(values) and not grid.large else _runs(grid, blocks, values)
    facts = xp.empty((len(Fact), blocks), xp.int64)
    coded = xp.empty(room * blocks, xp.uint8)
    flags = xp.empty(0, xp.uint8) if valid is None else valid.reshape(-1).view(xp.uint8)
    _kernel(grid, "encode_blocks", values.dtype)(
        runs, given, _work(grid, runs, xp), blocks=blocks, n=values.size, value=values.reshape(-1),
        gaps=int(valid is not None), valid=flags, step=lattice.step, offset=float(lattice.offset),
        facts=facts.reshape(-1), room=room, out=coded,
    )
    first = xp.zeros(blocks + 1, xp.int64)
    xp.cumsum(facts[Fact.SIZE], out=first[1:])
    packed = xp.empty(int(first[-1]), xp.uint8)
    backend.kernel("staged", "gather_blocks", values.dtype)(blocks, runs, room, coded, first, packed)
    return facts, first, packed


@dataclass(frozen=True, eq=False)
class CodedBlocks:
    """The bytes of all blocks of a grid, where each begins, and the bases: what the stages of decoding need."""

    grid: Grid
    lattice: Lattice
    base: Array
    first: Array
    coded: Array

    def values(self, window: Slices, dtype: np.dtype, chosen: np.ndarray | None = None) -> Array:
        """The values in a window, in order; given `chosen` blocks, only theirs, and others are not set."""
        return self._decoded("decode_values", window, dtype, chosen, value=dtype, step=self.lattice.step)

    def numbers(self, window: Slices) -> Array:
        """The lattice numbers in a window (int64), in order."""
        return self._decoded("decode_numbers", window, np.dtype(np.float32), None, number=np.dtype(np.int64))

    def differences(self, chosen: np.ndarray) -> tuple[Array, Array]:
        """The differences of some blocks (int64, a row for each), and the axes along which they were taken."""
        xp, wanted = backend.namespace(self.coded), len(chosen)
        number = xp.empty((wanted, VALUES), xp.int64)
        predictor, sound = xp.empty(wanted, xp.uint8), xp.empty(wanted, xp.uint8)
        _kernel(self.grid, "decode_differences")(
            wanted, self._given(chosen), number=number.reshape(-1), predictor=predictor, sound=sound
        )
        _require(sound, chosen)
        return number, predictor

    def counted(self, chosen: np.ndarray, valid: Array | None, lowest: int, span: int) -> Array:
        """How often each of `span` numbers, less the offset, occurs in some blocks from `lowest` on; all must be there."""
        xp = backend.namespace(self.coded)
        runs = _runs(self.grid, len(chosen), self.coded)
        count, sound = xp.empty((runs, span), xp.int64), xp.empty(len(chosen), xp.uint8)
        flags = xp.empty(0, xp.uint8) if valid is None else valid.reshape(-1).view(xp.uint8)
        _kernel(self.grid, "count_numbers")(
            runs, self._given(chosen), _work(self.grid, runs, xp), wanted=len(chosen), gaps=int(valid is not None),
            n=math.prod(self.grid.size), valid=flags, lowest=lowest, span=span, count=count.reshape(-1), sound=sound,
        )
        _require(sound, chosen)
        return count.sum(axis=0)

    def _given(self, chosen: np.ndarray) -> dict[str, Any]:
        xp = backend.namespace(self.coded)
        coded = {"first": self.first, "bytes": self.coded, "base": self.base}
        return {**_described(self.grid, self.lattice, xp), **coded, "chosen": xp.asarray(chosen)}

    def _decoded(self, name: str, window: Slices, real: np.dtype, chosen: np.ndarray | None, **target: Any) -> Array:
        """What a kernel decodes of the blocks of a window; `target` has the type of its output under the output's name."""
        xp = backend.namespace(self.coded)
        chosen = self.grid.blocks_in(window) if chosen is None else chosen
        (output, dtype), *others = target.items()
        found = xp.empty([part.stop - part.start for part in window], dtype)
        sound = xp.empty(len(chosen), xp.uint8)
        ends = np.array([[part.start for part in window], [part.stop for part in window]], np.int64).reshape(-1)
        runs = _runs(self.grid, len(chosen), self.coded) if self.grid.large else len(chosen)
        _kernel(self.grid, name, real)(
            runs, self._given(chosen), _work(self.grid, runs, xp), {"wanted": len(chosen)}, window=xp.asarray(ends),
            n=found.size, sound=sound, offset=self.lattice.offset, **{output: found.reshape(-1)}, **dict(others),
        )
        _require(sound, chosen)
        return found


def _require(sound: Array, chosen: np.ndarray) -> None:
    """Refuse blocks whose bytes are none that were written."""
    flags = backend.to_host(sound)
    if not flags.all():
        block = int(chosen[int(np.argmin(flags))])
        raise CodecFailed(f"staged: block {block} is damaged: its bytes are none that were written")
