"""GenericIO, the format of HACC: a header that lists variables and ranks, then each rank's columns, each with a checksum.

Only the columns that are wanted are read: positions, velocities, ids, and those that the caller names. Each of them and the
header are checked against their CRC64, so damage is reported by variable and rank. The first bytes give the byte order,
which is that of the machine that ran the simulation. Large runs split a file into partitions `name#0`, `name#1`, ... and
leave a map of ranks under the plain name; columns may be compressed by Blosc.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.columns import can_be_name
from workbench.data.particles import Particles
from workbench.data.readers.crc64 import crc64
from workbench.data.readers.format import Format
from workbench.data.readers.further import Rows, Wanted, chosen
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, shifted
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source
from workbench.data.readers.tables import IDS, POSITIONS, VELOCITIES, Table, side_by_side
from workbench.errors import WorkbenchError

MAGICS = {b"HACC01L\0": "<", b"HACC01B\0": ">"}
CRC = 8
SMALLEST_HEADER = 152   # up to the physical scale; later versions append to it
NAME = 256
FLOAT, SIGNED = 1, 2
AXIS_FLAGS = (4, 8, 16)   # this variable is the x, y, z position


@dataclass(frozen=True)
class Variable:
    """One column: its place in the record, type and flags."""

    index: int
    name: str
    dtype: np.dtype
    flags: int


@dataclass(frozen=True)
class Header:
    """The whole header, its checksum verified; offsets in it are still checked against its size."""

    source: Source
    raw: bytes
    order: str

    @classmethod
    def of(cls, source: Source) -> Header:
        """Read and verify the header."""
        order = MAGICS.get(magic := source.bytes(0, 8, "header"))
        if order is None:
            raise source.damaged(f"expected the first bytes HACC01L or HACC01B; got {magic!r}")
        size = int(source.array(8, 1, np.dtype(f"{order}u8"), "header")[0])
        raw = source.bytes(0, size, "header")
        _verify(source, raw, int(source.array(size, 1, np.dtype(f"{order}u8"), "a checksum")[0]), "the header")
        header = cls(source, raw, order)
        if size < SMALLEST_HEADER:
            raise source.damaged(f"expected a header of at least {SMALLEST_HEADER} bytes; got {size}")
        return header

    def numbers(self, at: int, count: int, kind: str = "u8") -> list[Any]:
        """Numbers of 8 bytes from a place in the header."""
        if at + 8 * count > len(self.raw):
            raise self.source.damaged(f"the header has {len(self.raw):,} bytes; an entry lies at byte {at:,}")
        return np.frombuffer(self.raw, self.order + kind, count, at).tolist()

    def table(self, at: int) -> list[int]:
        """Where each entry of a table begins, from its count, size and start at a place in the header."""
        count, size, start = self.numbers(at, 3)
        if start + count * size > len(self.raw) or (count and size < 8):
            raise self.source.damaged(f"the header has {len(self.raw):,} bytes; {count:,} entries of {size:,} do not fit")
        return [start + entry * size for entry in range(count)]

    @functools.cached_property
    def ranks(self) -> list[tuple[int, int]]:
        """How many particles each rank wrote, and where its columns begin."""
        return [(count, start) for count, start in (self.numbers(entry + 24, 2) for entry in self.table(72))]

    @functools.cached_property
    def variables(self) -> list[Variable]:
        """All columns, in the order of the file."""
        return [self._variable(index, at) for index, at in enumerate(self.table(48))]

    def _variable(self, index: int, at: int) -> Variable:
        name = self.raw[at : at + NAME].split(b"\0")[0].decode("utf-8", "replace")
        flags, size = self.numbers(at + NAME, 2)
        letter = "f" if flags & FLOAT else "i" if flags & SIGNED else "u"
        if size not in ((4, 8) if letter == "f" else (1, 2, 4, 8)):
            raise WorkbenchError(f"{self.source.name}: items of {size} bytes, in the variable {name}, are not supported")
        return Variable(index, name, np.dtype(f"{self.order}{letter}{size}"), flags)

    @functools.cached_property
    def compressed(self) -> tuple[int, int] | None:
        """Size and start of the table of blocks, if there is one."""
        if self.numbers(96, 1)[0] < SMALLEST_HEADER + 16:
            return None
        size, start = self.numbers(SMALLEST_HEADER, 2)
        return (size, start) if size else None


@dataclass(frozen=True, kw_only=True)
class RankTable(Table):
    """The columns of all ranks in one file. A rank's column is read as a whole, because it has one checksum."""

    ranks: tuple[int, ...]   # their numbers of particles
    names: dict[str, tuple[str, ...]]

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the file, without positions."""
        return tuple(name for name in self.names if name != POSITIONS)

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`, of the ranks that have them."""
        header = _header_at(self.path)
        wanted = _named(header)
        ends = np.cumsum(self.ranks)
        first, last = (int(np.searchsorted(ends, row, side="right")) for row in (start, stop - 1))
        begin = int(ends[first]) - self.ranks[first]
        ranks = range(first, last + 1)
        found = side_by_side([np.concatenate(_column(header, wanted[name], ranks)) for name in self.names[column]])
        if column == POSITIONS and any(origin := header.numbers(104, 3, "f8")):
            found = shifted(found, origin)
        return found[start - begin : stop - begin]

    def sizes(self, most: int) -> tuple[int, ...]:
        """Whole ranks: as many as fit, at least one."""
        sizes: list[int] = []
        for count in self.ranks:
            if sizes and sizes[-1] + count <= most:
                sizes[-1] += count
            elif count:
                sizes.append(count)
        return tuple(sizes)


