"""Archives in files whose chunks were made up by someone who knows about checksums, and decoders that were changed."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from archive.samples import parts, resealed
from workbench.archive.frame import pack, unpack
from workbench.archive.writing import write
from workbench.codecs import pieces
from workbench.codecs.isolation import decoders


def with_payload(archive: wb.Archive, number: int, payload: bytes, path: Path) -> tuple[Path, str]:
    """The archive in a file, with other bytes for the codec in the chunk of this number; and the key of that chunk."""
    layout, entries = archive.data.layout, parts(archive)
    key = [layout.chunk_key(index) for index in layout.chunk_indices()][number]
    opened = unpack(entries[key], key)
    sections = {"dcrc": bytes(opened.section("dcrc"))}
    sections["code"] = pieces.join(archive.codec.id, [payload], opened.shape, layout.dtype, 2**30)
    return write(path, {**entries, key: pack(opened.shape, sections)}.items(), overwrite=True), key


def payload_of(archive: wb.Archive, number: int) -> bytes:
    """What the codec made of a chunk, without the checksum in front of it."""
    key = archive.data.layout.chunk_key(list(archive.data.layout.chunk_indices())[number])
    return bytes(unpack(archive.store.read(key), key).section("code"))[5:]


def mutated(payload: bytes, seed: int) -> bytes:
    """The bytes with one to four of them replaced."""
    chance, spoilt = random.Random(seed), bytearray(payload)
    for _ in range(chance.randint(1, 4)):
        spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
    return bytes(spoilt)


def with_configuration(archive: wb.Archive, array: str, **changes: object) -> dict[str, bytes]:
    """The parts of an archive with another configuration of the codec of one array."""
    def change(document: dict) -> None:
        document["codecs"][0]["configuration"].update(changes)

    return resealed(parts(archive), f"{array}/zarr.json", change)


@contextmanager
def decoding_with(monkeypatch: pytest.MonkeyPatch, program: str) -> Iterator[None]:
    """Run a few lines in the processes that decode, before they begin."""
    decoders.end_all()
    with monkeypatch.context() as patch:
        patch.setattr(decoders, "PROGRAM", program + decoders.PROGRAM)
        yield
    decoders.end_all()


def values_of(decoded: wb.Particles | wb.Field) -> np.ndarray:
    return decoded.positions if isinstance(decoded, wb.Particles) else decoded.values
