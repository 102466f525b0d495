"""Labels of many subdomains, merged as a tree: nobody sees all pairs of labels that name one group.

Subdomains whose numbers follow each other lie side by side, as the cuts are a tree. So 64 of them form a block, 64 blocks
the next one, and so on. A block merges the pairs of labels of its members, and passes on only the labels that are known
outside of it: each label of a particle that two subdomains know gets the height of the smallest block with both. On the way
back each member gets the final names of the labels that it has passed on. The numbers of members of a group are added up on
the way, too, where they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbench.run.executors import Executor
from workbench.run.pieces import PieceFile, pieces_of, write_pieces
from workbench.subdomains.merging import Renaming, roots

MEMBERS = 64        # of a block
NUMBER = np.dtype(np.int64)
EDGES, KNOWN, MERGED = range(3)   # the pieces of a file
COLUMNS = {EDGES: 2, KNOWN: 3, MERGED: 3}


class Known(NamedTuple):
    """Labels (rising) of groups that several subdomains know, what they are called in the end, and their members."""

    label: np.ndarray
    final: np.ndarray
    members: np.ndarray


@dataclass(frozen=True)
class LabelTree:
    """The pairs of labels of so many subdomains, in files of a folder of which the names begin with `name`."""

    folder: Path
    parts: int
    name: str = "label"

    @property
    def top(self) -> int:
        """The height of the block with all subdomains."""
        height = 1
        while MEMBERS**height < self.parts:
            height += 1
        return height

    def heights(self, part: int, others: np.ndarray) -> np.ndarray:
        """The height of the smallest block with a subdomain and each of the others.

        >>> LabelTree(Path(), 5000).heights(63, np.array([0, 64, 4095, 4096])).tolist()
        [1, 2, 2, 3]
        """
        scale = MEMBERS ** np.arange(1, self.top + 1)[:, None]
        return 1 + np.argmax(others // scale == part // scale, axis=0)

    def enter(
        self, part: int, edges: np.ndarray, label: np.ndarray, height: np.ndarray,
        members_of: Callable[[np.ndarray], np.ndarray] = np.zeros_like,
    ) -> None:
        """Write the pairs of labels that name one group in a subdomain, and the heights of all labels that others know.

        `members_of` returns how many particles of a subdomain have each label.
        """
        known = _highest(label, height)
        write_pieces(self._merged(0, part), 2, [[edges], [np.column_stack([known, members_of(known[:, 0])])]])

    def merge(self, executor: Executor) -> None:
        """Merge the pairs of all subdomains; then each can read its renaming."""
        for height in range(1, self.top + 1):
            executor.map("merge-labels", LabelTree.merge_block, self._blocks(height), "block", shared=self)
        for height in range(self.top - 1, 0, -1):
            executor.map("rename-labels", LabelTree.rename_block, self._blocks(height), "block", shared=self)
        for height in range(self.top + 1):
            for number in range(self._count(height)):
                self._merged(height, number).unlink()

    def known(self, part: int) -> Known:
        """All labels of a subdomain that others know."""
        return self._known(0, part)

    def renaming(self, part: int) -> Renaming:
        """The final labels of all labels of a subdomain that others know."""
        return Renaming(*self.known(part)[:2])

    def merge_block(self, block: tuple[int, int]) -> None:
        """Merge the pairs of the members of a block, and write what others must know."""
        height, number = block
        pieces = [self._pieces(height - 1, member, (EDGES, KNOWN)) for member in self._members(block)]
        edges, known = (np.concatenate(tables) for tables in zip(*pieces, strict=True))
        label, own_height = _highest(known[:, 0], known[:, 1]).T
        root = roots(len(label), np.searchsorted(label, edges))
        reach, members = np.zeros((2, len(label)), np.int64)   # of the whole group, at its root
        np.maximum.at(reach, root, own_height)
        np.add.at(members, root[np.searchsorted(label, known[:, 0])], known[:, 2])
        is_root = root == np.arange(len(label))
        own_height = np.where(is_root, reach, own_height)
        leaves = own_height > height
        merged = np.column_stack([label, label[root], members[root]])
        above = np.column_stack([label, own_height, members])[leaves]
        write_pieces(self._merged(height, number), 3, [[merged[leaves & ~is_root, :2]], [above], [merged]])
        if height == self.top:
            self.rename_block(block)

    def rename_block(self, block: tuple[int, int]) -> None:
        """Write the final labels for each member of a block."""
        height, number = block
        (merged,) = self._pieces(height, number, (MERGED,))
        if height < self.top:
            above = self._known(height, number)
            place = np.minimum(np.searchsorted(above.label, merged[:, 1]), max(len(above.label) - 1, 0))
            has_left = np.flatnonzero(above.label[place] == merged[:, 1] if len(above.label) else place > 0)
            merged[has_left, 1:] = np.column_stack(above[1:])[place[has_left]]
        members, pieces = self._members(block), []
        for member in members:
            label = self._pieces(height - 1, member, (KNOWN,))[0][:, 0]
            pieces.append([merged[np.searchsorted(merged[:, 0], label)]])
        write_pieces(self._renamed(height, number), len(members), pieces)

    def _blocks(self, height: int) -> list[tuple[int, int]]:
        return [(height, number) for number in range(self._count(height))]

    def _count(self, height: int) -> int:
        """How many blocks of a height there are; those of height 0 are the subdomains."""
        return -(-self.parts // MEMBERS**height)

    def _members(self, block: tuple[int, int]) -> range:
        height, number = block
        return range(number * MEMBERS, min((number + 1) * MEMBERS, self._count(height - 1)))

    def _pieces(self, height: int, number: int, pieces: tuple[int, ...]) -> list[np.ndarray]:
        with pieces_of(self._merged(height, number)) as file:
            return [_table(file, piece, COLUMNS[piece]) for piece in pieces]

    def _known(self, height: int, number: int) -> Known:
        """What a block has passed on."""
        with pieces_of(self._renamed(height + 1, number // MEMBERS)) as file:
            return Known(*_table(file, number % MEMBERS, len(Known._fields)).T)

    def _merged(self, height: int, number: int) -> Path:
        """Of a block: pairs of labels; labels that others know, with heights and members; and those of its members."""
        return self.folder / f"{self.name}-merged-{height}-{number}"

    def _renamed(self, height: int, number: int) -> Path:
        """The final labels, a piece for each member of a block."""
        return self.folder / f"{self.name}-renamed-{height}-{number}"


def _table(file: PieceFile, piece: int, columns: int) -> np.ndarray:
    """A piece of so many columns."""
    found = file.read(piece, (columns * NUMBER.itemsize,), range(1))[0].view(NUMBER).reshape(-1, columns)
    return np.array(found)


def _highest(label: np.ndarray, height: np.ndarray) -> np.ndarray:
    """The distinct labels (rising), each with its greatest height.

    >>> _highest(np.array([7, 3, 7]), np.array([1, 2, 3])).tolist()
    [[3, 2], [7, 3]]
    """
    order = np.lexsort((height, label))
    label, height = label[order], height[order]
    last = np.flatnonzero(np.diff(label, append=label[-1:] + 1))
    return np.stack([label[last], height[last]], axis=1).astype(np.int64)
