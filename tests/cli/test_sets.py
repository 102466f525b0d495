"""Snapshots of many files, and HDF5 files of any layout, in the shell."""

import h5py
import numpy as np
import pytest

from readers import written
from readers.test_hdf5 import gadget
from workbench.data.readers import open_file

N = 30
POINTS = written.points(N)


@pytest.fixture
def snapshot(tmp_path):
    """The folder of a snapshot in three files."""
    folder = tmp_path / "snapdir_099"
    folder.mkdir()
    for part, rows in enumerate((slice(0, 12), slice(12, 12), slice(12, N))):
        gadget(folder / f"snap_099.{part}.hdf5", POINTS[rows], number=part, files=3, totals=[0, N, 0, 0, 0, 0])
    return folder


@pytest.fixture
def catalogue(tmp_path):
    """Columns of a catalogue, one for each axis."""
    path = tmp_path / "cat.h5"
    with h5py.File(path, "w") as file:
        for axis, name in enumerate("xyz"):
            file[name], file[f"v{name}"] = POINTS[:, axis], -POINTS[:, axis]
        file["galaxy/id"] = np.arange(N)
    return path


@pytest.mark.parametrize("given", ["snap_099.*.hdf5", "snap_099.0.hdf5", "."])
def test_a_set_is_one_input(run, snapshot, given):
    found = run("info", snapshot / given, "--json")
    assert (found.json["count"], found.json["metadata.files"]) == (N, 3)
    out = snapshot.parent / "out.zip"
    assert run("compress", snapshot / given, out, "--abs", 0.01).status == 0
    assert run("verify", out, snapshot / given).status == 0
    np.testing.assert_allclose(open_file(out).decompress().positions, POINTS, atol=0.01)


def test_a_file_that_is_missing(run, snapshot):
    (snapshot / "snap_099.1.hdf5").unlink()
    refused = run("info", snapshot / "snap_099.*.hdf5")
    assert (refused.status, "snap_099.1.hdf5 is missing between" in refused.err) == (2, True)


def test_named_data_sets(run, catalogue):
    names = ["--positions", "x,y,z", "--velocities", "vx,vy,vz", "--ids", "/galaxy/id", "--box", 10]
    found = run("info", catalogue, *names, "--json").json
    assert (found["kind"], found["count"], found["box"]) == ("particles", N, [10, 10, 10])
    assert (found["velocities"], found["ids"]) == (True, True)
    out = catalogue.with_name("out.zip")
    assert run("compress", catalogue, out, "--abs", 0.01, *names, "--velocities-abs", 0.1).status == 0
    assert run("verify", out, catalogue, *names).status == 0
    archive = open_file(out).decompress()
    assert (archive.ids.tolist(), archive.box) == (list(range(N)), (10.0, 10.0, 10.0))


def test_errors_name_options(run, catalogue):
    refused = run("info", catalogue, "--positions", "u")
    assert (refused.status, "those that can be columns of particles are galaxy/id 30, vx 30" in refused.err) == (2, True)
    out = catalogue.with_name("a.zip")
    refused = run("compress", catalogue, out, "--abs", 1, "--positions", "x,y,z", "--velocities-abs", 1)
    assert (refused.status, "--velocities-abs bounds the velocities" in refused.err) == (2, True)
    refused = run("info", catalogue, "--particle-type", "dark")
    assert (refused.status, "expected a number from 0 to 5, or one of gas, dark_matter" in refused.err) == (2, True)
