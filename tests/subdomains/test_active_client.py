"""Chunked sources use the active Dask client without being asked; arrays in memory stay in this process."""

import logging

import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.run.clients import executor_of
from workbench.run.executors import InProcess, OnDask

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
VALUES = np.arange(48.0).reshape(6, 8)
POSITIONS = np.random.default_rng(0).random((40, 3))


def in_zarr(tmp_path):
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=(6, 8), chunks=(3, 8), dtype="f8")
    array[...] = VALUES
    return wb.distributed.ChunkedField(array)


SOURCES = {
    "dask": (lambda path: da.from_array(POSITIONS, chunks=(20, 3)), OnDask),
    "particles in dask": (lambda path: wb.distributed.from_dask(da.from_array(POSITIONS, chunks=(20, 3))), OnDask),
    "field in dask": (lambda path: wb.distributed.ChunkedField(da.from_array(VALUES, chunks=(3, 8))), OnDask),
    "labelled dask": (lambda path: xr.DataArray(da.from_array(VALUES, chunks=(3, 8))), OnDask),
    "zarr": (in_zarr, OnDask),
    "zarr in memory": (lambda path: zarr.create_array({}, shape=(6, 8), dtype="f8"), InProcess),
    "labelled": (lambda path: xr.DataArray(VALUES), InProcess),
    "field": (lambda path: wb.distributed.ChunkedField(VALUES), InProcess),
    "array": (lambda path: VALUES, InProcess),
    "particles": (lambda path: wb.Particles(POSITIONS), InProcess),
    "path": (lambda path: "positions.npy", InProcess),
    "nothing": (lambda path: None, InProcess),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_the_active_client_runs_what_is_in_chunks(client, tmp_path, caplog, kind):
    make, expected = SOURCES[kind]
    with client.as_current(), caplog.at_level(logging.INFO, "workbench"):
        executor = executor_of(None, None, make(tmp_path))
    assert type(executor) is expected
    assert ("the active Dask client" in caplog.text) == (expected is OnDask)


def test_without_a_client_everything_stays_here(tmp_path):
    assert executor_of(None, None, da.from_array(POSITIONS, chunks=(20, 3))) == InProcess()


def test_an_asynchronous_client_is_not_used_unasked_and_a_line_says_so(client, caplog, monkeypatch):
    monkeypatch.setattr(client, "_asynchronous", True)
    with client.as_current():
        assert executor_of(None, None, da.from_array(POSITIONS, chunks=(20, 3))) == InProcess()
    assert "the active Dask client is asynchronous, and not used: give client=" in caplog.text


def test_a_verb_passes_its_source_on(client, tmp_path, caplog):
    field = wb.distributed.ChunkedField(da.from_array(VALUES, chunks=(3, 8)))
    with client.as_current(), caplog.at_level(logging.INFO, "workbench"):
        archive = wb.compress(field, wb.Absolute(0.1), "pcodec", out=tmp_path / "a.zarr")
    assert "the active Dask client" in caplog.text
    assert archive.verify(wb.Field(VALUES)).passed


@pytest.mark.parametrize("lazy", [False, True])
def test_a_labelled_array_keeps_what_it_carries_as_in_one_process(tmp_path, lazy):
    coordinates = {"y": np.arange(6) * 0.5, "x": ("x", np.arange(8) ** 2.0, {"units": "m"}), "height": 2.0}
    array = xr.DataArray(VALUES, coordinates, ("y", "x"), "T", {"units": "K", "cell_methods": "time: mean"})
    field = wb.distributed.ChunkedField(array.chunk(3) if lazy else array)
    archive = wb.compress(field, wb.Absolute("0.1 K"), "pcodec", out=tmp_path / "a.zarr")
    back = archive.decompress().to_xarray()
    xr.testing.assert_identical(back, array.copy(data=back.values))
    here = wb.compress(array.chunk(3) if lazy else array, wb.Absolute("0.1 K"), "pcodec")
    assert here.decompress().metadata == archive.decompress().metadata


def test_bounds_with_units_hold_for_chunks_too(tmp_path):
    field = wb.distributed.ChunkedField(VALUES, metadata={"units": "km"})
    assert {run.bound for run in wb.sweep(field, ["pcodec"], [wb.Absolute("0.1 m")])} == {wb.Absolute(0.0001)}
    particles = wb.Particles(np.random.default_rng(0).random((500, 3)), metadata={"units": "Mpc/h"})
    source = ParticlesInMemory(particles, even_sizes(500, 3))
    archive = wb.compress(source, wb.Absolute("10 kpc/h"), out=tmp_path / "a.zarr")
    assert archive.certificate["positions"].bound == wb.Absolute(0.01)
    again = wb.compress(tmp_path / "a.zarr", wb.Absolute("20 kpc/h"), out=tmp_path / "b.zarr")
    assert again.decompress().metadata == archive.decompress().metadata == particles.metadata


def test_an_archive_as_source_hands_on_its_metadata(tmp_path):
    first = wb.compress(wb.Field(VALUES, metadata={"units": "K"}), wb.Absolute(0.1), "pcodec")
    again = wb.compress(wb.distributed.ChunkedField.of(first), wb.Absolute("0.2 K"), out=tmp_path / "a.zarr")
    assert again.decompress().metadata["units"] == "K"
