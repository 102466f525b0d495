"""A guarantee about all particles in an archive: the correction in the chunks, and its entry in the certificate.

It is about more than a chunk, so the correction is found for all decoded particles together, once all chunks are encoded.
Its part for each chunk is then added to the frame of that chunk.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench import backend, ordering
from workbench.archive import frame
from workbench.archive.chunk import EncodedChunk, framed, with_checksums
from workbench.archive.encoding import EncodedArray
from workbench.backend import Array
from workbench.clusters.keep.correction import corrected
from workbench.data import Particles
from workbench.data.extent import extent
from workbench.errors import GuaranteeBroken
from workbench.guarantees import Limit
from workbench.guarantees.check import bits_of
from workbench.guarantees.guarantee import Allowance, Guarantee
from workbench.guarantees.sections import CHECKSUM
from workbench.progress import Progress


def with_guarantee(
    positions: EncodedArray,
    particles: Particles,
    order: Array | None,
    limit: Limit,
    guarantee: Guarantee,
    progress: Progress | None,
    allowance: Allowance,
) -> EncodedArray:
    """The encoded positions, corrected so that a guarantee is true; `order` is the original index of each particle.

    It raises TooExpensive where this takes more than the allowance.
    """
    xp, layout = backend.namespace(particles.positions), positions.layout
    decoded = positions.decoded[0] if len(positions.decoded) == 1 else xp.concatenate(positions.decoded)
    given = particles.positions if order is None else ordering.gather_rows(particles.positions, order)
    original = Particles(backend.read_only(given), particles.box)
    correction = guarantee.attach(original, decoded, limit, layout.chunk_shape[0], progress, allowance)

    def with_sections(number: int) -> tuple[EncodedChunk, tuple[np.ndarray, np.ndarray] | None]:
        index, chunk = indices[number], positions.chunks[number]
        rows = layout.chunk_slices(index)[0]
        sections = correction.sections(rows)
        known, key = correction.side_information(rows), layout.chunk_key(index)
        corrected = corrected_chunk(chunk, sections, decoded[rows], correction.positions[rows], key, known)
        return corrected, extent(correction.positions[rows]) if sections else positions.ends[number]

    indices = list(layout.chunk_indices())
    work = map if backend.on_device(decoded) else backend.side_by_side
    chunks, ends = (list(column) for column in zip(*work(with_sections, range(len(indices))), strict=True))
    added = sum(len(chunk.data) for chunk in chunks) - sum(len(chunk.data) for chunk in positions.chunks)
    assert positions.promise is not None
    figures = {**positions.promise.figures, "largest_error": correction.largest_error}
    kept = ({**guarantee.stated(correction, added), "encoded_within": limit.value},)
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
    known: Any = None,
) -> EncodedChunk:
    """A chunk with the sections of its correction, of which a reader gets the wanted positions, bit for bit."""
    if not sections:
        return chunk
    if bool((bits_of(corrected(decoded, sections, known)) != bits_of(wanted)).any()):
        raise GuaranteeBroken("a corrected chunk does not decode to the same bits: please report this")
    opened = frame.unpack(chunk.data, where)
    checksum = zlib.crc32(np.ascontiguousarray(backend.to_host(wanted)).data).to_bytes(4, "little")
    kept = {tag: bytes(part) for tag, part in opened.sections.items() if tag != CHECKSUM}
    return framed(opened.shape, {**kept, **sections}, checksum)
