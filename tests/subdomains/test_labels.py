"""Labels of groups as Dask users take them: arrays in chunks, steps that read one chunk, Zarr arrays."""

import gc
import os
import pickle

import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory
from workbench.errors import WorkbenchError
from workbench.subdomains.by_chunk import ByChunk
from workbench.subdomains.exchange import Exchange

da = pytest.importorskip("dask.array", reason="needs the dask extra")
delayed = pytest.importorskip("dask").delayed
zarr = pytest.importorskip("zarr", reason="needs the io extra")
WEB = wb.synthetic.cosmic_web(n=16, seed=7)
SIZES = (1000, 1, 2000, 1095)
LABELS = wb.friends_of_friends(WEB).labels


def search(client=None, **options):
    source = ParticlesInMemory(wb.Particles(WEB.positions, WEB.box), SIZES)
    return wb.friends_of_friends(source, client=client, parts=5, **options)


@pytest.mark.parametrize("on_workers", [False, True])
def test_labels_are_a_dask_array_in_the_chunks_of_the_source(on_workers, request):
    client = request.getfixturevalue("client") if on_workers else None
    with search(client) as groups:
        labels = groups.labels
        assert (labels.chunks, labels.dtype, labels.shape) == ((SIZES,), np.int64, (4096,))
        compute = client.compute if on_workers else lambda lazy: lazy.persist(scheduler="synchronous")
        for chosen in (slice(None), slice(999, 1003), slice(5, 4000, 7), slice(3, 3), slice(None, None, -3), [5, 2, 4000]):
            found = compute(labels[chosen])
            np.testing.assert_array_equal(found.result() if on_workers else found.compute(), LABELS[chosen])
        one = delayed(groups.chunk)(2)
        found = client.compute(one).result() if on_workers else one.compute()
        np.testing.assert_array_equal(found, LABELS[1001:3001])


def test_a_large_array_is_sent_once_and_not_with_each_chunk():
    with search() as groups:
        graph = dict(groups.labels.dask)
        sizes = sorted(len(pickle.dumps(task)) for task in graph.values())
    assert len(graph) == len(SIZES) + 1
    assert all(size < 1000 for size in sizes[:-1])


def test_an_array_of_labels_keeps_the_files_until_it_is_gone(tmp_path):
    labels = search(scratch=tmp_path).labels
    gc.collect()
    np.testing.assert_array_equal(labels.compute(scheduler="synchronous"), LABELS)
    del labels
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_copies_read_the_files_and_leave_them(tmp_path):
    with search(scratch=tmp_path) as groups:
        copy = pickle.loads(pickle.dumps(groups))
        assert (copy.parts, copy.ghosts, len(copy)) == (groups.parts, groups.ghosts, len(groups))
        copy.close()
        del copy
        gc.collect()
        np.testing.assert_array_equal(groups.gathered().labels, LABELS)
        labels = groups.labels
    with pytest.raises(WorkbenchError, match="these groups were closed"):
        labels.compute(scheduler="synchronous")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_leaves_the_files(tmp_path):
    with search(scratch=tmp_path) as groups:
        if not (child := os.fork()):
            try:
                groups.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        np.testing.assert_array_equal(groups.gathered().labels, LABELS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("on_workers", [False, True])
def test_labels_become_a_zarr_array(tmp_path, request, on_workers):
    with search(request.getfixturevalue("client") if on_workers else None) as groups:
        found = zarr.open_array(groups.to_zarr(tmp_path / "labels.zarr"), mode="r")
        assert (found.chunks, found.dtype) == ((2000,), np.int64)
        assert found.attrs["linking_length"] == groups.linking_length
        np.testing.assert_array_equal(found[:], LABELS)
        with pytest.raises(WorkbenchError, match=r"labels\.zarr exists: choose another name"):
            groups.to_zarr(tmp_path / "labels.zarr")
    assert os.listdir(tmp_path) == ["labels.zarr"]


def test_particles_that_no_file_names_are_noticed(monkeypatch):
    def all_but_one(read):
        return lambda *given: list(read(*given))[1:]

    monkeypatch.setattr(Exchange, "owners", all_but_one(Exchange.owners))
    monkeypatch.setattr(ByChunk, "read", all_but_one(ByChunk.read))
    source = ParticlesInMemory(wb.Particles(WEB.positions, WEB.box), SIZES)
    message = r"must have a label for each of the [\d,]+ particles in chunk 1; [\d,]+ have none"
    for parts in (5, 20):
        with wb.friends_of_friends(source, parts=parts) as groups, pytest.raises(WorkbenchError, match=message):
            groups.chunk(0)
    keep = wb.KeepClusters(groups.linking_length, unit="length")
    with pytest.raises(WorkbenchError, match=message):
        wb.compress(source, wb.Absolute(0.01), keep=keep, parts=4)


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with search(scratch=tmp_path) as groups:
        with pytest.raises(WorkbenchError, match=r"no/labels\.zarr cannot be written: No such file"):
            groups.to_zarr(tmp_path / "no" / "labels.zarr")
        for labels in groups._labels.folder.glob("label-own-*"):
            labels.unlink()
        with pytest.raises(WorkbenchError, match=r"label-own-\d\.npy cannot be read .*\(write-labels, chunk 1 of 3\)"):
            groups.to_zarr(tmp_path / "labels.zarr")
    assert not list(tmp_path.iterdir())
