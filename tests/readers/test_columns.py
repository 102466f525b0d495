"""Further columns of files: read where they are named, refused where they are not there, and no longer left out."""

import h5py
import numpy as np
import pytest

import workbench as wb
from readers import written
from readers.test_abacus import packed, write
from workbench.cli import main
from workbench.data.readers import left_out
from workbench.errors import WorkbenchError

RANDOM = np.random.default_rng(0)
GAS, DARK = 7, 9


def gas_columns(count, seed=0):
    random = np.random.default_rng(seed)
    return {
        "InternalEnergy": random.random(count).astype("f4"), "MagneticField": random.normal(size=(count, 3)),
        "StarForming": random.random(count) < 0.5, "Flags": random.integers(0, 9, count).astype("u1"),
        "Potential": random.normal(size=count).astype(">f4"),
    }


def hdf5_snapshot(folder, files=1):
    """Snapshots of gas and dark matter, in files; returns their path and the columns of both."""
    parts = []
    for number in range(files):
        name = "snap.hdf5" if files == 1 else f"snap.{number}.hdf5"
        gas, dark = gas_columns(GAS, number), {"Potential": np.arange(DARK, dtype="f4") + number}
        with h5py.File(folder / name, "w") as file:
            total = np.array([GAS * files, DARK * files], np.uint32)
            header = {"BoxSize": written.BOX, "NumFilesPerSnapshot": files, "NumPart_Total": total}
            file.create_group("Header").attrs.update(header)
            for kind, count, columns in ((0, GAS, gas), (1, DARK, dark)):
                file[f"PartType{kind}/Coordinates"] = written.points(count, seed=number)
                file[f"PartType{kind}/Masses"] = np.ones(count)
                file[f"PartType{kind}/Name"] = np.array([b"a"] * count)
                for column, values in columns.items():
                    file[f"PartType{kind}/{column}"] = values
        parts.append((gas, dark))
    joined = [{name: np.concatenate([part[kind][name] for part in parts]) for name in parts[0][kind]} for kind in (0, 1)]
    return folder / ("snap.hdf5" if files == 1 else "snap.0.hdf5"), *joined


def assert_columns(found, expected):
    """The columns with the values and native types of those in the file."""
    assert list(found.columns) == list(expected)
    for name, values in expected.items():
        assert found.columns[name].dtype == values.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found.columns[name], values)


@pytest.mark.parametrize("files", [1, 3])
def test_columns_of_hdf5_snapshots(tmp_path, files):
    path, gas, dark = hdf5_snapshot(tmp_path, files)
    names = ["Potential", "MagneticField", "StarForming"]
    found = wb.open(path, particle_type=0, columns=names)
    assert_columns(found, {name: gas[name] for name in names})
    assert left_out(found)[-1] == "columns Flags, InternalEnergy, Name"
    assert_columns(wb.open(path, columns="Potential"), dark)
    every = wb.open(path, particle_type="gas", columns="all")
    assert_columns(every, {name: gas[name] for name in sorted(gas)})
    assert left_out(every)[-1] == "column Name"
    both = wb.open(path, particle_type="all", columns="all")
    expected = np.concatenate([gas["Potential"], dark["Potential"]])
    assert_columns(both, {"Potential": expected.astype("f4")})
    assert wb.open(path).columns == {}
    chunked = wb.open_chunked(path, particle_type=0, columns=names, chunk=4)
    assert chunked.columns == ("masses", *names)
    assert_columns(chunked.joined(), {name: gas[name] for name in names})
    assert list(chunked.chunk(1, ["Potential"]).columns) == ["Potential"]


def test_columns_that_are_not_there_are_refused_with_those_that_are(tmp_path):
    path, _, _ = hdf5_snapshot(tmp_path)
    with pytest.raises(WorkbenchError, match=r"no column 'Potental' for all .* some of Flags, InternalEnergy"):
        wb.open(path, particle_type=0, columns=["Potental"])
    with pytest.raises(WorkbenchError, match="no column 'Flags' for all of its particles"):
        wb.open(path, particle_type="all", columns=["Flags"])
    with pytest.raises(WorkbenchError, match=r"Masses in snap.hdf5 is read without columns"):
        wb.open(path, columns=["Masses"])
    with pytest.raises(WorkbenchError, match="columns must be names of columns"):
        wb.open(path, columns=3)
    np.save(tmp_path / "x.npy", written.points(3))
    with pytest.raises(WorkbenchError, match=r"'columns' makes no sense for x.npy"):
        wb.open(tmp_path / "x.npy", columns="all")


