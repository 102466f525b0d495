"""The alphabet of moves of decoded particles, simplest first, so that a move is stored as one small number.

A move is a vector of whole steps of an eighth of the bound. Finer steps are not needed: a move along one axis, by the bound
or by half of it, nearly always restores the group of a particle. These moves have the first ranks. The order of ranks
is fixed, because archives store ranks.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from workbench import backend

PARTS = 8    # steps in a bound
FINE = backend.constant("moves.cuh", "FINE")   # the most steps along an axis


@dataclass(frozen=True, eq=False)
class Alphabet:
    """All moves (K, D), int32, by rank; the rank of every move by its number in base 33; and the storage cost of each rank.

    `along` are the moves axis by axis (D, K). Costs are in 1/64 of a bit and only guide the choice among moves: they
    approximate the code length.
    """

    moves: np.ndarray
    along: np.ndarray
    ranks: np.ndarray
    costs: np.ndarray
    lengths: np.ndarray   # of the moves, in steps

    def last(self, parts: int) -> int:
        """The last rank of the moves of whole bounds (1), halves (2), quarters (4) or eighths (8) of a bound."""
        return (2 * (2 * parts - 1) + 1) ** self.moves.shape[1] - 1


@functools.cache
def alphabet(dimensions: int) -> Alphabet:
    """The moves in 2 or 3 dimensions.

    >>> alphabet(2).moves[:6].tolist()
    [[0, 0], [8, 0], [0, 8], [0, -8], [-8, 0], [8, 8]]
    """
    along = np.arange(-FINE, FINE + 1)
    moves = np.stack(np.meshgrid(*[along] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)
    size = np.abs(moves)
    grid = np.select([(size % step == 0).all(axis=1) for step in (8, 4, 2)], [0, 1, 2], 3)
    grid = np.where(size.max(axis=1) == FINE, 4, grid)   # twice the bound: hardly ever allowed
    descending = tuple(-moves[:, axis] for axis in range(dimensions - 1, -1, -1))
    negative = (moves < 0).sum(axis=1)
    order = np.lexsort((*descending, negative, size.sum(axis=1), (moves != 0).sum(axis=1), grid))
    ranks = np.empty(len(moves), np.int32)
    ranks[order] = np.arange(len(moves), dtype=np.int32)
    costs = np.round(64 * (1.2 + 1.3 * np.log2(np.maximum(np.arange(len(moves)), 1)))).astype(np.int32)
    moves, lengths = moves[order].astype(np.int32), np.sqrt((moves[order] ** 2).sum(axis=1))
    along = np.ascontiguousarray(moves.T)
    return Alphabet(*map(backend.read_only, (moves, along, ranks, costs, lengths)))

