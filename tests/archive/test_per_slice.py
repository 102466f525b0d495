"""Bounds of slices: each slice keeps its own limit, whatever the field, its axes, its codec and its gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import assert_equal, assert_same_bits, reopened
from archive.slices import assert_slices, check, hard_fields, layers
from combinations import in_pairs
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit

BOUNDS = [wb.Relative(1e-3), wb.Absolute(0.5), wb.PointwiseRelative(0.01), wb.Relative(0), wb.Exact()]
PLACES = [((40,), 0), ((7, 60), 1), ((6, 20, 31), 0), ((9, 20, 8), 1), ((3, 5, 7, 4), -2)]


@pytest.mark.parametrize(("bound", "place"), in_pairs(BOUNDS, PLACES))
def test_every_slice_keeps_its_limit_whatever_the_axis(bound, place):
    shape, axis = place
    check(wb.Field(layers(shape, axis)), bound, axis)


@pytest.mark.parametrize("codec", ["sz3", "zfp", "sperr", "prequantised", "pcodec", "interpolation", "staged", "bitround"])
def test_every_codec_keeps_the_limits(codec):
    if codec not in samples.CODECS:
        pytest.skip(f"{codec} is not installed")
    check(wb.Field(layers()), wb.Relative(1e-2), 0, codec)


@given(hard_fields(), st.data())
def test_any_field_keeps_the_limits_of_its_slices(given_field, data):
    field, axis = given_field
    kinds = [wb.Relative, wb.Absolute, *([wb.PointwiseRelative] if field.values.dtype.kind == "f" else [])]
    bounds = st.builds(lambda kind, eb: kind(eb), st.sampled_from(kinds), st.sampled_from([0.0, 1e-3, 0.25]))
    count = field.values.shape[axis]
    chosen = data.draw(st.one_of(bounds, st.lists(bounds, min_size=count, max_size=count)))
    archive = wb.compress(field, wb.PerSlice(chosen, axis))
    each = chosen if isinstance(chosen, list) else [chosen] * count
    assert_slices(field, archive, each, axis)
    assert archive.verify(field).passed


def test_integers_and_constant_slices():
    values = np.stack([np.arange(40) * 10**k for k in range(6)] + [np.full(40, 7)]).astype("i8")
    archive = check(wb.Field(values), wb.Relative(0.01), 0)
    assert archive.certificate["values"].limit.values[-1] == 0
    with pytest.raises(WorkbenchError, match="bound of integers must be"):
        wb.compress(values, wb.PerSlice(wb.PointwiseRelative(0.1), 0))


def test_slices_without_values_do_not_disturb_the_others():
    values = layers((5, 8, 9), dtype="f8")
    values[1], values[3, 2:5] = np.nan, -np.inf
    mask = np.zeros(values.shape, bool)
    mask[4], mask[0, :3] = True, True
    values[0, 0, 0] = 1e300   # masked: no part of the range
    archive = check(wb.Field(values, mask=mask), wb.Relative(1e-3), 0)
    assert [limit == 0 for limit in archive.certificate["values"].limit.values] == [False, True, False, False, True]


def test_chunks_are_as_thin_as_limits_need():
    values = layers((12, 10, 11))
    assert wb.compress(values, wb.PerSlice(wb.Relative(0.1), 0)).data.layout.chunk_shape == (1, 10, 11)
    grouped = [wb.Absolute(1)] * 4 + [wb.Absolute(2)] * 6 + [wb.Absolute(3)] * 2
    assert check(wb.Field(values), grouped, 0).data.layout.chunk_shape == (2, 10, 11)
    assert check(wb.Field(values), grouped, 0, chunk_values=60).data.layout.chunk_shape == (2, 5, 6)
    halves = [wb.Absolute(1)] * 8 + [wb.Absolute(2)] * 4
    assert check(wb.Field(values), halves, 0, chunks=(None, -1, -1)).data.layout.chunk_shape == (8, 10, 11)
    assert check(wb.Field(values), halves, 0, chunks=(2, 4, -1)).data.layout.chunk_shape == (2, 4, 11)
    assert check(wb.Field(values), wb.Absolute(1), 0).data.layout.chunk_shape == (12, 10, 11)
    assert check(wb.Field(values), [wb.Absolute(1)] * 12, 0, chunks=5).data.layout.chunk_shape == (5, 5, 5)
    with pytest.raises(WorkbenchError, match=r"must not hold slices whose limits differ: along axis 0, .* 8 slices"):
        wb.compress(values, wb.PerSlice(halves, 0), chunks=(3, -1, -1))


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=24), st.integers(1, 30))
def test_no_chunk_crosses_limits(ebs, most):
    archive = wb.compress(np.arange(3.0 * len(ebs)).reshape(-1, 3), wb.PerSlice([wb.Absolute(eb) for eb in ebs], 0),
                          "pcodec", chunk_values=most)
    thick = archive.data.layout.chunk_shape[0]
    assert all(len(set(ebs[start : start + thick])) == 1 for start in range(0, len(ebs), thick))


def test_an_axis_may_have_a_name_and_bounds_a_unit():
    field = wb.Field(layers((3, 8, 9)), metadata={"dimensions": ["level", "lat", "lon"], "units": "m"})
    named = wb.compress(field, wb.PerSlice(wb.Absolute("10 cm"), "level"))
    assert named.certificate["values"].limit == Limit("absolute", 0.1)
    other = wb.compress(field, wb.PerSlice(wb.Relative(0.1), "lon")).certificate["values"]
    assert other.describe() == "values: every value within 0.1 of the range of the values, slice by slice along axis 2"
    for axis, said in ((3, "one of the 3 axes"), (-4, "one of the 3 axes"), ("levels", "there are 'level', 'lat', 'lon'")):
        with pytest.raises(WorkbenchError, match=said):
            wb.compress(field, wb.PerSlice(wb.Absolute(0.1), axis))
    with pytest.raises(WorkbenchError, match="name none: give its number"):
        wb.compress(field.values, wb.PerSlice(wb.Absolute(0.1), "level"))


def test_what_takes_one_bound_only_refuses_it():
    bound, field, particles = wb.PerSlice(wb.Relative(0.1), 0), wb.Field(layers()), samples.particles(50)
    for call in (
        lambda: wb.compress(particles, bound), lambda: wb.compress(particles, wb.Absolute(0.1), velocities=bound),
        lambda: wb.sweep(field, "sz3", [bound]), lambda: wb.predict(field, "sz3", [bound]),
        lambda: bound.limit(field.values),
        lambda: wb.compress(wb.Variable(np.ones((3, 4), complex)), bound),
        lambda: wb.find_bound(particles, wb.Ratio(4), velocities=bound),
        lambda: wb.compress({"p": particles}, bound),
    ):
        with pytest.raises(WorkbenchError, match=r"PerSlice"):
            call()
    with pytest.raises(WorkbenchError, match="one bound for each of 6 slices; got 2"):
        wb.compress(field, wb.PerSlice([wb.Absolute(1)] * 2, 0))


def test_regions_previews_and_copies_of_such_archives(tmp_path):
    field = wb.Field(layers((6, 16, 20)), spacing=(1, 2, 2), name="T")
    archive = reopened(wb.compress(field, wb.PerSlice(wb.Relative(1e-3), 0)), tmp_path / "a.zarr")
    whole = archive.decompress()
    assert_same_bits(archive.read([(2, 5), (3, 9), None]).values, whole.values[2:5, 3:9])
    assert_same_bits(archive.preview(1).values, whole.values[::2, ::2, ::2])
    assert_equal(archive.salvage()[0], whole)
    again = wb.compress(archive, wb.PerSlice(wb.Relative(1e-3), 0), out=tmp_path / "b.zarr")
    assert again.verify(archive).passed


def test_safeguards_may_be_kept_within_limits_of_slices():
    pytest.importorskip("compression_safeguards")
    field = wb.Field(layers(dtype="f8"))
    archive = check(field, wb.Relative(0.1), 0, keep=wb.Safeguard("sign", offset=0))
    assert (np.sign(archive.decompress().values) == np.sign(field.values)).all()
