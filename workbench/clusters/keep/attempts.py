"""Attempt after attempt, until decoded particles have the groups of the original ones.

The first attempt sets nearly everything right. What no move can set right gets its original coordinates; that may disturb
neighbours, so there the groups are compared again. In the end the groups of all particles are searched anew, whatever was
done before. This ends: at the latest with the original itself, whose groups are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from workbench.backend import Array
from workbench.clusters.alike import parts_of
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
        """Repair until all groups, searched anew among the particles as they will be decoded, are those of the original."""
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
            if self._is_kept():
                return
            needs = self._look(None)
        if not self._is_kept():
            raise GuaranteeBroken("groups differ where no pair of particles does: please report this")

    def _is_kept(self) -> bool:
        """Whether the groups are those of the original, with links shorter and longer by the margin.

        Then they are at every length in between, whatever rounds them.
        """
        self._tell("searching the groups anew")
        return all(self._is_kept_at(number) for number in range(len(self.scene.lengths)))

    def _is_kept_at(self, number: int) -> bool:
        scene, members = self.scene, self.scene.promise.min_members
        near, far, groups = scene.near(number), scene.far(number), scene.wanted[number]
        cells = SortedCells.of(scene.particles(), near)
        if members == 1:   # each group hangs together by itself, and none is near another: one walk says both
            found = parts_of(cells, scene.group[number], near, far)
            return not len(found.unlike) and bool((found.part == scene.group[number]).all())
        wanted = kept_labels(groups, members)
        searched = (kept_labels(link(cells, length), members) for length in sorted({near, far}))
        return all(bool((labels == wanted).all()) for labels in searched)

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

