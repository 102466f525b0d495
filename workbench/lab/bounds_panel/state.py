"""The user's choices in the bounds panel, and their defaults."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from workbench import codecs
from workbench.archive import choice
from workbench.arguments import flag
from workbench.bounds.run import Order, Question
from workbench.codecs import Codec, ParticleCodec
from workbench.codecs.interpolation import Interpolation
from workbench.codecs.interpolation_model import Model, require_dimensions
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Exact, PointwiseRelative, Relative
from workbench.lab.bounds_panel.goals import GOALS, Goal, Wanted
from workbench.lab.choices import finite, one_of, positive, told_how_to_change, whole, with_choices, within
from workbench.lab.colour_scale import scale_of
from workbench.lab.description import PIXELS, Window, checked_window
from workbench.lab.extremes import extremes
from workbench.lab.grid import grid_of
from workbench.lab.slices import Cut

Kind = Literal["absolute", "relative", "pointwise"]
BOUNDS: dict[Kind, type[Bound]] = {"absolute": Absolute, "relative": Relative, "pointwise": PointwiseRelative}
KINDS: dict[str, Kind] = {"absolute": "absolute", "relative to the range": "relative", "pointwise relative": "pointwise"}
PARTS: dict[Kind, str] = {"absolute": "", "relative": "of the range", "pointwise": "of each value"}   # as read aloud

SHARE_OF_RANGE = 1e-3       # of a field's range: a common first choice
SHARE_OF_SPACING = 0.02     # of the mean spacing of particles: a tenth of the usual linking length
QUICK = 2**22               # values that the built-in codec for fields encodes while one waits
DECADES = {4: 7, 8: 12}     # span of the slider below the range, by the bytes of a number


@told_how_to_change
@dataclass(frozen=True)
class BoundsState:
    """The codec, the error bound, and the visible part of the data.

    `codec` is a name or a codec with options; `model` is a trained model for `interpolation`. `eb` is in the unit of the
    data, a share of their range or of each value, depending on `kind`; with `exact`, no value may change. `target` and
    `goal` are what *find* looks for, together with `second` and `second_goal` unless `second` is None. `axis`, `index` and
    `time` choose the slice of a field; particles are seen along `axis`. Pictures have at most `pixels` along each side.

    >>> BoundsState(codec="zfp", kind="relative", eb=1e-4).bound
    Relative(eb=0.0001)
    """

    codec: str | Codec
    kind: Kind = "absolute"
    eb: float = SHARE_OF_RANGE
    order: Order = "keep"
    target: Goal = "psnr"
    goal: float = 60.0
    second: Goal | None = None
    second_goal: float = 0.99
    axis: int = 0
    index: int = 0
    time: int = 0
    window: Window | None = None
    logarithmic: bool = False
    pixels: int = PIXELS
    model: Model | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        one_of("the kind of bound", self.kind, get_args(Kind))
        one_of("the order", self.order, get_args(Order))
        one_of("the target", self.target, tuple(GOALS))
        object.__setattr__(self, "goal", finite("the number of the target", self.goal))
        object.__setattr__(self, "second_goal", finite("the number of the second target", self.second_goal))
        if self.second is not None:
            one_of("the second target", self.second, [goal for goal in GOALS if goal != "total"])
        _ = self.wanted
        object.__setattr__(self, "eb", positive("the error bound", self.eb))
        if not self.eb < (most := BOUNDS[self.kind].most):
            raise WorkbenchError(f"a pointwise relative error bound must be less than {most:g}; got {self.eb:g}")
        for field, name in {"axis": "the axis", "index": "the slice", "time": "the time"}.items():
            object.__setattr__(self, field, whole(name, getattr(self, field), least=0))
        object.__setattr__(self, "pixels", whole("pixels", self.pixels, least=1))
        object.__setattr__(self, "logarithmic", flag("logarithmic", self.logarithmic))
        object.__setattr__(self, "exact", flag("exact", self.exact))
        object.__setattr__(self, "window", checked_window(self.window))
        self._check_model()
        _ = self.bound, self.chosen

    @classmethod
    def for_(cls, data: Particles | Field, **choices: Any) -> BoundsState:
        """The initial state for these data; `choices` are fields of it.

        >>> BoundsState.for_(Field([0.0, 30.0])).eb
        0.02
        >>> BoundsState.for_(Field([0.0, 30.0]), kind="relative", codec="zfp").bound
        Relative(eb=0.000666667)
        """
        if isinstance(data, Particles):
            usual = cls("lattice", eb=_sensible(data), axis=2, logarithmic=True)
        else:
            codec = _usual_codec(data, choices.get("model") is not None)
            usual = cls(codec, eb=_sensible(data), logarithmic=scale_of(data, *extremes(data)) == "logarithmic")
        if "kind" in choices and "eb" not in choices:
            usual = usual.with_kind(choices["kind"], data)
        state = with_choices(usual, choices)
        return state if "index" in choices else dataclasses.replace(state, index=slices(data, state.axis) // 2)

    def _check_model(self) -> None:
        if self.model is None:
            return
        if not isinstance(self.model, Model):
            raise WorkbenchError(f"the model must be a wb.codecs.Model, or None; got {self.model!r:.60}")
        if not isinstance(given := self.given, Interpolation) or given.model is not None:
            raise WorkbenchError(f"a model is for the codec interpolation, without one of its own; got {self.codec!r:.60}")

    def check(self, data: Particles | Field) -> None:
        """Raise if these data do not have this slice, or as many axes as the fields that the model was trained on."""
        if self.kind not in kinds_of(data).values():
            raise WorkbenchError(f"the bound of integers must be absolute or relative to the range; got {self.kind}")
        if self.model is not None and isinstance(data, Field):
            require_dimensions(self.model, len(data.shape))
        if isinstance(data, Particles):
            within("the axis", self.axis, data.dimensions)
        elif len(data.shape) >= 3:
            within("the axis", self.axis, 3)
            within("the slice", self.index, slices(data, self.axis))
            within("the time", self.time, data.shape[0] if len(data.shape) == 4 else 1)

    @property
    def bound(self) -> Bound:
        """The bound as `wb.compress` takes it."""
        return Exact() if self.exact else BOUNDS[self.kind](self.eb)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """What *find* looks for."""
        second = () if self.second is None else (Wanted(self.second, self.second_goal),)
        return (Wanted(self.target, self.goal), *second)

    @property
    def given(self) -> Codec:
        """The codec with its options, except for the model."""
        return self.codec if isinstance(self.codec, Codec) else codecs.get(self.codec)

    @property
    def chosen(self) -> Codec:
        """The codec with its options."""
        given = self.given
        if self.model is None or not isinstance(given, Interpolation):
            return given
        return dataclasses.replace(given, model=self.model.text)

    @property
    def question(self) -> Question:
        """The part of the state that a trial depends on; the rest only affects its display."""
        return Question(self.chosen, self.bound, self.order)

    def cut(self, data: Particles | Field) -> Cut:
        """The visible part of the data."""
        grid = grid_of(data) if isinstance(data, Field) else None
        return Cut(self.axis, self.index, self.time, self.window, self.pixels, grid)

    def with_kind(self, kind: Kind, data: Particles | Field) -> BoundsState:
        """The same state with another kind of bound, about as strict if values are as large as their range.

        >>> field = Field([0.0, 20.0])
        >>> BoundsState("zfp", "absolute", eb=0.2).with_kind("relative", field).eb
        0.01
        """
        one_of("the kind of bound", kind, get_args(Kind))
        spread = size_of(data)
        if (self.kind == "absolute") != (kind == "absolute"):
            factor = spread if kind == "absolute" else 1 / spread
            eb = float(f"{self.eb * factor:.6g}")
        else:
            eb = self.eb
        most = BOUNDS[kind].most
        return dataclasses.replace(self, kind=kind, eb=eb if eb < most else 0.5)


def kinds_of(data: Particles | Field) -> dict[str, Kind]:
    """The kinds of bound that these data may have, by their words; integers have no pointwise one.

    >>> list(kinds_of(Field([1, 2])))
    ['absolute', 'relative to the range']
    """
    return {words: kind for words, kind in KINDS.items() if kind != "pointwise" or not of_integers(data)}


def of_integers(data: Particles | Field) -> bool:
    """Whether these are integers, of which errors are whole numbers."""
    return isinstance(data, Field) and data.values.dtype.kind in "iu"


def exponents(data: Particles | Field, kind: Kind) -> tuple[int, int]:
    """The powers of ten at the ends of the slider for the bound: from rounding errors to the loss of all information.

    >>> exponents(Field([0.0, 30.0]), "absolute"), exponents(Field([0, 30]), "absolute")
    ((-10, 2), (0, 2))
    >>> exponents(Field([0.0, 30.0]), "pointwise")
    (-12, -1)
    """
    if of_integers(data):   # from an error of 1
        decades = max(math.ceil(math.log10(size_of(data))), 1)
        return (0, decades) if kind == "absolute" else (-decades, 0)
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


def slices(data: Particles | Field, axis: int) -> int:
    """The number of slices across an axis; data of fewer than three axes have one.

    >>> slices(Field([[[1.0, 2.0]], [[3.0, 4.0]]]), axis=0)
    2
    """
    volume = isinstance(data, Field) and len(data.shape) >= 3 and axis < 3
    return int(data.shape[-3:][axis]) if volume else 1   # type: ignore[union-attr]


def other_questions(data: Particles | Field, state: BoundsState) -> list[Question]:
    """The other codecs that accept these data, at the same bound, for comparison with the chosen codec."""
    others = (codec for codec in applicable(data) if codec != state.chosen)   # the same with a model is another one
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


def _usual_codec(data: Field, with_model: bool) -> str:
    """The smallest codec for most fields; a quicker one where a trial would take seconds, and that of integers."""
    if of_integers(data):
        return choice.usual(data.values.dtype)
    waits = not with_model and data.values.size > QUICK
    liked = ["sz3", "interpolation", "prequantised"] if waits else ["interpolation", "prequantised"]
    return next(name for name in liked if name in codecs.available())


def _takes(codec: Codec, data: Particles | Field) -> bool:
    if isinstance(data, Particles):
        return isinstance(codec, ParticleCodec) or 1 in codec.dimensions   # applied to each coordinate
    taken = data.values.dtype.name in codec.dtypes and len(data.shape) in codec.dimensions
    return taken and not isinstance(codec, ParticleCodec)


def _sensible(data: Particles | Field) -> float:
    if isinstance(data, Particles) and data.spacing > 0:
        return nice(SHARE_OF_SPACING * data.spacing)
    return nice(max(SHARE_OF_RANGE * size_of(data), 1.0 if of_integers(data) else sys.float_info.min))


def _numbers(data: Particles | Field) -> Any:
    return data.positions if isinstance(data, Particles) else data.values
