"""`codec="auto"` for fields: the codec that makes the middle of the field smallest, as the certificate states."""

import sys

import numpy as np
import pytest

import workbench as wb
from workbench import codecs
from workbench.archive.choice import SAMPLED, middle


def smooth(shape, dtype=np.float32):
    values = wb.synthetic.gaussian_field(shape, seed=2).values
    for axis in range(len(shape)):
        values = np.cumsum(values, axis=axis)
    return values.astype(dtype)


def test_the_choice_is_the_smallest_and_is_stated():
    field = wb.Field(smooth((96, 96)))
    archive = wb.compress(field, wb.Relative(1e-3))
    sizes = {name: wb.compress(field, wb.Relative(1e-3), name).nbytes for name in codecs.automatic()}
    assert archive.nbytes <= min(sizes.values()) + 300   # for the sentence on the choice
    assert f"chosen by trial on 9,216 values in the middle: {archive.codec.id} " in archive.certificate.choice
    assert all(name in archive.certificate.choice for name in sizes)
    assert archive.certificate.choice in str(archive.certificate)
    assert archive.certificate.choice in archive.certificate._repr_html_()
    assert archive.verify(field).passed


def test_what_is_chosen_fits_the_values_and_needs_no_further_package():
    random = np.random.default_rng(0)
    counts = random.poisson(0.3, (100, 100)).astype(np.float32)
    steps = np.repeat(random.normal(size=(10, 10)), 10, axis=0).repeat(10, axis=1)
    for values, bound in ((counts, wb.Absolute(1e-3)), (steps, wb.Relative(1e-6)), (smooth((100, 100)), wb.Relative(1e-2))):
        archive = wb.compress(values, bound)
        rivals = [wb.compress(values, bound, name).nbytes for name in codecs.automatic()]
        assert archive.nbytes <= min(rivals) + 300   # for the sentence on the choice
    assert {codecs.get(name).module for name in codecs.automatic()} <= {None, "pcodec"}


def test_what_is_chosen_is_written_and_read_without_the_packages_of_other_codecs(monkeypatch):
    for name in ("numcodecs", "pysz", "zfpy", "DracoPy", "fpzip", "zarr", "hdf5plugin"):
        monkeypatch.setitem(sys.modules, name, None)
    values = np.tile(np.random.default_rng(0).integers(0, 4, 100), 300).astype(np.float32).reshape(300, 100)
    archive = wb.compress(values, wb.Absolute(0.01))
    assert archive.data.nbytes < 500   # the rows are alike
    assert abs(archive.decompress().values - values).max() <= 0.01


@pytest.mark.long
def test_a_middle_on_which_a_lattice_is_as_small_does_not_decide_for_the_rest():
    values = smooth((600, 600))
    step = 0.2 * np.ptp(values)
    values[170:430, 170:430] = np.round(values[170:430, 170:430] / step) * step
    archive = wb.compress(values, wb.Relative(1e-3))
    assert archive.codec.id == "interpolation"
    assert archive.data.nbytes < wb.compress(values, wb.Relative(1e-3), "prequantised").data.nbytes / 4


@pytest.mark.parametrize("asked", [{"codec": "fast"}, {"speed": "fast"}, {"codec": "fast", "speed": "fast"}], ids=str)
def test_fast_is_the_codec_of_blocks_for_floats_under_any_bound_and_a_lattice_for_integers(asked):
    field = smooth((80, 80)) + 100
    for bound in (wb.Absolute(0.1), wb.Relative(1e-3), wb.PointwiseRelative(1e-3), wb.PerSlice(wb.Relative(1e-3), axis=0)):
        archive = wb.compress(field, bound, **asked)
        assert archive.codec.id == "staged"
        assert archive.verify(field).passed
    assert wb.compress(field.astype(np.int32), wb.Absolute(3), **asked).codec.id == "prequantised"
    particles = wb.Particles(np.random.default_rng(0).random((500, 3)), velocities=np.ones((500, 3)))
    archive = wb.compress(particles, wb.Absolute(1e-3), velocities=wb.Absolute(1e-3), **asked)
    assert archive.codec.id == "lattice"
    both = wb.compress({"a": field, "b": field.astype(np.int16)}, wb.Absolute(0.1), **asked)
    assert [both[name].codec.id for name in ("a", "b")] == ["staged", "prequantised"]


