"""The charts of the bounds panel.

A chart without data does not exist: a trial that failed has no errors, and data may have no spectrum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.bounds.result import TITLES, point_of
from workbench.bounds.run import Run
from workbench.charts.description import Axis, Band, Cells, Chart, Part, Point, Rule, Series, Span, joined, limits
from workbench.charts.looks import COLOURS
from workbench.codecs import registry
from workbench.data import Field, Particles
from workbench.guarantees import Limit
from workbench.lab.bounds_panel.forecast import Forecast
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.bounds_panel.trial import Spectra, Trial
from workbench.lab.description import Charts
from workbench.lab.remembered import remembered
from workbench.lab.slices import envelope
from workbench.metrics import ErrorHistogram

BLUE, ORANGE, GREEN = COLOURS[:3]
ALL = ("errors", "error histogram", "rate-distortion", "spectrum ratio")
DEVIATION = "P'/P \N{MINUS SIGN} 1"
BAND = 1.0          # percent of the power spectrum: the usual tolerance in cosmology
HIGHEST = 100.0     # percent, the end of the chart: beyond it, the spectrum is lost anyway
BOUNDS = Axis("error / bound", -1.15, 1.15)


def charts(
    data: Particles | Field, state: BoundsState, trial: Trial | None, runs: Sequence[Run], spectra: Spectra | None,
    forecast: Forecast | None = None,
) -> Charts:
    """All charts by name; a line of values has two more. Unchanged charts are the same objects as before."""
    there = trial if trial is not None and trial.outcome is not None else None
    current = None if trial is None else trial.run
    key = tuple(map(id, runs)), id(current), id(forecast)   # valid, since the chart is cached together with these objects
    makers: dict[str, Callable[[], Chart]] = {}   # in the order in which they come
    if isinstance(data, Field) and len(data.shape) == 1:
        makers |= _of_line(data, state, there)
    if there is not None and (histogram := there.histogram) is not None:
        makers["error histogram"] = lambda: remembered(there, "histogram", "", lambda: error_chart(histogram))
    if any(_place(data, run) for run in runs):
        def rates() -> tuple[Any, ...]:
            return rate_distortion_chart(data, runs, current, forecast), runs, current, forecast

        makers["rate-distortion"] = lambda: remembered(data, "rate-distortion", key, rates)[0]
    if spectra is not None and len(spectra.k):
        makers["spectrum ratio"] = lambda: remembered(spectra, "chart", "spectrum", lambda: spectrum_chart(spectra))
    coming = ALL if trial is None else ("spectrum ratio",) if spectra is None and there is not None else ()
    return Charts(makers, coming)


def error_chart(histogram: ErrorHistogram) -> Chart:
    """The histogram of errors in units of the bound."""
    share = 100 * histogram.counts / max(histogram.counts.sum(), 1)
    boxes = [(*ends, top) for ends, top in zip(itertools.pairwise(histogram.edges.tolist()), share.tolist(), strict=True)]
    tooltips = [f"{low:.3g} to {high:.3g} bounds: {top:.3g} % of the values" for low, high, top in boxes]
    bars = Cells("", [(low, 0.0, high, top) for low, high, top in boxes], BLUE, 0.75, tooltips, outlined=False)
    seen = np.flatnonzero(share)
    ends = (histogram.edges[seen[0]], histogram.edges[seen[-1] + 1]) if seen.size else (0.0, 0.0)
    return Chart(
        "Errors", BOUNDS, Axis("% of the values", 0.0, 1.1 * float(share.max()) or 1.0),
        (bars, *(Rule("error bound", "x", end, ORANGE, width=1.5) for end in (-1.0, 1.0))),
        "Errors: share of the values by error in units of the bound. "
        f"Errors lie between {ends[0]:.3g} and {ends[1]:.3g} bounds.",
    )


def spectrum_chart(spectra: Spectra) -> Chart:
    """The deviation of decoded from original power by wave number, and a band of one percent."""
    drawn = np.isfinite(spectra.ratio)
    k, deviation = spectra.k[drawn], 100 * (spectra.ratio[drawn] - 1)
    low, high = limits([*deviation, -2 * BAND, 2 * BAND])
    size = [f"{value:+.2g} %" for value in deviation]
    tooltips = [f"{DEVIATION} is {each} at wave number {where:.3f}" for each, where in zip(size, k, strict=True)]
    largest = size[int(np.argmax(np.abs(deviation)))] if size else "not known"
    return Chart(
        "Power spectrum", Axis.around("wave number k", k, logarithmic=True),
        Axis(f"{DEVIATION} [%]", max(low, -100.0), min(high, HIGHEST)),
        (
            Span("within 1 %", "y", -BAND, BAND, GREEN), Rule("", "y", 0.0),
            Series("decoded", k, deviation, BLUE, tooltips=tooltips),
        ),
        f"Power spectrum: deviation of the power of the decoded data by wave number. The largest is {largest}.",
    )


# Rate against distortion.

def measures(data: Particles | Field) -> tuple[str, str]:
    """The names of the figures for size and for error."""
    return ("bits_per_particle", "rms_error") if isinstance(data, Particles) else ("bits_per_value", "psnr")


def rate_distortion_chart(
    data: Particles | Field, runs: Sequence[Run], current: Run | None, forecast: Forecast | None = None
) -> Chart:
    """Every run with finite coordinates, the runs of a codec joined by lines, and a ring around the current run.

    The forecast, with its interval, is drawn behind them.
    """
    placed = [place for run in runs if (place := _place(data, run)) is not None]
    now = None if current is None else _place(data, current)
    expected = forecast or Forecast()
    parts: list[Part] = [
        Band("predicted, 90%", expected.bits, expected.low, expected.high),
        Series("", expected.bits, expected.middle, dash="dotted", width=1.5),
        *joined(placed, registry.looks()),
    ]
    if now is not None:
        x, y = [now.x], [now.y]
        parts.append(Series("", x, y, dash=None, marker="circle", size=18, hollow=True, tooltips=[now.tooltip]))
    size, error = (TITLES[name] for name in measures(data))
    largest = 1.08 * max([each.x for each in placed], default=1.0)
    forecasted = [y for x, y in zip(expected.bits, expected.middle, strict=True) if x <= largest]
    return Chart(
        "Size and error of all runs", Axis(size, 0.0, largest),
        Axis.around(error, [*(each.y for each in placed), *forecasted], isinstance(data, Particles), 0.12), tuple(parts),
    )


def _place(data: Particles | Field, run: Run) -> Point | None:
    """The place of a run; None if it failed or has no finite place, since an exact run has no distortion."""
    name = run.label if run.order == "keep" else f"{run.label}, free order"
    point = point_of(run, *measures(data), name)
    return point if point.finite and not (isinstance(data, Particles) and point.y <= 0) else None


# A line of values.

def _of_line(field: Field, state: BoundsState, trial: Trial | None) -> dict[str, Callable[[], Chart]]:
    owner = field if trial is None else trial
    makers: dict[str, Callable[[], Chart]] = {
        "values": lambda: remembered(owner, "values", state.window, lambda: values_chart(field, state, trial))
    }
    if trial is not None:
        makers["errors"] = lambda: remembered(trial, "errors", state.window, lambda: errors_chart(field, state, trial))
    return makers


def values_chart(field: Field, state: BoundsState, trial: Trial | None) -> Chart:
    """The original and the decoded values along the line, within the window."""
    original = envelope(field, field.values, state.window)
    decoded = (np.empty(0), np.empty(0)) if trial is None else envelope(field, _values(trial), state.window)
    return Chart(
        "Values", _along(original[0]), Axis.around(field.name or "value", np.concatenate([original[1], decoded[1]])),
        (
            Series("original", original[0], original[1], width=2.5, opacity=0.7),
            Series("decoded", decoded[0], decoded[1], BLUE, "dashed", width=1.2),
        ),
    )


def errors_chart(field: Field, state: BoundsState, trial: Trial) -> Chart:
    """The errors along the line, in units of the bound."""
    where, error = envelope(field, _in_bounds(field.values, _values(trial), trial.limit), state.window)
    ends = [Rule("error bound", "y", end, ORANGE, width=1.5) for end in (-1.0, 1.0)]
    return Chart("Errors along the line", _along(where), BOUNDS, (*ends, Series("error", where, error, BLUE, width=1.0)))


def _along(places: np.ndarray) -> Axis:
    return Axis.around("position", places, room=0.01)


def _values(trial: Trial) -> np.ndarray:
    assert isinstance(trial.decoded, Field)
    return trial.decoded.values


def _in_bounds(original: np.ndarray, decoded: np.ndarray, limit: Limit) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = decoded.astype(np.float64) - original
        allowed = limit.value * np.abs(original, dtype=np.float64) if limit.relative else limit.value
        return np.where(error == 0, 0.0, error / allowed)
