"""What earlier steps say of a field: multiples of them are taken away before it is interpolated, and added afterwards.

The step before is one more neighbour of each value. How much it tells depends on the scale: large structures have moved or
grown, coasts and mountains are where they were. So the multiples of the latest step and of the one before that, among which
are those of a linear extrapolation, are fitted for each spacing of the grid, from what neighbours miss in all of the steps.
Where they do not pay they are zero.

What is left is interpolated, so that the expected scale of residuals follows from it, too. The earlier steps are decoded
values, which reader and writer have alike; where these are not finite, they are filled as gaps of the field are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.earlier import Earlier
from workbench.codecs.gaps import filled
from workbench.codecs.interpolation_fit import UNIT
from workbench.codecs.interpolation_grid import Axes, Pass

STEPS = 2   # earlier ones at most


@dataclass(frozen=True, eq=False)
class Known:
    """The values of earlier steps as kernels take them: flat, finite; the second are the first where there is one step."""

    latest: np.ndarray
    before: np.ndarray
    steps: int

    @classmethod
    def of(cls, earlier: Earlier, shape: Sequence[int], dtype: np.dtype) -> Self | None:
        """Those of a field of this shape and type; None where they say nothing about it."""
        if any(each.shape != tuple(shape) or each.dtype != dtype for each in earlier.values):
            return None
        steps = [_finite(np.ascontiguousarray(backend.to_host(each))) for each in earlier.values]
        most = float(np.finfo(dtype).max) / 64   # multiples of them are finite
        flat = [each.reshape(-1) for each in steps if max(float(each.max()), -float(each.min())) < most]
        return cls(flat[0], flat[-1], len(flat)) if len(flat) == len(steps) else None

    def take_away(
        self, of: Pass, spacing: int, shape: np.ndarray, multiples: np.ndarray, value: np.ndarray, left: np.ndarray
    ) -> None:
        """Leave of values on the grid with this spacing what the multiples of a pass do not say."""
        grid = [-(-size // (1 if step == 1 else spacing)) for size, step in zip(shape.tolist(), of.step, strict=True)]
        backend.kernel("interpolation", "take_away_forecast", value.dtype)(
            math.prod(grid[:-1]), of.description, spacing, shape, for_kernel(multiples, value.dtype), self.latest,
            self.before, value, left,
        )


def spacing_before(order: Sequence[Pass], which: int) -> int:
    """The spacing of the points that are known before a pass; of some, only their places."""
    return order[which - 1].spacing if which else 2 * order[0].spacing


@dataclass(frozen=True, eq=False)
class Multiples:
    """Of the latest step and of the one before it, as whole numbers: of the coarsest points, then of each pass."""

    numbers: np.ndarray   # int16, (1 + passes, 2)

    @classmethod
    def none(cls, order: Sequence[Pass]) -> Self:
        """No step says anything."""
        return cls(np.zeros((1 + len(order), STEPS), np.int16))

    def stored(self) -> bytes:
        """Those that differ from the ones before."""
        new = self._new
        return np.packbits(new).tobytes() + self.numbers[new].astype("<i2").tobytes()

    @classmethod
    def read(cls, side: bytes, order: Sequence[Pass]) -> tuple[Self, bytes]:
        """What `stored` wrote for these passes, and what follows it."""
        rows = 1 + len(order)
        flags = -(-rows // 8)
        new = np.unpackbits(np.frombuffer(side, np.uint8, flags), count=rows).astype(bool) if len(side) >= flags else None
        if new is None or len(side) < (end := flags + 2 * STEPS * int(new.sum())):
            raise CodecFailed("the multiples of earlier steps of an interpolated field are truncated")
        given = np.frombuffer(side[flags:end], "<i2").reshape(-1, STEPS)
        numbers = np.concatenate([np.zeros((1, STEPS), np.int16), given])[np.cumsum(new)]
        return cls(numbers.astype(np.int16)), side[end:]

    @property
    def any(self) -> bool:
        """Whether an earlier step says anything."""
        return bool(self.numbers.any())

    @property
    def _new(self) -> np.ndarray:
        before = np.concatenate([np.zeros((1, STEPS), np.int16), self.numbers[:-1]])
        return (self.numbers != before).any(axis=1)


def for_kernel(multiples: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Multiples as kernels take them."""
    return (multiples * UNIT).astype(dtype).reshape(-1)


def mean_left(mean: float, multiples: np.ndarray) -> float:
    """What is left of the mean of a field without these multiples of steps with the same mean."""
    return mean * (1 - float(multiples.sum(dtype=np.int64)) * UNIT)


def coarsest_forecast(known: Known, places: tuple[slice, ...], shape: Axes, multiples: np.ndarray) -> np.ndarray:
    """What these multiples say of the points that are not interpolated."""
    latest, before = (each.reshape(shape)[places] for each in (known.latest, known.before))
    one, two = for_kernel(multiples, known.latest.dtype)
    return one * latest + two * before


def _finite(values: np.ndarray) -> np.ndarray:
    if math.isfinite(values.max()) and math.isfinite(values.min()):   # quicker than to look at each
        return values
    return filled(values, np.isfinite(values))
