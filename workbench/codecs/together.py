"""Arrays in pieces of equal length that one launch serves, as the chunks of an archive.

A chunk alone keeps no GPU busy, and each launch and each wait for its result takes as long as the work on a chunk. So
kernels of the built-in codec take many chunks at once (`kernels/pieces.cuh`). A single array is one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Pieces:
    """So many items in pieces of equal length, of which the last may be shorter; each is cut into blocks anew.

    >>> pieces = Pieces(count=10, length=6)
    >>> len(pieces), list(pieces), pieces.blocks(4), pieces.block_starts(4).tolist()
    (2, [slice(0, 6, None), slice(6, 10, None)], 3, [0, 4, 6, 10])
    """

    count: int
    length: int

    @classmethod
    def of(cls, count: int, length: int) -> Pieces:
        """The pieces; an empty array is one empty piece."""
        return cls(count, max(min(length, count), 1))

    def __len__(self) -> int:
        return max(-(-self.count // self.length), 1)

    def __iter__(self) -> Iterator[slice]:
        return (slice(n * self.length, min((n + 1) * self.length, self.count)) for n in range(len(self)))

    def blocks_of_each(self, block: int) -> int:
        """How many blocks a piece has, but perhaps the last one."""
        return -(-self.length // block)

    def blocks(self, block: int) -> int:
        """How many blocks all pieces have."""
        last = self.count - (len(self) - 1) * self.length
        return (len(self) - 1) * self.blocks_of_each(block) - (-last // block)

    def block_starts(self, block: int) -> np.ndarray:
        """The first item of each block (int64), and the end."""
        each, number = self.blocks_of_each(block), np.arange(self.blocks(block))
        return np.append(number // each * self.length + number % each * block, self.count)

    def blocks_by_piece(self, block: int) -> Iterator[slice]:
        """Which blocks each piece has."""
        return iter(Pieces(self.blocks(block), self.blocks_of_each(block)))
