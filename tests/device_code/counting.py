"""What kernels do, counted: instructions, divergence, bytes, and the sectors of memory that warps touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from device_code.ptx import Entry

COLUMNS = ("threads", "warps", "requests", "sectors", "bytes")   # of `Counts` in counted.hpp
SECTOR, LANES = 32, 32


@dataclass(frozen=True)
class Total:
    """One kernel over all its launches.

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
class Counting:
    """Counts of every instruction of every kernel that was launched."""

    entries: dict[str, Entry] = field(default_factory=dict)
    tables: dict[str, np.ndarray] = field(default_factory=dict)

    def table(self, entry: Entry) -> np.ndarray:
        """The counts of a kernel, a row for each instruction, to which launches add."""
        if entry.name not in self.tables:
            self.entries[entry.name] = entry
            self.tables[entry.name] = np.zeros((len(entry.instructions), len(COLUMNS)), np.uint64)
        return self.tables[entry.name]

    def totals(self) -> Iterator[Total]:
        """All kernels that were launched."""
        for name, entry in self.entries.items():
            yield _total(name, entry, self.tables[name].astype(np.int64))

    def clear(self) -> None:
        """Begin again."""
        for table in self.tables.values():
            table[:] = 0


def _total(name: str, entry: Entry, table: np.ndarray) -> Total:
    count = dict(zip(COLUMNS, table.T, strict=True))
    spaces = [set(each.modifiers) for each in entry.instructions]
    opcodes = np.array([each.opcode for each in entry.instructions])
    local = np.array(["local" in each for each in spaces])
    atomic = np.isin(opcodes, ("atom", "red"))

    def within(column: str, chosen: np.ndarray) -> int:
        return int(count[column][chosen].sum())

    everything = np.ones(len(table), bool)
    return Total(
        name, instructions=within("threads", everything), issued=within("warps", everything),
        loaded=within("bytes", ~local & ((opcodes == "ld") | atomic)),
        stored=within("bytes", ~local & ((opcodes == "st") | atomic)), local=within("bytes", local),
        requests=within("requests", everything), sectors=within("sectors", everything), atomics=within("threads", atomic),
    )
