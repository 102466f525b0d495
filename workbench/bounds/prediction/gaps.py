"""What masked values and those that are not finite take in an archive: measured on runs of the field.

They are kept bit for bit beside the codec's bytes, and so is the mask. Both are packed without loss, so a coast of one fill
value takes next to nothing, and scattered garbage much.
"""

from __future__ import annotations

import functools

import numpy as np

from workbench.archive.chunk import exact_chunk
from workbench.data import Field
from workbench.guarantees.correction import encode_correction
from workbench.guarantees.gaps import filled

RUNS = 16
LENGTH = 4096      # of a run
OF_DOCUMENTS = 1420   # bytes that an archive says of a mask


def bytes_of_gaps(field: Field, valid: np.ndarray) -> float:
    """The bytes that invalid values and the mask take.

    >>> values = np.arange(65_536.0)
    >>> bytes_of_gaps(Field(values, mask=values > 60_000), values <= 60_000) < 3000
    True
    """
    values, size = field.values.reshape(-1), field.values.size
    starts = np.linspace(0, max(size - LENGTH, 0), RUNS if size > RUNS * LENGTH else -(-size // LENGTH)).astype(int)
    places = np.unique(np.minimum(starts[:, None] + np.arange(LENGTH), size - 1))
    there, seen = valid.reshape(-1)[places], values[places]
    share = size / len(places)
    found = float(len(encode_correction(np.flatnonzero(~there), seen, filled(seen, there)))) * share
    if field.mask is not None:
        packed = len(exact_chunk(field.mask.reshape(-1)[places]).data) - _frame()
        found += OF_DOCUMENTS + packed * share
    return found


@functools.cache
def _frame() -> int:
    """The bytes of a chunk that says nothing."""
    return len(exact_chunk(np.zeros(1, bool)).data)
