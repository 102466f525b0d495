"""Dask clients: the one that is given, an address, or none; and what a cluster must have in common with this process."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from workbench.distributed.executors import Executor, InProcess, OnDask
from workbench.errors import WorkbenchError


def executor_of(client: Any) -> Executor:
    """The executor for a client, or the address of a scheduler; None: this process.

    >>> executor_of(None)
    InProcess()
    """
    if client is None:
        return InProcess()
    try:
        from distributed import Client
    except ImportError:
        raise WorkbenchError("a Dask client needs Dask, which is not installed: pip install 'lossbench[dask]'") from None
    found = Client(client) if isinstance(client, str) else client
    if not isinstance(found, Client):
        raise WorkbenchError(f"client must be a dask.distributed.Client or the address of a scheduler; got {client!r:.100}")
    if not found.nthreads():
        raise WorkbenchError("the cluster has no workers yet: start some, or wait with client.wait_for_workers(1)")
    return OnDask(found)


def require_shared(executor: Executor, folder: Path) -> None:
    """Refuse a scratch folder that some worker does not see."""
    if not isinstance(executor, OnDask):
        return
    token = folder / f"token-{uuid.uuid4().hex}"
    token.touch()
    blind = [address for address, seen in executor.client.run(token.exists).items() if not seen]
    token.unlink()
    if blind:
        raise WorkbenchError(
            f"the scratch folder {folder} must be on a file system that all workers see; {len(blind)} do not, such as "
            f"{blind[0]}: give scratch=, a folder of a shared file system"
        )