def test_columns_of_chunks_go_into_archives(tmp_path):
    path, gas, _ = hdf5_snapshot(tmp_path, 3)
    source = wb.open_chunked(path, particle_type=0, columns="all")
    archive = wb.compress(source, wb.Absolute(0.01), order="free", columns={"Potential": wb.Relative(1e-3)},
                          out=tmp_path / "x.zip")
    assert archive.verify(source).passed
    place = archive.permutation(source.joined())
    decoded = archive.decompress()
    np.testing.assert_array_equal(decoded.columns["StarForming"], gas["StarForming"][place])
    assert list(decoded.columns) == sorted(gas)


def test_labelled_blocks_of_gadget(tmp_path):
    counts = (3, 4, 0, 0, 2, 0)
    points, energy, field = written.points(9), RANDOM.random(3).astype("f4"), RANDOM.normal(size=(3, 3)).astype("f4")
    potential, age = RANDOM.normal(size=9), RANDOM.random(2).astype("f4")
    content = written.gadget(points, points, np.arange(9, dtype="u4"), counts, version=2)
    blocks = {b"MASS": np.ones(3, "f4"), b"U   ": energy, b"POT ": potential, b"BFLD": field, b"AGE ": age, b"WHAT": age}
    for label, values in blocks.items():
        content += written.record(label + (values.nbytes + 8).to_bytes(4, "little")) + written.record(values.tobytes())
    (tmp_path / "snap").write_bytes(content)
    gas = wb.open(tmp_path / "snap", particle_type=0, columns="all")
    assert_columns(gas, {"U": energy, "BFLD": field, "POT": potential[:3]})
    dark = wb.open(tmp_path / "snap", columns=["POT"])
    assert_columns(dark, {"POT": potential[3:7]})
    assert left_out(dark)[-1] == "blocks AGE, BFLD, U, WHAT"
    assert_columns(wb.open(tmp_path / "snap", particle_type="stars", columns="AGE"), {"AGE": age})
    with pytest.raises(WorkbenchError, match=r"no column 'U' .* some of POT"):
        wb.open(tmp_path / "snap", columns=["U"])
    with pytest.raises(WorkbenchError, match="no column 'WHAT'"):
        wb.open(tmp_path / "snap", columns=["WHAT"])
    (tmp_path / "one").write_bytes(written.gadget(points, points, np.arange(9, dtype="u4"), counts))
    with pytest.raises(WorkbenchError, match=r"no column 'U' .*; it has no further ones"):
        wb.open(tmp_path / "one", columns=["U"])


@pytest.mark.parametrize("order", ["<", ">"])
def test_variables_of_genericio(tmp_path, order):
    ranks = [{**written.hacc_columns(count, seed=count), "mask": np.arange(count, dtype=np.uint16)} for count in (7, 0, 12)]
    (tmp_path / "m").write_bytes(written.genericio(ranks, order=order))
    phi, mask = (np.concatenate([rank[name] for rank in ranks]) for name in ("phi", "mask"))
    found = wb.open(tmp_path / "m", columns=["mask", "phi"])
    assert_columns(found, {"mask": mask, "phi": phi})
    assert left_out(found) == []
    assert left_out(wb.open(tmp_path / "m", columns="phi")) == ["variable mask"]
    assert_columns(wb.open_chunked(tmp_path / "m", columns="all", chunk=8).joined(), {"phi": phi, "mask": mask})
    for name, message in (("vx", "is read without"), ("rho", "no column 'rho' .* some of mask, phi")):
        with pytest.raises(WorkbenchError, match=message):
            wb.open(tmp_path / "m", columns=[name])


def test_columns_of_abacus(tmp_path):
    _, _, rvint = packed(300)
    density, tags = RANDOM.random(300).astype("f4"), RANDOM.integers(0, 9, (300, 2))
    path = write(tmp_path / "halo_rv_A_000.asdf", {"rvint": rvint, "density": density, "tags": tags, "n": np.arange(4)})
    found = wb.open(path, columns=["tags", "density"])
    assert_columns(found, {"tags": tags, "density": density})
    assert left_out(found) == ["column n"]
    assert_columns(wb.open_chunked(path, columns="density", chunk=100).joined(), {"density": density})
    with pytest.raises(WorkbenchError, match=r"no column 'n' .* some of density, tags"):
        wb.open(path, columns=["n"])


