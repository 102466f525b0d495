"""GRIB files for tests, written message by message by ecCodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROWS, COLUMNS = 5, 8
GRID = {
    "Ni": COLUMNS, "Nj": ROWS, "latitudeOfFirstGridPointInDegrees": 60, "latitudeOfLastGridPointInDegrees": 52,
    "longitudeOfFirstGridPointInDegrees": 0, "longitudeOfLastGridPointInDegrees": 14, "iDirectionIncrementInDegrees": 2,
    "jDirectionIncrementInDegrees": 2, "dataTime": 0, "bitsPerValue": 24,
}
MISSING = 9999.0


def values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(ROWS, COLUMNS))


def write(path: Path, messages: Iterable[tuple[Mapping[str, Any], np.ndarray]]) -> Path:
    """A file of messages: what is stated of each, and its values, of which those that are NaN are missing."""
    eccodes = pytest.importorskip("eccodes", reason="needs the grib extra")
    pytest.importorskip("cfgrib", reason="needs the grib extra")
    with path.open("wb") as file:
        for stated, array in messages:
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            keys = {**GRID, **stated}
            if np.isnan(array).any():
                keys |= {"bitmapPresent": 1, "missingValue": MISSING}
            for key, value in keys.items():
                eccodes.codes_set(message, key, value)
            eccodes.codes_set_values(message, np.nan_to_num(array, nan=MISSING).ravel())
            eccodes.codes_write(message, file)
            eccodes.codes_release(message)
    return path


def on_levels(name: str, date: int, levels: tuple[int, ...] = (850, 500)) -> list[tuple[Mapping[str, Any], np.ndarray]]:
    """A variable on levels of pressure at a date."""
    return [
        ({"shortName": name, "typeOfLevel": "isobaricInhPa", "level": level, "dataDate": date}, values(date + level))
        for level in levels
    ]
