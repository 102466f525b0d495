"""The charts of the clusters panel: the mass function of halos, and the decrease of violations.

A chart is made only when its numbers change, so that unchanged ones are the same object. Both axes of the mass function are
logarithmic, so curves end before bins without halos.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from workbench.charts.description import Axis, Chart, Part, Rule, Series, Span
from workbench.charts.looks import Dash, colour, marker
from workbench.clusters.keep.repair import Step
from workbench.lab.glossary import meaning

DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")
CURVES = ("original", "decoded", "kept")


def mass_function_chart(min_members: int, sizes: Sequence[np.ndarray | None]) -> Chart:
    """The number of halos by their members, in bins that double.

    `sizes` are the group sizes of the original, the decoded and the kept particles, the largest first; None if not yet
    computed.
    """
    edges = mass_edges(min_members, max((int(each[0]) for each in sizes if each is not None and len(each)), default=1))
    counts = tuple(() if each is None else tuple(counted(each, edges).tolist()) for each in sizes)
    return _mass_function(tuple(edges.tolist()), counts)


def mass_edges(min_members: int, largest: int) -> np.ndarray:
    """The bin edges, from the smallest halo to beyond the largest, each twice the previous one.

    >>> mass_edges(20, 100).tolist()
    [20, 40, 80, 160]
    """
    return min_members * 2 ** np.arange(max(largest // min_members, 1).bit_length() + 1)


def counted(sizes: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many sizes, the largest first, are in each bin.

    >>> counted(np.array([90, 30, 20, 3]), np.array([20, 40, 80, 160])).tolist()
    [2, 0, 1]
    """
    return np.diff(np.searchsorted(sizes[::-1], edges))


@functools.lru_cache(maxsize=16)
def _mass_function(edges: tuple[int, ...], counts: tuple[tuple[int, ...], ...]) -> Chart:
    middles = np.sqrt(np.array(edges[:-1], float) * edges[1:])
    curves = []
    for number, (name, halos) in enumerate(zip(CURVES, counts, strict=True)):
        heights = np.where(np.array(halos) > 0, halos, np.nan) if halos else np.full(len(middles), np.nan)
        tooltips = [f"{name}: {height:,.0f} halos of {low:,} to {high - 1:,} members"
                for height, (low, high) in zip(heights, itertools.pairwise(edges), strict=True)]
        look = colour(number), DASHES[number], marker(number)
        curves.append(Series(name, middles, heights, *look, width=1.5, size=9 - 2 * number, tooltips=tooltips))
    return Chart(
        "Mass function of halos", Axis.around("members", middles, True),
        Axis.around("halos", [count for halos in counts for count in halos], True), tuple(curves),
    )


@functools.lru_cache(maxsize=4)
def descent_chart(steps: tuple[Step, ...], share: float = 1.0) -> Chart:
    """Violations and loss (half the sum of their squares, in squared bounds) by step.

    The steps are those of one trial, within this share of the error bound.

    The axis is linear from 0 to 1 and logarithmic above, so that it shows the end at zero. Rounds of moves are shaded: they
    follow other constraints than descent does, so the curves jump where a phase begins. Where descent has ended and its
    result is rounded to the moves that an archive can store, pairs are violated again, and rounds of moves repair them.
    """
    number = np.arange(1, len(steps) + 1)
    violations = np.array([step.violations for step in steps], float)
    loss = np.array([share**2 * step.loss for step in steps], float)
    moves = "rounds of moves (else descent)", meaning("round of moves")
    parts: list[Part] = [Span(moves[0], "x", *ends, opacity=0.16, meaning=moves[1]) for ends in _phases(steps, "moves")]
    for place, (name, word, values) in enumerate([("violations", "violation", violations), ("loss in ξ²", "loss", loss)]):
        tooltips = [f"step {step}: {name} {value:,.4g}" for step, value in zip(number, values, strict=True)]
        look = colour(place), DASHES[place], marker(place)
        parts.append(Series(name, number, from_zero(values), *look, 1.5, 5, tooltips=tooltips, meaning=meaning(word)))
    parts += [Rule("coordinates rounded, then repaired", "x", place) for place in _rounded(steps)]
    highest = max([1.0, *violations.tolist(), *loss.tolist()])
    within = f" within {share:.3g} ξ" if share < 1 else ""
    last = f"After {len(steps)} steps: {violations[-1]:,.0f} violations, loss {loss[-1]:.3g} ξ²." if steps else ""
    return Chart(
        f"Violations left, step by step{within}", Axis("step", 0.5, max(len(steps), 2) + 0.5),
        Axis("count, ξ²", -0.08, 1.08 * float(from_zero(highest)), names=zero_ticks(highest)), tuple(parts),
        f"Violations and loss by step{within}. {last}",
    )


def from_zero(values: np.ndarray | float) -> np.ndarray:
    """Places on an axis that is linear from 0 to 1, and logarithmic above: 1 plus the decimal logarithm.

    >>> from_zero(np.array([0.0, 0.5, 1.0, 100.0])).tolist()
    [0.0, 0.5, 1.0, 3.0]
    """
    given = np.asarray(values, float)
    return np.where(given <= 1, given, 1 + np.log10(np.maximum(given, 1)))


def zero_ticks(highest: float) -> list[tuple[float, str]]:
    """The ticks of such an axis: 0, and up to four powers of ten.

    >>> [text for _, text in zero_ticks(2e5)]
    ['0', '1', '100', '10,000']
    """
    decades = range(math.floor(math.log10(max(highest, 1.0))) + 1)
    return [(0.0, "0"), *((float(from_zero(10.0**power)), f"{10**power:,}") for power in decades[::-(-len(decades) // 4)])]


def _rounded(steps: Sequence[Step]) -> list[float]:
    """Between which steps the result of descent was rounded, so that more pairs were violated."""
    pairs = enumerate(itertools.pairwise(steps), start=1)
    return [
        number + 0.5 for number, (before, after) in pairs
        if (before.phase, after.phase) == ("descent", "moves") and after.violations > before.violations
    ]


def _phases(steps: Sequence[Step], phase: str) -> list[tuple[float, float]]:
    """The spans of successive steps of a phase."""
    phases = itertools.groupby(enumerate(steps, start=1), key=lambda pair: pair[1].phase)
    spans = [[place for place, _ in several] for kind, several in phases if kind == phase]
    return [(places[0] - 0.5, places[-1] + 0.5) for places in spans]
