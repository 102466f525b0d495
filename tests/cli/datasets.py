"""A small dataset as a file, for the tests of commands."""

from pathlib import Path

import numpy as np
import xarray as xr

PACKED = {"dtype": "int16", "scale_factor": 1.0, "add_offset": 1e5, "_FillValue": -32768}
RULES = ("--abs", "T=0.01K", "--rel", "P*=1e-3", "--pointwise", "Q=1e-3", "--exact", "lat")


def smooth(*shape: int) -> np.ndarray:
    return sum(np.sin(np.linspace(0, 6, size)).reshape([-1 if i == axis else 1 for i in range(len(shape))])
               for axis, size in enumerate(shape))


def dataset() -> xr.Dataset:
    wave, axes = smooth(10, 12, 16), ("time", "lat", "lon")
    return xr.Dataset(
        {
            "T": (axes, (280 + 10 * wave).astype("f4"), {"units": "K", "long_name": "temperature"}),
            "P": (axes, np.round(1e5 + 1e3 * wave), {"units": "Pa"}),
            "Q": (axes, (1e-3 * (4.5 + wave)).astype("f4"), {"units": "kg kg-1"}),
            "flag": (("lat", "lon"), np.arange(192, dtype="i4").reshape(12, 16)),
            "station": ("lat", np.array([f"station {number}" for number in range(12)], object)),
        },
        {
            "time": np.datetime64("2026-01-01", "ns") + np.arange(10) * np.timedelta64(1, "D"),
            "lat": np.linspace(-80, 80, 12), "lon": np.linspace(0, 337.5, 16),
        },
        {"title": "a test"},
    )


def written(path: Path) -> Path:
    """The dataset as NetCDF-4; pressure is packed, and temperature in compressed chunks."""
    encoding = {"P": PACKED, "T": {"zlib": True, "complevel": 2, "chunksizes": (5, 12, 16)}}
    dataset().to_netcdf(path, encoding=encoding)
    return path


def with_groups(path: Path) -> Path:
    """A file with a group."""
    dataset()[["T"]].to_netcdf(path)
    dataset()[["P", "Q"]].to_netcdf(path, mode="a", group="ocean")
    return path


def without_losses(found: xr.Dataset) -> xr.Dataset:
    """A dataset of a file, without what the file says of the errors in its values."""
    found = found.drop_vars("quantization_info", errors="ignore")
    for variable in found.variables.values():
        stated = [name for name in variable.attrs if name.startswith(("lossy_compression", "quantization"))]
        for name in stated:
            del variable.attrs[name]
    return found
