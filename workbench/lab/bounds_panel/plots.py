"""The charts of the bounds panel. Each always has the same elements, so that a view only changes data.

A chart without data does not exist: a trial that failed has no errors, and data may have no spectrum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.bounds.run import Run
from workbench.charts.chart import COLOURS, GREY
from workbench.charts.looks import Look, looks_of
from workbench.codecs import registry
from workbench.data import Field, Particles
from workbench.guarantees import Limit
from workbench.lab.bounds_panel.forecast import Forecast
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.bounds_panel.trial import Spectra, Trial
from workbench.lab.chart_library import hv
from workbench.lab.charts import limits, styled
from workbench.lab.description import Charts
from workbench.lab.legend import Entry
from workbench.lab.remembered import remembered
from workbench.lab.slices import envelope
from workbench.metrics import ErrorHistogram

BLUE, ORANGE, GREEN = COLOURS[:3]
ALL = ("errors", "error histogram", "rate-distortion", "spectrum ratio")
DEVIATION = "P'/P \N{MINUS SIGN} 1"
BAND = 1.0          # percent of the power spectrum: the usual tolerance in cosmology
HIGHEST = 100.0     # percent, the end of the chart: beyond it, the spectrum is lost anyway


def charts(
    data: Particles | Field, state: BoundsState, trial: Trial | None, runs: Sequence[Run], spectra: Spectra | None,
    forecast: Forecast | None = None,
) -> Charts:
    """All charts by name; a line of values has two more. Unchanged charts are the same objects as before."""
    there = trial if trial is not None and trial.outcome is not None else None
    current = None if trial is None else trial.run
    key = tuple(map(id, runs)), id(current), id(forecast)   # valid, since the chart is cached together with these objects
    makers: dict[str, Callable[[], Any]] = {}   # in the order in which they come
    if isinstance(data, Field) and len(data.shape) == 1:
        makers |= _of_line(data, state, there)
    if there is not None and (found := there.histogram) is not None:
        makers["error histogram"] = lambda: remembered(there, "histogram", "", lambda: error_chart(found))
    if any(_place(data, run) for run in runs):
        def rates() -> tuple[Any, ...]:
            return rate_distortion_chart(data, runs, current, forecast), runs, current, forecast

        makers["rate-distortion"] = lambda: remembered(data, "rate-distortion", key, rates)[0]
    if spectra is not None and len(spectra.k):
        makers["spectrum ratio"] = lambda: remembered(spectra, "chart", "spectrum", lambda: spectrum_chart(spectra))
    coming = ALL if trial is None else ("spectrum ratio",) if spectra is None and there is not None else ()
    return Charts(makers, coming)


def error_chart(found: ErrorHistogram) -> Any:
    """The histogram of errors in units of the bound."""
    share = 100 * found.counts / max(found.counts.sum(), 1)
    bars = hv.Histogram((found.edges, share), kdims="error / bound", vdims="% of the values")
    bars = bars.opts(fill_color=BLUE, fill_alpha=0.75, line_alpha=0.0, tools=["hover"])
    ends = hv.VLines([-1.0, 1.0]).opts(color=ORANGE, line_dash="dashed", line_width=1.5)
    top = 1.1 * float(share.max()) or 1.0
    seen = np.flatnonzero(share)
    ends_of = (found.edges[seen[0]], found.edges[seen[-1] + 1]) if seen.size else (0.0, 0.0)
    return styled(
        bars * ends, "Errors", [Entry("error bound", ORANGE, dash="dashed")],
        "Errors: share of the values by error in units of the bound. "
        f"Errors lie between {ends_of[0]:.3g} and {ends_of[1]:.3g} bounds.",
        xlim=(-1.15, 1.15), ylim=(0.0, top), xlabel="error / bound", ylabel="% of the values",
    )


def spectrum_chart(spectra: Spectra) -> Any:
    """The deviation of decoded from original power by wave number, and a band of one percent."""
    drawn = np.isfinite(spectra.ratio)
    k, deviation = spectra.k[drawn], 100 * (spectra.ratio[drawn] - 1)
    low, high = limits([*deviation, -2 * BAND, 2 * BAND])
    band = hv.HSpans([(-BAND, BAND)]).opts(color=GREEN, alpha=0.18, line_alpha=0.0)
    none = hv.HLines([0.0]).opts(color=GREY, line_dash="dashed", line_width=1.0)
    told = [f"{value:+.2g} %" for value in deviation]
    curve = hv.Curve((k, deviation, told), "k", ["deviation", "told"]).opts(
        color=BLUE, line_width=1.8, tools=["hover"], hover_tooltips=[("wave number", "@k{0.000}"), (DEVIATION, "@told")]
    )
    largest = told[int(np.argmax(np.abs(deviation)))] if told else "not known"
    return styled(
        band * none * curve, "Power spectrum",
        [Entry("within 1 %", GREEN, opacity=0.35), Entry("decoded", BLUE, dash="solid")],
        f"Power spectrum: deviation of the power of the decoded data by wave number. The largest is {largest}.",
        logx=True, xlim=limits(k, True), ylim=(max(low, -100.0), min(high, HIGHEST)),
        xlabel="wave number k", ylabel=f"{DEVIATION} [%]",
    )


# Rate against distortion.

@dataclass(frozen=True)
class _Place:
    """A run on the chart."""

    bits: float
    distortion: float
    codec: str
    bound: str


def measures(data: Particles | Field) -> tuple[str, str]:
    """The names of the figures for size and for error."""
    return ("bits_per_particle", "rms_error") if isinstance(data, Particles) else ("bits_per_value", "psnr")


def rate_distortion_chart(
    data: Particles | Field, runs: Sequence[Run], current: Run | None, forecast: Forecast | None = None
) -> Any:
    """Every run with finite coordinates, the runs of a codec joined by lines, and a ring around the current run.

    The forecast, with its interval, is drawn behind them.
    """
    logarithmic = isinstance(data, Particles)
    placed = [place for run in runs if (place := _place(data, run)) is not None]
    looks = looks_of((place.codec for place in placed), registry.looks())
    now = None if current is None else _place(data, current)
    axes = ["bits per particle", "rms error"] if logarithmic else ["bits per value", "PSNR [dB]"]
    rows = [(place.bits, place.distortion, place.codec, place.bound, *_drawn(looks[place.codec])) for place in placed]
    lines = hv.Segments(_segments(placed, looks), [*axes, "to bits", "to distortion"], ["colour", "dash"])
    points = hv.Points(rows, axes, ["codec", "bound", "colour", "mark"])
    chosen = hv.Points([] if now is None else [(now.bits, now.distortion)], axes)
    told = [("codec", "@codec"), ("bound", "@bound"), (axes[0], "$x{0.000}"), (axes[1], "$y{0.00}")]
    expected = forecast or Forecast()
    band = hv.Area((expected.bits, expected.low, expected.high), axes[0], [axes[1], "upper end"])
    drawn = (
        lines.opts(color="colour", line_dash="dash", line_width=1.5, alpha=0.7)
        * points.opts(color="colour", marker="mark", size=8, tools=["hover"], hover_tooltips=told)
        * chosen.opts(fill_alpha=0.0, line_color=GREY, line_width=2.0, marker="circle", size=18)
        * band.opts(color=GREY, fill_alpha=0.18, line_alpha=0.0)
        * hv.Curve((expected.bits, expected.middle), *axes).opts(color=GREY, line_dash="dotted", line_width=1.5)
    )
    key = [Entry.of(codec, look) for codec, look in looks.items()]
    key += [Entry("predicted, 90%", GREY, opacity=0.35)] if len(expected.bits) else []
    return styled(
        drawn, "Size and error of all runs", key, logy=logarithmic,
        xlim=(0.0, 1.08 * max([place.bits for place in placed], default=1.0)),
        ylim=limits([place.distortion for place in placed], logarithmic, 0.12), xlabel=axes[0], ylabel=axes[1],
    )


def _place(data: Particles | Field, run: Run) -> _Place | None:
    """The place of a run; None if it failed or has no finite place, since an exact run has no distortion."""
    bits, distortion = (float(run.figures.get(name, math.nan)) for name in measures(data))
    drawn = math.isfinite(bits) and math.isfinite(distortion) and not (isinstance(data, Particles) and distortion <= 0)
    name = run.label if run.order == "keep" else f"{run.label}, free order"
    return _Place(bits, distortion, name, f"{run.bound.kind} {run.bound.eb:.4g}") if drawn else None


def _drawn(look: Look) -> tuple[str, str]:
    return look.colour, look.marker


def _by_codec(placed: Sequence[_Place]) -> Mapping[str, list[_Place]]:
    """The places of each codec, from left to right."""
    found: dict[str, list[_Place]] = {}
    for place in sorted(placed, key=lambda place: place.bits):
        found.setdefault(place.codec, []).append(place)
    return found


def _segments(placed: Sequence[_Place], looks: Mapping[str, Look]) -> list[tuple[Any, ...]]:
    return [
        (one.bits, one.distortion, other.bits, other.distortion, looks[codec].colour, looks[codec].dash)
        for codec, line in _by_codec(placed).items() for one, other in itertools.pairwise(line)
    ]


# A line of values.

def _of_line(field: Field, state: BoundsState, trial: Trial | None) -> dict[str, Callable[[], Any]]:
    owner = field if trial is None else trial
    makers: dict[str, Callable[[], Any]] = {
        "values": lambda: remembered(owner, "values", state.window, lambda: values_chart(field, state, trial))
    }
    if trial is not None:
        makers["errors"] = lambda: remembered(trial, "errors", state.window, lambda: errors_chart(field, state, trial))
    return makers


def values_chart(field: Field, state: BoundsState, trial: Trial | None) -> Any:
    """The original and the decoded values along the line, within the window."""
    axes = "position", field.name or "value"
    original = envelope(field, field.values, state.window)
    decoded = (np.empty(0), np.empty(0)) if trial is None else envelope(field, _values(trial), state.window)
    first = hv.Curve(original, *axes, label="original").opts(color=GREY, line_width=2.5, alpha=0.7)
    second = hv.Curve(decoded, *axes, label="decoded").opts(color=BLUE, line_width=1.2, line_dash="dashed", tools=["hover"])
    ends = limits(np.concatenate([original[1], decoded[1]]))
    key = [Entry("original", GREY, dash="solid"), Entry("decoded", BLUE, dash="dashed")]
    return styled(
        first * second, "Values", key if trial is not None else key[:1],
        xlim=_whole(original[0]), ylim=ends, xlabel=axes[0], ylabel=axes[1],
    )


def errors_chart(field: Field, state: BoundsState, trial: Trial) -> Any:
    """The errors along the line, in units of the bound."""
    where, error = envelope(field, _in_bounds(field.values, _values(trial), trial.limit), state.window)
    curve = hv.Curve((where, error), "position", "error / bound").opts(color=BLUE, line_width=1.0, tools=["hover"])
    ends = hv.HLines([-1.0, 1.0]).opts(color=ORANGE, line_dash="dashed", line_width=1.5)
    key = [Entry("error", BLUE, dash="solid"), Entry("error bound", ORANGE, dash="dashed")]
    return styled(
        curve * ends, "Errors along the line", key, xlim=_whole(where), ylim=(-1.15, 1.15), xlabel="position",
        ylabel="error / bound",
    )


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
