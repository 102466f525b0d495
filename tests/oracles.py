"""Slow, plain definitions that the fast code is held against, and a judge of labellings that says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench import Particles
from workbench.data.synthetic import adversarial


def hard_cases(crowd: int = 2000) -> dict[str, tuple[Particles, float]]:
    """Every adversarial set with its linking length, in two and three dimensions and both precisions, by name."""
    return {
        f"{name}-{dimensions}d-{np.dtype(dtype).name}": case
        for dimensions in (2, 3)
        for dtype in (np.float32, np.float64)
        for name, case in adversarial.cases(dimensions, dtype, crowd=crowd).items()
    }


def half_of(cases: dict[str, tuple[Particles, float]]) -> list[Any]:
    """Their names, as parameters; half of them are not `long`: both precisions in 2-D and 3-D, with a box or without."""
    second = ("open", "3d", "float64")
    return [pytest.param(name, marks=pytest.mark.long if sum(map(name.count, second)) % 2 else ()) for name in cases]


def squared_distances(particles: Particles, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The predicate's left side, as documented: float64, nearest image, squares added axis by axis."""
    difference = particles.positions[i].astype(np.float64) - particles.positions[j].astype(np.float64)
    if particles.box is not None:
        box = np.asarray(particles.box)
        from_below = np.where(difference < -box / 2, difference + box, difference)
        difference = np.where(difference > box / 2, difference - box, from_below)
    total = np.zeros(len(difference))
    for axis in range(particles.dimensions):
        total = total + difference[:, axis] * difference[:, axis]
    return total


def friend_pairs(particles: Particles, length: float) -> np.ndarray:
    """Every pair of friends, by trying all pairs."""
    i, j = np.triu_indices(len(particles), k=1)
    return np.stack([i, j], axis=1)[squared_distances(particles, i, j) <= length * length]


def smallest_index_labels(count: int, pairs: np.ndarray) -> np.ndarray:
    """Labels of the connected components of these pairs: spread the smallest index until nothing changes."""
    labels = np.arange(count)
    while True:
        before = labels.copy()
        np.minimum.at(labels, pairs[:, 0], before[pairs[:, 1]])
        np.minimum.at(labels, pairs[:, 1], before[pairs[:, 0]])
        if np.array_equal(labels, before):
            return labels


def brute_force_labels(particles: Particles, length: float) -> np.ndarray:
    """Friends of friends from the definition."""
    return smallest_index_labels(len(particles), friend_pairs(particles, length))


def single_precision_labels(particles: Particles, length: float, touching: bool) -> np.ndarray:
    """The groups of a finder that computes in float32 throughout, and asks for `<=` when `touching`, else for `<`."""
    real = np.float32
    i, j = np.triu_indices(len(particles), k=1)
    positions = particles.positions.astype(real)
    difference = positions[i] - positions[j]
    if particles.box is not None:
        box = np.array(particles.box, real)
        difference -= box * np.rint(difference / box)
    total = np.zeros(len(i), real)
    for axis in range(particles.dimensions):
        total += difference[:, axis] * difference[:, axis]
    squared = real(length) * real(length)
    pairs = np.stack([i, j], axis=1)[total <= squared if touching else total < squared]
    return smallest_index_labels(len(particles), pairs)


def cheapest_forest(part: np.ndarray, pairs: np.ndarray, distance: np.ndarray) -> list[int]:
    """Which pairs join the parts that they connect with the least distances, the first of equals: Kruskal's trees."""
    tree = {label: label for label in part.tolist()}

    def root(label: int) -> int:
        return label if tree[label] == label else root(tree[label])

    chosen = []
    for index in np.argsort(distance, kind="stable").tolist():
        one, other = (root(part[end]) for end in pairs[index].tolist())
        if one != other:
            tree[one] = other
            chosen.append(index)
    return sorted(chosen)


def scipy_labels(particles: Particles, length: float) -> np.ndarray:
    """Friends of friends by SciPy: all pairs of a k-d tree, then the components of their graph."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    count = len(particles)
    tree = cKDTree(particles.positions.astype(np.float64), boxsize=particles.box)
    i, j = tree.query_pairs(length, output_type="ndarray").T
    links = coo_matrix((np.ones(len(i), bool), (i, j)), (count, count))
    components, component = connected_components(links, directed=False)
    smallest = np.full(components, count)
    np.minimum.at(smallest, component, np.arange(count))
    return smallest[component]


class WrongLabelling(AssertionError):
    """A labelling breaks a property of friends of friends; the message says which one and where."""


def judge_labels(particles: Particles, length: float, labels: np.ndarray) -> None:
    """Raise unless these labels are the friends-of-friends labels, naming the property that fails.

    Small sets only: it looks at every pair, and shares no code with the finder.
    """
    count = len(particles)
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise WrongLabelling(f"labels must be one integer per particle; got {labels.dtype} of shape {labels.shape}")
    if ((labels < 0) | (labels >= count)).any() or (labels[labels] != labels).any():
        raise WrongLabelling("a label is not a particle of its own group")
    if (labels > np.arange(count)).any():
        raise WrongLabelling("a label is not the smallest index of its group")
    pairs = friend_pairs(particles, length)
    torn = pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]]
    if len(torn):
        raise WrongLabelling(f"friends {torn[0].tolist()} are in different groups")
    reached = smallest_index_labels(count, pairs)
    alone = np.flatnonzero(reached != labels)
    if len(alone):
        raise WrongLabelling(f"particle {alone[0]} is not connected to its group")