def read(source: Source, *, box: FileBox = FROM_FILE, wrap: bool = False, columns: Wanted = None) -> Particles:
    """The particles of all ranks, checksums verified."""
    return snapshot([source], columns=columns).within(source.limits).particles(box, wrap)


def snapshot(sources: Sequence[Source], *, columns: Wanted = None) -> Snapshot:
    """The particles in these files, or in the partitions that one of them maps."""
    headers = [_header_at(source.path) for source in sources]
    first, parts = headers[0], [part for header in headers for part in _parts_of(header)]
    if twice := [part.source.name for part in parts if sum(other.source.path == part.source.path for other in parts) > 1]:
        raise WorkbenchError(f"{twice[0]} is given twice: once itself, and once in the map of ranks {sources[0].name}")
    if not any(part.ranks for part in parts):
        raise sources[0].damaged("its header lists no ranks, so there are no particles")
    metadata = {
        "format": "HACC GenericIO",
        "origin": first.numbers(104, 3, "f8"),
        "ranks": sum(len(part.ranks) for part in parts),
        "variables": [variable.name for variable in parts[0].variables],
        "units": "not stated; HACC's convention is comoving Mpc/h and km/s",
    }
    read_anyway = [variable.name for variable in _wanted(parts[0]).values()]
    wanted = chosen(columns, [_offered(part) for part in parts], sources[0].name, read_anyway)
    metadata = noted(metadata, named("variable", _unread(parts[0]) - wanted.keys()))
    cell = Cell(tuple(parts[0].numbers(128, 3, "f8")))
    return Snapshot.of(sources[0].name, [_table(part, wanted) for part in parts], cell, metadata)


