"""The links that a lossy copy breaks within groups, and the false links that it creates between groups.

Counts of halos hide most of these changes, and so do lists of all pairs that flipped: more than nine in ten of those pairs
change no group. So the missing links of a split group are those of a minimum spanning tree of its parts, and the false
links are all links between groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.alike import parts_of
from workbench.clusters.crowds import each_once, in_order
from workbench.clusters.discord import UNLABELLED, closest_discords, split_labels
from workbench.clusters.groups import Groups
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.ordering import count_of, places_of

UNSEEN = 4   # rounds of Boruvka's algorithm on a GPU between two looks whether any tree is left: three are common


@dataclass(frozen=True, eq=False)
class BrokenLinks:
    """Pairs (M, 2) of particles (int32), the smaller index first; none where groups agree.

    `missing` are friends of the original that are no longer friends: the fewest that would rejoin every split group, and of
    these the shortest. `false` are friends in the copy whose groups in the original differ. An overdense region has
    quadratically many of them: of more than 64 between two cells, those of each particle and the closest one are listed.
    """

    missing: Array
    false: Array

    def __len__(self) -> int:
        return len(self.missing) + len(self.false)


def broken_links(original: Particles, decoded: Particles, groups: Groups) -> BrokenLinks:
    """The links by which `groups`, those of `original`, differ from those of `decoded`; decoded[i] is original[i]'s copy.

    A group is split if its own members are no longer connected by themselves, even if other particles connect them.

    >>> from workbench.clusters import friends_of_friends
    >>> original = Particles([[0.10, 0.5], [0.19, 0.5], [0.28, 0.5], [0.40, 0.5]], box=1.0)
    >>> decoded = Particles([[0.09, 0.5], [0.20, 0.5], [0.29, 0.5], [0.38, 0.5]], box=1.0)
    >>> broken = broken_links(original, decoded, friends_of_friends(original, 0.1, unit="length"))
    >>> broken.missing.tolist(), broken.false.tolist()
    ([[0, 1]], [[2, 3]])
    """
    _require_copies(original, decoded, groups)
    length, xp = groups.linking_length, backend.namespace(original.positions, decoded.positions, groups.labels)
    cells = SortedCells.of(decoded, length)
    found = parts_of(cells, groups.labels.astype(np.int32), length, length)
    split, false = split_labels(groups, found.part), each_once(found.unlike)
    if not bool((split >= 0).any()):
        return BrokenLinks(xp.empty((0, 2), xp.int32), false)
    cells = SortedCells.of(original, length)
    return BrokenLinks(spanning_links(cells, split, length, decoded.positions, decoded.box, groups), false)


def spanning_links(
    cells: SortedCells, split: Array, length: float, positions: Array, box: tuple[float, ...] | None,
    groups: Groups | None = None,
) -> Array:
    """The minimum spanning forest of the parts of split groups: pairs (M, 2) of particles at most `length` apart.

    `split` labels the particles with their parts, or UNLABELLED; with `groups`, by the smallest particle of each part of
    these. The shortest pairs are those in `positions`; of equally
    short ones the first by index, so that the forest does not depend on the order of cells. Where too many pairs join two
    cells to list them all, only the first round of Boruvka's algorithm is right: it needs the shortest pair of each part.
    Then the pairs between the parts that remain are listed again.
    """
    xp, chosen, complete = backend.namespace(cells.positions, split, positions), [], False
    while not complete:
        found = closest_discords(cells, split, length, positions, groups)
        pairs, complete = in_order(found.pairs), found.complete   # of equal pairs, the first one is taken
        squared = squared_distances(positions, pairs, box)
        chosen.append(pairs[cheapest_links(pairs, split, squared, None if complete else 1)])
        split = split if complete else linked_labels(split, chosen[-1])
    return xp.concatenate(chosen)


def linked_labels(label: Array, pairs: Array) -> Array:
    """The labels after a link between the ends of each pair: the smallest label of all that are linked."""
    xp = backend.namespace(label, pairs)
    parent = xp.arange(len(label), dtype=label.dtype)
    while bool(((ends := parent[label[pairs]])[:, 0] != ends[:, 1]).any()):
        ends = xp.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
        high, first = xp.unique(ends[:, 1].astype(xp.int64) * 2**32 + ends[:, 0], return_index=True)
        high, lead = xp.unique(high >> 32, return_index=True)
        parent[high] = ends[first[lead], 0]
        while bool(((above := parent[parent]) != parent).any()):
            parent = above
    return xp.where(label == UNLABELLED, label, parent[label])


def cheapest_links(pairs: Array, part: Array, distance: Array, most_rounds: int | None = None) -> Array:
    """The pairs (indices, rising) of a minimum spanning forest of the parts that they connect, by Boruvka's algorithm.

    `part` is a label of every particle. After `most_rounds` only part of the forest is found.

    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]], np.int32)
    >>> cheapest_links(pairs, np.array([5, 6, 7]), np.array([3.0, 1.0, 2.0])).tolist()
    [1, 2]
    """
    xp, rounds = backend.namespace(pairs, part, distance), 0
    if not len(pairs):
        return xp.empty(0, np.int64)
    ends, trees = _numbered(part[pairs])
    tree, nodes = xp.arange(trees, dtype=xp.int32), xp.arange(trees, dtype=xp.int32)
    chosen, bits = xp.zeros(len(pairs) + 1, bool), xp.ascontiguousarray(distance, np.float64).view(np.uint64)
    index: Array | None = None   # of the pairs that are left, then of no pair; None: all of them
    while rounds != most_rounds:
        sides = tree[ends]
        if xp is np and rounds:   # a GPU would have to be asked how many are left
            left = np.flatnonzero(sides[:, 0] != sides[:, 1])
            index = np.append(left if index is None else index[left], len(pairs))
            ends, sides, bits = ends.take(left, axis=0), sides.take(left, axis=0), bits[left]
        first = _first_of_trees(sides, bits, trees)
        joins = first < len(sides)
        if xp is np or rounds % UNSEEN == UNSEEN - 1:
            going, found = backend.numbers(joins.any(), count_of(chosen[:-1]))
            if not going:
                return places_of(chosen[:-1], found)
        rounds += 1
        chosen[first if index is None else index[first]] = True   # the last one, too, by trees that are alone
        parent = xp.where(joins, sides[xp.where(joins, first, 0)].sum(axis=1, dtype=np.int32) - nodes, nodes)
        mutual = parent[parent] == nodes   # two trees that chose the same pair
        parent = _ends_of_chains(xp.where(mutual, xp.minimum(parent, nodes), parent))
        tree = parent[tree]
    return xp.flatnonzero(chosen[:-1])


def _ends_of_chains(parent: Array) -> Array:
    """The last of the nodes to which each leads; a chain halves in each step, so a GPU need not be asked."""
    xp = backend.namespace(parent)
    for _ in range(len(parent).bit_length()):
        above = parent[parent]
        if xp is np and not bool((above != parent).any()):
            break
        parent = above
    return parent


def _numbered(parts: Array) -> tuple[Array, int]:
    """The labels as numbers (int32) from 0 on, in the same order, and how many there are, or on a GPU may be."""
    xp = backend.namespace(parts)
    if xp is not np:   # where the host would have to wait for the largest one
        inorder = xp.sort(parts.ravel())
        number = xp.cumsum(xp.diff(inorder, prepend=inorder[:1]) != 0, dtype=np.int32)
        return number[xp.searchsorted(inorder, parts)], parts.size
    present = np.zeros(int(parts.max()) + 1, bool)
    present[parts] = True
    return (np.cumsum(present, dtype=np.int32) - np.int32(1))[parts], int(present.sum())


def _first_of_trees(sides: Array, bits: Array, trees: int) -> Array:
    """For each tree its shortest pair to another one, of several that with the least index; else the number of pairs."""
    xp, none = backend.namespace(sides), np.iinfo(np.uint64).max
    least, first = xp.full(trees, none, np.uint64), xp.full(trees, len(sides), np.uint64)
    backend.kernel("forest", "shorten")(len(sides), side=sides, squared=bits, least=least)
    backend.kernel("forest", "choose_first")(len(sides), side=sides, squared=bits, least=least, first=first)
    return first.astype(np.int64)


def distances(positions: Array, pairs: Array, box: tuple[float, ...] | None) -> Array:
    """The distance between the ends of each pair, by nearest image, in float64.

    >>> distances(np.array([[0.1, 0.5], [0.9, 0.5]]), np.array([[0, 1]]), (1.0, 1.0)).round(6).tolist()
    [0.2]
    """
    return backend.namespace(positions, pairs).sqrt(squared_distances(positions, pairs, box))


def squared_distances(positions: Array, pairs: Array, box: tuple[float, ...] | None) -> Array:
    """The squared distances, bit-identical to those that kernels compare with a squared linking length."""
    xp, dimensions = backend.namespace(positions, pairs), positions.shape[1]
    squared, periods = xp.empty(len(pairs)), xp.asarray(box or (0.0,) * dimensions, np.float64)
    backend.kernel("forest", "measure_pairs", positions.dtype, dimensions)(
        len(pairs), pair=xp.ascontiguousarray(pairs, np.int32), position=xp.ascontiguousarray(positions), periods=periods,
        squared=squared,
    )
    return squared


def _require_copies(original: Particles, decoded: Particles, groups: Groups) -> None:
    shapes = tuple(original.positions.shape), tuple(decoded.positions.shape)
    if shapes[0] != shapes[1] or original.box != decoded.box:
        raise WorkbenchError(
            f"decoded particles must correspond to the original ones, in order and in one box; got shapes {shapes[0]} and "
            f"{shapes[1]}, boxes {original.box} and {decoded.box}"
        )
    if len(groups.labels) != len(original):
        raise WorkbenchError(f"groups must be of these {len(original):,} particles; got labels of {len(groups.labels):,}")
