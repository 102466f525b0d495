"""Archives of fields in parts: the bytes of `wb.compress` of the whole field, wherever the parts come from."""

import itertools
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.distributed import ChunkedField
from workbench.errors import WorkbenchError
from workbench.run import chunked_field
from workbench.run.array_in_files import ArrayInFiles

dask = pytest.importorskip("dask", reason="needs the dask extra")
da = pytest.importorskip("dask.array", reason="needs the dask extra")
zarr = pytest.importorskip("zarr", reason="needs the io extra")
h5py = pytest.importorskip("h5py", reason="needs the io extra")

BOUNDS = {
    "absolute": wb.Absolute(0.01), "relative": wb.Relative(1e-3), "pointwise": wb.PointwiseRelative(1e-2),
    "coarse": wb.Absolute(2.0), "exact": wb.Absolute(0),
}


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same_bytes(tmp_path, field, source, bound, codec="auto", client=None, **how):
    expected, found = tmp_path / "one.zarr", tmp_path / "many.zarr"
    wb.compress(field, bound, codec, **how).save(expected, overwrite=True)
    archive = wb.compress(source, bound, codec, out=found, client=client, overwrite=True, **how)
    assert files(found) == files(expected)
    return archive


def sample(shape, dtype="f4", masked=False):
    values = np.random.default_rng(sum(shape)).normal(size=shape).cumsum(axis=-1)
    values = (100 * values if dtype[0] in "iu" else values).astype(dtype)
    mask = np.random.default_rng(1).random(shape) < 0.3 if masked else None
    return wb.Field(values, spacing=0.5, name="T", mask=mask, metadata={"units": "K", "from": {"year": 2026}})


SHAPES = [(997,), (40, 31), (17, 9, 20), (4, 5, 6, 7)]
ASKED = [("f4", "absolute"), ("f8", "relative"), ("f8", "pointwise"), ("i2", "relative"), ("i2", "coarse"), ("f4", "exact")]


