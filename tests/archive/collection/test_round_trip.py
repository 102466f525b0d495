"""What goes into a collection comes out of it: every type, shape, attribute and name."""

import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from archive.collection.samples import BOUNDED, RULES, arrays, sample, unbounded
from workbench.archive.collection.dataset import Dataset
from workbench.data.attributes import from_plain, to_plain

FILES = ("cesm/cam-fv.T.3months.nc", "cesm/ihesp14.TS.12mon.nc", "md_chemfiles/water.nc", "md_chemfiles/scaled_traj.nc")


def assert_same(found, wanted):
    """The same array, bit for bit."""
    found = found.values if hasattr(found, "values") else found
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert found.tolist() == wanted.tolist() if wanted.dtype == object else found.tobytes() == wanted.tobytes()


@given(st.dictionaries(st.text(min_size=1, max_size=8), arrays(), min_size=1, max_size=4))
def test_any_arrays_under_any_names(members):
    try:
        dataset = Dataset(members)
    except wb.WorkbenchError:
        assert any(not part.strip() or not name.isprintable() for name in members for part in name.split("/")) or any(
            other.startswith(f"{name}/") for name in members for other in members
        )
        return
    archive = wb.compress(dataset, wb.Exact())
    assert list(archive) == list(members)
    assert archive.verify(dataset).passed
    for name, wanted in members.items():
        assert_same(archive[name].decompress(), wanted)


def test_a_dataset_comes_back_as_it_was_but_for_bounded_values(tmp_path):
    dataset = sample()
    for path in (None, tmp_path / "x.zip", tmp_path / "x.zarr"):
        archive = wb.compress(dataset, RULES, out=path)
        again = archive if path is None else wb.open(path)
        assert isinstance(again, wb.Collection)
        assert again.verify(dataset).passed
        assert again.damage() == []
        found = again.to_xarray()
        xr.testing.assert_identical(unbounded(found), unbounded(dataset))
        for name, bound in BOUNDED.items():
            assert found[name].dtype == dataset[name].dtype
            assert abs(found[name].values.astype("c16") - dataset[name].values.astype("c16")).max() <= bound
            assert found[name].attrs.keys() == dataset[name].attrs.keys()
        assert found["flag"].encoding == dataset["flag"].encoding
        assert found.encoding == dataset.encoding
        assert found["T"].attrs["valid_range"].dtype == np.int16


def test_groups_come_back_with_their_attributes(tmp_path):
    tree = xr.DataTree.from_dict({
        "/": sample(), "/sea ice/deep": xr.Dataset({"q": ("x", [1.0, 2.0])}, attrs={"w": np.int8(1)}),
        "/only attributes": xr.Dataset(attrs={"v": 2}),
    })
    archive = wb.compress(tree, wb.Exact(), out=tmp_path / "x.zarr")
    assert "sea ice/deep/q" in archive
    xr.testing.assert_identical(wb.open(tmp_path / "x.zarr").to_xarray(), tree)
    inner = tree["sea ice/deep"].to_dataset(inherit=False)
    xr.testing.assert_identical(archive.decompress()["sea ice/deep"].to_xarray(), inner)


@pytest.mark.long_with("cesm/cam-fv.T.3months.nc")
@pytest.mark.parametrize("file", FILES)
def test_real_files(shared_data, tmp_path, file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")   # of xarray, about times of these files
        with xr.open_dataset(shared_data / file) as dataset:
            archive = wb.compress(dataset, wb.Exact(), out=tmp_path / "x.zip")
            found, wanted = archive.to_xarray(), dataset.load()
    xr.testing.assert_identical(found, wanted)
    for name in wanted.variables:
        stated = {key: value for key, value in wanted[name].encoding.items() if value is not None}
        for key in ("source", "original_shape", "preferred_chunks"):
            stated.pop(key, None)
        assert found[name].encoding == stated


@given(arrays().filter(lambda array: array.dtype.kind in "biuf" and array.ndim < 2))
def test_attributes_keep_their_types(value):
    value = value[()] if value.ndim == 0 else value
    plain, types = to_plain("T", {"x": value, "text": "t", "whole": 3, "list": [1, 2.5, float("inf")]})
    found = from_plain(plain, types)
    assert np.asarray(found["x"]).dtype == value.dtype
    np.testing.assert_array_equal(found["x"], value)
    assert (found["text"], found["whole"], found["list"]) == ("t", 3, [1, 2.5, float("inf")])


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["f2", "c8", "c16"]), st.sampled_from([1e-4, 0.01, 1.0, 300.0]))
def test_bounds_of_halves_and_complex_numbers_hold(seed, kind, bound):
    random = np.random.default_rng(seed)
    values = (random.normal(size=(20, 20, 2)) * 10.0 ** random.integers(-3, 4)).astype("f8")
    array = (values[..., 0] + 1j * values[..., 1]).astype(kind) if kind[0] == "c" else values[..., 0].astype(kind)
    for rule in (wb.Absolute(bound), wb.Relative(min(bound, 1) / 100)):
        archive = wb.compress({"x": array}, rule)
        found = archive["x"].decompress().values
        parts = np.stack([array.real, array.imag]) if kind[0] == "c" else array.astype("f8")
        most = rule.eb * (1 if isinstance(rule, wb.Absolute) else float(parts.max() - parts.min()))
        assert found.dtype == array.dtype
        assert abs(found.astype("c16") - array.astype("c16")).max() <= most
        assert archive.verify({"x": array}).passed


