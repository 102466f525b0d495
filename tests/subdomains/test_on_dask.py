"""The same groups on the workers of a real cluster, whatever happens to them."""

import os

import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError

distributed = pytest.importorskip("distributed")
SNAPSHOT = wb.synthetic.cosmic_web(n=24, seed=7)


@pytest.fixture(scope="module")
def client():
    """A cluster that exists, named by LOSSBENCH_SCHEDULER, or two workers of this machine."""
    if address := os.environ.get("LOSSBENCH_SCHEDULER"):
        with distributed.Client(address) as found:
            yield found
        return
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit="1GiB"
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.mark.parametrize("parts", [1, 5, 16])
def test_workers_find_the_groups_of_one_process(client, parts):
    expected = wb.friends_of_friends(SNAPSHOT)
    source = ParticlesInMemory(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), even_sizes(len(SNAPSHOT), 2000))
    with wb.distributed.friends_of_friends(source, client=client, parts=parts) as found:
        np.testing.assert_array_equal(found.gathered().labels, expected.labels)
        assert found.count(20) == expected.count(20)


class Unreadable(ParticlesInMemory):
    """A source with a chunk that cannot be read."""

    def read(self, number):
        if number == 3:
            raise OSError("input/output error")
        return super().read(number)


def test_a_chunk_that_cannot_be_read_is_named(client):
    source = Unreadable(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), even_sizes(len(SNAPSHOT), 2000))
    with pytest.raises(WorkbenchError, match="chunk 4 of 7 of particles in memory cannot be read: input/output error"):
        wb.distributed.friends_of_friends(source, 0.3, "length", client, parts=3)


class Deadly(ParticlesInMemory):
    """A source whose fourth chunk kills the first process that reads it."""

    def read(self, number):
        mark = self.name
        if number == 3 and os.path.exists(mark):
            os.remove(mark)
            os._exit(1)
        return super().read(number)


def test_a_worker_that_dies_changes_nothing(client, tmp_path):
    (tmp_path / "once").touch()
    source = Deadly(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), even_sizes(len(SNAPSHOT), 2000), str(tmp_path / "once"))
    expected = wb.friends_of_friends(SNAPSHOT)
    client.wait_for_workers(2, timeout=60)
    with wb.distributed.friends_of_friends(source, client=client, parts=4) as found:
        np.testing.assert_array_equal(found.gathered().labels, expected.labels)
    assert not (tmp_path / "once").exists()
    client.wait_for_workers(2, timeout=60)


def test_a_scratch_folder_that_workers_do_not_see_is_refused(client, tmp_path, monkeypatch):
    monkeypatch.setattr(type(client), "run", lambda self, function: dict.fromkeys(self.nthreads(), False))
    with pytest.raises(WorkbenchError, match="must be on a file system that all workers see"):
        wb.distributed.friends_of_friends(SNAPSHOT, client=client, scratch=tmp_path)
    assert not list(tmp_path.iterdir())


def test_workers_keep_clusters_and_verify_them(client, tmp_path):
    snapshot = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)
    request = {"bound": wb.Absolute(0.02), "keep": wb.KeepClusters(0.2), "order": "free", "chunk_values": 12_000}
    wb.compress(snapshot, **request).save(tmp_path / "one.zarr")
    wb.distributed.compress(snapshot, **request, out=tmp_path / "many.zarr", client=client, parts=3)
    parts = [path for path in (tmp_path / "one.zarr").rglob("*") if path.is_file()]
    assert len(parts) > 5
    for path in parts:
        assert (tmp_path / "many.zarr" / path.relative_to(tmp_path / "one.zarr")).read_bytes() == path.read_bytes()
    assert wb.distributed.verify(tmp_path / "many.zarr", snapshot, client, parts=2).passed


def test_an_archive_in_memory_is_refused(client):
    with pytest.raises(WorkbenchError, match="save it first"):
        wb.distributed.verify(wb.compress(SNAPSHOT, wb.Absolute(0.02)), client=client)
