"""Attempt after attempt, until decoded particles have the groups of the original ones.

The first attempt sets nearly everything right. What no move can set right gets its original coordinates; that may disturb
neighbours, so there the groups are compared again. The last look is always at all particles, sorted and searched anew. This
ends: at the latest with the original itself, whose groups are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from workbench.backend import Array
from workbench.clusters.friends import link
from workbench.clusters.keep.edits import CONTEXTS
from workbench.clusters.keep.needs import Needs, Region, find_needs, groups_with_needs
from workbench.clusters.keep.partition import kept_labels
from workbench.clusters.keep.region import region_around
from workbench.clusters.keep.repair import Repair, Step, pin
from workbench.clusters.keep.scene import Scene
from workbench.clusters.sorted_cells import SortedCells
from workbench.errors import GuaranteeBroken

# What is done about pairs that stay wrong, by the number of attempts before.
PIN_AFTER = 3           # both ends get their original coordinates,
STRICT_AFTER = 5        # no margin is asked for,
GROUPS_AFTER = 10       # all particles of the groups concerned get their original coordinates,
EVERYTHING_AFTER = 40   # and so do all particles
WATCHED = (2.0, 6.0)    # how far moves are watched, in bounds: in the first attempt, which has few collisions, and later
MOST_ATTEMPTS = 48

Progress = Callable[[float, str], object]   # with a method `watch(step)`, if it wants to see every Step


@dataclass(eq=False)
class Attempts:
    """The attempts at one set of particles, and what is to be told about them."""

    scene: Scene
    progress: Progress | None
    opened: int = 0
    needs: int = 0
    violations: int = 0   # pairs that the last look found wrong
    descent: list[Step] = field(default_factory=list)

    def until_kept(self) -> None:
        """Repair until a look at all particles, as they will be decoded, finds nothing that has to change."""
        scene, needs = self.scene, self._look(None)
        self.needs = len(needs)
        self.opened = sum(int(flags.sum()) for flags in groups_with_needs(scene, needs))
        self._weigh(needs)
        while len(needs):
            disturbed = self._attempt(needs)
            while len(disturbed) and (region := region_around(scene, disturbed)) is not None:
                needs = self._look(region)
                if not len(needs):
                    break
                self._attempt(needs)
                disturbed = needs.ends(scene)
            needs = self._look(None)
        self.violations = len(needs)
        self._require_kept()

    def _require_kept(self) -> None:
        """Search the groups anew, where that nothing has to change does not prove by itself that they are kept.

        When all groups count, it does: each hangs together by links that are shorter than the linking length by the margin,
        and none is nearer to another than the linking length and the margin. Small groups may be near each other, so then
        the finder itself is asked, with both lengths.
        """
        scene, members = self.scene, self.scene.promise.min_members
        if members == 1:
            return
        self._tell("searching the groups anew")
        for number, groups in enumerate(scene.wanted):
            wanted = kept_labels(groups, members)
            cells = SortedCells.of(scene.particles(), scene.near(number))
            for length in sorted({scene.near(number), scene.far(number)}):
                if bool((kept_labels(link(cells, length), members) != wanted).any()):
                    raise GuaranteeBroken("groups differ where no pair of particles has to change: please report this")

    def _look(self, region: Region | None) -> Needs:
        self._tell("comparing all groups" if region is None else "comparing the groups concerned")
        return find_needs(self.scene, region)

    def _attempt(self, needs: Needs) -> Array:
        """Returns the particles that were put where they belong without regard for their neighbours."""
        scene = self.scene
        if scene.attempts == MOST_ATTEMPTS:
            raise GuaranteeBroken(f"{len(needs):,} pairs of particles could not be set right: please report this")
        scene.attempts += 1
        scene.strict = scene.strict or scene.attempts > STRICT_AFTER
        self._tell(f"{len(needs):,} pairs to set right")
        if scene.attempts > EVERYTHING_AFTER:
            forced = scene.xp.arange(len(scene), dtype=np.int32)
        elif scene.attempts > GROUPS_AFTER:
            concerned = zip(groups_with_needs(scene, needs), scene.wanted, strict=True)
            flags = scene.xp.stack([with_needs[groups.labels] for with_needs, groups in concerned]).any(axis=0)
            forced = scene.xp.flatnonzero(flags).astype(np.int32)
        elif scene.attempts > PIN_AFTER:
            forced = needs.ends(scene)
        else:
            forced = self._moved(needs).ends(scene)
        pin(scene, forced)
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
        watch = getattr(self.progress, "watch", None)
        return Repair(self.scene, self.scene.decoded_cells[-1], needs, WATCHED[self.scene.attempts > 1], watch)

    def _descend(self, repair: Repair) -> None:
        repair.descend(lambda step: self._descended(step, repair.watch))
        for partly in (False, True):
            repair.move(to_target=True, partly=partly)

    def _descended(self, step: Step, watch: Callable[[Step], object] | None) -> None:
        self.descent.append(step)
        self._tell(f"descent, step {step.number + 1}: {step.violations:,} pairs to set right")
        if watch is not None:
            watch(step)

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

