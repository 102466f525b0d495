"""Resource limits for decoding one array in another process, and how they are enforced.

All limits grow with the known size of the array, so that a small chunk cannot take much, whatever its bytes claim. They
are generous: the slowest of the codecs here, SPERR, decodes 40 MB per second, and 2 MB per second suffice.
"""

from __future__ import annotations

import math
import mmap
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

MARGIN = 512 * 2**20        # bytes that a library needs for any size
MEMORY_PER_BYTE = 8
SECONDS = 10                # likewise
SECONDS_PER_BYTE = 1 / 2e6
STATM = Path("/proc/self/statm")
PATIENCE = 3                # seconds by the clock per second of processor time, unless the caller has more: others run, too


@dataclass(frozen=True)
class Limits:
    """Bytes of memory beyond those that the process has, seconds of processor time, and seconds by the clock."""

    memory: int
    processor: int
    clock: int

    @classmethod
    def for_size(cls, nbytes: int, patience: float | None = None) -> Self:
        """The limits for decoding an array of so many bytes.

        >>> Limits.for_size(8 * 2**20)
        Limits(memory=603979776, processor=14, clock=42)
        """
        processor = SECONDS + int(nbytes * SECONDS_PER_BYTE)
        clock = math.ceil((PATIENCE if patience is None else patience) * processor)
        return cls(MARGIN + MEMORY_PER_BYTE * nbytes, processor, clock)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """End this process when a `with` block takes longer, and refuse it memory beyond the limit."""
        import resource

        memory, processor = (resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime) + 1
        if STATM.exists():   # on Linux; elsewhere the system does not enforce this limit either
            resource.setrlimit(resource.RLIMIT_AS, (_least(_address_space() + self.memory, memory[1]), memory[1]))
        resource.setrlimit(resource.RLIMIT_CPU, (_least(used + self.processor, processor[1]), processor[1]))
        signal.alarm(self.clock)
        try:
            yield
        finally:
            signal.alarm(0)
            resource.setrlimit(resource.RLIMIT_AS, memory)
            resource.setrlimit(resource.RLIMIT_CPU, processor)


def write_no_files() -> None:
    """Let this process leave nothing behind: no dump of its memory when it crashes, no file."""
    import resource

    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))


def _address_space() -> int:
    """The bytes of address space that this process has."""
    return int(STATM.read_text().split()[0]) * mmap.PAGESIZE


def _least(wanted: int, most: int) -> int:
    """A limit that does not exceed the one that is set already (-1 for none)."""
    return wanted if most < 0 else min(wanted, most)
