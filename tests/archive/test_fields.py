"""Archives of fields as wholes: any shape, any codec, with gaps, masks and promises beyond a bound."""

import importlib.util
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import CODECS, assert_equal, assert_same_bits, assert_within, parts, registered, reopened
from combinations import in_pairs
from guarantees.some_codecs import ALWAYS_RAISE, MISBEHAVING, Misbehaving, Rounding, Sorting
from workbench import backend
from workbench.codecs import CodecFailed
from workbench.codecs.codec import ParticleCodec
from workbench.codecs.registry import codec_class
from workbench.data.readers import open_file
from workbench.errors import WorkbenchError

FOR_FIELDS = [name for name in CODECS if not issubclass(codec_class(name), ParticleCodec)]
BOUNDS = [wb.Absolute(0.05), wb.Relative(1e-3), wb.PointwiseRelative(1e-2)]
SHAPES = [(301,), (1, 40), (23, 17), (9, 8, 11), (3, 5, 7, 4)]


def check(values, bound, codec="auto", mask=None, **how):
    """An archive of a field that keeps its promise, and verifies."""
    field = values if isinstance(values, wb.Field) else wb.Field(values, mask=mask)
    archive = wb.compress(field, bound, codec, **how)
    decoded = archive.decompress()
    assert_within(field.values, decoded.values, bound, mask=field.mask)
    assert (decoded.mask is None) == (field.mask is None)
    if field.mask is not None:
        assert_same_bits(field.mask, decoded.mask)
    assert archive.verify(field).passed
    return archive


def with_gaps(shape, dtype, seed=0):
    """A field with every kind of value that has no error, and zeros of both signs."""
    random = np.random.default_rng(seed)
    values = samples.field(shape, dtype, seed)
    flat, bits = values.reshape(-1), np.dtype(f"u{values.itemsize}")
    places = random.permutation(values.size)[: max(values.size // 8, 8)]
    payload = np.array([np.nan], dtype).view(bits) | bits.type(0xBEEF)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).tiny / 8], dtype)
    flat[places] = np.resize(np.concatenate([special, payload.view(dtype)]), len(places))
    return values


@pytest.mark.parametrize(("codec", "shape", "dtype"), in_pairs(FOR_FIELDS, SHAPES, [np.float32, np.float64]))
def test_every_codec_keeps_the_bound_on_every_shape(codec, shape, dtype):
    for bound in BOUNDS:
        whole = check(samples.field(shape, dtype), bound, codec)
        assert whole.data.layout.chunk_count == 1
        cut = check(samples.field(shape, dtype), bound, codec, chunk_values=200)
        assert cut.data.layout.chunk_count > 1 or shape == (1, 40)


@pytest.mark.parametrize(("codec", "dtype"), in_pairs(FOR_FIELDS, [np.float32, np.float64]))
def test_gaps_and_masked_fill_values_come_back_bit_for_bit(codec, dtype):
    values = with_gaps((21, 34), dtype)
    mask = np.zeros(values.shape, bool)
    mask[5:12, 3:30] = True
    values[mask] = 1e35
    values[6, 7] = np.nan
    for bound in BOUNDS:
        archive = check(values, bound, codec, mask, chunk_values=200)
        assert archive.certificate["values"].figures["invalid"] == int((~np.isfinite(values) | mask).sum())
        check(with_gaps((21, 34), dtype, 1), bound, codec)


@pytest.mark.parametrize("codec", FOR_FIELDS)
def test_fields_without_any_value_come_back_bit_for_bit(codec):
    for bound in BOUNDS:
        for values in (np.full((6, 7), np.nan, np.float32), np.full((6, 7), -np.inf)):
            check(values, bound, codec)
        check(samples.field((6, 7)), bound, codec, np.ones((6, 7), bool))
        check(samples.field((6, 7)), bound, codec, np.zeros((6, 7), bool))


@pytest.mark.parametrize(("codec", "value"), in_pairs(FOR_FIELDS, [0.0, -0.0, 273.15, 5e-324, -1e308]))
def test_constant_fields_and_single_values_keep_the_bound(codec, value):
    for bound in BOUNDS:
        check(np.full((9, 11), value), bound, codec)
        check(np.array([value]), bound, codec)
        check(np.array([[[[value]]]]), bound, codec)


