"""The built-in codec for fields: interpolation from coarse grids to fine ones, coded by local activity.

Good codecs predict a value from its neighbours and code what is left. Most of what is left to gain is in the coding: a
field is smooth here and rough there, and a residual is cheap if it is known beforehand how large it may be. So a second
prediction is made for every value, of the scale of its residual, from the differences between its neighbours and from
their own residuals, which the decoder knows too; the scale chooses one of a few tables of frequencies. The weights of both
predictions are fitted to each pass over the grid (`interpolation_fit.py`) and stored.

A trained model (`interpolation_training.py`) corrects both predictions of every value. Whether it helps is tried: each
array is encoded with it and without, and the smaller code is kept.

The decoder repeats the arithmetic of the encoder bit for bit, on every machine (`kernels/interpolation.cu`), and checks
that it did (`interpolation_stream.py`).
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn, Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import Codec, CodecFailed, Tolerance, option
from workbench.codecs.interpolation_fit import SURVEY, Sample, Weights
from workbench.codecs.interpolation_grid import AXES, Axes, Pass, coarsest, every, four_axes, passes
from workbench.codecs.interpolation_model import NETWORK, Model, require_dimensions, require_model
from workbench.codecs.interpolation_stream import (
    BLOCK_BITS,
    Blocks,
    Coded,
    bits_of,
    block_bits,
    blocks_of,
    counted,
    targets_before,
)
from workbench.codecs.pieces import InPieces, split
from workbench.codecs.prequantised import Prequantised, lattice_step
from workbench.codecs.rounding import largest_magnitude
from workbench.errors import WorkbenchError

SAMPLED = 3000        # targets of a pass to which its weights are fitted, at most,
TRIED_SAMPLED = 1000  # and in a trial;
RARE, MORE = 0.5, 4   # where a value takes fewer bits than this, so many times as many: most residuals tell nothing
LEAST_SAMPLED = 250   # with fewer, nothing is fitted
MANY = 20_000         # targets of a pass that is worth the fit of a second location
COPIES = 3            # of a model in an archive: in the document of the array, and in the root, twice
TRIED = 2**16         # values with which axes to freeze are tried,
TRIED_BITS = 13       # in blocks of so many targets

_HEADER = struct.Struct("<ddBII")   # step, mean, frozen axes (a bit each), bytes of the coarsest points and of tables
_MODELLED = 1 << AXES               # beside the frozen axes: a model was used, whose checksum follows the header
_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True)
class Interpolation(InPieces):
    """Interpolated locations, and residuals coded by their expected scale.

    >>> values = np.sin(np.arange(4096.0) / 50).reshape(64, 64)
    >>> codec = Interpolation()
    >>> data = codec.encode(values, Tolerance(absolute=0.01))
    >>> bool(abs(codec.decode(data, values.shape, values.dtype) - values).max() <= 0.01), len(data) < 700
    (True, True)
    """

    id: ClassVar[str] = "interpolation"
    title: ClassVar[str] = "Interpolation: the built-in codec for fields"
    contained: ClassVar[bool] = True

    frozen: tuple[int, ...] | None = option(None, "the axes along which nothing is interpolated (none: by trial)")
    block: int | None = option(
        None, "the targets in a block, which is decoded in order (none: by trial)",
        minimum=1 << BLOCK_BITS[0], maximum=1 << BLOCK_BITS[-1],
    )
    model: str | None = option(None, "a trained model as text, used where it saves room (none: fitted weights alone)")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.model, Model):
            object.__setattr__(self, "model", self.model.text)
        if self.block is not None and self.block.bit_count() > 1:
            raise WorkbenchError(f"{self.id}: block must be a power of two; got {self.block}")
        if self.frozen is not None:
            self._check_frozen(self.frozen)
        if self.model is not None and self.frozen not in (None, frozen := Model.from_text(self.model).frozen):
            raise WorkbenchError(f"{self.id}: frozen must be that of the model, {frozen}; got {self.frozen}: leave it out")

    def _check_frozen(self, frozen: Axes) -> None:
        whole = isinstance(frozen, tuple) and all(type(axis) is int and 0 <= axis < AXES for axis in frozen)
        if not whole or len(set(frozen)) < len(frozen):
            raise WorkbenchError(f"{self.id}: frozen must be different axes, numbers from 0 to 3; got {frozen!r}")

    @property
    def _trained(self) -> Model | None:
        return None if self.model is None else Model.from_text(self.model)

    def tuned(self, sample: np.ndarray, tolerance: Tolerance) -> Self:
        """The codec with the frozen axes and the size of blocks that suit these values; refused if its model does not."""
        if self._trained is not None:
            require_dimensions(self._trained, sample.ndim)
        crop = self._tried(sample, tolerance)
        if crop is None:
            return self
        frozen, bits = self._plan(crop, tolerance.value)
        return replace(self, frozen=frozen, block=1 << bits)

    def worthwhile(self, sample: np.ndarray, tolerance: Tolerance, values: int) -> Self:
        """The codec without its model, where that takes more room in an archive than it saves."""
        if self._trained is None:
            return self
        require_dimensions(self._trained, sample.ndim)
        crop, without = self._tried(sample, tolerance), replace(self, model=None)
        if crop is None:
            return self
        plain, modelled = (len(codec._encode_piece(crop, tolerance)) for codec in (without, self))
        return self if (plain - modelled) / crop.size * values > COPIES * len(self._trained.text) else without

    def _tried(self, sample: np.ndarray, tolerance: Tolerance) -> np.ndarray | None:
        """The middle of a sample with finite values alone; None if nothing can be tried."""
        takes = sample.dtype.name in self.dtypes and sample.ndim in self.dimensions and sample.size > 0
        if not takes or tolerance.absolute is None or tolerance.value == 0:
            return None
        crop = _crop(sample)
        valid = np.isfinite(crop)
        if not valid.any():
            return None
        crop = np.where(valid, crop, np.median(crop[valid])).astype(sample.dtype)
        try:
            lattice_step(tolerance.value, largest_magnitude(crop), crop.dtype)
        except WorkbenchError:   # this tolerance is too small for a lattice, as encoding will say
            return None
        return crop

    def coarse(self, spacing: int) -> Codec:
        """A decoder that leaves out the passes below this spacing."""
        return _Coarse(self, spacing)

    def remark(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> str | None:
        """Whether the model was used."""
        if self.model is None:
            return None
        parts = split(self.id, data, shape, dtype)
        used = sum(_HEADER.unpack_from(part)[2] >= _MODELLED for _, part in parts)
        return "coded with the model" if used else "coded without the model, with which they would be larger"

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        bound = tolerance.absolute_for(values)
        step = lattice_step(bound, largest_magnitude(values), values.dtype)
        if max(self.frozen or (), default=0) >= values.ndim:
            raise CodecFailed(f"frozen axes must be among the {values.ndim} of the field; got {self.frozen!r}")
        frozen, bits = self._plan(_crop(values), bound)
        found = _Encoding.of(values, frozen, bits, bound, step).to_bytes()
        if self._trained is None:
            return found
        require_dimensions(self._trained, values.ndim)
        return _smaller(found, _Encoding.of(values, frozen, bits, bound, step, model=self._trained).to_bytes())

    def _plan(self, crop: np.ndarray, bound: float) -> tuple[Axes, int]:
        """The axes to freeze, and the size of blocks; as far as the options leave them open, by trial on a part.

        Axes are frozen from the roughest on, as long as that makes the trial smaller.
        """
        fixed = self.frozen if self._trained is None else self._trained.frozen
        if fixed is not None and self.block is not None:
            return fixed, self.block.bit_length() - 1
        step, rough = lattice_step(bound, largest_magnitude(crop), crop.dtype), _by_roughness(crop)
        tried = [tuple(sorted(rough[:count])) for count in range(crop.ndim)] if fixed is None else [fixed]
        best, fewest = tried[0], math.inf
        for frozen in tried:
            bits = _Encoding.of(crop, frozen, TRIED_BITS, bound, step, TRIED_SAMPLED).bits
            if bits >= fewest:
                break
            best, fewest = frozen, bits
        return best, block_bits(fewest, crop.size) if self.block is None else self.block.bit_length() - 1

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return _decoded(data, shape, dtype, self._trained, 1).reshape(shape)


@dataclass(frozen=True)
class _Coarse(Codec):
    """Decodes the points with a spacing; the others are 0."""

    id: ClassVar[str] = "coarse interpolation"
    title: ClassVar[str] = "The coarse points of an interpolated field"

    codec: Interpolation
    spacing: int

    def _encode(self, values: Array, tolerance: Tolerance) -> NoReturn:
        raise CodecFailed(f"{self.id} only decodes: encode with {self.codec.id}")

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        parts = split(self.codec.id, data, shape, dtype)
        if len(parts) > 1:   # pieces are cut anywhere
            return self.codec.decode(data, shape, dtype)
        return _decoded(parts[0][1], shape, dtype, self.codec._trained, self.spacing).reshape(shape)


@dataclass(frozen=True, eq=False)
class _Encoding:
    """A field after all passes of the encoder."""

    frozen: Axes             # among four axes
    step: float
    mean: float
    coarse: bytes            # the points that are not interpolated
    weights: list[Weights]   # of each pass,
    new: list[bool]          # and whether they are not those of an earlier pass
    coded: Coded
    deviation: np.ndarray    # of each value from its location, in steps
    model: Model | None = None

    @classmethod
    def of(
        cls, values: np.ndarray, frozen: Axes, bits: int, bound: float, step: float, sampled: int = SAMPLED,
        model: Model | None = None,
    ) -> _Encoding:
        """All passes over these values; `frozen` is among their own axes."""
        shape = four_axes(values.shape)
        frozen = tuple(axis + len(shape) - values.ndim for axis in frozen)
        value, original = np.zeros(shape, values.dtype), values.reshape(shape)
        places = every(coarsest(shape, frozen), frozen)
        coarse, value[places] = _coarse_there_and_back(np.ascontiguousarray(original[places]), bound)
        order = passes(shape, frozen)
        encoder = _Encoder(original.reshape(-1), value.reshape(-1), shape, bound, step, _mean(values), sampled)
        before, begin = targets_before(order), blocks_of(order, 1 << bits)[0]
        code, number = np.empty(before[-1], np.uint16), np.empty(before[-1], np.int32)
        network = _networks(model, order)
        weights, new = [], []
        for each, (a, b), own in zip(order, itertools.pairwise(before), network, strict=True):
            inside = begin[(begin > a) & (begin < b)] - a
            chosen, is_new = encoder.run(each, np.concatenate([[0], inside, [b - a]]), own, code[a:b], number[a:b])
            weights.append(chosen)
            new.append(is_new)
        coded = Coded(order, bits, code, number, value.reshape(-1), np.array(shape, np.int64))
        return cls(frozen, step, encoder.mean, coarse, weights, new, coded, encoder.deviation, model)

    @property
    def bits(self) -> float:
        """About how many bits it takes."""
        return bits_of(counted(self.coded.code), self.coded.value_bits) + 8 * len(self.coarse)

    def to_bytes(self) -> bytes:
        """Everything."""
        side, body = Blocks.of(self.coded).to_bytes()
        each = zip(self.weights, self.coded.passes, self.new, strict=True)
        stored = [weights.stored(of) for weights, of, is_new in each if is_new]
        kept = np.packbits(np.array(self.new, bool)).tobytes()
        tables = zlib.compress(b"".join([kept, *stored, side]), 9)
        mask = sum(1 << axis for axis in self.frozen) | (_MODELLED if self.model else 0)
        head = _HEADER.pack(self.step, self.mean, mask, len(self.coarse), len(tables))
        named = _CHECKSUM.pack(self.model.checksum) if self.model else b""
        return b"".join([head, named, self.coarse, tables, body])


class _Encoder:
    """Runs passes; each leaves the decoded values and the sizes of residuals for those after it."""

    def __init__(
        self, original: np.ndarray, value: np.ndarray, shape: Axes, bound: float, step: float, mean: float, sampled: int
    ) -> None:
        self.original, self.value, self.bound, self.step, self.mean = original, value, bound, step, mean
        self.sampled, self.rate = sampled, math.inf
        self.deviation = np.zeros(value.size, value.dtype)
        self.shape = np.array(shape, np.int64)
        self.latest: dict[int, Weights] = {}   # of passes with so many odd axes

    def run(
        self, of: Pass, begin: np.ndarray, network: np.ndarray, code: np.ndarray, number: np.ndarray
    ) -> tuple[Weights, bool]:
        """One pass, in blocks that begin at these targets; returns its weights, and whether they are new."""
        start = self.latest.get(key := _kind(of)) or Weights.usual(of)
        chosen, new = self._chosen(of, start)
        self.latest[key] = chosen
        backend.kernel("interpolation", "quantise_targets", self.value.dtype)(
            len(begin) - 1, begin, of.description(), self._for_kernel(chosen), network, self.shape, self.bound, self.step,
            self.original, self.value, self.deviation, code, number,
        )
        return chosen, new

    def _chosen(self, of: Pass, start: Weights) -> tuple[Weights, bool]:
        """New weights, if they save more than they take."""
        if of.targets < 4 * LEAST_SAMPLED:
            return start, False
        sample = self._sample(of, start)
        if len(sample.offset) < LEAST_SAMPLED:
            return start, False
        with np.errstate(all="ignore"):   # weights that are not finite are never better
            located = [sample.located(start)]
            if of.targets >= MANY and self.sampled == SAMPLED:   # a trial is quicker without
                located.append(Weights.linear(of, start))
            found, sample = min((self._foreseen(of, each) for each in located), key=lambda pair: pair[1].bits(pair[0]))
        self.rate = sample.bits(found)
        saved = (sample.bits(start) - self.rate) * of.targets
        return (found, True) if saved > 8 * len(found.stored(of)) else (start, False)

    def _foreseen(self, of: Pass, located: Weights) -> tuple[Weights, Sample]:
        """Weights with this location, and the sample that tells the deviations from it."""
        sample = self._sample(of, located)
        return sample.foreseen(located), sample

    def _sample(self, of: Pass, weights: Weights) -> Sample:
        """What is seen of some targets."""
        target = _spread_out(of.targets, self.sampled * (MORE if self.rate < RARE else 1))
        seen = np.empty((len(target), SURVEY))
        backend.kernel("interpolation", "survey_targets", self.value.dtype)(
            len(target), target, of.description(), self._for_kernel(weights), self.shape, self.step, self.original,
            self.value, self.deviation, seen.reshape(-1),
        )
        return Sample.of_survey(of, seen, self.mean, self.step / 2)

    def _for_kernel(self, weights: Weights) -> np.ndarray:
        return weights.for_kernel(self.mean, self.step / 2, self.value.dtype)


def _kind(of: Pass) -> int:
    """Passes that can use the same weights: those with the same odd axes and as many pairs."""
    return sum(1 << axis for axis in of.odd) | len(of.pairs) << 4


def _spread_out(targets: int, most: int) -> np.ndarray:
    """At most so many of the targets, in no regular pattern."""
    if targets <= most:
        return np.arange(targets)
    return np.sort(np.arange(most, dtype=np.int64) * 2654435761 % targets)


def _mean(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):   # sums of numbers near the largest
        mean = float(values.mean(dtype=np.float64))
    return float(values.dtype.type(mean)) if math.isfinite(mean) else 0.0


def _coarse_there_and_back(points: np.ndarray, bound: float) -> tuple[bytes, np.ndarray]:
    """The points that are not interpolated: encoded, and decoded again."""
    codec = Prequantised()
    data = codec.encode(points, Tolerance(absolute=bound))
    return data, codec.decode(data, points.shape, points.dtype)


def _networks(model: Model | None, order: Sequence[Pass]) -> np.ndarray:
    """A row for each pass: its network, or none."""
    return np.zeros((len(order), NETWORK), np.float32) if model is None else model.for_kernel(order)


def _smaller(plain: bytes, modelled: bytes) -> bytes:
    return modelled if len(modelled) < len(plain) else plain


def _decoded(
    data: bytes, shape: Sequence[int], dtype: np.dtype, trained: Model | None, spacing: int
) -> np.ndarray:
    """The values whose coordinates are multiples of the spacing, except along frozen axes; the others are 0."""
    if len(data) < _HEADER.size:
        raise CodecFailed(f"an interpolated field has a header of {_HEADER.size} bytes; got {len(data)}: truncated")
    step, mean, mask, coarse_size, tables_size = _HEADER.unpack_from(data)
    if not (math.isfinite(step) and step > 0 and math.isfinite(mean) and mask < 2 * _MODELLED):
        raise CodecFailed(f"an interpolated field needs a positive step; got {step} and axes {mask:#b}: damaged")
    view, four, model = memoryview(data)[_HEADER.size :], four_axes(shape), None
    frozen = tuple(axis for axis in range(len(four)) if mask >> axis & 1)
    if mask & _MODELLED:
        model, view = _model_for(view, trained, shape, frozen), view[_CHECKSUM.size :]
    value, order = np.zeros(four, dtype), passes(four, frozen)
    places = every(coarsest(four, frozen), frozen)
    value[places] = Prequantised().decode(bytes(view[:coarse_size]), value[places].shape, dtype)
    side = _inflated(view[coarse_size : coarse_size + tables_size], order)
    weights, side = _weights_from(side, order)
    blocks = Blocks.from_bytes(side, view[coarse_size + tables_size :], order)
    numbers = np.array([each.for_kernel(mean, step / 2, dtype) for each in weights], dtype).reshape(-1)
    blocks.decode(order, numbers, _networks(model, order), step, value, spacing)
    return value


def _model_for(view: memoryview, trained: Model | None, shape: Sequence[int], frozen: Axes) -> Model:
    """The model with which a field of this shape was encoded."""
    if len(view) < _CHECKSUM.size:
        raise CodecFailed("an interpolated field must state the checksum of its model: truncated")
    model = require_model(trained, _CHECKSUM.unpack_from(view)[0])
    if model.dimensions != len(shape) or frozen != tuple(axis + AXES - len(shape) for axis in model.frozen):
        raise CodecFailed(f"the model is for fields with {model.dimensions} axes, not for {shape} and these frozen ones")
    return model


def _inflated(data: memoryview, order: Sequence[Pass]) -> bytes:
    """The tables; no more of them than these passes can have."""
    most = 2**17 + 64 * len(order) + 12 * sum(1 + (each.targets >> 12) for each in order)
    decompressor = zlib.decompressobj()
    try:
        found = decompressor.decompress(data, most)
    except zlib.error as error:
        raise CodecFailed(f"the tables of an interpolated field cannot be inflated: {error}: damaged") from error
    if not decompressor.eof:
        raise CodecFailed(f"the tables of an interpolated field must have at most {most} bytes: damaged")
    return found


def _weights_from(side: bytes, order: Sequence[Pass]) -> tuple[list[Weights], bytes]:
    """The weights of each pass, and what follows them."""
    at = -(-len(order) // 8)
    if len(side) < at:
        raise CodecFailed("the weights of an interpolated field are truncated")
    new = np.unpackbits(np.frombuffer(side, np.uint8, at))
    latest: dict[int, Weights] = {}
    found = []
    for each, is_new in zip(order, new, strict=False):
        if is_new:
            latest[_kind(each)], at = Weights.read(side, at, each)
        found.append(latest.setdefault(_kind(each), Weights.usual(each)))
    return found, side[at:]


def _crop(values: np.ndarray, most: int = TRIED) -> np.ndarray:
    """The middle of the field, with about so many values: axes are cut to one length, short axes stay whole."""
    length = max(values.shape)
    while math.prod(min(size, length) for size in values.shape) > most:
        length -= max(length // 16, 1)
    cuts = ((size - min(size, length)) // 2 for size in values.shape)
    return np.ascontiguousarray(values[tuple(slice(cut, cut + length) for cut in cuts)])


def _by_roughness(values: np.ndarray) -> list[int]:
    """The axes along which values differ most from those between their neighbours first."""
    def roughness(axis: int) -> float:
        lines = np.moveaxis(values, axis, 0).astype(np.float64)
        if len(lines) < 3:
            return math.inf
        with np.errstate(over="ignore"):
            return float(np.abs(lines[1:-1] - (lines[:-2] + lines[2:]) / 2).mean())

    return sorted(range(values.ndim), key=roughness, reverse=True)
