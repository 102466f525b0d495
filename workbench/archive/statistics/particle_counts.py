"""Numbers of archived particles in regions, spheres and the cells of a mesh, between proven ends.

An original position is within the bound of the decoded one, so a particle is certainly inside where the whole cube of the
bound around it is, and possibly inside where the cube touches. Chunks and blocks of the Morton curve that lie wholly inside
or outside are counted by their extents and key ranges; of the others, positions are decoded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive import region as regions
from workbench.archive.frame import Damaged
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.archive.region import Box, Cuboid
from workbench.archive.statistics.answer import Answer
from workbench.codecs.codec import CodecFailed
from workbench.codecs.lattice_stream import Stream
from workbench.data.extent import inside
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Limit

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

RANGES, SOME, POSITIONS = "extents and key ranges", "extents and key ranges, and some positions", "positions"
ROUNDED = 2.0**-48   # more than the rounding of a distance, as a share of the largest coordinate


@dataclass(frozen=True)
class ParticleCount(Answer):
    """How many original particles are in a part of space: at least `low` and at most `high`.

    >>> print(ParticleCount(1000, 990, 1020, RANGES, 10, 100))
    1,000, between 990 and 1,020
    """

    value: int            # of the decoded positions
    low: int
    high: int
    stage: str            # what had to be decoded
    positions_read: int   # that were decoded
    particles: int        # in the archive

    def __str__(self) -> str:
        return f"{self.value:,}, between {self.low:,} and {self.high:,}"

    @property
    def _line(self) -> str:
        return f"particles: {self}"


@dataclass(frozen=True)
class Cubes:
    """Decoded positions, and the cubes around them that hold the original ones."""

    positions: np.ndarray   # float64
    reach: np.ndarray       # half the side of each cube, along each axis
    box: Box

    @classmethod
    def around(cls, positions: np.ndarray, limit: Limit | None, box: Box) -> Cubes:
        """The cubes that a promise implies; without a limit, they are points."""
        middle = positions.astype(np.float64)
        reach = np.zeros(middle.shape)
        if limit is not None:
            share = limit.value / (1 - limit.value) * np.abs(middle)
            reach = np.nextafter((share if limit.relative else limit.value) * (1 + ROUNDED) + reach, np.inf)
        return cls(middle, reach, box)

    def in_region(self, region: np.ndarray) -> tuple[int, int, int]:
        """How many are certainly inside (D, 2) lower and upper ends, inside as decoded, and possibly inside."""
        decoded = inside(self.positions, _cuboids(region, self.box))
        if not self.reach.any():
            return (int(decoded.sum()),) * 3
        low, high = region.T
        reach, width = self.margin(region), high - low
        above = self.positions - low
        certain, possible = (above >= reach) & (above + reach < width), (above + reach >= 0) & (above < width + reach)
        if self.box is not None:
            length = np.asarray(self.box)
            above = np.mod(above, length)
            certain = (width >= length) | ((above >= reach) & (above + reach < width))
            possible = (above < width + reach) | (above + reach >= length)
        return int(certain.all(axis=1).sum()), int(decoded.sum()), int(possible.all(axis=1).sum())

    def in_sphere(self, centre: np.ndarray, radius: float) -> tuple[int, int, int]:
        """The same for a sphere, with its surface."""
        away = np.abs(self.positions - centre)
        if self.box is not None:
            away = np.mod(away, np.asarray(self.box))
            away = np.minimum(away, np.asarray(self.box) - away)
        reach = self.margin(centre)
        nearest, farthest = _norm(np.maximum(away - reach, 0)), _norm(away + reach)
        return tuple(int((distance <= radius).sum()) for distance in (farthest, _norm(away), nearest))   # type: ignore[return-value]

    def margin(self, ends: np.ndarray) -> np.ndarray:
        """How far original positions can be from decoded ones, as rounded differences from these numbers show it."""
        if not self.reach.any():
            return self.reach
        return self.reach + ROUNDED * float(
            np.abs(ends).max() + np.abs(self.positions).max(initial=0.0) + max(self.box or (0.0,))
        )


def count(archive: Archive, region: Any = None, sphere: Any = None) -> ParticleCount:
    """How many particles are in a region, lower <= x < upper along each axis, or within a sphere (centre, radius).

    >>> import workbench as wb
    >>> grid = np.stack(np.meshgrid(*[np.arange(16.0) + 0.5] * 3), axis=-1).reshape(-1, 3)
    >>> archive = wb.compress(wb.Particles(grid, box=16.0), wb.Absolute(0.1))
    >>> print(count(archive, [(0, 8), (0, 8), (4.55, 16)]))
    704, between 704 and 768
    """
    require_particles(archive, "count_particles")
    dimensions = archive.data.layout.shape[1]
    if (region is None) == (sphere is None):
        raise WorkbenchError("count_particles takes a region, or a sphere=(centre, radius); got both or none of them")
    if sphere is not None:
        centre, radius = _sphere_of(sphere, dimensions)
        ends = np.stack([centre - radius, centre + radius], axis=1)
    else:
        regions.cuboids(region, dimensions, archive.box)   # refuses what is no region
        ends = np.array(region, np.float64)
    limit = limit_of(archive)
    totals = np.zeros(3, np.int64)
    read = ranges = 0
    for part in _parts(archive, ends, limit, whole_blocks=sphere is None):
        ranges += part.certain
        totals += part.certain
        if part.positions is not None:
            cubes = Cubes.around(part.positions, limit, archive.box)
            totals += cubes.in_region(ends) if sphere is None else cubes.in_sphere(centre, radius)
            read += len(part.positions)
    stage = RANGES if not read else SOME if ranges else POSITIONS
    low, value, high = totals.tolist()
    return ParticleCount(value, low, high, stage, read, len(archive))


def require_particles(archive: Archive, what: str) -> None:
    """Refuse archives of anything else."""
    if archive.kind != "particles":
        raise WorkbenchError(f"{what} is of particles; this archive holds {archive.content.words}")
    if "extents" not in archive.arrays:
        raise WorkbenchError(f"the extents of the chunks are lost, and {what} needs them: use salvage()")


def limit_of(archive: Archive) -> Limit | None:
    """What is promised of each coordinate; None for the same bits."""
    limit = archive.certificate["positions"].limit_at((slice(0, 1),) * 2)
    return None if limit is None or limit.value == 0 else limit


@dataclass(frozen=True)
class _Part:
    """Of a chunk: how many particles are certainly inside without being decoded, and the positions of those to compare."""

    certain: int
    positions: np.ndarray | None = None


def _parts(archive: Archive, ends: np.ndarray, limit: Limit | None, whole_blocks: bool) -> Iterator[_Part]:
    """The chunks that can have particles of a region, as far as each must be decoded."""
    positions, box = archive.data, archive.box
    extents = archive.whole("extents")
    if limit is not None and limit.relative:
        yield from (_Part(0, values) for _, values in positions.chunks())
        return
    reach = 0.0 if limit is None else limit.value
    reach += ROUNDED * (reach + np.abs(ends).max() + np.abs(extents).max() + max(box or (0.0,)))
    wider = np.array([-reach, reach])
    outer, inner = ends + wider, ends - wider
    near = _cuboids(outer, box)
    within = _cuboids(inner, box) if whole_blocks and (inner[:, 0] < inner[:, 1]).all() else []
    for number, (low, high) in enumerate(extents):
        index = (number, 0)
        if any(((low >= a) & (high < b)).all() for a, b in within):
            yield _Part(positions.layout.chunk_extent(index)[0])
            continue
        met = [(np.clip(a, low, high), np.clip(b, low, high)) for a, b in near if ((low < b) & (high >= a)).all()]
        if met:
            try:
                yield _of_blocks(positions, index, met, within, (low, high))
            except (CodecFailed, OverflowError) as error:   # extents can be forged, too
                raise Damaged(positions.layout.chunk_key(index), str(error)) from error


def _of_blocks(
    positions: StoredArray, index: Index, near: list[Cuboid], within: list[Cuboid], extent: Cuboid
) -> _Part:
    """The blocks of a chunk that reach into the region, without decoding those that lie wholly in it."""
    stream = regions.blocks_of(positions, index)
    if not isinstance(stream, Stream):
        return _Part(0, positions.chunk(index))
    reached = stream.reaching(near)
    certain = np.zeros(len(reached), bool)
    for cuboid in within:
        certain |= reached & ~stream.reaching(_around(cuboid, extent))
    blocks = np.flatnonzero(reached & ~certain)
    counts = np.minimum(stream.block, stream.count - np.flatnonzero(certain) * stream.block)
    if not len(blocks):
        return _Part(int(counts.sum()))
    keys, low = stream.keys(blocks)
    return _Part(int(counts.sum()), stream.lattice.positions(keys, low, positions.layout.dtype))


def _around(cuboid: Cuboid, extent: Cuboid) -> list[Cuboid]:
    """Slabs that cover an extent without a cuboid in it.

    >>> extent = np.array([0]), np.array([4])
    >>> [(low.tolist(), high.tolist()) for low, high in _around((np.array([1]), np.array([3])), extent)]
    [([0], [1]), ([3], [4])]
    """
    slabs = []
    (low, high), (first, last) = cuboid, extent
    for axis in range(len(low)):
        if low[axis] > first[axis]:
            slabs.append((first, np.where(np.arange(len(low)) == axis, low, last)))
        if high[axis] <= last[axis]:
            slabs.append((np.where(np.arange(len(low)) == axis, high, first), last))
    return slabs


def _cuboids(ends: np.ndarray, box: Box) -> list[Cuboid]:
    return regions.cuboids(ends.tolist(), len(ends), box)


def _sphere_of(sphere: Any, dimensions: int) -> tuple[np.ndarray, float]:
    try:
        centre, radius = sphere
        middle, size = np.array(centre, np.float64), float(radius)
    except (TypeError, ValueError):
        middle, size = np.empty(0), math.nan
    if middle.shape != (dimensions,) or not np.isfinite(middle).all() or not 0 < size < math.inf:
        raise WorkbenchError(f"sphere must be ({dimensions} coordinates, a positive radius); got {briefly(sphere)}")
    return middle, size


def _norm(away: np.ndarray) -> np.ndarray:
    return np.sqrt((away**2).sum(axis=1))
