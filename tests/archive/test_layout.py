import json
import math
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.archive import document
from workbench.archive.array_files import read_chunk, require_plausible
from workbench.archive.frame import Damaged, pack
from workbench.archive.key import ROOT
from workbench.archive.layout import DTYPES, ArrayLayout
from workbench.archive.recognition import is_archive
from workbench.archive.root import CONSOLIDATED, documents_of, group_metadata, read_root
from workbench.archive.store import DirectoryStore, MemoryStore
from workbench.errors import GuaranteeBroken, WorkbenchError

FLOAT = np.dtype("float32")
LAYOUT = ArrayLayout("density", (5, 7), (2, 4), FLOAT, {"codec": "raw", "level": 3}, {"unit": "kg", "box": (1.5, 2.0)})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def layouts(draw):
    dimensions = draw(st.integers(1, 5))
    sizes = st.lists(st.integers(1, 9), min_size=dimensions, max_size=dimensions).map(tuple)
    objects = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
    dtype, shape, chunk = np.dtype(draw(st.sampled_from(DTYPES))), draw(sizes), draw(sizes)
    together = draw(st.none() | sizes)
    shards = together and tuple(size * n for size, n in zip(chunk, together, strict=True))
    return ArrayLayout("some_values", shape, chunk, dtype, draw(objects), draw(objects), shard_shape=shards)


def through_json(value):
    return document.from_bytes(document.to_bytes(value), "zarr.json")


def root_of(attributes, **arrays):
    """The root of an archive with arrays of these documents."""
    root = document.unsealed(group_metadata(attributes), ROOT)
    root[CONSOLIDATED]["metadata"] = arrays
    return document.sealed(root)


def store_of(root):
    return MemoryStore({ROOT: document.to_bytes(root)})


# chunks


@given(layouts())
def test_chunks_cover_an_array_once(layout):
    counted = np.zeros(layout.shape, int)
    keys = []
    for index in layout.chunk_indices():
        part = counted[layout.chunk_slices(index)]
        assert part.shape == layout.chunk_extent(index)
        part += 1
        keys.append(layout.chunk_key(index))
    assert (counted == 1).all()
    assert len(keys) == len(set(keys)) == layout.chunk_count


@given(layouts())
def test_chunks_come_in_the_order_of_the_array(layout):
    assert list(layout.chunk_indices()) == list(np.ndindex(layout.chunk_grid))


def test_a_huge_number_of_chunks_is_counted_without_making_them():
    layout = ArrayLayout("a", (2**14, 2**14), (1, 1), FLOAT)
    assert layout.chunk_count == 2**28
    assert next(layout.chunk_indices()) == (0, 0)


@pytest.mark.parametrize("index", [(3, 0), (0, 2), (-1, 0), (0,), (0, 0, 0), ()])
def test_a_chunk_that_does_not_exist_has_no_key(index):
    for ask in (LAYOUT.chunk_key, LAYOUT.chunk_slices, LAYOUT.chunk_extent):
        with pytest.raises(WorkbenchError, match=r"the chunks of density are a grid of \(3, 2\); got the index"):
            ask(index)


# documents


@given(layouts())
def test_a_layout_comes_back_from_its_document(layout):
    assert ArrayLayout.from_metadata(layout.name, through_json(layout.metadata())) == layout


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_attributes_come_back_from_the_root(attributes):
    described = read_root(MemoryStore(documents_of(attributes, [LAYOUT])))
    read, arrays = described.attributes, described.layouts
    assert read == attributes
    assert arrays == {"density": LAYOUT}


def test_several_arrays_and_strange_neighbours():
    other = ArrayLayout("ids", (9,), (4,), np.dtype("uint64"))
    more = {"ids/c/0": b"", "README": b"", f"a/b/{ROOT}": b"not JSON", f"ids/{ROOT}": b"not JSON"}
    store = MemoryStore({**documents_of({}, [LAYOUT, other]), **more})
    assert read_root(store).layouts == {"density": LAYOUT, "ids": other}


@given(layouts())
def test_zarr_understands_a_document(layout):
    v3 = pytest.importorskip("zarr.core.metadata.v3")
    register()
    understood = v3.ArrayV3Metadata.from_dict(layout.metadata())
    assert understood.shape == layout.shape
    assert (understood.chunks, understood.shards) == (layout.chunk_shape, layout.shard_shape)
    assert understood.data_type.to_native_dtype() == layout.dtype
    for shard in layout.shard_indices():
        assert f"{layout.name}/{understood.encode_chunk_key(shard)}" == layout.shard_key(shard)


