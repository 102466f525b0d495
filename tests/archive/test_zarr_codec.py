import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.archive.array_files import read_chunk
from workbench.archive.frame import Damaged, pack
from workbench.archive.key import ROOT
from workbench.archive.layout import DTYPES
from workbench.archive.root import read_root
from workbench.archive.store import open_store
from workbench.archive.writing import write
from workbench.errors import WorkbenchError

zarr = pytest.importorskip("zarr")
from zarr.registry import register_codec  # noqa: E402 - after the check that there is a Zarr

from workbench.archive.zarr_codec import LossbenchCodec, _padded  # noqa: E402

pytestmark = pytest.mark.usefixtures("raw_chunks")


@pytest.fixture(autouse=True, scope="module")
def registered():
    register_codec("lossbench", LossbenchCodec)


def sample(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(size=shape) * 100).astype(dtype)


def opened(path):
    """The group, as somebody opens it who knows Zarr and nothing of us."""
    if path.suffix == ".zip":
        return zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    return zarr.open_group(path, mode="r")


SHAPES = [((9,), (4,)), ((5, 7), (2, 4)), ((4, 6, 5), (2, 3, 5)), ((3, 4, 2, 5), (2, 2, 2, 2)), ((5, 3), (8, 4))]


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize(("shape", "chunk_shape"), SHAPES)
def test_zarr_reads_what_we_wrote(tmp_path, parts, suffix, shape, chunk_shape):
    values = sample(shape, np.float32)
    layout = parts.layout("values", values, chunk_shape, unit="kg")
    path = write(tmp_path / f"some{suffix}", parts.entries([(layout, values)], {"kind": "field"}))
    group = opened(path)
    array = group["values"]
    np.testing.assert_array_equal(array[...], values)
    assert (array.shape, array.chunks, array.dtype) == (shape, chunk_shape, np.float32)
    assert array.attrs["unit"] == "kg"
    assert group.attrs["kind"] == "field"
    group.store.close()


@pytest.mark.parametrize("dtype", DTYPES)
def test_zarr_reads_every_type_and_several_arrays(tmp_path, parts, dtype):
    values, others = sample((7, 3), dtype), sample((7,), "uint64")
    pairs = [(parts.layout("some", values, (4, 2)), values), (parts.layout("ids", others, (3,)), others)]
    path = write(tmp_path / "some.zarr", parts.entries(pairs))
    group = zarr.open(path, mode="r")
    assert sorted(group.array_keys()) == ["ids", "some"]
    np.testing.assert_array_equal(group["some"][:], values)
    np.testing.assert_array_equal(group["ids"][:], others)


def test_zarr_opens_a_path_without_being_told_how(tmp_path, parts):
    entries, _, values = parts.small()
    write(tmp_path / "some.zarr", entries.items())
    np.testing.assert_array_equal(zarr.open(tmp_path / "some.zarr")["values"][:], values)
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "some.zarr"), mode="r")["values"][:], values)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.data())
def test_any_slice_is_the_slice_of_the_whole(tmp_path_factory, parts, data):
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple))
    chunk_shape = tuple(data.draw(st.integers(1, 9)) for _ in shape)
    values = sample(shape, np.float64)
    layout = parts.layout("values", values, chunk_shape)
    path = write(tmp_path_factory.mktemp("slices") / "some.zarr", parts.entries([(layout, values)]))
    array = zarr.open_group(path, mode="r")["values"]
    chosen = tuple(
        slice(*sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size)))), data.draw(st.integers(1, 3)))
        for size in shape
    )
    np.testing.assert_array_equal(array[chosen], values[chosen])
    corner = tuple(size - 1 for size in shape)
    assert array[corner] == values[corner]


def test_beyond_the_edge_of_an_array_a_chunk_is_filled():
    np.testing.assert_array_equal(_padded(np.array([[1, 2]]), (2, 3), 9), [[1, 2, 9], [9, 9, 9]])
    assert _padded(np.array([[1, 2]], np.int8), (2, 3), 0).dtype == np.int8


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
def test_zarr_and_we_see_the_same_keys_and_bytes(tmp_path, parts, suffix):
    entries, layout, _ = parts.small()
    store = open_store(write(tmp_path / f"some{suffix}", entries.items()))
    group = opened(store.path)
    described = read_root(store)
    read, arrays = described.attributes, described.layouts
    assert read == {name: value for name, value in group.attrs.items() if name in read}
    assert arrays == {"values": layout}
    array = group["values"]
    assert (array.nchunks, array.cdata_shape) == (layout.chunk_count, layout.chunk_grid)
    assert array.nchunks_initialized == layout.chunk_count
    assert array.nbytes_stored() == sum(store.size(key) for key in entries if key.startswith("values/"))
    for index in itertools.product(*map(range, array.cdata_shape)):
        assert read_chunk(store, layout, index) == entries[f"values/{array.metadata.encode_chunk_key(index)}"]
    group.store.close()


