"""Pointwise errors against a loop over the values."""

import math
import tracemalloc

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.metrics import Errors, pointwise


def by_hand(original: np.ndarray, decoded: np.ndarray, mask: np.ndarray, bound: float) -> dict[str, float]:
    """The definition, one value at a time."""
    errors, relative, valid, counted = [], [0.0], [], dict.fromkeys(["lost", "invalid", "invalid_changed"], 0)
    for x, y, masked in zip(original.ravel(), decoded.ravel(), mask.ravel(), strict=True):
        if masked or not math.isfinite(x):
            counted["invalid"] += 1
            counted["invalid_changed"] += x.tobytes() != y.tobytes()
            continue
        valid.append(float(x))
        if not math.isfinite(y):
            counted["lost"] += 1
            errors.append(math.inf)
            relative.append(math.inf)
            continue
        errors.append(abs(float(y) - float(x)))
        if errors[-1] > 0:
            relative.append(errors[-1] / abs(float(x)) if x else math.inf)
    return counted | {
        "count": len(valid),
        "differing": sum(error > 0 for error in errors),
        "exceeding": sum(error > bound for error in errors),
        "max_error": max(errors, default=0.0),
        "rms_error": math.sqrt(math.fsum(e * e for e in errors) / len(errors)) if errors else math.nan,
        "max_relative_error": max(relative),
        "value_range": max(valid) - min(valid) if valid else math.nan,
    }


VALUES = st.one_of(
    st.floats(-1e6, 1e6, width=32), st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 1e-30, 1e-45, 3e38])
)


