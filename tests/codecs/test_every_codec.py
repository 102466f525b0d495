"""What holds for every codec of fields: what it takes, what it refuses, and how near it comes."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combinations import in_pairs
from workbench.codecs import CodecFailed, ParticleCodec, Tolerance, from_dict, get, registry
from workbench.errors import WorkbenchError

FIELD_CODECS = [name for name in registry.status() if not issubclass(registry.codec_class(name), ParticleCodec)]
LOSSY = ["sz3", "zfp", "sperr", "fpzip", "bitround", "prequantised", "interpolation", "staged"]
EXACT_AT_ZERO = ["sz3", "zfp", "fpzip", "pcodec", "bitround", "numcodecs"]
KEEPS_NOT_FINITE = ["pcodec", "bitround"]
SHAPES = [(500,), (24, 31), (9, 10, 11), (3, 4, 9, 10), (1,), (1, 1), (1, 7), (5, 1, 1, 6), (2, 2, 2, 2)]

# Every setting of every codec that changes what is written.
VARIANTS = [
    *({"id": "sz3", "algorithm": a} for a in ("interp_lorenzo", "interp", "lorenzo_reg", "nopred")),
    *({"id": "zfp", "mode": m} for m in ("accuracy", "precision", "rate", "reversible")),
    {"id": "sperr"},
    {"id": "fpzip"},
    {"id": "fpzip", "precision": 20},
    *({"id": "pcodec", "level": n} for n in (0, 8, 12)),
    {"id": "bitround"},
    {"id": "bitround", "keepbits": 7, "level": 9},
    {"id": "prequantised", "level": 4},
    {"id": "interpolation"},
    {"id": "interpolation", "frozen": [0], "block": 4096},
    {"id": "staged"},
    {"id": "staged", "sides": [1, 16, 32], "deflate": True},
    {"id": "numcodecs", "codec": "blosc", "options": {"cname": "zstd", "shuffle": 2}},
    {"id": "numcodecs", "codec": "lzma", "options": {"preset": 1}},
    {"id": "draco", "order": "free", "level": 3},
]


def smooth(shape):
    return np.sin(sum(np.indices(shape)) / 7.0) + 2


def noise(shape):
    return np.random.default_rng(2).normal(size=shape)


def constant(shape):
    return np.full(shape, 3.3)


def mixed(shape):
    rng = np.random.default_rng(3)
    return rng.normal(size=shape) * 10.0 ** rng.integers(-6, 3, shape)


def zero(shape):
    return np.zeros(shape)


KINDS = [smooth, noise, constant, mixed, zero]


def word(choice):
    return choice.__name__ if callable(choice) else str(choice)


def there_and_back(codec, values, tolerance):
    decoded = codec.decode(codec.encode(values, tolerance), values.shape, values.dtype)
    assert (decoded.shape, decoded.dtype) == (values.shape, values.dtype)
    return decoded


def error(values, decoded):
    return float(np.abs(values.astype(np.float64) - decoded).max())


def test_the_list_of_field_codecs_is_complete():
    assert set(FIELD_CODECS) == {*LOSSY, "pcodec", "numcodecs"}


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "kind"), in_pairs(LOSSY, SHAPES, ["float32", "float64"], KINDS), ids=word,
)
def test_lossy_codecs_come_within_the_tolerance(name, shape, dtype, kind):
    values = kind(shape).astype(dtype)
    last_digit = float(np.spacing(np.abs(values).max()))   # which zfp, and nobody else, may miss besides
    for size in (0.3, 1e-3, 1e-5):
        allowed = size + last_digit if name == "zfp" else size
        assert error(values, there_and_back(get(name), values, Tolerance(absolute=size))) <= allowed


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "kind"), in_pairs(EXACT_AT_ZERO, SHAPES, ["float32", "float64"], KINDS), ids=word,
)
def test_a_tolerance_of_zero_keeps_all_bits(name, shape, dtype, kind):
    values = kind(shape).astype(dtype)
    decoded = there_and_back(get(name), values, Tolerance(absolute=0.0))
    assert decoded.tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sperr", "prequantised", "interpolation", "staged"])
def test_codecs_on_a_lattice_refuse_a_tolerance_of_zero(name, dtype):
    with pytest.raises(WorkbenchError, match=r"tolerance above 2\^-.* of the largest value.*pcodec keeps all bits"):
        get(name).encode(noise((8, 9)).astype(dtype), Tolerance(absolute=0.0))
    with pytest.raises(WorkbenchError, match="tolerance above"):
        get(name).encode(np.zeros((8, 9), dtype), Tolerance(absolute=0.0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOSSY)
def test_a_relative_tolerance_holds_for_every_value(name, dtype):
    values = (np.sign(noise((12, 13))) * 2.0 ** (8 * noise((12, 13)))).astype(dtype)
    if not registry.codec_class(name).relative:
        values = (2 + smooth((12, 13))).astype(dtype)   # the smallest value decides, so they are all of one size
    decoded = there_and_back(get(name), values, Tolerance(relative=0.01))
    assert (np.abs(values.astype(np.float64) - decoded) <= 0.01 * np.abs(values)).all()


@pytest.mark.parametrize("name", ["fpzip", "bitround"])
def test_relative_codecs_take_fewer_bits_for_a_coarser_tolerance(name):
    values = mixed((30, 31)).astype(np.float32)
    sizes = [len(get(name).encode(values, Tolerance(relative=r))) for r in (1e-6, 1e-4, 1e-2, 0.5)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4


@pytest.mark.parametrize("name", LOSSY)
def test_a_coarser_tolerance_takes_fewer_bytes(name):
    values = (smooth((40, 50)) + 0.1 * noise((40, 50))).astype(np.float32)
    sizes = [len(get(name).encode(values, Tolerance(absolute=s))) for s in (1e-5, 1e-3, 1e-1)]
    assert sizes[0] > 1.2 * sizes[1] > 1.44 * sizes[2]
    assert sizes[2] < values.nbytes / 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FIELD_CODECS)
def test_the_largest_and_smallest_numbers_survive(name, dtype):
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    values = np.array([[most / 4, -most / 4, least], [0.0, -0.0, 1.0]], dtype)
    size = float(most) * 1e-3
    assert error(values, there_and_back(get(name), values, Tolerance(absolute=size))) <= size


@pytest.mark.parametrize("name", LOSSY)
def test_a_tolerance_beyond_all_values_is_fine(name):
    values = noise((20, 21))
    assert error(values, there_and_back(get(name), values, Tolerance(absolute=1e6))) <= 1e6


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_codec_is_the_value_that_its_dictionary_describes(variant):
    codec = from_dict(variant)
    assert from_dict(json.loads(json.dumps(codec.to_dict()))) == codec
    assert hash(from_dict(codec.to_dict())) == hash(codec)
    assert variant.items() <= codec.to_dict().items()
    with pytest.raises(AttributeError):
        codec.id_of_another = 1
    with pytest.raises((AttributeError, TypeError)):
        setattr(codec, next(name for name in codec.to_dict() if name != "id") if len(codec.to_dict()) > 1 else "level", 1)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v["id"] != "draco"], ids=str)
def test_encoding_and_decoding_are_deterministic(variant):
    values, tolerance = noise((6, 7, 8)).astype(np.float32), Tolerance(absolute=0.01)
    codec = from_dict(variant)
    data = codec.encode(values, tolerance)
    assert codec.encode(values.copy(), tolerance) == data
    assert from_dict(codec.to_dict()).encode(values, tolerance) == data
    decoded = codec.decode(data, values.shape, values.dtype)
    assert codec.decode(bytearray(data), list(values.shape), "float32").tobytes() == decoded.tobytes()
    assert np.abs(decoded - values).max() < 1


@pytest.mark.parametrize("name", FIELD_CODECS)
def test_the_values_given_stay_as_they_are_and_may_be_read_only(name):
    values = noise((8, 9)).astype(np.float32)
    before = values.copy()
    values.flags.writeable = False
    there_and_back(get(name), values, Tolerance(absolute=0.1))
    assert values.tobytes() == before.tobytes()


@pytest.mark.parametrize("name", FIELD_CODECS)
def test_decoded_values_belong_to_the_caller(name):
    values = noise((8, 9)).astype(np.float32)
    assert there_and_back(get(name), values, Tolerance(absolute=0.1)).flags.writeable


@pytest.mark.parametrize("name", FIELD_CODECS)
@pytest.mark.parametrize("wrong", [
    (np.zeros((4, 5), np.float32)[:, ::2], "non-empty C-contiguous arrays; got float32 of shape .4, 3., not C-contiguous"),
    (np.zeros((4, 5), np.float32, order="F"), "C-contiguous"),
    (np.zeros((0, 5), np.float32), r"non-empty C-contiguous arrays; got float32 of shape \(0, 5\)"),
    (np.zeros((4, 5), np.float16), "takes float32 or float64.*; got float16"),
    (np.zeros((4, 5), np.complex64), "takes float32 or float64.*; got complex64"),
    (np.zeros((4, 5), ">f4"), "takes float32 or float64.*; got >f4"),
    (np.zeros((1, 2, 1, 2, 1), np.float32), "takes arrays of 1, 2, 3, 4 dimensions"),
    (np.array(1.0), "dimensions"),
    ([1.0, 2.0], "got list"),
])
def test_what_the_libraries_cannot_take_is_refused_first(name, wrong):
    values, message = wrong
    with pytest.raises(WorkbenchError, match=message):
        get(name).encode(values, Tolerance(absolute=0.1))


@pytest.mark.parametrize("name", FIELD_CODECS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_kept_or_refused(name, value):
    values = noise((16, 17)).astype(np.float32)
    values[3, 4] = value
    if name not in KEEPS_NOT_FINITE:
        with pytest.raises(WorkbenchError, match=f"{name} takes finite values only; got nan or infinity"):
            get(name).encode(values, Tolerance(absolute=0.1))
        return
    decoded = there_and_back(get(name), values, Tolerance(absolute=0.1))
    assert decoded[3, 4] == value or np.isnan([decoded[3, 4], value]).all()
    decoded[3, 4] = values[3, 4] = 0
    assert error(values, decoded) <= 0.1


def test_the_flag_for_finite_values_is_what_the_tests_expect():
    assert [name for name in FIELD_CODECS if not registry.codec_class(name).finite] == KEEPS_NOT_FINITE


@pytest.mark.parametrize("name", [name for name in FIELD_CODECS if not registry.codec_class(name).on_device])
def test_an_array_on_a_device_is_refused_with_advice(name):
    class Array:
        __module__ = "cupy"

    with pytest.raises(WorkbenchError, match=r"got a CuPy array: use array.get\(\)"):
        get(name).encode(Array(), Tolerance(absolute=0.1))


@pytest.mark.parametrize("name", FIELD_CODECS)
def test_damaged_bytes_are_named_before_a_library_sees_them(name):
    values = noise((6, 7, 8)).astype(np.float32)
    codec = get(name)
    data = codec.encode(values, Tolerance(absolute=0.01))
    rng = np.random.default_rng(4)
    flipped = [bytearray(data) for _ in range(20)]
    for damaged in flipped:
        damaged[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    for damaged in [b"", data[:3], data[:5], data[:-1], data[: len(data) // 2], data + b"\0", *flipped]:
        with pytest.raises(CodecFailed, match=r"damaged|truncated"):
            codec.decode(damaged, values.shape, values.dtype)


@pytest.mark.parametrize("name", FIELD_CODECS)
def test_bytes_are_not_decoded_into_another_shape_or_type(name):
    values = noise((6, 7, 8)).astype(np.float32)
    codec = get(name)
    data = codec.encode(values, Tolerance(absolute=0.01))
    for shape, dtype in [((6, 8, 7), "f4"), ((6, 56), "f4"), ((6, 7, 9), "f4"), ((6, 7, 8), "f8"), ((6, 7), "f4")]:
        with pytest.raises(CodecFailed, match="their checksum differs"):
            codec.decode(data, shape, dtype)


@pytest.mark.parametrize("name", FIELD_CODECS)
def test_large_arrays_come_in_pieces(name, monkeypatch):
    values = (smooth((7, 6, 5)) + 0.1 * noise((7, 6, 5))).astype(np.float32)
    monkeypatch.setattr(registry.codec_class(name), "most_values", 35)
    codec = get(name)
    data = codec.encode(values, Tolerance(absolute=0.01))
    monkeypatch.undo()
    decoded = codec.decode(data, values.shape, values.dtype)   # what was written, not what is usual now, decides
    assert error(values, decoded) <= 0.01
    assert decoded.flags.writeable


@pytest.mark.parametrize("name", sorted(registry.status()))
def test_titles_are_short_sentences_for_a_menu(name):
    found = registry.codec_class(name)
    assert 5 < len(found.title) < 60
    assert not found.title.endswith(".")
    for limits in found.schema()["properties"].values():
        assert limits["title"]
        assert "default" in limits


@pytest.fixture
def hurried_threads():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.long_with("interpolation")
@pytest.mark.usefixtures("hurried_threads")
@pytest.mark.parametrize("name", FIELD_CODECS)
def test_threads_do_not_disturb_each_other(name):
    arrays = [np.random.default_rng(seed).normal(size=(12, 13, 14)).astype(np.float32) for seed in range(8)]

    def encoded_and_decoded(values):
        data = get(name).encode(values, Tolerance(absolute=1e-3))
        return data, get(name).decode(data, values.shape, values.dtype).tobytes()

    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(encoded_and_decoded, arrays * 4))
    assert together == [encoded_and_decoded(values) for values in arrays] * 4


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("name", ["sz3", "fpzip", "bitround", "prequantised", "interpolation", "staged"])
def test_any_small_array_comes_back_within_the_tolerance(name, data):
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    count = int(np.prod(shape))
    reals = st.floats(-(2.0**40), 2.0**40, width=32, allow_subnormal=False)
    values = np.array(data.draw(st.lists(reals, min_size=count, max_size=count)), dtype).reshape(shape)
    largest = max(float(np.abs(values).max()), 2.0**-30)
    size = largest * 2.0 ** data.draw(st.floats(-20 if dtype == "float32" else -40, 2))
    assert error(values, there_and_back(get(name), values, Tolerance(absolute=size))) <= size
