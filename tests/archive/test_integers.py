"""Integer fields: kept as integers, bounded exactly up to the ends of their type, never rounded through a float."""

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import workbench as wb
from workbench.codecs import Tolerance
from workbench.codecs.pieces import join

DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
ALL = st.sampled_from(DTYPES)


def ends(dtype):
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


@st.composite
def fields(draw):
    """A small grid of any integer type, with values from anywhere in it and many near its ends."""
    dtype = np.dtype(draw(ALL))
    low, high = ends(dtype)
    near = st.one_of(st.integers(low, low + 5), st.integers(high - 5, high), st.integers(low, high), st.integers(0, 9))
    shape = draw(st.sampled_from([(7,), (3, 4), (2, 3, 4)]))
    values = draw(arrays(dtype, shape, elements=near))
    return values, draw(st.one_of(st.none(), arrays(bool, shape)))


def within(original, decoded, mask, allowed):
    """Whether every valid value moved by at most so much and every masked one is the same, in Python's own integers."""
    shown = np.zeros(original.shape, bool) if mask is None else mask
    triples = zip(original.ravel().tolist(), decoded.ravel().tolist(), shown.ravel().tolist(), strict=True)
    return all(a == b if hidden else abs(a - b) <= allowed for a, b, hidden in triples)


def asked():
    wide = st.one_of(st.integers(0, 300), st.floats(0, 2.0**66, allow_subnormal=False), st.just(0.0))
    return st.one_of(wide.map(wb.Absolute), st.floats(0, 3, allow_subnormal=False).map(wb.Relative))


def exact_limit(bound, values, mask):
    if isinstance(bound, wb.Absolute):
        return Fraction(bound.eb)
    shown = values if mask is None else values[~mask]
    spread = int(shown.max()) - int(shown.min()) if shown.size else 0
    return Fraction(bound.eb) * spread


@settings(max_examples=80)
@given(fields(), asked(), st.sampled_from(["auto", "pcodec"]), st.sampled_from([None, 5]))
def test_the_bound_holds_exactly_for_every_value(given_field, bound, codec, chunk_values):
    values, mask = given_field
    archive = wb.compress(wb.Field(values, mask=mask), bound, codec, chunk_values=chunk_values)
    decoded = archive.decompress()
    assert decoded.values.dtype == values.dtype
    assert within(values, decoded.values, mask, exact_limit(bound, values, mask))
    assert archive.verify(wb.Field(values, mask=mask)).passed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eb", [0, 0.99, 3])
def test_noise_over_the_whole_type(dtype, eb):
    low, high = ends(dtype)
    values = np.random.default_rng(0).integers(low, high, (40, 50), dtype, endpoint=True)
    decoded = wb.compress(values, wb.Absolute(eb)).decompress().values
    assert within(values, decoded, None, math.floor(eb))


def test_integers_beyond_2_to_53_are_not_rounded():
    values = np.array([2**53 + 1, 2**53 + 3, -(2**63), 2**63 - 1])
    np.testing.assert_array_equal(wb.compress(values, wb.Absolute(0)).decompress().values, values)
    np.testing.assert_array_equal(wb.Field(values).values, values)


def test_verify_notices_a_change_of_one_at_2_to_60():
    values = 2**60 + np.arange(1000)
    archive = wb.compress(values, wb.Absolute(0))
    changed = values.copy()
    changed[7] += 1
    with pytest.raises(wb.GuaranteeBroken, match="1 of 1,000 values of values break the promise"):
        archive.verify(changed)
    with pytest.raises(wb.WorkbenchError, match="the original values must be int64"):
        archive.verify(values.astype(np.float64))


def test_regions_plain_zarr_and_saved_archives_give_the_same_integers(tmp_path):
    x, y = np.meshgrid(np.arange(90), np.arange(70))
    values = (2000 * np.sin(x / 9) * np.cos(y / 7)).astype(np.int16)
    archive = wb.compress(wb.Field(values), wb.Absolute(4), chunk_values=900)
    whole = archive.decompress().values
    assert within(values, whole, None, 4)
    np.testing.assert_array_equal(archive.read([(10, 41), (3, 77)]).values, whole[10:41, 3:77])
    opened = wb.open(archive.save(tmp_path / "image.zarr"))
    np.testing.assert_array_equal(opened.decompress().values, whole)
    np.testing.assert_array_equal(zarr.open(tmp_path / "image.zarr")["values"][...], whole)
    assert opened.certificate["values"].describe() == "values: every value within 4 of the original"


