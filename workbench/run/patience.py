"""Waiting for a cluster whose workers come late, are busy, pause or leave; never for ever.

Nannies and batch systems start new workers, and an adaptive cluster has none until something waits for one. So a cluster
may have no worker that takes work for a while; after that, it is an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

from workbench.errors import WorkbenchError
from workbench.run.cancelling import end_if_cancelled

GPU = "GPU"                # the resource of workers with a GPU, as Dask's manual calls it
LOOK_SECONDS = 1.0         # without a result before the client looks whether there are workers, and was not cancelled,
PATIENCE_SECONDS = 120.0   # and how long there may be none


class Patience:
    """How long a cluster has had no worker that works."""

    def __init__(self, client: Any, name: str, gpus: bool = False) -> None:
        self._client, self._name, self._gpus = client, name, gpus
        self.renew()

    def renew(self) -> None:
        """A worker has shown that it works."""
        self._seen = time.monotonic()

    def look(self) -> None:
        """Look for workers; an error if there have been none for too long, or the run was cancelled."""
        end_if_cancelled()
        workers = list(self._client.scheduler_info(-1)["workers"].values())
        if self._gpus:
            workers = [worker for worker in workers if GPU in worker.get("resources", {})]
        if any(map(_works, workers)):
            return self.renew()
        if (waited := time.monotonic() - self._seen) < PATIENCE_SECONDS:
            return None
        if workers:
            raise WorkbenchError(
                f"{self._name}: all {len(workers)} workers of the cluster have paused for {waited:.0f} s, as when memory "
                "runs short: give workers more memory, or more parts, and try again"
            )
        raise WorkbenchError(
            f"{self._name}: the cluster has had no worker{' with a GPU' if self._gpus else ''} for {waited:.0f} s: see the "
            "logs of the workers and of the scheduler, start workers, and try again"
        )


def wait_for_workers(client: Any) -> None:
    """Wait for the first worker. A task waits, too: adaptive clusters start no workers without one."""
    if client.nthreads():
        return
    waiting, patience = client.submit(int, pure=False), Patience(client, "start")
    try:
        while not client.nthreads():
            time.sleep(min(LOOK_SECONDS, 0.2))
            patience.look()
    finally:
        client.cancel([waiting])


def result_of(client: Any, future: Any, name: str) -> Any:
    """The result of a future; raises the error of its task. If it is lost with its worker, it is computed again.

    The fetching is never cancelled: Dask shares it with others, and would cancel theirs for ever. It ends with the future.
    """
    patience, gathering = Patience(client, name), client.gather(future, asynchronous=True)
    fetched = asyncio.run_coroutine_threadsafe(gathering, client.loop.asyncio_loop)
    while not wait([fetched], LOOK_SECONDS).done:
        patience.look()
    return fetched.result()


def at_all_workers(client: Any, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """What a function returns, or raises, on each worker; those that leave meanwhile are left out."""
    try:
        answers = client.sync(client._run, function, *arguments, on_error="return", callback_timeout=PATIENCE_SECONDS)
    except TimeoutError:
        raise WorkbenchError(
            f"the workers of the cluster do not all answer within {PATIENCE_SECONDS:.0f} s: see their logs, stop those "
            "that hang, and try again"
        ) from None
    return {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}


def lost(name: str, error: BaseException) -> WorkbenchError:
    """The error for a scheduler that does not answer any more."""
    return WorkbenchError(f"{name}: the connection to the scheduler is lost ({error}): try again")


def _works(worker: dict[str, Any]) -> bool:
    """Whether a worker takes work, or does some."""
    return worker.get("status", "running") == "running" or bool(worker.get("metrics", {}).get("executing", 0))
