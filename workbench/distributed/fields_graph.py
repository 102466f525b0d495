"""Steps on blocks of Dask arrays, as one graph.

What several blocks need (a mean, a chunk of the source that two blocks share) is computed once, and Dask decides the order,
moves blocks between workers, and bounds memory. In this process, Dask's threads do the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from workbench.distributed.executors import RETRIES, Executor, OnDask, Told
from workbench.errors import WorkbenchError

Result = TypeVar("Result")


def in_one_graph(
    executor: Executor, name: str, step: Callable[..., Result], items: Sequence[Sequence[Any]]
) -> list[Result]:
    """The results of `step(*item)`, in order; what is lazy in an item is computed first."""
    from dask.base import compute
    from dask.callbacks import Callback
    from dask.delayed import delayed

    run, call, told = uuid.uuid4().hex[:8], delayed(step, pure=False), Told(executor.progress, name, len(items))
    keys = [f"{name}-{run}-{number}" for number in range(len(items))]
    tasks = [call(*item, dask_key_name=key) for key, item in zip(keys, items, strict=True)]
    if not isinstance(executor, OnDask):
        ours = frozenset(keys)
        with Callback(posttask=lambda key, *_: told.one_more() if key in ours else None):   # type: ignore[no-untyped-call]
            return list(compute(*tasks, scheduler="threads"))   # type: ignore[no-untyped-call]
    futures, results = executor.client.compute(tasks, retries=RETRIES), []
    try:
        for number, future in enumerate(futures, start=1):
            results.append(_result(future, f"{name} {number} of {len(items)}"))
            told.one_more()
    finally:
        executor.client.cancel(futures)
    return results


def _result(future: Any, what: str) -> Any:
    try:
        return future.result()
    except WorkbenchError:
        raise
    except Exception as error:
        raise WorkbenchError(f"{what} failed on the cluster: {type(error).__name__}: {error}") from error
