import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codecs import Tolerance, get
from workbench.codecs.sperr import FINEST, _folded_shape
from workbench.errors import WorkbenchError


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=3).map(tuple))
def test_folded_shapes_are_ones_that_sperr_takes_and_hold_all_values(shape):
    folded = _folded_shape(shape)
    assert len(folded) in (2, 3)
    assert min(folded) >= 2
    size, room = np.prod(shape), np.prod(folded)
    assert size <= room <= max(size + folded[0], 4)


@settings(max_examples=50)
@given(count=st.integers(1, 300), seed=st.integers(0, 99))
def test_lines_of_any_length_come_back(count, seed):
    values = np.random.default_rng(seed).normal(size=count)
    codec = get("sperr")
    decoded = codec.decode(codec.encode(values, Tolerance(absolute=1e-2)), values.shape, values.dtype)
    assert np.abs(decoded - values).max() <= 1e-2


def test_data_of_any_scale_do_not_harm_the_process(in_child):
    done = in_child("""
codec = get("sperr")
for dtype, scales in (("f4", (1e-38, 1e-30, 1, 1e20, 1e30, 1e38)), ("f8", (1e-300, 1e-30, 1, 1e30, 1e100, 1e300))):
    for scale in scales:
        for shape in ((20, 21, 22), (30, 31), (500,), (2, 3, 4, 5)):
            values = (np.clip(rng.normal(size=shape), -3, 3) * scale).astype(dtype)
            for ratio in (10.0, 1e-1, 1e-3, 1e-6):
                size = float(ratio * scale)
                decoded = codec.decode(codec.encode(values, Tolerance(absolute=size)), shape, dtype)
                assert abs(values.astype("f8") - decoded).max() <= size * (1 + 1e-9), (dtype, scale, shape, ratio)
print("done")
""")
    assert done == "done\n"


def test_spikes_and_the_finest_tolerances_do_not_harm_the_process(in_child):
    done = in_child("""
codec = get("sperr")
for dtype in ("f4", "f8"):
    for shape in ((20, 21, 22), (64, 64), (1000,)):
        for spike in (1.0, 1e6, 1e12, 1e20, 1e30):
            values = rng.normal(size=shape).astype(dtype)
            values.flat[7] = spike
            largest = float(abs(values).max())
            for bits in (46, 47, 47.9):
                decoded = codec.decode(codec.encode(values, Tolerance(absolute=largest * 2.0 ** -bits)), shape, dtype)
                assert np.isfinite(decoded).all()
                error = abs(values.astype("f8") - decoded).max()
                assert error <= largest * (2.0 ** -bits + (2.0 ** -24 if dtype == "f4" else 0)), (shape, spike, bits, error)
            for size in (largest * 2.0 ** -48, largest * 1e-30, 5e-324):
                try:
                    codec.encode(values, Tolerance(absolute=size))
                except WorkbenchError as error:
                    assert "tolerance above" in str(error)
                else:
                    raise AssertionError(size)
print("done")
""")
    assert done == "done\n"


def test_the_largest_numbers_come_back_or_become_infinite(in_child):
    done = in_child("""
values = np.full((8, 8), np.finfo("f4").max)
values[::2] *= -1
decoded = get("sperr").decode(get("sperr").encode(values, Tolerance(absolute=1e30)), values.shape, "f4")
print(bool((np.sign(decoded) == np.sign(values)).all()))
""")
    assert done == "True\n"


def test_a_tolerance_below_its_precision_is_refused_with_the_limit():
    values = np.ones((4, 4))
    with pytest.raises(WorkbenchError, match=r"sperr needs a tolerance above 2\^-48 of the largest value, 3.55e-15 here"):
        get("sperr").encode(values, Tolerance(absolute=FINEST / 2))


@pytest.mark.parametrize("shape", [(30, 120), (12, 40, 90)])
def test_axes_are_not_mistaken_for_each_other(shape):
    smooth = np.sin(sum(np.indices(shape)) / 9.0)
    turned, scrambled = np.ascontiguousarray(smooth.T), smooth.reshape(shape[::-1])
    codec, tolerance = get("sperr"), Tolerance(absolute=1e-3)
    sizes = [len(codec.encode(values, tolerance)) for values in (smooth, turned, scrambled)]
    assert max(sizes[:2]) < 1.2 * min(sizes[:2])
    assert max(sizes[:2]) < 0.7 * sizes[2]
    assert np.abs(codec.decode(codec.encode(turned, tolerance), turned.shape, turned.dtype) - turned).max() <= 1e-3
