"""Scratch files: what is read is what was written, whichever part of it; damage is an error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.distributed.scratch_files import (
    BLOCK,
    load,
    mapped,
    read_summed,
    save,
    save_blocks,
    size_of_summed,
    write_summed,
)
from workbench.errors import WorkbenchError

SIZES = st.sampled_from([0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5])


@given(SIZES, st.sampled_from([(), (1,), (3,), (2, 2)]), st.sampled_from(["u1", "<i4", "<f8", "?"]), st.data())
def test_all_and_any_rows_of_an_array_come_back(tmp_path_factory, rows, width, kind, data):
    path = tmp_path_factory.mktemp("scratch") / "a.npy"
    array = np.random.default_rng(rows).integers(0, 256, (rows, *width)).astype(kind)
    save(path, array)
    begin = data.draw(st.integers(0, rows))
    end = data.draw(st.integers(begin, rows))
    for found, expected in (
        (load(path), array), (load(path, slice(begin, end)), array[begin:end]), (np.asarray(mapped(path)), array),
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
