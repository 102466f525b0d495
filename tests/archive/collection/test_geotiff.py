"""TIFF and GeoTIFF files: bands, their place on Earth, and values without data."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.archive.collection.sources import opened_dataset
from workbench.run.chunked_field import ChunkedField

rasterio = pytest.importorskip("rasterio", reason="needs the geotiff extra")
pytest.importorskip("rioxarray", reason="needs the geotiff extra")

pytestmark = pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")   # within rasterio

HEIGHTS = np.random.default_rng(0).integers(-100, 3000, (2, 30, 40)).astype("i2")


def write(path: Path, bands: np.ndarray, mode: str = "w", **options: Any) -> Path:
    count, height, width = bands.shape
    place = rasterio.transform.from_origin(5e5, 4e6, 10, 10)
    how = {"driver": "GTiff", "crs": "EPSG:32632", "transform": place, **options}
    scales = how.pop("scales", None)
    with rasterio.open(path, mode, width=width, height=height, count=count, dtype=bands.dtype, **how) as file:
        file.write(bands)
        file.descriptions = tuple(f"band number {number}" for number in range(1, count + 1))
        if scales:
            file.scales = scales
    return path


def test_bands_keep_their_place_and_what_is_missing(tmp_path: Path) -> None:
    bands = HEIGHTS.copy()
    bands[0, 3, 4] = -32768
    path = write(tmp_path / "heights.dat", bands, nodata=-32768, tiled=True, blockxsize=16, blockysize=16)
    archive = wb.compress(path, {"band_1": wb.Absolute(0.5), "band_2": wb.Exact()}, out=tmp_path / "x.zip")
    found = archive.to_xarray()
    assert np.argwhere(np.isnan(found["band_1"].values)).tolist() == [[3, 4]]
    assert abs(found["band_1"] - np.where(bands[0] == -32768, np.nan, bands[0])).max() <= 0.5
    np.testing.assert_array_equal(found["band_2"], bands[1])
    assert found["band_2"].encoding["dtype"] == np.int16
    assert found["band_2"].attrs == {"long_name": "band number 2"}
    assert found.rio.crs.to_epsg() == 32632
    assert found.rio.transform() == rasterio.transform.from_origin(5e5, 4e6, 10, 10)
    np.testing.assert_array_equal(found["x"], 5e5 + 10 * np.arange(40) + 5)
    assert archive.verify(path).passed
    found[["band_2"]].rio.to_raster(tmp_path / "back.tif")
    with rasterio.open(tmp_path / "back.tif") as back:
        np.testing.assert_array_equal(back.read(1), bands[1])


def test_integers_that_all_count_stay_integers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", HEIGHTS, tiled=True, blockxsize=16, blockysize=16)
    with opened_dataset(path) as dataset:
        assert isinstance(dataset["band_1"], ChunkedField)
        assert (dataset["band_1"].dtype, dataset["band_1"].values.chunks) == (np.int16, (16, 16))
    archive = wb.compress(path, wb.Absolute(0.1))   # for numbers that need one
    np.testing.assert_array_equal(archive["band_1"].decompress().values, HEIGHTS[0])


def test_packed_bands_are_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", HEIGHTS, scales=(1e-4, 1.0))
    found = wb.compress(path, {"*": wb.Exact()}).to_xarray()
    np.testing.assert_allclose(found["band_1"], HEIGHTS[0] * 1e-4, rtol=1e-6)
    assert found["band_2"].dtype == np.int16


def test_a_mask_in_the_file_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", HEIGHTS[:1].astype("f4"), crs=None)
    mask = np.arange(1200).reshape(30, 40) % 7 != 0
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as file:
        file.write_mask(mask)
    found = wb.compress(path, {"*": wb.Exact()}).to_xarray()["band_1"]
    np.testing.assert_array_equal(found, np.where(mask, HEIGHTS[0], np.nan))


def test_pages_are_groups(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", HEIGHTS[:1])
    write(path, HEIGHTS[1:, ::2], APPEND_SUBDATASET="YES")
    archive = wb.compress(path, {"*": wb.Exact()})
    np.testing.assert_array_equal(archive["page_1/band_1"].decompress().values, HEIGHTS[0])
    np.testing.assert_array_equal(archive["page_2/band_1"].decompress().values, HEIGHTS[1, ::2])


def test_cut_files_and_missing_libraries_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.tif", HEIGHTS)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(wb.WorkbenchError) as refused:
        wb.compress(path, {"*": wb.Exact()})
    assert "\n" not in str(refused.value)
    path.write_bytes(b"II*\0" + bytes(100))
    with pytest.raises(wb.WorkbenchError, match=r"a\.tif must be a TIFF file; it cannot be read"):
        wb.compress(path, {"*": wb.Exact()})
    monkeypatch.setitem(sys.modules, "rioxarray", None)
    install = r"needs rioxarray, which is not installed: pip install 'lossbench\[geotiff\]'"
    with pytest.raises(wb.WorkbenchError, match=install):
        wb.compress(path, {"*": wb.Exact()})
