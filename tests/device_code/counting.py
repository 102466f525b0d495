"""What kernels do, counted: instructions, divergence, bytes, and the sectors of memory that warps touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from device_code.ptx import Entry

COLUMNS = ("threads", "warps", "requests", "sectors", "bytes")   # of `Counts` in counted.hpp
SECTOR, LANES = 32, 32


@dataclass(frozen=True)
class Total:
    """One kernel, or one line of its source, over all its launches.

    `instructions` are those of single threads, `issued` those of warps: where threads go different ways, a warp does both.
    `loaded` and `stored` are the bytes that threads ask for in global memory, `sectors` what a card would move for them if
    nothing were in a cache, and `local` the bytes of local memory.
    """

    name: str
    instructions: int
    issued: int
    loaded: int
    stored: int
    local: int
    requests: int
    sectors: int
    atomics: int

    @property
    def divergence(self) -> float:
        """The share of lanes that had nothing to do while their warp worked."""
        return 1 - self.instructions / (LANES * self.issued) if self.issued else 0.0

    @property
    def moved(self) -> int:
        """Bytes of all sectors that were touched, each as often as a warp asked for it."""
        return SECTOR * self.sectors


@dataclass(frozen=True, eq=False)
class Counted:
    """A kernel that was launched: its code, the lines of its source, and the counts of each instruction."""

    entry: Entry
    lines: Sequence[str]
    table: np.ndarray

    def total(self, name: str, chosen: np.ndarray) -> Total:
        """The sum over these instructions."""
        count = dict(zip(COLUMNS, self.table[chosen].astype(np.int64).T, strict=True))
        instructions = [each for each, wanted in zip(self.entry.instructions, chosen, strict=True) if wanted]
        opcodes = np.array([each.opcode for each in instructions])
        local = np.array(["local" in each.modifiers for each in instructions], bool)
        atomic = np.isin(opcodes, ("atom", "red"))
        return Total(
            name, instructions=int(count["threads"].sum()), issued=int(count["warps"].sum()),
            loaded=int(count["bytes"][~local & ((opcodes == "ld") | atomic)].sum()),
            stored=int(count["bytes"][~local & ((opcodes == "st") | atomic)].sum()),
            local=int(count["bytes"][local].sum()), requests=int(count["requests"].sum()),
            sectors=int(count["sectors"].sum()), atomics=int(count["threads"][atomic].sum()),
        )


@dataclass(frozen=True, eq=False)
class Counting:
    """Counts of every instruction of every kernel that was launched."""

    kernels: dict[int, Counted] = field(default_factory=dict)   # by the identity of the entry: modules may share names

    def table(self, entry: Entry, lines: Sequence[str]) -> np.ndarray:
        """The counts of a kernel, a row for each instruction, to which launches add."""
        if id(entry) not in self.kernels:
            table = np.zeros((len(entry.instructions), len(COLUMNS)), np.uint64)
            self.kernels[id(entry)] = Counted(entry, lines, table)
        return self.kernels[id(entry)].table

    def totals(self) -> Iterator[Total]:
        """All kernels that were launched."""
        for kernel in self.kernels.values():
            yield kernel.total(kernel.entry.name, np.ones(len(kernel.table), bool))

    def lines(self, name: str) -> Iterator[Total]:
        """The lines of a kernel's source, each named by its text; those of functions that it calls, too."""
        for kernel in self.kernels.values():
            if kernel.entry.name != name:
                continue
            sources = np.array([each.source for each in kernel.entry.instructions])
            for source in np.unique(sources):
                text = kernel.lines[source - 1].strip() if 0 < source <= len(kernel.lines) else "without a line"
                yield kernel.total(text, sources == source)

    def clear(self) -> None:
        """Begin again."""
        for kernel in self.kernels.values():
            kernel.table[:] = 0
