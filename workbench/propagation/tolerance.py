"""When two results are equally good: a measure of the damage, whose limit is 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from workbench.arguments import positive
from workbench.backend import Array, to_host

Results = Mapping[str, Array]   # the outputs of a pipeline


@dataclass(frozen=True)
class Tolerance:
    """A measure of the damage between the right outputs and others; up to 1 is tolerated.

    >>> within(0.1).damage({"mean": np.array([10.0])}, {"mean": np.array([10.5])})
    0.5
    """

    name: str
    damage: Callable[[Results, Results], float]


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
