"""A cache of results about data objects, kept as long as the data, so that a slider step does not repeat work.

Data are identified by object identity: comparing their content would take as long as the work saved. Only recently used
results are kept, so that looking through a thousand slices does not fill the memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar
from weakref import WeakKeyDictionary

Result = TypeVar("Result")

MOST = 8   # of one kind, of one set of data

_LOCK = threading.Lock()   # jobs run in threads of their own
_HELD: WeakKeyDictionary[object, dict[str, OrderedDict[Hashable, object]]] = WeakKeyDictionary()


def remembered(owner: object, kind: str, key: Hashable, make: Callable[[], Result]) -> Result:
    """The cached result of `make` for this owner, kind and key; calls `make` if there is none.

    The result must not refer to its owner, which would then never be freed.

    >>> from workbench.data import Field
    >>> field = Field([1.0, 2.0])
    >>> remembered(field, "sum", "all", lambda: 3.0), remembered(field, "sum", "all", lambda: 1 / 0)
    (3.0, 3.0)
    """
    with _LOCK:
        held = _HELD.setdefault(owner, {}).setdefault(kind, OrderedDict())
        if key in held:
            held.move_to_end(key)
            return held[key]   # type: ignore[return-value]   # one kind, one type
    made = make()
    with _LOCK:
        held[key] = made
        while len(held) > MOST:
            held.popitem(last=False)
    return made


def remembered_with(
    owner: object, kind: str, parts: tuple[object, ...], key: Hashable, make: Callable[[], Result]
) -> Result:
    """The cached result for these parts, which are told apart by identity and kept with the result, so that ids stay valid.

    No part may refer to the owner, either.
    """
    return remembered(owner, kind, (*map(id, parts), key), lambda: (make(), parts))[0]
