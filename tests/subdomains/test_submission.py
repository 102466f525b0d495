"""`submit=True`: a verb that runs beside the caller, its result, its errors, and how it is cancelled."""

import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
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


def rest(seconds):
    time.sleep(seconds)


def test_a_long_step_on_workers_is_given_up(client):
    run = Submitted(lambda progress: OnDask(client, progress).map("rest", rest, [0.01, 6.0]), None, "rest")
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


def test_a_result_that_comes_after_the_run_was_cancelled_is_closed(tmp_path):
    def search(progress):
        groups = wb.friends_of_friends(WEB, 0.2, parts=3, scratch=tmp_path)
        assert run.cancel()
        return groups

    begin = threading.Lock()
    with begin:
        run = Submitted(lambda progress: begin.acquire() and search(progress), None, "search")
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
