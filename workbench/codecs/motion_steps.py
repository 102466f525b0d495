"""Particles at successive steps as the kernels of `motion` take them: a sample and its weights, blocks, and their bytes."""

from __future__ import annotations

import dataclasses
import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.curve import below
from workbench.codecs.earlier import Earlier
from workbench.codecs.entropy import slots_of, starts, words_of
from workbench.codecs.inflating import inflated
from workbench.codecs.motion_model import WEIGHTS, Model, location_for, lowest_of, scale_for
from workbench.codecs.prequantised import lattice_step
from workbench.codecs.residuals import CONTEXTS, SYMBOLS, Tables, bits_of, counted, symbol_slots
from workbench.codecs.rounding import largest_magnitude

COMPONENTS = backend.constant("motion.cu", "MOST_COMPONENTS")
IN_TURNS = backend.constant("motion.cu", "IN_TURNS")
IN_BLOCK = 2**15           # residuals of a block, about
LEAST_BLOCK = 256          # particles
SAMPLED, RUN = 3072, 128   # particles of a sample, and of a run in it
MOMENTS = 8                # of a sample

_HEADER = struct.Struct("<dIBH")   # the length of a step, particles of a block, tables, their bytes


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a chunk (steps, particles, components), the two before them, and the box."""

    shape: tuple[int, int, int]
    dtype: np.dtype
    first: int               # the first step that is predicted: 1 where nothing is known before the first
    before: tuple[np.ndarray, ...]   # the latest first
    rate: np.ndarray         # of the shape of a step, or empty
    period: np.ndarray       # the length of the box along each axis, or 0
    top: np.ndarray          # the largest number in it

    @classmethod
    def of(
        cls, shape: tuple[int, int, int], dtype: np.dtype, box: tuple[float, ...] | None, earlier: Earlier | None
    ) -> Self:
        """The steps of an array of this shape after what is known."""
        if box is not None and (len(box) != shape[2] or not all(0 < length < math.inf for length in box)):
            raise CodecFailed(f"motion: the box {box} is not one of particles with {shape[2]} coordinates")
        period = np.array(box if box is not None else [0.0] * shape[2])
        top = np.array([below(length, dtype) if length else 0.0 for length in period.tolist()])
        given = [] if earlier is None else [backend.to_host(each) for each in earlier.values]
        if earlier is not None and earlier.rates is not None:
            with np.errstate(over="ignore"):   # what is then infinite is not predicted from
                given.append(backend.to_host(earlier.rates).astype(dtype, copy=False))
        for each in given:
            if each.size != shape[1] * shape[2] or each.dtype != dtype:
                raise CodecFailed(
                    f"motion: what is known of earlier steps must be {dtype} of {shape[1]:,} particles with {shape[2]} "
                    f"numbers; got {each.dtype} of shape {each.shape}"
                )
        steps = [np.ascontiguousarray(each).reshape(shape[1:]) for each in given]
        rates = steps.pop() if earlier is not None and earlier.rates is not None else np.empty((0, shape[2]), dtype)
        return cls(shape, dtype, 0 if steps else 1, tuple(steps), rates, period, top)

    def room(self) -> np.ndarray:
        """An array for all steps, in which the two before them come first."""
        value = np.empty((self.shape[0] + 2, *self.shape[1:]), self.dtype)
        value[: 2 - len(self.before)] = np.nan
        for place, each in zip((1, 0), self.before, strict=False):
            value[place] = each
        return value

    @property
    def block(self) -> int:
        """How many particles go through all steps together."""
        steps = max(self.shape[0] - self.first, 1)
        return max(IN_BLOCK // (steps * self.shape[2]), LEAST_BLOCK)

    def begin(self, block: int) -> np.ndarray:
        """Where the residuals of each block begin, and the end."""
        ends = np.append(np.arange(0, self.shape[1], block, dtype=np.int64), self.shape[1])
        return ends * ((self.shape[0] - self.first) * self.shape[2])

    def arguments(self, value: np.ndarray, block: int, step: float, bound: float) -> dict[str, Any]:
        """What all kernels take."""
        return {
            "block": block, "particles": self.shape[1], "steps": self.shape[0], "first": self.first,
            "components": self.shape[2], "value": value.reshape(-1), "rates": int(self.rate.size > 0),
            "rate": self.rate.reshape(-1), "period": self.period, "top": self.top,
            "per_period": np.divide(1, self.period, out=np.zeros(self.shape[2]), where=self.period > 0),
            "step": step, "bound": bound, "missed": np.zeros(self.shape[1], np.float32),
        }

    def decoded(self, data: bytes, first: np.ndarray | None) -> np.ndarray:
        """What `Walk.encoded` wrote; `first` is the first step where none is earlier."""
        if len(data) < _HEADER.size:
            raise CodecFailed(f"motion: {len(data)} bytes hold no header: they are damaged")
        step, block, count, length = _HEADER.unpack_from(data)
        model, at = Model.read(data, _HEADER.size)
        sizes = at + length
        if not (0 < step < math.inf and math.isfinite(model.of_rate) and block > 0 and 1 <= count <= CONTEXTS):
            raise CodecFailed("motion: the header describes no steps: it is damaged")
        blocks = -(-self.shape[1] // block)
        body = sizes + 8 * blocks
        if len(data) < body:
            raise CodecFailed(f"motion: {len(data)} bytes are not of {self.shape[1]:,} particles: they are damaged")
        tables = Tables.from_bytes(inflated(data[at:sizes], count * (SYMBOLS + 1)), count)
        firsts = [starts(each) for each in np.frombuffer(data, "<u4", 2 * blocks, sizes).reshape(2, blocks)]
        split = body + 2 * int(firsts[0][-1])
        if len(data) != split + 4 * int(firsts[1][-1]):
            raise CodecFailed(f"motion: {len(data)} bytes are not what their blocks take: they are damaged")
        value, frequency, sound = self.room(), tables.frequency, np.ones(blocks, np.uint8)
        if first is not None:
            value[2] = first
        coded = {
            "word_first": firsts[0], "words": np.frombuffer(data, "<u2", int(firsts[0][-1]), body).astype(np.uint16),
            "rest_first": firsts[1], "rest": np.frombuffer(data, "<u4", int(firsts[1][-1]), split).astype(np.uint32),
            "row": tables.row, "symbol_at": symbol_slots(frequency), "frequency": frequency.reshape(-1),
            "start": slots_of(frequency).reshape(-1), "sound": sound,
        }
        together = min(max(blocks // backend.threads(), 1), IN_TURNS)
        backend.kernel("motion", "decode_motion", self.dtype)(
            -(-blocks // together), {**self.arguments(value, block, step, 0.0), **model.arguments, **coded},
            together=together, blocks=blocks,
        )
        if not sound.all():
            raise CodecFailed(
                f"motion: block {int(np.argmin(sound))} of {blocks} does not end where it should: it is damaged, or "
                "follows other steps"
            )
        return value[2:]


@dataclass(eq=False)
class Walk:
    """Values to encode, and how they are predicted."""

    steps: Steps
    value: np.ndarray   # with the two steps before
    step: float
    bound: float
    model: Model

    @classmethod
    def fitted(cls, steps: Steps, values: np.ndarray, bound: float) -> Self:
        """The weights that suit these values."""
        value = steps.room()
        value[2:] = values
        step = lattice_step(bound, largest_magnitude(values) + bound, steps.dtype)
        walk = cls(steps, value, step, bound, Model.still(1.0))
        return dataclasses.replace(walk, model=walk._sample().fit())

    def begin(self, first: np.ndarray) -> None:
        """Take the first step as it is decoded."""
        self.value[2] = first

    def expected_bytes(self, particles: int) -> int:
        """About what the last step of the first particles takes."""
        part = self._part(self.value[-3:, :particles].copy(), self.steps.rate[:particles])
        code, _ = part._codes(part.steps.block)
        return int(bits_of(counted(code), 8 * self.steps.dtype.itemsize) // 8) + 64

    def encoded(self) -> bytes:
        """The bytes of all steps that are predicted; decoded values take the place of the originals."""
        block = self.steps.block
        begin = self.steps.begin(block)
        code, rest = self._codes(block)
        tables = Tables.of(counted(code))
        words, word_first = words_of(code, begin, tables.frequency[tables.row])
        side = zlib.compress(tables.to_bytes(), 9)
        head = _HEADER.pack(self.step, block, len(tables.shares), len(side)) + self.model.to_bytes() + side
        sizes = np.diff(word_first).astype("<u4"), np.array([len(part) for part in rest], "<u4")
        after = (part.astype("<u4", copy=False) for part in rest)
        return head + b"".join(part.tobytes() for part in (*sizes, words.astype("<u2"), *after))

    def _codes(self, block: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The code of each residual, and for each block the words with the bits that follow."""
        begin, room = self.steps.begin(block), self.steps.dtype.itemsize // 4
        code, used = np.empty(int(begin[-1]), np.uint16), np.empty(len(begin) - 1, np.int64)
        rest = np.empty(room * len(code), np.uint32)
        backend.kernel("motion", "encode_motion", self.steps.dtype)(
            len(begin) - 1, {**self._arguments(block), **self.model.arguments}, room=room, code=code, rest=rest, used=used
        )
        return code, [rest[at : at + count] for at, count in zip((room * begin).tolist(), used.tolist(), strict=False)]

    def _arguments(self, block: int) -> dict[str, Any]:
        return self.steps.arguments(self.value, block, self.step, self.bound)

    def _part(self, value: np.ndarray, rate: np.ndarray) -> Self:
        """Some particles at some steps, the first two of which are known."""
        shape = (len(value) - 2, *value.shape[1:])
        steps = dataclasses.replace(self.steps, shape=shape, first=0, rate=np.ascontiguousarray(rate))
        return dataclasses.replace(self, steps=steps, value=value)

    def _sample(self) -> _Sample:
        """Runs of particles at a few steps, with the steps before."""
        steps, count, _ = self.steps.shape
        back = 3 if steps - self.steps.first > 1 else 2
        moments = np.unique(np.linspace(self.steps.first + back - 2, steps - 1, MOMENTS).astype(np.int64)) + 2
        run = min(RUN, count)
        runs = max(min(SAMPLED // (run * len(moments)), count // run), 1)
        begin = np.linspace(0, count - run, runs).astype(np.int64)
        chosen = (begin[:, None] + np.arange(run)).reshape(-1)
        value = np.concatenate([self.value[m - back : m + 1].take(chosen, axis=1) for m in moments], axis=1)
        rate = np.tile(self.steps.rate.take(chosen, axis=0), (len(moments), 1)) if self.steps.rate.size else self.steps.rate
        return _Sample(self._part(value, rate), run)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Runs of particles: the last step of each is what predictions are fitted to."""

    walk: Walk
    run: int

    def fit(self) -> Model:
        """The weights that suit it."""
        factor = self._of_rate()
        known, wanted = self._survey(Model.still(factor), False)
        model = dataclasses.replace(Model.still(factor), location=location_for(columns(known), wanted.reshape(-1)))
        terms, wanted = self._survey(model, True)
        later = slice(min(1, wanted.shape[-1] - 1), None)
        scale = np.array([scale_for(columns(terms[..., c, :]), wanted[..., c].reshape(-1)) for c in (slice(0, 1), later)])
        return dataclasses.replace(model, scale=scale, lowest=lowest_of(columns(terms[..., :1, :]), scale[0]))

    def _of_rate(self) -> float:
        """The factor that makes rates about as large as displacements."""
        walk = self.walk
        if not walk.steps.rate.size:
            return 0.0
        with np.errstate(all="ignore"):   # particles that did not exist
            moved = np.abs(walk.value[-1].astype(np.float64) - walk.value[-2])
            moved = np.minimum(moved, np.abs(walk.steps.period - moved))   # the short way round
            found = [each[np.isfinite(each)] for each in (moved, np.abs(walk.steps.rate))]
            sizes = [float(np.median(each)) if each.size else 0.0 for each in found]
            factor = float(np.float32(sizes[0] / sizes[1])) if sizes[1] > 0 else 0.0
        return factor if math.isfinite(factor) else 0.0

    def _survey(self, model: Model, of_scales: bool) -> tuple[np.ndarray, np.ndarray]:
        """What is known of each component (or the terms of its scale), and what is wanted, by run and particle."""
        steps, count, components = self.walk.steps.shape
        blocks = -(-count // self.run)
        shape = (blocks, steps, self.run, components)
        seen, wanted = np.empty((*shape, WEIGHTS)), np.empty(shape)
        backend.kernel("motion", "survey_motion", self.walk.steps.dtype)(
            blocks, {**self.walk._arguments(self.run), **model.arguments}, of_scales=int(of_scales),
            seen=seen.reshape(-1), wanted=wanted.reshape(-1),
        )
        return seen[:, -1], wanted[:, -1]


def columns(seen: np.ndarray) -> np.ndarray:
    """What was seen of each number, a row for each weight."""
    return np.ascontiguousarray(seen.reshape(-1, seen.shape[-1]).T)
