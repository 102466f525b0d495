"""The masses of friends-of-friends halos of the original particles, between proven ends, from archived ones.

A distance between two particles changes by at most d = 2 xi sqrt(D), where xi is the bound of each of D coordinates. So
what is linked at b - d in the archive is linked at b in the original, and what is linked there is linked at b + d in the
archive: the original group of a particle has all members of its decoded group at b - d, and no others than those at b + d.

An archive that keeps the groups of this linking length has the very groups of the original; so has one with the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics.answer import Answer
from workbench.archive.statistics.particle_counts import ROUNDED, Cubes, limit_of, require_particles
from workbench.arguments import whole_number
from workbench.clusters.friends import Unit, absolute_linking_length, friends_of_friends
from workbench.data import Particles
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


@dataclass(frozen=True, eq=False, repr=False)
class HaloMasses(Answer):
    """One entry for each decoded halo, the largest first: how many members the original halo of a particle of it has.

    `particles` is the index in the archive of that particle, one of the densest core of the halo. The original halo has at
    least `low` and at most `high` members; the decoded one has `values`. `mass` is that of a particle, where all have one.
    """

    particles: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    linking_length: float
    kept: bool            # the archive has the groups of the original: it promises them, or has the same bits
    mass: float | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        exact = int((self.low == self.high).sum())
        kept = ", kept by the archive" if self.kept else ""
        return f"HaloMasses({len(self):,} halos at linking length {self.linking_length:.4g}, {exact:,} known exactly{kept})"


def halo_masses(
    archive: Archive, linking_length: float = 0.2, unit: Unit = "spacing", min_members: int = 20
) -> HaloMasses:
    """The numbers of members of all halos with at least so many in the archive.

    >>> import workbench as wb
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> halo_masses(wb.compress(snapshot, wb.Absolute(1e-4)))
    HaloMasses(13 halos at linking length 0.2, 12 known exactly)
    """
    require_particles(archive, "halo_masses")
    least = max(whole_number("min_members", min_members, least=1), 1)
    particles = archive.decompress()
    length = absolute_linking_length(particles, linking_length, unit)
    kept = limit_of(archive) is None or _keeps(archive, length)
    groups = friends_of_friends(particles, length, "length")
    chosen = groups.largest(len(groups))[: int((groups.sizes >= least).sum())]
    if kept:
        sizes = groups.sizes_of(chosen)
        return HaloMasses(chosen, sizes, sizes, sizes, length, True, archive.mass)
    change = _change_of_distances(archive, particles, length)
    if not change < length:
        raise WorkbenchError(
            f"halo masses need a linking length above {change:.4g}, by which distances can have changed; got {length:.4g}: "
            f"compress with a smaller bound, or with keep=wb.KeepClusters({linking_length})"
        )
    inner = friends_of_friends(particles, math.nextafter(length - change, 0.0), "length")
    outer = friends_of_friends(particles, math.nextafter(length + change, math.inf), "length")
    core = _largest_inside(groups.labels, inner, chosen)
    low, high = (some.sizes_of(some.labels[core]) for some in (inner, outer))
    return HaloMasses(core, groups.sizes_of(chosen), low, high, length, False, archive.mass)


def _largest_inside(labels: np.ndarray, inner: Any, chosen: np.ndarray) -> np.ndarray:
    """For each of the chosen groups, the label of the largest of the smaller groups in it."""
    order = np.lexsort((inner.ids, -inner.sizes, labels[inner.ids]))
    owners = labels[inner.ids][order]
    first = np.concatenate([[True], owners[1:] != owners[:-1]])
    return inner.ids[order][first][np.searchsorted(owners[first], chosen)]


def _change_of_distances(archive: Archive, particles: Particles, length: float) -> float:
    """The most by which the distance of two particles that could be linked can have changed, rounding included."""
    cubes = Cubes.around(particles.positions, limit_of(archive), archive.box)
    reach = float(cubes.margin(np.array([length])).max(initial=0.0))
    return 2 * reach * math.sqrt(particles.dimensions) * (1 + ROUNDED) + length * ROUNDED


def _keeps(archive: Archive, length: float) -> bool:
    """Whether the archive promises the groups of this linking length, of any size."""
    for promise in archive.certificate["positions"].keep:
        if promise.get("kind") == "clusters" and promise.get("min_members") == 1 and length in promise.get("lengths", ()):
            return True
    return False
