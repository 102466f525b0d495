"""The values by which a defect is recognised: all of them, or of large arrays both ends of the first axes.

Both ends turned round are the ends of the array turned round, and a shift moves values within an end. So the candidates of
a diagnosis are tried on the probe as on the whole. The last axes are kept whole as far as possible: longitudes may be
turned by any angle.
"""

from __future__ import annotations

import itertools
import math
import operator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench import backend
from workbench.auditing.numbers import missing_in
from workbench.run.chunked_field import ChunkedField
from workbench.slabs import Slices

VALUES = 2**20
FEWEST = 8   # points of the first axis
MOST = 1e150   # of a value, so that squares are numbers


@dataclass(frozen=True, eq=False)
class Probe:
    """Some values of both arrays, in float64 with NaN where they are missing, and the axes' names.

    `raw` are the values of the lossy array in their own type. `places` are the indices in the whole array along each axis.
    """

    original: np.ndarray
    lossy: np.ndarray
    raw: np.ndarray
    places: tuple[np.ndarray, ...]
    axes: tuple[str, ...]
    whole_axes: tuple[bool, ...]

    @classmethod
    def of(
        cls, original: ChunkedField, lossy: ChunkedField, axes: tuple[str, ...], around: tuple[int, ...] | None = None
    ) -> Probe:
        """The probe of two arrays of one shape; the block `around` a place in place of the ends."""
        kept = _kept(original.shape)
        ends = [_ends(size, keep) for size, keep in zip(original.shape, kept, strict=True)]
        if around is not None:
            each = zip(around, kept, original.shape, strict=True)
            firsts = (min(max(at - keep // 2, 0), size - keep) for at, keep, size in each)
            ends = [[slice(first, first + keep)] for first, keep in zip(firsts, kept, strict=True)]
        places = tuple(np.concatenate([np.arange(part.start, part.stop) for part in parts]) for parts in ends)
        x, _ = _read(original, ends, kept)
        y, raw = _read(lossy, ends, kept)
        return cls(x, y, raw, places, axes, tuple(map(operator.eq, kept, original.shape)))

    @property
    def whole(self) -> bool:
        """Whether these are all values."""
        return all(self.whole_axes)

    @cached_property
    def both(self) -> np.ndarray:
        """Where both sides have finite values."""
        return np.isfinite(self.original) & np.isfinite(self.lossy)

    @cached_property
    def scale(self) -> float:
        """The standard deviation of the original; of a constant its size, or 1."""
        known = self.original[np.isfinite(self.original)]
        spread = float(known.std()) if known.size else 0.0
        if spread > 1e-12 * (size := float(np.abs(known).max(initial=0.0))):
            return spread
        return size or 1.0

    @property
    def varies(self) -> bool:
        """Whether the original has different values."""
        known = self.original[np.isfinite(self.original)]
        return bool(known.size and known.max() > known.min())

    @cached_property
    def distance(self) -> float:
        """How far the lossy array is from the original, in units of its standard deviation."""
        return self.between(self.original, self.lossy)

    def between(self, x: np.ndarray, y: np.ndarray) -> float:
        """The rms distance of two arrays where both have values, in these units; infinite if that is less than half."""
        both = np.isfinite(x) & np.isfinite(y)
        if 2 * int(both.sum()) < min(int(np.isfinite(x).sum()), int(np.isfinite(y).sum())) or not both.any():
            return math.inf
        with np.errstate(over="ignore"):
            return float(np.sqrt(np.square((x[both] - y[both]) / self.scale).mean()))

    def explains(self, distance: float) -> bool:
        """Whether a change of this remaining distance explains the difference: a fifth of it at most is left."""
        return distance <= 0.2 * self.distance


def _kept(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many points of each axis are kept: the first axis is cut, and then the longest.

    >>> _kept((365, 192, 288)), _kept((512, 512, 1024)), _kept((12, 24, 24))
    ((18, 192, 288), (8, 256, 512), (12, 24, 24))
    """
    kept = list(shape)
    if math.prod(shape) > VALUES:
        kept[0] = min(max(VALUES // math.prod(shape[1:]) // 2 * 2, FEWEST), shape[0])
    while math.prod(kept) > VALUES:
        longest = max(range(len(kept)), key=kept.__getitem__)
        kept[longest] = max(kept[longest] // 4 * 2, 2)
    return tuple(kept)


def _ends(size: int, keep: int) -> list[slice]:
    return [slice(0, size)] if keep >= size else [slice(0, keep // 2), slice(size - keep // 2, size)]


def _read(field: ChunkedField, ends: list[list[slice]], kept: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The values of all corners, as float64 with NaN and as they are."""
    raw = np.zeros(kept, field.dtype)
    missing = np.zeros(kept, bool)
    for corner in itertools.product(*(range(len(parts)) for parts in ends)):
        place: Slices = tuple(parts[at] for parts, at in zip(ends, corner, strict=True))
        sizes = [part.stop - part.start for part in place]
        target = tuple(slice(at * size, (at + 1) * size) for at, size in zip(corner, sizes, strict=True))
        part = field.part(place)
        raw[target] = backend.to_host(part.values)
        missing[target] = missing_in(part)
    values = raw.astype(np.float64)
    with np.errstate(invalid="ignore"):
        values[missing | ~(np.abs(values) < MOST)] = np.nan
    return values, raw