def register():
    from zarr.registry import register_codec

    from workbench.archive.zarr_codec import LossbenchCodec

    register_codec("lossbench", LossbenchCodec)


def test_every_changed_byte_of_the_root_is_refused_or_means_the_same():
    whole = document.to_bytes(group_metadata({"bound": 0.1}, [LAYOUT]))
    expected = read_root(MemoryStore({ROOT: whole}))
    for place in range(len(whole)):
        for change in (1, 2, 4, 8, 16, 32, 64, 128):
            data = bytearray(whole)
            data[place] ^= change
            try:
                assert read_root(MemoryStore({ROOT: bytes(data)})) == expected
            except WorkbenchError:
                continue


def test_a_promise_that_was_edited_is_noticed():
    edited = group_metadata({"bound": 0.1})
    edited["attributes"]["bound"] = 0.5
    with pytest.raises(GuaranteeBroken, match=r"^zarr\.json fails its checksum: it was damaged, or changed after"):
        read_root(store_of(edited))


def test_the_layout_of_a_document_does_not_matter():
    shuffled = json.dumps(dict(reversed(group_metadata({}, [LAYOUT]).items())), indent=7).encode()
    assert read_root(MemoryStore({ROOT: shuffled})).layouts == {"density": LAYOUT}


# hostile documents


def changed(**changes):
    """The document of LAYOUT with some entries changed (or, for None, left out)."""
    return {key: value for key, value in (LAYOUT.metadata() | changes).items() if value is not None}


def grid(chunk_shape):
    return {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}


def shards(chunk_shape=(1, 2), **changes):
    inner = [{"name": "lossbench", "configuration": {}}]
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    whole = {"chunk_shape": list(chunk_shape), "codecs": inner, "index_codecs": index, "index_location": "end"} | changes
    return {"codecs": [{"name": "sharding_indexed", "configuration": whole}]}


