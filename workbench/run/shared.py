"""What all items of a step need: one file, which each worker reads once, so that a task carries nothing but its item.

Dask sends the function of a step with every task. A value of a megabyte in it would pass through the scheduler as many
times as there are items; and one that was sent to the workers beforehand would be lost with them. A file is there for
workers that join late, too. A task names the file and the digest of its bytes: only what this client wrote is unpickled.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from workbench.run.scratch_files import CHANGED, complete, unreadable

Result = TypeVar("Result")

AT_ONCE = 4   # steps of different runs on one worker, of which the values are held
_values: dict[Path, Any] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Shared:
    """A value in a file of a folder that all workers see.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shared = Shared.written(Path(folder), [1, 2, 3])
    ...     shared.value()
    [1, 2, 3]
    """

    path: Path
    digest: bytes

    @classmethod
    def written(cls, folder: Path, value: Any) -> Self:
        """Write a value."""
        from cloudpickle import dumps  # as Dask does: what is defined in a notebook travels along

        data, path = dumps(value), folder / f"shared-{uuid.uuid4().hex}"
        with complete(path) as file:
            file.write(data)
        return cls(path, _digest(data))

    def value(self) -> Any:
        """The value, read if this process does not hold it; those of steps that have ended are dropped then."""
        with _lock:
            if self.path not in _values:
                for path in [path for path in _values if not path.exists()]:
                    del _values[path]
                while len(_values) >= AT_ONCE:
                    del _values[next(iter(_values))]
                _values[self.path] = self._read()
            return _values[self.path]

    def delete(self) -> None:
        """The step has ended."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> Any:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise unreadable(self.path, error) from error
        if _digest(data) != self.digest:
            raise unreadable(self.path, OSError(CHANGED))
        return pickle.loads(data)


def with_shared(step: Callable[..., Result], shared: Shared | None) -> Callable[..., Result]:
    """The step with this value as its first argument."""
    return step if shared is None else partial(_run, step, shared)


def _run(step: Callable[..., Result], shared: Shared, item: Any) -> Result:
    return step(shared.value(), item)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
