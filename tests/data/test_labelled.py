"""Arrays of xarray and quantities keep what they carry, through an archive and back."""

import numpy as np
import pytest

import workbench as wb
from workbench.lab.limits_panel.state import require_field

xarray = pytest.importorskip("xarray")


def temperature():
    """An array with coordinates of every kind that can be kept."""
    lat = np.linspace(-89.123456789, 89, 90)
    return xarray.DataArray(
        np.random.default_rng(0).normal(280, 9, (3, 90)).astype("f4"),
        dims=("time", "lat"),
        name="ta",
        coords={
            "time": np.array(["2000-01-16T12", "2000-02-15", "NaT"], "M8[ns]"),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "height": 2.0,
            "month": ("time", ["jan", "feb", "mar"]),
            "land": ("lat", lat > 0),
            "area": (("time", "lat"), np.where(lat > 80, np.nan, lat) * np.ones((3, 1))),
        },
        attrs={"units": "K", "cell_methods": "time: mean", "levels": np.array([1, 2]), "flag": True},
    )



def test_an_array_of_xarray_comes_back_from_an_archive(tmp_path):
    array = temperature()
    archive = wb.compress(array, wb.Absolute("0.01 K"), codec="pcodec")
    back = wb.open(archive.save(tmp_path / "ta.zip")).decompress().to_xarray()
    xarray.testing.assert_identical(back, array.copy(data=back.values).assign_attrs(levels=[1, 2]))
    assert back.dtype == np.float32
    assert {name: back[name].dtype for name in back.coords} == {name: array[name].dtype for name in array.coords}
    assert abs(back.values.astype(float) - array.values).max() <= 0.01


def test_a_variable_of_xarray_and_a_column_of_pandas_come_back():
    pandas, variable = pytest.importorskip("pandas"), temperature().variable
    xarray.testing.assert_identical(wb.Field(variable).to_xarray().variable, variable)
    column = pandas.Series([1.0, 2.0], [3, 5], name="T")
    pandas.testing.assert_series_equal(wb.Field(column).to_xarray().to_series(), column, check_names=False)
    assert wb.Field(column.reset_index(drop=True)).metadata["coordinates"] == {}
    with pytest.raises(wb.WorkbenchError, match="choose a column"):
        wb.Field(column.to_frame())


def test_coordinates_that_archives_have_no_room_for_are_refused_by_name():
    random = np.random.default_rng(0).random((600, 700))
    array = xarray.DataArray(random, dims=("y", "x"), coords={"x": np.arange(700), "lat": (("y", "x"), random)})
    with pytest.raises(wb.WorkbenchError, match=r"most of them for 'lat': .*drop_vars\('lat'\)"):
        wb.Field(array)


def of_netcdf4(path, values, mask):
    file = pytest.importorskip("netCDF4").Dataset(path, "w")
    file.createDimension("x", values.size)
    variable = file.createVariable("T", "i2", ("x",), fill_value=-999)
    variable.setncatts({"scale_factor": 0.5, "units": "K"})
    variable[:] = np.ma.array(values, mask=mask)
    return variable


def of_astropy(path, values, mask):
    masked = pytest.importorskip("astropy.utils.masked").Masked
    return masked(values, mask=mask) * pytest.importorskip("astropy.units").K


def of_dask(path, values, mask):
    return pytest.importorskip("dask.array").from_array(np.ma.array(values, mask=mask), chunks=2)


@pytest.mark.parametrize("make", [of_netcdf4, of_astropy, of_dask])
def test_masks_of_other_libraries_are_kept(tmp_path, make):
    values, mask = np.array([1.5, 2.0, 3.5]), np.array([False, True, False])
    given = make(tmp_path / "a.nc", values, mask)
    field = wb.compress(given, wb.Absolute(0)).decompress()
    np.testing.assert_array_equal(field.mask, mask)
    np.testing.assert_array_equal(field.values[~mask], values[~mask])
    assert make is of_dask or field.metadata["units"] == "K"
    with pytest.raises(wb.WorkbenchError, match="positions must have no masked entries; got 1 of them"):
        wb.Particles(given)


@pytest.mark.parametrize("library", ["h5py", "zarr"])
def test_arrays_of_files_whose_numbers_mean_others_are_refused(tmp_path, library):
    module = pytest.importorskip(library)
    if library == "h5py":
        array = module.File(tmp_path / "a.h5", "w").create_dataset("T", (3,), "f4")
    else:
        array = module.create_array(tmp_path / "a.zarr", name="T", shape=(3,), dtype="f4")
    array.attrs["units"] = "K"
    array.attrs["_FillValue"] = "AAAAAAAA+H8=" if library == "zarr" else np.float32(np.nan)   # as xarray writes NaN
    assert (wb.Field(array).name, wb.Field(array).metadata) == ("T", {"units": "K"})
    array.attrs["missing_value"] = -9
    with pytest.raises(wb.WorkbenchError, match=rf"an array of {library} .*\(missing_value\) must be opened by wb\.open"):
        wb.Field(array)
    assert wb.distributed.ChunkedField(array).shape == (3,)   # as stored


def test_dates_of_other_calendars_come_back():
    days = xarray.date_range("2000-02-27", periods=3, calendar="noleap", use_cftime=True)
    array = xarray.DataArray(np.zeros(3), coords={"time": days}, dims="time")
    xarray.testing.assert_identical(wb.Field(array).to_xarray(), array)


def test_masked_values_become_nan():
    assert np.isnan(wb.Field(np.ma.masked_equal([1, 9], 9)).to_xarray().values).tolist() == [False, True]
    with pytest.raises(wb.WorkbenchError, match="masked integers beyond 2"):
        wb.Field(np.ma.masked_equal([2**60, 9], 9)).to_xarray()


