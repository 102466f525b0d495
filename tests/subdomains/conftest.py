"""A cluster for the tests of distributed work: the one that LOSSBENCH_SCHEDULER names, or two workers of this machine."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest


class Cluster:
    """A client, of two workers that are started anew if those that tests have killed do not come back."""

    def __init__(self) -> None:
        self._stack, self._client = ExitStack(), None

    def client(self) -> Any:
        try:
            if self._client is not None:
                self._client.wait_for_workers(1, timeout=20)
        except TimeoutError:
            self.close()
        if self._client is None:
            self._client = self._start()
        return self._client

    def _start(self) -> Any:
        dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
        if given := os.environ.get("LOSSBENCH_SCHEDULER"):
            place = {"scheduler_file" if given.endswith(".json") else "address": given}
        else:
            # By default, a nanny is closed for good if its worker is away 15 seconds after an earlier death.
            self._stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}))
            place = {"address": self._stack.enter_context(
                distributed.LocalCluster(
                    n_workers=2, threads_per_worker=1, memory_limit="1GiB", host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                )
            )}
        return self._stack.enter_context(distributed.Client(**place, set_as_default=False))

    def close(self) -> None:
        self._stack.close()
        self._client = None


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    started = Cluster()
    yield started
    started.close()


@pytest.fixture
def client(cluster: Cluster) -> Any:
    """A client of a cluster with at least one worker."""
    return cluster.client()
