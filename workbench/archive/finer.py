"""Keeping clusters within a finer bound, where that takes fewer bytes than within the requested one.

Particles that no move can repair are stored with their original coordinates. At a bound near the linking length these may
be so many that a finer lattice for all particles is smaller: half the bound costs one bit for each coordinate. Whatever is
chosen keeps the requested bound.

Above three quarters of the linking length, decoded groups have little in common with those of the original, and a repair
takes long. The bytes for keeping clusters then grow as fast with the bound as those of the lattice shrink, in clustered and
in random sets, so the first trial is within 0.7 linking lengths.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from workbench.backend import Array
from workbench.guarantees import Limit
from workbench.guarantees.guarantee import Allowance, TooExpensive

MOST_HALVES = 10
STEPS = 2         # in which a bound is halved: each costs half a bit for each coordinate
WORTH = 0.04      # a finer bound is taken where it saves this share of the bytes
DEAR = 2          # bits for each coordinate: with more of them in original coordinates, half the bound is tried at once,
LONG = 200        # as with more distances evaluated, for each particle
TOO_FAR, START = 0.75, 0.7   # bounds, in linking lengths: where the first trial is a finer one, and which


class Kept(Protocol):
    """Encoded positions in `nbytes`, of which `added` keep the clusters."""

    @property
    def nbytes(self) -> int:
        """The size of all chunks."""

    @property
    def added(self) -> int:
        """The size of what keeps the clusters."""


Encoded = TypeVar("Encoded", bound=Kept)


def smallest(
    encode: Callable[[Limit, Allowance], Encoded], limit: Limit, positions: Array, length: float = math.inf
) -> Encoded:
    """The smallest result of `encode` within this limit or a finer one; beyond its allowance, it raises TooExpensive.

    `length` is the shortest linking length.
    """
    trials = _Trials(encode, limit, length)
    number = _first(trials, positions)
    if number is None:
        return encode(limit, Allowance())
    best = trials.result(number)
    while 16 * best.added > positions.size:   # more than the half bit that the next finer bound costs
        number += 1
        found = trials.result(number)
        if found.nbytes > (1 - WORTH) * best.nbytes:
            break
        best = found
    return best


class _Trials(Generic[Encoded]):
    """Results within finer and finer bounds, by number; each is computed once."""

    def __init__(self, encode: Callable[[Limit, Allowance], Encoded], limit: Limit, length: float) -> None:
        self.encode, self.limit = encode, limit
        near = limit.relative or limit.value <= TOO_FAR * length
        self.start = 1.0 if near else START * length / limit.value
        self.found: dict[int, Encoded] = {}

    def result(self, number: int, allowance: Allowance | None = None) -> Encoded:
        """The result within this bound; without an allowance, it may spend anything."""
        if number not in self.found:
            finer = dataclasses.replace(self.limit, value=self.limit.value * self.start * 2 ** (-number / STEPS))
            self.found[number] = self.encode(finer, allowance or Allowance())
        return self.found[number]


def _first(trials: _Trials[Encoded], positions: Array) -> int | None:
    """The number of the coarsest bound that is not too expensive, and not larger than the next one."""
    allowance = Allowance(DEAR * len(positions) / (8 * positions.dtype.itemsize), LONG * len(positions))
    for number in range(0, STEPS * MOST_HALVES, STEPS):
        try:
            found = trials.result(number, allowance)
        except TooExpensive:
            continue
        try:
            coarser = trials.result(number - 1, allowance) if number else found
        except TooExpensive:
            return number
        return number - 1 if coarser.nbytes < found.nbytes else number
    return None
