"""Zarr stores: formats 2 and 3, folders and zip files, single arrays and groups."""

import shutil

import numpy as np
import pytest
import zarr

from workbench import WorkbenchError
from workbench.data.readers import open_file

VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def group(path, zarr_format, **arrays):
    store = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    store.attrs["title"] = "a store"
    for name, array in arrays.items():
        store.create_array(name, data=array, chunks=array.shape)
    return store


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_single_array(tmp_path, zarr_format):
    array = zarr.create_array(tmp_path / "a.zarr", data=VALUES, zarr_format=zarr_format)
    array.attrs["units"] = "K"
    field = open_file(tmp_path / "a.zarr")
    np.testing.assert_array_equal(field.values, VALUES)
    assert (field.values.dtype, field.name, field.metadata["units"]) == (np.float32, None, "K")
    assert field.metadata["format"] == f"Zarr {zarr_format}"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_of_a_group(tmp_path, zarr_format):
    group(tmp_path / "g.zarr", zarr_format, rho=VALUES, T=VALUES + 1, time=np.arange(2.0))
    assert open_file(tmp_path / "g.zarr", name="T", spacing=2).spacing == (2.0,) * 3
    assert open_file(tmp_path / "g.zarr", name="rho").metadata["store_attributes"] == {"title": "a store"}
    with pytest.raises(WorkbenchError, match=r"the store holds several arrays: choose one by name=.*T 2x3x4, rho 2x3x4"):
        open_file(tmp_path / "g.zarr")
    with pytest.raises(WorkbenchError, match="no array named 'p'"):
        open_file(tmp_path / "g.zarr", name="p")


def test_nested_groups_and_the_obvious_array(tmp_path):
    group(tmp_path / "g.zarr", 3, **{"level/rho": VALUES, "level/x": np.arange(4.0)})
    assert open_file(tmp_path / "g.zarr").name == "rho"


def test_attributes_that_mask_and_pack(tmp_path):
    store = group(tmp_path / "g.zarr", 2, sst=VALUES.astype(np.int16))
    store["sst"].attrs.update({"_FillValue": 5, "scale_factor": 0.1, "_ARRAY_DIMENSIONS": ["time", "y", "x"]})
    field = open_file(tmp_path / "g.zarr")
    assert np.flatnonzero(field.mask).tolist() == [5]
    np.testing.assert_array_equal(field.values, VALUES.astype("f8") * 0.1)
    assert field.metadata["dimensions"] == ["time", "y", "x"]


def test_a_store_in_a_zip_file(tmp_path):
    group(tmp_path / "g.zarr", 3, rho=VALUES)
    path = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "g.zarr")
    np.testing.assert_array_equal(open_file(path).values, VALUES)


def test_an_empty_group_and_a_damaged_store(tmp_path):
    group(tmp_path / "g.zarr", 3)
    with pytest.raises(WorkbenchError, match="the store holds no array of numbers"):
        open_file(tmp_path / "g.zarr")
    (tmp_path / "g.zarr" / "zarr.json").write_text("{")
    with pytest.raises(WorkbenchError, match="zarr cannot read"):
        open_file(tmp_path / "g.zarr")


def test_a_damaged_chunk(tmp_path):
    store = group(tmp_path / "g.zarr", 3, rho=np.random.default_rng(0).random((8, 8)))
    chunk = next(path for path in (tmp_path / "g.zarr" / store["rho"].path / "c").rglob("*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:20])
    with pytest.raises(WorkbenchError, match="zarr cannot read"):
        open_file(tmp_path / "g.zarr")


def test_a_folder_that_is_no_store(tmp_path):
    with pytest.raises(WorkbenchError, match=r"the folder .* has no known format"):
        open_file(tmp_path)
