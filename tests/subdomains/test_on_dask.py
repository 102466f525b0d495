"""The same groups on the workers of a real cluster, and what is refused before any work."""

import json
import operator
import os
import time

import numpy as np
import pytest

import workbench as wb
from workbench import backend
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run import clients, executors
from workbench.run.code import own_code

dask = pytest.importorskip("dask", reason="needs the dask extra")
key_split = pytest.importorskip("dask.utils").key_split
SNAPSHOT = wb.synthetic.cosmic_web(n=24, seed=7)


@pytest.mark.parametrize("parts", [1, 5, 16])
def test_workers_find_the_groups_of_one_process(client, parts):
    expected = wb.friends_of_friends(SNAPSHOT)
    source = ParticlesInMemory(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), even_sizes(len(SNAPSHOT), 2000))
    with wb.friends_of_friends(source, client=client, parts=parts) as found:
        np.testing.assert_array_equal(found.gathered().labels, expected.labels)
        assert found.count(20) == expected.count(20)


def test_a_cluster_is_found_by_its_address_or_its_scheduler_file(client, tmp_path):
    (tmp_path / "scheduler.json").write_text(json.dumps({"address": client.scheduler.address}))
    for given in (client.scheduler.address, tmp_path / "scheduler.json"):
        with wb.friends_of_friends(SNAPSHOT, client=given) as found:
            assert found.gathered().equals(wb.friends_of_friends(SNAPSHOT))


def test_a_client_that_an_address_has_opened_is_no_default_and_ends_with_the_result(client, tmp_path):
    before, scheduler = connections(client), dask.config.get("scheduler", None)
    found = wb.friends_of_friends(SNAPSHOT, client=client.scheduler.address)
    assert dask.config.get("scheduler", None) == scheduler
    found.catalogue()
    assert connections(client) == before + 1
    del found
    wb.compress(SNAPSHOT, wb.Absolute(0.01), out=tmp_path / "a.zarr", client=client.scheduler.address)
    end = time.monotonic() + 30
    while connections(client) > before and time.monotonic() < end:
        time.sleep(0.05)
    assert connections(client) == before


def connections(client):
    return client.run_on_scheduler(lambda dask_scheduler: sum("Client-" in name for name in dask_scheduler.clients))


def test_more_workers_than_subdomains_and_empty_subdomains(client):
    for positions in (np.full((500, 3), 0.25), np.repeat([[0.2, 0.2], [0.8, 0.8]], 300, axis=0)):
        particles = wb.Particles(positions, box=1.0)
        source = ParticlesInMemory(particles, even_sizes(len(particles), 499))
        for parts in (1, 9):
            with wb.friends_of_friends(source, 0.1, "length", client, parts=parts) as found:
                assert found.gathered().equals(wb.friends_of_friends(particles, 0.1, "length"))


def test_steps_have_readable_names_and_tell_their_progress(client):
    told = []
    with wb.friends_of_friends(
        SNAPSHOT, client=client, parts=3, progress=lambda *now: told.append(now)
    ) as found:
        found.catalogue()
    searching = ["sample particles", "send particles", "find groups", "compare labels", "merge labels"]
    steps = [*searching, "send columns", "measure groups", "join groups"]
    assert list(dict.fromkeys(what for _, what in told)) == steps
    for step in steps:
        shares = [share for share, what in told if what == step]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0, 1)
    names = [step.replace(" ", "-") for step in steps]
    assert [key_split(f"{name}-deadbeef-3") for name in names] == names
    assert set(names) <= client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))


def test_rounds_do_not_depend_on_the_groups(client):
    """A filament through every subdomain takes as many steps as none."""
    count = 2000
    chain = wb.Particles(np.stack([np.linspace(0, 0.9995, count), np.full(count, 0.5)], axis=1), box=1.0)
    rounds = []
    for length in (0.0001, 0.0006):
        told = []
        with wb.friends_of_friends(
            chain, length, "length", client, parts=6, progress=lambda *now, told=told: told.append(now)
        ) as found:
            rounds.append(len({what for _, what in told}))
            assert found.count(2) == (length > 0.0005)
    assert rounds == [5, 5]


def test_a_scratch_folder_that_workers_do_not_see_is_refused(client, tmp_path, monkeypatch):
    monkeypatch.setattr(clients, "_can_write", lambda token: False)
    with pytest.raises(WorkbenchError, match=r"that all workers see and may write to; \d of \d cannot"):
        wb.friends_of_friends(SNAPSHOT, client=client, scratch=tmp_path)
    assert not list(tmp_path.iterdir())


