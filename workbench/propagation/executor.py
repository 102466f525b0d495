"""Who computes the trials: threads of this process, or an executor that is handed in, such as the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs one step for many items; those of `workbench.distributed` do, too."""

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items."""


@dataclass(frozen=True)
class Threads:
    """Threads of this process: NumPy computes without the interpreter's lock.

    `watch` is called with the results so far, in the order of the items, whenever there are more.

    >>> Threads(2).map("square", lambda n: n * n, [1, 2, 3])
    [1, 4, 9]
    """

    workers: int
    watch: Callable[[list[Any]], object] = lambda results: None

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items; the first error stops the rest."""
        found: list[Result] = []
        with ThreadPoolExecutor(self.workers) as pool:
            futures = [pool.submit(step, item) for item in items]
            try:
                for future in futures:
                    found.append(future.result())
                    self.watch(found)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return found
