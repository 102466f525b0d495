"""Regions of a field that are homogeneous in variance, correlation and level.

Theory is exact for stationary fields. Real fields are not stationary (storms, fronts, land and sea), but they may be
piecewise. The map of the regions is found here or given by the user. Constant values, such as fill values, are separated
first and exactly; the rest is segmented statistically (`segmentation.py`) into few regions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arguments import whole_number
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.limits.segmentation import SMALLEST, find_textures
from workbench.metrics.pairs import require_host

FEWEST = 64      # cells of a region
SAMPLE = 2**17   # values that determine the scale
MOSTLY = 0.5     # the share of all cells of one value in large patches, above which the others belong to the region, too
EXTREME = 1e6    # standard deviations, estimated from the quartiles, at which values are clipped


@dataclass(frozen=True, eq=False)
class Regions:
    """A map of a field: the region of each value, from 0 to `count` - 1, and -1 where there is no valid value."""

    labels: np.ndarray
    count: int

    @classmethod
    def given(cls, labels: Any, field: Field) -> Regions:
        """A map given by the user: each whole number is a region, renumbered from 0 in ascending order.

        Places with negative numbers, or without a valid value, belong to no region.

        >>> parts = Regions.given(np.array([[7, 7, 3], [7, -1, 3]]), Field(np.ones((2, 3))))
        >>> parts.labels.tolist(), parts.count, parts.names()
        ([[1, 1, 0], [1, -1, 0]], 2, ['region 1 (40%)', 'region 2 (60%)'])
        """
        require_host("regions", field.values)
        numbers = np.asarray(labels)
        if numbers.dtype.kind not in "iub" or numbers.shape != field.shape:
            raise WorkbenchError(
                f"regions must be whole numbers in the shape of the field, {field.shape}; "
                f"got {numbers.dtype} of shape {numbers.shape}"
            )
        inside = field.valid & (numbers >= 0)
        different, places = np.unique(numbers[inside], return_inverse=True)
        if different.size == 0:
            raise WorkbenchError("regions must contain a valid value of the field; got none: all are masked or labelled -1")
        renumbered = np.full(field.shape, -1, np.int32)
        renumbered[inside] = places
        renumbered.flags.writeable = False
        return cls(renumbered, int(different.size))

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of values of each region."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)

    def names(self) -> list[str]:
        """The names of the regions: a number from 1, and the share of all valid values."""
        shares = 100 * self.sizes / self.sizes.sum()
        return [f"region {number} ({share:.3g}%)" for number, share in enumerate(shares, 1)]


def segment(field: Field, most: int = 6) -> Regions:
    """Split a field into at most `most` regions that differ in variance, in correlation at short range, or in level.

    The largest comes first. A region has at least 64 values and 1% of all. Connected patches of equal values, such as fill
    values, are regions of their own if they are as large. A difference in level alone makes two regions only if the values
    jump at the border.

    >>> from workbench.data.synthetic import Region, piecewise_field
    >>> layout = np.repeat([0, 1], [80, 48]) * np.ones((128, 1), int)
    >>> field = piecewise_field((128, 128), [Region(1.0, 0.9), Region(1.0, 0.3)], layout=layout)
    >>> found = segment(field)
    >>> found.names(), bool(np.mean(found.labels == layout) > 0.99)
    (['region 1 (62.1%)', 'region 2 (37.9%)'], True)
    """
    require_host("segment", field.values)
    most = whole_number("most", most, least=1)
    valid = np.asarray(field.valid)
    if not valid.any():
        raise WorkbenchError("field must have at least one value that is finite and not masked; got none")
    labels = _constant_patches(field.values, valid, most)
    rest = valid & (labels < 0)
    constants = int(labels.max()) + 1
    labels[rest] = constants
    if most - constants > 1 and rest.any():
        labels[rest] += _textures(field.values, rest, most - constants)[rest]
    return largest_first(labels, field)


def _textures(values: np.ndarray, rest: np.ndarray, most: int) -> np.ndarray:
    """The texture of each value; axes of length 1 are ignored."""
    lengths = [length for length in values.shape if length > 1] or [1]
    standard = _standardised(values, rest).reshape(lengths)
    return find_textures(standard, rest.reshape(lengths), most).reshape(values.shape)


def _constant_patches(values: np.ndarray, valid: np.ndarray, most: int) -> np.ndarray:
    """The constant region of each value, or -1; at most `most` - 1 regions are constant."""
    labels = np.full(values.shape, -1, np.int32)
    least = max(FEWEST, SMALLEST * np.count_nonzero(valid))
    flat = _like_a_neighbour(values, valid)
    if most == 1 or np.count_nonzero(flat) < least:
        return labels
    different, numbers = np.unique(values[flat], return_counts=True)
    largest_first = np.argsort(-numbers, kind="stable")
    count = 0
    for place in largest_first[numbers[largest_first] >= least]:
        same = valid & (values == different[place])
        patch = _large_patches(flat & same)
        if np.count_nonzero(patch) >= MOSTLY * np.count_nonzero(same):
            patch = same   # with islands
        if count < most - 1 and np.count_nonzero(patch) >= least:
            labels[patch] = count
            count += 1
    return labels


def _like_a_neighbour(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Where a value equals a neighbour."""
    flat = np.zeros(values.shape, bool)
    for axis in range(values.ndim):
        along, known, same = (np.moveaxis(array, axis, 0) for array in (values, valid, flat))
        equal = (along[1:] == along[:-1]) & known[1:] & known[:-1]
        same[1:] |= equal
        same[:-1] |= equal
    return flat


def _large_patches(places: np.ndarray) -> np.ndarray:
    """The places in connected components that are large enough."""
    from scipy.ndimage import label

    patches, _ = label(places)
    large = np.bincount(patches.ravel()) >= FEWEST
    large[0] = False
    return np.asarray(large[patches])


def _standardised(values: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """The values minus their median, in units of their spread, as float32; 0 outside `rest`."""
    counting = values[rest]
    sample = counting[:: max(1, counting.size // SAMPLE)].astype(np.float64)
    low, middle, high = np.quantile(sample, (0.25, 0.5, 0.75))
    shifted = np.where(rest, values, middle) - middle
    spread = (high - low) / 1.35 or float(np.abs(shifted).max()) or 1.0
    return np.asarray(np.clip(shifted / spread, -EXTREME, EXTREME), np.float32)


def largest_first(labels: np.ndarray, field: Field) -> Regions:
    """The map with its regions sorted by size, largest first."""
    sizes = np.bincount(labels[labels >= 0])
    rank = np.empty(sizes.size + 1, np.int32)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    rank[-1] = -1
    return Regions.given(rank[labels], field)
