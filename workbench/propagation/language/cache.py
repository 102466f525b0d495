"""The keys and values of the tokens so far, so that a new token is computed alone.

A model appends the new keys (after their rotation) and values of each layer, and then asks for what its queries see. A
cache may hold them in any form, and may compute the attention as it likes: `Cache` says what a model calls.
`KeyValueCache` leaves only `length`, `append`, `keys` and `values` to be written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from workbench import backend
from workbench.backend import Array
from workbench.propagation.language.arithmetic import attention_weights, mixed, scores

_FIRST = 64   # tokens for which room is made at first


class Cache(Protocol):
    """What a model calls. Arrays are (heads, tokens, head width) of float32; queries may have more heads than the others.

    Layers are appended in order, each with the same number of tokens; the position of a token is its number, from 0.
    """

    def length(self, layer: int) -> int:
        """How many tokens a layer holds: the position of the next one."""

    def append(self, layer: int, keys: Array, values: Array) -> None:
        """Take the keys and values of new tokens."""

    def attend(self, layer: int, queries: Array) -> Array:
        """The attention of queries, which are those of the last tokens that were appended."""


class KeyValueCache(ABC):
    """A cache that can return its keys and values, decoded if need be."""

    @abstractmethod
    def length(self, layer: int) -> int:
        """How many tokens a layer holds."""

    @abstractmethod
    def append(self, layer: int, keys: Array, values: Array) -> None:
        """Take the keys and values of new tokens."""

    @abstractmethod
    def keys(self, layer: int) -> Array:
        """All keys of a layer."""

    @abstractmethod
    def values(self, layer: int) -> Array:
        """All values of a layer."""

    def attend(self, layer: int, queries: Array) -> Array:
        """The attention of queries, which are those of the last tokens."""
        return mixed(attention_weights(scores(queries, self.keys(layer))), self.values(layer))


class ExactCache(KeyValueCache):
    """Keys and values as they are.

    >>> import numpy as np
    >>> cache = ExactCache()
    >>> cache.append(0, np.ones((1, 2, 4), np.float32), np.ones((1, 2, 4), np.float32))
    >>> cache.length(0), cache.attend(0, np.ones((3, 1, 4), np.float32)).shape
    (2, (3, 1, 4))
    """

    def __init__(self) -> None:
        self._held: dict[int, list[Array]] = {}
        self._length: dict[int, int] = {}

    def length(self, layer: int) -> int:
        """How many tokens a layer holds."""
        return self._length.get(layer, 0)

    def append(self, layer: int, keys: Array, values: Array) -> None:
        """Take the keys and values of new tokens."""
        start, stop = self.length(layer), self.length(layer) + keys.shape[1]
        held = self._held.setdefault(layer, [keys[:, :0], values[:, :0]])
        for place, new in enumerate((keys, values)):
            if stop > held[place].shape[1]:
                held[place] = _with_room(held[place], max(_FIRST, 2 * stop), start)
            held[place][:, start:stop] = new
        self._length[layer] = stop

    def keys(self, layer: int) -> Array:
        """All keys of a layer."""
        return self._held[layer][0][:, : self.length(layer)]

    def values(self, layer: int) -> Array:
        """All values of a layer."""
        return self._held[layer][1][:, : self.length(layer)]


def _with_room(array: Array, tokens: int, used: int) -> Array:
    """The array with room for so many tokens."""
    larger = backend.namespace(array).empty((array.shape[0], tokens, *array.shape[2:]), array.dtype)
    larger[:, :used] = array[:, :used]
    return larger
