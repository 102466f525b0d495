"""The picture of the error of the worst member: the plane through its largest error, for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.auditing.aligned import aligned
from workbench.auditing.call import Call
from workbench.auditing.finding import Finding
from workbench.auditing.numbers import as_field, missing_in
from workbench.auditing.places import axes_of
from workbench.auditing.row import Row
from workbench.run.chunked_field import ChunkedField

SIDE = 360       # pixels of the longer side, at most
MOST = 2**25     # values of a plane


@dataclass(frozen=True, eq=False)
class ErrorPicture:
    """The error (lossy less original) in a plane, of blocks of values the largest; NaN where a side has none.

    `marked` is the pixel of the largest error (row, column); `plane` says where the plane is along the other axes.
    """

    member: str
    values: np.ndarray
    marked: tuple[int, int]
    axes: tuple[str, str]
    plane: str


def error_picture(call: Call, names: Mapping[str, str], rows: Sequence[Row]) -> ErrorPicture | None:
    """The picture of the worst of the members that are fields of at least two axes."""
    drawn = [row for row in rows if len(row.shape) > 1 and row.name in names and row.largest_at]
    if not drawn:
        return None
    row = max(drawn, key=_badness)
    original, lossy = call.original.members[row.name], call.lossy.members[names[row.name]]
    x, y = as_field(original, lossy), as_field(lossy, original)
    in_one_form = None if x is None or y is None else aligned(row.name, x, y, (original, lossy))
    if in_one_form is None or isinstance(in_one_form, Finding):
        return None
    x, y, _ = in_one_form
    return _plane(row, x, y, axes_of(original, x.shape))


def _badness(row: Row) -> tuple[float, float]:
    share = row.share_of_limit if math.isfinite(row.share_of_limit) else 0.0
    spread = abs(row.figures.get("maximum", 0.0) - row.figures.get("minimum", 0.0)) or 1.0
    return share, row.largest_error / spread if math.isfinite(row.largest_error) else math.inf


def _plane(row: Row, x: ChunkedField, y: ChunkedField, axes: Sequence[str]) -> ErrorPicture | None:
    index = row.largest_at["index"]
    wide = [axis for axis in range(len(x.shape)) if x.shape[axis] > 1][-2:]
    if len(wide) < 2 or x.shape[wide[0]] * x.shape[wide[1]] > MOST:
        return None
    place = tuple(slice(0, x.shape[axis]) if axis in wide else slice(at, at + 1) for axis, at in enumerate(index))
    a, b = x.part(place), y.part(place)
    errors = np.subtract(backend.to_host(b.values), backend.to_host(a.values), dtype=np.float64)
    errors = np.where(missing_in(a) | missing_in(b), np.nan, errors).reshape(x.shape[wide[0]], x.shape[wide[1]])
    block = max(-(-max(errors.shape) // SIDE), 1)
    others = [f"{axes[axis]} {row.largest_at.get(axes[axis], at)}" for axis, at in enumerate(index) if axis not in wide]
    marked = index[wide[0]] // block, index[wide[1]] // block
    return ErrorPicture(row.name, _reduced(errors, block), marked, (axes[wide[0]], axes[wide[1]]), ", ".join(others))


def _reduced(errors: np.ndarray, block: int) -> np.ndarray:
    """Of each block of values, the one farthest from zero."""
    if block == 1:
        return errors
    high, wide = (-(-size // block) for size in errors.shape)
    padded = np.full((high * block, wide * block), np.nan)
    padded[: errors.shape[0], : errors.shape[1]] = errors
    tiles = padded.reshape(high, block, wide, block).transpose(0, 2, 1, 3).reshape(high, wide, -1)
    worst = np.nan_to_num(np.abs(tiles), nan=-1.0).argmax(axis=2)
    return np.take_along_axis(tiles, worst[..., None], axis=2)[..., 0]
