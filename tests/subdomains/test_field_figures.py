"""Errors, sizes and sweeps of fields in parts: the figures of one process."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from subdomains.test_fields import sample
from workbench.archive.reading import StoredArray
from workbench.bounds.run import TIMES
from workbench.data.chunked import ParticlesInMemory
from workbench.distributed import ChunkedField
from workbench.errors import WorkbenchError
from workbench.metrics import field_sums, spectrum_in_parts

da = pytest.importorskip("dask.array", reason="needs the dask extra")

ROUNDED = (   # sums in another order
    "rms_error", "mean_error", "psnr", "nrmse", "ssim", "error_autocorrelation", "spectrum_worst", "spectrum_worst_half",
)


def assert_same_figures(found, expected, without=()):
    shared = [name for name in expected if name not in (*without, *TIMES)]
    assert [name for name in found if name not in TIMES] == shared
    for name in shared:
        if name in ROUNDED:
            assert found[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-12, nan_ok=True)
        else:
            assert found[name] == expected[name] or np.isnan(expected[name])


def assert_same_report(found, expected):
    assert (found.notes, found.passed) == (expected.notes, expected.passed)
    assert [(check.name, check.ok) for check in found.checks] == [(check.name, check.ok) for check in expected.checks]
    assert_same_figures(found.figures, expected.figures)
    assert list(found.curves) == list(expected.curves)
    for name, curve in expected.curves.items():
        top = np.abs(curve[np.isfinite(curve)]).max(initial=0)
        np.testing.assert_allclose(found.curves[name], curve, rtol=1e-7, atol=1e-12 * top, err_msg=name)


SIZES = {
    1: st.integers(1, 90), 2: st.integers(1, 24), 3: st.sampled_from([1, 2, 7, 8, 12]), 4: st.sampled_from([1, 2, 7, 9]),
}


@settings(max_examples=20)
@given(st.data())
def test_the_report_is_that_of_one_process(data):
    axes = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(SIZES[axes]) for _ in range(axes))
    dtype = data.draw(st.sampled_from(["f4", "f8", "i4"]))
    original = sample(shape, dtype, data.draw(st.booleans()))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    changed = (original.values + random.choice([0, 0, 1], shape)).astype(original.values.dtype)
    decoded = wb.Field(changed, original.spacing, mask=original.mask)
    bound = data.draw(st.sampled_from([None, 0.5, 1.0]))
    expected = wb.compare(original, decoded, bound=bound)
    step = data.draw(st.integers(-(-max(shape) // 3), max(shape)))
    lazy = ChunkedField(da.from_array(original.values, step), original.spacing, mask=original.mask)
    assert_same_report(wb.compare(lazy, decoded, bound=bound), expected)


@pytest.mark.few(1)
@pytest.mark.parametrize(("shape", "on_dask"), [
    ((40, 31), True), ((3, 9, 8, 10), False),
    *(pytest.param(shape, on_dask, marks=pytest.mark.long) for shape, on_dask in [
        ((40, 31), False), ((1, 30, 17), False), ((1, 30, 17), True), ((13, 9, 21), False), ((13, 9, 21), True),
        ((3, 9, 8, 10), True),
    ]),
])
def test_windows_and_waves_extend_over_chunks(shape, on_dask, tmp_path, monkeypatch):
    """Chunks smaller than a window, and steps that hold a few planes and columns at a time."""
    monkeypatch.setattr(spectrum_in_parts, "VALUES", 100)
    monkeypatch.setattr(field_sums, "NARROW", 1)
    mask = np.zeros(shape, bool)
    mask[..., 0, 1] = True
    field = wb.Field(sample(shape, "f8").values, 0.5, mask=mask)
    decoded = wb.compress(field, wb.Absolute(0.05), chunk_values=120)
    if on_dask:
        lazy = np.ma.MaskedArray(field.values, field.mask)
        source = ChunkedField(da.from_array(lazy, 5, asarray=False), field.spacing)
    else:
        np.save(tmp_path / "field.npy", field.values)
        source = ChunkedField(tmp_path / "field.npy", field.spacing, mask=field.mask)
    expected = wb.compare(field, decoded.decompress(), bound=0.05)
    assert {"spectrum_worst", "ssim"} <= set(expected.figures)
    found = wb.compare(source, decoded, bound=0.05)
    assert_same_report(found, expected)
    quick = wb.compare(source, decoded, bound=0.05, quick=True)
    assert_same_report(quick, wb.compare(field, decoded.decompress(), bound=0.05, quick=True))


def test_constant_lost_and_invalid_values_are_told_as_in_one_process():
    flat, wild = np.full((9, 9), 3.0), sample((9, 9), "f8").values.copy()
    gone = wild.copy()
    gone[4, 4] = np.nan
    nothing = np.full((9, 9), np.nan)
    for first, second in ((flat, flat + 0.5), (flat, flat), (wild, gone), (gone, gone), (nothing, nothing), (wild, flat)):
        lazy = ChunkedField(da.from_array(first, 4))
        assert_same_report(wb.compare(lazy, second), wb.compare(wb.Field(first), second))


@pytest.mark.parametrize("exponent", [-1000, 520, 1022])
def test_squares_beyond_the_range_of_numbers_have_the_spectra_of_one_process(exponent):
    values = sample((9, 10, 12), "f8").values / 32
    decoded = np.ldexp(np.round(values, 2), exponent)
    values = np.ldexp(values, exponent)
    expected = wb.compare(values, decoded)
    assert 0 < expected.spectrum_worst < 1
    assert_same_report(wb.compare(da.from_array(values, 5), decoded), expected)


def sources_of(field, folder):
    """A field in everything that holds one, by name."""
    h5py, zarr, xarray = map(pytest.importorskip, ("h5py", "zarr", "xarray"))
    values = field.values
    np.save(folder / "field.npy", values)
    with h5py.File(folder / "field.h5", "w") as file:
        file["field"] = values
    stored = zarr.create_array(str(folder / "field.zarr"), shape=values.shape, chunks=(16, 16), dtype=values.dtype)
    stored[...] = values
    return {
        "list": values.tolist(), "array": values, "field": field, "npy": folder / "field.npy",
        "hdf5": h5py.File(folder / "field.h5")["field"], "zarr": stored, "path of zarr": str(folder / "field.zarr"),
        "dask": da.from_array(values, 16), "labelled": xarray.DataArray(values, name="T"),
        "lazy and labelled": xarray.DataArray(da.from_array(values, 16), name="T"), "chunked": ChunkedField(values),
        "archive": wb.compress(field, wb.Absolute(0), "pcodec", chunk_values=300),
    }


each_or_both = pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.long)])


def places(client, number, both):
    """Where a source is read: here and by workers, or in one of the two, which differs from each source to the next."""
    every = ({}, {"client": client})
    return every if both else (every[number % 2],)


@each_or_both
def test_every_source_has_the_report_of_an_array(client, tmp_path, both):
    field = wb.Field(sample((40, 31), "f8").values)
    decoded = np.round(field.values, 2)
    expected = wb.compare(field, decoded, bound=0.01)
    for number, source in enumerate(sources_of(field, tmp_path).values()):
        for where in places(client, number, both):
            assert_same_report(wb.compare(source, decoded, bound=0.01, **where), expected)
            assert_same_report(wb.compare(decoded, source, quick=True, **where), wb.compare(decoded, field, quick=True))


def test_a_chunk_of_an_archive_is_decoded_once(monkeypatch):
    field = sample((40, 31), "f8", masked=True)
    archive, read, frame = wb.compress(field, wb.Absolute(0.01), chunk_values=300), [], StoredArray.frame

    def counted(stored, index, *more, **options):
        read.append((stored.layout.name, tuple(index)))
        return frame(stored, index, *more, **options)

    monkeypatch.setattr(StoredArray, "frame", counted)
    wb.compare(field, archive)
    assert len(read) == len(set(read)) == 2 * archive.data.layout.chunk_count > 6


def test_packed_arrays_of_files_are_refused_unless_meant_as_stored(tmp_path):
    h5py = pytest.importorskip("h5py", reason="needs the io extra")
    with h5py.File(tmp_path / "packed.h5", "w") as file:
        file["T"] = np.arange(12, dtype="i2").reshape(3, 4)
        file["T"].attrs["scale_factor"] = 0.5
        with pytest.raises(WorkbenchError, match=r"must be opened by wb\.open"):
            wb.compare(file["T"], file["T"])
        assert wb.compare(ChunkedField(file["T"]), file["T"][...]).max_error == 0


def test_workers_compare_fields(client):
    field = sample((40, 31), "f4", masked=True)
    decoded = wb.Field(np.round(field.values, 2), field.spacing, mask=field.mask)
    lazy = ChunkedField(da.from_array(field.values, 16), field.spacing, mask=field.mask)
    told = []
    for source in (lazy, field):
        found = wb.compare(source, decoded, client=client, progress=lambda *now: told.append(now))
        assert_same_report(found, wb.compare(field, decoded))
    steps = ["compare chunks", "compare neighbours", "write parts", "transform planes", "add waves"]
    assert list(dict.fromkeys(what for _, what in told)) == steps
    assert {what for share, what in told if share == 1} == set(steps)


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
    assert_same_report(wb.compare(lazy, decoded, bound=bound, quick=True), expected)


def test_an_archive_is_compared_with_its_original(tmp_path):
    field = sample((40, 31), "f8", masked=True)
    path = wb.compress(field, wb.Absolute(0.01), chunk_values=300).save(tmp_path / "field.zarr")
    source = ChunkedField(da.from_array(field.values, 7), mask=field.mask)
    assert wb.compare(source, wb.open(path), bound=0.01).passed is True
    assert wb.compare(source, wb.open(path), bound=0.001).passed is False


def assert_same_runs(found, expected):
    assert [(run.label, run.bound) for run in found] == [(run.label, run.bound) for run in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one.error is None, one.notes) == (other.error is None, other.notes)
        assert_same_figures(one.figures, other.figures)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "i2"])
def test_a_sweep_has_the_figures_of_one_process(dtype, masked):
    field = sample((50, 40), dtype, masked)
    codecs = ["prequantised", "pcodec", "sz3", "lattice"]
    bounds = [wb.Absolute(0.5), wb.Relative(1e-3)]
    expected = wb.sweep(field, codecs, bounds, cache=False)
    source = ChunkedField(da.from_array(field.values, 17), field.spacing, field.name, field.mask, field.metadata)
    assert_same_runs(wb.sweep(source, codecs, bounds, cache=False), expected)
    assert sum(run.error is None for run in expected) >= 4


@each_or_both
def test_every_source_has_the_rows_of_an_array(client, tmp_path, both):
    field = wb.Field(sample((40, 31), "f8").values)
    asked = {"codecs": "prequantised", "bounds": wb.Absolute(0.01), "metrics": "full", "chunk_values": 500, "cache": False}
    sources = sources_of(field, tmp_path)
    expected = {labelled: wb.sweep(sources["labelled" if labelled else "array"], **asked) for labelled in (False, True)}
    assert expected[False][0]["chunks"] == 4
    del sources["list"]   # which a sweep refuses
    for number, (name, source) in enumerate(sources.items()):   # so those that the report reads here are read by workers
        for where in places(client, number, both):
            assert_same_runs(wb.sweep(source, **asked, **where), expected["labelled" in name])   # whose metadata take bytes


def test_a_sweep_states_the_size_of_the_archive(tmp_path):
    field = sample((50, 40), "f4", masked=True)
    source = ChunkedField(da.from_array(field.values, 17), mask=field.mask)
    (run,) = wb.sweep(source, "prequantised", wb.Absolute(0.1), chunk_values=500)
    archive = wb.compress(source, wb.Absolute(0.1), "prequantised", out=tmp_path / "f.zarr", chunk_values=500)
    assert (run["nbytes"], run["chunks"], run["ratio"]) == (archive.nbytes, 4, archive.ratio)


def test_parts_are_measured_once_and_remembered(tmp_path):
    lazy, asked = da.from_array(sample((30, 20), "f8").values, 9), {"codecs": "pcodec", "bounds": wb.Absolute(0.1)}
    first, again, other = (wb.sweep(each, **asked, cache=tmp_path) for each in (lazy, lazy + 0, lazy + 1e-9))
    assert [sweep[0].cached for sweep in (first, again, other)] == [False, True, False]
    assert again[0].figures == first[0].figures
    assert not wb.sweep(lazy, **asked, chunk_values=200, cache=tmp_path)[0].cached


def test_a_sweep_of_parts_computes_each_block_once_tells_its_steps_and_stops(tmp_path):
    computed, told = [], []
    lazy = da.from_array(sample((16, 16), "f8").values, 8).map_blocks(lambda block: computed.append(1) or block, dtype="f8")
    found = wb.sweep(
        lazy, ["pcodec", "prequantised"], [wb.Absolute(0.1), wb.Relative(0.1)], scratch=tmp_path, cache=False,
        progress=lambda *now: told.append(now),
    )
    assert (len(found), len(computed) - computed.count(0)) == (4, 4 + 1)   # one more, by which Dask infers the type
    assert told[-1] == (1.0, "prequantised, relative 0.1")
    assert (0.25, "pcodec, relative 0.1: encode chunks") in told
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    stop = threading.Event()
    some = wb.iter_sweep(lazy, "pcodec", [wb.Absolute(0.1), wb.Absolute(0.2)], scratch=tmp_path, cancel=stop)
    assert next(some).bound == wb.Absolute(0.1)
    stop.set()
    assert list(some) == []
    assert len(wb.sweep(lazy, "pcodec", wb.Absolute(0.1), scratch=tmp_path, cancel=stop)) == 0   # before it is read
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_compared_is_refused():
    field = sample((4, 5))
    for arguments, told in (
        ((field, field.values[:2]), "both fields must have the same shape"),
        ((field, wb.Field(field.values, 7.0)), "both fields must have the same spacing"),
        ((field, wb.compress(wb.Particles([[0.0, 1.0]]), wb.Absolute(0.1))), "the archive must hold a field"),
        (("field.npz", field), "must be a .npy file of numbers"),
        ((field, ParticlesInMemory(wb.Particles([[0.0, 1.0]]), (1,))), "both must be fields, or both particles"),
    ):
        with pytest.raises(WorkbenchError, match=told):
            wb.compare(*arguments)
    with pytest.raises(WorkbenchError, match="client must be None for particles"):
        wb.compare(wb.Particles([[0.0, 1.0]]), wb.Particles([[0.0, 1.0]]), client="127.0.0.1:1")
    with pytest.raises(WorkbenchError, match="bound must be a finite absolute error"):
        wb.compare(field, field, bound=-1)
    parts, particles = ChunkedField(da.from_array(field.values, 2)), wb.Particles([[0.0, 1.0]])
    for data, more, told in (
        (parts, {"codecs": []}, "codecs must name at least one"),
        (parts, {"workers": 2}, "workers counts processes for data in memory"),
        (parts, {"order": "free"}, "order='free' is for particles"),
        (particles, {"client": "127.0.0.1:1"}, "client must be None for particles"),
        (ParticlesInMemory(particles, (1,)), {}, "particles must be in memory here"),
    ):
        with pytest.raises(WorkbenchError, match=told):
            wb.sweep(data, **{"codecs": "pcodec", "bounds": wb.Absolute(1), **more})


@pytest.mark.long
def test_errors_of_published_archives_are_found(shared_data):
    h5py = pytest.importorskip("h5py", reason="needs the io extra")
    cesm = shared_data / "cesm"
    with h5py.File(cesm / "cam-fv.T.3months.nc") as one, h5py.File(cesm / "c.fpzip.cam-fv.T.3months.nc") as other:
        report = wb.compare(ChunkedField(one["T"]), ChunkedField(other["T"]), bound=0.125, quick=True)
    assert (report.max_error, report.differing, report.passed) == (0.124969482421875, 4_975_373, True)
    with h5py.File(cesm / "ihesp14.TS.12mon.nc") as one, h5py.File(cesm / "d.sz1e-1.ihesp14.TS.12mon.nc") as other:
        fields = da.from_array(one["TS"], (1, 9999))[:11], other["TS"]
        report = wb.compare(*map(ChunkedField, fields), bound=0.0999, quick=True)
    assert 0.0999 < report.max_error <= 0.1
    assert (report.passed, report.exceeding) == (False, 494)
