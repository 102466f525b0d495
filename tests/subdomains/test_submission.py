"""`submit=True`: a verb that runs beside the caller, its result, its errors, and how it is cancelled."""

import asyncio
import inspect
import threading
import time
from concurrent.futures import CancelledError
from contextvars import copy_context

import numpy as np
import pytest

import workbench as wb
from workbench import backend
from workbench.archive import encoded as chunks
from workbench.errors import WorkbenchError
from workbench.run.cancelling import CANCELLED
from workbench.run.executors import OnDask
from workbench.run.submission import Submitted

WEB = wb.synthetic.cosmic_web(n=16, seed=7)


def submit(source=WEB, **options):
    return wb.friends_of_friends(source, 0.2, submit=True, parts=3, **options)


@pytest.mark.parametrize("on_workers", [False, True])
def test_the_result_is_that_of_the_call(request, tmp_path, on_workers):
    seen = []
    run = submit(
        client=request.getfixturevalue("client") if on_workers else None, scratch=tmp_path,
        progress=lambda share, name: seen.append(name),
    )
    with run.result(timeout=60) as groups:
        assert groups.gathered().equals(wb.friends_of_friends(WEB))
    assert (run.done(), run.cancelled(), run.exception()) == (True, False, None)
    assert "compare labels" in seen
    assert run.cancel() is False
    assert repr(run) == "Submitted(friends_of_friends, done)"


def test_an_error_is_raised_where_the_result_is_asked_for(tmp_path):
    run = submit(tmp_path / "none.npy")
    assert isinstance(run.exception(timeout=60), WorkbenchError)
    with pytest.raises(WorkbenchError, match=r"none\.npy"):
        run.result()
    with pytest.raises(WorkbenchError, match="submit must be True or False"):
        wb.friends_of_friends(WEB, submit="now")


@pytest.mark.parametrize("name", ["sample particles", "send particles", "find groups", "compare labels"])
def test_a_cancelled_run_ends_at_the_next_item_and_leaves_nothing(tmp_path, name):
    begun, go_on = threading.Event(), threading.Event()

    def wait(share, step):
        if step == name:
            begun.set()
            go_on.wait(60)

    run = submit(scratch=tmp_path, progress=wait)
    assert begun.wait(60)
    with pytest.raises(TimeoutError):
        run.result(timeout=0.01)
    assert "running" in repr(run)
    assert run.cancel()
    go_on.set()
    with pytest.raises(CancelledError):
        run.result(timeout=60)
    assert (run.done(), run.cancelled(), run.cancel()) == (True, True, True)
    assert not list(tmp_path.iterdir())


def test_a_cancelled_run_ends_though_its_result_cannot_be_closed():
    class Stuck:
        def close(self):
            raise OSError("stuck")

    go_on = threading.Event()
    run = Submitted(lambda: go_on.wait(60) and Stuck(), "stuck")
    assert run.cancel()
    go_on.set()
    assert isinstance(run.exception(timeout=60), CancelledError)
    assert str(run.exception().__cause__) == "stuck"


def rest(seconds):
    time.sleep(seconds)


def test_a_long_step_on_workers_is_given_up(client):
    run = Submitted(lambda: OnDask(client).map("rest", rest, [0.01, 6.0]), "rest")
    end = time.monotonic() + 20
    while not steps_of(client) and time.monotonic() < end:
        time.sleep(0.05)
    began = time.monotonic()
    assert run.cancel()
    with pytest.raises(CancelledError):
        run.result(timeout=10)
    assert time.monotonic() - began < 10
    while steps_of(client) and time.monotonic() < end:
        time.sleep(0.05)
    assert not steps_of(client)


def steps_of(client):
    """The steps that the scheduler knows."""
    return client.run_on_scheduler(lambda dask_scheduler: [key for key in dask_scheduler.tasks if "rest-" in str(key)])


def test_a_run_that_ends_while_results_are_fetched_leaves_the_client_to_others(client):
    gate = client._gather_semaphore   # of Dask: results are fetched behind it
    permits = gate._value

    async def closed():
        for _ in range(permits):
            await gate.acquire()

    async def opened():
        for _ in range(permits):
            gate.release()

    def stop(share, what):
        if client._gather_future is not None:
            raise WorkbenchError("that is enough")

    asyncio.run_coroutine_threadsafe(closed(), client.loop.asyncio_loop).result(10)
    try:
        with pytest.raises(WorkbenchError, match="that is enough"):
            OnDask(client, stop).map("wait", time.sleep, [0.0, 0.5, 0.5, 1.0])
    finally:
        asyncio.run_coroutine_threadsafe(opened(), client.loop.asyncio_loop).result(10)
    assert client.submit(int, "5", pure=False).result(30) == 5


