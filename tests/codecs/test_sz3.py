import numpy as np
import pytest

import workbench as wb
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
    for size in (0.0, 1e-3):
        decoded = wb.compress(wb.Field(values), wb.Absolute(size), "sz3").decompress().values
        finite = np.isfinite(values)
        assert decoded[~finite].tobytes() == values[~finite].tobytes()
        assert np.abs(decoded[finite].astype(np.float64) - values[finite]).max() <= size


def test_values_that_are_not_finite_do_not_spoil_the_prediction_of_others():
    field = wb.synthetic.gaussian_field((128, 128), 3, seed=1).values.astype(np.float32)
    size = float(np.ptp(field)) * 1e-2
    whole = wb.compress(wb.Field(field), wb.Absolute(size), "sz3").nbytes
    land = np.add.outer(np.arange(128) - 40, np.arange(128) - 70) ** 2 < 1500   # a band
    with_gap = np.where(land, np.float32(np.nan), field)
    assert wb.compress(wb.Field(with_gap), wb.Absolute(size), "sz3").nbytes < 1.1 * whole
