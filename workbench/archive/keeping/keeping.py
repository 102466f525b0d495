"""Keeping clusters of an archive in subdomains: within the requested bound, or a finer one where that takes fewer bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree

from workbench.archive.chunk import EncodedChunk
from workbench.archive.encoded import CALL_AGAIN, DoneChunk, Encoded
from workbench.archive.encoding import EncodedArray, ReadyChunk, assembled
from workbench.archive.keeping.finish import FinishedChunk, arrange, finish, hand_back, labels_file
from workbench.archive.keeping.members import Decoded, Subdomains
from workbench.archive.keeping.rounds import Settled, settle
from workbench.archive.keeping.terms import Terms
from workbench.clusters.keep.partition import fingerprint_of
from workbench.clusters.keep.statement import Figures, details
from workbench.guarantees.guarantee import Allowance
from workbench.run.executors import Executor
from workbench.run.scratch_files import load, make_folder
from workbench.subdomains.decomposition import Decomposition, WithGhosts
from workbench.subdomains.exchange import Exchange


def keep_clusters(
    encoded: Encoded,
    done: Sequence[DoneChunk],
    terms: Terms,
    decomposition: Decomposition,
    folder: Path,
    lasting: Path,
    executor: Executor,
    allowance: Allowance,
) -> tuple[EncodedArray, int]:
    """Correct chunks so that clusters are kept; raises TooExpensive where this takes more than the allowance.

    It returns the positions, of which the corrected chunks are in files, and the bytes of these. A later run goes on from
    what is in `lasting`; everything else is in `folder`.
    """
    division, cargo = WithGhosts(decomposition, terms.ghost_width), Decoded(encoded, terms)
    exchange = Exchange(encoded, division, folder, cargo)
    subdomains = Subdomains(exchange, decomposition, terms, lasting)
    make_folder(subdomains.labels)
    make_folder(lasting, CALL_AGAIN)
    settled = settle(subdomains, encoded, done, executor, allowance)
    subdomains = settled.subdomains
    make_folder(subdomains.handed_back)
    largest = max(subdomains.run(executor, "hand-back-moves", hand_back))
    rmtree(subdomains.labels)   # nobody reads it any more, and chunks take room, too
    groups = range(len(exchange.groups))
    executor.map("arrange-moves", arrange, groups, "group of subdomains", shared=subdomains)
    rmtree(subdomains.handed_back)
    numbers = range(len(encoded.sizes))
    finished = executor.map("finish-chunks", finish, numbers, "chunk", shared=(subdomains, encoded))
    nbytes = sum(one.nbytes for one in finished)
    added = nbytes - sum(one.nbytes for one in done)
    chunks = [_ready(one.ready, chunk) for one, chunk in zip(done, finished, strict=True)]
    positions = assembled(encoded.task, chunks)
    assert positions.promise is not None
    stated = details(_figures(settled, finished, terms, added, encoded))
    stated = {**terms.promise.to_dict(), **stated, "encoded_within": terms.limit.value}
    figures = {**positions.promise.figures, "largest_error": largest}
    promise = dataclasses.replace(positions.promise, keep=(stated,), figures=figures)
    return dataclasses.replace(positions, promise=promise), nbytes


def _ready(before: ReadyChunk, finished: FinishedChunk) -> ReadyChunk:
    if finished.ends is None:
        return before
    return dataclasses.replace(before, data=EncodedChunk(b"", finished.checksum), ends=finished.ends)


def _figures(
    settled: Settled, finished: Sequence[FinishedChunk], terms: Terms, added: int, encoded: Encoded
) -> Figures:
    progressed = settled.progressed
    return Figures(
        lengths=terms.lengths,
        precision=terms.dtype.name,
        margin=terms.margin,
        partition=[_fingerprint(settled.subdomains, number, encoded) for number in range(len(terms.lengths))],
        groups=[size.count for size in settled.sizes],
        largest=[size.largest for size in settled.sizes],
        groups_opened=progressed.opened,
        pairs_set_right=progressed.needs,
        edited=sum(one.edited for one in finished),
        exact=sum(one.exact for one in finished),
        bytes=added,
        attempts=progressed.rounds - progressed.restored,
        descent_steps=progressed.descent,
        violations=0,
        close_calls=settled.close_calls,
    )


def _fingerprint(subdomains: Subdomains, number: int, encoded: Encoded) -> str:
    """The fingerprint of the kept groups at one linking length, one chunk after the other."""
    labels = (load(labels_file(subdomains, number, chunk)) for chunk in range(len(encoded.sizes)))
    return fingerprint_of(labels, len(encoded))
