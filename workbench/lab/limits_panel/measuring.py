"""The comparison of real codecs with the bound, one run after the other, for the button of the limits panel."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from workbench.bounds import Run, iter_sweep
from workbench.codecs import Codec
from workbench.data import Field
from workbench.guarantees import Absolute
from workbench.lab.bounds_panel.state import applicable
from workbench.lab.jobs import Job
from workbench.limits.comparison import STEPS, bare, has_place, place
from workbench.limits.operating_point import OperatingPoint
from workbench.limits.result import FieldLimits

Measured = OperatingPoint | Run   # a run without an operating point failed or was lossless


def codecs_for(field: Field) -> list[Codec]:
    """The default codecs of `compare` that accept this field."""
    return [codec for codec in applicable(field) if codec.for_fields]


def measure(limits: FieldLimits, field: Field, job: Job) -> Iterator[tuple[str, Measured]]:
    """Every codec at every bound of `compare`, each with a unique name, as soon as it is measured."""
    spread = math.sqrt(limits.variance)
    bounds = [Absolute(step * spread) for step in STEPS]
    for run in iter_sweep(bare(field), codecs_for(field), bounds, cancel=job, progress=job):
        yield _name(run), place(limits, field, run) if has_place(run) else run


def _name(run: Run) -> str:
    return json.dumps([dict(run.codec), run.bound.to_dict()], sort_keys=True, default=str)


def nearest(points: Sequence[OperatingPoint], distortion: float) -> list[OperatingPoint]:
    """For each codec, the point of nearest distortion, on a logarithmic scale."""
    found: dict[str, OperatingPoint] = {}
    for point in sorted(points, key=lambda point: abs(math.log(point.distortion / distortion)), reverse=True):
        found[point.run.label] = point
    return [found[label] for label in sorted(found)]
