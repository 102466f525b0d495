"""Where the promise of a linear combination of archives comes from: the promises of its sources, and what was added.

No original of a combination is ever seen. If each source is within its limit of its original, the combination of the
decoded sources is within the sum of |coefficient| x limit of that of the originals; the roundings of the arithmetic and the
error of encoding the result are added. All sums are exact and rounded up once, so anybody can add them again: a certificate
whose limit is not the sum of its parts is refused.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from workbench.archive.key import COPY
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, Limits, PerSlice, SliceLimits
from workbench.guarantees.per_slice import stated_limit
from workbench.rounding import rounded_outwards
from workbench.slabs import Slices

NOTHING = Limit("absolute", 0.0)


@dataclass(frozen=True)
class Source:
    """An archive in a combination: its coefficient, its name, the checksum of its documents, and what it promises."""

    coefficient: float
    name: str
    checksum: str
    limit: Limits

    def __post_init__(self) -> None:
        if not math.isfinite(self.coefficient):
            raise WorkbenchError(f"the coefficient of {self.name!r:.80} must be finite; got {self.coefficient}")
        if is_relative(self.limit):
            raise WorkbenchError(f"{self.name!r:.80} must have an absolute limit; got {self.limit!r:.80}")


@dataclass(frozen=True)
class Derivation:
    """The sources of a combination, the largest error of the arithmetic, and that of encoding the result.

    >>> sources = Source(1.0, "a", "", Limit("absolute", 0.5)), Source(-2.0, "b", "", Limit("absolute", 0.25))
    >>> derivation = Derivation(sources, Limit("absolute", 0.125), NOTHING)
    >>> derivation.expression, derivation.limit
    ('a - 2 b', Limit(kind='absolute', value=1.125))
    """

    sources: tuple[Source, ...]
    rounding: Limits
    encoding: Limits

    @property
    def limit(self) -> Limits:
        """The limit of the combination: the sum of all parts."""
        return summed([*((one.coefficient, one.limit) for one in self.sources), (1.0, self.rounding), (1.0, self.encoding)])

    @property
    def bound(self) -> Bound:
        """The bound that has this limit."""
        limit = self.limit
        if isinstance(limit, Limit):
            return Absolute(limit.value)
        return PerSlice([Absolute(each) for each in limit.values], limit.axis)

    @property
    def expression(self) -> str:
        """The combination, with the names of its sources."""
        return expression([(one.coefficient, one.name) for one in self.sources])

    def rows(self) -> list[str]:
        """What each part adds, in words."""
        sources = [
            f"{one.coefficient:.6g} x {one.name}: its archive (checksum {one.checksum}) promises {_in_words(one.limit)}"
            for one in self.sources
        ]
        return [*sources, f"the arithmetic adds at most {_in_words(self.rounding)}; encoding, {_in_words(self.encoding)}"]

    def to_dict(self) -> dict[str, Any]:
        """The derivation, ready for JSON."""
        sources = [
            {"coefficient": one.coefficient, "name": one.name, "checksum": one.checksum, "limit": one.limit.to_dict()}
            for one in self.sources
        ]
        return {"sources": sources, "rounding": self.rounding.to_dict(), "encoding": self.encoding.to_dict()}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Self:
        """The derivation that `to_dict` described."""
        sources = tuple(
            Source(float(one["coefficient"]), str(one["name"]), str(one["checksum"]), stated_limit(one["limit"]))
            for one in described["sources"]
        )
        if not sources:
            raise WorkbenchError("a derived promise must have sources; the certificate states none")
        return cls(sources, stated_limit(described["rounding"]), stated_limit(described["encoding"]))


def checksum_of(documents: Mapping[str, bytes]) -> str:
    """The checksum by which certificates name an archive: of the keys and contents of its documents.

    The copy of the root is left out: what it is deflated to depends on its dictionary, and on the library.

    >>> checksum_of({"zarr.json": b"{}", "values/root.json.z": b"..."})
    '32e3f14a'
    """
    checksum = 0
    for key, data in sorted(documents.items()):
        if key.rsplit("/", 1)[-1] != COPY:
            checksum = zlib.crc32(data, zlib.crc32(key.encode(), checksum))
    return f"{checksum:08x}"


def summed(parts: Iterable[tuple[float | Fraction, Limits]]) -> Limits:
    """The sum of limits, each times the magnitude of its factor, rounded up; slice by slice where one is of slices.

    >>> summed([(-2.0, Limit("absolute", 0.5)), (1.0, SliceLimits(0, (NOTHING, Limit("absolute", 1.0))))]).values
    [1.0, 2.0]
    """
    weighted = [(abs(Fraction(factor)), limit) for factor, limit in parts]
    sliced = [limit for _, limit in weighted if isinstance(limit, SliceLimits)]
    if not sliced:
        return _sum([(factor, limit.value) for factor, limit in weighted if isinstance(limit, Limit)])
    axis, count = sliced[0].axis, len(sliced[0].limits)
    if other := [limit for limit in sliced if (limit.axis, len(limit.limits)) != (axis, count)]:
        got = f"{len(other[0].limits):,} slices along axis {other[0].axis}"
        raise WorkbenchError(f"all limits of slices must be along one axis: {count:,} along axis {axis}; got {got}")
    columns = [limit.values if isinstance(limit, SliceLimits) else [limit.value] * count for _, limit in weighted]
    factors = [factor for factor, _ in weighted]
    return SliceLimits(axis, tuple(_sum(list(zip(factors, row, strict=True))) for row in zip(*columns, strict=True)))


def largest(like: Limits, parts: Sequence[tuple[Slices, Fraction]]) -> Limits:
    """The largest of the figures of chunks at these places, rounded up; in each slice, where limits are of slices."""
    if isinstance(like, Limit):
        return Limit("absolute", rounded_outwards(max(figure for _, figure in parts)))
    most = [Fraction(0)] * len(like.limits)
    for place, figure in parts:
        for number in range(place[like.axis].start, place[like.axis].stop):
            most[number] = max(most[number], figure)
    return SliceLimits(like.axis, tuple(Limit("absolute", rounded_outwards(figure)) for figure in most))


def expression(terms: Sequence[tuple[float, str]]) -> str:
    """A linear combination in words.

    >>> expression([(-1.0, "a"), (0.5, "b"), (-2.0, "c")])
    '-a + 0.5 b - 2 c'
    """
    words = ""
    for number, (coefficient, name) in enumerate(terms):
        sign = ("-" if coefficient < 0 else "") if number == 0 else " - " if coefficient < 0 else " + "
        factor = "" if abs(coefficient) == 1 else f"{abs(coefficient):.6g} "
        words += f"{sign}{factor}{name if ' ' not in name else f'({name})'}"
    return words


def _sum(parts: Sequence[tuple[Fraction, float]]) -> Limit:
    total = rounded_outwards(sum((factor * Fraction(value) for factor, value in parts), Fraction(0)))
    if total == math.inf:
        raise WorkbenchError("the bound of this combination is beyond the range of float64: use smaller coefficients")
    return Limit("absolute", total)


def is_relative(limit: Limits) -> bool:
    """Whether any value has a limit relative to itself."""
    each = limit.limits if isinstance(limit, SliceLimits) else (limit,)
    return any(one.relative and one.value > 0 for one in each)


def _in_words(limit: Limits) -> str:
    if isinstance(limit, Limit):
        return f"{limit.value:.6g}"
    return f"{min(limit.values):.6g} to {max(limit.values):.6g} in slices along axis {limit.axis}"
