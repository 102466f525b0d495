"""Numbers that a file has rounded to a precision, exactly: trajectories in XTC, and decimals of text files.

Such numbers are whole ones divided by the precision. A bound below half a step would make codecs describe the error of
that rounding, which is noise; the whole numbers themselves are fewer bits, and give back the numbers of the file, every
bit. How a file makes them floats is tried: XTC multiplies in float32, decimals are the nearest float to a quotient. The few
numbers that are not of this kind, such as minus zero, stand beside the others; if they are many, all are kept by pcodec.
"""

from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import Codec, CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.interpolation import Interpolation
from workbench.codecs.motion import Motion
from workbench.codecs.pcodec import PCodec

PRODUCT, QUOTIENT, PLAIN = 0, 1, 2   # the first byte: how whole numbers become floats, or that there are none
MOST = 2.0**31      # of a whole number
FEW = 0.01          # of the numbers may be others
WHOLE = Tolerance(absolute=0.499)
EXACTLY = Tolerance(absolute=0.0)

_HEADER = struct.Struct("<BIQQ")     # the way, the others, the bytes of their places and of their values


@dataclass(frozen=True)
class Rounded(ParticleCodec):
    """Numbers that are whole ones divided by `precision`, without loss; the whole numbers are coded by another codec.

    >>> values = (np.arange(-300, 300) / 1000).reshape(2, 100, 3)
    >>> data = Rounded(precision=1000.0).encode(values, EXACTLY)
    >>> bool((Rounded(precision=1000.0).decode(data, (2, 100, 3), "float64") == values).all()), len(data) < 700
    (True, True)
    """

    id: ClassVar[str] = "rounded"
    title: ClassVar[str] = "Rounded: numbers of few digits, as whole numbers, exactly"
    look: ClassVar[Look | None] = Look("#ff1ab2", "star", "dashdot")
    explanation: ClassVar[str] = "keeps numbers that a file has rounded already, as XTC does, at the cost of their digits"
    module: ClassVar[str | None] = "pcodec"
    lossless: ClassVar[bool] = True
    dimensions: ClassVar[tuple[int, ...]] = (1, 2, 3)
    contained: ClassVar[bool] = True

    precision: float = option(1000.0, "steps in a unit of the numbers", minimum=1e-6, maximum=1e12)
    numbers: str = option("motion", "the codec of the whole numbers", choices=["motion", "interpolation"])

    cells: np.ndarray | None = dataclasses.field(default=None, init=False, repr=False, compare=False)

    def in_cells(self, edges: np.ndarray) -> Self:
        """The codec for frames in these periodic cells."""
        bound = dataclasses.replace(self)
        object.__setattr__(bound, "cells", edges * self.precision)
        return bound

    @property
    def inner(self) -> Codec:
        """The codec of the whole numbers."""
        codec: Codec = Motion() if self.numbers == "motion" else Interpolation()
        return codec if self.cells is None else codec.in_cells(self.cells)

    def fits(self, values: np.ndarray) -> bool:
        """Whether nearly all of these numbers are of this precision."""
        return self._way(values) is not None

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        found = self._way(values)
        if found is None:
            return _HEADER.pack(PLAIN, 0, 0, 0) + PCodec().encode(values, EXACTLY)
        way, others = found
        whole = np.rint(values.astype(np.float64) * self.precision) + 0.0   # no minus zero
        whole.flat[others] = 0.0
        places, given = b"", b""
        if others.size:
            places, given = PCodec().encode(others, EXACTLY), PCodec().encode(values.flat[others], EXACTLY)
        return _HEADER.pack(way, others.size, len(places), len(given)) + places + given + self.inner.encode(whole, WHOLE)

    def _way(self, values: np.ndarray) -> tuple[int, np.ndarray] | None:
        """How whole numbers become these values, and where they do not; None if there are many such."""
        whole = np.rint(values.astype(np.float64) * self.precision)
        if not (np.isfinite(whole).all() and np.abs(whole).max() < MOST):
            return None
        bits = np.dtype(f"u{values.dtype.itemsize}")
        for way in (PRODUCT, QUOTIENT):
            back = self._floats(whole + 0.0, way, values.dtype)
            others = np.flatnonzero(back.view(bits) != values.view(bits))
            if others.size <= FEW * values.size:
                return way, others
        return None

    def _floats(self, whole: np.ndarray, way: int, dtype: np.dtype) -> np.ndarray:
        if way == QUOTIENT:
            return (whole / self.precision).astype(dtype)
        return whole.astype(dtype) * (dtype.type(1) / dtype.type(self.precision))

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if len(data) < _HEADER.size:
            raise CodecFailed(f"{self.id}: {len(data)} bytes are too few")
        way, count, of_places, of_values = _HEADER.unpack_from(data)
        rest = data[_HEADER.size :]
        if way == PLAIN:
            return PCodec().decode(rest, shape, dtype)
        size = int(np.prod(shape))
        if way not in (PRODUCT, QUOTIENT) or count > size or of_places + of_values > len(rest):
            raise CodecFailed(f"{self.id}: the header is damaged")
        whole = np.rint(self.inner.decode(rest[of_places + of_values :], shape, np.float64))
        if not (np.isfinite(whole).all() and np.abs(whole).max() < 2 * MOST):
            raise CodecFailed(f"{self.id}: whole numbers are beyond 2^32: the bytes are damaged")
        values = self._floats(whole + 0.0, way, dtype)
        if count:
            places = PCodec().decode(rest[:of_places], (count,), np.int64)
            if places.min() < 0 or places.max() >= size:
                raise CodecFailed(f"{self.id}: places are beyond the {size:,} numbers: the bytes are damaged")
            values.flat[places] = PCodec().decode(rest[of_places : of_places + of_values], (count,), dtype)
        return values


def precision_of(values: np.ndarray, stated: float | None, most_digits: int = 6) -> float | None:
    """The precision that is stated, or so many decimals as these values have; None if they are not rounded.

    >>> precision_of(np.array([[0.25, 1.5]]), None), precision_of(np.array([[1 / 3]]), None)
    (100.0, None)
    """
    candidates = [stated] if stated is not None else [10.0**digits for digits in range(most_digits + 1)]
    return next((one for one in candidates if Rounded(precision=one).fits(values)), None)
