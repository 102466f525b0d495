"""How far bounds may be raised so that they hold on new data, too: tolerance limits without a distribution.

Bounds that were tuned to one field are scaled by a fixed sequence of factors, from fine to coarse. Each of the other fields
goes up the sequence until it breaks the tolerance. As the factors were fixed before, the numbers of steps that the fields
reach are independent draws, and their order statistics are tolerance limits (Wilks 1941): what all but r of n fields reach,
a share p of all such fields reaches with the confidence 1 - P(at most r of n fail, each with the probability 1 - p). That
is also fixed-sequence testing as in Learn then Test (Angelopoulos et al. 2021). The field that the bounds were tuned to
does not count: it uses up the tolerance by construction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.progress import Progress
from workbench.propagation.beta_quantiles import beta_quantile

FACTORS = tuple(2.0**power for power in (-5, -4, -3.5, -3, -2.5, -2, -1.75, -1.5, -1.25, *(n / 8 for n in range(-8, 17))))

Damage = Callable[[float], float]   # of the bounds times a factor


@dataclass(frozen=True)
class Holds:
    """On which share of such fields bounds hold, with which confidence, from how many fields beside the tuned one.

    `broken` of the `fields` did not hold. `asked` is the share that was asked for, which may take more fields.

    >>> print(Holds(0.95, 0.9, 45, 0, 0.95))
    holds on 95% of fields of this kind, with 90% confidence, from n = 45 beside the one that it was tuned to
    """

    share: float
    confidence: float
    fields: int
    broken: int
    asked: float

    def __str__(self) -> str:
        share, confidence = _percent(self.share), _percent(self.confidence)
        broke = f", of which {self.broken} broke it" if self.broken else ""
        counted = f"n = {self.fields} beside the one that it was tuned to{broke}"
        said = f"holds on {share} of fields of this kind, with {confidence} confidence, from {counted}"
        if self.share >= self.asked:
            return said
        return f"{said}; {_percent(self.asked)} takes n = {fields_for(self.asked, self.confidence):,}"


def fields_for(share: float, confidence: float) -> int:
    """How many fields it takes that all hold to be sure of a share of them.

    >>> fields_for(0.95, 0.9), fields_for(0.9, 0.9)
    (45, 22)
    """
    return math.ceil(math.log1p(-confidence) / math.log(share))


def share_held(fields: int, broken: int, confidence: float) -> float:
    """The share of all fields that holds, at least, with this confidence, where so many of some fields broke the tolerance.

    >>> share_held(20, 0, 0.9).__round__(3)
    0.891
    """
    return beta_quantile(1 - confidence, fields - broken, broken + 1)


def may_break(fields: int, share: float, confidence: float) -> int:
    """How many of so many fields may break the tolerance; 0 also where even that is not enough.

    >>> may_break(45, 0.95, 0.9), may_break(100, 0.95, 0.9), may_break(20, 0.95, 0.9)
    (0, 1, 0)
    """
    broken = 0
    while share_held(fields, broken + 1, confidence) >= share:
        broken += 1
    return broken


def certified(
    damages: Iterable[Damage], fields: int, asked: float, sure: float, tell: Progress
) -> tuple[float, Holds, float]:
    """The factor that the share `asked` of all fields tolerates, what is certain of that, and the largest damage at it.

    Each of `damages` is the damage of one of the `fields` by the bounds times a factor; `sure` is the confidence.
    """
    allowed = may_break(fields, asked, sure)
    measured: list[list[float]] = []
    for number, damage in enumerate(damages):
        tell(number / fields, f"raising the bounds on field {number + 1} of {fields}")
        measured.append(_climbed(damage, _reached(measured, allowed)))
    steps = _reached(measured, allowed)
    if not steps:
        broken = sum(each[0] > 1 for each in measured)
        raise WorkbenchError(
            f"all fields must be of one kind: 1/{round(1 / FACTORS[0])} of the bounds that the first tolerates breaks the "
            f"tolerance on {broken} of {fields} others; give fields that are more alike, or a larger tolerance"
        )
    last = [each[min(steps, len(each)) - 1] for each in measured]
    broken = sum(not each <= 1 for each in last)
    share = asked if share_held(fields, allowed, sure) >= asked else share_held(fields, 0, sure)
    return FACTORS[steps - 1], Holds(share, sure, fields, broken, asked), max(last)


def _climbed(damage: Damage, most: int) -> list[float]:
    """The damages at the factors up to the first that is too much, and no further than still matters."""
    found: list[float] = []
    for factor in FACTORS[: max(most, 1)]:
        found.append(damage(factor))
        if not found[-1] <= 1:
            break
    return found


def _reached(measured: Sequence[Sequence[float]], allowed: int) -> int:
    """How many steps all but the allowed number of fields tolerate, of all that were looked at so far."""
    steps = sorted(len(each) - (not each[-1] <= 1) for each in measured)
    return steps[allowed] if len(steps) > allowed else len(FACTORS)


def _percent(share: float) -> str:
    """A share in percent, rounded down to a tenth.

    >>> _percent(0.8865), _percent(0.95)
    ('88.6%', '95%')
    """
    return f"{math.floor(1000 * share + 1e-9) / 10:g}%"
