"""The states that a user can go back to: one step for each movement of a slider, each entry, each choice.

Looking around is not worth many steps: windows that follow one another are one step, and so are halos picked one after
another.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

State = TypeVar("State")

MOST = 100                  # steps
SCREEN = {"pixels", "tab"}  # fields that only say what is on the screen: its size, and the tab that is open
LOOKS = ({"window"}, {"chosen"})


class History(Generic[State]):
    """Steps back and forth.

    >>> from workbench.lab.clusters_panel.state import ClustersState
    >>> first, second = ClustersState(0.1), ClustersState(0.2)
    >>> history = History()
    >>> history.note(first, second)
    >>> history.back(second).bound, history.forth(first).bound
    (0.1, 0.2)
    """

    def __init__(self) -> None:
        self._past: deque[State] = deque(maxlen=MOST)
        self._future: list[State] = []
        self._latest: Hashable = None   # the movement that the latest step belongs to

    @property
    def ends(self) -> tuple[bool, bool]:
        """Whether there is a step back, and one forth."""
        return bool(self._past), bool(self._future)

    def note(self, before: State, after: State, movement: Hashable = None) -> None:
        """Remember a change. Changes of one movement are one step; without a movement, each is."""
        changed = _changed(before, after)
        if not changed:
            return
        if changed in LOOKS:
            movement = tuple(changed)
        if movement is None or movement != self._latest or not self._past:
            self._past.append(before)
        self._latest = movement
        self._future.clear()

    def back(self, present: State) -> State | None:
        """The state before the latest step; None at the beginning."""
        return self._travel(present, self._past, self._future)

    def forth(self, present: State) -> State | None:
        """The state before the latest step back; None if there was none."""
        return self._travel(present, self._future, self._past)

    def _travel(self, present: State, source: Any, target: Any) -> State | None:
        if not source:
            return None
        self._latest = None
        target.append(present)
        kept = {name: getattr(present, name) for name in SCREEN if hasattr(present, name)}
        return dataclasses.replace(source.pop(), **kept)


def _changed(one: Any, other: Any) -> set[str]:
    """The names of the fields that differ, but for those of the screen."""
    names = {field.name for field in dataclasses.fields(one)} - SCREEN
    return {name for name in names if getattr(one, name) != getattr(other, name)}
