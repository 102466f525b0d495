"""Predictions and searches on fields in chunks: against those of one process, and against archives of the whole."""

import os
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
import zarr

import workbench as wb
from subdomains.test_field_figures import each_or_both, places, sources_of
from workbench.distributed import ChunkedField

MEMORY = 320          # MiB that a process may have
SEARCH = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY << 20}, {MEMORY << 20}))
import workbench as wb
row = wb.predict(sys.argv[1], "sz3", wb.Relative(1e-3))[0]
found = wb.find_bound(sys.argv[1], wb.PSNR(60), "prequantised")
print(row.ratio_low, row.ratio_high, found.nearest["psnr"], found.bound.eb)
"""


@pytest.fixture(scope="module")
def whole() -> wb.Field:
    return wb.synthetic.gaussian_field((48, 64, 80), 3, seed=4)


@pytest.mark.long
def test_a_search_in_chunks_is_proved_on_the_whole(whole, tmp_path):
    stored = zarr.create_array(str(tmp_path / "f.zarr"), shape=whole.shape, chunks=(16, 32, 40), dtype=whole.values.dtype)
    stored[...] = whole.values
    for target, figure, most in ((wb.PSNR(60), "psnr", 60.1), (wb.Ratio(5), "ratio", 5.05)):
        out = tmp_path / f"{figure}.zarr"
        found = wb.find_bound(tmp_path / "f.zarr", target, "prequantised", chunk_values=50_000, out=out)
        assert found.met
        assert len(found.runs) <= 5
        archive = wb.open(out)
        assert archive.ratio == found.nearest["ratio"] == found.archive.ratio
        report = wb.compare(whole, archive.decompress(), quick=True)
        value = archive.ratio if figure == "ratio" else report["psnr"]
        assert target.least <= value <= most
        assert "meets" in repr(found)
        assert found.report["psnr"] == pytest.approx(report["psnr"])
        assert "chunk_values=50000" in found.code()


@each_or_both
def test_every_source_has_the_bound_of_an_array(client, tmp_path, both):
    field = wb.Field(wb.synthetic.gaussian_field((40, 31), 3, seed=4).values)
    expected = wb.find_bound(field, wb.PSNR(60), "prequantised")
    sources = sources_of(field, tmp_path)
    for number, name in enumerate(sources if both else ("array", "npy", "dask", "archive")):   # predictions are of all
        source = sources[name]
        for where in places(client, number, both):
            found = wb.find_bound(source, wb.PSNR(60), "prequantised", **where)
            assert 60 <= found.report["psnr"] <= 60.1
            if name in ("array", "field", "npy", "hdf5", "chunked"):   # predicted alike: the only part is the whole
                assert (found.bound, found.nearest["nbytes"]) == (expected.bound, expected.nearest["nbytes"])
    assert expected.archive.ratio == expected.nearest["ratio"]
    with pytest.raises(wb.WorkbenchError, match="the archive of a field in parts is kept if find_bound has out="):
        _ = found.archive


def test_an_archive_in_memory_is_written_where_it_is_wanted(whole, tmp_path):
    found = wb.find_bound(whole, wb.PSNR(50), "prequantised", out=tmp_path / "f.zip")
    assert wb.open(tmp_path / "f.zip").certificate == found.archive.certificate
    with pytest.raises(wb.WorkbenchError, match="exists"):
        wb.find_bound(whole, wb.PSNR(50), "prequantised", out=tmp_path / "f.zip", watch=lambda run: pytest.fail("searched"))


def test_a_similarity_is_searched_in_parts(whole):
    lazy = da.from_array(whole.values, (16, 32, 40))
    found = wb.find_bound(lazy, wb.SSIM(0.99), "prequantised")
    assert 0.99 <= found.report.ssim <= 0.992
    decoded = wb.compress(whole, found.bound, found.codec).decompress()
    assert found.report.ssim == pytest.approx(wb.compare(whole, decoded, quick=True).ssim)


def test_a_prediction_from_parts_is_about_that_of_the_whole(whole):
    bounds = [wb.Absolute(0.003), wb.Relative(0.01)]
    source = ChunkedField(da.from_array(whole.values, (16, 32, 40)))
    for codec in ("sz3", "zfp"):
        for one, other in zip(wb.predict(source, codec, bounds), wb.predict(whole, codec, bounds), strict=True):
            assert one.ratio == pytest.approx(other.ratio, rel=0.1)
            assert one.psnr == pytest.approx(other.psnr, abs=0.5)
            assert one.ratio_low < one.ratio < one.ratio_high
            assert np.isnan(one.ssim)


def test_every_source_has_the_same_prediction_with_a_client(client, tmp_path):
    field = wb.Field(wb.synthetic.gaussian_field((40, 31), 3, seed=4).values)
    expected = wb.predict(field, "sz3", wb.Relative(0.01)).to_dict()
    for name, source in sources_of(field, tmp_path).items():
        if name == "list":
            continue   # which is refused
        here, there = (wb.predict(source, "sz3", wb.Relative(0.01), **where) for where in ({}, {"client": client}))
        assert repr(here) == repr(there)
        if name in ("array", "field", "npy", "hdf5", "chunked"):   # the only part is the whole
            assert here.to_dict()["rows"] == there.to_dict()["rows"] == expected["rows"]


def test_bounds_are_converted_to_the_unit_of_the_field(whole):
    kelvin = ChunkedField(whole.values, metadata={"units": "K"})
    assert wb.predict(kelvin, "sz3", wb.Absolute("10 mK"))[0].limit == 0.01
    with pytest.raises(wb.WorkbenchError, match="measure different things"):
        wb.predict(kelvin, "sz3", wb.Absolute("10 pc"))


def test_parts_without_values_or_differences_count_as_such(whole):
    values, mask = whole.values.copy(), np.zeros(whole.shape, bool)
    values[:16] = 1.0
    mask[16:32] = True
    field = ChunkedField(da.from_array(values, (16, 64, 80)), mask=mask)
    found = wb.find_bound(field, wb.PSNR(55), "sz3")
    assert found.met
    assert 55 <= found.nearest["psnr"] <= 55.1


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
def test_a_field_larger_than_the_memory_is_predicted_and_searched(tmp_path):
    chunk, shape = wb.synthetic.gaussian_field((64, 128, 128), 3, seed=5).values, (128, 1024, 1024)
    stored = zarr.create_array(str(tmp_path / "f.zarr"), shape=shape, chunks=chunk.shape, dtype="float32", compressors=None)
    assert stored.nbytes > 1.5 * (MEMORY << 20)
    for a in range(0, shape[0], 64):
        for b in range(0, shape[1], 128):
            for c in range(0, shape[2], 128):
                stored[a : a + 64, b : b + 128, c : c + 128] = chunk * np.float32(1 + (a + b + c) / 2048)
    command = [sys.executable, "-c", SEARCH, str(tmp_path / "f.zarr")]
    # Zarr reads in threads, each of which would keep freed memory of its own.
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MALLOC_ARENA_MAX"), "1")
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | one_thread, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    low, high, psnr, _ = map(float, done.stdout.split())
    assert 1 < low < high
    assert 60 <= psnr <= 60.1


@pytest.mark.long
def test_the_codec_is_chosen_by_prediction(whole):
    found = wb.find_bound(whole, wb.Ratio(6), most_runs=3)
    assert found.codec.id in wb.codecs.available()
    assert found.met


def test_what_no_bound_reaches_is_said(whole):
    found = wb.find_bound(whole, wb.All(wb.PSNR(100), wb.Ratio(1000)), "prequantised")
    assert not found.met
    for name in ("bound", "archive", "report"):
        with pytest.raises(wb.WorkbenchError, match="no bound of prequantised meets"):
            getattr(found, name)


VALUES = np.random.default_rng(0).random((9, 9))


@pytest.mark.parametrize(
    ("values", "target", "more", "message"),
    [
        (VALUES, wb.KeepSpectrum(0.1), {}, "add up over parts"),
        (VALUES, wb.Quality(lambda a, b: 1.0, at_least=0.5), {}, "add up over parts"),
        (VALUES, wb.KeepClusters(0.2), {}, "KeepClusters is for particles"),
        (VALUES, 60, {}, "target must be"),
        (VALUES, wb.PSNR(60), {"kind": "any"}, "kind must be one of absolute, relative, pointwise-relative"),
        (VALUES, wb.PSNR(60), {"velocities": wb.Absolute(1)}, "is for particles with velocities"),
        (VALUES, wb.PSNR(60), {"order": "free"}, "order='free' are for particles"),
        (np.full((9, 9), np.nan), wb.PSNR(60), {}, "masked or not finite"),
        (np.full((9, 9), 2.0), wb.PSNR(60), {}, "values that differ"),
        (np.arange(81).reshape(9, 9), wb.PSNR(60), {}, "floating-point"),
    ],
)
def test_bad_input_is_refused(values, target, more, message):
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.find_bound(da.from_array(values, 5), target, **more)
