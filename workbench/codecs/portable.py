"""Chunks that plain Zarr decodes: the bytes are those of codecs that every installation of zarr-python has.

Two ways keep a bound without any help of ours when they are read. *Rounding*: values become multiples of a power of two or,
for bounds relative to each value, get fewer bits of their mantissa; they stay floating-point numbers, and Blosc gains from
the zeros at their end. Any value can stay as it is, so NaN, masked numbers and values that rounding would take too far do.
*A lattice*: values are stored as 32-bit numbers of steps (`numcodecs.fixedscaleoffset`), and often as differences along the
last axis (`numcodecs.delta`), which takes fewer bits but holds finite numbers alone. Integers have no lattice: their lowest
bits become zero.

`scale_offset`, `cast_value` and `zfp` are registered for Zarr, too, but zarr-python 3.1 does not have the first two, and
`zfp` needs a package beside it. Unlike other codecs, this one must make a whole chunk alone (`bare`): a correction of ours
could not be read. So the values that it may not change are given to it, and whoever calls it checks the result.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.bitround import bits_within, rounded
from workbench.codecs.codec import Codec, CodecFailed, Tolerance, option
from workbench.codecs.pcodec import INTEGERS
from workbench.codecs.rounding import before_rounding, largest_magnitude
from workbench.errors import WorkbenchError

SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")   # the names in Zarr; for numcodecs their places are numbers
STEPS = np.dtype("<i4")     # numbers on a lattice: divided by a float they are float64 in every version of NumPy
ROOM = 2.0                  # times the largest value of a sample, up to which a lattice keeps the bound
_HEADER = 16                # bytes of Blosc, the numbers of which are checked before it sees the rest


class OffLattice(CodecFailed):
    """A value that the lattice of its array cannot hold: the array needs rounding instead."""


@dataclass(frozen=True)
class Portable(Codec):
    """Values rounded or on a lattice, then Blosc with Zstandard, as chunks of one shape for Zarr.

    >>> values = np.sin(np.arange(100.0, dtype="f4"))
    >>> codec = Portable().in_chunks((128,))
    >>> data = codec.encode(values, Tolerance(absolute=0.01))
    >>> bool(abs(codec.decode(data, (100,), "f4") - values).max() <= 0.01)
    True
    >>> [each["name"] for each in codec.zarr_codecs(np.dtype("f4"))]
    ['bytes', 'blosc']
    """

    id: ClassVar[str] = "portable"
    title: ClassVar[str] = "Portable: rounded values or a lattice, Blosc, as every Zarr library reads them"
    look: ClassVar[Look | None] = Look("#1651fd", "star")
    module: ClassVar[str | None] = "numcodecs"
    needs_extra: ClassVar[str | None] = "codecs"
    relative: ClassVar[bool] = True
    finite: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    bare: ClassVar[bool] = True
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64", *INTEGERS, "bool")
    most_values: ClassVar[int] = 2**27

    scale: float | None = option(None, "numbers of the lattice in a unit (none: values are rounded)", minimum=0)
    delta: bool = option(False, "differences along the last axis in place of numbers")
    shuffle: str = option("shuffle", "what Blosc does with bytes first", choices=SHUFFLES)
    level: int = option(9, "how hard Zstandard looks for fewer bits", minimum=0, maximum=9)
    chunk: tuple[int, ...] = option((), "the shape of the chunks, to which smaller ones are filled up")

    def in_chunks(self, shape: tuple[int, ...]) -> Self:
        """The codec for an array that has chunks of this shape; Blosc refuses those of 2 GiB."""
        if math.prod(shape) > self.most_values:
            most = f"at most {self.most_values:,} values"
            raise WorkbenchError(f"a portable chunk must have {most}; got {shape}: give smaller chunks")
        return dataclasses.replace(self, chunk=tuple(shape))

    def rounding(self) -> Self:
        """The codec without a lattice, for arrays that have values that none holds."""
        return dataclasses.replace(self, scale=None, delta=False, shuffle="shuffle")

    @property
    def core(self) -> bool:
        """Whether all its codecs are in the specification of Zarr itself."""
        return self.scale is None and not self.delta

    @property
    def words(self) -> str:
        """What it does, in the words of Zarr."""
        return "+".join([*(["fixedscaleoffset"] if self.scale else []), *(["delta"] if self.delta else []), self.shuffle])

    def zarr_codecs(self, dtype: np.dtype) -> list[dict[str, Any]]:
        """The codecs of Zarr that decode the chunks of an array of this type."""
        stored, found = self._stored(dtype), []
        if self.scale is not None:
            lattice = {"offset": 0, "scale": self.scale, "dtype": dtype.str, "astype": stored.str}
            found.append({"name": "numcodecs.fixedscaleoffset", "configuration": lattice})
        if self.delta:
            found.append({"name": "numcodecs.delta", "configuration": {"dtype": stored.str}})
        how = {"cname": "zstd", "clevel": self.level, "shuffle": self.shuffle, "blocksize": 0}
        blosc = {"typesize": stored.itemsize, **how}
        endian = {"configuration": {"endian": "little"}} if stored.itemsize > 1 else {}
        return [*found, {"name": "bytes", **endian}, {"name": "blosc", "configuration": blosc}]

    def candidates(self, values: np.ndarray, tolerance: Tolerance | None) -> Iterator[Self]:
        """Every way that may suit values like these, within a tolerance; None where they cannot be on a lattice."""
        whole, steps = values.dtype.kind in "iu", [None]   # type: bool, list[float | None]
        if tolerance is not None and values.dtype.kind == "f" and (tolerance.absolute or 0) > 0:
            steps += _scales(values, tolerance.value)
        for scale in steps:
            for delta in (False, True) if scale or whole else (False,):
                for shuffle in ("shuffle", "bitshuffle"):
                    yield dataclasses.replace(self, scale=scale, delta=delta, shuffle=shuffle)

    def encode_with_gaps(self, values: np.ndarray, valid: np.ndarray, tolerance: Tolerance) -> bytes:
        """What `encode` returns where the values that are not valid stay as they are, bit for bit."""
        if self.scale is not None and not valid.all():
            raise OffLattice(f"{self.id}: a lattice holds no values that must stay as they are")
        self.require()
        self._check_values(values)
        return self._packed(np.where(valid, self._rounded(values, tolerance), values))

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return self._packed(values if self.scale is not None else self._rounded(values, tolerance))

    def _packed(self, values: np.ndarray) -> bytes:
        """The bytes of a chunk of these values, filled up with those at its ends."""
        from numcodecs import blosc

        if self.chunk and self.chunk != values.shape:
            values = np.pad(values, [(0, most - size) for most, size in zip(self.chunk, values.shape, strict=True)], "edge")
        numbers = (values if self.scale is None else self._numbers(values)).reshape(-1)
        if self.delta:
            numbers = np.diff(numbers, prepend=numbers.dtype.type(0))
        numbers = np.ascontiguousarray(numbers, self._stored(values.dtype))
        with _one_thread(blosc):
            return blosc.compress(numbers, b"zstd", self.level, SHUFFLES.index(self.shuffle))

    def _numbers(self, values: np.ndarray) -> np.ndarray:
        """The numbers of the lattice that are nearest to these values."""
        assert self.scale is not None
        with np.errstate(all="ignore"):
            numbers = np.rint(values.astype(np.float64) * self.scale)
        if not bool((np.abs(numbers) < 2.0**31).all()):   # nor NaN
            raise OffLattice(f"{self.id}: a value is not finite, or too large for a lattice of {self.scale:.9g} to a unit")
        return numbers.astype(STEPS)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        from numcodecs import blosc

        whole, stored = self.chunk or shape, self._stored(dtype)
        numbers = np.empty(math.prod(whole), stored)
        stated = np.frombuffer(data[4:_HEADER], "<u4") if len(data) >= _HEADER else (0, 0, 0)
        if (int(stated[0]), int(stated[2])) != (numbers.nbytes, len(data)):
            raise CodecFailed(f"{self.id}: a chunk must have {numbers.nbytes:,} bytes in Blosc; it is damaged")
        blosc.decompress(data, numbers)
        if self.delta:
            np.cumsum(numbers, dtype=stored, out=numbers)
        values = numbers if self.scale is None else (numbers / self.scale).astype(dtype)
        values = values.view(dtype).reshape(whole)
        return values if whole == shape else np.ascontiguousarray(values[tuple(map(slice, shape))])

    def _stored(self, dtype: np.dtype) -> np.dtype:
        """The type of the numbers in a chunk."""
        return STEPS if self.scale is not None else dtype.newbyteorder("<")

    def _rounded(self, values: np.ndarray, tolerance: Tolerance) -> np.ndarray:
        """The values with zeros at the end of their bits; those that it takes too far are the caller's to find."""
        if tolerance.value == 0 or values.dtype.kind == "b" or self.scale is not None:
            return values
        if values.dtype.kind != "f":
            return _with_low_bits_zero(values, tolerance.absolute_for(values))
        if tolerance.relative is not None:
            return rounded(values, bits_within(tolerance.relative))
        step = values.dtype.type(_power_of_two_within(2 * tolerance.value))
        with np.errstate(all="ignore"):
            found = np.rint(values / step) * step
        return np.where(np.isfinite(found), found, values)


