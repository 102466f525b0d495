"""Numbers as levels of pictures."""


import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.lab.levels import bytes_of, density_bytes, density_range, difference_bytes, difference_range


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_bytes_reach_from_one_end_to_the_other(low, spread):
    found = bytes_of(np.array([[low, low + spread / 2, low + spread, low - 1, np.inf, np.nan]]), low, low + spread)
    assert found[0, [0, 2, 3, 4, 5]].tolist() == [1, 255, 1, 255, 0]
    assert abs(int(found[0, 1]) - 128) <= 1


def test_logarithmic_bytes_are_even_in_the_logarithm():
    assert bytes_of(np.array([[1.0, 10.0, 100.0, -5.0]]), 1.0, 100.0, logarithmic=True).tolist() == [[1, 128, 255, 1]]


def test_a_constant_is_no_division_by_zero():
    assert bytes_of(np.full((1, 2), 3.0), 3.0, 3.0).tolist() == [[1, 1]]


@given(st.lists(st.floats(-2, 2), min_size=1), st.floats(0.01, 10))
def test_differences_are_symmetric_about_none(values, most):
    there = np.array([values])
    found = difference_bytes(there, most).astype(int) - 128
    assert (found == -(difference_bytes(-there, most).astype(int) - 128)).all()
    assert ((found == 0) == (np.abs(there) <= most / 254 * (1 + 1e-9))).all()


def test_lone_particles_stand_out_and_none_are_dark():
    counts = np.array([[0, 1, 5, 4000]])
    for logarithmic in (True, False):
        low, high = density_range(counts, logarithmic)
        found = density_bytes(counts, low, high, logarithmic)[0]
        assert found[0] == 0
        assert found[1] > 0
        assert found[3] == 255
    assert density_range(np.zeros((2, 2), int)) == (0.5, 1.0)
    assert difference_range(np.zeros((2, 2), int)) == 1.0


def test_16_bits_resolve_narrow_limits():
    values = np.array([[0.0, 5e-5, 1.0, np.nan]])
    assert bytes_of(values, 0.0, 1.0, levels=np.uint16).tolist() == [[1, 4, 65535, 0]]
