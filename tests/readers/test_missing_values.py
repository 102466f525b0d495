"""Missing and packed values: the same cells and numbers as netCDF4's own masking and scaling, whoever wrote the file."""

import base64
import json
import shutil
import struct

import h5py
import netCDF4
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import workbench as wb

FILL = np.float32(1e20)


def written(path, stored, dtype, fill=None, model="NETCDF4", **attributes):
    """A variable with these stored numbers and attributes."""
    with netCDF4.Dataset(path, "w", format=model) as file:
        for axis, size in enumerate(np.shape(stored)):
            file.createDimension(f"d{axis}", size)
        dimensions = tuple(f"d{axis}" for axis in range(np.ndim(stored)))
        variable = file.createVariable("v", dtype, dimensions, fill_value=fill)
        variable.set_auto_maskandscale(False)
        variable.setncatts(attributes)
        variable[:] = stored
    return path


def as_netcdf4(path, scale=True):
    with netCDF4.Dataset(path) as file:
        file["v"].set_auto_mask(True)
        file["v"].set_auto_scale(scale)
        return np.ma.array(file["v"][:])


def require_same(field, oracle):
    mask = np.zeros(field.shape, bool) if field.mask is None else field.mask
    np.testing.assert_array_equal(mask, np.ma.getmaskarray(oracle))
    np.testing.assert_allclose(field.values[~mask], oracle.data[~mask], rtol=3e-7)


