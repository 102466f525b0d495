"""The user's choices for all variables of a dataset, and the rules for `wb.compress` that they come to."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench import codecs
from workbench.archive.collection.rules import ALL
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Exact
from workbench.lab.bounds_panel.members import Members
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.choices import told_how_to_change

FIELDS = tuple(field.name for field in dataclasses.fields(BoundsState))


@told_how_to_change
@dataclass(frozen=True)
class DatasetState(BoundsState):
    """The choices for the `variable` on display, as in `BoundsState`, and those for all `others` that were looked at.

    >>> state = DatasetState("sz3", eb=0.1, variable="T", others=(("P", BoundsState("zfp")),))
    >>> list(state.choices), state.choices["T"].eb
    (['P', 'T'], 0.1)
    """

    variable: str = ""
    others: tuple[tuple[str, BoundsState], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.variable, str):
            raise WorkbenchError(f"variable must be the name of one; got {briefly(self.variable)}")
        named = isinstance(self.others, tuple) and all(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is BoundsState
            for pair in self.others
        )
        if not named:
            raise WorkbenchError(f"others must be pairs of a name and a BoundsState; got {briefly(self.others)}")

    @functools.cached_property
    def choices(self) -> Mapping[str, BoundsState]:
        """The choices for each variable that was looked at."""
        return {**dict(self.others), self.variable: BoundsState(**fields_of(self))}

    def leaving(self, name: str) -> tuple[tuple[str, BoundsState], ...]:
        """The others, once another variable is on display."""
        return tuple((other, choices) for other, choices in self.choices.items() if other != name)


def fields_of(state: BoundsState) -> dict[str, Any]:
    """The choices for one variable by name."""
    return {name: getattr(state, name) for name in FIELDS}


def rules_of(members: Members, choices: Mapping[str, BoundsState]) -> dict[str, dict[str, Any]]:
    """The rules of the variables that have one of their own, in the order of the dataset; all others are kept exactly."""
    rules = {name: rule_of(choices[name], members.usual(name)) for name in members.dataset if name in choices}
    return {name: rule for name, rule in rules.items() if rule}


def rule_of(choices: BoundsState, usual: str) -> dict[str, Any]:
    """The arguments of `wb.compress` for one variable; none if it is kept exactly by the `usual` codec.

    >>> rule_of(BoundsState("sz3", eb=0.1), "interpolation")
    {'bound': Absolute(eb=0.1), 'codec': 'sz3'}
    >>> rule_of(BoundsState("interpolation", exact=True), "interpolation")
    {}
    """
    order = {} if choices.order == "keep" else {"order": choices.order}
    if choices.exact and not order and choices.given == codecs.get(usual):
        return {}
    return {"bound": choices.bound, "codec": choices.codec, **order}


def all_rules(members: Members, rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules with that of all others, or with those of each, if one has the name that stands for all."""
    others = [name for name in members.dataset if name not in rules]
    return {**rules, **dict.fromkeys(others if ALL in members.dataset else [ALL] if others else [], Exact())}


def key_of(rule: Mapping[str, Any]) -> str:
    """A text that is the same for the same rule; empty for that of variables without one."""
    if not rule:
        return ""
    codec = rule["codec"] if not isinstance(rule["codec"], str) else codecs.get(rule["codec"])
    return json.dumps([codec.to_dict(), rule["bound"].to_dict(), rule.get("order")], sort_keys=True, default=str)


def key_of_all(rules: Mapping[str, Mapping[str, Any]]) -> str:
    """A text that is the same for the same rules of a dataset."""
    return json.dumps({name: key_of(rule) for name, rule in rules.items()}, sort_keys=True)
