"""A bound for each slice of a field along one axis: each level of an atmosphere, each time step, each sample.

Ranges of slices may differ by orders of magnitude, so one bound for all of them is too coarse for some or too fine for
others. A slice has a limit as a whole array has one. Chunks are so thin that none crosses slices whose limits differ: then
each chunk is encoded, corrected and checked within one limit, by the code for arrays of one limit, and no codec needs to
know of slices. Where the limits of neighbours are equal, chunks may hold several slices.

An archive states every limit. Those that follow from ranges are rounded down to six digits, which costs no room in the
values, while all digits would take more than many a thin slice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench.backend import Array
from workbench.data.field import Field
from workbench.data.particles import Particles
from workbench.data.trajectory import Trajectory
from workbench.errors import GuaranteeBroken, WorkbenchError, briefly
from workbench.guarantees.bounds import Bound, Limit, Relative, bound_from_dict
from workbench.guarantees.slice_ends import SliceEnds
from workbench.slabs import Slices

MOST_SLICES = 2**17   # whose limits differ: the archive states them
SHORT = Context(prec=6, rounding=ROUND_DOWN)   # of limits that follow from ranges: all digits would fill the archive


@dataclass(frozen=True)
class SliceLimits:
    """The limit of each slice along an axis.

    >>> limits = SliceLimits(0, (Limit("absolute", 1.0),) * 2 + (Limit("absolute", 5.0),) * 2)
    >>> limits.at((slice(2, 4), slice(0, 9))), limits.thickness
    (Limit(kind='absolute', value=5.0), 2)
    """

    axis: int
    limits: tuple[Limit, ...]

    def __post_init__(self) -> None:
        if type(self.axis) is not int or self.axis < 0 or not self.limits:
            got = f"{len(self.limits)} along {self.axis!r:.80}"
            raise WorkbenchError(f"slices must have limits, along the number of an axis; got {got}")

    def at(self, place: Slices) -> Limit:
        """The limit of a part; an error where slices in it have different ones."""
        here = set(self.limits[place[self.axis]]) if self.axis < len(place) else ()
        if len(here) != 1:
            raise GuaranteeBroken(f"a chunk must hold slices of one limit along axis {self.axis}; it holds {len(here)}")
        return next(iter(here))

    def require_shape(self, shape: Sequence[int]) -> None:
        """Refuse limits that are not those of an array of this shape."""
        if self.axis >= len(shape) or len(self.limits) != shape[self.axis]:
            got = f"{len(self.limits):,} along axis {self.axis} for the shape {tuple(shape)}"
            raise GuaranteeBroken(f"there must be one limit for each slice; the archive states {got}")

    @cached_property
    def typical(self) -> int:
        """The number of the slice whose limit is the median of those that are not zero."""
        some = [number for number, limit in enumerate(self.limits) if limit.value > 0]
        ordered = sorted(some, key=lambda number: (self.limits[number].relative, self.limits[number].value))
        return ordered[len(ordered) // 2] if ordered else 0

    @cached_property
    def thickness(self) -> int:
        """The most slices of a chunk so that none, from the first slice on, crosses different limits."""
        pairs = enumerate(zip(self.limits, self.limits[1:], strict=False), start=1)
        return math.gcd(*(number for number, (one, following) in pairs if one != following)) or len(self.limits)

    @property
    def values(self) -> list[float]:
        """The number of each limit."""
        return [limit.value for limit in self.limits]

    def to_dict(self) -> dict[str, Any]:
        """The limits, ready for JSON: `stated_limit` restores them."""
        return {"kind": _one_or_all([limit.kind for limit in self.limits]), "axis": self.axis, "values": self.values}


Limits = Limit | SliceLimits   # of an array


@dataclass(frozen=True, init=False, repr=False)
class PerSlice(Bound):
    """A bound for each slice of a field along one axis, such as each time step or each level.

    `bound` is one for all slices, where `wb.Relative` is of the range of each slice, or a sequence with one for each slice.
    `axis` is a number or, for data that name their dimensions, a name. The certificate states the limit of each slice; a
    share of a range is rounded down to six digits.

    >>> import workbench as wb
    >>> pressure = np.array([1000.0, 100.0, 1.0])[:, None] * np.random.default_rng(1).random((3, 500))
    >>> archive = wb.compress(pressure, wb.PerSlice(wb.Relative(1e-3), axis=0))
    >>> error = abs(archive.decompress().values - pressure).max(axis=1)
    >>> bool((error <= archive.certificate["values"].limit.values).all()), bool(error[2] <= 1e-3)
    (True, True)
    >>> archive.certificate["values"].describe()
    'values: every value within 0.001 of the range of the values, slice by slice along axis 0'
    """

    bounds: Bound | tuple[Bound, ...]   # one for all slices, or one for each
    axis: int | str

    kind = "per-slice"

    def __init__(self, bound: Bound | Iterable[Bound], axis: int | str) -> None:
        if not isinstance(axis, str | int | np.integer) or isinstance(axis, bool):
            raise WorkbenchError(f"axis must be the number of an axis, or the name of a dimension; got {briefly(axis)}")
        bounds = _checked(bound)
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "axis", axis if isinstance(axis, str) else int(axis))
        object.__setattr__(self, "eb", max(each.eb for each in self.different))
        object.__setattr__(self, "unit", None)

    @property
    def different(self) -> tuple[Bound, ...]:
        """All bounds."""
        return (self.bounds,) if isinstance(self.bounds, Bound) else self.bounds

    @property
    def needs_ranges(self) -> bool:
        """Whether limits depend on the values."""
        return any(isinstance(bound, Relative) for bound in self.different)

    def for_data(self, data: Particles | Field | Trajectory) -> Self:
        """The bound in the unit of these data, with the number of the axis."""
        if not isinstance(data, Field):
            raise WorkbenchError(f"wb.PerSlice is for fields; got {data!r}: give one bound for all particles")
        axis = axis_of(self.axis, len(data.shape), data.metadata.get("dimensions"))
        if isinstance(self.bounds, Bound):
            return type(self)(self.bounds.for_data(data), axis)
        return type(self)([bound.for_data(data) for bound in self.bounds], axis)

    def require_shape(self, shape: Sequence[int]) -> None:
        """Refuse bounds that are not those of a field of this shape."""
        assert isinstance(self.axis, int)   # since `for_data`
        count = shape[self.axis]
        if not isinstance(self.bounds, Bound) and len(self.bounds) != count:
            raise WorkbenchError(f"wb.PerSlice must have one bound for each of {count:,} slices; got {len(self.bounds):,}")
        if count > MOST_SLICES and (self.needs_ranges or not isinstance(self.bounds, Bound)):
            raise WorkbenchError(f"wb.PerSlice must have at most {MOST_SLICES:,} slices of different limits; got {count:,}")

    def limits(self, count: int, ends: SliceEnds | None = None) -> Limits:
        """The limits of so many slices with these ends, which relative bounds need; one where it is that of all slices."""
        if isinstance(self.bounds, Bound) and not self.needs_ranges:
            return self.bounds.limit(np.empty(0))
        bounds = (self.bounds,) * count if isinstance(self.bounds, Bound) else self.bounds
        assert isinstance(self.axis, int)   # since `for_data`
        limits = tuple(_limit(bound, ends, number) for number, bound in zip(range(count), bounds, strict=True))
        return SliceLimits(self.axis, limits)

    @property
    def own_limits(self) -> Limits | None:
        """The limits that follow without the values; None where they do not."""
        if self.needs_ranges:
            return None
        return self.limits(1 if isinstance(self.bounds, Bound) else len(self.bounds))

    def limit(self, values: Array, valid: Array | None = None) -> Limit:
        """Refused: there is one for each slice."""
        raise WorkbenchError(f"only wb.compress of fields takes wb.PerSlice; got {self!r}: give one bound for all values")

    def _phrase(self) -> str:
        if isinstance(self.bounds, Bound):
            return f"{self.bounds._phrase()}, slice by slice along axis {self.axis}"
        return f"within the bound of its slice along axis {self.axis}, of which there are {len(self.bounds):,}"

    def to_dict(self) -> dict[str, Any]:
        """The bound, ready for JSON: `stated_bound` restores it."""
        if isinstance(self.bounds, Bound):
            return {"kind": self.kind, "axis": self.axis, "bounds": self.bounds.to_dict()}
        kinds = _one_or_all([bound.kind for bound in self.bounds])
        return {"kind": self.kind, "axis": self.axis, "bounds": {"kind": kinds, "eb": [bound.eb for bound in self.bounds]}}

    def __repr__(self) -> str:
        if isinstance(self.bounds, Bound):
            return f"PerSlice({self.bounds!r}, axis={self.axis!r})"
        shown = ", ".join([*map(repr, self.bounds[:3]), *(["..."] if len(self.bounds) > 3 else [])])
        return f"PerSlice([{shown}], axis={self.axis!r})"


def stated_bound(described: Mapping[str, Any]) -> Bound:
    """The bound that `to_dict` described.

    >>> stated_bound(PerSlice([Relative(0.1), Relative(0.2)], axis=1).to_dict())
    PerSlice([Relative(eb=0.1), Relative(eb=0.2)], axis=1)
    """
    if described.get("kind") != PerSlice.kind:
        return bound_from_dict(described)
    axis, bounds = described["axis"], described["bounds"]
    if type(axis) is not int or axis < 0:
        raise WorkbenchError(f"slices must have bounds along the number of an axis; got {axis!r:.80}")
    if not isinstance(bounds["eb"], list):
        return PerSlice(bound_from_dict(bounds), axis)
    kinds = _for_each(bounds["kind"], bounds["eb"])
    return PerSlice([bound_from_dict({"kind": kind, "eb": eb}) for kind, eb in zip(kinds, bounds["eb"], strict=True)], axis)


def stated_limit(described: Mapping[str, Any]) -> Limits:
    """The limit, or those of all slices, that `to_dict` described.

    >>> limits = SliceLimits(1, (Limit("absolute", 0.5), Limit("relative", 0.25)))
    >>> stated_limit(limits.to_dict()) == limits
    True
    """
    if "values" not in described:
        return Limit(described["kind"], described["value"])
    values = described["values"]
    pairs = zip(_for_each(described["kind"], values), values, strict=True)
    return SliceLimits(described["axis"], tuple(Limit(kind, value) for kind, value in pairs))


def axis_of(given: int | str, count: int, names: Any) -> int:
    """The number of an axis, out of so many, that is given by number or name.

    >>> axis_of("lat", 2, ["time", "lat"]), axis_of(-1, 2, None)
    (1, 1)
    """
    if isinstance(given, str):
        known = list(names) if isinstance(names, list | tuple) and len(names) == count else []
        if given not in known:
            there = f"there are {', '.join(map(repr, known))}" if known else "the data name none: give its number"
            raise WorkbenchError(f"axis must be the name of a dimension; got {given!r}: {there}")
        return known.index(given)
    if not -count <= given < count:
        raise WorkbenchError(f"axis must be one of the {count} axes of the field, from 0 on; got {given}")
    return given % count


def _checked(given: Any) -> Bound | tuple[Bound, ...]:
    if isinstance(given, Bound) and not isinstance(given, PerSlice):
        return given
    kinds = "wb.Absolute(...), wb.Relative(...) or wb.PointwiseRelative(...)"
    if isinstance(given, str | Bound) or not isinstance(given, Iterable):
        raise WorkbenchError(f"the bound of slices must be {kinds}, or a sequence with one for each; got {briefly(given)}")
    bounds = tuple(given)
    strangers = [bound for bound in bounds if not isinstance(bound, Bound) or isinstance(bound, PerSlice)]
    if strangers or not bounds:
        got = briefly(strangers[0]) if strangers else "none"
        raise WorkbenchError(f"the bound of each slice must be {kinds}; got {got}")
    return bounds


def _limit(bound: Bound, ends: SliceEnds | None, number: int) -> Limit:
    if ends is None or not isinstance(bound, Relative):
        return bound.limit(np.empty(0))
    limit = bound.limit_between(*ends.between(number))
    return Limit(limit.kind, float(SHORT.create_decimal_from_float(limit.value)))


def _one_or_all(kinds: list[str]) -> str | list[str]:
    """The kind that all have, or that of each."""
    return kinds[0] if len(set(kinds)) == 1 else kinds


def _for_each(kind: Any, values: list[Any]) -> list[Any]:
    return kind if isinstance(kind, list) else [kind] * len(values)
