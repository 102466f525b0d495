"""Anyone with zarr-python reads an archive, knowing nothing of us: the same values, bit for bit."""

import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.samples import CODECS, assert_same_bits
from combinations import in_pairs
from workbench.archive import Archive
from workbench.errors import WorkbenchError

zarr = pytest.importorskip("zarr")


def opened(path):
    if path.suffix == ".zip":
        return zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    return zarr.open_group(path, mode="r")


@pytest.mark.few
@pytest.mark.parametrize(("codec", "order", "suffix"), in_pairs(CODECS, ["keep", "free"], [".zarr", ".zip"]))
def test_particles_are_the_same_through_zarr(tmp_path, codec, order, suffix):
    original, how = samples.particles(500), {"order": order, "chunk_values": 400, "store_permutation": True}
    archive = wb.compress(original, wb.Absolute(0.01), codec, velocities=wb.Relative(0.01), **how)
    group = opened(archive.save(tmp_path / f"some{suffix}"))
    decoded = archive.decompress()
    for name, values in (("positions", decoded.positions), ("velocities", decoded.velocities), ("ids", decoded.ids)):
        assert_same_bits(group[name][:], values)
        assert_same_bits(group[name][130:371], values[130:371])
    assert_same_bits(group["permutation"][:], archive.permutation())
    assert group.attrs["box"] == [10.0, 10.0, 10.0]
    assert group.attrs["certificate"]["promises"][0]["bound"] == {"kind": "absolute", "eb": 0.01}
    group.store.close()


@pytest.mark.filterwarnings("ignore:masked cells hold numbers")
@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize(
    ("shape", "codec"), [((301,), "sz3"), ((20, 30), "prequantised"), ((9, 8, 7), "zfp"), ((4, 5, 6, 3), "sz3")]
)
def test_fields_are_the_same_through_zarr(tmp_path, shape, codec, suffix):
    if codec not in CODECS:
        pytest.skip(f"{codec} is not installed")
    values = samples.field(shape, np.float64)
    values.flat[5] = np.nan
    mask = np.random.default_rng(0).random(shape) < 0.1
    for bound in (wb.Absolute(0.1), wb.PointwiseRelative(0.01)):
        field = wb.Field(values, mask=mask, metadata={"units": "K"})
        archive = wb.compress(field, bound, codec, chunk_values=100)
        group = opened(archive.save(tmp_path / f"some-{bound.kind}{suffix}"))
        assert_same_bits(group["values"][...], archive.decompress().values)
        assert_same_bits(group["mask"][...], mask)
        assert group["values"].attrs["units"] == "K"
        group.store.close()


def test_a_program_that_only_knows_zarr_reads_an_archive(tmp_path):
    if not entry_points(group="zarr.codecs", name="lossbench"):
        pytest.fail("the entry point of the codec is not installed: install the package again (pip install -e .)")
    archive = wb.compress(samples.particles(500), wb.Absolute(0.01), order="free", chunk_values=400)
    for path in (archive.save(tmp_path / "some.zarr"), archive.save(tmp_path / "some.zip")):
        program = (
            "import sys, zarr\n"
            "assert not [name for name in sys.modules if name.startswith('workbench')]\n"
            f"store = zarr.storage.ZipStore({str(path)!r}, mode='r') if {path.suffix == '.zip'} else {str(path)!r}\n"
            "array = zarr.open_group(store, mode='r')['positions']\n"
            "sys.stdout.buffer.write(array[:].tobytes())\n"
        )
        ran = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        assert ran.stdout == archive.decompress().positions.tobytes()


def test_damage_is_told_through_zarr_too(tmp_path):
    path = wb.compress(samples.field(), wb.Absolute(0.1), chunk_values=100).save(tmp_path / "some.zarr")
    place = path / "values" / "c" / "1" / "2"
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)
    array = opened(path)["values"]
    with pytest.raises(WorkbenchError, match="fails its checksum"):
        array[...]
    assert_same_bits(array[:10], Archive.open(path).read([(0, 10), None]).values)


def test_zarr_finds_nothing_to_object_to_in_the_documents(tmp_path):
    archive = wb.compress(samples.particles(50), wb.Absolute(0.1))
    group = opened(archive.save(tmp_path / "some.zarr"))
    for name, array in group.arrays():
        assert (array.shape, array.dtype) == (archive.arrays[name].layout.shape, archive.arrays[name].layout.dtype)
    assert sorted(name for name, _ in group.arrays()) == ["extents", "ids", "positions", "velocities"]


def test_axes_have_names_and_fields_their_units(tmp_path):
    archive = wb.compress(samples.particles(50), wb.Absolute(0.1), order="free", store_permutation=True)
    path = archive.save(tmp_path / "a.zarr")
    names = {name: array.metadata.dimension_names for name, array in opened(path).arrays()}
    assert names == {
        "positions": ("particle", "axis"), "velocities": ("particle", "axis"), "ids": ("particle",),
        "permutation": ("particle",), "extents": ("chunk", "end", "axis"),
    }
    described = {"units": "K", "standard_name": "air_temperature", "long_name": "Temperature", "other": 3}
    metadata = {"units": "K", "dimensions": ["lat", "lon"], "attributes": described}
    field = wb.Field(samples.field(), mask=samples.field() > 60, metadata=metadata)
    group = opened(wb.compress(field, wb.Absolute(0.1)).save(tmp_path / "b.zarr"))
    assert {name: array.metadata.dimension_names for name, array in group.arrays()} == dict.fromkeys(
        ("values", "mask"), ("lat", "lon")
    )
    shown = dict(group["values"].attrs)
    assert {name: shown.get(name) for name in described} == {**described, "other": None}


