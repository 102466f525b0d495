"""Codecs for the tests: one honest and plain, one that reorders points, and those that do every wrong thing."""

from __future__ import annotations

import itertools
import math
import zlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.codecs import Codec, ParticleCodec, Tolerance
from workbench.errors import WorkbenchError


@dataclass(frozen=True)
class Rounding(Codec):
    """Rounds to multiples of twice the tolerance, in float64; honest, but bound to fail where that overflows."""

    id: ClassVar[str] = "rounding"
    title: ClassVar[str] = "rounding"

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        step = 2 * tolerance.absolute
        with np.errstate(all="ignore"):
            rounded = np.rint(values.astype(np.float64) / step) * step
        return zlib.compress(rounded.tobytes(), 1)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.frombuffer(zlib.decompress(data), np.float64).reshape(shape).astype(dtype)


@dataclass(frozen=True)
class RelativeRounding(Codec):
    """Cuts off mantissa bits: a codec that knows relative errors, and takes NaN."""

    id: ClassVar[str] = "relative-rounding"
    title: ClassVar[str] = "relative rounding"
    relative: ClassVar[bool] = True
    finite: ClassVar[bool] = False

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        mantissa = {4: 23, 8: 52}[values.itemsize]
        kept = min(max(math.ceil(-math.log2(tolerance.relative)), 0), mantissa) if tolerance.relative else mantissa
        word = np.dtype(f"u{values.itemsize}").type
        return zlib.compress((values.view(word) >> word(mantissa - kept) << word(mantissa - kept)).tobytes(), 1)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.frombuffer(zlib.decompress(data), dtype).reshape(shape).copy()


@dataclass(frozen=True)
class Sorting(ParticleCodec):
    """Rounds points and returns them sorted by their first coordinate."""

    id: ClassVar[str] = "sorting"
    title: ClassVar[str] = "sorting"

    @property
    def reorders(self) -> bool:
        return True

    def permutation(self, positions: np.ndarray, data: bytes) -> np.ndarray:
        return np.argsort(positions[:, 0], kind="stable")

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return Rounding()._encode(values[self.permutation(values, b"")], tolerance)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return Rounding()._decode(data, shape, dtype)


@dataclass(frozen=True)
class Misbehaving(Codec):
    """Stores the values, and then does something wrong."""

    id: ClassVar[str] = "misbehaving"
    title: ClassVar[str] = "misbehaving"

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return zlib.compress(values.tobytes(), 1)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return self.spoiled(np.frombuffer(zlib.decompress(data), dtype).reshape(shape).copy())

    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return values


class ReturnsZeros(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return np.zeros_like(values)


class ReturnsAConstant(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return np.full_like(values, 12345.678)


class Negates(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return -values


class AddsNoise(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng(values.size).normal(size=values.shape)
        with np.errstate(all="ignore"):
            return (values * (1 + noise) + noise).astype(values.dtype)


class SpoilsOne(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        values.reshape(-1)[values.size // 2] = 1e9
        return values


class ReturnsNaN(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return np.full_like(values, np.nan)


class ReturnsInfinities(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return np.full_like(values, -np.inf)


class Shifts(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return np.roll(values.reshape(-1), 1).reshape(values.shape)


class ReturnsAnotherType(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float16 if values.dtype == np.float32 else np.float32)


class ReturnsTooFew(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(-1)[:-1]


class ReturnsNoArray(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return None


class ReturnsReadOnly(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        values.flags.writeable = False
        return values


class ReturnsFortranOrder(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return np.asfortranarray(values)


class RaisesInEncode(Misbehaving):
    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        raise RuntimeError("a native library gave up")


class RaisesInDecode(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        raise KeyError("lost")


class RefusesInDecode(Misbehaving):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        raise WorkbenchError("the bytes are not mine")


class WritesToItsInput(Misbehaving):
    """Would be found right by a comparison with what it has left of the original."""

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        values[...] = 0
        return super()._encode(values, tolerance)


class WritesNothing(Misbehaving):
    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return b""


class WritesTooMuch(Misbehaving):
    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return zlib.compress(values.tobytes(), 0) + bytes(10 * values.nbytes)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return self.spoiled(np.frombuffer(zlib.decompressobj().decompress(data), dtype).reshape(shape))


class EncodesDifferentlyEachTime(Misbehaving):
    """Its bytes differ from call to call; the values that they stand for do not."""

    calls: ClassVar[itertools.count] = itertools.count()

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return zlib.compress(values.tobytes(), 1) + str(next(self.calls)).encode().rjust(20)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return super()._decode(data[:-20], shape, dtype)


MISBEHAVING = sorted(Misbehaving.__subclasses__(), key=Misbehaving.name.__func__)
ALWAYS_RAISE = [RaisesInDecode, RaisesInEncode, WritesNothing, WritesToItsInput]   # whatever the values are


class LosesPoints(Sorting):
    def permutation(self, positions: np.ndarray, data: bytes) -> np.ndarray:
        return np.zeros(len(positions), np.int64)


class ForgetsAPoint(Sorting):
    def permutation(self, positions: np.ndarray, data: bytes) -> np.ndarray:
        return np.arange(len(positions) - 1)


class CannotSayWhere(Sorting):
    def permutation(self, positions: np.ndarray, data: bytes) -> np.ndarray:
        if data:
            raise RuntimeError("no idea")
        return np.arange(len(positions))


class SaysTheWrongPlaces(Sorting):
    def permutation(self, positions: np.ndarray, data: bytes) -> np.ndarray:
        return np.arange(len(positions)) if data else np.argsort(positions[:, 0], kind="stable")
