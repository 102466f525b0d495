"""The theory on the rate-distortion chart of the panel: the bound, the costs of tiles and of one variance, the band."""

from __future__ import annotations

import numpy as np

from workbench.lab.limits_panel.theory import Band, Curves, Figures, Tiled
from workbench.limits.plot import BAND, BOUND, INTERVAL, POOLED, TILES, Line

VISIBLE = 1e-3   # bits per value: lines that are closer are one


def lines(
    curves: Curves, tiled: Tiled | None, band: Band | None, here: Figures | None, above: bool
) -> dict[str, Line]:
    """The curves and bands that are known, by name, as bits or as bits above the bound; `here` is the chosen place.

    Tiles and one variance are drawn only where they cost bits.
    """
    where, base = curves.distortions, curves.rate if above else np.zeros_like(curves.rate)
    drawn: dict[str, Line] = {
        BOUND: (where, curves.rate - base, curves.rate - base), INTERVAL: (where, curves.low - base, curves.high - base),
    }
    if (curves.pooled - curves.rate).max() > VISIBLE:
        drawn[POOLED] = where, curves.pooled - base, curves.pooled - base
    if tiled is not None and not np.array_equal(tiled.rate, curves.rate):
        drawn[TILES] = where, tiled.rate - base, tiled.rate - base
    if band is not None:
        base = band.rate if above else np.zeros_like(band.rate)
        drawn[BAND] = band.distortions, band.converse - base, band.achievable - base
    return drawn if here is None or here.distortion >= where[0] else _reaching(drawn, here, above)


def _reaching(drawn: dict[str, Line], here: Figures, above: bool) -> dict[str, Line]:
    """Lines extended to a distortion below all of theirs, where they are straight."""
    base = here.rate if above else 0.0
    ends = {BOUND: (here.rate, here.rate), INTERVAL: (here.low, here.high), POOLED: (here.rate + here.pooled,) * 2,
            TILES: (here.tiled, here.tiled)}
    for name, (low, high) in ends.items():
        if name in drawn:
            drawn[name] = tuple(np.concatenate([[first], rest]) for first, rest in zip(
                (here.distortion, low - base, high - base), drawn[name], strict=True))   # type: ignore[assignment]
    return drawn
