"""Which bound each member of a dataset has: rules by name or pattern, and what needs none.

A name counts before patterns, and an earlier pattern before a later one. Integers, text, dates and coordinates are kept
exactly where no rule names them; other numbers without a rule are refused, as nobody should lose digits unasked.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from workbench.archive.chunking import checked_chunks, names_of
from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.names import require_known
from workbench.data import Field
from workbench.data.variable import Form, Variable
from workbench.errors import WorkbenchError, briefly, some_of
from workbench.guarantees import Bound, Exact

ALL = "*"
OPTIONS = (
    "bound", "codec", "keep", "order", "velocities", "columns", "column_codec", "store_permutation", "chunk_values",
    "chunks", "speed",
)


def options_for(dataset: Dataset, rules: Any) -> dict[str, dict[str, Any]]:
    """The arguments of `wb.compress` for each member: at least its bound.

    A rule is a bound, or a mapping of arguments with one. A bound alone is for all numbers that need one.

    >>> import workbench as wb
    >>> dataset = Dataset({"T": [1.0], "P": [2.0], "id": [3]})
    >>> {name: options["bound"] for name, options in options_for(dataset, {"T": wb.Absolute(0.1), "*": wb.Exact()}).items()}
    {'T': Absolute(eb=0.1), 'P': Exact(), 'id': Exact()}
    """
    found = known_options(dataset, rules)
    if missing := [name for name in dataset if name not in found]:
        raise _missing_rules(missing)
    return found


def known_options(dataset: Dataset, rules: Any) -> dict[str, dict[str, Any]]:
    """The same for the members that have a rule, or need none."""
    if isinstance(rules, Bound):
        return {name: {"bound": Exact() if is_exact(dataset, name) else rules} for name in dataset}
    if not isinstance(rules, Mapping) or not rules:
        raise WorkbenchError(
            f'the bounds of a dataset must be a bound, or rules such as {{"T": wb.Absolute(0.01), "*": wb.Exact()}}; '
            f"got {briefly(rules)}"
        )
    known = {name: _options(name, rule) for name, rule in rules.items()}
    for name in known:
        require_some(name, dataset)
    names = set(dataset)
    patterns = {name: options for name, options in known.items() if name not in names}   # a name is about one member alone
    found = {}
    for name in dataset:
        with contextlib.suppress(_NoRule):
            found[name] = known[name] if name in known else _option_of(dataset, name, patterns)
    return found


class _NoRule(Exception):
    """No rule is about a member of floating-point numbers."""


def _missing_rules(names: list[str]) -> WorkbenchError:
    have = "has" if len(names) == 1 else "have"
    rule = f'{names[0]!r}: wb.Absolute(...), or "*": wb.Exact() for all others'
    return WorkbenchError(f"{some_of(map(repr, names))} {have} no bound: add a rule, such as {rule}")


def chunks_for(dataset: Dataset, chunks: Any) -> dict[str, dict[str, int | None] | None]:
    """The shape of chunks for each member, where all members have one by the names of dimensions; None where it has none.

    >>> dataset = Dataset({"T": Field([[1.0, 2.0]], metadata={"dimensions": ["time", "x"]}), "id": [3]})
    >>> chunks_for(dataset, {"time": 1})
    {'T': {'time': 1}, 'id': None}
    """
    asked = checked_chunks(chunks)
    if asked is not None and not isinstance(asked, Mapping):
        raise WorkbenchError(f'chunks of a dataset must be as {{"time": 1}}, or in a rule; got {briefly(chunks)}')
    axes = {name: _dimensions(member) for name, member in dataset.items()}
    for dimension in asked or ():
        require_known(dimension, dict.fromkeys(axis for names in axes.values() for axis in names), "a dimension")
    own = {name: {axis: size for axis, size in (asked or {}).items() if axis in names} for name, names in axes.items()}
    return {name: sizes or None for name, sizes in own.items()}


def _dimensions(member: Any) -> list[str]:
    """The names of the axes that chunks of a member can have; none where its numbers have other axes."""
    shape = getattr(member, "shape", ())
    if isinstance(member, Variable) and not Form.of(member.values).keeps_axes:
        return []
    return names_of(member.metadata.get("dimensions"), len(shape))


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a rule is about: itself, those of its group, or those like its pattern.

    >>> matching("P*", ["P", "P_mean", "T"]), matching("ocean", ["ocean/T", "T"])
    (['P', 'P_mean'], ['ocean/T'])
    """
    listed = list(names)
    if pattern in listed:
        return [pattern]
    return [name for name in listed if fnmatch.fnmatchcase(name, pattern) or name.startswith(f"{pattern}/")]


def _option_of(dataset: Dataset, name: str, patterns: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    exact = is_exact(dataset, name)
    for pattern, options in patterns.items():
        if matching(pattern, [name]) and not (exact and any(sign in pattern for sign in "*?[")):
            return {"bound": Exact()} if exact else options
    if exact:
        return {"bound": Exact()}
    raise _NoRule


def _options(name: Any, rule: Any) -> dict[str, Any]:
    if isinstance(rule, Bound):
        return {"bound": rule}
    if isinstance(rule, Mapping) and isinstance(rule.get("bound"), Bound):
        for option in rule:
            require_known(option, OPTIONS, f"an argument in the rule for {name!r}")
        return dict(rule)
    raise WorkbenchError(f'the rule for {name!r} must be a bound, or {{"bound": ..., "codec": ...}}; got {briefly(rule)}')


def require_some(pattern: Any, names: Collection[str], what: str = "a member, of a group, or a pattern") -> None:
    """Refuse a rule that is about none of these names: a slip of the pen would leave one without its bound."""
    if pattern != ALL and not (isinstance(pattern, str) and matching(pattern, names)):
        require_known(pattern, names, what)


def is_exact(dataset: Dataset, name: str) -> bool:
    """Whether a member is kept exactly unless a rule names it: what says where and when others are, and what counts."""
    if name in dataset.coordinates or name in dataset.describing:
        return True
    member = dataset[name]
    if isinstance(member, Variable):
        return member.values.dtype.kind not in "fcV"
    dtype = member.values.dtype if isinstance(member, Field) else member.dtype if hasattr(member, "masks_itself") else None
    return dtype is not None and dtype.kind in "iu"
