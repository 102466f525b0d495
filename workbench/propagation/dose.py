"""Bound against damage: what compressing one site within larger and larger bounds does to the result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.backend import to_host
from workbench.charts.description import Chart
from workbench.charts.table import html_table
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound
from workbench.json_values import json_value
from workbench.propagation.bounded import Bounded
from workbench.propagation.charts import dose_chart
from workbench.propagation.error_sizes import lost, root_mean_square
from workbench.propagation.number_format import components
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.report import figure
from workbench.propagation.stage import StageFailed
from workbench.propagation.tolerance import Tolerance, agreed
from workbench.propagation.trials import NOT_FINITE

STEPS = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)   # of the root mean square


@dataclass(frozen=True)
class Dose:
    """One bound at one site: the ratio of compression, and the damage of the result (up to 1 is tolerated).

    The damage is infinite where a stage refused the decompressed array, and `reason` says why.
    """

    site: str
    bound: Bound
    ratio: float
    nbytes: int
    damage: float
    reason: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class DoseResponse:
    """The damage at rising bounds."""

    doses: tuple[Dose, ...]
    tolerance: str

    @property
    def largest(self) -> Dose | None:
        """The largest bound up to which all are tolerated; None where none is."""
        return largest_tolerated(self.doses)

    def plot(self) -> Chart:
        """Damage against bound, with the limit at 1."""
        return dose_chart(self.doses)

    def to_dict(self) -> dict[str, Any]:
        """The doses as JSON types."""
        rows = [{**vars(dose), "bound": dose.bound.to_dict()} for dose in self.doses]
        return {"tolerance": self.tolerance, "doses": json_value(rows)}

    def __repr__(self) -> str:
        best = self.largest
        shown = f"tolerated up to {best.bound!r}, ratio {best.ratio:.2f}" if best else "no bound is tolerated"
        return f"DoseResponse({self.doses[0].site!r}, {len(self.doses)} bounds, {shown})"

    def _repr_html_(self) -> str:
        rows = [
            [repr(each.bound), figure(each.ratio), figure(each.damage), each.reason or _judgement(each)]
            for each in self.doses
        ]
        title = f"{self!r}; tolerance: {self.tolerance}"
        return html_table(["bound", "ratio", "damage", ""], rows, texts=(0, 3), title=title)


def largest_tolerated(doses: Iterable[Dose]) -> Dose | None:
    """The last of these rising bounds up to which all are tolerated; None where none is."""
    return max(itertools.takewhile(lambda dose: dose.damage <= 1, doses), key=lambda dose: dose.bound.eb, default=None)


def _judgement(found: Dose) -> str:
    return "" if found.damage <= 1 else "too much"


def dose_response(
    pipeline: Pipeline,
    x: Any,
    site: str,
    bounds: Iterable[Bound | float] | None = None,
    codec: str | Codec = "auto",
    tolerance: Tolerance | None = None,
) -> DoseResponse:
    """Compress one site within each of these bounds (numbers are absolute), and measure the damage of the result.

    By default, from a millionth to a tenth of the root mean square of the site.

    >>> values = np.sin(np.arange(4096.0))
    >>> pipeline = Pipeline([("mean square", lambda x: (x * x).mean())])
    >>> found = dose_response(pipeline, values, "input", [1e-3, 1.0], codec="prequantised")
    >>> [dose.damage <= 1 for dose in found.doses]
    [True, False]
    """
    run = x if isinstance(x, Run) else pipeline.run(x)
    limit = agreed(tolerance, pipeline.tolerance)
    chosen = [share * rms(run, site) for share in STEPS] if bounds is None else list(bounds)
    given = [each if isinstance(each, Bound) else Absolute(each) for each in chosen]
    if not given:
        raise WorkbenchError("a dose-response curve needs at least one bound; got none")
    return DoseResponse(tuple(dose(run, [Bounded(site, bound, codec)], limit)[0] for bound in given), limit.name)


def dose(
    run: Run, given: Sequence[Perturbation], tolerance: Tolerance, bounds: Sequence[Bound] | None = None
) -> list[Dose]:
    """The effect of these perturbations together, one entry for each; all have the damage of the whole.

    Each says its bytes, as `Bounded` does. `bounds` are theirs by default, or levels that other reductions were made from.
    """
    at = [getattr(each, "bound") for each in given] if bounds is None else bounds   # noqa: B009
    reason = None
    try:
        changed = run.pipeline.perturbed(run, given)
        with np.errstate(all="ignore"):
            damage = float(tolerance.damage(run.results, changed.results))
        if any(lost(run[site], changed[site]) for site in run.pipeline.outputs):
            damage, reason = math.inf, NOT_FINITE
        notes = {site: found[0] for site, found in changed.notes.items()}
    except StageFailed as error:
        alone = {each.site: each.apply(run[each.site], None, run.pipeline.boxes.get(each.site)) for each in given}
        damage, notes, reason = math.inf, {site: done.notes[0] for site, done in alone.items()}, str(error)
    damage = math.inf if math.isnan(damage) else damage
    return [
        Dose(each.site, bound, float(notes[each.site]["ratio"]), int(notes[each.site]["nbytes"]), damage, reason)
        for each, bound in zip(given, at, strict=True)
    ]


def rms(run: Run, site: str) -> float:
    """The root mean square of the finite values at a site, which must not be all zero."""
    numbers = components(np.ascontiguousarray(to_host(run[site]))).astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    size = root_mean_square(finite)
    if not size > 0:
        raise WorkbenchError(f"a bound needs a scale; the values at {site!r} are all zero or not finite: give bounds")
    return size