@pytest.mark.parametrize("codec", FOR_FIELDS)
@pytest.mark.parametrize("eb", [0.0, 5e-324, 1e-30])
def test_a_bound_below_the_last_digit_brings_back_every_bit(codec, eb):
    values = with_gaps((15, 16), np.float32)
    for bound in (wb.Absolute(eb), wb.PointwiseRelative(eb)):
        decoded = check(values, bound, codec).decompress().values
        if eb == 0:
            assert_same_bits(values, decoded)
        np.testing.assert_array_equal(values, decoded)


def test_a_relative_bound_is_of_the_valid_values_only():
    values = samples.field((20, 20))
    mask = np.zeros(values.shape, bool)
    mask[3, 3:9] = True
    values[mask], values[7, 7], values[8, 8] = 1e35, np.inf, np.nan
    valid = np.isfinite(values) & ~mask
    expected = 1e-3 * (float(values[valid].max()) - float(values[valid].min()))
    archive = check(values, wb.Relative(1e-3), "sz3", mask, chunk_values=100)
    assert archive.certificate["values"].limit.value == expected


@st.composite
def any_field(draw: st.DrawFn):
    """Fields of any bits at all, with or without a mask, and some way to compress them."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    kind = draw(st.sampled_from(["bits", "smooth", "gaps", "few"]))
    if kind == "bits":
        size = np.dtype(dtype).itemsize
        values = np.frombuffer(random.bytes(size * int(np.prod(shape))), dtype).reshape(shape)
    elif kind == "few":
        values = random.choice(np.array([0, -0.0, 1, 1e-38, 3e38, np.nan], dtype), shape)
    else:
        values = samples.field(shape, dtype) if kind == "smooth" or np.prod(shape) < 8 else with_gaps(shape, dtype)
    mask = draw(st.sampled_from([None, random.random(shape) < 0.3]))
    eb = 10.0 ** draw(st.integers(-12, -1))
    bound = draw(st.sampled_from([wb.Absolute, wb.Relative, wb.PointwiseRelative]))(eb)
    return wb.Field(values, mask=mask), bound, draw(st.sampled_from(FOR_FIELDS)), draw(st.sampled_from([None, 1, 7, 100]))


@given(any_field())
def test_a_field_of_any_bits_keeps_any_bound(case):
    field, bound, codec, chunk_values = case
    check(field, bound, codec, chunk_values=chunk_values)


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
def test_what_is_opened_again_is_what_was_saved(tmp_path, suffix):
    mask = np.random.default_rng(0).random((20, 30)) < 0.2
    field = wb.Field(samples.field(), (0.5, 2), "temperature", mask, {"units": "K", "levels": np.arange(3), "raw": b"x"})
    archive = check(field, wb.Absolute(0.1), chunk_values=100)
    again = reopened(archive, tmp_path / f"some{suffix}")
    decoded = again.decompress()
    assert_equal(decoded, archive.decompress())
    assert (decoded.spacing, decoded.name) == ((0.5, 2.0), "temperature")
    assert decoded.metadata == {"units": "K", "levels": [0, 1, 2], "raw": "x"}
    assert parts(again) == parts(archive)
    assert again.verify(field).passed
    assert again.original_nbytes == 4 * int(field.valid.sum())
    assert again.bits_per_value == 8 * again.nbytes / int(field.valid.sum())
    assert repr(again).startswith("Archive(field of 20 x 30, float32, ")


@pytest.mark.parametrize("units", ["K", b"K", np.float64("nan"), {"a": 1j}])
def test_units_of_any_kind_are_written_down(units):
    archive = check(wb.Field(samples.field(), metadata={"units": units}), wb.Absolute(0.1))
    assert "units" in archive.data.layout.attributes


def test_only_fields_have_no_permutation():
    archive = wb.compress(samples.field(), wb.Absolute(0.1))
    with pytest.raises(WorkbenchError, match="only particles have a permutation"):
        archive.permutation()
    with pytest.raises(WorkbenchError, match="use bits_per_value"):
        archive.bits_per_particle  # noqa: B018 - asking is what is refused


@pytest.mark.few(4)
@pytest.mark.parametrize("codec", FOR_FIELDS)
def test_the_same_field_makes_the_same_archive_whatever_the_threads(codec):
    values, made = with_gaps((40, 30), np.float32), []
    for threads in (1, 2):
        with backend.using_threads(threads):
            archive = wb.compress(values, wb.Relative(1e-3), codec, chunk_values=100)
            made.append((parts(archive), archive.decompress().values.tobytes()))
    assert made[0] == made[1]


@pytest.mark.parametrize("bad", [bad for bad in MISBEHAVING if bad not in ALWAYS_RAISE], ids=Misbehaving.name.__func__)
def test_whatever_a_codec_does_the_bound_holds(bad):
    with registered(bad):
        for bound in BOUNDS:
            check(with_gaps((12, 13), np.float32), bound, bad(), chunk_values=50)


@pytest.mark.parametrize("bad", ALWAYS_RAISE, ids=Misbehaving.name.__func__)
def test_a_codec_that_raises_for_any_values_is_an_error(bad):
    with registered(bad), pytest.raises(CodecFailed, match=r"misbehaving could not (en|de)code.*all 4 chunks of val"):
        wb.compress(samples.field((12, 13)), wb.Absolute(0.1), bad(), chunk_values=50)


def test_wrong_options_of_a_codec_are_an_error_and_no_lossless_archive():
    pytest.importorskip("numcodecs")
    wrong = wb.codecs.get("numcodecs", options={"a": 1})
    for data in (samples.field(), samples.particles(100)):
        with pytest.raises(CodecFailed, match=r"numcodecs could not encode .*TypeError.*'a'.*: check its options"):
            wb.compress(data, wb.Absolute(0.1), wrong)


@dataclass(frozen=True)
class RaisesForLarge(Rounding):
    """Cannot take every value."""

    id: ClassVar[str] = "raises-for-large"

    def _encode(self, values, tolerance):
        if values.max() > 1e8:
            raise OverflowError("too large")
        return super()._encode(values, tolerance)


def test_a_codec_that_raises_for_some_chunks_is_left_out_there():
    values = samples.field((12, 13))
    values[0, 0] = 1e9
    with registered(RaisesForLarge):
        archive = wb.compress(values, wb.Absolute(0.1), RaisesForLarge(), chunk_values=50)
        assert sum(archive.certificate["values"].figures["chunks_stored_exactly"].values()) == 1
        assert archive.verify(wb.Field(values)).passed
        only = wb.compress(values[:2, :2], wb.Absolute(0.1), RaisesForLarge())
        assert sum(only.certificate["values"].figures["chunks_stored_exactly"].values()) == 1


# Promises beyond a bound.

safeguards = pytest.mark.skipif(
    importlib.util.find_spec("compression_safeguards") is None, reason="compression-safeguards is not installed"
)


@safeguards
@pytest.mark.parametrize("codec", ["sz3", "zfp", "prequantised", "staged"])
def test_signs_are_kept(codec):
    values = samples.field((20, 20)) / 100
    values[3, 4:9] = 0
    archive = check(values, wb.Absolute(0.5), codec, keep=[wb.Safeguard("sign")], chunk_values=100)
    np.testing.assert_array_equal(np.sign(values), np.sign(archive.decompress().values))
    plain = check(values, wb.Absolute(0.5), codec).decompress().values
    assert (np.sign(values) != np.sign(plain)).any()   # so that there was something to keep
    assert archive.certificate["values"].keep == ({"kind": "sign"},)
    assert "kept: sign" in str(archive.certificate)


@safeguards
def test_a_safeguard_that_looks_at_neighbours_sees_the_whole_field():
    values = samples.field((24, 24), np.float64)
    following = [{"axis": 0, "before": 0, "after": 1, "boundary": "valid"}]
    slope = wb.Safeguard("qoi_eb_stencil", qoi="X[1] - X[0]", type="abs", eb=0.01, neighbourhood=following)
    archive = check(values, wb.Absolute(0.5), "sz3", keep=[slope], chunk_values=50)
    assert archive.data.layout.chunk_count == 1
    assert abs(np.diff(archive.decompress().values, axis=0) - np.diff(values, axis=0)).max() <= 0.01
    plain = check(values, wb.Absolute(0.5), "sz3", chunk_values=50).decompress().values
    assert abs(np.diff(plain, axis=0) - np.diff(values, axis=0)).max() > 0.1


@pytest.mark.parametrize(
    ("data", "how", "said"),
    [
        (samples.field(), {"keep": ["sign"]}, r"keep of a field takes wb.Safeguard\(...\); got 'sign'"),
        (samples.field(), {"codec": "lattice"}, "lattice is for particles"),
        (samples.field(), {"order": "free"}, "for particles; got a field"),
        (samples.field(), {"store_permutation": True}, "for particles; got a field"),
        (samples.field(), {"velocities": wb.Absolute(1)}, "for particles; got a field"),
        (samples.field((2, 2, 2, 2)).reshape(1, 2, 2, 2, 2), {}, "1 to 4 dimensions"),
        (np.zeros(3, np.float16), {}, "float32, float64 or integers"),
        ("abc", {}, "there is no file or folder abc"),
    ],
)
def test_what_cannot_be_is_refused(data, how, said):
    with pytest.raises(WorkbenchError, match=said):
        wb.compress(data, wb.Absolute(0.1), **how)


def test_a_codec_for_points_is_refused_even_when_it_is_registered():
    with registered(Sorting), pytest.raises(WorkbenchError, match="sorting is for particles"):
        wb.compress(samples.field(), wb.Absolute(0.1), Sorting())


def test_real_fields_keep_the_bound(shared_data):
    turbulence = np.fromfile(shared_data / "sperr_fields" / "vorticity.128_128_41", "<f4").reshape(41, 128, 128)
    for codec in FOR_FIELDS:
        check(turbulence[:12, :48, :50], wb.Relative(1e-3), codec, chunk_values=10_000)


def test_a_real_temperature_is_opened_compressed_and_verified(shared_data, tmp_path):
    pytest.importorskip("netCDF4")
    temperature = open_file(shared_data / "cesm" / "cam-fv.T.3months.nc", name="T")
    part = wb.Field(temperature.values[0, :4], name=temperature.name, metadata=temperature.metadata)
    archive = check(part, wb.Absolute(0.05), "sz3")
    assert_within(part.values, reopened(archive, tmp_path / "some.zip").decompress().values, wb.Absolute(0.05))
    assert archive.ratio > 5


@pytest.mark.parametrize("depth", [80, 5000])
def test_metadata_that_no_archive_can_hold_is_refused_before_any_work(depth):
    nested = {}
    for _ in range(depth):
        nested = {"deeper": nested}
    large = {"text": ["x" * 10**6] * 17}
    for metadata, said in ((nested, "nested at most 64 deep"), (large, "metadata must fit into 8,388,608 bytes")):
        with pytest.raises(WorkbenchError, match=said):
            wb.compress(wb.Field([1.0], metadata=metadata), wb.Absolute(1), progress=lambda *_: pytest.fail("too late"))


@pytest.mark.parametrize("values", [np.full(9, np.nan), np.ma.masked_all(9, np.float32)])
def test_an_archive_without_a_valid_value_can_be_shown(values):
    archive = wb.compress(values, wb.Absolute(0.1))
    assert "no valid value" in repr(archive)
    assert "no valid value" in archive._repr_html_()


@pytest.mark.parametrize("codec", ["auto", "interpolation", "prequantised", "staged", "sz3", "pcodec"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_up_to_the_largest_float_are_compressed_without_a_warning(codec, dtype):
    if codec not in ("auto", *wb.codecs.available()):
        pytest.skip(f"{codec} is not installed")
    values = np.sin(np.arange(5000.0)).astype(dtype) * np.finfo(dtype).max
    values[::7] = np.finfo(dtype).min
    values[3::7] = np.finfo(dtype).max
    archive = wb.compress(values, wb.Absolute(float(np.finfo(dtype).max) / 1000), codec)
    assert_within(values, archive.decompress().values, wb.Absolute(float(np.finfo(dtype).max) / 1000))
