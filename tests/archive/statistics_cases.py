"""Random archives for tests of statistics: any codec, bound, mask and missing values, cut into chunks of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from archive.samples import CODECS
from workbench.archive import Archive

FIELD_CODECS = [codec for codec in ("staged", "prequantised", "interpolation", "zfp", "pcodec") if codec in CODECS]
SHAPES = [(1,), (513,), (700,), (13, 17), (33, 40), (9, 11, 13), (16, 17, 8), (3, 5, 9, 8), (40, 2, 3, 2)]
KINDS = ("smooth", "noise", "offset", "constant", "large", "small", "spikes", "tails")

every_codec = pytest.mark.parametrize("codec", FIELD_CODECS)


def field(rng: np.random.Generator, shape: tuple[int, ...], dtype: type, kind: str) -> np.ndarray:
    """A field of a kind that is hard for sums, for lattices or for both."""
    smooth = np.sin(sum((axis + 1) * each for axis, each in enumerate(np.indices(shape))) / rng.uniform(2, 20))
    noise = rng.normal(size=shape)
    large, small = (1e30, 1e-36) if dtype is np.float32 else (1e300, 1e-300)
    made = {
        "smooth": smooth, "noise": noise, "offset": 1e4 + smooth, "constant": np.full(shape, rng.normal()),
        "large": smooth * large, "small": noise * small,
        "spikes": np.where(rng.random(shape) < 0.01, noise * 1e9, smooth), "tails": smooth * np.exp(5 * noise),
    }
    return np.ascontiguousarray(made[kind].astype(dtype))


def made_up(rng: np.random.Generator) -> tuple[Archive, np.ndarray, np.ndarray | None]:
    """A random archive, with the original and its mask."""
    codec: Any = FIELD_CODECS[0] if rng.random() < 0.5 else FIELD_CODECS[int(rng.integers(len(FIELD_CODECS)))]
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    dtype, kind = (np.float32, np.float64)[int(rng.integers(2))], KINDS[int(rng.integers(len(KINDS)))]
    values, mask = field(rng, shape, dtype, kind), None
    bound = bound_for(rng, float(np.abs(values).max()) or 1.0)
    if rng.random() < 0.3:
        values[rng.random(shape) < rng.choice([0.01, 0.5])] = rng.choice([np.nan, np.inf, -np.inf])
    if rng.random() < 0.3:
        mask = rng.random(shape) < 0.3
        mask[: shape[0] // 2] |= rng.random() < 0.5
        values[mask & (rng.random(shape) < 0.5)] = 1e30
    if codec == "staged" and rng.random() < 0.5:
        sides = (8, 8, 8) if rng.random() < 0.5 else (16, 16, 16)
        codec = wb.codecs.get(codec, sides=sides, deflate=bool(rng.random() < 0.5))
    archive = wb.compress(wb.Field(values, mask=mask), bound, codec, chunk_values=int(rng.choice([256, 600, 10**6])))
    return archive, values, mask


def bound_for(rng: np.random.Generator, size: float) -> wb.Bound:
    """A bound of any kind for values of this size."""
    share, choice = 10.0 ** rng.uniform(-8, -0.3), rng.random()
    kind = wb.PointwiseRelative if choice < 0.15 else wb.Relative if choice < 0.5 else wb.Absolute
    bound = kind(share * size if kind is wb.Absolute else share)
    return wb.PerSlice(bound, 0) if 0.4 < choice < 0.55 else bound


def regions_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[Any]:
    """The whole field, and two parts of it."""
    yield None
    for _ in range(2):
        yield [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in shape]


def valid_in(values: np.ndarray, mask: np.ndarray | None, region: Any) -> np.ndarray:
    """The values of a region that are finite and not masked."""
    place = (slice(None),) * values.ndim if region is None else tuple(slice(*ends) for ends in region)
    valid = np.isfinite(values) if mask is None else np.isfinite(values) & ~mask
    return values[place][valid[place]]


def archives(values: np.ndarray, bound: wb.Bound, codec: str) -> list[Archive]:
    """Archives of a field in one chunk and in many."""
    return [wb.compress(values, bound, codec, chunk_values=size) for size in (300, 10**6)]
