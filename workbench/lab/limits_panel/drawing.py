"""Everything the limits panel shows, as a fast, pure function of state and results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.bounds import Run
from workbench.data import Field
from workbench.lab.bounds_panel.state import size_of
from workbench.lab.description import Fact, Shown, Table
from workbench.lab.glossary import meaning
from workbench.lab.limits_panel.measuring import Measured, best, limit_of
from workbench.lab.limits_panel.pictures import note, pictures
from workbench.lab.limits_panel.plots import charts
from workbench.lab.limits_panel.rate_chart import Theory
from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.limits_panel.theory import Figures, FixedLength, Model, News
from workbench.limits.comparison import row
from workbench.limits.operating_point import OperatingPoint
from workbench.limits.pointwise import uniform_mse

COMING = "…"   # in place of a figure that is still being computed
BOUND, PRACTICE, SURE, THEORY = "the bound", "what practice adds", "how sure", "theory"   # the groups of figures
NOTHING = "says nothing"   # a bound that is negative
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
    known = Theory(*(results.get(name) for name in ("curves", "tiled", "band", "figures")))
    points = sorted(
        (each for each in measured if isinstance(each, OperatingPoint)),
        key=lambda point: (point.run.label, -point.distortion),
    )
    shown = pictures(field, state, model, news)
    titles = [picture.title for picture in shown]
    return Shown(
        answer=answer(state, model, results.get("figures"), points),
        pictures=shown,
        front=titles.index(state.picture) if state.picture in titles else 0 if shown else None,
        charts=charts(field, state, model, known, news, points),
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
    state: LimitsState, model: Model | None, found: Figures | None, points: Sequence[OperatingPoint]
) -> tuple[str | Fact, ...]:
    """What the model needs at the mean square error of the bound, and what the best measured codec does."""
    if model is None or found is None:
        return ()
    sure = f"({_short(found.low)} to {_short(found.high)}) " if math.isfinite(found.high) else ""
    least = Fact("Gaussian-model bound", _short(found.rate), "", _of_the_mean(state), f"{sure}{BITS}")
    said = ("A Gaussian field with this spectrum needs at least", least, "at this error.")
    point = best(points, state.eb)
    if point is None:
        return *said, "Press “compare codecs” for what codecs need."
    return *said, *_best_codec(state, model, point)


def _of_the_mean(state: LimitsState) -> str:
    return (
        f"{meaning('Gaussian-model bound')}; on average, at a mean square error of {state.distortion:.3g}, which errors "
        "spread evenly within the error bound have"
    )


def _best_codec(state: LimitsState, model: Model, point: OperatingPoint) -> tuple[str | Fact, ...]:
    """The codec of fewest bits, at this error bound or at the nearest that was measured; its bound is at the same one."""
    limit = limit_of(point)
    gap = point.bits - model.limits.rate(uniform_mse(limit))
    here = "Best codec here:" if limit == state.eb else f"Best codec at the bound {limit:.3g}:"
    below = ", less than the bound: the model does not describe the field" if point.below else ""
    bits = Fact("bits", _short(point.bits), "bad" if point.below else "", f"bits per value{below}")
    return f"{here} {point.run.label},", bits, f"({gap:+.2f} above its bound)."


def _short(bits: float) -> str:
    return f"{bits:.2f}" if bits >= 0.1 or bits == 0 else f"{bits:.2g}"


# Figures with their names.

def facts(field: Field, state: LimitsState, results: Mapping[str, Any]) -> tuple[Fact, ...]:
    """All figures at the error bound, in groups; dots stand for missing results, except those that are on request."""
    model, found, fixed, news = (results.get(name) for name in ("model", "figures", "fixed length", "news"))
    return (
        *_of_the_question(field, state),
        *_of_the_bound(state, model, found, news),
        *_of_practice(state, found),
        _interval(found),
        _verdict(news),
        *([] if fixed is None else _of_fixed_length(state, fixed)),
    )


def _of_the_question(field: Field, state: LimitsState) -> list[Fact]:
    psnr = 20 * math.log10(size_of(field)) - 10 * math.log10(state.distortion)
    unit = str(field.metadata.get("units", ""))
    squared = f"({unit})²" if unit else ""
    return [
        Fact("mean square error", f"{state.distortion:.3g}", "", meaning("mean square error"), squared, BOUND),
        Fact("PSNR", f"{psnr:.1f}", "", meaning("PSNR"), "dB", BOUND),
    ]


def _of_the_bound(
    state: LimitsState, model: Model | None, found: Figures | None, news: News | None
) -> list[Fact]:
    rate = COMING if found is None else _bits(found.rate)
    this = None if news is None or model is None else model.limits.instance(state.eb)
    return [
        Fact("Gaussian-model bound", rate, "", meaning("Gaussian-model bound"), BITS, BOUND),
        _unless_negative("each value bounded", None if found is None else found.pointwise),
        _unless_negative("this field alone", this),
    ]


def _unless_negative(name: str, bits: float | None) -> Fact:
    """A bound that is negative at coarse error bounds, where it says nothing."""
    if bits is not None and bits <= 0:
        return Fact(name, NOTHING, "", f"{meaning(name)}; at error bounds as coarse as this it is below 0", "", BOUND)
    return Fact(name, COMING if bits is None else _bits(bits), "", meaning(name), BITS, BOUND)


def _of_practice(state: LimitsState, found: Figures | None) -> list[Fact]:
    tiles, price, pooled, borders, described = [COMING] * 5
    if found is not None:
        tiles, borders = _bits(found.tiled), _bits(found.borders)
        price, pooled = _more(found.tiled - found.rate), _more(found.pooled)
        described = _more(found.description)
    here, of = "bound without tiles", "Gaussian-model bound"
    if state.tile is not None:
        here, of = f"bound in tiles of {state.tile}", "bound in tiles"
    return [
        Fact(here, tiles, "", meaning(of), BITS, PRACTICE),
        Fact("tiles add", price, "", meaning("tiles add"), BITS, PRACTICE),
        Fact("one variance adds", pooled, "", meaning("one variance adds"), BITS, PRACTICE),
        Fact("region borders add", borders, "", meaning("region borders add"), BITS, PRACTICE),
        Fact("the model itself adds", described, "", meaning("the model itself adds"), BITS, PRACTICE),
    ]


def _of_fixed_length(state: LimitsState, fixed: FixedLength) -> list[Fact]:
    least, most, about = (_bits(bits, 4) for bits in (fixed.converse, fixed.achievable, fixed.normal))
    whose = "" if state.tile is None else " in any tile"
    fails = f"; the error is exceeded{whose} at most {100 * state.eps:.3g}% of the time"
    found = {"fixed length ≥": least, "fixed length ≤": most, "fixed length ≈": about}
    return [Fact(name, bits, "", f"{meaning(name)}{fails}", BITS, THEORY) for name, bits in found.items()]


def _interval(found: Figures | None) -> Fact:
    name, text, unit = "95% interval of the bound", COMING, BITS
    if found is not None:
        known = math.isfinite(found.high)
        text, unit = (f"{_bits(found.low)} to {_bits(found.high)}", BITS) if known else ("too small to tell", "")
    return Fact(name, text, "", meaning(name), unit, SURE)


def _verdict(news: News | None) -> Fact:
    name, said = "Gaussian?", meaning("Gaussian?")
    if news is None:
        return Fact(name, COMING, meaning=said, group=SURE)
    if news.gaussianity is None:
        return Fact(name, "too small to tell", meaning=said, group=SURE)
    visibly_not = news.gaussianity.visibly_not
    text = "visibly not" if visibly_not else "no deviation seen"
    return Fact(name, text, "bad" if visibly_not else "good", f"{said}: {news.gaussianity}", group=SURE)


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
    """A row for each point; the best one is emphasised."""
    rows = tuple(tuple(_cell(row(point)[name]) for name in SHOWN_COLUMNS) for point in points)
    chosen = best(points, state.eb)
    return Table(tuple(SHOWN_COLUMNS.values()), rows, None if chosen is None else list(points).index(chosen))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
