"""The states that a user can go back to: one step for each movement of a slider, each entry, each choice.

Looking around is not worth many steps: windows that follow one another are one step, and so are halos picked one after
another.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Collection, Hashable
from typing import Any, Generic, TypeVar

State = TypeVar("State")

MOST = 100   # steps


class History(Generic[State]):
    """Steps back and forth. Fields `on_screen` are no matter of steps; changes of one field `in_passing` in a row are one.

    >>> from workbench.lab.clusters_panel.state import ClustersState
    >>> first, second = ClustersState(0.1), ClustersState(0.2)
    >>> history = History(on_screen={"pixels"})
    >>> history.note(first, second)
    >>> history.back(second).bound, history.forth(first).bound
    (0.1, 0.2)
    """

    def __init__(self, on_screen: Collection[str] = (), in_passing: Collection[str] = ()) -> None:
        self._on_screen, self._in_passing = on_screen, in_passing
        self._past: deque[State] = deque(maxlen=MOST)
        self._future: list[State] = []
        self._latest: Hashable = None   # the movement that the latest step belongs to

    @property
    def ends(self) -> tuple[bool, bool]:
        """Whether there is a step back, and one forth."""
        return bool(self._past), bool(self._future)

    def note(self, before: State, after: State, movement: Hashable = None) -> None:
        """Remember a change. Changes of one movement are one step; without a movement, each is."""
        names = {field.name for field in dataclasses.fields(before)}.difference(self._on_screen)   # type: ignore[arg-type]
        changed = {name for name in names if getattr(before, name) != getattr(after, name)}
        if not changed:
            return
        if len(changed) == 1 and changed <= {*self._in_passing}:
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
        kept = {name: getattr(present, name) for name in self._on_screen if hasattr(present, name)}
        return dataclasses.replace(source.pop(), **kept)
