"""Memory that was freed: used again while steps follow each other, and returned to the system when nothing needs it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from workbench.backend import c_function

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3   # of glibc's mallopt
USUAL = 2**17          # bytes: glibc's default of both
MOST_REUSED = 2**21    # bytes of an array whose memory is used again in a step
MOST_KEPT = 2**25      # bytes of freed memory that a thread keeps for the next arrays,
IDLE_SECONDS = 1.0     # until so long after the last step


def release_memory() -> None:
    """Return freed memory to the system, where the C library can: by default it keeps it for later arrays.

    >>> release_memory()
    """
    c_function("malloc_trim")(0)   # glibc's


@contextmanager
def reusing_memory() -> Iterator[None]:
    """In a `with` block, let the C library use memory again that was freed; return it a moment after the last such block.

    Workers of Dask run with MALLOC_TRIM_THRESHOLD_=65536, which returns every array to the system at once. Each new one
    then costs page faults, a third of the processor time of some steps, as would returning all between two steps. Arrays of
    two megabytes and more are returned as before: they would leave holes, and NumPy asks for large pages for them.

    The setting is that of the whole process. Afterwards, thresholds are those of the environment (MALLOC_TRIM_THRESHOLD_,
    MALLOC_MMAP_THRESHOLD_) or else the usual 128 KiB; glibc no longer adapts them. What `mallopt` or GLIBC_TUNABLES had set
    before is not restored.

    >>> with reusing_memory():
    ...     total = sum([1.0] * 10**6)
    """
    _reused.begin()
    try:
        yield
    finally:
        _reused.end()


class _ReusedMemory:
    """Whether memory is used again: as long as blocks want it, and for a moment after the last."""

    def __init__(self) -> None:
        self._lock, self._users, self._timer = threading.Lock(), 0, threading.Timer(0, self._give_back)

    def begin(self) -> None:
        """One more block."""
        with self._lock:
            self._users += 1
            self._timer.cancel()
            self._set(MOST_KEPT, MOST_REUSED)

    def end(self) -> None:
        """One block less."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._timer = threading.Timer(IDLE_SECONDS, self._give_back)
                self._timer.daemon = True   # no process waits for it at its end
                with suppress(RuntimeError):   # no more threads: the end of a later block returns it
                    self._timer.start()

    def _give_back(self) -> None:
        with self._lock:
            if self._users == 0:
                self._set(_stated("MALLOC_TRIM_THRESHOLD_"), _stated("MALLOC_MMAP_THRESHOLD_"))
                release_memory()

    def _set(self, kept: int, reused: int) -> None:
        set_option = c_function("mallopt")   # glibc's
        set_option(M_TRIM_THRESHOLD, kept)
        set_option(M_MMAP_THRESHOLD, reused)


def _stated(variable: str) -> int:
    """The bytes that the environment states, or the usual ones where it states nothing, or no integer."""
    try:
        return int(os.environ[variable])
    except (KeyError, ValueError):
        return USUAL


_reused = _ReusedMemory()