def test_what_items_share_goes_if_the_run_was_cancelled_before_the_step(client, tmp_path):
    cancelled = threading.Event()
    cancelled.set()

    def step():
        CANCELLED.set(cancelled)
        OnDask(client, folder=tmp_path).map("power", pow, [1], shared=2)

    with pytest.raises(CancelledError):
        copy_context().run(step)
    assert not list(tmp_path.iterdir())


def test_a_result_that_comes_after_the_run_was_cancelled_is_closed(tmp_path):
    def search():
        groups = wb.friends_of_friends(WEB, 0.2, parts=3, scratch=tmp_path)
        assert run.cancel()
        return groups

    begin = threading.Lock()
    with begin:
        run = Submitted(lambda: begin.acquire() and search(), "search")
    with pytest.raises(CancelledError):
        run.result(timeout=60)
    assert not list(tmp_path.iterdir())


def test_what_the_caller_has_set_for_its_context_holds_in_the_thread(client):
    """Dask's current client is such a setting."""
    da = pytest.importorskip("dask.array")
    positions = da.from_array(np.array(WEB.positions), chunks=(1000, 3))
    source = wb.distributed.from_dask(positions, WEB.box)
    with client.as_current():
        run = wb.friends_of_friends(source, 0.2, submit=True)
    with run.result(timeout=60) as groups:
        assert isinstance(groups._executor, OnDask)


FIELD = wb.Field(np.random.default_rng(1).standard_normal((12, 40)).cumsum(1))
BOUND = wb.Absolute(0.01)
ARCHIVE = wb.compress(FIELD, BOUND, "prequantised")
GROUPS = wb.friends_of_friends(WEB)
PIPELINE = wb.propagation.Pipeline([("mean", lambda x: x.mean())])
FLIPS = [wb.propagation.BitFlip("input", bit="mantissa")]
VERBS = {
    wb.compress: (FIELD, BOUND, "prequantised"),
    ARCHIVE.verify: (FIELD,),
    wb.compare: (FIELD, np.round(FIELD.values, 2)),
    wb.sweep: (FIELD, "prequantised", BOUND),
    wb.find_bound: (FIELD, wb.PSNR(40), "prequantised"),
    wb.propagation.campaign: (PIPELINE, FIELD.values, FLIPS, 0, 50),
    wb.compare_groups: (GROUPS, GROUPS),
    wb.friends_of_friends: (WEB,),
}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_every_verb_can_be_submitted_and_cancelled(verb):
    parameters = inspect.signature(verb).parameters
    assert parameters["submit"].default is False
    seen = []
    options = {"progress": lambda share, name: seen.append(name)} if "progress" in parameters else {}
    expected, found = verb(*VERBS[verb]), verb(*VERBS[verb], **options, submit=True).result(timeout=60)
    assert (type(found), repr(found)) == (type(expected), repr(expected))
    if "progress" not in parameters:
        return
    assert seen
    begun, go_on = threading.Event(), threading.Event()
    run = verb(*VERBS[verb], progress=lambda share, name: (begun.set(), go_on.wait(60)), submit=True)
    assert begun.wait(60)
    assert run.cancel()
    go_on.set()
    with pytest.raises(CancelledError):
        run.result(timeout=60)


def test_the_draft_of_a_run_that_was_cancelled_is_gone_on_from(tmp_path, monkeypatch):
    options = {"out": tmp_path / "a.zarr", "codec": "prequantised", "chunk_values": 60}
    encode, begun, go_on, seen = chunks.encode_values, threading.Event(), threading.Event(), []

    def encoded(*given):
        seen.append(given)
        if len(seen) == 3:
            begun.set()
            go_on.wait(60)
        return encode(*given)

    monkeypatch.setattr(chunks, "encode_values", encoded)
    with backend.using_threads(1):
        run = wb.compress(FIELD, BOUND, **options, submit=True)
        assert begun.wait(60)
        assert run.cancel()
        go_on.set()
        assert isinstance(run.exception(timeout=60), CancelledError)
        assert "the same call goes on from there" in run.exception().__notes__[0]
        done = len(seen)
        assert wb.compress(FIELD, BOUND, **options).verify(FIELD).passed
    assert done < 8
    assert len(seen) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


def test_the_progress_of_a_run_in_a_thread_is_asked_for_what_it_watches():
    class Watching:
        def __call__(self, share, name):
            pass

        def watch(self, step):
            self.step = step

    watching = Watching()
    archive = wb.compress(WEB, wb.Absolute(0.15), keep=wb.KeepClusters(0.2), progress=watching, submit=True).result(60)
    assert archive.verify(WEB).passed
    assert watching.step.number >= 0
    with pytest.raises(WorkbenchError, match="progress must be a function"):
        wb.propagation.campaign(PIPELINE, FIELD.values, FLIPS, progress=3, submit=True).result(60)
