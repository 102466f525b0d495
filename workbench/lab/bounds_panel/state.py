"""The user's choices in the bounds panel, and their defaults."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from workbench import backend, codecs
from workbench.bounds.run import Order, Question
from workbench.codecs import Codec, ParticleCodec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, PointwiseRelative, Relative
from workbench.lab.description import Window, checked_window
from workbench.lab.projection import PIXELS, Cut
from workbench.lab.remembered import remembered

Kind = Literal["absolute", "relative", "pointwise"]
BOUNDS: dict[Kind, type[Bound]] = {"absolute": Absolute, "relative": Relative, "pointwise": PointwiseRelative}

SHARE_OF_RANGE = 1e-3       # of a field's range: a common first choice
SHARE_OF_SPACING = 0.02     # of the mean spacing of particles: a tenth of the usual linking length
DECADES = {4: 7, 8: 12}     # span of the slider below the range, by the bytes of a number


@dataclass(frozen=True)
class BoundsState:
    """The codec, the error bound, and the visible part of the data.

    `codec` is a name or a codec with options. `eb` is in the unit of the data, a share of their range or of each value,
    depending on `kind`. `axis`, `index` and `time` choose the slice of a field; particles are seen along `axis`. Pictures
    have at most `pixels` along each side.

    >>> BoundsState(codec="zfp", kind="relative", eb=1e-4).bound
    Relative(eb=0.0001)
    """

    codec: str | Codec
    kind: Kind = "absolute"
    eb: float = SHARE_OF_RANGE
    order: Order = "keep"
    axis: int = 0
    index: int = 0
    time: int = 0
    window: Window | None = None
    logarithmic: bool = False
    pixels: int = PIXELS

    def __post_init__(self) -> None:
        _check_choice("kind", self.kind, get_args(Kind))
        _check_choice("order", self.order, get_args(Order))
        if not (_is_number(self.eb) and 0 < self.eb < math.inf):
            raise WorkbenchError(f"the error bound must be a positive number; got {self.eb!r}")
        object.__setattr__(self, "eb", float(self.eb))
        for name in ("axis", "index", "time", "pixels"):
            _check_place(name, getattr(self, name))
        object.__setattr__(self, "window", checked_window(self.window))
        _ = self.bound, self.chosen

    @classmethod
    def for_(cls, data: Particles | Field) -> BoundsState:
        """The initial state for these data.

        >>> BoundsState.for_(Field(np.linspace(0, 30, 1000))).eb
        0.02
        """
        if isinstance(data, Particles):
            return cls("lattice", eb=_sensible(data), axis=2, logarithmic=True)
        codec = "sz3" if "sz3" in codecs.available() else "prequantised"
        middle = data.shape[-3] // 2 if len(data.shape) >= 3 else 0
        return cls(codec, eb=_sensible(data), index=middle)

    @property
    def bound(self) -> Bound:
        """The bound as `wb.compress` takes it."""
        return BOUNDS[self.kind](self.eb)

    @property
    def chosen(self) -> Codec:
        """The codec with its options."""
        return self.codec if isinstance(self.codec, Codec) else codecs.get(self.codec)

    @property
    def question(self) -> Question:
        """The part of the state that a trial depends on; the rest only affects its display."""
        return Question(self.chosen, self.bound, self.order)

    @property
    def cut(self) -> Cut:
        """The visible part of a field."""
        return Cut(self.axis, self.index, self.time, self.window, self.pixels)

    def with_kind(self, kind: Kind, data: Particles | Field) -> BoundsState:
        """The same state with another kind of bound, about as strict if values are as large as their range.

        >>> field = Field(np.array([0.0, 20.0]))
        >>> BoundsState("zfp", "absolute", eb=0.2).with_kind("relative", field).eb
        0.01
        """
        _check_choice("kind", kind, get_args(Kind))
        spread = size_of(data)
        if (self.kind == "absolute") != (kind == "absolute"):
            factor = spread if kind == "absolute" else 1 / spread
            eb = float(f"{self.eb * factor:.6g}")
        else:
            eb = self.eb
        most = BOUNDS[kind].most
        return dataclasses.replace(self, kind=kind, eb=eb if eb < most else 0.5)


def exponents(data: Particles | Field, kind: Kind) -> tuple[int, int]:
    """The powers of ten at the ends of the slider for the bound: from rounding errors to the loss of all information.

    >>> exponents(Field(np.linspace(0, 30, 1000, dtype=np.float32)), "absolute")
    (-5, 2)
    >>> exponents(Field(np.linspace(0, 30, 1000)), "pointwise")
    (-12, -1)
    """
    decades = DECADES[_numbers(data).dtype.itemsize]
    if kind != "absolute":
        return -decades, 0 if kind == "relative" else -1
    highest = math.ceil(math.log10(size_of(data)))
    return highest - decades, highest


def kind_of(bound: Bound) -> Kind:
    """The kind of a bound, as the state names it.

    >>> kind_of(PointwiseRelative(0.1))
    'pointwise'
    """
    return next(kind for kind, made in BOUNDS.items() if type(bound) is made)


def extremes(data: Particles | Field) -> tuple[float, float]:
    """The smallest and largest of the valid values, or of all coordinates; zeros when there are none."""
    if isinstance(data, Particles):
        return float(data.lower.min()), float(data.upper.max())

    def found() -> tuple[float, float]:
        shown = backend.to_host(data.values)[backend.to_host(data.valid)]
        return (float(shown.min()), float(shown.max())) if shown.size else (0.0, 0.0)

    return remembered(data, "extremes", "", found)


def size_of(data: Particles | Field) -> float:
    """The range of the values or, if that is zero or not finite, their magnitude; 1 when all are zero."""
    low, high = extremes(data)
    spread = high - low
    return spread if 0 < spread < math.inf else max(abs(low), abs(high)) or 1.0


def nice(value: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten, on a logarithmic scale.

    >>> nice(0.0037), nice(87.0)
    (0.005, 100.0)
    """
    power = math.floor(math.log10(value))
    candidates = [float(f"{factor}e{power + more}") for factor, more in ((1, 0), (2, 0), (5, 0), (1, 1))]
    return min(candidates, key=lambda candidate: abs(math.log10(value / candidate)))


