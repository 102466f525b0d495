"""The kinds of error bound, and the limit that each gives for one array.

A user asks for a bound; a `Limit` is its value for a given array, and is checked. The two differ only for `Relative`, whose
limit depends on the range of the whole array: it is resolved once, so that every chunk of the array has the same limit, and
an archive states it.

Numbers stay float64 everywhere: rounding a bound to float32 would change it.
"""

from __future__ import annotations

import math
import numbers
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import Tolerance
from workbench.data.field import Field
from workbench.data.particles import Particles
from workbench.data.trajectory import Trajectory
from workbench.data.unit_grammar import factor_between, number_and_unit
from workbench.data.units import unit_of
from workbench.errors import WorkbenchError
from workbench.slabs import Slices


@dataclass(frozen=True, slots=True)
class Limit:
    """The promise about each value of one array: |x - y| <= value or, when relative, |x - y| <= value * |x|.

    Both hold exactly, without rounding. A limit of zero means the same bits.

    >>> Limit("absolute", 1e-3)
    Limit(kind='absolute', value=0.001)
    """

    kind: Literal["absolute", "relative"]
    value: float

    def __post_init__(self) -> None:
        if self.kind not in ("absolute", "relative"):
            raise WorkbenchError(f"the kind of a limit must be 'absolute' or 'relative'; got {self.kind!r}")
        most = 1.0 if self.kind == "relative" else math.inf
        object.__setattr__(self, "value", _number("the value of a limit", self.value, most))

    @property
    def relative(self) -> bool:
        """Whether the limit is relative to each value."""
        return self.kind == "relative"

    @property
    def tolerance(self) -> Tolerance:
        """The error that a codec aims at to keep the limit."""
        return Tolerance(relative=self.value) if self.relative else Tolerance(absolute=self.value)

    def at(self, place: Slices) -> Limit:
        """The limit of any part of the array: the same."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The limit, ready for JSON."""
        return {"kind": self.kind, "value": self.value}


@dataclass(frozen=True)
class Bound(ABC):
    """An error bound: `Absolute`, `Relative` or `PointwiseRelative`."""

    eb: float
    unit: str | None = field(default=None, init=False, repr=False)   # until `for_data` converts it to that of the data

    kind: ClassVar[str]
    most: ClassVar[float] = math.inf   # the bound must be less

    def __post_init__(self) -> None:
        given, unit = _quantity(self.eb)
        if unit is not None and self.kind != "absolute":
            raise WorkbenchError(f"{type(self).__name__}(eb) must be a number without a unit; got {self.eb!r}")
        if isinstance(given, str):
            with_unit = ', or one with a unit, such as "10 kpc"' if self.kind == "absolute" else ""
            raise WorkbenchError(f"{type(self).__name__}(eb) must be a number, such as 0.01{with_unit}; got {given!r}")
        object.__setattr__(self, "eb", _number(f"{type(self).__name__}(eb)", given, self.most))
        object.__setattr__(self, "unit", unit)

    def __repr__(self) -> str:
        given = f"eb={self.eb!r}" if self.unit is None else repr(f"{self.eb!r} {self.unit}")
        return f"{type(self).__name__}({given})"

    def for_data(self, data: Particles | Field | Trajectory) -> Self:
        """The bound in the unit of these data: itself, unless it was given with a unit.

        >>> Absolute("10 kpc/h").for_data(Particles([[0.0, 0.0]], metadata={"units": "Mpc/h, km/s"}))
        Absolute(eb=0.01)
        """
        if self.unit is None:
            return self
        there = unit_of(data)
        if not there:
            raise WorkbenchError(
                f"{self.eb:g} {self.unit} needs data with a unit; {data!r} states none: give the bound as a number, or "
                'metadata={"units": ...}'
            )
        return type(self)(float(f"{self.eb * factor_between(self.unit, there):.12g}"))

    @abstractmethod
    def limit(self, values: Array, valid: Array | None = None) -> Limit:
        """The limit for these values; only finite values that are `valid` (by default all) count."""

    def limit_between(self, low: float, high: float) -> Limit:
        """The limit for values of which these are the smallest and the largest."""
        return self.limit(np.array([low, high]))

    def describe(self) -> str:
        """The bound in words: `every value ...`."""
        return f"every value {self._phrase() if self.eb else 'exactly as it was, bit for bit'}"

    @abstractmethod
    def _phrase(self) -> str:
        """The words of `describe` for a bound that is not zero."""

    def to_dict(self) -> dict[str, Any]:
        """The bound, ready for JSON: `bound_from_dict` restores it."""
        return {"kind": self.kind, "eb": self.eb}


