"""The part of space that a few moved particles affect: checking it again is equivalent to a global check."""

from __future__ import annotations

import math

import numpy as np

from workbench.backend import Array
from workbench.clusters.keep.state import State
from workbench.clusters.keep.surroundings import neighbours_of, places_in
from workbench.clusters.keep.view import Region
from workbench.clusters.sorted_cells import SortedCells
from workbench.data.periodic import squared_lengths

MOST_LISTED = 2048   # neighbours of a particle; where there are more, all particles are checked


def region_around(state: State, moved: Array) -> Region | None:
    """The groups of particles that have moved since the last global check, and all particles that can be near them now.

    None if a local check is not enough: small groups without constraints could merge undetected.
    """
    problem, xp = state.problem, state.problem.xp
    if problem.promise.min_members > 1:
        return None
    cells, number = problem.decoded_cells[-1], len(problem.lengths) - 1
    far = problem.far(number)
    reach = far + _farthest(state, xp.flatnonzero(state.rank)) + _farthest(state, moved)
    if reach > cells.grid.widest_reach:
        cells, reach = SortedCells.of(state.particles(), problem.near(number)), far
    place = places_in(problem, cells)
    candidates = moved[xp.argsort(place[moved], kind="stable")]
    reaches = xp.full(len(candidates), reach * (1 + 1e-6))   # distances are rounded
    start, end, neighbours = neighbours_of(problem, cells, candidates, place, reaches, reaches, MOST_LISTED)
    if bool((end - start == MOST_LISTED).any()):
        return None
    found = end - start
    before = xp.cumsum(found) - found
    owner = xp.searchsorted(before, xp.arange(int(found.sum())), side="right") - 1
    chosen = xp.zeros(len(problem), bool)
    chosen[neighbours[start[owner] + xp.arange(len(owner)) - before[owner]]] = True
    chosen[moved] = True
    whole = xp.zeros((len(problem.lengths), len(problem)), bool)
    for row, groups in zip(whole, problem.wanted, strict=True):
        of_moved = xp.zeros(len(problem), bool)
        of_moved[groups.labels[moved]] = True
        row[...] = of_moved[groups.labels]
    index = xp.flatnonzero(chosen | whole.any(axis=0))
    return Region(problem, index, whole[:, index])


def _farthest(state: State, index: Array) -> float:
    """The largest distance of any of these particles from its decoded position."""
    if not len(index):
        return 0.0
    moved = state.current[index].astype(np.float64) - state.problem.decoded[index]
    return math.sqrt(float(squared_lengths(moved, state.problem.original.box).max()))