def other_questions(data: Particles | Field, state: BoundsState) -> list[Question]:
    """The other codecs that accept these data, at the same bound, for comparison with the chosen codec."""
    others = (codec for codec in applicable(data) if codec.id != state.chosen.id)
    return [Question(codec, state.bound, state.order) for codec in others]


def applicable(data: Particles | Field) -> list[Codec]:
    """The codecs that are available here and accept these data, each with its default options.

    numcodecs is left out, because its default codec has no error bound.

    >>> [codec.id for codec in applicable(Field([0.0, 1.0])) if codec.id in ("lattice", "pcodec")]
    ['pcodec']
    """
    return [codec for codec in _usual() if codec.id != "numcodecs" and _takes(codec, data)]


def _usual() -> Iterator[Codec]:
    return (codecs.get(name) for name in codecs.available())


def _takes(codec: Codec, data: Particles | Field) -> bool:
    if isinstance(data, Particles):
        return isinstance(codec, ParticleCodec) or 1 in codec.dimensions   # applied to each coordinate
    return not isinstance(codec, ParticleCodec) and len(data.shape) in codec.dimensions


def _sensible(data: Particles | Field) -> float:
    if isinstance(data, Particles) and data.spacing > 0:
        return nice(SHARE_OF_SPACING * data.spacing)
    return nice(max(SHARE_OF_RANGE * size_of(data), sys.float_info.min))


def _numbers(data: Particles | Field) -> Any:
    return data.positions if isinstance(data, Particles) else data.values


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _check_choice(name: str, given: Any, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise WorkbenchError(f"{name} must be one of {', '.join(choices)}; got {given!r}")


def _check_place(name: str, given: Any) -> None:
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 0:
        raise WorkbenchError(f"{name} must be a whole number, at least 0; got {given!r}")
