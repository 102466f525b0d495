"""Archives as datasets of xarray: lazily, by any index, with Dask, in groups; and the accessor."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import workbench as wb
import workbench.xarray
from archive.collection.samples import RULES, sample, unbounded
from workbench.archive.reading import StoredArray
from workbench.xarray.engine import LossbenchEngine

INDEXES = [
    (slice(None, None, -1), slice(2, 9, 3), 5), (1, [3, 4, 1], slice(0, 0)), (slice(3, 1, -1), -1, [0, 0, 39]),
    (slice(None), slice(None), slice(None)), (3, 29, 39), (slice(1, 2), np.array([True, False] * 15), slice(None, 39, 2)),
]


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    archive = wb.compress(sample(), RULES, chunk_values=400)
    return archive.save(tmp_path_factory.mktemp("collection") / "x.zip"), archive.to_xarray()


def test_an_archive_opens_as_the_dataset(archived):
    path, wanted = archived
    with xr.open_dataset(path, engine=LossbenchEngine) as opened:
        xr.testing.assert_identical(opened.load(), wanted)
        for name in wanted.variables:
            encoding = {key: value for key, value in opened[name].encoding.items() if key != "preferred_chunks"}
            assert encoding == wanted[name].encoding
    with xr.open_dataset(path, engine=LossbenchEngine, drop_variables=["T"]) as opened:
        assert "T" not in opened
    assert LossbenchEngine().guess_can_open(path)
    assert not LossbenchEngine().guess_can_open("no.zip")


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_any_index_gives_the_values_that_are_there(archived, index):
    path, wanted = archived
    with xr.open_dataset(path, engine=LossbenchEngine) as opened:
        xr.testing.assert_identical(opened["T"][index].load(), wanted["T"][index])
        xr.testing.assert_identical(opened["z"][index[1:]].load(), wanted["z"][index[1:]])
        xr.testing.assert_identical(opened["many"][0, 1, :, index[1]].load(), wanted["many"][0, 1, :, index[1]])


def test_only_chunks_of_the_region_are_decoded(archived, monkeypatch):
    path, _ = archived
    decoded, chunk = [], StoredArray.chunk
    monkeypatch.setattr(StoredArray, "chunk", lambda self, index: (decoded.append(index), chunk(self, index))[1])
    with xr.open_dataset(path, engine=LossbenchEngine) as opened:
        decoded.clear()
        opened["T"][0, 0, :3].load()
        assert [index for index in decoded if len(index) == 3] == [(0, 0, 0)]


def test_with_dask_blocks_are_chunks(archived):
    path, wanted = archived
    with xr.open_dataset(path, engine=LossbenchEngine, chunks={}) as opened:
        assert max(map(max, opened["T"].chunks)) < 40
        xr.testing.assert_identical(opened.compute(scheduler="single-threaded"), wanted)


def test_one_field_opens_with_its_coordinates(tmp_path):
    array = sample()["T"]
    path = wb.compress(array, wb.Absolute(0.01)).save(tmp_path / "one.zip")
    with xr.open_dataset(path, engine=LossbenchEngine) as opened:
        assert abs(opened["T"] - array).max() <= 0.01
        xr.testing.assert_identical(opened["T"].coords.to_dataset(), array.coords.to_dataset())
    with pytest.raises(wb.WorkbenchError, match="holds one array and no groups"):
        xr.open_dataset(path, engine=LossbenchEngine, group="a")
    snapshot = wb.compress(wb.synthetic.cosmic_web(8), wb.Absolute(0.1)).save(tmp_path / "particles.zip")
    with pytest.raises(wb.WorkbenchError, match="holds particles"):
        xr.open_dataset(snapshot, engine=LossbenchEngine)


def test_masked_values_are_nan(tmp_path):
    data = {"f": np.ma.masked_less(np.arange(6.0), 2), "i": np.ma.masked_less(np.arange(6), 2)}
    path = wb.compress(data, wb.Exact()).save(tmp_path / "x.zip")
    with xr.open_dataset(path, engine=LossbenchEngine) as opened:
        for name in data:
            np.testing.assert_array_equal(opened[name].values, [np.nan, np.nan, 2, 3, 4, 5])


def test_groups_open_one_by_one_and_as_a_tree(tmp_path):
    tree = xr.DataTree.from_dict({"/": unbounded(sample()), "/a/b": xr.Dataset({"q": ("x", [1.0, 2.0])}, attrs={"w": 1})})
    path = wb.compress(tree, wb.Exact()).save(tmp_path / "x.zarr")
    xr.testing.assert_identical(xr.open_datatree(path, engine=LossbenchEngine).load(), tree)
    opened = xr.open_dataset(path, engine=LossbenchEngine, group="a/b")
    xr.testing.assert_identical(opened.load(), tree["a/b"].to_dataset(inherit=False))
    with pytest.raises(wb.WorkbenchError, match="expected the name of a group; got 'a/c': did you mean 'a/b'"):
        xr.open_dataset(path, engine=LossbenchEngine, group="a/c")


def test_plain_zarr_shows_the_same_dataset(tmp_path):
    """Names, dimensions, coordinates and dates are those of the dataset, for all that reads Zarr with our codec."""
    wanted = sample()
    path = wb.compress(wanted, RULES).save(tmp_path / "x.zarr")
    found = xr.open_zarr(path).load()
    for name in ("flag", "lat", "lon", "ok", "T"):
        assert found[name].dims == wanted[name].dims
        np.testing.assert_allclose(found[name].astype("f8"), wanted[name].astype("f8"), atol=0.01)
    assert (found["time"] == wanted["time"]).all()
    assert found.attrs["title"] == "a sample"


def test_sources_that_stay_where_they_are(tmp_path):
    dataset = unbounded(sample()).drop_vars(["nothing", "code"])
    dataset.to_netcdf(tmp_path / "x.nc")
    from_file = wb.compress(tmp_path / "x.nc", {"*": wb.Relative(1e-3)}, chunk_values=400)
    with xr.open_dataset(tmp_path / "x.nc", decode_timedelta=False) as lazy:
        from_lazy = wb.compress(lazy, wb.Relative(1e-3), chunk_values=400)
        on_dask = wb.compress(lazy.chunk({"lat": 7}), wb.Relative(1e-3), chunk_values=400)
        loaded = wb.compress(lazy.load(), wb.Relative(1e-3), chunk_values=400)
    for archive in (from_file, from_lazy, on_dask):
        assert list(archive) == list(loaded)
        for name in loaded:
            np.testing.assert_array_equal(archive[name].decompress().values, loaded[name].decompress().values)


def test_the_accessor_has_the_calls_of_the_workbench():
    dataset = sample()
    archive = dataset.wb.compress(RULES)
    report = dataset.wb.compare(archive.to_xarray())
    assert set(report) == {"T"}
    assert report["T"].max_error <= 0.01
    found = dataset.wb.find_bound(wb.Ratio(4), names="T")
    assert found["T"].report.passed is not False
    assert set(dataset.wb.predict("prequantised", [wb.Relative(1e-3)], names=["T"])) == {"T"}
    assert dataset["T"].wb.compress(wb.Absolute(0.01)).verify(dataset["T"]).passed
    with pytest.raises(wb.WorkbenchError, match="expected the name of a variable; got 'S'"):
        dataset.wb.find_bound(wb.Ratio(4), names="S")


def test_tables_come_back_as_dataframes():
    frame = pd.DataFrame({
        "mass": [1.5, 2.5, np.nan], "name": ["a", None, "c"], "count": pd.array([1, None, 3], "Int64"),
        "when": pd.to_datetime(["2020-01-01", None, "2021-01-01"]), "good": [True, False, True],
    })
    found = wb.compress(frame, wb.Exact()).decompress().to_dataframe()
    pd.testing.assert_frame_equal(found, frame)
    pyarrow = pytest.importorskip("pyarrow")
    found = wb.compress({"halos": pyarrow.Table.from_pandas(frame)}, wb.Exact()).decompress()["halos"].to_dataframe()
    pd.testing.assert_frame_equal(found, frame)
    with pytest.raises(wb.WorkbenchError, match="column 'k' of type category cannot be kept"):
        wb.compress(pd.DataFrame({"k": pd.Categorical(["a"])}), wb.Exact())


def test_trees_take_the_options_of_datasets(tmp_path):
    given = xr.DataTree.from_dict({
        "/": xr.Dataset({"S": ("x", [1.0]), "T": ("x", [1.0])}), "/a": xr.Dataset({"ST": ("x", [2.0])}),
        "/a/b": xr.Dataset({"T": ("x", [3.0])}), "/ab": xr.Dataset({"T": ("x", [4.0])}),
    })
    path = wb.compress(given, wb.Exact()).save(tmp_path / "x.zip")
    tree = xr.open_datatree(path, engine=LossbenchEngine, drop_variables="ST")
    assert list(tree.dataset) == ["S", "T"]
    assert list(tree["a"].dataset) == []
    tree = xr.open_datatree(path, engine=LossbenchEngine, group="/a", codecs=["pcodec"])
    assert [node.path for node in tree.subtree] == ["/", "/b"]
    assert list(xr.open_groups(path, engine=LossbenchEngine, group="a/b")) == ["/"]
    for wrong in ({"group": "c"}, {"group": 3}, {"drop_variables": 3}, {"decode_times": False}, {"other": 1}):
        with pytest.raises(wb.WorkbenchError):
            xr.open_groups(path, engine=LossbenchEngine, **wrong)
    with pytest.raises(wb.WorkbenchError, match="group must be text"):
        xr.open_dataset(path, engine=LossbenchEngine, group=3)


@pytest.mark.parametrize("wrong", [3, None, xr.DataArray([1.0]), {"T": [1.0]}], ids=["number", "none", "array", "mapping"])
def test_a_dataset_is_compared_with_a_dataset(wrong):
    dataset = xr.Dataset({"T": ("x", [1.0, 2.0])})
    assert dataset.wb.compare(dataset)["T"].max_error == 0
    with pytest.raises(wb.WorkbenchError, match="decoded must be a Dataset"):
        dataset.wb.compare(wrong)
    archive = wb.compress(dataset, wb.Exact())
    for both in ((dataset, dataset), (dataset["T"], dataset), ({"T": [1.0]}, [1.0]), (archive, archive)):
        with pytest.raises(wb.WorkbenchError, match=r"holds several arrays: compare datasets of xarray by ds\.wb\.compare"):
            wb.compare(*both)
