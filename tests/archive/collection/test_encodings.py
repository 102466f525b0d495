"""Encodings that are no plain values."""

import numpy as np
import xarray as xr

import workbench as wb


def test_dimensions_without_a_limit_are_kept() -> None:
    given = xr.Dataset({"T": ("time", np.zeros(3))})
    given.encoding["unlimited_dims"] = {"time"}
    assert wb.compress(given, {"T": wb.Exact()}).to_xarray().encoding["unlimited_dims"] == ["time"]