class Absolute(Bound):
    """Every value stays within `eb` of the original, in the unit of the values. Zero asks for the same bits.

    `eb` may be a quantity, as text ("10 pc") or of astropy, pint or unyt. It is converted to the unit of the data when
    they are compressed, if they state one.

    >>> Absolute(1e-3).describe(), Absolute("10 pc")
    ('every value within 0.001 of the original', Absolute('10.0 pc'))
    """

    kind = "absolute"

    def limit(self, values: Array, valid: Array | None = None) -> Limit:
        """The bound itself, for any values."""
        if self.unit is not None:
            raise WorkbenchError(f"{self.eb:g} {self.unit} must be in the unit of the data: use bound.for_data(data)")
        return Limit("absolute", self.eb)

    def _phrase(self) -> str:
        return f"within {self.eb:.6g} of the original"


class Exact(Absolute):
    """Every value comes back as it was, bit for bit: the bound of ids, coordinates and labels.

    >>> Exact().describe()
    'every value exactly as it was, bit for bit'
    """

    kind = "exact"

    def __init__(self) -> None:
        super().__init__(0.0)

    def __repr__(self) -> str:
        return "Exact()"


class Relative(Bound):
    """Every value stays within `eb` times the range (largest minus smallest) of the whole array.

    >>> Relative(0.01).limit(np.array([1.0, 3.0, np.nan]))
    Limit(kind='absolute', value=0.02)
    """

    kind = "relative"

    def limit(self, values: Array, valid: Array | None = None) -> Limit:
        """The bound times the range of the valid values, as an absolute limit: zero where all are equal."""
        return self.limit_between(*_ends(values, valid))

    def limit_between(self, low: float, high: float) -> Limit:
        """The bound times the range."""
        spread = high - low
        if isinstance(spread, int):
            return Limit("absolute", _share(self.eb, spread))
        value = self.eb * spread if math.isfinite(spread) else self.eb * (high / 2 - low / 2) * 2   # 1e308 - -1e308
        return Limit("absolute", min(value, sys.float_info.max))

    def _phrase(self) -> str:
        return f"within {self.eb:.6g} of the range of the values"


class PointwiseRelative(Bound):
    """Every value stays within `eb` times its own size: zeros and signs are preserved. `eb` is less than one.

    >>> PointwiseRelative(1e-3).describe()
    'every value within 0.001 of its own size'
    """

    kind = "pointwise-relative"
    most = 1.0

    def limit(self, values: Array, valid: Array | None = None) -> Limit:
        """The bound itself, as a relative limit."""
        return Limit("relative", self.eb)

    def _phrase(self) -> str:
        return f"within {self.eb:.6g} of its own size"


_KINDS: dict[str, Any] = {found.kind: found for found in (Absolute, Exact, Relative, PointwiseRelative)}


def bound_from_dict(described: Mapping[str, Any]) -> Bound:
    """The bound that `to_dict` described.

    >>> bound_from_dict({"kind": "absolute", "eb": 0.5})
    Absolute(eb=0.5)
    """
    kind = described.get("kind")
    if kind not in _KINDS or set(described) != {"kind", "eb"}:
        kinds = ", ".join(_KINDS)
        raise WorkbenchError(f"a bound must have a kind ({kinds}) and an eb; got {dict(described)!r}")
    bound: Bound = Exact() if kind == Exact.kind else _KINDS[kind](described["eb"])
    return bound


def _quantity(given: Any) -> tuple[Any, str | None]:
    """The number and the unit of text, or of a quantity of astropy, pint or unyt; other things have no unit."""
    if isinstance(given, str):
        try:
            return number_and_unit(given)
        except WorkbenchError:   # no quantity: refused as what it is, by the caller
            return given, None
    unit = getattr(given, "unit", None) or getattr(given, "units", None)
    value = getattr(given, "value", getattr(given, "magnitude", None))
    if unit is None or value is None or np.ndim(value) != 0:
        return given, None
    return float(value), str(unit)


def _number(name: str, given: Any, most: float) -> float:
    """A float that can bound an error."""
    if not isinstance(given, numbers.Real) or isinstance(given, bool | np.bool_):
        raise WorkbenchError(f"{name} must be a number; got {given!r}")
    try:
        value = float(given)
    except OverflowError:   # an integer or a fraction beyond the range of floats
        value = math.inf
    if not (math.isfinite(value) and 0 <= value < most):
        below = "" if most == math.inf else f" and less than {most:g}"
        raise WorkbenchError(f"{name} must be finite, not negative{below}; got {value:g}")
    return value


def _share(eb: float, spread: int) -> float:
    """The share of a range of integers, rounded down to a float."""
    exact = Fraction(eb) * spread
    share = float(min(exact, Fraction(sys.float_info.max)))
    return share if share <= exact else math.nextafter(share, 0.0)


def _ends(values: Array, valid: Array | None) -> tuple[float, float] | tuple[int, int]:
    """The smallest and largest of the finite, valid values, as `int` for integers; zeros when there is none."""
    xp = backend.namespace(values) if valid is None else backend.namespace(values, valid)
    if valid is None and values.size:
        low, high = values.min().item(), values.max().item()
        if math.isfinite(low) and math.isfinite(high):   # NaN would spread
            return low, high
    finite = xp.isfinite(values)
    values = values[finite if valid is None else finite & valid]
    return (values.min().item(), values.max().item()) if values.size else (0.0, 0.0)
