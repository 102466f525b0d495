"""The theory on the rate-distortion chart of the panel: the bound, the costs of tiles and of one variance, the band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.lab.limits_panel.theory import Band, Curves, Figures, Tiled
from workbench.limits.plot import BAND, BOUND, INTERVAL, POOLED, TILES, Line

VISIBLE = 1e-3   # bits per value: lines that are closer are one


@dataclass(frozen=True, eq=False)
class Theory:
    """The theoretical results so far, drawn as bits or as bits above the bound."""

    curves: Curves | None = None
    tiled: Tiled | None = None
    band: Band | None = None
    figures: Figures | None = None


def lines(known: Theory, above: bool) -> dict[str, Line]:
    """The curves and bands that are known, by name; tiles and one variance only where they cost bits."""
    drawn: dict[str, Line] = {}
    if known.curves is not None:
        curves = known.curves
        where, base = curves.distortions, curves.rate if above else np.zeros_like(curves.rate)
        drawn[BOUND] = where, curves.rate - base, curves.rate - base
        drawn[INTERVAL] = where, curves.low - base, curves.high - base
        if (curves.pooled - curves.rate).max() > VISIBLE:
            drawn[POOLED] = where, curves.pooled - base, curves.pooled - base
        if known.tiled is not None and not np.array_equal(known.tiled.rate, curves.rate):
            drawn[TILES] = where, known.tiled.rate - base, known.tiled.rate - base
    if known.band is not None:
        band = known.band
        base = band.rate if above else np.zeros_like(band.rate)
        drawn[BAND] = band.distortions, band.converse - base, band.achievable - base
    return _reaching(drawn, known, above)


def _reaching(drawn: dict[str, Line], known: Theory, above: bool) -> dict[str, Line]:
    """Lines extended to a distortion below all of theirs, where they are straight."""
    curves, here = known.curves, known.figures
    if curves is None or here is None or here.distortion >= curves.distortions[0]:
        return drawn
    base = here.rate if above else 0.0
    ends = {BOUND: (here.rate, here.rate), INTERVAL: (here.low, here.high), POOLED: (here.rate + here.pooled,) * 2,
            TILES: (here.tiled, here.tiled)}
    for name, (low, high) in ends.items():
        if name in drawn:
            drawn[name] = tuple(np.concatenate([[first], rest]) for first, rest in zip(
                (here.distortion, low - base, high - base), drawn[name], strict=True))   # type: ignore[assignment]
    return drawn
