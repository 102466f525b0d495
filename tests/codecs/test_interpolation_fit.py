"""The fits of weights, beside the same in NumPy; and what is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import backend
from workbench.codecs.interpolation_fit import LEAST_SCALE, TERMS

UPDATES = backend.constant("interpolation_fit.cu", "UPDATES")
LAST_UPDATES = backend.constant("interpolation_fit.cu", "LAST_UPDATES")


def sample(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Columns, what their sum should be near, terms of a scale, and weights to start from."""
    rng = np.random.default_rng(seed)
    column = rng.normal(size=(columns, rows))
    terms = np.abs(rng.normal(size=(TERMS, rows)))
    terms[0] = 1
    wanted = rng.normal(size=columns) @ column + rng.laplace(size=rows) * terms[3]
    return column, wanted, terms, rng.random(TERMS)


def fitted(column: np.ndarray, wanted: np.ndarray, terms: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    location, scale = np.zeros(len(column)), start.copy()
    backend.kernel("interpolation_fit", "fit_weights")(
        1, len(wanted), len(column), column.reshape(-1), wanted, terms.reshape(-1), location, scale
    )
    return location, scale


def bits(column: np.ndarray, wanted: np.ndarray, terms: np.ndarray, location: np.ndarray, scale: np.ndarray) -> float:
    found = np.empty(1)
    backend.kernel("interpolation_fit", "fit_bits")(
        1, len(wanted), len(column), column.reshape(-1), wanted, terms.reshape(-1), location, scale, found
    )
    return float(found[0])


@pytest.mark.parametrize(("rows", "columns"), [(1, 0), (63, 1), (250, 3), (1003, 9), (3000, 10)])
def test_weights_are_those_of_numpy(rows, columns):
    column, wanted, terms, start = sample(rows, columns)
    location, scale = fitted(column, wanted, terms, start)
    root = 1 / np.maximum(start @ terms, LEAST_SCALE)
    expected = np.linalg.lstsq((column * root).T, wanted * root, rcond=None)[0]
    np.testing.assert_allclose(location, expected, rtol=1e-3, atol=1e-4)   # the kernel keeps them a little nearer to 0
    size, weights = np.abs(wanted - location @ column), np.maximum(start, 1e-4)
    for update in range(UPDATES):
        scales = np.maximum(weights @ terms, LEAST_SCALE)
        factor = np.sqrt((terms @ (size / scales**2) + 1e-30) / (terms @ (1 / scales) + 1e-30))
        weights = weights * (factor**3 if update < UPDATES - LAST_UPDATES else factor)
    np.testing.assert_allclose(scale, weights, rtol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(1, 0), (130, 2), (3000, 3)])
def test_bits_are_those_of_a_laplace_distribution(rows, columns):
    column, wanted, terms, start = sample(rows, columns, seed=1)
    location = np.full(columns, 0.3)
    for factor in (1e-3, 1, 1e6):
        scales = np.maximum(factor * start @ terms, LEAST_SCALE)
        size = 2 * np.rint(np.abs(wanted - location @ column) / 2)
        none = -np.log2(np.maximum(-np.expm1(-1 / scales), 1e-30))
        some = 1 + (size - 1) / scales / np.log(2) - np.log2(np.maximum(-np.expm1(-2 / scales), 1e-30))
        expected = np.minimum(np.where(size == 0, none, some), 100).mean()
        assert bits(column, wanted, terms, location, factor * start) == pytest.approx(expected, abs=1e-6)


def test_what_is_not_finite_is_never_better():
    column, wanted, terms, start = sample(250, 3)
    for size in (np.inf, np.nan, 1e300):
        away = wanted.copy()
        away[7] = size
        location, _ = fitted(column, away, terms, start)
        assert np.isfinite(location).all()
        assert bits(column, away, terms, location * 0, start) > bits(column, wanted, terms, location * 0, start)


def test_columns_that_say_nothing_have_no_weight():
    column, wanted, terms, start = sample(500, 3)
    column[1], column[2] = 0, column[0]
    location, _ = fitted(column, wanted, terms, start)
    assert np.isfinite(location).all()
    assert abs(location[1]) < 1e-3
