"""Bounds that share a budget: dynamic programming equals brute force, and the hulls are near."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.propagation.weights import allocation
from workbench.propagation.weights.allocation import allocated, hull_choice


def sums_of(loss, nbytes, chosen):
    rows = range(len(chosen))
    return loss[rows, chosen].sum(), nbytes[rows, chosen].sum()


def brute(loss, nbytes, budget):
    """The fewest bytes of all combinations."""
    rows = range(len(loss))
    return min(
        sum(nbytes[row, column] for row, column in zip(rows, columns, strict=True))
        for columns in itertools.product(range(loss.shape[1]), repeat=len(loss))
        if sum(loss[row, column] for row, column in zip(rows, columns, strict=True)) <= budget
    )


def table(draws, rows, columns, rising=True):
    loss, nbytes = draws.random((rows, columns)), draws.integers(1, 1000, (rows, columns)).astype(float)
    if rising:
        loss, nbytes = np.sort(loss**3, axis=1), np.sort(nbytes, axis=1)[:, ::-1]
    loss[:, 0] = 0.0
    return loss, nbytes


@given(st.integers(0, 10**6), st.booleans(), st.floats(0.01, 3.0))
def test_dynamic_programming_is_brute_force_of_three_groups_with_twelve_bounds(seed, rising, budget):
    loss, nbytes = table(np.random.default_rng(seed), 3, 12, rising)
    chosen = allocated(loss, nbytes, budget)
    spent, size = sums_of(loss, nbytes, chosen)
    assert spent <= budget * (1 + 1e-12)
    assert size == brute(loss, nbytes, budget)
    fits, hull = sums_of(loss, nbytes, hull_choice(loss, nbytes, budget))
    assert fits <= budget * (1 + 1e-12)
    assert hull >= size


def test_losses_that_were_not_measured_are_never_chosen():
    loss = np.array([[0.0, 0.1, math.nan], [0.0, math.inf, 0.2]])
    nbytes = np.array([[9.0, 5.0, 0.0], [9.0, 0.0, 7.0]])
    assert allocated(loss, nbytes, 1.0) == [1, 2]
    with pytest.raises(wb.WorkbenchError, match="group 0 has none"):
        allocated(np.full((1, 2), math.nan), np.ones((1, 2)), 1.0)
    with pytest.raises(wb.WorkbenchError, match=r"allow the smallest loss of every group, 0\.3 together"):
        allocated(np.array([[0.1], [0.2]]), np.ones((2, 1)), 0.2)


def test_a_level_for_many_groups_keeps_the_budget_and_comes_near_the_best(monkeypatch):
    loss, nbytes = table(np.random.default_rng(1), 40, 12)
    exact = sums_of(loss, nbytes, allocated(loss, nbytes, 0.3))[1]
    monkeypatch.setattr(allocation, "LEVELS", 64)
    spent, size = sums_of(loss, nbytes, allocated(loss, nbytes, 0.3))
    assert spent <= 0.3
    assert exact <= size <= 1.002 * exact
