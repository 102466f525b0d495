"""`chunks=`: the shape of the chunks of any array, and what is refused because no chunks could have it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import assert_equal, assert_kept, assert_same_bits, assert_within
from workbench.archive.chunking import chunk_shape
from workbench.errors import WorkbenchError

NAMED = {"dimensions": ["time", "lat", "lon"]}


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.data())
def test_a_field_has_the_chunks_that_are_asked_for(shape, data):
    sizes = st.one_of(st.none(), st.just(-1), st.integers(1, 14))
    chunks = data.draw(st.one_of(st.integers(1, 14), st.lists(sizes, min_size=len(shape), max_size=len(shape))))
    values = samples.field(tuple(shape))
    archive = wb.compress(values, wb.Absolute(0.1), "pcodec", chunks=chunks)
    each = [chunks] * len(shape) if isinstance(chunks, int) else chunks
    assert archive.data.layout.chunk_shape == tuple(
        size if along in (None, -1) else min(along, size) for along, size in zip(each, shape, strict=True)
    )
    assert_same_bits(archive.decompress().values, values)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 2000), st.data())
def test_free_axes_are_cut_until_chunks_are_as_small_as_is_usual(shape, most, data):
    fixed = data.draw(st.lists(st.one_of(st.none(), st.integers(1, 9)), min_size=len(shape), max_size=len(shape)))
    axes = tuple(None if along is None else min(along, size) for along, size in zip(fixed, shape, strict=True))
    cut = chunk_shape(tuple(shape), most, axes)
    free = [size for size, along in zip(cut, axes, strict=True) if along is None]
    assert all(along in (None, size) for size, along in zip(cut, axes, strict=True))
    assert np.prod(cut) <= most or all(size == 1 for size in free)
    assert all(1 <= size <= whole for size, whole in zip(cut, shape, strict=True))


@pytest.mark.few(4)
@pytest.mark.parametrize(("chunks", "shape"), [
    ({"time": 1}, (1, 20, 30)), ({"lon": 7, "lat": -1}, (10, 20, 7)), ((1, -1, 8), (1, 20, 8)), (np.int32(5), (5, 5, 5)),
    ([1, None, None], (1, 20, 30)), (-1, (10, 20, 30)), (99, (10, 20, 30)), ({"time": None}, (10, 20, 30)),
])
def test_chunks_by_name_by_axis_or_for_every_axis(chunks, shape):
    field = wb.Field(samples.field((10, 20, 30)), metadata=NAMED)
    archive = wb.compress(field, wb.Absolute(0.1), chunks=chunks)
    assert archive.data.layout.chunk_shape == shape
    assert_within(field.values, archive.decompress().values, wb.Absolute(0.1))
    assert archive.verify(field).passed


def test_the_usual_chunks_are_what_they_were():
    archive = wb.compress(samples.field((10, 20, 30)), wb.Absolute(0.1), chunk_values=500)
    assert archive.data.layout.chunk_shape == (5, 10, 8)
    assert chunk_shape((3000, 900, 7), 2**20) == (375, 225, 7)


@pytest.mark.parametrize(("chunks", "said"), [
    (0, "must not be 0"), ((1, 0, 3), "must not be 0"), ({"time": 0}, "must not be 0"),
    ((1, 2), "one size for each of 3 axes; got 2"), ((1, 2, 3, 4), "each of 3 axes; got 4"), ((), "each of 3 axes; got 0"),
    (-2, "must be a whole number"), (1.5, "must be a whole number"), (True, "must be a whole number"),
    ("time", "must be a whole number"), ({"time": "x"}, "must be a whole number"),
    ({"times": 1}, "got 'times': there are 'time', 'lat', 'lon'"), ({}, "must map names"), ({0: 1}, "must map names"),
])
def test_what_makes_no_sense_is_refused_in_a_sentence(chunks, said):
    field = wb.Field(samples.field((10, 20, 30)), metadata=NAMED)
    with pytest.raises(WorkbenchError, match=said):
        wb.compress(field, wb.Absolute(0.1), chunks=chunks)


def test_names_need_data_that_have_them():
    with pytest.raises(WorkbenchError, match="the data name none: give one size for each axis"):
        wb.compress(samples.field(), wb.Absolute(0.1), chunks={"time": 1})


@pytest.mark.parametrize("data", [samples.field(), samples.particles(20)], ids=["field", "particles"])
def test_chunks_and_chunk_values_are_not_given_together(data):
    with pytest.raises(WorkbenchError, match="leave one out"):
        wb.compress(data, wb.Absolute(0.1), chunks=1, chunk_values=10)


class Endless:
    """A field that nobody could hold, of which nothing is read."""

    def __init__(self, *shape):
        self.shape, self.dtype = shape, np.dtype("f4")

    def __getitem__(self, place):
        raise AssertionError("values were read")


@pytest.mark.parametrize(("shape", "chunks", "said"), [
    ((2**16, 2**16), -1, r"a chunk 2\^31"), ((2**20, 2**20), 1, "must have at most 268,435,456 chunks"),
])
def test_chunks_too_large_or_too_many_are_refused_before_anything_is_read(shape, chunks, said, tmp_path):
    with pytest.raises(WorkbenchError, match=said):
        wb.compress(Endless(*shape), wb.Absolute(0.1), chunks=chunks, out=tmp_path / "a.zarr")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize(("chunks", "rows"), [(7, 7), (-1, 500), (9999, 500), (500, 500)])
def test_particles_have_so_many_in_a_chunk(chunks, rows, order):
    particles = samples.particles(500)
    archive = wb.compress(particles, wb.Absolute(0.01), order=order, chunks=chunks)
    assert archive.data.layout.chunk_shape == (rows, 3)
    assert_kept(archive, particles, wb.Absolute(0.01))
    assert archive.verify(particles).passed


@pytest.mark.parametrize("order", ["keep", "free"])
def test_each_particle_may_be_a_chunk(order):
    particles = samples.particles(60)
    archive = wb.compress(particles, wb.Absolute(0.01), order=order, chunks=1)
    assert archive.data.layout.chunk_shape == (1, 3)
    assert_kept(archive, particles, wb.Absolute(0.01))


@pytest.mark.parametrize("chunks", [(5, 3), {"particle": 5}, [5]])
def test_particles_take_a_number(chunks):
    with pytest.raises(WorkbenchError, match="chunks of particles must be how many a chunk holds"):
        wb.compress(samples.particles(50), wb.Absolute(0.01), chunks=chunks)


@pytest.mark.parametrize(("values", "shape"), [
    (np.arange(40).reshape(10, 4).astype("M8[D]"), (3, 4)), (np.ones((10, 4), complex), (3, 4, 2)),
    (np.ones((10, 4), bool), (3, 4)), (np.ones((10, 4), "f2"), (3, 4)), (np.full((10, 4), "abcd"), (3, 4, 4)),
])
def test_variables_are_cut_along_their_own_axes(values, shape):
    variable = wb.Variable(values, metadata={"dimensions": ["time", "x"]})
    for chunks in ((3, -1), {"time": 3}):
        archive = wb.compress(variable, wb.Exact(), chunks=chunks)
        assert archive.data.layout.chunk_shape == shape
        assert_equal(archive.decompress(), variable)
        assert_same_bits(archive.read([(4, 8), None]).values, values[4:8])
        assert archive.verify(variable).passed


@pytest.mark.parametrize("values", [["a", "bb", None], np.ones((2, 2, 2, 2, 2), bool)])
def test_variables_that_are_stored_without_their_axes_refuse_chunks(values):
    with pytest.raises(WorkbenchError, match="stored without its axes: leave chunks out"):
        wb.compress(wb.Variable(values), wb.Exact(), chunks=1)


def test_safeguards_that_need_neighbours_need_one_chunk():
    pytest.importorskip("compression_safeguards")
    following = [{"axis": 0, "before": 0, "after": 1, "boundary": "valid"}]
    keep = wb.Safeguard("qoi_eb_stencil", qoi="X[1] - X[0]", type="abs", eb=0.01, neighbourhood=following)
    field = samples.field((12, 13), np.float64)
    with pytest.raises(WorkbenchError, match="needs the whole field in one chunk"):
        wb.compress(field, wb.Absolute(0.1), keep=keep, chunks=5)
    with pytest.raises(WorkbenchError, match="needs the whole field in one chunk"):
        wb.compress(field, wb.PerSlice(wb.Relative(0.1), 0), keep=keep)
    assert wb.compress(field, wb.Absolute(0.1), keep=keep, chunks=-1).data.layout.chunk_count == 1
