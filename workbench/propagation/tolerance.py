"""When two results are equally good: a measure of the damage, whose limit is 1.

It is the same in any unit of the outputs, down to the smallest and up to the largest numbers. A value that is not finite is
equal to itself alone: the damage of any other in its place is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench.arguments import positive
from workbench.backend import Array, to_host
from workbench.errors import WorkbenchError
from workbench.propagation.error_sizes import relative_error, unlike
from workbench.propagation.number_format import components

LARGE = 1e307
Results = Mapping[str, Array]   # the outputs of a pipeline


@dataclass(frozen=True)
class Tolerance:
    """A measure of the damage between the right outputs and others; up to 1 is tolerated.

    `limit` is the number that was given to the function of this module that has `made` it, such as `within`.

    >>> within(0.1).damage({"mean": np.array([10.0])}, {"mean": np.array([10.5])})
    0.5
    """

    name: str
    damage: Callable[[Results, Results], float]
    limit: float = field(default=1.0, repr=False)
    made: Callable[[float], Tolerance] | None = field(default=None, repr=False, compare=False)

    def with_limit(self, limit: float) -> Tolerance:
        """The same measure with another limit; for a measure of your own, the damage that is tolerated.

        >>> within(0.1).with_limit(0.2).name
        'every output within 0.2 of its size'
        >>> Tolerance("equal", lambda right, other: 3.0).with_limit(6.0).damage({}, {})
        0.5
        """
        if self.made is not None:
            return self.made(limit)
        limit = positive("the limit", limit)
        own = self.damage.damage if isinstance(self.damage, _Share) else self.damage
        name = f"{limit:.3g} times: {self.name.removeprefix(f'{self.limit:.3g} times: ')}"
        return Tolerance(name, _Share(own, limit), limit)


@dataclass(frozen=True)
class _Share:
    """A damage in units of the damage that is tolerated."""

    damage: Callable[[Results, Results], float]
    tolerated: float

    def __call__(self, right: Results, other: Results) -> float:
        return self.damage(right, other) / self.tolerated


def agreed(given: Tolerance | None, own: Tolerance | None) -> Tolerance:
    """The tolerance that is given, else that of a pipeline, else within 1% of each output.

    >>> agreed(None, None).name
    'every output within 0.01 of its size'
    """
    if given is not None and not isinstance(given, Tolerance):
        raise WorkbenchError(f"tolerance must be one such as within(0.01) or Tolerance(name, damage); got {given!r}")
    return given or own or within()


@dataclass(frozen=True)
class _Worst:
    """The largest damage of any output; infinite where a value that is not finite is not the same before and after."""

    share: float

    def __call__(self, right: Results, other: Results) -> float:
        return max((self._of_output(to_host(right[name]), to_host(other[name])) for name in right), default=0.0)

    def _of_output(self, right: np.ndarray, other: np.ndarray) -> float:
        if unlike(right, other):
            return np.inf
        finite = np.isfinite(right) & np.isfinite(other)
        if not finite.all():
            right, other = right[finite], other[finite]
        with np.errstate(all="ignore"):
            return self._of(right, other) / self.share if right.size else 0.0

    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        """The damage of finite values, of which there are some, at a share of 1."""
        raise NotImplementedError


class _LargestRelative(_Worst):
    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        return relative_error(right, other)


def within(share: float = 0.01) -> Tolerance:
    """Each output differs by at most this share of its size, in the root-mean-square sense."""
    share = positive("share", share)
    return Tolerance(f"every output within {share:.3g} of its size", _LargestRelative(share), share, within)


class _EachRelative(_Worst):
    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        one, two = np.ascontiguousarray(right, wide), np.ascontiguousarray(other, wide)
        if max(abs(components(one)).max(), abs(components(two)).max()) > LARGE:
            one, two = one / 4, two / 4   # whose sizes and differences are finite
        change: np.ndarray = abs(two - one)
        return float(np.where(change == 0, 0.0, change / abs(one)).max())


def each_within(share: float = 0.01) -> Tolerance:
    """Each value of the outputs differs by at most this share of itself: P(k) within 1%, for instance.

    >>> each_within(0.01).damage({"P": np.array([1.0, 4.0])}, {"P": np.array([1.01, 4.0])}) <= 1.000001
    True
    """
    share = positive("share", share)
    return Tolerance(f"every value within {share:.3g} of itself", _EachRelative(share), share, each_within)


class _Poisson(_Worst):
    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        counts = right.astype(np.float64)
        return float((abs(other.astype(np.float64) - counts) / np.sqrt(np.maximum(counts, 1.0))).max())


def poisson(sigmas: float = 1.0) -> Tolerance:
    """Each count differs by at most its Poisson error, the root of the count, and at least 1.

    >>> poisson().damage({"n": np.array([100, 0])}, {"n": np.array([105, 1])})
    1.0
    """
    sigmas = positive("sigmas", sigmas)
    return Tolerance(f"every count within {sigmas:.3g} Poisson errors", _Poisson(sigmas), sigmas, poisson)


@dataclass(frozen=True)
class _Shares:
    share: float

    def __call__(self, right: Results, other: Results) -> float:
        return max((self._of(to_host(right[name]), to_host(other[name])) for name in right), default=0.0) / self.share

    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        differ = (right != other) & ~((right != right) & (other != other))   # not a number equals itself here
        return float(np.mean(differ)) if differ.size else 0.0


def shares_equal(share: float) -> Tolerance:
    """At most this share of the values differs: for labels.

    >>> shares_equal(0.5).damage({"labels": np.array([1, 2])}, {"labels": np.array([1, 3])})
    1.0
    """
    share = positive("share", share)
    return Tolerance(f"at most {share:.3g} of the values changed", _Shares(share), share, shares_equal)
