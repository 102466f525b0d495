"""Wavelet coefficients of patches: the transform, the order of boxes and the bits, against plain definitions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.bounds.prediction.patches import MARGIN, STEP, _listed, coefficients, in_boxes, levels, transformed


def test_constants_are_left_to_the_means_and_lines_have_no_differences_inside():
    flat = transformed(np.ones((1, 16, 16)), [0, 0], [2, 2])
    assert np.abs(flat[0, 4:]).max() < 1e-9
    assert flat[0, :4, :4] == pytest.approx(4.0)   # two levels along two axes, a root of two for each
    line = np.arange(16.0 + 2 * MARGIN).reshape(1, -1, 1)
    assert np.abs(transformed(line, [MARGIN, 0], [1, 0])[0, 8:]).max() < 1e-9
    assert np.abs(transformed(line[:, MARGIN:-MARGIN], [0, 0], [1, 0])[0, 8:]).max() > 0.1   # a mirror bends it


def test_one_level_of_an_impulse_is_the_filter_of_the_transform():
    impulse = np.zeros((1, 8, 1))
    impulse[0, 4, 0] = 1.0
    found = transformed(impulse, [0, 0], [1, 0])[0, :4, 0]
    assert found[2] == pytest.approx(0.852698679009, rel=1e-6)   # the middle of the low-pass filter of nine values
    assert found[1] == pytest.approx(-0.110624404418, rel=1e-6)


@pytest.mark.parametrize("shape", [(64, 64), (32, 32, 32), (8, 4, 64)])
def test_noise_keeps_its_energy(shape):
    noise = np.random.default_rng(0).standard_normal((4, *shape))
    found = transformed(noise, [0] * len(shape), [levels(n) for n in shape])
    assert found.shape == noise.shape
    assert (found**2).mean() == pytest.approx(1.0, rel=0.15)


def test_margins_change_only_what_is_near_the_ends():
    waves = np.random.default_rng(0).standard_normal((2, 32 + 2 * MARGIN, 8))
    one = transformed(waves, [MARGIN, 0], [2, 0])
    other = transformed(waves[:, MARGIN:-MARGIN], [0, 0], [2, 0])
    assert one.shape == other.shape == (2, 32, 8)
    for start, end in ((16, 32), (8, 16)):   # differences of the first level, and of the second
        assert one[:, start + 3 : end - 3] == pytest.approx(other[:, start + 3 : end - 3])
        assert np.abs(one[:, start] - other[:, start]).max() > 0.01


def test_lengths_are_divided_as_sperr_does():
    assert [levels(n) for n in (4, 7, 8, 15, 16, 91, 256, 10_000)] == [0, 0, 1, 1, 2, 4, 6, 6]


@given(st.sampled_from([(8, 8), (4, 8), (2, 8, 4), (16, 2), (8, 8, 8)]), st.integers(0, 100))
def test_boxes_are_consecutive(shape, seed):
    values = 1.0 + np.random.default_rng(seed).random((2, *shape))
    found = in_boxes(values, [0] * len(shape), [0] * len(shape))
    sizes = largest(found.sizes, found.members)
    assert sorted(sizes[0]) == sorted(values.ravel())
    assert sorted(sizes[1]) == sorted(part.max() for patch in values for part in boxes_of(patch))
    assert sorted(sizes[-1]) == sorted(patch.max() for patch in values)


def largest(sizes: np.ndarray, members: tuple[int, ...]) -> list[np.ndarray]:
    """The sizes, and the largest in each box, the boxes in those twice as large, and so on."""
    found = [sizes]
    for count in members:
        found.append(found[-1].reshape(count, -1).max(axis=0))
    return found


def boxes_of(patch: np.ndarray) -> list[np.ndarray]:
    """The boxes of two coefficients along each axis."""
    starts = itertools.product(*(range(0, side, 2) for side in patch.shape))
    return [patch[tuple(slice(first, first + 2) for first in start)] for start in starts]


@given(st.integers(0, 100), st.floats(1e-3, 1.0))
def test_bits_are_those_of_telling_boxes_plane_by_plane(seed, limit):
    rng = np.random.default_rng(seed)
    patches = rng.standard_normal((3, 8, 8)) * 10 ** rng.uniform(-2, 1, (3, 1, 1))
    found = in_boxes(patches.astype(np.float32), [0, 0], [0, 0])
    step = np.float32(1 / (STEP * limit))
    whole = [np.rint(size * step).astype(int) for size in largest(found.sizes, found.members)]
    bits = 0
    for box in range(3):
        bits += told(whole, found.members, len(whole) - 1, box)
    squares = float(found.coded(np.array([limit]))[1][0])
    listed = float(found.coded(np.array([limit]))[0][0]) - bits / whole[0].size
    assert 0 <= listed < 0.5
    assert 0 < squares < limit**2 / 3


def told(whole: list[np.ndarray], members: tuple[int, ...], level: int, box: int) -> int:
    """The bits of everything inside a box, written as SPERR's decoder would read them."""
    number = int(whole[level][box])
    if level == 0:
        return number.bit_length()   # the sign, and the planes below the highest
    if number == 0:
        return 0
    bits, inside = 0, range(box, len(whole[level - 1]), len(whole[level]))
    first = True   # whether all before were insignificant in the plane in which the box became significant
    for place, member in enumerate(inside):
        planes = int(whole[level - 1][member]).bit_length()
        known = first and place == len(inside) - 1
        bits += sum(1 for plane in range(number.bit_length(), 0, -1) if plane >= max(planes, 1)) - known
        first = first and planes < number.bit_length()
        bits += told(whole, members, level - 1, member)
    return bits


