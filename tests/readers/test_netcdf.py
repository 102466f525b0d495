"""NetCDF fields: the obvious variable, fill values, packing; AMBER trajectories."""

import shutil
from contextlib import suppress

import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from readers import written
from workbench import Particles, WorkbenchError
from workbench.data.readers import open_file
from workbench.data.readers.netcdf3_size import check_size
from workbench.data.readers.source import Source

FILL = np.float32(1e20)


@pytest.fixture(params=["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4", "NETCDF4_CLASSIC"])
def model(request):
    return request.param


def ocean(path, model="NETCDF4", dtype="f4", fill=FILL, values=None, **attributes):
    """A field over time, latitude and longitude, with coordinates, bounds and cell areas around it."""
    with netCDF4.Dataset(path, "w", format=model) as file:
        file.title = "an ocean"
        for name, size in (("time", 2), ("lat", 3), ("lon", 4), ("nbnd", 2)):
            file.createDimension(name, size)
        for name in ("time", "lat", "lon"):
            file.createVariable(name, "f8", (name,))[:] = np.arange(len(file.dimensions[name]))
        file["time"].bounds = "time_bnds"
        file.createVariable("time_bnds", "f8", ("time", "nbnd"))[:] = 0
        file.createVariable("area", "f4", ("lat", "lon"))[:] = 1
        variable = file.createVariable("sst", dtype, ("time", "lat", "lon"), fill_value=fill)
        variable.set_auto_maskandscale(False)
        variable.setncatts({"units": "K", "cell_measures": "area: area"} | attributes)
        variable[:] = np.arange(24).reshape(2, 3, 4) if values is None else values
    return path


def test_the_obvious_variable(tmp_path, model):
    field = open_file(ocean(tmp_path / "sst.nc", model))
    assert (field.name, field.shape, field.values.dtype, field.mask) == ("sst", (2, 3, 4), np.float32, None)
    np.testing.assert_array_equal(field.values.ravel(), np.arange(24))
    assert field.metadata["format"] == f"NetCDF ({model})"
    assert field.metadata["dimensions"] == ["time", "lat", "lon"]
    assert field.metadata["units"] == "K"
    assert field.metadata["file_attributes"]["title"] == "an ocean"
    assert field.metadata["scaled"] is False


def test_other_variables_by_name(tmp_path):
    path = ocean(tmp_path / "sst.nc")
    assert open_file(path, name="area", spacing=(0.5, 2)).spacing == (0.5, 2.0)
    assert open_file(path, name="time_bnds").shape == (2, 2)
    with pytest.raises(WorkbenchError, match="no array named 'wind'; it has area 3x4, lat 3"):
        open_file(path, name="wind")


def test_several_variables_need_a_name(tmp_path):
    path = ocean(tmp_path / "sst.nc")
    with netCDF4.Dataset(path, "a") as file:
        file.createVariable("salinity", "f4", ("time", "lat", "lon"))[:] = 35
    with pytest.raises(WorkbenchError, match=r"several arrays: choose one by name=.*salinity 2x3x4, sst 2x3x4"):
        open_file(path)


