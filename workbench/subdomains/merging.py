"""The labels of groups that extend over several subdomains, from the labels within each.

A label is the smallest index, in the whole set, of the particles of a group that a subdomain holds. If two subdomains give
different labels to the same particle, both labels name the same group. These pairs of labels are the edges of a graph, and
its connected components are the groups. All edges are merged at once, so that a filament through every subdomain takes no
more rounds of communication than an isolated halo.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BLOCK = 2**17   # labels that are looked up together


@dataclass(frozen=True, eq=False)
class Renaming:
    """Labels that are not final (rising, int64), with the final label of each: the smallest index of the whole group.

    >>> Renaming(np.array([5, 7, 9]), np.array([2, 3, 3])).applied(np.array([9, 5, 4])).tolist()
    [3, 2, 4]
    """

    label: np.ndarray
    final: np.ndarray

    def applied(self, labels: np.ndarray) -> np.ndarray:
        """The final labels of these."""
        if not len(self.label):
            return labels
        found = np.array(labels)
        for start in range(0, len(found), BLOCK):
            here = found[start : start + BLOCK]
            place = np.minimum(np.searchsorted(self.label, here), len(self.label) - 1)
            changed = np.flatnonzero(self.label[place] == here)
            here[changed] = self.final[place[changed]]
        return found


def different(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distinct pairs (M, 2) of labels of the same particles that differ.

    >>> different(np.array([1, 1, 4, 1]), np.array([1, 2, 4, 2])).tolist()
    [[1, 2]]
    """
    pairs = np.stack([one, other], axis=1).astype(np.int64)[one != other]
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    new = np.ones(len(pairs), bool)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    return pairs[new]


def distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, rising: by sorting, which for so many is faster than NumPy's hash table.

    >>> distinct(np.array([7, 2, 7])).tolist()
    [2, 7]
    """
    ordered = np.sort(values)
    found: np.ndarray = ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]
    return found


def places_of(wanted: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where particles are in a rising index, and which of them are there.

    >>> places_of(np.array([7, 5]), np.array([2, 7, 9]))
    (array([1]), array([ True, False]))
    """
    place = np.minimum(np.searchsorted(index, wanted), max(len(index) - 1, 0))
    here = index[place] == wanted if len(index) else np.zeros(np.shape(wanted), bool)
    return place[here], here


def roots(count: int, edges: np.ndarray) -> np.ndarray:
    """The smallest node of each node's component: hooking to the smaller root, then jumping to the root.

    >>> roots(5, np.array([[4, 2], [1, 2]])).tolist()
    [0, 1, 1, 3, 1]
    """
    parent = np.arange(count)
    one, other = edges[:, 0], edges[:, 1]
    while True:
        ends = parent[one], parent[other]
        open_edges = ends[0] != ends[1]
        if not open_edges.any():
            return parent
        one, other = one[open_edges], other[open_edges]
        low = np.minimum(*(end[open_edges] for end in ends))
        high = np.maximum(*(end[open_edges] for end in ends))
        np.minimum.at(parent, high, low)
        while (parent[parent] != parent).any():
            parent = parent[parent]
