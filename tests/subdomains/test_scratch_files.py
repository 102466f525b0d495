"""Scratch files: what is read is what was written, whichever part of it; damage is an error."""

import errno
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.run.array_in_files import ArrayInFiles
from workbench.run.chunked_field import grid
from workbench.run.scratch_files import (
    BLOCK,
    Mapped,
    load,
    load_together,
    read_summed,
    save,
    save_blocks,
    save_together,
    size_of_summed,
    write_summed,
)

SIZES = st.sampled_from([0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5])


@given(SIZES, st.sampled_from([(), (1,), (3,), (2, 2)]), st.sampled_from(["u1", "<i4", "<f8", "?"]), st.data())
def test_all_and_any_rows_of_an_array_come_back(tmp_path_factory, rows, width, kind, data):
    path = tmp_path_factory.mktemp("scratch") / "a.npy"
    array = np.random.default_rng(rows).integers(0, 256, (rows, *width)).astype(kind)
    save(path, array)
    begin = data.draw(st.integers(0, rows))
    end = data.draw(st.integers(begin, rows))
    for found, expected in (
        (load(path), array), (load(path, slice(begin, end)), array[begin:end]), (np.asarray(Mapped(path)), array),
        (Mapped(path)[begin:end], array[begin:end]),
    ):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


def test_an_array_in_any_layout_of_memory_comes_back(tmp_path):
    array = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    for given_array in (array, array[::-1], np.asfortranarray(array), np.broadcast_to(array[:1], array.shape)):
        save(tmp_path / "a.npy", given_array)
        np.testing.assert_array_equal(load(tmp_path / "a.npy"), given_array)
    save_blocks(tmp_path / "a.npy", array.shape, array.dtype, (block[None] for block in array))
    np.testing.assert_array_equal(load(tmp_path / "a.npy"), array)


