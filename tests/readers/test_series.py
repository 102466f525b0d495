"""Snapshots of a simulation as a sequence: which files are one snapshot, and in which order."""

import pickle
import shutil

import h5py
import numpy as np
import pytest

import workbench as wb
from readers import written
from readers.test_hdf5 import gadget
from workbench import WorkbenchError

POINTS = written.points(12)


def swift(folder, numbers=(0, 2, 10)):
    """Snapshots of one file each, written out at some times only."""
    for number in numbers:
        gadget(folder / f"snap_{number}.hdf5", POINTS[: number + 1], Redshift=20.0 - number, Time=1 / (21 - number))


def tng(folder):
    """Snapshots of three files each, in a folder of their own."""
    for number in (98, 99):
        inside = folder / f"snapdir_{number:03d}"
        inside.mkdir()
        for part, rows in enumerate((slice(0, 5), slice(5, 5), slice(5, 12))):
            path = inside / f"snap_{number:03d}.{part}.hdf5"
            gadget(path, POINTS[rows], number=part, files=3, totals=[0, 12, 0, 0, 0, 0], Redshift=99.0 - number)


def test_the_months_of_a_field(tmp_path):
    netcdf4 = pytest.importorskip("netCDF4")
    for month in (1, 2, 10):
        with netcdf4.Dataset(tmp_path / f"sst_{month}.nc", "w") as file:
            file.createDimension("x", 4)
            for name in ("sst", "ice"):
                file.createVariable(name, "f4", ("x",))[:] = month
    series = wb.open_series(f"{tmp_path}/*.nc", name="sst")
    assert [field.values[0] for field in series] == [1, 2, 10]
    assert series.names == ("sst_1.nc", "sst_2.nc", "sst_10.nc")
    with pytest.raises(WorkbenchError, match=r"'box' makes no sense for sst_1\.nc, which is read as NetCDF field"):
        wb.open_series(f"{tmp_path}/*.nc", name="sst", box=1.0)[0]


def test_single_files(tmp_path):
    swift(tmp_path)
    for given in (f"{tmp_path}/snap_*.hdf5", tmp_path):
        series = wb.open_series(given, chunk=4)
        assert series.names == ("snap_0.hdf5", "snap_2.hdf5", "snap_10.hdf5")
        assert [len(one) for one in series] == [1, 3, 11]
        assert series[-1].sizes == (3, 4, 4)
        assert series.redshifts == (20.0, 18.0, 10.0)
        assert series.times == (1 / 21, 1 / 19, 1 / 11)
        assert repr(series[1:]) == "SnapshotSeries(2 snapshots: snap_2.hdf5 to snap_10.hdf5)"
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(series))[1].joined().positions, POINTS[:3])


def test_sets_of_files(tmp_path):
    tng(tmp_path)
    patterns = (f"{tmp_path}/snapdir_*", f"{tmp_path}/snapdir_*/*.hdf5", tmp_path)
    for given in patterns:
        series = wb.open_series(given)
        assert [len(one) for one in series] == [12, 12]
        assert series.redshifts == (1.0, 0.0)
        np.testing.assert_array_equal(series[0].joined().positions, POINTS)


def test_sets_in_one_folder(tmp_path):
    tng(tmp_path)
    flat = tmp_path / "flat"
    flat.mkdir()
    for path in sorted(tmp_path.glob("snapdir_*/*.hdf5")):
        shutil.move(path, flat)
    assert wb.open_series(flat).names == ("snap_098.0.hdf5", "snap_099.0.hdf5")
    assert wb.open_series(f"{flat}/*")[1].metadata["files"] == 3


def test_partitions_of_generic_io(tmp_path):
    for step in (5, 50, 100):
        for part in range(2):
            content = written.genericio([written.hacc_columns(step + part)])
            (tmp_path / f"m000.full.mpicosmo.{step}#{part}").write_bytes(content)
    ranks = {"$rank": np.arange(2, dtype=np.int32), "$partition": np.arange(2, dtype=np.int32)}
    (tmp_path / "m000.full.mpicosmo.50").write_bytes(written.genericio([ranks]))
    series = wb.open_series(f"{tmp_path}/m000.full.mpicosmo.*")
    assert [len(one) for one in series] == [11, 101, 201]


def test_a_file_that_refers_to_its_parts(tmp_path):
    """SWIFT writes such a file beside the parts; the snapshot is there once."""
    for part, rows in enumerate((slice(0, 5), slice(5, 12))):
        gadget(tmp_path / f"snap_0004.{part}.hdf5", POINTS[rows], number=part, files=2, totals=[0, 12, 0, 0, 0, 0])
    layout = h5py.VirtualLayout((12, 3), "f4")
    for part, rows in enumerate((slice(0, 5), slice(5, 12))):
        source = h5py.VirtualSource(f"snap_0004.{part}.hdf5", "PartType1/Coordinates", (rows.stop - rows.start, 3), "f4")
        layout[rows] = source
    path = gadget(tmp_path / "snap_0004.hdf5", np.empty((0, 3)))
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset("PartType1/Coordinates", layout)
    series = wb.open_series(tmp_path, chunk=5)
    assert series.names == ("snap_0004.hdf5",)
    np.testing.assert_array_equal(series[0].joined().positions, POINTS)
    with pytest.raises(WorkbenchError, match=r"snap_0004\.hdf5 says that it is a whole snapshot"):
        wb.open_chunked(tmp_path)


def test_a_list_is_a_snapshot_for_each_entry(tmp_path):
    tng(tmp_path)
    swift(tmp_path, (3,))
    entries = [tmp_path / "snap_3.hdf5", f"{tmp_path}/snapdir_098/*", sorted((tmp_path / "snapdir_099").iterdir())]
    assert [len(one) for one in wb.open_series(entries)] == [4, 12, 12]


def test_options_go_to_each_snapshot(tmp_path):
    for number in range(2):
        np.save(tmp_path / f"step_{number}.npy", POINTS)
    assert {one.box for one in wb.open_series(tmp_path, box=written.BOX)} == {(written.BOX,) * 3}
    with pytest.raises(WorkbenchError, match="'particle_type' makes no sense"):
        wb.open_series(tmp_path, particle_type=1)[0]


def test_what_is_no_series(tmp_path):
    with pytest.raises(WorkbenchError, match="holds no snapshots"):
        wb.open_series(tmp_path)
    with pytest.raises(WorkbenchError, match=r"there is no .*snap: check"):
        wb.open_series(tmp_path / "snap")
    with pytest.raises(WorkbenchError, match="no file matches the pattern"):
        wb.open_series(f"{tmp_path}/*.hdf5")
    swift(tmp_path)
    with pytest.raises(IndexError):
        wb.open_series(tmp_path)[3]
