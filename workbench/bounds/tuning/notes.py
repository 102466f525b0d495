"""What a search says beside its answer: why it is not closer, which targets exclude each other, what documents take."""

from __future__ import annotations

from workbench.archive import Collection
from workbench.bounds.run import Run
from workbench.bounds.tuning.search import Terms, Tried
from workbench.bounds.tuning.several import All
from workbench.bounds.tuning.targets import Ratio
from workbench.bounds.tuning.trials import Search

FINER = (0.9, 0.7, 0.4)   # of a bound: these must meet a target, too, that some bounds meet by chance
SHARE = 0.5               # of the bytes that a ratio leaves: documents that take more are named


def notes(search: Search, terms: Terms, tried: list[Tried]) -> list[str]:
    """Why the answer is not closer to the target, where it is not."""
    target, best = search.target, search.best
    if search.by_chance or not search.certain:
        return _on_chance(search)
    if best is None:
        return [f"stopped after {len(search.runs)} compressions"] if search.exhausted else []
    if best.run.bound.eb == 0:
        return ["only exact values meet the target"]
    if max(point.place for point in tried if point.room >= 0) >= terms.high:
        if any(point.room < 0 for point in tried):
            return ["the largest bound that makes sense for these data meets the target, and smaller ones do not"]
        return ["the target is met by any bound that makes sense for these data"]
    if not 0 < terms.stop < target.leading_room(best.run.figures):
        return []
    if search.exhausted:
        return [f"stopped after {len(search.runs)} compressions; more may come closer to the target"]
    return ["the figure jumps here: no bound nearby is closer to the target"]


def _on_chance(search: Search) -> list[str]:
    """What is known of finer and of larger bounds where some meet the target by chance."""
    count, lines = search.by_chance, []
    if count:
        lines = [f"{count} larger bound{'s' if count > 1 else ''} met the target by chance: finer ones did not"]
    if not search.certain:
        stopped = f"stopped after {len(search.runs)} compressions, before {len(FINER)} finer bounds had met the target, too"
        lines.append(f"{stopped}: it may be met by chance")
    return lines


def conflict(search: Search, falling: All, rising: All) -> str:
    """Why no bound meets targets that a larger bound makes worse together with ratios, and the nearest of each."""
    runs = search.own
    kept = max((run for run in runs if falling.room_of(run.figures) >= 0), key=_limit, default=None)
    small = min((run for run in runs if rising.room_of(run.figures) >= 0), key=_limit, default=None)
    if kept is None:
        return _alone(falling, runs)
    if small is None and not search.exhausted:
        return _alone(rising, runs)
    first = f"the largest bound with {falling}, {kept.bound!r}, has {rising.reached(kept.figures)}"
    if small is None:
        return f"{first}, which misses {rising}"
    second = f"the smallest with {rising}, {small.bound!r}, has {falling.reached(small.figures)}"
    return f"these exclude each other: {first}; {second}"


def smallest_kept(search: Search) -> str:
    """What a ratio misses where clusters are kept, whose cost grows with the bound."""
    best = max(search.own, key=lambda run: float(run["ratio"]))
    ratio = f"has ratio {float(best['ratio']):.4g}"
    return f"of the archives tried, which all keep the clusters, the smallest, that of {best.bound!r}, {ratio}"


def _alone(target: All, runs: list[Run]) -> str:
    nearest = max(runs, key=lambda run: target.room_of(run.figures))
    best = f"{nearest.bound!r} with {target.reached(nearest.figures)}"
    return f"{target} is missed without the other targets, too: the nearest is {best}"


def _limit(run: Run) -> float:
    return run.bound.eb


def documents(search: Search) -> list[str]:
    """What the documents of an archive take, where a ratio is missed that is met without them, or leaves little more."""
    smallest = max(search.own, key=lambda run: float(run["ratio"]))
    ratio, nbytes, taken = (float(smallest[name]) for name in ("ratio", "nbytes", "documents_nbytes"))
    return documents_in_the_way(search.target, ratio, nbytes, taken)


def documents_of(target: All, archive: Collection) -> list[str]:
    """The same of an archive of many members."""
    values = sum(stored.nbytes for member in archive.values() for stored in member.arrays.values())
    return documents_in_the_way(target, archive.ratio, archive.nbytes, archive.nbytes - values)


def documents_in_the_way(target: All, ratio: float, nbytes: float, taken: float) -> list[str]:
    """The same of an archive with the largest ratio, of whose bytes documents have `taken` some.

    >>> documents_in_the_way(All(Ratio(500)), 412.0, 900, 380)
    ["the largest ratio tried is 412, where 380 of 900 bytes are the archive's documents; a ratio of 500 leaves 742 in all"]
    >>> documents_in_the_way(All(Ratio(500)), 300.0, 9000, 380)
    []
    """
    least = max((each.least for each in target.measurable if isinstance(each, Ratio)), default=0.0)
    if ratio >= least:
        return []
    allowed = ratio * nbytes / least
    if taken < SHARE * allowed and nbytes - taken > allowed:
        return []
    part = f"{taken:,.0f} of {nbytes:,.0f} bytes are the archive's documents"
    return [f"the largest ratio tried is {ratio:.4g}, where {part}; a ratio of {least:g} leaves {allowed:,.0f} in all"]
