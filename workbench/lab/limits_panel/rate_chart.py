"""The rate-distortion chart: the bound, the costs of tiles and of one variance, the finite-length band, real codecs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import holoviews as hv
import numpy as np

from workbench.bounds.chart import COLOURS, GREY
from workbench.lab.charts import QUIET_LEGEND, colour, limits, marker, styled
from workbench.lab.limits_panel.legend import HEIGHT, names, rows_from
from workbench.lab.limits_panel.theory import Band, Curves, Figures, Tiled
from workbench.limits.operating_point import OperatingPoint

AXES = ["mean square error", "bits"]
BLUE, ORANGE, GREEN = COLOURS[:3]
SMALL_LEGEND = {**QUIET_LEGEND, "glyph_height": 12, "label_height": 12}
HEADROOM = 0.55      # of the height, for the legends where no corner is free
CODECS_FROM = 3      # the number of the first codec's colour and mark; lower numbers are for theory
BOUND, BAND, INTERVAL, TILES, POOLED = (
    "Gaussian-model bound", "codes of fixed length", "95% interval", "in tiles", "one variance for all"
)


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
    low, high = limits([0.0, *bits, *(place[1] for place in shown)], room=0.06)
    high += HEADROOM * (high - low) if above else 0.0
    numbers = {label: CODECS_FROM + rank for rank, label in enumerate(sorted({point.run.label for point in points}))}
    marked = [
        (*place, point.run.label, str(point.run), colour(numbers[point.run.label]), marker(numbers[point.run.label]))
        for place, point in zip(shown, points, strict=True)
    ]
    told = [(label, colour(number), marker(number)) for label, number in numbers.items()]
    marks, texts = names(rows_from("top right" if above else "bottom left", told, x, (low, high), across_log=True), AXES)
    layers = (
        _area(BAND, lines[BAND], GREEN, 0.55) * _area(INTERVAL, lines[INTERVAL], BLUE, 0.25)
        * _line(POOLED, lines[POOLED], GREY, "dotted") * _line(TILES, lines[TILES], ORANGE, "dashed")
        * _line(BOUND, lines[BOUND], BLUE, "solid")
        * hv.VLines(here).opts(color=GREY, line_dash="dashed", line_width=1.0)
        * _joined(marked)
        * hv.Points(marked, AXES, ["codec", "run", "colour", "mark"]).opts(
            color="colour", marker="mark", size=8, line_color=GREY, tools=["hover"])
        * marks * texts
    )
    return styled(
        layers, logx=True, xlim=x, ylim=(low, high), xlabel="mean square error",
        ylabel="bits above the bound" if above else "bits per value",
        legend_position="top_left" if above else "top_right", legend_opts=SMALL_LEGEND, height=HEIGHT,
    )


Line = tuple[np.ndarray, np.ndarray, np.ndarray]   # where, from, to


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


def _line(name: str, line: Line, shade: str, dash: str) -> Any:
    curve = hv.Curve(line[:2], *AXES, label=name)
    return curve.opts(color=shade, line_dash=dash, line_width=1.8, tools=["hover"] if name == BOUND else [])


def _area(name: str, line: Line, shade: str, alpha: float) -> Any:
    return hv.Area(line, AXES[0], [AXES[1], "to"], label=name).opts(color=shade, alpha=alpha, line_alpha=0.0)


def _place(point: OperatingPoint, above: bool) -> tuple[float, float]:
    return point.distortion, point.gap if above else point.bits


def _joined(marked: Sequence[tuple[Any, ...]]) -> Any:
    """The points of each codec, joined from left to right."""
    rows = []
    for _, line in itertools.groupby(sorted(marked, key=lambda row: (row[2], row[0])), key=lambda row: row[2]):
        rows += [(*one[:2], *other[:2], one[4]) for one, other in itertools.pairwise(line)]
    return hv.Segments(rows, [*AXES, "to error", "to bits"], ["colour"]).opts(color="colour", line_width=1.2, alpha=0.7)
