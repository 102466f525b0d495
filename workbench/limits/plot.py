"""The chart of the bounds and the codecs: bits against the mean square error, for `limits.plot()` and for the panel.

The band shows the finite-length bounds for fixed-length codes: no code lies below it, and a code exists at its upper edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from workbench.charts.description import Axis, Band, Chart, Part, Point, Rule, Series, joined
from workbench.charts.looks import COLOURS, GREY, Dash
from workbench.codecs.registry import looks
from workbench.limits.operating_point import OperatingPoint

if TYPE_CHECKING:
    from workbench.limits.result import RateDistortion

Line = tuple[np.ndarray, np.ndarray, np.ndarray]   # distortions, and the bits from and to

LEAST = 1e-5         # of the variance: the smallest distortion that is drawn, unless a codec has a smaller one
STEPS, BAND_STEPS = 40, 9   # number of distortions of a line, and of the band
BLUE, ORANGE, GREEN = COLOURS[:3]
BOUND, BAND, INTERVAL, TILES, POOLED = (
    "Gaussian-model bound", "codes of fixed length", "95% interval", "in tiles", "one variance for all"
)
AREAS = {BAND: (GREEN, 0.55), INTERVAL: (BLUE, 0.25)}
LINES: Mapping[str, tuple[str, Dash]] = {POOLED: (GREY, "dotted"), TILES: (ORANGE, "dashed"), BOUND: (BLUE, "solid")}


def rate_chart(
    lines: Mapping[str, Line], points: Sequence[OperatingPoint], above: bool = False, here: float = math.nan,
    names: Mapping[str, str] = MappingProxyType({}), height: int = 260,
) -> Chart:
    """Theory and codecs in one chart; with `above`, as bits above the bound, which shows small costs.

    `here` is the distortion at a chosen error bound; `names` are those of lines in the key, where they say more.
    """
    measured = [
        Point(each.run.label, each.distortion, bits, f"{each.run}: {bits:.3f} bits at {each.distortion:.4g}")
        for each in points for bits in [each.gap if above else each.bits]
    ]
    parts: list[Part] = [
        Band(names.get(name, name), *lines[name], *look) for name, look in AREAS.items() if name in lines
    ]
    parts.append(Rule("the chosen error bound", "x", here))
    parts += [Series(names.get(name, name), *lines[name][:2], *look) for name, look in LINES.items() if name in lines]
    where, *sides = (np.concatenate([line[side] for line in lines.values()] or [np.empty(0)]) for side in range(3))
    return Chart(
        "Bits above the bound" if above else "Bits and error",
        Axis.around("mean square error", [*where, *(each.x for each in measured), here], True, 0.04),
        Axis.around(
            f"bits{' above the bound' if above else ' per value'}",
            np.concatenate([[0.0], *sides, [each.y for each in measured]]), room=0.06,
        ),
        (*parts, *joined(measured, looks())), height=height,
    )


def plot(limits: RateDistortion, eps: float, tile: int | None, points: Sequence[OperatingPoint]) -> Chart:
    """The chart of a result."""
    least = min([LEAST * limits.variance, *(0.7 * point.distortion for point in points)])
    names = {TILES: f"in tiles of {tile}", BAND: f"fixed length, {eps:g} fail"}
    return rate_chart(theory(limits, eps, tile, least), points, names=names, height=340)


def theory(limits: RateDistortion, eps: float, tile: int | None, least: float) -> dict[str, Line]:
    """All theoretical lines, from this distortion up to the variance."""
    if not limits.variance > 0:
        return {}
    distortions = np.geomspace(least, limits.variance, STEPS)
    few = distortions[:: STEPS // BAND_STEPS]
    below, above = ([of(float(each), eps) for each in few] for of in (limits.converse, limits.achievable))
    lines = {BAND: (few, np.array(below), np.array(above)), BOUND: _line(limits.rate, distortions)}
    if tile is not None:
        lines[TILES] = _line(limits.tiled(tile).rate, distortions)
    if any(limits.price_of_one_model(float(each)) > 1e-3 for each in distortions[::8]):
        lines[POOLED] = _line(lambda d: limits.rate(d) + limits.price_of_one_model(d), distortions)
    return lines


def _line(rate: Callable[[float], float], distortions: np.ndarray) -> Line:
    rates = np.array([rate(float(each)) for each in distortions])
    return distortions, rates, rates
