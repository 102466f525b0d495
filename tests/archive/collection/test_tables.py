"""Tables of pandas and pyarrow: their index, and types that NumPy lacks."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import workbench as wb

FRAME = pd.DataFrame({"x": [1.5, 2.5, 3.5], "name": ["a", None, "c"]})
INDEXES = {
    "dates": pd.DatetimeIndex(["2020-01-01", "2020-01-05", None], name="when"),
    "text": pd.Index(["u", "v", "w"], name="site"),
    "numbers": pd.Index([0.5, 1.0, 2.0]), "range": pd.RangeIndex(5, 8), "named range": pd.RangeIndex(3, name="id"),
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["k", None]),
}


def around(frame):
    return wb.compress(frame, wb.Absolute(0.1)).decompress()


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_is_kept(index):
    frame = FRAME.set_index(index)
    archive = wb.compress({"table": frame}, wb.Absolute(0.1))
    found = archive.decompress()["table"].to_dataframe()
    pd.testing.assert_index_equal(found.index, index, exact="equiv", check_exact=True)
    assert list(found.columns) == ["x", "name"]
    assert archive.verify({"table": frame}).passed


def test_an_index_that_only_counts_is_none():
    assert list(wb.compress(FRAME, wb.Exact())) == ["x", "name"]
    pd.testing.assert_frame_equal(around(FRAME[:2]).to_dataframe()[["name"]], FRAME[:2][["name"]])


def test_rows_are_one_dimension():
    found = around(FRAME.set_index(INDEXES["text"])).to_xarray()
    assert dict(found.sizes) == {"row": 3}
    assert list(found.coords) == ["site"]
    archive = wb.compress(FRAME, wb.Exact())
    pd.testing.assert_frame_equal(archive.read({"row": (0, 2)}).to_dataframe(), FRAME[:2])


@pytest.mark.parametrize("index", [
    pd.CategoricalIndex(["a", "b", "c"], name="k"), pd.date_range("2020", periods=3, tz="UTC", name="k"),
    pd.period_range("2020", periods=3, name="k"), pd.Index([1, 2, 3], name="x"), pd.Index([1, 2, 3], name=7),
])
def test_an_index_that_cannot_be_kept_is_refused_by_name(index):
    with pytest.raises(wb.WorkbenchError, match=f"the index {index.name!r}.*reset_index"):
        wb.compress(FRAME.set_index(index), wb.Exact())


def test_truth_values_may_be_missing():
    frame = pd.DataFrame({"good": pd.array([True, None, False], "boolean"), "n": pd.array([1, None, 3], "Int64")})
    pd.testing.assert_frame_equal(around(frame).to_dataframe(), frame)
    pyarrow = pytest.importorskip("pyarrow")
    pd.testing.assert_frame_equal(around(pyarrow.Table.from_pandas(frame)).to_dataframe(), frame)
    found = around(frame.to_xarray()).to_xarray()
    np.testing.assert_array_equal(found["good"], [1, np.nan, 0])
    np.testing.assert_array_equal(found["n"], [1, np.nan, 3])


@pytest.mark.parametrize("column", [
    pd.Categorical(["a", "b"]), pd.period_range("2020", periods=2), [[1], [2]], [True, None],
    pd.interval_range(0, 2),
])
def test_other_types_are_refused_by_name(column):
    frame = pd.DataFrame({"k": column})
    for given in (frame, frame.to_xarray()):
        with pytest.raises(wb.WorkbenchError, match="'k'"):
            wb.compress(given, wb.Exact())


def test_dates_with_a_zone_are_refused():
    frame = pd.DataFrame({"k": pd.date_range("2020", periods=2, tz="UTC")})
    for given in (frame, frame.to_xarray(), frame.set_index("k").assign(x=1.0).to_xarray()):
        with pytest.raises(wb.WorkbenchError, match="'k'"):
            wb.compress(given, wb.Exact())


def test_types_of_arrow_without_a_place_are_refused_by_name():
    pyarrow = pytest.importorskip("pyarrow")
    nested = pyarrow.array([[1], [2, 3]])
    for column in (nested, pyarrow.array(["a", "b"]).dictionary_encode(), pyarrow.array([{"a": 1}, {"a": 2}])):
        with pytest.raises(wb.WorkbenchError, match="'k'"):
            wb.compress(pyarrow.table({"k": column}), wb.Exact())
        with pytest.raises(wb.WorkbenchError, match="'k'"):
            wb.compress(pd.DataFrame({"k": pd.Series(column, dtype=pd.ArrowDtype(column.type))}), wb.Exact())


def test_missing_text_is_none():
    frame = pd.DataFrame({"k": np.array(["a", np.nan], object), "s": pd.array(["b", None], "string")})
    for given in (frame, frame.to_xarray(), xr.Dataset({"k": ("x", np.array(["a", np.nan], object))})):
        assert around(given)["k"].values.tolist() == ["a", None]
    assert around(frame.to_xarray())["s"].values.tolist() == ["b", None]


def labelled(values, dtype):
    return xr.DataArray(pd.array(values, dtype), dims="x")


@pytest.mark.parametrize("make", [pd.Series, pd.array, labelled])
def test_arrays_of_pandas_are_members(make):
    columns = {"n": ([1, None], "Int64"), "s": (["a", None], "string"), "b": ([True, None], "boolean")}
    members = {name: make(values, dtype=dtype) for name, (values, dtype) in columns.items()}
    archive = wb.compress(members, wb.Exact())
    found = archive.to_xarray()
    np.testing.assert_array_equal(found["n"], [1, np.nan])
    np.testing.assert_array_equal(found["b"], [1, np.nan])
    assert archive["s"].decompress().values.tolist() == ["a", None]
    assert archive.verify(members).passed
    with pytest.raises(wb.WorkbenchError, match="'k': an array of type category cannot be kept"):
        wb.compress({"k": make(["a", "b"], dtype="category")}, wb.Exact())
