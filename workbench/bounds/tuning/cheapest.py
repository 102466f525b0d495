"""The bound with the fewest bytes: a search for a minimum, for promises whose cost grows with the bound.

A larger bound saves bits for each coordinate, and costs bytes for keeping clusters. Between the two lies a minimum, usually
one, and flat: a bound that is a few percent off costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

FIRST = (math.log(0.25), math.log(0.5), math.log(0.12))   # bounds in linking lengths that are tried first
STEP = math.log(2)
PRECISION = 0.12        # of the logarithm of the bound
MOST = 8
GOLDEN = (3 - math.sqrt(5)) / 2


def search(cost: Callable[[float], float], start: float, most: int = MOST) -> dict[float, float]:
    """The places that were tried, with their costs: around `start`, until the minimum is enclosed closely.

    >>> tried = search(lambda place: (place - 1.3) ** 2, start=2.0)
    >>> abs(min(tried, key=tried.get) - 1.3) < 0.12, len(tried) <= 8
    (True, True)
    """
    tried: dict[float, float] = {}
    most = min(most, MOST)
    for shift in FIRST[:most]:
        tried[start + shift] = cost(start + shift)
    while len(tried) < most and (place := _next(tried)) is not None:
        tried[place] = cost(place)
    return tried


def _next(tried: dict[float, float]) -> float | None:
    """The next place: beyond an end that is the best so far, or between its neighbours; None when those are near."""
    places = sorted(tried)
    least = min(places, key=lambda place: (tried[place], place))
    position = places.index(least)
    if math.isinf(tried[least]) or position == 0:
        return places[0] - STEP
    if position == len(places) - 1:
        return places[-1] + STEP / 2
    left, right = places[position - 1], places[position + 1]
    if right - left <= 3 * PRECISION:
        return None
    place = _vertex(left, least, right, tried)
    if place is None or min(abs(place - other) for other in (left, least, right)) < PRECISION / 2:
        wider = left if least - left >= right - least else right
        place = least + GOLDEN * (wider - least)
    return place


def _vertex(left: float, middle: float, right: float, tried: dict[float, float]) -> float | None:
    """The lowest point of the parabola through three points; None when there is none."""
    a, b, c = tried[left], tried[middle], tried[right]
    if not (math.isfinite(a) and math.isfinite(c)):
        return None
    over = (middle - left) * (b - c) - (middle - right) * (b - a)
    if over == 0:
        return None
    shift = 0.5 * ((middle - left) ** 2 * (b - c) - (middle - right) ** 2 * (b - a)) / over
    return middle - shift if left < middle - shift < right else None
