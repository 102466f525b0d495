"""Rounding mantissas: the bits that the tolerance does not need become zero, and a lossless coder gains from that.

The simplest lossy codec. Rounded values are ordinary floating-point numbers, each with its own scale; NaN and infinities
are unchanged. It does not predict values from their neighbours, so it compresses smooth data less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import Tolerance, option
from workbench.codecs.pieces import InPieces
from workbench.codecs.rounding import largest_magnitude


@dataclass(frozen=True)
class BitRound(InPieces):
    """Mantissas rounded to nearest even, bytes shuffled, then Zstandard.

    >>> values = np.exp(np.linspace(-20, 20, 1000))
    >>> decoded = BitRound().decode(BitRound().encode(values, Tolerance(relative=0.01)), values.shape, values.dtype)
    >>> bool((abs(decoded - values) <= 0.01 * values).all())
    True
    """

    id: ClassVar[str] = "bitround"
    title: ClassVar[str] = "BitRound: rounded mantissas, Zstandard"
    look: ClassVar[Look | None] = Look("#4890fc", "square", "dotted")
    module: ClassVar[str | None] = "numcodecs"
    needs_extra: ClassVar[str | None] = "codecs"
    relative: ClassVar[bool] = True
    finite: ClassVar[bool] = False
    contained: ClassVar[bool] = True
    most_values: ClassVar[int] = 2**27
    smooth: ClassVar[bool] = False

    keepbits: int | None = option(None, "bits of the mantissa kept (none: as the tolerance needs)", minimum=0, maximum=52)
    level: int = option(3, "how hard Zstandard looks for fewer bits", minimum=1, maximum=22)

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        from numcodecs import zstd
        from numcodecs.shuffle import Shuffle

        kept = self.keepbits if self.keepbits is not None else _bits_needed(values, tolerance)
        shuffled = Shuffle(values.itemsize).encode(rounded(values, kept).reshape(-1))
        return zstd.compress(shuffled, self.level)

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        from numcodecs import zstd
        from numcodecs.shuffle import Shuffle

        shuffled = np.zeros(math.prod(shape) * dtype.itemsize, np.uint8)
        zstd.decompress(data, shuffled)   # into memory of this size, whatever the data claim; more than that is an error
        values = np.empty(shape, dtype)
        Shuffle(dtype.itemsize).decode(shuffled, out=values.reshape(-1))
        return values


def rounded(values: np.ndarray, keepbits: int) -> np.ndarray:
    """The values with `keepbits` bits of their mantissas, rounded to nearest, ties to even.

    NaN keep all their bits. Values that would round to infinity are rounded towards zero instead.

    >>> rounded(np.array([1.0, 1.25, 1.5, np.inf], np.float32), keepbits=1).tolist()
    [1.0, 1.0, 1.5, inf]
    """
    dropped = np.finfo(values.dtype).nmant - keepbits
    if dropped <= 0:
        return values
    word = np.dtype(f"u{values.itemsize}").type
    bits = values.view(word)
    kept = ~word((1 << dropped) - 1)
    infinity = np.array(np.inf, values.dtype).view(word)[()]
    result = bits >> word(dropped)
    result &= word(1)
    result += word((1 << (dropped - 1)) - 1)
    result += bits
    result &= kept
    special, overflown = ((b & infinity) == infinity for b in (bits, result))
    if special.any() or overflown.any():
        result = np.where(special, bits, np.where(overflown, bits & kept, result))
    return result.view(values.dtype)


def bits_within(relative: float) -> int:
    """The bits of the mantissa that keep values within a relative error: rounding errs by half of the last one.

    >>> bits_within(0.01), bits_within(2.0**-10)
    (6, 9)
    """
    return max(math.ceil(-math.log2(relative) - 1), 0)


def _bits_needed(values: np.ndarray, tolerance: Tolerance) -> int:
    """The bits that keep every finite value within the tolerance."""
    everything = int(np.finfo(values.dtype).nmant)
    if tolerance.value == 0:
        return everything
    if tolerance.relative is not None:
        return min(bits_within(tolerance.relative), everything)
    finite = values if np.isfinite(largest_magnitude(values)) else values[np.isfinite(values)]
    largest = largest_magnitude(finite) if finite.size else 0.0
    needed = math.frexp(largest)[1] - 1 - math.log2(tolerance.value) - 1
    return min(max(math.ceil(needed), 0), everything)
