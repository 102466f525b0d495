"""What a file holds and the data do not is listed, in the metadata and in the shell."""

import json

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

import workbench as wb
from readers import written
from workbench.cli import main
from workbench.data.readers import left_out


def hdf5_snapshot(folder):
    with h5py.File(folder / "a.hdf5", "w") as file:
        header = {"BoxSize": written.BOX, "NumFilesPerSnapshot": 1, "NumPart_Total": np.array([2, 4, 0], np.uint32)}
        file.create_group("Header").attrs.update(header)
        for kind, count in ((0, 2), (1, 4)):
            file[f"PartType{kind}/Coordinates"] = written.points(count)
            file[f"PartType{kind}/Masses"] = np.ones(count)
            file[f"PartType{kind}/Metallicity"] = np.ones(count)
    return folder / "a.hdf5", ["particle type 0: 2 particles", "column Metallicity"]


def gadget(folder):
    points = written.points(6)
    content = written.gadget(points, points, np.arange(6), (2, 4, 0, 0, 0, 0)) + written.record(np.ones(6, "f4").tobytes())
    (folder / "snap").write_bytes(content)
    return folder / "snap", ["particle type 0: 2 particles", "block 5 (without a name)"]


def genericio(folder):
    columns = written.hacc_columns(5) | {"phi": np.zeros(5, np.float32)}
    (folder / "m").write_bytes(written.genericio([columns]))
    return folder / "m", ["variables mask, phi"]


def fast_food(folder):
    (folder / "a.ff").write_bytes(written.fast_food(written.points(5)))
    return folder / "a.ff", ["1 columns after x, y and z, such as weights"]


def trr(folder):
    frames = [written.points(6, seed=seed) for seed in range(3)]
    (folder / "a.trr").write_bytes(written.trr(frames, box=np.diag([written.BOX] * 3)))
    return folder / "a.trr", ["2 of 3 frames (this is frame 0)"]


def trr_cut_short(folder):
    path, _ = trr(folder)
    path.write_bytes(path.read_bytes()[:-50])
    return path, ["1 of 2 frames (this is frame 0)", "the data after frame 1, which cannot be read:"]


def xyz(folder):
    (folder / "a.xyz").write_text(written.xyz([written.points(4), written.points(4)]))
    return folder / "a.xyz", ["all frames but frame 0", "the columns other than positions, such as the names of atoms"]


def lammps(folder):
    (folder / "a.dump").write_text(written.lammps(written.points(4)))
    return folder / "a.dump", ["column type"]


def npz(folder):
    np.savez(folder / "a.npz", positions=written.points(4), charges=np.ones(4), redshift=0.5)
    return folder / "a.npz", ["array charges"]


def netcdf(folder):
    with netCDF4.Dataset(folder / "a.nc", "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        file.createVariable("x", "f8", ("x",))[:] = 0
        file.createVariable("T", "f4", ("y", "x"))[:] = 0
    return folder / "a.nc", ["variable x"]


def zarr_group(folder):
    group = zarr.open_group(folder / "a.zarr", mode="w")
    for name, shape in (("T", (2, 3)), ("x", (3,))):
        group.create_array(name, data=np.zeros(shape))
    return folder / "a.zarr", ["array x"]


def hdf5_grid(folder):
    with h5py.File(folder / "a.h5", "w") as file:
        file["native/rho"] = np.zeros((2, 2, 2))
        file["native/x"] = np.zeros(2)
    return folder / "a.h5", ["data set native/x"]


FILES = [
    hdf5_snapshot, gadget, genericio, fast_food, trr, trr_cut_short, xyz, lammps, npz, netcdf, zarr_group, hdf5_grid,
]


@pytest.mark.parametrize("make", FILES)
def test_what_is_left_out_is_listed(tmp_path, make):
    path, expected = make(tmp_path)
    found = left_out(wb.open(path))
    assert len(found) == len(expected)
    assert all(got.startswith(wanted) for got, wanted in zip(found, expected, strict=True)), found


@pytest.mark.parametrize("make", [hdf5_snapshot, netcdf])
def test_info_shows_it(tmp_path, capsys, make):
    path, expected = make(tmp_path)
    assert main(["info", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["left_out"] == expected
    assert "metadata.left_out" not in told
    assert main(["info", str(path)]) == 0
    assert "left out" in capsys.readouterr().out


def test_the_number_of_frames_of_other_trajectories(tmp_path):
    from MDAnalysis.lib.formats.libmdaxdr import XTCFile

    with XTCFile(str(tmp_path / "a.xtc"), "w") as file:
        for frame in range(4):
            file.write(written.points(12), np.diag([written.BOX] * 3).astype("f4"), frame, float(frame), 1000.0)
    before = sorted(tmp_path.iterdir())
    particles = wb.open(tmp_path / "a.xtc", frame=2)
    assert particles.metadata["frames"] == 4
    assert left_out(particles) == ["3 of 4 frames (this is frame 2)"]
    assert sorted(tmp_path.iterdir()) == before   # no index was left beside the data


def test_a_file_that_is_read_whole_leaves_nothing_out(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 5)))
    assert left_out(wb.open(tmp_path / "a.npy")) == []


def test_only_the_arrays_that_are_wanted_are_loaded(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", big=np.zeros((50, 50)), small=np.ones(3))
    read = []
    original = np.lib.npyio.NpzFile.__getitem__
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", lambda self, key: read.append(key) or original(self, key))
    assert wb.open(tmp_path / "a.npz", name="small").shape == (3,)
    assert read == ["small"]


def test_the_header_of_genericio_is_parsed_once(tmp_path, monkeypatch):
    from workbench.data.readers import genericio as reader

    ranks = [written.hacc_columns(2, seed=seed) for seed in range(40)]
    (tmp_path / "m").write_bytes(written.genericio(ranks))
    parsed = []
    original = reader.Header._variable
    monkeypatch.setattr(reader.Header, "_variable", lambda self, *place: parsed.append(place) or original(self, *place))
    wb.open(tmp_path / "m")
    assert len(parsed) == len(ranks[0])


def test_info_describes_all_frames_of_a_trajectory(tmp_path, capsys):
    path, (_, cut) = trr_cut_short(tmp_path)
    assert main(["info", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["frames"] == 2
    assert len(told["left_out"]) == 1
    assert told["left_out"][0].startswith(cut)
