"""Each row is what `wb.compress` and `wb.compare` say; what fails spoils nothing; what stops says so."""

import dataclasses
import importlib
import threading

import numpy as np
import pytest

import workbench as wb
from workbench.bounds import iter_sweep, measure, sweep
from workbench.bounds.run import MEANINGS, TIMES
from workbench.metrics.report import MEANINGS as FIGURES

sweeping = importlib.import_module("workbench.bounds.sweep")   # the module, not the function
BOUNDS = [wb.Absolute(0.1), wb.Relative(1e-3), wb.PointwiseRelative(1e-2)]


def assert_as_compressed(run, data, order="keep", quick=True):
    archive = wb.compress(data, run.bound, wb.codecs.from_dict(run.codec), order=order)
    promise = archive.certificate[archive.data.layout.name]
    expected = {
        "limit": promise.limit.value, "nbytes": archive.nbytes, "chunk_nbytes": archive.data.nbytes,
        "ratio": archive.ratio, "documents_nbytes": archive.nbytes - sum(each.nbytes for each in archive.arrays.values()),
        "bits_per_value": archive.bits_per_value, "corrected": promise.figures["corrected"] / promise.figures["values"],
        "chunks": promise.figures["chunks"],
        "chunks_stored_exactly": sum(promise.figures["chunks_stored_exactly"].values()),
    }
    if isinstance(data, wb.Particles):
        expected["bits_per_particle"] = archive.bits_per_particle
    places = archive.permutation(data) if order == "free" else None
    expected |= wb.compare(data, archive.decompress(), order=places, quick=quick).figures
    found = {name: value for name, value in run.figures.items() if name not in TIMES}
    assert repr(sorted(found.items())) == repr(sorted(expected.items()))   # repr: NaN is NaN
    assert run.order == order
    assert run.error is None


@pytest.mark.parametrize("codec", ["sz3", "zfp", "pcodec", "prequantised", "sperr"])
def test_rows_of_a_field_are_what_compress_and_compare_say(coast, codec):
    found = sweep(coast, codec, BOUNDS)
    assert len(found) == len(BOUNDS)
    for run in found:
        assert_as_compressed(run, coast)


@pytest.mark.parametrize("order", ["keep", "free"])
def test_rows_of_particles_are_what_compress_and_compare_say(snapshot, order):
    for run in sweep(snapshot, ["lattice", "draco", "sz3"], [wb.Absolute(0.05), wb.Relative(1e-3)], order=order):
        assert_as_compressed(run, snapshot, order)


def test_full_figures_are_those_of_a_full_comparison(snapshot, waves):
    (run,) = sweep(snapshot, "lattice", wb.Absolute(0.05), order="free", metrics="full")
    assert_as_compressed(run, snapshot, "free", quick=False)
    assert {"clusters_kept", "halos_original", "spectrum_worst"} <= set(run.figures)
    (run,) = sweep(waves, "zfp", wb.Absolute(0.05), metrics="full")
    assert_as_compressed(run, waves, quick=False)


def test_an_array_counts_as_a_field(waves):
    assert sweep(waves.values, "zfp", wb.Absolute(0.1))[0]["nbytes"] == sweep(
        wb.Field(waves.values), "zfp", wb.Absolute(0.1), cache=False
    )[0]["nbytes"]


def test_every_figure_has_a_meaning(snapshot, coast):
    runs = [*sweep(snapshot, "lattice", wb.Absolute(0.05), metrics="full"), *sweep(coast, "zfp", BOUNDS, metrics="full")]
    assert {name for run in runs for name in run.figures} <= set(MEANINGS) | set(FIGURES)


def test_times_and_speeds_belong_together(waves):
    (run,) = sweep(waves, "pcodec", wb.Absolute(0.1))
    for there in ("encode", "decode"):
        assert run[f"{there}_seconds"] > 0
        assert run[f"{there}_mb_per_s"] == pytest.approx(waves.values.nbytes / 1e6 / run[f"{there}_seconds"])
    assert run["threads"] == wb.backend.threads()


