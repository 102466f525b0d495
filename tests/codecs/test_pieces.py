import math
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.codecs import CodecFailed
from workbench.codecs.pieces import cut, join, split

FLOAT = np.dtype("f4")
shapes = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)


@given(shape=shapes, most=st.integers(1, 200))
def test_pieces_are_the_array_in_order_and_none_is_too_large(shape, most):
    values = np.arange(math.prod(shape)).reshape(shape)
    pieces = cut(shape, most)
    assert all(len(p.shape) == len(shape) and 1 <= math.prod(p.shape) <= most for p in pieces)
    assert np.concatenate([values.reshape(-1)[p.start : p.stop] for p in pieces]).tolist() == list(range(values.size))
    assert [p.start for p in pieces[1:]] == [p.stop for p in pieces[:-1]]
    for piece in pieces:   # a block of the array: the same indices along every axis
        indices = [np.unique(i) for i in np.unravel_index(np.arange(piece.start, piece.stop), shape)]
        assert tuple(map(len, indices)) == piece.shape


@given(shape=shapes, most=st.integers(1, 200))
def test_pieces_are_not_needlessly_many(shape, most):
    assert len(cut(shape, most)) <= 2 * math.ceil(math.prod(shape) / most)


@given(shape=shapes, most=st.integers(1, 200), data=st.data())
def test_what_is_joined_is_split_again(shape, most, data):
    pieces = cut(shape, most)
    parts = [data.draw(st.binary(min_size=1, max_size=9)) for _ in pieces]
    joined = join("it", parts, shape, FLOAT, most)
    assert split("it", joined, shape, FLOAT) == list(zip(pieces, parts, strict=True))
    if len(parts) == 1:
        assert len(joined) == len(parts[0]) + 5


def forged(several, body, shape):
    """Bytes with a right checksum around a wrong body."""
    meant = f"it {several} float32 {'x'.join(map(str, shape))}".encode()
    return struct.pack("<IB", zlib.crc32(body, zlib.crc32(meant)), several) + body


def test_a_forged_string_is_made_as_join_would():
    assert forged(0, b"abc", (2, 3)) == join("it", [b"abc"], (2, 3), FLOAT, 100)


@pytest.mark.parametrize(("most", "count", "lengths", "rest"), [
    (0, 2, [1, 1], b"ab"),               # no values in a piece
    (6, 1, [2], b"ab"),                  # one piece is not several
    (3, 1, [2], b"ab"),                  # too few
    (3, 3, [1, 1, 1], b"abc"),           # too many
    (3, 2, [1, 2], b"ab"),               # lengths beyond the end
    (3, 2, [1, 1], b"abc"),              # bytes left over
    (3, 2, [2**63, 2**63 + 2], b"ab"),   # sums that would wrap around
    (3, 2**32 - 1, [1, 1], b"ab"),       # more pieces than bytes
    (1, 2, [1, 1], b"ab"),               # would be six
])
def test_a_list_of_pieces_that_cannot_be_is_refused(most, count, lengths, rest):
    body = struct.pack("<QI", most, count) + np.array(lengths, "<u8").tobytes() + rest
    with pytest.raises(CodecFailed, match=r"pieces .* cannot be an array of shape"):
        split("it", forged(1, body, (2, 3)), (2, 3), FLOAT)


def test_a_list_of_pieces_that_is_cut_short_is_refused():
    with pytest.raises(CodecFailed, match="cannot be an array"):
        split("it", forged(1, b"\1\2\3", (2, 3)), (2, 3), FLOAT)


def test_nothing_is_listed_for_a_shape_that_is_absurd():
    body = struct.pack("<QI", 1, 2) + bytes(18)
    with pytest.raises(CodecFailed, match="cannot be an array"):
        split("it", forged(1, body, (2**40, 2**40)), (2**40, 2**40), FLOAT)
