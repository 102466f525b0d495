"""Rounds of moves: each candidate proposes the move that satisfies most constraints; the locally best proposals are made.

A Luby-style independent set chooses the proposals of a round, so that neighbours do not move at the same time. Simple moves
come first, since they take the fewest bits. Where no move of one particle suffices, projected gradient descent on a squared
hinge loss finds joint target positions, and particles take the moves of the alphabet nearest to them. Every move is checked
for links it could make or break. The result is deterministic: it depends on neither the number of threads nor the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from workbench.backend import Array
from workbench.clusters.keep.moves import alphabet
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.scene import PINNED, Scene
from workbench.clusters.keep.surroundings import Surroundings
from workbench.clusters.sorted_cells import SortedCells

MOST_ROUNDS = 64       # of moves: five are common
MOST_STEPS = 60        # of descent
MARGIN_OF_DESCENT = 1 / 64   # descent aims beyond the threshold by this much, in bounds: room for rounding to moves


Phase = Literal["moves", "descent"]


@dataclass(frozen=True)
class Step:
    """One step of descent or one round of moves, counted from 1; step 0 is the state before.

    `missed` counts the violated constraints at both ends, and `loss` is half the sum of their squared violations, in
    squared bounds. The loss of descent also contains new label conflicts. `violations` counts each constraint once.

    >>> Step(3, 12, 0.5).violations
    6
    """

    number: int
    missed: int
    loss: float
    phase: Phase = "descent"

    @property
    def violations(self) -> int:
        """How many pairs of particles are still wrong."""
        return (self.missed + 1) // 2


@dataclass(eq=False)
class Repair:
    """An attempt to satisfy some constraints; `watch`, if given, is called with the outcome of each round of moves."""

    scene: Scene
    cells: SortedCells
    needs: Needs
    watched: float   # interaction radius of moves, in bounds
    watch: Callable[[Step], object] | None = None
    around: Surroundings = field(init=False)
    target: Array = field(init=False)   # where each candidate should go, as a displacement

    def __post_init__(self) -> None:
        self.around = Surroundings.of(self.scene, self.cells, self.needs, self.watched)
        self.target = self.scene.xp.zeros((len(self), self.scene.original.dimensions))
        self._show(0)

    def __len__(self) -> int:
        return len(self.around.candidates)

    def move(self, parts: int = 0, *, refine: bool = False, to_target: bool = False, partly: bool = False) -> None:
        """Let candidates move until no move is an improvement.

        The moves tried are all multiples of 1/`parts` of the bound, more bits of each residual (`refine`), and moves near
        the result of descent (`to_target`); `partly` also allows moves that only reduce the violation.
        """
        xp, scene, moves = self.scene.xp, self.scene, alphabet(self.scene.original.dimensions)
        last = moves.last(parts) if parts else -1
        tables = xp.asarray(moves.moves), xp.asarray(moves.ranks)
        costs = scene.cost[self.around.candidates], xp.asarray(moves.costs)
        pending = xp.ones(len(self), xp.uint8)

        def propose(active: Array, proposed: Array, score: Array) -> None:
            scene.kernel("repair", "propose")(
                len(active), active, *self._given(), scene.original.positions, scene.decoded, scene.current, *scene.bounds,
                scene.step, scene.surmise.forward, *tables, last, int(refine), int(to_target), self.target, int(partly),
                *costs, scene.rank, proposed, score, pending,
            )

        self._in_rounds(propose, pending)

    def relax(self) -> None:
        """Replace moves by simpler ones, or undo them, where the constraints stay satisfied."""
        xp, scene, moves = self.scene.xp, self.scene, alphabet(self.scene.original.dimensions)

        def propose(active: Array, proposed: Array, score: Array) -> None:
            scene.kernel("repair", "relax")(
                len(active), active, *self._given(), scene.original.positions, scene.decoded, scene.current, *scene.bounds,
                scene.step, scene.surmise.forward, xp.asarray(moves.moves), moves.last(2), scene.rank, proposed, score,
            )

        self._in_rounds(propose, xp.ones(len(self), xp.uint8))

    def descend(self, report: Callable[[Step], object] | None = None) -> None:
        """Find joint target positions of the candidates by projected gradient descent; candidates do not move yet."""
        xp, scene, bound = self.scene.xp, self.scene, self.scene.bound
        displaced, ahead = xp.zeros_like(self.target), xp.zeros_like(self.target)
        loss, missed = xp.empty(len(self)), xp.empty(len(self), xp.int32)
        for number in range(MOST_STEPS):
            scene.kernel("descent", "descend")(
                len(self), *self._given(), scene.original.positions, scene.decoded, *scene.bounds, self.around.slot,
                MARGIN_OF_DESCENT * bound, displaced, ahead, loss, missed,
            )
            displaced, ahead = ahead, displaced
            left = int(missed.sum())
            if report is not None:
                report(Step(number, left, float(loss.sum()) / bound**2))
            if not left:
                break
        self.target = displaced

    def missed(self) -> Needs:
        """The violated constraints."""
        return self.needs.chosen(self.scene.xp.flatnonzero(self.needs.missed(self.scene)))

    def _in_rounds(self, propose: Callable[[Array, Array, Array], None], pending: Array) -> None:
        """Repeat rounds of proposals and accepted moves until no proposal is accepted.

        After the first round, only pending candidates with a neighbour that moved are evaluated again.
        """
        xp, scene, around = self.scene.xp, self.scene, self.around
        sight = around.start, around.end, around.neighbours, around.need_start, around.partner, around.slot
        proposed, score = xp.empty(len(self), xp.int32), xp.zeros(len(self), xp.int64)
        accepted, awake = xp.empty(len(self), xp.uint8), xp.ones(len(self), xp.uint8)
        moves = xp.asarray(alphabet(scene.original.dimensions).moves)
        for number in range(1, MOST_ROUNDS + 1):
            propose(xp.flatnonzero(awake).astype(xp.int32), proposed, score)
            scene.kernel("repair", "accept")(len(self), around.candidates, *sight, score, accepted)
            if not bool(accepted.any()):
                return
            scene.kernel("repair", "carry_out")(
                len(self), around.candidates, accepted, proposed, scene.surmise.forward, moves, scene.decoded,
                scene.periods, scene.step, scene.current, scene.rank,
            )
            self._show(number)
            scene.kernel("repair", "wake")(len(self), *sight, accepted, pending, awake)
            score[accepted.astype(bool)] = 0

    def _show(self, number: int) -> None:
        """Report the violations after this many rounds to `watch`."""
        if self.watch is None:
            return
        missed = 2 * int(self.needs.missed(self.scene).sum())
        loss = float((self.needs.misses(self.scene) ** 2).sum()) / self.scene.bound**2
        self.watch(Step(number, missed, loss, "moves"))

    def _given(self) -> tuple[Any, ...]:
        """The arguments about candidates that all kernels take."""
        scene, around = self.scene, self.around
        needs = around.need_start, around.partner, around.kind
        lists = around.candidates, around.start, around.end, around.neighbours, *needs
        return (*lists, scene.group, len(scene.lengths), len(scene), *scene.thresholds, scene.periods)


def pin(scene: Scene, index: Array) -> int:
    """Give particles their original coordinates; returns how many did not have them."""
    fresh = index[scene.rank[index] != PINNED]
    scene.current[fresh] = scene.original.positions[fresh]
    scene.rank[fresh] = PINNED
    return int(np.size(fresh))
