from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from workbench.errors import WorkbenchError
from workbench.lab.jobs import MOST_JOBS, Job, Lane, deliver_to_this_loop

SOON = 10.0


def kept(into: list[Any]) -> Any:
    return lambda job: into.append(job)


def test_a_job_delivers_its_value() -> None:
    ended: list[Job] = []
    lane = Lane()
    lane.submit(Job(lambda job: 42, kept(ended)))
    assert lane.wait(SOON)
    assert [(job.value, job.error, job.cancelled.is_set()) for job in ended] == [(42, "", False)]


def test_of_many_requests_only_the_newest_is_begun() -> None:
    begun: list[int] = []
    lane = Lane(pause=0.2)
    for number in range(20):
        lane.submit(Job(lambda job, number=number: begun.append(number), lambda job: None))
    assert lane.wait(SOON)
    assert begun == [19]


def test_a_newer_request_stops_the_one_under_way_and_waits_for_its_end() -> None:
    order: list[str] = []
    started = threading.Event()

    def long(job: Job) -> None:
        try:
            for step in range(10_000):
                job(step / 10_000, "long")
                started.set()
                time.sleep(0.001)
        finally:
            order.append("long ended")

    lane = Lane(pause=0.0)
    first, ended = Job(long, lambda job: None), []
    lane.submit(first)
    assert started.wait(SOON)
    lane.submit(Job(lambda job: order.append("short"), kept(ended)))
    assert lane.wait(SOON)
    assert order == ["long ended", "short"]
    assert first.cancelled.is_set()
    assert not ended[0].cancelled.is_set()


def test_cancelling_says_so_and_is_no_error() -> None:
    ended: list[Job] = []
    started = threading.Event()

    def endless(job: Job) -> None:
        while True:
            job(0.5, "still at it")
            started.set()
            time.sleep(0.001)

    lane = Lane(pause=0.0)
    lane.submit(Job(endless, kept(ended)))
    assert started.wait(SOON)
    lane.cancel()
    assert lane.wait(SOON)
    assert ended[0].cancelled.is_set()
    assert ended[0].error == ""


def test_what_waits_is_dropped_by_cancelling() -> None:
    begun: list[int] = []
    lane = Lane(pause=0.5)
    job = Job(lambda job: begun.append(1), lambda job: None)
    lane.submit(job)
    lane.cancel()
    assert lane.wait(SOON)
    assert begun == []
    assert job.ended.is_set()


def test_work_rests_until_what_it_delivered_is_dealt_with() -> None:
    order: list[str] = []
    waiting: list[Any] = []
    lane, delivered = Lane(pause=0.0), threading.Event()

    def deliver(callback: Any) -> None:
        waiting.append(callback)
        delivered.set()

    def work(job: Job) -> None:
        job.rest(0.0)
        order.append("later work")

    job = Job(work, lambda job: None, lambda job: order.append("shown"), deliver)
    lane.submit(job)
    while not order:
        assert delivered.wait(SOON)
        delivered.clear()
        for callback in [waiting.pop(0) for _ in range(len(waiting))]:
            callback()
    assert lane.wait(SOON)
    assert order == ["shown", "later work"]


def test_work_that_rests_can_be_cancelled() -> None:
    begun: list[str] = []
    resting = threading.Event()

    def work(job: Job) -> None:
        resting.set()
        job.rest(SOON)
        begun.append("later work")

    lane = Lane(pause=0.0)
    lane.submit(Job(work, lambda job: None, deliver=lambda callback: threading.Timer(0.01, callback).start()))
    assert resting.wait(SOON)
    lane.cancel()
    assert lane.wait(SOON / 2)
    assert begun == []


def test_work_does_not_rest_while_somebody_waits_for_its_end() -> None:
    lane, job = Lane(pause=0.0), Job(lambda job: job.rest(2 * SOON), lambda job: None, deliver=lambda callback: None)
    lane.submit(job)
    job.hurry()
    assert lane.wait(SOON)
    assert not job.cancelled.is_set()


def test_work_without_an_event_loop_does_not_rest() -> None:
    lane = Lane(pause=0.0)
    lane.submit(Job(lambda job: job.rest(2 * SOON), lambda job: None))
    assert lane.wait(SOON)


def test_errors_become_sentences(caplog: Any) -> None:
    ended: list[Job] = []

    def refused(job: Job) -> None:
        raise WorkbenchError("the bound must be positive; got -1")

    def broken(job: Job) -> None:
        raise ZeroDivisionError("division by zero")

    lane = Lane(pause=0.0)
    for work in (refused, broken):
        lane.submit(Job(work, kept(ended)))
        assert lane.wait(SOON)
    assert [job.error for job in ended] == ["the bound must be positive; got -1", "ZeroDivisionError: division by zero"]
    assert "division by zero" in caplog.text


def test_reports_are_not_more_frequent_than_anybody_can_read() -> None:
    reports: list[float] = []

    def work(job: Job) -> None:
        for step in range(5000):
            job(step / 5000, "working")

    lane = Lane(pause=0.0)
    lane.submit(Job(work, lambda job: None, lambda job: reports.append(job.share)))
    assert lane.wait(SOON)
    assert 1 <= len(reports) < 50


def test_of_any_number_of_lanes_only_a_few_work_at_a_time() -> None:
    lanes, lock, counts = [Lane(pause=0.0) for _ in range(20)], threading.Lock(), [0, 0]

    def work(job: Job) -> None:
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        time.sleep(0.002)
        with lock:
            counts[0] -= 1

    for lane in lanes:
        lane.submit(Job(work, lambda job: None))
    assert all(lane.wait(SOON) and not lane.busy for lane in lanes)
    assert 1 <= counts[1] <= MOST_JOBS


def test_a_mistake_in_what_follows_does_not_stop_the_next_job(caplog: pytest.LogCaptureFixture) -> None:
    lane, ended = Lane(pause=0.0), threading.Event()
    lane.submit(Job(lambda job: 1, lambda job: 1 / 0))
    assert lane.wait(SOON)
    lane.submit(Job(lambda job: 2, lambda job: ended.set()))
    assert lane.wait(SOON)
    assert ended.is_set()
    assert "ZeroDivisionError" in caplog.text


SCRIPT = """
import time
from concurrent.futures import ThreadPoolExecutor
from workbench.lab.jobs import Job, Lane

def work(job):
    for number in range(1000):
        with ThreadPoolExecutor(1) as pool:   # as transforms do, which the end of a script refuses
            pool.submit(time.sleep, 0.001).result()
        if REPORTS:
            job(number / 1000, "working")

Lane(pause=0.0).submit(Job(work, lambda job: None))
time.sleep(0.02)
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("reports", [True, False])
def test_a_script_that_ends_before_its_panels_ends_quietly(reports: bool) -> None:
    source = SCRIPT.replace("REPORTS", str(reports))
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_results_are_delivered_in_the_event_loop_of_the_cell() -> None:
    where: list[tuple[int, bool]] = []

    async def cell() -> None:
        deliver = deliver_to_this_loop()
        done = asyncio.Event()

        def ended(job: Job) -> None:
            where.append((threading.get_ident(), job.value == 1))
            done.set()

        Lane(pause=0.0).submit(Job(lambda job: 1, ended, deliver=deliver))
        await asyncio.wait_for(done.wait(), SOON)

    asyncio.run(cell())
    assert where == [(threading.get_ident(), True)]


def test_a_loop_that_has_ended_gets_nothing() -> None:
    async def cell() -> Any:
        return deliver_to_this_loop()

    deliver = asyncio.run(cell())
    deliver(lambda: (_ for _ in ()).throw(AssertionError))
