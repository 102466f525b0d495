"""How much error each site may have, so that the result stays within its tolerance: the library's budget, for the panel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.backend import to_host
from workbench.charts.description import Axis, Chart, Point, Rule, Series, joined
from workbench.charts.looks import GREY
from workbench.errors import WorkbenchError
from workbench.guarantees import Relative
from workbench.lab.jobs import Job
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.propagation import Budget, Run, Tolerance, budget, dose_response
from workbench.propagation.charts import HEIGHT
from workbench.propagation.number_format import component, components

DIGITS = 2, 3, 5
NAMED = 2   # sites whose bounds are in the sentence; the table has all


@dataclass(frozen=True, eq=False)
class Budgeted:
    """A budget, the ranges of its sites, and its bounds as shares of these, in few digits."""

    budget: Budget
    ranges: dict[str, float]
    shares: dict[str, float]


def sites_of(run: Run, state: PropagationState) -> list[str]:
    """The sites that share the tolerance: the inputs, or all but the results, as far as codecs take their values."""
    offered = run.pipeline.inputs if state.budgeted == "inputs" else run.pipeline.sites
    floating = [site for site in offered if run[site].dtype.kind in "fc"]
    found = [site for site in floating if component(run[site].dtype).itemsize >= 4 and site not in run.pipeline.outputs]
    if not found:
        raise WorkbenchError(f"a budget needs values that codecs take; the {state.budgeted} have none: choose other sites")
    return found


def found_budget(run: Run, others: Sequence[Any], state: PropagationState, job: Job) -> Budgeted:
    """The budget of this state, for the field of the run alone or with others of its kind."""
    sites = sites_of(run, state)
    tolerance = tolerance_of(run.pipeline, state.tolerance)
    found = budget(run.pipeline, [run, *others] if others else run, tolerance, sites, state.codec, progress=job)
    ranges = {site: _range(run, site) for site in sites}
    shares = {site: bound.eb / ranges[site] for site, bound in found.bounds.items()}
    if not others:   # bounds that others have certified stay as they are
        for site, share in shares.items():
            job(1.0, f"rounding the bound of {site}")
            shares[site] = _rounded(run, site, share, state.codec, tolerance)
    return Budgeted(found, ranges, shares)


def _rounded(run: Run, site: str, share: float, codec: str, tolerance: Tolerance) -> float:
    """A share of the range in few digits, which is tolerated too."""
    for digits in DIGITS:
        unit = 10.0 ** (math.floor(math.log10(share)) - digits + 1)
        short = float(f"{math.floor(share / unit) * unit:.{digits}g}")
        if dose_response(run.pipeline, run, site, [Relative(short)], codec, tolerance).doses[0].damage <= 1:
            return short
    return share


def _range(run: Run, site: str) -> float:
    numbers = components(np.ascontiguousarray(to_host(run[site]))).astype(np.float64)
    return float(np.ptp(numbers[np.isfinite(numbers)])) or 1.0


def in_words(found: Budgeted) -> str:
    """The bounds, what they give together, and what they are good for."""
    budget = found.budget
    named = [f"{site} within {found.shares[site]:.3g} of its range" for site in list(budget.bounds)[:NAMED]]
    more = len(budget.bounds) - len(named)
    bounds = ", ".join(named) + (f" and {more} more in the table" if more else "")
    most = "" if budget.holds is None else "at most "
    return f"{bounds}: ratio {budget.ratio:.3g} x, together {most}{budget.damage:.2g} of the tolerance; {budget.promise}"


def budget_chart(found: Budgeted) -> Chart:
    """The damage that each site alone makes at rising bounds, with the bounds of the budget."""
    budget = found.budget
    finite = [
        Point(
            site, each.bound.eb / found.ranges[site], each.damage,
            f"{site} alone within {each.bound.eb:.4g}: damage {each.damage:.3g}",
        )
        for site, curve in budget.curves.items() for each in curve if 0 < each.damage < math.inf
    ]
    chosen = [site for site in budget.bounds if budget.single[site] > 0]
    marks = Series(
        "budget", [found.shares[site] for site in chosen], [budget.single[site] for site in chosen], GREY, None, "diamond",
        size=15, hollow=True,
        tooltips=[f"{site}: budget {budget.bounds[site].eb:.4g}, ratio {budget.ratios[site]:.3g} x" for site in chosen],
    )
    return Chart(
        "Damage by each site alone", Axis.around("error bound, as a share of the range", [each.x for each in finite], True),
        Axis.around("damage", [*(each.y for each in finite), 0.1, 10.0], True, 0.08),
        (Rule("tolerated", "y", 1.0), *joined(finite), marks), height=HEIGHT,
    )
