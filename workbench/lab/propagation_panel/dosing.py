"""Bound against damage at one site, one bound after the other, for the button of the panel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from workbench.guarantees import Relative
from workbench.lab.jobs import Job
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.propagation import Dose, Run, dose_response
from workbench.propagation.dose import largest_tolerated

SHARES = (1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)   # of the range
CLOSER = 3   # halvings between the largest bound that is tolerated and the next one


@dataclass(frozen=True, eq=False)
class Doses:
    """What was measured so far at rising bounds."""

    doses: tuple[Dose, ...] = ()

    @property
    def best(self) -> Dose | None:
        """The largest bound up to which all are tolerated."""
        return largest_tolerated(self.doses)

    @property
    def above(self) -> Dose | None:
        """The first bound that is too much."""
        return next((each for each in self.doses if not each.damage <= 1), None)


def dose(run: Run, state: PropagationState, job: Job, tell: Callable[[Doses], object]) -> Doses:
    """Compress the site within each bound, then closer to the largest that is tolerated, and measure the damage."""
    found = Doses()
    steps, tolerance = len(SHARES) + CLOSER, tolerance_of(run.pipeline, state.tolerance)
    for number in range(steps):
        share = SHARES[number] if number < len(SHARES) else _between(found)
        if share is None:
            break
        job(number / steps, f"compressing {state.site} within {share:g} of its range")
        response = dose_response(run.pipeline, run, state.site, [Relative(share)], state.codec, tolerance)
        doses = sorted((*found.doses, *response.doses), key=lambda each: each.bound.eb)
        found = Doses(tuple(doses))
        tell(found)
    return found


def _between(found: Doses) -> float | None:
    """A bound halfway, on a logarithmic scale, from what is tolerated to what is too much, in two digits."""
    if found.best is None or found.above is None:
        return None
    share = float(f"{math.sqrt(found.best.bound.eb * found.above.bound.eb):.2g}")
    return share if found.best.bound.eb < share < found.above.bound.eb else None


def tolerated(doses: Doses) -> str:
    """Up to which bound the damage is tolerated, and where it is too much.

    >>> dose = lambda eb, damage: Dose("waves", Relative(eb), 8.0, 100, damage)
    >>> tolerated(Doses((dose(1e-3, 0.2), dose(1e-2, 3.0))))
    'waves: tolerated up to 0.001 of the range (ratio 8 x), too much at 0.01'
    """
    if not doses.doses:
        return ""
    best, above = doses.best, doses.above
    found = "no bound is tolerated" if best is None else (
        f"tolerated up to {best.bound.eb:g} of the range (ratio {best.ratio:.3g} x)"
    )
    return f"{doses.doses[0].site}: {found}" + ("" if above is None else f", too much at {above.bound.eb:g}")