def test_an_archive_that_zarr_copied_chunk_by_chunk_is_still_an_archive(tmp_path, parts):
    entries, layout, values = parts.small()
    theirs = zarr.storage.ZipStore(tmp_path / "copied.zip", mode="w")
    buffer = zarr.core.buffer.default_buffer_prototype().buffer

    async def copy():
        for key, data in entries.items():
            await theirs.set(key, buffer.from_bytes(data))

    with theirs:
        zarr.core.sync.sync(copy())
    store = open_store(tmp_path / "copied.zip")
    assert read_root(store).layouts == {"values": layout}
    assert read_chunk(store, layout, (0, 0)) == parts.chunk(values[:2, :4])


def test_dask_reads_an_archive_through_zarr(tmp_path, parts):
    dask_array = pytest.importorskip("dask.array")
    entries, _, values = parts.small()
    write(tmp_path / "some.zarr", entries.items())
    lazy = dask_array.from_zarr(zarr.open_group(tmp_path / "some.zarr", mode="r")["values"])
    np.testing.assert_array_equal(lazy.compute(scheduler="threads"), values)
    assert lazy.chunks == ((2, 2, 1), (4, 3))


# damage


def test_a_damaged_chunk_is_an_error_and_the_others_are_read(tmp_path, parts):
    entries, _, values = parts.small()
    whole = entries["values/c/1/1"]
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 4
        entries["values/c/1/1"] = bytes(broken)
        path = write(tmp_path / f"some{place}.zarr", entries.items())
        array = zarr.open_group(path, mode="r")["values"]
        np.testing.assert_array_equal(array[:2], values[:2])
        with pytest.raises(Damaged, match="chunk of a Zarr array is damaged"):
            array[:]


@pytest.mark.parametrize("shape", [(3, 4), (2, 5), (2**15, 2**15), (8,), (2, 2, 2)])
def test_a_chunk_that_claims_another_shape_is_not_decoded(tmp_path, parts, shape, raw_chunks, monkeypatch):
    monkeypatch.setattr(raw_chunks, "decode_chunk", lambda *given: pytest.fail("it was decoded"))
    entries, _, _ = parts.small()
    entries["values/c/0/0"] = pack(shape, {"code": b"few bytes"})
    path = write(tmp_path / "some.zarr", entries.items())
    with pytest.raises(Damaged, match="it must hold values of at most the shape"):
        zarr.open_group(path, mode="r")["values"][0, 0]


def test_a_decoder_that_keeps_to_no_shape_is_caught(tmp_path, parts, raw_chunks, monkeypatch):
    monkeypatch.setattr(raw_chunks, "decode_chunk", lambda *given: np.zeros((1, 1), np.float32))
    entries, _, _ = parts.small()
    path = write(tmp_path / "some.zarr", entries.items())
    with pytest.raises(Damaged, match=r"it decodes to float32 of shape \(1, 1\)"):
        zarr.open_group(path, mode="r")["values"][0, 0]


# what does not work, says so


def test_writing_through_zarr_is_refused(tmp_path, parts):
    entries, _, values = parts.small()
    path = write(tmp_path / "some.zarr", entries.items())
    array = zarr.open_group(path, mode="r+")["values"]
    for chosen in (slice(None), (0, 0), slice(2, 3)):
        with pytest.raises(WorkbenchError, match=r"Zarr cannot write into an archive.*wb\.compress"):
            array[chosen] = 7.0
    np.testing.assert_array_equal(zarr.open_group(path, mode="r")["values"][:], values)
    created = zarr.create_array(tmp_path / "new.zarr", shape=(4,), dtype="float32", serializer=LossbenchCodec({}),
                                compressors=None)
    with pytest.raises(WorkbenchError, match="Zarr cannot write into an archive"):
        created[:] = 1.0


@pytest.mark.parametrize("codec", [{"name": "lossbench"}, {"name": "lossbench", "configuration": 3}, {"name": "other"}])
def test_a_codec_without_configuration_is_refused(codec):
    with pytest.raises(WorkbenchError, match="the codec must be lossbench, with a configuration"):
        LossbenchCodec.from_dict(codec)


def test_a_codec_is_what_its_document_says():
    codec = LossbenchCodec.from_dict({"name": "lossbench", "configuration": {"id": "sz3", "levels": (1, 2)}})
    assert codec.to_dict() == {"name": "lossbench", "configuration": {"id": "sz3", "levels": [1, 2]}}
    assert LossbenchCodec.from_dict(codec.to_dict()) == codec
    with pytest.raises(NotImplementedError):
        codec.compute_encoded_size(100, None)


def test_an_edited_root_is_known_to_zarr_and_damage_here(tmp_path, parts):
    entries, _, _ = parts.small()
    path = write(tmp_path / "some.zarr", entries.items())
    zarr.open_group(path, mode="r+").attrs["note"] = "changed"
    assert zarr.open_group(path, mode="r").attrs["note"] == "changed"
    store = open_store(path)
    described = read_root(store)
    assert described.attributes == {"kind": "test"}   # the copy says so
    assert [damaged.where for damaged in described.checked(store)] == [ROOT]
    assert "fails its checksum: it was damaged, or changed after" in str(described.checked(store)[0])
