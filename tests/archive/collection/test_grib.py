"""GRIB files: messages that fit together are groups, by the names of their levels."""

import sys
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from archive.collection.messages import on_levels, values, write
from workbench.archive.collection.sources import opened_dataset
from workbench.run.chunked_field import ChunkedField

DAYS = (20260101, 20260102)


def weather(path: Path) -> Path:
    """Messages that are no one dataset of xarray: three kinds of levels, two heights, sums and moments."""
    sea = values(3)
    sea[0, 0] = np.nan
    messages = []
    for day in DAYS:
        messages += [*on_levels("t", day), *on_levels("u", day)]
        messages += [
            ({"shortName": "2t", "dataDate": day}, values(day)), ({"shortName": "10u", "dataDate": day}, values(1)),
            ({"shortName": "sst", "dataDate": day}, sea),
            ({"shortName": "tp", "stepRange": "0-6", "dataDate": day}, values(4)),
        ]
    return write(path, messages)


def test_messages_that_fit_together_are_groups(tmp_path: Path) -> None:
    path = weather(tmp_path / "weather")
    archive = wb.compress(path, {"isobaricInhPa": wb.Absolute(0.01), "*": wb.Exact()})
    assert {name: set(archive.to_xarray()[name].data_vars) for name in archive.groups if name} == {
        "isobaricInhPa": {"t", "u"}, "heightAboveGround_2": {"t2m"}, "heightAboveGround_10": {"u10"},
        "surface_instant": {"sst"}, "surface_accum": {"tp"},
    }
    found = archive.to_xarray()["isobaricInhPa"]
    for day, date in enumerate(DAYS):
        for level in (850, 500):
            assert abs(found["t"].isel(time=day).sel(isobaricInhPa=level) - values(date + level)).max() <= 0.01 + 1e-6
    sea = archive["surface_instant/sst"].decompress().values
    assert np.isnan(sea).sum() == np.isnan(sea[:, 0, 0]).sum() == 2
    assert found["t"].attrs["units"] == "K"
    assert archive.verify(path).passed
    assert [one.name for one in tmp_path.iterdir()] == ["weather"]   # and no index


def test_one_dataset_has_no_groups_and_is_read_by_message(tmp_path: Path) -> None:
    path = write(tmp_path / "t.nc", [message for day in DAYS for message in on_levels("t", day)])
    with opened_dataset(path) as dataset:
        assert set(dataset.groups) == {""}
        assert isinstance(dataset["t"], ChunkedField)
        assert dataset["t"].values.chunks == (1, 1, 5, 8)
        part = dataset["t"].part((slice(1, 2), slice(0, 1), slice(0, 5), slice(2, 4)))
        np.testing.assert_allclose(part.values[0, 0], values(DAYS[1] + 850)[:, 2:4], atol=1e-6)
    assert wb.compress(path, wb.Absolute(0.1)).verify(path).passed


def test_months_are_joined_group_by_group(tmp_path: Path) -> None:
    for day in DAYS:
        messages = [*on_levels("t", day), ({"shortName": "2t", "dataDate": day}, values(day))]
        write(tmp_path / f"era5-{day}.grib", messages)
    archive = wb.compress(str(tmp_path / "era5-*.grib"), {"*": wb.Absolute(0.01)})
    found = archive.to_xarray()
    assert dict(found["isobaricInhPa"].sizes) == {"time": 2, "isobaricInhPa": 2, "latitude": 5, "longitude": 8}
    assert abs(found["heightAboveGround/t2m"].isel(time=1) - values(DAYS[1])).max() <= 0.01 + 1e-6


def test_cut_files_and_missing_libraries_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.grib", on_levels("t", DAYS[0]))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(wb.WorkbenchError, match=r"t\.grib must be a GRIB file; it cannot be read"):
        wb.compress(path, {"*": wb.Exact()})
    path.write_bytes(b"\1\r\r\nIUPA54 ECMF\r\r\n" + whole)   # as bulletins begin
    assert wb.compress(path, {"*": wb.Exact()})["t"].data.layout.shape == (2, 5, 8)
    monkeypatch.setitem(sys.modules, "cfgrib", None)
    install = r"t\.grib needs cfgrib, which is not installed: pip install 'lossbench\[grib\]'"
    with pytest.raises(wb.WorkbenchError, match=install):
        wb.compress(path, {"*": wb.Exact()})
