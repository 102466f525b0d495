"""Who computes the trials: threads of this process, or an executor that is handed in, such as the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs one step for many items; those of `workbench.distributed` do, too."""

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items."""


@dataclass(frozen=True)
class Threads:
    """Threads of this process: NumPy computes without the interpreter's lock.

    >>> Threads(2).map("square", lambda n: n * n, [1, 2, 3])
    [1, 4, 9]
    """

    workers: int

    def map(self, name: str, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items; the first error stops the rest."""
        if self.workers == 1:
            return [step(item) for item in items]
        with ThreadPoolExecutor(self.workers) as pool:
            futures = [pool.submit(step, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
