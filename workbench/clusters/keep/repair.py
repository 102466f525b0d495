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

MOST_ROUNDS = 64       # of moves: five are common
MOST_STEPS = 60        # of descent
STEPS_AT_ONCE = 20     # of descent, in one launch,
MOST_TOGETHER = 64     # where components have at most so many candidates
MARGIN_OF_DESCENT = 1 / 64   # descent aims beyond the threshold by this much, in bounds: room for rounding to moves
MOST_EVALUATED = 2**12       # distances, by one candidate in one round; one that needs more gives up
FEW = 500                    # candidates or constraints: with fewer, waking other threads takes longer than the work
UNSEEN = 4                   # rounds of moves on a GPU between two looks whether any candidate is left to evaluate


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
        self._show(0)

    def __len__(self) -> int:
        return len(self.around)

    @property
    def evaluated(self) -> Array:
        """How many distances were computed: a number where the arrays are, for which nobody waits."""
        return self.spent.sum()

    def move(self, parts: int = 0, *, refine: bool = False, to_target: bool = False, partly: bool = False) -> None:
        """Let candidates move until no move is an improvement.

        The moves tried are all multiples of 1/`parts` of the bound, more bits of each residual (`refine`), and moves near
        the result of descent (`to_target`); `partly` also allows moves that only reduce the violation.
        """
        problem = self.state.problem
        given = {
            "target": self.target, "cost": self._cost, "refining": refine, "with_target": to_target, "partial": partly,
            "last_rank": alphabet(problem.original.dimensions).last(parts) if parts else -1, "pending": self.pending,
        }
        self._in_rounds("propose", given, self.pending)

    @functools.cached_property
    def _cost(self) -> Array:
        """What it costs to store that a candidate moves."""
        problem = self.state.problem
        return problem.xp.asarray(COSTS)[problem.surmise.context[self.around.candidates]]

    def relax(self) -> None:
        """Replace moves by simpler ones, or undo them, where the constraints stay satisfied."""
        last = alphabet(self.state.problem.original.dimensions).last(2)
        self._in_rounds("relax", {"last_rank": last}, self.state.problem.xp.ones(len(self), np.uint8))

    def descend(self, report: Callable[[Step], object] | None = None) -> None:
        """Find joint target positions of the candidates by projected gradient descent; candidates do not move yet.

        A component of candidates without violations stops. As components do not affect each other, small ones take several
        steps in one launch.
        """
        problem, xp, count = self.state.problem, self.state.problem.xp, len(self)
        displaced, ahead = xp.zeros_like(self.target), xp.zeros_like(self.target)
        loss, missed = xp.zeros((1, count)), xp.zeros((1, count), np.int32)
        component, active = self.around.components(problem), xp.arange(count, dtype=np.int32)
        small, number = int(xp.bincount(component, minlength=1).max()) <= MOST_TOGETHER, 0
        while len(active) and number < MOST_STEPS:
            start, member = _bodies(component, active) if small else (xp.arange(len(active) + 1), active)
            steps = min(STEPS_AT_ONCE, MOST_STEPS - number) if small else 1
            loss, missed = (xp.repeat(last[-1:], steps, axis=0) for last in (loss, missed))
            problem.kernel("descent", "descend")(
                len(start) - 1, self.around.given, problem.given, start=start, member=member, steps=steps, candidates=count,
                margin=MARGIN_OF_DESCENT * problem.bound, displaced=displaced, next=ahead, loss=loss, missed=missed,
            )
            displaced[active] = ahead[active]
            violated = xp.zeros(count, bool)
            violated[component[missed[-1] > 0]] = True
            active = xp.flatnonzero(violated[component]).astype(np.int32)
            if report is not None:
                self._report(report, number, missed, loss)
            number += steps
        self.target = displaced

    def _report(self, report: Callable[[Step], object], number: int, missed: Array, loss: Array) -> None:
        """Tell of each of these steps (rows) up to the first one without violations: they do not come back."""
        problem, left = self.state.problem, backend.to_host(missed.sum(axis=1))
        steps = min(len(left), int((left > 0).sum()) + 1)
        # Row by row: along an axis, floating-point numbers are added in another order on a GPU.
        losses = backend.to_host(problem.xp.stack([row.sum() for row in loss[:steps]])) / problem.bound**2
        for step in range(steps):
            report(Step(number + step, int(left[step]), float(losses[step]), within=problem.limit.value))

    def missed(self) -> Needs:
        """The violated constraints."""
        return self.needs.chosen(self.state.problem.xp.flatnonzero(self.needs.missed(self.state)))

    def _in_rounds(self, proposing: str, given: dict[str, Any], pending: Array) -> None:
        """Repeat rounds of proposals and accepted moves until no proposal is accepted.

        After the first round, only pending candidates with a neighbour that moved are evaluated again. A GPU does a few
        rounds without being asked whether there is anything to do: one without candidates changes nothing.
        """
        state, problem, xp, count = self.state, self.state.problem, self.state.problem.xp, len(self)
        proposed, score = xp.zeros(count, np.int32), xp.zeros(count, np.int64)
        accepted, awake = xp.zeros(count, np.uint8), xp.ones(count, np.uint8)
        now = {"current": state.current, "rank": state.rank, "spent": self.spent, "gave_up": self.gave_up}
        bundles, looks = (self.around.given, problem.given, {**given, **now}), backend.on_device(awake)
        for number in range(1, MOST_ROUNDS + 1):
            waiting = (pending & awake & ~self.gave_up).view(bool)
            active = _listed(waiting)
            if not len(active) or (looks and number % UNSEEN == 0 and not bool(waiting.any())):
                return
            awake, going = xp.zeros(count, np.uint8), waiting.any(keepdims=True).view(np.uint8)
            with threads_for(len(active)):
                problem.kernel("repair", proposing)(
                    len(active), *bundles, active=active, most=MOST_EVALUATED, proposed=proposed, score=score
                )
                # Proposals of earlier rounds that no move has concerned since may be accepted, too.
                problem.kernel("repair", "accept")(count, self.around.given, score=score, going=going, accepted=accepted)
                problem.kernel("repair", "carry_out")(
                    count, *bundles, accepted=accepted, proposed=proposed, score=score, awake=awake
                )
            if self.watch is not None and bool(awake.any()):
                self._show(number)

    def _show(self, number: int) -> None:
        """Report the violations after this many rounds to `watch`."""
        if self.watch is None:
            return
        missed = 2 * int(self.needs.missed(self.state).sum())
        loss = float((self.needs.misses(self.state) ** 2).sum()) / self.state.problem.bound**2
        self.watch(Step(number, missed, loss, "moves", self.state.problem.limit.value))


def _bodies(component: Array, active: Array) -> tuple[Array, Array]:
    """The active candidates, component by component, and where each component begins."""
    xp = backend.namespace(component)
    member = active[xp.argsort(component[active], kind="stable")]
    of_member = component[member]
    begins = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), of_member[1:] != of_member[:-1]]))
    return xp.concatenate([begins, xp.full(1, len(member), begins.dtype)]), member


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
