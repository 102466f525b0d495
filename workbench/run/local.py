"""The workers that a command uses: new ones on this machine, which end with it, or those of a scheduler that runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.errors import WorkbenchError
from workbench.run.clients import connected_to
from workbench.run.patience import wait_for_workers

LOOPBACK = "127.0.0.1"
PATIENCE = 60   # seconds until so many workers have come


@contextmanager
def connected(workers: int | None = None, scheduler: str | None = None) -> Iterator[Any]:
    """A client of so many new workers with one thread each, reachable from this machine only; closed at the end.

    With the address of a `scheduler`, or its file, it is a client of that one, and `workers` says how many to wait for.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise WorkbenchError("workers need Dask, which is not installed: pip install 'lossbench[dask]'") from None
    if scheduler is not None:
        with connected_to(scheduler) as client:
            _wait(client, workers or 1, scheduler)
            yield client
        return
    with (
        LocalCluster(
            n_workers=workers or 1, threads_per_worker=1, host=LOOPBACK, dashboard_address=f"{LOOPBACK}:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _wait(client: Any, workers: int, scheduler: str) -> None:
    """Wait for the first worker, which an adaptive cluster starts for work alone, and then for the others."""
    wait_for_workers(client)
    try:
        client.wait_for_workers(workers, timeout=PATIENCE)
    except TimeoutError:
        have = len(client.nthreads())
        raise WorkbenchError(
            f"the scheduler {scheduler} must have {workers} workers; it has {have} after {PATIENCE} seconds: start more, "
            "or ask for fewer"
        ) from None
