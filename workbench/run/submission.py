"""A verb that runs in a thread of its own, while the caller goes on: `submit=True`.

Who waits for a step reports the progress of its items, and from time to time looks for workers (`patience.py`). At these
places a run that was cancelled ends, with an error like any other: steps on the cluster are given up, and files removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from workbench.run.cancelling import CANCELLED, end_if_cancelled
from workbench.run.executors import Progress

Result = TypeVar("Result")


class Submitted(Generic[Result]):
    """The result of a verb that runs in a thread of this process, as of `concurrent.futures`.

    The program ends after the thread does: `cancel` a run that is no longer wanted.

    >>> run = Submitted(lambda progress: 6 * 7, None, "multiply")
    >>> run.result(timeout=60), run.done(), run.cancel()
    (42, True, False)
    """

    def __init__(self, verb: Callable[[Progress], Result], progress: Progress | None, name: str) -> None:
        self._name, self._verb, self._progress = name, verb, progress
        self._future: Future[Result] = Future()
        self._cancelled, self._deciding = threading.Event(), threading.Lock()
        threading.Thread(target=copy_context().run, args=(self._run,), name=name).start()

    def result(self, timeout: float | None = None) -> Result:
        """The result, once it is there; raises the error of the verb, or `TimeoutError` after `timeout` seconds."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error that `result` would raise, or None."""
        return self._future.exception(timeout)

    def done(self) -> bool:
        """Whether it has ended: with a result, an error, or cancelled, when all has been cleared away."""
        return self._future.done()

    def cancel(self) -> bool:
        """Ask the run to end, with `CancelledError` for its result; False if it has ended before.

        On a cluster it gives its steps up within seconds; in this process it ends with the step in hand.
        """
        with self._deciding:
            if not self._future.done():
                self._cancelled.set()
            return self._cancelled.is_set()

    def cancelled(self) -> bool:
        """Whether it has been cancelled."""
        return self._cancelled.is_set()

    def _run(self) -> None:
        CANCELLED.set(self._cancelled)
        try:
            result = self._verb(self._report)
        except BaseException as error:   # for the caller, who may be another thread
            self._future.set_exception(error)
            return
        with self._deciding:
            if not self._cancelled.is_set():
                self._future.set_result(result)
                return
        if callable(close := getattr(result, "close", None)):
            close()
        self._future.set_exception(CancelledError())

    def _report(self, share: float, name: str) -> Any:
        end_if_cancelled()
        return None if self._progress is None else self._progress(share, name)

    def __repr__(self) -> str:
        return f"Submitted({self._name}, {'done' if self.done() else 'cancelled' if self.cancelled() else 'running'})"
