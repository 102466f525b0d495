"""Every 2nd, 4th, 8th ... point of a field, without decoding the rest where the codec allows it.

The points are those of the whole grid, whatever its chunks are: a chunk that begins between two of them is decoded with the
largest spacing of which its first one is a multiple. Values are the same as after decoding everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.archive.chunk import decode_frame
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray

MOST_LEVEL = 30


def every(stored: StoredArray, spacing: int) -> np.ndarray:
    """The values of an array whose coordinates are multiples of a power of two."""
    layout = stored.layout
    shape = [-(-size // spacing) for size in layout.shape]
    stored.trust.require_room(stored.nbytes_of(shape), f"the preview of {layout.name}")
    found = np.empty(shape, layout.dtype)
    for index in layout.chunk_indices():
        inside = layout.chunk_slices(index)
        first = [-(-part.start // spacing) for part in inside]
        local = [place * spacing - part.start for place, part in zip(first, inside, strict=True)]
        if any(start >= part.stop - part.start for start, part in zip(local, inside, strict=True)):
            continue
        values = _spaced(stored, index, _common(spacing, local))[tuple(slice(start, None, spacing) for start in local)]
        found[tuple(slice(place, place + size) for place, size in zip(first, values.shape, strict=True))] = values
    return found


def _common(spacing: int, starts: Sequence[int]) -> int:
    """The largest power of two up to the spacing of which all these are multiples."""
    while any(start % spacing for start in starts):
        spacing //= 2
    return spacing


def _spaced(stored: StoredArray, index: Index, spacing: int) -> np.ndarray:
    """A chunk in which the values with this spacing are right.

    Blocks of a codec have checksums of their values; what it does besides depends on the version of its stream.
    """
    coarse = stored.codec.coarse(spacing) if spacing > 1 and stored.decodes_in_parts else None
    return stored.chunk(index) if coarse is None else decode_frame(stored.frame(index), coarse, stored.layout.dtype)
