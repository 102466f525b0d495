"""Slabs and boxes of a mesh: the cuts, and work on slabs spread over threads.

NumPy transforms on one thread, but releases the interpreter's lock meanwhile. Slabs transformed in a thread pool keep all
cores busy, and slabs that fit a cache gain as much again. The cuts do not depend on the number of threads, so neither
do the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from workbench import backend

Slices = tuple[slice, ...]   # a part of an array: a run of places along each axis

_SLAB_BYTES = 1 << 20   # a slab and its transform stay in a second-level cache


def rows_of(shape: Sequence[int], most: int) -> list[slice]:
    """Runs of rows of the first axis that hold at most `most` values, but one row at least.

    >>> rows_of((5, 10), most=20)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    rows = max(1, most // max(1, math.prod(shape[1:])))
    return [slice(start, min(start + rows, shape[0])) for start in range(0, shape[0], rows)]


def boxes_of(grid: Sequence[int], most: int) -> tuple[int, ...]:
    """The shape of boxes, at most so many, into which a grid is cut: small ones, filled from the last axis on.

    >>> boxes_of((16, 16, 16), most=1024), boxes_of((3, 10), most=4), boxes_of((3, 10), most=30)
    ((1, 1, 4), (1, 10), (1, 1))
    """
    wanted, shape = -(-math.prod(grid) // most), []
    for count in reversed(grid):
        along = -(-count // max(count // wanted, 1))   # in runs of equal length
        wanted = -(-wanted // along)
        shape.append(along)
    return tuple(reversed(shape))


def over_slabs(work: Callable[[slice], None], layers: int, layer_bytes: int) -> None:
    """Call `work` with slices that together cover `layers` layers of a mesh, on as many threads as the kernels use.

    >>> over_slabs(print, layers=3, layer_bytes=1 << 20)
    slice(0, 1, None)
    slice(1, 2, None)
    slice(2, 3, None)
    """
    slabs = rows_of((layers, layer_bytes), _SLAB_BYTES)
    with ThreadPoolExecutor(backend.threads()) as pool:
        for _ in pool.map(work, slabs):   # iterating over the results raises the exceptions of the threads
            pass
