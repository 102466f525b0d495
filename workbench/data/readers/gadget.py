"""Gadget-1 and Gadget-2 binary snapshots: a header of 256 bytes, then positions, velocities, ids, all types in a row.

SnapFormat 2 puts a record with a four-letter label in front of each block; SnapFormat 1 relies on their order. Byte
order and precision are not stated anywhere: they follow from the sizes of the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.file_sets import members
from workbench.data.readers.format import Format
from workbench.data.readers.fortran import Record, byte_order, records
from workbench.data.readers.leaving import named, noted, other_types
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, particles
from workbench.data.readers.particle_types import chosen_type
from workbench.data.readers.source import Source

HEADER = 256
LABELS = ("HEAD", "POS", "VEL", "ID")
FIELDS = [   # name, type, first byte
    ("count", "6u4", 0), ("mass", "6f8", 24), ("time", "f8", 72), ("redshift", "f8", 80), ("total", "6u4", 96),
    ("files", "i4", 124), ("box", "f8", 128), ("omega_m", "f8", 136), ("omega_lambda", "f8", 144), ("hubble", "f8", 152),
    ("total_high", "6u4", 168),
]


@dataclass(frozen=True)
class Snapshot:
    """One file: its header and where its blocks lie."""

    source: Source
    order: str
    version: int
    header: dict[str, Any]
    blocks: dict[str, Record]

    @classmethod
    def of(cls, source: Source) -> Snapshot:
        """Read the header and find the blocks."""
        order = byte_order(source, (HEADER, 8))
        if order is None:
            raise source.damaged("expected a Gadget header of 256 bytes between two equal record sizes")
        version = 1 if int.from_bytes(source.head[:4], "little" if order == "<" else "big") == HEADER else 2
        blocks = (_in_order if version == 1 else _labelled)(source, order)
        if blocks["HEAD"].size != HEADER:
            raise source.damaged(f"expected a header of {HEADER} bytes; got {blocks['HEAD'].size}")
        return cls(source, order, version, _header(source, order, blocks["HEAD"]), blocks)

    def columns(self, kind: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and ids of one particle type."""
        return self._block("POS", "f", 3, kind), self._block("VEL", "f", 3, kind), self._block("ID", "u", 1, kind)

    def _block(self, label: str, letter: str, width: int, kind: int) -> np.ndarray:
        record, counts = self.blocks[label], self.header["count"]
        total = sum(counts) * width
        sizes = [size for size in (4, 8) if record.size == total * size]
        if not sizes:
            raise self.source.damaged(
                f"the block {label} must hold {total:,} numbers of 4 or 8 bytes, for {sum(counts):,} particles; "
                f"got {record.size:,} bytes"
            )
        dtype = np.dtype(f"{self.order}{letter}{sizes[0]}")
        values = record.read(self.source, dtype, f"block {label}", sum(counts[:kind]) * width, counts[kind] * width)
        return values.reshape(-1, 3) if width == 3 else values


def read(source: Source, *, particle_type: int | None = None, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """The particles of one type, 1 (dark matter) unless told otherwise; of all files when the snapshot has several."""
    first = Snapshot.of(source)
    paths = members(source.path, first.header["files"])
    parts = [first if path == source.path else Snapshot.of(Source.at(path)) for path in paths]
    counts = [sum(column) for column in zip(*(part.header["count"] for part in parts), strict=True)]
    if len(parts) > 1 and counts != (promised := _totals(first.header)):
        raise source.damaged(f"the header promises {promised} particles by type; {len(parts)} files hold {counts}")
    kind = chosen_type(particle_type, dict(enumerate(counts)), source.name)
    columns = [part.columns(kind) for part in parts if part.header["count"][kind]]
    positions, velocities, ids = (np.concatenate(column) for column in zip(*columns, strict=True))
    length = first.header["box"]
    if not (np.isfinite(length) and length >= 0):
        raise source.damaged(f"the box length in the header must be 0 (open) or positive; got {length}")
    others = other_types(dict(enumerate(counts)), kind), named("block", first.blocks.keys() - set(LABELS))
    metadata = noted(_metadata(first, counts, kind, len(parts)), *others)
    return particles(positions, Cell((length,) * 3), box, velocities, ids, metadata, wrap=wrap)


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
    return dict(zip(LABELS, found, strict=False)) | rest


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


def _metadata(first: Snapshot, counts: list[int], kind: int, files: int) -> dict[str, Any]:
    header = {key: first.header[key] for key in ("time", "redshift", "omega_m", "omega_lambda", "hubble", "mass")}
    return {
        "format": f"Gadget-{first.version} binary",
        **header,
        "particle_type": kind,
        "particle_counts": counts,
        "files": files,
        "units": "not stated; Gadget's defaults are kpc/h, km/s and 1e10 Msun/h",
    }


def _recognises(source: Source) -> bool:
    if byte_order(source, (HEADER,)):
        return True
    return byte_order(source, (8,)) is not None and source.head[4:8] == b"HEAD"


GADGET = Format("gadget", "Gadget-1 or Gadget-2 binary snapshot", _recognises, read)
