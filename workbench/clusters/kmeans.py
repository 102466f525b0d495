"""k-means: Lloyd's iterations with labels, centres and inertia that are the same on every machine.

Three properties set it apart. A label is the number of the centre with the least squared distance in double precision,
whatever the rounding of the fast products. Sums are whole numbers, so no result depends on the number of threads. And the
assignment step can be protected by checksums against faults of the processor, at a few percent of its time
(docs/protection.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import flag, number, whole_number
from workbench.backend import Array
from workbench.clusters.kmeans_assignment import Assignment
from workbench.clusters.kmeans_centres import Update, own_distances, with_empty_moved
from workbench.clusters.kmeans_faults import Fault, ProductFlips, SumFlip
from workbench.clusters.kmeans_seeding import seeded_centres
from workbench.data.taking import as_array, unmasked
from workbench.errors import WorkbenchError

_MOST = {np.dtype(np.float32): 1e18, np.dtype(np.float64): 1e150}   # squares of sizes must stay far from overflow
_LEAST = {np.dtype(np.float32): 1e-15, np.dtype(np.float64): 1e-145}

Faults = Callable[[int], Iterable[Fault]]


@dataclass(frozen=True)
class Integrity:
    """What the checks of a protected run found.

    `checks` is the number of checksums that were compared, `detected` how many found products that a second computation
    changed, and `corrected` how many products that were. `recomputed` counts how often the sums of the centre update were
    computed again, and `decided` the labels that squared distances decided, because rounding or a small fault might have
    changed them.
    """

    checks: int
    detected: int
    corrected: int
    recomputed: int
    decided: int


@dataclass(frozen=True, eq=False, repr=False)
class Kmeans:
    """The result of `kmeans`: cluster numbers of points, centres, and the sum of squared distances (inertia).

    `sizes` counts the points of each cluster. `converged` says whether the centres had come to rest. `integrity` is what
    the checks found, None without protection.
    """

    labels: Array
    centres: Array
    sizes: Array
    inertia: float
    iterations: int
    converged: bool
    integrity: Integrity | None

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return (
            f"Kmeans({len(self.labels):,} points in {len(self.centres):,} clusters; inertia {self.inertia:.6g}; "
            f"{self.iterations} iterations, {end})"
        )


def kmeans(
    points: Any, k: int, *, seed: int = 0, initial: Any = None, max_iterations: int = 300, tolerance: float = 0.0,
    protect: bool = False, faults: Faults | None = None,
) -> Kmeans:
    """Group points (N, D) around `k` centres such that the sum of squared distances is small.

    Starts from `initial` centres (k, D), by default from k-means++ with this seed, and repeats two steps: every point gets
    the number of its nearest centre (the first of equals), and every centre moves to the mean of its points. It ends when
    no label changes, when no centre moves by more than `tolerance`, or after `max_iterations`. An empty cluster starts
    again at the point that is farthest from its centre. Coordinates are added as multiples of 2^-60 of the largest one
    times the number of points. Points so small that their squares are lost are grouped in units of a power of two, which
    is exact.

    `protect` finds and corrects faults in both steps. `faults` is for tests: a function of the iteration (0 is the first
    assignment) that returns the bits to flip.

    >>> points = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    >>> found = kmeans(points, 2, seed=1, protect=True)
    >>> found.centres.tolist(), found.inertia
    ([[0.0, 0.5], [9.0, 0.5]], 1.0)
    >>> found.integrity
    Integrity(checks=4, detected=0, corrected=0, recomputed=0, decided=0)
    """
    points = _checked_points(points)
    protect = flag("protect", protect)
    k = whole_number("k", k, least=1, most=min(len(points), 2**24))
    seed = whole_number("seed", seed, least=0, most=2**63 - 1)
    most = whole_number("max_iterations", max_iterations, least=1)
    tolerance = number("tolerance", tolerance, 0.0, math.inf)
    given = None if initial is None else _checked_centres(initial, points, k)
    exponent = _exponent(points, given)
    if exponent:
        xp = backend.namespace(points)
        points, given = xp.ldexp(points, exponent), None if given is None else xp.ldexp(given, exponent)
        tolerance = float(np.ldexp(tolerance, exponent))
    run = _Run(points, seeded_centres(points, k, seed) if given is None else given, protect, faults)
    run.assign(0)
    converged = False
    iteration = 0
    while not converged and iteration < most:
        iteration += 1
        moved = run.update(iteration)
        converged = run.assign(iteration) == 0 or moved <= tolerance
    found = run.result(iteration, converged)
    if not exponent:
        return found
    centres = backend.namespace(points).ldexp(found.centres, -exponent)
    return replace(found, centres=centres, inertia=math.ldexp(found.inertia, -2 * exponent))


class _Run:
    """The state of one run."""

    def __init__(self, points: Array, centres: Array, protect: bool, faults: Faults | None) -> None:
        xp = backend.namespace(points, centres)
        self.points, self.centres = points, centres
        self.labels = xp.full(len(points), -1, xp.int32)
        self.before = xp.full(len(points), -1, xp.int32)   # the labels that the sums know
        self.faults = faults
        self.assignment = Assignment(points, len(centres), protect)
        self.updates = Update(points, len(centres), protect)
        self.protect = protect
        self.counts: list[Any] = []

    def assign(self, iteration: int) -> int:
        """The nearest centres; returns how many labels changed."""
        flips = [fault for fault in self._faults(iteration) if isinstance(fault, ProductFlips)]
        if len(flips) > 1:
            raise WorkbenchError(f"give all flips of products in one ProductFlips per iteration; got {len(flips)}")
        for flip in flips:
            flip.check(self.points, len(self.centres))
        self.counts.append(self.assignment.run(self.centres, self.labels, flips[0] if flips else None))
        return self.counts[-1].changed

    def update(self, iteration: int) -> float:
        """The means of the clusters; returns how far the farthest centre moved."""
        xp = backend.namespace(self.points)
        flips = [fault for fault in self._faults(iteration) if isinstance(fault, SumFlip)]
        means = self.updates.run(self.before, self.labels, self.centres, flips)
        self.before[...] = self.labels
        means = with_empty_moved(self.points, means, self.labels, self.updates.counts)
        apart = means.astype(xp.float64) - self.centres.astype(xp.float64)
        self.centres = means
        return math.sqrt(float((apart**2).sum(axis=1).max()))

    def _faults(self, iteration: int) -> list[Fault]:
        return [] if self.faults is None else list(self.faults(iteration))

    def result(self, iterations: int, converged: bool) -> Kmeans:
        xp = backend.namespace(self.points)
        distances = own_distances(self.points, self.centres, self.labels)
        return Kmeans(
            self.labels, self.centres, xp.bincount(self.labels, minlength=len(self.centres)),
            math.fsum(backend.to_host(distances)), iterations, converged, self._integrity() if self.protect else None,
        )

    def _integrity(self) -> Integrity:
        detected, corrected, decided = (
            sum(getattr(counts, name) for counts in self.counts) for name in ("detected", "corrected", "decided")
        )
        return Integrity(
            self.assignment.checks * len(self.counts), detected, corrected, self.updates.recomputed, decided
        )


def _checked_points(points: Any) -> Array:
    """Finite points (N, D), contiguous, float32 or float64."""
    if hasattr(points, "positions"):
        raise WorkbenchError("kmeans takes an array (N, D): give particles.positions; a periodic box is not considered")
    xp = backend.namespace(points)
    array = as_array("points", unmasked("points", points, "leave those points out"))
    if array.dtype.kind in "iu":
        array = array.astype(xp.float64)
    if array.ndim != 2 or 0 in array.shape or array.dtype not in _MOST:
        raise WorkbenchError(
            f"points must be a non-empty array (N, D) of float32 or float64; got {array.dtype} of shape {array.shape}"
        )
    _require_size("points", array)
    return xp.ascontiguousarray(array)


def _checked_centres(initial: Any, points: Array, k: int) -> Array:
    xp = backend.namespace(initial, points) if hasattr(initial, "dtype") else backend.namespace(points)
    centres = xp.asarray(as_array("initial", initial))
    if centres.dtype.kind not in "fiu":
        raise WorkbenchError(f"initial must be numbers; got {centres.dtype}")
    centres = centres.astype(points.dtype)
    if centres.shape != (k, points.shape[1]):
        raise WorkbenchError(f"initial must have shape ({k}, {points.shape[1]}), as k and points say; got {centres.shape}")
    _require_size("initial", centres)
    return xp.ascontiguousarray(centres)


def _require_size(name: str, array: Array) -> None:
    """Finite values whose squares are finite, too."""
    largest = _largest(array)
    if not math.isfinite(largest):
        raise WorkbenchError(f"{name} must be finite; got NaN or infinity")
    most = _MOST[array.dtype]
    if largest * math.sqrt(array.shape[1]) > most:
        raise WorkbenchError(
            f"{name} must be at most {most:g} / √D in size, or squares overflow; got {largest:g}: divide points and "
            f"initial centres by {2.0 ** (math.frexp(largest)[1] - 1):g}, and multiply the centres that are found by it"
        )


def _exponent(points: Array, initial: Array | None) -> int:
    """The power of two by which points are multiplied: 0 unless their squares, and so their checksums, would underflow."""
    largest, least = _largest(points), _LEAST[points.dtype]
    if not 0 < largest < least:
        return 0
    farthest = largest if initial is None else max(largest, _largest(initial))
    most = math.frexp(_MOST[points.dtype] / math.sqrt(points.shape[1]))[1] - 1
    exponent = min(-math.frexp(largest)[1], most - math.frexp(farthest)[1])
    if math.ldexp(largest, exponent) < least:
        raise WorkbenchError(
            f"initial must lie near the points, or squares underflow; got points of at most {largest:g}, and initial of "
            f"{farthest:g}: give other centres, or none"
        )
    return exponent


def _largest(array: Array) -> float:
    """The largest size of a coordinate."""
    return max(abs(float(array.min())), abs(float(array.max())))
