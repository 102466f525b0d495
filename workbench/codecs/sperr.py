"""SPERR: a wavelet transform of the whole array, coded plane by plane, then a list of the values that missed the tolerance.

Often the best on smooth fields, at a tenth of the speed of the others. It comes as a filter of HDF5 (hdf5plugin), so each
array passes through an HDF5 file in memory; only the bytes of the filter are kept. The filter itself ends the process on
much unexpected input. Arrays that it cannot take are therefore folded, scaled or refused before it is called.
"""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs import pieces
from workbench.codecs.codec import Imitation, Tolerance
from workbench.codecs.rounding import before_rounding, largest_magnitude
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    import h5py

FINEST = 2.0**-48      # of the largest value: below it rounding breaks the bound, and far below it SPERR crashes
MOST_ROWS = 64         # of the rectangle that one long row of values is folded into

SWAPPED = 2**13        # added to the exponent: the filter was told which axis runs fastest. Older bytes lack it.

_HEADER = struct.Struct("<h")   # the exponent of the power of two that the values were divided by
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class SPERR(pieces.InPieces):
    """SPERR in its mode of bounded error: two and three dimensions as they are, one folded into rows, four cut.

    >>> values = np.sin(np.arange(4096.0)).reshape(64, 64)
    >>> decoded = SPERR().decode(SPERR().encode(values, Tolerance(absolute=0.01)), values.shape, values.dtype)
    >>> bool(abs(decoded - values).max() <= 0.01)
    True
    """

    id: ClassVar[str] = "sperr"
    title: ClassVar[str] = "SPERR: wavelets"
    look: ClassVar[Look | None] = Look("#0f8fa4", "diamond", "dotdash")
    for_fields: ClassVar[bool] = True
    imitation: ClassVar[Imitation] = "wavelets"
    module: ClassVar[str | None] = "hdf5plugin"
    needs_extra: ClassVar[str | None] = "codecs"
    holds_gil: ClassVar[bool] = True
    most_values: ClassVar[int] = 2**26

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        true = _true_shape(values.shape)
        if len(true) == 4:
            parts = [self._encode_piece(part, tolerance) for part in values.reshape(true)]
            return pieces.join(self.id, parts, true, values.dtype, math.prod(true[1:]))
        size, largest = tolerance.absolute_for(values), largest_magnitude(values)
        if size <= FINEST * largest or size == 0:
            raise WorkbenchError(
                f"sperr needs a tolerance above 2^-48 of the largest value, {FINEST * largest:.3g} here; got {size:.3g}: "
                "pcodec keeps all bits"
            )
        size, exponent = before_rounding(size, largest, values.dtype), math.frexp(largest)[1]
        scaled = np.ldexp(_folded(values), -exponent)
        return _HEADER.pack(exponent + SWAPPED) + _through_filter(scaled, math.ldexp(size, -exponent))

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        true = _true_shape(shape)
        if len(true) == 4:
            parts = pieces.split(self.id, data, true, dtype)
            return np.stack([self._decode_piece(part, true[1:], dtype) for _, part in parts]).reshape(shape)
        (stated,) = _HEADER.unpack_from(data)
        swapped = stated > SWAPPED // 2
        values = _back_through_filter(data[_HEADER.size :], _folded_shape(shape), dtype, swapped)
        with np.errstate(over="ignore"):   # the largest float may decode to infinity
            return np.ldexp(values.reshape(-1)[: math.prod(shape)].reshape(shape), stated - SWAPPED * swapped)


def _true_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without axes of length one, which SPERR cannot take."""
    return tuple(n for n in shape if n > 1)


def _folded_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape as SPERR can take it: a line becomes a rectangle of at least two by two."""
    true = _true_shape(shape)
    if len(true) > 1:
        return true
    count = math.prod(true)
    rows = max(2, min(MOST_ROWS, math.isqrt(count)))
    return rows, max(2, -(-count // rows))


def _folded(values: np.ndarray) -> np.ndarray:
    """The values in a shape that SPERR can take; a line that does not fill the rectangle is padded with its last value."""
    shape = _folded_shape(values.shape)
    missing = math.prod(shape) - values.size
    flat = values.reshape(-1)
    return (np.concatenate([flat, np.full(missing, flat[-1])]) if missing else flat).reshape(shape)


def _through_filter(values: np.ndarray, size: float) -> bytes:
    import hdf5plugin

    with _file_in_memory() as file:
        # Without `swap` the filter takes the first axis for the one that runs fastest, and sees a scrambled array.
        file.create_dataset("values", data=values, chunks=values.shape, **hdf5plugin.Sperr(absolute=size, swap=True))
        file.flush()
        return file["values"].id.read_direct_chunk((0,) * values.ndim)[1]


def _back_through_filter(data: bytes, shape: tuple[int, ...], dtype: np.dtype, swapped: bool) -> np.ndarray:
    import hdf5plugin

    with _file_in_memory() as file:
        stored = file.create_dataset("values", shape, dtype, chunks=shape, **hdf5plugin.Sperr(swap=swapped))
        stored.id.write_direct_chunk((0,) * len(shape), data)
        return stored[...]


def _file_in_memory() -> h5py.File:
    """A file of its own name: HDF5 takes two of one name for the same file, even when neither is on a disk."""
    import h5py

    return h5py.File(f"sperr-{next(_NUMBERS)}", "w", driver="core", backing_store=False)
