"""Everything the bounds panel shows, as a fast, pure function of state and results."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from workbench.bounds.run import Run, label_of
from workbench.data import Field, Particles
from workbench.data.readers.leaving import left_out
from workbench.guarantees import Exact
from workbench.lab.bounds_panel.figures import TITLES, answer, facts
from workbench.lab.bounds_panel.forecast import Forecast
from workbench.lab.bounds_panel.goals import Answer
from workbench.lab.bounds_panel.number_texts import short
from workbench.lab.bounds_panel.pictures import note, pictures
from workbench.lab.bounds_panel.plots import charts, measures
from workbench.lab.bounds_panel.state import KINDS, BoundsState
from workbench.lab.bounds_panel.trial import Spectra, Trial
from workbench.lab.description import Shown, Table
from workbench.lab.grid import grid_of

BESIDE = ("values", "rate-distortion")   # charts that stand beside the pictures: of a line, its values alone


def draw(
    data: Particles | Field,
    state: BoundsState,
    trial: Trial | None = None,
    runs: Sequence[Run] = (),
    spectra: Spectra | None = None,
    forecast: Forecast | None = None,
    search: Answer | None = None,
    plain: Run | None = None,
    others: Sequence[Run] = (),
) -> Shown:
    """The pictures, charts and figures of a trial and of earlier runs; missing results leave parts empty, in the same form.

    `search` is the answer of a search, `plain` the run without the model; `others` are runs of other codecs at this bound.

    >>> from workbench.data.synthetic import gaussian_field
    >>> waves = gaussian_field((32, 32), seed=1)
    >>> shown = draw(waves, BoundsState.for_(waves))
    >>> [picture.title for picture in shown.pictures], list(shown.charts)
    (['original'], [])
    """
    tried = _with_current(runs, trial)
    drawn = charts(data, state, trial, tried, spectra, forecast)
    line = isinstance(data, Field) and len(data.shape) == 1
    return Shown(
        answer=() if trial is None else answer(data, trial),
        pictures=pictures(data, state, trial),
        charts=drawn,
        beside=BESIDE[:1] if line else BESIDE[1:],
        remark=smallest_codec(data, trial, others),
        facts=() if trial is None else facts(data, trial, plain),
        tables={"tried so far": table(data, tried, None if trial is None else trial.run)},
        note=_note(data, state, trial, spectra, search),
        settings=settings(data, state),
    )


def settings(data: Particles | Field, state: BoundsState) -> dict[str, str]:
    """The choices in words, for a report.

    >>> settings(Field([0.0, 1.0]), BoundsState("zfp", eb=0.02))
    {'codec': 'zfp', 'error bound': 'absolute 0.02'}
    """
    kind = next(words for words, kind in KINDS.items() if kind == state.kind)
    chosen = {"codec": label_of(state.given), "error bound": "exact" if state.exact else f"{kind} {state.eb:.6g}"}
    if isinstance(data, Particles):
        chosen["order"] = "free" if state.order == "free" else "kept"
        return chosen | ({"seen": f"along {'xyz'[state.axis]}"} if data.dimensions == 3 else {})
    if state.model is not None:
        chosen["model"] = repr(state.model)
    grid = grid_of(data)
    if len(grid) >= 3:
        across = grid[-3:][state.axis]
        number = f"{state.index} of {across.count} across {across.name}"
        chosen["slice"] = across.where(state.index) if across.texts else number
    return chosen | ({"time": grid[0].where(state.time, time=True)} if len(grid) == 4 else {})


def _note(
    data: Particles | Field, state: BoundsState, trial: Trial | None, spectra: Spectra | None, search: Answer | None
) -> str:
    if trial is not None and trial.run.error:
        return ""   # the answer says it
    missing = left_out(data)
    parts = [note(data, state), f"not among these data: {', '.join(missing)}" if missing else ""]
    if trial is not None and not trial.limit.value > 0:
        parts.append("no histogram of errors: the bound comes to zero, so every value is exact")
    if spectra is not None and spectra.why_not:
        parts.append(f"no spectrum: {spectra.why_not}")
    parts += [] if trial is None else [text for text in trial.run.notes if "stored exactly" in text]
    parts += [] if trial is None or trial.outcome is None else larger_than_data(trial)
    parts += [] if search is None else search.notes
    return "; ".join(part for part in parts if part)


def smallest_codec(data: Particles | Field, trial: Trial | None, others: Sequence[Run]) -> str:
    """Which codec needs the fewest bits within the bound, once codecs were compared; those that failed do not count."""
    if trial is None or trial.outcome is None or not others:
        return ""
    size = measures(data)[0]
    runs = [trial.run, *(run for run in others if not run.error)]
    best = min(runs, key=lambda run: float(run[size]))
    unit, bits = TITLES[size].replace(" per ", "/"), [short(float(run[size])) for run in (best, trial.run)]
    smallest = f"{best.label} is the smallest of {len(runs)} codecs within this bound: {bits[0]} {unit}"
    return smallest if best is trial.run else f"{smallest}; {trial.run.label}: {bits[1]}"


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


# The table of earlier runs.

def table(data: Particles | Field, runs: Sequence[Run], current: Run | None) -> Table:
    """A row for each run, the current one emphasised."""
    size = measures(data)[0]
    columns = ("codec", "bound", TITLES[size], "ratio", "PSNR [dB]", "largest error", "remarks")
    rows = tuple(_row(run, size) for run in runs)
    chosen = next((place for place, run in enumerate(runs) if current is not None and _same(run, current)), None)
    return Table(columns, rows, chosen, action="show this run again")


@functools.lru_cache(maxsize=1024)   # a slider adds one run at a time
def _row(run: Run, size: str) -> tuple[str, ...]:
    numbers = (
        short(float(run[name]), 4) if name in run.figures else ""
        for name in (size, "ratio", "psnr", "max_error")
    )
    remarks = [run.error or "", "free order" if run.order == "free" else "", "measured before" if run.cached else ""]
    bound = "exact" if isinstance(run.bound, Exact) else f"{run.bound.kind} {run.bound.eb:.4g}"
    return run.label, bound, *numbers, ", ".join(remark for remark in remarks if remark)
