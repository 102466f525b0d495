"""`wb.sweep`: several codecs at several bounds, each run measured once: here, in other processes, or part by part.

The processes affect the times of the runs and no other figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from workbench import backend, codecs
from workbench.archive import document
from workbench.arguments import one_of, whole_number
from workbench.bounds.cache import Cache, Where, cache_at, key_of
from workbench.bounds.measure import measure
from workbench.bounds.parts import arrays_of, digest_of
from workbench.bounds.result import Sweep
from workbench.bounds.run import Metrics, Order, Question, Run
from workbench.bounds.sources import FieldInParts, Measured, opened, source_of
from workbench.bounds.workers import in_processes
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, PerSlice
from workbench.progress import Cancelled, Progress, Stoppable
from workbench.run.chunked_field import ChunkedField
from workbench.run.submission import submittable

WORTH_PROCESSES = 2**26   # bytes of all runs together, below which starting processes takes as long as the runs


@submittable
def sweep(
    data: Any,
    codecs: str | Codec | Iterable[str | Codec],
    bounds: Bound | Iterable[Bound],
    *,
    order: Order = "keep",
    metrics: Metrics = "quick",
    chunk_values: int | None = None,
    workers: int | None = None,
    client: Any = None,
    scratch: str | Path | None = None,
    cache: Where = None,
    progress: Progress | None = None,
    cancel: Stoppable | None = None,
) -> Sweep:
    """Compress the data with each codec at each bound, and measure size, time and quality.

    Sizes are those of the archive made by `wb.compress`, including the companion arrays of particles; `bits_per_particle`
    counts positions alone. `metrics` selects the figures of `wb.compare`: "quick" are errors, PSNR and SSIM, "full" adds
    spectra and halos. A codec that fails has a row with its `error`.

    `workers` is the number of processes for data in memory; 1 measures in this process. By default, large data use one
    process for each thread allowed by `OMP_NUM_THREADS`. Several processes have one thread each, so compare times only
    between runs with the same figure `threads`.

    Fields may be larger than memory, as for `wb.compare`: they are compressed, decoded and compared part by part, on the
    workers of a Dask `client` (the active one, for Dask and Zarr, if none is given). The archive and the decoded values of
    one run at a time, and the values of a Dask array, are in the `scratch` folder. `chunk_values` is that of `wb.compress`.

    Earlier measurements are reused: their rows are marked `cached`, and their times are from the earlier call. Rows are
    kept in memory or in the folder named by `cache`; `cache=False` measures everything again.

    `progress` is called after each run, with the completed share and the name of the run; for fields in parts, also during
    a run, with the step. If `cancel` is set, or after a
    keyboard interrupt, the rows so far are returned, and `complete` is False.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((32, 32), seed=1)
    >>> found = sweep(waves, ["pcodec", "prequantised"], [wb.Absolute(0.1), wb.Absolute(0.01)])
    >>> found
    Sweep(4 runs of 2 codecs)
    >>> [run.label for run in found.rows if run["max_error"] > 0]
    ['prequantised', 'prequantised']
    """
    plan = _plan(data, codecs, bounds, order, metrics, chunk_values, workers, client, scratch, cache, progress, cancel)
    found: dict[int, Run] = {}
    with suppress(KeyboardInterrupt), closing(_runs(plan)) as runs:
        for place, run in runs:
            found[place] = run
            plan.tell(len(found), str(run))
    return Sweep(tuple(found[place] for place in sorted(found)), missing=len(plan.questions) - len(found))


def iter_sweep(
    data: Any,
    codecs: str | Codec | Iterable[str | Codec],
    bounds: Bound | Iterable[Bound],
    *,
    order: Order = "keep",
    metrics: Metrics = "quick",
    chunk_values: int | None = None,
    workers: int | None = None,
    client: Any = None,
    scratch: str | Path | None = None,
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
    plan = _plan(data, codecs, bounds, order, metrics, chunk_values, workers, client, scratch, cache, progress, cancel)
    return _in_turn(plan)


def _in_turn(plan: _Plan) -> Iterator[Run]:
    with closing(_runs(plan)) as runs:
        for done, (_, run) in enumerate(runs, start=1):
            plan.tell(done, str(run))
            yield run


@dataclass(frozen=True)
class _Plan:
    """The checked arguments of a sweep."""

    data: Particles | Field | ChunkedField
    questions: tuple[Question, ...]
    workers: int | None
    client: Any
    scratch: str | Path | None
    cache: Cache | None
    progress: Progress | None
    cancelled: Callable[[], bool]

    def tell(self, done: int, what: str) -> None:
        """Tell how many runs are done."""
        if self.progress is not None:
            self.progress(done / len(self.questions), what)

    def step(self, done: int, name: str, share: float, what: str) -> None:
        """Tell the step that a field in parts is at, unless the sweep is to end."""
        if self.cancelled():
            raise Cancelled
        self.tell(done, f"{name}{what}")


def _runs(plan: _Plan) -> Generator[tuple[int, Run]]:
    """Each run with its place: first cached runs, then the others as they finish."""
    cache, unknown = plan.cache, list(enumerate(plan.questions))
    with suppress(Cancelled), opened(plan.data, plan.client, plan.scratch, partial(plan.step, 0, "")) as data:
        if cache is not None:
            digest = data.digest() if isinstance(data, FieldInParts) else digest_of(data)
            keys = [key_of(digest, question) for question in plan.questions]
            known = {place: run for place, key in enumerate(keys) if (run := cache.find(key)) is not None}
            yield from ((place, dataclasses.replace(run, cached=True)) for place, run in known.items())
            unknown = [(place, question) for place, question in unknown if place not in known]
        with closing(_measured(plan, data, unknown)) as runs:
            for place, run in runs:
                yield place, run if cache is None or run.error else cache.keep(keys[place], run)


def _measured(plan: _Plan, data: Measured, questions: Sequence[tuple[int, Question]]) -> Generator[tuple[int, Run]]:
    """The runs to measure, in this process, in others, or part by part."""
    if not isinstance(data, FieldInParts) and (workers := _workers(plan, data, len(questions))) > 1:
        yield from in_processes(data, questions, workers, plan.cancelled)
        return
    before = len(plan.questions) - len(questions)
    for done, (place, question) in enumerate(questions, start=before):
        if plan.cancelled():
            return
        if isinstance(data, FieldInParts):
            data = data.telling(partial(plan.step, done, f"{question}: "))
        yield place, measure(data, question, plan.cancelled)


def _workers(plan: _Plan, data: Particles | Field, runs: int) -> int:
    if plan.workers is not None:
        return min(plan.workers, runs)
    work = runs * sum(values.nbytes for values in arrays_of(data).values())
    return 1 if work < WORTH_PROCESSES else min(backend.threads(), runs)


# Arguments are checked before any work is done.

def _plan(
    data: Any, given_codecs: Any, given_bounds: Any, order: Any, metrics: Any, chunk_values: int | None, workers: Any,
    client: Any, scratch: str | Path | None, cache: Where, progress: Progress | None, cancel: Stoppable | None,
) -> _Plan:
    checked = source_of(data, client)
    one_of("order", order, get_args(Order))
    if order == "free" and not isinstance(checked, Particles):
        raise WorkbenchError("order='free' is for particles; got a field, whose values have fixed positions")
    one_of("metrics", metrics, get_args(Metrics))
    count = None if workers is None else whole_number("workers", workers, least=1)
    if count is not None and isinstance(checked, ChunkedField):
        raise WorkbenchError("workers counts processes for data in memory; a field in parts is measured where client says")
    described = checked.described if isinstance(checked, ChunkedField) else checked
    several = _several("bounds", given_bounds)
    bounds = [_bound(bound).for_data(described) for bound in several]
    questions = questions_of(given_codecs, bounds, order, metrics, chunk_values)
    go_on = (lambda: False) if cancel is None else cancel.is_set
    return _Plan(checked, tuple(questions), count, client, scratch, cache_at(cache), progress, go_on)


def questions_of(
    given_codecs: Any, given_bounds: Any, order: Order = "keep", metrics: Metrics = "quick",
    chunk_values: int | None = None,
) -> list[Question]:
    """Each codec at each bound, once."""
    chosen = [_codec(given) for given in _several("codecs", given_codecs)]
    bounds = bounds_of(given_bounds)
    return [Question(codec, bound, order, metrics, chunk_values) for codec in _different(chosen) for bound in bounds]


def bounds_of(given: Any) -> list[Bound]:
    """Each bound once."""
    return list(dict.fromkeys(_bound(each) for each in _several("bounds", given)))


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
    if isinstance(given, PerSlice):
        raise WorkbenchError(f"bounds must each be one for all values; got {given!r}: only wb.compress takes it")
    return given


def _different(given: list[Codec]) -> list[Codec]:
    """Each codec once, in order; compared, not hashed, because codecs may have lists as options."""
    return [value for place, value in enumerate(given) if value not in given[:place]]
