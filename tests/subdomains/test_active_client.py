"""Chunked sources use the active Dask client without being asked; arrays in memory stay in this process."""

import logging

import numpy as np
import pytest

import workbench as wb
from workbench.distributed.clients import executor_of
from workbench.distributed.executors import InProcess, OnDask

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


def test_a_verb_passes_its_source_on(client, tmp_path, caplog):
    field = wb.distributed.ChunkedField(da.from_array(VALUES, chunks=(3, 8)))
    with client.as_current(), caplog.at_level(logging.INFO, "workbench"):
        archive = wb.distributed.compress(field, wb.Absolute(0.1), "pcodec", out=tmp_path / "a.zarr")
    assert "the active Dask client" in caplog.text
    assert archive.verify(wb.Field(VALUES)).passed


@pytest.mark.parametrize("lazy", [False, True])
def test_a_labelled_array_brings_its_name_spacing_and_units(tmp_path, lazy):
    coordinates = {"y": np.arange(6) * 0.5, "x": np.arange(8) * -2.0}
    array = xr.DataArray(VALUES, coordinates, ("y", "x"), "T", {"units": "K"})
    field = wb.distributed.ChunkedField(array.chunk(3) if lazy else array)
    assert (field.name, field.spacing, field.shape) == ("T", (0.5, 2.0), (6, 8))
    archive = wb.distributed.compress(field, wb.Absolute(0.1), "pcodec", out=tmp_path / "a.zarr")
    assert archive.verify(wb.Field(VALUES)).passed
    assert archive.decompress().metadata["units"] == "K"


def test_a_labelled_array_with_uneven_coordinates_has_no_spacing():
    field = wb.distributed.ChunkedField(xr.DataArray(VALUES, {"y": [0, 1, 2, 3, 4, 9]}, ("y", "x")))
    assert not field.knows_spacing