@given(st.lists(SIZES, max_size=4), st.integers(0, 20))
def test_arrays_behind_each_other_are_one_row_of_bytes(tmp_path_factory, sizes, before):
    path, rng = tmp_path_factory.mktemp("scratch") / "a", np.random.default_rng(0)
    arrays = [rng.integers(0, 256, size, np.uint8) for size in sizes]
    together = np.concatenate([np.zeros(0, np.uint8), *arrays])
    with path.open("wb") as file:
        write_summed(file, arrays)
    with path.open("rb") as file:
        assert size_of_summed(file) == len(together)
        np.testing.assert_array_equal(read_summed(file, len(together), 0, len(together)), together)
    with path.open("wb") as file:
        file.write(bytes(before))
        write_summed(file, arrays)
    with path.open("rb") as file:
        file.seek(before)
        np.testing.assert_array_equal(read_summed(file, len(together), len(together) // 2, len(together)),
                                      together[len(together) // 2 :])


def test_every_bit_that_flips_and_every_cut_is_an_error_or_concerns_other_rows(tmp_path):
    array = np.arange((3 * BLOCK - 128) // 8, dtype=np.int64)   # three blocks with the header
    path, here = tmp_path / "a.npy", slice(BLOCK // 8, BLOCK // 8 + 3)   # all in the second block
    save(path, array)
    data = path.read_bytes()
    begin = len(data) - array.nbytes - 12
    assert begin == 128
    for place in [*range(0, len(data), 61), *range(len(data) - 12, len(data))]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(WorkbenchError, match=r"a\.npy cannot be read \(its bytes have changed"):
            load(path)
        try:
            found = load(path, here)
        except WorkbenchError:
            continue
        np.testing.assert_array_equal(found, array[here])
    for size in (0, 5, begin, begin + 1, len(data) - 12, len(data) - 1, len(data) + 1):
        path.write_bytes(data[:size] if size <= len(data) else data + b"x")
        with pytest.raises(WorkbenchError, match=r"a\.npy cannot be read"):
            load(path, here)


@given(SIZES.filter(bool), st.sampled_from([(), (3,), (1500,), (2, 700)]), st.data())
def test_any_choice_of_rows_is_that_of_an_array(tmp_path_factory, rows, width, data):
    """Also rows that are longer than a block, or begin in one and end in another."""
    path, count = tmp_path_factory.mktemp("scratch") / "a.npy", min(rows, 300)
    array = np.random.default_rng(rows).random((count, *width))
    save(path, array)
    chosen = np.array(data.draw(st.lists(st.integers(-count, count - 1), max_size=9)), np.int64)
    for given_rows in (chosen, chosen.reshape(-1, 1), np.arange(count) % 3 == 1, int(chosen[0]) if len(chosen) else 0,
                       slice(3, 1), slice(-2, None)):
        np.testing.assert_array_equal(Mapped(path)[given_rows], array[given_rows])
    if len(width) == 2:
        np.testing.assert_array_equal(Mapped(path)[0, 1:, 3:9], array[0, 1:, 3:9])
        np.testing.assert_array_equal(Mapped(path)[1:, 0], array[1:, 0])
    with pytest.raises(IndexError):
        Mapped(path)[count]


def test_what_is_read_of_a_mapped_array_is_checked_and_the_rest_is_not_read(tmp_path):
    array = np.arange(0, 40 * BLOCK, 2)
    path, rows = tmp_path / "a.npy", BLOCK // 8   # in a block
    save(path, array)
    data = path.read_bytes()
    damaged = bytearray(data)
    damaged[128 + 8 * 10 * rows] ^= 1   # the first number of one block
    path.write_bytes(damaged)
    for other in (0, slice(0, 9 * rows), np.array([5, 12 * rows]), slice(12 * rows, None)):
        np.testing.assert_array_equal(Mapped(path)[other], array[other])
    for wanted in (10 * rows, slice(9 * rows, 11 * rows), np.array([0, 10 * rows]), slice(None)):
        with pytest.raises(WorkbenchError, match=r"a\.npy cannot be read \(its bytes have changed"):
            Mapped(path)[wanted]
    with pytest.raises(WorkbenchError, match=r"a\.npy cannot be read"):
        np.searchsorted(Mapped(path), 5)
    for size in (0, 5, 128, 129, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(WorkbenchError, match=r"a\.npy cannot be read"):
            Mapped(path)[0]


@given(st.data())
def test_of_a_part_of_a_mapped_array_only_the_blocks_with_its_values_are_read(tmp_path_factory, data):
    path, shape = tmp_path_factory.mktemp("scratch") / "a.npy", (9, 40, 50)
    array = np.arange(float(np.prod(shape))).reshape(shape)
    save(path, array)
    ends = [sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size)))) for size in shape]
    place, mapped = tuple(slice(*pair) for pair in ends), Mapped(path)
    np.testing.assert_array_equal(mapped[place], array[place])
    wanted = (128 + 8 * array[place].astype(int).ravel()) // BLOCK
    assert np.flatnonzero(mapped._checked).tolist() == np.unique([0, *wanted]).tolist()   # the header is in the first


@pytest.mark.long
def test_a_search_in_a_mapped_array_is_right_or_an_error_whatever_bit_flips(tmp_path):
    array = np.repeat(np.arange(0, 3000, 3), 2)
    path, ends = tmp_path / "a.npy", [(-5, 4), (0, 3), (1500, 1503), (1501, 1502), (2997, 9000), (9000, 9001), (10, 2900)]
    save(path, array)
    for begin, end in ends:
        assert Mapped(path).between(begin, end) == slice(*np.searchsorted(array, [begin, end]).tolist())
    data, seen = path.read_bytes(), 0
    for place in range(128, 128 + array.nbytes, 13):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        for begin, end in ends:
            try:
                found = Mapped(path).between(begin, end)
            except WorkbenchError:
                seen += 1
                continue
            assert found == slice(*np.searchsorted(array, [begin, end]).tolist())
    assert seen > 100


def test_arrays_that_were_written_together_come_back_or_are_an_error_that_names_the_file(tmp_path):
    path, arrays = tmp_path / "a.npz", {"rows": np.arange(50), "state": np.ones((50, 3), np.float32)}
    save_together(path, arrays)
    found = load_together(path)
    assert {name: array.tolist() for name, array in found.items()} == {name: each.tolist() for name, each in arrays.items()}
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        try:
            again = load_together(path)
        except WorkbenchError as error:
            message = str(error)
        else:   # a bit that nothing depends on, as one of a date
            message = "a.npz"
            assert all((again[name] == array).all() for name, array in arrays.items())
        assert "a.npz" in message
    path.unlink()
    with pytest.raises(WorkbenchError, match=r"a\.npz cannot be read"):
        load_together(path)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_array_in_files_is_read_as_the_array_at_any_place(tmp_path, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    chunks = tuple(data.draw(st.integers(1, size)) for size in shape)
    whole = np.random.default_rng(0).random(shape)
    array = ArrayInFiles(tmp_path / "part", shape, whole.dtype, chunks)
    for number, place in enumerate(grid(shape, chunks)):
        array.write(number, whole[place])
    ends = [sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size)))) for size in shape]
    place = tuple(slice(begin, max(end, begin)) for begin, end in ends)
    np.testing.assert_array_equal(array[place], whole[place])


def test_a_disk_without_room_for_the_name_of_the_process_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    def fail(one, other):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(WorkbenchError, match=r"\.owner cannot be written \(No space left on device\): give scratch="):
        wb.friends_of_friends(wb.synthetic.cosmic_web(n=8, seed=1), parts=2, scratch=tmp_path)
    assert not list(tmp_path.iterdir())
