"""`wb.find_bound`: the bound, and the codec, with which a target is met, proved by a compression of all data."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from workbench.archive.companions import codec_of_columns
from workbench.archive.request import promises
from workbench.archive.writing import require_writable
from workbench.arguments import one_of, whole_number
from workbench.bounds.prediction.expert import Expert
from workbench.bounds.run import Order, Question, Run
from workbench.bounds.sources import FieldInParts, Measured, opened, source_of
from workbench.bounds.tuning import cheapest
from workbench.bounds.tuning.attempt import Original
from workbench.bounds.tuning.choice import chosen_candidate, other_candidates, suited
from workbench.bounds.tuning.found import Found
from workbench.bounds.tuning.guides import Known
from workbench.bounds.tuning.limits import Limits
from workbench.bounds.tuning.notes import FINER, conflict, documents, notes, smallest_kept
from workbench.bounds.tuning.search import Terms, Tried, best_of, next_place
from workbench.bounds.tuning.several import All, require_target
from workbench.bounds.tuning.targets import PSNR, Target
from workbench.bounds.tuning.trials import Options, Search
from workbench.clusters import KeepClusters
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, PointwiseRelative, Relative
from workbench.progress import Progress
from workbench.run.submission import submittable

KINDS: dict[str, type[Bound]] = {"absolute": Absolute, "relative": Relative, "pointwise-relative": PointwiseRelative}
MOST_RUNS = 12
BEYOND = 16.0         # times the range of the values: up to here bounds of conservative codecs make sense
AFTER_CHANCE = 0.4    # of a bound that does not: where such a search goes on
SAME = 0.03           # so near to another, no bound is tried again
LARGER = 4            # larger bounds that are tried for a figure of one's own, if no smaller one meets its limit


@submittable
def find_bound(
    data: Any,
    target: Target | KeepClusters,
    codec: str | Codec = "auto",
    *,
    kind: str = "absolute",
    order: Order = "keep",
    velocities: Bound | PSNR | None = None,
    keep: Any = (),
    chunk_values: int | None = None,
    expert: Expert | None = None,
    most_runs: int = MOST_RUNS,
    out: str | os.PathLike[str] | None = None,
    client: Any = None,
    scratch: str | Path | None = None,
    progress: Progress | None = None,
    watch: Callable[[Run], object] = lambda run: None,
) -> Found:
    """The bound with which the decoded data meet a target, found with few compressions and measured on all data.

    For a quality (`wb.PSNR`, `wb.SSIM`, `wb.KeepSpectrum`, `wb.KeepMassFunction`, `wb.Quality` with a function of one's
    own) it is the largest bound that meets it; for a `wb.Ratio` the smallest. For `wb.KeepClusters` it is the one with the
    smallest archive, since a larger bound costs more bytes for moving particles. `wb.All` combines several.

    Every bound that is tried makes a whole archive, which is decoded and measured; the answer is one of these. If no bound
    meets the target, the result says so (`met` is False) and names what came nearest. A larger bound beyond a gap that the
    search has stepped over may meet the target, too; for a `wb.Quality` that no smaller bound meets, a few larger ones are
    tried.

    `codec="auto"` chooses among codecs by prediction, which also guides the search, and for a quality of fields by a trial
    on the middle at the bound that is expected. For a `wb.Quality`, of which nothing is predicted, it searches with each.
    `expert` is another predictor than that of the package, such as one that knows an earlier time step
    (`wb.bounds.calibrated`). `kind` is that of the bound:
    "absolute", "relative" or "pointwise-relative". `order`, `velocities` and `keep` are passed to `wb.compress`. Velocities
    may have a target of their own, `velocities=wb.PSNR(60)`: the bound is found on them alone, and is `found.velocities`.
    `chunk_values` is that of `wb.compress`. `most_runs` limits the compressions. With `out`, the archive that meets the
    target is written there. `watch` is called with each run; an exception that it or `progress` raises ends the search.

    Fields may be larger than memory, as for `wb.compare`, for ratios, PSNR and SSIM. Parts of such a field are surveyed,
    and each trial compresses, decodes and compares all parts, on the workers of a Dask `client` if there is one, by way of
    the `scratch` folder. The archive is kept if `out` says where.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((64, 64), seed=1)
    >>> found = find_bound(waves, wb.PSNR(60), codec="prequantised")
    >>> found.met, 60 <= found.values["psnr"] <= 60.1
    (True, True)
    >>> print(found.code("waves").splitlines()[2])
    archive = wb.compress(waves, wb.Absolute(0.01...), codec="prequantised")
    """
    require_target(target)
    wanted = target if isinstance(target, All) else All(target)
    one_of("kind", kind, tuple(KINDS))
    one_of("order", order, get_args(Order))
    most = whole_number("most_runs", most_runs, least=1)
    if out is not None:
        require_writable(out)
    source = source_of(data, client)
    wanted.require(source)
    if velocities is not None and not isinstance(source, Particles):
        raise WorkbenchError(f"velocities={velocities!r} is for particles with velocities; got {source!r}")
    with opened(source, client, scratch, progress) as measured:
        limits = Limits.of(measured, KINDS[kind])
        aimed = None if velocities is None or isinstance(velocities, Bound) else velocities
        beside = velocities if isinstance(velocities, Bound) else None
        if aimed is not None:
            beside = bound_of_velocities(source, aimed, codec, kind, most)
        options = Options(order, beside, (*promises(keep), *wanted.promises), chunk_values)
        original, wanted = Original(measured), wanted.for_data(source)
        chosen = suited(chosen_candidate(original, codec, wanted, limits, order, expert, beside), wanted)
        search = Search(wanted, original, chosen, limits, options, most, progress, watch, aimed)
        notes = _cheapest(search) if wanted.promises else _bracketed(search, wanted)
        if isinstance(codec, str) and codec == "auto" and expert is None:
            search, notes = _with_other_codecs(search, notes)
        found = search.result(*notes, *_why_missed(search))
        return found if out is None or not found.met else _written(found, measured, options, out)


def _written(found: Found, data: Measured, options: Options, out: str | os.PathLike[str]) -> Found:
    """The answer with its archive on disk; that of a field in parts is made again, complete or not at all."""
    if isinstance(data, FieldInParts):
        question = Question(found.codec, found.bound, chunk_values=options.chunk_values)
        return dataclasses.replace(found, answer=(found.bound, data.compressed(question, options.keep, out), found.report))
    found.archive.save(out)
    return found


def bound_of_velocities(data: Any, target: PSNR, codec: str | Codec, kind: str, most_runs: int) -> Bound:
    """The largest bound of velocities with this PSNR, found on velocities alone: positions change no error of theirs.

    >>> import workbench as wb
    >>> bound_of_velocities(wb.synthetic.cosmic_web(n=8, seed=1), wb.PSNR(40), "auto", "relative", 12).kind
    'relative'
    """
    if not isinstance(target, PSNR):
        raise WorkbenchError(f"velocities takes a bound, or wb.PSNR(...) of their own; got {target!r}")
    if not isinstance(data, Particles) or data.velocities is None:
        raise WorkbenchError(f"velocities={target!r} is for particles with velocities; got {data!r}")
    alone = Field.of(np.asarray(data.velocities))
    return find_bound(alone, target, codec_of_columns(codec), kind=kind, most_runs=most_runs).bound


def _bracketed(search: Search, target: All, guiding: All | None = None) -> list[str]:
    """Search the largest bound with room, or the smallest for a ratio; returns notes.

    `target` is all of the search, or a part of it; `guiding` is what it is expected to amount to, if more is known of that.
    """
    limits, candidate = search.limits, search.candidate
    sign = -1.0 if target.searched_upwards else 1.0
    expected = (guiding or target).expected(Known(search.original, limits.peak, candidate.ratio, candidate.noise))
    beyond = candidate.codec.conservative and limits.kind is not PointwiseRelative   # that is less than 1
    high = limits.high * BEYOND if beyond else limits.high
    ends = sorted((sign * math.log(limits.low), sign * math.log(high)))
    precision = min(each.precision for each in target.leading)
    terms = Terms(ends[0], ends[1], target.stop, precision)

    def guide(places: np.ndarray) -> np.ndarray:
        return expected(np.exp(sign * places))

    def better(run: Run, other: Run) -> bool:
        return sign * run.bound.eb > sign * other.bound.eb

    tried = [
        Tried(sign * math.log(run.bound.eb * limits.unit), target.leading_room(run.figures))
        for run in search.own if run.bound.eb > 0
    ]

    def attempt(place: float) -> None:
        run = search.attempt(limits.bound(math.exp(sign * place)), better)
        tried.append(Tried(place, target.leading_room(run.figures)))

    def narrow() -> None:
        while not search.exhausted and (place := next_place(tried, guide, terms)) is not None:
            attempt(place)

    narrow()
    if not target.in_order:
        search.certain = _meet_it_below(search, tried, attempt, terms.low)
    if best_of(tried) is None and not target.predictable:
        for place in _larger_places(tried, terms):   # a figure of one's own may be better at larger bounds
            if best_of(tried) is None and not search.exhausted:
                attempt(place)
        narrow()
    hopeless = target.searched_upwards or any(point.room >= 0 for point in tried) or search.exhausted
    if not hopeless:   # not even the smallest bound: only exact values are left
        search.attempt(limits.kind(0.0), better)
    return notes(search, terms, tried)


def _with_other_codecs(search: Search, notes: list[str]) -> tuple[Search, list[str]]:
    """The best of this search and of searches with other codecs; if none meets the target, the one that came nearest.

    Where codecs are predicted, others are tried if they are rivals, or if this one misses the target. The error with which
    one meets a figure of one's own says where to begin with the next, but not which takes the fewest bytes.
    """
    tried, best, predictable = [search.candidate.codec], search, search.target.predictable
    others = other_candidates(search.original, search.target, tried, search.limits)
    left = sorted(others, key=lambda each: each.codec.id not in search.candidate.rivals)
    while left and not search.exhausted:
        if best.best is not None and predictable and left[0].codec.id not in search.candidate.rivals:
            break
        psnr = math.inf if best.best is None or predictable else float(best.best.run["psnr"])
        other = search.with_codec(left.pop(0))
        tried.append(other.candidate.codec)
        found = _bracketed(other, other.target, All(PSNR(psnr)) if math.isfinite(psnr) else None)
        if _is_better(other, best):
            best, notes = other, found
    if len(tried) > 1:
        notes = [*notes, f"codecs tried: {', '.join(each.id for each in tried)}"]
        if left and not predictable:
            notes = [*notes, f"not tried: {', '.join(each.codec.id for each in left)}"]
    return best, notes


def _is_better(one: Search, other: Search) -> bool:
    """Whether a search has the smaller archive that meets the target, or the smaller error; or else came nearer to it."""
    if one.best is None or other.best is None:
        target = one.target
        return (one.best is not None) > (other.best is not None) or (
            other.best is None and target.room_of(one.nearest.figures) > target.room_of(other.nearest.figures)
        )
    figure = "psnr" if one.target.searched_upwards else "ratio"
    return bool(one.best.run[figure] > other.best.run[figure])


def _why_missed(search: Search) -> list[str]:
    """Which targets exclude each other, and what the documents take; tried at the end, a ratio may still be met."""
    target = search.target
    if search.best is not None:
        return []
    if target.promises:
        return [smallest_kept(search)] if target.rising else []
    if target.searched_upwards or not target.rising:
        return documents(search)
    falling, rising = target.only(target.leading), target.only(target.rising)
    _bracketed(search, rising)
    return [] if search.best is not None else [conflict(search, falling, rising), *documents(search)]


def _meet_it_below(search: Search, tried: list[Tried], attempt: Callable[[float], None], low: float) -> bool:
    """Go to finer bounds until those below meet the target, too; larger ones than one that does not met it by chance.

    Returns False where the search has to stop before.
    """
    while (best := best_of(tried)) is not None:
        for place in (max(best.place + math.log(share), low) for share in FINER):
            if any(abs(point.place - place) < SAME for point in tried):
                continue
            if search.exhausted:
                return False
            attempt(place)
            if tried[-1].room < 0:
                break
        else:
            return True
        failed = tried[-1].place
        tried[:] = [point for point in tried if point.place <= failed]
        search.forget(search.limits.bound(math.exp(failed)).eb)
        while best_of(tried) is None and failed > low:
            if search.exhausted:
                return False
            failed = max(failed + math.log(AFTER_CHANCE), low)
            attempt(failed)
    return True


def _larger_places(tried: list[Tried], terms: Terms) -> list[float]:
    """A few places between the largest that was tried and the largest that makes sense."""
    largest = max(point.place for point in tried)
    return np.linspace(largest, terms.high, LARGER + 1)[1:].tolist() if largest < terms.high else []


def _cheapest(search: Search) -> list[str]:
    """Search the bound with the smallest archive, among those that meet all that is measured."""
    target = search.target

    def better(run: Run, other: Run) -> bool:
        return bool(run["nbytes"] < other["nbytes"])

    data = search.original.data
    assert isinstance(data, Particles)
    lengths = [length for kept in target.promises for length in kept.lengths(data)]
    start = min(lengths)

    def bytes_at(place: float) -> float:
        run = search.attempt(search.limits.bound(math.exp(place)), better)
        met = target.room_of(run.figures) >= 0 if target.measurable else True
        return float(run["nbytes"]) if met else math.inf

    cheapest.search(bytes_at, math.log(start), search.most_runs)
    return []
