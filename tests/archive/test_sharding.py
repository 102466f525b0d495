"""Arrays of many chunks, which are stored several in a file."""

import functools
import itertools
import math
import os
import shutil
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import assert_equal, assert_same_bits, from_parts, parts
from workbench import backend
from workbench.archive import Damaged, array_files, assembling, encoded, sharding
from workbench.archive.certificate import summed
from workbench.archive.layout import ArrayLayout
from workbench.archive.members import nbytes_in_zip
from workbench.archive.sharding import ShardIndex, crc32c, end_of
from workbench.archive.store import DirectoryStore, MemoryStore
from workbench.archive.writing import Draft
from workbench.data.chunked import ChunkedParticles
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.enforce import Figures
from workbench.slabs import boxes_of

FLOAT = np.dtype("float32")
KEY = "values/c/2"


# Which chunks are together.

@given(st.lists(st.integers(1, 2000), min_size=1, max_size=4))
def test_an_array_has_at_most_1024_files_of_whole_rows_of_chunks(grid):
    together = boxes_of(grid, 1024)
    files = math.prod(-(-count // n) for count, n in zip(grid, together, strict=True))
    assert files <= 1024
    assert (math.prod(together) == 1) == (math.prod(grid) <= 1024)
    assert files >= 128 or math.prod(grid) <= 1024   # no larger shards than are needed
    partial = [n < count for n, count in zip(together, grid, strict=True)]
    assert all(n == 1 for n in together[: max(itertools.chain([0], np.flatnonzero(partial)))])   # but for the last of these


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=3))
def test_every_chunk_has_a_slot_of_its_own(axes):
    shape, chunk, together = zip(*axes, strict=True)
    shards = tuple(size * n for size, n in zip(chunk, together, strict=True))
    layout = ArrayLayout("values", shape, chunk, FLOAT, shard_shape=shards)
    assert ArrayLayout.from_metadata("values", layout.metadata()) == layout
    found = {}
    for shard in layout.shard_indices():
        indices = list(layout.chunks_of(shard))
        assert [layout.slot_of(index) for index in indices] == np.flatnonzero(layout.slots(shard)).tolist()
        assert {layout.shard_of(index) for index in indices} == {shard}
        found |= {layout.chunk_key(index): index for index in indices}
    assert sorted(found.values()) == list(layout.chunk_indices())
    assert list(layout.file_keys()) == [layout.shard_key(shard) for shard in layout.shard_indices()]


