"""Work on slabs of a mesh, spread over threads.

NumPy transforms on one thread, but releases the interpreter's lock meanwhile. Slabs transformed in a thread pool keep all
cores busy, and slabs that fit a cache gain as much again. The cuts do not depend on the number of threads, so neither
do the results.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from workbench import backend

_SLAB_BYTES = 1 << 20   # a slab and its transform stay in a second-level cache


def over_slabs(work: Callable[[slice], None], layers: int, layer_bytes: int) -> None:
    """Call `work` with slices that together cover `layers` layers of a mesh, on as many threads as the kernels use.

    >>> over_slabs(print, layers=3, layer_bytes=1 << 20)
    slice(0, 1, None)
    slice(1, 2, None)
    slice(2, 3, None)
    """
    thickness = max(1, _SLAB_BYTES // layer_bytes)
    slabs = [slice(start, min(start + thickness, layers)) for start in range(0, layers, thickness)]
    with ThreadPoolExecutor(backend.threads()) as pool:
        for _ in pool.map(work, slabs):   # iterating over the results raises the exceptions of the threads
            pass
