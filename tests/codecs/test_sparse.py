import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import slow_sparse
from workbench.codecs import CodecFailed, sparse
from workbench.codecs.lattice_numbers import _SPARSE, pack_numbers, unpack_numbers
from workbench.codecs.sparse import pack_sparse, suits, unpack_sparse

EXTREMES = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, -70, 0, 0, 0, 1, -1, 15, 16, 2**17, -(2**40)]
MUCH = 10**6


def entropy(p):
    """The bits of events with these probabilities."""
    inside = p[(p > 0) & (p < 1)]
    return float(-(inside * np.log2(inside) + (1 - inside) * np.log2(1 - inside)).sum())


@given(st.data(), npst.array_shapes(max_dims=4, max_side=9), st.sampled_from([4, 2**20]))
def test_numbers_come_back_in_blocks_of_any_size(data, shape, block):
    elements = data.draw(st.sampled_from([None, st.sampled_from(EXTREMES), st.integers(-3, 3)]))
    numbers = data.draw(npst.arrays(np.int64, shape, elements=elements, fill=st.just(0)))
    with pytest.MonkeyPatch.context() as few:
        few.setattr(sparse, "BLOCK", block)
        packed = pack_sparse(numbers, MUCH)
        assert np.array_equal(unpack_sparse(packed, shape), numbers)
        again = pack_sparse(numbers, len(packed))   # zeros at the end, which are not kept, count for the limit
        assert again is None or len(again) == len(packed)
        assert pack_sparse(numbers, len(packed) - 1) is None


@pytest.mark.parametrize("shape", [(13, 17), (1, 150), (90, 1)])
def test_a_slow_decoder_finds_the_same_numbers(shape):
    random = np.random.default_rng(sum(shape))
    numbers = random.choice(EXTREMES[2:], shape) * (random.random(shape) < random.random((shape[0], 1)))
    for scaled in (numbers, np.where(numbers, numbers * 1000, 0), np.zeros_like(numbers)):
        axis, *code = pack_sparse(scaled, MUCH)
        assert axis == 1
        assert np.array_equal(slow_sparse.decoded(bytes(code), *shape), scaled)


@pytest.mark.parametrize("of", ["rows", "columns", "both", "neither"])
def test_zeros_cost_what_the_densities_of_rows_and_columns_leave_open(of):
    random = np.random.default_rng(3)
    rows = np.exp(random.normal(0, 1.2, (300, 1))) if of in ("rows", "both") else 1.0
    columns = np.exp(random.normal(0, 1.2, (1, 400))) if of in ("columns", "both") else 1.0
    density = np.clip(0.05 * rows * columns * np.ones((300, 400)), 0, 0.9)
    filled = random.random(density.shape) < density
    bits = 8 * len(pack_sparse(filled.astype(np.int32), MUCH))
    unknown = 300 * (of in ("rows", "both")) + 400 * (of in ("columns", "both"))   # densities, each of 300 numbers
    assert bits < 1.03 * entropy(density) + unknown * np.log2(300) / 2 + 100
    if of != "neither":
        assert bits < 0.9 * entropy(np.full(density.shape, filled.mean()))


@pytest.mark.parametrize(("kind", "most"), [("patch", 0.07), ("one in each row", 0.9), ("runs", 0.4), ("band", 0.42)])
def test_patches_runs_bands_and_classes_cost_less_than_their_densities_alone(kind, most):
    random, (y, x) = np.random.default_rng(5), np.indices((1000, 50))
    filled = {
        "patch": np.hypot(y / 8 - 60, x - 20) < 16 + 3 * np.sin(y / 20),
        "one in each row": random.integers(0, 50, 1000)[:, None] == x,
        "band": abs(x - y % 50) < 2,
        "runs": np.repeat(random.random(1000 * 5) < 0.1, 10).reshape(1000, 50),
    }[kind]
    alone = entropy(np.full(filled.shape, filled.mean()))
    assert 8 * len(pack_sparse(filled.astype(np.int64), MUCH)) < most * alone


def test_large_numbers_are_expected_where_many_are_not_zero():
    random = np.random.default_rng(6)
    mean = np.exp(random.normal(-3, 1.5, (300, 1)) + random.normal(0, 1.5, (1, 300)))
    counts = random.poisson(mean)
    shuffled = counts.copy()
    shuffled[counts > 0] = random.permutation(counts[counts > 0])   # the zeros stay where they are
    assert len(pack_sparse(counts, MUCH)) < 0.93 * len(pack_sparse(shuffled, MUCH))


def test_the_axis_that_says_most_is_chosen():
    random = np.random.default_rng(7)
    land = random.random((1, 40, 50)) < 0.2   # the same at all times
    numbers = (random.random((30, 40, 50)) < np.where(land, 0.5, 0.01)).astype(np.int32)
    assert pack_sparse(numbers, MUCH)[0] == 1
    assert pack_sparse(numbers.reshape(30, 2000).T.reshape(2000, 6, 5), MUCH)[0] == 1
    assert pack_sparse(np.ascontiguousarray(numbers.transpose(1, 2, 0)), MUCH)[0] == 2


def test_pruned_and_small_arrays_are_coded_so_and_dense_ones_are_not():
    random = np.random.default_rng(8)
    pruned = np.rint(random.normal(0, 9, (200, 300))) * (random.random((200, 300)) < 0.4 * random.random((200, 1)))
    few, dense = np.rint(random.normal(0, 3, 50)), np.rint(random.normal(0, 3, (200, 300)))
    for numbers, so in ((pruned, True), (few, True), (dense, False)):
        data = pack_numbers(numbers.astype(np.int32))
        assert bool(data[0] & _SPARSE) == so == suits(numbers, True)
        assert np.array_equal(unpack_numbers(data, numbers.shape, np.dtype(np.int32)), numbers)


def test_damaged_bytes_are_refused_or_decoded_to_something(monkeypatch):
    monkeypatch.setattr(sparse, "BLOCK", 500)
    random, refused = np.random.default_rng(4), 0
    numbers = np.rint(random.normal(0, 20, (30, 4, 40)) * (random.random((30, 1, 40)) < 0.1)).astype(np.int64)
    sound = pack_sparse(numbers, MUCH)
    for turn in range(200):
        data = bytearray(sound)
        for place in random.integers(0, min(len(data), (1, 40, len(data))[turn % 3]), 1 + turn % 2):
            data[place] = random.integers(256)
        try:
            found = unpack_sparse(bytes(data[: random.integers(len(data) // 2, 2 * len(data))]), numbers.shape)
            assert found.shape == numbers.shape
        except CodecFailed:
            refused += 1
    assert refused > 100
    for wrong in (b"", b"\3" + sound[1:], sound[:20], sound + b"\0"):
        with pytest.raises(CodecFailed):
            unpack_sparse(wrong, numbers.shape)
