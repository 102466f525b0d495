"""Background work for sliders: one job at a time, and only the newest request is kept waiting.

A slider sends requests far faster than they can be processed. Each request is delayed (debounced), so a superseded request
never starts; a newer request also cancels the running one, which stops at its next progress report. Results are delivered
in the event loop of the kernel, if there is one, so that other cells can run and no result interrupts them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import WorkbenchError
from workbench.progress import Cancelled

PAUSE = 0.04      # delay of a request in seconds, for newer ones to replace it
REPORT = 0.08     # seconds between two reports of progress
DELIVERED = 1.0   # seconds: the longest time that work rests for a loop that is busy, or has ended
MOST_JOBS = 4     # at a time, of all panels

Deliver = Callable[[Callable[[], object]], object]
log = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """One piece of work: `work(job)` is called in the background, and calls the job to report progress."""

    work: Callable[[Job], Any]
    done: Callable[[Job], object]
    reported: Callable[[Job], object] = lambda job: None
    deliver: Deliver = lambda callback: callback()
    share: float = 0.0
    text: str = ""
    value: Any = None
    partial: Any = None            # the latest partial result, for work that shows it
    error: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    attended: threading.Event = field(default_factory=threading.Event)   # what was delivered has been dealt with
    roused: threading.Event = field(default_factory=threading.Event)     # nothing may rest any longer
    last_report: float = 0.0

    def __call__(self, share: float, text: str) -> None:
        """Report progress from 0 to 1; raises `Cancelled` if the result is no longer needed."""
        if self.is_set():
            raise Cancelled
        self.share, self.text = min(max(share, 0.0), 1.0), text
        self._report()

    def show(self, partial: Any) -> None:
        """Report a partial result; raises `Cancelled` if the result is no longer needed."""
        if self.is_set():
            raise Cancelled
        self.partial = partial
        self._report()

    def rest(self, seconds: float) -> None:
        """Do nothing until all that was delivered has been dealt with, and then for some seconds more; may be cancelled.

        Without an event loop, nobody looks at what was delivered, and work goes on at once.
        """
        self.deliver(self.attended.set)
        if not self.attended.is_set():
            self.attended.wait(DELIVERED)
            self.roused.wait(seconds)
        if self.cancelled.is_set():
            raise Cancelled

    def hurry(self) -> None:
        """Do not rest: somebody waits for the end."""
        self.attended.set()
        self.roused.set()

    def cancel(self) -> None:
        """Request a stop at the next report."""
        self.cancelled.set()
        self.hurry()

    def is_set(self) -> bool:
        """Whether to stop; so a job can be passed where an event is expected."""
        return self.cancelled.is_set() or not threading.main_thread().is_alive()

    def run(self) -> None:
        """Do the work, and deliver its result; errors become sentences. At the end of a script, nobody is told anything."""
        try:
            self(0.0, self.text)
            self.value = self.work(self)
        except Cancelled:
            self.cancelled.set()
        except WorkbenchError as error:
            self.error = str(error)
        except Exception as error:
            if _script_has_ended():
                self.cancelled.set()
            else:
                log.exception("work for a panel failed")
                self.error = f"{type(error).__name__}: {error}"
        self.ended.set()
        try:
            self.deliver(lambda: self.done(self))
        except Exception:   # the next job must run all the same
            log.exception("delivering the work for a panel failed")

    def _report(self) -> None:
        now = time.monotonic()
        if now - self.last_report >= REPORT:
            self.last_report = now
            self.deliver(lambda: self.reported(self))


class Lane:
    """Runs the newest job after a pause, when the previous one has ended, in a thread pool shared by all lanes.

    A few threads suffice for any number of panels. A new thread for each job would waste memory, because memory freed in a
    thread stays with that thread.
    """

    def __init__(self, pause: float = PAUSE) -> None:
        self.pause = pause
        self._condition = threading.Condition()
        self._waiting: Job | None = None
        self._running: Job | None = None
        self._working = False

    def submit(self, job: Job) -> None:
        """Run this job next; drops the waiting job, and requests the running one to stop."""
        with self._condition:
            self.cancel()
            self._waiting = job
            if not self._working:
                self._working = True
                threading.Thread(target=self._work, name="lossbench panel").start()
            self._condition.notify_all()

    def cancel(self) -> None:
        """Drop the waiting job, and request the running one to stop."""
        with self._condition:
            for job in (self._waiting, self._running):
                if job is not None:
                    job.cancel()
            if self._waiting is not None:
                self._waiting.ended.set()
            self._waiting = None
            self._condition.notify_all()

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        with self._condition:
            return self._working

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no job runs or waits."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._working, timeout)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            with _PLACES:
                job.run()
            with self._condition:
                self._running = None

    def _next(self) -> Job | None:
        """The job that is still the newest after the pause; None, which ends the thread, if there is none."""
        with self._condition:
            job = self._waiting
            while job is not None:
                self._condition.wait_for(lambda job=job: self._waiting is not job, self.pause)   # type: ignore[misc]
                if self._waiting is job:
                    self._waiting, self._running = None, job
                    return job
                job = self._waiting
            self._working = False
            self._condition.notify_all()
            return None


_PLACES = threading.BoundedSemaphore(MOST_JOBS)   # plain threads, which notice the end of a script, share them


def _script_has_ended() -> bool:
    """Whether the interpreter is about to end, and refuses new threads to whoever still works."""
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int)
    except RuntimeError:
        return True
    return not threading.main_thread().is_alive()


def deliver_to_this_loop() -> Deliver:
    """A function that calls back in the running event loop, as in a cell; without one, at once, in the calling thread."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return lambda callback: callback()

    def deliver(callback: Callable[[], object]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(callback)

    return deliver