HOSTILE = [
    (shards((1, 3)), r"the shape of shards must be whole chunks of \(1, 3\); got \(2, 4\)"),
    (shards((4, 4)), "the shape of shards must be whole chunks"),
    (shards((1,)), "shape and chunk shape must have as many axes"),
    (shards((0, 4)), "chunk shape must be 1 to 5 positive integers"),
    (shards(index_location="start"), r"sharding_indexed of it with an index \(bytes, crc32c\) at the end, or blosc; got"),
    (shards(index_codecs=[]), "sharding_indexed of it with an index"),
    (shards(codecs=[]), "codecs must be lossbench alone, with a configuration, sharding_indexed of it"),
    (shards(codecs=shards()["codecs"]), "codecs must be lossbench alone"),
    (shards(more=1), "codecs must be"),
    ({**shards((1, 1)), "chunk_grid": grid([2**11, 2**10])}, "a shard must have at most 1,048,576 chunks"),
    ({**shards((1, 1)), "shape": [2**15, 2**15]}, "an array must have at most 268,435,456 chunks; density has"),
    ({"shape": [2**62, 2]}, r"density in zarr\.json: an array must have at most 2\^62 values"),
    ({"shape": [10**4000, 10**300]}, "an array must have at most"),
    ({"chunk_grid": grid([2**31, 2])}, r"and a chunk 2\^31"),
    ({"shape": [-5, 7]}, r"shape must be 1 to 5 positive integers; got \[-5, 7\]"),
    ({"shape": [0, 7]}, "shape must be 1 to 5 positive integers"),
    ({"shape": ["5", 7]}, "shape must be 1 to 5 positive integers"),
    ({"shape": [5.0, 7]}, "shape must be 1 to 5 positive integers"),
    ({"shape": [True, 7]}, "shape must be 1 to 5 positive integers"),
    ({"shape": [[5], 7]}, "shape must be 1 to 5 positive integers"),
    ({"shape": []}, "shape must be 1 to 5 positive integers"),
    ({"shape": [1] * 6}, "shape must be 1 to 5 positive integers"),
    ({"shape": 35}, "shape must be 1 to 5 positive integers"),
    ({"shape": "57"}, "shape must be 1 to 5 positive integers"),
    ({"shape": {"0": 5}}, "shape must be 1 to 5 positive integers"),
    ({"shape": None}, "shape must be 1 to 5 positive integers; got None"),
    ({"shape": [5]}, "shape and chunk shape must have as many axes"),
    ({"chunk_grid": grid([2, 0])}, "chunk shape must be 1 to 5 positive integers"),
    ({"chunk_grid": grid([2, -4])}, "chunk shape must be 1 to 5 positive integers"),
    ({"chunk_grid": grid("24")}, "chunk shape must be 1 to 5 positive integers"),
    ({"chunk_grid": {"name": "rectilinear", "configuration": {}}}, "chunk_grid must be regular"),
    ({"chunk_grid": "regular"}, "chunk_grid must be regular"),
    ({"chunk_grid": grid([2, 4]) | {"extra": 1}}, "chunk_grid must be {'name'"),
    ({"data_type": "complex128"}, "the type of an array must be one of float32, .*; got 'complex128'"),
    ({"data_type": "object"}, "the type of an array must be one of"),
    ({"data_type": ">f4"}, "the type of an array must be one of"),
    ({"data_type": ["float32"]}, "the type of an array must be one of"),
    ({"data_type": {"name": "float32"}}, "the type of an array must be one of"),
    ({"data_type": None}, "the type of an array must be one of"),
    ({"codecs": []}, "codecs must be lossbench alone"),
    ({"codecs": [{"name": "bytes", "configuration": {}}]}, "codecs must be lossbench alone"),
    ({"codecs": [{"name": "lossbench"}]}, "codecs must be lossbench alone, with a configuration"),
    ({"codecs": [{"name": "lossbench", "configuration": [1]}]}, "configuration must map names to values"),
    ({"codecs": [{"name": "lossbench", "configuration": {}}, {"name": "gzip"}]}, "codecs must be lossbench alone"),
    ({"codecs": [{"name": "lossbench", "configuration": {}, "more": 1}]}, "codecs must be"),
    ({"codecs": "lossbench"}, "codecs must be lossbench alone"),
    ({"fill_value": "NaN"}, "fill_value must be 0.0; got 'NaN'"),
    ({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}}, "chunk_key_encoding must be"),
    ({"storage_transformers": [{"name": "x"}]}, "storage_transformers must be None"),
    ({"zarr_format": 2}, "zarr_format must be 3; got 2"),
    ({"zarr_format": None}, "zarr_format must be 3; got None"),
    ({"node_type": "group"}, "node_type must be 'array'; got 'group'"),
    ({"dimension_names": ["x"]}, "dimension_names must be 2 different names"),
    ({"dimension_names": ["x", "x"]}, "dimension_names must be 2 different names"),
    ({"dimension_names": ["x", 3]}, "dimension_names must be 2 different names"),
    ({"dimension_names": "xy"}, "dimension_names must be 2 different names; got 'xy'"),
    ({"attributes": {"lossbench:role": "weights"}}, "the role of an array must be one of data, index, model"),
]


@pytest.mark.parametrize(("changes", "complaint"), HOSTILE)
def test_a_hostile_array_document_is_refused_and_allocates_nothing(changes, complaint):
    store = store_of(root_of({}, density=changed(**changes)))
    tracemalloc.start()
    try:
        with pytest.raises(WorkbenchError, match=complaint) as caught:
            read_root(store)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith("density in zarr.json: ")
    assert len(str(caught.value)) < 500


@given(JSON.filter(lambda value: isinstance(value, dict)))
def test_any_json_object_is_refused_by_our_errors_only(found):
    with pytest.raises(WorkbenchError):
        ArrayLayout.from_metadata("density", found)
    for attributes in (found, None, [found]):
        root = {**group_metadata({}), "attributes": attributes}
        with pytest.raises(WorkbenchError):
            read_root(MemoryStore({ROOT: document.to_bytes(root)}))


@given(st.sampled_from(sorted(set(LAYOUT.metadata()) - {"attributes"})), JSON)
def test_any_json_in_any_place_is_refused_or_is_what_was_there(key, value):
    try:
        layout = ArrayLayout.from_metadata("density", changed(**{key: value}))
    except WorkbenchError:
        return
    assert layout.metadata()[key] == value


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | JSON.map(json.dumps).map(str.encode))
def test_arbitrary_bytes_are_refused_as_documents(data):
    with pytest.raises(WorkbenchError, match=r"zarr\.json"):
        read_root(MemoryStore({ROOT: data}))


