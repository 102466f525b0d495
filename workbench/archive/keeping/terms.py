"""What is kept, and how far the repair of one place reaches: the same for all subdomains.

The widths follow from the code of `clusters/keep`. A particle always stays within its bound, so that decoded, moved and
original position are at most `shift` apart. A candidate for a move sees its neighbours within `far` (the longest linking
length and the margin) plus the interaction radius, and everything else that decides about it is a distance between two of
these. So two particles whose originals are farther apart than `interaction` cannot affect each other's moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.clusters.keep import KeepClusters
from workbench.clusters.keep.attempts import RADII
from workbench.clusters.keep.edits import Surmise
from workbench.clusters.keep.problem import MOST_BOUND, margin_of
from workbench.data.outline import Outline
from workbench.guarantees import Limit


@dataclass(frozen=True)
class Terms:
    """A promise for particles of one outline, and the distances that follow from it.

    >>> outline = Outline(8, np.dtype("float32"), np.zeros(3), np.ones(3), (2.0, 2.0, 2.0))
    >>> terms = Terms.of(KeepClusters(0.2), Limit("absolute", 0.01), outline)
    >>> round(terms.far, 6), round(terms.interaction, 6), round(terms.ghost_width, 6)
    (0.2, 0.294642, 0.381962)
    """

    promise: KeepClusters
    limit: Limit
    lengths: tuple[float, ...]
    margin: float
    dtype: np.dtype
    dimensions: int
    box: tuple[float, ...] | None

    @classmethod
    def of(cls, promise: KeepClusters, limit: Limit, outline: Outline) -> Self:
        """The terms for these particles."""
        lengths = promise.lengths(outline)
        margin = margin_of(outline, outline.dtype, limit.value, lengths)
        return cls(promise, limit, lengths, margin, outline.dtype, outline.dimensions, outline.box)

    @property
    def bound(self) -> float:
        """The size of the bound, as far as moves use it."""
        return min(self.limit.value, MOST_BOUND)

    @property
    def far(self) -> float:
        """Particles of different groups conflict up to this distance, at the longest linking length."""
        return self.lengths[-1] + self.margin

    @property
    def shift(self) -> float:
        """How far a particle can be from its original position; a little more, for rounding."""
        return math.sqrt(self.dimensions) * self.limit.value * (1 + 1e-6)

    @property
    def reach(self) -> float:
        """How far a candidate sees, in decoded positions."""
        return self.far + max(RADII) * self.bound + 2 * self.margin

    @property
    def interaction(self) -> float:
        """Particles whose originals are farther apart do not affect each other's moves."""
        return self.reach + 2 * self.shift

    @property
    def depth(self) -> float:
        """A subdomain moves those of its particles that are at least this far inside: no other subdomain sees them move."""
        return self.interaction / 2

    @property
    def ghost_width(self) -> float:
        """Whoever affects a particle at this depth is known with all its constraints."""
        return self.depth + self.far + 2 * self.shift

    @property
    def apart(self) -> float:
        """Constraints farther apart are repaired independently: what may move for one is not seen from the other."""
        return 2 * self.interaction

    def surmise(self, decoded: np.ndarray) -> Surmise:
        """The side information about the moves of a decoded chunk."""
        return Surmise.of(decoded, self.bound, self.lengths, self.box)
