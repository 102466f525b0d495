"""Tables of frequencies for residuals whose scale encoder and decoder expect alike: of fields, and of particles' numbers.

The scale of a residual chooses its context, a quarter of an octave. Neighbouring contexts share a table where tables of
their own would take more room than they save. Frequencies are static and rounded, so that a table takes a few dozen
bytes, and a symbol is one look-up (`kernels/residuals.cuh`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import PRECISION, frequencies

CONTEXTS = backend.constant("residuals.cuh", "CONTEXTS")
SYMBOLS = backend.constant("residuals.cuh", "SYMBOLS")
DIRECT = backend.constant("residuals.cuh", "DIRECT")
ESCAPE = backend.constant("residuals.cuh", "ESCAPE")
BITS_OF_ENTRY = 6.5               # of a frequency that is not 0, about
# The shares that the bytes in a table stand for, in eighths of an octave.
_SHARES = np.concatenate([[0], np.rint(16 * 2.0 ** (np.arange(8 * PRECISION + 1) / 8))]).astype(np.int64)


def bits_after(symbol: np.ndarray, value_bits: int) -> np.ndarray:
    """How many bits follow each symbol: the sign and what is below the symbol, or a whole value."""
    bits = np.where(symbol < DIRECT, 1, (symbol - DIRECT) // 8 + 2)
    return np.where(symbol == 0, 0, np.where(symbol == ESCAPE, value_bits, bits))


def counted(code: np.ndarray) -> np.ndarray:
    """How often each symbol occurs in each context."""
    codes = CONTEXTS * SYMBOLS
    if not len(code):
        return np.zeros((CONTEXTS, SYMBOLS), np.int64)
    parts = min(backend.chunks(len(code), code), 16)
    counts = np.zeros((parts, codes), np.uint32)
    backend.kernel("entropy", "count_codes")(
        parts, parts, len(code), len(code), code, codes, len(counts), counts
    )
    return counts.sum(axis=0, dtype=np.int64).reshape(CONTEXTS, SYMBOLS)


def bits_of(counts: np.ndarray, value_bits: int) -> float:
    """The bits of these symbols and of what follows them, tables included."""
    tables = grouped(counts)
    rest = float((counts.sum(axis=0) * bits_after(np.arange(SYMBOLS), value_bits)).sum())
    return rest + sum(_bits_together(counts[a:b].sum(axis=0)[None])[0] for a, b in tables)


def grouped(counts: np.ndarray) -> list[tuple[int, int]]:
    """The ranges of contexts that share a table, so that tables and symbols together take the fewest bits."""
    symbols, filled = np.flatnonzero(counts.any(axis=0)), np.flatnonzero(counts.any(axis=1))
    summed = np.concatenate([np.zeros((1, len(symbols)), np.int64), np.cumsum(counts[filled][:, symbols], axis=0)])
    fewest, before = [0.0], [0]
    for end in range(1, len(filled) + 1):
        costs = np.array(fewest) + _bits_together(summed[end] - summed[:end])
        best = int(np.argmin(costs))
        fewest.append(float(costs[best]))
        before.append(best)
    found, end, place = [], len(filled), CONTEXTS
    while place:   # empty contexts belong to the table of the filled one that follows, the last of them to the last table
        end = before[end]
        begin = int(filled[end - 1]) + 1 if end else 0
        found.append((begin, place))
        place = begin
    return found[::-1]


def _bits_together(counts: np.ndarray) -> np.ndarray:
    """The bits of the symbols of each row with a table of its own, and of the table."""
    total = counts.sum(axis=1)
    logs = np.log2(np.maximum(counts, 1))
    symbols = total * np.log2(np.maximum(total, 1)) - (counts * logs).sum(axis=1)
    return symbols + BITS_OF_ENTRY * (counts > 0).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Tables:
    """The shares of symbols in each table, and the table of each context."""

    shares: np.ndarray   # uint8 (tables, symbols that occur)
    row: np.ndarray      # uint8 (contexts)

    @classmethod
    def of(cls, counts: np.ndarray) -> Tables:
        """Tables for these counts."""
        groups = grouped(counts)
        sums = np.array([counts[a:b].sum(axis=0) for a, b in groups])
        row = np.repeat(np.arange(len(groups)), [b - a for a, b in groups]).astype(np.uint8)
        known = np.flatnonzero(sums[:, :ESCAPE].any(axis=0))
        kept = np.append(np.arange(known[-1] + 1 if len(known) else 0), ESCAPE)
        share = sums[:, kept] / np.maximum(sums.sum(axis=1, keepdims=True), 1)
        with np.errstate(divide="ignore"):
            place = np.rint(8 * (PRECISION + np.log2(share))) + 1
        return cls(np.where(share > 0, np.clip(place, 1, len(_SHARES) - 1), 0).astype(np.uint8), row)

    @property
    def frequency(self) -> np.ndarray:
        """The frequencies (tables, symbols), each row summing to 2**PRECISION or empty."""
        wide = np.zeros((len(self.shares), SYMBOLS), np.int64)
        wide[:, : self.shares.shape[1] - 1] = _SHARES[self.shares[:, :-1]]
        wide[:, ESCAPE] = _SHARES[self.shares[:, -1]]
        return frequencies(wide)

    def to_bytes(self) -> bytes:
        """The tables, one byte for each share, as differences from the table before."""
        ends = np.cumsum(np.bincount(self.row, minlength=len(self.shares))).astype(np.uint8)
        change = np.diff(self.shares, axis=0, prepend=np.zeros((1, self.shares.shape[1]), np.uint8))
        return ends.tobytes() + np.ascontiguousarray(change.T).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, tables: int) -> Tables:
        """What `to_bytes` wrote."""
        symbols = len(data) // max(tables, 1) - 1
        ends = np.frombuffer(data, np.uint8, tables).astype(np.int64)
        sizes = np.diff(ends, prepend=0)
        fits = 1 <= symbols <= SYMBOLS and len(data) == tables * (symbols + 1)
        if not fits or (sizes < 1).any() or ends[-1] != CONTEXTS:
            raise CodecFailed("the tables of coded residuals are not of their contexts: they are damaged")
        change = np.frombuffer(data, np.uint8, offset=tables).reshape(symbols, tables).T
        shares = np.cumsum(change, axis=0, dtype=np.uint8)
        if (shares >= len(_SHARES)).any():
            raise CodecFailed("the shares in a table of coded residuals are too large: they are damaged")
        return cls(shares, np.repeat(np.arange(tables), sizes).astype(np.uint8))


def symbol_slots(frequency: np.ndarray) -> np.ndarray:
    """The symbol of each slot of each table."""
    found = np.zeros((len(frequency), 1 << PRECISION), np.uint8)
    used = frequency.any(axis=1)
    symbols = np.broadcast_to(np.arange(SYMBOLS, dtype=np.uint8), (int(used.sum()), SYMBOLS))
    found[used] = np.repeat(symbols.reshape(-1), frequency[used].reshape(-1)).reshape(-1, 1 << PRECISION)
    return found.reshape(-1)
