"""How an archive was made, as far as it helps someone who opens it in ten years."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from workbench.codecs import Codec, Columns

LONGEST = 1000   # characters of a value that JSON cannot hold


def of(codec: Codec) -> dict[str, Any]:
    """The codec with its options, and the versions of what took part."""
    inner = codec.codec if isinstance(codec, Columns) else codec
    names = [name for name in ("lossbench", "numpy", "pcodec", inner.module) if name]
    return {
        "codec": codec.to_dict(),
        "versions": {name: _version(name) for name in dict.fromkeys(names)},
        "machine": platform.machine(),
    }


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a file said about itself, as JSON can hold it: arrays as lists, everything strange as text.

    >>> plain({"redshift": np.float64(0.5), "box": np.array([1, 2]), "when": np.datetime64("2026-01-01")})
    {'redshift': 0.5, 'box': [1, 2], 'when': '2026-01-01'}
    """
    return {str(key): _plain(value) for key, value in metadata.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufUS":
        value = value.tolist()
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text[:LONGEST]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
