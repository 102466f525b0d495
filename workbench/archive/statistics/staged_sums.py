"""The sums of a part of a chunk of the codec `staged`, from the metadata of its blocks where that is enough.

The metadata are exact sums of lattice numbers, of the cells that are finite and not masked. The decoded value y is the
lattice number times the step, rounded, and the archive promises |x - y| <= eb of it: so x is within eb, and this rounding,
of the lattice. That is no promise of the codec.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.archive.statistics.staged_chunk import Division, StagedChunk
from workbench.archive.statistics.sums import Sums
from workbench.codecs.staged import Staged
from workbench.codecs.staged_statistics import Totals, totals
from workbench.guarantees import Limit
from workbench.guarantees.correction import corrected_places
from workbench.guarantees.sections import CODE, FIX, INFORMATIVE


def sums_of(chunk: StagedChunk, division: Division, limit: Limit) -> list[Sums]:
    """The sums of a part of a chunk, from the metadata of its blocks and the values around them."""
    every = len(division.blocks) == chunk.stream.grid.blocks
    known = totals(chunk.stream, None if every else division.blocks)
    sums = [_of_totals(known, chunk, limit)] if known.count else []
    return sums + [Sums.of(values, limit) for values in chunk.values_in(division.boxes) if values.size]


def wrong_block(stored: StoredArray, index: Index, values: np.ndarray, hidden: np.ndarray | None) -> str | None:
    """What is wrong with the metadata of a chunk of which these are the values and the mask, if anything is."""
    if not isinstance(stored.codec, Staged):
        return None
    frame = stored.frame(index)
    if CODE not in frame.sections or not set(frame.sections) <= {CODE, FIX} | INFORMATIVE:
        return None
    valid = np.isfinite(values) if hidden is None else np.isfinite(values) & ~hidden
    sound = np.ones(values.shape, bool)
    sound.reshape(-1)[corrected_places(bytes(frame.sections.get(FIX, b"")), values.shape, values.dtype)] = False
    return stored.codec.contradiction(bytes(frame.sections[CODE]), values, valid, sound)


def _of_totals(known: Totals, chunk: StagedChunk, limit: Limit) -> Sums:
    """The sums of cells of which only lattice numbers are known."""
    step = Fraction(chunk.stream.lattice.step)
    assert known.low is not None
    assert known.high is not None
    low, high = step * known.low, step * known.high
    error = Fraction(limit.value) + lattice_rounding(max(abs(low), abs(high)), chunk.dtype)
    return Sums(
        known.count, Fraction(0), step * known.sum, Fraction(0), step**2 * known.squares, Fraction(0),
        known.count * error, known.count * error**2, (low - error, low + error), (high - error, high + error),
    )


def lattice_rounding(largest: Fraction, dtype: np.dtype) -> Fraction:
    """How far a lattice number times the step is from the decoded value: rounded to float64, then to the type."""
    double, smallest = Fraction(1, 2**53), Fraction(1, 2**1074)
    if dtype == np.float64:
        return largest * double + smallest
    single = Fraction(1, 2**24)
    return largest * (double + single + double * single) + Fraction(1, 2**149)
