"""The promise about a chunk holds, whatever the codec does; and what had to be done for it is told."""

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combinations import in_pairs
from guarantees.some_codecs import (
    MISBEHAVING,
    CannotSayWhere,
    EncodesDifferentlyEachTime,
    ForgetsAPoint,
    LosesPoints,
    Misbehaving,
    RaisesInDecode,
    RaisesInEncode,
    RelativeRounding,
    ReturnsTooFew,
    Rounding,
    SaysTheWrongPlaces,
    Sorting,
    SpoilsOne,
    WritesToItsInput,
    WritesTooMuch,
)
from workbench.codecs import Codec, Tolerance, available, get
from workbench.codecs.pcodec import PCodec
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Guarded, Limit, decode_guarded, decoded_permutation, encode_guarded, enforce

DTYPES = [np.float32, np.float64]
GOOD = [Rounding, RelativeRounding, PCodec]


def assert_kept(original: np.ndarray, decoded: np.ndarray, limit: Limit, mask: np.ndarray | None = None) -> None:
    """The promise, without the library's own check: in float64 or longer on all values, in fractions on some."""
    exact = ~np.isfinite(original) | (False if mask is None else mask)
    if limit.value == 0:
        exact |= True
    word = f"u{original.itemsize}"
    np.testing.assert_array_equal(original.view(word)[exact], decoded.view(word)[exact])
    x, y = original[~exact], decoded[~exact]
    assert np.isfinite(y).all()
    apart = np.abs(x.astype(np.longdouble) - y.astype(np.longdouble))
    allowed = limit.value * np.abs(x.astype(np.longdouble)) if limit.relative else np.longdouble(limit.value)
    assert (apart <= allowed * (1 + np.longdouble(2) ** -60)).all()
    for a, b in list(zip(x.tolist(), y.tolist(), strict=True))[:: max(len(x) // 20, 1)]:
        assert abs(Fraction(a) - Fraction(b)) <= Fraction(limit.value) * (abs(Fraction(a)) if limit.relative else 1)


def checked(codec: Codec, values: np.ndarray, limit: Limit, mask: np.ndarray | None = None) -> Guarded:
    """A chunk encoded, decoded as a reader would, and held against the promise."""
    before = values.tobytes()
    guarded = encode_guarded(codec, values, limit, mask=mask)
    decoded = decode_guarded(codec, guarded.sections, values.shape, values.dtype)
    assert decoded.dtype == values.dtype
    assert decoded.shape == values.shape
    assert decoded.tobytes() == guarded.decoded.tobytes()
    assert guarded.figures.crc == zlib.crc32(decoded.tobytes())
    assert_kept(values, decoded, limit, mask)
    assert values.tobytes() == before
    assert guarded.figures.largest_error <= limit.value
    assert guarded.figures.values == values.size
    assert ("same" in guarded.sections) == (guarded.figures.stored_exactly is not None)
    return guarded


KINDS = ["smooth", "noise", "scales", "tiny", "denormal", "constant", "zeros", "spikes", "huge", "not finite", "any bits"]


def make(kind: str, random: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    count = math.prod(shape)
    largest, tiny = float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)
    if kind == "any bits":
        return np.frombuffer(random.bytes(count * np.dtype(dtype).itemsize), dtype).reshape(shape)
    values = {
        "smooth": lambda: np.sin(np.linspace(0, 9, count)),
        "noise": lambda: random.normal(size=count),
        "scales": lambda: 10.0 ** random.uniform(-30, 30, count) * random.choice([-1, 1], count),
        "tiny": lambda: random.normal(size=count) * 1e-30,
        "denormal": lambda: random.normal(size=count) * tiny / 8,
        "constant": lambda: np.full(count, random.normal()),
        "zeros": lambda: np.where(random.random(count) < 0.5, random.choice([0.0, -0.0], count), random.normal(size=count)),
        "spikes": lambda: np.where(random.random(count) < 0.02, 1e9, random.normal(size=count)),
        "huge": lambda: random.uniform(-1, 1, count) * largest,
        "not finite": lambda: np.where(
            random.random(count) < 0.3, random.choice([np.nan, np.inf, -np.inf], count), random.normal(size=count)
        ),
    }[kind]()
    return values.astype(dtype).reshape(shape)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, Limit, np.ndarray | None]:
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.sampled_from([(1,), (7,), (200,), (9, 13), (3, 4, 5), (2, 3, 4, 5)]))
    values = make(draw(st.sampled_from(KINDS)), random, shape, draw(st.sampled_from(DTYPES)))
    if draw(st.booleans()):
        limit = Limit("relative", draw(st.sampled_from([0.0, 1e-20, 1e-8, 1e-3, 0.1, 0.999])))
    else:
        limit = Limit("absolute", draw(st.sampled_from([0.0, 5e-324, 1e-40, 1e-30, 1e-9, 1e-3, 0.5, 1e6, 1e30, 1.7e308])))
    mask = random.random(shape) < 0.3 if draw(st.integers(0, 3)) == 0 else None
    return values, limit, mask


