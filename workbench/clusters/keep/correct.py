"""Decoded positions, corrected so that their groups are those of the original: exactly, or not at all.

Both sets are grouped; only groups that differ are opened, and only the pairs in which they differ have to change. After the
moves, the groups that were concerned are looked at again, until they are right; then all particles once more, from the
start. What no move can set right gets its original coordinates, so that this ends: at the latest, with the original itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.friends import Unit
from workbench.clusters.groups import Groups
from workbench.clusters.keep.edits import CONTEXTS, EDIT, PIN, Edits, Surmise
from workbench.clusters.keep.needs import Needs, find_needs
from workbench.clusters.keep.promise import KeepClusters, Solver
from workbench.clusters.keep.region import region_around
from workbench.clusters.keep.repair import Repair, Step, pin
from workbench.clusters.keep.scene import PINNED, Scene
from workbench.data import Particles
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, check
from workbench.guarantees.check import bits_of
from workbench.guarantees.correction import encode_correction

# What is done about pairs that stay wrong, by the number of attempts before.
PIN_AFTER = 3           # both ends get their original coordinates,
STRICT_AFTER = 5        # no margin is asked for,
EVERYTHING_AFTER = 10   # all particles of the groups concerned get their original coordinates
WATCHED = (1.25, 6.0)   # how far moves are watched, in bounds: in the first attempt, which has few collisions, and later
MOST_ATTEMPTS = 64

Progress = Callable[[float, str], object]


@dataclass(frozen=True, eq=False)
class Correction:
    """What has to be done to decoded positions so that clusters are kept, and what comes out.

    `index` are the particles that move (rising, int32), `rank` their moves, `pinned` those that get their original
    coordinates. `opened` is how many groups were torn or joined before; `close_calls` how many pairs that decide lie within
    `margin` of a linking length even so, because they do in the original.
    """

    positions: Array
    promise: KeepClusters
    lengths: tuple[float, ...]
    margin: float
    step: float
    box: tuple[float, ...] | None
    index: np.ndarray
    rank: np.ndarray
    pinned: np.ndarray
    opened: int
    needs: int
    attempts: int
    close_calls: int
    descent: tuple[Step, ...] = field(repr=False)
    decoded: Array = field(repr=False)
    surmise: Surmise = field(repr=False)
    groups: tuple[Groups, ...] = field(repr=False)   # of the original, and so of what comes out, at each linking length

    @property
    def edited(self) -> int:
        """How many particles come back at another place than without the correction."""
        return len(self.index) + len(self.pinned)

    @property
    def nbytes(self) -> int:
        """What storing the correction takes, as one chunk."""
        return sum(map(len, self.sections().values()))

    @property
    def bits_per_particle(self) -> float:
        """The same for each particle."""
        return 8 * self.nbytes / len(self.positions)

    def sections(self, rows: slice = slice(None)) -> dict[str, bytes]:
        """The correction of a run of particles as sections of their chunk; empty where there is nothing to correct."""
        begin, end, _ = rows.indices(len(self.decoded))
        first, last = np.searchsorted(self.index, [begin, end])
        index, rank = (self.index[first:last] - begin).astype(np.int32), self.rank[first:last]
        decoded, wanted = self.decoded[begin:end], self.positions[begin:end]
        edits = Edits(index, rank, self.step, self.lengths, self.box)
        first, last = np.searchsorted(self.pinned, [begin, end])
        found = {EDIT: edits.to_bytes(decoded, self.surmise.part(rows)), PIN: _pins(self.pinned[first:last] - begin, wanted, decoded)}
        return {tag: data for tag, data in found.items() if data}


def correct(
    original: Particles,
    decoded: Particles | Array,
    bound: Bound | float,
    linking_length: float | Sequence[float] = 0.2,
    unit: Unit = "spacing",
    min_members: int = 1,
    solver: Solver = "auto",
    progress: Progress | None = None,
) -> Correction:
    """Correct positions that some codec has decoded, so that the groups of `original` are kept, and so is the bound.

    `decoded[i]` stands for `original[i]`, within the bound; a number is an absolute bound.

    >>> original = Particles([[0.1, 0.5], [0.19, 0.5], [0.5, 0.5]], box=1.0)
    >>> correction = correct(original, [[0.09, 0.5], [0.2, 0.5], [0.5, 0.5]], 0.02, linking_length=0.1, unit="length")
    >>> correction.edited, bool(abs(correction.positions - original.positions).max() <= 0.02)
    (1, True)
    """
    promise = KeepClusters(linking_length, unit, min_members, solver)
    bound = bound if isinstance(bound, Bound) else Absolute(bound)
    positions = decoded.positions if isinstance(decoded, Particles) else Particles(decoded, original.box).positions
    expected = original.positions.dtype, tuple(original.positions.shape)
    if (positions.dtype, tuple(positions.shape)) != expected:
        raise WorkbenchError(
            f"decoded positions must be {expected[0]} of shape {expected[1]}, as the original ones are; "
            f"got {positions.dtype} of shape {tuple(positions.shape)}"
        )
    limit = bound.limit(original.positions)
    found = check(original.positions, positions, limit, original.box)
    if not found.holds:
        raise WorkbenchError(
            f"decoded positions must be within {limit.value:g} of the original ones; {len(found.broken):,} coordinates are "
            f"off by up to {found.largest_error:g}: give the bound that holds, and the particles in the same order"
        )
    return keep_clusters(original, positions, limit, promise, progress)


def keep_clusters(
    original: Particles,
    decoded: Array,
    limit: Limit,
    promise: KeepClusters,
    progress: Progress | None = None,
    chunk: int | None = None,
) -> Correction:
    """The correction of positions that are known to be within the limit, to be stored in chunks of so many particles."""
    scene = Scene(original, decoded, limit, promise, chunk or len(original))
    scene.strict = bool((bits_of(decoded) == bits_of(original.positions)).all())   # what is exact is left alone
    attempt = Attempts(scene, progress)
    attempt.until_kept()
    pinned = scene.xp.flatnonzero(scene.rank == PINNED)
    index = scene.xp.flatnonzero(scene.rank > 0)
    _require_bound(scene)
    close_calls = 0
    if scene.strict:
        scene.strict = False
        close_calls = len(find_needs(scene)[0])
    hosts = [backend.to_host(array) for array in (index, scene.rank[index], pinned)]
    return Correction(
        backend.read_only(scene.current), promise, scene.lengths, scene.margin, scene.step, original.box,
        hosts[0].astype(np.int32), hosts[1].astype(np.uint16), hosts[2].astype(np.int32), attempt.opened, attempt.needs,
        attempt.number, close_calls, tuple(attempt.descent), decoded, scene.surmise,
        tuple(scene.wanted),
    )


@dataclass(eq=False)
class Attempts:
    """The attempts at one set of particles, and what is to be told about them."""

    scene: Scene
    progress: Progress | None
    number: int = 0
    opened: int = 0
    needs: int = 0
    descent: list[Step] = field(default_factory=list)

    def until_kept(self) -> None:
        """Repair until nothing has to change any more.

        After the first attempt all particles are looked at again. What is still wrong then is little, and so is what another
        attempt can break: it is enough to look at the groups of the particles that moved, and at who is near these.
        """
        region = None
        while True:
            self._tell("looking at all groups" if region is None else "looking at the groups concerned")
            needs, concerned = find_needs(self.scene, region)
            if self.number == 0:
                self.needs, self.opened = len(needs), _groups(self.scene, concerned)
                self._weigh(needs)
            if not len(needs):
                return
            moved = self._attempt(needs, concerned)
            region = None if self.number == 1 else region_around(self.scene, moved)

    def _attempt(self, needs: Needs, concerned: Array) -> Array:
        """Returns the particles that may have moved."""
        if self.number == MOST_ATTEMPTS:
            raise GuaranteeBroken(f"{len(needs):,} pairs of particles could not be set right: please report this")
        self.number += 1
        self.scene.strict = self.scene.strict or self.number > STRICT_AFTER
        self._tell(f"{len(needs):,} pairs to set right")
        moved = concerned.astype(np.int32) if self.number > EVERYTHING_AFTER else needs.ends(self.scene)
        if self.number > PIN_AFTER:
            pin(self.scene, moved)
        elif len(missed := self._moved(needs)):
            pin(self.scene, missed.ends(self.scene))
        return moved

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
        return Repair(self.scene, self.scene.decoded_cells[-1], needs, WATCHED[self.number > 1])

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
            self.progress(1 - 0.5 ** (self.number + 1), text)


def _groups(scene: Scene, concerned: Array) -> int:
    """How many original groups, at all linking lengths, some particles belong to."""
    return sum(len(scene.xp.unique(groups.labels[concerned])) for groups in scene.wanted)


def _pins(index: np.ndarray, wanted: Array, decoded: Array) -> bytes:
    """Original coordinates, as corrections of the decoded ones."""
    if not len(index):
        return b""
    xp, dimensions = backend.namespace(decoded), decoded.shape[1]
    flat = (index.astype(np.int64)[:, None] * dimensions + np.arange(dimensions)).ravel()
    return encode_correction(xp.asarray(flat), wanted, decoded)


def _require_bound(scene: Scene) -> None:
    moved = scene.xp.flatnonzero(scene.rank)
    if not len(moved):
        return
    found = check(scene.original.positions[moved], scene.current[moved], scene.limit, scene.original.box)
    if not found.holds:
        raise GuaranteeBroken(f"{len(found.broken):,} coordinates left their bound while clusters were kept: please report this")
