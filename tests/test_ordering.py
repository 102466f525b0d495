"""The radix sort and the runs against NumPy, whatever the number of chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_cupy
from workbench import backend
from workbench.ordering import known_run_starts, nested_run_starts, places_of, run_starts, sort_by_key


@st.composite
def keys(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Keys of up to 64 bits, often with many equal ones, and the number of bits."""
    bits = draw(st.integers(1, 64))
    count = draw(st.integers(1, 400))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    different = draw(st.sampled_from([1, 2, 5, 1000]))
    pool = random.integers(0, 2**bits, size=different, dtype=np.uint64) if bits < 64 else random.integers(
        0, 2**64 - 1, size=different, dtype=np.uint64, endpoint=True
    )
    pool[0] = 2**bits - 1   # the largest there is
    return random.choice(pool, count), bits


def check_sorted(key: np.ndarray, bits: int) -> None:
    expected = np.argsort(key, kind="stable")
    for scratch in (None, np.empty((len(key), 3), np.float32), np.empty(1)):
        result = key.copy()
        order = sort_by_key(result, bits, scratch)
        assert order.dtype == np.int32
        np.testing.assert_array_equal(order, expected)
        np.testing.assert_array_equal(result, key[expected])


@given(keys(), st.integers(1, 40))
def test_sorting_is_numpys_stable_sort(given_keys, threads):
    with backend.using_threads(threads):   # 8 chunks for each thread
        check_sorted(*given_keys)


@given(keys(), st.integers(1, 40), st.data())
def test_runs_begin_where_the_shifted_key_changes(given_keys, threads, data):
    key, bits = given_keys
    key = np.sort(key)
    shift = data.draw(st.integers(0, bits - 1))
    changes = np.flatnonzero(np.diff(key >> np.uint64(shift)) != 0) + 1
    with backend.using_threads(threads):
        start = run_starts(key, shift)
        coarse = data.draw(st.integers(shift, bits - 1))
        nested, wider = nested_run_starts(key, (shift, coarse))
        known = known_run_starts(key, coarse, wider)
    assert start.dtype == np.int32
    assert start.tolist() == nested.tolist() == [0, *changes.tolist(), len(key)]
    assert known.tolist() == run_starts(key, coarse).tolist()


@pytest.mark.parametrize("bits", [1, 2, 10, 11, 12, 21, 22, 23, 33, 44, 45, 63, 64])
def test_sorting_at_the_borders_of_digits(bits):
    random = np.random.default_rng(bits)
    key = random.integers(0, 2**bits - 1, size=5000, dtype=np.uint64, endpoint=True)
    check_sorted(key, bits)


def test_equal_keys_keep_their_order():
    key = np.full(100_000, 2**40 + 3, np.uint64)
    order = sort_by_key(key, bits=41)
    np.testing.assert_array_equal(order, np.arange(100_000))
    assert (key == 2**40 + 3).all()


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 999, 1000])
def test_any_number_of_chunks_gives_the_same(monkeypatch, chunks):
    monkeypatch.setattr(backend, "chunks", lambda count, array: chunks)
    key = np.random.default_rng(0).integers(0, 50, size=1000, dtype=np.uint64) << np.uint64(20)
    check_sorted(key, 26)
    ordered = np.sort(key)
    expected = np.unique(ordered, return_index=True)[1]
    assert run_starts(ordered).tolist() == [*expected.tolist(), 1000]


def test_one_key():
    check_sorted(np.array([2**64 - 1], np.uint64), 64)
    assert run_starts(np.array([5], np.uint64)).tolist() == [0, 1]


def test_no_key():
    assert len(sort_by_key(np.empty(0, np.uint64), 64)) == 0
    assert run_starts(np.empty(0, np.uint64)).tolist() == [0]


def test_places_of_known_number_are_those_of_the_flags(stand_in):
    some = np.random.default_rng(0).random(1000) < 0.3
    for flags in (some, np.zeros(7, bool), np.ones(7, bool)):
        fake_cupy.counted.clear()
        found = places_of(stand_in.array(flags), int(flags.sum()))
        assert fake_cupy.counted["synchronisations"] == 0
        assert found.get().tolist() == places_of(flags, int(flags.sum())).tolist() == np.flatnonzero(flags).tolist()


def test_keys_of_another_type_are_refused():
    with pytest.raises(TypeError, match="key must be a uint64 array; got int64"):
        sort_by_key(np.array([3, 1, 2]), bits=2)
    with pytest.raises(TypeError, match="key must be a uint64 array; got int64"):
        run_starts(np.array([1, 2, 3]))
