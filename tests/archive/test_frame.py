import pickle
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.archive.frame import MOST_VALUES, Damaged, pack, shape_of, unpack
from workbench.errors import GuaranteeBroken, WorkbenchError

SHAPES = st.lists(st.integers(1, 60), min_size=1, max_size=5).map(tuple)
TAGS = st.text("abcxyzABC019_", min_size=4, max_size=4)
SECTIONS = st.dictionaries(TAGS, st.binary(max_size=50), min_size=1, max_size=16)
SMALL = pack((3, 4), {"code": b"some bytes", "mask": b"", "edit": b"others"})


def forged(shape, sections, dimensions=None, count=None):
    """A frame whose checksums are right and whose claims are whatever is wanted."""
    header = b"LBC1" + bytes([len(shape) if dimensions is None else dimensions, len(sections) if count is None else count])
    header += b"".join(struct.pack("<Q", size) for size in shape)
    header += b"".join(struct.pack("<4sQI", tag, length, zlib.crc32(data)) for tag, length, data in sections)
    return header + struct.pack("<I", zlib.crc32(header)) + b"".join(data for _, _, data in sections)


@given(SHAPES, SECTIONS)
def test_what_is_packed_is_unpacked(shape, sections):
    frame = unpack(pack(shape, sections), "here")
    assert frame.shape == shape == shape_of(pack(shape, sections), "here")
    assert {tag: bytes(data) for tag, data in frame.sections.items()} == sections
    assert list(frame.sections) == list(sections)


def test_the_layout_of_the_bytes_is_the_one_that_is_documented():
    assert pack((2, 3), {"code": b"ab"}) == forged((2, 3), [(b"code", 2, b"ab")])


def test_sizes_of_numpy_are_sizes():
    assert shape_of(pack(np.ones((2, 3)).shape, {"code": b""}), "here") == (2, 3)
    assert shape_of(pack(tuple(np.array([2, 3])), {"code": b""}), "here") == (2, 3)


def test_sections_are_views_of_the_bytes_that_were_read():
    data = bytearray(SMALL)
    frame = unpack(data, "here")
    data[SMALL.index(b"some")] = ord("S")
    assert bytes(frame.sections["code"]) == b"Some bytes"


def test_a_frame_costs_few_bytes():
    assert len(pack((100, 3), {"code": b"", "edit": b""})) <= 60
    assert len(pack((64, 64, 64), {"code": b""})) <= 60


def test_every_change_of_every_byte_is_noticed():
    for place in range(len(SMALL)):
        for change in range(1, 256):
            data = bytearray(SMALL)
            data[place] ^= change
            with pytest.raises(Damaged):
                unpack(data, "here")


def test_every_truncation_is_noticed():
    for length in range(len(SMALL)):
        with pytest.raises(Damaged):
            unpack(SMALL[:length], "here")


@given(st.binary(min_size=1, max_size=30))
def test_bytes_too_many_are_noticed(more):
    with pytest.raises(Damaged, match="it must have"):
        unpack(SMALL + more, "here")


@given(st.binary(max_size=300), st.sampled_from([b"", b"LBC1", SMALL[:6], SMALL[:-8]]))
def test_arbitrary_bytes_are_damage_and_nothing_else(data, beginning):
    if beginning + data != SMALL:
        with pytest.raises(Damaged):
            unpack(beginning + data, "here")


@given(st.lists(st.integers(0, 2**64 - 1), max_size=6), st.lists(st.tuples(st.binary(min_size=4, max_size=4),
       st.integers(0, 2**64 - 1), st.binary(max_size=20)), max_size=17))
def test_made_up_headers_with_right_checksums_are_damage_or_consistent(shape, sections):
    try:
        frame = unpack(forged(shape, sections), "here")
    except Damaged:
        return
    assert frame.shape == tuple(shape)
    assert np.prod(frame.shape, dtype=object) <= MOST_VALUES
    assert [bytes(data) for data in frame.sections.values()] == [data for _, _, data in sections]


