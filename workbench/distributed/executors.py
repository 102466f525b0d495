"""Who runs the steps: this process, or the workers of a Dask cluster. The steps are the same functions.

The loop in this process is the reference that every cluster is tested against. A step whose worker dies, or that raises, is
run again elsewhere; what fails repeatedly is an error that names the step and the item. Nothing waits for ever: if the
cluster has had no worker for a while that could run a step, that is an error, too.
"""

from __future__ import annotations

import itertools
import queue
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from workbench.backend import reusing_memory
from workbench.bounds.code import own_code
from workbench.errors import WorkbenchError

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[float, str], object]   # the completed share of a step, and its name

RETRIES = 3             # of a step that raised an error
AHEAD = 2               # steps in flight for each thread of a worker: enough to keep it busy, few enough to bound memory
LOOK_SECONDS = 5.0      # without a result before the client looks whether there are workers,
PATIENCE_SECONDS = 120.0   # and how long there may be none: nannies and batch systems start new ones
GPU = "GPU"             # the resource of workers with a GPU, as Dask's manual calls it


class Executor(Protocol):
    """Runs one step for many items, and tells its progress."""

    @property
    def progress(self) -> Progress | None:
        """Who is told."""

    def map(
        self, name: str, step: Callable[[Item], Result], items: Sequence[Item], each: str = "item", on_gpu: bool = False
    ) -> list[Result]:
        """The results, in the order of the items.

        `name` and `each` (what an item is) are for people. With `on_gpu`, workers with a GPU run the step if there are any.
        """


@dataclass(frozen=True)
class InProcess:
    """One item after the other, here.

    >>> InProcess().map("square", lambda n: n * n, [1, 2, 3])
    [1, 4, 9]
    """

    progress: Progress | None = field(default=None, repr=False)

    def map(
        self, name: str, step: Callable[[Item], Result], items: Sequence[Item], each: str = "item", on_gpu: bool = False
    ) -> list[Result]:
        """The results, in the order of the items."""
        told, results = Told(self.progress, name, len(items)), []
        for number, item in enumerate(items):
            try:
                results.append(step(item))
            except WorkbenchError as error:
                raise _placed(error, name, each, number, len(items)) from error
            told.one_more()
        return results


@dataclass(frozen=True)
class OnDask:
    """The workers of a Dask client. Only a few items of each are in flight, so that nothing piles up in memory."""

    client: Any
    progress: Progress | None = field(default=None, repr=False)

    def map(
        self, name: str, step: Callable[[Item], Result], items: Sequence[Item], each: str = "item", on_gpu: bool = False
    ) -> list[Result]:
        """The results, in the order of the items. The first error stops the others."""
        threads = self._gpus() if on_gpu else 0
        options = {"resources": {GPU: 1}} if threads else {}
        if not threads:
            threads = sum(self.client.nthreads().values())
        run, checked = uuid.uuid4().hex[:8], partial(_checked, own_code(), step)
        told, done = Told(self.progress, name, len(items)), queue.SimpleQueue[Any]()
        results: dict[int, Result] = {}
        running: dict[str, tuple[int, Any]] = {}
        waiting = iter(range(len(items)))

        def send(number: int) -> None:
            future = self.client.submit(
                checked, items[number], key=f"{name}-{run}-{number}", retries=RETRIES, pure=False, priority=-number,
                **options,
            )
            running[future.key] = number, future
            future.add_done_callback(done.put)

        try:
            for number in itertools.islice(waiting, AHEAD * max(threads, 1)):
                send(number)
            while running:
                future = self._next(done, name, bool(options))
                finished, _ = running.pop(future.key)
                results[finished] = self._result(future, name, each, finished, len(items))
                told.one_more()
                for number in itertools.islice(waiting, 1):
                    send(number)
        except WorkbenchError:
            raise
        except Exception as error:
            if self.client.status == "running":
                raise
            raise WorkbenchError(f"{name}: the connection to the scheduler is lost ({error}): try again") from error
        finally:
            if self.client.status == "running":
                self.client.cancel([future for _, future in running.values()], force=True)
        return [results[number] for number in range(len(items))]

    def _gpus(self) -> int:
        """How many workers have a GPU."""
        return sum(GPU in worker.get("resources", {}) for worker in self.client.scheduler_info(-1)["workers"].values())

    def _next(self, done: queue.SimpleQueue[Any], name: str, on_gpu: bool) -> Any:
        """The next future that is done, while there are workers that could run it."""
        seen = time.monotonic()
        while True:
            try:
                return done.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                now = time.monotonic()
                if self._gpus() if on_gpu else self.client.nthreads():
                    seen = now
                elif now - seen >= PATIENCE_SECONDS:
                    which = "no worker with a GPU" if on_gpu else "no worker"
                    raise WorkbenchError(
                        f"{name}: the cluster has had {which} for {now - seen:.0f} s: see the logs of the workers and of "
                        "the scheduler, start workers, and try again"
                    ) from None

    def _result(self, future: Any, name: str, each: str, number: int, count: int) -> Any:
        try:
            return future.result()
        except WorkbenchError as error:
            raise _placed(error, name, each, number, count) from error
        except Exception as error:
            raise WorkbenchError(
                f"{name} failed on the cluster at {each} {number + 1} of {count}: {_cause(error)}"
            ) from error
        finally:
            future.release()


class Told:
    """Tells how many items of a step are done."""

    def __init__(self, progress: Progress | None, name: str, count: int) -> None:
        self._progress, self._name, self._count, self._done = progress, name.replace("-", " "), max(count, 1), -1
        self.one_more()

    def one_more(self) -> None:
        """One more is done."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done / self._count, self._name)


def _checked(code: str, step: Callable[[Item], Result], item: Item) -> Result:
    """Run a step on a worker; one that joined late may have other code than the client."""
    if own_code() != code:
        raise WorkbenchError(
            "a worker that joined later runs other code of lossbench than the client: install the same version everywhere"
        )
    with reusing_memory():   # at its end, all is returned: the next step may run in another thread, which cannot use it
        return step(item)


def _placed(error: WorkbenchError, name: str, each: str, number: int, count: int) -> WorkbenchError:
    """The same error, and where it arose."""
    return type(error)(f"{error} ({name}, {each} {number + 1} of {count})")


def _cause(error: Exception) -> str:
    if type(error).__name__ == "KilledWorker":
        return (
            "every worker that ran it died, as when memory runs out (the logs of the workers say more): give more parts, "
            "or workers with more memory"
        )
    return f"{type(error).__name__}: {error}"
