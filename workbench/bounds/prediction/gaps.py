"""What masked values and those that are not finite take in an archive: measured on a part of the field.

They are kept bit for bit beside the codec's bytes, and so is the mask. Both are packed without loss, so a coast of one fill
value takes next to nothing, and scattered garbage much.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from workbench.archive.chunk import exact_chunk
from workbench.codecs.gaps import filled
from workbench.data import Field
from workbench.guarantees.correction import encode_correction

MEASURED = 2**20   # values


def bytes_of_gaps(field: Field, valid: np.ndarray) -> float:
    """The bytes that invalid values and the mask take.

    >>> values = np.arange(65_536.0)
    >>> bytes_of_gaps(Field(values, mask=values > 60_000), values <= 60_000) < 3000
    True
    """
    part = _part(field.values.shape)
    seen, there = (np.ascontiguousarray(array[part]) for array in (field.values, valid))
    share = field.values.size / max(seen.size, 1)
    found = len(encode_correction(np.flatnonzero(~there), seen, filled(seen, there))) * share
    if field.mask is not None:
        chunk = exact_chunk(np.ascontiguousarray(field.mask[part]))
        found += _frame() + (len(chunk.data) - _frame()) * share
    return found


def _part(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The middle of a field: the first axes are cut, so that coasts along the last two stay whole."""
    sizes = list(shape)
    for axis, size in enumerate(shape):
        others = math.prod(sizes) // max(size, 1)
        sizes[axis] = min(max(MEASURED // max(others, 1), 1), size)
    return tuple(slice((whole - size) // 2, (whole + size) // 2) for whole, size in zip(shape, sizes, strict=True))


@functools.cache
def _frame() -> int:
    """The bytes of a chunk that says nothing."""
    return len(exact_chunk(np.zeros(1, bool)).data)
