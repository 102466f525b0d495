"""Quantise first, then predict: a fast codec for fields, and the one for steps, classes, counts, weights and tables.

Values are rounded to a lattice of twice the tolerance, and the lattice numbers are coded (`lattice_numbers.py`). Because
prediction works on integers that are already quantised, it is exactly invertible, has no loop from value to value, and the
error is that of the lattice, whatever the data. Integers have a lattice of integers (`whole_numbers.py`), so that no value
passes through a float. Missing values, if they are gaps in noise, are numbers of their own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import CodecFailed, Imitation, Tolerance, option
from workbench.codecs.gaps import repeated
from workbench.codecs.lattice_numbers import pack_numbers, pack_with_gaps, unpack_numbers
from workbench.codecs.pcodec import INTEGERS, LEVEL
from workbench.codecs.pieces import InPieces
from workbench.codecs.rounding import before_rounding, largest_magnitude
from workbench.codecs.scales import GAP
from workbench.codecs.whole_numbers import SIZE, IntegerLattice
from workbench.errors import WorkbenchError

MOST_BITS = 52     # of a lattice number: it is exact in float64
AT_ONCE = 2**16    # values that are divided together

_HEADER = struct.Struct("<Bd")   # bytes of a number, step; the numbers follow
_WHOLE_HEADER = struct.Struct("<B")   # of integers: bytes of a number; the lattice and the numbers follow


@dataclass(frozen=True)
class Prequantised(InPieces):
    """Values on a lattice of twice the tolerance: differences along the axes, repeats, or numbers with scales.

    >>> values = np.sin(np.arange(4096.0)).reshape(64, 64)
    >>> codec = Prequantised()
    >>> decoded = codec.decode(codec.encode(values, Tolerance(absolute=0.01)), values.shape, values.dtype)
    >>> bool(abs(decoded - values).max() <= 0.01)
    True
    """

    id: ClassVar[str] = "prequantised"
    title: ClassVar[str] = "Prequantised: lattice, differences or repeats, pcodec"
    look: ClassVar[Look | None] = Look("#93800f", "triangle", "dotted")
    explanation: ClassVar[str] = (
        "a built-in codec for fields and integers: values are rounded to multiples of twice the error bound, and "
        "differences are coded"
    )
    for_fields: ClassVar[bool] = True
    imitation: ClassVar[Imitation] = "lattice"
    module: ClassVar[str | None] = "pcodec"
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64", *INTEGERS)
    contained: ClassVar[bool] = True
    automatic: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    level: int = option(LEVEL, "how hard pcodec looks for fewer bits", minimum=0, maximum=12)

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        if values.dtype.kind != "f":
            return self._encode_integers(values, tolerance)
        valid = None if np.isfinite(values).all() else np.isfinite(values)   # it takes room
        given = values if valid is None else repeated(values, valid)
        step = lattice_step(tolerance.absolute_for(given), largest_magnitude(given), values.dtype)
        numbers = lattice_numbers(given, step)
        if valid is None:
            return _HEADER.pack(numbers.itemsize, step) + pack_numbers(numbers, self.level)
        wide = numbers.astype(np.int64)
        return _HEADER.pack(wide.itemsize, step) + pack_with_gaps(np.where(valid, wide, GAP), wide, self.level)

    def encode_with_gaps(self, values: np.ndarray, valid: np.ndarray, tolerance: Tolerance) -> bytes:
        """Gaps are marked, or filled, whichever takes fewer bits."""
        if values.dtype.kind != "f":
            return super().encode_with_gaps(values, valid, tolerance)
        self.require()
        return self._encode(np.where(valid, values, values.dtype.type(np.nan)), tolerance)

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if dtype.kind != "f":
            return self._decode_integers(data, shape, dtype)
        size, step = _HEADER.unpack_from(data)
        if not 0 < step < np.inf:
            raise CodecFailed(f"prequantised: a lattice must have a positive step; got {step}")
        numbers = unpack_numbers(data[_HEADER.size :], shape, _integer(size))
        with np.errstate(over="ignore"):   # a lattice point beyond all numbers is infinite, and then corrected
            values = np.multiply(numbers, step, dtype=np.float64).astype(dtype, copy=False)
        missing = numbers == GAP if size == 8 else np.zeros(0, bool)
        if missing.any():
            values[missing] = np.nan
        return values

    def _encode_integers(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        lattice = IntegerLattice.of(values, tolerance.absolute or 0.0)
        numbers = lattice.numbers(values)
        return _WHOLE_HEADER.pack(numbers.itemsize) + lattice.to_bytes() + pack_numbers(numbers, self.level)

    def _decode_integers(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        (size,) = _WHOLE_HEADER.unpack_from(data)
        start = _WHOLE_HEADER.size
        lattice = IntegerLattice.from_bytes(data[start : start + SIZE])
        return lattice.values(unpack_numbers(data[start + SIZE :], shape, _integer(size)), dtype)


def _integer(size: int) -> np.dtype:
    """The type of lattice numbers with so many bytes."""
    if size not in (4, 8):
        raise CodecFailed(f"prequantised: {size} bytes a number describe no lattice")
    return np.dtype(f"int{8 * size}")


def lattice_step(tolerance: float, largest: float, dtype: np.dtype) -> float:
    """The step of a lattice on which no value up to `largest` moves by more than the tolerance, rounding included."""
    step = 2 * before_rounding(tolerance, largest, dtype)
    if step == 0 or largest / step >= 2**MOST_BITS:
        raise WorkbenchError(
            f"a lattice needs a tolerance above 2^-{MOST_BITS} of the largest value, {largest / 2**MOST_BITS:.3g} here; "
            f"got {tolerance:.3g}: pcodec keeps all bits"
        )
    return step


def lattice_numbers(values: np.ndarray, step: float) -> np.ndarray:
    """The nearest lattice number of each value, in 32 bits where they fit."""
    kind = np.dtype(np.int32 if round(largest_magnitude(values) / step) < 2**31 else np.int64)
    found, flat = np.empty(values.shape, kind), values.reshape(-1)
    numbers = found.reshape(-1)
    for start in range(0, flat.size, AT_ONCE):   # in float64, which takes more room than either
        part = slice(start, start + AT_ONCE)
        numbers[part] = np.rint(np.divide(flat[part], step, dtype=np.float64))
    return found
