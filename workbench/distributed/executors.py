"""Who runs the steps: this process, or the workers of a Dask cluster. The steps are the same functions.

The loop in this process is the reference that every cluster is tested against.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from workbench.errors import WorkbenchError

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 3   # of a step whose worker died
AHEAD = 2     # steps in flight for each thread of a worker: enough to keep it busy, few enough to bound memory


class Executor(Protocol):
    """Runs one step for many items."""

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items; `name` is shown to those who watch."""


@dataclass(frozen=True)
class InProcess:
    """One item after the other, here.

    >>> InProcess().map("square", lambda n: n * n, [1, 2, 3])
    [1, 4, 9]
    """

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items."""
        return [step(item) for item in items]


@dataclass(frozen=True)
class OnDask:
    """The workers of a Dask client. Only a few items of each are in flight, so that nothing piles up in memory."""

    client: Any

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items. The first error stops the others; it names the step and the item."""
        from distributed import as_completed

        run, numbers = uuid.uuid4().hex[:8], iter(range(len(items)))
        results: dict[int, Result] = {}
        place: dict[str, int] = {}

        def send(number: int) -> Any:
            key = f"{name}-{run}-{number}"
            place[key] = number
            return self.client.submit(step, items[number], key=key, retries=RETRIES, pure=False, priority=-number)

        room = AHEAD * max(sum(self.client.nthreads().values()), 1)
        running = as_completed([send(number) for number in itertools.islice(numbers, room)])
        try:
            for future in running:
                number = place.pop(future.key)
                results[number] = self._result(future, f"{name} {number + 1} of {len(items)}")
                future.release()
                for following in itertools.islice(numbers, 1):
                    running.add(send(following))
        finally:
            self.client.cancel(list(running.futures), force=True)
        return [results[number] for number in range(len(items))]

    def _result(self, future: Any, what: str) -> Any:
        try:
            return future.result()
        except WorkbenchError:
            raise
        except Exception as error:
            raise WorkbenchError(f"{what} failed on the cluster: {type(error).__name__}: {error}") from error
