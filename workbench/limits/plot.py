"""The bounds and the codecs in one drawing: bits against the mean square error.

The band is what finite fields add for codes of fixed length: below it no code is, above it there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.bounds.chart import Chart, Curve, Point, chart
from workbench.limits.operating_point import OperatingPoint

if TYPE_CHECKING:
    from workbench.limits.result import RateDistortion

LEAST = 1e-5         # of the variance: the smallest distortion that is drawn, unless a codec has a smaller one
STEPS, BAND = 40, 9   # how many distortions a line has, and the band


def plot(limits: RateDistortion, eps: float, tile: int | None, points: Sequence[OperatingPoint]) -> Chart:
    """The drawing."""
    least = min([LEAST * limits.variance, *(0.7 * point.distortion for point in points)])
    lines: dict[str, list[Point]] = {}
    for point in points:
        lines.setdefault(point.run.label, []).append(Point(point.distortion, point.bits, str(point.run)))
    return chart(lines, "mean square error", "bits per value", len(points), curves(limits, eps, tile, least))


def curves(limits: RateDistortion, eps: float, tile: int | None, least: float) -> list[Curve]:
    """Everything that is theory, from this distortion up to the variance."""
    if not limits.variance > 0:
        return []
    distortions = np.geomspace(least, limits.variance, STEPS)
    found = [band(limits, eps, distortions[:: STEPS // BAND])]
    found.append(_line("Gaussian-model bound", limits.rate, distortions))
    if tile is not None:
        found.append(_line(f"in tiles of {tile}", limits.tiled(tile).rate, distortions, "7 4"))
    if any(limits.price_of_one_model(float(each)) > 1e-3 for each in distortions[::8]):
        pooled = _line("one variance for all", lambda d: limits.rate(d) + limits.price_of_one_model(d), distortions, "2 3")
        found.append(pooled)
    return found


def band(limits: RateDistortion, eps: float, distortions: np.ndarray) -> Curve:
    """Between converse and achievability."""
    below = [(float(each), limits.converse(float(each), eps)) for each in distortions]
    above = [(float(each), limits.achievable(float(each), eps)) for each in distortions]
    return Curve(f"fixed length, {eps:g} fail", below, above)


def _line(name: str, rate: Callable[[float], float], distortions: np.ndarray, dashes: str = "") -> Curve:
    places = [(float(each), rate(float(each))) for each in distortions]
    return Curve(name, [place for place in places if math.isfinite(place[1])], dashes=dashes)
