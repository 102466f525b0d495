"""Everything the bounds panel shows, as a fast, pure function of state and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from workbench.bounds.run import MEANINGS, Run, label_of
from workbench.data import Field, Particles
from workbench.guarantees import Exact
from workbench.lab.bounds_panel.forecast import Forecast
from workbench.lab.bounds_panel.goals import Answer
from workbench.lab.bounds_panel.pictures import note, pictures
from workbench.lab.bounds_panel.plots import charts, measures
from workbench.lab.bounds_panel.state import KINDS, BoundsState
from workbench.lab.bounds_panel.trial import Spectra, Trial
from workbench.lab.description import Fact, Severity, Shown, Table
from workbench.metrics.report import MEANINGS as FIGURES

SIZE, ERROR, SPEED = "size", "error", "speed"   # the groups of figures
TITLES = {"bits_per_value": "bits per value", "bits_per_particle": "bits per particle"}


def draw(
    data: Particles | Field,
    state: BoundsState,
    trial: Trial | None = None,
    runs: Sequence[Run] = (),
    spectra: Spectra | None = None,
    forecast: Forecast | None = None,
    answer: Answer | None = None,
    plain: Run | None = None,
) -> Shown:
    """The pictures, charts and figures of a trial and of earlier runs; missing results leave parts empty, in the same form.

    `plain` is the run without the model.

    >>> from workbench.data.synthetic import gaussian_field
    >>> waves = gaussian_field((32, 32), seed=1)
    >>> shown = draw(waves, BoundsState.for_(waves))
    >>> [picture.title for picture in shown.pictures], list(shown.charts)
    (['original'], [])
    """
    tried = _with_current(runs, trial)
    return Shown(
        pictures=pictures(data, state, trial),
        charts=charts(data, state, trial, tried, spectra, forecast),
        facts=() if trial is None else facts(data, trial, plain),
        tables={"tried so far": table(data, tried, None if trial is None else trial.run)},
        note=_note(data, state, trial, spectra, answer),
        settings=settings(data, state),
    )


def settings(data: Particles | Field, state: BoundsState) -> dict[str, str]:
    """The choices in words, for a report.

    >>> settings(Field([0.0, 1.0]), BoundsState("zfp", eb=0.02))
    {'codec': 'zfp', 'error bound': 'absolute 0.02'}
    """
    kind = next(words for words, kind in KINDS.items() if kind == state.kind)
    told = {"codec": label_of(state.given), "error bound": "exact" if state.exact else f"{kind} {state.eb:.6g}"}
    if isinstance(data, Particles):
        told["order"] = "free" if state.order == "free" else "kept"
        return told | ({"seen": f"along {'xyz'[state.axis]}"} if data.dimensions == 3 else {})
    if state.model is not None:
        told["model"] = repr(state.model)
    if len(data.shape) >= 3:
        told["slice"] = f"{state.index} of {data.shape[-3:][state.axis]} across axis {state.axis}"
    return told | ({"time": f"{state.time} of {data.shape[0]}"} if len(data.shape) == 4 else {})


def _note(
    data: Particles | Field, state: BoundsState, trial: Trial | None, spectra: Spectra | None, answer: Answer | None
) -> str:
    if trial is not None and trial.run.error:
        return f"{trial.run.label} failed: {trial.run.error}"
    parts = [note(data, state, trial)]
    if trial is not None and not trial.limit.value > 0:
        parts.append("no histogram of errors: the bound comes to zero, so every value is exact")
    if spectra is not None and spectra.why_not:
        parts.append(f"no spectrum: {spectra.why_not}")
    parts += [] if trial is None else [text for text in trial.run.notes if "stored exactly" in text]
    parts += [] if trial is None or trial.outcome is None else larger_than_data(trial)
    if answer is not None:
        parts += [answer.sentence, *answer.notes]
    return "; ".join(part for part in parts if part)


def larger_than_data(trial: Trial) -> list[str]:
    """Why an archive of very few values is larger than they are."""
    archive = trial.archive
    if archive.nbytes <= archive.original_nbytes or not archive.original_nbytes:
        return []
    fixed = archive.nbytes - archive.data.nbytes
    return [
        f"the archive is larger than these {archive.original_nbytes:,} bytes of data: its description, checksums and "
        f"certificate take {fixed:,} bytes, whatever the size of the data"
    ]


def _with_current(runs: Sequence[Run], trial: Trial | None) -> tuple[Run, ...]:
    """All runs, including the current one."""
    if trial is None or any(_same(run, trial.run) for run in runs):
        return tuple(runs)
    return (*runs, trial.run)


def _same(one: Run, other: Run) -> bool:
    """Whether two runs answer the same question."""
    return one.codec == other.codec and one.bound == other.bound and one.order == other.order


# Figures with their names.

def facts(data: Particles | Field, trial: Trial, plain: Run | None = None) -> tuple[Fact, ...]:
    """The figures of a trial, with the size without the model if it has one; none when it failed."""
    if trial.outcome is None:
        return (Fact("result", "failed", "bad", trial.run.error or ""),)
    run, size = trial.run, measures(data)[0]
    if not trial.archive.original_nbytes:
        return (Fact("result", "no finite values", meaning="none has an error; all come back bit for bit", group=SIZE),)
    shown = [
        _fact(run, "ratio", "ratio", short, SIZE, "x"),
        _fact(run, TITLES[size], size, short, SIZE),
        None if plain is None else _fact(plain, "without the model", size, short, SIZE),
        _worst(trial),
        _fact(run, "PSNR", "psnr", "{:.2f}".format, ERROR, "dB"),
        _fact(run, "SSIM", "ssim", "{:.6f}".format, ERROR),
        _fact(run, "rms distance", "rms_distance", "{:.4g}".format, ERROR),
        _corrected(run),
        _fact(run, "compress", "encode_mb_per_s", short, SPEED, "MB/s"),
        _fact(run, "decompress", "decode_mb_per_s", short, SPEED, "MB/s"),
    ]
    return tuple(fact for fact in shown if fact is not None)


def short(value: float) -> str:
    """Three digits, without an exponent where it can be done without.

    >>> short(8.1234), short(1086.7), short(2.5e7)
    ('8.12', '1,087', '2.5e+07')
    """
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


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
    """The largest error as a share of the bound. The archive has checked it, in exact arithmetic."""
    limit, run = trial.limit, trial.run
    meaning = "every value was decoded and compared with the original before there was an archive"
    if limit.value == 0:
        return Fact("largest error", "none allowed, none made", "good", meaning, group=ERROR)
    archive = trial.archive
    largest = float(archive.certificate[archive.data.layout.name].figures["largest_error"])
    kept: Severity = "good" if largest <= limit.value else "bad"
    share = f"{largest / limit.value:.1%} of the bound"
    return Fact("largest error", f"{largest:.4g}", kept, f"{meaning}: {run.bound.describe()}", share, ERROR)


def _corrected(run: Run) -> Fact:
    share = float(run["corrected"])
    text, unit = ("none", "") if share == 0 else (f"{100 * share:.3g}", "%")
    return Fact("corrected", text, meaning=MEANINGS["corrected"], unit=unit, group=ERROR)


# The table of earlier runs.

def table(data: Particles | Field, runs: Sequence[Run], current: Run | None) -> Table:
    """A row for each run, the current one emphasised."""
    size = measures(data)[0]
    columns = ("codec", "bound", TITLES[size], "ratio", "PSNR [dB]", "largest error", "remarks")
    rows = tuple(_row(run, size) for run in runs)
    chosen = next((place for place, run in enumerate(runs) if current is not None and _same(run, current)), None)
    return Table(columns, rows, chosen, action="show this run again")


def _row(run: Run, size: str) -> tuple[str, ...]:
    numbers = (
        f"{run[name]:.4g}".replace("inf", "∞") if name in run.figures else ""
        for name in (size, "ratio", "psnr", "max_error")
    )
    remarks = [run.error or "", "free order" if run.order == "free" else "", "measured before" if run.cached else ""]
    bound = "exact" if isinstance(run.bound, Exact) else f"{run.bound.kind} {run.bound.eb:.4g}"
    return run.label, bound, *numbers, ", ".join(remark for remark in remarks if remark)
