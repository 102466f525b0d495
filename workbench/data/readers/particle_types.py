"""The particle types of Gadget and its relatives: 0 gas, 1 dark matter, 2 to 5 stars and the rest."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from workbench.errors import NoSuchPart, WorkbenchError

DARK_MATTER = 1
ALL = "all"
NAMES = {   # as readers of SWIFT and IllustrisTNG call them
    "gas": 0, "dark_matter": 1, "dm": 1, "stars": 4, "black_holes": 5, "bh": 5,
}
NAME_OF_TYPE = ("gas", "dark_matter", "type_2", "type_3", "stars", "black_holes")
TypeWanted = int | str | None


def chosen_types(wanted: Any, counts: Mapping[int, int], name: str) -> tuple[int, ...]:
    """The type asked for by number or name, or "all"; or else dark matter where there is any, or the only type there is.

    >>> chosen_types(None, {0: 10, 1: 20, 4: 0}, "snap"), chosen_types("all", {0: 10, 1: 20, 4: 0}, "snap")
    ((1,), (0, 1))
    >>> chosen_types("gas", {0: 10, 1: 20}, "snap")
    (0,)
    >>> chosen_types(4, {0: 10, 1: 20, 4: 0}, "snap")
    Traceback (most recent call last):
    workbench.errors.NoSuchPart: snap has no particles of particle_type 4; it has 10 of type 0, 20 of type 1
    """
    present = {kind: count for kind, count in counts.items() if count}
    listed = ", ".join(f"{count:,} of type {kind}" for kind, count in sorted(present.items()))
    if not present:
        raise WorkbenchError(f"{name} holds no particles of any type")
    if isinstance(wanted, str):
        if wanted == ALL:
            return tuple(sorted(present))
        wanted = NAMES.get(wanted, wanted)
    if wanted is None:
        if DARK_MATTER in present:
            return (DARK_MATTER,)
        if len(present) == 1:
            return tuple(present)
        raise WorkbenchError(f"{name} has no dark matter (type 1): choose by particle_type=...; it has {listed}")
    try:
        kind = -1 if isinstance(wanted, bool) else operator.index(wanted)
    except TypeError:
        kind = -1
    if kind not in present:
        raise NoSuchPart(f"{name} has no particles of particle_type {wanted!r}; it has {listed}")
    return (kind,)


def described_types(kinds: tuple[int, ...]) -> dict[str, Any]:
    """The metadata entry: one type, or the types in their order.

    >>> described_types((1,)), described_types((0, 4))
    ({'particle_type': 1}, {'particle_type': [0, 4]})
    """
    return {"particle_type": kinds[0] if len(kinds) == 1 else list(kinds)}
