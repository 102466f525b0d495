"""Labels that every subdomain gives to its particles by itself, made the same for all.

Each subdomain writes the indices and labels of its ghosts, a piece for each owner. Then each compares what its neighbours
call its particles with its own names, and a `LabelTree` merges the labels that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.run.executors import Executor
from workbench.run.pieces import PieceFile, pieces_of, write_pieces
from workbench.run.scratch_files import Mapped, load, save_blocks
from workbench.subdomains.label_tree import LabelTree
from workbench.subdomains.merging import different, places_of

BLOCK = 2**16   # rows that are written together
OWNER = np.dtype(np.int32)


@dataclass(frozen=True)
class JointLabels:
    """The labels of one kind of so many subdomains, in a folder that all workers see."""

    folder: Path
    name: str
    parts: int

    @property
    def tree(self) -> LabelTree:
        """What makes the labels final."""
        return LabelTree(self.folder, self.parts, self.name)

    def lend(self, part: int, index: np.ndarray, head: np.ndarray, owned: np.ndarray, owner: np.ndarray) -> None:
        """Write the labels of ghosts. `head` is the first row there of each particle's group: its index is the label.

        `owner` is the subdomain that owns each ghost.
        """
        ghost = np.flatnonzero(~owned)[np.argsort(owner, kind="stable")]
        owners, begins = np.unique(np.sort(owner), return_index=True)
        pieces = np.split(np.stack([index[ghost], index[head[ghost]]], axis=1), begins[1:]) if len(ghost) else []
        write_pieces(self._ghosts(part), 1 + len(owners), [[owners.astype(OWNER)], *([piece] for piece in pieces)])

    def write(self, part: int, index: np.ndarray, head: np.ndarray, owned: np.ndarray) -> None:
        """Write the labels and the indices of the particles that a subdomain owns."""
        kind = np.dtype(np.int32 if not len(index) or index[-1] < 2**31 else np.int64)
        shape = (int(np.count_nonzero(owned)),)
        own = (index[head[rows][owned[rows]]] for rows in _blocks(len(index)))
        save_blocks(self.file("own", part), shape, kind, own)
        save_blocks(self.file("index", part), shape, kind, (index[rows][owned[rows]] for rows in _blocks(len(index))))

    def own(self, part: int, places: slice = slice(None)) -> np.ndarray:
        """The labels of the particles that a subdomain owns, or some of them, in the order of their indices."""
        return load(self.file("own", part), places)

    def index(self, part: int) -> np.ndarray:
        """The indices of the particles that a subdomain owns, rising."""
        return load(self.file("index", part))

    def compare(
        self, part: int, neighbours: np.ndarray, label_of: Callable[[np.ndarray], np.ndarray],
        members_of: Callable[[np.ndarray], np.ndarray] = np.zeros_like,
    ) -> None:
        """Write which labels of its neighbours name the groups of a subdomain, for the tree.

        `label_of` returns its own labels of particles, of which it gets the indices, and `members_of` how many of its
        particles have each label.
        """
        index, label, other = self.lent(part, neighbours)
        here = label_of(index).astype(np.int64)
        _, ghost, owner = self.ghosts(part)
        labels, others = np.concatenate([here, label, ghost]), np.concatenate([other, other, owner])
        self.tree.enter(part, different(label, here), labels, self.tree.heights(part, others), members_of)

    def lent(self, part: int, neighbours: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The index of each ghost that others have of this subdomain's particles, its label there, and who they are."""
        pieces, others = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)]
        for other in neighbours.tolist():
            with pieces_of(self._ghosts(other)) as file:
                owners = file.read(0, (OWNER.itemsize,), range(1))[0].view(OWNER)
                if (place := int(np.searchsorted(owners, part))) < len(owners) and owners[place] == part:
                    pieces.append(_pairs(file, 1 + place))
                    others.append(np.full(len(pieces[-1]), other))
        index, label = np.concatenate(pieces).T
        return index, label, np.concatenate(others)

    def ghosts(self, part: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The index of each ghost of a subdomain, its label there, and its owner."""
        with pieces_of(self._ghosts(part)) as file:
            owners = file.read(0, (OWNER.itemsize,), range(1))[0].view(OWNER)
            pieces = [_pairs(file, 1 + place) for place in range(len(owners))]
        index, label = np.concatenate([np.empty((0, 2), np.int64), *pieces]).T
        return index, label, np.repeat(owners, [len(piece) for piece in pieces])

    def merge(self, executor: Executor, again: bool = False) -> None:
        """Make the labels final, once all subdomains have compared theirs.

        Those of ghosts are deleted, unless subdomains compare them `again` when some have written new ones.
        """
        self.tree.merge(executor)
        for part in range(0 if again else self.parts):
            self._ghosts(part).unlink()

    def named(self, part: int, head: np.ndarray, index: np.ndarray) -> Named:
        """The groups of a subdomain, of which `head` gives the first row of each particle's group there."""
        known = self.tree.known(part)
        place, here = places_of(known.label, index)
        here[here] = head[place] == place   # others may have names for these groups that no group has here
        row = place[head[place] == place]
        final, first, which = np.unique(known.final[here], return_index=True, return_inverse=True)
        home = np.arange(len(head), dtype=np.int32)
        home[row] = row[first][which.ravel()]   # pieces of one group: the first row of all of them
        order = np.argsort(row[first])
        return Named(home[head], Names(row[first][order], final[order]), known.members[here][first][order])

    def _ghosts(self, part: int) -> Path:
        return self.folder / f"{self.name}-ghosts-{part}"

    def file(self, kind: str, part: int) -> Path:
        """The file of a subdomain."""
        return self.folder / f"{self.name}-{kind}-{part}.npy"


def _blocks(count: int) -> Iterator[slice]:
    """Rows in blocks: all of them together would be the most that a search holds."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


def _pairs(file: PieceFile, piece: int) -> np.ndarray:
    """The indices and labels of some ghosts."""
    return file.read(piece, (2 * np.dtype(np.int64).itemsize,), range(1))[0].view(np.int64).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Names:
    """The groups of a subdomain that others know, by their first row there (rising), with their labels.

    The label of any other group is the index of its first particle.
    """

    row: np.ndarray
    label: np.ndarray

    def known(self, head: np.ndarray) -> np.ndarray:
        """Whether others know the groups with these first rows."""
        flags = np.zeros(max(int(head.max(initial=-1)), int(self.row.max(initial=-1))) + 1, bool)
        flags[self.row] = True
        found: np.ndarray = flags[head]
        return found

    def labels(self, head: np.ndarray, index: np.ndarray | Mapped) -> np.ndarray:
        """The labels of the groups with these first rows; `index` is that of all rows."""
        known = self.known(head)
        label: np.ndarray = np.asarray(index[head], np.int64)
        label[known] = self.label[np.searchsorted(self.row, head[known])]
        return label


@dataclass(frozen=True, eq=False)
class Named:
    """The first row of each particle's group in a subdomain; and labels and members of groups that others know."""

    head: np.ndarray
    names: Names
    members: np.ndarray

    def sizes(self, owned: np.ndarray) -> np.ndarray:
        """The number of members, in the whole set, of each group, at its first row; `owned` marks those that count here."""
        here = np.bincount(self.head[owned], minlength=len(self.head))
        here[self.names.row] = self.members
        return here
