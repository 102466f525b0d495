"""Masks come back, take what coasts take, and damaged ones give a sentence."""

import contextlib
import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from workbench.codecs import mask as masks
from workbench.codecs.codec import CodecFailed
from workbench.codecs.mask import pack_mask, unpack_mask


def require_round_trip(mask):
    data = pack_mask(mask)
    assert np.array_equal(unpack_mask(data, mask.shape), mask)
    return data


def deflated(mask):
    return len(zlib.compress(np.packbits(mask).tobytes(), 6))


def discs(rng, shape, count=12):
    """Islands with ragged coasts."""
    place = np.indices(shape)
    mask = np.zeros(shape, bool)
    for _ in range(count):
        centre, radius = rng.uniform(0, shape), rng.uniform(2, min(shape) / 4)
        mask |= np.hypot(*(place - centre[:, None, None])) + rng.normal(0, 0.7, shape) < radius
    return mask


@given(
    array_shapes(min_dims=0, max_dims=4, max_side=9), st.integers(0, 2**32 - 1), st.sampled_from([0, 0.03, 0.5, 0.99, 1]),
    st.integers(1, 40),
)
def test_every_mask_comes_back(shape, seed, share, strip_cells):
    mask = np.random.default_rng(seed).random(shape) < share
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(masks, "STRIP_CELLS", strip_cells)
        require_round_trip(mask)
        require_round_trip(np.sort(mask, axis=None).reshape(shape))
        require_round_trip(np.broadcast_to(mask, (3, *shape))[::-1])


@pytest.mark.parametrize("shape", [(300, 400), (1, 300, 400), (100, 1)])
def test_coasts_take_half_of_what_a_byte_compressor_takes(shape):
    mask = discs(np.random.default_rng(0), (300, 400))[: shape[-2], : shape[-1]].reshape(shape)
    data = require_round_trip(mask)
    assert len(data) < max(0.55 * deflated(mask), 20)


@pytest.mark.parametrize("times", [(40, 1, 1), (1, 40, 1), (8, 5, 1)])
def test_land_that_stays_is_stored_once(times):
    land = discs(np.random.default_rng(1), (150, 200))
    once, often = require_round_trip(land), require_round_trip(np.tile(land, times).reshape(*times[:2], *land.shape))
    assert len(often) < len(once) + 40


def test_levels_that_differ_and_times_that_do_not():
    rng = np.random.default_rng(2)
    depth = np.stack([discs(rng, (80, 90), 4 + level) for level in range(6)])
    once, often = require_round_trip(depth), require_round_trip(np.tile(depth, (10, 1, 1, 1)))
    assert len(often) < len(once) + 40


def test_coasts_that_move_cost_little_beside_those_that_are_new():
    rng = np.random.default_rng(3)
    ice = np.stack([discs(np.random.default_rng(7), (120, 120), 8)] * 20)
    ice ^= rng.random(ice.shape) < 0.001
    apart = sum(len(require_round_trip(plane)) for plane in ice)
    assert len(require_round_trip(ice)) < 0.5 * apart


def test_noise_takes_its_entropy():
    rng = np.random.default_rng(4)
    assert len(require_round_trip(rng.random((300, 300)) < 0.5)) < 300 * 300 / 8 + 32
    rare = rng.random((500, 500)) < 0.02
    entropy = -(0.02 * math.log2(0.02) + 0.98 * math.log2(0.98)) * rare.size / 8
    assert len(require_round_trip(rare)) < 1.1 * entropy


def test_long_carries():
    """Cells that were never set before make the coder carry through many bytes that are written already."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        require_round_trip(rng.random(3000) < rng.choice([1e-3, 0.999, 0.01, 0.3]))


def test_what_repeats_otherwise_is_left_to_deflate():
    tiles = np.tile(np.random.default_rng(8).random((16, 16)) < 0.5, (20, 30))
    assert len(require_round_trip(tiles)) < 1000


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 4)])
def test_no_cells(shape):
    require_round_trip(np.zeros(shape, bool))


def test_damage_is_a_sentence_or_another_mask():
    mask = discs(np.random.default_rng(5), (40, 60))
    data = pack_mask(mask)
    for size in range(len(data)):
        with pytest.raises(CodecFailed):
            unpack_mask(data[:size], mask.shape)
    rng = np.random.default_rng(6)
    for _ in range(300):
        forged = bytearray(data)
        forged[rng.integers(len(data))] ^= rng.integers(1, 256)
        with contextlib.suppress(CodecFailed):
            assert unpack_mask(bytes(forged), mask.shape).shape == mask.shape
    with pytest.raises(CodecFailed, match="strips"):
        unpack_mask(data, (2**22, 2**22))
