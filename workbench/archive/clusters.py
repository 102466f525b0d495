"""Clusters kept in an archive: the correction in the chunks, its entry in the certificate, and the check of both.

Groups extend over chunks, so the correction is found for all decoded particles together, once all chunks are encoded. Its
part for each chunk is then added to the frame of that chunk. Verification uses none of this: it finds the groups of the
decoded and of the original particles again.
"""

from __future__ import annotations

import dataclasses
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend, ordering
from workbench.archive import frame
from workbench.archive.certificate import Promise
from workbench.archive.chunk import EncodedChunk, framed, with_checksums
from workbench.archive.encoding import EncodedArray, Progress
from workbench.backend import Array
from workbench.clusters import friends_of_friends
from workbench.clusters.keep import Allowance, Correction, KeepClusters, keep_clusters
from workbench.clusters.keep.correction import corrected
from workbench.clusters.keep.edits import Surmise
from workbench.clusters.keep.partition import PREDICATE, fingerprint, kept_labels
from workbench.data import Particles
from workbench.data.extent import extent
from workbench.data.outline import Outlined
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.check import bits_of
from workbench.guarantees.sections import CHECKSUM

HOLDS = (
    "the mass function, multiplicities and memberships of these groups are those of the original, and no centre of mass "
    "moves by more than the bound along any axis"
)
NOT_IMPLIED = "most bound or densest particles, spherical overdensities, profiles, velocity dispersions"


@dataclass(frozen=True)
class Figures:
    """What a certificate says about kept clusters, in its words and order."""

    lengths: Sequence[float]
    precision: str
    margin: float
    partition: list[str]
    groups: list[int]
    largest: list[int]
    groups_opened: int
    pairs_set_right: int
    edited: int
    exact: int
    bytes: int
    attempts: int
    descent_steps: int
    violations: int
    close_calls: int


def with_clusters(
    positions: EncodedArray,
    particles: Particles,
    order: Array | None,
    limit: Limit,
    promise: KeepClusters,
    progress: Progress | None,
    allowance: Allowance,
) -> EncodedArray:
    """The encoded positions, corrected so that clusters are kept; `order` is the original index of each particle.

    It raises TooExpensive where this takes more than the allowance.
    """
    xp, layout = backend.namespace(particles.positions), positions.layout
    decoded = positions.decoded[0] if len(positions.decoded) == 1 else xp.concatenate(positions.decoded)
    given = particles.positions if order is None else ordering.gather_rows(particles.positions, order)
    original = Particles(backend.read_only(given), particles.box)
    correction = keep_clusters(original, decoded, limit, promise, progress, layout.chunk_shape[0], allowance)

    def with_sections(number: int) -> tuple[EncodedChunk, tuple[np.ndarray, np.ndarray] | None]:
        index, chunk = indices[number], positions.chunks[number]
        rows = layout.chunk_slices(index)[0]
        sections = correction.sections(rows)
        known, key = correction.surmise.part(rows), layout.chunk_key(index)
        corrected = corrected_chunk(chunk, sections, decoded[rows], correction.positions[rows], key, known)
        return corrected, extent(correction.positions[rows]) if sections else positions.ends[number]

    indices = list(layout.chunk_indices())
    work = map if backend.on_device(decoded) else backend.side_by_side
    chunks, ends = (list(column) for column in zip(*work(with_sections, range(len(indices))), strict=True))
    added = sum(len(chunk.data) for chunk in chunks) - sum(len(chunk.data) for chunk in positions.chunks)
    assert positions.promise is not None
    figures = {**positions.promise.figures, "largest_error": correction.largest_error}
    kept = ({**promise.to_dict(), **_details(correction, added), "encoded_within": limit.value},)
    return dataclasses.replace(
        positions,
        layout=with_checksums(layout, chunks),
        chunks=chunks,
        ends=ends,
        promise=dataclasses.replace(positions.promise, keep=kept, figures=figures),
        decoded=(),
    )


def corrected_chunk(
    chunk: EncodedChunk, sections: Mapping[str, bytes], decoded: Array, wanted: Array, where: str,
    known: Surmise | None = None,
) -> EncodedChunk:
    """A chunk with the sections of its correction, of which a reader gets the wanted positions, bit for bit."""
    if not sections:
        return chunk
    if bool((bits_of(corrected(decoded, sections, known)) != bits_of(wanted)).any()):
        raise GuaranteeBroken("a chunk corrected for its clusters does not decode to the same bits: please report this")
    opened = frame.unpack(chunk.data, where)
    checksum = zlib.crc32(np.ascontiguousarray(backend.to_host(wanted)).data).to_bytes(4, "little")
    kept = {tag: bytes(part) for tag, part in opened.sections.items() if tag != CHECKSUM}
    return framed(opened.shape, {**kept, **sections}, checksum)


