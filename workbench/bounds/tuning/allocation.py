"""`wb.find_bounds`: a bound for each variable of a dataset, so that all together have a ratio, or each has a quality.

The bits go where they cost least. The error of a variable counts as a share of its standard deviation, and what is made
small is the sum over all values of its square, each variable with a weight. That sum is smallest for a given size where one
more bit lowers it equally for all variables (the condition of Lagrange). How it falls is measured: the values in the middle
of each variable are compressed at a ladder of bounds, by a fast codec where none is named, as only the differences between
variables count. From these rates follow bounds for any size; then all values are compressed, and what the size has missed
is corrected, until the ratio is met.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive import Archive, Dataset, compress
from workbench.archive.choice import SAMPLED, is_free, middle
from workbench.archive.collection.collection import share_of
from workbench.archive.collection.compressing import gathered
from workbench.archive.collection.names import require_known
from workbench.archive.collection.rules import ALL, is_exact, options_for
from workbench.arguments import whole_number
from workbench.bounds.tuning.allocated import Allocation
from workbench.bounds.tuning.each_alone import require_each, searched_alone
from workbench.bounds.tuning.notes import documents_of
from workbench.bounds.tuning.several import All, require_target
from workbench.bounds.tuning.slack import slacks_of
from workbench.bounds.tuning.targets import Ratio, Target
from workbench.codecs import Codec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Exact
from workbench.progress import Progress
from workbench.run.chunked_field import ChunkedField
from workbench.run.submission import submittable
from workbench.slabs import Slices, rows_of

FAST = "prequantised"   # the codec of the ladder, if none is named
LADDER = tuple(2.0 ** (3 - 1.5 * step) for step in range(12))   # bounds, as shares of the standard deviation
MOST_RUNS = 6
STEPS = 60   # of a bisection
MEASURING, KEEPING = 0.2, 0.3   # shares of the progress after which rates are known, and others are compressed


@dataclass(frozen=True, eq=False)
class RateCurve:
    """How the size and the squared error of a variable follow from its bound, by measurements.

    Errors are shares of the standard deviation; `count` is the number of values.
    """

    name: str
    deviation: float
    count: int
    weight: float
    bounds: np.ndarray = field(default_factory=lambda: np.array(LADDER))
    bits: np.ndarray = field(default_factory=lambda: np.zeros(len(LADDER)))
    errors: np.ndarray = field(default_factory=lambda: np.zeros(len(LADDER)))

    @functools.cached_property
    def hull(self) -> np.ndarray:
        """The measurements on the lower convex hull of error over bits: no mixture of others is better than these."""
        kept: list[int] = []
        for place in np.lexsort((self.errors, self.bits)).tolist():
            if kept and self.errors[place] >= self.errors[kept[-1]]:
                continue
            while len(kept) > 1 and self._slope(kept[-2], kept[-1]) <= self._slope(kept[-1], place):
                kept.pop()
            kept.append(place)
        return np.array(kept)

    @functools.cached_property
    def gains(self) -> np.ndarray:
        """The logarithm of what one more bit lowers the error by, at each measurement of the hull; it falls."""
        slopes = [math.log(self.weight * self._slope(a, b)) for a, b in itertools.pairwise(self.hull.tolist())] or [0.0]
        between = [(a + b) / 2 for a, b in itertools.pairwise(slopes)]
        return np.array([slopes[0], *between, slopes[-1]][: len(self.hull)])

    def at(self, gain: float) -> tuple[float, float]:
        """The bound at which one more bit gains so much, and the bits per value there.

        Below the finest bound of the ladder each further bit halves the error, and lowers the gain to a quarter.
        """
        places, beyond = np.arange(len(self.hull)), max(float(self.gains[-1]) - gain, 0.0) / math.log(4)
        place = float(np.interp(-gain, -self.gains, places))
        share = math.exp(float(np.interp(place, places, np.log(self.bounds[self.hull])))) * 2.0**-beyond
        return share * self.deviation, float(np.interp(place, places, self.bits[self.hull])) + beyond

    def _slope(self, one: int, other: int) -> float:
        """How much a bit lowers the error between two measurements."""
        return float((self.errors[one] - self.errors[other]) / max(self.bits[other] - self.bits[one], 1e-9))


@submittable
def find_bounds(
    dataset: Any,
    target: Target,
    codec: str | Codec = "auto",
    *,
    names: Any = None,
    weights: Mapping[str, float] | None = None,
    others: Mapping[str, Any] | None = None,
    most_runs: int = MOST_RUNS,
    progress: Progress | None = None,
) -> Allocation:
    """The bounds with which all variables of a dataset together have a ratio, with the smallest sum of squared errors.

    Other targets, such as `wb.PSNR(60)`, hold for every variable: each has the largest bound that meets them, as
    `wb.find_bound` finds it. `wb.All(wb.PSNR(60), wb.Ratio(20))` has these bounds, too, and says whether all together reach
    the ratio. `most_runs` then counts for each variable.

    For a ratio alone, each error counts as a share of the standard deviation of its variable, times a weight (1 unless
    `weights` says otherwise). `names` are the variables that may have errors: by default all of floating-point
    numbers that are no coordinates; everything else counts, and is kept exactly unless there is a rule for it in `others`.

    >>> import workbench as wb
    >>> data = {"smooth": np.sin(np.arange(4096) / 50), "rough": np.random.default_rng(0).normal(size=4096)}
    >>> found = wb.find_bounds(data, wb.Ratio(4))
    >>> found.met, found.bounds["smooth"].eb < found.bounds["rough"].eb
    (True, True)
    """
    require_target(target)
    wanted = All(target)
    if any(not isinstance(each, Ratio) for each in wanted.rising):
        raise WorkbenchError(f"of a dataset, wb.Ratio is the only target that larger bounds make easier; got {wanted}")
    whole_number("most_runs", most_runs, least=1)
    members = Dataset.of(dataset)
    chosen = _chosen(members, names)
    given = dict(weights or {})
    for name in given:
        require_known(name, chosen, "a variable that may have errors")
    if not wanted.searched_upwards:
        if given:
            raise WorkbenchError(f"weights are for a wb.Ratio alone, which shares bits among variables; got {wanted}")
        chosen = [name for name in chosen if _deviation(*_sample(members[name])[1:]) > 0]
        require_each(members, chosen, wanted)
        rules = _rules_of_others(members, chosen, others or {})
        kept = _compressed(members, rules, progress, 0.0, MEASURING)
        return searched_alone(members, chosen, wanted, codec, kept, _given(rules), most_runs, progress, MEASURING)
    curves = []
    for number, name in enumerate(chosen):
        if progress is not None:
            progress(MEASURING * number / len(chosen), f"measuring rates of {name!r}")
        curves.append(_curve(name, members[name], codec, given.get(name, 1.0)))
    curves = [curve for curve in curves if curve.deviation > 0]
    rules = _rules_of_others(members, [curve.name for curve in curves], others or {})
    kept = _compressed(members, rules, progress, MEASURING, KEEPING)
    return _searched(members, wanted, codec, curves, kept, rules, most_runs, progress)


def _rules_of_others(members: Dataset, chosen: list[str], others: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The arguments of `wb.compress` for all variables whose bounds are not sought."""
    for name in others:
        if name in chosen:
            raise WorkbenchError(f"{name!r} must be one of names or of others; got it in both: leave it out of one of them")
    rest = [name for name in members if name not in chosen]
    if not rest:
        return {}
    given = {name: members[name] for name in rest}
    return options_for(Dataset(given, members.groups, members.bounded & set(rest)), {**others, ALL: Exact()})


