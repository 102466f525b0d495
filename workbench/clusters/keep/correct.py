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
from workbench.clusters.keep.attempts import Attempts
from workbench.clusters.keep.correction import Correction
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.promise import KeepClusters, Solver
from workbench.clusters.keep.state import PINNED, State
from workbench.data import Particles
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, check
from workbench.guarantees.guarantee import UNLIMITED, Allowance
from workbench.ordering import count_of, places_of
from workbench.progress import Progress


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
    allowance: Allowance = UNLIMITED,
) -> Correction:
    """The correction of positions already known to be within the limit, to be stored in chunks of `chunk` particles.

    It raises TooExpensive where this takes more than the allowance.
    """
    problem = Problem(original, decoded, limit, promise, chunk or len(original))
    state = State(problem)
    attempts = Attempts(state, progress, allowance)
    attempts.until_kept()
    largest_error = _require_bound(state)
    changed = state.rank != 0
    given = count_of(changed), attempts.exempt, *map(problem.xp.asarray, (attempts.opened, attempts.spent))
    edits, exempt, opened, evaluated = backend.numbers(*given)
    edited = places_of(changed, edits).astype(np.int32)
    index, rank = backend.to_host(problem.xp.stack([edited, state.rank[edited]]))
    pinned = rank == PINNED
    return Correction(
        positions=backend.read_only(state.current),
        promise=promise,
        lengths=problem.lengths,
        margin=problem.margin,
        step=problem.step,
        box=original.box,
        largest_error=largest_error,
        index=index[~pinned],
        rank=rank[~pinned].astype(np.uint16),
        pinned=index[pinned],
        opened=opened,
        needs=attempts.needs,
        attempts=attempts.count,
        violations=0,
        close_calls=attempts.close_calls(exempt),
        evaluated=evaluated,
        descent=tuple(attempts.descent),
        decoded=decoded,
        surmise=problem.surmise,
        groups=tuple(problem.wanted),
    )


def _require_bound(state: State) -> float:
    """The largest error of the current positions, which must keep within the bound."""
    problem = state.problem
    found = check(problem.original.positions, state.current, problem.limit, problem.original.box)
    if not found.holds:
        raise GuaranteeBroken(f"{len(found.broken):,} coordinates left their bound while keeping clusters: please report")
    return found.largest_error
