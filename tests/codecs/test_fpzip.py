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
