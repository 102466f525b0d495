import numpy as np
import pytest

from workbench.codecs import Tolerance, get
from workbench.errors import WorkbenchError

ANY = Tolerance(absolute=1e-3)


def decoded(codec, values, tolerance=ANY):
    return codec.decode(codec.encode(values, tolerance), values.shape, values.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("precision", range(4, 65))
def test_every_precision_works_for_both_types(dtype, precision):
    values = np.random.default_rng(0).normal(size=(5, 6, 7)).astype(dtype)
    error = np.abs(decoded(get("fpzip", precision=precision), values) - values).max()
    kept = precision - (9 if dtype == "float32" else 12)
    assert error <= 8 * 2.0 ** -min(kept, 60)
    if precision >= 8 * values.itemsize:
        assert error == 0


def test_a_precision_that_fpzip_does_not_know_is_refused():
    with pytest.raises(WorkbenchError, match="fpzip: precision must be integer from 4 to 64"):
        get("fpzip", precision=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_more_bits_are_kept_than_needed(dtype):
    values = np.random.default_rng(0).normal(size=1000).astype(dtype)
    for tolerance in (Tolerance(absolute=1e-3), Tolerance(relative=1e-3)):
        size = len(get("fpzip").encode(values, tolerance))
        error = np.abs(decoded(get("fpzip"), values, tolerance) - values)
        if tolerance.relative:
            error /= np.abs(values)
        assert 1e-3 / 8 < error.max() <= 1e-3
        assert size < len(get("fpzip", precision=32).encode(values, tolerance))


def test_the_layout_in_memory_is_not_confused():
    values = np.arange(2 * 3 * 4 * 5, dtype=np.float64).reshape(2, 3, 4, 5)
    codec = get("fpzip")
    assert (decoded(codec, values, Tolerance(absolute=0.0)) == values).all()


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 9, 5), (5, 1, 9, 1)])
def test_thin_arrays_come_back_without_loss(shape):
    values = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    codec, exact = get("fpzip"), Tolerance(absolute=0.0)
    assert np.array_equal(codec.decode(codec.encode(values, exact), shape, values.dtype), values)


@pytest.mark.long
def test_noise_that_grows_does_not_overrun_the_library_s_buffer(in_child):
    """The library writes past the end of a buffer as large as its input; the allocator is told to notice."""
    printed = in_child("""
codec = get("fpzip")
for trial in range(300):
    dimensions = rng.integers(1, 5)
    shape = tuple(rng.integers(1, [3000, 60, 20, 9][dimensions - 1], dimensions))
    bits = rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
    for values in (np.where(np.isfinite(bits), bits, 1), rng.normal(size=shape) * 10.0 ** rng.integers(-20, 20, shape)):
        values = np.ascontiguousarray(values.astype(rng.choice(["f4", "f8"])))
        for tolerance in (Tolerance(absolute=0.0), Tolerance(absolute=1e-12), Tolerance(relative=1e-5)):
            data = codec.encode(values, tolerance)
            decoded = codec.decode(data, values.shape, values.dtype)
            assert tolerance.value or (decoded.view("u1") == values.view("u1")).all()
print("whole")
""")
    assert printed.strip() == "whole"
