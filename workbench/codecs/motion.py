"""Particles in their own order, predicted from earlier times: the built-in codec for series and for trajectories.

Where a particle is going to be follows from where it was, and from its velocity if that is known. `following` gives the
decoded values of one or two earlier steps, and of the velocities, to the codec; arrays (steps, particles, components), a
batch of frames, predict each frame from those before. What predictions miss is rounded to multiples of twice the
tolerance and coded (`kernels/motion.cu`); how to predict is fitted to each chunk (`motion_model.py`).

Where time does not help, and where there is nothing earlier, particles are coded as if there were no time: positions by the
lattice codec in kept order, other numbers by `prequantised`. A frame of molecules often takes less room so than beside a
frame that was a long time ago. The first byte says which it is. Frames whose cells are known (`in_cells`) are predicted
as if atoms went on through faces (`faces.py`).
"""

from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import Codec, CodecFailed, Imitation, ParticleCodec, Tolerance, option
from workbench.codecs.columns import Columns
from workbench.codecs.earlier import Earlier
from workbench.codecs.faces import Faces
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.motion_steps import COMPONENTS, Steps, Walk
from workbench.codecs.prequantised import Prequantised
from workbench.codecs.rounding import largest_magnitude
from workbench.data import Particles

TRIED = 4096            # particles with which time is compared with space
CLEAR = 0.85            # of the size without time, below which nothing else is tried
NO_DOUBT = 0.4          # of the logarithms of differences; hardly any codec takes less than half, even for molecules
IN_SPACE, IN_TIME, THROUGH_FACES = 0, 1, 2   # the first byte; behind the last, faces and then bytes in time
ROUNDED = 0.1           # of a bound may be lost where periods are added and taken off
_LENGTH = struct.Struct("<Q")   # of the first frame, where it has no earlier ones


