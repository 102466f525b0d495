"""`wb.propagation.trace`: one perturbation, followed from site to site, beside what theory says of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from workbench.backend import Array, to_host
from workbench.charts.description import Chart
from workbench.charts.table import html_table
from workbench.errors import WorkbenchError, briefly
from workbench.json_values import json_value
from workbench.propagation.charts import error_chart
from workbench.propagation.enclosures import UNCHANGED, Ball, Enclosure
from workbench.propagation.error_sizes import (
    change_of,
    inner,
    norm,
    ratio,
    ratio_of_norms,
    relative_error,
    root_mean_square,
)
from workbench.propagation.floor import measured_floor
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run, require_pipeline
from workbench.propagation.report import figure

Badge = Literal["unchanged", "linear", "non-linear", "round-off-limited", "discrete", "NaN"]

LINEAR = 0.02          # the part of an error that first order may miss in a stage that counts as linear
NEAR_THE_FLOOR = 2.0   # an error up to so many floors is rounding


@dataclass(frozen=True)
class SiteError:
    """The error at one site.

    `error` and `floor` are relative to the root mean square of the original values (for labels: shares that differ);
    `largest` is the largest change of a value and `guaranteed` what it cannot exceed, if that is known; `holds` says
    whether the array lies in the guaranteed enclosure. `growth` is the error over that of the inputs of the stage.
    `predicted` is the error to first order, `cosine` that of the angle between predicted and measured error. `not_finite`
    counts values that were finite before.
    """

    site: str
    stage: str | None
    error: float
    floor: float
    largest: float
    changed: int
    values: int
    not_finite: int
    growth: float | None
    predicted: float | None
    cosine: float | None
    guaranteed: float | None
    holds: bool | None
    badge: Badge

    @property
    def ratio(self) -> float | None:
        """Measured over predicted error."""
        return None if self.predicted is None else ratio(self.error, self.predicted)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """An error, from the perturbed sites to the end. `stages` has one entry for each site that it could reach, in order.

    `original` and `changed` are the two runs: `trace.original["waves"]` is the array at a site. `predicted` has the change
    of each site to first order, and `enclosures` where its values are guaranteed to be.
    """

    perturbations: tuple[Perturbation, ...]
    original: Run
    changed: Run
    stages: tuple[SiteError, ...]
    predicted: Mapping[str, Array | None]
    enclosures: Mapping[str, Enclosure | None]

    def __getitem__(self, site: str) -> SiteError:
        found = {each.site: each for each in self.stages}
        if site not in found:
            raise WorkbenchError(f"the error reaches {', '.join(found)}; got {site!r}")
        return found[site]

    @property
    def first_divergence(self) -> str | None:
        """The first site with an error that is more than rounding; None where there is none."""
        return next((each.site for each in self.stages if each.badge not in ("unchanged", "round-off-limited")), None)

    @property
    def growth(self) -> float:
        """The error at the last site over that at the first."""
        return ratio(self.stages[-1].error, self.stages[0].error)

    def difference(self, site: str) -> np.ndarray:
        """The size of the change of every value at a site."""
        return change_of(self.original[site], self.changed[site])

    def profile(self, site: str, axis: int = 0) -> np.ndarray:
        """The relative error of each slice along one axis, such as each time or each token."""
        original = to_host(self.original[site])
        if not -original.ndim <= axis < original.ndim:
            raise WorkbenchError(f"axis must be one of the {original.ndim} axes of {site!r}; got {axis}")
        slices = zip(*(np.moveaxis(values, axis, 0) for values in (self.difference(site), original)), strict=True)
        with np.errstate(all="ignore"):   # values of any size
            return np.array([ratio_of_norms(error, values) for error, values in slices])

    def plot(self) -> Chart:
        """The relative error at each site: measured, predicted, the floor and what is guaranteed."""
        measured, predicted, floor = (
            {each.site: getattr(each, name) for each in self.stages} for name in ("error", "predicted", "floor")
        )
        return error_chart([*measured], measured, predicted, floor, self.limits)

    @cached_property
    def limits(self) -> dict[str, float | None]:
        """For each site what its relative error cannot exceed; None where that is not known."""
        return {each.site: None if each.guaranteed is None else self._relative(each) for each in self.stages}

    def _relative(self, found: SiteError) -> float | None:
        """The guaranteed limit of a site in units of the root mean square of its values; None for labels."""
        values = to_host(self.original[found.site])
        if self.original.pipeline.categorical(found.site) or found.guaranteed is None:
            return None
        finite = values[np.isfinite(values)]
        size = root_mean_square(finite.astype(np.complex128 if finite.dtype.kind == "c" else np.float64))
        return found.guaranteed / size if size > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON types."""
        return {
            "perturbations": [each.to_dict() for each in self.perturbations],
            "notes": json_value({site: list(notes) for site, notes in self.changed.notes.items()}),
            "first_divergence": self.first_divergence,
            "stages": [json_value({**asdict(each), "ratio": each.ratio}) for each in self.stages],
        }

    def __repr__(self) -> str:
        last = self.stages[-1]
        shown = ", ".join(map(repr, self.perturbations))
        return f"Trace({shown}: relative error {last.error:.3g} at {last.site!r}, {last.badge})"

    def _repr_html_(self) -> str:
        return _table(repr(self), self.stages)

    @cached_property
    def badges(self) -> dict[str, Badge]:
        """The badge of every site."""
        return {each.site: each.badge for each in self.stages}