def test_a_smooth_image_becomes_small_and_smaller_with_a_bound():
    x, y = np.meshgrid(np.arange(300), np.arange(200))
    image = (120 + 60 * np.sin(x / 40) + 50 * np.cos(y / 30)).astype(np.uint8)
    exact, bounded = (wb.compress(image, wb.Absolute(eb)) for eb in (0, 2))
    assert bounded.nbytes < exact.nbytes < image.nbytes / 2


def test_compare_takes_exact_differences():
    values = 2**60 + np.arange(500)
    moved = values.copy()
    moved[3] += 1
    report = wb.compare(values, moved, bound=0)
    assert (report["max_error"], report["differing"], report["exceeding"]) == (1.0, 1, 1)
    widest = wb.compare(np.array([-(2**63), 0]), np.array([2**63 - 1, 0]), bound=2.0**64)
    assert (widest["max_error"], widest["exceeding"]) == (2.0**64, 0)


def test_an_error_that_rounds_to_the_bound_still_exceeds_it():
    report = wb.compare(np.array([0, 0]), np.array([2**53 + 1, 0]), bound=2.0**53)
    assert report["exceeding"] == 1


def test_a_sweep_of_integers():
    values = np.random.default_rng(1).poisson(30, (60, 60)).astype(np.uint16)
    rows = wb.sweep(values, ["prequantised", "pcodec", "sz3"], [wb.Absolute(2)], workers=1, cache=False).rows
    assert [row["max_error"] for row in rows[:2]] == [2, 0]
    assert "does not take integers" in rows[2].error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codec": "sz3"}, r"sz3 does not take integers; got Field.*: use codec='auto'"),
        ({"bound": wb.PointwiseRelative(0.1)}, r"must be wb.Absolute or wb.Relative; got Point.*astype"),
        ({"keep": [wb.Safeguard("sign")]}, "keep must be empty for integers"),
    ],
)
def test_what_is_for_floats_is_refused_with_a_way_out(options, message):
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.compress(np.arange(16, dtype=np.int32).reshape(4, 4), **{"bound": wb.Absolute(1), **options})


def test_a_pointwise_bound_of_zero_means_the_same_bits():
    values = np.array([-(2**63), 2**63 - 1, 5])
    np.testing.assert_array_equal(wb.compress(values, wb.PointwiseRelative(0)).decompress().values, values)


def test_limits_ask_for_floats():
    counts = np.random.default_rng(0).poisson(9, (64, 64))
    for ask in (wb.rate_distortion, wb.lab.limits):
        with pytest.raises(wb.WorkbenchError, match=r"got Field\(64 x 64, int64\): convert with .*astype\('float32'\)"):
            ask(wb.Field(counts))


def test_damaged_chunks_are_salvaged_as_masked_zeros():
    values = np.arange(100, 200, dtype=np.int16)
    archive = wb.compress(values, wb.Absolute(1), chunk_values=50)
    entries = {key: archive.store.read(key) for key in archive.store.keys()}  # noqa: SIM118
    entries["values/c/1"] = entries["values/c/1"][:-3] + b"???"
    damaged = wb.Archive(type(archive.store)(entries))
    field, damage = damaged.salvage()
    assert len(damage) == 1
    assert field.mask.tolist() == [False] * 50 + [True] * 50
    assert np.abs(field.values[:50].astype(int) - values[:50]).max() <= 1


def test_any_piece_of_a_forged_lattice_is_refused_or_decoded_to_integers():
    """The header of the lattice is data from a file: no number in it may do more than give other integers."""
    codec = wb.codecs.get("prequantised")
    values = np.arange(60, dtype=np.int32).reshape(6, 10)
    body = codec._encode_piece(values, Tolerance(absolute=1.0))
    for place in range(26):
        for byte in (0, 1, 127, 255):
            forged = body[:place] + bytes([byte]) + body[place + 1 :]
            data = join("prequantised", [forged], values.shape, values.dtype, codec.most_values)
            with suppress(wb.codecs.CodecFailed):
                assert codec.decode(data, values.shape, values.dtype).dtype == np.int32
