"""Which bound each member of a dataset has: rules by name or pattern, and what needs none.

A name counts before patterns, and an earlier pattern before a later one. Integers, text, dates and coordinates are kept
exactly where no rule names them; other numbers without a rule are refused, as nobody should lose digits unasked.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.names import require_known
from workbench.data import Field
from workbench.data.variable import Variable
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Bound, Exact

ALL = "*"
OPTIONS = ("bound", "codec", "keep", "order", "velocities", "store_permutation", "chunk_values", "speed", "columns")


def options_for(dataset: Dataset, rules: Any) -> dict[str, dict[str, Any]]:
    """The arguments of `wb.compress` for each member: at least its bound.

    A rule is a bound, or a mapping of arguments with one. A bound alone is for all numbers that need one.

    >>> import workbench as wb
    >>> dataset = Dataset({"T": [1.0], "P": [2.0], "id": [3]})
    >>> {name: options["bound"] for name, options in options_for(dataset, {"T": wb.Absolute(0.1), "*": wb.Exact()}).items()}
    {'T': Absolute(eb=0.1), 'P': Exact(), 'id': Exact()}
    """
    if isinstance(rules, Bound):
        return {name: {"bound": Exact() if _is_exact(dataset, name) else rules} for name in dataset}
    if not isinstance(rules, Mapping) or not rules:
        raise WorkbenchError(
            f'the bounds of a dataset must be a bound, or rules such as {{"T": wb.Absolute(0.01), "*": wb.Exact()}}; '
            f"got {briefly(rules)}"
        )
    known = {name: _options(name, rule) for name, rule in rules.items()}
    for name in known:
        _require_some(name, dataset)
    return {name: _option_of(dataset, name, known) for name in dataset}


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a rule is about: itself, those of its group, or those like its pattern.

    >>> matching("P*", ["P", "P_mean", "T"]), matching("ocean", ["ocean/T", "T"])
    (['P', 'P_mean'], ['ocean/T'])
    """
    listed = list(names)
    if pattern in listed:
        return [pattern]
    return [name for name in listed if fnmatch.fnmatchcase(name, pattern) or name.startswith(f"{pattern}/")]


def _option_of(dataset: Dataset, name: str, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    if name in known:
        return known[name]
    exact = _is_exact(dataset, name)
    for pattern, options in known.items():
        if matching(pattern, [name]) and not (exact and any(sign in pattern for sign in "*?[")):
            return {"bound": Exact()} if exact else options
    if exact:
        return {"bound": Exact()}
    raise WorkbenchError(
        f'{name!r} has no bound: add a rule, such as {name!r}: wb.Absolute(...), or "*": wb.Exact() for all others'
    )


def _options(name: Any, rule: Any) -> dict[str, Any]:
    if isinstance(rule, Bound):
        return {"bound": rule}
    if isinstance(rule, Mapping) and isinstance(rule.get("bound"), Bound):
        for option in rule:
            require_known(option, OPTIONS, f"an argument in the rule for {name!r}")
        return dict(rule)
    raise WorkbenchError(f'the rule for {name!r} must be a bound, or {{"bound": ..., "codec": ...}}; got {briefly(rule)}')


def _require_some(pattern: Any, dataset: Dataset) -> None:
    """Refuse a rule that is about no member: a slip of the pen would leave one without its bound."""
    if pattern == ALL or (isinstance(pattern, str) and matching(pattern, dataset)):
        return
    require_known(pattern, dataset, "a member, of a group, or a pattern")


def _is_exact(dataset: Dataset, name: str) -> bool:
    """Whether a member is kept exactly unless a rule names it."""
    if name in dataset.coordinates:
        return True
    member = dataset[name]
    if isinstance(member, Variable):
        return member.values.dtype.kind not in "fcV"
    dtype = member.values.dtype if isinstance(member, Field) else member.dtype if hasattr(member, "masks_itself") else None
    return dtype is not None and dtype.kind in "iu"
