"""Rounds of moves: each candidate proposes the move that satisfies most constraints; the locally best proposals are made.

A Luby-style independent set chooses the proposals of a round, so that neighbours do not move at the same time. Simple moves
come first, since they take the fewest bits. Where no move of one particle suffices, projected gradient descent on a squared
hinge loss finds joint target positions, and particles take the moves of the alphabet nearest to them. Every move is checked
for links it could make or break. The result is deterministic: it depends on neither the number of threads nor the machine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.edits import COSTS
from workbench.clusters.keep.moves import alphabet
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.state import State
from workbench.clusters.keep.surroundings import Surroundings
from workbench.ordering import places_of

MOST_ROUNDS = 64       # of moves: five are common
MOST_STEPS = 60        # of descent
STEPS_AT_ONCE = 20     # of descent, in one launch,
MOST_TOGETHER = 64     # where components have at most so many candidates
MARGIN_OF_DESCENT = 1 / 64   # descent aims beyond the threshold by this much, in bounds: room for rounding to moves
MOST_EVALUATED = 2**12       # distances, by one candidate in one round; one that needs more gives up
FEW = 500                    # candidates or constraints: with fewer, waking other threads takes longer than the work
UNSEEN = 4                   # rounds of each kind of moves on a GPU before a look whether any candidate is left to evaluate


Phase = Literal["moves", "descent"]


@dataclass(frozen=True)
class Step:
    """One step of descent or one round of moves, counted from 1; step 0 is the state before.

    `missed` counts the violated constraints at both ends, and `loss` is half the sum of their squared violations, in
    squared bounds. The loss of descent also contains new label conflicts. `violations` counts each constraint once.
    `within` is the bound of the positions that are repaired: an archive may try several.

    >>> Step(3, 12, 0.5).violations
    6
    """

    number: int
    missed: int
    loss: float
    phase: Phase = "descent"
    within: float = 0.0

    @property
    def violations(self) -> int:
        """How many pairs of particles are still wrong."""
        return (self.missed + 1) // 2


@dataclass(frozen=True)
class Moves:
    """Moves to try: multiples of 1/`parts` of the bound, more bits of each residual, or moves near the result of descent.

    `partly` also allows moves that only reduce the violation.
    """

    parts: int = 0
    refine: bool = False
    to_target: bool = False
    partly: bool = False


@dataclass(eq=False)
class Repair:
    """An attempt to satisfy some constraints; `watch`, if given, is called with the outcome of each round of moves.

    Candidates act on what they see, so those that are not connected by neighbour lists do not affect each other.
    """

    state: State
    needs: Needs
    around: Surroundings
    watch: Callable[[Step], object] | None = None
    target: Array = field(init=False)      # where each candidate should go, as a displacement
    gave_up: Array = field(init=False)     # candidates that evaluated too many distances
    pending: Array = field(init=False)     # candidates with violated constraints when they were last evaluated
    spent: Array = field(init=False)       # how many distances each candidate evaluated

    def __post_init__(self) -> None:
        xp = self.state.problem.xp
        self.target = xp.zeros((len(self), self.state.problem.original.dimensions))
        self.gave_up, self.pending = xp.zeros(len(self), np.uint8), xp.ones(len(self), np.uint8)
        self.spent = xp.zeros(len(self), np.int64)
        self._left: tuple[Array, int] | None = None   # which constraints were violated after all moves
        self.show(0)

    def __len__(self) -> int:
        return len(self.around)

    @property
    def evaluated(self) -> Array:
        """How many distances were computed: a number where the arrays are, for which nobody waits."""
        return self.spent.sum()

    def move(self, *several: Moves) -> None:
        """Let candidates move, by these moves one after the other, each until no move is an improvement."""
        self._in_rounds([Rounds(self, "propose", self._given(moves), self.pending) for moves in several])

    def _given(self, moves: Moves) -> dict[str, Any]:
        last = alphabet(self.state.problem.original.dimensions).last(moves.parts) if moves.parts else -1
        return {
            "target": self.target, "cost": self._cost, "refining": moves.refine, "with_target": moves.to_target,
            "partial": moves.partly, "last_rank": last, "pending": self.pending,
        }

    @functools.cached_property
    def _cost(self) -> Array:
        """What it costs to store that a candidate moves."""
        problem = self.state.problem
        return problem.xp.asarray(COSTS)[problem.surmise.context[self.around.candidates]]

    def relax(self) -> None:
        """Replace moves by simpler ones, or undo them, where the constraints stay satisfied."""
        last = alphabet(self.state.problem.original.dimensions).last(2)
        self._in_rounds([Rounds(self, "relax", {"last_rank": last}, self.state.problem.xp.ones(len(self), np.uint8))])

    def descend(self, report: Callable[[Step], object]) -> None:
        """Find joint target positions of the candidates by projected gradient descent; candidates do not move yet.

        A component of candidates without violations stops. As components do not affect each other, small ones take several
        steps in one launch.
        """
        problem, xp, count = self.state.problem, self.state.problem.xp, len(self)
        displaced, ahead = xp.zeros_like(self.target), xp.zeros_like(self.target)
        loss, missed = xp.zeros((1, count)), xp.zeros((1, count), np.int32)
        component, active, number = self.around.components(problem), xp.arange(count, dtype=np.int32), 0
        start, member, largest = _bodies(component, active)
        small = largest <= MOST_TOGETHER
        while len(active) and number < MOST_STEPS:
            if not small:
                start, member = xp.arange(len(active) + 1), active
            elif number:
                start, member, _ = _bodies(component, active)
            steps = min(STEPS_AT_ONCE, MOST_STEPS - number) if small else 1
            loss, missed = (xp.repeat(last[-1:], steps, axis=0) for last in (loss, missed))
            problem.kernel("descent", "descend")(
                len(start) - 1, self.around.given, problem.given, start=start, member=member, steps=steps, candidates=count,
                margin=MARGIN_OF_DESCENT * problem.bound, displaced=displaced, next=ahead, loss=loss, missed=missed,
            )
            displaced[active] = ahead[active]
            violated = xp.zeros(count + 1, bool)   # by component; the last one stands for candidates without violations
            violated[xp.where(missed[-1] > 0, component, count)] = True
            going = violated[component]
            left = self._report(report, number, missed, loss, going)
            active = places_of(going, left).astype(np.int32)
            number += steps
        self.target = displaced

    def _report(self, report: Callable[[Step], object], number: int, missed: Array, loss: Array, going: Array) -> int:
        """Tell of each of these steps (rows) up to the first one without violations: they do not come back.

        Returns how many candidates are `going` on (flags): all numbers come in one copy.
        """
        problem, xp = self.state.problem, self.state.problem.xp
        # Row by row: along an axis, floating-point numbers are added in another order on a GPU.
        losses, rows = xp.stack([row.sum() for row in loss]), len(loss)
        counts = missed.sum(axis=1), going.sum(keepdims=True)
        told = backend.to_host(xp.concatenate([*(count.astype(np.float64) for count in counts), losses]))
        unmet = told[:rows].astype(np.int64)
        for step in range(min(rows, int((unmet > 0).sum()) + 1)):
            size = float(told[rows + 1 + step] / problem.bound**2)
            report(Step(number + step, int(unmet[step]), size, within=problem.limit.value))
        return int(told[rows])

    def missed(self) -> Needs:
        """The violated constraints."""
        known, self._left = self._left, None   # others may move later
        if known is not None:
            return self.needs.chosen(places_of(*known))
        return self.needs.chosen(self.state.problem.xp.flatnonzero(self.needs.missed(self.state)))

    def _in_rounds(self, several: list[Rounds]) -> None:
        """Repeat the rounds of each of these until no proposal is accepted.

        A GPU does a few rounds of all of them without being asked: those that come later change nothing until those before
        them have nothing left to do. With the answer come the violated constraints.
        """
        if not backend.on_device(self.pending):
            for rounds in several:
                while rounds.done < MOST_ROUNDS and rounds.once():
                    pass
            return
        while several:
            before = self.state.problem.xp.ones(1, bool)
            ended = []
            for rounds in several:
                for number in range(min(UNSEEN, MOST_ROUNDS - rounds.done)):
                    rounds.once(before, number)
                before = before & ~(rounds.waiting() & before).any(keepdims=True)
                ended.append(before[0])
            missed = self.needs.missed(self.state)
            *answers, left = backend.numbers(*ended, missed.sum())
            several = several[sum(answers) :]
            if several:
                several[0].done += UNSEEN
                several = several[several[0].done >= MOST_ROUNDS :]
        self._left = missed, left

    def show(self, number: int) -> None:
        """Report the violations after this many rounds to `watch`."""
        if self.watch is None:
            return
        missed = 2 * int(self.needs.missed(self.state).sum())
        loss = float((self.needs.misses(self.state) ** 2).sum()) / self.state.problem.bound**2
        self.watch(Step(number, missed, loss, "moves", self.state.problem.limit.value))


@dataclass(eq=False)
class Rounds:
    """Rounds of one kind of proposals, repeated until none is accepted.

    After the first round, only pending candidates with a neighbour that moved are evaluated again. A round without
    candidates changes nothing.
    """

    repair: Repair
    proposing: str           # the kernel
    given: dict[str, Any]    # its arguments
    pending: Array
    done: int = 0

    def __post_init__(self) -> None:
        xp, count = self.repair.state.problem.xp, len(self.repair)
        self.proposed, self.score = xp.zeros(count, np.int32), xp.zeros(count, np.int64)
        self.accepted, self.awake = xp.zeros(count, np.uint8), xp.ones(count, np.uint8)

    def waiting(self) -> Array:
        """The candidates that are to be evaluated, as flags."""
        return (self.pending & self.awake & ~self.repair.gave_up).view(bool)

    def once(self, allowed: Array | None = None, ahead: int = 0) -> bool:
        """One round, if `allowed`, a flag where the arrays are; whether there was anything to do, as far as is known."""
        repair, state, problem, xp = self.repair, self.repair.state, self.repair.state.problem, self.repair.state.problem.xp
        waiting = self.waiting() if allowed is None else self.waiting() & allowed
        active = _listed(waiting)
        if not len(active):
            return False
        if allowed is None:
            self.done += 1
            self.awake = xp.zeros_like(self.awake)
        else:
            self.awake = self.awake & ~allowed.view(np.uint8)
        now = {"current": state.current, "rank": state.rank, "spent": repair.spent, "gave_up": repair.gave_up}
        bundles = repair.around.given, problem.given, {**self.given, **now}
        going = waiting.any(keepdims=True).view(np.uint8)
        with threads_for(len(active)):
            problem.kernel("repair", self.proposing)(
                len(active), *bundles, active=active, most=MOST_EVALUATED, proposed=self.proposed, score=self.score
            )
            # Proposals of earlier rounds that no move has concerned since may be accepted, too.
            problem.kernel("repair", "accept")(
                len(repair), repair.around.given, score=self.score, going=going, accepted=self.accepted
            )
            problem.kernel("repair", "carry_out")(
                len(repair), *bundles, accepted=self.accepted, proposed=self.proposed, score=self.score, awake=self.awake
            )
        if repair.watch is not None and bool(self.accepted.any()):
            repair.show(self.done + ahead + (allowed is not None))
        return True


def _bodies(component: Array, active: Array) -> tuple[Array, Array, int]:
    """Where each component begins among the active candidates, and the end; these, sorted by it; the largest one's size."""
    xp = backend.namespace(component)
    member = active[xp.argsort(component[active], kind="stable")]
    of_member = component[member]
    first, last = (xp.searchsorted(of_member, of_member, side=side) for side in ("left", "right"))
    begins = first == xp.arange(len(member))
    bodies, largest = backend.numbers(begins.sum(), (last - first).max()) if len(member) else (0, 0)
    return xp.concatenate([places_of(begins, bodies), xp.full(1, len(member), first.dtype)]), member, largest


def threads_for(count: int) -> AbstractContextManager[None]:
    """As many CPU threads as work on so many candidates or constraints is worth."""
    return backend.using_threads(1 if count < FEW else backend.threads())


def _listed(flags: Array) -> Array:
    """The indices (int32) where flags (bool) are set; on a GPU -1 follows for each other flag, so that nobody waits."""
    xp, count = backend.namespace(flags), len(flags)
    if xp is np:
        return np.flatnonzero(flags).astype(np.int32)
    listed = xp.full(count + 1, -1, np.int32)   # the last one takes what is not listed
    listed[xp.where(flags, xp.cumsum(flags) - 1, count)] = xp.where(flags, xp.arange(count, dtype=np.int32), -1)
    return listed[:-1]