FORGED = [
    (forged((2**40,), [(b"code", 1, b"x")]), "its shape must hold 1 to 2,147,483,648 values"),
    (forged((2**16, 2**16), [(b"code", 1, b"x")]), "its shape must hold"),
    (forged((3, 0), [(b"code", 1, b"x")]), "its shape must hold"),
    (forged((3,), [(b"code", 2**63, b"x")]), "it must have 9,223,372,036,854,775,842 bytes"),
    (forged((3,), [(b"code", 1, b"x"), (b"code", 1, b"y")]), "the tags of its sections must differ"),
    (forged((3,), [(b"co\xffe", 1, b"x")]), "must be four ASCII letters"),
    (forged((3,), [(b"co\0e", 1, b"x")]), "must be four ASCII letters"),
    (forged((), [(b"code", 1, b"x")]), "claims 0 dimensions and 1 sections"),
    (forged((1,) * 6, [(b"code", 1, b"x")]), "claims 6 dimensions"),
    (forged((3,), []), "claims 1 dimensions and 0 sections"),
    (forged((3,), [(b"%04d" % i, 0, b"") for i in range(17)]), "17 sections"),
    (forged((3,), [(b"code", 1, b"x")], count=9), "it ends within its header, after 35 of 162 bytes"),
    (b"", "it has 0 bytes, which is too short"),
    (b"PK\x03\x04" + SMALL[4:], "it must begin with b'LBC1'; it begins with b'PK"),
]


@pytest.mark.parametrize(("data", "complaint"), FORGED)
def test_a_made_up_header_is_named_and_allocates_nothing(data, complaint):
    tracemalloc.start()
    try:
        with pytest.raises(Damaged, match=complaint):
            unpack(data, "here")
        assert tracemalloc.get_traced_memory()[1] < 2**18
    finally:
        tracemalloc.stop()


def test_a_lazy_section_is_checked_when_asked():
    data = bytearray(SMALL)
    data[SMALL.index(b"some")] ^= 1
    frame = unpack(data, "density/c/0/1", lazy=("code",))
    frame.check("edit")
    with pytest.raises(Damaged, match="its section 'code' fails its checksum"):
        frame.check("code")
    with pytest.raises(Damaged, match="its section 'code' fails its checksum"):
        unpack(data, "density/c/0/1", lazy=("edit", "mask"))


def test_a_lazy_section_that_is_whole_passes():
    unpack(SMALL, "here", lazy=("code",)).check("code")


def test_a_section_that_is_not_there_is_damage():
    frame = unpack(SMALL, "density/c/0/1")
    assert bytes(frame.section("edit")) == b"others"
    for ask in (frame.section, frame.check):
        with pytest.raises(Damaged, match="it has no lost section"):
            ask("lost")


def test_damage_says_where_and_why_even_from_another_process():
    with pytest.raises(GuaranteeBroken) as caught:
        unpack(SMALL[:20], "density/c/0/1")
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.where, error.reason) == ("density/c/0/1", "it ends within its header, after 20 of 74 bytes")
        assert str(error) == (
            "chunk density/c/0/1 is damaged: it ends within its header, after 20 of 74 bytes "
            "(the other chunks can still be read)"
        )


@pytest.mark.parametrize(("shape", "sections", "complaint"), [
    ((), {"code": b""}, "the shape of a chunk must have 1 to 5 dimensions"),
    ((1,) * 6, {"code": b""}, "must have 1 to 5 dimensions"),
    ((0, 3), {"code": b""}, "must hold 1 to 2,147,483,648 values"),
    ((2**31 + 1,), {"code": b""}, "must hold 1 to"),
    ((3,), {}, "the tags of a chunk's sections must be 1 to 16; got none"),
    ((3,), {f"{i:04}": b"" for i in range(17)}, "must be 1 to 16"),
    ((3,), {"codes": b""}, "must be four ASCII letters, digits or underscores; got 'codes'"),
    ((3,), {"cod": b""}, "must be four ASCII"),
    ((3,), {"co é": b""}, "must be four ASCII"),
    ((3,), {"cöd": b""}, "must be four ASCII"),
])
def test_what_cannot_be_a_chunk_is_refused(shape, sections, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        pack(shape, sections)
