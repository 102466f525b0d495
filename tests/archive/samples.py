"""Particles and fields to make archives of, and what an archive promises, decided without the library's own check."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.archive import Archive, document, sharding
from workbench.archive.array_files import read_index
from workbench.archive.assembling import stored_chunk
from workbench.archive.chunk import CHECKSUMS, checksum_of_table
from workbench.archive.key import COPY, ROOT
from workbench.archive.layout import ArrayLayout
from workbench.archive.root import CONSOLIDATED
from workbench.archive.second_copy import deflated
from workbench.archive.sharding import end_of
from workbench.archive.store import MemoryStore
from workbench.codecs import registry
from workbench.data.readers import open_file

CODECS = wb.codecs.available()


def fourth(codecs: Sequence[str], *choices: tuple[Any, Any]) -> list[Any]:
    """Each codec with all combinations of choices between two; a fourth is not `long`, another one for the next codec.

    Each codec meets each choice, as with a combination comes the one with all other choices; and all codecs together
    meet all combinations.
    """
    made = []
    for (number, codec), which in itertools.product(enumerate(codecs), itertools.product((0, 1), repeat=len(choices))):
        pair = [k ^ which[0] for k in which[1:]]   # the same for the opposite combination
        long = int("".join(map(str, pair)), 2) % 4 != number % 4
        chosen = (choice[k] for choice, k in zip(choices, which, strict=True))
        made.append(pytest.param(codec, *chosen, marks=pytest.mark.long if long else ()))
    return made


def particles(
    count: int = 500, dtype: Any = np.float32, dimensions: int = 3, box: Any = 10.0, seed: int = 0
) -> wb.Particles:
    """Half of them clustered, half anywhere; some exactly on faces; with velocities, and with ids that tell each."""
    random = np.random.default_rng([seed, count, dimensions])
    positions = random.random((count, dimensions)) * (10.0 if box is None else box)
    positions[: count // 2] = positions[0] + random.normal(scale=0.01, size=(count // 2, dimensions))
    positions[count // 2 :: 50] = 0
    velocities = random.normal(scale=300, size=positions.shape).astype(dtype)
    ids = random.permutation(count) * 1_000_003
    if box is None:
        return wb.Particles((positions - 3).astype(dtype), None, velocities, ids)
    return wb.Particles.wrapped(positions.astype(dtype), box, velocities, ids)


def field(shape: tuple[int, ...] = (20, 30), dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Smooth values with some noise."""
    random = np.random.default_rng([seed, *shape])
    axes = np.meshgrid(*(np.linspace(0, 3, size) for size in shape), indexing="ij")
    return (np.sin(sum(axes)) * 100 + random.normal(size=shape)).astype(dtype)


def assert_same_bits(x: np.ndarray, y: np.ndarray) -> None:
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    assert x.tobytes() == y.tobytes()


def assert_within(
    original: np.ndarray, decoded: np.ndarray, bound: wb.Absolute, period: Any = None, mask: np.ndarray | None = None
) -> None:
    """The promise of a bound: in longdouble for all values, in fractions for those that come closest to breaking it."""
    assert (original.dtype, original.shape) == (decoded.dtype, decoded.shape)
    valid = np.isfinite(original) & (True if mask is None else ~mask)
    limit = _limit(original[valid], bound)
    if limit == 0 or not valid.any():
        assert_same_bits(original, decoded)
        return
    assert_same_bits(original[~valid], decoded[~valid])
    x, y = original[valid], decoded[valid]
    assert np.isfinite(y).all()
    lengths = np.broadcast_to(0.0 if period is None else np.asarray(period), original.shape)[valid]
    with np.errstate(all="ignore"):
        apart = np.abs(x.astype(np.longdouble) - y.astype(np.longdouble))
        apart = np.where(lengths > 0, np.minimum(apart, np.abs(lengths - apart)), apart)
        share = apart / np.abs(x) if isinstance(bound, wb.PointwiseRelative) else apart
    share[apart == 0] = 0
    assert (share <= np.longdouble(limit) * (1 + np.longdouble(2) ** -50)).all()
    for i in np.argsort(share)[-20:].tolist():
        a, b, length = (Fraction(float(v)) for v in (x[i], y[i], lengths[i]))
        distance = min(abs(a - b), abs(length - abs(a - b))) if length else abs(a - b)
        assert distance <= Fraction(limit) * (abs(a) if isinstance(bound, wb.PointwiseRelative) else 1)


def assert_kept(archive: Archive, original: wb.Particles, bound: wb.Absolute, velocities: Any = None) -> np.ndarray:
    """All that an archive of particles promises; returns which particle each decoded one is."""
    decoded, order = archive.decompress(), archive.permutation(original)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(original)))
    assert decoded.box == original.box
    if original.box is not None:
        assert (decoded.positions >= 0).all()
        assert (decoded.positions.astype(np.float64) < np.asarray(original.box)).all()
    limit = bound.limit(original.positions)   # Relative: of the range of all
    same = wb.PointwiseRelative(limit.value) if limit.relative else wb.Absolute(limit.value)
    assert_within(original.positions[order], decoded.positions, same, original.box)
    if original.velocities is not None:
        assert_within(original.velocities[order], decoded.velocities, velocities or wb.Absolute(0))
    if original.ids is not None:
        assert_same_bits(original.ids[order], decoded.ids)
    return order