@st.composite
def fields(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    dtype, shape = draw(st.sampled_from([np.float32, np.float64])), draw(arrays.array_shapes(max_dims=4, max_side=6))
    original = draw(arrays.arrays(dtype, shape, elements=VALUES))
    replaced = draw(arrays.arrays(dtype, shape, elements=VALUES))
    decoded = np.where(draw(arrays.arrays(bool, shape)), replaced, original)
    return original, decoded, draw(arrays.arrays(bool, shape))


@given(fields(), st.sampled_from([0.0, 0.5, 1e5]))
def test_errors_are_those_of_the_definition(case, bound):
    original, decoded, mask = case
    found = pointwise(wb.Field(original, mask=mask), decoded, bound)
    for name, expected in by_hand(original, decoded, mask, bound).items():
        assert getattr(found, name) == pytest.approx(expected, rel=1e-12, nan_ok=True), name


@given(fields(), st.data())
def test_parts_add_up_to_the_whole(case, data):
    original, decoded, mask = (array.ravel() for array in case)
    cut = data.draw(st.integers(0, len(original)))
    parts = [pointwise(wb.Field(original[s], mask=mask[s]), decoded[s], 1.0)
             for s in (slice(cut), slice(cut, None)) if original[s].size]
    whole, added = pointwise(wb.Field(original, mask=mask), decoded, 1.0), sum(parts, Errors())
    rounding = 1e-12 * whole.max_error if math.isfinite(whole.max_error) else 0   # errors of both signs cancel
    for name in Errors.__slots__:
        assert getattr(added, name) == pytest.approx(getattr(whole, name), rel=1e-12, abs=rounding, nan_ok=True), name


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("shape", [(1001,), (7, 143), (1, 1, 1001), (11, 7, 13)])
def test_chunks_cover_every_value_once(shape):
    random = np.random.default_rng(0)
    original, decoded = random.normal(size=(2, *shape))
    error = decoded - original
    found = pointwise(original, decoded, bound=1.0)
    assert (found.count, found.exceeding) == (1001, int((abs(error) > 1).sum()))
    assert found.mean_error == pytest.approx(error.mean(), rel=1e-12)
    assert found.rms_error == pytest.approx(np.sqrt((error**2).mean()), rel=1e-12)


def test_differences_are_taken_in_double_precision():
    original, decoded = np.float32([300.0]), np.float32([300.0999908447265625])
    assert pointwise(original, decoded).max_error == 0.0999755859375
    tiny = np.nextafter(np.float32(1), np.float32(2))
    assert pointwise(np.float32([-1e8]), np.array([tiny])).max_error == 1e8 + float(tiny)


def test_neither_huge_nor_tiny_errors_are_lost():
    for scale in (1e-300, 1e-170, 1.0, 1e170, 1e300):
        found = pointwise(np.array([0.0, 1.0, 2.0]) * scale, np.array([0.3, 1.0, 1.6]) * scale)
        assert found.rms_error == pytest.approx(math.sqrt(0.25 / 3) * scale, rel=1e-14)
        assert found.psnr == pytest.approx(20 * math.log10(2 / math.sqrt(0.25 / 3)), rel=1e-14)
        both = found + pointwise([0.0], [1e-5 * scale])
        assert both.rms_error == pytest.approx(math.sqrt((0.25 + 1e-10) / 4) * scale, rel=1e-14)


def test_an_error_beyond_all_numbers_is_infinite():
    found = pointwise([-1.7e308, 0.0], [1.7e308, 0.0])
    assert (found.max_error, found.rms_error, found.psnr) == (math.inf, math.inf, -math.inf)


def test_bits_of_invalid_values_are_compared():
    payload = np.array([0x7FC00000, 0x7FC00001, 0x7F800000], np.uint32).view(np.float32)
    assert pointwise(payload, payload.copy()).invalid_kept
    assert pointwise(payload, payload[[1, 1, 2]]).invalid_changed == 1
    assert pointwise(payload, payload.astype(np.float64)).invalid_changed == 3
    masked = wb.Field(np.float32([1.0, np.nan, 2.0]), mask=np.array([True, False, False]))
    found = pointwise(masked, np.float32([9.0, 0.0, 2.0]))
    assert (found.count, found.max_error, found.invalid_changed, found.nonfinite_changed) == (1, 0.0, 2, 1)


def test_values_that_are_masked_afterwards_are_lost():
    decoded = wb.Field([1.0, 2.0], mask=np.array([False, True]))
    found = pointwise([1.0, 2.0], decoded, bound=10.0)
    assert (found.lost, found.exceeding, found.max_error, found.value_range) == (1, 1, math.inf, 1.0)
    assert math.isnan(found.mean_error)


def test_nothing_to_measure():
    found = pointwise(np.full(3, np.nan), np.full(3, np.nan))
    assert (found.count, found.invalid, found.max_error) == (0, 3, 0.0)
    for name in ("rms_error", "mean_error", "psnr", "nrmse", "value_range"):
        assert math.isnan(getattr(found, name)), name


def test_psnr_without_error_or_without_range():
    assert pointwise([1.0, 2.0], [1.0, 2.0]).psnr == math.inf
    assert pointwise([1.0, 1.0], [1.0, 1.0]).psnr == math.inf
    assert math.isnan(pointwise([1.0, 1.0], [1.0, 1.5]).psnr)
    assert math.isnan(pointwise([1.0, 1.0], [1.0, 1.5]).nrmse)


def test_little_memory_is_needed_beside_the_arrays():
    original = np.zeros((100, 80_000), np.float32)   # 32 MB
    original[50, 7] = np.nan
    tracemalloc.start()
    pointwise(original, original)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(wb.WorkbenchError, match=r"the same shape; got \(3,\) and \(4,\)"):
        pointwise(np.zeros(3), np.zeros(4))
    with pytest.raises(wb.WorkbenchError, match=r"same spacing; got \(1.0,\) and \(2.0,\)"):
        pointwise(wb.Field(np.zeros(3), spacing=1), wb.Field(np.zeros(3), spacing=2))
    with pytest.raises(wb.WorkbenchError, match="must be float32, float64 or integers"):
        pointwise(np.zeros(3, complex), np.zeros(3))


def test_on_a_device(cupy):
    random = np.random.default_rng(1)
    original, decoded = random.normal(size=(2, 30, 40)).astype(np.float32)
    original[3, 4], original[5, 6], decoded[5, 6], decoded[7, 8] = np.nan, np.inf, np.inf, np.nan
    mask = random.random((30, 40)) < 0.1
    ours = pointwise(wb.Field(cupy.asarray(original), mask=cupy.asarray(mask)), cupy.asarray(decoded), 0.5)
    theirs = pointwise(wb.Field(original, mask=mask), decoded, 0.5)
    assert repr(ours) == repr(theirs)
    assert all(type(getattr(ours, name)) in (int, float) for name in Errors.__slots__)
    with pytest.raises(wb.WorkbenchError, match="on one machine"):
        pointwise(cupy.asarray(original), decoded)
