"""Correction of decoded positions so that their groups are exactly those of the original, or an error.

Both sets are grouped. Only groups that differ are examined, and only the pairs in which they differ have to change. These
are a few percent of the particles; a list of every pair that an error could flip has dozens of pairs per particle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.friends import Unit
from workbench.clusters.keep.attempts import Attempts, Progress
from workbench.clusters.keep.correction import Correction
from workbench.clusters.keep.needs import find_needs
from workbench.clusters.keep.promise import KeepClusters, Solver
from workbench.clusters.keep.scene import PINNED, Scene
from workbench.data import Particles
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, check
from workbench.guarantees.check import bits_of


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
    """Correct positions decoded by any codec, so that they have the groups of `original` and stay within the bound.

    `decoded[i]` stands for `original[i]`, within the bound; a number is an absolute bound. `progress` is called with the
    fraction done and a description. If it has a method `watch`, this is called with every `Step` of descent and of moves:
    how many pairs are still wrong, and by how much. An exception raised in either stops the work at once.

    >>> original = Particles([[0.1, 0.5], [0.19, 0.5], [0.5, 0.5]], box=1.0)
    >>> correction = correct(original, [[0.09, 0.5], [0.2, 0.5], [0.5, 0.5]], 0.02, linking_length=0.1, unit="length")
    >>> correction.edited, bool(abs(correction.positions - original.positions).max() <= 0.02)
    (1, True)
    """
    promise = KeepClusters(linking_length, unit, min_members, solver)
    bound = bound if isinstance(bound, Bound) else Absolute(bound)
    expected = tuple(original.positions.shape)
    given = decoded.positions if isinstance(decoded, Particles) else decoded
    shape = tuple(given.shape) if hasattr(given, "shape") else np.shape(given)
    if shape != expected:
        raise WorkbenchError(f"decoded positions must have shape {expected}, like the original; got {shape}")
    positions = given if isinstance(decoded, Particles) else Particles(given, original.box).positions
    if positions.dtype != original.positions.dtype:
        raise WorkbenchError(
            f"decoded positions must be {original.positions.dtype}, like the original; got {positions.dtype}"
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
    """The correction of positions already known to be within the limit, to be stored in chunks of `chunk` particles."""
    scene = Scene(original, decoded, limit, promise, chunk or len(original))
    scene.strict = bool((bits_of(decoded) == bits_of(original.positions)).all())   # exact positions are not moved
    attempts = Attempts(scene, progress)
    attempts.until_kept()
    _require_bound(scene)
    moved, pinned = (backend.to_host(scene.xp.flatnonzero(which)) for which in (scene.rank > 0, scene.rank == PINNED))
    return Correction(
        positions=backend.read_only(scene.current),
        promise=promise,
        lengths=scene.lengths,
        margin=scene.margin,
        step=scene.step,
        box=original.box,
        index=moved.astype(np.int32),
        rank=backend.to_host(scene.rank[scene.xp.asarray(moved)]).astype(np.uint16),
        pinned=pinned.astype(np.int32),
        opened=attempts.opened,
        needs=attempts.needs,
        attempts=scene.attempts,
        violations=attempts.violations,
        close_calls=_close_calls(scene),
        descent=tuple(attempts.descent),
        decoded=decoded,
        surmise=scene.surmise,
        groups=tuple(scene.wanted),
    )


def _close_calls(scene: Scene) -> int:
    """How many deciding pairs lie within the margin: none, unless the margin was dropped."""
    if not scene.strict:
        return 0
    scene.strict = False
    return len(find_needs(scene))


def _require_bound(scene: Scene) -> None:
    moved = scene.xp.flatnonzero(scene.rank)
    if not len(moved):
        return
    found = check(scene.original.positions[moved], scene.current[moved], scene.limit, scene.original.box)
    if not found.holds:
        raise GuaranteeBroken(f"{len(found.broken):,} coordinates left their bound while keeping clusters: please report")
