"""The Pareto front of runs for two figures."""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.bounds.run import Run
from workbench.errors import WorkbenchError

# Figures with a preferred direction; others (a number of particles, the range of the values) have none.
LARGER = frozenset({
    "ratio", "encode_mb_per_s", "decode_mb_per_s", "psnr", "ssim", "invalid_kept",
    "clusters_kept", "halos_matched", "halos_identical", "halo_recall",
})
SMALLER = frozenset({
    "nbytes", "chunk_nbytes", "documents_nbytes", "bits_per_value", "bits_per_particle", "encode_seconds", "decode_seconds",
    "corrected", "chunks_stored_exactly", "differing", "lost",
    "max_error", "rms_error", "max_relative_error", "max_distance", "rms_distance", "nrmse",
    "velocity_max_error", "velocity_rms_error", "error_autocorrelation", "spectrum_worst", "spectrum_worst_half",
    "halos_broken", "halos_split", "halos_merged", "halos_new", "halo_shift_max", "halo_shift_rms", "mass_function_worst",
})


def unbeaten(runs: Iterable[Run], x: str, y: str) -> list[Run]:
    """The runs that no other run dominates (as good in both figures, better in one); runs without both are left out.

    In the order of the first figure, a run is on the front if its second figure is better than all before. Runs equal in
    both figures do not dominate each other.
    """
    signs = _sign(x), _sign(y)
    costs = [(_cost(run, x, signs[0]), _cost(run, y, signs[1]), run) for run in runs]
    points = {(first, second) for first, second, _ in costs if not (math.isnan(first) or math.isnan(second))}
    kept: set[tuple[float, float]] = set()
    best = math.inf
    for first, second in sorted(points):
        if second < best or not kept:
            kept.add((first, second))
            best = second
    return [run for first, second, run in costs if (first, second) in kept]


def _cost(run: Run, name: str, sign: int) -> float:
    """The figure with its sign chosen so that less is better; NaN if it is missing."""
    return sign * float(run.figures.get(name, math.nan))


def _sign(name: str) -> int:
    if name in LARGER | SMALLER:
        return -1 if name in LARGER else 1
    names = ", ".join(sorted(LARGER | SMALLER))
    raise WorkbenchError(f"x and y must be figures with a preferred direction ({names}); got {name!r}")
