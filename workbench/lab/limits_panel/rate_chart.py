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
    where, ends = curves.distortions, {BOUND: (curves.rate, curves.rate), INTERVAL: (curves.low, curves.high)}
    if (curves.pooled - curves.rate).max() > VISIBLE:
        ends[POOLED] = curves.pooled, curves.pooled
    if tiled is not None and not np.array_equal(tiled.rate, curves.rate):
        ends[TILES] = tiled.rate, tiled.rate
    if here is not None and here.distortion < where[0]:   # lines reach below all of theirs, where they are straight
        pooled = here.rate + here.pooled
        first = {BOUND: (here.rate, here.rate), INTERVAL: (here.low, here.high), POOLED: (pooled, pooled),
                 TILES: (here.tiled, here.tiled)}
        where = np.insert(where, 0, here.distortion)
        ends = {name: (np.insert(low, 0, first[name][0]), np.insert(high, 0, first[name][1]))
                for name, (low, high) in ends.items()}
    base = ends[BOUND][0] if above else np.zeros_like(where)
    drawn: dict[str, Line] = {name: (where, low - base, high - base) for name, (low, high) in ends.items()}
    if band is not None:
        base = band.rate if above else np.zeros_like(band.rate)
        drawn[BAND] = band.distortions, band.converse - base, band.achievable - base
    return drawn
