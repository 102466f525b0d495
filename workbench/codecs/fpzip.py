"""fpzip: a floating-point number as a sign, an exponent and some bits of its mantissa, predicted from its neighbours.

Keeping a fixed number of bits bounds the error relative to each value, which suits data of many scales; keeping all bits
is lossless. fpzip holds Python's lock.
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

SMALL = 1024   # values; the library's overhead per stream is then a large part


@dataclass(frozen=True)
class FPZip(InPieces):
    """fpzip; `precision` counts the bits kept of each number, sign and exponent included.

    >>> values = np.exp(np.linspace(-20, 20, 1000))
    >>> decoded = FPZip().decode(FPZip().encode(values, Tolerance(relative=0.01)), values.shape, values.dtype)
    >>> bool((abs(decoded - values) <= 0.01 * values).all())
    True
    """

    id: ClassVar[str] = "fpzip"
    title: ClassVar[str] = "fpzip: so many bits of each number"
    look: ClassVar[Look | None] = Look("#6d7f96", "inverted_triangle", "dashed")
    module: ClassVar[str | None] = "fpzip"
    needs_extra: ClassVar[str | None] = "codecs"
    relative: ClassVar[bool] = True
    holds_gil: ClassVar[bool] = True
    most_values: ClassVar[int] = 2**27

    precision: int | None = option(None, "bits kept of each number (none: as the tolerance needs)", minimum=4, maximum=64)

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        import fpzip

        bits = self._bits(values, tolerance)
        solid = values if values.ndim < 4 else values.reshape(-1, *values.shape[2:])   # else not predicted
        roomy = _with_room(solid, bits)
        writable = roomy if roomy.flags.writeable else roomy.copy()   # fpzip refuses read-only arrays, though it only reads
        return fpzip.compress(writable, precision=bits, order="C")

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        import fpzip

        return fpzip.decompress(data, order="C").reshape(-1)[: math.prod(shape)].reshape(shape)

    def _bits(self, values: np.ndarray, tolerance: Tolerance) -> int:
        """How many bits to keep, as the library counts them: 0 means all, and for float64 only even numbers work."""
        whole = 8 * values.dtype.itemsize
        bits = self.precision if self.precision is not None else _bits_needed(values, tolerance)
        bits += bits % 2 if whole == 64 else 0
        return bits if bits < whole else 0


def _with_room(values: np.ndarray, bits: int) -> np.ndarray:
    """The values, followed by copies of the last ones where the library needs them.

    fpzip writes into a buffer as large as its input, and beyond the end when that is too small: noise can grow by a tenth.
    Copies enlarge the buffer and compress to almost nothing.
    """
    if 0 < bits <= 0.75 * 8 * values.dtype.itemsize and values.size >= SMALL:
        return values
    rows = math.ceil((values.size / 4 + 64) / math.prod(values.shape[1:]))
    copies = np.broadcast_to(values[-1:], (rows, *values.shape[1:]))
    return np.ascontiguousarray(np.concatenate([values, copies]))   # which may choose Fortran's order


def _bits_needed(values: np.ndarray, tolerance: Tolerance) -> int:
    """The bits that keep every value within the tolerance: what is cut off is less than the last bit kept."""
    whole = 8 * values.dtype.itemsize
    if tolerance.value == 0:
        return whole
    if tolerance.relative is not None:
        mantissa = -math.log2(tolerance.relative)
    else:
        mantissa = math.frexp(largest_magnitude(values))[1] - 1 - math.log2(tolerance.value)
    return whole - int(np.finfo(values.dtype).nmant) + max(math.ceil(mantissa), 0)