def test_numbers_of_16_bits_stay_finite_at_the_end_of_their_range():
    values = np.full(2000, 65504, "f2")
    values[::2], values[::3] = 65472, 65440
    archive = wb.compress({"x": values}, wb.Absolute(64.0))
    assert np.isfinite(archive["x"].decompress().values).all()
    assert archive.verify({"x": values}).passed


@pytest.mark.parametrize("bound", [wb.Absolute(0.1), wb.Relative(0.01), wb.PointwiseRelative(0.01)])
def test_the_certificate_of_complex_numbers_states_the_bound_and_the_error_that_a_user_sees(bound):
    random = np.random.default_rng(0)
    values = random.normal(size=4000) + 1j * random.normal(size=4000)
    archive = wb.compress({"x": values}, bound)
    promise = archive["x"].certificate["values"]
    assert promise.bound == bound
    assert promise.figures["largest_error"] == abs(archive["x"].decompress().values - values).max()
    assert archive.verify({"x": values}).passed
    other = values.copy()
    other[7] += 5
    with pytest.raises(wb.GuaranteeBroken):
        archive.verify({"x": other})


@pytest.mark.parametrize("masked", [
    np.ma.masked_array([1j, 2], [1, 0]), np.ma.masked_array(3.0, True), np.ma.masked_array(["a", "b"], [1, 0]),
    np.ma.masked_array([True, False], [1, 0]), np.ma.masked_array(np.ones((1, 1, 2, 1, 1)), np.ones((1, 1, 2, 1, 1))),
], ids=lambda array: str(array.dtype))
def test_masks_that_cannot_be_kept_are_refused(masked):
    with pytest.raises(wb.WorkbenchError, match=r"'x': an array of .* must have no masked entries"):
        wb.compress({"x": masked}, wb.Exact())


@pytest.mark.parametrize("empty", [np.zeros(0, "U3"), np.zeros((3, 0), "f2"), np.zeros((0, 2), "c8"), np.zeros(0, "S8")])
def test_arrays_without_values_come_back(empty):
    archive = wb.compress({"x": empty}, wb.Absolute(0.1) if empty.dtype.kind in "fc" else wb.Exact())
    assert_same(archive["x"].decompress(), empty)
    assert archive.verify({"x": empty}).passed


def test_what_describes_other_variables_is_kept_exactly():
    """Bounds of cells, terms of hybrid coordinates, weights, places and dates of calendars that NumPy lacks."""
    times = xr.date_range("0001-01-01", periods=2, calendar="noleap", use_cftime=True)
    bounds = np.stack([times, times.shift(31, "D")], 1)
    dataset = xr.Dataset(
        {
            "T": (("time", "lev", "cell"), np.random.default_rng(0).normal(size=(2, 3, 4)), {"coordinates": "lat"}),
            "PS": (("time", "cell"), np.ones((2, 4)) * np.arange(4)), "lat": ("cell", [0.1, 0.2, 0.3, 0.4]),
            "lon": ("cell", [0.1, 0.2, 0.3, 0.4], {"units": "degrees_east"}), "hyam": ("lev", [0.1, 0.2, 0.3]),
            "time_bnds": (("time", "two"), bounds), "lev_bnds": (("lev", "two"), np.arange(6.0).reshape(3, 2) / 7),
        },
        coords={
            "time": ("time", times, {"bounds": "time_bnds"}),
            "lev": ("lev", [1.0, 2.0, 3.0], {"bounds": "lev_bnds", "formula_terms": "a: hyam ps: PS"}),
        },
    )
    dataset["time_bnds"].encoding = {"dtype": np.dtype("f8"), "units": "days since 0001-01-01", "calendar": "noleap"}
    archive = wb.compress(dataset, {"*": wb.Relative(0.3)})
    exact = ["lat", "lon", "hyam", "time_bnds", "lev_bnds", "time", "lev"]
    assert [name for name in archive if archive[name].certificate["values"].bound != wb.Exact()] == ["T", "PS"]
    xr.testing.assert_identical(archive.to_xarray()[exact], dataset[exact])


