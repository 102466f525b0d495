"""The shape of the chunks of an array: as `chunks=` asks for, as thin as limits of slices need, or of a usual size.

`chunks` says for each axis how many points a chunk has, -1 for the whole axis and None for as many as is usual. Axes that
it leaves free are cut until a chunk has at most the usual number of values, the longest axis first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.arguments import whole_number
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Limits, SliceLimits

WHOLE = -1

Axes = tuple[int | None, ...]                        # what is asked for along each axis
Chunks = int | Axes | Mapping[str, int | None]       # or by the names of dimensions; a number is for every axis


def checked_chunks(given: Any) -> Chunks | None:
    """The shape of chunks that was asked for, with sizes that some array could have.

    >>> checked_chunks([1, -1]), checked_chunks({"time": 1})
    ((1, -1), {'time': 1})
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        if not given or any(not isinstance(name, str) for name in given):
            raise WorkbenchError(f'chunks must map names of dimensions to sizes, as {{"time": 1}}; got {briefly(given)}')
        return {name: _size(size) for name, size in given.items()}
    if isinstance(given, list | tuple):
        return tuple(map(_size, given))
    size = _size(given)
    assert size is not None
    return size


def axes_of(chunks: Chunks, shape: Sequence[int], names: Any) -> Axes:
    """What is asked for along each axis of an array of this shape, whose dimensions may have names.

    >>> axes_of({"time": 1}, (10, 20), ["time", "x"]), axes_of(64, (10, 20), None), axes_of((1, -1), (10, 20), None)
    ((1, None), (10, 20), (1, 20))
    """
    if isinstance(chunks, Mapping):
        known = names_of(names, len(shape))
        if strangers := [name for name in chunks if name not in known]:
            listed = f"there are {', '.join(map(repr, known))}"
            there = listed if known else "the data name none: give one size for each axis"
            raise WorkbenchError(f"chunks must name dimensions of the data; got {strangers[0]!r}: {there}")
        chunks = tuple(chunks.get(name) for name in known)
    if isinstance(chunks, int):
        chunks = (chunks,) * len(shape)
    if len(chunks) != len(shape):
        raise WorkbenchError(f"chunks must have one size for each of {len(shape)} axes; got {len(chunks)}: {chunks}")
    return tuple(
        None if along is None else size if along == WHOLE else min(along, size)
        for along, size in zip(chunks, shape, strict=True)
    )


def names_of(names: Any, count: int) -> list[str]:
    """The names of so many dimensions, or none."""
    fits = isinstance(names, list | tuple) and len(names) == count and all(isinstance(name, str) for name in names)
    return list(names) if fits else []


def chunk_shape(
    shape: tuple[int, ...], most: int, chunks: Axes | None = None, limits: Limits | None = None
) -> tuple[int, ...]:
    """The shape of chunks; `most` is the usual number of values, and no chunk crosses slices whose limits differ.

    >>> chunk_shape((100, 80), 2000), chunk_shape((100, 80), 2000, (1, None)), chunk_shape((100, 80), 2000, (7, 80))
    ((50, 40), (1, 80), (7, 80))
    """
    axes = (None,) * len(shape) if chunks is None else chunks
    cut = [size if along is None else along for along, size in zip(axes, shape, strict=True)]
    free, thin = [axis for axis, along in enumerate(axes) if along is None], None
    if isinstance(limits, SliceLimits) and limits.thickness < shape[limits.axis]:
        thin = limits.axis
        cut[thin] = _thickness(limits, axes[thin], shape[thin])
    while math.prod(cut) > most and any(cut[axis] > 1 for axis in free):
        longest = max(free, key=lambda axis: cut[axis])
        half = -(-cut[longest] // 2)
        cut[longest] = half if longest != thin else _divisor(cut[longest], half)
    return tuple(cut)


def _thickness(limits: SliceLimits, asked: int | None, size: int) -> int:
    """How many slices a chunk may have so that none crosses limits; refused where another number is asked for."""
    most = limits.thickness
    if asked is None or asked == size:
        return most
    if most % asked:
        raise WorkbenchError(
            f"a chunk must not hold slices whose limits differ: along axis {limits.axis}, chunks must be {most} slices "
            f"thick, or a divisor of it; got {asked}"
        )
    return asked


def _divisor(number: int, most: int) -> int:
    """The largest divisor of a number up to another."""
    return next(divisor for divisor in range(most, 0, -1) if number % divisor == 0)


def _size(given: Any) -> int | None:
    if given is None:
        return None
    size = whole_number("the size of chunks (-1 for a whole axis)", given, least=WHOLE)
    if size == 0:
        raise WorkbenchError("the size of chunks must not be 0: give -1 for a whole axis")
    return size
