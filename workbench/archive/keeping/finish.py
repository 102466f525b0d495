"""Moves go back to the chunks: each gets its edits, and is decoded as a reader will.

Each subdomain writes what it knows about its particles, each group of subdomains brings this to the chunks, and each chunk
is finished. Subdomains check the bound, as they have the original positions; a chunk is then checked to decode to the
positions that they have checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.archive.chunk import EncodedChunk
from workbench.archive.encoded import Encoded, put_hidden
from workbench.archive.guaranteed import corrected_chunk
from workbench.archive.keeping.labels import kept_labels
from workbench.archive.keeping.members import Subdomains
from workbench.clusters.keep.correction import sections_of
from workbench.clusters.keep.edits import Edits
from workbench.clusters.keep.moves import PARTS
from workbench.clusters.keep.state import PINNED
from workbench.data.extent import extent
from workbench.errors import GuaranteeBroken
from workbench.guarantees import check
from workbench.ordering import stored_index
from workbench.run.scratch_files import Mapped, save
from workbench.subdomains.by_chunk import UNSET, ByChunk, Owned, require_set

FINISHED = ".finished"   # beside the chunks without edits, which a later run may start from
MOVES = ("current", "rank")


@dataclass(frozen=True)
class FinishedChunk:
    """A chunk with its edits, without its bytes."""

    checksum: bytes                              # of the corrected positions; empty if nothing is corrected,
    ends: tuple[np.ndarray, np.ndarray] | None   # and then None
    nbytes: int
    edited: int
    exact: int


def hand_back(subdomains: Subdomains, part: int) -> float:
    """Write the moves, and the labels of the kept groups, of the particles that a subdomain owns.

    It returns their largest error. All are in the order of their indices.
    """
    members, terms = subdomains.of(part), subdomains.terms
    owned, moved, kind = members.owned, members.moved, stored_index(len(subdomains.exchange.source))
    mine = owned[moved.rows] & (moved.state["rank"] != 0)
    table = {"index": members.index[owned], "moved": members.index[moved.rows[mine]]}
    table |= {name: moved.state[name][mine] for name in MOVES}
    table |= {f"kept{number}": kept_labels(members, number)[owned].astype(kind) for number in range(len(terms.lengths))}
    for name, array in table.items():
        save(_of_owner(subdomains, name, part), array)
    if not owned.any():
        return 0.0
    seen = check(members.original()[owned], members.current()[owned], terms.limit, terms.box)
    if not seen.holds:
        raise GuaranteeBroken(f"{seen.broken.size:,} values break the bound after the correction: please report this")
    return seen.largest_error


def arrange(subdomains: Subdomains, group: int) -> None:
    """Bring what a group of subdomains has written to the chunks."""
    kept = [f"kept{number}" for number in range(len(subdomains.terms.lengths))]
    for by_chunk, index, names in ((_labels(subdomains), "index", kept), (_moves(subdomains), "moved", list(MOVES))):
        by_chunk.write(group, [_owned(subdomains, part, index, names) for part in subdomains.exchange.groups[group]])


def finish(shared: tuple[Subdomains, Encoded], chunk: int) -> FinishedChunk:
    """Write one chunk with its edits, and the labels of its particles."""
    subdomains, encoded = shared
    terms, decoded = subdomains.terms, encoded.decoded(chunk)
    wanted, rank = decoded.copy(), np.zeros(len(decoded), np.int32)
    labels = [np.full(len(decoded), UNSET, stored_index(len(encoded))) for _ in terms.lengths]
    for row, kept in _labels(subdomains).read(chunk):
        for label, column in zip(labels, kept, strict=True):
            label[row] = column.view(label.dtype)[:, 0]
    for row, (current, ranks) in _moves(subdomains).read(chunk):
        wanted[row], rank[row] = current.view(wanted.dtype), ranks.view(rank.dtype)[:, 0]
    for number, label in enumerate(labels):
        require_set(label, chunk, subdomains.exchange.folder)
        save(labels_file(subdomains, number, chunk), label)
    moved, pinned = (np.flatnonzero(which).astype(np.int32) for which in (rank > 0, rank == PINNED))
    edits = Edits(moved, rank[moved].astype(np.uint16), terms.bound / PARTS, terms.lengths, terms.box)
    surmise = terms.surmise(decoded)
    sections = sections_of(edits, pinned, decoded, wanted, surmise)
    key = encoded.task.layout.chunk_key((chunk, 0))
    corrected = corrected_chunk(EncodedChunk(encoded.data(chunk), b""), sections, decoded, wanted, key, surmise)
    put_hidden(finished_file(encoded, chunk), corrected.data)
    ends, edited = extent(wanted) if sections else None, len(moved) + len(pinned)
    return FinishedChunk(corrected.checksum, ends, len(corrected.data), edited, len(pinned))


def labels_file(subdomains: Subdomains, number: int, chunk: int) -> Path:
    """The labels of the kept groups in a chunk, at one linking length."""
    return subdomains.exchange.folder / f"labels{number}-{chunk}.npy"


def finished_file(encoded: Encoded, chunk: int) -> Path:
    """A chunk with its edits."""
    return encoded.records.parent / FINISHED / str(chunk)


def _labels(subdomains: Subdomains) -> ByChunk:
    """The labels of the kept groups, at each linking length."""
    width = stored_index(len(subdomains.exchange.source)).itemsize
    return ByChunk(subdomains.exchange, "kept", (width,) * len(subdomains.terms.lengths))


def _moves(subdomains: Subdomains) -> ByChunk:
    """The positions and ranks of particles that were moved."""
    terms = subdomains.terms
    return ByChunk(subdomains.exchange, "moved", (terms.dimensions * terms.dtype.itemsize, np.dtype(np.int32).itemsize))


def _owned(subdomains: Subdomains, part: int, index: str, names: list[str]) -> Owned:
    """What a subdomain has written."""
    columns = [Mapped(_of_owner(subdomains, name, part)) for name in names]
    return Owned(Mapped(_of_owner(subdomains, index, part)), lambda places: [column[places] for column in columns])


def _of_owner(subdomains: Subdomains, name: str, part: int) -> Path:
    """What a subdomain hands back about the particles that it owns."""
    return subdomains.handed_back / f"{name}-{part}.npy"
