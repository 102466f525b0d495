"""Stages that treat each token by itself compute only the tokens that differ, and those of several runs at once.

A fault at one token leaves all earlier ones as they were. And a product with few rows takes nearly as long as one with
many, since a library first puts the weights into another order: so the rows of several runs are multiplied together.

A library may add up in another order where the number of rows is another one, and the bits then differ. So rows are
computed in calls of a few sizes, filled up with zeros, and each size is compared with the whole array once: one row, put at
every place, must give the same bits at all of them. Where it does not, the whole array is computed, and each run alone;
and so it is for more than half of the tokens of one run, where little would be gained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.propagation.containers import array_of
from workbench.propagation.rows import Rows, first_axis
from workbench.propagation.stage import Case, Where

SIZES = (16, 32, 48, 64, 96, 128, 192, 256)   # rows of a call

Known = dict[tuple[str, int, int], bool]   # part, rows of the whole, rows of a call -> whether the bits are the same


@dataclass(frozen=True, eq=False)
class ByToken:
    """What makes `Stage.together` of a function whose inputs have a row for each token.

    `axis` is that of the tokens in what it returns. `known` keeps what was compared; stages with the same name of a `part`
    must have the same shapes.
    """

    function: Callable[..., Array]
    part: str
    known: Known
    axis: int = 0

    def __call__(self, cases: Sequence[Case]) -> list[list[tuple[Array, Where]]]:
        """The output of each case, and its tokens that may differ."""
        reads = [[array_of(each) for each in inputs] for inputs, *_ in cases]
        rows = [_changed_tokens(read, where) for read, (_, _, _, where) in zip(reads, cases, strict=True)]
        count = sum(map(len, rows))
        alone = len(cases) == 1 and 2 * count > len(reads[0][0])
        if alone or not self._same_bits(reads[0], _sizes(count)):
            return [_whole(self.function(*read), self.axis) for read in reads]
        starts = np.cumsum([0, *map(len, rows)])
        taken = [_joined([_taken(read[place], own) for read, own in zip(reads, rows, strict=True)])
                 for place in range(len(reads[0]))]
        made = self._in_calls(taken, count)
        found = []
        for (_, _, (before,), _), own, (start, stop) in zip(cases, rows, pairwise(starts), strict=True):
            old = array_of(before)
            new = old.copy()
            where = (slice(None),) * self.axis + (backend.namespace(new).asarray(own),)
            new[where] = made[(slice(None),) * self.axis + (slice(start, stop),)]
            found.append([(new, Rows(old.shape, self.axis, own))])
        return found

    def _in_calls(self, inputs: Sequence[Array], count: int) -> Array:
        """The function of these rows, in calls of the known sizes."""
        made, at = [], 0
        for size in _sizes(count):
            part = [each[at : at + size] for each in inputs]
            missing = size - len(part[0])
            if missing:
                part = [_filled(each, missing) for each in part]
            result = self.function(*part)
            made.append(result if not missing else result[(slice(None),) * self.axis + (slice(size - missing),)])
            at += size
        return _joined(made, self.axis)

    def _same_bits(self, inputs: Sequence[Array], sizes: Sequence[int]) -> bool:
        """Whether calls of these sizes give the bits of one of the size of the inputs, at every place."""
        return all(self._compared(inputs, size) for size in set(sizes))

    def _compared(self, inputs: Sequence[Array], size: int) -> bool:
        key = self.part, len(inputs[0]), size
        if key not in self.known:
            draws, xp = np.random.default_rng(0), backend.namespace(*inputs)
            row = [xp.asarray(draws.normal(size=(1, *each.shape[1:])).astype(each.dtype)) for each in inputs]
            whole, call = (
                first_axis(self.function(*(xp.repeat(each, rows, axis=0) for each in row)), self.axis)
                for rows in (len(inputs[0]), size)
            )
            self.known[key] = bool((whole == whole[:1]).all()) and bool((call == whole[:1]).all())
        return self.known[key]


@dataclass(frozen=True, eq=False)
class LastToken(ByToken):
    """The same for the last token alone. It is computed in a call of the smallest size, as for several runs."""

    def alone(self, x: Array, *weights: Array, **named: Array) -> Array:
        """The function of the last row, filled up."""
        return self.function(_filled(x[-1:], SIZES[0] - 1), *weights, **named)[:1]

    def __call__(self, cases: Sequence[Case]) -> list[list[tuple[Array, Where]]]:
        """The output of each case; none where the last token is as before."""
        last = [array_of(inputs[0])[-1:] for inputs, *_ in cases]
        if not self._same_bits([_filled(last[0], SIZES[0] - 1)], _sizes(len(cases))):
            return [_whole(self.alone(array_of(inputs[0])), 0) for inputs, *_ in cases]
        made = self._in_calls([_joined(last)], len(cases))
        return [_whole(made[number : number + 1], 0) for number in range(len(cases))]


@dataclass(frozen=True, eq=False)
class AllTokens:
    """The same for a function that mixes tokens, such as attention: it is computed whole, and compared token by token."""

    function: Callable[..., Array]
    axis: int

    def __call__(self, cases: Sequence[Case]) -> list[list[tuple[Array, Where]]]:
        """The output of each case, and its tokens that may differ."""
        return [_whole(self.function(*map(array_of, inputs)), self.axis) for inputs, *_ in cases]


def _whole(made: Array, axis: int) -> list[tuple[Array, Where]]:
    return [(made, Rows.of(None, made.shape, axis))]


def _changed_tokens(inputs: Sequence[Array], where: Sequence[Where]) -> np.ndarray:
    """The tokens of which any input differs from that of the run before."""
    found = [Rows.of(each, array.shape, 0).indices for array, each in zip(inputs, where, strict=True)]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def _taken(array: Array, rows: np.ndarray) -> Array:
    return array if len(rows) == len(array) else array[backend.namespace(array).asarray(rows)]


def _joined(parts: Sequence[Array], axis: int = 0) -> Array:
    return parts[0] if len(parts) == 1 else backend.namespace(*parts).concatenate(parts, axis=axis)


def _filled(array: Array, missing: int) -> Array:
    xp = backend.namespace(array)
    return xp.concatenate([array, xp.zeros((missing, *array.shape[1:]), array.dtype)])


def _sizes(count: int) -> list[int]:
    """The sizes of the calls for so many rows.

    >>> _sizes(300), _sizes(1)
    ([256, 48], [16])
    """
    full, rest = divmod(count, SIZES[-1])
    return [SIZES[-1]] * full + ([next(size for size in SIZES if size >= rest)] if rest else [])
