"""The pairs of particles that a method constrains: every pair that could change, or fewer.

A pair is vulnerable when errors of up to xi along each axis could make or break its link, so when its distance lies within
2 sqrt(D) xi of the linking length. The published code selects among these pairs in three ways; the last, a spanning
forest, is the strongest.

All pairs within reach are listed first, safe ones too. This is the weakness of these methods: the list grows with the
square of the density, and groups are dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from peers.clusters.problem import Problem
from workbench.clusters.friends import friends_of_friends
from workbench.data.periodic import squared_lengths
from workbench.errors import WorkbenchError

Mode = Literal["pairwise", "filtered", "forest"]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Pairs of particles: must-link constraints where `linked` is true, cannot-link constraints elsewhere."""

    first: np.ndarray
    second: np.ndarray
    linked: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def select(self, chosen: np.ndarray) -> Constraints:
        """The constraints where this mask is true."""
        return Constraints(self.first[chosen], self.second[chosen], self.linked[chosen])

    def violated(self, positions: np.ndarray, box: tuple[float, ...] | None, linking_length: float) -> int:
        """How many constraints these positions violate.

        >>> stay_apart = Constraints(np.array([0]), np.array([1]), np.array([False]))
        >>> stay_apart.violated(np.array([[0.0, 0.0], [0.5, 0.0]]), None, linking_length=0.5)
        1
        """
        friends = squared_distances(positions, self.first, self.second, box) <= linking_length**2
        return int((friends != self.linked).sum())


def squared_distances(
    positions: np.ndarray, first: np.ndarray, second: np.ndarray, box: tuple[float, ...] | None
) -> np.ndarray:
    """The squared distances of pairs, computed as in friends of friends: float64, nearest image, axis by axis."""
    exact = positions.astype(np.float64, copy=False)
    return squared_lengths(exact[first] - exact[second], box)


def watched_pairs(problem: Problem, mode: Mode = "pairwise") -> Constraints:
    """The pairs that a mode of the published method constrains.

    "pairwise": all vulnerable pairs. "filtered": without pairs whose ends are connected by safe links. "forest": the
    vulnerable non-links between two groups, and a spanning forest of the vulnerable links, chosen in the order of the list.
    """
    if mode not in get_args(Mode):
        raise WorkbenchError(f"mode must be one of {', '.join(get_args(Mode))}; got {mode!r}")
    length, reach = problem.linking_length, problem.reach
    first, second = _pairs_within(problem, length + reach)
    squared = squared_distances(problem.exact, first, second, problem.original.box)
    distance = np.sqrt(squared)
    safe = distance <= length - reach
    vulnerable = ~safe & (distance <= length + reach)
    pairs = Constraints(first[vulnerable], second[vulnerable], squared[vulnerable] <= length**2)
    if mode == "pairwise":
        return pairs
    component = _components(len(problem.original), first[safe], second[safe])
    if mode == "filtered":
        return pairs.select(component[pairs.first] != component[pairs.second])
    group = friends_of_friends(problem.original, length, unit="length").labels
    between_groups = ~pairs.linked & (group[pairs.first] != group[pairs.second])
    return pairs.select(between_groups | _spanning_forest(pairs, component))


def _pairs_within(problem: Problem, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """All pairs at most `distance` apart, and possibly some more."""
    from scipy.spatial import cKDTree

    tree = cKDTree(problem.exact, boxsize=problem.original.box)
    pairs = tree.query_pairs(distance * (1 + 1e-9), output_type="ndarray")
    first, second = np.ascontiguousarray(pairs.T)
    return first, second


def _components(count: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The connected component of each particle under these links, as a number."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(first), bool), (first, second)), (count, count))
    return connected_components(links, directed=False)[1]


def _spanning_forest(pairs: Constraints, component: np.ndarray) -> np.ndarray:
    """The linked pairs that, taken in order, join components not yet joined by earlier pairs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    ends = np.sort(np.stack([component[pairs.first], component[pairs.second]]), axis=0).astype(np.int64)
    candidates = np.flatnonzero(pairs.linked & (ends[0] != ends[1]))
    components = int(component.max()) + 1
    _, earliest = np.unique(ends[0, candidates] * components + ends[1, candidates], return_index=True)
    candidates = candidates[earliest]
    # Taking pairs in order gives the minimum spanning forest, with the place in the list as weight.
    graph = coo_array((candidates + 1.0, (ends[0, candidates], ends[1, candidates])), (components, components))
    chosen = np.zeros(len(pairs), bool)
    chosen[minimum_spanning_tree(graph.tocsr()).data.astype(np.int64) - 1] = True
    return chosen
