"""What changes during a repair: the current positions of decoded particles, and what was tried so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.problem import Problem
from workbench.data import Particles

PINNED = backend.constant("moves.cuh", "PINNED")   # in place of a move: the particle has its original coordinates


@dataclass(eq=False)
class State:
    """The current positions, and the moves (int32; 0: none) that lead there from the decoded positions.

    `tries` counts the attempts in which a particle was an end of a violated constraint.
    """

    problem: Problem
    current: Array = field(init=False)
    rank: Array = field(init=False)
    tries: Array = field(init=False)

    def __post_init__(self) -> None:
        xp, count = self.problem.xp, len(self.problem)
        self.current = self.problem.decoded.copy()
        self.rank, self.tries = xp.zeros(count, xp.int32), xp.zeros(count, xp.int32)

    def particles(self, index: Array | None = None) -> Particles:
        """The particles as they are now; all, or some."""
        positions = self.current if index is None else self.current[index]
        return Particles(backend.read_only(positions), self.problem.original.box)

    def changed(self) -> Array:
        """Which particles are not at their decoded positions."""
        differs, xp = self.current != self.problem.decoded, self.problem.xp
        found = xp.zeros(len(self.problem), bool)
        found[xp.flatnonzero(differs) // differs.shape[1]] = True
        return found

    def pin(self, index: Array) -> None:
        """Give particles their original coordinates."""
        self.current[index] = self.problem.original.positions[index]
        self.rank[index] = PINNED
