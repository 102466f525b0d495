"""The particle types of Gadget and its relatives: 0 gas, 1 dark matter, 2 to 5 stars and the rest."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from workbench.errors import WorkbenchError

DARK_MATTER = 1


def chosen_type(wanted: Any, counts: Mapping[int, int], name: str) -> int:
    """The type asked for, or else dark matter where there is any, or else the only type there is.

    >>> chosen_type(None, {0: 10, 1: 20, 4: 0}, "snap")
    1
    >>> chosen_type(4, {0: 10, 1: 20, 4: 0}, "snap")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: snap has no particles of particle_type 4; it has 10 of type 0, 20 of type 1
    """
    present = {kind: count for kind, count in counts.items() if count}
    listed = ", ".join(f"{count:,} of type {kind}" for kind, count in sorted(present.items()))
    if not present:
        raise WorkbenchError(f"{name} holds no particles of any type")
    if wanted is None:
        if DARK_MATTER in present:
            return DARK_MATTER
        if len(present) == 1:
            return next(iter(present))
        raise WorkbenchError(f"{name} has no dark matter (type 1): choose by particle_type=...; it has {listed}")
    try:
        kind = -1 if isinstance(wanted, bool) else operator.index(wanted)
    except TypeError:
        kind = -1
    if kind not in present:
        raise WorkbenchError(f"{name} has no particles of particle_type {wanted!r}; it has {listed}")
    return kind
