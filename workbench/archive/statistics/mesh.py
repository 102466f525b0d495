"""The density of archived particles on a mesh: how many are in each cell, between proven ends.

Chunks are decoded one by one. A particle is certainly in a cell that holds the whole cube of the bound around its decoded
position; otherwise it may be in each cell that the cube touches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.archive.statistics.answer import Answer
from workbench.archive.statistics.particle_counts import Cubes, limit_of, require_particles
from workbench.arguments import whole_number
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Limit

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


@dataclass(frozen=True, eq=False, repr=False)
class Density(Answer):
    """Numbers of original particles in the cells of a mesh: at least `low` and at most `high` in each.

    `values` are those of the decoded positions. Cell i along an axis reaches from `edges[i]` up to `edges[i + 1]` of that
    axis, which is not part of it.
    """

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    edges: tuple[np.ndarray, ...]

    @property
    def contrast(self) -> np.ndarray:
        """The density divided by its mean, less one."""
        return self.values / self.values.mean() - 1

    def __repr__(self) -> str:
        size, share = " x ".join(map(str, self.values.shape)), float(np.mean(self.low == self.high))
        return f"Density({size} cells, {int(self.values.sum()):,} particles, {share:.1%} of cells known exactly)"


def density(archive: Archive, cells: int | Sequence[int]) -> Density:
    """The particles in each cell of a mesh over the box or, without one, over all places where particles can be.

    >>> import workbench as wb
    >>> mesh = density(wb.compress(wb.synthetic.cosmic_web(n=16, seed=1), wb.Absolute(0.01)), 4)
    >>> mesh
    Density(4 x 4 x 4 cells, 4,096 particles, 31.2% of cells known exactly)
    >>> int(mesh.low.sum()) <= 4096 <= int(mesh.high.sum())
    True
    """
    require_particles(archive, "density")
    box, limit = archive.box, limit_of(archive)
    shape = _shape(cells, archive.data.layout.shape[1])
    edges = _edges(archive, shape, limit)
    width = min(float(np.diff(along).min()) for along in edges)
    size = math.prod(shape)
    archive.data.trust.require_room(3 * 8 * size, "the density")
    try:
        certain, values, possible = (np.zeros(size, np.int64) for _ in range(3))
    except (MemoryError, ValueError):   # also beyond the largest array
        raise WorkbenchError(f"a mesh of {size:,} cells takes more memory than there is: take fewer cells") from None
    for _, positions in archive.data.chunks():
        cubes = Cubes.around(positions, limit, box)
        reach = cubes.margin(np.stack([along[[0, -1]] for along in edges]))
        if not 2 * reach.max() < width:
            raise WorkbenchError(
                f"a cell must be wider than twice the bound of positions, {2 * reach.max():.4g}; got {briefly(cells)} "
                f"cells of width {width:.4g}: take fewer"
            )
        first, last, middle = (_cells_of(cubes.positions + off, edges, box is not None) for off in (-reach, reach, 0.0))
        same = (first == last).all(axis=1)
        _add(certain, shape, first[same])
        _add(values, shape, middle)
        for corner in itertools.product((False, True), repeat=len(shape)):
            touched = np.where(corner, last, first)[~same]
            _add(possible, shape, touched[((first != last)[~same] | ~np.array(corner)).all(axis=1)])
    low, counted, touched = (part.reshape(shape) for part in (certain, values, possible))
    return Density(counted, low, low + touched, edges)


def _shape(cells: int | Sequence[int], dimensions: int) -> tuple[int, ...]:
    """The number of cells along each axis."""
    each = list(cells) if isinstance(cells, list | tuple | np.ndarray) and np.ndim(cells) else [cells] * dimensions
    if len(each) != dimensions:
        raise WorkbenchError(f"cells must be a number, or one for each of {dimensions} axes; got {briefly(cells)}")
    return tuple(whole_number("cells", one, least=1) for one in each)


def _edges(archive: Archive, shape: tuple[int, ...], limit: Limit | None) -> tuple[np.ndarray, ...]:
    """The ends of the cells along each axis."""
    if archive.box is not None:
        return tuple(np.linspace(0, length, size + 1) for length, size in zip(archive.box, shape, strict=True))
    extents = archive.whole("extents")
    ends = np.stack([extents[:, 0].min(axis=0), extents[:, 1].max(axis=0)])
    cubes = Cubes.around(ends, limit, None)
    reach = 2 * cubes.margin(ends) - cubes.reach   # more than the margin from these edges
    low, high = cubes.positions[0] - reach[0], np.nextafter(cubes.positions[1] + reach[1], np.inf)
    return tuple(np.linspace(*axis) for axis in zip(low, high, np.array(shape) + 1, strict=True))


def _cells_of(places: np.ndarray, edges: tuple[np.ndarray, ...], periodic: bool) -> np.ndarray:
    """The cell of each place along each axis; beyond the mesh, the one at its other end, or else the nearest one."""
    cells = []
    for each, place in zip(edges, places.T, strict=True):
        cell, count = np.searchsorted(each, place, side="right") - 1, len(each) - 1
        cells.append(np.mod(cell, count) if periodic else np.clip(cell, 0, count - 1))
    return np.stack(cells, axis=1)


def _add(counts: np.ndarray, shape: tuple[int, ...], cells: np.ndarray) -> None:
    counts += np.bincount(np.ravel_multi_index(tuple(cells.T), shape), minlength=len(counts))
