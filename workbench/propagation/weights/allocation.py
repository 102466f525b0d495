"""One bound for each group: the fewest bytes whose losses add up to no more than a budget.

The lower convex hulls of the groups give a solution at once: from exact storage on, steps are taken in the order of the
bytes that they save for their loss (what a Lagrange multiplier does that falls from infinity). It is within one step of the
best. From its size on, exact dynamic programming over the groups looks for a smaller one: it keeps the sums of losses and
bytes that no other sum beats in both, and drops those that cannot become smaller than the solution that is there. Losses
are not rounded to levels. Only if sums are too many, one is kept for each of so many levels of the budget.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from workbench.errors import WorkbenchError

LEVELS = 4096   # of the budget, from which on one sum of losses is kept for each


def allocated(loss: np.ndarray, nbytes: np.ndarray, budget: float) -> list[int]:
    """The column of each row with the fewest bytes, of those whose losses add up to the budget at most.

    >>> loss = np.array([[0.0, 0.3, 0.8], [0.0, 0.1, 0.6]])
    >>> nbytes = np.array([[9.0, 5.0, 1.0], [9.0, 8.0, 2.0]])
    >>> allocated(loss, nbytes, 0.9), allocated(loss, nbytes, 0.95)
    ([1, 2], [1, 2])
    """
    first = hull_choice(loss, nbytes, budget)
    options = [_undominated(*row) for row in zip(loss, nbytes, strict=True)]
    most = sum(float(nbytes[row, column]) for row, column in enumerate(first))
    sums, sizes = np.zeros(1), np.zeros(1)
    taken: list[tuple[np.ndarray, np.ndarray]] = []
    least = [float(nbytes[row, columns].min()) for row, columns in enumerate(options)]
    after = np.append(np.cumsum(least[::-1])[::-1], 0.0)
    for row, columns in enumerate(options):
        total = (sums[:, None] + loss[row, columns]).reshape(-1)
        size = (sizes[:, None] + nbytes[row, columns]).reshape(-1)
        fits = np.flatnonzero((total <= budget) & (size + after[row + 1] <= most * (1 + 1e-12)))
        kept = fits[_undominated(total[fits], size[fits])]
        if len(kept) > LEVELS:   # they are in the order of their losses, and sizes fall
            level = np.floor(total[kept] * (LEVELS / budget))
            kept = kept[np.append(level[1:] != level[:-1], True)]
        taken.append((kept // len(columns), columns[kept % len(columns)]))
        sums, sizes = total[kept], size[kept]
        if not len(kept):   # only the levels can have dropped the first solution
            return first
    at, chosen = int(np.argmin(sizes)), []
    for before, columns in reversed(taken):
        chosen.append(int(columns[at]))
        at = int(before[at])
    return chosen[::-1]


def hull_choice(loss: np.ndarray, nbytes: np.ndarray, budget: float) -> list[int]:
    """The same from the convex hulls alone: steps in the order of bytes saved for loss, as long as they fit."""
    steps = []
    for row, pair in enumerate(zip(loss, nbytes, strict=True)):
        hull = _hull(*pair)
        if not len(hull):
            raise WorkbenchError(f"each group needs a bound with a finite loss; group {row} has none")
        for before, column in pairwise(hull.tolist()):
            more = loss[row, column] - loss[row, before]
            steps.append(((nbytes[row, before] - nbytes[row, column]) / more, row, column, more))
    chosen = [int(_hull(*pair)[0]) for pair in zip(loss, nbytes, strict=True)]
    left = budget - sum(float(loss[row, column]) for row, column in enumerate(chosen))
    if left < 0:
        raise WorkbenchError(
            f"the budget must allow the smallest loss of every group, {budget - left:.3g} together; got {budget:.3g}"
        )
    over: set[int] = set()
    for _, row, column, more in sorted(steps, key=lambda step: -step[0]):
        if row in over or more > left:
            over.add(row)
            continue
        chosen[row] = int(column)
        left -= more
    return chosen


def _undominated(loss: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
    """The places of finite losses that no other place beats in both, in the order of rising loss and falling bytes."""
    there = np.flatnonzero(np.isfinite(loss) & np.isfinite(nbytes))
    ordered = there[np.lexsort((nbytes[there], loss[there]))]
    least = np.minimum.accumulate(nbytes[ordered]) if len(ordered) else nbytes[ordered]
    return ordered[np.append(True, nbytes[ordered][1:] < least[:-1])] if len(ordered) else ordered


def _hull(loss: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
    """The places on the lower convex hull of bytes over loss, in the order of rising loss."""
    found: list[int] = []
    for place in _undominated(loss, nbytes).tolist():
        while len(found) > 1 and _above(loss, nbytes, found[-2], found[-1], place):
            found.pop()
        found.append(place)
    return np.array(found, np.int64)


def _above(loss: np.ndarray, nbytes: np.ndarray, before: int, middle: int, after: int) -> bool:
    """Whether the middle of three places is on or above the line between the others."""
    left = (nbytes[middle] - nbytes[before]) * (loss[after] - loss[before])
    return bool(left >= (nbytes[after] - nbytes[before]) * (loss[middle] - loss[before]))
