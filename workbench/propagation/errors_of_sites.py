"""The size of an error at a site, and the floor below which it is rounding.

The floor is measured: the pipeline runs several times with the values at every site moved by one unit in the last place, up
or down, at random. An error below what this makes of the results says nothing about the perturbation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from workbench import backend
from workbench.backend import Array, to_host
from workbench.propagation.draws import draws_of
from workbench.propagation.number_format import components

if TYPE_CHECKING:
    from workbench.propagation.execution import Intervention
    from workbench.propagation.pipeline import Pipeline, Run

FLOOR_RUNS = 3
FLOATS = "fc"   # kinds of numbers that may be not finite
LEAST, MOST = 1e-260, 1e280   # sums of squares in which no square that matters overflows or underflows
_SEED = 2**63   # not one that anybody chooses for a trial


def relative_error(original: Array, changed: Array, categorical: bool = False) -> float:
    """The root mean square of the change over that of the values, where both are finite; for labels, the share changed.

    >>> relative_error(np.array([3.0, 4.0]), np.array([3.0, 4.5]))
    0.1
    >>> relative_error(np.arange(4), np.array([0, 1, 2, 9]), categorical=True)
    0.25
    """
    one, other = to_host(original), to_host(changed)
    if categorical:
        return float(np.mean(one != other))
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    one, other = one.astype(wide, copy=False).ravel(), other.astype(wide, copy=False).ravel()
    with np.errstate(all="ignore"):   # values of any size
        change = other - one
        squares, size = inner(change, change), inner(one, one)
    if LEAST < squares < MOST and LEAST < size < MOST:   # so all are finite, and none was lost in squaring
        return math.sqrt(squares) / math.sqrt(size)
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.all():
        one, other = one[finite], other[finite]
    with np.errstate(all="ignore"):
        change = other - one
        if np.isfinite(change).all():
            return _ratio_of_norms(change, one)
        return _ratio_of_norms(other / 2 - one / 2, one / 2)


def lost(original: Array, changed: Array) -> int:
    """How many values were finite, and are not any more.

    >>> lost(np.array([1.0, np.inf, 3.0]), np.array([np.nan, np.inf, np.inf]))
    2
    """
    other = to_host(changed)
    if other.dtype.kind not in FLOATS:
        return 0
    finite = np.isfinite(other)
    return 0 if finite.all() else int(np.count_nonzero(~finite & np.isfinite(to_host(original))))


def unlike(original: Array, changed: Array) -> bool:
    """Whether any value that is not finite, before or after, is not the same: a size of such a change is none.

    >>> unlike(np.array([1.0, -np.inf, np.nan]), np.array([2.0, -np.inf, np.nan]))
    False
    >>> unlike(np.array([-np.inf]), np.array([5.0]))
    True
    """
    one, other = to_host(original), to_host(changed)
    if one.dtype.kind not in FLOATS and other.dtype.kind not in FLOATS:
        return False
    finite = np.isfinite(one) & np.isfinite(other)
    if finite.all():
        return False
    one, other = one[~finite], other[~finite]
    return not bool(((one == other) | (np.isnan(one) & np.isnan(other))).all())


def ratio(error: float, size: float) -> float:
    """Error over size; where the size is zero, any error is infinite."""
    return error / size if size > 0 else (0.0 if error == 0 else math.inf)


def inner(one: np.ndarray, other: np.ndarray) -> float:
    """The real part of the inner product of two rows in double precision.

    One thread adds: a library for matrices would add in another order for another number of threads.

    >>> inner(np.array([1 + 2j]), np.array([3 + 4j]))
    11.0
    """
    parts = (np.ascontiguousarray(each).view(np.float64) for each in (one, other))
    return float(np.einsum("i,i->", *parts))


def norm(values: np.ndarray) -> float:
    """The root of the sum of squares of numbers of any type, in double precision and without overflow.

    >>> round(norm(np.array([3e200, 4e200])) / 1e200, 9)
    5.0
    """
    size, exponent = _scaled_norm(values)
    with np.errstate(all="ignore"):
        return float(np.ldexp(size, exponent))


def root_mean_square(values: np.ndarray) -> float:
    """The root of the mean square of the moduli of numbers of any size; 0 where there are none.

    >>> round(root_mean_square(np.array([1e-200, 7e-200])) * 1e200, 9)
    5.0
    """
    size, exponent = _scaled_norm(values)
    return float(np.ldexp(size / math.sqrt(max(values.size, 1)), exponent))


def _ratio_of_norms(error: np.ndarray, values: np.ndarray) -> float:
    """The norm of the error over that of the values, although either may be too large or too small for its squares."""
    (one, exponent), (other, larger) = _scaled_norm(error), _scaled_norm(values)
    return float(np.ldexp(ratio(one, other), exponent - larger))


def _scaled_norm(values: np.ndarray) -> tuple[float, int]:
    """The norm as a number near 1, or 0, and the power of two that it is multiplied by."""
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    numbers = components(np.ascontiguousarray(values, wide))
    largest = float(abs(numbers).max()) if numbers.size else 0.0
    if largest == 0 or not math.isfinite(largest):
        return largest, 0
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(numbers.ravel(), -exponent)
    return math.sqrt(inner(scaled, scaled)), exponent


def measured_floor(pipeline: Pipeline, run: Run, runs: int = FLOOR_RUNS) -> dict[str, float]:
    """The relative error that rounding alone makes at every site: the largest of several runs.

    >>> from workbench.propagation import Pipeline
    >>> pipeline = Pipeline([("halved", lambda x: x / 2)])
    >>> 0 < measured_floor(pipeline, pipeline.run(np.arange(1.0, 9.0)))["halved"] < 4e-16
    True
    """
    if pipeline.checks:   # which would undo the rounding
        pipeline = pipeline.like(checks={})
        run = replace(run, pipeline=pipeline)
    floor = dict.fromkeys(pipeline.sites, 0.0)
    for number in range(runs):
        moved = pipeline.resume(run, rounding_everywhere(pipeline, run, number))
        for site in pipeline.sites:
            floor[site] = max(floor[site], relative_error(run[site], moved[site], pipeline.categorical(site)))
    return floor


def rounding_everywhere(pipeline: Pipeline, run: Run, number: int) -> Mapping[str, Intervention]:
    """Interventions that move every floating-point value by at most one unit in the last place."""

    def moved(place: int) -> Intervention:
        def intervene(values: Array) -> Array:
            xp = backend.namespace(values)
            copy = values.copy()
            numbers = components(copy)
            step = draws_of(_SEED, number, place).integers(4, size=numbers.shape)
            towards = xp.asarray(np.array([-np.inf, np.inf, np.nan, np.nan])[step]).astype(numbers.dtype)
            numbers[...] = xp.where(xp.isnan(towards), numbers, xp.nextafter(numbers, towards))
            return copy

        return intervene

    floats = [(place, site) for place, site in enumerate(pipeline.sites) if run[site].dtype.kind in "fc"]
    return {site: moved(place) for place, site in floats}
