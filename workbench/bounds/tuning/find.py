"""`wb.find_bound`: the bound, and the codec, with which a target is met, proved by a compression of all data."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from workbench import codecs
from workbench.archive import Archive
from workbench.archive.companions import codec_of_columns
from workbench.archive.documents import documents_nbytes
from workbench.archive.request import promises
from workbench.archive.writing import require_writable
from workbench.arguments import one_of, whole_number
from workbench.bounds.as_code import bound_code
from workbench.bounds.measure import observed
from workbench.bounds.prediction.expert import Expert
from workbench.bounds.result import Sweep
from workbench.bounds.run import Order, Question, Run
from workbench.bounds.sources import FieldInParts, Measured, opened, source_of
from workbench.bounds.tuning import cheapest
from workbench.bounds.tuning.attempt import Attempt, Original
from workbench.bounds.tuning.choice import Candidate, chosen_candidate, other_candidates
from workbench.bounds.tuning.found import Found
from workbench.bounds.tuning.guides import Known
from workbench.bounds.tuning.limits import Limits
from workbench.bounds.tuning.search import Terms, Tried, best_of, next_place
from workbench.bounds.tuning.targets import PSNR, All, Ratio, Target, require_target
from workbench.clusters import KeepClusters
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, PointwiseRelative, Relative
from workbench.metrics import Report
from workbench.metrics.errors import psnr
from workbench.progress import Progress
from workbench.run.submission import submittable

KINDS: dict[str, type[Bound]] = {"absolute": Absolute, "relative": Relative, "pointwise-relative": PointwiseRelative}
MOST_RUNS = 12
BEYOND = 16.0         # times the range of the values: up to here bounds of conservative codecs make sense
FINER = (0.9, 0.7, 0.4)   # of a bound: these must meet a target, too, that some bounds meet by chance
AFTER_CHANCE = 0.4    # of a bound that does not: where such a search goes on
SAME = 0.03           # so near to another, no bound is tried again
LARGER = 4            # larger bounds that are tried for a figure of one's own, if no smaller one meets its limit
SHARE = 0.5           # of the bytes that a ratio leaves: documents that take more are named
LEAST_STEP = 1e-4     # by which a bound of velocities is tightened, as a share


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
        options = _Options(order, beside, (*promises(keep), *wanted.promises), chunk_values)
        original, wanted = Original(measured), wanted.for_data(source)
        chosen = chosen_candidate(original, codec, wanted, limits, order, expert, beside)
        if any(isinstance(each, PSNR) for each in wanted.targets):
            chosen = dataclasses.replace(chosen, codec=chosen.codec.for_mean_errors())
        search = _Search(wanted, original, chosen, limits, options, most, progress, watch, aimed)
        notes = _cheapest(search) if wanted.promises else _bracketed(search)
        if isinstance(codec, str) and codec == "auto" and expert is None and not wanted.predictable:
            found = _with_other_codecs(search, notes)
        else:
            found = search.result(*notes)
        return found if out is None or not found.met else _written(found, measured, options, out)


def _written(found: Found, data: Measured, options: _Options, out: str | os.PathLike[str]) -> Found:
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


@dataclass(frozen=True)
class _Options:
    """The arguments of `wb.compress` that all attempts share."""

    order: Order
    velocities: Bound | None
    keep: tuple[Any, ...]
    chunk_values: int | None = None

    def as_code(self) -> str:
        """The arguments as Python."""
        texts = [f', order="{self.order}"'] if self.order != "keep" else []
        texts += [f", velocities={bound_code(self.velocities)}"] if self.velocities is not None else []
        texts += [f", keep={[_Call(kept) for kept in self.keep]!r}"] if self.keep else []
        texts += [f", chunk_values={self.chunk_values}"] if self.chunk_values is not None else []
        return "".join(texts)


@dataclass(frozen=True)
class _Call:
    promise: Any

    def __repr__(self) -> str:
        return f"wb.{self.promise!r}"


@dataclass(frozen=True, eq=False)
class _Success:
    """An attempt that met the target, and the arguments that it was made with."""

    run: Run
    archive: Archive | None   # of a field in parts, none is kept
    report: Report
    options: _Options


@dataclass
class _Search:
    """The attempts of a search, and the best of them."""

    target: All
    original: Original
    candidate: Candidate
    limits: Limits
    options: _Options
    most_runs: int
    progress: Progress | None
    watch: Callable[[Run], object]
    aimed: PSNR | None = None   # of velocities, which have a bound already
    runs: list[Run] = field(default_factory=list)
    best: _Success | None = None
    met: list[_Success] = field(default_factory=list)   # all that meet a target that is not in order
    by_chance: int = 0   # how many of those were forgotten
    certain: bool = True   # whether finer bounds are known to meet the target, too

    def forget(self, failed: float) -> None:
        """Count what meets the target at this bound or larger ones as chance: the largest below is the best then."""
        left = [each for each in self.met if each.run.bound.eb < failed]
        self.by_chance += len(self.met) - len(left)
        self.met, self.best = left, max(left, key=lambda each: each.run.bound.eb, default=None)

    @property
    def exhausted(self) -> bool:
        """Whether no more compressions are allowed."""
        return len(self.runs) >= self.most_runs

    def attempt(self, bound: Bound, better: Callable[[Run, Run], bool]) -> Run:
        """Compress, decompress and measure; keeps the archive if it meets the target and is better than the best so far."""
        options, data = self.options, self.original.data
        question = Question(self.candidate.codec, bound, options.order, chunk_values=options.chunk_values)
        run, outcome = observed(data, question, self._progress_of(bound), options.keep, options.velocities)
        report = outcome.report
        figures = self.target.measured(Attempt(self.original, outcome.archive, outcome.decoded, outcome.order, report))
        if self.aimed is not None:
            figures["velocity_psnr"] = _velocity_psnr(data, report)
            if (short := self.aimed.least - figures["velocity_psnr"]) > 0 and not self.exhausted:
                return self._again(bound, better, short)
        run = dataclasses.replace(run, figures={**run.figures, **figures})
        if math.isnan(room := self.target.room_of(figures)):
            why = "; ".join(report.notes) or "the figure is not a number"
            raise WorkbenchError(f"{self.target} cannot be measured on {data!r}: {why}")
        self.runs.append(run)
        kept = self.aimed is None or figures["velocity_psnr"] >= self.aimed.least
        if room >= 0 and kept:
            success = _Success(run, None if isinstance(data, FieldInParts) else outcome.archive, report, self.options)
            if self.best is None or better(run, self.best.run):
                self.best = success
            if not self.target.in_order:
                self.met.append(success)
        self.watch(run)
        return run

    def _again(self, bound: Bound, better: Callable[[Run, Run], bool], short: float) -> Run:
        """The attempt with tighter velocities: in other chunks than alone, some codecs miss their target by a hair."""
        assert self.options.velocities is not None
        tighter = type(self.options.velocities)(self.options.velocities.eb * 10 ** (-short / 20) * (1 - LEAST_STEP))
        self.options = dataclasses.replace(self.options, velocities=tighter)
        self.most_runs -= 1
        return self.attempt(bound, better)

    def result(self, *notes: str) -> Found:
        """The result."""
        best, options = self.best, self.options if self.best is None else self.best.options
        nearest = best.run if best else max(self.runs, key=lambda run: self.target.room_of(run.figures))
        kept = (best.run.bound, best.archive, best.report) if best else None
        remarks, runs = (*self.candidate.notes, *notes), Sweep(tuple(self.runs))
        codec = codecs.from_dict(nearest.codec)
        return Found(self.target, codec, nearest, runs, remarks, options.as_code(), kept, options.velocities)

    def _progress_of(self, bound: Bound) -> Progress | None:
        progress = self.progress
        if progress is None:
            return None
        number = len(self.runs) + 1
        return lambda share, what: progress(None if share is None else share, f"trial {number}, {bound!r}: {what}")


def _velocity_psnr(data: Measured, report: Report) -> float:
    """The PSNR of velocities: the peak is their range."""
    assert isinstance(data, Particles)
    values = np.asarray(data.velocities)
    return psnr(float(values.max()) - float(values.min()), float(report["velocity_rms_error"]))


def _bracketed(search: _Search, guiding: All | None = None) -> list[str]:
    """Search the largest bound with room, or the smallest for a ratio; returns notes.

    `guiding` is what the target is expected to amount to, if more is known of that.
    """
    target, limits, candidate = search.target, search.limits, search.candidate
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

    tried: list[Tried] = []

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
    return _notes(search, terms, tried)


def _with_other_codecs(search: _Search, notes: list[str]) -> Found:
    """The smallest archive of this search and of searches with the other codecs.

    The error with which one meets the target says where to begin with the next, but not which takes the fewest bytes.
    """
    tried, best, remarks = [search.candidate.codec], search, notes
    left = other_candidates(search.original, tried, search.limits) if isinstance(search.original.data, Field) else []
    while left and not search.exhausted:
        psnr = math.inf if best.best is None else float(best.best.run["psnr"])
        # The list of runs is the same: they are counted together.
        other = dataclasses.replace(search, candidate=left.pop(0), best=None, met=[], by_chance=0, certain=True)
        tried.append(other.candidate.codec)
        found = _bracketed(other, All(PSNR(psnr)) if math.isfinite(psnr) else None)
        if other.best is not None and (best.best is None or other.best.run["ratio"] > best.best.run["ratio"]):
            best, remarks = other, found
    if len(tried) > 1:
        remarks = [*remarks, f"codecs tried: {', '.join(each.id for each in tried)}"]
    if left:
        remarks = [*remarks, f"not tried: {', '.join(each.codec.id for each in left)}"]
    return best.result(*remarks)


def _meet_it_below(search: _Search, tried: list[Tried], attempt: Callable[[float], None], low: float) -> bool:
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


def _notes(search: _Search, terms: Terms, tried: list[Tried]) -> list[str]:
    """Why the answer is not closer to the target, where it is not."""
    target, best = search.target, search.best
    if search.by_chance or not search.certain:
        return _notes_on_chance(search)
    if best is None:
        if any(target.leading_room(run.figures) >= 0 for run in search.runs):
            others = [each for each in target.measurable if each not in target.leading]
            return [f"the largest bounds that meet the other targets do not meet {', and '.join(map(str, others))}"]
        stopped = [f"stopped after {len(search.runs)} compressions"] if search.exhausted else []
        return [*stopped, *_documents(search)]
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


def _notes_on_chance(search: _Search) -> list[str]:
    """What is known of finer and of larger bounds where some meet the target by chance."""
    count, notes = search.by_chance, []
    if count:
        notes = [f"{count} larger bound{'s' if count > 1 else ''} met the target by chance: finer ones did not"]
    if not search.certain:
        stopped = f"stopped after {len(search.runs)} compressions, before {len(FINER)} finer bounds had met the target, too"
        notes.append(f"{stopped}: it may be met by chance")
    return notes


def _documents(search: _Search) -> list[str]:
    """What the documents of an archive take, if that is much of what a ratio leaves."""
    least = max((each.least for each in search.target.leading if isinstance(each, Ratio)), default=0.0)
    if not least or not search.runs:
        return []
    data = search.original.data
    known = data if isinstance(data, Particles) else search.original.outline
    nbytes = documents_nbytes(known, search.candidate.codec, search.options.order)
    allowed = float(search.runs[0]["ratio"]) * float(search.runs[0]["nbytes"]) / least
    if nbytes < SHARE * allowed:
        return []
    alone = f"the documents of the archive alone take about {nbytes:,.0f} bytes"
    return [f"{alone}; a ratio of {least:g} leaves {allowed:,.0f} in all"]


def _cheapest(search: _Search) -> list[str]:
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
