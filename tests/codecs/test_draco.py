import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codecs import CodecFailed, Tolerance, get
from workbench.codecs.draco import MOST_BITS, Draco, _from_draco, _to_draco
from workbench.errors import WorkbenchError

ORDERS = ["keep", "free"]


def check(codec, positions, size):
    """Encode, decode, and hold every promise of a particle codec; the decoded positions."""
    tolerance = Tolerance(absolute=size)
    data = codec.encode(positions, tolerance)
    decoded = codec.decode(data, positions.shape, positions.dtype)
    order = codec.permutation(positions, data)
    assert (order is None) == (codec.order == "keep")
    order = np.arange(len(positions)) if order is None else order
    assert sorted(order.tolist()) == list(range(len(positions)))
    assert np.abs(decoded.astype(np.float64) - positions[order]).max() <= size
    return decoded, order


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("level", [0, 5, 10])
@pytest.mark.parametrize("bits", range(1, MOST_BITS + 1))
def test_draco_changes_no_whole_number_of_so_many_bits(bits, level, keep):
    rng = np.random.default_rng(bits)
    cells = np.unique(rng.integers(0, 2**bits, (500, 3)), axis=0)
    cells[0], cells[-1] = 0, 2**bits - 1
    back = _from_draco(_to_draco(cells, level, keep=keep), len(cells))
    if not keep:
        assert {tuple(c) for c in back.tolist()} == {tuple(c) for c in cells.tolist()}
    else:
        assert (back == cells).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("level", [0, 5, 10])
@pytest.mark.parametrize("order", ORDERS)
def test_positions_come_back_within_the_tolerance(order, level, dimensions, dtype):
    rng = np.random.default_rng(0)
    positions = (rng.normal(size=(3000, dimensions)) * rng.choice([1, 100], (3000, 1)) - 50).astype(dtype)
    for size in (1000.0, 3.0, 0.1, 1e-3, 3e-5, *([1e-9] if dtype == "float64" else [])):
        check(Draco(order, level), positions, size)


@pytest.mark.parametrize("size", [0.3, 1e-8])
@pytest.mark.parametrize("order", ORDERS)
def test_points_in_one_place_are_all_kept_and_stay_in_their_order(order, size):
    places = np.random.default_rng(0).random((20, 3))
    which = np.random.default_rng(1).integers(0, 20, 500)
    positions = places[which] + 5
    decoded, permutation = check(Draco(order), positions, size)
    for place in np.unique(decoded, axis=0):
        assert (np.diff(permutation[(decoded == place).all(axis=1)]) > 0).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("positions", [
    np.zeros((1, 3)),
    np.full((7, 2), -3.5, np.float32),
    np.array([[0, 0, 0], [1e9, 0, 0]], np.float64),
    np.array([[1e6, 1e6, 1e6], [1e6 + 0.0625, 1e6, 1e6]], np.float32),
], ids=["one", "coinciding", "far apart", "far away"])
def test_unusual_sets_come_back(order, positions):
    check(Draco(order), positions, 0.5)
    check(Draco(order), positions, 1e-3 if positions.dtype == np.float64 else 1e-2)


@settings(max_examples=60)
@given(data=st.data(), order=st.sampled_from(ORDERS), dtype=st.sampled_from(["float32", "float64"]))
def test_any_small_set_comes_back(data, order, dtype):
    count, dimensions = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 3))
    reals = st.one_of(st.sampled_from([0.0, 1.0, 1.5, -2.0]), st.floats(-1000, 1000, width=32))
    values = data.draw(st.lists(reals, min_size=count * dimensions, max_size=count * dimensions))
    positions = np.array(values, dtype).reshape(count, dimensions)
    largest = max(float(np.abs(positions).max()), 1e-3)
    size = largest * 2.0 ** data.draw(st.floats(-24 if dtype == "float32" else -49, 3))
    check(Draco(order), positions, size)


@pytest.mark.parametrize("order", ORDERS)
def test_large_sets_come_in_pieces_with_one_permutation(order, monkeypatch):
    monkeypatch.setattr(Draco, "most_values", 300)
    positions = np.random.default_rng(0).integers(0, 9, (450, 3)).astype(np.float32)
    _, permutation = check(Draco(order), positions, 0.1)
    assert all(set(permutation[i : i + 100]) == set(range(i, min(i + 100, 450))) for i in range(0, 450, 100))


def test_free_order_takes_fewer_bytes_and_says_that_it_reorders():
    positions = np.random.default_rng(0).random((20_000, 3))
    free, keep = (len(Draco(order).encode(positions, Tolerance(absolute=1e-3))) for order in ("free", "keep"))
    assert free < 0.7 * keep
    assert Draco("free").reorders
    assert not Draco("keep").reorders


def test_more_bits_than_draco_has_cost_what_they_are():
    positions = np.random.default_rng(0).random((5000, 3))
    sizes = [len(Draco("free").encode(positions, Tolerance(absolute=2.0**-bits))) * 8 / 15_000 for bits in (20, 30, 40)]
    assert np.diff(sizes) == pytest.approx([10, 10], abs=0.3)


def test_a_permutation_of_other_positions_is_refused():
    positions = np.random.default_rng(0).random((100, 3))
    codec, tolerance = Draco("free"), Tolerance(absolute=1e-3)
    data = codec.encode(positions, tolerance)
    with pytest.raises(WorkbenchError, match="needs the positions that were encoded"):
        codec.permutation(positions + 0.1, data)
    with pytest.raises(CodecFailed, match="checksum"):
        codec.permutation(positions[:-1], data)


@pytest.mark.parametrize("order", ORDERS)
def test_every_damaged_byte_is_noticed(order):
    positions = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(np.float32)
    data = Draco(order).encode(positions, Tolerance(absolute=0.1))
    for i in range(len(data)):
        damaged = bytearray(data)
        damaged[i] ^= 0x10
        with pytest.raises(CodecFailed, match="damaged"):
            Draco(order).decode(damaged, (60, 3), "f4")


@pytest.mark.parametrize(("positions", "tolerance", "message"), [
    (np.ones((4, 4)), Tolerance(absolute=1.0), r"positions of shape \(N, 2\) or \(N, 3\); got \(4, 4\)"),
    (np.ones((4, 1)), Tolerance(absolute=1.0), r"positions of shape \(N, 2\) or \(N, 3\)"),
    (np.ones(12), Tolerance(absolute=1.0), "draco takes arrays of 2 dimensions"),
    (np.ones((4, 3), int), Tolerance(absolute=1.0), "draco takes float32 or float64; got int64"),
    (np.full((4, 3), np.nan), Tolerance(absolute=1.0), "draco takes finite values only"),
    (np.ones((4, 3)), Tolerance(absolute=0.0), r"tolerance above 2\^-52 .* got 0: pcodec keeps all bits"),
    (np.ones((4, 3)), Tolerance(absolute=1e-17), "tolerance above"),
])
def test_what_cannot_work_is_refused_with_a_sentence(positions, tolerance, message):
    with pytest.raises(WorkbenchError, match=message):
        get("draco").encode(positions, tolerance)


def test_a_relative_tolerance_is_that_of_the_smallest_coordinate():
    positions = np.random.default_rng(0).uniform(1, 2, (500, 3))
    codec, tolerance = get("draco"), Tolerance(relative=0.01)
    decoded = codec.decode(codec.encode(positions, tolerance), positions.shape, positions.dtype)
    assert (np.abs(decoded - positions) <= 0.01 * positions).all()