def promised(promise: Promise) -> list[Mapping[str, Any]]:
    """The promises about clusters, with the figures recorded when the archive was made."""
    return [kept for kept in promise.keep if kept.get("kind") == KeepClusters.kind]


def require_fingerprint(kept: Mapping[str, Any], decoded: Particles) -> dict[str, Any]:
    """Figures of the groups of decoded particles; an error if the fingerprints differ from the certificate's."""
    lengths, fingerprints, members = stated(kept)
    figures: dict[str, Any] = {}
    for length, expected in zip(lengths, fingerprints, strict=True):
        groups = friends_of_friends(decoded, length, unit="length")
        require_certified(fingerprint(kept_labels(groups, members)), expected, length)
        figures[f"groups_at_{length!r}"] = groups.count(members)
    return figures


def require_same_groups(kept: Mapping[str, Any], original: Particles, decoded: Particles) -> None:
    """An error unless both have the same groups; their particles are in the same order."""
    require_same_lengths(kept, original)
    lengths, fingerprints, members = stated(kept)
    for length, expected in zip(lengths, fingerprints, strict=True):
        wanted, found = (kept_labels(friends_of_friends(p, length, unit="length"), members) for p in (original, decoded))
        require_same_original(fingerprint(wanted), expected)
        if differs := int((wanted != found).sum()):
            raise GuaranteeBroken(
                f"{differs:,} of {len(wanted):,} particles are in another group at linking length {length:g} than in the "
                "original: please report this"
            )


def require_same_lengths(kept: Mapping[str, Any], original: Outlined) -> None:
    """An error unless the linking lengths are those of the certificate for this original."""
    here, lengths = KeepClusters.from_dict(kept).lengths(original), stated(kept)[0]
    if here != lengths:
        raise GuaranteeBroken(f"the linking lengths are {here} for this original, but {lengths} in the archive")


def require_certified(found: str, expected: str, length: float) -> None:
    """An error unless the fingerprint of the decoded groups is the one in the certificate."""
    if found != expected:
        raise GuaranteeBroken(
            f"the groups of the decoded particles at linking length {length:g} differ from those in the certificate: "
            "was the archive made by another program, or changed?"
        )


def require_same_original(found: str, expected: str) -> None:
    """An error unless the fingerprint of the original groups is the one in the certificate."""
    if found != expected:
        raise GuaranteeBroken("the groups of this original differ from those in the certificate: it is another one")


def details(found: Figures) -> dict[str, Any]:
    """The details of a certificate beside the promise: its exact meaning, and the figures."""
    return {
        "lengths": list(found.lengths),
        "predicate": PREDICATE,
        **{name: value for name, value in dataclasses.asdict(found).items() if name != "lengths"},
        "holds": HOLDS,
        "not_implied": NOT_IMPLIED,
    }


def _details(correction: Correction, added: int) -> dict[str, Any]:
    members = correction.promise.min_members
    return details(Figures(
        lengths=correction.lengths,
        precision=correction.positions.dtype.name,
        margin=correction.margin,
        partition=[fingerprint(kept_labels(groups, members)) for groups in correction.groups],
        groups=[groups.count(members) for groups in correction.groups],
        largest=[groups.largest_size for groups in correction.groups],
        groups_opened=correction.opened,
        pairs_set_right=correction.needs,
        edited=correction.edited,
        exact=len(correction.pinned),
        bytes=added,
        attempts=correction.attempts,
        descent_steps=len(correction.descent),
        violations=correction.violations,
        close_calls=correction.close_calls,
    ))


def stated(kept: Mapping[str, Any]) -> tuple[tuple[float, ...], list[str], int]:
    """The linking lengths, fingerprints and smallest group size that a certificate states; else an error."""
    match kept:
        case {"lengths": [*lengths], "partition": [*found], "min_members": int(members)} if len(lengths) == len(found) > 0:
            usable = [isinstance(length, int | float) and 0 < length <= sys.float_info.max for length in lengths]
            if all(usable) and abs(members) < 2**63:
                return tuple(map(float, lengths)), found, members
    raise WorkbenchError("the certificate cannot be read: it does not say which groups were kept")
