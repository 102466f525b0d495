"""When two results are equally good: a measure of the damage, whose limit is 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from workbench.arguments import positive
from workbench.backend import Array, to_host
from workbench.errors import WorkbenchError

Results = Mapping[str, Array]   # the outputs of a pipeline


@dataclass(frozen=True)
class Tolerance:
    """A measure of the damage between the right outputs and others; up to 1 is tolerated.

    >>> within(0.1).damage({"mean": np.array([10.0])}, {"mean": np.array([10.5])})
    0.5
    """

    name: str
    damage: Callable[[Results, Results], float]


def agreed(given: Tolerance | None, own: Tolerance | None) -> Tolerance:
    """The tolerance that is given, else that of a pipeline, else within 1% of each output.

    >>> agreed(None, None).name
    'every output within 0.01 of its size'
    """
    if given is not None and not isinstance(given, Tolerance):
        raise WorkbenchError(f"tolerance must be one such as within(0.01) or Tolerance(name, damage); got {given!r}")
    return given or own or within()


@dataclass(frozen=True)
class _LargestRelative:
    share: float

    def __call__(self, right: Results, other: Results) -> float:
        return max(self._of(to_host(right[name]), to_host(other[name])) for name in right)

    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            size = np.sqrt(np.sum(abs(right.astype(np.complex128)) ** 2))
            error = np.sqrt(np.sum(abs(other.astype(np.complex128) - right.astype(np.complex128)) ** 2))
        return float(error / size / self.share) if size > 0 else (0.0 if error == 0 else np.inf)


def within(share: float = 0.01) -> Tolerance:
    """Each output differs by at most this share of its size, in the root-mean-square sense."""
    share = positive("share", share)
    return Tolerance(f"every output within {share:.3g} of its size", _LargestRelative(share))


@dataclass(frozen=True)
class _EachRelative:
    share: float

    def __call__(self, right: Results, other: Results) -> float:
        return max(self._of(to_host(right[name]), to_host(other[name])) for name in right)

    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            change: np.ndarray = abs(other.astype(wide) - right.astype(wide))
            shares = np.where(change == 0, 0.0, change / abs(right.astype(wide)))
        return float(shares.max()) / self.share


def each_within(share: float = 0.01) -> Tolerance:
    """Each value of the outputs differs by at most this share of itself: P(k) within 1%, for instance.

    >>> each_within(0.01).damage({"P": np.array([1.0, 4.0])}, {"P": np.array([1.01, 4.0])}) <= 1.000001
    True
    """
    share = positive("share", share)
    return Tolerance(f"every value within {share:.3g} of itself", _EachRelative(share))


@dataclass(frozen=True)
class _Poisson:
    sigmas: float

    def __call__(self, right: Results, other: Results) -> float:
        return max(self._of(to_host(right[name]), to_host(other[name])) for name in right)

    def _of(self, right: np.ndarray, other: np.ndarray) -> float:
        error = np.sqrt(np.maximum(right.astype(np.float64), 1.0))
        return float((abs(other.astype(np.float64) - right) / error).max()) / self.sigmas


def poisson(sigmas: float = 1.0) -> Tolerance:
    """Each count differs by at most its Poisson error, the root of the count, and at least 1.

    >>> poisson().damage({"n": np.array([100, 0])}, {"n": np.array([105, 1])})
    1.0
    """
    sigmas = positive("sigmas", sigmas)
    return Tolerance(f"every count within {sigmas:.3g} Poisson errors", _Poisson(sigmas))


@dataclass(frozen=True)
class _Shares:
    share: float

    def __call__(self, right: Results, other: Results) -> float:
        return max(float(np.mean(to_host(right[name]) != to_host(other[name]))) for name in right) / self.share


def shares_equal(share: float) -> Tolerance:
    """At most this share of the values differs: for labels.

    >>> shares_equal(0.5).damage({"labels": np.array([1, 2])}, {"labels": np.array([1, 3])})
    1.0
    """
    share = positive("share", share)
    return Tolerance(f"at most {share:.3g} of the values changed", _Shares(share))
