"""Attributes come back as they were: special numbers in lists and mappings, and the shapes of empty arrays."""

import json

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from workbench.data.attributes import from_plain, to_plain
from workbench.xarray.engine import LossbenchEngine

NAN = float("nan")
GIVEN = {
    "nested": {"limits": {"low": -np.inf, "text": "nan"}, "steps": [1.0, [NAN, "inf"]]},
    "mixed": ["nan", NAN, "inf", -np.inf],
    "one": NAN, "text": "nan", "half": np.float16(0.5), "row": np.zeros(0, "i2"),
    "empty": np.zeros((0, 2), "i2"), "empty too": np.zeros((3, 0), "f4"), "special": np.array([[NAN, np.inf]], "f4"),
}


def same(found, wanted):
    return list(found) == list(wanted) and all(
        repr(found[name]) == repr(entry) and np.shape(found[name]) == np.shape(entry)
        if isinstance(entry, np.ndarray) else repr(found[name]) == repr(entry) for name, entry in wanted.items()
    )


def test_attributes_come_back_as_they_were():
    plain, types = to_plain("T", GIVEN)
    text = json.dumps([plain, types], allow_nan=False)
    assert same(from_plain(*json.loads(text)), GIVEN)


def test_archives_and_the_engine_of_xarray_read_them(tmp_path):
    dataset = xr.Dataset({"T": ("x", [1.0, 2.0], GIVEN)}, attrs=GIVEN)
    path = wb.compress(dataset, wb.Exact()).save(tmp_path / "x.zip")
    for found in (wb.open(path).to_xarray(), xr.open_dataset(path, engine=LossbenchEngine)):
        assert same(found["T"].attrs, GIVEN)
        assert same(found.attrs, GIVEN)


def test_lists_that_are_marked_as_a_whole_are_read():
    assert same(from_plain({"a": [1.0, "nan"], "b": "inf"}, {"a": "float", "b": "float"}), {"a": [1.0, NAN], "b": np.inf})


@pytest.mark.parametrize("stated", [
    {"numbers": [[[0]]]}, {"numbers": [[1]]}, {"numbers": [[]]}, {"numbers": 3, "dtype": "<f4", "shape": [2, 2]},
    {"dtype": "<f4", "shape": ["a"]}, {"dtype": "O", "shape": [0]}, "<f99",
])
def test_types_that_do_not_fit_are_refused_in_a_sentence(stated):
    with pytest.raises(wb.WorkbenchError, match="the attribute 'a' must be of type"):
        from_plain({"a": ["nan", "b"]}, {"a": stated})