def trace(
    pipeline: Pipeline,
    x: Any,
    perturbation: Perturbation | Sequence[Perturbation],
    *,
    seed: int = 0,
    trial: int = 0,
    floor: Mapping[str, float] | None = None,
) -> Trace:
    """Follow one perturbation, or several at once, through a pipeline.

    `x` is the input, or a finished run of this pipeline, which is not repeated then; `floor` is what
    `measured_floor` returned for it, if it is known. Random choices are those of one trial of a campaign.

    >>> from workbench.propagation import BitFlip, Stage
    >>> pipeline = Pipeline([Stage("centred", lambda x: x - x.mean(), linear=True), ("energy", lambda d: (d * d).sum())])
    >>> found = trace(pipeline, np.arange(8.0), BitFlip("input", bit=51, index=3))
    >>> found.badges
    {'input': 'linear', 'centred': 'linear', 'energy': 'non-linear'}
    """
    require_pipeline(pipeline)
    several = isinstance(perturbation, Iterable) and getattr(perturbation, "ndim", 1) > 0
    given: tuple[Any, ...] = tuple(perturbation) if several else (perturbation,)   # type: ignore[arg-type]   # just checked
    if not all(isinstance(each, Perturbation) for each in given):
        raise WorkbenchError(f"a trace needs perturbations such as BitFlip or Bounded; got {briefly(perturbation)}")
    if not given:
        raise WorkbenchError("a trace needs at least one perturbation; got none")
    run = x if isinstance(x, Run) else pipeline.run(x)
    if not isinstance(x, Run):
        pipeline.require_deterministic(run)
    changed = pipeline.perturbed(run, given, seed, trial)
    known = measured_floor(pipeline, run) if floor is None else floor
    sites = list(dict.fromkeys(each.site for each in given))
    with np.errstate(all="ignore"):   # faults overflow by design
        return compared(pipeline, run, changed, given, known, sites)


def compared(
    pipeline: Pipeline,
    run: Run,
    changed: Run,
    given: tuple[Perturbation, ...],
    floor: Mapping[str, float],
    sites: Sequence[str],
) -> Trace:
    """The trace of two runs of which these sites were perturbed."""
    changes = {site: _change(run[site], changed[site]) for site in _roots(pipeline, sites)}
    predicted = pipeline.first_order(run, changes)
    enclosures = enclosed(pipeline, run, changed, given) if len(sites) == len(changes) else {}
    reached = pipeline.after(sites)
    errors: dict[str, SiteError] = {}
    for site in reached:
        errors[site] = _site_error(pipeline, run, changed, site, floor, predicted.get(site), enclosures.get(site), errors)
    return Trace(given, run, changed, tuple(errors.values()), predicted, enclosures)


def enclosed(
    pipeline: Pipeline, run: Run, changed: Run, given: Sequence[Perturbation]
) -> dict[str, Enclosure | None]:
    """Where the values of every site are guaranteed to be, as far as the stages know it."""
    found: dict[str, Enclosure | None] = {}
    for each in given:
        radius = each.radius(run[each.site], changed[each.site])
        several = sum(other.site == each.site for other in given) > 1
        found[each.site] = None if several else Ball.around(run[each.site], radius)
    for stage in pipeline.stages:
        read = stage.inputs or ()
        if not any(site in found for site in read):
            continue
        inputs = [found.get(site, UNCHANGED) for site in read]
        known = stage.enclose is not None and all(each is not None for each in inputs)
        outputs: Any = [None] * len(stage.outputs)
        if known and stage.enclose is not None:
            result = stage.enclose([run[site] for site in read], inputs, [run[site] for site in stage.outputs])
            outputs = result if len(stage.outputs) > 1 else [result]
        for site, enclosure in zip(stage.outputs, outputs, strict=True):
            if site not in found or enclosure is None:
                found[site] = enclosure
            else:
                found[site] = None   # perturbed twice: here, and by what comes in
    return found


