"""What repairs have changed in a subdomain: few particles, so a round writes these and not the state of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from workbench.clusters.keep.state import PINNED
from workbench.run.scratch_files import Mapped, load_together, save_together

STATE = ("current", "rank", "tries")   # what repairs change
Changes = Mapping[str, np.ndarray]     # the index of particles, and their state


@dataclass(frozen=True, eq=False)
class Moved:
    """The particles (rows, rising) whose state is not that of a decoded one, and their state by name."""

    rows: np.ndarray
    state: Changes

    @classmethod
    def load(cls, path: Path) -> Self:
        """What `save` has written."""
        found = load_together(path)
        return cls(found.pop("rows"), found)

    def save(self, path: Path) -> None:
        """Write everything."""
        save_together(path, {"rows": self.rows, **self.state})

    def among(self, name: str, rows: np.ndarray | slice, before: np.ndarray) -> np.ndarray:
        """The state of these rows, in place; `before` is that of decoded particles.

        >>> moved = Moved(np.array([2, 5]), {"rank": np.array([7, 8])})
        >>> moved.among("rank", np.array([5, 3]), np.zeros(2, int)).tolist()
        [8, 0]
        """
        if isinstance(rows, slice):
            before[self.rows] = self.state[name]
        elif len(self.rows):
            place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
            here = np.flatnonzero(self.rows[place] == rows)
            before[here] = self.state[name][place[here]]
        return before

    def after(self, changes: Iterable[Changes], index: np.ndarray | Mapped) -> tuple[Self, bool]:
        """The state after changes of particles that are here (`index`), the later ones last; and whether there were any."""
        given = [(self.rows, self.state)]
        for one in changes:
            place, here = _places(index, one["index"])
            given.append((place, {name: one[name][here] for name in STATE}))
        rows = np.concatenate([place for place, _ in reversed(given)])
        rows, first = np.unique(rows, return_index=True)   # the last change counts
        state = {name: np.concatenate([of[name] for _, of in reversed(given)])[first] for name in STATE}
        return type(self)(rows, state), any(len(place) for place, _ in given[1:])

    def away(self, owned: np.ndarray) -> np.ndarray:
        """Which of the rows are owned, and not where they were decoded."""
        found: np.ndarray = owned[self.rows] & (self.state["rank"] != 0)
        return found

    def exact(self, owned: np.ndarray) -> int:
        """How many of those that are owned have their original coordinates."""
        return int((self.state["rank"][owned[self.rows]] == PINNED).sum())


def update(columns: Changes, changes: Changes) -> None:
    """Take over the changes of particles that are in these columns, by rising index."""
    place, here = _places(columns["index"], changes["index"])
    for name in STATE:
        columns[name][place] = changes[name][here]


def _places(index: np.ndarray | Mapped, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where given particles are in a rising index, and which of them are there."""
    place = np.minimum(np.searchsorted(index, given), max(len(index) - 1, 0))
    here = index[place] == given if len(index) else np.zeros(len(given), bool)
    return place[here], here
