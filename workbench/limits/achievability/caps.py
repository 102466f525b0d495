"""Random codewords uniform on a sphere: achievability for equal variances (Kostina, Verdu 2012, theorem 37).

A codeword covers x if it lies in a spherical cap around the direction of x. Theorem 37 uses the sphere of squared radius
1 - d for variance 1, and bounds the cap by the flat disc below it. Both are improved here without loss of rigour: the cap
is a single integral, and the optimal sphere is larger, because the vectors with failure probability eps determine the rate.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.achievability.classes import bits
from workbench.limits.achievability.random_code import RandomCode, around, farthest, gauss, log_chi
from workbench.limits.spectrum import require_distortion, require_excess

Cap = Literal["exact", "thm37"]

NO_CODE = 1e300   # stands for an infinite ln M, which the minimiser could not handle


def sphere(size: float, distortion: float, eps: float, radius: float | None = None, cap: Cap = "exact") -> float:
    """Bits per sample of `size` samples of variance 1, for codewords of root mean square `radius`; the best if not given.

    Infinite where the bound is void: if vectors that no codeword of this length can cover are too probable.

    >>> round(sphere(100, 0.25, 0.01), 6), round(sphere(100, 0.25, 0.01, radius=0.75**0.5, cap="thm37"), 4)
    (1.249573, 1.3824)
    """
    distortion = require_distortion(distortion)
    require_excess(eps)
    if not size >= 2:
        raise WorkbenchError(f"size must be at least 2 for codewords on a sphere; got {size!r} samples")
    square = _quantile(size, eps) - distortion
    if square <= 0:
        return 0.0   # the origin covers all but eps
    if radius is not None:
        return bits(random_code(size, distortion, eps, radius, cap).log_codewords(eps), size)
    return bits(_at_best_radius(size, distortion, eps, cap, float(np.sqrt(square))), size)


def _quantile(size: float, eps: float) -> float:
    """The mean square that a vector exceeds with probability eps."""
    from scipy.special import chdtri

    return float(chdtri(size, eps)) / size


def _at_best_radius(size: float, distortion: float, eps: float, cap: Cap, near: float) -> float:
    """The minimum of ln M over radii near the sphere that is best for vectors exceeded with probability eps."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda radius: min(random_code(size, distortion, eps, radius, cap).log_codewords(eps), NO_CODE),
        bounds=(near * (1 - 1 / (1 + np.sqrt(size))), near * (1 + 0.1 / np.sqrt(size))),
        method="bounded",
        options={"xatol": 1e-4 * near},
    )
    return float(found.fun) if found.fun < NO_CODE else np.inf


def random_code(size: float, distortion: float, eps: float, radius: float, cap: Cap) -> RandomCode:
    """The random code on this sphere: quadrature over the length of x, dense at the lengths where caps begin to fail."""
    scale = np.sqrt(size)
    near, reach = radius * scale, float(np.sqrt(distortion)) * scale
    nothing = RandomCode(np.empty(0), np.empty(0), missed=1.0)
    outer = _outer_front(size, near, reach, eps, cap)
    if outer is None:
        return nothing
    inner = _partner(outer, near, reach, cap)
    shortest, longest = farthest(size, eps)
    low, high = max(shortest, near - reach, reach - near if cap == "thm37" else 0.0), min(longest, near + reach)
    if low >= high:
        return nothing
    middle = min(max((outer + inner) / 2, low), high)
    fronts, lows, highs = np.array([inner, outer]), np.array([low, middle]), np.array([middle, high])
    nats = np.array([_nat(size, front, near, reach) for front in fronts])
    nodes, weights = around(np.clip(fronts, lows, highs), nats, lows, highs)
    lengths, weights = nodes[weights > 0], weights[weights > 0]
    log_hits = _log_cap(size, _angle(lengths, near, reach), cap)
    return RandomCode(log_hits, weights * np.exp(log_chi(lengths, size)), missed=_outside(size, low, high))


def _partner(outer: float, near: float, reach: float, cap: Cap) -> float:
    """The shorter length with the same cap as a longer one: their product is the power of the point (tangent squared)."""
    product = near**2 - reach**2
    return abs(product) / outer if cap == "thm37" else max(product, 0.0) / outer


