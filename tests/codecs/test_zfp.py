import numpy as np
import pytest

from workbench.codecs import Tolerance, get
from workbench.errors import WorkbenchError

ANY = Tolerance(absolute=1e-3)
VALUES = np.random.default_rng(0).normal(size=(16, 20, 24)).astype(np.float32)


def decoded(codec, values=VALUES, tolerance=ANY):
    return codec.decode(codec.encode(values, tolerance), values.shape, values.dtype)


@pytest.mark.parametrize("rate", [2, 4, 8, 16])
def test_a_fixed_rate_gives_a_fixed_size(rate):
    size = len(get("zfp", mode="rate", rate=rate).encode(VALUES, ANY))
    assert size == VALUES.size * rate / 8 + 13


def test_more_bit_planes_come_nearer():
    errors = [np.abs(decoded(get("zfp", mode="precision", precision=p)) - VALUES).max() for p in (6, 12, 18, 24)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 100 * errors[2] > 0


@pytest.mark.parametrize("tolerance", [Tolerance(absolute=0.0), ANY])
def test_reversible_keeps_all_bits_whatever_the_tolerance(tolerance):
    assert decoded(get("zfp", mode="reversible"), tolerance=tolerance).tobytes() == VALUES.tobytes()


def test_accuracy_stays_well_below_the_tolerance():
    assert 0 < np.abs(decoded(get("zfp")) - VALUES).max() < 0.6e-3


def test_axes_of_length_one_cost_nothing():
    flat = VALUES.reshape(320, 24)
    assert len(get("zfp").encode(flat.reshape(1, 320, 1, 24), ANY)) == len(get("zfp").encode(flat, ANY))


@pytest.mark.parametrize("options", [{"rate": 0.0}, {"rate": 65}, {"precision": 0}, {"precision": 65}, {"mode": "speed"}])
def test_options_that_zfp_cannot_take_are_refused(options):
    with pytest.raises(WorkbenchError, match=r"zfp: .* must be"):
        get("zfp", **options)


def test_the_smallest_rates_do_not_harm_the_process(in_child):
    done = in_child("""
for rate in (0.1, 0.5, 1, 2, 3):
    codec = get("zfp", mode="rate", rate=rate)
    for shape in ((1,), (5,), (200,), (1, 1), (2, 3), (40, 40), (1, 1, 1), (19, 19, 19), (9, 9, 9, 9)):
        for dtype in ("f4", "f8"):
            for _ in range(20):
                values = (rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30, shape)).astype(dtype)
                data = codec.encode(values, Tolerance(absolute=1.0))
                assert codec.decode(data, shape, dtype).shape == shape
print("done")
""")
    assert done == "done\n"


def test_the_largest_tolerances_are_taken_and_impossible_ones_are_refused():
    values = np.linspace(-1.0, 1.0, 64)
    assert np.abs(decoded(get("zfp"), values, Tolerance(absolute=1.7e308))).max() <= 1
    for size in (np.inf, np.nan, -1.0, 1.5e308):
        with pytest.raises(WorkbenchError, match="a tolerance must be from 0"):
            get("zfp")._decode_piece(np.float64(size).tobytes() + bytes(64), values.shape, values.dtype)


def test_every_tolerance_is_used_in_full():
    sizes = [len(get("zfp").encode(VALUES, Tolerance(absolute=size))) for size in np.geomspace(2**-10, 2**-8, 9)]
    steps = -np.diff(sizes) * 8 / VALUES.size   # a quarter of a bit for a quarter of an octave
    assert (steps > 0.15).all()
    assert (steps < 0.35).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 2.4e38, 1e-20])
def test_values_that_cannot_be_multiplied_keep_the_bound_too(scale, dtype):
    values = (np.random.default_rng(1).uniform(-1, 1, (9, 10, 11)) * scale).astype(dtype)
    for size in (1e-2 * scale, 1.7e-7 * scale, 3e-9 * scale):
        found = np.abs(decoded(get("zfp"), values, Tolerance(absolute=size)).astype(float) - values).max()
        assert found <= max(size, 2 * float(np.finfo(dtype).eps) * scale)   # ZFP's own block exponents allow no less
