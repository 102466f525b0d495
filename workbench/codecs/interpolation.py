"""The built-in codec for fields: interpolation from coarse grids to fine ones, coded by local activity.

Good codecs predict a value from its neighbours and code what is left. Most of what is left to gain is in the coding: a
field is smooth here and rough there, and a residual is cheap if it is known beforehand how large it may be. So a second
prediction is made for every value, of the scale of its residual, from the differences between its neighbours and from
their own residuals, which the decoder knows too; the scale chooses one of a few tables of frequencies. The weights of both
predictions are fitted to each pass over the grid (`interpolation_fit.py`) and stored.

A trained model (`interpolation_training.py`) corrects both predictions of every value. Whether it helps is tried: each
array is encoded with it and without, and the smaller code is kept.

Steps, classes and counts are not interpolated well. So each piece is coded on a lattice, too (`prequantised.py`,
which takes a small part of the time), and the smaller code is kept.

A field of a series may follow the same field some steps earlier: then multiples of these steps are taken away before it is
interpolated (`interpolation_time.py`), pass by pass, where that saves bits.

The decoder repeats the arithmetic of the encoder bit for bit, on every machine (`kernels/interpolation.cu`), and checks
that it did (`interpolation_stream.py`).
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from workbench.backend import Array
from workbench.charts.looks import Look
from workbench.codecs.codec import Codec, CodecFailed, Imitation, Tolerance, option
from workbench.codecs.earlier import Earlier
from workbench.codecs.gaps import repeated
from workbench.codecs.interpolation_decoding import decoded
from workbench.codecs.interpolation_encoding import MOST_DEAD, SAMPLED, Encoding, Trial
from workbench.codecs.interpolation_grid import AXES, EQUAL_BOUND, EQUAL_ERROR, FINER, Axes
from workbench.codecs.interpolation_model import Model, require_dimensions
from workbench.codecs.interpolation_stream import BLOCK_BITS, IN_TIME, INTERPOLATED, ON_LATTICE, Header, block_bits
from workbench.codecs.interpolation_time import Known
from workbench.codecs.lattice_numbers import LEAST_LEVEL, may_repeat, pack_numbers
from workbench.codecs.pieces import InPieces, split
from workbench.codecs.prequantised import Prequantised, lattice_numbers, lattice_step
from workbench.codecs.rounding import largest_magnitude
from workbench.errors import WorkbenchError

AIMS = ("bound", "psnr")
TRIED_SAMPLED = 1000  # targets of a pass to which weights are fitted in a trial
TRIED = 3 * 2**15     # values with which axes to freeze and steps are tried,
TRIED_BITS = 13       # in blocks of so many targets
TRIED_FIRST = 1       # of the steps in `FINER`: where few bits are spent, its trial tells most about axes
FEW_BITS = 1.5        # of a value: where they are more, the finest steps of coarse grids are not tried
LEAST_BYTES = 2000    # of a sample, which otherwise tells too little about a field: each piece is tried by itself
LOOKED_AT = 4096      # values of a part, to see how rough it is
PROBED = 2**14        # values of each of a few parts that are tried on a lattice,
PARTS = 4             # so many, which are spread over the whole
SMALL = 8000          # bytes, of which those of a part tell too little
MAY_PAY = 1.1         # a lattice is tried for all values if it takes no more than so many times as much for these
COPIES = 2            # of a model in an archive: the root is there twice


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
    look: ClassVar[Look | None] = Look("#5f8a2e", "circle", "dotdash")
    module: ClassVar[str | None] = "pcodec"   # for tables and lattices
    explanation: ClassVar[str] = (
        "the built-in codec for fields: values are interpolated from decoded neighbours, and what is left is coded by its "
        "expected size"
    )
    for_fields: ClassVar[bool] = True
    imitation: ClassVar[Imitation] = "expected sizes"
    contained: ClassVar[bool] = True
    automatic: ClassVar[bool] = True
    predicts_in_time: ClassVar[bool] = True

    frozen: tuple[int, ...] | None = option(None, "the axes along which nothing is interpolated (none: by trial)")
    block: int | None = option(
        None, "the targets in a block, which is decoded in order (none: by trial)",
        minimum=1 << BLOCK_BITS[0], maximum=1 << BLOCK_BITS[-1],
    )
    finer: int | None = option(
        None, "how much finer coarse grids are coded: 0 not, 1 up to 1.5 times, 2 twice, 3 4, 4 8 times; 5 and 6 as 2 "
        "and 3, and points of fewer odd axes finer still (none: by trial)",
        minimum=0, maximum=len(FINER) - 1,
    )
    aim: str = option(
        "bound", "what sizes are compared at: an equal bound, or an equal mean square error (psnr), for which residuals "
        "are drawn to 0", choices=AIMS
    )
    fitted: bool = option(True, "whether weights are fitted to each pass: not is twice as fast, and files are larger")
    model: str | None = option(None, "a trained model as text, used where it saves room (none: fitted weights alone)")

    earlier: Earlier | None = field(default=None, init=False, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The configuration, without the usual values of options that decoding does not read: documents stay small."""
        usual = {"aim": "bound", "fitted": True}
        return {name: value for name, value in super().to_dict().items() if name not in usual or usual[name] != value}

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

    def following(self, earlier: Earlier) -> Self:
        """The codec for a field whose values at earlier times are these, as they are decoded."""
        bound = replace(self)
        object.__setattr__(bound, "earlier", earlier)
        return bound

    def _with(self, **options: Any) -> Self:
        """The codec with other options, after the same earlier steps."""
        found = replace(self, **options)
        return found if self.earlier is None else found.following(self.earlier)

    def tuned(self, sample: np.ndarray, tolerance: Tolerance) -> Self:
        """The codec with the options that suit these values; refused if its model does not."""
        if self._trained is not None:
            require_dimensions(self._trained, sample.ndim)
        crop = self._tried(sample, tolerance)
        if crop is None:
            return self
        plan = self._fixed or self._plan(crop, tolerance.value)
        if plan.bits < 8 * LEAST_BYTES:
            return self
        return self._with(frozen=plan.frozen, finer=plan.finer, block=1 << plan.block_bits)

    def worthwhile(self, sample: np.ndarray, tolerance: Tolerance, values: int) -> Self:
        """The codec without its model, where that takes more room in an archive than it saves."""
        if self._trained is None:
            return self
        require_dimensions(self._trained, sample.ndim)
        crop, without = self._tried(sample, tolerance), self._with(model=None)
        if crop is None:
            return self
        plain, modelled = (len(codec._encode_piece(crop, tolerance)) for codec in (without, self))
        return self if (plain - modelled) / crop.size * values > COPIES * len(self._trained.text) else without

    def _tried(self, sample: np.ndarray, tolerance: Tolerance) -> np.ndarray | None:
        """The roughest part of a sample with finite values alone; None if nothing can be tried."""
        takes = sample.dtype.name in self.dtypes and sample.ndim in self.dimensions and sample.size > 0
        if not takes or tolerance.absolute is None or tolerance.value == 0:
            return None
        crop = _part(sample, tolerance.value)
        valid = np.isfinite(crop)
        if not valid.any():
            return None
        middle = np.quantile(crop[valid], 0.5, method="lower")   # one of the values: a mean of two may overflow
        crop = np.where(valid, crop, middle).astype(sample.dtype)
        try:
            lattice_step(tolerance.value, largest_magnitude(crop), crop.dtype)
        except WorkbenchError:   # this tolerance is too small for a lattice, as encoding will say
            return None
        return crop

    def coarse(self, spacing: int) -> Codec:
        """A decoder that leaves out the passes below this spacing."""
        return _Coarse(self, spacing)

    def remark(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> str | None:
        """Whether earlier steps were used, and the model."""
        if self.earlier is None and self.model is None:
            return None
        if self.earlier is not None:
            said = "coded without earlier steps, which predict too little of it"
            return "predicted from earlier steps" if self.is_predicted(data, shape, dtype) else said
        parts = split(self.id, data, shape, dtype)
        used = sum(part[0] == INTERPOLATED and Header.from_bytes(part)[0].model is not None for _, part in parts)
        return "coded with the model" if used else "coded without the model, with which they would be larger"

    def is_predicted(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> bool:
        """Whether any piece of the field was predicted from earlier steps."""
        return self.earlier is not None and any(part[0] == IN_TIME for _, part in split(self.id, data, shape, dtype))

    def encode_with_gaps(self, values: Array, valid: Array, tolerance: Tolerance) -> bytes:
        """The smaller of smooth gaps and of repeats on a lattice, which steps and fine bounds suit."""
        found = super().encode_with_gaps(values, valid, tolerance)
        return _smaller(found, _OnLattice(aim=self.aim).encode(repeated(values, valid), tolerance))

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        bound = tolerance.absolute_for(values)
        step = self._step(bound, values)
        if max(self.frozen or (), default=0) >= values.ndim:
            raise CodecFailed(f"frozen axes must be among the {values.ndim} of the field; got {self.frozen!r}")
        if values.min() == values.max():
            return self._on_lattice(values, bound)
        plan = self._fixed or self._plan(_part(values, bound), bound)
        sampled = SAMPLED if self.fitted else 0
        encoding = Encoding.of(
            values, plan.frozen, plan.block_bits, bound, step, sampled, plan.finer, drawn=self._drawn,
            known=self._known(values),
        )
        found = encoding.to_bytes()
        del encoding
        if self._trained is not None:
            require_dimensions(self._trained, values.ndim)
            model, drawn = self._trained, self._drawn
            modelled = Encoding.of(values, plan.frozen, plan.block_bits, bound, step, model=model, drawn=drawn)
            found = _smaller(found, modelled.to_bytes())
            del modelled
        return _smaller(found, self._on_lattice(values, bound)) if _lattice_may_pay(values, step, len(found)) else found

    def _known(self, values: np.ndarray) -> Known | None:
        """The earlier steps of these values; none of a piece of an array, and none without fitted weights."""
        return None if self.earlier is None or not self.fitted else Known.of(self.earlier, values.shape, values.dtype)

    @property
    def _drawn(self) -> bool:
        """Whether residuals are drawn to 0, by as much as the bound exceeds half of a step."""
        return self.aim == "psnr"

    def _step(self, bound: float, values: np.ndarray) -> float:
        widest = lattice_step(bound, largest_magnitude(values), values.dtype)
        return widest / (1 + 2 * MOST_DEAD) if self._drawn else widest

    def _on_lattice(self, values: np.ndarray, bound: float) -> bytes:
        """A piece without interpolation, with the steps of one with it."""
        size = bound / (1 + 2 * MOST_DEAD) if self._drawn else bound
        return bytes([ON_LATTICE]) + Prequantised()._encode_piece(values, Tolerance(absolute=size))

    @property
    def _frozen(self) -> Axes | None:
        return self.frozen if self._trained is None else self._trained.frozen

    @property
    def _fixed(self) -> _Plan | None:
        """The plan that the options state; None if they leave something open."""
        if self._frozen is None or self.finer is None or self.block is None:
            return None
        return _Plan(self._frozen, self.finer, self.block.bit_length() - 1, math.inf)

    def _plan(self, crop: np.ndarray, bound: float) -> _Plan:
        """The axes to freeze, how much finer coarse steps are, and the size of blocks (its logarithm).

        What the options leave open is decided by trial on a part. Axes are frozen from the roughest on, as long as that
        makes the trial smaller.
        """
        fixed, rough = self._frozen, _by_roughness(crop, bound)
        trials, first = _Trials(self, crop, bound), EQUAL_ERROR[0] if self.aim == "psnr" else TRIED_FIRST
        bits_with = trials.bits_at_error if self.aim == "psnr" else trials.bits
        tried = [tuple(sorted(rough[:count])) for count in range(crop.ndim)] if fixed is None else [fixed]
        best, finest, fewest = tried[0], first if self.finer is None else self.finer, math.inf
        for frozen in tried:
            bits = bits_with(frozen, finest)
            if bits >= fewest:
                break
            best, fewest = frozen, bits
        if self.finer is None and self.aim == "psnr":
            fewest, finest = min((bits_with(best, finer), finer) for finer in EQUAL_ERROR)
        elif self.finer is None:
            for finer in EQUAL_BOUND if fewest < FEW_BITS * crop.size else (0,):
                bits = fewest if finer == TRIED_FIRST else bits_with(best, finer)
                if bits < fewest:
                    finest, fewest = finer, bits
                elif finer > TRIED_FIRST:
                    break
        block = block_bits(fewest, crop.size) if self.block is None else self.block.bit_length() - 1
        return _Plan(best, finest, block, fewest)

    def for_mean_errors(self) -> Self:
        """The codec whose trials compare sizes at an equal mean square error."""
        return self._with(aim="psnr")

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if data[:1] == bytes([ON_LATTICE]):
            return Prequantised()._decode_piece(data[1:], shape, dtype)
        return decoded(data, shape, dtype, self._trained, 1, self.earlier).reshape(shape)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a piece is encoded, and the bits that it took in the trial."""

    frozen: Axes
    finer: int
    block_bits: int
    bits: float


@dataclass
class _Trials:
    """What a part of a field takes in some ways: at one bound, or at the mean square error of the first way."""

    codec: Interpolation
    crop: np.ndarray
    bound: float
    error: float | None = None   # its logarithm

    def bits(self, frozen: Axes, finer: int) -> float:
        """The bits with these axes frozen and coarse grids so much finer."""
        return self._trial(self.bound, frozen, finer).coded.bits

    def bits_at_error(self, frozen: Axes, finer: int) -> float:
        """The same at an equal mean square error, from two bounds.

        Finer coarse grids leave smaller errors in all that is interpolated from them, so that the others can be coarser.
        """
        trials = [self._trial(size, frozen, finer) for size in (self.bound / math.sqrt(2), math.sqrt(2) * self.bound)]
        near, far = (math.log(trial.mean_square(self.crop) or sys.float_info.min) for trial in trials)
        bits, fewer = (math.log(trial.coded.bits) for trial in trials)
        self.error = near if self.error is None else self.error
        return math.exp(bits + (fewer - bits) * (self.error - near) / (far - near) if far > near else bits)

    def _trial(self, bound: float, frozen: Axes, finer: int) -> Trial:
        sampled = TRIED_SAMPLED if self.codec.fitted else 0
        step, drawn = self.codec._step(bound, self.crop), self.codec._drawn
        return Trial.of(self.crop, frozen, TRIED_BITS, bound, step, sampled, finer, drawn=drawn)


@dataclass(frozen=True)
class _Coarse(Codec):
    """Decodes the points with a spacing, and perhaps others, which are 0 otherwise."""

    id: ClassVar[str] = "coarse interpolation"
    title: ClassVar[str] = "The coarse points of an interpolated field"

    codec: Interpolation
    spacing: int

    def _encode(self, values: Array, tolerance: Tolerance) -> NoReturn:
        raise CodecFailed(f"{self.id} only decodes: encode with {self.codec.id}")

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        parts = split(self.codec.id, data, shape, dtype)
        if len(parts) > 1 or parts[0][1][0] == ON_LATTICE:   # pieces are cut anywhere; a lattice has no coarse grids
            return self.codec.decode(data, shape, dtype)
        return decoded(parts[0][1], shape, dtype, self.codec._trained, self.spacing, self.codec.earlier).reshape(shape)


@dataclass(frozen=True)
class _OnLattice(Interpolation):
    """No piece is interpolated."""

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return self._on_lattice(values, tolerance.absolute_for(values))


def _lattice_may_pay(values: np.ndarray, step: float, size: int) -> bool:
    """Whether a lattice of this step may need fewer bytes: so it is in some parts, or there are few values or bytes."""
    if values.size <= PARTS * PROBED or size < SMALL:
        return True
    sizes, parts = cut_to(values.shape, PROBED), []
    for part in range(PARTS):
        starts = [(whole - side) * part // (PARTS - 1) for whole, side in zip(values.shape, sizes, strict=True)]
        inside = tuple(slice(start, start + side) for start, side in zip(starts, sizes, strict=True))
        parts.append(lattice_numbers(values[inside], step))
    share = size * PARTS * math.prod(sizes) / values.size
    packed = sum(len(pack_numbers(numbers, LEAST_LEVEL - 1)) for numbers in parts)
    return packed < MAY_PAY * share or may_repeat(np.stack(parts), packed, share)


def _smaller(one: bytes, other: bytes) -> bytes:
    return other if len(other) < len(one) else one


def _part(values: np.ndarray, bound: float) -> np.ndarray:
    """The roughest of a few parts with about `TRIED` values, which takes the most bits: there the choice matters."""
    sizes = cut_to(values.shape, TRIED)
    choices = [sorted({0, (whole - size) // 2, whole - size}) for whole, size in zip(values.shape, sizes, strict=True)]
    parts = [
        values[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]
        for starts in itertools.product(*choices)
    ]
    return np.ascontiguousarray(max(parts, key=lambda part: _roughness(part, bound)))


def cut_to(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """The sizes of a part with about so many values: axes are cut to one length, short axes stay whole."""
    length = max(shape)
    while math.prod(min(size, length) for size in shape) > most:
        length -= max(length // 16, 1)
    return tuple(min(size, length) for size in shape)


def _roughness(values: np.ndarray, bound: float) -> float:
    """About how many bits a value takes: from second differences along the last axis, in some lines."""
    lines = values.reshape(-1, values.shape[-1])
    return _bits(lines[:: max(lines.size // LOOKED_AT, 1)].T, bound) if values.shape[-1] >= 3 else 0.0


def _by_roughness(values: np.ndarray, bound: float) -> list[int]:
    """The axes along which values differ most from those between their neighbours first.

    Their bits are compared, not their sizes: a coast or a meridian where numbers jump would hide all else.
    """
    def roughness(axis: int) -> float:
        lines = np.moveaxis(values, axis, 0)
        return _bits(lines, bound) if len(lines) >= 3 else math.inf

    return sorted(range(values.ndim), key=roughness, reverse=True)


def _bits(lines: np.ndarray, bound: float) -> float:
    """About what a value takes that is predicted from its neighbours along the first axis."""
    with np.errstate(all="ignore"):
        lines = lines.astype(np.float64)
        bits = np.log2(1 + abs(lines[1:-1] - (lines[:-2] + lines[2:]) / 2) / bound)
    return float(np.nan_to_num(bits, posinf=2048).mean())
