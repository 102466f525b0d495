"""Which members of the original and of the lossy copy belong together: those of one name, or the only one of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.archive.collection.rules import matching, require_some
from workbench.auditing.sides import Side
from workbench.errors import WorkbenchError, some_of


def paired(original: Side, lossy: Side, only: Iterable[str]) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The names of members that belong together, and those of members that only the original, or only the lossy, has."""
    wanted = _chosen(original, only)
    names = {name: name for name in wanted if name in lossy.members}
    alone = [name for name in original.data if name in wanted and name not in lossy.members]
    unnamed = [name for name in lossy.data if name not in original.members]
    if lossy.bare and len(alone) > 1:   # an array without a name is that of its shape
        alone = [name for name in alone if _shape(original.members[name]) == _shape(lossy.members[unnamed[0]])] or alone
    if len(alone) == len(unnamed) == 1 and not any(name in names for name in original.data):
        names[alone[0]] = unnamed[0]
    if not names and wanted[:1] + list(lossy.members)[:1] in (["particles", "frame_0"], ["frame_0", "particles"]):
        names[wanted[0]] = next(iter(lossy.members))   # a trajectory of one frame
    pairs = [(name, names[name]) for name in original.members if name in names]
    if not any(name in original.data for name, _ in pairs) and not (pairs and not alone):
        raise WorkbenchError(
            f"{original.name} and {lossy.name} must have a member in common; got {some_of(map(repr, wanted))} and "
            f"{some_of(map(repr, lossy.members))}: give two arrays, or rename one"
        )
    missing = [name for name in wanted if name not in names]
    extra = [name for name in lossy.members if name not in names.values() and name not in original.members]
    return pairs, missing, extra


def _shape(member: Any) -> tuple[int, ...]:
    return tuple(getattr(member, "shape", ()))


def _chosen(original: Side, only: Iterable[str]) -> list[str]:
    """The members that are audited: all, or those that these names and patterns are about."""
    patterns = [only] if isinstance(only, str) else list(only)
    if not patterns or original.holds_particles:   # of these, the names are those of arrays
        return list(original.members)
    for pattern in patterns:
        require_some(pattern, original.members)
    chosen = {name for pattern in patterns for name in matching(pattern, original.members)}
    return [name for name in original.members if name in chosen]