def _outside(size: float, low: float, high: float) -> float:
    """The probability of a length below `low` or above `high`."""
    from scipy.special import chdtr, chdtrc

    return float(chdtr(size, low**2) + chdtrc(size, high**2))


def _outer_front(size: float, near: float, reach: float, eps: float, cap: Cap) -> float | None:
    """The length that, with its partner, bounds x except with probability eps; None if the whole reach is too short."""
    from scipy.optimize import brentq

    def beyond(outer: float) -> float:
        return _outside(size, _partner(outer, near, reach, cap), outer) - eps

    shortest, longest = float(np.sqrt(abs(near**2 - reach**2))), near + reach
    if beyond(longest) >= 0:
        return None
    return float(brentq(beyond, shortest, longest)) if beyond(shortest) > 0 else shortest


def _nat(size: float, front: float, near: float, reach: float) -> float:
    """The approximate distance from the front over which ln p changes by one nat."""
    product = near**2 - reach**2
    if front <= 0:
        return 1 / np.sqrt(size)
    cosine = min((front + product / front) / (2 * near), 1.0)
    slope = size * abs(1 - product / front**2) / (2 * near) * abs(cosine) / max(1 - cosine**2, 1e-300)
    return float(min(1 / max(slope, 1e-300), 0.3))


def _angle(lengths: np.ndarray, near: float, reach: float) -> np.ndarray:
    """The opening angle of the cap that covers a vector of this length: 0 if it is empty, pi if it is the sphere."""
    apart = near - lengths
    half = (reach - apart) * (reach + apart) / (4 * near * np.maximum(lengths, 1e-300))   # sin^2 of half the angle
    return np.asarray(2 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))


def _log_cap(size: float, angle: np.ndarray, cap: Cap) -> np.ndarray:
    """The logarithm of the share of the sphere in a cap, or of the disc below it."""
    from scipy.special import betaln, gammaln

    sine = np.sin(angle)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(sine, 0.0))
    if cap == "thm37":
        disc = gammaln(size / 2 + 1) - gammaln((size + 1) / 2) - np.log(np.sqrt(np.pi) * size)
        return np.asarray(disc + (size - 1) * logs)
    return np.minimum(_log_within(size - 2, angle, logs) - betaln((size - 1) / 2, 0.5), 0.0)


def _log_within(power: float, angle: np.ndarray, log_sine: np.ndarray) -> np.ndarray:
    """The logarithm of the integral of sin^power from 0 to the angle.

    Up to a right angle, the integrand decays inwards from the angle at least like exp(-power (cot step + step^2 / 2)), so
    few nodes on the remaining range give full precision. Above a right angle, the complement is added by symmetry.
    """
    start = np.minimum(angle, np.pi / 2)
    steep = 1 / np.tan(np.maximum(start, 1e-100))
    depth = 80 / max(power, 1e-9)
    reach = np.minimum(start, depth / (steep + np.sqrt(steep**2 + depth)))
    inner = _gauss(power, steep, reach)
    logs = power * np.where(angle < np.pi / 2, np.maximum(log_sine, -1e300), 0.0)
    with np.errstate(divide="ignore"):
        result = logs + np.log(inner)
    past = angle > np.pi / 2
    if past.any():
        flat = angle[past] - np.pi / 2
        result[past] = np.log(inner[past] + _gauss(power, np.zeros_like(flat), np.minimum(flat, np.sqrt(depth))))
    return result


def _gauss(power: float, steep: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """The integral of (sin(start - step) / sin(start))^power over steps up to `reach`, where cot(start) = `steep`."""
    place, weight = gauss(36)
    step = reach[:, None] * (0.5 + 0.5 * place)
    ratio = np.minimum(steep[:, None] * np.sin(step) + 2 * np.sin(step / 2) ** 2, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        height = np.exp(power * np.log1p(-ratio)) if power > 0 else np.ones_like(ratio)
    return np.asarray(0.5 * reach * (height @ weight))