def _header_at(path: Path) -> Header:
    """The header of a file, parsed once for all columns and chunks: it may list many thousand ranks."""
    return _parsed(path, Source.at(path).size, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _parsed(path: Path, *state: int) -> Header:
    return Header.of(Source.at(path))


def _parts_of(header: Header) -> list[Header]:
    """The file itself or, if it is the map of ranks, its partitions."""
    if any(variable.name == "$partition" for variable in header.variables):
        return [_header_at(path) for path in _partitions(header)]
    return [header]


def _table(part: Header, further: Rows) -> RankTable:
    ranks = tuple(count for count, _ in part.ranks)
    wanted = _wanted(part)
    names = {POSITIONS: tuple("xyz")}
    if "vx" in wanted:
        names[VELOCITIES] = ("vx", "vy", "vz")
    if "id" in wanted:
        names[IDS] = ("id",)
    kinds = np.result_type(*(wanted[axis].dtype for axis in "xyz"))
    box = tuple(part.numbers(128, 3, "f8"))
    names |= {name: (name,) for name in further}
    return RankTable(
        path=part.source.path, count=sum(ranks), dtype=kinds.newbyteorder("="), ranks=ranks, names=names, box=box,
        further=dict(further),
    )


def _offered(header: Header) -> dict[str, np.dtype]:
    """The further columns, with the types of a row; a name that stands for another variable is none."""
    unread, taken = _unread(header), _wanted(header)
    return {
        variable.name: variable.dtype.newbyteorder("=") for variable in header.variables
        if variable.name in unread and variable.name not in taken and can_be_name(variable.name)
    }


def _named(header: Header) -> dict[str, Variable]:
    """All variables by name, where x, y and z are those of the positions."""
    return {**{variable.name: variable for variable in header.variables}, **_wanted(header)}


def _unread(header: Header) -> set[str]:
    """The variables that are not read."""
    return {variable.name for variable in header.variables} - {variable.name for variable in _wanted(header).values()}


def _wanted(header: Header) -> dict[str, Variable]:
    """The columns of a particle."""
    named = {variable.name: variable for variable in header.variables}
    flagged = {axis: [v for v in named.values() if v.flags & flag] for flag, axis in zip(AXIS_FLAGS, "xyz", strict=True)}
    chosen = {axis: found[0] for axis, found in flagged.items() if found}
    chosen |= {axis: named[axis] for axis in "xyz" if axis in named and axis not in chosen}
    if len(chosen) < 3:
        listed = ", ".join(named) or "none"
        raise WorkbenchError(f"{header.source.name} has no positions x, y, z; its variables are {listed}")
    if {"vx", "vy", "vz"} <= named.keys():
        chosen |= {name: named[name] for name in ("vx", "vy", "vz")}
    if "id" in named and named["id"].dtype.kind in "iu":
        chosen["id"] = named["id"]
    return chosen


def _column(header: Header, variable: Variable, ranks: Iterable[int] | None = None) -> list[np.ndarray]:
    before = sum(other.dtype.itemsize for other in header.variables[: variable.index])
    parts = []
    for rank in range(len(header.ranks)) if ranks is None else ranks:
        count, start = header.ranks[rank]
        at = start + count * before + CRC * variable.index
        if header.compressed:
            parts.append(_block(header, variable, rank, count))
        else:
            parts.append(_checked(header, variable, rank, at, count * variable.dtype.itemsize).view(variable.dtype))
    return parts


def _checked(header: Header, variable: Variable, rank: int, at: int, size: int) -> np.ndarray:
    what = f"the variable {variable.name} of rank {rank}"
    both = header.source.array(at, size + CRC, np.dtype(np.uint8), what)
    _verify(header.source, both[:size], int(both[size:].view(f"{header.order}u8")[0]), what)
    return both[:size]


def _block(header: Header, variable: Variable, rank: int, count: int) -> np.ndarray:
    """A column that has an entry in the table of blocks: stored as it is, or compressed after its own checksum."""
    size, start = header.compressed or (0, 0)
    entry = start + (rank * len(header.variables) + variable.index) * size
    filters, (at, stored) = header.raw[entry : entry + 32].strip(b"\0"), header.numbers(entry + 32, 2)
    values = _checked(header, variable, rank, at, stored)
    expected = count * variable.dtype.itemsize
    if filters == b"BLOSC":
        blosc = library("blosc", "compressed GenericIO files")
        with header.source.read_by("Blosc"):
            if blosc.get_cbuffer_sizes(values[CRC:].tobytes())[0] == expected:
                values = np.frombuffer(blosc.decompress(values[CRC:].tobytes()), np.uint8)
    elif filters:
        raise WorkbenchError(f"{header.source.name} is compressed by {filters!r}; only Blosc is supported")
    if len(values) != expected:
        what = f"the variable {variable.name} of rank {rank}"
        raise header.source.damaged(f"expected {expected:,} bytes of {what}; got {len(values):,}")
    return values.view(variable.dtype)


def _partitions(header: Header) -> list[Path]:
    """The files that hold the data when this one is the map of ranks."""
    variable = next(variable for variable in header.variables if variable.name == "$partition")
    numbers = np.unique(np.concatenate(_column(header, variable))).tolist()
    path = header.source.path
    return [path.with_name(f"{path.name}#{number}") for number in numbers]


def _verify(source: Source, data: bytes | np.ndarray, stored: int, what: str) -> None:
    if (got := crc64(data)) != stored:
        raise source.damaged(f"the checksum of {what} must be {stored:016x}; got {got:016x}")


GENERICIO = Format("genericio", "HACC GenericIO", lambda source: source.head[:8] in MAGICS, read, snapshot)
