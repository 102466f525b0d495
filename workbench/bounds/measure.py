"""Measuring one codec at one bound: compress, decompress, compare, and keep the figures.

A sweep keeps only the figures and drops the decoded data; a panel shows these, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from workbench import backend
from workbench.archive import Archive, compress
from workbench.backend import Array
from workbench.bounds.run import Question, Run
from workbench.bounds.sources import FieldInParts, Measured
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit
from workbench.metrics import Report, compare
from workbench.metrics.report import Figure
from workbench.progress import Cancelled, Progress


@dataclass(frozen=True, eq=False)
class Outcome:
    """The decoded data of a run: `decoded[i]` corresponds to `original[order[i]]`, or to `original[i]` without an order.

    Of a field in parts, the files of the archive and the decoded data are gone when the run is there.
    """

    archive: Archive
    decoded: Any   # of the kind of the original
    order: Array | None
    report: Report


def measure(data: Measured, asked: Question, cancelled: Callable[[], bool] = lambda: False) -> Run:
    """The run that answers a question. Any failure becomes its `error`, so that other runs can continue.

    `cancelled` is called after every chunk; of a field in parts, its progress is told, too.
    """

    def go_on(share: float, what: str) -> None:
        if cancelled():
            raise Cancelled
        if isinstance(data, FieldInParts) and data.executor.progress is not None:
            data.executor.progress(share, what)

    return observe(data, asked, go_on)[0]


def observe(data: Measured, asked: Question, progress: Progress) -> tuple[Run, Outcome | None]:
    """The run that answers a question, and its decoded data; None when it failed.

    `progress` is called after every chunk. Exceptions of `progress` propagate; all others become the run's `error`.
    """
    objections: list[BaseException] = []

    def told(share: float, what: str) -> None:
        try:
            progress(share, what)
        except BaseException as objection:
            objections.append(objection)
            raise

    try:
        return observed(data, asked, told)
    except Exception as error:
        if any(error is objection for objection in objections):
            raise
        sentence = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
        return asked.unanswered(sentence), None


def observed(
    data: Measured, asked: Question, progress: Progress | None = None, keep: Any = (), velocities: Bound | None = None
) -> tuple[Run, Outcome]:
    """The run that answers a question, with further options of `wb.compress`; failures are raised."""
    if isinstance(data, FieldInParts):
        with data.trial(progress) as parts:
            return _timed(parts.field, asked, partial(parts.compressed, keep=keep), parts.decoded, **parts.where)

    def compressed(asked: Question) -> Archive:
        more: dict[str, Any] = {"velocities": velocities, "chunk_values": asked.chunk_values}
        return compress(data, asked.bound, asked.codec, keep, asked.order, progress, **more)

    return _timed(data, asked, compressed, Archive.decompress)


def _timed(
    data: Any, asked: Question, compressed: Callable[[Question], Archive], decoded: Callable[[Archive], Any], **where: Any
) -> tuple[Run, Outcome]:
    start = time.perf_counter()
    archive = compressed(asked)
    middle = time.perf_counter()
    back = decoded(archive)
    end = time.perf_counter()
    order = archive.permutation(data) if isinstance(data, Particles) and asked.order == "free" else None
    report = compare(data, back, order=order, quick=asked.metrics == "quick", **where)
    run = _answer(asked, archive, report, middle - start, end - middle)
    return run, Outcome(archive, back, order, report)


def _answer(asked: Question, archive: Archive, report: Report, encode: float, decode: float) -> Run:
    """The run of this archive and its comparison with the original; the times are in seconds."""
    figures = {**_sizes(archive), **_times(archive, encode, decode), **report.figures}
    return asked.answered(figures, _notes(archive, report))


def _sizes(archive: Archive) -> dict[str, Figure]:
    promise = archive.certificate[archive.data.layout.name]
    assert isinstance(promise.limit, Limit)   # sweeps take no bounds of slices
    checked = promise.figures
    return {
        "limit": promise.limit.value,
        "nbytes": archive.nbytes,
        "chunk_nbytes": archive.data.nbytes,
        "documents_nbytes": archive.nbytes - sum(stored.nbytes for stored in archive.arrays.values()),
        "ratio": archive.ratio,
        "bits_per_value": archive.bits_per_value,
        **archive.content.figures(archive),
        "corrected": checked["corrected"] / checked["values"],
        "chunks": checked["chunks"],
        "chunks_stored_exactly": sum(checked["chunks_stored_exactly"].values()),
    }


def _times(archive: Archive, encode: float, decode: float) -> dict[str, Figure]:
    megabytes = archive.original_nbytes / 1e6
    return {
        "encode_seconds": encode,
        "decode_seconds": decode,
        "encode_mb_per_s": megabytes / encode,
        "decode_mb_per_s": megabytes / decode,
        "threads": backend.threads(),
    }


def _notes(archive: Archive, report: Report) -> tuple[str, ...]:
    """Remarks on the figures: why chunks are stored exactly, and which comparisons were impossible."""
    checked = archive.certificate[archive.data.layout.name].figures
    reasons = checked["chunks_stored_exactly"].items()
    stored = [f"{count:,} of {checked['chunks']:,} chunks stored exactly, because {reason}" for reason, count in reasons]
    return (*stored, *report.notes)
