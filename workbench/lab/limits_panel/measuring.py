"""The comparison of real codecs with the bound, one run after the other, for the button of the limits panel."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from workbench.bounds import Run, iter_sweep
from workbench.codecs import Codec
from workbench.data import Field
from workbench.guarantees import Absolute, Bound
from workbench.lab.bounds_panel.state import applicable
from workbench.lab.jobs import Job
from workbench.limits.comparison import STEPS, bare, has_place, place
from workbench.limits.operating_point import OperatingPoint
from workbench.limits.result import FieldLimits

Measured = OperatingPoint | Run   # a run without an operating point failed or was lossless


def codecs_for(field: Field) -> list[Codec]:
    """The default codecs of `compare` that accept this field."""
    return [codec for codec in applicable(field) if codec.for_fields]


def measure(
    limits: FieldLimits, field: Field, eb: float, known: Collection[str], job: Job
) -> Iterator[tuple[str, Measured]]:
    """Every codec at `eb` and then at every bound of `compare`, each with a unique name, as soon as it is measured.

    Bounds at which all codecs are `known` by name are left out.
    """
    spread, codecs = math.sqrt(limits.variance), codecs_for(field)
    asked = [Absolute(each) for each in dict.fromkeys([eb, *(step * spread for step in STEPS)])]
    bounds = [bound for bound in asked if any(_name(codec.to_dict(), bound) not in known for codec in codecs)]
    total, done = len(bounds) * len(codecs), 0
    first = [bound for bound in bounds if bound.eb == eb]   # all codecs there come first: the answer is about that
    for some in (first, bounds[len(first):]):
        for run in iter_sweep(bare(field), codecs, some, cancel=job) if some else ():
            yield _name(run.codec, run.bound), place(limits, field, run) if has_place(run) else run
            done += 1
            job(done / total, str(run))


def _name(codec: Mapping[str, Any], bound: Bound) -> str:
    return json.dumps([dict(codec), bound.to_dict()], sort_keys=True, default=str)


def nearest(points: Sequence[OperatingPoint], distortion: float) -> list[OperatingPoint]:
    """For each codec, the point of nearest distortion, on a logarithmic scale."""
    found: dict[str, OperatingPoint] = {}
    for point in sorted(points, key=lambda point: abs(math.log(point.distortion / distortion)), reverse=True):
        found[point.run.label] = point
    return [found[label] for label in sorted(found)]


def best(points: Sequence[OperatingPoint], eb: float) -> OperatingPoint | None:
    """The point of fewest bits at this error bound; None if no codec was measured there."""
    return min((point for point in points if limit_of(point) == eb), key=lambda point: point.bits, default=None)


def all_compared(field: Field, measured: Sequence[Measured], eb: float) -> bool:
    """Whether every codec was measured at this error bound: a comparison may be running, or have been cancelled."""
    here = [each for each in measured if (each if isinstance(each, Run) else each.run).bound.eb == eb]
    return len(here) >= len(codecs_for(field))


def limit_of(point: OperatingPoint) -> float:
    """The error bound that the codec was given."""
    return float(point.run["limit"])
