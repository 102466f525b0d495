"""Cells at the borders between regions that were found, assigned again with the models that were fitted.

Segmentation compares prediction errors of small cubes, and a cube across a border tells little: the cells within two or
three of a border are assigned by what their surroundings are. With fitted models each of them can be looked at alone. Its
value is predicted twice, from the near values on either side, before, behind and beside it, and it belongs to the side that
predicts it better. Cells that are wrong spoil the prediction of their neighbours, so they are changed from the border
inwards, in a few rounds. Without this, ragged borders make regions look more costly than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from workbench.limits.correlation import Correlation
from workbench.limits.innovations import Offsets, conditionals

ROUNDS = 3
TIE = 6.0         # nats that a cell gains if all of its neighbours are in the region
NEAR = {1: 4.0, 2: 5**0.5, 3: 2**0.5, 4: 1.0}   # the distance of the furthest neighbour that predicts
TOGETHER = 2**16  # cells at borders whose neighbours are gathered together


def reassigned(
    values: np.ndarray, labels: np.ndarray, covariances: Sequence[Correlation | None], means: Sequence[float]
) -> np.ndarray:
    """The labels after each cell at a border was given to the region that predicts it best.

    Regions without a covariance, which are constant, keep their cells and get no others.

    >>> from workbench.limits.correlation import Autoregressive
    >>> calm, rough = Autoregressive(0.01, 0.9), Autoregressive(100.0, 0.0)
    >>> values = np.array([0.1, 0.11, 0.1, 0.09, -20.0, 8.0, 11.0, -7.0])
    >>> reassigned(values, np.array([0, 0, 0, 0, 0, 1, 1, 1]), [calm, rough], [0.1, 0.0]).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    labels = labels.copy()
    varying = [region for region, each in enumerate(covariances) if each is not None]
    around = tuple(step for step in product((-1, 0, 1), repeat=labels.ndim) if any(step))
    near = _offsets(labels.ndim)
    margin = max(max(map(max, near)), 1)
    padded = np.pad(labels, margin, constant_values=-1)
    centred = np.pad(values, margin)
    for _ in range(ROUNDS):
        cells = _at_borders(labels, varying)
        places = np.ravel_multi_index(tuple(each + margin for each in np.unravel_index(cells, labels.shape)), padded.shape)
        best = np.concatenate([
            _best(part, centred, padded, covariances, means, around, near)
            for part in np.array_split(places, 1 + places.size // TOGETHER)
        ])
        if (best == labels.flat[cells]).all():
            break
        labels.flat[cells] = best
        padded.flat[places] = best
    return labels


def _at_borders(labels: np.ndarray, varying: Sequence[int]) -> np.ndarray:
    """The flat indices of the cells beside a cell of another region, where both regions vary."""
    known = np.isin(labels, varying)
    border = np.zeros(labels.shape, bool)
    for axis in range(labels.ndim):
        label, here, found = (np.moveaxis(each, axis, 0) for each in (labels, known, border))
        differ = (label[1:] != label[:-1]) & here[1:] & here[:-1]
        found[1:] |= differ
        found[:-1] |= differ
    return np.flatnonzero(border)


def _best(
    places: np.ndarray, values: np.ndarray, labels: np.ndarray, covariances: Sequence[Correlation | None],
    means: Sequence[float], around: Offsets, near: Offsets,
) -> np.ndarray:
    """The region that predicts each of these cells best, of those beside it."""
    beside = labels.ravel()[places[:, None] + _strides(labels.shape, around)]
    steps = _strides(labels.shape, near)
    seen = labels.ravel()[places[:, None] + steps]
    own = labels.ravel()[places]
    costs = np.full((len(covariances), places.size), np.inf)
    for region, covariance in enumerate(covariances):
        ours = (beside == region).mean(axis=1)
        asked = np.flatnonzero((ours > 0) | (own == region))
        if covariance is None or not asked.size:
            continue
        there = seen[asked] == region
        patterns, which = np.unique(there @ (1 << np.arange(len(near))), return_inverse=True)
        weights, variances = conditionals(covariance, near, patterns)
        others = np.where(there, values.ravel()[places[asked, None] + steps] - means[region], 0.0)
        errors = values.ravel()[places[asked]] - means[region] - np.einsum("ij,ij->i", weights[which], others)
        expected = variances[which]
        costs[region, asked] = 0.5 * (np.log(expected) + errors**2 / expected) - TIE * ours[asked]
    return np.asarray(np.argmin(costs, axis=0), labels.dtype)


def _strides(shape: Sequence[int], offsets: Offsets) -> np.ndarray:
    """The steps to these neighbours in a flat array."""
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    return np.asarray(np.array(offsets) @ strides)


def _offsets(dimensions: int) -> Offsets:
    """The neighbours that predict a cell, on all sides."""
    reach = int(NEAR[dimensions])
    steps = product(range(-reach, reach + 1), repeat=dimensions)
    return tuple(step for step in steps if 0 < sum(each * each for each in step) <= NEAR[dimensions] ** 2 + 1e-9)
