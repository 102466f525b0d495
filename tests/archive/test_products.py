"""Norms and dot products of archives: the exact ones of the original are in every interval."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from archive.statistics_cases import FIELD_CODECS, bound_for, field, made_up, regions_of, valid_in
from workbench.errors import WorkbenchError


def case(seed: int) -> int:
    """Norms of one random archive, and its product with another on the same grid; returns how many were checked."""
    rng = np.random.default_rng(seed)
    archive, values, mask = made_up(rng)
    other_values = field(rng, values.shape, np.float32, str(rng.choice(["smooth", "offset", "spikes"])))
    bound = bound_for(rng, float(np.abs(other_values).max()))
    other = wb.compress(other_values, bound, str(rng.choice(FIELD_CODECS)), chunk_values=int(rng.choice([300, 10**6])))
    checked = 0
    for region in regions_of(rng, values.shape):
        inside = [Fraction(value) for value in valid_in(values, mask, region).tolist()]
        if not inside:
            continue
        for order, true in ((1, sum(map(abs, inside))), (math.inf, max(map(abs, inside)))):
            if true < 2**1023:
                found = archive.norm(order, region)
                assert Fraction(found.low) <= true <= Fraction(found.high), (order, found)
        if max(map(abs, inside)) < 1e306:
            squares, found = sum(value**2 for value in inside), archive.norm(2, region)
            assert max(Fraction(found.low), Fraction(0)) ** 2 <= squares <= Fraction(found.high) ** 2
        if max(map(abs, inside)) < 1e200:
            place = (slice(None),) * values.ndim if region is None else tuple(slice(*ends) for ends in region)
            valid = np.isfinite(values[place]) if mask is None else np.isfinite(values[place]) & ~mask[place]
            others = map(Fraction, other_values[place][valid].tolist())
            product = archive.dot(other, region)
            true = sum(one * another for one, another in zip(inside, others, strict=True))
            assert Fraction(product.low) <= true <= Fraction(product.high), product
        checked += 4
    return checked


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long)])
def test_the_exact_figures_are_in_every_interval(part):
    assert sum(case(seed) for seed in range(3000 * part, 3000 * part + 12)) > 60


def test_norms_of_integers_with_a_chunk_of_masked_cells():
    field = wb.Field(np.arange(-4, 4), mask=np.arange(8) < 4)
    archive = wb.compress(field, wb.Absolute(0), "prequantised", chunk_values=4)
    assert [archive.norm(order).value for order in (1, math.inf)] == [6, 3]


def test_wrong_calls_are_refused_in_words():
    archive = wb.compress(np.linspace(0, 1, 600).reshape(20, 30), wb.Absolute(1e-3), "staged")
    with pytest.raises(WorkbenchError, match="order must be 1, 2 or"):
        archive.norm(3)
    with pytest.raises(WorkbenchError, match="order must be 1, 2 or"):
        archive.norm(np.array([1, 2]))   # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="dot takes two fields on one grid"):
        archive.dot(wb.compress(np.zeros((30, 20)), wb.Absolute(1e-3)))
    with pytest.raises(WorkbenchError, match="dot takes an archive of a field"):
        archive.dot(np.zeros((20, 30)))
