"""Keeping clusters within a finer bound, where that takes fewer bytes than within the requested one.

Particles that no move can repair are stored with their original coordinates. At a bound near the linking length these may
be so many that a finer lattice for all particles is smaller: half the bound costs one bit for each coordinate. Whatever is
chosen keeps the requested bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol, TypeVar

from workbench.backend import Array
from workbench.clusters.keep import Allowance, TooExpensive
from workbench.guarantees import Limit

MOST_HALVES = 10
STEP = 2**-0.5    # from one bound to the next: it costs half a bit for each coordinate
WORTH = 0.04      # a finer bound is taken where it saves this share of the bytes
DEAR = 2          # bits for each coordinate: with more of them in original coordinates, half the bound is tried at once,
LONG = 200        # as with more distances evaluated, for each particle


class Kept(Protocol):
    """Encoded positions in `nbytes`, of which `added` keep the clusters."""

    @property
    def nbytes(self) -> int:
        """The size of all chunks."""

    @property
    def added(self) -> int:
        """The size of what keeps the clusters."""


Encoded = TypeVar("Encoded", bound=Kept)


def smallest(encode: Callable[[Limit, Allowance], Encoded], limit: Limit, positions: Array) -> Encoded:
    """The smallest result of `encode` within this limit or a finer one; beyond its allowance, it raises TooExpensive."""
    share, best = _first(encode, limit, positions)
    if best is None:
        return encode(limit, Allowance())
    while 16 * best.added > positions.size:   # more than the half bit that the next finer bound costs
        share *= STEP
        found = encode(_finer(limit, share), Allowance())
        if found.nbytes > (1 - WORTH) * best.nbytes:
            break
        best = found
    return best


def _first(
    encode: Callable[[Limit, Allowance], Encoded], limit: Limit, positions: Array
) -> tuple[float, Encoded | None]:
    """The share of the limit, and the result, of the coarsest bound that is not too expensive."""
    allowance = Allowance(DEAR * len(positions) / (8 * positions.dtype.itemsize), LONG * len(positions))
    for halves in range(MOST_HALVES):
        share = 0.5**halves
        try:
            found = encode(_finer(limit, share), allowance)
        except TooExpensive:
            continue
        if not halves:
            return share, found
        try:
            coarser = encode(_finer(limit, share / STEP), allowance)
        except TooExpensive:
            return share, found
        return (share / STEP, coarser) if coarser.nbytes < found.nbytes else (share, found)
    return 1.0, None


def _finer(limit: Limit, share: float) -> Limit:
    return dataclasses.replace(limit, value=limit.value * share)
