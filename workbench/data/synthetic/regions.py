"""Piecewise homogeneous fields whose regions have exact models.

The region model is the separable first-order autoregression: within a region, the values are jointly Gaussian with
mean `mean` and covariance sigma^2 * rho^(|i1 - j1| + |i2 - j2| + ...) between the points i and j. Different regions are
independent. Each region is cut out of a stationary field on the whole grid, so the covariance holds for any pair of points
and any shape of the region, without transients at its edges.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from workbench.arguments import grid_shape, positive, whole_number
from workbench.data.field import Field
from workbench.data.synthetic.random_numbers import generator
from workbench.errors import WorkbenchError


@dataclass(frozen=True, slots=True)
class Region:
    """The model of one region: a stationary, separable Gauss-Markov field.

    >>> Region.with_correlation_length(sigma=2.0, length=10.0)
    Region(sigma=2.0, rho=0.9048374180359595, mean=0.0)
    """

    sigma: float = 1.0
    """The standard deviation of each value."""
    rho: float = 0.9
    """The correlation of neighbours along every axis: 0 is white noise."""
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.sigma < np.inf:
            raise WorkbenchError(f"sigma must be finite and not negative; got {self.sigma!r}")
        if not -1 < self.rho < 1:
            raise WorkbenchError(f"rho must lie between -1 and 1, both excluded; got {self.rho!r}")
        if not np.isfinite(self.mean):
            raise WorkbenchError(f"mean must be finite; got {self.mean!r}")

    @classmethod
    def with_correlation_length(cls, sigma: float, length: float, mean: float = 0.0) -> Region:
        """The region whose correlation falls to 1/e over `length` grid points along an axis."""
        return cls(sigma, float(np.exp(-1 / positive("length", length))), mean)


def piecewise_field(
    shape: int | Sequence[int],
    regions: Sequence[Region],
    seed: int = 0,
    *,
    layout: str | np.ndarray = "split",
    block: int | None = None,
) -> Field:
    """A field (float32) of homogeneous regions; `metadata["regions"]` is the map of the regions.

    `layout` is "split" (one slab per region along the last axis), "blocks" (a checkerboard of cubes of `block` points a
    side), "discs" (the first region is the background; the others are discs in it, in turn, one per `block`), or an
    integer array with the region of each point. The default `block` is a quarter of the shortest axis.
    `metadata["models"]` holds the parameters of each region.

    >>> field = piecewise_field((64, 64), [Region(1.0, 0.95), Region(0.1, 0.0)], layout="blocks")
    >>> field.metadata["regions"][0, ::16].tolist()
    [0, 1, 0, 1]
    """
    axes = grid_shape(shape)
    models = _models(regions)
    block = max(2, min(axes) // 4) if block is None else whole_number("block", block, least=1)
    where = _region_map(layout, axes, len(models), block)
    values = np.empty(axes, np.float32)
    random = generator(seed)
    for index, model in enumerate(models):
        chosen = where == index
        values[chosen] = (model.mean + model.sigma * gauss_markov(random, axes, model.rho))[chosen]
    where.flags.writeable = False
    metadata = {"regions": where, "models": tuple(asdict(model) for model in models), "seed": int(seed)}
    return Field(values, name="piecewise", metadata=metadata)


def gauss_markov(random: np.random.Generator, shape: tuple[int, ...], rho: float) -> np.ndarray:
    """Values of unit variance with correlation rho^|distance| along every axis, stationary from the first point on.

    Each axis is the recursion y[t] = rho y[t-1] + e[t], started with its stationary variance. It is computed as a parallel
    prefix sum (recursive doubling) in log2(length) passes over the array, without a loop over its points.
    """
    values = random.standard_normal(shape)
    for axis, length in enumerate(shape):
        line = np.moveaxis(values, axis, 0)
        line[1:] *= np.sqrt(1 - rho**2)
        reach, factor = 1, rho
        while reach < length and factor != 0:
            line[reach:] += factor * line[:-reach]
            reach, factor = 2 * reach, factor * factor
    return values


def _models(regions: Sequence[Region]) -> list[Region]:
    models = list(regions)
    if not models or not all(isinstance(model, Region) for model in models):
        raise WorkbenchError(f"regions must be a list of at least one Region(sigma, rho); got {regions!r}")
    return models


def _region_map(layout: str | np.ndarray, shape: tuple[int, ...], count: int, block: int) -> np.ndarray:
    if isinstance(layout, str):
        if layout not in _LAYOUTS:
            raise WorkbenchError(f"layout must be {', '.join(map(repr, _LAYOUTS))}, or an integer array; got {layout!r}")
        return _LAYOUTS[layout](shape, count, block).astype(np.int32)
    where = np.array(layout)
    if where.shape != shape or where.dtype.kind not in "iu" or where.min() < 0 or where.max() >= count:
        raise WorkbenchError(
            f"layout must be an integer array of shape {shape} with values from 0 to {count - 1}, one per region; "
            f"got {where.dtype} of shape {where.shape}" + (f" in [{where.min()}, {where.max()}]" if where.size else "")
        )
    return where.astype(np.int32)


def _split(shape: tuple[int, ...], count: int, block: int) -> np.ndarray:
    return np.broadcast_to(np.arange(shape[-1]) * count // shape[-1], shape)


def _blocks(shape: tuple[int, ...], count: int, block: int) -> np.ndarray:
    return _total(index // block for index in np.indices(shape, sparse=True)) % count


def _discs(shape: tuple[int, ...], count: int, block: int) -> np.ndarray:
    """Discs of radius 0.4 blocks, centred on the middle point of each block."""
    offsets = [index % block - block // 2 for index in np.indices(shape, sparse=True)]
    inside = np.broadcast_to(_total(offset**2 for offset in offsets) <= (0.4 * block) ** 2, shape)
    return np.where(inside, 1 + _blocks(shape, max(count - 1, 1), block), 0) if count > 1 else np.zeros(shape)


def _total(arrays: Iterable[np.ndarray]) -> np.ndarray:
    return functools.reduce(np.add, arrays)


_Layout = Callable[[tuple[int, ...], int, int], np.ndarray]   # of the shape, the number of regions, and the block
_LAYOUTS: dict[str, _Layout] = {"split": _split, "blocks": _blocks, "discs": _discs}