@pytest.mark.few(6)
@pytest.mark.parametrize(("shape", "dtype", "bound", "masked"), [   # each bound with each shape, and every other one masked
    pytest.param(SHAPES[i], *ASKED[j], masked, marks=pytest.mark.long if (i + j + masked) % 2 else ())
    for i, j, masked in itertools.product(range(len(SHAPES)), range(len(ASKED)), (False, True))
])
def test_a_dask_array_gives_the_bytes_of_one_process(tmp_path, shape, dtype, bound, masked):
    field = sample(shape, dtype, masked)
    chunks = tuple(max(1, size // 3 + 1) for size in shape)
    source = ChunkedField(
        da.from_array(field.values, chunks), field.spacing, field.name,
        None if field.mask is None else da.from_array(field.mask, 17), field.metadata,
    )
    archive = assert_same_bytes(tmp_path, field, source, BOUNDS[bound], chunk_values=field.values.size // 3)
    assert archive.verify(field).passed


@pytest.mark.few(2)
@pytest.mark.parametrize("bound", ["absolute", "relative", "pointwise"])
@pytest.mark.parametrize("codec", ["auto", "interpolation"])
def test_a_codec_that_is_tried_on_the_middle_is_the_same_for_parts(tmp_path, codec, bound):
    field = wb.Field(sample((70, 80)).values + 100, mask=np.random.default_rng(1).random((70, 80)) < 0.3)
    source = ChunkedField(da.from_array(field.values, 33), mask=da.from_array(field.mask, 17))
    with dask.config.set(scheduler="dask.distributed"):   # as a client leaves it that was closed before an older one
        archive = assert_same_bytes(tmp_path, field, source, BOUNDS[bound], codec, chunk_values=2000)
    assert bool(archive.certificate.choice) == (codec == "auto")
    assert archive.verify(field).passed


def test_sources_that_are_read_by_workers_give_the_same_bytes(tmp_path):
    field = sample((30, 21, 10), "f8", masked=True)
    np.save(tmp_path / "values.npy", field.values)
    stored = zarr.create_array(str(tmp_path / "values"), shape=field.shape, dtype="f8", chunks=(7, 8, 9))
    stored[...] = field.values
    mask = zarr.create_array(str(tmp_path / "mask"), shape=field.shape, dtype=bool, chunks=(5, 5, 5))
    mask[...] = field.mask
    with h5py.File(tmp_path / "values.h5", "w") as file:
        file["deep/values"] = field.values
        in_file = ChunkedField(file["deep/values"], mask=field.mask)
    sources = {
        "npy": ChunkedField(tmp_path / "values.npy", mask=field.mask),
        "zarr": ChunkedField(stored, mask=mask),
        "mixed": ChunkedField(da.from_array(field.values, 11), mask=mask),
        "mixed the other way": ChunkedField(tmp_path / "values.npy", mask=da.from_array(field.mask, 11)),
        "h5": in_file,
        "big-endian": ChunkedField(da.from_array(field.values.astype(">f8"), 11), mask=field.mask),
        "masked": ChunkedField(da.ma.masked_array(da.from_array(field.values, 9), da.from_array(field.mask, 9))),
        "memory": wb.Field(field.values, mask=field.mask),
        "masked in memory": ChunkedField(np.ma.MaskedArray(field.values, field.mask)),
        "folder": ChunkedField(tmp_path / "values", mask=tmp_path / "mask"),
        "archive": ChunkedField.of(wb.compress(wb.Field(field.values, mask=field.mask), wb.Absolute(0))),
    }
    asked = {"bound": wb.Relative(1e-3), "chunk_values": 3000}
    wb.compress(wb.Field(field.values, mask=field.mask), **asked).save(tmp_path / "one.zarr")
    for source in sources.values():
        wb.compress(source, out=tmp_path / "many.zarr", overwrite=True, **asked)
        assert files(tmp_path / "many.zarr") == files(tmp_path / "one.zarr")


@pytest.mark.few(1)
@pytest.mark.parametrize("bound", ["absolute", "relative"])
def test_a_masked_dask_array_without_masked_values_has_no_mask(tmp_path, bound):
    values = sample((30, 20)).values
    source = da.ma.masked_greater(da.from_array(values, 8), 1e9)
    archive = assert_same_bytes(tmp_path, wb.Field(values), ChunkedField(source), BOUNDS[bound], chunk_values=100)
    assert "mask" not in archive.arrays


@settings(max_examples=15)
@given(st.data())
def test_any_division_gives_the_same_bytes(tmp_path_factory, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, size)) for size in shape)
    dtype = data.draw(st.sampled_from(["f4", "f8", "u1", "i8"]))
    field = sample(shape, dtype, data.draw(st.booleans()))
    if dtype[0] == "f":
        odd = np.random.default_rng(data.draw(st.integers(0, 99))).choice([0, np.nan, np.inf], shape, p=[0.8, 0.1, 0.1])
        with np.errstate(invalid="ignore"):
            field = wb.Field(field.values + odd.astype(dtype), mask=field.mask)
    source = ChunkedField(da.from_array(field.values, chunks), field.spacing, field.name, field.mask, field.metadata)
    kind = data.draw(st.sampled_from(["absolute", "relative", "coarse", "exact"]))
    most = data.draw(st.integers(-(-field.values.size // 8), field.values.size))
    with mock.patch.object(chunked_field, "GATHERED", data.draw(st.sampled_from([0, 100, 2**26]))):
        assert_same_bytes(tmp_path_factory.mktemp("any"), field, source, BOUNDS[kind], chunk_values=most)


@pytest.mark.parametrize(("blocks", "chunks", "gathered"), [
    ((4, 6), (2, 3), 0),              # within one block
    ((4, 6), (4, 6), 0),
    ((4, 6), (8, 2), 8 * 6 * 8),      # several blocks along one axis
    ((4, 6), (8, 12), 8 * 12 * 8),
    ((4, 6), (3, 5), 8 * 12 * 8),     # across their borders
    (((5, 3), (1, 11)), (8, 2), 8 * 12 * 8),
])
def test_how_much_a_part_gathers_is_known(monkeypatch, blocks, chunks, gathered):
    source = ChunkedField(da.zeros((8, 12), chunks=blocks))
    monkeypatch.setattr(chunked_field, "GATHERED", gathered)
    assert not source.gathers_much(chunks)
    monkeypatch.setattr(chunked_field, "GATHERED", gathered - 1)
    assert source.gathers_much(chunks)


def test_blocks_that_many_chunks_need_are_computed_once_and_held_in_files(tmp_path, monkeypatch):
    computed, scratch = [], tmp_path / "scratch"
    monkeypatch.setattr(chunked_field, "GATHERED", 10_000)
    scratch.mkdir()
    values = np.random.default_rng(0).normal(size=(24, 20, 20)).astype("f4")

    def block(part, block_info):
        computed.append(block_info[0]["chunk-location"])
        return part

    lazy = da.from_array(values, (1, 20, 20)).map_blocks(block, dtype="f4", meta=np.empty((0, 0, 0), "f4"))
    how = {"chunks": (24, 5, 5), "out": tmp_path / "a.zarr", "scratch": scratch}
    archive = wb.compress(ChunkedField(lazy), wb.Absolute(0.01), "prequantised", **how)
    assert sorted(computed) == [(number, 0, 0) for number in range(24)]
    assert not list(scratch.iterdir())
    assert archive.verify(lazy).passed
    assert len(computed) == 48


def test_blocks_on_a_gpu_are_written_from_the_host(tmp_path, stand_in):
    numbers, hidden = np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3) == 4
    part = wb.Field(stand_in.asarray(numbers), mask=stand_in.asarray(hidden))
    values, mask = (ArrayInFiles(tmp_path / kind, (2, 3), np.dtype(kind), (2, 3)) for kind in ("f8", "bool"))
    assert chunked_field._save(values, mask, 0, part)
    everything = slice(0, 2), slice(0, 3)
    assert (values[everything] == numbers)[~hidden].all()
    assert (mask[everything] == hidden).all()


@pytest.mark.parametrize("codec", ["sz3", "zfp", "prequantised", "bitround", "pcodec"])
def test_every_codec_gives_the_same_bytes(tmp_path, codec):
    field = sample((40, 40))
    assert_same_bytes(tmp_path, field, ChunkedField(da.from_array(field.values, 9), 0.5, "T", metadata=field.metadata),
                      wb.Absolute(0.01), codec, chunk_values=300)


def test_a_safeguard_of_single_values_is_kept(tmp_path):
    pytest.importorskip("compression_safeguards", reason="needs the safeguards extra")
    field = sample((40, 40))
    source = ChunkedField(da.from_array(field.values, 9), 0.5, "T", metadata=field.metadata)
    assert_same_bytes(tmp_path, field, source, wb.Absolute(0.1), keep=[wb.Safeguard("sign")], chunk_values=300)


def test_nothing_remains_after_an_error(tmp_path):
    def fail(block):
        raise RuntimeError("no such tape")

    values = da.from_array(np.zeros((10, 10)), 5).map_blocks(fail, dtype="f8")
    with pytest.raises(RuntimeError, match="no such tape"):
        wb.compress(ChunkedField(values), wb.Absolute(0.1), out=tmp_path / "field.zarr")
    assert not list(tmp_path.iterdir())


X = da.ones((4, 4), chunks=2)


@pytest.mark.parametrize(("arguments", "told"), [
    ({"source": X, "order": "free"}, "order='free' are for particles"),
    ({"source": X, "keep": [wb.KeepClusters()]}, r"keep of a field takes wb\.Safeguard"),
    ({"source": X, "codec": "lattice"}, "lattice is for particles"),
    ({"source": X[X > 0]}, "the shape of a Dask array must be known"),
    ({"source": X[:0]}, "must not be empty"),
    ({"source": X.astype("c8")}, "must be float32, float64 or integers"),
    ({"source": X.astype("i4"), "bound": wb.PointwiseRelative(0.1)}, "the bound of integers"),
    ({"source": X, "out": "missing/field.zarr"}, "a directory that exists"),
])
def test_what_cannot_be_compressed_is_refused_before_any_work(tmp_path, arguments, told):
    given = {"bound": wb.Absolute(0.1), "out": tmp_path / "field.zarr", **arguments}
    with pytest.raises(WorkbenchError, match=told):
        wb.compress(**{**given, "source": ChunkedField(given["source"])})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("arguments", "told"), [
    ({"values": [1.0, 2.0]}, "a Dask array, a Zarr array, .* got builtins.list"),
    ({"values": "missing.npy"}, "must be a .npy file of numbers"),
    ({"values": X, "mask": X[:2]}, "mask must be boolean of shape"),
    ({"values": X, "spacing": -1}, "spacing must be positive"),
    ({"values": da.ones((1, 1, 1, 1, 1))}, "1 to 4 dimensions"),
])
def test_fields_that_cannot_be_are_refused(arguments, told):
    with pytest.raises(WorkbenchError, match=told):
        ChunkedField(**arguments)


@pytest.mark.long
def test_a_field_of_a_climate_model_gives_the_same_bytes(tmp_path, shared_data):
    with h5py.File(shared_data / "cesm" / "cam-fv.T.3months.nc") as file:
        field, stored = wb.Field(file["T"][...]), ChunkedField(file["T"])
        lazy = ChunkedField(da.from_array(file["T"], (1, 10, 96, 100)))
        for source in (stored, lazy):
            archive = assert_same_bytes(tmp_path, field, source, wb.Relative(1e-4))
    assert archive.verify(field).passed
    assert wb.compare(field, archive, bound=1e-4 * (306.125 - 180.749)).passed


@pytest.mark.parametrize("codec", ["staged", "prequantised"])
def test_statistics_on_workers_are_those_of_one_process(tmp_path, client, codec):
    field = sample((30, 40, 20), masked=True)
    archive = wb.open(wb.compress(field, wb.Absolute(0.01), codec, chunk_values=4000).save(tmp_path / "x.zarr"))
    region, steps = [(3, 30), None, (0, 11)], []
    here = archive.statistics(region=region)
    how = {"client": client, "scratch": tmp_path, "progress": lambda share, name: steps.append(name)}
    assert archive.statistics(region=region, **how) == here
    assert steps
    assert here["std"] == archive.std(region)
    asked = {"quantiles": [0.1, 0.5], "bins": 5}
    one, other = (archive.statistics(["mean"], region, **asked, **more) for more in ({}, how))
    assert [each.to_dict() for each in one.values()] == [each.to_dict() for each in other.values()]
    assert one["quantile 0.5"] == archive.median(region)
    one, other = (archive.statistics(region=region, axis=(0, 2), **more) for more in ({}, how))
    assert {name: each.to_dict() for name, each in one.items()} == {name: each.to_dict() for name, each in other.items()}
    assert one["max"].to_dict() == archive.max(region, axis=(0, 2)).to_dict()
    with pytest.raises(WorkbenchError, match="quantiles= and bins= are of all values"):
        archive.statistics(axis=0, bins=3)
    with pytest.raises(WorkbenchError, match="save it first"):
        wb.compress(field, wb.Absolute(0.01), codec).statistics(client=client)


@pytest.mark.parametrize("codec", ["staged", "prequantised"])
def test_combinations_by_workers_have_the_bytes_of_those_of_one_process(tmp_path, client, codec):
    sources = [sample((30, 40, 20), masked=True), sample((30, 40, 20))]
    saved = [
        wb.open(wb.compress(one, wb.Absolute(0.01), codec, chunk_values=4000).save(tmp_path / f"{number}.zip"))
        for number, one in enumerate(sources)
    ]
    here = wb.linear_combination([(1, saved[0]), (-0.5, saved[1])], out=tmp_path / "here.zarr")
    steps = []
    there = wb.linear_combination(
        [(1, saved[0]), (-0.5, saved[1])], out=tmp_path / "there.zarr", client=client, scratch=tmp_path,
        progress=lambda share, name: steps.append(name),
    )
    assert "combine chunks" in steps
    assert here.certificate["values"].derived == there.certificate["values"].derived
    files = [{path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
             for root in (tmp_path / "here.zarr", tmp_path / "there.zarr")]
    assert files[0] == files[1]
    with pytest.raises(WorkbenchError, match="workers write the archive: give out="):
        wb.linear_combination([(1, saved[0])], client=client)
    with pytest.raises(WorkbenchError, match="save it first"):
        wb.linear_combination([(1, saved[0] - saved[1])], client=client, out=tmp_path / "other.zip")