@contextmanager
def always_corrected(always: bool) -> Iterator[None]:
    """Never prefer all bits where they are smaller: take what the codec makes, with all the corrections it needs."""
    with pytest.MonkeyPatch.context() as patch:
        if always:
            patch.setattr(enforce, "_helps", lambda guarded, values: True)
        yield


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("codec", GOOD)
@given(case=cases())
def test_the_promise_holds_with_a_good_codec(codec, always, case):
    with always_corrected(always):
        checked(codec(), *case)


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("codec", MISBEHAVING)
@given(case=cases())
def test_the_promise_holds_with_a_bad_codec(codec, always, case):
    with always_corrected(always):
        checked(codec(), *case)


@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("count", [1000, pytest.param(2000, marks=pytest.mark.long)])
def test_thousands_of_cases_hold(count, always):
    random = np.random.default_rng(int(always))
    seen = Counter()
    codecs = [codec() for codec in (*GOOD, Rounding, Rounding, *MISBEHAVING)]
    for number in range(count):
        codec = codecs[number % len(codecs)]
        kind = KINDS[random.integers(len(KINDS))]
        values = make(kind, random, (int(random.integers(1, 60)),), DTYPES[random.integers(2)])
        relative = random.random() < 0.5
        eb = float(10.0 ** random.uniform(-18, -0.1)) if relative else float(10.0 ** random.uniform(-45, 38))
        mask = random.random(values.shape) < 0.2 if random.random() < 0.2 else None
        with always_corrected(always):
            guarded = checked(codec, values, Limit("relative" if relative else "absolute", eb), mask)
        seen["exact" if guarded.figures.stored_exactly else "corrected" if guarded.figures.corrected else "plain"] += 1
    assert sum(seen.values()) == count
    assert min(seen["exact"], seen["plain"], seen["corrected"] if always else 50) >= 50, seen


LIBRARIES = [name for name in available() if name not in {"lattice", "draco", "numcodecs"}]


@pytest.mark.parametrize(("name", "kind", "limit"), in_pairs(
    LIBRARIES, KINDS, [Limit("absolute", 1e-3), Limit("relative", 1e-3), Limit("absolute", 1e-12)],
), ids=str)
def test_the_promise_holds_with_the_codecs_there_are(name, kind, limit):
    codec = get(name)
    random = np.random.default_rng(len(kind))
    for dtype in DTYPES:
        if np.dtype(dtype).name in codec.dtypes and 3 in codec.dimensions:
            checked(codec, make(kind, random, (20, 19, 18), dtype), limit)


# What is told.

ABSOLUTE = Limit("absolute", 1e-3)


def smooth(dtype: type = np.float32) -> np.ndarray:
    return np.sin(np.linspace(0, 20, 10_000)).astype(dtype)


def test_an_honest_codec_is_left_alone():
    guarded = checked(Misbehaving(), smooth(), ABSOLUTE)
    assert guarded.sections == {"code": Misbehaving().encode(smooth(), Tolerance(absolute=1e-3))}
    assert guarded.figures.corrected == guarded.figures.invalid == 0
    assert guarded.figures.largest_error == 0
    assert guarded.permutation is None


def test_one_wrong_value_is_one_correction():
    guarded = encode_guarded(SpoilsOne(), smooth(), ABSOLUTE)
    assert guarded.figures.corrected == 1
    assert len(guarded.sections["fix_"]) < 100
    assert guarded.decoded.tobytes() == smooth().tobytes()


