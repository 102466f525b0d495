"""Repeated repair until decoded particles have the groups of the original ones.

The first attempt satisfies nearly all constraints. Particles that no move can repair get their original coordinates; this
may disturb neighbours, so groups are compared again there. The last step is always a global check: all particles, sorted
and searched again. The loop terminates, in the worst case with all original coordinates.
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

# The escalation for pairs that stay wrong, by the number of earlier attempts.
PIN_AFTER = 3           # both ends get their original coordinates
STRICT_AFTER = 5        # the margin is dropped
GROUPS_AFTER = 10       # all particles of the groups concerned get their original coordinates
EVERYTHING_AFTER = 40   # all particles get their original coordinates
WATCHED = (2.0, 6.0)    # interaction radius of moves, in bounds: in the first attempt, which has few collisions, and later
MOST_ATTEMPTS = 48

Progress = Callable[[float, str], object]   # with a method `watch(step)`, if it wants to see every Step


@dataclass(eq=False)
class Attempts:
    """The repair of one set of particles, and its figures."""

    scene: Scene
    progress: Progress | None
    opened: int = 0
    needs: int = 0
    violations: int = 0   # pairs found wrong by the last global check
    descent: list[Step] = field(default_factory=list)

    def until_kept(self) -> None:
        """Repair until a global check of all particles, as they will be decoded, finds no violated constraint."""
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
        """Run the finder again where the absence of violated constraints does not prove that the groups are kept.

        It is a proof when all groups count: each group is connected by links shorter than the linking length by the margin,
        and different groups are farther apart than the linking length plus the margin. With `min_members`, small groups may
        be near each other, so the finder itself is run at both lengths.
        """
        scene, members = self.scene, self.scene.promise.min_members
        if members == 1:
            return
        self._tell("finding the groups again")
        for number, groups in enumerate(scene.wanted):
            wanted = kept_labels(groups, members)
            cells = SortedCells.of(scene.particles(), scene.near(number))
            for length in sorted({scene.near(number), scene.far(number)}):
                if bool((kept_labels(link(cells, length), members) != wanted).any()):
                    raise GuaranteeBroken("groups differ although no constraint is violated: please report this")

    def _look(self, region: Region | None) -> Needs:
        self._tell("comparing all groups" if region is None else "comparing the groups concerned")
        return find_needs(self.scene, region)

    def _attempt(self, needs: Needs) -> Array:
        """Returns the particles that got their original coordinates without regard for their neighbours."""
        scene = self.scene
        if scene.attempts == MOST_ATTEMPTS:
            raise GuaranteeBroken(f"{len(needs):,} pairs of particles could not be repaired: please report this")
        scene.attempts += 1
        scene.strict = scene.strict or scene.attempts > STRICT_AFTER
        self._tell(f"{len(needs):,} pairs to repair")
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
        """Move particles with the chosen solver; returns the constraints that are still violated."""
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
        if solver != "auto":   # "auto" has tried plain moves first
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
        self._tell(f"descent, step {step.number + 1}: {step.violations:,} pairs to repair")
        if watch is not None:
            watch(step)

    def _weigh(self, needs: Needs) -> None:
        """Estimate the cost of storing that a particle moved, from how often particles of its context have a constraint."""
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

