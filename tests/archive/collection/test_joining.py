"""Several files as one dataset: joined where their coordinates differ, and refused where anything else does."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from workbench.archive.collection.sources import opened_dataset

pytest.importorskip("dask.array", reason="needs the dask extra")

RULES = {"T": wb.Absolute("0.01 K"), "*": wb.Exact()}


def month(number: int, days: int = 5) -> xr.Dataset:
    """A month of a field, with a mask of land that has no time."""
    times = np.datetime64(f"2026-{number:02}-01", "ns") + np.arange(days) * np.timedelta64(1, "D")
    field = np.random.default_rng(number).normal(size=(days, 6, 8)).astype("f4")
    return xr.Dataset(
        {"T": (("time", "lat", "lon"), field, {"units": "K"}), "land": (("lat", "lon"), np.arange(48).reshape(6, 8))},
        {"time": times, "lat": np.linspace(60, 50, 6), "lon": np.arange(8.0)},
        {"title": "months"},
    )


def write(folder: Path, months: dict[str, xr.Dataset]) -> str:
    for name, dataset in months.items():
        dataset.to_netcdf(folder / f"{name}.nc")
    return str(folder / "*.nc")


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    return write(tmp_path, {f"era5-{number}": month(number) for number in (1, 2, 12)})   # a gap, and 12 before 2 as text


def whole() -> xr.Dataset:
    return xr.concat([month(1), month(2), month(12)], "time", data_vars="minimal", join="exact")


def test_months_are_one_dataset(pattern: str, tmp_path: Path) -> None:
    archive = wb.compress(pattern, RULES, out=tmp_path / "year.zip")
    found, given = archive.to_xarray(), whole()
    assert abs(found["T"].astype("f8") - given["T"]).max() <= 0.01
    xr.testing.assert_identical(found.drop_vars("T"), given.drop_vars("T"))
    assert archive.verify(pattern).passed
    assert archive.notes == []
    files = [tmp_path / f"era5-{number}.nc" for number in (12, 1, 2)]   # in any order
    np.testing.assert_array_equal(wb.compress(files, RULES)["T"].decompress().values, found["T"].values)
    assert set(wb.compress(pattern, wb.Absolute(0.1))) == set(given.variables)
    other = month(12)
    other["T"] += 1
    other.to_netcdf(tmp_path / "other")
    with pytest.raises(wb.GuaranteeBroken, match="'T'"):
        archive.verify([tmp_path / "other", *files[1:]])


def test_values_are_read_where_they_are_used(pattern: str) -> None:
    with opened_dataset(pattern) as dataset:
        assert dataset["T"].on_dask
        assert dataset["T"].values.chunks[0] == (5, 5, 5)


def test_attributes_that_differ_are_listed(tmp_path: Path) -> None:
    one, two = (month(at).assign_attrs(history=f"month {at}", valid_min=np.nan) for at in (1, 2))
    two["T"].attrs["cell_methods"] = "time: mean"
    archive = wb.compress(write(tmp_path, {"a": one, "b": two}), RULES, out=tmp_path / "x.zip")
    assert archive.attributes["title"] == "months"
    assert np.isnan(archive.to_xarray().attrs["valid_min"])   # the same in both
    listed = [
        "left out: attributes of the dataset that differ among the files: history",
        "left out: attributes of T that differ among the files: cell_methods",
    ]
    assert archive.notes == wb.open(tmp_path / "x.zip").notes == listed


def test_packing_is_of_each_file(tmp_path: Path) -> None:
    for number in (1, 2):
        packed = {"dtype": "i2", "scale_factor": 1e-3 * number, "add_offset": number / 2, "_FillValue": -32768}
        month(number).to_netcdf(tmp_path / f"{number}.nc", encoding={"T": packed})
    found = wb.compress(str(tmp_path / "*.nc"), {"T": wb.Exact()}).to_xarray()["T"]
    assert abs(found - xr.concat([month(1)["T"], month(2)["T"]], "time")).max() <= 1e-3


def test_tiles_are_joined_along_two_dimensions(tmp_path: Path) -> None:
    given = whole()
    tiles = {
        f"{row}{column}": given.isel(lat=slice(row, row + 3), lon=slice(column, column + 4))
        for row in (0, 3) for column in (0, 4)
    }
    pattern = write(tmp_path, tiles)
    xr.testing.assert_identical(wb.compress(pattern, {"T": wb.Exact()}).to_xarray(), given)
    (tmp_path / "34.nc").unlink()
    with pytest.raises(wb.WorkbenchError, match=r"files that differ in 'lat' and 'lon' must be 2 x 2, .*; got 3"):
        wb.compress(pattern, {"T": wb.Exact()})


def test_maps_of_one_time_get_a_dimension(tmp_path: Path) -> None:
    given = month(1).assign_coords(number=("time", np.arange(5)))
    pattern = write(tmp_path, {f"day-{day}": given.isel(time=day) for day in range(5)})
    found = wb.compress(pattern, {"T": wb.Exact()}).to_xarray()
    xr.testing.assert_identical(found.drop_encoding(), given)


def test_archives_are_joined_with_files(tmp_path: Path) -> None:
    wb.compress(month(1), {"T": wb.Exact()}, out=tmp_path / "1.zip")
    month(2).to_netcdf(tmp_path / "2.nc")
    xr.testing.assert_identical(
        wb.compress([tmp_path / "1.zip", tmp_path / "2.nc"], {"T": wb.Exact()}).to_xarray(),
        xr.concat([month(1), month(2)], "time", data_vars="minimal"),
    )


def test_groups_are_joined_each(tmp_path: Path) -> None:
    for number in (1, 2):
        month(number).to_netcdf(tmp_path / f"{number}.nc", group="ocean")
    archive = wb.compress(str(tmp_path / "*.nc"), {"ocean/T": wb.Exact()})
    assert archive["ocean/T"].data.layout.shape == (10, 6, 8)


MISFITS: dict[str, tuple[Callable[[xr.Dataset], xr.Dataset], str]] = {
    "another grid": (lambda one: one.assign_coords(lat=one.lat + 0.5), r"b\.nc: 'lat' overlaps|a\.nc: 'lat' overlaps"),
    "fewer points": (lambda one: one.isel(lat=slice(1, 4)), "'lat' overlaps"),
    "overlapping times": (lambda one: one.assign_coords(time=one.time - np.timedelta64(29, "D")), "'time' overlaps"),
    "the same times": (lambda one: month(1), "have the same coordinates"),
    "no variable": (lambda one: one.drop_vars("T"), r"b\.nc does not fit .*a\.nc: only .*a\.nc has 'T'"),
    "one more variable": (lambda one: one.assign(S=one["T"]), r"only .*b\.nc has 'S'"),
    "another type": (lambda one: one.astype("f8"), r"'T' is float64 \(time, lat, lon\) in K, and float32"),
    "another unit": (lambda one: one.assign(T=one["T"].assign_attrs(units="degC")), "'T' is .* in degC, and .* in K there"),
    "other axes": (lambda one: one.transpose("lat", "time", "lon"), r"'T' is float32 \(lat, time, lon\)"),
    "other constants": (lambda one: one.assign(land=one["land"] + 1), r"b\.nc does not fit .*: 'land' has other values"),
    "times without order": (lambda one: one.isel(time=[1, 0, 2, 3, 4]), r"b\.nc must have 'time' in order"),
    "no coordinates": (lambda one: one.isel(lat=slice(3)).drop_vars("lat"), "only .* has 'lat'"),
}


def test_calendars_that_differ_are_refused(tmp_path: Path) -> None:
    cftime = pytest.importorskip("cftime")

    def of_calendar(number: int, calendar: str) -> xr.Dataset:
        dates = [cftime.datetime(2026, number, 1 + day, calendar=calendar) for day in range(5)]
        return month(number).assign_coords(time=dates)

    pattern = write(tmp_path, {"a": of_calendar(1, "360_day"), "b": of_calendar(2, "noleap")})
    with pytest.raises(wb.WorkbenchError, match=r"'time' is dates of the calendar noleap .time., and dates .* 360_day"):
        wb.compress(pattern, RULES)
    of_calendar(2, "360_day").to_netcdf(tmp_path / "b.nc")
    assert wb.compress(pattern, RULES).to_xarray().sizes["time"] == 10


@pytest.mark.parametrize(("change", "message"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_refused_by_name(
    tmp_path: Path, change: Callable[[xr.Dataset], xr.Dataset], message: str
) -> None:
    pattern = write(tmp_path, {"a": month(1), "b": change(month(2))})
    with pytest.raises(wb.WorkbenchError, match=message) as refused:
        wb.compress(pattern, {"T": wb.Exact(), "*": wb.Exact()})
    assert "\n" not in str(refused.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    month(1).to_netcdf(tmp_path / "a.nc")
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + bytes(40))
    for given, message in (
        (str(tmp_path / "no-*.nc"), "no file matches the pattern"),
        ([tmp_path / "a.nc", tmp_path / "a.nc"], "each file must be given once"),
        ([tmp_path / "a.nc", tmp_path / "x.parquet"], r"x\.parquet cannot be joined with others"),
        ([tmp_path / "a.nc", tmp_path / "b.nc"], r"b\.nc"),
    ):
        with pytest.raises(wb.WorkbenchError, match=message):
            wb.compress(given, {"*": wb.Exact()})
    assert set(wb.compress([tmp_path / "a.nc"], {"T": wb.Exact()})) == set(month(1).variables)
