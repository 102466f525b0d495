"""The published correction in its three modes, and the trivial method: all vulnerable particles stored exactly."""

from __future__ import annotations

import math

import numpy as np

from peers.clusters.baseline import Baseline
from peers.clusters.constraints import Constraints, Mode, watched_pairs
from peers.clusters.descent import Schedule, descend
from peers.clusters.edits import EditCoder, count_edits
from peers.clusters.problem import Problem
from workbench.backend import Array
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.guarantees.correction import apply_correction, encode_correction

# The defaults of the published code, whatever the unit of the positions.
LITERAL_STEP = 0.01
LITERAL_TOLERANCE = 1e-10
EPSILON = 1e-8   # Adam's, in the unit of the step


def published(
    original: Particles,
    decoded: Array,
    xi: float,
    linking_length: float,
    *,
    mode: Mode = "pairwise",
    bits: int = 16,
    step: float | None = 0.05,
    tolerance: float | None = None,
    iterations: int = 1000,
) -> Baseline:
    """Projected gradient descent on the distances of vulnerable pairs, then edits quantised to `bits` bits a coordinate.

    `xi` is the error bound of every coordinate and `linking_length` a length, both in the unit of the positions. `step` is
    in units of `xi`, and the descent ends when the loss is below `tolerance`, by default the square of the margin for
    quantisation: neither depends on the unit of length. `step=None` is the published setting: 0.01 and 1e-10, absolute.

    We add the step in units of `xi` and the nearest images in periodic boxes; without them most snapshots could not be
    compared. As in the original, nothing is checked at the end: see `violated`, `largest_error` and `halos_broken`.

    >>> original = Particles([[0.0, 0.0], [0.99, 0.0], [3.0, 0.0]])
    >>> decoded = np.array([[-0.05, 0.0], [1.04, 0.0], [3.0, 0.0]])
    >>> result = published(original, decoded, xi=0.1, linking_length=1.0)
    >>> result.constraints, result.edited, result.violated
    (1, 2, 0)
    """
    problem = Problem(original, decoded, xi, linking_length)
    coder = EditCoder(xi, bits)
    margin = coder.margin(original.dimensions)
    schedule = _schedule(xi, margin, step, tolerance, iterations)
    constraints = watched_pairs(problem, mode)
    edits, done = descend(problem, constraints, margin, schedule)
    data = coder.encode(edits)
    positions = coder.apply(decoded, data, original.box)
    return _outcome(mode, problem, constraints, positions, data, count_edits(data), done)


def vulnerable_lossless(original: Particles, decoded: Array, xi: float, linking_length: float) -> Baseline:
    """Every particle of a vulnerable pair gets its exact coordinates; no other pair can change, so the partition is kept.

    >>> original = Particles([[0.0, 0.0], [0.99, 0.0], [3.0, 0.0]])
    >>> decoded = np.array([[-0.05, 0.0], [1.04, 0.0], [3.05, 0.0]])
    >>> vulnerable_lossless(original, decoded, xi=0.1, linking_length=1.0).positions.tolist()
    [[0.0, 0.0], [0.99, 0.0], [3.05, 0.0]]
    """
    problem = Problem(original, decoded, xi, linking_length)
    constraints = watched_pairs(problem)
    vulnerable = np.unique(np.concatenate([constraints.first, constraints.second]))
    coordinates = (vulnerable[:, None] * original.dimensions + np.arange(original.dimensions)).ravel()
    data = encode_correction(coordinates, original.positions, decoded)
    return _outcome("lossless", problem, constraints, apply_correction(decoded, data), data, len(vulnerable), 0)


def _schedule(xi: float, margin: float, step: float | None, tolerance: float | None, iterations: int) -> Schedule:
    if step is not None and not (math.isfinite(step) and step > 0):
        raise WorkbenchError(f"step must be positive and finite, or None for the published one; got {step}")
    if tolerance is not None and not tolerance >= 0:
        raise WorkbenchError(f"tolerance must not be negative; got {tolerance}")
    if not (isinstance(iterations, int) and iterations >= 0):
        raise WorkbenchError(f"iterations must be a whole number, not negative; got {iterations!r}")
    rate, unit, usual = (LITERAL_STEP, 1.0, LITERAL_TOLERANCE) if step is None else (step * xi, xi, margin**2)
    return Schedule(rate, EPSILON * unit, usual if tolerance is None else tolerance, iterations)


def _outcome(
    name: str, problem: Problem, constraints: Constraints, positions: np.ndarray, data: bytes, edited: int, iterations: int
) -> Baseline:
    box = problem.original.box
    violated = constraints.violated(positions, box, problem.linking_length)
    error = problem.largest_error(positions)
    return Baseline(name, positions, len(constraints), edited, len(data), iterations, violated, error, box)
