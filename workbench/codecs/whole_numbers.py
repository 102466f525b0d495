"""Integers on a lattice, in integer arithmetic: int64 beyond 2^53 would not survive a float.

Every value is counted from the smallest one, modulo 2^64, which holds the difference of any two integers of 64 bits. A
step of 2t + 1 lets each value move by at most t; what would be decoded beyond the largest value is decoded as that.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.codecs.codec import CodecFailed

LARGEST = 2**64 - 1

_LAYOUT = struct.Struct("<QQQ")


@dataclass(frozen=True, slots=True)
class IntegerLattice:
    """The smallest value (modulo 2^64), the span up to the largest, and the step.

    >>> lattice = IntegerLattice.of(np.array([-3, 4, 9]), 2.5)
    >>> lattice.step, lattice.values(lattice.numbers(np.array([-3, 4, 9])), np.dtype("int64")).tolist()
    (5, [-3, 2, 7])
    """

    low: int
    span: int
    step: int

    @classmethod
    def of(cls, values: np.ndarray, tolerance: float) -> Self:
        """The lattice of these values on which none moves by more than the tolerance."""
        low, high = int(values.min()), int(values.max())
        most = min(math.floor(tolerance), high - low, LARGEST // 2)
        return cls(low & LARGEST, high - low, 2 * most + 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The lattice that `to_bytes` described."""
        low, span, step = _LAYOUT.unpack_from(data)
        if step == 0:
            raise CodecFailed("prequantised: a lattice of integers must have a step of at least 1; got 0")
        return cls(low, span, step)

    def to_bytes(self) -> bytes:
        """The lattice, in `SIZE` bytes."""
        return _LAYOUT.pack(self.low, self.span, self.step)

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """The nearest lattice number of each value, signed, in 32 bits where they fit."""
        offset = _modular(values) - np.uint64(self.low)
        step = np.uint64(self.step)
        number = offset // step
        if self.step > 1:
            number += offset % step > np.uint64(self.step // 2)
        return number.astype(np.int32) if self.span // self.step < 2**31 - 1 else number.view(np.int64)

    def values(self, numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """What the lattice numbers stand for."""
        number, last = _modular(numbers), np.uint64(self.span // self.step)
        offset = np.where(number > last, np.uint64(self.span), np.minimum(number, last) * np.uint64(self.step))
        return (offset + np.uint64(self.low)).astype(dtype)


SIZE = _LAYOUT.size


def _modular(values: np.ndarray) -> np.ndarray:
    """Integers of any type modulo 2^64."""
    return values.astype(np.uint64)   # of a negative number, NumPy takes the two's complement
