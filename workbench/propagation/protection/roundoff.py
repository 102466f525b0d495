"""How large round-off is, for thresholds: a variance model, as in V-ABFT (arXiv 2602.08043).

A dot product of K terms is K - 1 additions, each rounded. If errors are independent, their variance is u²/3 times the sum
of the squared partial sums. For products of random sign these grow like a random walk, to the root of the sum of squares Q;
for products of one sign, like a ramp, to the sum s. Together: u²/3 (K Q / 2 + K s² / 3). A threshold is MOST standard
deviations.

A bound without a model, K u Σ|ab|, is a hundred times larger or more, and would let as much larger faults pass. The price
of a model is that it may be wrong. So what exceeds its threshold is only suspected (`repair.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backend import Array

MOST = 8.0


def unit(dtype: Any) -> float:
    """The largest relative error of one rounding."""
    return float(np.finfo(dtype).eps) / 2


def deviation(terms: int, squares: Array, value: Array, dtype: Any) -> Array:
    """The standard deviation of the round-off of a sum of so many products.

    `squares` is the sum of the squared products, `value` the sum of the products.

    >>> float(deviation(100, np.array(100.0), np.array(0.0), np.float32)) < 3e-6
    True
    """
    return unit(dtype) * ((terms * squares / 2 + terms * value**2 / 3) / 3) ** 0.5


def certainly_wrong(result: Array, exact: Array, size: Array, terms: int) -> Array:
    """Which values differ from the exact ones by more than the round-off of any order of summation; not a number does.

    `size` is the sum of the sizes of the products.

    >>> certainly_wrong(np.array([1.0, 1.1]), np.array([1.0, 1.0]), np.array([1.0, 1.0]), 2).tolist()
    [False, True]
    """
    dtype = result.dtype
    bound = certain(terms, size, dtype) + 2 * unit(dtype) * abs(exact)
    return ~(abs(result - exact) <= bound) & (result != exact.astype(dtype))


def certain(terms: int, size: Array, dtype: Any) -> Array:
    """A bound on the round-off of a sum of so many products in any order, and of the same sum in double."""
    smallest = terms * float(np.finfo(dtype).smallest_subnormal)
    return 1.01 * (terms + 2) * (unit(dtype) + unit(np.float64)) * size + smallest