def test_variables_in_groups(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        group = file.createGroup("deep")
        group.createDimension("x", 5)
        group.createVariable("p", "f8", ("x",))[:] = 1
    assert open_file(tmp_path / "a.nc").name == "p"
    assert open_file(tmp_path / "a.nc", name="deep/p").shape == (5,)


@pytest.mark.parametrize(
    ("attributes", "fill", "masked"),
    [
        ({}, FILL, [3]),
        ({"missing_value": np.float32(7)}, FILL, [3, 7]),
        ({"missing_value": np.array([7, 8], np.float32)}, FILL, [3, 7, 8]),
        ({"valid_min": np.float32(2)}, FILL, [0, 1, 3]),
        ({"valid_range": np.array([2, 1e30], np.float32)}, FILL, [0, 1, 3, 9]),
        ({"valid_max": np.float32(20)}, FILL, [3, 9, 21, 22, 23]),
        ({"missing_value": "none"}, FILL, [3]),
        ({}, np.float32(np.nan), [5]),
        ({}, None, [9]),
    ],
)
def test_fill_values_become_a_mask(tmp_path, attributes, fill, masked):
    values = np.arange(24, dtype=np.float32)
    values[[3, 5, 9]] = FILL, np.nan, netCDF4.default_fillvals["f4"]
    field = open_file(ocean(tmp_path / "sst.nc", fill=fill, values=values.reshape(2, 3, 4), **attributes))
    assert np.flatnonzero(field.mask).tolist() == masked
    np.testing.assert_array_equal(field.values.ravel(), values)   # as on disk, fill values and all


def test_packed_integers_are_unpacked_unless_told_otherwise(tmp_path):
    packing = {"scale_factor": np.float32(0.5), "add_offset": np.float32(270)}
    values = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    values[0, 0, 0] = -999
    path = ocean(tmp_path / "sst.nc", dtype="i2", fill=np.int16(-999), values=values, **packing)
    field = open_file(path)
    assert field.values.dtype == np.float32
    assert field.metadata["scaled"] is True
    np.testing.assert_array_equal(field.values.ravel()[1:], 270 + 0.5 * np.arange(1, 24))
    assert np.flatnonzero(field.mask).tolist() == [0]
    np.testing.assert_array_equal(open_file(path, scaled=False).values.ravel()[1:], np.arange(1, 24))


def test_floats_are_scaled_only_on_request(tmp_path):
    path = ocean(tmp_path / "sst.nc", scale_factor=0.455)
    raw, scaled = open_file(path), open_file(path, scaled=True)
    assert (raw.values.dtype, raw.metadata["attributes"]["scale_factor"]) == (np.float32, 0.455)
    np.testing.assert_array_equal(scaled.values, raw.values.astype("f8") * 0.455)
    with pytest.raises(WorkbenchError, match="scaled must be True, False, or None"):
        open_file(path, scaled="yes")


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_truncated_files(tmp_path, model, share):
    path = ocean(tmp_path / "sst.nc", model)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(WorkbenchError):
        open_file(path)


@pytest.fixture(scope="module", params=["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def classic(request, tmp_path_factory):
    """The bytes of a NetCDF-3 file with both kinds of variables: fixed and by record."""
    path = tmp_path_factory.mktemp("netcdf") / "a.nc"
    with netCDF4.Dataset(path, "w", format=request.param) as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("x", "f8", ("x",))[:] = np.arange(3)
        file.createVariable("flag", "i1", ("time",))[:] = np.arange(4)
        file.createVariable("T", "f4", ("time", "x"))[:] = np.arange(12).reshape(4, 3)
    return path.read_bytes()


@given(data=st.data())
def test_netcdf3_cut_anywhere_is_refused(classic, refused_when_cut, data):
    """The library would read zeros."""
    refused_when_cut(classic, data.draw(st.integers(1, len(classic) - 1)))


@given(data=st.data())
def test_netcdf3_size_of_a_damaged_header(classic, scratch, data):
    changes = data.draw(st.dictionaries(st.integers(4, len(classic) - 1), st.integers(0, 255), min_size=1, max_size=5))
    damaged = bytearray(classic)
    for place, value in changes.items():
        damaged[place] = value
    (scratch / "a.nc").write_bytes(damaged)
    with suppress(WorkbenchError):
        check_size(Source.at(scratch / "a.nc"))


def test_one_variable_with_records_is_not_padded(tmp_path):
    """Two-byte numbers in records of six bytes: only when there are several such variables are they padded to eight."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("counts", "i2", ("time", "x"))[:] = np.arange(15).reshape(5, 3)
    assert open_file(tmp_path / "a.nc").shape == (5, 3)


def amber(path, *, lengths=(10.0,) * 3, angles=(90.0,) * 3, frames=3, atoms=5, scale=None, model="NETCDF3_64BIT_OFFSET"):
    with netCDF4.Dataset(path, "w", format=model) as file:
        file.Conventions = "AMBER"
        for name, size in (("frame", None), ("atom", atoms), ("spatial", 3)):
            file.createDimension(name, size)
        coordinates = file.createVariable("coordinates", "f4", ("frame", "atom", "spatial"))
        coordinates.set_auto_maskandscale(False)
        if scale:
            coordinates.scale_factor = scale
        coordinates[:] = np.stack([written.points(atoms, seed=seed) for seed in range(frames)])
        if lengths:
            file.createVariable("cell_lengths", "f8", ("frame", "spatial"))[:] = np.tile(lengths, (frames, 1))
            file.createVariable("cell_angles", "f8", ("frame", "spatial"))[:] = np.tile(angles, (frames, 1))
    return path


@pytest.mark.parametrize("model", ["NETCDF3_64BIT_OFFSET", "NETCDF4"])
def test_amber(tmp_path, model):
    particles = open_file(amber(tmp_path / "a.nc", model=model), frame=2)
    assert isinstance(particles, Particles)
    np.testing.assert_array_equal(particles.positions, written.points(5, seed=2))
    assert particles.box == (10.0,) * 3
    assert particles.metadata["frames"] == 3
    assert particles.velocities is None


def test_amber_cells_that_are_no_boxes(tmp_path):
    assert open_file(amber(tmp_path / "a.nc", lengths=None)).box is None
    assert open_file(amber(tmp_path / "a.nc", lengths=(0.0, 0.0, 0.0))).box is None
    path = amber(tmp_path / "a.nc", lengths=(10.0, 10.0, 0.0))
    with pytest.raises(WorkbenchError, match=r"periodic along some axes only.* pass box=None"):
        open_file(path)
    for other in (path, amber(tmp_path / "b.nc", angles=(90.0, 90.0, 60.0))):
        assert open_file(other, box=None).box is None
        assert open_file(other, box=12.0).box == (12.0,) * 3


def test_amber_scale_factors(tmp_path):
    path = amber(tmp_path / "a.nc", scale=2.0)
    assert open_file(path).positions.dtype == np.float32
    scaled = open_file(path, scaled=True, box=None)
    np.testing.assert_array_equal(scaled.positions, written.points(5).astype("f8") * 2)


@pytest.mark.parametrize("frame", [3, -1, 0.5, "first", True])
def test_amber_frames(tmp_path, frame):
    with pytest.raises(WorkbenchError, match="frame must be"):
        open_file(amber(tmp_path / "a.nc"), frame=frame)


def packed_file(path):
    """Numbers packed into int16, with a fill value: steps of 0.01 around 280."""
    values = 280 + np.random.default_rng(0).normal(0, 9, (20, 30))
    with netCDF4.Dataset(path, "w") as dataset:
        for name, size in (("lat", 20), ("lon", 30)):
            dataset.createDimension(name, size)
        variable = dataset.createVariable("ta", "i2", ("lat", "lon"), fill_value=-32768)
        variable.scale_factor, variable.add_offset = 0.01, 280.0
        variable[:] = np.ma.array(values, mask=values > 290)
    return path


def test_how_packed_numbers_were_stored(tmp_path):
    stored = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    path = packed_file(tmp_path / "packed.nc")
    field = open_file(path)
    assert (field.values.dtype, field.metadata["stored"]) == (np.float64, stored)
    archive = wb.compress(field, wb.Absolute(0.1), "pcodec")
    assert archive.decompress().metadata["stored"] == stored
    assert archive.original_nbytes == 2 * field.valid.sum()   # as in the file, not as float64
    assert "stored" not in open_file(path, scaled=False).metadata
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(path) as dataset:
        assert wb.Field(dataset["ta"]).metadata["stored"] == stored


def test_the_way_back_to_a_packed_file_keeps_the_bound(tmp_path):
    path, back = packed_file(tmp_path / "packed.nc"), tmp_path / "back.nc"
    steps = open_file(path, scaled=False)
    decoded = wb.compress(steps, wb.Absolute(0.05 / 0.01), "prequantised").decompress()
    shutil.copy(path, back)
    with netCDF4.Dataset(back, "a") as dataset:
        dataset.set_auto_maskandscale(False)
        dataset["ta"][:] = decoded.values
    with netCDF4.Dataset(path) as before, netCDF4.Dataset(back) as after:
        np.testing.assert_array_equal(before["ta"][:].mask, after["ta"][:].mask)
        assert 0.03 < abs(before["ta"][:] - after["ta"][:]).max() <= 0.05 + 1e-12
