"""Real codecs compared with the bound: a sweep, with each run as an operating point."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.bounds import Run, sweep
from workbench.charts.table import data_frame, html_table
from workbench.codecs import Codec, registry
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, PointwiseRelative
from workbench.limits.operating_point import OperatingPoint, price_of_pointwise, taken_apart
from workbench.limits.pointwise import uniform_mse
from workbench.progress import Progress, Stoppable

if TYPE_CHECKING:
    from workbench.limits.result import RateDistortion

STEPS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)   # error bounds, in standard deviations of the field
Rate = Callable[[float], float]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Operating points, and the runs left out because they failed or were lossless."""

    points: tuple[OperatingPoint, ...]
    left_out: tuple[Run, ...] = ()

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Any:
        return iter(self.points)

    def __getitem__(self, place: int) -> OperatingPoint:
        return self.points[place]

    def to_dataframe(self) -> Any:
        """One row for each point, as a pandas DataFrame."""
        return data_frame([row(point) for point in self.points])

    def __repr__(self) -> str:
        return f"Comparison({len(self)} operating points, {len(self.left_out)} runs left out)"

    def _repr_html_(self) -> str:
        if not self.points:
            return f"<p>{html.escape(repr(self))}</p>"
        rows = [row(point) for point in self.points]
        heads = list(rows[0])
        return html_table(heads, [list(map(_shown, each.values())) for each in rows], texts=(0, len(heads) - 1))


def row(point: OperatingPoint) -> dict[str, Any]:
    """A point as one row of a table; rates in bits a value."""
    return {
        "codec": point.run.label,
        "error bound": float(point.run["limit"]),
        "mean square error": point.distortion,
        "bits": point.bits,
        "Gaussian-model bound": point.rate,
        "gap": point.gap,
        **{name: point.parts.get(name, 0.0) for name in ("tiles", "pointwise bound", "documents", "prediction and coding")},
        "above the pointwise bound": point.bits - max(point.pointwise, 0.0),
        "tighter than asked": point.tighter,
        "lever": point.lever,
    }


def compare(
    limits: RateDistortion,
    field: Field,
    codecs: str | Codec | Iterable[str | Codec] | None = None,
    bounds: Bound | Iterable[Bound] | None = None,
    progress: Progress | None = None,
    cancel: Stoppable | None = None,
) -> Comparison:
    """Run codecs on the field and compare each run with the bound."""
    chosen = [name for name in registry.for_fields() if name in registry.available()] if codecs is None else codecs
    spread = math.sqrt(limits.variance)
    if not spread > 0:
        raise WorkbenchError("compare needs a field that varies; got a constant field, whose rate is 0 bits")
    asked = [Absolute(step * spread) for step in STEPS] if bounds is None else _several(bounds)
    runs = sweep(bare(field), chosen, asked, progress=progress, cancel=cancel)
    return Comparison(
        tuple(place(limits, field, run) for run in runs if has_place(run)), tuple(run for run in runs if not has_place(run))
    )


def bare(field: Field) -> Field:
    """The field without its metadata, which would count in the archive and do not depend on the codec."""
    return Field(field.values, field.spacing, field.name, field.mask)


def has_place(run: Run) -> bool:
    """Whether a run has a rate and a positive distortion: it did not fail and was not lossless."""
    return not run.error and float(run["rms_error"]) > 0


def _several(bounds: Bound | Iterable[Bound]) -> list[Bound]:
    asked = list(bounds) if isinstance(bounds, Iterable) else [bounds]
    for bound in asked:
        if isinstance(bound, PointwiseRelative):
            raise WorkbenchError(f"bounds must be wb.Absolute or wb.Relative, the same for all values; got {bound!r}")
    return asked


def place(limits: RateDistortion, field: Field, run: Run) -> OperatingPoint:
    """A run compared with the bound."""
    values = int(np.count_nonzero(field.valid))
    bits = 8 * float(run["nbytes"]) / values
    documents = 8 * (float(run["nbytes"]) - float(run["chunk_nbytes"])) / values
    distortion = float(run["rms_error"]) ** 2
    rate = limits.rate(distortion)
    side = registry.from_dict(run.codec).tile
    tiles = 0.0 if side is None else max(0.0, limits.tiled(side).rate(distortion) - rate)
    max_error, limit = float(run["max_error"]), float(run["limit"])
    known = max(0.0, limits.pointwise(max_error) - rate)   # at coarse bounds, nobody knows the price of the guarantee
    price = min(price_of_pointwise(max_error, distortion), known)
    return OperatingPoint(
        run=run,
        bits=bits,
        distortion=distortion,
        rate=rate,
        interval=limits.interval_if_gaussian(distortion),
        pointwise=limits.pointwise(limit),
        parts=taken_apart(bits - rate, tiles, documents, price),
        tighter=max(0.0, rate - limits.rate(uniform_mse(limit))),
        pooled=limits.price_of_one_model(distortion),
    )


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
