"""Decoded chunks of the steps of a series, the latest few: each step is predicted from those before it.

Without them, reading steps one after the other would decode each many times. A chunk is found by its place and the checksum
of its values, so that it is the right one, wherever it was decoded: by a reader, or when it was written. Members of a
dataset are told apart, and types: zeros of all numbers have the same bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.archive.layout import ArrayLayout, Index

MOST_BYTES = 2**28
LEAST = 64   # chunks that are kept, however large they are: threads that decode side by side need a few each

Key = tuple[Any, ...]


class DecodedChunks:
    """Chunks of at most so many bytes, of which those that were not used for the longest time are given up.

    >>> kept = DecodedChunks()
    >>> kept.put(("values", (0,), b"1234"), np.arange(3.0))
    >>> kept.get(("values", (0,), b"1234")).tolist(), kept.get(("values", (0,), b"12_4"))
    ([0.0, 1.0, 2.0], None)
    """

    def __init__(self, most_bytes: int = MOST_BYTES, least: int = LEAST) -> None:
        self.most_bytes, self.least, self.nbytes = most_bytes, least, 0
        self._chunks: OrderedDict[Key, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return DecodedChunks, (self.most_bytes, self.least)   # another process decodes its own

    def get(self, key: Key) -> np.ndarray | None:
        """The values of a chunk, if they are kept."""
        with self._lock:
            if key in self._chunks:
                self._chunks.move_to_end(key)
            return self._chunks.get(key)

    def put(self, key: Key, values: np.ndarray) -> None:
        """Keep the values of a chunk, which must not change later."""
        values = values.view() if values.base is None else values.copy()   # of a part, the whole would be kept
        values.flags.writeable = False
        with self._lock:
            if (known := self._chunks.pop(key, None)) is not None:
                self.nbytes -= known.nbytes
            self._chunks[key] = values
            self.nbytes += values.nbytes
            while self.nbytes > self.most_bytes and len(self._chunks) > self.least:
                self.nbytes -= self._chunks.popitem(last=False)[1].nbytes


@dataclass(frozen=True)
class ChunksOfMember:
    """The chunks of one member of the steps, or of steps that have none."""

    chunks: DecodedChunks
    member: str | None = None

    def get(self, layout: ArrayLayout, index: Index, checksum: bytes) -> np.ndarray | None:
        """The values of the chunk of an array that is at this place and has this checksum, if they are kept."""
        return self.chunks.get(self._key(layout, index, checksum))

    def put(self, layout: ArrayLayout, index: Index, checksum: bytes, values: np.ndarray) -> None:
        """Keep the values of a chunk, which must not change later."""
        self.chunks.put(self._key(layout, index, checksum), values)

    def _key(self, layout: ArrayLayout, index: Index, checksum: bytes) -> Key:
        return self.member, layout.name, layout.dtype.str, index, checksum
