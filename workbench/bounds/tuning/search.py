"""Where to look next: a bracketed search in one variable that trusts its guide only as far as it was right.

A place is the logarithm of the bound, or its negative for targets that a larger bound makes easier, so that room falls from
left to right, more or less: wanted is the largest place with room. The guide says how much room to expect. What it got
wrong at the places already tried is interpolated and added. Nothing is assumed of the room itself, which may jump or rise:
each step narrows a bracket between a place with room and one without, and every second late step halves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

MOST_ROOM = 30.0     # beyond it, more or less room says nothing new
GRID = 2048
FIRST_STEP = 0.1     # of the place, where the guide would stay on the wrong side; doubled each time
MOST_TILT = 0.5      # of the correction, per unit of the place, beyond the places that were tried
PATIENCE = 4         # points after which every second step halves the bracket

Guide = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Tried:
    """A place, and the room that there is."""

    place: float
    room: float


@dataclass(frozen=True)
class Terms:
    """When a search is over: enough of the room is used, or the bracket is narrow; and where places end.

    With a `stop` of zero only the bracket ends it: a figure that jumps may have no room to spare at many places.
    """

    low: float
    high: float
    stop: float
    precision: float = 0.02


def best_of(tried: Sequence[Tried]) -> Tried | None:
    """The largest place with room."""
    return max((point for point in tried if point.room >= 0), key=lambda point: point.place, default=None)


def next_place(tried: Sequence[Tried], guide: Guide, terms: Terms) -> float | None:
    """The place to try next; None when the search is over.

    >>> terms = Terms(-10.0, 10.0, stop=0.01)
    >>> tried = []
    >>> while (place := next_place(tried, lambda places: -places, terms)) is not None:
    ...     tried.append(Tried(place, room=1.5 - 1.1 * place))
    >>> len(tried), 0 <= tried[-1].room <= 0.01
    (3, True)
    """
    lower = best_of(tried)
    if lower is not None and lower.room <= terms.stop and terms.stop > 0:
        return None
    upper = min(
        (point for point in tried if point.room < 0 and (lower is None or point.place > lower.place)),
        key=lambda point: point.place, default=None,
    )
    if (lower is not None and lower.place >= terms.high) or (upper is not None and upper.place <= terms.low):
        return None
    if lower is not None and upper is not None and upper.place - lower.place <= terms.precision:
        return None
    return _wanted(tried, lower, upper, guide, terms)


def _wanted(
    tried: Sequence[Tried], lower: Tried | None, upper: Tried | None, guide: Guide, terms: Terms
) -> float:
    aim = _crossing(tried, guide, terms, lower, upper)
    if lower is not None and upper is not None:
        width = upper.place - lower.place
        if len(tried) > PATIENCE and len(tried) % 2:
            return lower.place + width / 2
        margin = min(0.1 * width, terms.precision / 2)
        return min(max(aim, lower.place + margin), upper.place - margin)
    step = FIRST_STEP * 2 ** max(len(tried) - 1, 0)
    if upper is not None:
        return max(min(aim, upper.place - step), terms.low)
    if lower is not None:
        return min(max(aim, lower.place + step), terms.high)
    return aim


def _crossing(
    tried: Sequence[Tried], guide: Guide, terms: Terms, lower: Tried | None, upper: Tried | None
) -> float:
    """The largest place between the two at which the corrected guide expects half of the room that may stay unused."""
    start = terms.low if lower is None else lower.place
    end = terms.high if upper is None else upper.place
    places = np.linspace(start, end, GRID)
    expected = guide(places) + _correction(tried, guide, places) - terms.stop / 2
    enough = np.flatnonzero(expected >= 0)
    if not enough.size:
        return start
    last = int(enough[-1])
    if last == GRID - 1:
        return end
    fall = expected[last] - expected[last + 1]
    share = expected[last] / fall if fall > 0 else 0.0
    return float(places[last] + share * (places[last + 1] - places[last]))


def _correction(tried: Sequence[Tried], guide: Guide, places: np.ndarray) -> np.ndarray:
    """What to add to the guide: linear between places that were tried, and a little tilted beyond them."""
    if not tried:
        return np.zeros(len(places))
    ordered = sorted(tried, key=lambda point: point.place)
    where = np.array([point.place for point in ordered])
    rooms = np.clip([point.room for point in ordered], -MOST_ROOM, MOST_ROOM)
    wrong = rooms - guide(where)
    found = np.interp(places, where, wrong)
    if len(where) > 1 and where[1] > where[0] and where[-1] > where[-2]:
        for beyond, near, far in ((places < where[0], 0, 1), (places > where[-1], -1, -2)):
            tilt = (wrong[near] - wrong[far]) / (where[near] - where[far])
            found[beyond] += np.clip(tilt, -MOST_TILT, MOST_TILT) * (places[beyond] - where[near])
    return found
