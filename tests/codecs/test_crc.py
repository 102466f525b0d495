"""Checksums by kernel are zlib's, whatever the length and however the bytes are cut."""

import zlib
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_cupy
from workbench import backend
from workbench.codecs import crc
from workbench.codecs.crc import crc32, crc32_of_blocks


@given(st.binary(max_size=3000), st.integers(1, 5))
def test_pieces_add_up_to_the_checksum_of_all(data: bytes, threads: int) -> None:
    with backend.using_threads(threads):
        assert crc._crc_in_pieces(np.frombuffer(data, np.uint8)) == zlib.crc32(data)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 10**6 + 7])
def test_at_the_borders_of_pieces(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert crc._crc_in_pieces(data) == zlib.crc32(data.tobytes())


def test_zeros_count() -> None:
    """Bytes that are zero change the remainder through their number alone."""
    lengths = [crc._crc_in_pieces(np.zeros(size, np.uint8)) for size in range(1, 2000, 13)]
    assert lengths == [zlib.crc32(bytes(size)) for size in range(1, 2000, 13)]


@given(st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=20)), min_size=1, max_size=30), st.data())
def test_blocks_have_the_checksums_of_their_parts(blocks: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    blocks = [(one[: len(one) // 2 * 2], other[: len(other) // 4 * 4]) for one, other in blocks]
    chosen = data.draw(st.lists(st.integers(0, len(blocks) - 1), max_size=10))
    parts = []
    for number, dtype in enumerate((np.uint16, np.uint32)):
        each = [np.frombuffer(block[number], dtype) for block in blocks]
        parts.append((np.concatenate(each), np.cumsum([0, *map(len, each)])))
    found = crc32_of_blocks(parts, np.array(chosen, np.int64))
    assert found.tolist() == [zlib.crc32(b"".join(blocks[block])) for block in chosen]


def test_only_the_checksum_leaves_a_gpu(stand_in: ModuleType) -> None:
    values = np.random.default_rng(0).random((5000, 3)).astype(np.float32)
    there = stand_in.asarray(values)
    fake_cupy.counted.clear()
    assert crc32(there) == crc32(values) == zlib.crc32(values.tobytes())
    assert fake_cupy.counted["bytes to the host"] == 4


def test_an_array_with_gaps_is_summed_as_it_reads() -> None:
    values = np.arange(60, dtype=np.float64).reshape(6, 10)[:, ::2]
    assert crc32(values) == zlib.crc32(values.tobytes())
