"""Repeated repair until decoded particles have the groups of the original ones.

The first attempt satisfies nearly all constraints. Particles that no move can repair get their original coordinates; this
may disturb neighbours, and so may moves of one round together. So after it, `proof.py` shows for every constraint that it
is satisfied, or names suspects. Their groups and all particles near them are compared again, as this takes a small part of
the time that all particles take. Later attempts move few particles; after them, the groups of the particles concerned are
compared again, and all particles near these. Where those are many, the proof is repeated; where suspects are many, all are
searched again.

Why it is enough to compare again what is near ends of constraints and particles that have moved: a search does not list
every conflict, but each particle that has one is in a conflict that is listed (`kernels/unlike.cuh`). So both particles of
a conflict are ends. If neither of two particles is an end or has moved since, they are as far apart as before, and had no
conflict; all other pairs are compared again. An end counts as moved although it may not have: of three particles in one
place, two conflicts may be listed, both with the first one; once it has moved, the others still conflict.

None of this decides. In the end the finder searches all particles as they will be decoded; it knows nothing of constraints,
marks or lists. If it finds other groups, those concerned get their original coordinates, and all is compared and repaired
again; the next time, all particles do.

What is done about a violated constraint depends on its two particles alone, on how often they were ends of violated
constraints before. So a violation in one place changes no move in another. The loop terminates: the original satisfies all
constraints, and each attempt after the first few gives more particles their original coordinates. A violation is found in
the attempt after its cause, so the number of attempts so far is a property of the place, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.backend import Array
from workbench.clusters.friends import link
from workbench.clusters.keep.needs import Needs, find_needs, groups_with_needs
from workbench.clusters.keep.partition import kept_labels
from workbench.clusters.keep.proof import FirstLook
from workbench.clusters.keep.region import groups_of, region_around
from workbench.clusters.keep.repair import Moves, Repair, Step, threads_for
from workbench.clusters.keep.state import PINNED, State
from workbench.clusters.keep.surroundings import Surroundings, listed_around
from workbench.clusters.keep.view import Again, AsDecoded, View
from workbench.clusters.sorted_cells import SortedCells
from workbench.errors import GuaranteeBroken
from workbench.guarantees.guarantee import UNLIMITED, Allowance, TooExpensive
from workbench.ordering import count_of, places_of
from workbench.progress import Progress

# The escalation for a constraint, by the number of earlier attempts in which one of its ends had a violated constraint.
PIN_AFTER = 3       # the ends of violated constraints get their original coordinates at once
SPREAD_AFTER = 12   # so do all their neighbours
RADII = (2.0, 6.0)  # interaction radius of moves, in bounds: in the first attempt, which has few collisions, and later

RESORT_AFTER = 64   # attempts: the last resort, all in a vicinity that doubles get their original coordinates
MOST_ATTEMPTS = RESORT_AFTER + 32   # in the last one, all particles do



@dataclass(eq=False)
class Attempts:
    """The repair of one set of particles, and its figures."""

    state: State
    progress: Progress | None
    allowance: Allowance = UNLIMITED
    count: int = 0
    opened: Array = 0     # groups that were split or joined before: a number where the arrays are
    needs: int = 0
    spent: Array = 0      # distances computed by candidates: a number where the arrays are
    descent: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._exempt = self.state.problem.xp.zeros(len(self.state.problem), np.uint8)
        self._first = FirstLook(Needs.none(self.state), None)

    @property
    def evaluated(self) -> int:
        """How many distances candidates have computed."""
        return int(self.spent)

    def until_kept(self) -> None:
        """Repair until the finder gives the particles, as they will be decoded, the groups of the original.

        It ends: after a second disagreement, all particles have their original coordinates.
        """
        state, needs = self.state, self._look(AsDecoded(self.state.problem))
        self.needs, self._first = len(needs), FirstLook(needs, None)
        self.opened = sum(flags.sum() for flags in groups_with_needs(state, needs))
        self._repair_all(needs)
        for pinning in (self._groups_of, self._everybody, None):
            differs = self._in_other_groups()
            if not bool(differs.any()):
                return
            if pinning is None:
                raise GuaranteeBroken("exact particles are found in groups that are not the original's: please report this")
            state.pin(pinning(differs))
            self._require_affordable()
            self._repair_all(self._look())

    def _repair_all(self, needs: Needs) -> None:
        """Repair these constraints, and those that this violates, until a search finds none."""
        while len(needs):
            with threads_for(len(needs)):
                moved = self._attempt(needs)
            needs = self._look_after(moved)

    def _in_other_groups(self) -> Array:
        """The particles (flags) that the finder sees in other groups than in the original: it knows of no constraint."""
        problem, members = self.state.problem, self.state.problem.promise.min_members
        self._tell("finding the groups again")
        current, differs = self.state.particles(), problem.xp.zeros(len(problem), bool)
        for length, groups in zip(problem.lengths, problem.wanted, strict=True):
            found = link(SortedCells.of(current, length))
            differs |= kept_labels(found, members) != kept_labels(groups, members)
        return differs

    def _groups_of(self, chosen: Array) -> Array:
        """All particles in the original groups of those that are chosen (flags)."""
        xp, whole = self.state.problem.xp, chosen.copy()
        for groups in self.state.problem.wanted:
            touched = xp.zeros(len(whole), bool)
            touched[groups.labels[chosen]] = True
            whole |= touched[groups.labels]
        return xp.flatnonzero(whole).astype(np.int32)

    def _everybody(self, chosen: Array) -> Array:
        return self.state.problem.xp.arange(len(chosen), dtype=np.int32)

    @property
    def exempt(self) -> Array:
        """How many particles are in pairs whose original distance has decided: a number where the arrays are."""
        return count_of(self._exempt.view(bool))

    def close_calls(self, exempt: int) -> int:
        """How many deciding pairs are within the margin of a linking length, because they are so in the original."""
        index = places_of(self._exempt.view(bool), exempt)
        return len(find_needs(self.state, groups_of(self.state.problem, index), exempt=False)) if exempt else 0

    def _look(self, view: View | None = None, text: str = "comparing all groups") -> Needs:
        self._tell(text)
        return find_needs(self.state, view, used=self._exempt)

    def _look_again(self) -> Needs:
        """The violated constraints of all particles, as far as these may differ from what the first look has found."""
        problem = self.state.problem
        return self._look(Again(problem, self._first.needs.ends(self.state)) if problem.promise.min_members == 1 else None)

    def _look_after(self, moved: Array) -> Needs:
        """The violated constraints after an attempt, of which these are the ends and others that moved (flags).

        Before it, the ends of all were known.
        """
        if self.count > 1:   # the first one moves many
            index = self.state.problem.xp.flatnonzero(moved).astype(np.int32)
            if (region := region_around(self.state, index)) is not None:
                with threads_for(len(region.index)):
                    return self._look(region, "comparing the groups concerned")
        return self._unproven()

    def _unproven(self) -> Needs:
        """The violated constraints of all particles: a search of those about which there is no proof."""
        if self.state.problem.promise.min_members > 1:
            return self._look_again()
        self._tell("comparing all that has moved")
        suspects = self._first.suspects(self.state, self._exempt)
        if suspects is None:
            return self._look_again()
        if not len(suspects):
            return Needs.none(self.state)
        region = region_around(self.state, suspects)
        return self._look_again() if region is None else self._look(region, "comparing the groups concerned")

    def _attempt(self, needs: Needs) -> Array:
        """Move the ends of these constraints, or give particles their original coordinates; returns flags of them all."""
        state, xp, ends = self.state, self.state.problem.xp, needs.pairs.ravel()   # some ends repeatedly
        if self.count == MOST_ATTEMPTS:
            raise GuaranteeBroken(f"{len(needs):,} pairs of particles could not be repaired: please report this")
        self.count += 1
        self._tell(f"{len(needs):,} pairs to repair")
        if self.count == MOST_ATTEMPTS:
            forced = xp.arange(len(state.problem), dtype=np.int32)
        elif self.count > RESORT_AFTER:
            forced = self._vicinity(ends, 2 ** (self.count - RESORT_AFTER - 1))
        else:
            forced = self._escalated(needs, ends)
        state.pin(forced)
        self._require_affordable()
        moved = xp.zeros(len(state.problem), bool)
        moved[ends] = True   # whether it has moved or not
        moved[forced] = True
        return moved

    def _require_affordable(self) -> None:
        if self.allowance == UNLIMITED:
            return
        exact = int((self.state.rank == PINNED).sum())
        if exact > self.allowance.exact or self.evaluated > self.allowance.evaluated:
            raise TooExpensive

    def _escalated(self, needs: Needs, ends: Array) -> Array:
        """Treat each constraint by the number of attempts that its ends have behind them; returns who is to be pinned."""
        state, xp = self.state, self.state.problem.xp
        level = xp.maximum(*(state.tries[needs.pairs[:, end]] for end in (0, 1)))
        state.tries[ends] += 1
        state.most_tries += 1
        if state.most_tries <= PIN_AFTER:
            return self._moved(needs)
        forced = xp.zeros(len(state.problem), bool)
        forced[needs.pairs[level >= PIN_AFTER].ravel()] = True
        if len(worst := xp.flatnonzero(level >= SPREAD_AFTER)):
            forced[self._around(needs.chosen(worst)).listed] = True
        if len(easy := xp.flatnonzero(level < PIN_AFTER)):
            forced[self._moved(needs.chosen(easy))] = True
        return xp.flatnonzero(forced).astype(np.int32)

    def _vicinity(self, index: Array, hops: int) -> Array:
        """These particles, their neighbours, the neighbours of these, and so on."""
        problem, xp = self.state.problem, self.state.problem.xp
        chosen = xp.zeros(len(problem), bool)
        chosen[index] = True
        while hops and len(index):
            around = xp.zeros(len(problem), bool)
            around[listed_around(problem, index, RADII[1])] = True
            index, hops = xp.flatnonzero(around & ~chosen).astype(np.int32), hops - 1
            chosen |= around
        return xp.flatnonzero(chosen).astype(np.int32)

    def _around(self, needs: Needs) -> Surroundings:
        """The ends of these constraints and their neighbours; the interaction radius is larger after the first attempt."""
        xp, ends = self.state.problem.xp, needs.pairs.ravel()
        radius = xp.zeros(len(self.state.problem))
        radius[ends] = xp.where(self.state.tries[ends] > 1, RADII[1], RADII[0])
        return Surroundings.of(self.state, needs, radius, RADII[0] if self.state.most_tries == 1 else RADII[1])

    def _moved(self, needs: Needs) -> Array:
        """Move particles with the chosen solver; returns those that are to get their original places, some twice."""
        state, xp, solver = self.state, self.state.problem.xp, self.state.problem.promise.solver
        repair = self._repair(needs)
        if self.count == 1:
            self._first = replace(self._first, around=repair.around)
        crowded = repair.around.crowded
        state.pin(crowded)
        if solver == "refine":
            repair.move(Moves(refine=True), Moves(refine=True, partly=True))
        elif solver == "pgd":
            self._descend(repair)
        if solver != "refine":
            self._move_plainly(repair)
        if solver != "auto":   # "auto" has tried plain moves first
            repair.relax()
        if len(missed := repair.missed()) and solver == "auto":
            self._descend_together(missed, repair.around)
            missed = repair.missed()
        self.spent = self.spent + repair.evaluated
        return xp.concatenate([crowded, missed.pairs.ravel()])

    def _move_plainly(self, repair: Repair) -> None:
        """Moves of whole bounds, then of halves and quarters; an allowance is looked at after each."""
        plain = [Moves(parts) for parts in (1, 2, 4)]
        if self.allowance == UNLIMITED:
            repair.move(*plain)
            return
        for moves in plain:
            repair.move(moves)
            if int(self.spent + repair.evaluated) > self.allowance.evaluated:
                raise TooExpensive

    def _repair(self, needs: Needs) -> Repair:
        return Repair(self.state, needs, self._around(needs), getattr(self.progress, "watch", None))

    def _descend_together(self, missed: Needs, around: Surroundings) -> None:
        """Descent of those that no move of one particle could repair."""
        again = Repair(self.state, missed, around.among(missed), getattr(self.progress, "watch", None))
        self._descend(again, Moves(4, partly=True))
        self.spent = self.spent + again.evaluated

    def _descend(self, repair: Repair, *then: Moves) -> None:
        repair.descend(lambda step: self._descended(step, repair.watch))
        repair.move(Moves(to_target=True), Moves(to_target=True, partly=True), *then)

    def _descended(self, step: Step, watch: Callable[[Step], object] | None) -> None:
        self.descent.append(step)
        self._tell(f"descent, step {step.number + 1}: {step.violations:,} pairs to repair")
        if watch is not None:
            watch(step)

    def _tell(self, text: str) -> None:
        if self.progress is not None:
            self.progress(1 - 0.5 ** (self.count + 1), f"clusters: {text}")
