"""Quantised keys or values that are multiplied as they are: `kernels/cache.cu` says how their numbers are packed.

It takes about a third more bits than the entropy coder. In return, a product with queries reads the packed bytes alone, and
is faster than unpacking first, for several queries even than a product with the unpacked numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array

PACKED_BLOCK = backend.constant("cache.cu", "BLOCK")
SIDE_BITS = 16 + backend.constant("cache.cu", "MOST_WIDTH").bit_length()   # of a channel: its smallest number, its width


@dataclass(frozen=True, eq=False)
class PackedBlocks:
    """The numbers of some blocks of tokens, of all heads: packed channel by channel.

    >>> import numpy as np
    >>> numbers = np.arange(2 * 3 * 128, dtype=np.int32).reshape(2, 128, 3) % 11 - 5
    >>> packed = PackedBlocks.of(numbers)
    >>> bool((packed.numbers() == numbers).all()), packed.bits / numbers.size < 4.2
    (True, True)
    >>> scores = packed.scores(np.ones((2, 1, 3), np.float32))
    >>> bool((scores[:, 0] == numbers.sum(axis=2)).all())
    True
    """

    heads: int
    dimension: int
    width: Array    # of each channel of each item: (blocks, heads, dimension)
    least: Array
    words: Array

    @classmethod
    def of(cls, numbers: Array) -> PackedBlocks:
        """Whole numbers (heads, tokens, dimension) of whole blocks, each less than 2**15 from zero."""
        xp = backend.namespace(numbers)
        heads, tokens, dimension = numbers.shape
        blocks = tokens // PACKED_BLOCK
        by_channel = numbers.reshape(heads, blocks, PACKED_BLOCK, dimension).transpose(1, 0, 3, 2)
        ordered = xp.ascontiguousarray(by_channel, dtype=xp.int32)
        channels = blocks * heads * dimension
        width, least = xp.empty(channels, xp.uint8), xp.empty(channels, xp.uint16)
        backend.kernel("cache", "channel_widths")(channels, ordered, width, least)
        first = _first(width)
        packed = xp.empty(int(first[-1]), xp.uint64)
        backend.kernel("cache", "pack_channels")(channels, ordered, width, least, first, packed)
        return cls(heads, dimension, width, least, packed)

    @classmethod
    def joined(cls, parts: Sequence[PackedBlocks]) -> PackedBlocks:
        """The blocks of all parts, one after the other."""
        xp, first = backend.namespace(parts[0].width), parts[0]
        arrays = ([getattr(part, name) for part in parts] for name in ("width", "least", "words"))
        return cls(first.heads, first.dimension, *map(xp.concatenate, arrays))

    def beside(self, array: Array) -> PackedBlocks:
        """These blocks on the machine of an array."""
        xp = backend.namespace(array)
        if backend.on_device(self.width) or xp is np:
            return self
        return PackedBlocks(self.heads, self.dimension, *map(xp.asarray, (self.width, self.least, self.words)))

    @property
    def items(self) -> int:
        """Blocks times heads."""
        return len(self.width) // self.dimension

    @property
    def tokens(self) -> int:
        """How many tokens all blocks hold."""
        return self.items // self.heads * PACKED_BLOCK

    @property
    def bits(self) -> int:
        """What all channels take, with their smallest numbers and widths."""
        return 64 * int(self.words.size) + SIDE_BITS * int(self.width.size)

    def numbers(self) -> Array:
        """The numbers again (float32), (heads, tokens, dimension)."""
        return self.by_channel().transpose(1, 0, 3, 2).reshape(self.heads, self.tokens, self.dimension)

    def by_channel(self) -> Array:
        """The numbers in the order in which they are packed: (blocks, heads, dimension, tokens of a block)."""
        xp = backend.namespace(self.width)
        found = xp.empty((self.items // self.heads, self.heads, self.dimension, PACKED_BLOCK), xp.float32)
        backend.kernel("cache", "unpack_channels")(
            self.width.size, self.width, self.least, _first(self.width), self.words, found
        )
        return found

    def scores(self, weights: Array) -> Array:
        """Sums over channels of weight times number, (heads, queries, tokens); weights are (heads, queries, dimension)."""
        xp = backend.namespace(weights)
        heads, queries, _ = weights.shape
        found = xp.empty((heads, queries, self.tokens), xp.float32)
        backend.kernel("cache", "packed_scores")(
            self.items, heads, self.dimension, queries, self.width, self.least, self._first_of_items(), self.words,
            xp.ascontiguousarray(weights, dtype=xp.float32), found,
        )
        return found

    def sums(self, weights: Array) -> Array:
        """Sums over tokens of weight times number, (heads, queries, dimension); weights are (heads, queries, tokens)."""
        xp = backend.namespace(weights)
        heads, queries, _ = weights.shape
        of_blocks = xp.empty((self.items // heads, heads, queries, self.dimension), xp.float32)
        backend.kernel("cache", "packed_sums")(
            self.items, heads, self.dimension, queries, self.width, self.least, self._first_of_items(), self.words,
            xp.ascontiguousarray(weights, dtype=xp.float32), of_blocks,
        )
        found = xp.empty(of_blocks.shape[1:], xp.float32)
        backend.kernel("cache", "add_blocks")(found.size, len(of_blocks), of_blocks, found)
        return found

    def _first_of_items(self) -> Array:
        xp = backend.namespace(self.width)
        return xp.ascontiguousarray(_first(self.width)[:: self.dimension])


def _first(width: Array) -> Array:
    """Where the words of each channel begin, and the end: a channel takes two for each bit of its width."""
    xp = backend.namespace(width)
    found = xp.zeros(width.size + 1, xp.int64)
    xp.cumsum(2 * width.astype(xp.int64), out=found[1:])
    return found
