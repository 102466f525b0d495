"""Gadget-1 and Gadget-2 binary snapshots: a header of 256 bytes, then positions, velocities, ids, all types in a row.

SnapFormat 2 puts a record with a four-letter label in front of each block; SnapFormat 1 relies on their order. Byte
order and precision are not stated anywhere: they follow from the sizes of the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.file_sets import completed
from workbench.data.readers.format import Format
from workbench.data.readers.fortran import Record, byte_order, records
from workbench.data.readers.further import Rows, Wanted, chosen
from workbench.data.readers.leaving import named, noted, other_types
from workbench.data.readers.options import FROM_FILE, Cell, FileBox
from workbench.data.readers.particle_types import TypeWanted, chosen_types, described_types
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source
from workbench.data.readers.tables import IDS, MASSES, POSITIONS, VELOCITIES, Table
from workbench.data.readers.unread import is_pp

HEADER = 256
LABELS = ("HEAD", "POS", "VEL", "ID")
MASS = "MASS"   # of the types without a mass in the header
FURTHER = {   # by label: the types of particles that have it, and the numbers of each; floats of 4 or 8 bytes
    "U": ((0,), 1), "RHO": ((0,), 1), "HSML": ((0,), 1), "NE": ((0,), 1), "NH": ((0,), 1), "SFR": ((0,), 1),
    "ENDT": ((0,), 1), "BFLD": ((0,), 3), "AGE": ((4,), 1), "Z": ((0, 4), 1), "POT": (range(6), 1),
    "ACCE": (range(6), 3), "TSTP": (range(6), 1),
}
FIELDS = [   # name, type, first byte
    ("count", "6u4", 0), ("mass", "6f8", 24), ("time", "f8", 72), ("redshift", "f8", 80), ("total", "6u4", 96),
    ("files", "i4", 124), ("box", "f8", 128), ("omega_m", "f8", 136), ("omega_lambda", "f8", 144), ("hubble", "f8", 152),
    ("total_high", "6u4", 168),
]


@dataclass(frozen=True)
class Block:
    """Where a column of one particle type lies in a file."""

    at: int
    dtype: np.dtype
    width: int

    @property
    def row(self) -> np.dtype:
        """The type of a row."""
        return np.dtype((self.dtype.newbyteorder("="), () if self.width == 1 else (self.width,)))


@dataclass(frozen=True, kw_only=True)
class BlockTable(Table):
    """Columns in blocks of a binary file."""

    blocks: dict[str, Block]

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the file, without positions."""
        return tuple(name for name in self.blocks if name != POSITIONS)

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`."""
        block = self.blocks[column]
        at, count = block.at + start * block.width * block.dtype.itemsize, (stop - start) * block.width
        values = Source.at(self.path).array(at, count, block.dtype, f"the {column}")
        return values.reshape(-1, block.width) if block.width > 1 else values


@dataclass(frozen=True)
class GadgetFile:
    """One file: its header and where its blocks lie."""

    source: Source
    order: str
    version: int
    header: dict[str, Any]
    blocks: dict[str, Record]

    @classmethod
    def of(cls, source: Source) -> GadgetFile:
        """Read the header and find the blocks."""
        order = byte_order(source, (HEADER, 8))
        if order is None:
            raise source.damaged("expected a Gadget header of 256 bytes between two equal record sizes")
        version = 1 if int.from_bytes(source.head[:4], "little" if order == "<" else "big") == HEADER else 2
        blocks = (_in_order if version == 1 else _labelled)(source, order)
        if blocks["HEAD"].size != HEADER:
            raise source.damaged(f"expected a header of {HEADER} bytes; got {blocks['HEAD'].size}")
        return cls(source, order, version, _header(source, order, blocks["HEAD"]), blocks)

    def table(self, kind: int) -> BlockTable:
        """The particles of one type."""
        counts, mass = self.header["count"], self.header["mass"][kind]
        before = sum(counts[:kind])
        blocks = {
            POSITIONS: self._block("POS", "f", 3, sum(counts), before),
            VELOCITIES: self._block("VEL", "f", 3, sum(counts), before),
            IDS: self._block("ID", "u", 1, sum(counts), before),
        }
        weighed = [count if self.header["mass"][number] == 0 else 0 for number, count in enumerate(counts)]
        if weighed[kind] and MASS in self.blocks:
            blocks[MASSES] = self._block(MASS, "f", 1, sum(weighed), sum(weighed[:kind]))
        time, length = self.header["time"], self.header["box"]
        return BlockTable(
            path=self.source.path, count=counts[kind], dtype=blocks[POSITIONS].dtype.newbyteorder("="), blocks=blocks,
            mass=mass or None, box=(length,) * 3, time=time if np.isfinite(time) else None,
            particle_type=kind,
        )

    def further(self, kind: int) -> dict[str, Block]:
        """The blocks of other columns of one type whose meaning and size are known."""
        found = {}
        for label, (kinds, width) in FURTHER.items():
            counts = [count if number in kinds else 0 for number, count in enumerate(self.header["count"])]
            numbers = sum(counts) * width
            if counts[kind] and label in self.blocks and self.blocks[label].size in (4 * numbers, 8 * numbers):
                found[label] = self._block(label, "f", width, sum(counts), sum(counts[:kind]))
        return found

    def _block(self, label: str, letter: str, width: int, particles: int, before: int) -> Block:
        record, total = self.blocks[label], particles * width
        sizes = [size for size in (4, 8) if record.size == total * size]
        if not sizes:
            raise self.source.damaged(
                f"the block {label} must hold {total:,} numbers of 4 or 8 bytes, for {particles:,} particles; "
                f"got {record.size:,} bytes"
            )
        return Block(record.at + before * width * sizes[0], np.dtype(f"{self.order}{letter}{sizes[0]}"), width)


def read(
    source: Source, *, particle_type: TypeWanted = None, box: FileBox = FROM_FILE, wrap: bool = False,
    columns: Wanted = None,
) -> Particles:
    """The particles of one type, 1 (dark matter) unless told otherwise; of all files when the snapshot has several."""
    return snapshot([source], particle_type=particle_type, columns=columns).within(source.limits).particles(box, wrap)


def snapshot(sources: Sequence[Source], *, particle_type: TypeWanted = None, columns: Wanted = None) -> Snapshot:
    """The particles of a type, or of all, in these files, or in the set that one of them belongs to."""
    first = sources[0]
    files = [GadgetFile.of(source) for source in completed(sources, files_stated)]
    counts = [sum(column) for column in zip(*(file.header["count"] for file in files), strict=True)]
    if len(files) > 1 and counts != (promised := _totals(files[0].header)):
        raise first.damaged(f"the header promises {promised} particles by type; {len(files)} files hold {counts}")
    kinds = chosen_types(particle_type, dict(enumerate(counts)), first.name)
    length = files[0].header["box"]
    if not (np.isfinite(length) and length >= 0):
        raise first.damaged(f"the box length in the header must be 0 (open) or positive; got {length}")
    parts = [(file, kind) for kind in kinds for file in files if file.header["count"][kind]]
    there = [{label: block.row for label, block in file.further(kind).items()} for file, kind in parts]
    wanted = chosen(columns, there, first.name, (*LABELS, MASS))
    tables = [_with_further(file, kind, wanted) for file, kind in parts]
    unread = files[0].blocks.keys() - {*LABELS, MASS, *wanted}
    others = other_types(dict(enumerate(counts)), kinds), named("block", unread)
    metadata = noted(_metadata(files[0], counts, kinds, len(files)), *others)
    return Snapshot.of(first.name, tables, Cell((length,) * 3), metadata)


def _with_further(file: GadgetFile, kind: int, wanted: Rows) -> BlockTable:
    """The particles of one type in a file, with these further columns."""
    table, blocks = file.table(kind), file.further(kind)
    return replace(table, blocks={**table.blocks, **{label: blocks[label] for label in wanted}}, further=dict(wanted))


def files_stated(source: Source) -> int:
    """How many files the snapshot has, as one of them says."""
    return int(GadgetFile.of(source).header["files"])


def _header(source: Source, order: str, record: Record) -> dict[str, Any]:
    names, types, offsets = zip(*FIELDS, strict=True)
    formats = [kind[0] + order + kind[1:] if kind[0] == "6" else order + kind for kind in types]
    layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": HEADER})
    values = record.read(source, layout, "header")[0]
    return {name: values[name].tolist() for name in names}


def _in_order(source: Source, order: str) -> dict[str, Record]:
    found = records(source, order)
    if len(found) < len(LABELS):
        raise source.damaged(f"expected at least the blocks header, positions, velocities, ids; got {len(found)} blocks")
    rest = {f"{number} (without a name)": block for number, block in enumerate(found[len(LABELS) :], len(LABELS) + 1)}
    blocks = dict(zip(LABELS, found, strict=False)) | rest
    header = _header(source, order, found[0]) if found[0].size == HEADER else None
    fifth = f"{len(LABELS) + 1} (without a name)"
    if header and fifth in blocks:   # masses, if any type has none in the header
        weighed = sum(count for count, mass in zip(header["count"], header["mass"], strict=True) if mass == 0)
        if weighed and blocks[fifth].size in (4 * weighed, 8 * weighed):
            blocks[MASS] = blocks.pop(fifth)
    return blocks


def _labelled(source: Source, order: str) -> dict[str, Record]:
    found = records(source, order)
    labels = [source.bytes(record.at, min(record.size, 4), "block label") for record in found[::2]]
    blocks = {label.decode("ascii", "replace").strip(): block for label, block in zip(labels, found[1::2], strict=False)}
    missing = [label for label in LABELS if label not in blocks]
    if missing:
        raise source.damaged(f"expected the blocks {', '.join(LABELS)}; missing {', '.join(missing)}")
    return blocks


def _totals(header: dict[str, Any]) -> list[int]:
    return [low + (high << 32) for low, high in zip(header["total"], header["total_high"], strict=True)]


def _metadata(first: GadgetFile, counts: list[int], kinds: tuple[int, ...], files: int) -> dict[str, Any]:
    header = {key: first.header[key] for key in ("time", "redshift", "omega_m", "omega_lambda", "hubble", "mass")}
    return {
        "format": f"Gadget-{first.version} binary",
        **header,
        **described_types(kinds),
        "particle_counts": counts,
        "files": files,
        "units": "not stated; Gadget's defaults are kpc/h, km/s and 1e10 Msun/h",
    }


def _recognises(source: Source) -> bool:
    if byte_order(source, (HEADER,)):
        return not is_pp(source.head)   # whose headers have the same length
    return byte_order(source, (8,)) is not None and source.head[4:8] == b"HEAD"


GADGET = Format("gadget", "Gadget-1 or Gadget-2 binary snapshot", _recognises, read, snapshot, files_stated)
