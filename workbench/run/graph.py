"""Steps on blocks of Dask arrays, as one graph; and Dask arrays of what is read when it is needed.

What several blocks need (a mean, a chunk of the source that two blocks share) is computed once, and Dask decides the order,
moves blocks between workers, and bounds memory. In this process, Dask's threads do the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from workbench.errors import WorkbenchError
from workbench.run.executors import RETRIES, Executor, OnDask, Refusal, Told, cause_of, checked
from workbench.run.patience import lost, result_of

Result = TypeVar("Result")


def in_one_graph(
    executor: Executor, name: str, step: Callable[..., Result], items: Sequence[Sequence[Any]]
) -> list[Result]:
    """The results of `step(*item)`, in order; what is lazy in an item is computed first."""
    from dask.base import compute
    from dask.callbacks import Callback
    from dask.delayed import delayed

    run, told = uuid.uuid4().hex[:8], Told(executor.progress, name, len(items))
    call = delayed(checked(step) if isinstance(executor, OnDask) else step, name=name, pure=False)
    keys = [f"{name}-{run}-{number}" for number in range(len(items))]
    tasks = [call(*item, dask_key_name=key) for key, item in zip(keys, items, strict=True)]
    if not isinstance(executor, OnDask):
        ours = frozenset(keys)
        with Callback(posttask=lambda key, *_: told.more() if key in ours else None):   # type: ignore[no-untyped-call]
            return list(compute(*tasks, scheduler="threads"))   # type: ignore[no-untyped-call]
    futures, results = executor.client.compute(tasks, retries=RETRIES), []
    try:
        for number, future in enumerate(futures, start=1):
            results.append(computed(executor.client, future, f"{name} {number} of {len(items)}"))
            told.more()
    finally:
        if executor.client.status == "running":
            executor.client.cancel(futures)
    return results


def computed(client: Any, future: Any, what: str) -> Any:
    """The result of a checked step; `what` is for messages."""
    try:
        result = result_of(client, future, what)
    except WorkbenchError:
        raise
    except Exception as error:
        if client.status != "running":
            raise lost(what, error) from error
        raise WorkbenchError(f"{what} failed on the cluster: {cause_of(error)}") from error
    if isinstance(result, Refusal):
        raise result.error
    return result


def read_by_dask(rows: Any, sizes: tuple[int, ...], name: str) -> Any:
    """A Dask array of one axis in chunks of these sizes, which takes them as `rows[start:end]` when it is computed.

    >>> import numpy as np
    >>> read_by_dask(np.arange(5), (2, 3), "numbers")[1:3].compute().tolist()
    [1, 2]
    """
    try:
        from dask.array import from_array
    except ImportError:
        raise WorkbenchError("a Dask array needs Dask, which is not installed: pip install 'lossbench[dask]'") from None
    meta = np.empty(0, rows.dtype)   # so that Dask reads nothing to find the type
    return from_array(rows, (sizes,), name, asarray=False, inline_array=False, meta=meta)   # type: ignore[no-untyped-call]
