"""Who runs the steps: this process, or the workers of a Dask cluster. The steps are the same functions.

The loop in this process is the reference that every cluster is tested against.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from workbench.errors import WorkbenchError

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 3       # of a step whose worker died
AHEAD = 2         # steps in flight for each thread of a worker: enough to keep it busy, few enough to bound memory


class Executor(Protocol):
    """Runs one step for many items."""

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items; `name` is shown to those who watch."""


class InProcess:
    """One item after the other, here.

    >>> InProcess().map("square", lambda n: n * n, [1, 2, 3])
    [1, 4, 9]
    """

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items."""
        return [step(item) for item in items]


class OnDask:
    """A Dask client; only a few items of each worker are in flight, so that nothing piles up."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items; an error of a step names it, and stops the others."""
        from distributed import as_completed

        numbers = iter(range(len(items)))
        results: dict[int, Result] = {}
        sent = {}

        def send(number: int) -> Any:
            future = self.client.submit(
                step, items[number], key=f"{name}-{number}-{id(sent):x}", retries=RETRIES, pure=False, priority=-number
            )
            sent[future.key] = number
            return future

        room = AHEAD * max(sum(self.client.nthreads().values()), 1)
        running = as_completed([send(number) for number in itertools.islice(numbers, room)])
        try:
            for future in running:
                number = sent.pop(future.key)
                try:
                    results[number] = future.result()
                except WorkbenchError:
                    raise
                except Exception as error:
                    raise WorkbenchError(f"{name} {number} of {len(items)} failed: {type(error).__name__}: {error}") from error
                future.release()
                for following in itertools.islice(numbers, 1):
                    running.add(send(following))
        finally:
            self.client.cancel([future for future in running.futures], force=True)
        return [results[number] for number in range(len(items))]