CASES = {
    "fill": ("f4", FILL, {}),
    "missing value": ("f4", None, {"missing_value": np.float32(3)}),
    "several missing values": ("f4", FILL, {"missing_value": np.array([3, 5], "f4")}),
    "NaN": ("f4", np.float32("nan"), {}),
    "valid_range": ("f4", FILL, {"valid_range": np.array([2, 9], "f4")}),
    "valid_min": ("f8", None, {"valid_min": 2.0}),
    "valid_max": ("f8", None, {"valid_max": 9.0}),
    "packed": ("i2", np.int16(7), {"scale_factor": np.float32(0.1), "add_offset": np.float32(270)}),
    "packed in double": ("i2", np.int16(7), {"scale_factor": 0.1}),
    "packed with a range": ("i2", np.int16(7), {"scale_factor": 0.1, "valid_range": np.array([2, 9], "i2")}),
    "range in unpacked units": ("i2", np.int16(7), {"scale_factor": 0.1, "valid_range": np.array([0.25, 0.9])}),
    "half a range": ("i2", np.int16(7), {"scale_factor": 0.1, "valid_range": np.array([0.5, 9])}),
    "range of another type": ("i2", np.int16(7), {"scale_factor": 0.1, "valid_range": np.array([2, 9], "i4")}),
    "unsigned": ("i2", np.int16(-1), {"_Unsigned": "true", "scale_factor": 0.01}),
    "unsigned bytes": ("i1", np.int8(-1), {"_Unsigned": "true"}),
    "unsigned with a range": ("i1", np.int8(-1), {"_Unsigned": "true", "valid_range": np.array([2, -56], "i1")}),
    "not unsigned": ("i2", np.int16(-1), {"_Unsigned": "false", "scale_factor": 0.01}),
    "text": ("f4", FILL, {"missing_value": "none"}),
    "whole numbers": ("i4", np.int32(-999), {}),
    "default fill": ("i4", None, {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("model", ["NETCDF4", "NETCDF3_CLASSIC"])
@pytest.mark.filterwarnings("ignore:WARNING:UserWarning")
def test_the_same_cells_are_missing_as_in_netcdf4(tmp_path, case, model):
    dtype, fill, attributes = CASES[case]
    numbers = np.arange(12) if np.dtype(dtype).kind == "f" else np.array([-999, -120, -56, -1, 0, 1, 2, 7, 9, 10, 100, 127])
    stored = numbers.astype(dtype)
    if np.dtype(dtype).kind == "f":
        stored[[4, 5]] = FILL, np.nan
    elif case == "default fill":
        stored[4] = netCDF4.default_fillvals[dtype]
    path = written(tmp_path / "v.nc", stored.reshape(3, 4), dtype, fill, model, **attributes)
    require_same(wb.open(path), as_netcdf4(path))


@given(data=st.data())
def test_any_packed_variable(scratch, data):
    dtype = data.draw(st.sampled_from(["i1", "i2", "i4"]))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    number = st.integers(low, high) | st.integers(-4, 4)
    stored = np.array(data.draw(st.lists(number, min_size=6, max_size=6)), dtype)
    pair = np.array(sorted(data.draw(st.tuples(number, number))), dtype)
    attributes = {
        "scale_factor": data.draw(st.sampled_from([0.5, np.float32(0.25), 1.0])),
        "add_offset": data.draw(st.sampled_from([0.0, -7.5])),
        "missing_value": np.array(data.draw(number), dtype),
        "valid_range": pair,
        "_Unsigned": data.draw(st.sampled_from(["true", "false"])),
    }
    kept = {name: attributes[name] for name in data.draw(st.sets(st.sampled_from(sorted(attributes))))}
    fill = data.draw(st.none() | number.map(np.dtype(dtype).type))
    if dtype == "i1" and fill is None:
        fill = False   # else netCDF4 masks the default fill value of bytes, which the conventions of NetCDF do not have
    path = written(scratch / "any.nc", stored, dtype, fill, **kept)
    try:
        oracle = as_netcdf4(path)
    except TypeError:   # netCDF4 cannot make a masked array of unsigned integers whose fill value is negative
        assume(False)
    require_same(wb.open(path, name="v"), oracle)


def test_scaled_false_gives_the_signed_integers_on_disk(tmp_path):
    stored = np.array([[1, -2, 3, -1]], "i2")
    path = written(tmp_path / "v.nc", stored, "i2", np.int16(-1), _Unsigned="true", scale_factor=0.01)
    field = wb.open(path, scaled=False)
    assert field.values.dtype == np.int16
    require_same(field, as_netcdf4(path, scale=False))


# HDF5 that other libraries wrote.

def by_h5py(path, scales=True, conventions=False, **attributes):
    values = np.arange(600, dtype="f4").reshape(20, 30)
    values[3:7] = FILL
    with h5py.File(path, "w") as file:
        if conventions:
            file.attrs["Conventions"] = "CF-1.8"
        sst = file.create_dataset("sst", data=values)
        sst.attrs.update({"_FillValue": np.array([FILL], "f4"), "units": "K", **attributes})
        if scales:
            for axis, name in enumerate(("lat", "lon")):
                file[name] = np.arange(values.shape[axis], dtype="f8")
                file[name].make_scale(name)
                sst.dims[axis].attach_scale(file[name])
    return path


@pytest.mark.parametrize(("scales", "conventions"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("form", [None, "hdf5-grid"])
def test_netcdf_without_the_marks_of_the_library(tmp_path, scales, conventions, form):
    field = wb.open(by_h5py(tmp_path / "sst.h5", scales, conventions), format=form, name="sst")
    assert field.mask.sum() == 4 * 30
    assert field.mask[3:7].all()
    assert field.metadata["units"] == "K"
    expected = "NetCDF" if form is None and (scales or conventions) else "HDF5 grid"
    assert field.metadata["format"].startswith(expected)


def test_dimension_scales_choose_the_variable_that_is_no_coordinate(tmp_path):
    field = wb.open(by_h5py(tmp_path / "sst.h5"))
    assert (field.name, field.metadata["dimensions"]) == ("sst", ["lat", "lon"])


def test_ranges_and_packing_in_plain_hdf5(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["T"] = np.array([[1, 2, -1, 40]], "i2")
        file["T"].attrs.update({"scale_factor": 0.5, "valid_range": np.array([0, 30], "i2")})
    field = wb.open(tmp_path / "a.h5")
    assert field.mask.tolist() == [[False, False, True, True]]
    assert field.values[0, :2].tolist() == [0.5, 1.0]
    assert wb.open(tmp_path / "a.h5", scaled=False).values.dtype == np.int16


# Zarr as xarray writes it, byte for byte: JSON documents and uncompressed chunks.

def encoded(value):
    """A float as xarray keeps it among the attributes of format 3."""
    return base64.standard_b64encode(struct.pack("<d", value)).decode()


def by_xarray(folder, zarr_format, values, fill, attributes, dimensions=("y", "x"), marked=True):
    """A group with one array. xarray keeps the fill value in .zarray in format 2, and among the attributes in format 3."""
    (folder / "v").mkdir(parents=True)
    attributes = dict(attributes)
    if zarr_format == 2:
        array = {
            "chunks": values.shape, "compressor": None, "dtype": values.dtype.str, "fill_value": fill, "filters": None,
            "order": "C", "shape": values.shape, "zarr_format": 2,
        }
        if marked:
            attributes["_ARRAY_DIMENSIONS"] = list(dimensions)
        documents = {".zgroup": {"zarr_format": 2}, ".zattrs": {}, "v/.zarray": array, "v/.zattrs": attributes}
        chunk = "v/0.0"
    else:
        if fill is not None:
            attributes["_FillValue"] = encoded(fill) if values.dtype.kind == "f" else fill
        array = {
            "shape": values.shape, "data_type": values.dtype.name, "zarr_format": 3, "node_type": "array",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": values.shape}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": attributes,
            "dimension_names": list(dimensions), "storage_transformers": [],
        }
        documents = {"zarr.json": {"attributes": {}, "zarr_format": 3, "node_type": "group"}, "v/zarr.json": array}
        chunk = "v/c/0/0"
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document))
    (folder / chunk).parent.mkdir(parents=True, exist_ok=True)
    (folder / chunk).write_bytes(values.tobytes())
    return folder


def test_the_base64_of_xarray_is_this():
    assert encoded(float(FILL)) == "AAAAgB2vFUQ="


@pytest.fixture(params=[2, 3])
def zarr_format(request):
    return request.param


@pytest.mark.parametrize("fill", [float(FILL), -999.0, float("nan")])
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_fill_values_of_floats_in_zarr(tmp_path, zarr_format, fill, dtype):
    values = np.arange(12, dtype=dtype).reshape(3, 4)
    values[1, 1:3] = fill
    in_json = fill if fill == fill or zarr_format == 3 else "NaN"
    path = by_xarray(tmp_path / "o.zarr", zarr_format, values, in_json, {"units": "K"})
    for place in (path, shutil.make_archive(str(tmp_path / "o"), "zip", path)):
        field = wb.open(place)
        assert np.flatnonzero(field.mask).tolist() == [5, 6]
        assert field.metadata["dimensions"] == ["y", "x"]


def test_packed_integers_in_zarr(tmp_path, zarr_format):
    values = np.arange(12, dtype="<i2").reshape(3, 4)
    values[0, 0] = -32768
    path = by_xarray(tmp_path / "o.zarr", zarr_format, values, -32768, {"scale_factor": 0.01, "add_offset": 20.0})
    field = wb.open(path)
    assert np.flatnonzero(field.mask).tolist() == [0]
    np.testing.assert_allclose(field.values.ravel()[1:], 20 + 0.01 * np.arange(1, 12))


def test_missing_value_beside_the_fill_value_in_zarr(tmp_path, zarr_format):
    values = np.arange(12, dtype="<f4").reshape(3, 4)
    path = by_xarray(tmp_path / "o.zarr", zarr_format, values, 3.0, {"missing_value": 7.0})
    assert np.flatnonzero(wb.open(path).mask).tolist() == [3, 7]


def test_zarrs_own_fill_value_masks_nothing_where_xarray_did_not_write(tmp_path):
    path = by_xarray(tmp_path / "o.zarr", 2, np.zeros((3, 4), "<f4"), 0.0, {}, marked=False)
    assert wb.open(path).mask is None


def test_no_fill_value_masks_nothing(tmp_path, zarr_format):
    path = by_xarray(tmp_path / "o.zarr", zarr_format, np.zeros((3, 4), "<f4"), None, {})
    assert wb.open(path).mask is None
