"""Measuring one codec at one bound: compress, decompress, compare, and keep the figures."""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench import backend
from workbench.archive import Archive, compress
from workbench.bounds.run import Question, Run
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.metrics import Report, compare
from workbench.metrics.report import Figure


class Cancelled(Exception):
    """Nobody waits for the result any more."""


def measure(data: Particles | Field, asked: Question, cancelled: Callable[[], bool] = lambda: False) -> Run:
    """The run that answers a question. Whatever goes wrong becomes its `error`: other runs need not suffer.

    `cancelled` is asked after every chunk.
    """

    def go_on(share: float, what: str) -> None:
        if cancelled():
            raise Cancelled

    try:
        start = time.perf_counter()
        archive = compress(data, asked.bound, asked.codec, order=asked.order, progress=go_on)
        middle = time.perf_counter()
        decoded = archive.decompress()
        end = time.perf_counter()
        places = archive.permutation(data) if isinstance(data, Particles) and asked.order == "free" else None
        report = compare(data, decoded, order=places, quick=asked.metrics == "quick")
    except Cancelled:
        raise
    except WorkbenchError as error:
        return asked.unanswered(str(error))
    except Exception as error:
        return asked.unanswered(f"{type(error).__name__}: {error}")
    figures = {**_sizes(archive), **_times(archive, middle - start, end - middle), **report.figures}
    return asked.answered(figures, _notes(archive, report))


def _sizes(archive: Archive) -> dict[str, Figure]:
    promise = archive.certificate[archive.data.layout.name]
    assert promise.limit is not None
    checked = promise.figures
    per_particle = {"bits_per_particle": archive.bits_per_particle} if archive.kind == "particles" else {}
    return {
        "limit": promise.limit.value,
        "nbytes": archive.nbytes,
        "ratio": archive.ratio,
        "bits_per_value": archive.bits_per_value,
        **per_particle,
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
    """What the figures do not say: why chunks are stored exactly, and what could not be compared."""
    checked = archive.certificate[archive.data.layout.name].figures
    reasons = checked["chunks_stored_exactly"].items()
    stored = [f"{count:,} of {checked['chunks']:,} chunks stored exactly, because {reason}" for reason, count in reasons]
    return (*stored, *report.notes)
