import numpy as np
import pytest

from workbench.codecs import Tolerance, get

ALGORITHMS = ["interp_lorenzo", "interp", "lorenzo_reg", "nopred"]
VALUES = np.sin(np.indices((20, 21, 22)).sum(axis=0) / 9.0).astype(np.float32)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_keeps_the_bound(algorithm):
    codec = get("sz3", algorithm=algorithm)
    decoded = codec.decode(codec.encode(VALUES, Tolerance(absolute=1e-3)), VALUES.shape, VALUES.dtype)
    assert 0 < np.abs(decoded.astype(np.float64) - VALUES).max() <= 1e-3


def test_the_algorithms_are_different_ones():
    walk = np.random.default_rng(0).normal(size=20_000).cumsum()
    assert len({get("sz3", algorithm=a).encode(walk, Tolerance(absolute=1e-2)) for a in ALGORITHMS}) == 4


def test_any_algorithm_decodes_what_another_wrote():
    data = get("sz3", algorithm="nopred").encode(VALUES, Tolerance(absolute=1e-3))
    assert np.abs(get("sz3").decode(data, VALUES.shape, VALUES.dtype) - VALUES).max() <= 1.001e-3


def test_all_kinds_of_numbers_survive_side_by_side():
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38, 1.0] * 50, np.float32)
    codec = get("sz3")
    for size in (0.0, 1e-3):
        decoded = codec.decode(codec.encode(values, Tolerance(absolute=size)), values.shape, values.dtype)
        finite = np.isfinite(values)
        assert np.array_equal(decoded[~finite], values[~finite], equal_nan=True)
        assert np.abs(decoded[finite].astype(np.float64) - values[finite]).max() <= size
