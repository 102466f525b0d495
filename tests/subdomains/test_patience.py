"""Clusters whose workers come late, pause, leave or differ: calls wait for a while, or end in a sentence."""

import threading
import time

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.run import chunked_field, clients, executors, local, patience
from workbench.run.clients import executor_of
from workbench.run.executors import OnDask

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Wait for no more than moments."""
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.4)


@pytest.fixture
def threads():
    """A cluster in this process, without workers at first."""
    options = {"processes": False, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "protocol": "tcp"}
    with distributed.LocalCluster(n_workers=0, threads_per_worker=1, **options) as cluster:
        yield cluster


@pytest.fixture
def user(threads):
    with distributed.Client(threads, set_as_default=False) as client:
        yield client


def double(number):
    return 2 * number


def refuse(number):
    TRIED.append(number)
    raise WorkbenchError("the same again")


TRIED = []
FIELD = np.arange(64.0).reshape(8, 8)


def test_a_cluster_that_never_has_workers_is_an_error(user):
    with pytest.raises(WorkbenchError, match="the cluster has had no worker for"):
        executor_of(user)


@pytest.mark.parametrize("call", ["map", "graph", "blocks"])
def test_a_cluster_that_has_lost_its_workers_is_an_error_in_every_kind_of_step(user, call, tmp_path):
    executor = OnDask(user)
    positions = wb.distributed.from_dask(da.random.default_rng(0).random((8, 3), chunks=(4, 3)), box=1.0)
    field = wb.distributed.ChunkedField(da.from_array(FIELD, chunks=(4, 8)))
    calls = {
        "map": lambda: executor.map("double", double, [1, 2]),
        "graph": lambda: chunked_field.parts_at(executor, field, [(slice(0, 4), slice(0, 8))]),
        "blocks": lambda: positions.saved(user, tmp_path),
    }
    with pytest.raises(WorkbenchError, match="the cluster has had no worker for"):
        calls[call]()


def test_an_adaptive_cluster_at_rest_starts_workers(threads, user, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 20)
    threads.adapt(minimum=0, maximum=1, interval="50ms")
    assert executor_of(user).map("double", double, [1, 2]) == [2, 4]


def test_an_adaptive_cluster_may_rest_between_steps(threads, user, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 20)
    threads.adapt(minimum=0, maximum=2, interval="50ms", wait_count=1)
    executor = executor_of(user)
    for _ in range(2):
        assert executor.map("double", double, range(40)) == list(range(0, 80, 2))
        end = time.monotonic() + 20
        while user.nthreads() and time.monotonic() < end:
            time.sleep(0.05)
        assert not user.nthreads()


def test_a_command_waits_for_an_adaptive_cluster_at_rest(threads, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 20)
    threads.adapt(minimum=0, maximum=1, interval="50ms", wait_count=1000)
    with local.connected(1, threads.scheduler_address) as client:
        assert OnDask(client).map("double", double, [1, 2]) == [2, 4]


def test_a_client_of_an_address_that_is_refused_is_closed(threads, user):
    def clients():
        return user.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.clients))

    before = clients()
    for open_client in (lambda: executor_of(threads.scheduler_address), lambda: next(connection(threads))):
        with pytest.raises(WorkbenchError, match="the cluster has had no worker for"):
            open_client()
        end = time.monotonic() + 20
        while clients() > before and time.monotonic() < end:
            time.sleep(0.05)
        assert clients() == before


def connection(cluster):
    with local.connected(1, cluster.scheduler_address) as client:
        yield client


def test_workers_that_come_late_are_waited_for_and_given_work(threads, user, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 20)
    late = threading.Timer(0.2, threads.scale, [1])
    late.start()
    assert OnDask(user).map("double", double, [1, 2]) == [2, 4]
    late.join()


def test_paused_workers_are_named(monkeypatch):
    class Paused:
        def scheduler_info(self, workers):
            return {"workers": {"tcp://a": {"status": "paused", "metrics": {"executing": executing}}}}

    waiting = patience.Patience(Paused(), "find-groups")
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0)
    executing = 1
    waiting.look()
    executing = 0
    with pytest.raises(WorkbenchError, match="find-groups: all 1 workers of the cluster have paused"):
        waiting.look()


def test_a_late_worker_with_other_code_is_refused_in_graphs_too(threads, user, tmp_path, monkeypatch):
    threads.scale(1)
    user.wait_for_workers(1)
    executor, steps = OnDask(user), executors.own_code
    field = wb.distributed.ChunkedField(da.from_array(FIELD, chunks=(4, 8)))
    answers = iter(["the client's"])
    monkeypatch.setattr(executors, "own_code", lambda: next(answers, steps()))
    with pytest.raises(WorkbenchError, match="a worker that joined later runs other code"):
        chunked_field.parts_at(executor, field, [(slice(0, 4), slice(0, 8))])


def test_an_error_that_would_be_the_same_again_is_not_repeated(threads, user):
    threads.scale(1)
    TRIED.clear()
    with pytest.raises(WorkbenchError, match=r"the same again \(refuse, item 1 of 1\)"):
        OnDask(user).map("refuse", refuse, [7])
    assert TRIED == [7]


def slowly(number):
    time.sleep(0.7)
    return number


def test_a_result_that_is_lost_with_its_worker_is_computed_again_however_long_that_takes(threads, user, monkeypatch):
    threads.scale(2)
    user.wait_for_workers(2)
    holder, fetch = threads.workers[0].address, user._gather_remote
    future = user.submit(slowly, 3, workers=[holder], allow_other_workers=True, pure=False)
    assert future.result(timeout=20) == 3

    async def lose(*given):
        monkeypatch.setattr(user, "_gather_remote", fetch)
        user._gather_future = None
        await threads.scheduler.remove_worker(holder, stimulus_id="lost")
        return {"status": "error", "keys": [future.key]}

    monkeypatch.setattr(user, "_gather_remote", lose)
    assert patience.result_of(user, future, "slowly") == 3


def test_a_worker_that_leaves_during_the_check_is_left_out(client, monkeypatch):
    def gone(function, *arguments, **options):
        return {"tcp://gone": distributed.comm.CommClosedError("Stream is closed")}

    monkeypatch.setattr(client, "sync", gone)
    clients.require_same_code(client)


def test_an_asynchronous_client_is_refused(user, monkeypatch):
    with monkeypatch.context() as change:
        change.setattr(user, "_asynchronous", True)
        with pytest.raises(WorkbenchError, match="client must not be asynchronous"):
            executor_of(user)


def test_a_closed_client_is_refused(threads):
    with distributed.Client(threads, set_as_default=False) as client:
        pass
    with pytest.raises(WorkbenchError, match="client must be connected to a scheduler; it is closed"):
        executor_of(client)


def test_a_greeting_that_comes_with_another_message_is_asked_for_again(monkeypatch):
    """Dask's client asserts that its scheduler greets it in a message of its own; one that talks to all clients may not."""
    attempts, closed = [], []

    class Client:
        def __init__(self, **place):
            attempts.append(place)
            assert len(attempts) == 3

        def close(self):
            closed.append(self)

    monkeypatch.setattr(clients, "_kind_of_clients", lambda: Client)
    assert isinstance(clients.connected_to("tcp://127.0.0.1:9"), Client)
    assert attempts == [{"address": "tcp://127.0.0.1:9", "set_as_default": False}] * 3
    assert len(closed) == 2
    attempts[:] = [None] * 10
    with pytest.raises(AssertionError):
        clients.connected_to("tcp://127.0.0.1:9")


def test_a_client_that_was_not_greeted_is_closed_at_once(threads, monkeypatch):
    """Collected later, it could be closed while another one starts, in a lock that both take: that waited for ever."""
    connect, failed = distributed.Client._ensure_connected, []

    async def not_at_first(client, timeout=None):
        if not failed:
            failed.append(client)
            raise AssertionError
        await connect(client, timeout)

    monkeypatch.setattr(distributed.Client, "_ensure_connected", not_at_first)
    with clients.connected_to(threads.scheduler_address) as client:
        assert client.status == "running"
        assert [one.status for one in failed] == ["closed"]