def test_searches_theory_and_verification_take_such_an_array():
    array = temperature()
    assert wb.rate_distortion(array).rate(1.0) > 0
    assert require_field(array).metadata["units"] == "K"
    found = wb.find_bound(array, wb.PSNR(50), codec="pcodec", most_runs=3)
    wb.compress(array, found.bound, codec="pcodec").verify(array)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda array: array.assign_coords(z=("lat", [{}] * 90)), "the coordinate 'z' of type object cannot be kept"),
        (lambda array: array.assign_coords(z=("lat", np.zeros(90, "c8"))), "the coordinate 'z' of type complex64 cannot"),
        (lambda array: array.stack(point=("time", "lat")), "'point' of type object cannot be kept: .* reset_index"),
        (lambda array: array.rename(5), "must be text; got 5"),
        (lambda array: array.assign_attrs(call=print), "attributes of the array must be text, numbers"),
        (lambda array: array.to_dataset(), "a Dataset holds several arrays"),
    ],
)
def test_what_cannot_be_kept_is_refused(change, message):
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.Field(change(temperature()))


def test_a_part_of_an_array_does_not_take_the_coordinates_of_the_whole():
    archive = wb.compress(temperature(), wb.Absolute(0.1), codec="pcodec")
    with pytest.raises(wb.WorkbenchError, match="the coordinate time has 3 values along time, and the field 2"):
        archive.read([(0, 2), (0, 90)]).to_xarray()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"dimensions": ["x"], "shape": [2], "attributes": {}, "dtype": "object", "deflated": "eJwDAAAAAAE="},
        {"dimensions": ["x"], "shape": [2], "attributes": {}, "dtype": "U99999999", "values": ["a", "b"]},
        {"dimensions": ["x"], "shape": [2], "attributes": {}, "dtype": "f8", "deflated": "AAAA"},
    ],
)
def test_coordinates_that_cannot_be_read_are_refused(wrong):
    field = wb.Field([1.0, 2.0], metadata={"dimensions": ["x"], "coordinates": {"x": wrong}})
    with pytest.raises(wb.WorkbenchError, match="the coordinate x in the metadata cannot be read"):
        field.to_xarray()


class TestQuantities:
    """What quantities of other libraries keep."""

    def test_of_astropy(self):
        units = pytest.importorskip("astropy.units")
        field = wb.Field(np.zeros((2, 2)) * units.km / units.s)
        assert field.metadata["units"] == "km / s"
        assert wb.Absolute(5 * units.m / units.s).for_data(field) == wb.Absolute(0.005)

    def test_of_pint(self):
        pint = pytest.importorskip("pint")
        quantity = pint.UnitRegistry().Quantity
        field = wb.Field(quantity(np.zeros((2, 2)), "kilometer / second ** 2"))
        assert field.metadata["units"] == "km/s**2"
        assert wb.Absolute(quantity(5.0, "meter / second ** 2")).for_data(field) == wb.Absolute(0.005)


class Quantity(np.ndarray):
    """A stand-in for the quantities of unyt."""

    __module__ = "unyt.array"
    units = "kpc"
    value = property(lambda self: self.view(np.ndarray))


def quantity(values, unit):
    found = np.asarray(values).view(Quantity)
    found.units = unit
    return found


@pytest.mark.parametrize("make", [wb.Particles, wb.Particles.wrapped])
def test_particles_keep_units_and_the_box_is_in_that_of_positions(make):
    points = np.random.default_rng(0).random((20, 3))
    particles = make(quantity(points, "Mpc"), box=quantity(2000.0, "kpc"), velocities=quantity(points, "km/s"))
    assert particles.box == (2.0, 2.0, 2.0)
    assert particles.metadata["units"] == {"positions": "Mpc", "velocities": "km/s"}
    assert wb.Absolute("10 kpc").for_data(wb.compress(particles, wb.Absolute(0.1)).decompress()) == wb.Absolute(0.01)


def test_metadata_must_not_contradict_the_unit_of_an_array():
    assert wb.Field(quantity([1.0], "K"), metadata={"units": "K", "model": "A"}).metadata["model"] == "A"
    with pytest.raises(wb.WorkbenchError, match="the array is in K, and metadata say 'degC'"):
        wb.Field(quantity([1.0], "K"), metadata={"units": "degC"})


def test_a_box_with_a_unit_needs_positions_with_one():
    with pytest.raises(wb.WorkbenchError, match="a box in kpc needs positions with a unit"):
        wb.Particles(np.zeros((2, 3)), box=quantity(2000.0, "kpc"))
    with pytest.raises(wb.WorkbenchError, match=r"positions of particles must be a bare array.*\.values"):
        wb.Particles(xarray.DataArray(np.zeros((2, 3))))


@pytest.mark.parametrize("kind", ["zone", "categories"])
def test_coordinates_that_numpy_has_no_type_for_are_refused(kind):
    """Their zone and their categories were lost in silence."""
    pandas = pytest.importorskip("pandas")
    made = {
        "zone": lambda: pandas.date_range("2000", periods=2, tz="Europe/Berlin"),
        "categories": lambda: pandas.Categorical(["a", "b"]),
    }[kind]()
    array = xarray.DataArray(np.zeros(2), dims="time", coords={"time": made})
    with pytest.raises(wb.WorkbenchError, match=r"the coordinate 'time' of type .* cannot be kept"):
        wb.compress(array, wb.Absolute(0))
