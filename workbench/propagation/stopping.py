"""When a campaign has enough trials, and which trials come next.

A stratum ends only between rounds, and only whole rounds decide, so neither the number of workers nor an interruption
changes which trials there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.arguments import number, whole_number
from workbench.propagation.campaign_result import counted
from workbench.propagation.intervals import clopper_pearson
from workbench.propagation.trials import OUTCOMES, Trial

ROUND = 25    # trials of each stratum in a round


@dataclass(frozen=True)
class Until:
    """When a stratum has enough trials: no interval of its outcomes (Clopper-Pearson) is longer than twice `half_width`.

    No stratum has less than `least` trials, so that looking at the interval does not bias it much, nor more than `most`.

    >>> Until(half_width=0.1).enough({"masked": 100, "silent": 0})
    True
    """

    half_width: float = 0.05
    least: int = 50
    most: int = 2000

    def __post_init__(self) -> None:
        number("half_width", self.half_width, 1e-4, 0.5)
        whole_number("most", self.most, whole_number("least", self.least, 1))

    def enough(self, counts: dict[Any, int]) -> bool:
        """Whether these counts of outcomes suffice."""
        trials = sum(counts.values())
        if trials < self.least:
            return False
        return trials >= self.most or all(clopper_pearson(n, trials).half_width <= self.half_width for n in counts.values())


def rule_of(until: Until | int | float | None) -> Until | int:
    """The rule that is meant: an `Until`, or a number of trials in all.

    >>> rule_of(0.1), rule_of(200)
    (Until(half_width=0.1, least=50, most=2000), 200)
    """
    if until is None:
        return Until()
    if isinstance(until, Until):
        return until
    if isinstance(until, float):
        return Until(half_width=until)
    return whole_number("until, a number of trials,", until, 1, 10**9)


def due(rule: Until | int, strata: int, trials: Mapping[int, Trial]) -> list[int]:
    """The numbers of the trials of the next round, given those that are done; none when all strata have enough."""
    if isinstance(rule, int):
        waiting = (trial for trial in range(rule) if trial not in trials)
        return list(itertools.islice(waiting, ROUND * strata))
    found: list[int] = []
    for stratum in range(strata):
        judged: dict[Any, int] = dict.fromkeys(OUTCOMES, 0)
        for start in range(0, rule.most, ROUND):
            numbers = [stratum + strata * place for place in range(start, min(start + ROUND, rule.most))]
            if missing := [trial for trial in numbers if trial not in trials]:
                found += missing
                break
            for trial in numbers:
                judged[trials[trial].outcome] += 1
            if rule.enough(judged):
                break
    return sorted(found)


def share_done(rule: Until | int, strata: int, trials: Mapping[int, Trial]) -> float:
    """How much of the campaign is done: exactly, or as the share of strata that have enough."""
    if isinstance(rule, int):
        return len(trials) / rule
    return sum(rule.enough(counts) for counts in counted(trials.values(), strata)) / strata