@dataclass(frozen=True)
class Motion(ParticleCodec):
    """Particles in kept order at successive times, each predicted from its own past, rANS.

    `box` has the lengths of the periodic box of positions: a particle that leaves through a face comes back on the other.

    >>> positions = np.random.default_rng(0).random((1000, 3))
    >>> earlier = Earlier((positions, positions - 0.1), (2.0, 1.0, 0.0))
    >>> codec = Motion().following(earlier)
    >>> data = codec.encode(positions + 0.1, Tolerance(absolute=0.001))
    >>> decoded = codec.decode(data, (1000, 3), "float64")
    >>> bool(abs(decoded - positions - 0.1).max() <= 0.001), len(data) < 300
    (True, True)
    """

    id: ClassVar[str] = "motion"
    title: ClassVar[str] = "Motion: kept order, predicted from earlier times"
    look: ClassVar[Look | None] = Look("#962dff", "hex", "dotted")
    explanation: ClassVar[str] = (
        "the built-in codec for series of snapshots and trajectories: each particle is predicted from where it was before"
    )
    imitation: ClassVar[Imitation] = "lattice"
    module: ClassVar[str | None] = "pcodec"
    dimensions: ClassVar[tuple[int, ...]] = (1, 2, 3)
    contained: ClassVar[bool] = True
    predicts_in_time: ClassVar[bool] = True

    box: tuple[float, ...] | None = option(None, "the lengths of the periodic box")

    earlier: Earlier | None = dataclasses.field(default=None, init=False, repr=False, compare=False)
    cells: np.ndarray | None = dataclasses.field(default=None, init=False, repr=False, compare=False)

    def following(self, earlier: Earlier) -> Self:
        """The codec for the particles whose values at earlier times are these, as they are decoded."""
        bound = dataclasses.replace(self)
        object.__setattr__(bound, "earlier", earlier)
        return bound

    def in_cells(self, edges: np.ndarray) -> Self:
        """The codec for frames in these periodic cells, edges as rows (frames, 3, 3); bytes say all that decoders need."""
        bound = dataclasses.replace(self)
        object.__setattr__(bound, "cells", edges)
        return bound

    def prepared(self, whole: Particles, order: str = "keep") -> Self:
        """The codec for any part of these particles."""
        return dataclasses.replace(self, box=whole.box)

    def remark(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> str | None:
        """Whether the chunk was predicted in time, if it could be."""
        if self.is_predicted(data, shape, dtype):
            return "predicted in time"
        return "coded without time" if self._can_predict(shape) else None

    def is_predicted(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> bool:
        """Whether each particle was predicted from where it was before."""
        return data[:1] != bytes([IN_SPACE])

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        if not self._can_predict(values.shape):
            return self._in_space(values, tolerance)
        absolute = Tolerance(absolute=tolerance.absolute_for(values))
        return self._through_faces(values, absolute) or self._predicted(values, values, absolute)[0]

    def _through_faces(self, values: np.ndarray, absolute: Tolerance) -> bytes | None:
        """The bytes of frames of which atoms leave through faces; None where none does, or time does not help."""
        if self.cells is None or self.earlier is not None or self.box is not None or values.ndim != 3:
            return None
        faces = Faces.of(values, self.cells, absolute.value)
        if faces is None:
            return None
        gone = faces.without(values)
        lost = 2 * float(np.finfo(values.dtype).eps) * largest_magnitude(gone)
        if not lost <= ROUNDED * absolute.value:
            return None
        data, decoded = self._predicted(gone, values, Tolerance(absolute=absolute.value - lost))
        return None if decoded is None else bytes([THROUGH_FACES]) + faces.to_bytes(decoded) + data

    def _predicted(
        self, values: np.ndarray, alone: np.ndarray, absolute: Tolerance
    ) -> tuple[bytes, np.ndarray | None]:
        """The bytes in time and what is decoded from them, or those without time (of `alone`) if they are fewer."""
        steps = self._steps(values.shape, values.dtype)
        walk, key = Walk.fitted(steps, values.reshape(steps.shape), absolute.value), b""
        tried = np.ascontiguousarray(alone.reshape(steps.shape)[-1, :TRIED])
        time = walk.expected_bytes(TRIED)
        space = time / NO_DOUBT
        if time > NO_DOUBT * _bytes_of_differences(tried, absolute.value):
            space = len(self._in_space(tried, absolute))
        if time > space / CLEAR:
            return self._in_space(alone, absolute), None
        if steps.first:
            key = _alone(self.box, steps.shape[1:]).encode(np.ascontiguousarray(values[0]), absolute)
            walk.begin(_alone(self.box, steps.shape[1:]).decode(key, steps.shape[1:], values.dtype))
        data = bytes([IN_TIME]) + _LENGTH.pack(len(key)) + key + walk.encoded()
        if time >= space * CLEAR and len(other := self._in_space(alone, absolute)) < len(data):
            return other, None
        return data, walk.value[2:]

    def _in_space(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        flat = values.reshape(_flat(values.shape))
        return bytes([IN_SPACE]) + _alone(self.box, flat.shape).encode(flat, tolerance)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if data[:1] == bytes([IN_SPACE]):
            return _alone(self.box, _flat(shape)).decode(data[1:], _flat(shape), dtype).reshape(shape)
        if data[:1] == bytes([THROUGH_FACES]):
            end = 1 + Faces.end(data[1:])
            if len(shape) != 3 or shape[2] != 3 or data[end : end + 1] != bytes([IN_TIME]):
                raise CodecFailed(f"{self.id}: faces are not those of frames predicted in time: the bytes are damaged")
            gone = self._decode(data[end:], shape, dtype)
            return Faces.read(data[1:], gone).within(gone)
        if data[:1] != bytes([IN_TIME]) or len(data) < 1 + _LENGTH.size:
            raise CodecFailed(f"{self.id}: {len(data)} bytes begin with {data[:1]!r}: they are damaged")
        if not self._can_predict(shape):
            raise CodecFailed(
                "these particles are predicted from earlier steps, which were not given: open the folder of the series"
            )
        steps, behind = self._steps(shape, dtype), 1 + _LENGTH.size + _LENGTH.unpack_from(data, 1)[0]
        first = None
        if steps.first:
            first = _alone(self.box, steps.shape[1:]).decode(data[1 + _LENGTH.size : behind], steps.shape[1:], dtype)
        return steps.decoded(data[behind:], first).reshape(shape)

    def _can_predict(self, shape: tuple[int, ...]) -> bool:
        """Whether there is something earlier, of particles with as few components as kernels take."""
        components = shape[-1] if len(shape) > 1 else 1
        return components <= COMPONENTS and (self.earlier is not None or (len(shape) == 3 and shape[0] > 1))

    def _steps(self, shape: tuple[int, ...], dtype: np.dtype) -> Steps:
        steps, particles, components = shape if len(shape) == 3 else (1, *shape, 1)[:3]
        return Steps.of((steps, particles, components), dtype, self.box, self.earlier)


def _flat(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Frames one after the other: what a coder learns of molecules serves all of them."""
    return (shape[0] * shape[1], shape[2]) if len(shape) == 3 else shape


def _bytes_of_differences(table: np.ndarray, bound: float) -> float:
    """The logarithms of differences between successive rows, in steps of a lattice, with their signs."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.abs(np.diff(table.astype(np.float64), axis=0)) / (2 * bound)
    return float(np.log2(1 + 2 * np.minimum(steps, 2.0**60)).sum()) / 8


def _alone(box: tuple[float, ...] | None, shape: tuple[int, ...]) -> Codec:
    """The codec of numbers without time."""
    if len(shape) == 1:
        return Prequantised()
    return LatticeCodec(order="keep", box=box) if shape[1] in (2, 3) else Columns(Prequantised())
