"""Results for earlier states, so that moving a slider back costs nothing."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable
from typing import Any

MOST_BYTES = 768 * 2**20   # so that a panel of a million particles, with all libraries, stays below 1.5 GB


class Memory:
    """A cache of results. The least recently used are dropped when their total gets too large.

    The newest stays, and so do those that are needed, however large they are.

    >>> memory = Memory(most_bytes=10)
    >>> memory.keep("a", "one", nbytes=6); memory.keep("b", "two", nbytes=6)
    >>> memory.find("a"), memory.find("b")
    (None, 'two')
    >>> memory.keep("c", "three", nbytes=6, needed=["b"])
    >>> memory.find("b"), memory.find("c")
    ('two', 'three')
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The total size of all results."""
        with self._lock:
            return sum(nbytes for _, nbytes in self._held.values())

    def find(self, key: Hashable) -> Any:
        """The result of this key, marked as used; None if there is none."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def keep(self, key: Hashable, result: Any, nbytes: int | None = None, needed: Collection[Hashable] = ()) -> None:
        """Keep a result beside those that are `needed`; its size is that of `size_of` if it is not given."""
        size = size_of(result) if nbytes is None else nbytes
        with self._lock:
            self._held[key] = result, size
            self._held.move_to_end(key)
            total = sum(nbytes for _, nbytes in self._held.values())
            for other in [other for other in self._held if other != key and other not in needed]:
                if total <= self.most_bytes:
                    break
                total -= self._held.pop(other)[1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


def size_of(result: object) -> int:
    """The size that a result states as `nbytes`, or else the sum over its fields, and over what these contain by name.

    >>> import numpy as np
    >>> size_of(np.zeros(3)), size_of({"a": np.zeros(3), "b": None})
    (24, 24)
    """
    if (stated := getattr(result, "nbytes", None)) is not None:
        return int(stated)
    if isinstance(result, dict):
        return sum(map(size_of, result.values()))
    if not dataclasses.is_dataclass(result) or isinstance(result, type):
        return 0
    parts = (getattr(result, field.name) for field in dataclasses.fields(result))
    return sum(size_of(part) for part in parts if isinstance(part, dict) or hasattr(part, "nbytes"))
