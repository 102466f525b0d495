"""The order in which the built-in codec for fields decodes a grid: from points far apart to all of them.

Every value between two decoded ones can be interpolated, so the grid is refined step by step. With spacing s, the points
known so far have coordinates that are multiples of 2s. A pass adds those that are odd multiples of s along some axes (the
odd axes of the pass) and even multiples along the others; all passes of a spacing fill the grid of multiples of s. A point
that is odd along several axes has neighbours on both sides along each of them, and their average is better than any one.

Along some axes neighbours tell nothing about the values between them: levels of an atmosphere, channels, members of an
ensemble. Such an axis is frozen: all its layers are refined together, and nothing is interpolated between layers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from workbench import backend

AXES = backend.constant("interpolation.cuh", "AXES")
PAIRS = backend.constant("interpolation.cuh", "PAIRS")
DESCRIPTION = backend.constant("interpolation.cuh", "DESCRIPTION")

# How many times finer than the requested one the step of a pass is, by its spacing: 1, 2, 4, ...; then the last number. And
# how many times finer still for each odd axis that it has less than others: those are interpolated from it.
_ALIKE, _BY_AXES = 1.0, 1.25
_SERIES = ((1.0,), (1.0, 1.2, 1.44, 1.5), (1.0, 1.5, 2.0), (1.0, 2.0, 3.0, 4.0), (1.0, 2.0, 4.0, 8.0))
FINER = (*((series, _ALIKE) for series in _SERIES), *((series, _BY_AXES) for series in _SERIES[2:4]))
EQUAL_BOUND = range(5)             # of these are tried where the bound counts,
EQUAL_ERROR = (5, 0, 1, 2, 4, 6)   # where the mean square error does: that of the first

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Pass:
    """The targets of one pass, and the neighbours that it looks at beside those along its odd axes.

    Axes are those of the grid with axes of length 1 in front, so that there are always four. `pairs` are planes with four
    decoded diagonal neighbours: an odd axis, another axis, and how far along that.
    """

    spacing: int
    odd: Axes
    first: Axes
    step: Axes
    count: Axes
    pairs: tuple[tuple[int, int, int], ...]

    @property
    def layered(self) -> Axes:
        """The axes along which all points are targets: the frozen ones."""
        return tuple(axis for axis, step in enumerate(self.step) if step == 1)

    @property
    def lined(self) -> Axes:
        """The axes along which there are several targets."""
        return tuple(axis for axis, count in enumerate(self.count) if count > 1)

    @property
    def targets(self) -> int:
        """How many points it adds."""
        return math.prod(self.count)

    @functools.cached_property
    def description(self) -> np.ndarray:
        """The numbers by which kernels know it."""
        numbers = np.zeros(DESCRIPTION, np.int64)
        numbers[:12] = *self.count, *self.first, *self.step
        numbers[12:14] = self.spacing, len(self.odd)
        numbers[14 : 14 + len(self.odd)] = self.odd
        numbers[18] = len(self.pairs)
        for place, pair in enumerate(self.pairs):
            numbers[19 + place :: PAIRS][:3] = pair
        numbers[28:32] = sorted(range(AXES), key=lambda axis: (axis in self.layered, axis))
        return backend.read_only(numbers)


def four_axes(shape: Sequence[int]) -> Axes:
    """The shape with axes of length 1 in front.

    >>> four_axes((5, 7))
    (1, 1, 5, 7)
    """
    return (1,) * (AXES - len(shape)) + tuple(shape)


def coarsest(shape: Axes, frozen: Axes) -> int:
    """The spacing of the points that are not interpolated: each axis has one, unless it is frozen.

    >>> coarsest((1, 30, 192, 288), frozen=(1,))
    512
    """
    longest = max((size for axis, size in enumerate(shape) if axis not in frozen), default=1)
    return 1 << (longest - 1).bit_length()


def every(spacing: int, frozen: Axes) -> tuple[slice, ...]:
    """The points of the grid with this spacing."""
    return tuple(slice(None, None, 1 if axis in frozen else spacing) for axis in range(AXES))


@functools.lru_cache(maxsize=64)
def passes(shape: Axes, frozen: Axes) -> tuple[Pass, ...]:
    """All passes over a grid with four axes, in their order; they are kept, as chunks of an array have few shapes.

    >>> [(each.spacing, each.odd, each.targets) for each in passes((1, 1, 4, 3), frozen=())]
    [(2, (2,), 1), (2, (3,), 1), (2, (2, 3), 1), (1, (2,), 4), (1, (3,), 2), (1, (2, 3), 2)]
    """
    spacing = coarsest(shape, frozen) // 2
    found: list[Pass] = []
    while spacing:
        found += _of_spacing(shape, frozen, spacing)
        spacing //= 2
    return tuple(found)


def steps_of(order: Sequence[Pass], step: float, finer: int) -> np.ndarray:
    """The step of each pass: finer ones for coarse grids, from which all others are interpolated.

    QoZ (Liu et al., SC 2022) tunes error bounds by level in this way; here they are a few fixed series.

    >>> steps_of(passes((1, 1, 1, 9), frozen=()), 3.0, finer=2).tolist()
    [1.5, 1.5, 2.0, 3.0]
    """
    factors, by_axis = FINER[finer]
    most = max((len(each.odd) for each in order), default=0)
    return np.array([
        step / (factors[min(each.spacing.bit_length(), len(factors)) - 1] * by_axis ** (most - len(each.odd)))
        for each in order
    ])


def _of_spacing(shape: Axes, frozen: Axes, spacing: int) -> Iterator[Pass]:
    active = [axis for axis, size in enumerate(shape) if axis not in frozen and size > spacing]
    done: list[Axes] = []
    for number in range(1, len(active) + 1):
        for odd in itertools.combinations(active, number):
            step = tuple(1 if axis in frozen else 2 * spacing for axis in range(AXES))
            first = tuple(spacing if axis in odd else 0 for axis in range(AXES))
            count = tuple(-(-(size - start) // by) for size, start, by in zip(shape, first, step, strict=True))
            yield Pass(spacing, odd, first, step, count, _pairs(shape, frozen, spacing, odd, done))
            done.append(odd)


def _pairs(shape: Axes, frozen: Axes, spacing: int, odd: Axes, done: Sequence[Axes]) -> tuple[tuple[int, int, int], ...]:
    """The planes with four decoded diagonal neighbours, the nearest and most alike first."""
    found = [(one, other, spacing) for one, other in itertools.combinations(odd, 2)]
    others = [axis for axis in range(AXES) if axis not in odd]
    for one, other in itertools.product(odd, others):
        if other in frozen:
            found += [(one, other, 1)] if shape[other] > 1 else []
        elif shape[other] > spacing and tuple(sorted({*odd, other} - {one})) in done:
            found.append((one, other, spacing))
        elif shape[other] > 2 * spacing:
            found.append((one, other, 2 * spacing))
    return tuple(sorted(found, key=lambda pair: pair[2] if pair[1] not in frozen else spacing)[:PAIRS])
