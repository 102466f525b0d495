"""What masked values and those that are not finite take in an archive: its own writer packs them, chunk by chunk.

They are kept bit for bit beside the codec's bytes, and so is the mask. Both are packed without loss, so a coast of one fill
value takes next to nothing, and scattered garbage much. Nothing is estimated, but in fields of many chunks, where some of
these, spread over the field, stand for all.
"""

from __future__ import annotations

import numpy as np

from workbench.archive.chunk import exact_chunk
from workbench.archive.chunking import chunk_shape
from workbench.codecs import Codec
from workbench.codecs.gaps import filled
from workbench.data import Field
from workbench.guarantees.correction import encode_correction
from workbench.run.chunked_field import grid
from workbench.slabs import Slices

CHUNKS = 4   # that are packed, at most


def bytes_of_gaps(field: Field, valid: np.ndarray | None) -> float:
    """The bytes that invalid values and the mask take; `valid` is None where all values are.

    >>> values = np.arange(65_536.0)
    >>> bytes_of_gaps(Field(values, mask=values > 60_000), values <= 60_000) < 3000
    True
    """
    if valid is None and field.mask is None:
        return 0.0
    places = grid(field.shape, chunk_shape(field.shape, Codec.chunk_values))
    count = min(CHUNKS, len(places))
    chosen = [places[int((number + 0.5) * len(places) / count)] for number in range(count)]
    return sum(_in_chunk(field, valid, place) for place in chosen) * len(places) / count


def _in_chunk(field: Field, valid: np.ndarray | None, place: Slices) -> int:
    """The bytes of the gaps of one chunk, and of its part of the mask."""
    found = 0
    if valid is not None:
        there = np.ascontiguousarray(valid[place])
        values = np.ascontiguousarray(field.values[place])
        found += len(encode_correction(np.flatnonzero(~there), values, filled(values, there)))
    return found + (0 if field.mask is None else len(exact_chunk(field.mask[place]).data))
