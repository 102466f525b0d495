"""The rate-distortion chart: the bound, the costs of tiles and of one variance, the finite-length band, real codecs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.charts.chart import COLOURS, GREY
from workbench.charts.looks import Dash, looks_of
from workbench.codecs import registry
from workbench.lab.chart_library import hv
from workbench.lab.charts import limits, styled
from workbench.lab.legend import Entry
from workbench.lab.limits_panel.theory import Band, Curves, Figures, Tiled
from workbench.limits.operating_point import OperatingPoint

Line = tuple[np.ndarray, np.ndarray, np.ndarray]   # where, from, to

AXES = ["mean square error", "bits"]
BLUE, ORANGE, GREEN = COLOURS[:3]
HEIGHT = 260   # pixels
BOUND, BAND, INTERVAL, TILES, POOLED = (
    "Gaussian-model bound", "codes of fixed length", "95 % interval", "in tiles", "one variance for all"
)
LOOKS: Mapping[str, tuple[str, Dash | None, float]] = {   # the colour of each, the dashes of lines, the opacity of areas
    BOUND: (BLUE, "solid", 1.0), INTERVAL: (BLUE, None, 0.25), TILES: (ORANGE, "dashed", 1.0),
    POOLED: (GREY, "dotted", 1.0), BAND: (GREEN, None, 0.55),
}


@dataclass(frozen=True, eq=False)
class Theory:
    """The theoretical results so far, drawn as bits or as bits above the bound."""

    curves: Curves | None = None
    tiled: Tiled | None = None
    band: Band | None = None
    figures: Figures | None = None


def rate_chart(known: Theory, points: Sequence[OperatingPoint], above: bool) -> Any:
    """Everything in one chart; with `above`, as bits above the bound, which shows small costs."""
    lines = _lines(known, above)
    bits = [value for line in lines.values() for side in line[1:] for value in side]
    shown = [_place(point, above) for point in points]
    here = [] if known.figures is None else [known.figures.distortion]
    where = [place for line in lines.values() for place in line[0]]
    x = limits([*where, *(place[0] for place in shown), *here], logarithmic=True, room=0.04)
    y = limits([0.0, *bits, *(place[1] for place in shown)], room=0.06)
    looks = looks_of(sorted({point.run.label for point in points}), registry.looks())
    marked = [
        (*place, point.run.label, str(point.run), look.colour, look.marker, look.dash)
        for place, point in zip(shown, points, strict=True) for look in [looks[point.run.label]]
    ]
    measured = hv.Points([row[:-1] for row in marked], AXES, ["codec", "run", "colour", "mark"])
    bits_are = "bits per value above the bound" if above else "bits per value"
    told = [("codec", "@run"), ("mean square error", "$x"), (bits_are, "$y{0.000}")]
    layers = (
        _area(BAND, lines[BAND]) * _area(INTERVAL, lines[INTERVAL])
        * _line(POOLED, lines[POOLED]) * _line(TILES, lines[TILES]) * _line(BOUND, lines[BOUND])
        * hv.VLines(here).opts(color=GREY, line_dash="dashed", line_width=1.0)
        * _joined(marked)
        * measured.opts(color="colour", marker="mark", size=8, line_color=GREY, tools=["hover"], hover_tooltips=told)
    )
    return styled(
        layers, "Bits above the bound" if above else "Bits and error",
        [*_theory_key(lines, bool(here)), *(Entry.of(label, look) for label, look in looks.items())],
        logx=True, xlim=x, ylim=y, xlabel="mean square error", ylabel=bits_are, height=HEIGHT,
    )


def _theory_key(lines: Mapping[str, Line], here: bool) -> list[Entry]:
    """The entries of the theoretical lines that are drawn."""
    drawn = [name for name in LOOKS if lines[name][0].size and np.isfinite(lines[name][2]).any()]
    if TILES in drawn and np.array_equal(lines[TILES][1], lines[BOUND][1]):
        drawn.remove(TILES)   # the whole field is one tile
    entries = [Entry(name, LOOKS[name][0], dash=LOOKS[name][1], opacity=LOOKS[name][2]) for name in drawn]
    return [*entries, Entry("the chosen error bound", GREY, dash="dashed")] if here else entries


def _lines(known: Theory, above: bool) -> dict[str, Line]:
    """Curves and bands by name; missing ones have no points."""
    nothing = (np.empty(0),) * 3
    found: dict[str, Line] = dict.fromkeys((BOUND, BAND, INTERVAL, TILES, POOLED), nothing)
    if known.curves is not None:
        curves = known.curves
        where, base = curves.distortions, curves.rate if above else np.zeros_like(curves.rate)
        found[BOUND] = where, curves.rate - base, curves.rate - base
        found[INTERVAL] = where, curves.low - base, curves.high - base
        found[POOLED] = where, curves.pooled - base, curves.pooled - base
        if known.tiled is not None:
            found[TILES] = where, known.tiled.rate - base, known.tiled.rate - base
    if known.band is not None:
        band = known.band
        base = band.rate if above else np.zeros_like(band.rate)
        found[BAND] = band.distortions, band.converse - base, band.achievable - base
    return _reaching(found, known, above)


def _reaching(found: dict[str, Line], known: Theory, above: bool) -> dict[str, Line]:
    """Lines extended to a distortion below all of theirs, where they are straight."""
    curves, here = known.curves, known.figures
    if curves is None or here is None or here.distortion >= curves.distortions[0]:
        return found
    base = here.rate if above else 0.0
    ends = {BOUND: (here.rate, here.rate), INTERVAL: (here.low, here.high), POOLED: (here.rate + here.pooled,) * 2,
            TILES: (here.tiled, here.tiled)}
    for name, (low, high) in ends.items():
        if found[name][0].size:
            found[name] = tuple(np.concatenate([[first], rest]) for first, rest in zip(
                (here.distortion, low - base, high - base), found[name], strict=True))   # type: ignore[assignment]
    return found


def _line(name: str, line: Line) -> Any:
    colour, dash, _ = LOOKS[name]
    told = [(name, "$y{0.000} bits"), ("mean square error", "$x")]
    look = {"color": colour, "line_dash": dash, "line_width": 1.8}
    hover = {"tools": ["hover"], "hover_tooltips": told} if name == BOUND else {"tools": []}
    return hv.Curve(line[:2], *AXES, label=name).opts(**look, **hover)


def _area(name: str, line: Line) -> Any:
    colour, _, opacity = LOOKS[name]
    return hv.Area(line, AXES[0], [AXES[1], "to"], label=name).opts(color=colour, alpha=opacity, line_alpha=0.0)


def _place(point: OperatingPoint, above: bool) -> tuple[float, float]:
    return point.distortion, point.gap if above else point.bits


def _joined(marked: Sequence[tuple[Any, ...]]) -> Any:
    """The points of each codec, joined from left to right."""
    rows = []
    for _, line in itertools.groupby(sorted(marked, key=lambda row: (row[2], row[0])), key=lambda row: row[2]):
        rows += [(*one[:2], *other[:2], one[4], one[6]) for one, other in itertools.pairwise(line)]
    segments = hv.Segments(rows, [*AXES, "to error", "to bits"], ["colour", "dash"])
    return segments.opts(color="colour", line_dash="dash", line_width=1.2, alpha=0.7)
