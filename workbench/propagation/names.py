"""Names: lists of them, and those that are not known, with the known ones that look most like them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Any

from workbench.errors import WorkbenchError, briefly, some_of

SHOWN = 8


def listed(what: str, given: Any) -> tuple[str, ...]:
    """One or several names, as a tuple.

    >>> listed("the inputs", "waves")
    ('waves',)
    """
    several = isinstance(given, Iterable) and not isinstance(given, str) and getattr(given, "ndim", 1) > 0
    names = tuple(given) if several else (given,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise WorkbenchError(f"{what} must be one or more names; got {briefly(given)}")
    return names


def require_known(what: str, name: object, known: Collection[str]) -> str:
    """The name, if it is a known one.

    >>> require_known("site", "densty", ["input", "density", "waves"])
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: there is no site 'densty'; the nearest names are: density
    """
    if isinstance(name, str) and name in known:
        return name
    near = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.5)
    if near:
        raise WorkbenchError(f"there is no {what} {name!r}; the nearest names are: {', '.join(near)}")
    raise WorkbenchError(f"there is no {what} {briefly(name)}; there are: {some_of(known, SHOWN)}")
