"""What was worked out about data before, for as long as the data live: a slider step must not do it again.

Data are known by identity, not by content, which would take as long to compare as the work that is to be spared. Only what
was used last is kept, so that somebody who looks through a thousand slices does not fill the memory.
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
    """What `make` returned for this key of this kind when it was last asked for; `owner` is what it is about.

    It must not refer to its owner, which would then live for ever.

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