@pytest.mark.parametrize(("shards", "complaint"), [
    ((3, 4), r"the shape of shards must be whole chunks of \(2, 4\); got \(3, 4\)"),
    ((2,), "the shape of shards must be whole chunks"),
    ((0, 4), "shard shape must be 1 to 5 positive integers"),
    ((2**22, 4), "a shard must have at most 1,048,576 chunks"),
])
def test_shards_of_other_shapes_are_refused(shards, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        ArrayLayout("values", (9, 9), (2, 4), FLOAT, shard_shape=shards)


def test_too_many_chunks_are_refused_before_any_work():
    with pytest.raises(WorkbenchError, match="must have at most 268,435,456 chunks; values has 536,870,912"):
        ArrayLayout("values", (2**29,), (1,), FLOAT)
    field = pytest.importorskip("dask.array").zeros(2**29, chunks=2**24).map_blocks(unread, dtype=float)
    with pytest.raises(WorkbenchError, match="an array must have at most 268,435,456 chunks; values has 536,870,912"):
        wb.compress(field, wb.Relative(0.1), "prequantised", chunk_values=1)
    with pytest.raises(WorkbenchError, match="at most 268,435,456 chunks; 536,870,912 particles in chunks of 1 have"):
        wb.compress(Unread(), wb.Absolute(0.1), chunk_values=3)


def test_the_document_does_not_grow_with_what_codecs_say_of_chunks():
    figures = [Figures(1, 0, 0, 0.0, f"reason {number % 500 or 'of many'}", 0) for number in range(10_000)]
    listed = summed([*figures, Figures(1, 0, 0, 0.0, "x" * 10_000, 0), *figures[:7]])["chunks_stored_exactly"]
    assert len(listed) == 33
    assert sum(listed.values()) == 10_008
    assert max(map(len, listed)) < 100
    options = wb.codecs.get("numcodecs", codec="zlib", options={"level": "x" * 2**22})
    with pytest.raises(WorkbenchError, match="the options of codec numcodecs must fit into 2,097,152 bytes as JSON"):
        wb.compress(np.zeros(9), wb.Absolute(0.1), options)


def unread(block):
    raise AssertionError("nothing is read")


class Unread(ChunkedParticles):
    """Particles that nobody may read."""

    name, box, dtype, dimensions, sizes = "some", 1.0, FLOAT, 3, (2**29,)

    def read(self, number):
        return unread(number)


# The end of a shard.

lengths = st.lists(st.one_of(st.none(), st.integers(1, 50)), min_size=1, max_size=9).filter(any)


@given(lengths, st.randoms())
def test_an_index_says_where_chunks_are(lengths, random):
    inside = np.array([length is not None for length in lengths])
    table = random.randbytes(4 * len(lengths))
    end = end_of(np.array([length or 0 for length in lengths]), table)
    begin = sum(filter(None, lengths))
    index = ShardIndex.of(end, KEY, begin, inside)
    assert index.checksums == table
    at = 0
    for slot, length in enumerate(lengths):
        if length is not None:
            assert index.place(slot) == (at, length)
            assert index.checksum(slot) == table[4 * slot : 4 * slot + 4]
            at += length


@given(st.binary(max_size=200))
def test_the_checksum_of_an_index_is_crc32c(data):
    assert crc32c(data) == pytest.importorskip("google_crc32c").value(data)


NUMBERS = [0, 1, 2, 3, 10, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]


@given(st.dictionaries(st.integers(0, 5), st.sampled_from(NUMBERS) | st.integers(0, 2**64 - 1), min_size=1))
def test_an_index_that_was_forged_with_its_checksum_is_refused(changes):
    """Chunks outside the file, overlapping, of no length, too long, missing, or beyond the array."""
    lengths, inside = np.array([3, 7, 0]), np.array([True, True, False])
    end = end_of(lengths, bytes(12))
    numbers = list(struct.unpack("<6Q", end[12:-4]))
    for place, number in changes.items():
        numbers[place] = number
    index = struct.pack("<6Q", *numbers)
    forged = bytes(12) + index + crc32c(index).to_bytes(4, "little")
    if forged == end:
        return
    with pytest.raises(Damaged, match=rf"chunk {KEY} is damaged: its index must state 2 chunks, one behind the other, of"):
        ShardIndex.of(forged, KEY, 10, inside)
    for other in (9, 11, 0, 2**40):
        with pytest.raises(Damaged, match="its index must state"):
            ShardIndex.of(end, KEY, other, inside)


# Archives in shards: small ones have them here, too.

@pytest.fixture(autouse=True)
def few_files(monkeypatch):
    monkeypatch.setattr(sharding, "MOST_FILES", 4)


@functools.cache
def made(name):
    """An original, and its archive; shards do not divide the chunks evenly."""
    swarm, kept = samples.particles(500), {"velocities": wb.Absolute(1), "store_permutation": True, "chunk_values": 90}
    values = samples.field((9, 33, 17))
    field = wb.Field(values, mask=values > 150)
    with samples.in_shards():
        if name == "field":
            return field, wb.compress(field, wb.Absolute(0.1), "prequantised", chunk_values=60)
        return swarm, wb.compress(swarm, wb.Absolute(0.01), order=name, **kept)


NAMES = ["keep", "free", "field"]


@pytest.fixture(params=NAMES)
def case(request):
    return made(request.param)


def region_of(archive):
    return [(2, 7), (5, 30), (1, 16)] if archive.kind == "field" else [(0, 6)] * 3


@pytest.mark.long_with("field")
def test_the_same_shards_are_in_memory_in_folders_and_in_zip_files(case, tmp_path):
    original, archive = case
    assert sum(stored.layout.shard_shape is not None for stored in archive.arrays.values()) >= 2
    assert all(stored.layout.shard_count <= 4 for stored in archive.arrays.values())
    assert set(parts(archive)) == set(archive._keys)
    expected = archive.read(region_of(archive))
    for suffix in (".zarr", ".zip"):
        again = wb.open(archive.save(tmp_path / f"a{suffix}"))
        assert parts(again) == parts(archive)
        assert again.nbytes == archive.nbytes == nbytes_in_zip(parts(again))
        assert again.damage() == []
        assert again.verify().passed
        assert again.verify(original).passed
        assert_equal(again.decompress(), archive.decompress())
        assert_equal(again.read(region_of(archive)), expected)
        assert_equal(again.salvage()[0], archive.decompress())


@pytest.mark.long_with("field")
def test_shards_hold_the_chunks_of_an_archive_without_them(case, monkeypatch):
    original, archive = case
    monkeypatch.setattr(sharding, "MOST_FILES", 2**10)
    options = {"chunk_values": 60} if archive.kind == "field" else {
        "velocities": wb.Absolute(1), "store_permutation": True, "chunk_values": 90, "order": archive.attributes["order"]}
    apart = wb.compress(original, archive.certificate[archive.data.layout.name].bound, archive.codec, **options)
    for name, stored in apart.arrays.items():
        assert stored.layout.shard_shape is None
        together = archive.arrays[name]
        for index in stored.layout.chunk_indices():
            chunk = apart.store.read(stored.layout.chunk_key(index))
            assert assembling.stored_chunk(archive.store, together.layout, index) == chunk


def test_zarr_and_xarray_read_shards_region_by_region(case, tmp_path):
    zarr, xarray = pytest.importorskip("zarr"), pytest.importorskip("xarray")
    _, archive = case
    path = archive.save(tmp_path / "a.zarr")
    group, random = zarr.open_group(path, mode="r"), np.random.default_rng(0)
    for name, stored in archive.arrays.items():
        array, values = group[name], stored.values()
        assert (array.chunks, array.shards) == (stored.layout.chunk_shape, stored.layout.shard_shape)
        assert_same_bits(array[...], values)
        for _ in range(8):
            ends = [np.sort(random.choice(size + 1, 2, replace=False)) for size in values.shape]
            region = tuple(slice(*map(int, pair)) for pair in ends)
            assert_same_bits(array[region], values[region])
    assert_same_bits(xarray.open_zarr(path, chunks=None)["extents" if "extents" in archive.arrays else "mask"].values,
                     archive.arrays["extents" if "extents" in archive.arrays else "mask"].values())


def test_more_than_1024_chunks_make_shards(monkeypatch, tmp_path):
    monkeypatch.undo()
    values = samples.field((1025,))
    archive = wb.compress(values, wb.Absolute(0.1), "pcodec", chunk_values=1)
    layout = archive.data.layout
    assert (layout.chunk_count, layout.shard_shape, layout.shard_count) == (1025, (3,), 342)
    assert ArrayLayout("values", (1024,), (1,), FLOAT).in_shards().shard_shape is None
    for suffix in (".zarr", ".zip"):
        again = wb.open(archive.save(tmp_path / f"a{suffix}"))
        assert parts(again) == parts(archive)
    assert again.verify(values).passed


class Seen(DirectoryStore):
    """Counts what is read."""

    def __init__(self, path):
        super().__init__(path)
        self.reads = []

    def read(self, key, begin=0, size=None, most=None):
        self.reads.append((key, begin, size))
        return super().read(key, begin, size, most)


@pytest.mark.parametrize("name", ["free", "field"])
def test_a_region_is_read_from_the_shards_that_hold_it(name, tmp_path, monkeypatch):
    archive = made(name)[1]
    path = archive.save(tmp_path / "a.zarr")
    monkeypatch.setattr(os, "scandir", None)   # nothing is listed
    store = Seen(path)
    again = wb.Archive(store)
    assert all("/c/" not in key for key, *_ in store.reads)
    found = again.read([(0, 2)] * 3 if name == "field" else [(0, 0.5)] * 3)
    assert len(found.values if name == "field" else found) > 0
    main = again.data.layout
    touched = [read for read in store.reads if read[0].startswith(f"{main.name}/c/")]
    files = {key for key, *_ in touched}
    assert len(files) < main.shard_count
    ends = [read for read in touched if read[2] == sharding.end_bytes(math.prod(main.chunks_in_shard))]
    assert len(ends) == len(files)   # the index of each is read once
    assert len(touched) < len(files) + main.chunk_count / 2
    assert len(again.data.shards) == len(files)


def test_indexes_are_remembered_in_a_bounded_number(monkeypatch, tmp_path):
    monkeypatch.setattr(sharding, "MOST_FILES", 30)
    archive = wb.compress(samples.field((100,)), wb.Absolute(0.1), "prequantised", chunk_values=1)
    assert archive.data.layout.shard_count == 25
    archive.decompress()
    assert len(archive.data.shards) == 16


# Damage.

def lost(archive):
    """What a salvage of particles in order, or of a field, has lost, as a set of chunks of the main array."""
    rest, damage = archive.salvage()
    return rest, {found.where for found in damage}


def changed(data, at, count=1):
    return data[:at] + bytes(byte ^ 0xFF for byte in data[at : at + count]) + data[at + count :]


@pytest.fixture
def plain():
    """A field in 3 shards of chunks in a row, of which the last is not full; with its parts."""
    values = samples.field((10, 11))
    archive = wb.compress(values, wb.Absolute(0.1), "prequantised", chunk_values=10)
    layout = archive.data.layout
    assert (layout.chunk_grid, layout.shard_grid) == ((4, 4), (4, 1))
    return values, archive, parts(archive)


def test_a_damaged_chunk_costs_that_chunk_alone(plain):
    values, archive, entries = plain
    index = array_files.read_index(archive.store, archive.data.layout, (1, 0))
    begin, size = index.place(2)
    for at in (begin, begin + size // 2, begin + size - 1):
        spoiled = from_parts({**entries, "values/c/1/0": changed(entries["values/c/1/0"], at)})
        assert [found.where for found in spoiled.damage()] == ["values/c/1/0.2"]
        assert "chunk values/c/1/0.2 is damaged: " in str(spoiled.damage()[0])
        rest, damage = spoiled.salvage()
        assert [found.where for found in damage] == ["values/c/1/0.2"]
        gone = np.zeros(values.shape, bool)
        gone[archive.data.layout.chunk_slices((1, 2))] = True
        np.testing.assert_array_equal(rest.mask, gone)
        assert_same_bits(rest.values[~gone], archive.decompress().values[~gone])
        assert_equal(spoiled.read([(0, 10), (0, 6)]), archive.read([(0, 10), (0, 6)]))
        with pytest.raises(GuaranteeBroken, match=r"1 of 16 chunks are damaged, .*: values/c/1/0\.2: "):
            spoiled.verify()
        with pytest.raises(Damaged, match=r"values/c/1/0\.2"):
            spoiled.decompress()


@pytest.mark.parametrize(("how", "said"), [
    (lambda data: changed(data, len(data) - 30), "the index of its 4 chunks fails its checksum"),
    (lambda data: changed(data, len(data) - 1), "the index of its 4 chunks fails its checksum"),
    (lambda data: changed(data, len(data) - 70), "the table of its 4 chunks is damaged, or not the one that was"),
    (lambda data: data[:-1], "the index of its 4 chunks fails its checksum"),
    (lambda data: data[: len(data) // 2], "the index of its 4 chunks fails its checksum"),
    (lambda data: data[-84:], "its index must state 4 chunks, one behind the other, of 0 bytes in all"),
    (lambda data: data[-83:], "the index of its 4 chunks takes 84 bytes; it has 83"),
    (lambda data: b"\0" + data, "its index must state 4 chunks, one behind the other"),
    (None, "it is missing from the archive in memory"),
])
def test_a_damaged_index_or_table_costs_that_shard_alone(plain, how, said):
    values, archive, entries = plain
    others = {key: data for key, data in entries.items() if key != "values/c/1/0"}
    spoiled = from_parts(others if how is None else {**others, "values/c/1/0": how(entries["values/c/1/0"])})
    (found,) = spoiled.damage()
    assert (found.where, found.reason[: len(said)]) == ("values/c/1/0", said)
    rest, damage = spoiled.salvage()
    assert [found.where for found in damage] == ["values/c/1/0"]
    gone = np.zeros(values.shape, bool)
    gone[3:6] = True
    np.testing.assert_array_equal(rest.mask, gone)
    assert_same_bits(rest.values[~gone], archive.decompress().values[~gone])
    assert_equal(spoiled.read([(0, 3), None]), archive.read([(0, 3), None]))
    for ask in (spoiled.verify, functools.partial(spoiled.verify, values)):
        with pytest.raises(GuaranteeBroken, match=r"4 of 16 chunks are damaged, .*: values/c/1/0: "):
            ask()


def test_shards_and_chunks_in_each_others_places_are_found(plain):
    _, _, entries = plain
    swapped = {**entries, "values/c/1/0": entries["values/c/2/0"], "values/c/2/0": entries["values/c/1/0"]}
    assert [found.where for found in from_parts(swapped).damage()] == ["values/c/1/0", "values/c/2/0"]


def test_a_chunk_of_another_archive_is_not_the_one_that_was_written(plain):
    """Even with an index that fits: its checksum is not that of the table."""
    values, archive, entries = plain
    other = wb.compress(values + 1, wb.Absolute(0.1), "prequantised", chunk_values=10)
    layout, key = archive.data.layout, "values/c/1/0"
    own, theirs = (
        [assembling.stored_chunk(made.store, layout, index) for index in layout.chunks_of((1, 0))]
        for made in (archive, other)
    )
    chunks = [*own[:1], *theirs[1:2], *own[2:]]
    table = array_files.read_index(archive.store, layout, (1, 0)).checksums
    forged = b"".join(chunks) + end_of(np.array([len(chunk) for chunk in chunks]), table)
    (found,) = from_parts({**entries, key: forged}).damage()
    assert (found.where, found.reason[:42]) == ("values/c/1/0.1", "it is intact, but not the one that was wri")


def test_shards_claim_no_more_chunks_than_their_bytes_can_hold():
    layout = ArrayLayout("a", (2**25,), (1,), FLOAT, shard_shape=(2**20,))
    store = MemoryStore({"a/c/0": bytes(2**10)})
    tracemalloc.start()
    with pytest.raises(WorkbenchError, match=r"a in .* claims 33,554,432 chunks; only 51 are present"):
        array_files.require_plausible(layout, store)
    with pytest.raises(Damaged, match="the index of its 1,048,576 chunks takes 20,971,524 bytes; it has 1,024"):
        array_files.read_index(store, layout, (0,))
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()
    array_files.require_plausible(layout, MemoryStore({f"a/c/{number}": bytes(2**24) for number in range(1)}))


# Putting shards together.

class Killed(BaseException):
    """The process is gone."""


def killing(patch, moment):
    """Kill at the n-th step of putting shards together: while one is written, after it has its name, before a removal."""
    seen = itertools.count()

    def unless(call):
        def step(*given):
            if next(seen) == moment:
                raise Killed
            return call(*given)
        return step

    patch.setattr(assembling, "end_of", unless(assembling.end_of))
    patch.setattr(Draft, "remove", unless(Draft.remove))
    patch.setattr(assembling, "checksum_of_table", unless(assembling.checksum_of_table))


@pytest.mark.long_with("particles")
@pytest.mark.parametrize("kind", ["particles", pytest.param("field", marks=pytest.mark.long)])
def test_a_run_that_was_killed_while_shards_are_put_together_goes_on(kind, tmp_path, monkeypatch):
    swarm = wb.Particles(samples.particles(80).positions, 10.0)
    field = wb.Field(samples.field((8, 8)), mask=samples.field((8, 8)) > 100)
    source, options = (swarm, {"parts": 1, "chunk_values": 30}) if kind == "particles" else (field, {"chunk_values": 8})
    stride = 1 if kind == "particles" else 5
    compress = functools.partial(wb.compress, source, wb.Absolute(0.1), **options)
    expected, out = parts(compress(out=tmp_path / "whole.zarr")), tmp_path / "a.zarr"
    chunks = []
    assert any(".1" not in key and "/c/" in key for key in expected)
    real = encoded.encode_values
    monkeypatch.setattr(encoded, "encode_values", lambda *given: chunks.append(1) or real(*given))
    moment, finished = 0, False
    with backend.using_threads(1):
        while not finished:
            with pytest.MonkeyPatch.context() as patch:
                killing(patch, moment)
                try:
                    compress(out=out)
                    finished = True
                except Killed:
                    assert not out.exists()
            if not finished:
                before = len(chunks)
                compress(out=out)
                assert len(chunks) == before, moment   # nothing is encoded again
            assert parts(wb.open(out)) == expected
            assert not [path.name for path in tmp_path.rglob(".*")]
            shutil.rmtree(out)
            moment += stride
    assert moment > 10


def test_two_workers_may_put_one_shard_together_at_once(tmp_path):
    archive = made("free")[1]
    layout = archive.data.layout
    chunks = {layout.chunk_key(index): assembling.stored_chunk(archive.store, layout, index)
              for index in layout.chunks_of((1, 0))}
    for number in range(20):
        draft = Draft(tmp_path / f"{number}.zarr")
        for key, data in chunks.items():
            draft.put(key, data)
        with ThreadPoolExecutor(4) as pool:
            found = set(pool.map(lambda _, place=draft: assembling._assembled((place, layout), (1, 0)), range(8)))
        assert found == {archive.data.checksums[1]}
        assert files(draft.partial) == {"positions/c/1/0": archive.store.read("positions/c/1/0")}
        draft.discard()


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_workers_put_shards_together(tmp_path):
    distributed = pytest.importorskip("distributed")
    original, archive = made("free")
    options = {"velocities": wb.Absolute(1), "store_permutation": True, "chunk_values": 90, "order": "free", "parts": 3}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        out = wb.compress(original, wb.Absolute(0.01), out=tmp_path / "a.zarr", client=client, **options)
        assert out.verify(original, client=client).passed
    assert parts(out) == parts(archive) == files(tmp_path / "a.zarr")

