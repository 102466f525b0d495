"""The pass over values against a plain definition, on random and hard values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from workbench.auditing.tally import tally
from workbench.data import Field
from workbench.guarantees import Limit

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.25, -3.5, 1e-310, 1e300, math.inf, -math.inf, math.nan])
SHAPE = (3, 4)


def plain(x, y, limit):
    """The counts, value by value, in exact arithmetic of Python where it matters."""
    counts = {"differing": 0, "over": 0, "lost": 0, "gained": 0}
    for a, b in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True):
        if math.isnan(a) or math.isnan(b):
            counts["lost"] += math.isnan(b) and not math.isnan(a)
            counts["gained"] += math.isnan(a) and not math.isnan(b)
        else:
            counts["differing"] += a != b
            counts["over"] += a != b and not abs(a - b) <= limit
    return counts


@given(*(arrays.arrays(np.float64, SHAPE, elements=NUMBERS) for _ in range(2)), st.sampled_from([0.25, 1.0, 1e301]))
def test_counts_are_those_of_the_plain_definition(x, y, limit):
    found = tally(Field(x), Field(y), Limit("absolute", limit))
    assert {name: getattr(found, name) for name in ("differing", "over", "lost", "gained")} == plain(x, y, limit)
    assert found.identical == np.array_equal(x, y, equal_nan=True)
    if found.over:
        a, b = x[found.worst.at], y[found.worst.at]
        assert not abs(a - b) <= limit


@given(st.integers(0, 11), st.integers(1, 11))
def test_tallies_of_parts_add_up(place, cut):
    rng = np.random.default_rng(place)
    x = rng.normal(size=12)
    y = x + 0.01 * rng.normal(size=12)
    y[place] = np.nan
    limit = Limit("absolute", 0.005)
    whole = tally(Field(x), Field(y), limit)
    halves = (np.s_[:cut], 0), (np.s_[cut:], cut)
    first, second = (tally(Field(x[part]), Field(y[part]), limit, start=[start]) for part, start in halves)
    parts = first + second
    for name in ("values", "differing", "over", "lost", "largest", "worst", "first_lost", "ends"):
        assert getattr(whole, name) == getattr(parts, name)


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_integers_are_exact(dtype):
    x = np.array([2**63 - 1, 5], dtype)
    found = tally(Field(x), Field(x - np.array([1, 0], dtype)), Limit("absolute", 0.5))
    assert (found.differing, found.over, found.largest.value, found.largest.at) == (1, 1, 1.0, (0,))


def test_integers_and_floats_have_slopes_in_every_part():
    """Floats that are all whole in one part are compared as integers there."""
    x = np.arange(8, dtype=np.int32)
    y = x + np.array([0.25, 0.5, 0, 0, 0, 0, 0, 0])
    first, second = (tally(Field(x[part]), Field(y[part])) for part in (np.s_[:4], np.s_[4:]))
    assert (first + second).slopes == (second + first).slopes
    assert (first + second).slopes[0].original == 6.0
