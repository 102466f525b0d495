"""Kernels that count what codecs would code, against plain definitions with NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.bounds.prediction.features import _counted, _differences
from workbench.bounds.prediction.numbers import FINE, MOST_NUMBER, entropies
from workbench.bounds.prediction.survey import Errors


def errors_of(rng: np.random.Generator, places: int) -> Errors:
    weight, counted, of_pairs = (each / each.sum() for each in rng.random((3, places)))
    here = rng.standard_normal((2, places)) * 10 ** rng.uniform(-3, 3, (2, 1))
    noise = rng.uniform(-1, 1, (2, places)).astype(np.float32)
    return Errors(here, noise, weight, counted, rng.standard_normal((2, 2, places)), of_pairs)


def entropy(numbers: np.ndarray, weight: np.ndarray) -> float:
    shares = {number: weight[numbers == number].sum() for number in set(numbers.tolist())}
    missed = sum((weight[numbers == number] ** 2).sum() / share for number, share in shares.items()) - (weight**2).sum()
    return -sum(share * math.log2(share) for share in shares.values()) + missed / (2 * math.log(2))


@given(st.integers(0, 2**32 - 1), st.integers(1, 200))
def test_errors_are_counted_as_defined(seed, places):
    rng = np.random.default_rng(seed)
    errors, limits = errors_of(rng, places), 10 ** rng.uniform(-4, 4, 3)
    found = _counted(errors, limits)
    for row in range(2):
        far = errors.sizes[1][row]
        for column, limit in enumerate(limits):
            finer = limit / max(limit, far / FINE)
            size = np.float32(errors.here[row] / limit)
            seen = size + errors.noise[row]
            numbers = np.clip(np.rint(seen * np.float32(0.5 * finer)), -MOST_NUMBER, MOST_NUMBER)
            assert found.bits[row, column] == pytest.approx(entropy(numbers, errors.weight) - math.log2(finer), abs=1e-6)
            assert found.zeros[row, column] == pytest.approx(errors.weight[numbers == 0].sum() * finer, abs=1e-9)
            by_size = errors.weight @ np.log2(1 + np.abs(size))
            assert found.by_size[row, column] == pytest.approx(by_size, rel=1e-5, abs=0.002)
            if finer == 1:
                noise = 3 * errors.counted @ (seen - 2 * numbers).astype(float) ** 2
                assert found.noise[row, column] == pytest.approx(noise, rel=1e-5)
                small, beside = np.abs(errors.pairs[:, row]) <= limit
                likely = errors.of_pairs @ small
                stay = errors.of_pairs @ (small & beside) / likely if likely else 0
                assert found.stay[row, column] == pytest.approx(stay, abs=1e-9)


@pytest.mark.parametrize("hostile", [np.inf, -np.inf, np.nan, 1e300])
def test_errors_that_are_no_numbers_are_counted_without_harm(hostile):
    errors = errors_of(np.random.default_rng(0), 300)
    errors.here[:, ::3] = hostile
    with np.errstate(divide="ignore"):
        assert _counted(errors, np.array([1.0])).bits.shape == (2, 1)
    assert np.isfinite(entropies(np.array([[-(2**31), 2**31 - 1, 0]]))).all()


def test_differences_are_those_along_axes_planes_and_all():
    assert _differences(1).tolist() == [[1, -1]]
    assert _differences(2).tolist() == [[1, -1, 0, 0], [1, 0, -1, 0], [1, -1, -1, 1]]
    assert _differences(3)[4].tolist() == [1, -1, -1, 1, 0, 0, 0, 0]
    assert np.abs(_differences(4)).sum(axis=1).tolist() == [2, 2, 2, 2, 16, 4]