def test_a_search_for_a_bound_takes_the_fast_codec():
    found = wb.find_bound(smooth((80, 80)), wb.Ratio(6), "fast")
    assert (found.codec.id, found.met) == ("staged", True)


def test_what_was_begun_for_size_is_not_continued_for_speed(tmp_path):
    from workbench.archive.fields import token_for
    from workbench.archive.request import Request
    from workbench.run.chunked_field import ChunkedField

    field = ChunkedField.of(wb.Field(smooth((8, 8))))
    tokens = {token_for(field, Request(wb.Absolute(0.1), codec)) for codec in ("auto", "fast", "staged")}
    assert len(tokens) == 3


def test_speed_is_for_a_free_codec():
    wrong = ({"speed": "slow"}, "small, fast; got 'slow'"), ({"speed": "fast", "codec": "zfp"}, "leave one out")
    for given, expected in wrong:
        with pytest.raises(wb.WorkbenchError, match=expected):
            wb.compress(smooth((80, 80)), wb.Absolute(0.1), **given)


def test_the_choice_is_kept_in_a_file(tmp_path):
    archive = wb.compress(smooth((80, 80)), wb.Absolute(0.1))
    assert wb.open(archive.save(tmp_path / "a.zip")).certificate.choice == archive.certificate.choice != ""


def test_nothing_is_tried_where_there_is_nothing_to_choose():
    field = smooth((80, 80))
    for archive in (
        wb.compress(field, wb.Absolute(0.1), "zfp" if "zfp" in codecs.available() else "prequantised"),
        wb.compress(field, wb.Absolute(0)),
        wb.compress(field.astype(np.int32), wb.Absolute(3), "fast"),
        wb.compress((100 * field).astype(np.int32), wb.Absolute(3)),
    ):
        assert archive.certificate.choice == ""
        assert "choice" not in archive.certificate.to_dict()


@pytest.mark.parametrize("bound", [wb.Absolute(0.1), wb.PointwiseRelative(0.01)], ids=repr)
def test_masked_and_missing_values_do_not_decide(bound):
    values = smooth((90, 90), np.float64) + 50
    mask = np.zeros(values.shape, bool)
    mask[20:60, 20:70] = True
    with_land = values.copy()
    with_land[mask], with_land[0, :5] = 1e20, np.nan
    archive = wb.compress(wb.Field(with_land, mask=mask), bound)
    assert archive.certificate.choice
    assert archive.verify(wb.Field(with_land, mask=mask)).passed
    assert archive.nbytes < 0.5 * values.nbytes


def test_a_codec_that_fails_is_not_chosen(monkeypatch):
    from workbench.codecs.interpolation import Interpolation

    def broken(self, values, tolerance):
        raise ValueError("no")

    monkeypatch.setattr(Interpolation, "_encode_piece", broken)
    archive = wb.compress(smooth((80, 80)), wb.Absolute(0.1))
    assert archive.codec.id != "interpolation"


@pytest.mark.parametrize("shape", [(10,), (10**6,), (30, 192, 288), (7, 5, 1000, 900), (1, 70000)])
def test_the_middle_has_all_axes_and_a_limited_number_of_values(shape):
    cut = middle(shape)
    sizes = [part.stop - part.start for part in cut]
    assert all(0 <= part.start < part.stop <= size for part, size in zip(cut, shape, strict=True))
    assert np.prod(sizes) <= SAMPLED
    assert np.prod(sizes) >= min(np.prod(shape), 0.85 * SAMPLED)


def test_a_chosen_codec_is_tuned_once_for_all_chunks():
    layers = np.random.default_rng(0).normal(size=(6, 1, 1)) * 100 + smooth((6, 64, 64))
    archive = wb.compress(layers, wb.Relative(1e-3), "interpolation", chunk_values=4096)
    assert archive.data.layout.chunk_count > 4
    assert archive.codec.frozen is not None
    assert archive.codec.block is not None
