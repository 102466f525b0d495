import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.codecs import CodecFailed, Tolerance, get
from workbench.codecs.pcodec import INTEGERS, pack_integers, unpack_integers
from workbench.errors import WorkbenchError

EXACT = Tolerance(absolute=0.0)


@given(data=st.data(), kind=st.sampled_from(INTEGERS))
def test_any_integers_come_back(data, kind):
    limits = np.iinfo(kind)
    numbers = np.array(data.draw(st.lists(st.integers(int(limits.min), int(limits.max)), max_size=50)), kind)
    back = unpack_integers(pack_integers(numbers), len(numbers), kind)
    assert back.dtype == kind
    assert back.tolist() == numbers.tolist()
    assert back.flags.writeable


def test_strided_and_read_only_integers_are_packed_too():
    numbers = np.arange(100)[::-3]
    numbers.flags.writeable = False
    assert unpack_integers(pack_integers(numbers), len(numbers), "int64").tolist() == numbers.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", ">i4", "object"])
def test_only_integers_are_packed(dtype):
    with pytest.raises(WorkbenchError, match="packed numbers must be int8 or"):
        pack_integers(np.zeros(3).astype(dtype))


@pytest.mark.parametrize("wrong", [
    (99, "int32"), (101, "int32"), (0, "int32"), (-1, "int32"), (100, "int64"), (100, "uint32"),
])
def test_integers_are_unpacked_only_as_what_they_were(wrong):
    data = pack_integers(np.arange(100, dtype=np.int32) ** 2)
    with pytest.raises(CodecFailed):
        unpack_integers(data, *wrong)


def test_unpacking_refuses_other_types_and_missing_bytes():
    with pytest.raises(WorkbenchError, match="packed numbers must be"):
        unpack_integers(b"123", 1, "float32")
    for data in (b"", b"x", pack_integers(np.arange(1000))[:-5]):
        with pytest.raises(CodecFailed):
            unpack_integers(data, 1000, "int64")


def test_nothing_is_allocated_by_what_the_data_say():
    data = pack_integers(np.zeros(10**7, np.int64))
    assert len(data) < 1000
    with pytest.raises(CodecFailed):
        unpack_integers(data, 10, "int64")
    for absurd in (2**51, 2**62):
        with pytest.raises(CodecFailed, match="count is damaged"):
            unpack_integers(data, absurd, "int64")


@pytest.mark.parametrize("level", [0, 4, 12])
def test_every_bit_is_kept_at_any_level(level):
    bits = np.random.default_rng(0).integers(0, 2**64, 3000, np.uint64)
    for values in (bits, bits.view(np.float64), bits.view(np.float32).reshape(20, 30, 10), bits.view(np.int16)):
        codec = get("pcodec", level=level)
        back = codec.decode(codec.encode(values, EXACT), values.shape, values.dtype)
        assert back.tobytes() == values.tobytes()


def test_smooth_numbers_shrink():
    ids = np.arange(10**5, dtype=np.int64) * 3 + 7
    assert len(get("pcodec").encode(ids, EXACT)) < 2000
