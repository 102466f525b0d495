"""Everything the limits panel shows, as a fast, pure function of state and results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.bounds import Run
from workbench.data import Field
from workbench.lab.bounds_panel.state import size_of
from workbench.lab.description import Fact, Shown, Table
from workbench.lab.figures import figure, group
from workbench.lab.limits_panel.measuring import Measured, all_compared, best
from workbench.lab.limits_panel.pictures import note, pictures
from workbench.lab.limits_panel.plots import charts
from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.limits_panel.theory import Figures, FixedLength, Model, News
from workbench.limits.comparison import row
from workbench.limits.operating_point import OperatingPoint
from workbench.limits.pointwise import uniform_mse

BITS = "bits/value"
SHOWN_COLUMNS = {   # of the table of operating points, with the names of `comparison.row`
    "codec": "codec", "error bound": "error bound", "mean square error": "mean square error", "bits": "bits per value",
    "Gaussian-model bound": "Gaussian-model bound", "gap": "above the bound", "tiles": "tiles",
    "pointwise bound": "pointwise bound",
    "documents": "archive description", "prediction and coding": "prediction, coding",
    "tighter than asked": "tighter than asked", "lever": "what would help most",
}


def draw(field: Field, state: LimitsState, results: Mapping[str, Any], measured: Sequence[Measured] = ()) -> Shown:
    """The answer, pictures, charts and figures of a model and of measured codecs; missing results leave parts empty.

    >>> from workbench.data.synthetic import gaussian_field
    >>> waves = gaussian_field((32, 32), seed=1)
    >>> shown = draw(waves, LimitsState.for_(waves), {})
    >>> [picture.title for picture in shown.pictures], list(shown.charts)
    (['field'], [])
    """
    model, news = results.get("model"), results.get("news")
    points = points_of(measured)
    shown = pictures(field, state, model, news)
    titles = [picture.title for picture in shown]
    return Shown(
        answer=answer(field, state, model, results.get("figures"), measured),
        pictures=shown,
        front=titles.index(state.picture) if state.picture in titles else 0 if shown else None,
        charts=charts(field, state, results, points),
        beside=("rate-distortion",),
        facts=facts(field, state, results),
        tables={
            "regions": region_table(model), "operating points": point_table(points, state),
            "warnings": Table(("warning",), () if news is None else tuple((each,) for each in news.warnings)),
        },
        note=_note(field, state, news, measured),
        settings=settings(field, state),
    )


def settings(field: Field, state: LimitsState) -> dict[str, str]:
    """The choices in words, for a report.

    >>> settings(Field([0.0, 1.0]), LimitsState(eb=0.05, tile=16))
    {'error bound': 'absolute 0.05', 'tiles': 'tiles of 16', 'regions': 'as many as found', 'excess': 'at most 1%'}
    """
    told = {
        "error bound": f"absolute {state.eb:.6g}",
        "tiles": "no tiles" if state.tile is None else f"tiles of {state.tile}",
        "regions": "as many as found" if state.regions == "auto" else f"at most {state.regions}",
        "excess": f"at most {100 * state.eps:.3g}%",
    }
    if len(field.shape) >= 3:
        told["slice"] = f"{state.index} of {field.shape[-3:][state.axis]} across axis {state.axis}"
    return told | ({"time": f"{state.time} of {field.shape[0]}"} if len(field.shape) == 4 else {})


def _note(field: Field, state: LimitsState, news: News | None, measured: Sequence[Measured]) -> str:
    parts = [note(field, state)]
    if news is not None and news.gaussianity is not None and news.gaussianity.visibly_not:
        parts.append("the field is clearly not Gaussian, so a codec may be below the bound")
    if news is not None and news.warnings:
        count = len(news.warnings)
        parts.append(f"{count} warning{'s' if count > 1 else ''} about the model, in the table")
    failed = {each.label: each.error for each in measured if isinstance(each, Run) and each.error}
    parts += [f"{label} failed: {error}" for label, error in failed.items()]
    exact = sorted({each.label for each in measured if isinstance(each, Run) and not each.error})
    parts += [f"lossless, so not in the charts: {', '.join(exact)}"] if exact else []
    return "; ".join(part for part in parts if part)


# The answer.

def answer(
    field: Field, state: LimitsState, model: Model | None, found: Figures | None, measured: Sequence[Measured]
) -> tuple[str | Fact, ...]:
    """What the model needs at the mean square error of the bound, and what the best codec measured at this bound does."""
    if model is None or found is None:
        return ()
    sure = f"({_short(found.low)} to {_short(found.high)}) " if math.isfinite(found.high) else ""
    mean = f"; on average, at a mean square error of {state.distortion:.3g}, which errors spread evenly within it have"
    least = figure("Gaussian-model bound", _short(found.rate), f"{sure}{BITS}", more=mean)
    point = best(points_of(measured), state.eb)
    if point is None:
        return "Gaussian model: at least", least, "at this error bound. Press “compare codecs” for what codecs need."
    gap = point.bits - model.limits.rate(uniform_mse(state.eb))
    side = "above" if gap >= 0 else "below"
    so_far = "" if all_compared(field, measured, state.eb) else " so far"
    below = ", less than the bound: the model does not describe the field" if point.below else ""
    bits = figure("bits", _short(point.bits), verdict="bad" if point.below else "", about="bits per value", more=below)
    codec = f"· best codec{so_far}: {point.run.label},"
    return "Gaussian model: at least", least, codec, bits, f"({abs(gap):.2f} {side} the bound)"


def points_of(measured: Sequence[Measured]) -> list[OperatingPoint]:
    """The operating points among what was measured, by codec, the coarsest first."""
    points = [each for each in measured if isinstance(each, OperatingPoint)]
    return sorted(points, key=lambda point: (point.run.label, -point.distortion))


def _short(bits: float) -> str:
    return f"{bits:.2f}" if bits >= 0.1 or bits == 0 else f"{bits:.2g}"


# Figures with their names.

def facts(field: Field, state: LimitsState, results: Mapping[str, Any]) -> tuple[Fact, ...]:
    """All figures at the error bound, in groups; dots stand for missing results, except those that are on request."""
    model, found, fixed, news = (results.get(name) for name in ("model", "figures", "fixed length", "news"))
    return (
        *group("the bound", _of_the_bound(field, state, found, model if news is not None else None)),
        *group("what practice adds", _of_practice(state, found)),
        *group("how sure", (_interval(found), _gaussian(news))),
        *group("theory", [] if fixed is None else _of_fixed_length(state, fixed)),
    )


def _of_the_bound(field: Field, state: LimitsState, found: Figures | None, model: Model | None) -> list[Fact]:
    unit = str(field.metadata.get("units", ""))
    psnr = 20 * math.log10(size_of(field)) - 10 * math.log10(state.distortion)
    return [
        figure("mean square error", state.distortion, f"({unit})²" if unit else ""),
        figure("PSNR", psnr, "dB", ".1f"),
        figure("Gaussian-model bound", None if found is None else found.rate, BITS, ".3f"),
        _unless_negative("each value bounded", None if found is None else found.pointwise),
        _unless_negative("this field alone", None if model is None else model.limits.instance(state.eb)),
    ]


def _unless_negative(name: str, bits: float | None) -> Fact:
    """A bound that is negative at coarse error bounds, where it says nothing."""
    if bits is not None and bits <= 0:
        return figure(name, "says nothing", more="; at error bounds as coarse as this it is below 0")
    return figure(name, bits, BITS, ".3f")


def _of_practice(state: LimitsState, found: Figures | None) -> list[Fact]:
    here, about = ("bound without tiles", "Gaussian-model bound") if state.tile is None else (
        f"bound in tiles of {state.tile}", "bound in tiles"
    )
    bound = tiles = pooled = borders = described = None
    if found is not None:
        bound, borders, described = found.tiled, found.borders, found.description
        tiles, pooled = max(found.tiled - found.rate, 0.0), max(found.pooled, 0.0)
    return [
        figure(here, bound, BITS, ".3f", about=about), figure("tiles add", tiles, BITS, "+.3f"),
        figure("one variance adds", pooled, BITS, "+.3f"), figure("region borders add", borders, BITS, ".3f"),
        figure("the model itself adds", described, BITS, "+.3f"),
    ]


def _of_fixed_length(state: LimitsState, fixed: FixedLength) -> list[Fact]:
    whose = "" if state.tile is None else " in any tile"
    fails = f"; the error is exceeded{whose} at most {100 * state.eps:.3g}% of the time"
    ends = {"fixed length ≥": fixed.converse, "fixed length ≤": fixed.achievable, "fixed length ≈": fixed.normal}
    return [figure(name, bits, BITS, ".4f", more=fails) for name, bits in ends.items()]


def _interval(found: Figures | None) -> Fact:
    if found is None or math.isfinite(found.high):
        return figure("95% interval of the bound", None if found is None else f"{found.low:.3f} to {found.high:.3f}", BITS)
    return figure("95% interval of the bound", "too small to tell")


def _gaussian(news: News | None) -> Fact:
    if news is None or news.gaussianity is None:
        return figure("Gaussian?", None if news is None else "too small to tell")
    more = f": {news.gaussianity}"
    if news.gaussianity.visibly_not:
        return figure("Gaussian?", "visibly not", verdict="bad", more=more)
    return figure("Gaussian?", "no deviation seen", verdict="good", more=more)


# Tables.

def region_table(model: Model | None) -> Table:
    """A row for each region: its share, and its model."""
    columns = ("region", "share", "mean", "standard deviation", "Gaussian model", "misfit")
    if model is None:
        return Table(columns)
    source, rows = model.limits.source, []
    for region, (share, mean, fit) in enumerate(zip(model.shares, source.means, source.fits, strict=True)):
        sigma = "0" if fit is None else f"{math.sqrt(fit.covariance.variance):.4g}"
        family, doubt = ("does not vary", "") if fit is None else (fit.family, str(fit.misfit))
        rows.append((f"{region + 1}", f"{100 * share:.1f}%", f"{mean:.4g}", sigma, family, doubt))
    return Table(columns, tuple(rows))


def point_table(points: Sequence[OperatingPoint], state: LimitsState) -> Table:
    """A row for each point; the best one is emphasised."""
    rows = tuple(tuple(_cell(row(point)[name]) for name in SHOWN_COLUMNS) for point in points)
    chosen = best(points, state.eb)
    return Table(tuple(SHOWN_COLUMNS.values()), rows, None if chosen is None else list(points).index(chosen))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
