"""A small dataset, a good lossy copy of it, and the defects that may be planted into the copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import workbench as wb

BOUNDS = {"T": wb.Absolute("0.01 K"), "q": wb.Relative(1e-3), "sst": wb.Absolute(0.01), "*": wb.Exact()}
FILL = 1e20


def small_dataset() -> xr.Dataset:
    """Fields with and without a mask, in float32 and float64, with coordinates, a calendar and units."""
    rng = np.random.default_rng(37)
    time, lat, lon = np.arange(12), np.linspace(-75, 75, 24), np.linspace(0, 345, 24)
    waves = np.cos(np.radians(lat))[:, None] * 25 + 3 * np.sin(np.radians(2 * lon)) + lat[:, None] / 20
    drift = np.cumsum(rng.normal(size=(12, 24, 24)), axis=0) + time[:, None, None] * 0.3
    temperature = (280 + waves + drift).astype(np.float32)
    sst = np.where(rng.random((24, 24)) < 0.25, np.nan, waves).astype(np.float32)
    q = np.exp(rng.normal(size=(12, 24, 24)))
    axes = ("time", "lat", "lon")
    return xr.Dataset(
        {
            "T": (axes, temperature, {"units": "K", "standard_name": "air_temperature"}),
            "q": (axes, q, {"units": "g/kg"}),
            "sst": (axes[1:], sst, {"units": "degC"}),
        },
        {
            "time": ("time", np.datetime64("2001-01-01") + time * np.timedelta64(1, "D")),
            "lat": ("lat", lat, {"units": "degrees_north"}), "lon": ("lon", lon, {"units": "degrees_east"}),
        },
        {"title": "made for tests"},
    )


def good_copy(original: xr.Dataset) -> xr.Dataset:
    """A copy within the bounds."""
    copy = original.copy(deep=True)
    copy["T"] = copy["T"].copy(data=np.round(copy["T"].values * 64) / np.float32(64))
    copy["q"] = copy["q"].copy(data=np.round(copy["q"].values, 3))
    copy["sst"] = copy["sst"].copy(data=np.round(copy["sst"].values, 2))
    return copy


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[xr.Dataset], xr.Dataset]:
    """A defect of the values of one variable."""
    def planted(copy: xr.Dataset) -> xr.Dataset:
        return copy.assign({name: copy[name].copy(data=change(copy[name].values.copy()))})

    return planted


def with_values(place: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Values in one place."""
    def change(values: np.ndarray) -> np.ndarray:
        values[place] = value
        return values

    return change


def repeated(values: np.ndarray) -> np.ndarray:
    values[5] = values[4]
    return values


def unmasked(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), 3.0 + np.arange(values.shape[1]), values)


def wrapped(values: np.ndarray) -> np.ndarray:
    return np.where(values > 304, values - np.float32(65.536), values)


def without_units(copy: xr.Dataset) -> xr.Dataset:
    del copy["T"].attrs["units"]
    return copy


def one_beyond(values: np.ndarray) -> np.ndarray:
    values[3, 7, 11] += np.float32(0.02)
    return values


# name: (what is planted, the kind of finding, the member that it is about)
DEFECTS: dict[str, tuple[Callable[[xr.Dataset], xr.Dataset], str, str]] = {
    "a value over its bound": (changed("T", one_beyond), "bound broken", "T"),
    "swapped axes": (changed("T", lambda values: values.transpose(0, 2, 1)), "axes swapped", "T"),
    "shifted time": (changed("T", lambda values: np.roll(values, 1, 0)), "shifted", "T"),
    "lost mask": (changed("sst", unmasked), "mask lost", "sst"),
    "wrong unit": (changed("T", lambda values: values - np.float32(273.15)), "offset", "T"),
    "wrong scale": (changed("q", lambda values: values * 1000), "unit or scale", "q"),
    "float32 instead of float64": (changed("q", lambda values: (values * 1.01).astype(np.float32)), "narrower type", "q"),
    "one missing chunk": (changed("T", with_values(np.s_[4:8, 8:16], 0)), "missing chunk", "T"),
    "a missing chunk of NaN": (changed("q", with_values(np.s_[:4, :8], np.nan)), "missing chunk", "q"),
    "a fill value as data": (changed("sst", lambda values: np.nan_to_num(values, nan=FILL)), "fill value as data", "sst"),
    "a flipped axis": (changed("T", lambda values: values[:, ::-1]), "axis flipped", "T"),
    "longitudes from -180": (changed("T", lambda values: np.roll(values, 12, 2)), "shifted", "T"),
    "shifted coordinates": (lambda copy: copy.assign_coords(lat=copy.lat + 75 / 11.5), "coordinates shifted", "lat"),
    "shifted time stamps": (
        lambda copy: copy.assign_coords(time=copy.time + np.timedelta64(1, "D")), "coordinates shifted", "time"),
    "the other sign": (changed("sst", lambda values: -values), "sign", "sst"),
    "the other byte order": (changed("q", lambda values: values.byteswap()), "byte order", "q"),
    "a truncated variable": (lambda copy: copy.isel(time=slice(0, 10)), "truncated", "T"),
    "a missing variable": (lambda copy: copy.drop_vars("q"), "missing member", "q"),
    "another order of dimensions": (
        lambda copy: copy.assign(T=copy["T"].transpose("lon", "time", "lat")), "dimension order", "T"),
    "a repeated step": (changed("T", repeated), "repeated step", "T"),
    "a lost unit": (without_units, "units lost", "T"),
    "clipped values": (changed("T", lambda values: np.minimum(values, np.float32(300))), "clipped", "T"),
    "wrapped integers": (changed("T", wrapped), "wrapped", "T"),
}
