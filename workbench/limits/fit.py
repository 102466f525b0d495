"""The covariance of a region: the most likely of several families, and its misfit.

The likelihood is Whittle's, for the mean periodogram of the region's blocks (`periodogram.py`). What the uncertainty of the
fit means for a rate is the subject of `interval.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.limits.correlation import Autoregressive, Correlation, Matern
from workbench.limits.families import FAMILIES, Family, Noisy, Prewhitened, RotatedMatern, Wider
from workbench.limits.misfit import Misfit, misfit
from workbench.limits.periodogram import Periodogram
from workbench.limits.spectrum import LOG2E

STEP = 1e-4           # of a parameter, for finite differences
LEAST_GAIN = 1e-6     # of the deviance: the search ends below it
PASSES = 40
HOPELESS = 0.02       # of the deviance behind the best family: no wider family is tried
WORTH_REPEATING = 0.02   # of the deviance: corrections are repeated that gain more
MOST_REPEATED = 8
WORTH_DIRECTIONS = 0.002   # bits per sample that a misfit by direction costs: with more, other directions are fitted
FEWEST = 8            # cells, and frequencies, below which nothing but a variance can be fitted


@dataclass(frozen=True, eq=False)
class Fit:
    """The most likely covariance of a region, and the quality of the fit."""

    covariance: Correlation
    family: str
    deviances: Mapping[str, float]   # per family: minus twice the log-likelihood per cell, with a penalty for parameters
    misfit: Misfit
    seen: Periodogram
    expected: np.ndarray             # the expectation of the periodogram
    parameters: int                  # how many were fitted
    independent: float               # how many independent values it is worth; 0 if nothing is known about it
    unresolved: float = 0.0          # bits per sample that resolving peaks of the spectrum better has saved
    members: tuple[Wider, ...] = ()   # of each family that was fitted, the most likely one


def fit(seen: Periodogram, cells: int) -> Fit:
    """Fit all families to a region of `cells` cells, without and with noise, and take the most likely one."""
    if min(cells, seen.multiplicity.sum()) < FEWEST:
        return _white(seen)
    price = np.log(cells) / seen.independent
    families: list[Family] = [*FAMILIES, *map(Noisy, FAMILIES)]
    found = {family.name: _likeliest(family, seen, family.starts(seen), price) for family in families}
    found |= {family.name: _likeliest(family, seen, [start], price) for family, start in _wider(found)}
    deviances = {name: deviance for name, (deviance, _, _) in found.items()}
    fitted = price * min(found.values(), key=lambda run: run[0])[2].size   # parameters that sampling corrects
    sampled = {"as sampled": _prewhitened(found, seen)}
    deviances["as sampled"] = sampled["as sampled"][0] + fitted
    along_axes = _fit_of(min(deviances, key=lambda each: deviances[each]), found, sampled, deviances, seen)
    if seen.signed is None or not (along_axes.misfit.of_direction and along_axes.misfit.bits > WORTH_DIRECTIONS):
        return along_axes
    if (rotated := _rotated(found, seen)) is not None:
        family, start = rotated
        found[family.name] = _likeliest(family, seen.signed, [start], price)
        deviances[family.name] = found[family.name][0]
    by_direction = "as sampled, by direction"
    sampled[by_direction] = _prewhitened(found, seen.signed)
    deviances[by_direction] = sampled[by_direction][0] + fitted
    name = min(deviances, key=lambda each: deviances[each])
    return along_axes if name == along_axes.family else _fit_of(name, found, sampled, deviances, seen.signed)


Member = tuple[float, Family, np.ndarray]   # the deviance with the price of parameters, the family, the parameters
Runs = Mapping[str, Member]                 # by the name of the family
Measured = tuple[float, Prewhitened, float]   # the deviance by cross-validation, the corrections, what repeating gained


def _likeliest(family: Family, seen: Periodogram, starts: Sequence[np.ndarray], price: float) -> Member:
    """The most likely member of a family that is found from these starts."""
    deviance, best = min((_search(family, seen, start) for start in starts), key=lambda run: run[0])
    return deviance + price * len(best), family, best


def _fit_of(
    name: str, found: Runs, sampled: Mapping[str, Measured], deviances: Mapping[str, float], seen: Periodogram
) -> Fit:
    """The fit of the family of this name, or of the measured covariance; judged by frequencies of either sign."""
    if name in found:
        _, family, best = found[name]
        covariance: Correlation = family.covariance(best)
        free, unresolved = len(best), 0.0
    else:
        _, measured, gained = sampled[name]
        covariance, free, unresolved = measured.covariance(seen.power), 0, 0.5 * LOG2E * gained
    whole = seen.signed or seen
    expected = whole.expected(covariance)
    parameters = free or covariance.values.size   # type: ignore[attr-defined]
    return Fit(covariance, name, deviances, misfit(whole, expected, free), whole, expected, parameters, seen.independent,
               unresolved, tuple((family, best) for _, family, best in found.values()))


def _prewhitened(found: Runs, seen: Periodogram) -> Measured:
    """The corrections of the most likely member of all families, repeated while they are worth it.

    Tapers and lag windows blur a peak. What is corrected and blurred again is closer to the measured power each time, first
    in the peaks, then in the noise (Richardson 1972).
    """
    _, family, best = min(found.values(), key=lambda run: run[0])
    measured = Prewhitened.of(seen, family.covariance(best), _expected(family, best, seen))
    first = deviance = _of_the_other_half(measured)
    for _ in range(MOST_REPEATED if np.isfinite(deviance) else 0):
        covariance = measured.covariance(seen.power)
        again = Prewhitened.of(seen, covariance, _raised(seen.expected(covariance)))
        repeated = _of_the_other_half(again)
        if not repeated < deviance - WORTH_REPEATING:
            break
        deviance, measured = repeated, again
    return deviance, measured, first - deviance if np.isfinite(deviance) else 0.0


def _rotated(found: Runs, seen: Periodogram) -> Wider | None:
    """Matérn fields of any direction, with noise, and the place of the best one along the axes there; None without one."""
    members = [(deviance, family.covariance(best)) for deviance, family, best in found.values()]
    matern = [(deviance, each) for deviance, each in members if isinstance(each, Matern)]
    if not matern:
        return None
    _, best = min(matern, key=lambda each: each[0])
    family = RotatedMatern(replace(best, nugget=0.0))
    noise = np.log(max(best.nugget / best.signal, 1e-4))
    return Noisy(family), np.append(family.starts(seen)[0], noise)


def _wider(found: Runs) -> list[Wider]:
    """What is wider than the best family that has a wider one, unless another family is better by far."""
    narrow = [(deviance, wide) for deviance, family, at in found.values() if (wide := family.wider(at)) is not None]
    deviance, wide = min(narrow, key=lambda each: each[0], default=(np.inf, None))
    return [wide] if wide is not None and deviance <= min(run[0] for run in found.values()) + HOPELESS else []


def _white(seen: Periodogram) -> Fit:
    """White noise, for regions that are too small for anything else; nothing is known about its uncertainty."""
    variance = float(np.sum(seen.multiplicity * seen.power) / seen.multiplicity.sum())
    covariance = Autoregressive(variance, (0.0,) * len(seen.side))
    expected = seen.expected(covariance)
    name = "white noise, for lack of values"
    return Fit(covariance, name, {name: seen.deviance(expected)}, misfit(seen, expected, 1), seen, expected, 1, 0.0)


def _search(family: Family, seen: Periodogram, start: np.ndarray) -> tuple[float, np.ndarray]:
    """The minimum of the deviance near a start and its position, by damped Fisher scoring."""
    low, high = np.array(family.bounds(seen)).T
    best = np.clip(start, low, high)
    expected = _expected(family, best, seen)
    least, damping = seen.deviance(expected), 1e-3
    for _ in range(PASSES):
        slopes = _slopes(family, best, seen, expected)
        weighted = slopes * seen.multiplicity.ravel()
        pull = weighted @ (seen.power / expected - 1).ravel()
        bread = weighted @ slopes.T
        gained = 0.0
        while damping < 1e8:
            step = np.linalg.solve(bread + damping * np.diag(np.diag(bread) + 1e-12 * np.trace(bread)), pull)
            tried = np.clip(best + np.clip(step, -2, 2), low, high)
            there = _expected(family, tried, seen)
            gained = least - seen.deviance(there)
            if gained >= 0:
                best, expected, least, damping = tried, there, least - gained, 0.1 * damping
                break
            damping *= 10
        if gained < LEAST_GAIN:
            break
    return least, best


def _expected(family: Family, parameters: np.ndarray, seen: Periodogram) -> np.ndarray:
    """The expected periodogram."""
    return _raised(seen.expected(family.covariance(parameters)))


def _raised(power: np.ndarray) -> np.ndarray:
    """Powers, of which very small ones are raised above rounding errors."""
    return np.maximum(power, 1e-13 * power.max())


def _slopes(family: Family, at: np.ndarray, seen: Periodogram, expected: np.ndarray) -> np.ndarray:
    """The derivatives of the logarithm of the expected power with respect to each parameter."""
    slopes = np.empty((len(at), expected.size))
    slopes[0] = 1.0   # the logarithm of the variance
    for place in range(1, len(at)):
        moved = at.copy()
        moved[place] += STEP
        slopes[place] = (np.log(_expected(family, moved, seen) / expected) / STEP).ravel()
    return slopes


def _of_the_other_half(measured: Prewhitened) -> float:
    """Two-fold cross-validation: the deviance of one half of the blocks from the covariance measured on the other."""
    seen = measured.seen
    if len(seen.weights) < 4:
        return np.inf
    middle, halves = len(seen.weights) // 2, []
    for half in (slice(None, middle), slice(middle, None)):   # contiguous halves, because neighbours overlap
        weights = seen.weights[half] / seen.weights[half].sum()
        halves.append(np.tensordot(weights, seen.blocks[half], 1))
    one, other = (seen.expected(measured.covariance(half)) for half in halves)
    if min(one.min(), other.min()) <= 0:
        return np.inf
    return 0.5 * (seen.deviance(one, halves[1]) + seen.deviance(other, halves[0]))
