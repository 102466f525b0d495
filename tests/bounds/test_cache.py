"""What was measured before is not measured again; what differs in anything is."""

import dataclasses
import importlib
import math
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.archive import provenance
from workbench.bounds import Run, cache, measure, sweep
from workbench.data import Field, Particles

sweeping = importlib.import_module("workbench.bounds.sweep")   # the module, not the function
BOUNDS = [wb.Absolute(0.1), wb.Absolute(0.01)]


@pytest.fixture
def measured(monkeypatch):
    """What was really measured."""
    labels = []

    def counted(data, asked, cancelled):
        labels.append(asked.codec.id)
        return measure.measure(data, asked, cancelled)

    monkeypatch.setattr(sweeping, "measure", counted)
    return labels


def test_going_back_costs_nothing(waves, measured):
    first = sweep(waves, ["pcodec", "zfp"], BOUNDS)
    again = sweep(waves, ["zfp", "pcodec"], BOUNDS[1])
    assert len(measured) == 4
    assert not any(run.cached for run in first)
    assert list(again) == [dataclasses.replace(first[place], cached=True) for place in (3, 1)]
    assert again.complete


def test_only_what_is_new_is_measured(waves, measured):
    sweep(waves, "pcodec", BOUNDS[0])
    found = sweep(waves, ["zfp", "pcodec"], BOUNDS)
    assert measured == ["pcodec", "zfp", "zfp", "pcodec"]
    assert [run.cached for run in found] == [False, False, True, False]


def test_equal_data_are_the_same_data(coast, measured):
    copy = Field(coast.values.copy(), coast.spacing, coast.name, coast.mask.copy(), dict(coast.metadata))
    sweep(coast, "pcodec", BOUNDS[0])
    assert sweep(copy, wb.codecs.get("pcodec"), [wb.Absolute(0.1)])[0].cached


def test_nothing_is_kept_when_not_wanted(waves, measured):
    sweep(waves, "pcodec", BOUNDS[0], cache=False)
    sweep(waves, "pcodec", BOUNDS[0])
    sweep(waves, "pcodec", BOUNDS[0], cache=False)
    assert len(measured) == 3


OTHER_FIELDS = {
    "one bit": lambda f: (np.nextafter(f.values, np.float32(9)), f.spacing, f.name, f.mask, f.metadata),
    "sign of NaN": lambda f: (np.negative(f.values, where=np.isnan(f.values), out=f.values.copy()), f.spacing, f.name,
                              f.mask, f.metadata),
    "type": lambda f: (f.values.astype(np.float64), f.spacing, f.name, f.mask, f.metadata),
    "shape": lambda f: (f.values.reshape(48, 40), f.spacing, f.name, f.mask.reshape(48, 40), f.metadata),
    "spacing": lambda f: (f.values, (1.0, 0.25), f.name, f.mask, f.metadata),
    "name": lambda f: (f.values, f.spacing, None, f.mask, f.metadata),
    "mask": lambda f: (f.values, f.spacing, f.name, ~f.mask, f.metadata),
    "no mask": lambda f: (f.values, f.spacing, f.name, None, f.metadata),
    "metadata": lambda f: (f.values, f.spacing, f.name, f.mask, {"units": "km"}),
}


@pytest.mark.parametrize("change", OTHER_FIELDS.values(), ids=OTHER_FIELDS)
def test_another_field_is_measured_anew(coast, measured, change):
    sweep(coast, "pcodec", BOUNDS[0])
    other = Field(*change(coast))
    assert not sweep(other, "pcodec", BOUNDS[0])[0].cached
    assert len(measured) == 2


OTHER_PARTICLES = {
    "box": lambda p: Particles(p.positions, 2 * p.box[0], p.velocities, p.ids),
    "open": lambda p: Particles(p.positions, None, p.velocities, p.ids),
    "velocities": lambda p: Particles(p.positions, p.box, 2 * p.velocities, p.ids),
    "no ids": lambda p: Particles(p.positions, p.box, p.velocities, None),
    "another order": lambda p: p.select(np.arange(len(p))[::-1]),
}


@pytest.mark.parametrize("change", OTHER_PARTICLES.values(), ids=OTHER_PARTICLES)
def test_other_particles_are_measured_anew(snapshot, measured, change):
    plain = Particles(snapshot.positions, snapshot.box, snapshot.velocities, snapshot.ids)
    sweep(plain, "pcodec", BOUNDS[0])
    assert not sweep(change(plain), "pcodec", BOUNDS[0])[0].cached


