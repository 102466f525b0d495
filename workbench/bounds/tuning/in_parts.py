"""`wb.distributed.find_bound`: the bound with which a field that does not fit into memory meets a ratio or a PSNR.

The search is that of `wb.find_bound`, guided by a prediction from parts of the field. Each trial encodes, decodes and
compares every chunk where it is read, and keeps figures alone; so the answer is measured on all values, and memory holds
one chunk.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench import codecs
from workbench.archive import Archive
from workbench.archive.particles_in_parts import compress
from workbench.arguments import whole_number
from workbench.bounds import PSNR, All, Expert, Ratio, Run, Sweep, Target
from workbench.bounds.in_parts import FieldInParts
from workbench.bounds.measure import observed
from workbench.bounds.prediction.expert import shipped
from workbench.bounds.prediction.predict import expert_for
from workbench.bounds.prediction.surveyed import Surveyed, surveyed
from workbench.bounds.run import Question
from workbench.bounds.tuning.choice import Candidate, merit, predicted
from workbench.bounds.tuning.find import KINDS, MOST_RUNS, Limits
from workbench.bounds.tuning.guides import expected_room
from workbench.bounds.tuning.search import Terms, Tried, next_place
from workbench.bounds.tuning.targets import require_target
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.run.chunked_field import ChunkedField
from workbench.run.executors import Progress


@dataclass(frozen=True)
class FoundInChunks:
    """The bound that meets a target, measured on all chunks; `bound` is None if none does, and `nearest` came nearest.

    `archive` is what was written, if `out` was given.
    """

    target: All
    codec: Codec
    bound: Bound | None
    nearest: Run
    runs: Sweep
    archive: Archive | None = None

    @property
    def met(self) -> bool:
        """Whether a bound meets the target."""
        return self.bound is not None

    def __repr__(self) -> str:
        values = ", ".join(f"{each.figure} {float(self.nearest[each.figure]):.6g}" for each in self.target.measurable)
        found = f"meets {self.target}" if self.met else f"comes nearest to {self.target}, which no bound meets"
        return f"{self.nearest.bound!r} with {self.codec.id} {found}: {values} ({len(self.runs)} trials)"


def find_bound(
    source: Any, target: Target, codec: str | Codec = "auto", *, kind: str = "absolute",
    out: str | os.PathLike[str] | None = None, client: Any = None, chunk_values: int | None = None,
    expert: Expert | None = None, most_runs: int = MOST_RUNS, scratch: str | Path | None = None,
    progress: Progress | None = None,
) -> FoundInChunks:
    """The bound with which a chunked field meets `wb.Ratio`, `wb.PSNR`, or `wb.All` of them, like `wb.find_bound`.

    `source` is what `ChunkedField` takes. Each trial reads all of it, and nothing is written but the answer, to `out`.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((64, 64), seed=1)
    >>> found = find_bound(waves, wb.PSNR(60), "prequantised")
    >>> found.met, 60 <= found.nearest["psnr"] <= 60.1
    (True, True)
    """
    wanted = _wanted(target)
    if kind not in ("absolute", "relative"):
        raise WorkbenchError(f"kind must be 'absolute' or 'relative'; got {kind!r}")
    most = whole_number("most_runs", most_runs, least=1)
    with FieldInParts.opened(ChunkedField.of(source), client, scratch, progress) as parts:
        field = parts.field
        field.require_floats("find_bound")
        if (spread := parts.survey.statistics.spread) is None:
            raise WorkbenchError(f"find_bound needs values; all of {field!r} are masked or not finite")
        limits = Limits.between(spread, field.dtype, KINDS[kind], field)
        candidate = _candidate(surveyed(parts), codec, expert, wanted, limits)

        def measured(bound: Bound) -> Run:
            return observed(parts, Question(candidate.codec, bound, chunk_values=chunk_values))[0]

        runs = _runs(measured, candidate, wanted, limits, most)
        found = _best(runs, wanted, candidate.codec)
        if out is None or found.bound is None:
            return found
        more: dict[str, Any] = {"client": client, "chunk_values": chunk_values, "scratch": scratch, "progress": progress}
        return replace(found, archive=compress(field, found.bound, found.codec, out=out, **more))


def _wanted(target: Target) -> All:
    """The target; refused if it needs values of different chunks together."""
    require_target(target)
    wanted = target if isinstance(target, All) else All(target)
    if wanted.promises or not all(isinstance(each, Ratio | PSNR) for each in wanted.measurable):
        raise WorkbenchError(
            f"wb.distributed.find_bound takes wb.Ratio(...), wb.PSNR(...) or wb.All of them, which add up over chunks; got "
            f"{wanted}: use wb.find_bound on a part of the field, then wb.distributed.compare on the whole"
        )
    return wanted


def _candidate(parts: Surveyed, codec: str | Codec, expert: Expert | None, wanted: All, limits: Limits) -> Candidate:
    """The requested codec, or the one that is predicted to make the best of the target."""
    if codec != "auto" or expert is not None:
        given = expert.made if codec == "auto" and expert is not None else codec
        chosen = codecs.get(given) if isinstance(given, str) else given
        return predicted(parts, expert_for(chosen, expert or shipped().get(chosen.id)), limits)
    candidates = [predicted(parts, each, limits) for name, each in shipped().items() if name in codecs.automatic()]
    return max(candidates, key=lambda each: merit(each, None, wanted, limits))


def _runs(measured: Any, candidate: Candidate, wanted: All, limits: Limits, most: int) -> list[Run]:
    """The trials of a bracketed search."""
    sign = -1.0 if wanted.searched_upwards else 1.0
    expected = expected_room(wanted, None, limits.peak, candidate.ratio, candidate.noise)
    ends = sorted((sign * math.log(limits.low), sign * math.log(limits.high)))
    terms = Terms(ends[0], ends[1], wanted.stop, min(each.precision for each in wanted.leading))

    def guide(places: np.ndarray) -> np.ndarray:
        return expected(np.exp(sign * places))

    tried: list[Tried] = []
    runs: list[Run] = []
    while len(runs) < most and (place := next_place(tried, guide, terms)) is not None:
        runs.append(measured(limits.bound(math.exp(sign * place))))
        tried.append(Tried(place, wanted.leading_room(runs[-1].figures)))
    return runs


def _best(runs: list[Run], wanted: All, codec: Codec) -> FoundInChunks:
    """The largest bound that meets the target, or the smallest for a ratio; or what came nearest."""
    sign = -1.0 if wanted.searched_upwards else 1.0
    enough = [run for run in runs if wanted.room_of(run.figures) >= 0]
    if not enough:
        nearest = max(runs, key=lambda run: wanted.room_of(run.figures))
        return FoundInChunks(wanted, codec, None, nearest, Sweep(tuple(runs)))
    best = max(enough, key=lambda run: sign * run.bound.eb)
    return FoundInChunks(wanted, codec, best.bound, best, Sweep(tuple(runs)))
