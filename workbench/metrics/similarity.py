"""Structural similarity (SSIM): whether pictures of two fields look alike, window by window.

The definition is that of Wang et al. (2004) with equal weights inside a window, variances of samples, and no windows
across the border: the figures are those of scikit-image's defaults. Sums over windows add a few neighbours along one axis
after the other. Running totals would be faster for large windows, but one enormous value would spoil all later sums.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.metrics.errors import Errors, pointwise
from workbench.metrics.pairs import field_pair, reshaped, tiles, valid_in

WINDOW = 7
_LUMINANCE = 0.01**2   # the constants C1 and C2 of the definition, in units of the squared range
_CONTRAST = 0.03**2
_FAR = 1e70            # in units of the range: no similarity is left, and fourth powers are still numbers


def ssim(
    original: Field | Array, decoded: Field | Array, window: int = WINDOW, errors: Errors | None = None
) -> float | None:
    """The mean structural similarity over all windows of `window` points along each axis: 1 when nothing changed.

    Defined for two- and three-dimensional fields: axes of one point are ignored, four axes are averaged over the first, and
    one axis gives None. Windows with invalid values are left out; NaN when none is left, or when the original is constant.
    `errors` are those of `pointwise`, if they are known already.

    >>> picture = np.add.outer(np.arange(16.0), np.arange(16.0))
    >>> ssim(picture, picture), round(ssim(picture, picture + 10), 3)
    (1.0, 0.868)
    """
    pair = field_pair(original, decoded)
    errors = errors or pointwise(*pair)
    shape = tuple(points for points in pair[0].shape if points > 1)
    if len(shape) < 2:
        return None
    window = whole_number("window", window, least=2)
    if window > min(shape[-3:]):
        raise WorkbenchError(f"window must fit the field along each axis; got {window} for {shape[-3:]} points")
    if not errors.value_range > 0:
        return math.nan
    total, count = similarity_sum(reshaped(pair[0], shape), reshaped(pair[1], shape), errors, window)
    return total / count if count else math.nan


def similarity_sum(original: Field, decoded: Field, errors: Errors, window: int = WINDOW) -> tuple[float, int]:
    """The sum of the similarities of all windows without invalid values, and their number: of parts, these add up.

    Fields of four axes have windows in the last three. `errors` are those of the whole, whose range is the unit.

    >>> picture = Field(np.add.outer(np.arange(8.0), np.arange(8.0)))
    >>> similarity_sum(picture, picture, pointwise(picture, picture))
    (4.0, 4)
    """
    if errors.value_range == math.inf:   # of values from -1e308 to 1e308
        original, decoded = (Field(field.values / 4, mask=field.mask) for field in (original, decoded))
        errors = replace(errors, lowest=errors.lowest / 4, highest=errors.highest / 4)
    total, count, shape = 0.0, 0, original.shape
    for lead in range(shape[0]) if len(shape) == 4 else (...,):
        for place, _ in tiles(shape[-3:], window - 1):
            x, y = (_scaled(field, lead, place, errors) for field in (original, decoded))
            similarity = _of_tile(x, y, window, errors)
            counted = ~backend.namespace(similarity).isnan(similarity)
            total, count = total + float(similarity[counted].sum()), count + int(counted.sum())
    return total, count


def _scaled(field: Field, lead: Any, place: tuple[slice, ...], errors: Errors) -> Array:
    """Part of a field in units of the range, from its middle, in float64; NaN where a value is invalid."""
    where = (lead, *place)
    xp = backend.namespace(field.values)
    values = xp.where(valid_in(field, where), field.values[where].astype(xp.float64), xp.nan)
    middle = errors.lowest + errors.value_range / 2
    with np.errstate(over="ignore"):
        return xp.clip((values - middle) / errors.value_range, -_FAR, _FAR)


def _of_tile(x: Array, y: Array, window: int, errors: Errors) -> Array:
    """The similarity of every window of a tile.

    Measured from the middle of the range, variances lose nothing to large means. Only the luminance needs the means
    themselves, and it is written so that it needs their difference.
    """
    points = window**x.ndim
    mean_x, mean_y, squares, products = (_window_sums(q, window) / points for q in (x, y, x * x + y * y, x * y))
    sample = points / (points - 1)
    variances = sample * (squares - mean_x * mean_x - mean_y * mean_y)
    covariance = sample * (products - mean_x * mean_y)
    middle = (errors.lowest + errors.value_range / 2) / errors.value_range
    mean_squares = (mean_x + middle) ** 2 + (mean_y + middle) ** 2
    luminance = 1 - (mean_x - mean_y) ** 2 / (mean_squares + _LUMINANCE)
    similarity = luminance * (2 * covariance + _CONTRAST) / (variances + _CONTRAST)
    return backend.namespace(x).clip(similarity, -1.0, 1.0)   # rounding exceeds this only for absurdly large values


def _window_sums(values: Array, window: int) -> Array:
    """The sum over every window; empty where none fits."""
    for axis in range(values.ndim):
        windows = max(values.shape[axis] - window + 1, 0)
        shifted = [values[(slice(None),) * axis + (slice(shift, shift + windows),)] for shift in range(window)]
        values = shifted[0] + shifted[1]
        for neighbour in shifted[2:]:
            values += neighbour
    return values
