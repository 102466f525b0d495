"""`wb.propagation.budget`: how much error each site may have, so that the end stays within its tolerance.

The damage of each site alone is measured at rising bounds. From the smallest ones on, the bound is raised that saves
the most bytes for the damage that it adds, as long as the damages add up to no more than the tolerance. Whether they do add
up is measured with all bounds together, and corrected for. The result is verified on the full data. Of several fields, one
tunes the bounds, and the others certify them (`certification.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from workbench.arguments import function, share_of_one
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute
from workbench.progress import Progress
from workbench.propagation.bounded import Bounded
from workbench.propagation.budget_result import Budget
from workbench.propagation.certification import certified
from workbench.propagation.dose import Dose, dose, rms
from workbench.propagation.names import require_known
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.realisations import listed_realisations, run_of
from workbench.propagation.tolerance import Tolerance, agreed

SMALLEST, LARGEST = 1e-7, 10.0   # bounds on a curve, in units of the root mean square
LEAST, MOST = 2.0**-7, 2.0**7    # levels of other reductions
FACTOR = 2.0      # from one bound to the next
ATTEMPTS = 8      # at a sum of damages whose joint damage uses up the tolerance
COVERAGE, CONFIDENCE = 0.95, 0.9   # of bounds from several fields
ENOUGH = 0.7      # of the tolerance that should be used
STRETCHES = 4     # halvings of the last step between two bounds
RETREATS = 24     # halvings of all bounds if the full data needs smaller ones than the sample


Reduce = Callable[[str, float], Perturbation]
Together = Callable[[Mapping[str, Absolute]], tuple[float, int]]   # the damage and the bytes of bounds at several sites


def budget(
    pipeline: Pipeline,
    x: Any,
    tolerance: Tolerance | None = None,
    sites: Iterable[str] | None = None,
    codec: str | Codec = "auto",
    *,
    reduce: Reduce | None = None,
    sample: Any = None,
    coverage: float | None = None,
    confidence: float | None = None,
    progress: Progress | None = None,
) -> Budget:
    """The largest bounds that a tolerance at the end allows, for the inputs or the given sites.

    `x` is what the pipeline takes, or a list of that: realisations, blocks or times of one kind (`realisations` makes
    some). Bounds for one field are tuned to it, and new fields may break the tolerance. Of several, the first tunes the
    bounds, and the others say how far they may be raised so that a share `coverage` of all such fields (0.95) tolerates
    them with this `confidence` (0.9). That takes 45 others; with fewer, the share is less. Fields must be independent
    draws, blocks and times nearly so.

    `tolerance` is that of the pipeline by default: see `within`, `each_within`, `poisson`, and `Tolerance` for functions of
    your own. `reduce` makes another reduction than a bound, of a site and a level from 1/128 to 128 in place of the bound:
    `lambda site, level: Prune(site, keep=1 / (1 + level))`. With `sample`, smaller data of the same kind and none of
    several fields, bounds are searched on the sample, and verified on `x`. `progress` is called with the completed share of
    a step and its name.

    >>> import numpy as np
    >>> from workbench.propagation import within
    >>> mean, noise = Pipeline([("mean", lambda x: x.mean())]), np.random.default_rng(0)
    >>> fields = [np.sin(np.arange(512.0)) + 2 + 0.1 * noise.normal(size=512) for _ in range(6)]
    >>> found = budget(mean, fields, within(1e-4), codec="prequantised")
    >>> found.damage <= 1, round(found.holds.share, 2), found.holds.fields
    (True, 0.63, 5)
    """
    several = listed_realisations(pipeline, x, coverage, confidence)
    asked = share_of_one("coverage", COVERAGE if coverage is None else coverage)
    sure = share_of_one("confidence", CONFIDENCE if confidence is None else confidence)
    run = run_of(pipeline, several[0] if several else x)
    pipeline.require_deterministic(run)
    limit = agreed(tolerance, pipeline.tolerance)
    small = run if sample is None else pipeline.run(sample)
    named = _sites(run, sites)
    function("progress", progress)
    tell = progress or (lambda share, what: None)
    how = _Reduction(codec, reduce)
    curves = {site: _curve(small, site, how, limit, tell) for site in named}
    chosen = allocated(curves, partial(_together, small, how, limit), tell)
    if not several:
        tell(1.0, "verifying the bounds")
        bounds = _verified(chosen, partial(_together, run, how, limit))
        return _measured(run, bounds, how, limit, curves)
    others = several[1:] if sample is None else several
    runs = (run if each is several[0] else run_of(pipeline, each) for each in others)   # one at a time
    damages = (partial(_scaled_damage, each, how, limit, chosen) for each in runs)
    factor, holds, largest = certified(damages, len(others), asked, sure, tell)
    tell(1.0, "measuring what the bounds give")
    found = _measured(run, _scaled(chosen, factor), how, limit, curves)
    _, tuned = _together(run, how, limit, chosen)
    size = sum(run[site].nbytes for site in named)
    return replace(found, damage=max(largest, found.damage), holds=holds, price=size / found.ratio / tuned)


def _measured(
    run: Run, bounds: Mapping[str, Absolute], how: _Reduction, limit: Tolerance, curves: Mapping[str, tuple[Dose, ...]]
) -> Budget:
    """What these bounds give on the full data, together and each alone."""
    together = how.dose(run, bounds, limit)
    single = {site: how.dose(run, {site: bound}, limit)[0].damage for site, bound in bounds.items()}
    total = sum(single.values())
    return Budget(
        bounds=bounds,
        ratio=sum(run[site].nbytes for site in bounds) / sum(each.nbytes for each in together),
        ratios={each.site: each.ratio for each in together},
        damage=together[0].damage,
        additivity=together[0].damage / total if total > 0 else math.nan,
        single=single,
        curves=curves,
        tolerance=limit.name,
        reductions={} if how.reduce is None else {site: how.at(site, bound) for site, bound in bounds.items()},
    )


@dataclass(frozen=True)
class _Reduction:
    """What a level at a site means: a bound of a codec, or what a function makes of it."""

    codec: str | Codec
    reduce: Reduce | None

    def at(self, site: str, bound: Absolute) -> Perturbation:
        """The perturbation of a level."""
        return Bounded(site, bound, self.codec) if self.reduce is None else self.reduce(site, bound.eb)

    def dose(self, run: Run, bounds: Mapping[str, Absolute], limit: Tolerance) -> list[Dose]:
        """The effect of these levels together."""
        return dose(run, [self.at(site, bound) for site, bound in bounds.items()], limit, list(bounds.values()))

    def levels(self, run: Run, site: str) -> tuple[float, float]:
        """The smallest and the largest level on a curve."""
        if self.reduce is not None:
            return LEAST, MOST
        size = rms(run, site)
        return SMALLEST * size, LARGEST * size


def _sites(run: Run, sites: Iterable[str] | None) -> list[str]:
    if sites is not None:
        found = [require_known("site", site, run.pipeline.sites) for site in ([sites] if isinstance(sites, str) else sites)]
    else:
        found = [site for site in run.pipeline.inputs if run[site].dtype.kind in "fc"]
    if not found:
        raise WorkbenchError("a budget needs at least one site of floating-point values: name sites")
    return found


def _curve(run: Run, site: str, how: _Reduction, tolerance: Tolerance, tell: Progress) -> tuple[Dose, ...]:
    """The damage of one site alone at rising bounds, up to the first that is too much."""
    found: list[Dose] = []
    smallest, largest = how.levels(run, site)
    level = smallest
    while level <= largest:
        tell(math.log(level / smallest) / math.log(largest / smallest), f"raising the bound of {site}")
        found += how.dose(run, {site: Absolute(level)}, tolerance)
        if not found[-1].damage <= 1:
            break
        level *= FACTOR
    if not found[0].damage <= 1:
        least = repr(how.at(site, Absolute(level))) if how.reduce else (
            f"the bound {level:.3g} at {site!r}, a ten-millionth of its root mean square"
        )
        raise WorkbenchError(
            f"the tolerance ({tolerance.name}) must allow {least}; the damage there is {found[0].damage:.3g}: allow more, "
            "or keep this site exactly"
        )
    return tuple(found)


def allocated(curves: Mapping[str, Sequence[Dose]], together: Together, tell: Progress) -> dict[str, Absolute]:
    """The bounds with the best ratio whose joint damage is tolerated: greedy, with a sum that follows the joint damage.

    `together` measures the damage and the bytes of such bounds at once.
    """
    sum_allowed, best, best_bytes = 1.0, _bounds(curves, dict.fromkeys(curves, 0)), math.inf
    seen: set[tuple[int, ...]] = set()
    for attempt in range(ATTEMPTS):
        tell(attempt / ATTEMPTS, "sharing the tolerance among the sites")
        places = _greedy(curves, sum_allowed)
        if tuple(places.values()) in seen:
            break
        seen.add(tuple(places.values()))
        bounds = _bounds(curves, places)
        joint, nbytes = together(bounds)
        if joint <= 1 and nbytes < best_bytes:
            best, best_bytes = bounds, nbytes
        if ENOUGH <= joint <= 1:
            break
        sum_allowed *= min(max(0.95 / joint, 0.1), 10.0) if joint > 0 else 10.0
    return _stretched(best, together)


def _greedy(curves: Mapping[str, Sequence[Dose]], allowed: float) -> dict[str, int]:
    """The place of each site on its curve: steps that save the most bytes for their damage, while the sum allows them."""
    places = dict.fromkeys(curves, 0)
    worst = {site: list(itertools.accumulate((each.damage for each in curve), max)) for site, curve in curves.items()}
    while True:
        steps = []
        for site, place in places.items():
            if place + 1 >= len(curves[site]) or not worst[site][place + 1] <= 1:
                continue
            total = sum(worst[other][at] for other, at in places.items() if other != site) + worst[site][place + 1]
            if total <= allowed:
                saved = curves[site][place].nbytes - curves[site][place + 1].nbytes
                steps.append((saved / max(worst[site][place + 1] - worst[site][place], 1e-9), site))
        if not steps:
            return places
        places[max(steps)[1]] += 1


def _bounds(curves: Mapping[str, Sequence[Dose]], places: Mapping[str, int]) -> dict[str, Absolute]:
    return {site: Absolute(curves[site][place].bound.eb) for site, place in places.items()}


def _stretched(bounds: Mapping[str, Absolute], together: Together) -> dict[str, Absolute]:
    """All bounds times the largest common factor, less than a step, that is still tolerated."""
    low, high = 1.0, FACTOR
    for _ in range(STRETCHES):
        middle = math.sqrt(low * high)
        if together(_scaled(bounds, middle))[0] <= 1:
            low = middle
        else:
            high = middle
    return _scaled(bounds, low)


def _verified(bounds: Mapping[str, Absolute], together: Together) -> dict[str, Absolute]:
    """The bounds if the full data tolerates them, else the largest half, quarter, ... that it does."""
    scale = 1.0
    for _ in range(RETREATS):
        if together(_scaled(bounds, scale))[0] <= 1:
            return _scaled(bounds, scale)
        scale /= 2
    raise WorkbenchError("the bounds from the sample must be tolerated on the full data; not even small parts of them are")


def _scaled(bounds: Mapping[str, Absolute], factor: float) -> dict[str, Absolute]:
    return {site: Absolute(bound.eb * factor) for site, bound in bounds.items()}


def _together(run: Run, how: _Reduction, tolerance: Tolerance, bounds: Mapping[str, Absolute]) -> tuple[float, int]:
    found = how.dose(run, bounds, tolerance)
    return found[0].damage, sum(each.nbytes for each in found)


def _scaled_damage(
    run: Run, how: _Reduction, tolerance: Tolerance, bounds: Mapping[str, Absolute], factor: float
) -> float:
    return _together(run, how, tolerance, _scaled(bounds, factor))[0]
