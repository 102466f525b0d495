"""A cluster for the tests of distributed work: the one that LOSSBENCH_SCHEDULER names, or two workers of this machine."""

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A client of a cluster that exists (an address or a scheduler file), or of two workers on the loopback interface."""
    distributed = pytest.importorskip("distributed")
    if given := os.environ.get("LOSSBENCH_SCHEDULER"):
        with distributed.Client(**{"scheduler_file" if given.endswith(".json") else "address": given}) as found:
            yield found
        return
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit="1GiB"
        ) as started,
        distributed.Client(started) as found,
    ):
        yield found


@pytest.fixture
def client(cluster: Any) -> Any:
    """The client, when there is a worker: an earlier test may have killed them, and nannies take a moment."""
    cluster.wait_for_workers(1, timeout=60)
    return cluster