def test_rows_stand_codec_by_codec_in_the_order_asked_for_and_once(waves):
    twice = ["zfp", wb.codecs.get("pcodec", level=4), "zfp", wb.codecs.get("pcodec")]
    bounds = [wb.Absolute(0.1), wb.Absolute(0.01), wb.Absolute(0.1), wb.Relative(0.1)]
    found = sweep(waves, twice, iter(bounds))
    assert [str(run) for run in found] == [
        f"{label}, {bound}"
        for label in ("zfp", "pcodec(level=4)", "pcodec")
        for bound in ("absolute 0.1", "absolute 0.01", "relative 0.1")
    ]


def test_a_codec_that_cannot_take_the_data_has_a_row_with_the_reason(waves):
    found = sweep(waves, ["lattice", "pcodec", "draco"], [wb.Absolute(0.1), wb.Absolute(0.2)])
    assert [run.error is None for run in found] == [False, False, True, True, False, False]
    assert "lattice is for particles" in found[0].error
    assert dict(found[0].figures) == {}
    with pytest.raises(wb.WorkbenchError, match="this run failed: lattice is for particles"):
        found[0]["psnr"]
    assert found.complete


@pytest.mark.parametrize("error", [MemoryError("no room"), RuntimeError("no room"), ZeroDivisionError("no room")])
def test_any_exception_becomes_an_error_of_its_row(waves, monkeypatch, error):
    def breaks(data, bound, codec, *more, **options):
        if codec.id == "zfp":
            raise error
        return wb.compress(data, bound, codec, *more, **options)

    monkeypatch.setattr(measure, "compress", breaks)
    failed, fine = sweep(waves, ["zfp", "pcodec"], wb.Absolute(0.1))
    assert failed.error == f"{type(error).__name__}: no room"
    assert fine.error is None


def test_notes_say_why_chunks_are_stored_exactly_and_what_does_not_apply(snapshot):
    (run,) = sweep(snapshot, "lattice", wb.Absolute(1e-12))
    assert run["chunks_stored_exactly"] == run["chunks"] == 1
    assert run.notes[0].startswith("1 of 1 chunks stored exactly, because the lattice needs a tolerance")
    (run,) = sweep(np.linspace(0, 1, 500), "pcodec", wb.Absolute(0.1))
    assert run.notes == ("no ssim: it is defined for two and three dimensions",)


REFUSED = [
    ({"data": "snapshot.npy"}, "must be a .npy file of numbers; open files with wb.open"),
    ({"data": np.array(["a"])}, "values must be float32, float64 or integers"),
    ({"bounds": 0.1}, r"bounds must be wb.Absolute\(...\), .*; got 0.1, which is neither absolute nor relative"),
    ({"bounds": [wb.Absolute(0.1), np.float32(0.5)]}, "bounds must be wb.Absolute"),
    ({"bounds": []}, "bounds must name at least one; got none"),
    ({"codecs": []}, "codecs must name at least one; got none"),
    ({"codecs": "gzip"}, "codec must be one of lattice, .*; got 'gzip'"),
    ({"codecs": ["pcodec", 7]}, "codec must be one of lattice, .*; got 7"),
    ({"order": "any"}, "order must be one of keep, free; got 'any'"),
    ({"order": "free"}, "order='free' is for particles; got a field"),
    ({"metrics": "all"}, "metrics must be one of quick, full; got 'all'"),
    ({"workers": 0}, "workers must be a whole number, at least 1; got 0"),
    ({"workers": 1.5}, "workers must be a whole number, at least 1; got 1.5"),
]


@pytest.mark.parametrize(("wrong", "complaint"), REFUSED)
@pytest.mark.parametrize("call", [sweep, iter_sweep])
def test_bad_input_is_refused_before_any_work(waves, wrong, complaint, call, monkeypatch):
    monkeypatch.setattr(sweeping, "measure", lambda *_: pytest.fail("work was done"))
    arguments = {"data": waves, "codecs": "pcodec", "bounds": wb.Absolute(0.1), **wrong}
    with pytest.raises(wb.WorkbenchError, match=complaint):
        call(arguments.pop("data"), arguments.pop("codecs"), arguments.pop("bounds"), **arguments)


def test_arrays_on_a_gpu_are_refused(stand_in):
    with pytest.raises(wb.WorkbenchError, match="data of a sweep must be NumPy arrays; got CuPy"):
        sweep(wb.Field(stand_in.asarray(np.zeros((4, 4)))), "pcodec", wb.Absolute(0.1))