def _compressed(
    members: Dataset, rules: Mapping[str, Mapping[str, Any]], progress: Progress | None, start: float, end: float
) -> dict[str, Archive]:
    """The archives of some members, each with its own arguments; the progress goes from `start` to `end`."""

    def told(share: float | None, what: str) -> None:
        if progress is not None:
            progress(start + (end - start) * (share or 0.0), what)

    return {
        name: compress(members[name], progress=share_of(told, name, number, len(rules)), **rule)
        for number, (name, rule) in enumerate(rules.items())
    }


def _searched(
    members: Dataset, target: All, codec: str | Codec, curves: list[RateCurve], kept: Mapping[str, Archive],
    others: Mapping[str, Mapping[str, Any]], most_runs: int, progress: Progress | None,
) -> Allocation:
    """Compress all variables at the bounds that the rates foretell for a size, which is corrected by what came of it."""
    best, wanted, runs = None, 0.0, 0   # type: Allocation | None, float, int
    ratio = max((each for each in target.measurable if isinstance(each, Ratio)), key=lambda each: each.least)
    named = {} if is_free(codec) else dict.fromkeys((curve.name for curve in curves), codec)
    for runs in range(1, most_runs + 1):
        start, end = (KEEPING + (1 - KEEPING) * number / most_runs for number in (runs - 1, runs))
        bounds = _bounds_for(curves, wanted or _first(members, ratio, curves, kept))
        asked = {name: {"bound": bound, "codec": codec} for name, bound in bounds.items()}
        archives = _compressed(members, asked, progress, start, end)
        archive = gathered({name: archives[name] if name in archives else kept[name] for name in members}, members.groups)
        figures = {"ratio": archive.ratio}
        rules, met = {**bounds, **_given(others)}, target.room_of(figures) >= 0
        tried = Allocation(target, rules, archive, met, runs, named, slacks_of(target, figures))
        if best is None or _is_better(tried, best):
            best = tried
        if not curves or (tried.met and archive.ratio <= ratio.least * (1 + ratio.tolerance)):
            break
        reached = sum(one.data.nbytes for one in archives.values())
        goal = archive.original_nbytes / (ratio.least * (1 + ratio.tolerance / 2)) - (archive.nbytes - reached)
        if goal <= 0:
            break
        wanted = (wanted or _first(members, ratio, curves, kept)) * goal / reached
    assert best is not None
    return dataclasses.replace(best, runs=runs, notes=tuple(documents_of(target, best.archive)))


