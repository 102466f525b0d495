"""Everything the limits panel shows, as a fast, pure function of state and results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.bounds import Run
from workbench.data import Field
from workbench.lab.bounds_panel.state import size_of
from workbench.lab.description import Fact, Shown, Table
from workbench.lab.limits_panel.measuring import Measured, nearest
from workbench.lab.limits_panel.pictures import note, pictures
from workbench.lab.limits_panel.plots import charts
from workbench.lab.limits_panel.rate_chart import Theory
from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.limits_panel.theory import Figures, FixedLength, Model, News
from workbench.limits.comparison import row
from workbench.limits.operating_point import OperatingPoint

COMING = "…"   # in place of a figure that is still being computed
BITS = "bits per value; a bound of the Gaussian model: "
SHOWN_COLUMNS = {   # of the table of operating points, with the names of `comparison.row`
    "codec": "codec", "error bound": "error bound", "mean square error": "mean square error", "bits": "bits",
    "Gaussian-model bound": "Gaussian-model bound", "gap": "gap", "tiles": "tiles", "pointwise bound": "pointwise bound",
    "documents": "documents", "prediction and coding": "prediction, coding", "tighter than asked": "tighter than asked",
    "lever": "what would help most",
}


def draw(field: Field, state: LimitsState, results: Mapping[str, Any], measured: Sequence[Measured] = ()) -> Shown:
    """The pictures, charts and figures of a model and of measured codecs; missing results leave parts empty.

    >>> from workbench.data.synthetic import gaussian_field
    >>> waves = gaussian_field((32, 32), seed=1)
    >>> shown = draw(waves, LimitsState.for_(waves), {})
    >>> [picture.title for picture in shown.pictures], list(shown.charts)
    (['field'], [])
    """
    model, news = results.get("model"), results.get("news")
    known = Theory(*(results.get(name) for name in ("curves", "tiled", "band", "figures")))
    points = sorted(
        (each for each in measured if isinstance(each, OperatingPoint)),
        key=lambda point: (point.run.label, -point.distortion),
    )
    return Shown(
        pictures=pictures(field, state, model, news),
        charts=charts(field, state, model, known, news, points),
        facts=facts(field, state, results),
        tables={"regions": region_table(model), "operating points": point_table(points, state)},
        note=_note(field, state, news, measured),
    )


def _note(field: Field, state: LimitsState, news: News | None, measured: Sequence[Measured]) -> str:
    parts = [note(field, state), *(() if news is None else news.warnings)]
    failed = {each.label: each.error for each in measured if isinstance(each, Run) and each.error}
    parts += [f"{label} failed: {error}" for label, error in failed.items()]
    exact = sorted({each.label for each in measured if isinstance(each, Run) and not each.error})
    parts += [f"lossless, so not in the charts: {', '.join(exact)}"] if exact else []
    return "; ".join(part for part in parts if part)


# Figures with their names.

def facts(field: Field, state: LimitsState, results: Mapping[str, Any]) -> tuple[Fact, ...]:
    """All figures at the error bound, always the same ones; dots stand for missing results."""
    model, found, fixed, news = (results.get(name) for name in ("model", "figures", "fixed length", "news"))
    return (
        *_of_the_question(field, state),
        *_of_the_bound(state, found),
        *_of_fixed_length(state, fixed),
        *_of_pointwise_bounds(state, model, found, news),
        _verdict(news),
    )


def _of_the_question(field: Field, state: LimitsState) -> list[Fact]:
    psnr = 20 * math.log10(size_of(field)) - 10 * math.log10(state.distortion)
    even = "of errors uniform within the bound: a third of its square"
    return [
        Fact("mean square error", f"{state.distortion:.3g}", meaning=even),
        Fact("PSNR", f"{psnr:.1f} dB", meaning="the mean square error relative to the range of the values"),
    ]


def _of_the_bound(state: LimitsState, found: Figures | None) -> list[Fact]:
    rate, interval, tiles, price, pooled, borders = [COMING] * 6
    if found is not None:
        rate, low, high, tiles = (_bits(bits) for bits in (found.rate, found.low, found.high, found.tiled))
        interval = f"{low} to {high}" if math.isfinite(found.high) else "too small to tell"
        price, pooled, borders = _more(found.tiled - found.rate), _more(found.pooled), _bits(found.borders)
    here = "without tiles" if state.tile is None else f"in tiles of {state.tile}"
    return [
        Fact("Gaussian-model bound", rate, meaning=f"{BITS}no code needs less on average"),
        Fact("95% interval", interval, meaning="of the bound, estimated from this one field"),
        Fact(f"bound {here}", tiles, meaning=f"{BITS}for codes that process one tile at a time"),
        Fact("price of tiles", price, meaning="additional bits per value if tiles are coded independently"),
        Fact("price of one variance", pooled, meaning="additional bits per value, if one variance for all is assumed"),
        Fact("borders of regions", borders, meaning="part of the bound, bits per value: regions count as independent"),
    ]


def _of_fixed_length(state: LimitsState, fixed: FixedLength | None) -> list[Fact]:
    converse, achievable, normal = [COMING] * 3
    if fixed is not None:
        converse, achievable, normal = (_bits(bits, 4) for bits in (fixed.converse, fixed.achievable, fixed.normal))
    fails = f"and fails at most {100 * state.eps:.3g}% of the time"
    return [
        Fact("converse", converse, meaning=f"{BITS}no fixed-length code needs less {fails}"),
        Fact("achievable", achievable, meaning=f"{BITS}a fixed-length code exists that needs no more {fails}"),
        Fact("normal approximation", normal, meaning="the approximate rate of the best fixed-length code"),
    ]


def _of_pointwise_bounds(
    state: LimitsState, model: Model | None, found: Figures | None, news: News | None
) -> list[Fact]:
    every = COMING if found is None else _bits(max(found.pointwise, 0.0))
    this = COMING if news is None or model is None else _bits(max(model.limits.instance(state.eb), 0.0))
    return [
        Fact("every value within", every, meaning=f"{BITS}no code that keeps each value within the error bound needs less"),
        Fact("this very field", this, meaning=f"{BITS}no code keeps this field within it for less, except by chance"),
    ]


def _verdict(news: News | None) -> Fact:
    name, meaning = "Gaussian?", "whether the new information in the values is distributed as in a Gaussian field"
    if news is None:
        return Fact(name, COMING, meaning=meaning)
    if news.gaussianity is None:
        return Fact(name, "too small to tell", meaning=meaning)
    visibly_not = news.gaussianity.visibly_not
    text = "visibly not" if visibly_not else "as far as one sees"
    return Fact(name, text, "bad" if visibly_not else "good", f"{meaning}: {news.gaussianity}")


def _bits(bits: float, digits: int = 3) -> str:
    return f"{bits:.{digits}f}"


def _more(bits: float) -> str:
    return f"+{max(bits, 0.0):.3f}"


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
    """A row for each point; the smallest of the points in the gap chart is emphasised."""
    rows = tuple(tuple(_cell(row(point)[name]) for name in SHOWN_COLUMNS) for point in points)
    close = nearest(points, state.distortion)
    best = min(close, key=lambda point: point.gap, default=None)
    return Table(tuple(SHOWN_COLUMNS.values()), rows, None if best is None else list(points).index(best))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
