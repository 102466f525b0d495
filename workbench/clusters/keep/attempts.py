"""Attempt after attempt, until decoded particles have the groups of the original ones.

The first attempt sets nearly everything right. What no move can set right gets its original coordinates; that may disturb
neighbours, so there the groups are looked at again, and the last look is always at all particles. This ends: at the latest
with the original itself, whose groups are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from workbench.backend import Array
from workbench.clusters.keep.edits import CONTEXTS
from workbench.clusters.keep.needs import Needs, Region, find_needs
from workbench.clusters.keep.region import region_around
from workbench.clusters.keep.repair import Repair, Step, pin
from workbench.clusters.keep.scene import Scene
from workbench.errors import GuaranteeBroken

# What is done about pairs that stay wrong, by the number of attempts before.
PIN_AFTER = 3           # both ends get their original coordinates,
STRICT_AFTER = 5        # no margin is asked for,
EVERYTHING_AFTER = 10   # all particles of the groups concerned get their original coordinates
WATCHED = (2.0, 6.0)    # how far moves are watched, in bounds: in the first attempt, which has few collisions, and later
MOST_ATTEMPTS = 64

Progress = Callable[[float, str], object]


@dataclass(eq=False)
class Attempts:
    """The attempts at one set of particles, and what is to be told about them."""

    scene: Scene
    progress: Progress | None
    opened: int = 0
    needs: int = 0
    descent: list[Step] = field(default_factory=list)

    def until_kept(self) -> None:
        """Repair until a look at all particles, as they will be decoded, finds nothing that has to change."""
        needs, concerned = self._look(None)
        self.needs, self.opened = len(needs), _groups(self.scene, concerned)
        self._weigh(needs)
        while len(needs):
            disturbed = self._attempt(needs, concerned)
            while len(disturbed) and (region := region_around(self.scene, disturbed)) is not None:
                needs, concerned = self._look(region)
                if not len(needs):
                    break
                self._attempt(needs, concerned)
                disturbed = needs.ends(self.scene)
            needs, concerned = self._look(None)

    def _look(self, region: Region | None) -> tuple[Needs, Array]:
        self._tell("looking at all groups" if region is None else "looking at the groups concerned")
        return find_needs(self.scene, region)

    def _attempt(self, needs: Needs, concerned: Array) -> Array:
        """Returns the particles that were put where they belong without regard for their neighbours."""
        if self.scene.attempts == MOST_ATTEMPTS:
            raise GuaranteeBroken(f"{len(needs):,} pairs of particles could not be set right: please report this")
        self.scene.attempts += 1
        self.scene.strict = self.scene.strict or self.scene.attempts > STRICT_AFTER
        self._tell(f"{len(needs):,} pairs to set right")
        if self.scene.attempts > EVERYTHING_AFTER:
            forced = concerned.astype(np.int32)
        elif self.scene.attempts > PIN_AFTER:
            forced = needs.ends(self.scene)
        else:
            forced = self._moved(needs).ends(self.scene)
        pin(self.scene, forced)
        return forced

    def _moved(self, needs: Needs) -> Needs:
        """Let particles move as the solver says; returns the needs that are still missed."""
        solver, repair = self.scene.promise.solver, self._repair(needs)
        if solver == "refine":
            for partly in (False, True):
                repair.move(refine=True, partly=partly)
        elif solver == "pgd":
            self._descend(repair)
        for parts in () if solver == "refine" else (1, 2, 4):
            repair.move(parts)
        if solver == "auto" and len(missed := repair.missed()):
            self._descend(self._repair(missed))
            repair.move(4, partly=True)
        if solver != "auto":   # which tried plain moves first
            repair.relax()
        return repair.missed()

    def _repair(self, needs: Needs) -> Repair:
        return Repair(self.scene, self.scene.decoded_cells[-1], needs, WATCHED[self.scene.attempts > 1])

    def _descend(self, repair: Repair) -> None:
        repair.descend(self.descent.append)
        for partly in (False, True):
            repair.move(to_target=True, partly=partly)

    def _weigh(self, needs: Needs) -> None:
        """Estimate what storing that a particle moved will cost, from how often each kind of particle has a need."""
        scene, xp = self.scene, self.scene.xp
        if not len(needs):
            return
        context = scene.surmise.context
        often = xp.bincount(context[needs.ends(scene)], minlength=CONTEXTS)
        share = (often / 2 + 0.5) / (xp.bincount(context, minlength=CONTEXTS) + 1)
        scene.cost = xp.rint(-64 * xp.log2(share)).astype(xp.int32)[context]

    def _tell(self, text: str) -> None:
        if self.progress is not None:
            self.progress(1 - 0.5 ** (self.scene.attempts + 1), f"clusters: {text}")


def _groups(scene: Scene, concerned: Array) -> int:
    """How many original groups, at all linking lengths, some particles belong to."""
    count = 0
    for groups in scene.wanted:
        flags = scene.xp.zeros(len(scene), bool)
        flags[groups.labels[concerned]] = True
        count += int(flags.sum())
    return count