@pytest.mark.parametrize(
    ("codec", "reason"),
    [
        (RaisesInEncode, "misbehaving could not encode .* RuntimeError: a native library gave up"),
        (RaisesInDecode, "misbehaving could not decode: KeyError: 'lost'"),
        (ReturnsTooFew, r"misbehaving must decode to float32 of shape \(10000,\); got float32 of shape \(9999,\)"),
        (WritesToItsInput, "could not encode .* read-only"),
        (WritesTooMuch, "all bits take less room than misbehaving with 0 corrections"),
    ],
)
def test_why_a_codec_was_left_out_is_told(codec, reason):
    guarded = checked(codec(), smooth(), ABSOLUTE)
    assert set(guarded.sections) == {"same"}
    assert re.search(reason, guarded.figures.stored_exactly)


def test_bounds_below_the_last_bit_are_kept_exactly():
    values = smooth() + 100
    for limit in (Limit("absolute", 1e-9), Limit("relative", 1e-12)):
        assert checked(Rounding(), values, limit).decoded.tobytes() == values.tobytes()


def test_a_bound_of_zero_goes_past_the_codec():
    guarded = checked(RaisesInEncode(), smooth(), Limit("absolute", 0.0))
    assert guarded.figures.stored_exactly == "the bound is zero"
    lossless = checked(PCodec(), smooth(), Limit("relative", 0.0))
    assert set(lossless.sections) == {"code"}


def test_codecs_without_relative_errors_get_logarithms():
    values = (10.0 ** np.random.default_rng(0).uniform(-20, 20, 5000)).astype(np.float64)
    guarded = checked(Rounding(), values, Limit("relative", 1e-3))
    assert set(guarded.sections) == {"code", "logs"}
    assert guarded.figures.largest_error > 1e-4
    assert set(checked(RelativeRounding(), values, Limit("relative", 1e-3)).sections) == {"code"}


def test_zeros_cost_no_correction_under_a_relative_bound():
    values = np.where(np.arange(5000) % 7, smooth()[:5000], 0).astype(np.float32)
    values[3] = -0.0
    guarded = checked(Rounding(), values, Limit("relative", 1e-2))
    assert guarded.figures.corrected == 0
    zero = values == 0
    assert guarded.decoded[zero].tobytes() == values[zero].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_of_noise_take_few_bits_under_a_relative_bound(dtype):
    random = np.random.default_rng(4)
    values = np.where(random.random((80, 100)) < 0.1, random.normal(size=(80, 100)), 0.0).astype(dtype)
    values[3, 4:9] = np.nan, np.inf, -0.0, np.finfo(dtype).tiny / 8, -5.0
    guarded = encode_guarded(get("prequantised"), values, Limit("relative", 2.0**-11))
    decoded = decode_guarded(get("prequantised"), guarded.sections, values.shape, dtype)
    assert decoded.tobytes() == guarded.decoded.tobytes()
    assert (np.signbit(decoded) == np.signbit(values))[values == 0].all()
    assert guarded.nbytes < (0.1 * 14 + 0.5 + 0.5) * values.size / 8 + 500   # numbers, where there are zeros, and signs


def test_values_that_mean_nothing_do_not_disturb_the_codec():
    values = smooth()
    mask = np.zeros(values.shape, bool)
    mask[1000:4000] = True
    values[mask] = 1e35
    values[5000:5010] = np.nan
    guarded = checked(get("sz3"), values, ABSOLUTE, mask)
    assert guarded.figures.invalid == 3010
    assert guarded.figures.corrected == 0
    assert guarded.nbytes < 0.1 * values.nbytes
    assert guarded.nbytes < 1.2 * checked(get("sz3"), smooth(), ABSOLUTE).nbytes + 300


def test_codecs_that_take_nan_get_it():
    values = smooth()
    values[5] = np.nan
    guarded = checked(RelativeRounding(), values, Limit("relative", 1e-3))
    assert guarded.figures.invalid == 1
    assert set(guarded.sections) == {"code"}


def test_encoding_that_differs_each_time_decodes_to_the_same():
    first, second = (checked(EncodesDifferentlyEachTime(), smooth(), ABSOLUTE) for _ in range(2))
    assert first.sections != second.sections
    assert first.figures.crc == second.figures.crc


def test_a_decoder_that_returns_other_bits_is_found_by_its_checksum():
    guarded = encode_guarded(Misbehaving(), smooth(), ABSOLUTE)
    later = decode_guarded(SpoilsOne(), guarded.sections, smooth().shape, np.float32)
    assert zlib.crc32(later.tobytes()) != guarded.figures.crc


