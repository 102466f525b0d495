"""`workbench decompress` of datasets, and into NetCDF and Zarr: what is in the files, and that no bound is broken."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from archive.collection.samples import sample
from cli.conftest import Run, names, particles
from cli.datasets import PACKED, dataset, with_groups, without_losses, written
from workbench.archive.collection import dataset_files

RULES = {"T": wb.Absolute(0.01), "P": wb.Relative(1e-3), "Q": wb.PointwiseRelative(1e-3), "*": wb.Exact()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    wb.compress(written(folder / "ds.nc"), RULES, out=folder / "a.zip")
    return folder


@pytest.fixture
def archive(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "a.zip"


def require_within_bounds(found: xr.Dataset, given: xr.Dataset) -> None:
    assert abs(found["T"].astype("f8") - given["T"]).max() <= 0.01
    assert abs(found["P"] - given["P"]).max() <= 1e-3 * (given["P"].max() - given["P"].min())
    assert (abs(found["Q"].astype("f8") - given["Q"]) <= 1e-3 * given["Q"].astype("f8")).all()


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_dataset_comes_back_as_a_file(run: Run, archive: Path, tmp_path: Path, suffix: str) -> None:
    done = run("decompress", archive, tmp_path / f"back{suffix}", "--json")
    assert done.status == 0
    given = xr.open_dataset(tmp_path / "ds.nc")
    with xr.open_dataset(tmp_path / f"back{suffix}") as found:
        require_within_bounds(found.load(), dataset())
        assert found["T"].attrs["lossy_compression_maximum_error"] == 0.01
        found = without_losses(found)
        assert set(found.variables) == set(given.variables)
        assert (found.attrs, set(found.coords)) == (given.attrs, set(given.coords))
        for name in found.variables:
            assert found[name].attrs == given[name].attrs
            assert (found[name].dims, found[name].dtype) == (given[name].dims, given[name].dtype)
        for name in ("flag", "station", "time", "lat", "lon"):
            np.testing.assert_array_equal(found[name].values, given[name].values)
    assert names(tmp_path) == {"ds.nc", "a.zip", f"back{suffix}"}
    assert done.json["members"] == list(wb.open(archive))
    assert done.json["bytes"] > 0


def test_encodings_are_those_of_the_source(run: Run, archive: Path, tmp_path: Path) -> None:
    run("decompress", archive, tmp_path / "back.nc")
    with xr.open_dataset(tmp_path / "back.nc") as found, xr.open_dataset(tmp_path / "ds.nc") as given:
        for key in ("zlib", "complevel", "chunksizes"):
            assert found["T"].encoding[key] == given["T"].encoding[key]
        assert given["time"].encoding["units"].removesuffix(" 00:00:00") == found["time"].encoding["units"]


def test_dimensions_without_a_limit_stay_so(run: Run, tmp_path: Path) -> None:
    dataset().to_netcdf(tmp_path / "ds.nc", unlimited_dims=["time"])
    wb.compress(tmp_path / "ds.nc", {"*": wb.Relative(1e-3)}, out=tmp_path / "a.zip")
    for region, expected in ((), {"time"}), (("--region", "time=0:3"), {"time"}), (("--region", "lat=0:3"), {"time"}):
        assert run("decompress", tmp_path / "a.zip", tmp_path / "back.nc", *region, "--overwrite").status == 0
        with xr.open_dataset(tmp_path / "back.nc") as found:
            assert found.encoding["unlimited_dims"] == expected
    given = wb.compress(xr.open_dataset(tmp_path / "ds.nc"), {"*": wb.Exact()})
    given.save(tmp_path / "b.zip")
    assert run("decompress", tmp_path / "b.zip", tmp_path / "flag.nc", "--member", "flag").status == 0


def test_packing_that_would_break_a_bound_is_left_out(run: Run, archive: Path, tmp_path: Path) -> None:
    done = run("decompress", archive, tmp_path / "back.nc", "-q")
    assert done.err.startswith("note: P is written as float64 and not as in the source (int16 with scale_factor and")
    with xr.open_dataset(tmp_path / "back.nc") as found:
        assert "scale_factor" not in found["P"].encoding
    assert run("verify", archive, tmp_path / "ds.nc").status == 0


@pytest.mark.parametrize(("bound", "packed"), [(wb.Exact(), True), (wb.Absolute(0.9), False), (wb.Absolute(2.0), None)])
def test_packing_that_keeps_the_bound_stays(run: Run, tmp_path: Path, bound: wb.Absolute, packed: bool | None) -> None:
    given = dataset()[["P"]]
    given.to_netcdf(tmp_path / "ds.nc", encoding={"P": PACKED})
    wb.compress(tmp_path / "ds.nc", {"P": bound}, out=tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "back.nc").status == 0
    with xr.open_dataset(tmp_path / "back.nc") as found:
        assert packed in (None, "scale_factor" in found["P"].encoding)
        assert abs(found["P"] - given["P"]).max() <= bound.eb


def test_a_region_is_that_of_xarray(run: Run, archive: Path, tmp_path: Path) -> None:
    assert run("decompress", archive, tmp_path / "part.nc", "--region", "time=2:5,lat=3:").status == 0
    whole = wb.open(archive).to_xarray().isel(time=slice(2, 5), lat=slice(3, None))
    with xr.open_dataset(tmp_path / "part.nc") as part:
        xr.testing.assert_identical(without_losses(part.load()), whole.load())
    members = run("decompress", archive, tmp_path / "flags.nc", "--region", "time=2:5", "--json").json["members"]
    assert members == list(wb.open(archive))


def test_a_member_and_a_region_of_it(run: Run, archive: Path, tmp_path: Path) -> None:
    whole = wb.open(archive)["T"].decompress().values
    for number, region in enumerate(("2:5,:,3:", "time=2:5,lon=3:")):
        out = tmp_path / f"{number}.npy"
        assert run("decompress", archive, out, "--member", "T", "--region", region).status == 0
        np.testing.assert_array_equal(np.load(out), whole[2:5, :, 3:], strict=True)


def test_a_member_has_its_coordinates_in_netcdf(run: Run, archive: Path, tmp_path: Path) -> None:
    whole = wb.open(archive).to_xarray()["T"]
    for number, region in enumerate(((), ("--region", "2:5,:,3:"), ("--region", "time=2:5,lon=3:"))):
        assert run("decompress", archive, tmp_path / f"{number}.nc", "--member", "T", *region).status == 0
        with xr.open_dataset(tmp_path / f"{number}.nc") as found:
            expected = whole.isel(time=slice(2, 5), lon=slice(3, None)) if region else whole
            xr.testing.assert_identical(without_losses(found.load())["T"], expected.load())
    refused = run("decompress", archive, tmp_path / "b.nc", "--member", "T", "--region", "0:3")
    assert (refused.status, "region must have 3 parts" in refused.err) == (2, True)
    wb.compress(with_groups(tmp_path / "groups.nc"), {"*": wb.Relative(1e-3)}, out=tmp_path / "groups.zip")
    found = run("decompress", tmp_path / "groups.zip", tmp_path / "P.nc", "--member", "ocean/P", "--json").json
    assert set(found["members"]) == {"ocean/P", "time", "lat", "lon"}


def test_one_field_becomes_netcdf(run: Run, tmp_path: Path) -> None:
    for name in ("T", "P"):
        run("compress", written(tmp_path / "ds.nc"), tmp_path / f"{name}.zip", "--name", name, "--rel", "1e-3", "-q")
        assert run("decompress", tmp_path / f"{name}.zip", tmp_path / f"{name}.nc").status == 0
        decoded = wb.open(tmp_path / f"{name}.zip").decompress()
        with xr.open_dataset(tmp_path / f"{name}.nc") as found:
            np.testing.assert_array_equal(found[name].values, decoded.values)
            assert found[name].attrs["units"] == dataset()[name].attrs["units"]
            assert found[name].dims == ("time", "lat", "lon")


def test_masked_values_become_missing(run: Run, tmp_path: Path) -> None:
    mask = np.eye(6, 5, dtype=bool)
    wb.compress(wb.Field(np.ones((6, 5), np.float32), mask=mask), wb.Absolute(0.1)).save(tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.nc").status == 0
    with xr.open_dataset(tmp_path / "b.nc") as found:
        np.testing.assert_array_equal(np.isnan(found["values"]), mask)


def test_groups_become_groups(run: Run, tmp_path: Path) -> None:
    wb.compress(with_groups(tmp_path / "ds.nc"), {"*": wb.Relative(1e-3)}, out=tmp_path / "a.zip")
    for suffix in (".nc", ".zarr"):
        assert run("decompress", tmp_path / "a.zip", tmp_path / f"back{suffix}").status == 0
        with xr.open_datatree(tmp_path / f"back{suffix}") as found:
            assert set(found["ocean"].data_vars) == {"P", "Q"}
            assert set(found.data_vars) == {"T"}


def test_types_of_all_kinds_come_back(run: Run, tmp_path: Path) -> None:
    given = sample()
    rules = {"T": wb.Absolute("0.01 K"), "*": wb.Exact()}
    wb.compress(given, rules).save(tmp_path / "a.zip")
    refused = run("decompress", tmp_path / "a.zip", tmp_path / "back.nc")
    assert refused.status == 2
    assert "'z' is complex, and NetCDF has no such numbers" in refused.err
    wb.compress(given.drop_vars("z"), rules).save(tmp_path / "b.zip")
    for archive, suffix in (("b.zip", ".nc"), ("a.zip", ".zarr")):
        done = run("decompress", tmp_path / archive, tmp_path / f"back{suffix}", "-q")
        assert done.status == 0, done.err
        with xr.open_dataset(tmp_path / f"back{suffix}", decode_timedelta=True) as found:
            for name in set(found.variables) - {"T"}:
                np.testing.assert_array_equal(found[name].values, given[name].values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["b.npy"], "holds 8 members: choose one by --member, or let OUT end in .nc or .zarr"),
        (["b.npz"], "holds 8 members: choose one by --member"),
        (["b.h5"], "holds 8 members: choose one by --member"),
        (["b.vtk"], "OUT must end in .npy, .npz, .nc, .nc4, .zarr, .hdf5, .h5, "),
        (["b.npy", "--member", "Tt"], "expected the name of a member; got 'Tt': did you mean 'T'?"),
        (["b.nc", "--region", "0:3,:,:"], "must name dimensions, as in --region time=0:10"),
        (["b.nc", "--region", "tme=0:3"], "expected the name of a dimension; got 'tme': did you mean 'time'?"),
        (["b.nc", "--region", "time=0:3,time=0:4"], "with each dimension once"),
        (["b.nc", "--region", "time=0.5:3"], "must be whole numbers of grid points; got time=0.5:3"),
        (["b.nc", "--region", "time=3:3"], "--region must select points of each axis"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    run: Run, archive: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    refused = run("decompress", archive, tmp_path / arguments[0], *arguments[1:])
    assert (refused.status, refused.out) == (2, "")
    assert message in refused.err.splitlines()[-1]
    assert names(tmp_path) == {"ds.nc", "a.zip"}


def test_what_does_not_fit_together_is_refused(run: Run, field_archive: Path, tmp_path: Path) -> None:
    refused = run("decompress", field_archive, tmp_path / "b.npy", "--member", "T")
    assert (refused.status, "--member is for archives of many members" in refused.err) == (2, True)
    refused = run("decompress", field_archive, tmp_path / "b.npy", "--region", "x=0:3")
    assert (refused.status, "the axes of this archive have no names" in refused.err) == (2, True)
    wb.compress(particles(), wb.Absolute(0.1)).save(tmp_path / "p.zip")
    refused = run("decompress", tmp_path / "p.zip", tmp_path / "b.nc")
    assert (refused.status, "holds particles: let OUT end in .hdf5, .npy or .npz" in refused.err) == (2, True)


def no_space(*given: object) -> None:
    raise OSError(28, "No space left on device")


def test_truth_values_of_attributes_are_numbers_in_netcdf(run: Run, tmp_path: Path) -> None:
    wb.compress(dataset()[["flag"]].assign_attrs(good=True), {"*": wb.Exact()}, out=tmp_path / "a.zip")
    for suffix in (".nc", ".zarr"):
        assert run("decompress", tmp_path / "a.zip", tmp_path / f"b{suffix}").status == 0
        with xr.open_dataset(tmp_path / f"b{suffix}") as found:
            assert found.attrs["good"] == 1


def test_a_folder_of_zarr_is_replaced_when_the_new_one_is_complete(
    run: Run, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "b.zarr"
    xr.Dataset({"old": ("x", [1.0])}).to_zarr(out, consolidated=False)
    refused = run("decompress", archive, out)
    assert (refused.status, "exists: choose another name, or pass --overwrite" in refused.err) == (2, True)
    with monkeypatch.context() as patched:
        patched.setattr(dataset_files, "packed_within", no_space)
        assert run("decompress", archive, out, "--overwrite").status == 2
    assert set(xr.open_zarr(out, consolidated=False)) == {"old"}
    assert run("decompress", archive, out, "--overwrite").status == 0
    assert set(xr.open_zarr(out, consolidated=False).variables) == set(dataset().variables)
    assert names(tmp_path) == {"ds.nc", "a.zip", "b.zarr"}


def test_other_folders_are_never_replaced(run: Run, archive: Path, tmp_path: Path) -> None:
    wb.compress(dataset()[["T"]], {"T": wb.Exact()}, out=tmp_path / "archive.zarr")
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "thesis.tex").write_text("")
    (tmp_path / "file.zarr").write_text("")
    dataset()[["T"]].to_zarr(tmp_path / "mixed.zarr", consolidated=False)
    (tmp_path / "mixed.zarr" / "thesis.tex").write_text("")
    before = names(tmp_path)
    for name in ("archive", "mine", "file", "mixed"):
        refused = run("decompress", archive, tmp_path / f"{name}.zarr", "--overwrite")
        assert (refused.status, "only if it is one of Zarr alone, and no archive" in refused.err) == (2, True)
    assert names(tmp_path) == before
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "mixed.zarr" / "thesis.tex").unlink()
    dataset()[["T"]].to_zarr(tmp_path / "second.zarr", zarr_format=2)
    for name in ("empty", "mixed", "second"):
        assert run("decompress", archive, tmp_path / f"{name}.zarr", "--overwrite").status == 0


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_after_an_error_nothing_is_left(
    run: Run, archive: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = dataset_files.write_dataset

    def full(*given: object) -> None:
        write(*given)   # type: ignore[arg-type]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dataset_files, "write_dataset", full)
    refused = run("decompress", archive, tmp_path / f"b{suffix}")
    assert refused.status == 2
    assert refused.err.endswith(f"b{suffix}: No space left on device\n")
    assert names(tmp_path) == {"ds.nc", "a.zip"}


def test_a_full_disk_is_said_to_be_one(run: Run, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    values = np.random.default_rng(0).normal(size=(100, 100))
    wb.compress({"x": values}, {"x": wb.Exact()}, out=tmp_path / "a.zip")
    limits, quiet = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        refused = run("decompress", tmp_path / "a.zip", tmp_path / "b.nc")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, quiet)
    assert (refused.status, refused.err.endswith("b.nc: NetCDF: HDF error: the disk may be full\n")) == (2, True)
    assert names(tmp_path) == {"a.zip"}


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_file_states_the_errors_of_its_values_as_cf_does(run: Run, tmp_path: Path, suffix: str) -> None:
    rules = {"Q": {"bound": wb.PointwiseRelative(1e-3), "codec": "bitround"}, "T": wb.Absolute(0.25), "*": wb.Exact()}
    wb.compress(dataset(), rules, out=tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / f"back{suffix}").status == 0
    with xr.open_dataset(tmp_path / f"back{suffix}") as found:
        assert (found["Q"].attrs["quantization"], found["Q"].attrs["quantization_nsb"]) == ("quantization_info", 9)
        assert found["quantization_info"].attrs["algorithm"] == "bitround"
        assert found["quantization_info"].attrs["implementation"].startswith("lossbench ")
        assert found["T"].attrs["lossy_compression"].startswith("Absolute(eb=0.25) (")
        assert not any("lossy" in name or "quant" in name for name in found["P"].attrs)


def test_losses_of_several_steps_add_and_are_noted(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "0.nc"
    dataset()[["T", "Q"]].to_netcdf(source)
    rules = {"T": wb.Absolute(0.25), "Q": {"bound": wb.PointwiseRelative(1e-2), "codec": "bitround"}}
    for step in (1, 2):
        archive = wb.compress(source, rules, out=tmp_path / f"{step}.zip")
        source = tmp_path / f"{step}.nc"
        assert run("decompress", tmp_path / f"{step}.zip", source).status == 0
    with xr.open_dataset(source) as found:
        assert found["T"].attrs["lossy_compression_maximum_error"] == 0.5
        assert found["T"].attrs["lossy_compression"].count("Absolute(eb=0.25)") == 2
        assert found["Q"].attrs["lossy_compression_kind"] == "relative"
        assert found["Q"].attrs["lossy_compression_maximum_error"] == 2.0**-7 + 1e-2 + 2.0**-7 * 1e-2
        assert "quantization_nsb" not in found["Q"].attrs   # the values are others now
    finer = wb.compress(source, {"T": wb.Absolute(0.01), "Q": wb.PointwiseRelative(1e-5)})
    assert all(any("has lost more" in note for note in finer[name].certificate.notes) for name in ("T", "Q"))
    assert not archive["T"].certificate.notes


def test_losses_of_several_kinds_are_never_understated(run: Run, tmp_path: Path) -> None:
    source, rules = tmp_path / "0.nc", [wb.PointwiseRelative(0.3), wb.Absolute(0.5), wb.Absolute(1e-4)]
    dataset()[["T"]].to_netcdf(source)
    for step, rule in enumerate(rules, 1):
        wb.compress(source, {"T": rule}, out=tmp_path / f"{step}.zip")
        source = tmp_path / f"{step}.nc"
        assert run("decompress", tmp_path / f"{step}.zip", source).status == 0
    with xr.open_dataset(source) as found:
        assert "lossy_compression_maximum_error" not in found["T"].attrs
        assert found["T"].attrs["lossy_compression"].count("eb=") == 3


@pytest.mark.parametrize(("bits", "stated"), [(0.5, False), (0.25, True), (1e-9, False)])
def test_cf_states_only_bits_that_the_type_has(run: Run, tmp_path: Path, bits: float, stated: bool) -> None:
    rule = {"bound": wb.PointwiseRelative(bits), "codec": "bitround"}
    wb.compress(dataset()[["T"]], {"T": rule}, out=tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.nc").status == 0
    with xr.open_dataset(tmp_path / "b.nc") as found:
        assert ("quantization_nsb" in found["T"].attrs) is ("quantization_info" in found.variables) is stated
        assert ("lossy_compression_maximum_error" in found["T"].attrs) is not stated


def test_the_algorithm_of_the_source_is_not_ours(run: Run, tmp_path: Path) -> None:
    given = dataset()[["T", "Q"]].assign(quantization_info=((), b"", {"algorithm": "granular_bitround"}))
    given["T"].attrs |= {"quantization": "quantization_info", "quantization_nsd": 3}
    wb.compress(given, {"T": wb.Exact(), "Q": wb.Exact()}, out=tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "T.nc", "--member", "T").status == 0
    wb.compress(given, {"T": wb.Absolute(1), "Q": wb.Exact()}, out=tmp_path / "b.zip")
    assert run("decompress", tmp_path / "b.zip", tmp_path / "b.nc").status == 0
    with xr.open_dataset(tmp_path / "T.nc") as found:
        assert found["T"].attrs["quantization_nsd"] == 3
        assert found.get("quantization_info", xr.DataArray()).attrs.get("algorithm") != "bitround"
    with xr.open_dataset(tmp_path / "b.nc") as found:
        assert "quantization_nsd" not in found["T"].attrs
        assert found["T"].attrs["lossy_compression"].startswith("quantization_nsd 3; Absolute(eb=1")


def test_digits_that_a_file_was_rounded_to_are_not_rounded_to_again(run: Run, tmp_path: Path) -> None:
    given = dataset()[["T"]]
    given["T"].encoding = {"least_significant_digit": 1}
    given.to_netcdf(tmp_path / "ds.nc")
    rounded = xr.load_dataset(tmp_path / "ds.nc")["T"]
    archive = wb.compress(tmp_path / "ds.nc", {"T": {"bound": wb.Absolute(0.04), "codec": "prequantised"}})
    assert "least_significant_digit 1" in archive["T"].certificate.notes[0]
    archive.save(tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.nc").status == 0
    found = xr.load_dataset(tmp_path / "b.nc")["T"]
    assert abs(found.astype("f8") - rounded).max() <= 0.04
    assert found.attrs["lossy_compression_maximum_error"] == 0.05 + 0.04


def test_errors_of_complex_numbers_and_halves_are_those_of_the_values(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    given = {"c": random.normal(size=300) + 1j * random.normal(size=300), "h": (20 * random.normal(size=300)).astype("f2")}
    wb.compress(given, {"*": wb.Absolute(0.05)}, out=tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.zarr").status == 0
    with xr.open_dataset(tmp_path / "b.zarr") as found:
        for name, values in given.items():
            stated = found[name].attrs["lossy_compression_maximum_error"]
            assert abs(found[name].values.astype("c16") - values).max() <= stated <= 0.05
