"""Friends of friends: the groups of particles connected by links no longer than the linking length.

Two particles are friends when their squared distance, computed in float64 with the nearest periodic image, is at most
the linking length squared. That predicate is defined once (`kernels/space.cuh`) and decides every pair; the code here only
arranges the particles so that few pairs have to be compared. Memory is linear in the number of particles: no list of pairs
is ever stored.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from workbench import backend
from workbench.arguments import one_of
from workbench.backend import Array
from workbench.clusters.cells import fof_kernel
from workbench.clusters.dense_cells import build_trees
from workbench.clusters.groups import Groups
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.data.outline import Outlined
from workbench.data.triclinic import require_no_triclinic_cell
from workbench.errors import WorkbenchError, briefly

Unit = Literal["spacing", "length"]


def friends_of_friends(particles: Particles, linking_length: float = 0.2, unit: Unit = "spacing") -> Groups:
    """Exact friends-of-friends groups; a link joins two particles at a distance of at most the linking length.

    `unit` says what `linking_length` is a multiple of: "spacing", the mean spacing (volume / N) ** (1 / D) of the
    particles, or "length", the unit of the positions. The labels are NumPy or CuPy, as the positions are.

    >>> particles = Particles([[0.1, 0.5], [0.95, 0.5], [0.5, 0.5]], box=1.0)
    >>> friends_of_friends(particles, 0.2, unit="length").labels.tolist()
    [0, 0, 2]
    """
    if not isinstance(particles, Particles):
        how = "archive.decompress()" if hasattr(particles, "decompress") else "wb.Particles(positions, box=...)"
        raise WorkbenchError(f"friends of friends needs Particles; got {briefly(particles)}: give {how}")
    length = absolute_linking_length(particles, linking_length, unit)
    return link(SortedCells.of(particles, length))


def absolute_linking_length(particles: Outlined, linking_length: float, unit: Unit = "spacing") -> float:
    """The linking length in the unit of the positions.

    >>> absolute_linking_length(Particles([[0.5, 0.5]], box=3.0), 0.2)
    0.6000000000000001
    """
    one_of("unit", unit, get_args(Unit))
    require_no_triclinic_cell(particles, "a search for clusters")
    if isinstance(linking_length, bool) or not isinstance(linking_length, (int, float, np.integer, np.floating)):
        raise WorkbenchError(f"linking_length must be a number; got {linking_length!r}")
    if not (math.isfinite(linking_length) and linking_length > 0):
        raise WorkbenchError(f"linking_length must be positive and finite; got {linking_length}")
    if unit == "spacing" and not particles.spacing > 0:
        raise WorkbenchError(
            "a linking length in units of the mean spacing needs particles that fill a volume; these lie in a plane, on a "
            'line or in one point: give unit="length", or a box'
        )
    length = float(linking_length) * (particles.spacing if unit == "spacing" else 1.0)
    if not 1e-150 < length < 1e150:
        raise WorkbenchError(f"linking_length must lie between 1e-150 and 1e150, or its square is lost; got {length:.6g}")
    return length


def link(cells: SortedCells, length: float | None = None) -> Groups:
    """The groups of particles that are sorted into cells for this linking length, or for one that is a little shorter."""
    length = cells.grid.linking_length if length is None else length
    xp = backend.namespace(cells.positions)
    parent = xp.arange(len(cells), dtype=xp.int32)
    open_cells = xp.zeros(len(cells), xp.int32)
    geometry = cells.geometry(length)

    def unite(boxes: Array) -> None:
        chunks = backend.chunks(-(-len(cells) // 2), cells.positions)   # long: each searches for its blocks
        fof_kernel("link", cells.positions)(
            chunks, geometry, with_trees=len(boxes) > 0, box=boxes, open=open_cells, rank=cells.rank, parent=parent,
        )

    unite(xp.empty((0, 2, cells.positions.shape[1]), cells.positions.dtype))
    if bool(open_cells.any()):
        unite(build_trees(open_cells, cells))
    count = len(cells.order)
    labels = xp.empty(count, xp.int64)
    chunks = backend.chunks(-(-count // 4), labels)   # long ones: each begins with a search for its first cell
    label = fof_kernel("label_particles", cells.positions)
    label(chunks, count, len(cells), cells.first, cells.order, cells.rank, parent, labels)
    return Groups(labels, length)
