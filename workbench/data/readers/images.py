"""The range of positions in a file with a periodic box, and their wrapping into [0, box), which is always reported.

Most formats keep positions inside the box, up to rounding at its faces. A position farther outside means that box and
positions do not match (another unit, a light cone, the box of another file), and wrapping it would silently change
distances. So positions are wrapped if they lie outside by at most a thousandth of the mean spacing; larger deviations are
refused, unless the caller passes `wrap=True` or the format stores periodic images, as trajectories of whole molecules do.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.data.extent import extent
from workbench.errors import WorkbenchError

MOST_BOXES = 1e6
ROUNDING = 1e-3   # of the mean spacing
RIGHT_BOX = "give the right one by box=..."
WAYS_OUT = f"{RIGHT_BOX}, read an open space with box=None, or fold positions into the box as images with wrap=True"
CENTRED = "positions are relative to the centre of the box in the file, and to its corner here"


class Images(enum.Enum):
    """Where a format keeps positions: inside [0, box), around the centre in [-box/2, box/2), or as any periodic image."""

    CORNER = "from the corner of the box"
    CENTRE = "from the centre of the box"
    ANY = "as any periodic image"


def require_placed(
    positions: np.ndarray, box: Sequence[float], images: Images, wrap: bool, count: int | None = None
) -> dict[str, Any]:
    """Refuse positions that do not match this box; returns a metadata entry about positions that will be wrapped.

    `count` is the number of all particles, where these are a part of them.

    >>> require_placed(np.array([[-1e-6, 0.5], [1.0, 0.5]]), (1.0, 1.0), Images.CORNER, wrap=False)
    {'wrapped': '2 positions, at most 1e-06 outside the box'}
    >>> require_placed(np.array([[0.2, 0.5], [7.0, 0.5]]), (1.0, 1.0), Images.CORNER, wrap=False)
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: positions reach from 0.2 to 7 on axis 0, outside the box of length 1: give the ...
    """
    if not positions.size or positions.ndim != 2 or positions.shape[1] != len(box):
        return {}   # Particles refuses them
    low, high = _ends(positions)
    _require_scale(max(-low.min(), high.max()), positions.dtype, box)
    lengths = np.asarray(box, np.float64)
    start, told = np.zeros_like(lengths), {}
    if images is Images.CENTRE and low.min() < 0:
        start, told = -lengths / 2, {"origin": CENTRED}
    if (low >= start).all() and (high < start + lengths).all():
        return told
    outside = int(((positions < start) | (positions >= start + lengths)).any(axis=1).sum())
    if not outside:
        return told
    beyond = np.maximum(start - low, high - (start + lengths))
    axis = int(np.argmax(beyond))
    farthest = max(float(beyond[axis]), 0.0)
    if not (wrap or images is Images.ANY) and farthest > _rounding(len(positions) if count is None else count, lengths):
        reach = f"positions reach from {low[axis]:.6g} to {high[axis]:.6g} on axis {axis}"
        raise WorkbenchError(f"{reach}, outside the box of length {lengths[axis]:.6g}: {WAYS_OUT}")
    return {**told, "wrapped": f"{outside:,} positions, at most {farthest:.3g} outside the box"}


def require_box_to_wrap(wrap: bool) -> None:
    """Refuse wrap=True without a box."""
    if wrap:
        raise WorkbenchError("wrap=True needs a periodic box, and there is none: give one by box=...")


def _ends(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest coordinate along each axis; not finite if some coordinate is not, which is refused later."""
    if positions.dtype in (np.float32, np.float64) and positions.shape[1] in (2, 3) and positions.flags.c_contiguous:
        return extent(positions)   # a tenth of the time
    with np.errstate(invalid="ignore"):   # signalling NaN
        return positions.min(axis=0).astype(np.float64), positions.max(axis=0).astype(np.float64)


def _rounding(count: int, lengths: np.ndarray) -> float:
    return float(ROUNDING * np.prod(lengths) ** (1 / len(lengths)) / count ** (1 / len(lengths)))


def _require_scale(farthest: float, dtype: np.dtype, box: Sequence[float]) -> None:
    """A million boxes away, no digits are left for the place inside: box and positions cannot match."""
    if dtype.kind != "f":
        return
    shortest, longest = float(np.min(box)), float(np.max(box))
    if shortest > 0 and MOST_BOXES * shortest < farthest < np.inf:
        raise WorkbenchError(f"positions reach {farthest:g} and the box is only {shortest:g} long: {RIGHT_BOX}")
    if float(np.finfo(dtype).max) < longest < np.inf:
        raise WorkbenchError(f"the box is {longest:g} long, more than {dtype} can hold: {RIGHT_BOX}")
