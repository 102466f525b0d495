"""Blocks against the codec that they imitate: bits and errors of whole fields, ends of the grid, gaps."""

import numpy as np
import pytest

import workbench as wb
from workbench.bounds.prediction.blocks import SIDE, Blocks, blocks_of


def all_blocks(values: np.ndarray) -> np.ndarray:
    """All blocks of a grid whose axes are multiples of four, one column each."""
    axes = values.ndim
    split = values.reshape([n for points in values.shape for n in (points // SIDE, SIDE)])
    order = [*range(1, 2 * axes, 2), *range(0, 2 * axes, 2)]
    return np.ascontiguousarray(split.transpose(order).reshape(SIDE**axes, -1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4096,), (64, 64), (16, 16, 16), (8, 8, 8, 8)])
def test_bits_and_errors_are_those_of_the_codec(shape, dtype):
    codec = wb.codecs.get("zfp")
    if "zfp" not in wb.codecs.available():
        pytest.skip("needs zfp")
    values = np.cumsum(np.random.default_rng(0).standard_normal(4096)).reshape(shape).astype(dtype)
    known = np.ones((SIDE ** len(shape), 4096 // SIDE ** len(shape)), bool)
    blocks = Blocks(all_blocks(values), known, len(shape))
    limits = np.array([2.0**-7, 2.0**-2, 2.0, 64.0, 1e-2, 0.3, 3.0, 100.0])
    bits, squares, *_ = blocks.coded(limits)
    for limit, each, square in zip(limits, bits, squares, strict=True):
        data = codec.encode(values, wb.codecs.Tolerance(absolute=float(limit)))
        true = codec.decode(data, shape, values.dtype).astype(float) - values
        of_bits, of_squares = (0.02, 0.01) if np.frexp(limit)[0] == 0.5 else (0.06, 0.04)   # others are interpolated
        assert each * values.size == pytest.approx(8 * (len(data) - 13), rel=of_bits, abs=64)   # but for the header
        assert square == pytest.approx(float((true**2).mean()), rel=of_squares)


def test_blocks_beyond_the_end_are_filled_up_and_not_counted():
    codec = wb.codecs.get("zfp")
    if "zfp" not in wb.codecs.available():
        pytest.skip("needs zfp")
    values = wb.synthetic.gaussian_field((61, 63, 58), 3, seed=1).values.astype(np.float32)
    limits = np.array([0.003, 0.05])
    bits, squares, *_ = blocks_of(values, None).coded(limits)
    for limit, each, square in zip(limits, bits, squares, strict=True):
        data = codec.encode(values, wb.codecs.Tolerance(absolute=float(limit)))
        true = codec.decode(data, values.shape, values.dtype).astype(float) - values
        assert each * values.size == pytest.approx(8 * len(data), rel=0.03)
        assert square == pytest.approx(float((true**2).mean()), rel=0.1)


@pytest.mark.parametrize("shape", [(1,), (2,), (3, 3), (5, 1000), (6, 7, 9), (2, 3, 4, 5)])
def test_every_shape_has_blocks(shape):
    values = np.random.default_rng(0).standard_normal(shape)
    bits, squares, uneven, error = blocks_of(values, None).coded(np.array([1e-3, 1e9]))
    assert np.isfinite([bits, squares, uneven, error]).all()
    assert bits[0] > bits[1]
    assert bits[1] * values.size == np.prod([-(-n // SIDE) for n in shape])   # nothing is told but that each block is empty
    assert squares[0] < 1e-6


def test_gaps_have_no_errors():
    values = np.random.default_rng(0).standard_normal((64, 64))
    valid = np.zeros(values.shape, bool)
    assert (blocks_of(values, valid).coded(np.array([0.1]))[1] == 0).all()


def test_zeros_take_one_bit():
    bits, squares, *_ = blocks_of(np.zeros((16, 16), np.float32), None).coded(np.array([0.1]))
    assert bits[0] * 16 == 1
    assert squares[0] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_of_any_size_are_cut_at_any_plane(dtype):
    tiny, huge = float(np.finfo(dtype).tiny) / 4, float(np.finfo(dtype).max) / 4
    values = np.zeros((4, 4 * 40), dtype)
    values[:, :4], values[:, 4:8], values[0, 8], values[:, 12:] = tiny, huge, -tiny, 1.5
    with np.errstate(all="ignore"):
        bits, squares, *_ = blocks_of(values, None).coded(np.array([1e-200, 1e-3, 1e300]))
    assert (np.diff(bits) < 0).all()
    assert (squares >= 0).all()
    quiet, small = blocks_of(np.full((4, 8), tiny, dtype), None).coded(np.array([1e-3]))[:2]
    assert quiet[0] * 32 == 2   # two empty blocks
    assert small[0] <= (2 * tiny) ** 2


def test_a_column_is_cut_as_if_it_were_alone():
    values = np.random.default_rng(0).standard_normal((16, 37)).astype(np.float32)
    known, limits = np.ones(values.shape, bool), np.array([0.25])
    alone = [Blocks(values[:, n : n + 1].copy(), known[:, :1].copy(), 2).coded(limits) for n in range(37)]
    bits, squares, *_ = Blocks(values, known, 2).coded(limits)
    assert bits[0] == pytest.approx(np.mean([each[0][0] for each in alone]))
    assert squares[0] == pytest.approx(np.mean([each[1][0] for each in alone]))