def _given(rules: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Rules as users write them: those of a bound alone are the bound."""
    return {name: rule["bound"] if rule.keys() == {"bound"} else rule for name, rule in rules.items()}


def _first(members: Dataset, target: Ratio, curves: list[RateCurve], kept: Mapping[str, Archive]) -> float:
    """The bytes that the ratio leaves for the variables with errors, documents aside."""
    original = sum(archive.original_nbytes for archive in kept.values())
    for curve in curves:
        member = members[curve.name]
        original += curve.count * (member.values.dtype if isinstance(member, Field) else member.dtype).itemsize
    exact = sum(sum(stored.nbytes for stored in archive.arrays.values()) for archive in kept.values())
    return max(original / target.least - exact - 1200 * len(members), 1.0)


def _bounds_for(curves: list[RateCurve], nbytes: float) -> dict[str, Bound]:
    """The bounds with which all variables take so many bytes, and one more bit gains equally everywhere."""
    if not curves:
        return {}
    gains = np.concatenate([curve.gains for curve in curves])
    low, high = float(gains.min()) - 60, float(gains.max()) + 1   # few bits where a bit must gain much
    for _ in range(STEPS):
        between = (low + high) / 2
        taken = sum(curve.count * curve.at(between)[1] for curve in curves) / 8
        low, high = (between, high) if taken > nbytes else (low, between)
    return {curve.name: Absolute(float(f"{curve.at(high)[0]:.6g}")) for curve in curves}


def _curve(name: str, member: Any, codec: str | Codec, weight: float) -> RateCurve:
    """The rates of a sample of a field at a ladder of bounds."""
    if not (isinstance(weight, int | float) and 0 < weight < math.inf):
        raise WorkbenchError(f"the weight of {name!r} must be positive and finite; got {weight!r}")
    sample, values, valid = _sample(member)
    deviation, count = _deviation(values, valid), math.prod(member.shape)
    if deviation == 0:
        return RateCurve(name, 0.0, count, weight)
    plain = Field(sample.values, mask=sample.mask)
    bits, errors = [], []
    for share in LADDER:
        archive = compress(plain, Absolute(share * deviation), FAST if is_free(codec) else codec)
        differences = (backend.to_host(archive.decompress().values)[valid].astype(np.float64) - values[valid]) / deviation
        bits.append(8 * archive.data.nbytes / values.size)
        errors.append(float(np.square(differences).mean()))
    return RateCurve(name, deviation, count, weight, np.array(LADDER), np.array(bits), np.array(errors))


def _sample(member: Any) -> tuple[Field, np.ndarray, np.ndarray]:
    """The middle of a field, its values and which of them are valid; where these are equal, the first rows that differ."""
    field = ChunkedField.of(member)
    found = _part(field, middle(field.shape))
    rows = iter(rows_of(field.shape, SAMPLED))
    while _deviation(*found[1:]) == 0 and (run := next(rows, None)) is not None:
        found = _part(field, (run, *(slice(0, size) for size in field.shape[1:])))
    return found


def _part(field: ChunkedField, place: Slices) -> tuple[Field, np.ndarray, np.ndarray]:
    sample = Field(np.asarray(field.values[place])) if field.on_dask else field.part(place)
    return sample, backend.to_host(sample.values), backend.to_host(sample.valid)


def _deviation(values: np.ndarray, valid: np.ndarray) -> float:
    """The standard deviation; 0 where there is none, so that the variable is kept exactly."""
    deviation = float(values[valid].astype(np.float64).std()) if valid.any() else 0.0
    return deviation if deviation < math.inf else 0.0


def _chosen(members: Dataset, names: Any) -> list[str]:
    """The variables that may have errors."""
    if names is None:
        return [name for name, member in members.items() if _is_floats(member) and not is_exact(members, name)]
    chosen = [names] if isinstance(names, str) else list(names)
    for name in chosen:
        require_known(name, members, "a member")
        if not _is_floats(members[name]):
            raise WorkbenchError(f"{name!r} must be a field of floating-point numbers; got {members[name]!r}: leave it out")
    return chosen


def _is_floats(member: Any) -> bool:
    if not isinstance(member, Field | ChunkedField):
        return False
    return (member.values.dtype if isinstance(member, Field) else member.dtype).kind == "f"


def _is_better(one: Allocation, other: Allocation) -> bool:
    """Whether an archive is nearer to the ratio, from above if it can be."""
    if one.met != other.met:
        return one.met
    return one.ratio < other.ratio if one.met else one.ratio > other.ratio
