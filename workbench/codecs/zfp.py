"""ZFP: blocks of 4 values along each axis, decorrelated by a transform, cut off at the bit plane that the tolerance allows.

Fast, and releases Python's lock. Its error is well below the tolerance on smooth data of one scale, but beside very large
values small ones are lost whatever the tolerance: within a block all values share an exponent.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.codecs.codec import Tolerance, option
from workbench.codecs.pieces import InPieces

MODES = ("accuracy", "precision", "rate", "reversible")

_SIZE = struct.Struct("<d")      # the tolerance in the unit of the values
_EXPONENT_BITS = {4: 8, 8: 11}   # of a value of 4 or 8 bytes


@dataclass(frozen=True)
class ZFP(InPieces):
    """ZFP; only the mode "accuracy" uses the tolerance, and a tolerance of zero makes it "reversible".

    >>> values = np.sin(np.arange(4096.0))
    >>> len(ZFP(mode="rate", rate=8).encode(values, Tolerance(absolute=0.0)))   # a byte each, and a short header
    4109
    """

    id: ClassVar[str] = "zfp"
    title: ClassVar[str] = "ZFP: block transform"
    module: ClassVar[str | None] = "zfpy"
    most_values: ClassVar[int] = 2**27
    in_octaves: ClassVar[bool] = True

    mode: str = option("accuracy", "what is fixed: the error, the bit planes, the size, or every bit", choices=MODES)
    precision: int = option(24, 'bit planes kept, in the mode "precision"', minimum=1, maximum=64)
    rate: float = option(8.0, 'bits per value, in the mode "rate"', minimum=0.1, maximum=64)

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        import zfpy

        values = _without_flat_axes(values)
        size = tolerance.absolute_for(values)
        data = zfpy.compress_numpy(values, write_header=False, **self._parameters(size, values.ndim, values.dtype))
        return _SIZE.pack(size) + data

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        import zfpy

        kind = zfpy.type_float if dtype == np.float32 else zfpy.type_double
        (size,) = _SIZE.unpack_from(data)
        values = np.empty(shape, dtype)
        flat = _without_flat_axes(values)
        zfpy._decompress(data[_SIZE.size :], kind, flat.shape, out=flat, **self._parameters(size, flat.ndim, dtype))
        return values

    def _parameters(self, size: float, dimensions: int, dtype: np.dtype) -> dict[str, Any]:
        """The parameters of zfpy, the same for both directions; none at all means reversible."""
        if self.mode == "precision":
            return {"precision": int(self.precision)}
        if self.mode == "rate":   # a block has room for its exponent, or zfpy writes beyond its memory
            return {"rate": max(float(self.rate), (1 + _EXPONENT_BITS[dtype.itemsize]) / 4**dimensions)}
        return {"tolerance": size} if self.mode == "accuracy" and size > 0 else {}


def _without_flat_axes(values: np.ndarray) -> np.ndarray:
    """The same values without axes of length one, which would be padded to blocks of four."""
    return values.reshape([n for n in values.shape if n > 1] or [1])
