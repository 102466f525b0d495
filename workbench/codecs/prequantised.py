"""Quantise first, then predict: the built-in codec for fields, from NumPy and pcodec alone.

Values become numbers of a lattice of twice the tolerance; along each axis where that makes them smaller, numbers are
replaced by their differences; pcodec codes what remains. Because prediction works on integers that are already quantised,
it is exactly invertible, has no loop from value to value, and the error is that of the lattice, whatever the data.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.codecs.codec import CodecFailed, Tolerance, option
from workbench.codecs.pcodec import LEVEL, pack_integers, unpack_integers
from workbench.codecs.pieces import InPieces
from workbench.codecs.rounding import before_rounding, largest_magnitude
from workbench.errors import WorkbenchError

MOST_BITS = 52     # of a lattice number: it is exact in float64
SAMPLE = 2**16     # numbers looked at to choose the axes

_HEADER = struct.Struct("<BBd")   # bytes of a number, axes that were differenced (a bit each), step


@dataclass(frozen=True)
class Prequantised(InPieces):
    """Values on a lattice of twice the tolerance, differences along the axes, pcodec.

    >>> values = np.sin(np.arange(4096.0)).reshape(64, 64)
    >>> codec = Prequantised()
    >>> decoded = codec.decode(codec.encode(values, Tolerance(absolute=0.01)), values.shape, values.dtype)
    >>> bool(abs(decoded - values).max() <= 0.01)
    True
    """

    id: ClassVar[str] = "prequantised"
    title: ClassVar[str] = "Prequantised: lattice, differences, pcodec"
    module: ClassVar[str | None] = "pcodec"
    contained: ClassVar[bool] = True

    level: int = option(LEVEL, "how hard pcodec looks for fewer bits", minimum=0, maximum=12)

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        step = lattice_step(tolerance.absolute_for(values), largest_magnitude(values), values.dtype)
        numbers, axes = _differenced(_numbers(values, step))
        return _HEADER.pack(numbers.itemsize, axes, step) + pack_integers(numbers, self.level)

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        size, axes, step = _HEADER.unpack_from(data)
        if size not in (4, 8) or axes >= 1 << len(shape) or not 0 < step < np.inf:
            raise CodecFailed(f"prequantised: {size} bytes a number, axes {axes:#b}, step {step} describe no lattice")
        numbers = unpack_integers(data[_HEADER.size :], int(np.prod(shape)), f"int{8 * size}").reshape(shape)
        for axis in range(len(shape)):
            if axes >> axis & 1:
                np.add.accumulate(numbers, axis=axis, dtype=numbers.dtype, out=numbers)
        return np.multiply(numbers, step, dtype=np.float64).astype(dtype, copy=False)


def lattice_step(tolerance: float, largest: float, dtype: np.dtype) -> float:
    """The step of a lattice on which no value up to `largest` moves by more than the tolerance, rounding included."""
    step = 2 * before_rounding(tolerance, largest, dtype)
    if tolerance == 0 or largest / step >= 2**MOST_BITS:
        raise WorkbenchError(
            f"a lattice needs a tolerance above 2^-{MOST_BITS} of the largest value, {largest / 2**MOST_BITS:.3g} here; "
            f"got {tolerance:.3g}: pcodec keeps all bits"
        )
    return step


def _numbers(values: np.ndarray, step: float) -> np.ndarray:
    """The nearest lattice number of each value, in 32 bits where they fit."""
    scaled = np.divide(values, step, dtype=np.float64)
    np.rint(scaled, out=scaled)
    return scaled.astype(np.int32 if largest_magnitude(scaled) < 2**31 else np.int64)


def _differenced(numbers: np.ndarray) -> tuple[np.ndarray, int]:
    """The numbers after differences along each axis that makes them smaller, and which axes those were.

    A difference that leaves the range of the integers wraps around, and back again when it is undone.
    """
    axes, bits = 0, _typical_bits(numbers)
    for axis in range(numbers.ndim):
        fewer = _differences(numbers, axis)
        if (bits_then := _typical_bits(fewer)) < bits:
            numbers, bits, axes = fewer, bits_then, axes | 1 << axis
    return numbers, axes


def _differences(numbers: np.ndarray, axis: int) -> np.ndarray:
    """Each number less the one before it along the axis; the first stays."""
    result = np.empty_like(numbers)
    source, target = np.moveaxis(numbers, axis, 0), np.moveaxis(result, axis, 0)
    target[0] = source[0]
    np.subtract(source[1:], source[:-1], out=target[1:])
    return result


def _typical_bits(numbers: np.ndarray) -> float:
    """About how many bits a number takes: the mean logarithm of its size, over a sample."""
    sample = numbers.reshape(-1)[:: max(numbers.size // SAMPLE, 1)]
    return float(np.log2(1.0 + abs(sample.astype(np.float64))).mean())
