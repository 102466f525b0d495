"""The figures of a trial: the few that a reader looks for, in one line, and all of them with their meanings."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from workbench.bounds.run import MEANINGS as SPEEDS
from workbench.bounds.run import Run
from workbench.data import Field, Particles
from workbench.data.units import unit_of
from workbench.guarantees import Absolute, Bound, Exact, Relative
from workbench.lab.bounds_panel.number_texts import short, similarity
from workbench.lab.bounds_panel.plots import measures
from workbench.lab.bounds_panel.trial import Trial
from workbench.lab.controls import exact
from workbench.lab.description import Fact, Severity
from workbench.lab.figures import figure, group

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
        figure(TITLES[size], short(float(run[size])), unit), "·",
        figure("ratio", f"{short(float(run['ratio']))}x"), "·", _kept(data, trial),
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
    name, measured, unit, digits = "PSNR", "psnr", "dB", 4
    if isinstance(data, Particles):
        name, measured, unit, digits = "rms distance", "rms_distance", unit_of(data), 3
    value = float(run.figures.get(measured, math.nan))
    if not math.isfinite(value) or value == 0:
        return []
    return ["·", name, figure(name, short(value, digits), unit)]


def facts(data: Particles | Field, trial: Trial, plain: Run | None = None) -> tuple[Fact, ...]:
    """The figures of a trial, with the size without the model if it has one; none when it failed."""
    if trial.outcome is None or not trial.archive.original_nbytes:
        return ()
    run, size = trial.run, measures(data)[0]
    unmodelled = [] if plain is None else _measured(plain, size, "without the model", about=TITLES[size])
    errors = [
        *_measured(run, "psnr", "PSNR", "dB", "{:.2f}".format), *_measured(run, "ssim", "SSIM", form=similarity),
        *_measured(run, "rms_distance", "rms distance", form=partial(short, digits=4)),
    ]
    speeds = {"compress": "encode_mb_per_s", "decompress": "decode_mb_per_s"}
    return (
        *group("size", [*_measured(run, "ratio", "ratio", "x"), *_measured(run, size, TITLES[size]), *unmodelled]),
        *group("error", [_worst(trial), *errors, _corrected(run)]),
        *group("speed", [Fact(name, short(float(run[speed])), meaning=SPEEDS[speed], unit="MB/s")
                         for name, speed in speeds.items()]),
    )


def _measured(
    run: Run, measured: str, name: str, unit: str = "", form: Callable[[float], str] = short, about: str = ""
) -> list[Fact]:
    """The figure, if the run has it."""
    if measured not in run.figures:
        return []
    value = float(run[measured])
    if math.isfinite(value):
        return [figure(name, form(value), unit, about=about)]
    return [figure(name, "not defined" if math.isnan(value) else "exact" if value > 0 else "nothing left", about=about)]


def _worst(trial: Trial) -> Fact:
    """The largest error as a share of the bound."""
    limit = trial.limit
    if limit.value == 0:
        return Fact("largest error", "none allowed, none made", "good", CHECKED)
    largest, meaning = _largest(trial), f"{CHECKED}: {trial.run.bound.describe()}"
    share = f"{largest / limit.value:.1%} of the bound"
    return Fact("largest error", f"{largest:.4g}", _verdict(trial), meaning, share)


def _verdict(trial: Trial) -> Severity:
    return "good" if _largest(trial) <= trial.limit.value else "bad"


def _largest(trial: Trial) -> float:
    archive = trial.archive
    return float(archive.certificate[archive.data.layout.name].figures["largest_error"])


def _corrected(run: Run) -> Fact:
    share = float(run["corrected"])
    return figure("corrected", "none") if share == 0 else figure("corrected", 100 * share, "%")