def test_what_a_codec_can_never_take_is_refused():
    with pytest.raises(WorkbenchError, match=r"rounding takes float32 or float64 of 1 or 2 .* dimensions; got int64 of 1"):
        encode_guarded(Rounding(), np.arange(5), ABSOLUTE)
    with pytest.raises(WorkbenchError, match=r"sorting takes .* of 2 dimensions; got float64 of 3"):
        encode_guarded(Sorting(), np.zeros((2, 2, 2)), ABSOLUTE)


def test_a_chunk_without_a_payload_is_refused():
    with pytest.raises(WorkbenchError, match="must have a section 'code' or 'same'; got \\['fix_'\\]"):
        decode_guarded(Rounding(), {"fix_": b""}, (3,), np.float32)


def test_a_correction_that_does_not_correct_is_never_returned(monkeypatch):
    monkeypatch.setattr(enforce, "apply_correction", lambda decoded, data: decoded)
    with pytest.raises(GuaranteeBroken, match="1 values break the bound even after correction"):
        encode_guarded(SpoilsOne(), smooth(), ABSOLUTE)


def test_a_lossless_codec_that_loses_bits_is_never_trusted(monkeypatch):
    monkeypatch.setattr(PCodec, "_decode", lambda self, data, shape, dtype: np.zeros(shape, dtype))
    with pytest.raises(GuaranteeBroken, match="does not decode to the same bits"):
        encode_guarded(Rounding(), smooth(), Limit("absolute", 0.0))


# Particles.

def points(count: int = 3000, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).random((count, 3)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("limit", [Limit("absolute", 1e-2), Limit("relative", 0.2)], ids=str)
def test_reordered_points_are_compared_with_those_they_stand_for(dtype, limit):
    positions = points(dtype=dtype) + dtype(1)
    guarded = encode_guarded(Sorting(), positions, limit)
    decoded = decode_guarded(Sorting(), guarded.sections, positions.shape, dtype)
    assert decoded.tobytes() == guarded.decoded.tobytes()
    assert_kept(positions[guarded.permutation], decoded, limit)
    assert (guarded.permutation == np.argsort(positions[:, 0], kind="stable")).all()
    again = decoded_permutation(Sorting(), guarded.sections, positions)
    assert (again == guarded.permutation).all()
    assert guarded.figures.stored_exactly is None


def test_an_exact_chunk_keeps_its_order():
    positions = points()
    guarded = encode_guarded(Sorting(), positions, Limit("absolute", 0.0))
    assert guarded.permutation is None
    assert decoded_permutation(Sorting(), guarded.sections, positions) is None
    assert guarded.decoded.tobytes() == positions.tobytes()


@pytest.mark.parametrize("codec", [LosesPoints, ForgetsAPoint, CannotSayWhere, SaysTheWrongPlaces])
def test_wrong_permutations_are_found(codec):
    positions = points()
    limit = Limit("absolute", 1e-2)
    guarded = encode_guarded(codec(), positions, limit)
    decoded = decode_guarded(codec(), guarded.sections, positions.shape, positions.dtype)
    assert_kept(positions if guarded.permutation is None else positions[guarded.permutation], decoded, limit)
    assert guarded.figures.stored_exactly


@pytest.mark.parametrize("codec", [Rounding, Sorting])
def test_positions_stay_in_their_box(codec):
    positions = points()
    positions[:50, 0] = np.nextafter(np.float32(1), np.float32(0))
    limit = Limit("absolute", 0.03)
    guarded = encode_guarded(codec(), positions, limit, period=(1.0, 1.0, 1.0))
    decoded = guarded.decoded.astype(float)
    assert (decoded >= 0).all()
    assert (decoded < 1).all()
    original = positions if guarded.permutation is None else positions[guarded.permutation]
    apart = np.abs(original.astype(float) - decoded)
    assert np.minimum(apart, 1 - apart).max() <= 0.03


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_lattice_keeps_its_promise(order, dtype):
    positions = points(20_000, dtype)
    limit = Limit("absolute", 1e-3)
    codec = get("lattice", order=order)
    guarded = encode_guarded(codec, positions, limit)
    decoded = decode_guarded(codec, guarded.sections, positions.shape, dtype)
    assert_kept(positions if guarded.permutation is None else positions[guarded.permutation], decoded, limit)
    assert guarded.figures.stored_exactly is None
    assert guarded.figures.corrected < 20
