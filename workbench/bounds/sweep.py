"""`wb.sweep`: several codecs at several bounds, each run measured once, in this process or in several others.

The processes affect the times of the runs and no other figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from workbench import backend, codecs
from workbench.archive import document
from workbench.arguments import whole_number
from workbench.bounds.cache import Cache, Where, cache_at, key_of
from workbench.bounds.measure import Cancelled, measure
from workbench.bounds.parts import arrays_of, digest_of
from workbench.bounds.result import Sweep
from workbench.bounds.run import Metrics, Order, Question, Run
from workbench.bounds.workers import in_processes
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.data.labelled import is_labelled
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound

WORTH_PROCESSES = 2**26   # bytes of all runs together, below which starting processes takes as long as the runs

Data = Particles | Field | np.ndarray
Progress = Callable[[float, str], object]


class Stoppable(Protocol):
    """A cancellation flag, for instance a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether to stop."""


def sweep(
    data: Data,
    codecs: str | Codec | Iterable[str | Codec],
    bounds: Bound | Iterable[Bound],
    *,
    order: Order = "keep",
    metrics: Metrics = "quick",
    workers: int | None = None,
    cache: Where = None,
    progress: Progress | None = None,
    cancel: Stoppable | None = None,
) -> Sweep:
    """Compress the data with each codec at each bound, and measure size, time and quality.

    Sizes are those of the archive made by `wb.compress`, including the companion arrays of particles; `bits_per_particle`
    counts positions alone. `metrics` selects the figures of `wb.compare`: "quick" are errors, PSNR and SSIM, "full" adds
    spectra and halos. A codec that fails has a row with its `error`.

    `workers` is the number of processes; 1 measures in this process. By default, large data use one process for each
    thread allowed by `OMP_NUM_THREADS`. Several processes have one thread each, so compare times only between runs with the
    same figure `threads`.

    Earlier measurements are reused: their rows are marked `cached`, and their times are from the earlier call. Rows are
    kept in memory or in the folder named by `cache`; `cache=False` measures everything again.

    `progress` is called after each run, with the completed share and the name of the run. If `cancel` is set, or after a
    keyboard interrupt, the rows so far are returned, and `complete` is False.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((32, 32), seed=1)
    >>> found = sweep(waves, ["pcodec", "prequantised"], [wb.Absolute(0.1), wb.Absolute(0.01)])
    >>> found
    Sweep(4 runs of 2 codecs)
    >>> [run.label for run in found.rows if run["max_error"] > 0]
    ['prequantised', 'prequantised']
    """
    plan = _plan(data, codecs, bounds, order, metrics, workers, cancel)
    found: dict[int, Run] = {}
    with suppress(KeyboardInterrupt), closing(_runs(plan, cache_at(cache))) as runs:
        for place, run in runs:
            found[place] = run
            _report(progress, len(found) / len(plan.questions), run)
    return Sweep(tuple(found[place] for place in sorted(found)), missing=len(plan.questions) - len(found))


def iter_sweep(
    data: Data,
    codecs: str | Codec | Iterable[str | Codec],
    bounds: Bound | Iterable[Bound],
    *,
    order: Order = "keep",
    metrics: Metrics = "quick",
    workers: int | None = None,
    cache: Where = None,
    progress: Progress | None = None,
    cancel: Stoppable | None = None,
) -> Iterator[Run]:
    """The rows of `sweep`, each as soon as it is measured. Closing the iterator ends the remaining runs.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((32, 32), seed=1)
    >>> [run["limit"] for run in iter_sweep(waves, "pcodec", [wb.Absolute(0.5), wb.Absolute(0.25)])]
    [0.5, 0.25]
    """
    plan = _plan(data, codecs, bounds, order, metrics, workers, cancel)
    return _in_turn(plan, cache_at(cache), progress)


def _in_turn(plan: _Plan, cache: Cache | None, progress: Progress | None) -> Iterator[Run]:
    with closing(_runs(plan, cache)) as runs:
        for done, (_, run) in enumerate(runs, start=1):
            _report(progress, done / len(plan.questions), run)
            yield run


@dataclass(frozen=True)
class _Plan:
    """The checked arguments of a sweep."""

    data: Particles | Field
    questions: tuple[Question, ...]
    workers: int | None
    cancelled: Callable[[], bool]


def _runs(plan: _Plan, cache: Cache | None) -> Generator[tuple[int, Run]]:
    """Each run with its place: first cached runs, then the others as they finish."""
    digest = "" if cache is None else digest_of(plan.data)
    keys = [] if cache is None else [key_of(digest, question) for question in plan.questions]
    unknown = []
    for place, question in enumerate(plan.questions):
        known = None if cache is None else cache.find(keys[place])
        if known is None:
            unknown.append((place, question))
        else:
            yield place, dataclasses.replace(known, cached=True)
    with closing(_measured(plan, unknown)) as runs:
        for place, run in runs:
            yield place, run if cache is None or run.error else cache.keep(keys[place], run)


def _measured(plan: _Plan, questions: Sequence[tuple[int, Question]]) -> Generator[tuple[int, Run]]:
    """The runs to measure, in this process or in others."""
    workers = _workers(plan, len(questions))
    if workers > 1:
        yield from in_processes(plan.data, questions, workers, plan.cancelled)
        return
    for place, question in questions:
        try:
            if plan.cancelled():
                return
            run = measure(plan.data, question, plan.cancelled)
        except Cancelled:
            return
        yield place, run


def _workers(plan: _Plan, runs: int) -> int:
    if plan.workers is not None:
        return min(plan.workers, runs)
    work = runs * sum(values.nbytes for values in arrays_of(plan.data).values())
    return 1 if work < WORTH_PROCESSES else min(backend.threads(), runs)


def _report(progress: Progress | None, share: float, run: Run) -> None:
    if progress is not None:
        progress(share, str(run))


# Arguments are checked before any work is done.

def _plan(
    data: Any, given_codecs: Any, given_bounds: Any, order: Any, metrics: Any, workers: Any, cancel: Stoppable | None
) -> _Plan:
    checked = require_data(data)
    if hasattr(order, "dtype") or order not in ("keep", "free"):
        raise WorkbenchError(f"order must be 'keep' or 'free'; got {order!r}")
    if order == "free" and isinstance(checked, Field):
        raise WorkbenchError("order='free' is for particles; got a field, whose values have fixed positions")
    if hasattr(metrics, "dtype") or metrics not in ("quick", "full"):
        raise WorkbenchError(f"metrics must be 'quick' or 'full'; got {metrics!r}")
    count = None if workers is None else whole_number("workers", workers, least=1)
    several = _several("bounds", given_bounds)
    bounds = [bound.for_data(checked) if isinstance(bound, Bound) else bound for bound in several]
    questions = questions_of(given_codecs, bounds, order, metrics)
    return _Plan(checked, tuple(questions), count, (lambda: False) if cancel is None else cancel.is_set)


def questions_of(
    given_codecs: Any, given_bounds: Any, order: Order = "keep", metrics: Metrics = "quick"
) -> list[Question]:
    """Each codec at each bound, once."""
    chosen = [_codec(given) for given in _several("codecs", given_codecs)]
    return [Question(codec, bound, order, metrics) for codec in _different(chosen) for bound in bounds_of(given_bounds)]


def bounds_of(given: Any) -> list[Bound]:
    """Each bound once."""
    return _different([_bound(each) for each in _several("bounds", given)])


def require_data(given: Any) -> Particles | Field:
    """Data that can be compressed in this process; an array becomes a field, and anything else is an error."""
    data = given if isinstance(given, Particles | Field) else None
    if isinstance(given, np.ndarray) or is_labelled(given):
        data = Field(given)
    if data is None:
        kind = type(given).__name__
        raise WorkbenchError(f"data must be Particles, a Field or a NumPy array; got {kind}: open files with wb.open(...)")
    if any(backend.on_device(values) for values in arrays_of(data).values()):
        raise WorkbenchError("data of a sweep must be NumPy arrays; got CuPy: copy them with .get()")
    return data


def _several(name: str, given: Any) -> list[Any]:
    if isinstance(given, str) or getattr(given, "ndim", 1) == 0 or not isinstance(given, Iterable):
        return [given]
    if not (several := list(given)):
        raise WorkbenchError(f"{name} must name at least one; got none")
    return several


def _codec(given: Any) -> Codec:
    """A codec that its description reproduces, which other processes require."""
    chosen = given if isinstance(given, Codec) else codecs.get(given)
    described = document.plain(chosen.to_dict(), f"the options of codec {chosen.id}")
    if codecs.from_dict(described) != chosen:
        raise WorkbenchError(f"a codec must equal the one its description makes; got {given!r}, described as {described}")
    return chosen


def _bound(given: Any) -> Bound:
    if not isinstance(given, Bound):
        raise WorkbenchError(
            f"bounds must be wb.Absolute(...), wb.Relative(...) or wb.PointwiseRelative(...); got {given!r}, "
            "which is neither absolute nor relative"
        )
    return given


def _different(given: list[Any]) -> list[Any]:
    """The items without duplicates, in order; compared, not hashed, because codecs may have lists as options."""
    return [value for place, value in enumerate(given) if value not in given[:place]]
