"""Datasets for the tests of collections."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from hypothesis import strategies as st

import workbench as wb

RULES = {"T": wb.Absolute("0.01 K"), "z": wb.Absolute(0.1), "half": wb.Absolute(0.01), "*": wb.Exact()}
BOUNDED = {"T": 0.01, "z": 0.1, "half": 0.01}


def sample() -> xr.Dataset:
    """A dataset with variables of all kinds, coordinates, attributes of many types, and encodings."""
    random = np.random.default_rng(0)
    dataset = xr.Dataset(
        {
            "T": (
                ("time", "lat", "lon"), random.normal(size=(4, 30, 40)).astype("f4").cumsum(1).cumsum(2),
                {"units": "K", "valid_range": np.array([0, 9], "i2"), "_FillValue_was": np.float32("nan")},
            ),
            "flag": (("lat", "lon"), random.integers(-3, 3, (30, 40)).astype("i2")),
            "station": ("lat", np.array(["å" * count for count in range(30)], object)),
            "code": ("lat", np.array([b"ab", b"c"] * 15)),
            "crs": ((), np.int32(3), {"grid_mapping_name": "latitude_longitude", "semi_major_axis": 6378137.0}),
            "ok": ("lat", np.arange(30) % 2 == 0),
            "z": (("lat", "lon"), random.normal(size=(30, 40)) + 1j * random.normal(size=(30, 40))),
            "half": (("lat", "lon"), random.normal(size=(30, 40)).astype("f2")),
            "many": (("a", "b", "c", "lat", "time"), random.normal(size=(2, 2, 3, 30, 4))),
            "nothing": (("none", "lat"), np.zeros((0, 30), "f4")),
        },
        coords={
            "time": pd.date_range("2020", periods=4),
            "lat": np.linspace(0, 1, 30),
            "lon": np.linspace(0, 2, 40),
            "period": ("time", np.arange(4).astype("m8[h]").astype("m8[ns]")),
            "height": ((), 2.5),
        },
        attrs={"title": "a sample", "numbers": np.arange(3.0), "history": ["one", "two"]},
    )
    dataset["flag"].encoding = {"dtype": np.dtype("i1"), "_FillValue": np.int8(-9), "chunksizes": (15, 40), "zlib": True}
    dataset.encoding = {"unlimited_dims": ["time"]}
    return dataset


def unbounded(dataset: xr.Dataset) -> xr.Dataset:
    """The variables that are kept exactly."""
    return dataset.drop_vars([name for name in BOUNDED if name in dataset])


KINDS = ("f4", "f8", "i1", "u8", "?", "M8[ns]", "m8[s]", "U3", "S2", "c8", "f2", "O")


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """An array of any type and of zero to six dimensions, also an empty one."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=6)))
    kind, random = draw(st.sampled_from(KINDS)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "O":
        texts = [None if value < 2 else "é" * value for value in random.integers(0, 9, int(np.prod(shape))).tolist()]
        array = np.empty(len(texts), object)
        array[:] = texts
        return array.reshape(shape)
    if kind[0] in "US":
        return random.integers(0, 999, shape).astype(kind)
    width = np.dtype(kind).itemsize
    bits = random.integers(0, 256, (*shape, width), np.uint8)
    if kind == "?":
        return bits[..., 0] % 2 == 0
    return np.ascontiguousarray(bits).view(kind).reshape(shape)
