"""Bounds of slices of fields in parts: the bytes of `wb.compress` of the whole field, wherever the parts come from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from archive.slices import assert_slices, hard_fields, layers
from combinations import in_pairs
from subdomains.test_fields import assert_same_bytes, files
from workbench.archive import encoded as compressing
from workbench.distributed import ChunkedField
from workbench.errors import GuaranteeBroken, WorkbenchError

da = pytest.importorskip("dask.array", reason="needs the dask extra")
zarr = pytest.importorskip("zarr", reason="needs the io extra")

BOUNDS = {
    "relative": wb.Relative(1e-3), "absolute": wb.Absolute(0.5),
    "each": [wb.Relative(1e-2)] * 2 + [wb.Absolute(3)] * 2 + [wb.PointwiseRelative(0.01)] * 3,
}


def sample(masked):
    """Seven slices along the second axis; the mask hides one of them, and the largest values of another."""
    values = layers((9, 7, 20), axis=1)
    mask = np.random.default_rng(1).random(values.shape) < 0.3
    mask[:, 2] = True
    mask[:, 4] |= values[:, 4] > np.median(values[:, 4])
    return wb.Field(values, name="T", mask=mask if masked else None, metadata={"dimensions": ["time", "level", "x"]})


@pytest.mark.few(2)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("masked", [False, True])
def test_a_dask_array_gives_the_bytes_of_one_process(tmp_path, bound, masked):
    field, bound = sample(masked), wb.PerSlice(BOUNDS[bound], "level")
    mask = None if field.mask is None else da.from_array(field.mask, 17)
    source = ChunkedField(da.from_array(field.values, (4, 3, 20)), field.spacing, field.name, mask, field.metadata)
    archive = assert_same_bytes(tmp_path, field, source, bound)
    assert archive.verify(source).passed
    assert archive.verify(field).passed


def test_a_masked_dask_array_counts_no_masked_values(tmp_path):
    field = sample(masked=True)
    array = da.from_array(np.ma.MaskedArray(field.values, field.mask), (4, 3, 20))
    source = ChunkedField(array, field.spacing, field.name, metadata=field.metadata)
    archive = assert_same_bytes(tmp_path, field, source, wb.PerSlice(BOUNDS["relative"], 1))
    assert archive.verify(source).passed


@pytest.mark.few(1)
@pytest.mark.parametrize(("bound", "kind"), in_pairs(list(BOUNDS), ["array", "T.zarr", "T.npy"]))
def test_a_zarr_array_and_a_file_give_the_bytes_of_one_process(tmp_path, bound, kind):
    field = wb.Field(sample(masked=False).values)
    stored = zarr.open_array(str(tmp_path / "T.zarr"), mode="w", shape=field.shape, chunks=(4, 3, 20), dtype="f4")
    stored[:] = field.values
    np.save(tmp_path / "T.npy", field.values)
    source = stored if kind == "array" else tmp_path / kind
    archive = assert_same_bytes(tmp_path, field, source, wb.PerSlice(BOUNDS[bound], 1), chunks=(4, 1, -1))
    assert archive.verify(source).passed


@settings(max_examples=8)
@given(hard_fields(), st.data())
def test_limits_do_not_depend_on_the_parts(given_field, data):
    field, axis = given_field
    chunks = tuple(data.draw(st.integers(1, size)) for size in field.shape)
    mask = None if field.mask is None else da.from_array(field.mask, chunks)
    source = ChunkedField(da.from_array(field.values, chunks), mask=mask)
    archive = wb.compress(source, wb.PerSlice(wb.Relative(0.01), axis), "pcodec")
    assert_slices(field, archive, [wb.Relative(0.01)] * field.shape[axis], axis)
    assert archive.verify(source).passed


def test_workers_write_the_same_and_verify_it(tmp_path, client):
    field = sample(masked=True)
    bound = wb.PerSlice(wb.Relative(1e-3), "level")
    assert_same_bytes(tmp_path, field, field, bound, client=client, chunks={"x": 8})
    array, mask = (da.from_array(one, (4, 3, 20)) for one in (field.values, field.mask))
    source = ChunkedField(array, field.spacing, field.name, mask, field.metadata)
    archive = assert_same_bytes(tmp_path, field, source, bound, client=client)
    assert archive.verify(source, client=client).passed
    other = ChunkedField(da.where(np.arange(7)[None, :, None] == 6, 2 * array, array), mask=mask)
    with pytest.raises(GuaranteeBroken, match="in slice 6 along axis 1"):
        archive.verify(other, client=client)


def test_an_interrupted_run_goes_on_with_the_same_limits(tmp_path, monkeypatch):
    field, bound, done = sample(masked=False), wb.PerSlice(wb.Relative(1e-3), 1), []

    def failing(task, values, mask=None):
        if len(done) == 3:
            raise WorkbenchError("the fourth chunk fails")
        done.append(task.limit.value)
        return encode_values(task, values, mask)

    encode_values = compressing.encode_values
    monkeypatch.setattr(compressing, "encode_values", failing)
    with pytest.raises(WorkbenchError, match="the fourth chunk fails"):
        wb.compress(field, bound, "pcodec", out=tmp_path / "a.zarr")
    monkeypatch.setattr(compressing, "encode_values", lambda *given: (done.append(given[0].limit.value),
                                                                      encode_values(*given))[1])
    archive = wb.compress(field, bound, "pcodec", out=tmp_path / "a.zarr")
    assert sorted(done) == sorted(archive.certificate["values"].limit.values)   # each chunk once
    wb.compress(field, bound, "pcodec", out=tmp_path / "b.zarr")
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")
