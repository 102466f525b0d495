"""A checksum for Fourier transforms: a sum of all waves with random signs, which the values must give as well.

The sum of w(k) F(k) is the sum of f(x) W(x), where W is the transform of the signs w. That takes one pass over the waves
and one over the values, much less than a transform. A fault is not located: the transform is computed again. Waves that are
the same twice, and no further off than any rounding of a fast transform allows (Higham, Accuracy and Stability of Numerical
Algorithms, theorem 24.2), are round-off, and count as no fault.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.roundoff import MOST, unit

_SEED = 20_408   # of the signs, which may be any


def checked_rfftn(values: Array, waves: Array, transform: Callable[[Array], Array]) -> tuple[Array, Findings]:
    """The waves that `transform(values)` has given, the real transform over all axes, computed again if they do not add up.

    Values that are not finite cannot be checked.

    >>> values = np.random.default_rng(0).normal(size=(8, 8))
    >>> waves = np.fft.rfftn(values)
    >>> waves[2, 3] *= -1
    >>> checked_rfftn(values, waves, np.fft.rfftn)[1]
    Findings(checks=1, detected=1, corrected=0, recomputed=1, unchecked=0)
    """
    xp = backend.namespace(values, waves)
    size = _norm(xp, values)
    if not math.isfinite(size):
        return waves, Findings(unchecked=waves.size)
    off, likely = _off(xp, values, waves), _likely(size, waves)
    if off <= likely:
        return waves, Findings(checks=1)
    again = transform(values).reshape(waves.shape)
    largest = 4 * math.sqrt(waves.size) * likely   # all signs aligned with the errors, each the largest possible
    round_off = off <= largest and bool((again == waves).all())
    return again, Findings(checks=1, detected=int(not round_off), recomputed=1)


def _norm(xp: Any, values: Array) -> float:
    """The root of the sum of squares, also of numbers whose squares overflow or underflow."""
    squares, numbers = float(xp.vdot(values, values)), np.finfo(values.dtype)
    if float(numbers.tiny) / float(numbers.eps) ** 2 < squares < math.inf:
        return math.sqrt(squares)
    largest = float(abs(values).max())
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float(xp.linalg.norm((values / largest).reshape(-1)))


def _off(xp: Any, values: Array, waves: Array) -> float:
    """How far the two sums are apart; NaN where the waves are not finite."""
    signs, real, imaginary = map(xp.asarray, _signs(tuple(values.shape)))
    flat = values.reshape(-1)
    of_values = complex(float(flat @ real), float(flat @ imaginary))
    with np.errstate(all="ignore"):   # faults overflow
        return abs(complex((waves.reshape(-1) @ signs).item()) - of_values)


def _likely(size: float, waves: Array) -> float:
    """Some standard deviations of the rounding of a transform whose waves have this root mean square.

    Products of the smallest numbers are rounded to multiples of the smallest of all.
    """
    rounding = unit(waves.dtype) * math.log2(max(waves.size, 2)) * math.sqrt(waves.size) * size
    return MOST * (rounding + 2 * waves.size * float(np.finfo(waves.dtype).smallest_subnormal))


@functools.lru_cache(maxsize=4)
def _signs(shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Random signs for the waves, and the real and imaginary parts of their transform."""
    half = (*shape[:-1], shape[-1] // 2 + 1)
    signs = np.random.default_rng(_SEED).integers(0, 2, half) * 2.0 - 1.0
    padded = np.zeros(shape)
    padded[..., : half[-1]] = signs
    transformed = np.fft.fftn(padded).reshape(-1)
    parts = signs.reshape(-1), np.ascontiguousarray(transformed.real), np.ascontiguousarray(transformed.imag)
    return parts[0], parts[1], parts[2]
