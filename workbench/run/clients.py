"""Dask clients: the one that is given, an address, or none; and what a cluster must have in common with this process."""

from __future__ import annotations

import json
import logging
import os
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench import backend
from workbench.errors import WorkbenchError
from workbench.progress import Progress
from workbench.run.code import own_code
from workbench.run.executors import Executor, InProcess, OnDask
from workbench.run.owner import OWNER, this_process
from workbench.run.patience import GPU, at_all_workers, lost, wait_for_workers
from workbench.run.scratch_files import complete
from workbench.run.stored_arrays import InZarr

LOG = logging.getLogger(__name__)
GREETINGS = 5   # attempts to connect, of which nearly always the first succeeds
SAME = "install the same version of lossbench for the client and all workers, and start the workers again"


def executor_of(client: Any, progress: Progress | None = None, *sources: Any) -> Executor:
    """The executor for a client, the address of a scheduler, or a scheduler file (.json).

    None is the active client of Dask where a source is a Dask or Zarr array, and otherwise this process. A cluster with
    other code, or without compiled kernels, is refused.

    >>> executor_of(None)
    InProcess()
    """
    if client is None and any(map(in_chunks, sources)) and (client := _active()) is not None:
        LOG.info("the steps run on the active Dask client, %s", client)
    if client is None:
        return InProcess(progress)
    used = connected_to(client) if isinstance(client, str | Path) else client
    if not isinstance(used, _kind_of_clients()):
        raise WorkbenchError(f"client must be a dask.distributed.Client or the address of a scheduler; got {client!r:.100}")
    connection = None if used is client else Connection()
    if connection is not None:   # opened here: closed with the last result that needs it, or with the error
        weakref.finalize(connection, used.close).atexit = False
    _require_ready(used)
    return OnDask(used, progress, connection=connection)


class Connection:
    """What executors hold while they need a client that was opened for them."""


def in_chunks(source: Any) -> bool:
    """Whether a source is one of chunks that workers may read: in an array of Dask, or of Zarr outside of memory.

    >>> in_chunks([0.5, 1.5])
    False
    """
    if isinstance(arrays := getattr(source, "arrays", None), Mapping):   # particles
        return any(map(in_chunks, arrays.values()))
    if not hasattr(source, "dtype"):
        return False
    names = ("values", "mask")
    values: list[Any] = [getattr(source, name) for name in names] if hasattr(source, "chunk_shape") else [source]
    return any(
        (hasattr(array, "__dask_graph__") and array.__dask_graph__() is not None)
        or isinstance(array, InZarr)
        or (type(array).__module__.partition(".")[0] == "zarr" and type(array.store).__name__ != "MemoryStore")
        for array in values
    )


def _active() -> Any:
    """The client that Dask itself would use here, unless it is asynchronous."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:   # there is none
        return None
    if client._asynchronous:
        LOG.warning("the active Dask client is asynchronous, and not used: give client=, the address of its scheduler")
        return None
    return client


def _require_ready(client: Any) -> None:
    """Wait for workers, and check them; those that come later are checked with their first step."""
    if client._asynchronous:
        raise WorkbenchError("client must not be asynchronous: give the address of its scheduler instead")
    if client.status != "running":
        raise WorkbenchError(f"client must be connected to a scheduler; it is {client.status}: make a new one")
    try:
        wait_for_workers(client)
        require_same_code(client)
    except WorkbenchError:
        raise
    except Exception as error:
        if client.status == "running":
            raise
        raise lost("start", error) from error


def require_same_code(client: Any) -> None:
    """Refuse a cluster of which a worker has other code than this process, or kernels or a GPU that do not work."""
    for worker, state in at_all_workers(client, _state).items():
        if isinstance(state, BaseException):
            raise WorkbenchError(f"the worker {worker} has no lossbench of this version ({state}): {SAME}")
        if state["code"] != own_code():
            raise WorkbenchError(
                f"the worker {worker} has lossbench {state['version']} with other code (hash {state['code'][:8]}) than "
                f"this process ({_version()}, hash {own_code()[:8]}): {SAME}"
            )
        if state["trouble"]:
            raise WorkbenchError(f"the worker {worker} cannot work: {state['trouble']}")


def require_shared(
    executor: Executor, folder: Path, what: str = "the scratch folder",
    remedy: str = "give scratch=, a folder of a shared file system",
) -> None:
    """Name this process as the owner of a folder; refuse one that some worker does not see, or may not write to."""
    named = folder / OWNER
    with complete(named, remedy) as file:
        file.write(this_process().encode())
    if not isinstance(executor, OnDask):
        return
    able = at_all_workers(executor.client, _can_write, str(named))
    if unable := [address for address, seen in able.items() if seen is not True]:
        raise WorkbenchError(
            f"{what} {folder} must be on a file system that all workers see and may write to; "
            f"{len(unable)} of {len(able)} cannot, such as {unable[0]}: {remedy}"
        )


def connected_to(given: str | Path) -> Any:
    """A new client of the scheduler at an address, or that a scheduler file (.json) names."""
    kind = _kind_of_clients()
    if str(given).endswith(".json"):
        _require_scheduler_file(Path(given))
    place = {"scheduler_file" if str(given).endswith(".json") else "address": str(given)}
    attempts = 0
    while True:
        try:
            return _started(kind, place)
        except (OSError, ValueError) as error:
            raise WorkbenchError(f"no scheduler answers at {given}: {error or type(error).__name__}") from error
        except AssertionError:   # Dask's: the scheduler's greeting came together with what it sends to all clients
            attempts += 1
            if attempts == GREETINGS:
                raise


def _started(kind: Any, place: Mapping[str, str]) -> Any:
    """A connected client. One that cannot connect is closed here.

    Python would close it whenever it collects it: perhaps while another client starts, in a lock that both take, for ever.
    """
    client = kind.__new__(kind)
    try:
        client.__init__(**place, set_as_default=False)   # a default client would stay, and with it Dask's default scheduler
    except BaseException:
        with suppress(Exception):   # of a client that was not made far enough to be closed
            client.close()
        raise
    return client


def _kind_of_clients() -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise WorkbenchError("a Dask client needs Dask, which is not installed: pip install 'lossbench[dask]'") from None
    return Client


def _require_scheduler_file(path: Path) -> None:
    """Refuse a scheduler file that is not there, for which Dask would wait, or that names no scheduler."""
    if not path.is_file():
        raise WorkbenchError(f"there is no scheduler file {path}: check the path, or start the scheduler first")
    try:
        address = json.loads(path.read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError):
        address = None
    if not isinstance(address, str):
        raise WorkbenchError(
            f"{path} must hold the address of a scheduler, as the file that `dask scheduler --scheduler-file` writes does"
        )


def _state(dask_worker: Any) -> dict[str, Any]:
    """What a worker is made of, and what keeps it from working."""
    trouble = None
    try:
        backend.threads()   # loads the kernels
        if GPU in dask_worker.state.total_resources:
            backend.gpu()
    except (WorkbenchError, OSError) as error:
        trouble = str(error)
    return {"version": _version(), "code": own_code(), "trouble": trouble}


def _can_write(named: str) -> bool:
    return os.path.exists(named) and os.access(os.path.dirname(named), os.W_OK)


def _version() -> str:
    return str(getattr(sys.modules["workbench"], "__version__", "of an unknown version"))