def assert_equal(x: Any, y: Any) -> None:
    """Two sets of particles, or two fields, alike in everything, bit for bit."""
    assert type(x) is type(y)
    if isinstance(x, wb.Trajectory):
        assert x.arrays == y.arrays
        for name in x.arrays:
            assert_same_bits(x.read(0, len(x), (name,))[name], y.read(0, len(y), (name,))[name])
        assert {name: column.tolist() for name, column in x.atoms.items()} == {
            name: column.tolist() for name, column in y.atoms.items()
        }
        assert x.metadata == y.metadata
        return
    for entry in (entry for entry in dataclasses.fields(x) if entry.init):   # the rest follows from these
        a, b = getattr(x, entry.name), getattr(y, entry.name)
        if isinstance(a, np.ndarray):
            assert_same_bits(a, b)
        else:
            assert a == b


def parts(archive: Archive) -> dict[str, bytes]:
    """The parts of an archive by key, to be changed."""
    return {key: archive.store.read(key) for key in archive.store.keys()}   # noqa: SIM118 - a store is no dict


def from_parts(entries: dict[str, bytes]) -> Archive:
    return Archive(MemoryStore(entries))


def described(entries: dict[str, bytes], array: str) -> dict[str, Any]:
    """The document of an array in the root."""
    return document.from_bytes(entries[ROOT], ROOT)[CONSOLIDATED]["metadata"][array]


def resealed(entries: dict[str, bytes], key: str, change: Any) -> dict[str, bytes]:
    """The parts with the root, or the document of an array in it, changed by someone who knows about checksums."""
    root = document.unsealed(document.from_bytes(entries[ROOT], ROOT), ROOT)
    change(root if key == ROOT else root[CONSOLIDATED]["metadata"][key.split("/")[0]])
    data = document.to_bytes(document.sealed(root))
    return {**entries, ROOT: data, **{name: deflated(data) for name in entries if name.endswith(f"/{COPY}")}}


def layout_of(entries: dict[str, bytes], array: str) -> ArrayLayout:
    """The layout of an array that the root describes."""
    return ArrayLayout.from_metadata(array, described(entries, array))


def chunks(entries: dict[str, bytes]) -> dict[str, bytes]:
    """The bytes of all chunks by key, also of those in shards."""
    store, found = MemoryStore(entries), {}
    for array in document.from_bytes(entries[ROOT], ROOT)[CONSOLIDATED]["metadata"]:
        layout = layout_of(entries, array)
        found |= {layout.chunk_key(index): stored_chunk(store, layout, index) for index in layout.chunk_indices()}
    return found


def with_chunk(entries: dict[str, bytes], key: str, data: bytes, checksum: bytes | None = None) -> dict[str, bytes]:
    """The parts with another chunk, also in a shard; with this checksum of its values, wherever that is listed."""
    layout = layout_of(entries, key.split("/")[0])
    index = next(index for index in layout.chunk_indices() if layout.chunk_key(index) == key)
    shard, stated = layout.shard_of(index), checksum
    if layout.shard_shape is not None:
        known, slot = read_index(MemoryStore(entries), layout, shard), layout.slot_of(index)
        table, key = bytearray(known.checksums), layout.shard_key(shard)
        if checksum is not None:
            table[4 * slot : 4 * slot + 4] = checksum
            stated = checksum_of_table(bytes(table))
        places = [known.place(number) for number in range(len(known.ends))]
        together = [entries[key][begin : begin + size] for begin, size in places]
        together[slot] = data
        data = b"".join(together) + end_of(np.array([len(chunk) for chunk in together]), bytes(table))
    changed = {**entries, key: data}
    return changed if stated is None else with_stated(changed, layout, shard, stated)


def with_stated(
    entries: dict[str, bytes], layout: ArrayLayout, shard: tuple[int, ...], checksum: bytes
) -> dict[str, bytes]:
    """The parts in whose document this is the checksum of a file."""
    number = list(layout.shard_indices()).index(shard)

    def change(content: dict[str, Any]) -> None:
        listed = content["attributes"][CHECKSUMS]
        content["attributes"][CHECKSUMS] = listed[: 8 * number] + checksum.hex() + listed[8 * number + 8 :]

    return resealed(entries, f"{layout.name}/zarr.json", change)


@contextlib.contextmanager
def in_shards(files: int = 4) -> Iterator[None]:
    """Arrays that are written have at most so many files, as if they had very many chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharding, "MOST_FILES", files)
        yield


@contextlib.contextmanager
def registered(*classes: type[wb.codecs.Codec]) -> Iterator[None]:
    """These codecs are known by their names, as if packages had brought them."""

    class Point:
        def __init__(self, found: type[wb.codecs.Codec]) -> None:
            self.name, self.value, self.load = found.id, f"tests:{found.__name__}", lambda: found
            self.module = found.__module__

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_entry_points", lambda: {found.id: Point(found) for found in classes})
        yield


def reopened(archive: Archive, path: Any) -> Archive:
    """The archive, written and opened again."""
    return open_file(archive.save(path))


def _limit(valid: np.ndarray, bound: Any) -> float:
    if not isinstance(bound, wb.Relative) or not valid.size:
        return bound.eb
    least, largest = float(valid.min()), float(valid.max())
    return bound.eb * largest - bound.eb * least   # their difference may be more than any float
