"""A request to a decoder, and the layout of its data in the shared file."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.codecs.isolation.exchange import SharedFile, aligned
from workbench.codecs.isolation.limits import Limits


@dataclass(frozen=True)
class Question:
    """A request, the data that belong to it, and the shape and type of the array that is wanted.

    >>> question = Question({"work": "decode"}, [memoryview(b"code")], (2, 3), np.dtype("float64"))
    >>> question.described()["given"], question.described()["result"], question.size
    ([(0, 4)], 64, 112)
    """

    request: Mapping[str, Any]
    given: Sequence[memoryview]
    shape: tuple[int, ...]
    dtype: np.dtype
    patience: float | None = None   # seconds by the clock per second of processor time

    @functools.cached_property
    def _places(self) -> list[int]:
        """Where the data begin, one after the other, and last the result."""
        return list(itertools.accumulate((aligned(part.nbytes) for part in self.given), initial=0))

    @property
    def nbytes(self) -> int:
        """The size of the result."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def size(self) -> int:
        """The size of a file that holds all of it."""
        return self._places[-1] + self.nbytes

    @property
    def limits(self) -> Limits:
        """The resource limits for answering it."""
        return Limits.for_size(self.nbytes, self.patience)

    def described(self) -> dict[str, Any]:
        """The request with the places of everything, ready for JSON."""
        sizes = [part.nbytes for part in self.given]
        given = list(zip(self._places[:-1], sizes, strict=True))
        return {**self.request, "limits": vars(self.limits), "given": given, "result": self._places[-1]}

    def write(self, file: SharedFile) -> None:
        """Put the data into their places."""
        for place, part in zip(self._places[:-1], self.given, strict=True):
            file.write(place, part)

    def result(self, file: SharedFile) -> np.ndarray:
        """A copy of what was put into the place of the result."""
        return file.array(self._places[-1], self.shape, self.dtype).copy()