def _roots(pipeline: Pipeline, sites: Sequence[str]) -> list[str]:
    """The perturbed sites that no other perturbed site reaches: their change is the perturbation itself."""
    return [site for site in sites if not any(site in pipeline.after(other)[1:] for other in sites if other != site)]


def _change(original: Array, changed: Array) -> Array:
    if original.dtype.kind in "b":
        return (original ^ changed).astype(np.float64)
    wide = np.promote_types(original.dtype, np.float64)
    return changed.astype(wide) - original.astype(wide)


def _site_error(
    pipeline: Pipeline,
    run: Run,
    changed: Run,
    site: str,
    floor: Mapping[str, float],
    predicted: Array | None,
    enclosure: Enclosure | None,
    before: Mapping[str, SiteError],
) -> SiteError:
    original, other = run[site], changed[site]
    stage = pipeline.stage_of(site)
    categorical = pipeline.categorical(site)
    change = change_of(original, other)
    error = relative_error(original, other, categorical)
    lost = int(np.count_nonzero(~np.isfinite(to_host(other)) & np.isfinite(to_host(original))))
    sources = [before[name].error for name in (stage.inputs or () if stage else ()) if name in before]
    foreseen, cosine, residual = _against(original, other, predicted, categorical)
    most = None if enclosure is None else enclosure.most(original)
    return SiteError(
        site=site,
        stage=stage.name if stage else None,
        error=error,
        floor=floor[site],
        largest=float(change.max()),
        changed=int(np.count_nonzero(change)),
        values=int(original.size),
        not_finite=lost,
        growth=ratio(error, max(sources)) if sources else None,
        predicted=foreseen,
        cosine=cosine,
        guaranteed=None if most is None else float(np.max(most)),
        holds=None if enclosure is None else enclosure.holds(original, other),
        badge=_badge(error, floor[site], lost, residual, categorical or original.dtype.kind not in "fc"),
    )


def _against(
    original: Array, other: Array, predicted: Array | None, categorical: bool
) -> tuple[float | None, float | None, float | None]:
    """The predicted error, the cosine between both errors, and what the prediction misses of the measured error."""
    if predicted is None or categorical:
        return None, None, None
    changes = (to_host(predicted), to_host(_change(original, other)), to_host(original))
    wide = np.complex128 if any(each.dtype.kind == "c" for each in changes) else np.float64
    with np.errstate(all="ignore"):
        one, measured, size = (each.astype(wide, copy=False).ravel() for each in changes)
        finite = np.isfinite(measured) & np.isfinite(size)
        one, measured, size = one[finite], measured[finite], size[finite]
        lengths = norm(one), norm(measured)
        cosine = inner(one / lengths[0], measured / lengths[1]) if all(lengths) else None
        missed = ratio(norm(measured - one), lengths[1])
    return ratio(lengths[0], norm(size)), cosine, missed


def _badge(error: float, floor: float, not_finite: int, missed: float | None, discrete: bool) -> Badge:
    if not_finite or not math.isfinite(error):
        return "NaN"
    if error == 0:
        return "unchanged"
    if error <= NEAR_THE_FLOOR * floor:
        return "round-off-limited"
    if missed is None:
        return "discrete" if discrete else "non-linear"
    return "linear" if missed <= LINEAR + NEAR_THE_FLOOR * floor / error else "non-linear"


def _table(title: str, stages: Sequence[SiteError]) -> str:
    """The errors of a trace, site by site."""
    heads = ["site", "relative error", "floor", "predicted", "growth", "largest change", "guaranteed", "changed", ""]
    rows = [
        [
            each.site, figure(each.error), figure(each.floor), figure(each.predicted), figure(each.growth),
            figure(each.largest), figure(each.guaranteed), f"{each.changed:,} of {each.values:,}", _remarks(each),
        ]
        for each in stages
    ]
    return html_table(heads, rows, texts=(0, 8), title=title)


def _remarks(each: SiteError) -> str:
    lost = [f"{each.not_finite:,} not finite"] if each.not_finite else []
    return ", ".join([each.badge, *lost, *(["outside the guaranteed interval"] if each.holds is False else [])])
