"""The compressions of a search for a bound, the best that meets the target, and the answer that they amount to."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.bounds.as_code import bound_code
from workbench.bounds.measure import observed
from workbench.bounds.result import Sweep
from workbench.bounds.run import Order, Question, Run
from workbench.bounds.sources import FieldInParts, Measured
from workbench.bounds.tuning.attempt import Attempt, Original
from workbench.bounds.tuning.choice import Candidate
from workbench.bounds.tuning.found import Found
from workbench.bounds.tuning.limits import Limits
from workbench.bounds.tuning.several import All
from workbench.bounds.tuning.targets import PSNR
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.metrics import Report
from workbench.metrics.errors import psnr
from workbench.progress import Progress

LEAST_STEP = 1e-4     # by which a bound of velocities is tightened, as a share


@dataclass(frozen=True)
class Options:
    """The arguments of `wb.compress` that all attempts share."""

    order: Order
    velocities: Bound | None
    keep: tuple[Any, ...]
    chunk_values: int | None = None

    def as_code(self) -> str:
        """The arguments as Python."""
        texts = [f', order="{self.order}"'] if self.order != "keep" else []
        texts += [f", velocities={bound_code(self.velocities)}"] if self.velocities is not None else []
        texts += [f", keep={[_Call(kept) for kept in self.keep]!r}"] if self.keep else []
        texts += [f", chunk_values={self.chunk_values}"] if self.chunk_values is not None else []
        return "".join(texts)


@dataclass(frozen=True)
class _Call:
    promise: Any

    def __repr__(self) -> str:
        return f"wb.{self.promise!r}"


@dataclass(frozen=True, eq=False)
class Success:
    """An attempt that met the target, and the arguments that it was made with."""

    run: Run
    archive: Archive | None   # of a field in parts, none is kept
    report: Report
    options: Options


@dataclass
class Search:
    """The attempts of a search, and the best of them."""

    target: All
    original: Original
    candidate: Candidate
    limits: Limits
    options: Options
    most_runs: int
    progress: Progress | None
    watch: Callable[[Run], object]
    aimed: PSNR | None = None   # of velocities, which have a bound already
    runs: list[Run] = field(default_factory=list)
    best: Success | None = None
    met: list[Success] = field(default_factory=list)   # all that meet a target that is not in order
    by_chance: int = 0   # how many of those were forgotten
    certain: bool = True   # whether finer bounds are known to meet the target, too

    def forget(self, failed: float) -> None:
        """Count what meets the target at this bound or larger ones as chance: the largest below is the best then."""
        left = [each for each in self.met if each.run.bound.eb < failed]
        self.by_chance += len(self.met) - len(left)
        self.met, self.best = left, max(left, key=lambda each: each.run.bound.eb, default=None)

    @property
    def own(self) -> list[Run]:
        """The runs of this codec: the list is shared with searches of others, which are counted together."""
        codec = self.candidate.codec.to_dict()
        return [run for run in self.runs if dict(run.codec) == codec]

    @property
    def nearest(self) -> Run:
        """The run of this codec that meets the target best, or comes nearest."""
        return self.best.run if self.best else max(self.own, key=lambda run: self.target.room_of(run.figures))

    def with_codec(self, candidate: Candidate) -> Search:
        """A search with another codec, which counts its compressions with those of this one."""
        return dataclasses.replace(self, candidate=candidate, best=None, met=[], by_chance=0, certain=True)

    @property
    def exhausted(self) -> bool:
        """Whether no more compressions are allowed."""
        return len(self.runs) >= self.most_runs

    def attempt(self, bound: Bound, better: Callable[[Run, Run], bool]) -> Run:
        """Compress, decompress and measure; keeps the archive if it meets the target and is better than the best so far."""
        options, data = self.options, self.original.data
        question = Question(self.candidate.codec, bound, options.order, chunk_values=options.chunk_values)
        run, outcome = observed(data, question, self._progress_of(bound), options.keep, options.velocities)
        report = outcome.report
        figures = self.target.measured(Attempt(self.original, outcome.archive, outcome.decoded, outcome.order, report))
        if self.aimed is not None:
            figures["velocity_psnr"] = _velocity_psnr(data, report)
            if (short := self.aimed.least - figures["velocity_psnr"]) > 0 and not self.exhausted:
                return self._again(bound, better, short)
        run = dataclasses.replace(run, figures={**run.figures, **figures})
        if math.isnan(room := self.target.room_of(figures)):
            why = "; ".join(report.notes) or "the figure is not a number"
            raise WorkbenchError(f"{self.target} cannot be measured on {data!r}: {why}")
        self.runs.append(run)
        kept = self.aimed is None or figures["velocity_psnr"] >= self.aimed.least
        if room >= 0 and kept:
            success = Success(run, None if isinstance(data, FieldInParts) else outcome.archive, report, self.options)
            if self.best is None or better(run, self.best.run):
                self.best = success
            if not self.target.in_order:
                self.met.append(success)
        self.watch(run)
        return run

    def _again(self, bound: Bound, better: Callable[[Run, Run], bool], short: float) -> Run:
        """The attempt with tighter velocities: in other chunks than alone, some codecs miss their target by a hair."""
        assert self.options.velocities is not None
        tighter = type(self.options.velocities)(self.options.velocities.eb * 10 ** (-short / 20) * (1 - LEAST_STEP))
        self.options = dataclasses.replace(self.options, velocities=tighter)
        self.most_runs -= 1
        return self.attempt(bound, better)

    def result(self, *notes: str) -> Found:
        """The result."""
        best, options = self.best, self.options if self.best is None else self.best.options
        kept = (best.run.bound, best.archive, best.report) if best else None
        remarks, runs = (*self.candidate.notes, *notes), Sweep(tuple(self.runs))
        codec = self.candidate.codec
        return Found(self.target, codec, self.nearest, runs, remarks, options.as_code(), kept, options.velocities)

    def _progress_of(self, bound: Bound) -> Progress | None:
        progress = self.progress
        if progress is None:
            return None
        number = len(self.runs) + 1
        return lambda share, what: progress(None if share is None else share, f"trial {number}, {bound!r}: {what}")


def _velocity_psnr(data: Measured, report: Report) -> float:
    """The PSNR of velocities: the peak is their range."""
    assert isinstance(data, Particles)
    values = np.asarray(data.velocities)
    return psnr(float(values.max()) - float(values.min()), float(report["velocity_rms_error"]))
