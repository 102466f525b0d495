"""Lossy files that keep what they state or what a rule allows, made by the tools that scientists use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import workbench as wb

AXES = ("time", "lat", "lon")
Made = tuple[Any, Any]   # the lossy side, and the rules


def original_at(folder: Path) -> Path:
    """A NetCDF file of a field, one with fill values, and coordinates."""
    rng = np.random.default_rng(5)
    smooth = rng.normal(size=(8, 16, 24)).cumsum(0).cumsum(1)
    values = (280 + smooth).astype(np.float32)
    masked = np.where(rng.random((16, 24)) < 0.2, np.nan, smooth[0]).astype(np.float32)
    dataset = xr.Dataset(
        {"T": (AXES, values, {"units": "K"}), "sst": (AXES[1:], masked, {"units": "degC"})},
        {"lat": np.linspace(-75, 75, 16), "lon": np.arange(24) * 15.0, "time": np.arange(8.0)},
    )
    path = folder / "original.nc"
    dataset.to_netcdf(path, encoding={"sst": {"_FillValue": np.float32(1e20)}})
    return path


def quantised(**how: Any) -> Callable[[Path, Path], Made]:
    """A copy that the NetCDF library rounds."""
    def make(original: Path, folder: Path) -> Made:
        import netCDF4

        target = folder / "lossy.nc"
        with netCDF4.Dataset(original) as source, netCDF4.Dataset(target, "w") as file:
            for name, size in source.dimensions.items():
                file.createDimension(name, len(size))
            for name, variable in source.variables.items():
                rounds = name in ("T", "sst")
                fill = getattr(variable, "_FillValue", None)
                options = how if rounds else {}
                made = file.createVariable(name, variable.dtype, variable.dimensions, zlib=True, fill_value=fill, **options)
                made.setncatts({key: variable.getncattr(key) for key in variable.ncattrs() if key != "_FillValue"})
                made[:] = variable[:]
        return target, None

    return make


def packed(original: Path, folder: Path) -> Made:
    """Integers of 16 bits with a scale and an offset."""
    target = folder / "packed.nc"
    with xr.open_dataset(original) as dataset:
        packing = {
            name: {
                "dtype": "i2", "_FillValue": -32768, "add_offset": float(dataset[name].max() + dataset[name].min()) / 2,
                "scale_factor": float(dataset[name].max() - dataset[name].min()) / 60000,
            }
            for name in ("T", "sst")
        }
        dataset.to_netcdf(target, encoding=packing)
    return target, None


def bit_rounded(original: Path, folder: Path) -> Made:
    """Rounded to nine bits of the mantissa, as xbitinfo does; the file does not say so."""
    target = folder / "rounded.nc"
    with xr.open_dataset(original) as dataset:
        for name in ("T", "sst"):
            bits = dataset[name].values.view(np.uint32)
            half = np.uint32(2**13) - np.uint32(1) + ((bits >> np.uint32(14)) & np.uint32(1))
            rounded = ((bits + half) & ~np.uint32(2**14 - 1)).view(np.float32)
            dataset[name] = dataset[name].copy(data=np.where(np.isnan(dataset[name]), np.nan, rounded).astype(np.float32))
        dataset.to_netcdf(target)
    return target, wb.PointwiseRelative(2.0**-10)


def filtered(name: str, **how: Any) -> Callable[[Path, Path], Made]:
    """A NetCDF-4 file whose field has a filter of hdf5plugin."""
    def make(original: Path, folder: Path) -> Made:
        import h5py
        import hdf5plugin

        target = folder / "filtered.nc"
        with xr.open_dataset(original) as dataset:
            dataset.drop_vars("T").to_netcdf(target)
            options = getattr(hdf5plugin, name)(**how) if name else how
            with h5py.File(target, "a") as file:
                made = file.create_dataset("T", data=dataset["T"].values, chunks=(4, 16, 24), **options)
                file["time"] if "time" in file else file.create_dataset("time", data=dataset["time"].values)
                file["time"].make_scale("time")
                made.attrs["units"] = "K"
                for axis, scale in enumerate(AXES):
                    made.dims[axis].attach_scale(file[scale])
        return target, None

    return make


def in_zarr(place: str, codec: str, **options: Any) -> Callable[[Path, Path], Made]:
    """A Zarr group whose field has a lossy codec of numcodecs, as a filter or as the serializer."""
    def make(original: Path, folder: Path) -> Made:
        import zarr
        from zarr.codecs import numcodecs

        made = getattr(numcodecs, codec)(**options)
        how = {"filters": [made]} if place == "filters" else {"serializer": made, "compressors": None}

        target = folder / "lossy.zarr"
        with xr.open_dataset(original) as dataset:
            dataset.drop_vars("T").to_zarr(target, zarr_format=3, consolidated=False)
            field = dataset["T"].values
        group = zarr.open_group(target)
        array = group.create_array(
            "T", shape=field.shape, dtype="f4", chunks=(4, 16, 24), dimension_names=AXES, attributes={"units": "K"}, **how
        )
        array[:] = field
        zarr.consolidate_metadata(target)
        return target, None

    return make


def archived(original: Path, folder: Path) -> Made:
    """An archive of this package."""
    return wb.compress(original, {"T": wb.Absolute("0.01 K"), "*": wb.Relative(1e-3)}).save(folder / "lossy.zip"), None


def decoded(original: Path, folder: Path) -> Made:
    """The NetCDF file that an archive becomes."""
    from workbench.cli import main

    archive, target = archived(original, folder)[0], folder / "decoded.nc"
    assert main(["decompress", str(archive), str(target), "--quiet"]) == 0
    return target, None


def bare(original: Path, folder: Path) -> Made:
    """A .npy file of the field alone."""
    with xr.open_dataset(original) as dataset:
        np.save(folder / "lossy.npy", np.round(dataset["T"].values, 2))
    return folder / "lossy.npy", {"T": wb.Absolute("0.00501 K")}


def identical(original: Path, folder: Path) -> Made:
    """The same values in a file of another format."""
    with xr.open_dataset(original) as dataset:
        dataset.to_netcdf(folder / "same.nc", format="NETCDF3_64BIT")
    return folder / "same.nc", None


def compressed_twice(original: Path, folder: Path) -> Made:
    """Rounded by NetCDF, and then encoded by ZFP: both statements count."""
    rounded = quantised(least_significant_digit=2)(original, folder)[0]
    target, rules = filtered("Zfp", accuracy=0.01)(rounded, folder)
    import h5py

    with h5py.File(target, "a") as file:
        file["T"].attrs["least_significant_digit"] = np.int32(2)
    return target, rules


FILES: dict[str, Callable[[Path, Path], Made]] = {
    "netcdf bitgroom": quantised(significant_digits=4, quantize_mode="BitGroom"),
    "netcdf granular bitround": quantised(significant_digits=4, quantize_mode="GranularBitRound"),
    "netcdf bitround": quantised(significant_digits=9, quantize_mode="BitRound"),
    "netcdf decimals": quantised(least_significant_digit=2),
    "netcdf packed": packed,
    "xbitinfo": bit_rounded,
    "hdf5 sz3 absolute": filtered("SZ3", absolute=0.01),
    "hdf5 sz3 of the range": filtered("SZ3", relative=1e-4),
    "hdf5 sz": filtered("SZ", absolute=0.01),
    "hdf5 zfp": filtered("Zfp", accuracy=0.02),
    "hdf5 zfp reversible": filtered("Zfp", reversible=True),
    "hdf5 sperr": filtered("Sperr", absolute=0.01),
    "hdf5 blosc2": filtered("Blosc2"),
    "hdf5 scale-offset": filtered("", scaleoffset=2),
    "zarr bitround": in_zarr("filters", "BitRound", keepbits=9),
    "zarr zfp": in_zarr("serializer", "ZFPY", mode=4, tolerance=0.01),
    "zarr quantize": in_zarr("filters", "Quantize", digits=2, dtype="f4"),
    "zarr fixed scale": in_zarr("filters", "FixedScaleOffset", offset=280, scale=100, dtype="f4", astype="i4"),
    "lossbench archive": archived,
    "lossbench netcdf": decoded,
    "npy": bare,
    "netcdf 3": identical,
    "rounded, then zfp": compressed_twice,
}
