"""Chart of the bounds and the codecs: bits against the mean square error.

The band shows the finite-length bounds for fixed-length codes: no code lies below it, and a code exists at its upper edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.charts.chart import Chart, Curve, Point, chart
from workbench.codecs.registry import looks
from workbench.limits.operating_point import OperatingPoint

if TYPE_CHECKING:
    from workbench.limits.result import RateDistortion

LEAST = 1e-5         # of the variance: the smallest distortion that is drawn, unless a codec has a smaller one
STEPS, BAND = 40, 9   # number of distortions of a line, and of the band


def plot(limits: RateDistortion, eps: float, tile: int | None, points: Sequence[OperatingPoint]) -> Chart:
    """The chart."""
    least = min([LEAST * limits.variance, *(0.7 * point.distortion for point in points)])
    lines: dict[str, list[Point]] = {}
    for point in points:
        lines.setdefault(point.run.label, []).append(Point(point.distortion, point.bits, str(point.run)))
    theory = curves(limits, eps, tile, least)
    return chart(lines, "mean square error", "bits per value", len(points), theory, looks())


def curves(limits: RateDistortion, eps: float, tile: int | None, least: float) -> list[Curve]:
    """All theoretical curves, from this distortion up to the variance."""
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
    """The band between converse and achievability."""
    below = [(float(each), limits.converse(float(each), eps)) for each in distortions]
    above = [(float(each), limits.achievable(float(each), eps)) for each in distortions]
    return Curve(f"fixed length, {eps:g} fail", below, above)


def _line(name: str, rate: Callable[[float], float], distortions: np.ndarray, dashes: str = "") -> Curve:
    places = [(float(each), rate(float(each))) for each in distortions]
    return Curve(name, [place for place in places if math.isfinite(place[1])], dashes=dashes)
