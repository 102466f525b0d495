"""Gaps are filled smoothly from what is around them, for numbers of any type and size, and valid values never change."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import workbench as wb
from workbench import codecs
from workbench.codecs import Columns, Tolerance, gaps
from workbench.codecs.gaps import RELAXED, filled, repeated

TYPES = ["float32", "float64", "int8", "uint8", "int32", "int64", "uint64"]


def fill_slowly(mean, weight):
    """One plane, in plain Python."""
    rows, columns = mean.shape
    if mean.size == 1 or (weight > 0).all():
        return mean
    half = np.zeros((2, -(-rows // 2), -(-columns // 2)))
    for r, c in itertools.product(range(rows), range(columns)):
        half[:, r // 2, c // 2] += 0.25 * weight[r, c] * np.array([mean[r, c], 1])
    coarse = fill_slowly(np.divide(half[0], half[1], out=np.zeros_like(half[0]), where=half[1] > 0), half[1])
    grid = mean.copy()
    for r, c in zip(*np.nonzero(weight == 0), strict=True):
        near_r, near_c = r // 2, c // 2
        far_r = min(max(near_r + (1 if r % 2 else -1), 0), coarse.shape[0] - 1)
        far_c = min(max(near_c + (1 if c % 2 else -1), 0), coarse.shape[1] - 1)
        grid[r, c] = (9 * coarse[near_r, near_c] + 3 * coarse[near_r, far_c] + 3 * coarse[far_r, near_c]
                      + coarse[far_r, far_c]) / 16
    for _ in range(RELAXED):
        edged = np.pad(grid, 1, mode="edge")
        around = (edged[:-2, 1:-1] + edged[2:, 1:-1] + edged[1:-1, :-2] + edged[1:-1, 2:]) / 4
        grid = np.where(weight > 0, grid, around)
    return grid


@given(st.integers(1, 13), st.integers(1, 13), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 2**32 - 1))
def test_planes_are_filled_as_plain_python_fills_them(rows, columns, share, seed):
    rng = np.random.default_rng(seed)
    values, known = rng.normal(size=(3, rows, columns)), rng.random((3, rows, columns)) < share
    known[:, 0, 0] = True
    found = filled(np.where(known, values, np.nan), known)
    for plane, valid, own in zip(values, known, found, strict=True):
        assert own == pytest.approx(fill_slowly(np.where(valid, plane, 0.0), valid.astype(float)), abs=1e-12)


@given(array_shapes(min_dims=0, max_dims=4, max_side=6), st.sampled_from(TYPES), st.sampled_from([0, 0.1, 0.6, 1]),
       st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_valid_values_stay_and_guesses_are_between_them(shape, dtype, share, seed, at_once):
    rng = np.random.default_rng(seed)
    values = np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)
    valid = rng.random(shape) < share
    with pytest.MonkeyPatch.context() as patched, np.errstate(all="ignore"):
        whole = filled(values, valid)
        patched.setattr(gaps, "AT_ONCE", at_once)
        assert filled(values, valid).tobytes() == whole.tobytes()
    if np.dtype(dtype).kind == "f":
        valid = valid & np.isfinite(values)
    assert whole.dtype == values.dtype
    assert np.isfinite(whole).all()
    assert whole[valid].tobytes() == values[valid].tobytes()
    if valid.any():
        low, high = values[valid].min(), values[valid].max()
        near = 0 if np.dtype(dtype).kind == "f" else 2048   # above 2^53, guesses are no whole numbers
        assert float(whole.min()) >= float(low) - near
        assert float(whole.max()) <= float(high) + near
    else:
        assert not whole.any()


@pytest.mark.parametrize("extreme", [1.7e308, 5e-324])
def test_extreme_values(extreme):
    values = np.full((9, 9), extreme)
    values[3:7, 2:8] = np.nan
    assert np.isfinite(filled(values, ~np.isnan(values))).all()


def test_planes_without_values_are_as_their_neighbours():
    values = np.stack([np.full((4, 4), float(level)) for level in range(6)])
    valid = np.ones(values.shape, bool)
    valid[[0, 3, 4]] = False
    assert filled(values, valid)[:, 0, 0].tolist() == [1, 1, 2, 2, 2, 5]


def test_a_slope_goes_on_through_a_hole():
    values = np.add.outer(np.arange(40.0), np.arange(50.0))
    valid = np.ones(values.shape, bool)
    valid[15:25, 20:32] = False
    assert abs(filled(values, valid) - values).max() < 3   # of 10 that the value before would be wrong by


@given(array_shapes(min_dims=0, max_dims=3, max_side=5), st.sampled_from(TYPES), st.integers(0, 2**32 - 1))
def test_repeated_values_are_the_last_ones_before(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    values, valid = rng.integers(0, 99, shape).astype(dtype), rng.random(shape) < 0.5
    last, expected = values[valid][0] if valid.any() else 0, []
    for value, there in zip(values.reshape(-1), valid.reshape(-1), strict=True):
        last = value if there else last
        expected.append(last)
    assert repeated(values, valid).reshape(-1).tolist() == expected


def masked_sea():
    noise = wb.synthetic.gaussian_field((200, 240), seed=4).values.astype(np.float64)
    sea = np.cumsum(np.cumsum(noise - noise.mean(), axis=0), axis=1)
    land = np.cumsum(wb.synthetic.gaussian_field((200, 240), seed=5).values, axis=1)
    return sea, land < np.quantile(land, 0.55)


@pytest.mark.parametrize(("bound", "least_saved"), [
    (1e-2, 0.2), *(pytest.param(*each, marks=pytest.mark.long) for each in [(1e-3, 0.2), (1e-7, 0)]),
])
def test_gaps_are_filled_as_suits_the_codec(bound, least_saved):
    sea, valid = masked_sea()
    codec, tolerance = codecs.get("interpolation"), Tolerance(absolute=bound * np.ptp(sea[valid]))
    on_lattice = len(codecs.get("prequantised").encode_with_gaps(np.where(valid, sea, np.nan), valid, tolerance))
    found = len(codec.encode_with_gaps(np.where(valid, sea, np.nan), valid, tolerance))
    assert found < (1 - least_saved) * len(codec.encode(repeated(sea, valid), tolerance)) + 1
    assert found <= min(len(codec.encode(filled(sea, valid), tolerance)), on_lattice + 16)


def test_gaps_of_columns_are_their_own():
    rng = np.random.default_rng(3)
    table, valid = rng.normal([0, 1e6], 1, (5000, 2)), rng.random((5000, 2)) < 0.5
    codec, tolerance = Columns(codecs.get("prequantised")), Tolerance(absolute=1e-3)
    data = codec.encode_with_gaps(np.where(valid, table, np.nan), valid, tolerance)
    decoded = codec.decode(data, table.shape, table.dtype)
    assert abs(decoded - table)[valid].max() <= 1e-3 * (1 + 1e-9)
    assert (np.isnan(decoded) == ~valid).all()   # noise, in which gaps are marked