def unlike(**different):
    return lambda dask_worker: {"version": wb.__version__, "code": own_code(), "trouble": None} | different


def missing(dask_worker):
    raise ModuleNotFoundError("No module named 'workbench'")


@pytest.mark.parametrize(("state", "told"), [
    (unlike(version="0.0.7", code="c0ffee"), r"has lossbench 0\.0\.7 with other code \(hash c0ffee\) than this process"),
    (unlike(trouble="the compiled kernels are missing (_host.so)"), "cannot work: the compiled kernels are missing"),
    (missing, "has no lossbench of this version .*No module named 'workbench'"),
])
def test_workers_with_other_code_are_refused_before_any_work(client, tmp_path, monkeypatch, state, told):
    monkeypatch.setattr(clients, "_state", state)
    with pytest.raises(WorkbenchError, match=told):
        wb.friends_of_friends(tmp_path / "not-even-read.npy", client=client)


def test_a_worker_without_kernels_says_so(client, monkeypatch):
    """The real check, on a worker whose compiled kernels are gone."""
    def forget(to):
        os.environ["LOSSBENCH_HOST_LIBRARY"] = to
        backend._library.cache_clear()

    def restore():
        os.environ.pop("LOSSBENCH_HOST_LIBRARY")
        backend._library.cache_clear()

    one = list(client.nthreads())[:1]
    client.run(forget, "/nowhere/_host.so", workers=one)
    try:
        with pytest.raises(WorkbenchError, match=r"cannot work: the compiled kernels are missing \(_host\.so\)"):
            wb.friends_of_friends(SNAPSHOT, client=client)
    finally:
        client.run(restore, workers=one)


def test_a_worker_that_joins_with_other_code_runs_nothing():
    refusal = executors._checked("c0ffee", len, [1])
    assert "joined later runs other code" in str(refusal.error)
    assert executors._checked(own_code(), len, [1]) == 1


def test_more_items_than_are_sent_at_once_keep_their_order(client):
    count = 3 * executors.AHEAD * sum(client.nthreads().values()) + 1
    told = []
    found = executors.OnDask(client, lambda *now: told.append(now)).map("negate", operator.neg, range(count))
    assert found == [-number for number in range(count)]
    assert len(told) == count + 1
    assert executors.OnDask(client).map("negate", operator.neg, []) == []


def halved(number):
    if number == 777:
        raise WorkbenchError("777 is odd")
    return 1 / (number - 555) if number == 555 else number / 2


def test_a_task_has_several_of_very_many_items_and_its_errors_name_theirs(client):
    told = []
    executor = executors.OnDask(client, lambda share, name: told.append(share))
    assert executor.map("halve", halved, range(500)) == [number / 2 for number in range(500)]
    assert (len(told) < 150, told == sorted(told), told[-1]) == (True, True, 1)
    for first, message in (
        (500, "halve failed on the cluster at item 56 of 1000: ZeroDivisionError: division by zero"),
        (600, r"777 is odd \(halve, item 178 of 1000\)"),
    ):
        with pytest.raises(WorkbenchError, match=message):
            executor.map("halve", halved, range(first, first + 1000))


def test_an_error_stops_items_that_were_not_sent(client):
    count = 3 * executors.AHEAD * sum(client.nthreads().values())
    told = []
    with pytest.raises(WorkbenchError, match=f"divide failed on the cluster at item 1 of {count}: ZeroDivisionError"):
        executors.OnDask(client, lambda *now: told.append(now)).map("divide", (1).__truediv__, range(count))
    assert len(told) < count + 1


def test_workers_keep_clusters_and_verify_them(client, tmp_path):
    snapshot = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)
    request = {"bound": wb.Absolute(0.02), "keep": wb.KeepClusters(0.2), "order": "free", "chunk_values": 12_000}
    wb.compress(snapshot, **request).save(tmp_path / "one.zarr")
    wb.compress(snapshot, **request, out=tmp_path / "many.zarr", client=client, parts=3)
    parts = [path for path in (tmp_path / "one.zarr").rglob("*") if path.is_file()]
    assert len(parts) > 5
    for path in parts:
        assert (tmp_path / "many.zarr" / path.relative_to(tmp_path / "one.zarr")).read_bytes() == path.read_bytes()
    assert wb.open(tmp_path / "many.zarr").verify(snapshot, client=client, parts=2).passed


def test_an_archive_in_memory_is_refused(client):
    with pytest.raises(WorkbenchError, match="save it first"):
        wb.compress(SNAPSHOT, wb.Absolute(0.02)).verify(client=client)
