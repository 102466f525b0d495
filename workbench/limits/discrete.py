"""Fields whose values are not continuous: rounded, packed into integers, or of a few kinds.

A bound for continuous values falls without end as the error bound grows and rises without end as it shrinks. A field on a
lattice of values cannot cost more than its exact values do. So error bounds below half a step of the lattice count as half
a step, and a field of few values gets the entropy of its values given their neighbours as a reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.limits.spectrum import LOG2E

SAMPLE = 2**15    # values looked at
FEW = 32          # different values of a field of few values
LEAST = 100       # values below which nothing is said
ULPS = 64.0       # spacings of floating-point numbers that a step must exceed
OFF = 0.05        # of a step: the largest distance of a value from the lattice


@dataclass(frozen=True)
class Lattice:
    """The values that a field takes: multiples of `step`, or `different` ones altogether."""

    step: float        # 0 where there is no common step
    different: int     # in a sample
    bits: float        # entropy of a value given its neighbours, for fields of few values; NaN for others

    @property
    def few(self) -> bool:
        """Whether there are so few different values that a Gaussian model describes nothing."""
        return self.different <= FEW

    def __str__(self) -> str:
        if self.few:
            return (
                f"the field has only {self.different} different values, which no Gaussian model describes: exact values "
                f"need about {self.bits:.3f} bits each, given their neighbours"
            )
        return f"the values are multiples of {self.step:.6g}: bounds for finer errors are those of exact values"


def lattice(values: np.ndarray, valid: np.ndarray) -> Lattice | None:
    """The lattice of the valid values; None for continuous values.

    >>> rounded = np.round(np.random.default_rng(0).standard_normal(5000), 2)
    >>> str(lattice(rounded, np.ones(5000, bool)))
    'the values are multiples of 0.01: bounds for finer errors are those of exact values'
    """
    known = values[valid]
    if known.size < LEAST:
        return None
    different = np.unique(known[:: max(1, known.size // SAMPLE)])
    if different.size <= FEW:
        every = np.unique(known)
        return Lattice(_step(every), every.size, conditional_entropy(np.searchsorted(every, values), valid))
    step = _step(different)
    return Lattice(step, int(different.size), float("nan")) if step else None


def conditional_entropy(kinds: np.ndarray, known: np.ndarray) -> float:
    """Bits per known value of an adaptive code whose context are the kinds of the values before it, one along each axis.

    >>> stripes = np.repeat([[0], [1]], 50, axis=0) * np.ones((1, 100), int)
    >>> conditional_entropy(stripes, np.ones(stripes.shape, bool)) < 0.02
    True
    """
    symbols = np.where(known, kinds, -1)
    names = np.unique(symbols[known], return_inverse=True)[1]
    count = int(names.max(initial=0)) + 1
    context = np.zeros(symbols.shape, np.int64)
    code = np.full(symbols.shape, count, np.int64)
    code[known] = names
    for axis in range(symbols.ndim):
        before = np.full(symbols.shape, count, np.int64)
        np.moveaxis(before, axis, 0)[1:] = np.moveaxis(code, axis, 0)[:-1]
        context = context * (count + 1) + before
    pairs, numbers = np.unique(context[known] * count + code[known], return_counts=True)
    _, where = np.unique(pairs // count, return_inverse=True)
    totals = np.bincount(where, numbers)
    bits = float(np.sum(totals * np.log2(totals)) - np.sum(numbers * np.log2(numbers)))
    learning = 0.5 * (count - 1) * float(np.log2(totals + 1).sum())   # the price of the statistics
    return (bits + learning) / int(np.count_nonzero(known)) if count > 1 else 0.0


def _step(different: np.ndarray) -> float:
    """The common step of sorted values; 0 if there is none."""
    if different.size < 3:
        return float(np.ptp(different))
    offsets = (different - different[0]).astype(np.float64)
    ulp = float(np.spacing(np.abs(different).max()))
    step = float(np.diff(offsets).min())
    if step <= ULPS * ulp:
        return 0.0
    for reach in (8, 64, 512, 4096, len(offsets)):   # the step becomes more accurate with the number of steps
        near = offsets[: reach + 1]
        numbers = np.rint(near / step)
        if np.abs(near - numbers * step).max() > OFF * step + 2 * ulp:
            return 0.0
        step = float(numbers @ near / (numbers @ numbers))
    return step


def price_of_parameters(parameters: int, cells: int, families: int) -> float:
    """Bits that the parameters of a region and the choice of its family cost (half a logarithm of the cells for each)."""
    return 0.5 * parameters * float(np.log(max(cells, 2))) * LOG2E + float(np.log2(max(families, 1)))
