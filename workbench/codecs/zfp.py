"""ZFP: blocks of 4 values along each axis, decorrelated by a transform, cut off at the bit plane that the tolerance allows.

Fast, and releases Python's lock. Its error is well below the tolerance on smooth data of one scale, but beside very large
values small ones are lost whatever the tolerance: within a block all values share an exponent.

ZFP rounds a tolerance down to a power of two, which can cost a bit of each value. So values are multiplied by a number in
[1, 2) before, for which the tolerance is a power of two: any tolerance is then used in full.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import CodecFailed, Imitation, Tolerance, option
from workbench.codecs.pieces import InPieces

MODES = ("accuracy", "precision", "rate", "reversible")

_SIZE = struct.Struct("<d")      # the tolerance in the unit of the values, from which the factor follows
_EXPONENT_BITS = {4: 8, 8: 11}   # of a value of 4 or 8 bytes
LARGEST = 2.0**1023   # power of two
_ROOM = 16   # values are multiplied where that rounds them by at most the tolerance over this


@dataclass(frozen=True)
class ZFP(InPieces):
    """ZFP; only the mode "accuracy" uses the tolerance, and a tolerance of zero makes it "reversible".

    >>> values = np.sin(np.arange(4096.0))
    >>> len(ZFP(mode="rate", rate=8).encode(values, Tolerance(absolute=0.0)))   # a byte each, and a short header
    4109
    """

    id: ClassVar[str] = "zfp"
    title: ClassVar[str] = "ZFP: block transform"
    look: ClassVar[Look | None] = Look("#d4524f", "square", "dashed")
    for_fields: ClassVar[bool] = True
    imitation: ClassVar[Imitation] = "blocks"
    tile: ClassVar[int | None] = 4
    module: ClassVar[str | None] = "zfpy"
    needs_extra: ClassVar[str | None] = "codecs"
    most_values: ClassVar[int] = 2**27
    conservative: ClassVar[bool] = True

    mode: str = option("accuracy", "what is fixed: the error, the bit planes, the size, or every bit", choices=MODES)
    precision: int = option(24, 'bit planes kept, in the mode "precision"', minimum=1, maximum=64)
    rate: float = option(8.0, 'bits per value, in the mode "rate"', minimum=0.1, maximum=64)

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        import zfpy

        values = _without_flat_axes(values)
        size = self._size(values, tolerance)
        scaled = values if _factor(size) == 1 else values * values.dtype.type(_factor(size))
        data = zfpy.compress_numpy(scaled, write_header=False, **self._parameters(size, values.ndim, values.dtype))
        return _SIZE.pack(size) + data

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        import zfpy

        kind = zfpy.type_float if dtype == np.float32 else zfpy.type_double
        (size,) = _SIZE.unpack_from(data)
        if not 0 <= size <= LARGEST:
            raise CodecFailed(f"zfp: a tolerance must be from 0 to {LARGEST:g}; got {size}")
        values = np.empty(shape, dtype)
        flat = _without_flat_axes(values)
        zfpy._decompress(data[_SIZE.size :], kind, flat.shape, out=flat, **self._parameters(size, flat.ndim, dtype))
        if (factor := _factor(size)) != 1:
            values /= dtype.type(factor)
        return values

    def _size(self, values: np.ndarray, tolerance: Tolerance) -> float:
        """The tolerance to use: a power of two where values cannot be multiplied without harm; 0 if none is used."""
        size = tolerance.absolute_for(values) if self.mode == "accuracy" else 0.0
        largest, type_ = float(abs(values).max()), np.finfo(values.dtype)
        harmless = largest <= float(type_.max) / 4 and largest * float(type_.eps) <= size / _ROOM and size <= LARGEST
        return size if harmless or size == 0 else math.ldexp(0.5, math.frexp(size)[1])

    def _parameters(self, size: float, dimensions: int, dtype: np.dtype) -> dict[str, Any]:
        """The parameters of zfpy, the same for both directions; none at all means reversible."""
        if self.mode == "precision":
            return {"precision": int(self.precision)}
        if self.mode == "rate":   # a block has room for its exponent, or zfpy writes beyond its memory
            return {"rate": max(float(self.rate), (1 + _EXPONENT_BITS[dtype.itemsize]) / 4**dimensions)}
        return {"tolerance": _power_of_two(size)} if self.mode == "accuracy" and size > 0 else {}


def _power_of_two(size: float) -> float:
    """The smallest power of two that is not below this tolerance."""
    fraction, exponent = math.frexp(size)   # fraction * 2**exponent, and the fraction is from 0.5 up to 1
    return size if fraction == 0.5 else math.ldexp(1.0, exponent)


def _factor(size: float) -> float:
    """The number in [1, 2) that makes a power of two of this tolerance.

    >>> _factor(0.75), _factor(0.5), _factor(0.0)
    (1.3333333333333333, 1.0, 1.0)
    """
    return _power_of_two(size) / size if size > 0 else 1.0


def _without_flat_axes(values: np.ndarray) -> np.ndarray:
    """The same values without axes of length one, which would be padded to blocks of four."""
    return values.reshape([n for n in values.shape if n > 1] or [1])
