"""`workbench convert`: archives anew, files of other formats, and `--profile portable`."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run, particles, wave


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return wb.compress(wave(), wb.Absolute(0.01), "prequantised").save(tmp_path / "old.zip")


def test_an_archive_is_written_anew_with_its_history(run: Run, old: Path, tmp_path: Path) -> None:
    printed = run("convert", old, tmp_path / "new.zip", "--json")
    assert (printed.status, printed.err) == (0, "")
    assert printed.json["certificate"]["history"][0]["archive"] == "old.zip"
    assert printed.json["bytes_before"] == wb.open(old).nbytes
    new = wb.open(tmp_path / "new.zip")
    np.testing.assert_array_equal(new.decompress().values, wb.open(old).decompress().values)
    assert new.verify(wave()).passed
    assert "made from old.zip" in run("info", tmp_path / "new.zip").out


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
def test_a_portable_folder_is_an_archive_and_a_plain_one_is_not(run: Run, old: Path, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    assert run("convert", old, tmp_path / "anew.zarr", "--profile", "portable", "--extra", "0.5").status == 0
    assert run("convert", old, tmp_path / "plain.zarr").status == 0
    assert wb.open(tmp_path / "anew.zarr").certificate["values"].limit.value == pytest.approx(0.015)
    assert abs(zarr.open_group(tmp_path / "anew.zarr", mode="r")["values"][:] - wave().values).max() <= 0.015
    assert not (tmp_path / "plain.zarr" / "values" / "root.json.z").exists()
    (plain,) = (array for _, array in zarr.open_group(tmp_path / "plain.zarr", mode="r").arrays() if array.ndim == 3)
    assert abs(plain[:] - wave().values).max() <= 0.01


def test_members_are_converted(run: Run, tmp_path: Path) -> None:
    members = {"T": wave(), "n": np.arange(20)}
    wb.compress(members, {"T": wb.Absolute(0.01), "*": wb.Exact()}).save(tmp_path / "old.zip")
    found = run("convert", tmp_path / "old.zip", tmp_path / "new.zip", "--codec", "prequantised", "--extra", "1", "--json")
    assert found.status == 0
    assert {name: member.codec.id for name, member in wb.open(tmp_path / "new.zip").items()} == {
        "T": "prequantised", "n": "pcodec",
    }
    assert wb.open(tmp_path / "new.zip")["T"].certificate["values"].limit.value == 0.02


@pytest.mark.parametrize("compression", [None, "none", "zstd", "blosc", "deflate"])
def test_netcdf_is_deflated_unless_another_filter_is_asked_for(run: Run, old: Path, tmp_path: Path, compression) -> None:
    netcdf = pytest.importorskip("netCDF4")
    asked = () if compression is None else ("--compression", compression)
    assert run("convert", old, tmp_path / "x.nc", *asked).status == 0
    with netcdf.Dataset(tmp_path / "x.nc") as file:
        (variable,) = file.variables.values()
        filters = variable.filters()
        assert [name for name in ("zlib", "zstd", "blosc") if filters[name]] == {
            None: ["zlib"], "deflate": ["zlib"], "none": [],
        }.get(compression, [compression])
        assert variable.lossy_compression_maximum_error == 0.01
        np.testing.assert_array_equal(variable[:], wb.open(old).decompress().values)


def test_rounded_mantissas_of_a_portable_archive_are_stated_as_cf_does(run: Run, tmp_path: Path) -> None:
    netcdf, _ = pytest.importorskip("netCDF4"), pytest.importorskip("numcodecs")
    wb.compress(wave(), wb.PointwiseRelative(0.01), profile="portable").save(tmp_path / "x.zip")
    assert run("convert", tmp_path / "x.zip", tmp_path / "x.nc").status == 0
    with netcdf.Dataset(tmp_path / "x.nc") as file:
        (variable,) = (one for one in file.variables.values() if "quantization" in one.ncattrs())
        assert variable.quantization_nsb == 6
        assert file.variables[variable.getncattr("quantization")].algorithm == "bitround"


def swift(path: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    given = particles()
    with h5py.File(path, "w") as file:
        header = {"NumPart_Total": [0, 0, len(given)], "NumFilesPerSnapshot": 1, "Redshift": [0.5], "RunName": "a run"}
        file.create_group("Header").attrs.update({"BoxSize": list(given.box), "MassTable": [0.0, 0.0, 7.5], **header})
        file.create_group("InternalCodeUnits").attrs["Unit length in cgs (U_L)"] = [3e24]
        file.create_group("Cosmology").attrs["Omega_m"] = [0.3]
        group = file.create_group("PartType2")
        group["Coordinates"], group["Velocities"], group["ParticleIDs"] = given.positions, given.velocities, given.ids
        group["Potentials"] = given.positions[:, 0]
        group["Coordinates"].attrs["a-scale exponent"] = [1.0]
    return path


@pytest.mark.parametrize("order", ["keep", "free"])
def test_particles_become_a_snapshot_like_their_source(run: Run, tmp_path: Path, order: str) -> None:
    source = swift(tmp_path / "swift.hdf5")
    options = ("--abs", "0.01", "--order", order, "--columns", "Potentials", "--column-abs", "Potentials=0.1")
    assert run("compress", source, tmp_path / "a.zip", "--particle-type", "2", *options).status == 0
    assert run("convert", tmp_path / "a.zip", tmp_path / "back.hdf5").status == 0
    archive, read = wb.open(tmp_path / "a.zip"), wb.open(tmp_path / "back.hdf5", particle_type=2, columns="all")
    decoded = archive.decompress()
    for name in ("positions", "velocities", "ids"):
        np.testing.assert_array_equal(getattr(read, name), getattr(decoded, name), strict=True)
    np.testing.assert_array_equal(read.columns["Potentials"], decoded.columns["Potentials"])
    assert (read.box, read.masses) == (decoded.box, 7.5)
    wanted = wb.open(source, particle_type=2).metadata
    for name in ("format", "cosmology", "units", "redshift", "particle_type", "particle_counts"):
        assert read.metadata[name] == wanted[name]
    assert read.metadata["header"]["RunName"] == "a run"
    assert read.metadata["positions"]["a-scale exponent"] == 1.0
    found = wb.audit(source, tmp_path / "back.hdf5", quick=True)
    assert found.passed, str(found)


def test_particles_from_elsewhere_get_a_plain_snapshot(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    given = wb.Particles(particles().positions, masses=np.arange(4096.0))
    archive = wb.compress(given, wb.Absolute(0.01))
    archive.save(tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.h5", "--compression", "none").status == 0
    read = wb.open(tmp_path / "b.h5")
    np.testing.assert_array_equal(read.positions, archive.decompress().positions)
    np.testing.assert_array_equal(read.masses, given.masses)
    assert (read.box, read.ids.tolist()) == (None, list(range(4096)))


@pytest.mark.parametrize(("out", "options", "words"), [
    ("x.npy", ("--profile", "portable"), "are for archives"), ("x.zip", ("--region", "0:3"), "are for decoded values"),
    ("x.zip", ("--codec", "sz3"), "without extra errors"), ("x.hdf5", (), ".hdf5 is for particles"),
    ("x.npy", ("--compression", "zstd"), "--compression is for"), ("x.zip", ("--extra", "nan"), "extra must"),
    ("x.zip", ("--profile", "portable", "--codec", "staged"), "chooses the codec"), ("old.zip", (), "old.zip"),
    ("x.txt", (), "(decoded values), or in .zip"),
])
def test_what_cannot_be_written_is_refused(run: Run, old: Path, tmp_path: Path, out: str, options, words: str) -> None:
    before = old.read_bytes()
    printed = run("convert", old, tmp_path / out, *options)
    assert (printed.status, words in printed.err) == (2, True), printed.err
    assert old.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["old.zip"]


def test_a_field_is_compressed_for_readers_of_zarr(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("numcodecs")
    np.save(tmp_path / "x.npy", wave().values)
    printed = run("compress", tmp_path / "x.npy", tmp_path / "x.zip", "--abs", "0.01", "--profile", "portable")
    assert printed.status == 0
    assert "which only lossbench reads" in printed.out
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wb.open(tmp_path / "x.zip").codec.id == "portable"
    options = ("--abs", "0.01", "--profile", "portable", "--codec", "zfp")
    refused = run("compress", tmp_path / "x.npy", tmp_path / "y.zip", *options)
    assert (refused.status, "chooses the codec" in refused.err) == (2, True)
