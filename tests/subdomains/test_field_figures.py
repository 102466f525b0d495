"""Errors, sizes and sweeps of fields in parts: the figures of one process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from subdomains.test_fields import sample
from workbench.bounds.run import TIMES
from workbench.distributed import ChunkedField
from workbench.errors import WorkbenchError

da = pytest.importorskip("dask.array", reason="needs the dask extra")

ROUNDED = ("rms_error", "mean_error", "psnr", "nrmse")   # sums in another order


def assert_same_figures(found, expected):
    shared = [name for name in expected if name not in ("ssim", *TIMES)]
    assert [name for name in found if name not in TIMES] == shared
    for name in shared:
        if name in ROUNDED:
            assert found[name] == pytest.approx(expected[name], rel=1e-9, nan_ok=True)
        else:
            assert found[name] == expected[name] or np.isnan(expected[name])


@settings(max_examples=30)
@given(st.data())
def test_errors_are_those_of_one_process(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=4)))
    original = sample(shape, data.draw(st.sampled_from(["f4", "f8", "i4"])), data.draw(st.booleans()))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    changed = original.values + random.choice([0, 0, 1], shape).astype(original.values.dtype)
    if original.values.dtype.kind == "f":
        changed = np.where(random.random(shape) < 0.1, data.draw(st.sampled_from([np.nan, np.inf])), changed)
    decoded = wb.Field(changed.astype(original.values.dtype), original.spacing, mask=original.mask)
    bound = data.draw(st.sampled_from([None, 0.5, 1.0]))
    expected = wb.compare(original, decoded, bound=bound, quick=True)
    lazy = ChunkedField(da.from_array(original.values, max(shape) // 2 + 1), mask=original.mask)
    for first, second in ((original, decoded), (lazy, decoded)):
        found = wb.distributed.compare(first, second, bound=bound)
        assert_same_figures(found.figures, expected.figures)
        assert [check.ok for check in found.checks] == [check.ok for check in expected.checks]
        assert found.passed == expected.passed
        assert "no ssim" in str(found)


def test_an_archive_is_compared_with_its_original(tmp_path):
    field = sample((40, 31), "f8", masked=True)
    path = wb.compress(field, wb.Absolute(0.01), chunk_values=300).save(tmp_path / "field.zarr")
    source = ChunkedField(da.from_array(field.values, 7), mask=field.mask)
    assert wb.distributed.compare(source, wb.open(path), bound=0.01).passed is True
    assert wb.distributed.compare(source, wb.open(path), bound=0.001).passed is False


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "i2"])
def test_a_sweep_has_the_sizes_and_errors_of_one_process(dtype, masked):
    field = sample((50, 40), dtype, masked)
    codecs = ["prequantised", "pcodec", "sz3", "lattice"]
    bounds = [wb.Absolute(0.5), wb.Relative(1e-3)]
    expected = wb.sweep(field, codecs, bounds, cache=False)
    source = ChunkedField(da.from_array(field.values, 17), field.spacing, field.name, field.mask, field.metadata)
    found = wb.distributed.sweep(source, codecs, bounds)
    assert [(run.label, run.bound) for run in found] == [(run.label, run.bound) for run in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one.error is None) == (other.error is None)
        assert_same_figures(one.figures, other.figures)
        if one.error is None:
            assert one["nbytes"] == other["nbytes"]
    assert sum(run.error is None for run in found) >= 4


def test_a_sweep_over_many_chunks_states_the_size_of_the_archive(tmp_path):
    field = sample((50, 40), "f4", masked=True)
    source = ChunkedField(da.from_array(field.values, 17), mask=field.mask)
    (run,) = wb.distributed.sweep(source, "prequantised", wb.Absolute(0.1), chunk_values=500)
    archive = wb.distributed.compress(source, wb.Absolute(0.1), "prequantised", out=tmp_path / "f.zarr", chunk_values=500)
    assert (run["nbytes"], run["chunks"], run["ratio"]) == (archive.nbytes, 4, archive.ratio)


def test_what_cannot_be_compared_is_refused():
    field = sample((4, 5))
    for arguments, told in (
        ((field, field.values[:2]), "both fields must have the same shape"),
        ((field, wb.compress(wb.Particles([[0.0, 1.0]]), wb.Absolute(0.1))), "the archive must hold a field"),
        (([1.0], field), "must be a Dask array"),
    ):
        with pytest.raises(WorkbenchError, match=told):
            wb.distributed.compare(*arguments)
    with pytest.raises(WorkbenchError, match="bound must be a finite absolute error"):
        wb.distributed.compare(field, field, bound=-1)
    with pytest.raises(WorkbenchError, match="codecs must name at least one"):
        wb.distributed.sweep(field, [], wb.Absolute(1))


def test_errors_of_published_archives_are_found(shared_data):
    h5py = pytest.importorskip("h5py", reason="needs the io extra")
    cesm = shared_data / "cesm"
    with h5py.File(cesm / "cam-fv.T.3months.nc") as one, h5py.File(cesm / "c.fpzip.cam-fv.T.3months.nc") as other:
        report = wb.distributed.compare(ChunkedField(one["T"]), ChunkedField(other["T"]), bound=0.125)
    assert (report.max_error, report.differing, report.passed) == (0.124969482421875, 4_975_373, True)
    with h5py.File(cesm / "ihesp14.TS.12mon.nc") as one, h5py.File(cesm / "d.sz1e-1.ihesp14.TS.12mon.nc") as other:
        fields = da.from_array(one["TS"], (1, 9999))[:11], other["TS"]
        within, beyond = (wb.distributed.compare(*map(ChunkedField, fields), bound=bound) for bound in (0.1, 0.0999))
    assert within.passed is True
    assert (beyond.passed, beyond.exceeding) == (False, 494)
