"""Which runs no other run beats: what is worth choosing from when two figures count."""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.bounds.run import Run
from workbench.errors import WorkbenchError

# Which way is better; of other figures (a number of particles, the range of the values) neither is.
LARGER = frozenset({
    "ratio", "encode_mb_per_s", "decode_mb_per_s", "psnr", "ssim", "invalid_kept",
    "clusters_kept", "halos_matched", "halos_identical", "halo_recall",
})
SMALLER = frozenset({
    "nbytes", "chunk_nbytes", "bits_per_value", "bits_per_particle", "encode_seconds", "decode_seconds",
    "corrected", "chunks_stored_exactly", "differing", "lost",
    "max_error", "rms_error", "max_relative_error", "max_distance", "rms_distance", "nrmse",
    "velocity_max_error", "velocity_rms_error", "error_autocorrelation", "spectrum_worst", "spectrum_worst_half",
    "halos_broken", "halos_merged", "halos_new", "halo_shift_max", "halo_shift_rms", "mass_function_worst",
})


def unbeaten(runs: Iterable[Run], x: str, y: str) -> list[Run]:
    """The runs to which no other is equal or better in both figures, and better in one; runs without them are left out.

    From left to right, by the first figure, a run is unbeaten when the second is better than all before. Runs that are
    equal in both do not beat each other.
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
    """The figure, turned so that less is better; NaN when there is none."""
    return sign * float(run.figures.get(name, math.nan))


def _sign(name: str) -> int:
    if name in LARGER | SMALLER:
        return -1 if name in LARGER else 1
    names = ", ".join(sorted(LARGER | SMALLER))
    raise WorkbenchError(f"x and y must be figures of which more or less is better ({names}); got {name!r}")
