"""Bounds of slices and shapes of chunks in datasets: by the names of dimensions, for all members or in rules."""

import numpy as np
import pytest

import workbench as wb
from archive.samples import field as smooth
from archive.slices import assert_slices, layers, limit_of
from workbench.errors import GuaranteeBroken, WorkbenchError


def dataset():
    def on(values, *dimensions):
        return wb.Field(values, metadata={"dimensions": list(dimensions)})

    return {
        "T": on(layers((5, 12, 9)), "time", "lat", "lon"), "P": on(layers((12, 5), 1, "f8"), "lat", "time"),
        "height": on(smooth((12, 9)), "lat", "lon"), "lat": on(np.arange(12), "lat"),
        "when": wb.Variable(np.arange(5).astype("M8[D]"), metadata={"dimensions": ["time"]}),
        "names": wb.Variable(["a", "bb", None, "d", "e"], metadata={"dimensions": ["time"]}),
    }


RULES = {"T": wb.PerSlice(wb.Relative(1e-3), "time"), "P": wb.PerSlice(wb.Relative(1e-2), "time"), "*": wb.Absolute(0.5)}


def test_rules_name_the_dimension_whose_slices_are_bounded():
    data = dataset()
    archive = wb.compress(data, RULES)
    assert_slices(data["T"], archive["T"], [wb.Relative(1e-3)] * 5, 0)
    assert_slices(data["P"], archive["P"], [wb.Relative(1e-2)] * 5, 1)
    assert archive.verify(data).passed
    assert "PerSlice(Relative(eb=0.001), axis=0)" in repr(archive)
    changed = data["T"].values.copy()
    changed[4] *= 3
    with pytest.raises(GuaranteeBroken, match="'T': the bound of values in slice 4 along axis 0"):
        archive.verify({**data, "T": wb.Field(changed, metadata=data["T"].metadata)})


def test_a_member_without_the_dimension_is_refused_before_any_work():
    with pytest.raises(WorkbenchError, match="'height': axis must be the name of a dimension; got 'time'"):
        wb.compress(dataset(), wb.PerSlice(wb.Relative(0.1), "time"))


def test_chunks_of_all_members_apply_where_their_dimension_occurs(tmp_path):
    data = dataset()
    archive = wb.compress(data, RULES, chunks={"time": 1, "lat": 4}, out=tmp_path / "a.zarr")
    shapes = {name: archive[name].data.layout.chunk_shape for name in data}
    assert shapes == {"T": (1, 4, 9), "P": (4, 1), "height": (4, 9), "lat": (4,), "when": (1,), "names": shapes["names"]}
    assert archive.verify(data).passed
    assert wb.open(tmp_path / "a.zarr").verify(data).passed


def test_a_rule_says_more_than_the_option_for_all():
    data = {name: dataset()[name] for name in ("T", "height")}
    rules = {"T": {"bound": wb.Absolute(1), "chunks": (5, -1, 3)}, "height": {"bound": wb.Absolute(1), "chunk_values": 30}}
    archive = wb.compress(data, rules, chunks={"lat": 2})
    assert archive["T"].data.layout.chunk_shape == (5, 12, 3)
    assert archive["height"].data.layout.chunk_count > 3
    rules = {"T": {"bound": wb.Absolute(1), "chunks": {"lat": 6}}, "*": wb.Absolute(1)}
    archive = wb.compress(data, rules, chunk_values=30)
    assert archive["T"].data.layout.chunk_shape[1] == 6


@pytest.mark.parametrize(("chunks", "said"), [
    ({"depth": 1}, "expected the name of a dimension; got 'depth'"), (5, "chunks of a dataset must be as"),
    ((1, 2), "chunks of a dataset must be as"), ({"time": 0}, "must not be 0"),
    ({"time": 2}, "'T': .*must not hold slices whose limits differ"),
])
def test_chunks_of_a_dataset_that_make_no_sense_are_refused(chunks, said):
    with pytest.raises(WorkbenchError, match=said):
        wb.compress(dataset(), RULES, chunks=chunks)


def test_a_dataset_of_xarray():
    xarray = pytest.importorskip("xarray")
    values = layers((4, 6, 7), dtype="f8")
    given = xarray.Dataset({"q": (("lev", "y", "x"), values)}, {"lev": [1000.0, 500.0, 100.0, 1.0]})
    archive = wb.compress(given, {"q": wb.PerSlice(wb.Relative(1e-3), axis="lev")}, chunks={"lev": 1})
    limits = [limit_of(level, True, wb.Relative(1e-3)) for level in values]
    assert archive["q"].certificate["values"].limit.values == limits
    assert (abs(archive.to_xarray()["q"].values - values).max(axis=(1, 2)) <= limits).all()
    assert archive.verify(given).passed
