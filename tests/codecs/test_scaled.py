import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from workbench.codecs import CodecFailed
from workbench.codecs.scaled import BLOCK, pack_scaled, unpack_scaled
from workbench.codecs.scales import GAP, LOWEST, Layout, Scales, layouts, promising

EXTREMES = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, -70, 0, 1, -1, 15, 16, 2**17, -(2**19), 2**40]


def entropy(numbers):
    """Bits of all numbers under one table of their own frequencies."""
    _, counts = np.unique(numbers, return_counts=True)
    return float((counts * np.log2(numbers.size / counts)).sum())


@given(st.data(), npst.array_shapes(max_dims=3, max_side=12))
def test_numbers_come_back_under_every_layout(data, shape):
    elements = data.draw(st.sampled_from([None, st.sampled_from(EXTREMES), st.integers(-3, 3)]))
    numbers = data.draw(npst.arrays(np.int64, shape, elements=elements))
    for layout in [*layouts(shape), Layout(3, 1)]:
        for each in (layout, layout.uncentred):
            assert np.array_equal(unpack_scaled(pack_scaled(numbers, each), numbers.size), numbers.reshape(-1))


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77])
def test_blocks_and_segments_need_not_fit(count):
    numbers = np.random.default_rng(count).geometric(0.05, count) * np.repeat(1 + np.arange(count // 91 + 1), 91)[:count]
    assert np.array_equal(unpack_scaled(pack_scaled(numbers, Layout(91, 1)), count), numbers)


def test_scales_are_the_mean_magnitudes_about_the_offsets():
    random = np.random.default_rng(1)
    rows, columns, offset = 2.0 ** np.array([3, 0, 6]), 2.0 ** np.array([0, 2]), np.array([1000, -4000])
    spread = rows[:, None, None] * columns
    table = np.rint(random.normal(0, spread, (3, 40_000, 2)) + offset).astype(np.int64).reshape(-1, 2)
    scales = Scales.of(table.reshape(-1), Layout(80_000, 2))
    assert np.abs(scales.offset - offset).max() < 40
    levels = scales.levels(table.size).reshape(3, -1, 2)[:, 0]
    exact = 4 * np.log2(np.sqrt(2 / np.pi) * rows[:, None] * columns)
    assert np.abs(levels - exact).max() < 1.6
    assert Scales.of(np.zeros(600, np.int64), Layout(200, 3)).of_segment.tolist() == [LOWEST] * 3


def varied(kind, random):
    """Numbers of one kind, and the entropy of each given its scale, in bits."""
    shape, scale = {
        "rows": ((400, 300), np.exp(random.normal(0, 1, (400, 1)))),
        "columns": ((2000, 60), np.exp(random.normal(0, 1, (1, 60)))),
        "both": ((400, 300), np.exp(random.normal(0, 0.7, (400, 1))) * np.exp(random.normal(0, 0.7, (1, 300)))),
        "runs": ((120_000,), np.repeat(random.random(120_000 // 64) < 0.1, 64)),
    }[kind]
    numbers = np.rint(random.normal(0, 20 * np.broadcast_to(scale, shape))).astype(np.int64)
    bits = sum(entropy(np.rint(random.normal(0, 20 * s, 20_000))) / 20_000 for s in random.choice(np.ravel(scale), 300))
    return numbers, bits / 300 * numbers.size


@pytest.mark.parametrize("kind", ["rows", "columns", "both", "runs"])
def test_scales_that_differ_are_found_and_take_about_the_entropy_given_the_scale(kind):
    numbers, given_scale = varied(kind, np.random.default_rng(5))
    layout = promising(numbers, 20.0)
    bits = 8 * len(pack_scaled(numbers, layout))
    assert bits < 0.95 * entropy(numbers)
    assert bits < (1.2 if kind == "runs" else 1.06) * given_scale


def test_equal_scales_are_left_to_other_coders():
    assert promising(np.random.default_rng(0).normal(0, 20, (300, 400)).round().astype(np.int32), 20.0) is None
    assert promising(varied("rows", np.random.default_rng(5))[0], 1.0) is None   # another takes far fewer bits


def test_gaps_cost_their_entropy_and_disturb_no_scale():
    random = np.random.default_rng(3)
    numbers = np.rint(random.normal(5000, 20, 50_000)).astype(np.int64)
    holes = random.random(numbers.size) < 0.6
    gappy = np.where(holes, GAP, numbers)
    data = pack_scaled(gappy, Layout(numbers.size, 1))
    assert np.array_equal(unpack_scaled(data, numbers.size), gappy)
    assert 8 * len(data) < 1.02 * (entropy(holes) + entropy(numbers[~holes])) + 2000


def test_damaged_bytes_are_refused_or_decoded_to_something():
    random, refused = np.random.default_rng(4), 0
    numbers = np.rint(random.normal(0, 20, (300, 40)) * np.exp(random.normal(0, 2, (300, 1)))).astype(np.int64)
    for layout in (Layout(16, 1), Layout(40, 40)):
        sound = pack_scaled(numbers, layout)
        for turn in range(150):
            data = bytearray(sound)
            for place in random.integers(0, min(len(data), (17, 300, len(data))[turn % 3]), 1 + turn % 2):
                data[place] = random.integers(256)
            try:
                found = unpack_scaled(bytes(data[: random.integers(len(data) // 2, 2 * len(data))]), numbers.size)
                assert found.shape == (numbers.size,)
            except CodecFailed:
                refused += 1
    assert refused > 200
    for wrong in (b"", bytes(17), sound[:20], sound + b"\0\0"):
        with pytest.raises(CodecFailed):
            unpack_scaled(wrong, numbers.size)
