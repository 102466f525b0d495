"""Who runs the steps: this process, or the workers of a Dask cluster. The steps are the same functions.

The loop in this process is the reference that every cluster is tested against. A step whose worker dies, or that raises, is
run again elsewhere, unless its error says that it would be the same again; what fails repeatedly is an error that names the
step and the item. Nothing waits for ever (`patience.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, cast

from workbench import backend
from workbench.errors import WorkbenchError
from workbench.memory import reusing_memory
from workbench.progress import Progress
from workbench.run import patience
from workbench.run.cancelling import end_if_cancelled
from workbench.run.code import own_code
from workbench.run.patience import GPU, Patience, lost
from workbench.run.shared import Shared, with_shared

Result = TypeVar("Result")

RETRIES = 3             # of a step that raised an error that may not repeat
AHEAD = 16              # tasks that the scheduler has for each thread of a worker; it gives a thread one or two at a time,
AHEAD_ON_GPU = 2        # but to workers with a GPU, which are chosen, all at once
TASKS = 32              # of a step for each thread, at least, where a task has several items
MOST_ITEMS = 16         # of one task
PLACE = "_place_in_task"
COUNT_SECONDS = 1.0     # after which the threads of the cluster are counted again: workers come and go


class Executor(Protocol):
    """Runs one step for many items, and tells its progress."""

    @property
    def progress(self) -> Progress | None:
        """Who is told."""

    @property
    def folder(self) -> Path | None:
        """A folder that all workers see."""

    def map(
        self, name: str, step: Callable[..., Result], items: Sequence[Any], each: str = "item", on_gpu: bool = False,
        shared: Any = None, together: bool = False,
    ) -> list[Result]:
        """The results, in the order of the items: of `step(item)` or, with what all items need, `step(shared, item)`.

        `name` and `each` (what an item is) are for people. With `on_gpu`, workers with a GPU run the step if there are any.
        `together` says that several threads of one process may run it at once.
        """

    def within(self, folder: Path) -> Self:
        """The same, with a folder that all workers see, for what is shared."""

    def reporting(self, progress: Progress | None) -> Self:
        """The same, with the progress of each step reported to another."""


@dataclass(frozen=True)
class InProcess:
    """One item after the other, here.

    >>> InProcess().map("power", pow, [1, 2, 3], shared=2)
    [2, 4, 8]
    """

    progress: Progress | None = field(default=None, repr=False)
    folder: Path | None = field(default=None, kw_only=True, repr=False)

    def map(
        self, name: str, step: Callable[..., Result], items: Sequence[Any], each: str = "item", on_gpu: bool = False,
        shared: Any = None, together: bool = False,
    ) -> list[Result]:
        """The results, in the order of the items."""
        told, results = Told(self.progress, name, len(items)), []
        run = step if shared is None else partial(step, shared)
        try:
            for result in backend.side_by_side(run, items) if together else map(run, items):
                results.append(result)
                told.more()
        except WorkbenchError as error:
            raise _placed(error, name, each, len(results), len(items)) from error
        return results

    def within(self, folder: Path) -> Self:
        """The same, with a folder for what does not fit into memory; what is shared stays in memory."""
        return replace(self, folder=folder)

    def reporting(self, progress: Progress | None) -> Self:
        """The same, with the progress of each step reported to another."""
        return replace(self, progress=progress)


@dataclass(frozen=True)
class OnDask:
    """The workers of a Dask client. Items are sent, and results fetched, many at a time; never all, which would pile up.

    `folder` is for what is shared. While this executor or one made `within` it is used, `connection` stays open.
    """

    client: Any
    progress: Progress | None = field(default=None, repr=False)
    folder: Path | None = field(default=None, kw_only=True)
    connection: Any = field(default=None, kw_only=True, repr=False)

    def map(
        self, name: str, step: Callable[..., Result], items: Sequence[Any], each: str = "item", on_gpu: bool = False,
        shared: Any = None, together: bool = False,
    ) -> list[Result]:
        """The results, in the order of the items. The first error stops the others."""
        chosen = self._gpus if on_gpu and self._gpus() else None
        with self._written(shared) as file:
            run = _Run(self.client, name, with_shared(step, file), items, each, chosen, self.progress)
            try:
                return run.results()
            except WorkbenchError:
                raise
            except Exception as error:
                if self.client.status == "running":
                    raise
                raise lost(name, error) from error
            finally:
                run.stop()

    def within(self, folder: Path) -> Self:
        """The same, with a folder that all workers see, for what is shared."""
        return replace(self, folder=folder)

    def reporting(self, progress: Progress | None) -> Self:
        """The same, with the progress of each step reported to another."""
        return replace(self, progress=progress)

    @contextmanager
    def _written(self, shared: Any) -> Iterator[Shared | None]:
        """The file with what is shared, if anything is, for as long as the block."""
        if shared is None:
            yield None
            return
        if self.folder is None:
            raise ValueError("what items share needs a folder that all workers see: call within(folder)")
        file = Shared.written(self.folder, shared)
        try:
            yield file
        finally:
            file.delete()

    def _gpus(self) -> int:
        """How many workers have a GPU."""
        return sum(GPU in worker.get("resources", {}) for worker in self.client.scheduler_info(-1)["workers"].values())


class _Run:
    """One step for many items on a cluster. What other threads report waits in a queue until this one deals with it.

    A task costs the scheduler and the client some milliseconds, so where there are very many items for each thread, a task
    has several, one after the other. `gpus` counts the workers with a GPU, if these are to run the step.
    """

    def __init__(
        self, client: Any, name: str, step: Callable[..., Any], items: Sequence[Any], each: str,
        gpus: Callable[[], int] | None, progress: Progress | None,
    ) -> None:
        self._client, self._name, self._items, self._each, self._gpus = client, name, items, each, gpus
        self._step = partial(_in_turn, checked(step))
        self._patience, self._counted, self._threads = Patience(client, name, gpus is not None), -COUNT_SECONDS, 1
        self._told = Told(progress, name, len(items))
        self._events = queue.SimpleQueue[Callable[[], None]]()
        self._numbers: dict[str, range] = {}   # the items of each task
        self._running: dict[str, Any] = {}
        self._finished: list[Any] = []   # futures whose results are still on workers
        self._fetched: Any = None        # the fetching of some results, if any is under way
        self._results: dict[int, Any] = {}

    def results(self) -> list[Any]:
        """All results, in the order of the items."""
        self._count()
        self._divide()
        while len(self._results) < len(self._items):
            self._count()
            ahead = self._threads * (AHEAD_ON_GPU if self._gpus else AHEAD)
            if len(self._running) <= ahead // 2:
                self._send(ahead - len(self._running))
            self._next()
            while not self._events.empty():
                self._events.get()()
            self._fetch()
        return [self._results[number] for number in range(len(self._items))]

    def stop(self) -> None:
        """Give up what is not done, but for the fetching: Dask shares it with others, and would cancel theirs for ever."""
        if self._client.status == "running" and (left := [*self._running.values(), *self._finished]):
            self._client.cancel(left, force=True)

    def _divide(self) -> None:
        """Divide the items among tasks."""
        run, count, together = uuid.uuid4().hex[:8], len(self._items), items_of_a_task(len(self._items), self._threads)
        for first in range(0, count, together):
            self._numbers[f"{self._name}-{run}-{first}"] = range(first, min(first + together, count))
        self._waiting = iter(self._numbers)

    def _count(self) -> None:
        """Count the threads of the cluster: how many tasks it should have follows from them."""
        if (now := time.monotonic()) - self._counted >= COUNT_SECONDS:
            threads = self._gpus() if self._gpus else sum(self._client.nthreads().values())
            self._threads, self._counted = max(threads, 1), now

    def _send(self, count: int) -> None:
        keys = list(itertools.islice(self._waiting, count))
        if not keys:
            return
        options = {"resources": {GPU: 1}} if self._gpus else {}
        tasks = [[self._items[number] for number in self._numbers[key]] for key in keys]
        for future in self._client.map(self._step, tasks, key=keys, retries=RETRIES, pure=False, **options):
            self._running[future.key] = future
            future.add_done_callback(lambda future: self._events.put(partial(self._ended, future)))

    def _ended(self, future: Any) -> None:
        """A worker is done with a task."""
        self._running.pop(future.key)
        if future.status in ("error", "cancelled"):
            self._fail(future)
        self._finished.append(future)
        self._told.more(len(self._numbers[future.key]))

    def _fetch(self) -> None:
        """Fetch the results that wait, unless others are being fetched."""
        if not self._finished or self._fetched is not None:
            return
        futures, self._finished = self._finished, []
        gathering = self._client.gather(futures, errors="skip", asynchronous=True)
        self._fetched = asyncio.run_coroutine_threadsafe(gathering, self._client.loop.asyncio_loop)
        self._fetched.add_done_callback(lambda fetched: self._events.put(partial(self._arrived, futures, fetched)))

    def _arrived(self, futures: list[Any], fetched: Any) -> None:
        """Results are here, or one of them was lost with its worker and cannot be had again."""
        self._fetched = None
        for future in futures:
            if future.status in ("error", "cancelled"):
                self._fail(future)
        for future, results in zip(futures, fetched.result(), strict=True):
            for number, result in zip(self._numbers[future.key], results, strict=False):
                if isinstance(result, Refusal):
                    raise _placed(result.error, self._name, self._each, number, len(self._items)) from result.error
                self._results[number] = result

    def _fail(self, future: Any) -> None:
        """Raise the error of a task, and say at which item it arose."""
        numbers, count = self._numbers[future.key], len(self._items)
        try:
            future.result()
        except WorkbenchError as error:
            raise _placed(error, self._name, self._each, numbers[getattr(error, PLACE, 0)], count) from error
        except Exception as error:
            number = numbers[getattr(error, PLACE, 0)]
            raise WorkbenchError(
                f"{self._name} failed on the cluster at {self._each} {number + 1} of {count}: {cause_of(error)}"
            ) from error

    def _next(self) -> None:
        """Deal with what happens next, if it does soon; otherwise look for workers that could run the step."""
        try:
            event = self._events.get(timeout=patience.LOOK_SECONDS)
        except queue.Empty:
            self._patience.look()
        else:
            self._patience.renew()
            event()


class Told:
    """Tells how many items of a step are done."""

    def __init__(self, progress: Progress | None, name: str, count: int) -> None:
        self._progress, self._name, self._count, self._done = progress, name.replace("-", " "), max(count, 1), 0
        self.more(0)

    def more(self, count: int = 1) -> None:
        """So many more are done."""
        end_if_cancelled()
        self._done += count
        if self._progress is not None:
            self._progress(self._done / self._count, self._name)


@dataclass(frozen=True)
class Refusal:
    """What a step returns instead of raising an error that would be the same again."""

    error: WorkbenchError


def checked(step: Callable[..., Result]) -> Callable[..., Result | Refusal]:
    """The step for workers: one that joined late may have other code than the client."""
    return partial(_checked, own_code(), step)


def _checked(code: str, step: Callable[..., Result], *items: Any) -> Result | Refusal:
    if own_code() != code:
        return Refusal(WorkbenchError(
            "a worker that joined later runs other code of lossbench than the client: install the same version everywhere"
        ))
    try:
        with reusing_memory():
            return step(*items)
    except WorkbenchError as error:
        if _may_pass(error):
            raise
        return Refusal(error)


def items_of_a_task(items: int, threads: int) -> int:
    """How many items of a step each task has on a cluster with so many threads.

    >>> items_of_a_task(100, 2), items_of_a_task(1000, 2), items_of_a_task(10**6, 2)
    (1, 15, 16)
    """
    return min(max(items // (TASKS * threads), 1), MOST_ITEMS)


def _in_turn(step: Callable[..., Result], items: Sequence[Any]) -> list[Result]:
    """The results of a task, up to the first refusal. An error carries the place of its item among them."""
    results: list[Result] = []
    with reusing_memory():   # from one item to the next, too
        for item in items:
            try:
                results.append(step(item))
            except Exception as error:
                setattr(error, PLACE, len(results))
                raise
            if isinstance(results[-1], Refusal):
                break
    return results


def _may_pass(error: BaseException | None) -> bool:
    """Whether a disk or a lack of memory is behind an error, so that another worker may do better."""
    while error is not None:
        if isinstance(error, OSError | MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _placed(error: WorkbenchError, name: str, each: str, number: int, count: int) -> WorkbenchError:
    """The same error, and where it arose; of a kind that takes more than a text, the nearest base that does not."""
    kind = next(kind for kind in type(error).__mro__ if kind.__init__ is WorkbenchError.__init__)   # type: ignore[misc]
    return cast(type[WorkbenchError], kind)(f"{error} ({name}, {each} {number + 1} of {count})")


def cause_of(error: Exception) -> str:
    """What an error of a task says, in words where Dask's say little."""
    if type(error).__name__ == "KilledWorker":
        return (
            "every worker that ran it died, as when memory runs out (the logs of the workers say more): give more parts, "
            "or workers with more memory"
        )
    return f"{type(error).__name__}: {error}"
