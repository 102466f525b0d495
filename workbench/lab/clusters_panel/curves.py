"""The charts of the clusters panel: the mass function of halos, and the decrease of violations.

HoloViews elements are too slow to make at every slider step, so a chart is made only when its numbers change. Both axes of
the mass function are logarithmic, so curves end before bins without halos.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np

from workbench.clusters.keep.repair import Step
from workbench.lab.charts import colour, limits, marker, styled

DASHES = ("solid", "dashed", "dotted")
LEFT = "violations, loss"
CURVES = ("original", "decoded", "kept")


def mass_function_chart(min_members: int, sizes: Sequence[np.ndarray | None]) -> Any:
    """The number of halos by their members, in bins that double.

    `sizes` are the group sizes of the original, the decoded and the kept particles, the largest first; None if not yet
    computed.
    """
    edges = mass_edges(min_members, max((int(found[0]) for found in sizes if found is not None and len(found)), default=1))
    counts = tuple(() if found is None else tuple(counted(found, edges).tolist()) for found in sizes)
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
def _mass_function(edges: tuple[int, ...], counts: tuple[tuple[int, ...], ...]) -> Any:
    middles = np.sqrt(np.array(edges[:-1], float) * edges[1:])
    layers = []
    for number, (name, found) in enumerate(zip(CURVES, counts, strict=True)):
        heights = np.full(len(middles), np.nan)
        if found:
            heights = np.where(np.array(found) > 0, found, np.nan)
        layers += _curve(name, number, middles, heights, "members", "halos")
    up = limits([count for found in counts for count in found], logarithmic=True)
    across = limits(middles, logarithmic=True)
    return styled(hv.Overlay(layers), logx=True, logy=True, xlim=across, ylim=up, legend_position="top", legend_cols=4)


@functools.lru_cache(maxsize=4)
def descent_chart(steps: tuple[Step, ...]) -> Any:
    """Violations and loss (half the sum of their squares, in squared bounds) by step; discs: descent, squares: moves."""
    number = np.arange(1, len(steps) + 1)
    violations = np.array([step.violations or math.nan for step in steps], float)
    loss = np.array([step.loss or math.nan for step in steps], float)
    phases = np.array([step.phase for step in steps], str)
    layers: list[Any] = [
        hv.Curve((number, violations), "step", LEFT, label="violations").opts(color=colour(0), line_width=1.5),
        hv.Curve((number, loss), "step", LEFT, label="loss").opts(color=colour(1), line_dash=DASHES[1], line_width=1.5),
    ]
    for kind, phase in enumerate(("descent", "moves")):
        here = phases == phase
        points = hv.Scatter((number[here], violations[here]), "step", LEFT, label=phase)
        layers.append(points.opts(color=colour(0), marker=marker(kind), size=6, tools=["hover"]))
    across, up = limits([1, *number[-1:]]), limits(np.concatenate([violations, loss]), logarithmic=True)
    return styled(hv.Overlay(layers), logy=True, xlim=across, ylim=up, legend_position="top", legend_cols=4)


def _curve(name: str, number: int, x: np.ndarray, y: np.ndarray, across: str, up: str) -> list[Any]:
    """A line with its marks."""
    line = hv.Curve((x, y), across, up, label=name)
    marks = hv.Scatter((x, y), across, up, label=name)
    return [
        line.opts(color=colour(number), line_dash=DASHES[number], line_width=1.5),
        marks.opts(color=colour(number), marker=marker(number), size=9 - 2 * number, tools=["hover"]),
    ]
