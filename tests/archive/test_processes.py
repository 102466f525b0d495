"""Archives and their parts cross to other processes, and any number of threads may read one."""

import copy
import dataclasses
import multiprocessing
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.samples import assert_equal, assert_same_bits, parts
from workbench import codecs
from workbench.archive import encoding, request
from workbench.archive.encoding import Part, Task, layout_for
from workbench.archive.key import ROOT
from workbench.archive.reading import REMEMBERED
from workbench.archive.writing import Draft
from workbench.guarantees import Limit

BOUND = wb.Absolute(0.1)
CORNER = [(0, 5)] * 3


def archives():
    swarm = samples.particles(300)
    return {
        "free": wb.compress(swarm, wb.Absolute(0.01), order="free", chunk_values=150, store_permutation=True),
        "kept": wb.compress(swarm, wb.Absolute(0.01), velocities=wb.Relative(0.01)),
        "clusters": wb.compress(swarm, wb.Absolute(0.05), keep=wb.KeepClusters(0.2)),
        "field": wb.compress(wb.Field(samples.field(), mask=samples.field() > 60), wb.Absolute(0.1), chunk_values=100),
    }


ARCHIVES = archives()


def described(archive):
    """What another process finds in an archive."""
    return archive.nbytes, archive.verify().to_dict(), {name: s.values().tobytes() for name, s in archive.arrays.items()}


@pytest.mark.parametrize("name", sorted(ARCHIVES))
@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_an_archive_is_copied_with_everything_even_after_use(name, copied):
    archive = ARCHIVES[name]
    archive.read(CORNER if archive.kind == "particles" else [(0, 5), None])   # opened streams are views, and stay behind
    again = copied(archive)
    assert parts(again) == parts(archive)
    assert_equal(again.decompress(), archive.decompress())
    assert repr(again) == repr(archive)


def test_archives_on_disk_are_read_by_other_processes(tmp_path):
    opened = [
        wb.open(archive.save(tmp_path / f"{name}{suffix}"))
        for name, archive in sorted(ARCHIVES.items()) for suffix in (".zarr", ".zip")
    ]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(described, opened)
    assert found == [described(archive) for archive in opened]


def test_tasks_and_encoded_arrays_cross_to_other_processes():
    values = np.random.default_rng(0).random((100, 3))
    order = np.random.default_rng(0).permutation(100).astype(np.int32)
    codec = codecs.Columns(codecs.get("prequantised"))
    for places in (None, order):
        layout = layout_for("positions", values.shape, values.dtype, (40, 3), codec)
        given = Task(layout, codec, wb.Absolute(0.1), Limit("absolute", 0.1)), Part(values, places)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            (theirs,) = pool.starmap(encoding.encode, [given])
        ours = encoding.encode(*copy.deepcopy(given))
        assert list(theirs.entries()) == list(ours.entries())
        assert theirs.layout == ours.layout


def put_chunk(given):
    """What a worker does: encode one chunk, and write it."""
    draft, task, part, index = given
    chunk = encoding.encode_values(task, part(task.layout.chunk_slices(index)))
    draft.put(task.layout.chunk_key(index), chunk.data.data)
    return dataclasses.replace(chunk, data=chunk.data._replace(data=b""))


@pytest.mark.parametrize("suffix", [pytest.param(".zarr", marks=pytest.mark.long), ".zip"])
def test_an_archive_that_several_processes_write_has_the_same_bytes(tmp_path, suffix):
    values = samples.field((40, 50), np.float64)
    archive = wb.compress(values, wb.Absolute(0.1), "prequantised", chunk_values=200)
    limit, layout = Limit("absolute", 0.1), archive.data.layout
    own = layout_for("values", values.shape, values.dtype, layout.chunk_shape, archive.codec)
    task = Task(own, archive.codec, BOUND, limit)
    draft = Draft(tmp_path / f"theirs{suffix}")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        chunks = pool.map(put_chunk, [(draft, task, Part(values), index) for index in layout.chunk_indices()])
    array = encoding.assembled(task, chunks)
    described = {key: archive.attributes.get(key) for key in ("kind", "spacing", "name")}
    documents = request.documents_for([array], described, archive.codec, {})
    for key, data in documents.items():
        if key != ROOT:
            draft.put(key, data)
    theirs, ours = draft.commit(documents[ROOT]), archive.save(tmp_path / f"ours{suffix}")
    assert parts(wb.open(theirs)) == parts(wb.open(ours)) == parts(archive)
    assert theirs.is_dir() or theirs.read_bytes() == ours.read_bytes()


@pytest.mark.parametrize("name", codecs.available())
def test_codecs_cross_to_other_processes(name):
    for codec in (codecs.get(name), codecs.Columns(codecs.get(name)) if name != "lattice" else codecs.get(name)):
        assert pickle.loads(pickle.dumps(codec)) == codec == copy.deepcopy(codec)


def test_threads_read_regions_of_one_archive_at_once():
    archive = wb.compress(samples.particles(3000), wb.Absolute(0.01), order="free", chunk_values=150)
    assert archive.data.layout.chunk_count > 2 * REMEMBERED
    regions = [[(i % 7, i % 7 + 3)] * 3 for i in range(120)]
    expected = [archive.read(region).positions for region in regions]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda region: archive.read(region).positions, regions))
    finally:
        sys.setswitchinterval(before)
    for ours, theirs in zip(expected, found, strict=True):
        assert_same_bits(ours, theirs)
    assert len(archive.data.opened) <= REMEMBERED
