"""The part of space that a few moved particles affect: checking it again is equivalent to a global check."""

from __future__ import annotations

import math

import numpy as np

from workbench.backend import Array
from workbench.clusters.keep.needs import Region
from workbench.clusters.keep.scene import Scene
from workbench.clusters.keep.surroundings import MOST_LISTED, neighbours_of, places_in
from workbench.clusters.sorted_cells import SortedCells
from workbench.data.periodic import squared_lengths

MOST = 2**20   # neighbours of a particle in its own group: all of them


def region_around(scene: Scene, moved: Array) -> Region | None:
    """The groups of particles that have moved since the last global check, and all particles that can be near them now.

    None if a local check is not enough: small groups without constraints could merge undetected.
    """
    if scene.promise.min_members > 1:
        return None
    xp, cells = scene.xp, scene.decoded_cells[-1]
    far = scene.far(len(scene.lengths) - 1)
    reach = far + _farthest(scene, xp.flatnonzero(scene.rank)) + _farthest(scene, moved)
    if reach > cells.grid.widest_reach:
        cells, reach = SortedCells.of(scene.particles(), scene.near(len(scene.lengths) - 1)), far
    reach *= 1 + 1e-6   # distances are rounded
    place = places_in(scene, cells)
    candidates = moved[xp.argsort(place[moved], kind="stable")]
    start, end, neighbours = neighbours_of(scene, cells, candidates, place, reach, reach, MOST)
    if bool((end - start == MOST_LISTED).any()):
        return None
    found = end - start
    before = xp.cumsum(found) - found
    owner = xp.searchsorted(before, xp.arange(int(found.sum())), side="right") - 1
    chosen = xp.zeros(len(scene), bool)
    chosen[neighbours[start[owner] + xp.arange(len(owner)) - before[owner]]] = True
    whole = xp.zeros((len(scene.lengths), len(scene)), bool)
    for row, groups in zip(whole, scene.wanted, strict=True):
        of_moved = xp.zeros(len(scene), bool)
        of_moved[groups.labels[moved]] = True
        row[...] = of_moved[groups.labels]
    index = xp.flatnonzero(chosen | whole.any(axis=0))
    return Region(index, whole[:, index])


def _farthest(scene: Scene, index: Array) -> float:
    """The largest distance of any of these particles from its decoded position."""
    if not len(index):
        return 0.0
    moved = scene.current[index].astype(np.float64) - scene.decoded[index]
    return math.sqrt(float(squared_lengths(moved, scene.original.box).max()))