def named_file(folder, kind):
    """Particles in data sets of HDF5 or Zarr."""
    columns = {"rho": RANDOM.random(5), "gas/T": RANDOM.random(5).astype("f4"), "B": RANDOM.normal(size=(5, 3))}
    columns["edges"] = np.ones(6)
    points = written.points(5)
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        group = zarr.open_group(folder / "x.zarr", mode="w")
        for name, values in {"p": points, **columns}.items():
            group.create_array(name, data=values)
        return folder / "x.zarr", columns
    with h5py.File(folder / "x.h5", "w") as file:
        for name, values in {"p": points, **columns}.items():
            file[name] = values
    return folder / "x.h5", columns


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_data_sets_that_the_caller_names(tmp_path, kind):
    path, there = named_file(tmp_path, kind)
    assert_columns(wb.open(path, positions="p", columns=["rho", "gas/T"]), {"rho": there["rho"], "T": there["gas/T"]})
    assert_columns(wb.open(path, positions="p", columns={"Density": "/rho"}), {"Density": there["rho"]})
    both = wb.open(path, positions="p", columns={"both": ["rho", "gas/T"]})
    assert_columns(both, {"both": np.stack([there["rho"], there["gas/T"]], axis=1)})
    every = wb.open(path, positions="p", columns="all")
    assert_columns(every, {"B": there["B"], "T": there["gas/T"], "rho": there["rho"]})
    chunked = wb.open_chunked(path, positions="p", columns={"Density": "rho"}, chunk=2)
    assert_columns(chunked.joined(), {"Density": there["rho"]})
    with pytest.raises(WorkbenchError, match="has no data set 'sigma'; those that can be columns"):
        wb.open(path, positions="p", columns=["sigma"])
    with pytest.raises(WorkbenchError, match=r"the column edges must be numbers of shape \(5,\) or \(5, k\)"):
        wb.open(path, positions="p", columns=["edges"])
    with pytest.raises(WorkbenchError, match="particles have ids of their own"):
        wb.open(path, positions="p", columns={"ids": "rho"})


def test_arrays_of_npz_files(tmp_path):
    charges = RANDOM.normal(size=4)
    np.savez(tmp_path / "a.npz", positions=written.points(4), charges=charges, ids=np.arange(4), note=np.array(["a"] * 4))
    found = wb.open(tmp_path / "a.npz", columns="all")
    assert_columns(found, {"charges": charges})
    assert left_out(found) == ["array note"]
    with pytest.raises(WorkbenchError, match=r"no column 'note' .* some of charges"):
        wb.open(tmp_path / "a.npz", columns=["note"])


def test_real_hacc_particles_with_all_their_variables(shared_data):
    path = shared_data / "hacc_nyx_toy" / "m000.full.mpicosmo.50"
    if not path.exists():
        pytest.skip("the file of HACC is not here")
    plain = wb.open(path)
    found = wb.open(path, columns="all")
    assert {"phi", "mask"} <= found.columns.keys()
    assert found.columns["mask"].dtype == np.uint16
    assert not any("variable" in entry for entry in left_out(found))
    assert np.array_equal(found.positions, plain.positions)
    archive = wb.compress(found, wb.Absolute(0.01), order="free", columns={"phi": wb.Relative(1e-3)})
    assert archive.verify(found).passed


def test_the_shell_reads_and_bounds_columns(tmp_path, capsys):
    path, _, _ = hdf5_snapshot(tmp_path)
    out = tmp_path / "x.zip"
    command = ["compress", str(path), str(out), "--abs", "0.01", "--particle-type", "gas", "--columns", "Potential,Flags"]
    assert main([*command, "--column-rel", "Pot*=1e-3", "--quiet"]) == 0
    archive = wb.open(out)
    assert archive.certificate["Potential"].bound == wb.Relative(1e-3)
    assert archive.certificate["Flags"].bound is None
    capsys.readouterr()
    assert main([*command, "--overwrite", "--column-abs", "Potental=1", "--quiet"]) != 0
    assert "did you mean 'Potential'" in capsys.readouterr().err
    assert main([*command, "--overwrite", "--column-abs", "Flags=1", "--column-rel", "Flags=1", "--quiet"]) != 0
    assert "a column must have one bound" in capsys.readouterr().err