def test_a_codec_that_is_not_what_its_description_says_is_refused(waves, monkeypatch):
    monkeypatch.setattr(type(wb.codecs.get("pcodec")), "to_dict", lambda self: {"id": "pcodec", "level": 3})
    with pytest.raises(wb.WorkbenchError, match="a codec must equal the one its description makes"):
        sweep(waves, "pcodec", wb.Absolute(0.1))


def test_progress_is_called_after_each_run(waves):
    calls = []
    sweep(waves, ["pcodec", "lattice"], BOUNDS[:2], progress=lambda *call: calls.append(call))
    assert [share for share, _ in calls] == [0.25, 0.5, 0.75, 1.0]
    assert calls[1][1] == "pcodec, relative 0.001"


def test_a_set_event_stops_before_the_next_run(waves):
    event = threading.Event()
    found = sweep(waves, ["pcodec", "zfp"], BOUNDS, progress=lambda *_: event.set(), cancel=event)
    assert [str(run) for run in found] == ["pcodec, absolute 0.1"]
    assert not found.complete
    assert repr(found) == "Sweep(1 run of 1 codec, stopped before 5 more)"


def test_a_set_event_stops_in_the_middle_of_a_run(waves):
    class SetSoon:
        asked = 0

        def is_set(self):
            self.asked += 1
            return self.asked > 1   # not yet before the first run, but after its only chunk

    found = sweep(waves, ["pcodec", "zfp"], BOUNDS, cancel=SetSoon())
    assert (len(found), found.complete) == (0, False)


def test_an_interrupt_leaves_the_rows_so_far(waves):
    def interrupt(share, what):
        if share > 0.5:
            raise KeyboardInterrupt

    found = sweep(waves, ["pcodec", "zfp"], BOUNDS[:2], progress=interrupt)
    assert [run.label for run in found] == ["pcodec", "pcodec", "zfp"]
    assert not found.complete


def test_an_error_of_the_caller_is_the_callers(waves):
    with pytest.raises(ZeroDivisionError):
        sweep(waves, "pcodec", BOUNDS, progress=lambda *_: 1 / 0)


def test_rows_come_one_by_one(waves, monkeypatch):
    measured = []
    monkeypatch.setattr(sweeping, "measure", lambda *a: measured.append(a) or measure.measure(*a))
    rows = iter_sweep(waves, ["pcodec", "zfp"], BOUNDS)
    assert measured == []
    assert next(rows).label == "pcodec"
    assert len(measured) == 1
    assert len(list(rows)) == len(measured) - 1 == 5


def test_tighter_bounds_cost_more_and_break_less_on_a_real_field(shared_data):
    values = np.fromfile(shared_data / "sperr_fields" / "vorticity.512_512", np.float32).reshape(512, 512)[:200, :200]
    bounds = [wb.Relative(eb) for eb in (1e-2, 1e-3, 1e-4)]
    found = sweep(values, ["sz3", "zfp", "sperr", "prequantised"], bounds)
    for start in range(0, len(found), len(bounds)):
        rows = found.rows[start : start + len(bounds)]
        assert all(run["max_error"] <= run["limit"] for run in rows)
        assert rows[0]["nbytes"] < rows[1]["nbytes"] < rows[2]["nbytes"] < values.nbytes
        assert rows[0]["psnr"] < rows[1]["psnr"] < rows[2]["psnr"]


def test_real_particles_in_free_order(shared_data):
    particles = wb.open(shared_data / "hacc_nyx_toy" / "m000.full.mpicosmo.50")
    found = sweep(particles, ["lattice", "sz3"], wb.Absolute(0.05), order="free")
    assert found.size == "bits_per_particle"
    assert found[0]["bits_per_particle"] < found[1]["bits_per_particle"] < 96
    assert max(run["max_error"] for run in found) <= 0.05


def test_runs_are_values(waves):
    (run,) = sweep(waves, "pcodec", wb.Absolute(0.1))
    assert run == dataclasses.replace(run)
    assert hash(run) == hash(dataclasses.replace(run))
    with pytest.raises(TypeError, match="does not support item assignment"):
        run.figures["psnr"] = 0