@pytest.mark.parametrize("other", [
    {"bounds": wb.Relative(0.1)}, {"bounds": wb.Absolute(0.1000001)}, {"codecs": wb.codecs.get("pcodec", level=4)},
    {"order": "free"}, {"metrics": "full"},
], ids=repr)
def test_another_question_is_asked_anew(snapshot, measured, other):
    sweep(snapshot, "pcodec", wb.Absolute(0.1))
    asked = {"codecs": "pcodec", "bounds": wb.Absolute(0.1), **other}
    assert not sweep(snapshot, **asked)[0].cached


@pytest.mark.parametrize("library", ["lossbench", "zfpy"])
def test_another_version_is_measured_anew(waves, measured, monkeypatch, library):
    sweep(waves, "zfp", BOUNDS[0])
    installed = provenance.version_of   # remembers versions, so `version` below it would not be asked again
    monkeypatch.setattr(provenance, "version_of", lambda name: "99" if name == library else installed(name))
    assert not sweep(waves, "zfp", BOUNDS[0])[0].cached


def test_failures_are_tried_again(waves, measured, tmp_path):
    for where in (None, tmp_path):
        sweep(waves, "lattice", BOUNDS[0], cache=where)
        assert not sweep(waves, "lattice", BOUNDS[0], cache=where)[0].cached
    assert len(measured) == 4
    assert list(tmp_path.iterdir()) == []


def test_the_run_used_least_lately_is_forgotten_first():
    runs = {key: Run({"id": key}, key, wb.Absolute(1)) for key in "abcd"}
    memory = cache.MemoryCache(most=3)
    for key in "abc":
        memory.keep(key, runs[key])
    assert memory.find("a") == runs["a"]
    memory.keep("d", runs["d"])
    assert [memory.find(key) for key in "abcd"] == [runs["a"], None, runs["c"], runs["d"]]


def test_a_folder_keeps_runs_for_another_day(waves, measured, tmp_path):
    folder = tmp_path / "new" / "folder"
    first = sweep(waves, ["pcodec", "zfp"], BOUNDS, cache=folder)
    assert first[0]["psnr"] == math.inf
    cache._MEMORY.clear()
    again = sweep(waves, ["pcodec", "zfp"], BOUNDS, cache=str(folder))
    assert list(again) == [dataclasses.replace(run, cached=True) for run in first]
    assert len(measured) == len(list(folder.iterdir())) == 4
    assert {path.suffix for path in folder.iterdir()} == {".json"}


def test_processes_fill_the_same_cache(waves, measured, tmp_path):
    first = sweep(waves, ["pcodec", "zfp"], BOUNDS, cache=tmp_path, workers=2)
    again = sweep(waves, ["pcodec", "zfp"], BOUNDS, cache=tmp_path)
    assert measured == []
    assert list(again) == [dataclasses.replace(run, cached=True) for run in first]


DAMAGED = [b"", b"{", b"null", b"[]", b"{}", b'{"checksum": "x", "run": {}}', b"\xff\xfe", b'{"checksum": 1, "run": null}']


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_measured_again_and_replaced(waves, measured, tmp_path, content):
    (run,) = sweep(waves, "pcodec", BOUNDS[0], cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert not sweep(waves, "pcodec", BOUNDS[0], cache=tmp_path)[0].cached
    (again,) = sweep(waves, "pcodec", BOUNDS[0], cache=tmp_path)
    assert again.cached
    assert again["nbytes"] == run["nbytes"]
    assert len(measured) == 2


def test_a_file_under_the_name_of_another_is_no_run(waves, measured, tmp_path):
    sweep(waves, "pcodec", BOUNDS, cache=tmp_path)
    one, other = tmp_path.iterdir()
    shutil.copy(one, other)
    assert sorted(run.cached for run in sweep(waves, "pcodec", BOUNDS, cache=tmp_path)) == [False, True]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.data())
def test_no_changed_byte_changes_a_run(tmp_path, data):
    folder = cache.FolderCache(tmp_path)
    run = Run({"id": "pcodec", "level": 8}, "pcodec", wb.Absolute(0.125), figures={"psnr": 61.25, "nbytes": 12345})
    folder.keep("key", run)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    assert folder.find("key") in (None, run)


def test_a_folder_that_cannot_be_is_refused(waves, tmp_path):
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "folder", 7):
        with pytest.raises(wb.WorkbenchError, match="cache must be a writable folder; got"):
            sweep(waves, "pcodec", BOUNDS, cache=wrong)


def test_a_run_that_cannot_be_kept_says_so(waves, tmp_path):
    folder = tmp_path / "cache"
    found = sweep(waves, "pcodec", BOUNDS, cache=folder, progress=lambda *_: shutil.rmtree(folder, ignore_errors=True))
    assert found[0].notes == ()
    assert found[1].notes[0].startswith("not kept in the cache: ")
    assert found[1]["nbytes"] > 0