@pytest.mark.parametrize("dimensions", [None, ["x"], ["x", "x"], ["x", 3], "xy", 7])
def test_axes_that_a_file_did_not_name_well_are_numbered(tmp_path, dimensions):
    field = wb.Field(samples.field(), metadata={"dimensions": dimensions})
    group = opened(wb.compress(field, wb.Absolute(0.1)).save(tmp_path / "some.zarr"))
    assert group["values"].metadata.dimension_names == ("axis_0", "axis_1")


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
def test_zarr_takes_the_documents_from_the_root_and_warns_of_nothing(tmp_path, suffix):
    group = opened(wb.compress(samples.particles(50), wb.Absolute(0.1)).save(tmp_path / f"some{suffix}"))
    assert group.metadata.consolidated_metadata is not None
    assert sorted(name for name, _ in group.members()) == ["extents", "ids", "positions", "velocities"]
    assert len(group["ids"][:]) == 50
    group.store.close()


FIELD = samples.field((20, 30))
UNDER_MASKS = {
    "one number": FIELD + np.float32(0),
    "integers": np.round(FIELD).astype("i2"),
    "unsigned integers": np.round(np.abs(FIELD)).astype("u1") // 2,
    "NaN": FIELD + np.float32(0),
    "without a mask": FIELD + np.float32(0),
}
FILLS = {"integers": -32767, "unsigned integers": 255, "NaN": np.nan}


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize("kind", UNDER_MASKS)
def test_xarray_sees_the_values_of_an_archive_and_no_masked_ones(tmp_path, kind, suffix):
    xarray = pytest.importorskip("xarray")
    values, mask = UNDER_MASKS[kind].copy(), None
    if kind != "without a mask":
        mask = np.median(FIELD) < FIELD
        values[mask] = FILLS.get(kind, 1e20)
    archive = wb.compress(wb.Field(values, mask=mask), wb.Absolute(1), "prequantised", chunk_values=100)
    expected = np.ma.MaskedArray(archive.decompress().values, False if mask is None else mask)
    with xarray.open_zarr(opened(archive.save(tmp_path / f"some{suffix}")).store) as dataset:
        assert dataset["values"].dims == ("axis_0", "axis_1")
        np.testing.assert_array_equal(dataset["values"].isnull(), np.ma.getmaskarray(expected))
        assert_same_bits(dataset["values"].values[~expected.mask], expected.compressed().astype(dataset["values"].dtype))
        assert float(dataset["values"].astype("f8").mean()) == pytest.approx(expected.astype("f8").mean())
        assert np.array_equal(dataset["mask"].values, mask) if mask is not None else "mask" not in dataset


@pytest.mark.parametrize("under", [np.arange(600.0).reshape(20, 30), np.float32(np.inf), FIELD.mean()])
def test_an_array_says_where_only_the_mask_tells_what_is_missing(tmp_path, under):
    xarray = pytest.importorskip("xarray")
    mask = np.abs(FIELD - FIELD.mean()) < 5
    field = wb.Field(np.where(mask, under, FIELD).astype("f4"), mask=mask)
    path = wb.compress(field, wb.Absolute(0.1)).save(tmp_path / "some.zarr")
    with xarray.open_zarr(path) as dataset:
        assert "missing_value" not in dataset["values"].attrs
        assert "where(~mask)" in dataset["values"].attrs["comment"]
        with pytest.warns(UserWarning, match=r"masked cells hold numbers: use values\.where"):
            mean = float(dataset["values"].where(~dataset["mask"]).mean())
    assert abs(mean - FIELD[~mask].mean()) < 0.1


def test_packed_values_of_a_netcdf_file_are_the_same_through_xarray(tmp_path):
    xarray, original = pytest.importorskip("xarray"), tmp_path / "packed.nc"
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(original, "w") as file:
        for name, size in zip("yx", FIELD.shape, strict=True):
            file.createDimension(name, size)
        packed = file.createVariable("t", "i2", ("y", "x"), fill_value=-32767)
        packed.setncatts({"scale_factor": 0.01, "add_offset": 5.0, "units": "K"})
        packed[...] = np.ma.MaskedArray(FIELD / FIELD.max(), np.median(FIELD) < FIELD)
    archive = wb.compress(wb.open(original), wb.Absolute(1e-6), "prequantised")
    path = archive.save(tmp_path / "some.zarr")
    with xarray.open_dataset(original, engine="netcdf4") as before, xarray.open_zarr(path) as after:
        np.testing.assert_allclose(after["values"].values, before["t"].values, atol=1.1e-6)
        assert after["values"].attrs["units"] == "K"
