"""What repairs have changed in a subdomain: few particles, so a round writes these and not the state of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from workbench.clusters.keep.state import PINNED
from workbench.run.scratch_files import load_together, save_together
from workbench.subdomains.merging import places_of

STATE = ("current", "rank", "tries")   # what repairs change
Changes = Mapping[str, np.ndarray]     # the index of particles, and their state


@dataclass(frozen=True, eq=False)
class Moved:
    """The particles (rows, rising) whose state is not that of a decoded one, and their state by name."""

    rows: np.ndarray
    state: Changes

    @classmethod
    def none(cls, dtype: np.dtype, dimensions: int) -> Self:
        """The state of decoded particles."""
        nothing = np.empty(0, np.int32)
        return cls(nothing, {"current": np.empty((0, dimensions), dtype), "rank": nothing, "tries": nothing})

    @classmethod
    def load(cls, path: Path) -> Self:
        """What `save` has written."""
        state = load_together(path)
        return cls(state.pop("rows"), state)

    def save(self, path: Path) -> None:
        """Write everything."""
        save_together(path, {"rows": self.rows, **self.state})

    def over(self, name: str, decoded: np.ndarray) -> np.ndarray:
        """The state of all particles, in place of that of decoded ones.

        >>> Moved(np.array([2, 4]), {"rank": np.array([7, 8])}).over("rank", np.zeros(5, int)).tolist()
        [0, 0, 7, 0, 8]
        """
        decoded[self.rows] = self.state[name]
        return decoded

    def after(self, changes: Iterable[Changes], index: np.ndarray) -> tuple[Self, bool]:
        """The state after changes of particles that are here (`index`), the later ones last; and whether there were any."""
        states = [(self.rows, self.state)]
        for one in changes:
            place, here = places_of(one["index"], index)
            states.append((place, {name: one[name][here] for name in STATE}))
        rows = np.concatenate([place for place, _ in reversed(states)])
        rows, first = np.unique(rows, return_index=True)   # the last change counts
        state = {name: np.concatenate([of[name] for _, of in reversed(states)])[first] for name in STATE}
        return type(self)(rows.astype(np.int32), state), any(len(place) for place, _ in states[1:])

    def exact(self, owned: np.ndarray) -> int:
        """How many of those that are owned have their original coordinates."""
        return int((self.state["rank"][owned[self.rows]] == PINNED).sum())
