"""Launches a translated kernel, and says what was wrong with a launch: where in its code, and by which thread."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from device_code.counting import Counting
from device_code.ptx import Entry, Instruction

MESSAGE, CONFLICTS = 1000, 200   # bytes, and how many conflicts are told
GUARD = 512                      # bytes around an array
MOST_THREADS = 1024              # of a block
HARMLESS = "harmless race:"      # a comment with these words and a reason, at the line of one of both accesses


class DeviceError(Exception):
    """What would be an error, or undefined, on a card; it names the kernel, the thread and the instruction."""


@dataclass(frozen=True)
class Checks:
    """What the build that checks does beyond looking at each address.

    `together` threads are begun in any order and go on in turns by chance, from `seed`; 1: one after the other. With
    `races`, conflicts of threads are errors. `nothing` is the byte that local memory has before it is written.
    """

    together: int = 1
    seed: int = 0
    races: bool = True
    nothing: int = 0xA5


class _Extent(ctypes.Structure):
    _fields_ = (("begin", ctypes.c_uint64), ("end", ctypes.c_uint64), ("shadow", ctypes.c_uint64))


class _Conflict(ctypes.Structure):
    _fields_ = (("one", ctypes.c_uint32), ("other", ctypes.c_uint32), ("address", ctypes.c_uint64))


PLAIN = (
    ("grid", ctypes.c_uint32), ("block", ctypes.c_uint32), ("arguments", ctypes.c_void_p), ("message", ctypes.c_void_p),
    ("message_size", ctypes.c_uint32), ("site", ctypes.c_uint32), ("thread", ctypes.c_uint64),
)


class _Launch(ctypes.Structure):
    """`Launch` of machine.hpp."""

    _fields_ = PLAIN


class _Checked(ctypes.Structure):
    """`Launch` of checked.hpp."""

    _fields_ = (
        *PLAIN, ("arrays", ctypes.POINTER(_Extent)), ("array_count", ctypes.c_uint32), ("together", ctypes.c_uint32),
        ("seed", ctypes.c_uint64), ("conflicts", ctypes.POINTER(_Conflict)), ("conflict_room", ctypes.c_uint32),
        ("conflict_count", ctypes.c_uint32), ("nothing", ctypes.c_uint32), ("unused", ctypes.c_uint32),
        ("harmless", ctypes.c_void_p),
    )


class _Counted(ctypes.Structure):
    """`Launch` of counted.hpp."""

    _fields_ = (*PLAIN, ("counts", ctypes.c_void_p), ("sites", ctypes.c_uint32), ("unused", ctypes.c_uint32))


@dataclass(frozen=True, eq=False)
class Kernel:
    """One kernel of a module; `lines` are those of its source, `watch` is for what it was compiled beside running."""

    entry: Entry
    function: Any
    lines: Sequence[str]
    watch: Checks | Counting | None = None

    def __call__(self, grid: int, block: int, arguments: Sequence[np.ndarray | np.generic]) -> None:
        """Run all threads of a launch."""
        if not (1 <= block <= MOST_THREADS and 1 <= grid < 2**31):
            raise DeviceError(
                f"{self.entry.name}: a grid must have at least one block, and a block 1 to {MOST_THREADS} threads; got "
                f"{grid} and {block}"
            )
        for each in arguments:
            if not isinstance(each, np.ndarray | np.generic):
                raise DeviceError(f"{self.entry.name} takes arrays and scalars of NumPy; got {type(each).__name__}")
            if not each.flags.c_contiguous:
                raise DeviceError(f"{self.entry.name}: arrays must be contiguous; got strides {each.strides}")
        if not isinstance(self.watch, Checks):
            launch = _Counted() if isinstance(self.watch, Counting) else _Launch()
            if isinstance(self.watch, Counting):
                table = self.watch.table(self.entry, self.lines)
                launch.counts, launch.sites = table.ctypes.data, len(table)
            return self._run(launch, grid, block, arguments, lambda array: int(array.ctypes.data))
        memory = Memory([each for each in arguments if isinstance(each, np.ndarray)])
        conflicts, launch = (_Conflict * CONFLICTS)(), _Checked()
        launch.arrays, launch.array_count = memory.extents, len(memory.runs)
        launch.together, launch.seed, launch.nothing = self.watch.together, self.watch.seed, self.watch.nothing
        launch.conflicts, launch.conflict_room = conflicts, CONFLICTS if self.watch.races else 0
        launch.harmless = self._harmless.ctypes.data
        try:
            self._run(launch, grid, block, arguments, memory.place)
        finally:
            memory.give_back()
        if launch.conflict_count > CONFLICTS:
            raise DeviceError(f"{self.entry.name}: {launch.conflict_count:,} pairs of accesses conflict, too many to list")
        return self._require_order(list(conflicts[: launch.conflict_count]))

    def _run(
        self, launch: Any, grid: int, block: int, arguments: Sequence[np.ndarray | np.generic],
        place: Callable[[np.ndarray], int],
    ) -> None:
        """Fill in what all builds take, and launch."""
        values = [
            np.array(place(each), np.uint64) if isinstance(each, np.ndarray) else np.asarray(each) for each in arguments
        ]
        self._require_widths(values)
        places = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        message = ctypes.create_string_buffer(MESSAGE)
        launch.grid, launch.block, launch.arguments = grid, block, ctypes.addressof(places)
        launch.message, launch.message_size = ctypes.addressof(message), MESSAGE
        if self.function(ctypes.byref(launch)):
            raise DeviceError(
                f"{self.entry.name}: {message.value.decode()}, in thread {launch.thread}, {self.where(launch.site)}"
            )

    def _require_widths(self, values: Sequence[np.ndarray]) -> None:
        if len(values) != len(self.entry.parameters):
            raise DeviceError(f"{self.entry.name} takes {len(self.entry.parameters)} arguments; got {len(values)}")
        for value, (type, name) in zip(values, self.entry.parameters, strict=True):
            if 8 * value.itemsize != int(type[1:]):
                raise DeviceError(f"{name} must have {type[1:]} bits; got {value.dtype}")

    def _require_order(self, conflicts: Sequence[Any]) -> None:
        """Refuse conflicts between threads."""
        if conflicts:
            pairs = "\n".join(f"  {self.where(each.one)}\n  {self.where(each.other)}" for each in conflicts[:5])
            raise DeviceError(
                f"{self.entry.name}: {len(conflicts)} pairs of accesses of several threads to one address, at least one of "
                f"them a write, at least one neither atomic nor volatile:\n{pairs}"
            )

    @functools.cached_property
    def _harmless(self) -> np.ndarray:
        """For each instruction, whether a comment says why its conflicts are harmless."""
        return np.array([HARMLESS in self._line(each) for each in self.entry.instructions], np.uint8)

    def _line(self, instruction: Instruction) -> str:
        """The line of the source that became an instruction, if the compiler has told."""
        return self.lines[instruction.source - 1] if 0 < instruction.source <= len(self.lines) else ""

    def where(self, site: int) -> str:
        """An instruction and the line of the source."""
        found = self.entry.instructions[site]
        line = self._line(found).strip()
        return f"line {found.line} of its PTX: {found.text}" + (f" ({line!r})" if line else "")


class Memory:
    """Copies of arrays that end where the arrays end, with nothing that may be accessed beside them.

    Arrays that share memory share their copy, too.
    """

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.runs: list[tuple[int, int]] = []   # where arrays begin and end that share no memory
        for begin, end in sorted((each.ctypes.data, each.ctypes.data + each.nbytes) for each in arrays if each.nbytes):
            if self.runs and begin < self.runs[-1][1]:
                self.runs[-1] = self.runs[-1][0], max(end, self.runs[-1][1])
            else:
                self.runs.append((begin, end))
        self._held = [np.empty(end - begin + 2 * GUARD + 256, np.uint8) for begin, end in self.runs]
        pairs = zip(self._held, self.runs, strict=True)
        self._begins = [held.ctypes.data + GUARD + (begin - held.ctypes.data) % 256 for held, (begin, _) in pairs]
        for copy, (begin, end) in zip(self._begins, self.runs, strict=True):
            ctypes.memmove(copy, begin, end - begin)

    @property
    def extents(self) -> Any:
        """The copies as the launch takes them."""
        found, shadow = [], 0
        for copy, (begin, end) in sorted(zip(self._begins, self.runs, strict=True)):
            found.append(_Extent(copy, copy + end - begin, shadow))
            shadow += end - begin
        return (_Extent * len(found))(*found)

    def place(self, array: np.ndarray) -> int:
        """Where the copy of an array begins."""
        for copy, (begin, end) in zip(self._begins, self.runs, strict=True):
            if begin <= array.ctypes.data < end:
                return copy + array.ctypes.data - begin
        return 0   # an array of no elements

    def give_back(self) -> None:
        """Write what the kernel has written to the arrays themselves."""
        for copy, (begin, end) in zip(self._begins, self.runs, strict=True):
            ctypes.memmove(begin, copy, end - begin)
