"""`wb.distributed.sweep`: many codecs at many bounds on a field that does not fit into memory. Nothing is written."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.archive.chunk import EncodedChunk, decode_chunk, exact_chunk
from workbench.archive.encoding import encode_values
from workbench.archive.fields import (
    Chunk,
    Plan,
    arrays_of,
    codec_for,
    mask_layout,
    notes_on_survey,
    plan_for,
    surveyed,
    weightless,
)
from workbench.archive.request import Request, documents_for
from workbench.archive.store import MemoryStore
from workbench.archive.survey import Survey
from workbench.bounds import Run, Sweep
from workbench.bounds.measure import answer
from workbench.bounds.run import Question
from workbench.bounds.sweep import bounds_of, questions_of
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.metrics import Errors, pointwise
from workbench.metrics.compare import report_of_errors
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, Progress
from workbench.subdomains.sources import scratch_folder

LEFT_OUT = "no ssim, spectrum or histogram in a sweep on a cluster: wb.distributed.compare has them"


def sweep(
    source: Any, codecs: Any, bounds: Any, *, client: Any = None, chunk_values: int | None = None,
    scratch: str | Path | None = None, progress: Progress | None = None,
) -> Sweep:
    """Size and quality of each codec at each bound, chunk by chunk: `wb.sweep` for fields that do not fit into memory.

    Sizes are those of the archives that `wb.compress` would write; nothing is written. A chunk is read once for
    all codecs and bounds whose chunks have the same shape. Times are the sums over all chunks. Nothing is cached.
    `progress` is called with the completed share of each step and its name.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((32, 32), seed=1)
    >>> sweep(waves, ["pcodec", "prequantised"], [wb.Absolute(0.1), wb.Absolute(0.01)])
    Sweep(4 runs of 2 codecs)
    """
    field = ChunkedField.of(source)
    questions = questions_of(codecs, [bound.for_data(field.described) for bound in bounds_of(bounds)])
    executor = executor_of(client, progress, source)
    with scratch_folder(scratch, executor) as folder:
        executor = executor.within(folder)
        field = field.reachable(executor, folder, "field")
        return answered(questions, field, surveyed(field, executor), executor, chunk_values)


def answered(
    questions: Sequence[Question], field: ChunkedField, known: Survey, executor: Executor, chunk_values: int | None
) -> Sweep:
    """The runs that answer these questions about a field of which the survey is known."""
    runs: dict[int, Run] = {}
    plans: dict[tuple[int, ...], dict[int, Plan]] = {}
    for place, question in enumerate(questions):
        request = Request(question.bound, question.codec, chunk_values=chunk_values)
        try:
            codec, limit = codec_for(field, request), question.bound.limit(known.ends)
            plan = plan_for(field, codec, request, limit, executor)
            plans.setdefault(plan.layout.chunk_shape, {})[place] = plan
        except WorkbenchError as error:
            runs[place] = question.unanswered(str(error))
    for shape, several in plans.items():
        step = functools.partial(_tried, list(several.values()), known.masked or field.mask is not None)
        trials = map_parts(executor, "try-codecs", step, shape, [field])
        for place, of_chunks in zip(several, zip(*trials, strict=True), strict=True):
            runs[place] = _run_of(questions[place], field, several[place], of_chunks, known)
    return Sweep(tuple(runs[place] for place in range(len(questions))))


@dataclass(frozen=True)
class Trial:
    """A chunk with one codec and bound: its sizes, errors and times in seconds; or why it failed."""

    chunk: Chunk | None = None
    nbytes: int = 0
    mask_nbytes: int = 0
    errors: Errors = dataclasses.field(default_factory=Errors)
    encode: float = 0.0
    decode: float = 0.0
    failure: str | None = None


class Weighed(MemoryStore):
    """An archive of which only the documents are there, and the sizes of the chunks."""

    def __init__(self, documents: Mapping[str, bytes], chunks: Mapping[str, int]) -> None:
        super().__init__(documents)
        self._sizes |= chunks


def _tried(plans: Sequence[Plan], masked: bool, number: int, part: Field) -> list[Trial]:
    """The trials of all plans with one chunk."""
    hidden = None if not masked else np.zeros(part.shape, bool) if part.mask is None else part.mask
    mask = None if hidden is None else exact_chunk(hidden)
    return [_trial(plan, part, hidden, mask) for plan in plans]


def _trial(plan: Plan, part: Field, hidden: np.ndarray | None, mask: EncodedChunk | None) -> Trial:
    """One codec at one bound, on one chunk; any failure is noted, so that the others can continue."""
    try:
        start = time.perf_counter()
        ready = encode_values(plan.task(), part.values, hidden)
        middle = time.perf_counter()
        data = ready.data.data
        decoded = decode_chunk(data, plan.layout.configuration, plan.layout.dtype, plan.codec.id, isolate=False)
        end = time.perf_counter()
        errors = pointwise(part, Field(decoded, mask=part.mask))
    except Exception as error:
        return Trial(failure=str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}")
    weights = len(data), 0 if mask is None else len(mask.data)
    return Trial(weightless(Chunk(ready, mask, None)), *weights, errors, middle - start, end - middle)


def _run_of(question: Question, field: ChunkedField, plan: Plan, trials: Sequence[Trial], known: Survey) -> Run:
    """The run that these trials of all chunks make."""
    if failures := [trial.failure for trial in trials if trial.failure is not None]:
        return question.unanswered(failures[0])
    chunks = [trial.chunk for trial in trials if trial.chunk is not None]
    mask = mask_layout(plan, chunks[0].mask is not None)
    try:
        arrays = arrays_of(plan, mask, chunks)
    except WorkbenchError as error:
        return question.unanswered(str(error))
    sizes = {plan.layout.chunk_key(i): t.nbytes for i, t in zip(plan.layout.chunk_indices(), trials, strict=True)}
    if mask is not None:
        sizes |= {mask.chunk_key(i): t.mask_nbytes for i, t in zip(mask.chunk_indices(), trials, strict=True)}
    notes = notes_on_survey(field, plan.request, known)
    documents = documents_for(arrays, plan.described(field), plan.codec, field.metadata, notes, plan.request.choice)
    archive = Archive(Weighed(documents, sizes))
    report = report_of_errors(repr(field), sum((trial.errors for trial in trials), Errors()), None, LEFT_OUT)
    encode, decode = (sum(getattr(trial, step) for trial in trials) for step in ("encode", "decode"))
    return answer(question, archive, report, encode, decode)
