"""The figures of a trial: the few that a reader looks for, in one line, and all of them with their meanings."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from workbench.bounds.run import MEANINGS, Run
from workbench.data import Field, Particles
from workbench.data.units import unit_of
from workbench.guarantees import Absolute, Bound, Exact, Relative
from workbench.lab.bounds_panel.number_texts import short, similarity
from workbench.lab.bounds_panel.plots import measures
from workbench.lab.bounds_panel.trial import Trial
from workbench.lab.controls import exact
from workbench.lab.description import Fact, Severity
from workbench.metrics.report import MEANINGS as FIGURES

SIZE, ERROR, SPEED = "size", "error", "speed"   # the groups of figures
TITLES = {"bits_per_value": "bits per value", "bits_per_particle": "bits per particle"}
CHECKED = "every value was decoded and compared with the original before there was an archive"
NOTHING_FINITE = "no finite values: all come back bit for bit"

Sentence = tuple[str | Fact, ...]


def answer(data: Particles | Field, trial: Trial) -> Sentence:
    """The size, the ratio, whether the bound holds, and the error, as a line; or why there are none."""
    if trial.outcome is None:
        return Fact("result", f"{trial.run.label} failed:", "bad"), trial.run.error or ""
    if not trial.archive.original_nbytes:
        return (NOTHING_FINITE,)
    run, size = trial.run, measures(data)[0]
    unit = TITLES[size].replace(" per ", "/")
    parts: list[str | Fact] = [
        Fact(TITLES[size], short(float(run[size])), meaning=MEANINGS[size], unit=unit), "·",
        Fact("ratio", f"{short(float(run['ratio']))}x", meaning=MEANINGS["ratio"]), "·", _kept(data, trial),
    ]
    return (*parts, *_error(data, run))


def within(bound: Bound, unit: str = "") -> str:
    """The promise of a bound, in words.

    >>> within(Absolute(0.1), "K"), within(Relative(0.001)), within(Exact())
    ('within 0.1 K', 'within 0.001 of the range', 'exact')
    """
    if bound.eb == 0:
        return "exact"
    of = unit if isinstance(bound, Absolute) else "of the range" if isinstance(bound, Relative) else "of each value"
    return f"within {exact(bound.eb)} {of}".strip()


def _kept(data: Particles | Field, trial: Trial) -> Fact:
    """Whether the bound holds. The archive has checked it, in exact arithmetic."""
    limit, bound = trial.limit, trial.run.bound
    promise = within(bound, unit_of(data)) if limit.value > 0 else within(Exact())
    return Fact("largest error", promise, _verdict(trial), f"{CHECKED}: {bound.describe()}")


def _error(data: Particles | Field, run: Run) -> list[str | Fact]:
    """The PSNR of fields, the distances that particles have moved; nothing if all is exact."""
    name, figure, unit, digits = "PSNR", "psnr", "dB", 4
    if isinstance(data, Particles):
        name, figure, unit, digits = "rms distance", "rms_distance", unit_of(data), 3
    value = float(run.figures.get(figure, math.nan))
    if not math.isfinite(value) or value == 0:
        return []
    return ["·", name, Fact(name, short(value, digits), meaning=FIGURES.get(figure, ""), unit=unit)]


def facts(data: Particles | Field, trial: Trial, plain: Run | None = None) -> tuple[Fact, ...]:
    """The figures of a trial, with the size without the model if it has one; none when it failed."""
    if trial.outcome is None or not trial.archive.original_nbytes:
        return ()
    run, size = trial.run, measures(data)[0]
    shown = [
        _fact(run, "ratio", "ratio", short, SIZE, "x"),
        _fact(run, TITLES[size], size, short, SIZE),
        None if plain is None else _fact(plain, "without the model", size, short, SIZE),
        _worst(trial),
        _fact(run, "PSNR", "psnr", "{:.2f}".format, ERROR, "dB"),
        _fact(run, "SSIM", "ssim", similarity, ERROR),
        _fact(run, "rms distance", "rms_distance", partial(short, digits=4), ERROR),
        _corrected(run),
        _fact(run, "compress", "encode_mb_per_s", short, SPEED, "MB/s"),
        _fact(run, "decompress", "decode_mb_per_s", short, SPEED, "MB/s"),
    ]
    return tuple(fact for fact in shown if fact is not None)


def _fact(run: Run, name: str, figure: str, form: Callable[[float], str], group: str, unit: str = "") -> Fact | None:
    if figure not in run.figures:
        return None
    meaning = MEANINGS.get(figure) or FIGURES.get(figure, "")
    value = float(run[figure])
    if math.isfinite(value):
        return Fact(name, form(value), meaning=meaning, unit=unit, group=group)
    return Fact(name, _infinite(value), meaning=meaning, group=group)


def _infinite(value: float) -> str:
    return "not defined" if math.isnan(value) else "exact" if value > 0 else "nothing left"


def _worst(trial: Trial) -> Fact:
    """The largest error as a share of the bound."""
    limit = trial.limit
    if limit.value == 0:
        return Fact("largest error", "none allowed, none made", "good", CHECKED, group=ERROR)
    largest, meaning = _largest(trial), f"{CHECKED}: {trial.run.bound.describe()}"
    share = f"{largest / limit.value:.1%} of the bound"
    return Fact("largest error", f"{largest:.4g}", _verdict(trial), meaning, share, ERROR)


def _verdict(trial: Trial) -> Severity:
    return "good" if _largest(trial) <= trial.limit.value else "bad"


def _largest(trial: Trial) -> float:
    archive = trial.archive
    return float(archive.certificate[archive.data.layout.name].figures["largest_error"])


def _corrected(run: Run) -> Fact:
    share = float(run["corrected"])
    text, unit = ("none", "") if share == 0 else (f"{100 * share:.3g}", "%")
    return Fact("corrected", text, meaning=MEANINGS["corrected"], unit=unit, group=ERROR)
