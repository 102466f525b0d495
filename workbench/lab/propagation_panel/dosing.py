"""Bound against damage at one site, one bound after the other, for the button of the panel."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from workbench.guarantees import Relative
from workbench.lab.jobs import Job
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.propagation import Dose, Run, dose_response
from workbench.propagation.dose import largest_tolerated

SHARES = (1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)   # of the range


@dataclass(frozen=True, eq=False)
class Doses:
    """What was measured so far at rising bounds, and what was asked."""

    doses: tuple[Dose, ...]
    asked: Hashable
    nbytes: int = 0


def asked_of(state: PropagationState) -> Hashable:
    """What the doses depend on."""
    return state.site, state.codec


def dose(run: Run, state: PropagationState, job: Job, tell: Callable[[Doses], object]) -> Doses:
    """Compress the site within each bound, and measure the damage of the result."""
    found: list[Dose] = []
    for number, share in enumerate(SHARES):
        job(number / len(SHARES), f"compressing {state.site} within {share:g} of its range")
        response = dose_response(run.pipeline, run, state.site, [Relative(share)], state.codec, tolerance_of(run.pipeline))
        found += response.doses
        tell(Doses(tuple(found), asked_of(state)))
    return Doses(tuple(found), asked_of(state))


def tolerated(doses: Doses) -> str:
    """Up to which bound the damage is tolerated, and where it is too much.

    >>> dose = lambda eb, damage: Dose("waves", Relative(eb), 8.0, 100, damage)
    >>> tolerated(Doses((dose(1e-3, 0.2), dose(1e-2, 3.0)), None))
    'waves: tolerated up to 0.001 of the range, at a ratio of 8; too much at 0.01'
    """
    best = largest_tolerated(doses.doses)
    above = next((each for each in doses.doses if not each.damage <= 1), None)
    found = "no bound is tolerated" if best is None else (
        f"tolerated up to {best.bound.eb:g} of the range, at a ratio of {best.ratio:.3g}"
    )
    site = doses.doses[0].site if doses.doses else ""
    return f"{site}: {found}" + ("" if above is None else f"; too much at {above.bound.eb:g}")
