"""The charts of the bounds panel. Each always has the same elements, so that a view only changes data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import holoviews as hv
import numpy as np

from workbench.bounds.chart import COLOURS, GREY
from workbench.bounds.run import Run
from workbench.data import Field, Particles
from workbench.guarantees import Limit
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.bounds_panel.trial import Spectra, Trial
from workbench.lab.charts import colour, limits, marker, styled
from workbench.lab.description import Charts
from workbench.lab.projection import envelope
from workbench.lab.remembered import remembered

BLUE, ORANGE, GREEN = COLOURS[:3]
BAND = 0.01             # of the power spectrum: the usual tolerance in cosmology
HIGHEST_RATIO = 2.0     # the end of the chart: beyond it, the spectrum is lost anyway
LETTERS = 11            # pixels
ROWS = 10               # of a legend that still has room


def charts(
    data: Particles | Field, state: BoundsState, trial: Trial | None, runs: Sequence[Run], spectra: Spectra | None
) -> Charts:
    """All charts by name; a line of values has two more. Unchanged charts are the same objects as before."""
    there = trial if trial is not None and trial.outcome is not None else None
    owner: object = data if there is None else there
    measured: object = data if spectra is None else spectra
    current = None if trial is None else trial.run
    key = tuple(map(id, runs)), id(current)   # valid, since the chart is cached together with these objects

    def rates() -> tuple[Any, ...]:
        return rate_distortion_chart(data, runs, current), runs, current

    makers: dict[str, Callable[[], Any]] = {
        "error histogram": lambda: remembered(owner, "histogram", "", lambda: error_chart(there)),
        "spectrum ratio": lambda: remembered(measured, "chart", "spectrum", lambda: spectrum_chart(spectra)),
        "rate-distortion": lambda: remembered(data, "rate-distortion", key, rates)[0],
    }
    if isinstance(data, Field) and len(data.shape) == 1:
        makers |= _of_line(data, state, there)
    return Charts(makers)


def error_chart(trial: Trial | None) -> Any:
    """The histogram of errors in units of the bound."""
    found = None if trial is None else trial.histogram
    edges = np.linspace(-1, 1, 65) if found is None else found.edges
    counts = np.zeros(len(edges) - 1) if found is None else found.counts
    share = 100 * counts / max(counts.sum(), 1)
    bars = hv.Histogram((edges, share), kdims="error / bound", vdims="% of the values")
    bars = bars.opts(fill_color=BLUE, fill_alpha=0.75, line_alpha=0.0, tools=["hover"])
    ends = hv.VLines([-1.0, 1.0]).opts(color=ORANGE, line_dash="dashed", line_width=1.5)
    top = 1.1 * float(share.max()) or 1.0
    return styled(bars * ends, xlim=(-1.15, 1.15), ylim=(0.0, top), xlabel="error / bound", ylabel="% of the values")


def spectrum_chart(spectra: Spectra | None) -> Any:
    """The ratio of decoded to original power by wave number, and a band of one percent."""
    k, ratio = (np.empty(0), np.empty(0)) if spectra is None else (spectra.k, spectra.ratio)
    drawn = np.isfinite(ratio)
    low, high = limits([*ratio[drawn], 1 - 2 * BAND, 1 + 2 * BAND])
    band = hv.HSpans([(1 - BAND, 1 + BAND)]).opts(color=GREEN, alpha=0.18, line_alpha=0.0)
    one = hv.HLines([1.0]).opts(color=GREY, line_dash="dashed", line_width=1.0)
    curve = hv.Curve((k[drawn], ratio[drawn]), "k", "P' / P").opts(color=BLUE, line_width=1.8, tools=["hover"])
    ends = max(low, 0.0), min(high, HIGHEST_RATIO)
    return styled(band * one * curve, logx=True, xlim=limits(k, True), ylim=ends, xlabel="wave number k", ylabel="P' / P")


# Rate against distortion.

@dataclass(frozen=True)
class _Place:
    """A run on the chart."""

    bits: float
    distortion: float
    codec: str
    bound: str
    number: int   # of the codec; selects colour and mark

    def row(self) -> tuple[Any, ...]:
        return self.bits, self.distortion, self.codec, self.bound, colour(self.number), marker(self.number)


def measures(data: Particles | Field) -> tuple[str, str]:
    """The names of the figures for size and for error."""
    return ("bits_per_particle", "rms_error") if isinstance(data, Particles) else ("bits_per_value", "psnr")


def rate_distortion_chart(data: Particles | Field, runs: Sequence[Run], current: Run | None) -> Any:
    """Every run with finite coordinates, the runs of a codec joined by lines, and a ring around the current run.

    The legend beside the runs is drawn as data, because Bokeh's own would show colours only.
    """
    logarithmic = isinstance(data, Particles)
    numbers: dict[str, int] = {}
    placed = [place for run in runs if (place := _place(data, run, numbers)) is not None]
    now = None if current is None else _place(data, current, numbers)
    ring = [] if now is None else [now]
    axes = ["bits per particle", "rms error"] if logarithmic else ["bits per value", "PSNR [dB]"]
    told = ["codec", "bound", "colour", "mark"]
    right = max([place.bits for place in placed], default=1.0)
    up = limits([place.distortion for place in placed], logarithmic, 0.12)
    legend = _legend(placed, 1.1 * right, up, logarithmic)
    lines = hv.Segments(_segments(placed), [*axes, "to bits", "to distortion"], ["colour"])
    points, chosen, marks = (hv.Points([one.row() for one in several], axes, told) for several in (placed, ring, legend))
    names = hv.Labels([(place.bits + 0.03 * right, place.distortion, place.codec) for place in legend], axes, "codec")
    small = {"text_color": GREY, "text_font_size": f"{LETTERS}px", "text_align": "left", "text_baseline": "middle"}
    drawn = (
        lines.opts(color="colour", line_width=1.5, alpha=0.7)
        * points.opts(color="colour", marker="mark", size=8, tools=["hover"])
        * chosen.opts(fill_alpha=0.0, line_color=GREY, line_width=2.0, marker="circle", size=18)
        * marks.opts(color="colour", marker="mark", size=7)
        * names.opts(**small)
    )
    return styled(
        drawn, logy=logarithmic, xlim=(0.0, 1.5 * right), ylim=up, xlabel=axes[0], ylabel=axes[1], show_legend=False
    )


def _legend(placed: Sequence[_Place], where: float, up: tuple[float, float], logarithmic: bool) -> list[_Place]:
    """A place for the name of each codec, from the top down."""
    low, high = (math.log10(end) for end in up) if logarithmic else up
    found = {place.codec: place for place in placed}
    step = (high - low) / max(len(found) + 1, ROWS)
    heights = [high - (row + 1) * step for row in range(len(found))]
    return [
        replace(place, bits=where, distortion=10.0**height if logarithmic else height)
        for place, height in zip(found.values(), heights, strict=True)
    ]


def _place(data: Particles | Field, run: Run, numbers: dict[str, int]) -> _Place | None:
    """The place of a run; None if it failed or has no finite place, since an exact run has no distortion."""
    bits, distortion = (float(run.figures.get(name, math.nan)) for name in measures(data))
    drawn = math.isfinite(bits) and math.isfinite(distortion) and not (isinstance(data, Particles) and distortion <= 0)
    name = run.label if run.order == "keep" else f"{run.label}, free order"
    number = numbers.setdefault(name, len(numbers))
    return _Place(bits, distortion, name, f"{run.bound.kind} {run.bound.eb:.4g}", number) if drawn else None


def _by_codec(placed: Sequence[_Place]) -> Mapping[str, list[_Place]]:
    """The places of each codec, from left to right."""
    found: dict[str, list[_Place]] = {}
    for place in sorted(placed, key=lambda place: place.bits):
        found.setdefault(place.codec, []).append(place)
    return found


def _segments(placed: Sequence[_Place]) -> list[tuple[Any, ...]]:
    return [
        (one.bits, one.distortion, other.bits, other.distortion, colour(one.number))
        for line in _by_codec(placed).values() for one, other in itertools.pairwise(line)
    ]


# A line of values.

def _of_line(field: Field, state: BoundsState, trial: Trial | None) -> dict[str, Callable[[], Any]]:
    owner = field if trial is None else trial
    return {
        "values": lambda: remembered(owner, "values", state.window, lambda: values_chart(field, state, trial)),
        "errors": lambda: remembered(owner, "errors", state.window, lambda: errors_chart(field, state, trial)),
    }


def values_chart(field: Field, state: BoundsState, trial: Trial | None) -> Any:
    """The original and the decoded values along the line, within the window."""
    axes = "position", field.name or "value"
    original = envelope(field, field.values, state.window)
    decoded = (np.empty(0), np.empty(0)) if trial is None else envelope(field, _values(trial), state.window)
    first = hv.Curve(original, *axes, label="original").opts(color=GREY, line_width=2.5, alpha=0.7)
    second = hv.Curve(decoded, *axes, label="decoded").opts(color=BLUE, line_width=1.2, line_dash="dashed", tools=["hover"])
    ends = limits(np.concatenate([original[1], decoded[1]]))
    return styled(first * second, xlim=_whole(original[0]), ylim=ends, xlabel=axes[0], ylabel=axes[1])


def errors_chart(field: Field, state: BoundsState, trial: Trial | None) -> Any:
    """The errors along the line, in units of the bound."""
    where, error = np.empty(0), np.empty(0)
    if trial is not None:
        where, error = envelope(field, _in_bounds(field.values, _values(trial), trial.limit), state.window)
    curve = hv.Curve((where, error), "position", "error / bound").opts(color=BLUE, line_width=1.0, tools=["hover"])
    ends = hv.HLines([-1.0, 1.0]).opts(color=ORANGE, line_dash="dashed", line_width=1.5)
    return styled(curve * ends, xlim=_whole(where), ylim=(-1.15, 1.15), xlabel="position", ylabel="error / bound")


def _whole(places: np.ndarray) -> tuple[float, float]:
    return limits(places, room=0.01)


def _values(trial: Trial) -> np.ndarray:
    assert isinstance(trial.decoded, Field)
    return trial.decoded.values


def _in_bounds(original: np.ndarray, decoded: np.ndarray, limit: Limit) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = decoded.astype(np.float64) - original
        allowed = limit.value * np.abs(original, dtype=np.float64) if limit.relative else limit.value
        return np.where(error == 0, 0.0, error / allowed)
