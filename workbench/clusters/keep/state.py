"""What changes during a repair: the current positions of decoded particles, and what was tried so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.inside import Inside
from workbench.clusters.keep.problem import Problem

PINNED = backend.constant("moves.cuh", "PINNED")   # in place of a move: the particle has its original coordinates


@dataclass(eq=False)
class State:
    """The current positions, and the moves (int32; 0: none) that lead there from the decoded positions.

    `tries` counts the attempts in which a particle was an end of a violated constraint; none has more than `most_tries`.
    """

    problem: Problem
    current: Array = field(init=False)
    rank: Array = field(init=False)
    tries: Array = field(init=False)
    most_tries: int = 0   # on the host, so that nobody waits for a GPU

    def __post_init__(self) -> None:
        xp, count = self.problem.xp, len(self.problem)
        self.current = self.problem.decoded.copy()
        self.rank, self.tries = xp.zeros(count, xp.int32), xp.zeros(count, xp.int32)

    def particles(self, index: Array | None = None) -> Inside:
        """The particles as they are now; all, or some."""
        positions = self.current if index is None else self.current[index]
        return Inside(backend.read_only(positions), self.problem.original.box)

    def pin(self, index: Array) -> None:
        """Give particles their original coordinates."""
        self.current[index] = self.problem.original.positions[index]
        self.rank[index] = PINNED