def test_a_region_brings_the_coordinates_of_what_it_holds():
    dataset = sample().drop_vars("nothing")
    region = {"time": (1, 3), "lat": slice(4, 9)}
    found = wb.compress(dataset, wb.Exact()).read(region).to_xarray()
    xr.testing.assert_identical(found, dataset.isel(time=slice(1, 3), lat=slice(4, 9)))


def test_packing_that_would_round_bounded_values_again_is_left_out(tmp_path):
    dataset = xr.Dataset({"p": ("x", np.linspace(0, 3, 99)), "q": ("x", np.arange(99.0))})
    packing = {"dtype": np.dtype("i2"), "scale_factor": 0.1, "_FillValue": np.int16(-9)}
    dataset["p"].encoding = dataset["q"].encoding = packing | {"zlib": True}
    archive = wb.compress(dataset, {"p": wb.Absolute(0.06), "q": wb.Exact()})
    assert archive.to_xarray()["p"].encoding == {"zlib": True}
    rest, _ = archive.salvage()
    for part in (rest, rest.with_members({"p": rest["p"]}), archive.read({"x": (0, 9)})):
        assert part.to_xarray()["p"].encoding == {"zlib": True}
    assert archive.to_xarray()["q"].encoding == packing | {"zlib": True}
    archive.to_xarray().to_netcdf(tmp_path / "x.nc")
    with xr.open_dataset(tmp_path / "x.nc") as written:
        assert abs(written["p"] - dataset["p"]).max() <= 0.06


def test_particles_and_tables_are_members_like_others(tmp_path):
    snapshot = wb.synthetic.cosmic_web(8, seed=2)
    halos = np.array([(1, 2.5), (2, 3.5)], [("id", "i8"), ("mass", "f4")])
    data = {"gas": snapshot, "halos": halos, "T": np.zeros((3, 4))}
    rules = {"gas": {"bound": wb.Absolute(0.01), "order": "free", "keep": wb.KeepClusters()}, "*": wb.Relative(1e-3)}
    archive = wb.compress(data, rules, out=tmp_path / "x.zip")
    assert archive.verify(data).passed
    assert archive["gas"].certificate["positions"].keep
    assert archive.decompress()["halos"].to_dataframe()["id"].tolist() == [1, 2]
    assert len(archive["gas"].read([(0, 4)] * 3)) > 0
    alone = wb.open(archive["gas"].save(tmp_path / "gas.zip"))
    assert alone.nbytes == wb.compress(snapshot, **rules["gas"]).nbytes


def test_an_empty_variable_does_not_hinder_regions():
    dataset = sample()
    archive = wb.compress(dataset, RULES)
    found = archive.read({"lat": (3, 8)})
    assert found["nothing"].shape == (0, 5)
    assert found["T"].shape == (4, 5, 40)
    np.testing.assert_array_equal(found["flag"].values, dataset["flag"].values[3:8])
    with pytest.raises(wb.WorkbenchError, match="must select points"):
        archive.read({"none": (0, 1)})


@pytest.mark.parametrize("dtype", ["c8", "f2", "?", "f4", "U3", "M8[s]"])
def test_lazy_arrays_of_any_type_are_members(dtype, tmp_path):
    dask, h5py, zarr = (pytest.importorskip(name) for name in ("dask.array", "h5py", "zarr"))
    values = np.arange(6).reshape(2, 3).astype(dtype)
    members = {"dask": dask.from_array(values, chunks=(1, 3)), "labelled": xr.DataArray(values, dims=("a", "b")).chunk()}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if dtype[0] not in "UM":
            members["h5py"] = file.create_dataset("h5py", data=values)
            members["zarr"] = zarr.array(values)
        archive = wb.compress(members, wb.Exact())
    for name in members:
        found = archive[name].decompress().values
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)


def test_files_of_several_arrays_are_datasets(tmp_path):
    dataset = xr.Dataset({"T": (("x", "y"), np.ones((3, 4))), "P": (("x", "y"), np.zeros((3, 4))), "n": ("x", [1, 2, 3])})
    dataset.to_netcdf(tmp_path / "x.nc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")   # of Zarr, about consolidated metadata
        dataset.to_zarr(tmp_path / "x.zarr")
    for path in (tmp_path / "x.nc", str(tmp_path / "x.zarr")):
        archive = wb.compress(path, wb.Absolute(0.1))
        assert sorted(archive) == ["P", "T", "n"]
        assert archive.verify(path).passed
        assert archive.verify(archive).passed
        with pytest.raises(wb.WorkbenchError, match="metadata= is for one array"):
            wb.compress(path, wb.Absolute(0.1), metadata={})
    dataset[["n"]].to_netcdf(tmp_path / "one.nc")
    with pytest.raises(wb.WorkbenchError, match="must have the members of the archive"):
        archive.verify(tmp_path / "one.nc")
