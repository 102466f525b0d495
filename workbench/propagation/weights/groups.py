"""Which tensors have a bound in common: layers, blocks and experts, by their names or by patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.archive.collection.names import require_known
from workbench.archive.collection.rules import matching
from workbench.errors import WorkbenchError, briefly

_BY_NUMBER = {"layers": re.compile(r"(.*?\d+)(?=\D)"), "experts": re.compile(r"(.*\d+)(?=\D)")}


def chosen_names(what: str, patterns: Any, names: Mapping[str, Any]) -> list[str]:
    """The names that are meant by names and patterns; each must mean some."""
    listed = [patterns] if isinstance(patterns, str) else list(patterns) if isinstance(patterns, Sequence) else None
    if listed is None:
        raise WorkbenchError(f"{what} must be names or patterns of tensors; got {briefly(patterns)}")
    found: dict[str, None] = {}
    for pattern in listed:
        meant = matching(pattern, names) if isinstance(pattern, str) else []
        if not meant:
            require_known(pattern, names, f"a tensor in {what}")
        found.update(dict.fromkeys(meant))
    return list(found)


def groups_of(asked: Any, bounded: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, list[str]]:
    """The groups of the tensors that are bounded, by name; a tensor that is in none is one by itself.

    >>> tensors = dict.fromkeys(["blk.0.q.weight", "blk.0.k.weight", "blk.1.q.weight", "output"])
    >>> {name: len(members) for name, members in groups_of("layers", tensors, tensors).items()}
    {'blk.0': 2, 'blk.1': 1, 'output': 1}
    """
    found: dict[str, list[str]] = {}
    if isinstance(asked, str):
        if asked not in _BY_NUMBER:
            raise WorkbenchError(f"groups must be layers, experts, or a mapping of names to patterns; got {asked!r}")
        for name in bounded:
            number = _BY_NUMBER[asked].match(name)
            found.setdefault(number.group(1) if number else name, []).append(name)
        return found
    if not isinstance(asked, Mapping | None):
        raise WorkbenchError(f"groups must be layers, experts, or a mapping of names to patterns; got {briefly(asked)}")
    home: dict[str, str] = {}
    for group, patterns in (asked or {}).items():
        for name in chosen_names(f"the group {group!r}", patterns, names):
            if home.setdefault(name, group) != group:
                raise WorkbenchError(f"a tensor is in one group; {name!r} is in {home[name]!r} and in {group!r}")
    for name in bounded:
        found.setdefault(home.get(name, name), []).append(name)
    return found
