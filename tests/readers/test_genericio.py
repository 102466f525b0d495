"""GenericIO: byte orders, ranks, checksums, compression, partitions, damage."""

import lzma
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers import written
from workbench import WorkbenchError
from workbench.data.readers import open_file
from workbench.data.readers.crc64 import crc64

RANKS = [written.hacc_columns(count, seed=count) for count in (7, 0, 12)]
SMALL = written.genericio([written.hacc_columns(3)])
BIG = written.genericio([written.hacc_columns(3)], order=">")


@given(st.binary(max_size=700))
def test_crc64_is_that_of_the_definition(data):
    assert crc64(data) == written.slow_crc64(data)


@pytest.mark.parametrize("size", [2**16, 2**16 + 1, 8192 * 8 * 16 + 3, 8192 * 8 * 40])
def test_crc64_of_long_messages(size):
    """The complement of what the xz library stores in front of its index."""
    message = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8).tobytes()
    stream = lzma.compress(message, check=lzma.CHECK_CRC64, preset=0)
    index = 4 * (1 + int.from_bytes(stream[-8:-4], "little"))
    stored = int.from_bytes(stream[-12 - index - 8 : -12 - index], "little")
    assert crc64(message) == stored ^ 0xFFFFFFFFFFFFFFFF


@pytest.mark.parametrize("order", ["<", ">"])
def test_columns_of_all_ranks(file, order):
    particles = open_file(file(written.genericio(RANKS, order=order)))
    expected = {name: np.concatenate([rank[name] for rank in RANKS]) for name in RANKS[0]}
    np.testing.assert_array_equal(particles.positions, np.stack([expected[axis] for axis in "xyz"], axis=1))
    np.testing.assert_array_equal(particles.velocities, np.stack([expected[axis] for axis in ("vx", "vy", "vz")], axis=1))
    np.testing.assert_array_equal(particles.ids, expected["id"])
    assert particles.positions.dtype == np.float32
    assert particles.box == (written.BOX,) * 3
    assert particles.metadata["ranks"] == 3


def test_double_precision_and_no_velocities(file):
    columns = {name: column.astype("f8") for name, column in written.hacc_columns(6).items() if name in ("x", "y", "z")}
    particles = open_file(file(written.genericio([columns])))
    assert particles.positions.dtype == np.float64
    assert particles.velocities is None
    assert particles.ids is None


def test_the_origin_is_subtracted(file):
    columns = written.hacc_columns(6)
    shifted = {name: column + np.float32(100 if name in ("x", "y", "z") else 0) for name, column in columns.items()}
    shifted |= {"id": columns["id"], "mask": columns["mask"]}
    particles = open_file(file(written.genericio([shifted], origin=(100.0,) * 3)))
    np.testing.assert_allclose(particles.positions[:, 0], columns["x"], atol=1e-5)
    assert particles.metadata["origin"] == [100.0] * 3


def test_no_box_in_the_header_is_an_open_space(file):
    assert open_file(file(written.genericio(RANKS, scale=(0.0,) * 3))).box is None


@pytest.mark.parametrize("order", ["<", ">"])
def test_compressed_columns(file, order):
    blosc = pytest.importorskip("blosc")
    ranks = [written.hacc_columns(count) for count in (500, 300)]
    particles = open_file(file(written.genericio(ranks, order=order, blosc=blosc)))
    np.testing.assert_array_equal(particles.positions[:500, 1], ranks[0]["y"])
    np.testing.assert_array_equal(particles.ids[500:], ranks[1]["id"])


def test_partitions_are_found_by_the_map(tmp_path):
    columns = {"$rank": np.arange(3, dtype=np.int32), "$partition": np.array([0, 0, 1], np.int32)}
    (tmp_path / "m.50").write_bytes(written.genericio([columns]))
    (tmp_path / "m.50#0").write_bytes(written.genericio(RANKS[:2]))
    with pytest.raises(WorkbenchError, match=r"m\.50#1"):
        open_file(tmp_path / "m.50")
    (tmp_path / "m.50#1").write_bytes(written.genericio(RANKS[2:]))
    particles = open_file(tmp_path / "m.50")
    np.testing.assert_array_equal(particles.positions[:, 2], np.concatenate([rank["z"] for rank in RANKS]))


def damaged_column(name, rank):
    """A file with one changed byte inside a column of a rank."""
    content = bytearray(written.genericio(RANKS))
    needle = RANKS[rank][name].tobytes()
    content[content.index(needle) + 5] ^= 1
    return bytes(content)


@pytest.mark.parametrize(("name", "rank"), [("x", 0), ("vz", 2), ("id", 2)])
def test_a_wrong_checksum_names_variable_and_rank(file, name, rank):
    with pytest.raises(WorkbenchError, match=f"the checksum of the variable {name} of rank {rank} must be"):
        open_file(file(damaged_column(name, rank)))


def test_columns_that_are_not_needed_are_not_read(file):
    content = bytearray(written.genericio([written.hacc_columns(5) | {"phi": np.full(5, 123.25, np.float32)}]))
    content[content.index(np.full(5, 123.25, np.float32).tobytes())] ^= 1
    assert len(open_file(file(bytes(content)))) == 5


def test_a_wrong_header_checksum(file):
    content = bytearray(SMALL)
    content[200] ^= 1
    with pytest.raises(WorkbenchError, match="the checksum of the header must be"):
        open_file(file(bytes(content)))


def test_no_positions(file):
    with pytest.raises(WorkbenchError, match="no positions x, y, z; its variables are mass, x"):
        open_file(file(written.genericio([{"mass": np.ones(3, np.float32), "x": np.ones(3, np.float32)}])))


@pytest.mark.parametrize("content", [SMALL, BIG], ids=["little", "big"])
@given(data=st.data())
def test_cut_anywhere_is_refused(refused_when_cut, content, data):
    needed = len(content) - 3 * 2 - 8   # the last column, the mask, is not read
    refused_when_cut(content, data.draw(st.integers(8, needed - 1)), format="genericio")
    refused_when_cut(content, data.draw(st.integers(1, needed - 1)))


@given(changes=st.dictionaries(st.integers(8, len(SMALL) - 1), st.integers(0, 255), min_size=1, max_size=4))
def test_changed_bytes_are_refused_or_read(survives, changes):
    survives(SMALL, changes)


@given(changes=st.dictionaries(st.integers(8, 2800), st.integers(0, 255), min_size=1, max_size=4))
def test_a_wrong_header_with_a_right_checksum(survives, changes):
    """Whoever wrote nonsense may have checksummed it: the numbers in the header are not trusted either."""
    content = bytearray(SMALL)
    (size,) = struct.unpack_from("<Q", SMALL, 8)
    for place, value in changes.items():
        content[8 + place % (size - 8)] = value
    (size,) = struct.unpack_from("<Q", content, 8)
    if size + 8 <= len(content):
        struct.pack_into("<Q", content, size, written.slow_crc64(bytes(content[:size])))
    survives(bytes(content), {})
