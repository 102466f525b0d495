"""Integers on a lattice, in integer arithmetic: float64 cannot hold all int64 beyond 2^53.

Every value is stored relative to the smallest one, modulo 2^64, which holds the difference of any two integers of 64 bits
(or modulo 2^32, where that holds the span). NumPy converts negative numbers to unsigned by two's complement, as required.

A step of 2t + 1 lets each value move by at most t; values that would decode beyond the largest one are clipped to it.
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
        word = self._word
        offset = np.asarray(values).astype(word) - word(self.low & int(np.iinfo(word).max))
        if self.step > 1:
            step = word(self.step)
            offset, beyond = np.divmod(offset, step)
            offset += beyond > word(self.step // 2)
        return offset.astype(np.int32) if self.span // self.step < 2**31 - 1 else offset.view(np.int64)

    def values(self, numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The values of the lattice numbers."""
        word = self._word
        number = numbers.astype(word)
        offset = number * word(self.step)
        last = word(self.span // self.step)
        if number.max() > last:
            offset[number > last] = word(self.span)
        whole = np.uint64 if dtype.itemsize == 8 else word   # the smallest value has all the bits of its type
        return (offset.astype(whole, copy=False) + whole(self.low & int(np.iinfo(whole).max))).astype(dtype)

    @property
    def _word(self) -> type[np.unsignedinteger]:
        """The integers to calculate in: 32 bits are faster, and hold every step of such a span."""
        return np.uint32 if self.span < 2**31 - 1 else np.uint64


SIZE = _LAYOUT.size