@given(st.floats(0.5, 6.0))
def test_what_is_listed_follows_from_a_gaussian(reach):
    beyond = np.abs(np.random.default_rng(0).standard_normal(400_000))
    share = (beyond > reach).mean()
    bits, corrected = _listed(reach)
    assert 0 <= corrected < 1
    if share > 1e-3:
        assert bits == pytest.approx(share * (4 - math.log2(share)), rel=0.1)


def test_the_imitation_is_close_to_the_codec():
    codec = wb.codecs.get("sperr")
    if "sperr" not in wb.codecs.available():
        pytest.skip("needs sperr")
    waves = wb.synthetic.gaussian_field((64, 64, 64), 4, seed=1).values
    found = coefficients(waves, np.random.default_rng(0))
    for limit in (1e-3, 1e-2):
        true = 8 * len(codec.encode(waves, wb.codecs.Tolerance(absolute=limit))) / waves.size
        assert float(found.coded(np.array([limit]))[0][0]) == pytest.approx(true, rel=0.03)


@pytest.mark.parametrize("shape", [(32, 32, 32), (20, 24, 30), (100, 120), (3, 8, 16, 16)])
def test_a_small_field_is_transformed_as_a_whole(shape):
    waves = wb.synthetic.gaussian_field(shape, 4, seed=1).values
    found = coefficients(waves, np.random.default_rng(0))
    layers, *sides = shape if len(shape) == 4 else (1, *shape)
    assert found.sizes.size == layers * math.prod(1 << (side - 1).bit_length() for side in sides)
    limits = waves.std() * np.array([1e-4, 1e-2])
    codec = wb.codecs.get("sperr")
    if "sperr" not in wb.codecs.available():
        pytest.skip("needs sperr")
    for limit, bits in zip(limits.tolist(), found.coded(limits)[0].tolist(), strict=True):
        data = codec.encode(waves, wb.codecs.Tolerance(absolute=limit))
        assert bits == pytest.approx(8 * len(data) / waves.size, rel=0.06)


@pytest.mark.parametrize("shape", [(2,), (5000,), (3, 3), (64, 70), (2, 2, 2), (20, 24, 30), (5, 12, 14, 16)])
def test_every_shape_has_patches(shape):
    values = np.random.default_rng(0).standard_normal(shape)
    (bits,), (squares,) = coefficients(values, np.random.default_rng(1)).coded(np.array([0.1]))
    assert 0 <= bits < 20
    assert 0 < squares < 1
