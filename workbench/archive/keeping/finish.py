"""Moves go back to the chunks: each gets its edits, is decoded as a reader will, and is checked against its bound."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.archive.chunk import EncodedChunk
from workbench.archive.clusters import corrected_chunk
from workbench.archive.encoded import Encoded
from workbench.archive.keeping.members import Cast
from workbench.clusters.keep.correction import sections_of
from workbench.clusters.keep.edits import Edits
from workbench.clusters.keep.moves import PARTS
from workbench.clusters.keep.partition import TOO_SMALL
from workbench.clusters.keep.problem import UNASKED
from workbench.clusters.keep.state import PINNED
from workbench.data.extent import extent
from workbench.errors import GuaranteeBroken
from workbench.guarantees import check
from workbench.ordering import stored_index
from workbench.run.scratch_files import save

FINISHED = ".finished"   # beside the chunks without edits, which a later run may start from


@dataclass(frozen=True)
class FinishedChunk:
    """A chunk with its edits, without its bytes."""

    checksum: bytes                              # of the corrected positions; empty if nothing is corrected,
    ends: tuple[np.ndarray, np.ndarray] | None   # and then None
    largest_error: float
    nbytes: int
    edited: int
    exact: int


def hand_back(cast: Cast, part: int) -> None:
    """Write the moves, and the names of the kept groups, of the particles that a subdomain owns, for the chunks to read."""
    members = cast.of(part)
    owned, index, moved = members["owned"], members["index"], members.moved
    mine = moved.away(owned)
    members.save(
        moved_index=index[moved.rows[mine]], moved_rank=moved.state["rank"][mine],
        moved_current=moved.state["current"][mine], own_index=index[owned],
    )
    for number in range(len(cast.terms.lengths)):
        counts = members[f"group{number}"] != UNASKED
        kept = np.where(counts, members[f"label{number}"], TOO_SMALL)[owned]
        members.save(**{f"kept{number}": kept.astype(stored_index(len(cast.exchange.source)))})


def finish(shared: tuple[Cast, Encoded], chunk: int) -> FinishedChunk:
    """Write one chunk with its edits, and the labels of its particles."""
    cast, encoded = shared
    terms, begin, end = cast.terms, *encoded.starts[chunk : chunk + 2]
    decoded, original = encoded.decoded(chunk), encoded.chunk(chunk).positions
    wanted, rank = decoded.copy(), np.zeros(len(decoded), np.int32)
    labels = [np.empty(len(decoded), stored_index(encoded.starts[-1])) for _ in terms.lengths]
    for part in cast.parts:
        members = cast.of(part)
        index = members.mapped("moved_index")
        rows = index.between(begin, end)
        place = index[rows] - begin
        rank[place], wanted[place] = members.mapped("moved_rank")[rows], members.mapped("moved_current")[rows]
        index = members.mapped("own_index")
        rows = index.between(begin, end)
        place = index[rows] - begin
        for number, label in enumerate(labels):
            label[place] = members.mapped(f"kept{number}")[rows]
    for number, label in enumerate(labels):
        save(labels_file(cast, number, chunk), label)
    moved, pinned = (np.flatnonzero(which).astype(np.int32) for which in (rank > 0, rank == PINNED))
    edits = Edits(moved, rank[moved].astype(np.uint16), terms.bound / PARTS, terms.lengths, terms.box)
    surmise = cast.surmise(chunk)
    sections = sections_of(edits, pinned, decoded, wanted, surmise)
    key = encoded.task.layout.chunk_key((chunk, 0))
    found = corrected_chunk(EncodedChunk(encoded.data(chunk), b""), sections, decoded, wanted, key, surmise)
    seen = check(original, wanted, terms.limit, terms.box)
    if not seen.holds:
        raise GuaranteeBroken(f"{seen.broken.size:,} values break the bound after the correction: please report this")
    place_of = finished_file(encoded, chunk)
    place_of.parent.mkdir(exist_ok=True)
    place_of.write_bytes(found.data)
    ends = extent(wanted) if sections else None
    edited = len(moved) + len(pinned)
    return FinishedChunk(found.checksum, ends, seen.largest_error, len(found.data), edited, len(pinned))


def labels_file(cast: Cast, number: int, chunk: int) -> Path:
    """The labels of the kept groups in a chunk, at one linking length."""
    return cast.folder / f"labels{number}-{chunk}.npy"


def finished_file(encoded: Encoded, chunk: int) -> Path:
    """A chunk with its edits."""
    return encoded.folder / FINISHED / str(chunk)