DEEP = 10**5
TEXTS = [
    (b'{"a": ' * DEEP + b"1" + b"}" * DEEP, "must be nested at most 64 deep"),
    (b'{"a": ' + b"[" * DEEP + b"]" * DEEP + b"}", "must be nested at most 64 deep"),
    (b"[" * DEEP, "must be nested at most 64 deep|not valid JSON"),
    (b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", "must be nested at most 64 deep"),
    (b'{"a": NaN}', "not valid JSON .NaN is not a JSON number"),
    (b'{"a": -Infinity}', "not valid JSON .-Infinity is not a JSON number"),
    (b'{"a": 1e999}', "not valid JSON .1e999 is beyond the range"),
    (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
    (b'{"a": 1, "a": 2}', "not valid JSON .'a' occurs twice"),
    (b'{"a": "\xff"}', "not valid JSON .*utf-8"),
    (b"\xef\xbb\xbf{}", "not valid JSON"),
    (b"", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b"{} {}", "not valid JSON"),
    (b"[1, 2]", "must hold a JSON object; it holds a list"),
    (b"null", "must hold a JSON object; it holds a NoneType"),
    (b"{}", "was not written by lossbench"),
]


@pytest.mark.parametrize(("data", "complaint"), TEXTS, ids=[text[:12] for text, _ in TEXTS])
def test_hostile_text_is_refused(data, complaint):
    with pytest.raises(WorkbenchError, match=rf"^zarr\.json .*({complaint})"):
        read_root(MemoryStore({ROOT: data}))


def test_a_document_that_is_too_large_is_not_read(tmp_path):
    (tmp_path / ROOT).write_bytes(b"")
    os.truncate(tmp_path / ROOT, 2**40)
    tracemalloc.start()
    try:
        with pytest.raises(WorkbenchError, match=r"zarr\.json is damaged: .* at most 16,777,216 bytes; it has 1,099,511,6"):
            read_root(DirectoryStore(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_zarr_group_of_others_is_not_an_archive():
    theirs = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    with pytest.raises(WorkbenchError, match=r"zarr\.json was not written by lossbench"):
        read_root(MemoryStore({ROOT: document.to_bytes(theirs)}))
    with pytest.raises(WorkbenchError, match=r"is not an archive: it has no zarr\.json"):
        read_root(MemoryStore({"notes": b""}))
    with pytest.raises(WorkbenchError, match=r"zarr\.json must describe a group"):
        read_root(store_of(document.sealed({**document.unsealed(group_metadata({}), ROOT), "node_type": "array"})))


def files_at(path, root):
    (path / "folder").mkdir()
    if root is not None:
        (path / "folder" / ROOT).write_bytes(root)
    with zipfile.ZipFile(path / "file.zip", "w") as opened:
        opened.writestr("other" if root is None else ROOT, root or b"")
    return path / "folder", path / "file.zip"


FOREIGN = [None, b"", b"{", b"[]", b"null", b'{"attributes": {}}', b'{"attributes": 3}', b"[" * DEEP]


@pytest.mark.parametrize("root", FOREIGN, ids=range(len(FOREIGN)))
def test_what_others_wrote_is_not_taken_for_an_archive(tmp_path, root):
    for path in files_at(tmp_path, root):
        assert not is_archive(path)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"text", b"PK\x03\x04" + bytes(50)])
def test_what_is_no_zip_file_is_not_taken_for_an_archive(tmp_path, content):
    (tmp_path / "some.zip").write_bytes(content)
    assert not is_archive(tmp_path / "some.zip")
    assert not is_archive(tmp_path / "missing")


def test_an_archive_is_recognised_whole_or_damaged(tmp_path):
    edited = group_metadata({"bound": 0.1})
    edited["attributes"]["bound"] = 0.5
    for number, root in enumerate([group_metadata({}), edited]):
        (tmp_path / str(number)).mkdir()
        for path in files_at(tmp_path / str(number), document.to_bytes(root)):
            assert is_archive(path)


# what cannot be written


@pytest.mark.parametrize(("values", "complaint"), [
    ({"name": ""}, "the name of an array must be"),
    ({"name": "a/b"}, "the name of an array must be"),
    ({"name": "../a"}, "the name of an array must be"),
    ({"name": 3}, "the name of an array must be"),
    ({"shape": (5, 7, 3)}, "must have as many axes"),
    ({"dtype": np.dtype(">f4")}, "the type of an array must be one of"),
    ({"dtype": np.dtype("complex64")}, "the type of an array must be one of"),
    ({"configuration": [1]}, "configuration must map names to values"),
    ({"configuration": {"a": math.nan}}, "configuration must be plain values that JSON can hold"),
    ({"attributes": {"a": np.float32(1)}}, "attributes must be plain values that JSON can hold"),
    ({"attributes": {"a": {1, 2}}}, "attributes must be plain values that JSON can hold"),
])
def test_a_layout_that_is_wrong_cannot_exist(values, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        ArrayLayout(**{"name": "a", "shape": (5, 7), "chunk_shape": (2, 4), "dtype": FLOAT} | values)


def test_what_could_not_be_read_again_is_not_written():
    deep = {}
    for _ in range(64):
        deep = {"a": deep}
    with pytest.raises(WorkbenchError, match="must be nested at most 64 deep"):
        document.to_bytes(group_metadata(deep))
    with pytest.raises(WorkbenchError, match="must fit into 16,777,216 bytes"):
        document.to_bytes(group_metadata({"text": "x" * 2**24}))
    with pytest.raises(WorkbenchError, match="lossbench:crc32 is the archive's own attribute"):
        group_metadata({document.SEAL: "00000000"})


# what the bytes justify


def test_an_array_must_be_justified_by_its_chunks():
    layout = ArrayLayout("a", (2**20, 2**20), (2**10, 2**20), FLOAT)
    with pytest.raises(WorkbenchError, match=r"a in .* claims 1,099,511,627,776 values, but its chunks have 4 bytes"):
        require_plausible(layout, MemoryStore({"a/c/0/0": b"LBC1", "b/c/0/0": bytes(2**21), f"a/{ROOT}": bytes(2**21)}))
    require_plausible(layout, MemoryStore({f"a/c/{i}/0": bytes(2**10) for i in range(1024)}))


def test_a_constant_array_in_chunks_of_the_usual_size_is_believed():
    layout = ArrayLayout("a", (2**34,), (2**20,), FLOAT)
    smallest = pack((2**20,), {"code": b""})
    require_plausible(layout, MemoryStore({layout.chunk_key(index): smallest for index in layout.chunk_indices()}))


def test_chunks_that_were_never_written_are_not_looped_over():
    layout = ArrayLayout("a", (2**26,), (1,), FLOAT)
    with pytest.raises(WorkbenchError, match=r"a in .* claims 67,108,864 chunks; only 1 are present"):
        require_plausible(layout, MemoryStore({"a/c/0": b"LBC1"}))


def test_a_damaged_archive_is_still_plausible(parts):
    entries, layout, _ = parts.small()
    for key in [key for key in entries if "/c/" in key][1:]:
        del entries[key]
        require_plausible(layout, MemoryStore(entries))


def test_a_chunk_is_read_when_it_claims_the_shape_that_belongs_there(parts):
    entries, layout, values = parts.small()
    store = MemoryStore(entries)
    for index in layout.chunk_indices():
        assert read_chunk(store, layout, index) == parts.chunk(values[layout.chunk_slices(index)])
    swapped = MemoryStore(entries | {"values/c/0/0": entries["values/c/0/1"]})
    with pytest.raises(Damaged, match=r"/c/0/0 is damaged: it must hold values of shape \(2, 4\); it claims \(2, 3\)"):
        read_chunk(swapped, layout, (0, 0))
    assert read_chunk(swapped, layout, (0, 1)) == entries["values/c/0/1"]


def test_a_chunk_that_is_far_too_large_is_not_read(parts, tmp_path):
    entries, layout, _ = parts.small()
    for key, data in entries.items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(data)
    os.truncate(tmp_path / "values/c/0/0", 2**40)
    store = DirectoryStore(tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match="values/c/0/0 is damaged: it must have at most 1,048,704 bytes; it has 1,099,"):
            read_chunk(store, layout, (0, 0))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert read_chunk(store, layout, (1, 1)) == entries["values/c/1/1"]


def test_chunks_are_numbered_in_the_order_of_the_array():
    layout = ArrayLayout("density", (5, 8, 3), (2, 3, 1), np.dtype("float32"))
    assert [layout.index_of(number) for number in range(layout.chunk_count)] == list(np.ndindex(layout.chunk_grid))
    assert list(layout.chunk_indices()) == list(np.ndindex(layout.chunk_grid))
