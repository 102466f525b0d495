"""Caches that keep the latest tokens exactly, and code whole blocks of older ones.

A new token sees the latest ones as they are. Blocks are coded before a model appends, so what a token sees depends on its
position alone, not on how many tokens are computed at once (as long as these do not cross the border of a block).

The decoded blocks stay in memory beside their bytes: this is an instrument that compares codings, and need not decode each
block for every new token. Only the packed form is used as it is.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, Self

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.caches.distortion import Distortion
from workbench.propagation.caches.steps import query_sizes, token_sizes
from workbench.propagation.language.cache import ExactCache

FLOAT16 = 16   # bits of a number in the cache that others are compared with


class Coded(NamedTuple):
    """Blocks as they are decoded, and the bits that each kind takes, with all that a decoder needs."""

    keys: np.ndarray
    values: np.ndarray
    key_bits: float
    value_bits: float


class BlockedCache(ExactCache):
    """A cache whose older tokens are coded in blocks; `recent` tokens at least stay exact. A coding has `_code` alone."""

    name = "blocks"

    def __init__(self, recent: int = 64, block: int = 64) -> None:
        super().__init__()
        self.recent, self.block = whole_number("recent", recent, least=0), whole_number("block", block, least=1)
        self.coded_tokens: dict[int, int] = {}   # of each layer
        self.key_bits = self.value_bits = 0.0
        self.coded_numbers = 0                  # keys, or values
        self._squares: dict[int, np.ndarray] = {}
        self._queries: dict[int, int] = {}
        self.key_distortion, self.value_distortion = Distortion(), Distortion()

    @abstractmethod
    def empty(self) -> Self:
        """A cache with the same settings that holds nothing."""

    @abstractmethod
    def _code(self, layer: int, keys: np.ndarray, values: np.ndarray) -> Coded:
        """Code the next blocks of a layer, (heads, tokens, width) each."""

    def append(self, layer: int, keys: Array, values: Array) -> None:
        """Take the keys and values of new tokens, after coding the blocks that are old enough."""
        xp = backend.namespace(keys, values)
        if keys.shape != values.shape or keys.ndim != 3:
            raise WorkbenchError(
                f"keys and values must be arrays (heads, tokens, width) of one shape; got {keys.shape} and {values.shape}"
            )
        for what, given in (("keys", keys), ("values", values)):
            if not bool(xp.isfinite(given).all()):
                raise WorkbenchError(f"{what} must be finite to be coded; got NaN or infinity in layer {layer}")
        self._settle(layer)
        super().append(layer, keys, values)

    def attend(self, layer: int, queries: Array) -> Array:
        """The attention of queries, which are those of the last tokens."""
        if not self.coded_tokens.get(layer):
            self._learn(layer, backend.to_host(queries))
        return self._attention(layer, queries)

    def _attention(self, layer: int, queries: Array) -> Array:
        return super().attend(layer, queries)

    def _learn(self, layer: int, queries: np.ndarray) -> None:
        """Add up the squares of queries until the first block is coded: those of the prompt, by channel of each head."""
        grouped = queries.reshape(len(self._held[layer][0]), -1, queries.shape[-1]).astype(np.float64)
        self._squares[layer] = self._squares.get(layer, 0.0) + (grouped**2).sum(axis=1)
        self._queries[layer] = self._queries.get(layer, 0) + grouped.shape[1]

    def query_sums(self, layer: int) -> tuple[np.ndarray, int]:
        """The sums of the squares of queries, (heads, width), and of how many queries; zeros if there were none."""
        heads, _, width = self._held[layer][0].shape
        return self._squares.get(layer, np.zeros((heads, width))), self._queries.get(layer, 0)

    def restore(self, layer: int, keys: Array, values: Array) -> None:
        """Take the tokens of a layer as they were stored, coded ones as they are decoded."""
        super().append(layer, keys, values)

    def restore_queries(self, layer: int, sums: np.ndarray, count: int) -> None:
        """Take what `query_sums` has returned."""
        if count:
            self._squares[layer], self._queries[layer] = sums, count

    def query_squares(self, layer: int) -> np.ndarray:
        """The mean squares of these queries, (heads, width); ones if there were none."""
        if layer not in self._squares:
            heads, _, width = self._held[layer][0].shape
            return np.ones((heads, width))
        return self._squares[layer] / self._queries[layer]

    def _settle(self, layer: int) -> None:
        start = self.coded_tokens.get(layer, 0)
        stop = max(self.length(layer) - self.recent, 0) // self.block * self.block
        if stop <= start:
            return
        keys, values = (held[:, start:stop] for held in self._held[layer])
        given = backend.to_host(keys).copy(), backend.to_host(values).copy()
        coded = self._code(layer, *given)
        weights = query_sizes(self.query_squares(layer))[:, None, :], 1 / token_sizes(given[1])[None, :, None]
        for kind, before, after, weight in zip(
            (self.key_distortion, self.value_distortion), given, (coded.keys, coded.values), weights, strict=True
        ):
            kind.add(before * weight, after * weight, self.block)
        xp = backend.namespace(keys)
        keys[...], values[...] = xp.asarray(coded.keys), xp.asarray(coded.values)
        self.coded_tokens[layer] = stop
        self.key_bits += coded.key_bits
        self.value_bits += coded.value_bits
        self.coded_numbers += keys.size

    @property
    def bits_per_value(self) -> float:
        """The bits of a coded key or value, with all side information; NaN before there is a block."""
        return self._share(self.key_bits + self.value_bits) / 2

    @property
    def bits_per_key(self) -> float:
        """The same of keys alone."""
        return self._share(self.key_bits)

    @property
    def bits_of_values(self) -> float:
        """The same of values alone."""
        return self._share(self.value_bits)

    @property
    def ratio(self) -> float:
        """How many times smaller the coded tokens are than in float16."""
        return FLOAT16 / self.bits_per_value

    @property
    def fewest_bits(self) -> float:
        """The rate-distortion bound for the errors of this cache, of keys and values together (`distortion.py`)."""
        return (self.key_distortion.fewest_bits + self.value_distortion.fewest_bits) / 2

    def _share(self, bits: float) -> float:
        return bits / self.coded_numbers if self.coded_numbers else float("nan")

    def __repr__(self) -> str:
        coded = f"{self.bits_per_value:.2f} bits per value" if self.coded_numbers else "nothing coded yet"
        return f"{type(self).__name__}({self.name}; {coded})"
