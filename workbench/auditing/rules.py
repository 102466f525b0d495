"""The bound of each member by the rules of the caller: as in `wb.compress`, but a member without one is no error here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.rules import ALL, known_options, matching, require_some
from workbench.auditing.sides import Side
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Bound, Exact


def bounds_of(rules: Any, side: Side) -> dict[str, Bound]:
    """The bounds of the members that are arrays; of those that are exact unless named, only where a rule names them.

    A rule for all that allows errors is none about those. One that asks for equal values is about every member.
    """
    if rules is None or side.holds_particles:
        return {}
    members = side.members
    options = known_options(members if isinstance(members, Dataset) else Dataset(members), rules)
    return {name: own["bound"] for name, own in options.items() if own["bound"].eb > 0 or _names(rules, name)}


def bound_of_array(rules: Any, name: str, array: str, is_float: bool) -> Bound | None:
    """The bound of an array of particles: one alone is for positions, and what no rule is about is exact.

    >>> from workbench.guarantees import Absolute
    >>> bound_of_array({"velocities": Absolute(1.0)}, "gas/velocities", "velocities", True)
    Absolute(eb=1.0)
    >>> bound_of_array(Absolute(0.1), "positions", "positions", True), bound_of_array(Absolute(0.1), "ids", "ids", False)
    (Absolute(eb=0.1), Exact())
    """
    if rules is None:
        return None
    if isinstance(rules, Bound):
        return rules if array == "positions" else Exact()
    for pattern in sorted(rules, key=lambda one: one not in (name, array)):
        if matching(pattern, [name]) or matching(pattern, [array]):
            return rules[pattern] if is_float or not any(sign in pattern for sign in "*?[") else Exact()
    return Exact()


def require_rules(rules: Any, names: Iterable[str]) -> None:
    """Refuse what are no rules, and for particles a name that no array has."""
    if rules is None or isinstance(rules, Bound):
        return
    if not isinstance(rules, Mapping) or not rules or not all(isinstance(one, Bound) for one in rules.values()):
        raise WorkbenchError(
            f'bounds must be a bound, or rules such as {{"T": wb.Absolute(0.01), "*": wb.Exact()}}; got {briefly(rules)}'
        )
    arrays = {own for name in names for own in (name, name.rpartition("/")[2])}
    for pattern in rules:
        require_some(pattern, arrays, "an array of the particles, or a pattern")


def _names(rules: Any, name: str) -> bool:
    if isinstance(rules, Bound):
        return rules.eb == 0
    return any(matching(pattern, [name]) for pattern, rule in rules.items() if pattern != ALL or _bound(rule).eb == 0)


def _bound(rule: Any) -> Bound:
    bound: Bound = rule if isinstance(rule, Bound) else rule["bound"]
    return bound