@contextmanager
def _one_thread(blosc: Any) -> Iterator[None]:
    """Blosc with one thread, as it has outside of the main one: several write their blocks in the order of their ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, blosc.use_threads = blosc.use_threads, False
    try:
        yield
    finally:
        blosc.use_threads = before


def _scales(values: np.ndarray, tolerance: float) -> list[float | None]:
    """The scale of the coarsest lattice that keeps values like these within the tolerance, if there is one."""
    largest = min(ROOM * largest_magnitude(values), float(np.finfo(values.dtype).max))
    step = 2 * before_rounding(tolerance, largest, values.dtype)
    scale = 1 / step if step > 1e-300 else math.inf
    return [scale] if math.isfinite(scale) and scale > 0 and largest * scale < 2.0**31 else []


def _power_of_two_within(step: float) -> float:
    """The largest power of two that is not above a step.

    >>> _power_of_two_within(0.3), _power_of_two_within(0.25)
    (0.25, 0.25)
    """
    return math.ldexp(1.0, math.frexp(step)[1] - 1) if math.isfinite(step) else math.ldexp(1.0, 1023)


def _with_low_bits_zero(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Integers rounded to multiples of a power of two, as far as their type has them.

    >>> _with_low_bits_zero(np.array([3, 5, 255], np.uint8), 2).tolist()
    [4, 4, 255]
    """
    bits = min(math.floor(math.log2(2 * math.floor(tolerance) + 1)), 8 * values.itemsize - 2) if tolerance >= 1 else 0
    step = values.dtype.type(1 << bits)
    low = values & (step - values.dtype.type(1))
    down = values - low
    with np.errstate(over="ignore"):
        up = down + step
    nearest = np.where(2 * low.astype(np.float64) > float(step), up, down)
    return np.where(nearest < down, values, nearest)
