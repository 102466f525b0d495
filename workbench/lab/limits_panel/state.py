"""The user's choices in the limits panel, and their defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from workbench import backend
from workbench.arguments import flag
from workbench.data import Field, Particles
from workbench.data.labelled import is_labelled
from workbench.errors import WorkbenchError
from workbench.lab.bounds_panel.state import nice, slices
from workbench.lab.choices import one_of, positive, told_how_to_change, whole, with_choices, within
from workbench.lab.description import PIXELS, Window, checked_window
from workbench.lab.slices import Cut
from workbench.limits.field_model import require_squares

FEWEST_VALUES = 64         # fewer do not determine a spectrum
SHARE_OF_DEVIATION = 0.03  # the initial error bound, in standard deviations
SMALLEST_TILE, LARGEST_TILE = 4, 256
LEAST_EPS, MOST_EPS = 1e-12, 0.5   # the ends of the slider, and the largest chance of failure
MOST_REGIONS = 6           # the largest choice

RegionChoice = int | Literal["auto"]
PictureChoice = Literal["field", "regions", "new information"]


@told_how_to_change
@dataclass(frozen=True)
class LimitsState:
    """The accuracy of the field, the assumptions about a codec, and the visible part.

    `eb` is the largest error of any value, as in the bounds panel. Errors uniform within it have a mean square of
    eb^2 / 3, which is the distortion at which bounds are evaluated. A codec codes tiles of side `tile` independently, or
    the field as a whole; a fixed-length code exceeds the distortion with probability `eps`. `picture` is the one in front.

    >>> round(LimitsState(eb=0.3, tile=8).distortion, 12)
    0.03
    """

    eb: float
    tile: int | None = None
    eps: float = 0.01
    regions: RegionChoice = "auto"
    above: bool = False
    picture: PictureChoice = "field"
    axis: int = 0
    index: int = 0
    time: int = 0
    window: Window | None = None
    pixels: int = PIXELS

    def __post_init__(self) -> None:
        object.__setattr__(self, "eb", positive("the error bound", self.eb))
        if not 0 < self.distortion < math.inf:
            raise WorkbenchError(f"the square of the error bound must be a positive number; got {self.eb:g}")
        object.__setattr__(self, "eps", positive("the chance of failure ε", self.eps))
        if self.eps > MOST_EPS:
            raise WorkbenchError(f"the chance of failure ε must lie in (0, {MOST_EPS}]; got {self.eps:g}")
        if self.tile is not None:
            object.__setattr__(self, "tile", whole("the side of a tile", self.tile, least=1))
        if self.regions != "auto":
            object.__setattr__(self, "regions", whole("the number of regions, unless 'auto',", self.regions, least=1))
        one_of("the picture", self.picture, get_args(PictureChoice))
        words = {"axis": "the axis", "index": "the slice", "time": "the time"}
        for field, name in words.items():
            object.__setattr__(self, field, whole(name, getattr(self, field), least=0))
        object.__setattr__(self, "above", flag("above", self.above))
        object.__setattr__(self, "pixels", whole("pixels", self.pixels, least=1))
        object.__setattr__(self, "window", checked_window(self.window))

    @classmethod
    def for_(cls, field: Field, **choices: Any) -> LimitsState:
        """The initial state for this field; `choices` are fields of the state.

        >>> LimitsState.for_(Field(np.linspace(0, 30, 1000)), tile=8)
        LimitsState(eb=0.2, tile=8, ...)
        """
        state = with_choices(cls(nice(SHARE_OF_DEVIATION * float(valid_values(field).std()))), choices)
        return state if "index" in choices else replace(state, index=slices(field, state.axis) // 2)

    def check(self, field: Field) -> None:
        """Raise if this field does not have this slice."""
        if len(field.shape) >= 3:
            within("the axis", self.axis, 3)
            within("the slice", self.index, slices(field, self.axis))
            within("the time", self.time, field.shape[0] if len(field.shape) == 4 else 1)

    @property
    def distortion(self) -> float:
        """The mean square of errors that are uniform within the bound."""
        return self.eb * self.eb / 3   # a power would raise OverflowError where a product is infinite

    @property
    def cut(self) -> Cut:
        """The visible part of the field."""
        return Cut(self.axis, self.index, self.time, self.window, self.pixels)


def valid_values(field: Field) -> np.ndarray:
    """The finite, unmasked values in double precision."""
    return np.asarray(backend.to_host(field.values)[backend.to_host(field.valid)], np.float64)


def tile_sides(field: Field) -> list[int]:
    """The sides of tiles that are useful for this field: powers of two.

    >>> tile_sides(Field(np.zeros((8, 50))))
    [4, 8, 16, 32]
    """
    powers = (2**power for power in range(SMALLEST_TILE.bit_length() - 1, LARGEST_TILE.bit_length()))
    return [side for side in powers if side < max(field.shape)]


def require_field(data: object) -> Field:
    """A field that a model can be fitted to; raises for anything else.

    >>> require_field(np.arange(100.0))
    Field(100, float64)
    """
    if isinstance(data, Particles):
        raise WorkbenchError(f"the limits panel needs a field; got {data!r}: use wb.lab.bounds(...) for particles")
    field = Field(data) if isinstance(data, np.ndarray) or is_labelled(data) else data
    if not isinstance(field, Field):
        got = type(data).__name__
        raise WorkbenchError(f"data must be a Field or a NumPy array; got {got}: open files with wb.open(...)")
    field.require_floats("wb.lab.limits")
    values = valid_values(field)
    if values.size < FEWEST_VALUES:
        raise WorkbenchError(
            f"a field must have at least {FEWEST_VALUES} values, finite and not masked, to estimate its spectrum; "
            f"got {values.size:,}"
        )
    if values.min() == values.max():
        raise WorkbenchError(f"a field must vary to have a limit; all values are {values[0]:g} and need 0 bits each")
    require_squares(field)
    return field
