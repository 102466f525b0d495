"""Labels of many subdomains, merged as a tree: nobody sees all pairs of labels that name one group.

Subdomains whose numbers follow each other lie side by side, as the cuts are a tree. So 64 of them form a block, 64 blocks
the next one, and so on. A block merges the pairs of labels of its members, and passes on only the labels that are known
outside of it: each label of a particle that two subdomains know gets the height of the smallest block with both. On the way
back each member gets the final names of the labels that it has passed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.run.executors import Executor
from workbench.run.pieces import pieces_of, write_pieces
from workbench.subdomains.merging import Renaming, roots

MEMBERS = 64        # of a block
PAIR = (16,)        # bytes of two int64
EDGES, HEIGHTS, ROOTS = 0, 1, 2   # the pieces of a file


@dataclass(frozen=True)
class LabelTree:
    """The pairs of labels of so many subdomains, in files of a folder."""

    folder: Path
    parts: int

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

    def enter(self, part: int, edges: np.ndarray, label: np.ndarray, height: np.ndarray) -> None:
        """Write the pairs of labels that name one group in a subdomain, and the heights of all labels that others know."""
        write_pieces(self._merged(0, part), 2, [[edges], [_highest(label, height)]])

    def merge(self, executor: Executor) -> None:
        """Merge the pairs of all subdomains; then each can read its renaming."""
        for height in range(1, self.top + 1):
            executor.map("merge-labels", LabelTree.merge_block, self._blocks(height), "block", shared=self)
        for height in range(self.top - 1, 0, -1):
            executor.map("rename-labels", LabelTree.rename_block, self._blocks(height), "block", shared=self)
        for height in range(self.top + 1):
            for number in range(self._count(height)):
                self._merged(height, number).unlink()

    def renaming(self, part: int) -> Renaming:
        """The final labels of all labels of a subdomain that others know."""
        return Renaming(*self._renamed_by(0, part).T)

    def merge_block(self, block: tuple[int, int]) -> None:
        """Merge the pairs of the members of a block, and write what others must know."""
        height, number = block
        members = [self._pairs(height - 1, member, (EDGES, HEIGHTS)) for member in self._members(block)]
        edges, known = (np.concatenate(pairs) for pairs in zip(*members, strict=True))
        label, own_height = _highest(known[:, 0], known[:, 1]).T
        root = roots(len(label), np.searchsorted(label, edges))
        reach = np.zeros(len(label), np.int64)   # of the whole group
        np.maximum.at(reach, root, own_height)
        is_root = root == np.arange(len(label))
        own_height = np.where(is_root, reach, own_height)
        leaves = own_height > height
        merged = np.stack([label, label[root]], axis=1)
        above = np.stack([label[leaves], own_height[leaves]], axis=1)
        write_pieces(self._merged(height, number), 3, [[merged[leaves & ~is_root]], [above], [merged]])
        if height == self.top:
            self.rename_block(block)

    def rename_block(self, block: tuple[int, int]) -> None:
        """Write the final labels for each member of a block."""
        height, number = block
        (merged,) = self._pairs(height, number, (ROOTS,))
        final = merged[:, 1]
        if height < self.top:
            final = Renaming(*self._renamed_by(height, number).T).applied(final)
        members, pieces = self._members(block), []
        for member in members:
            label = self._pairs(height - 1, member, (HEIGHTS,))[0][:, 0]
            pieces.append([np.stack([label, final[np.searchsorted(merged[:, 0], label)]], axis=1)])
        write_pieces(self._renamed(height, number), len(members), pieces)

    def _blocks(self, height: int) -> list[tuple[int, int]]:
        return [(height, number) for number in range(self._count(height))]

    def _count(self, height: int) -> int:
        """How many blocks of a height there are; those of height 0 are the subdomains."""
        return -(-self.parts // MEMBERS**height)

    def _members(self, block: tuple[int, int]) -> range:
        height, number = block
        return range(number * MEMBERS, min((number + 1) * MEMBERS, self._count(height - 1)))

    def _pairs(self, height: int, number: int, pieces: tuple[int, ...]) -> list[np.ndarray]:
        with pieces_of(self._merged(height, number)) as file:
            return [file.read(piece, PAIR, range(1))[0].view(np.int64).reshape(-1, 2) for piece in pieces]

    def _renamed_by(self, height: int, number: int) -> np.ndarray:
        """The labels that a block has passed on (rising), each with its final one."""
        with pieces_of(self._renamed(height + 1, number // MEMBERS)) as file:
            return file.read(number % MEMBERS, PAIR, range(1))[0].view(np.int64).reshape(-1, 2)

    def _merged(self, height: int, number: int) -> Path:
        """Of a block: pairs of labels, the heights of labels that others know, and the roots of those of its members."""
        return self.folder / f"merged-{height}-{number}"

    def _renamed(self, height: int, number: int) -> Path:
        """The final labels, a piece for each member of a block."""
        return self.folder / f"renamed-{height}-{number}"


def _highest(label: np.ndarray, height: np.ndarray) -> np.ndarray:
    """The distinct labels (rising), each with its greatest height.

    >>> _highest(np.array([7, 3, 7]), np.array([1, 2, 3])).tolist()
    [[3, 2], [7, 3]]
    """
    order = np.lexsort((height, label))
    label, height = label[order], height[order]
    last = np.flatnonzero(np.diff(label, append=label[-1:] + 1))
    return np.stack([label[last], height[last]], axis=1).astype(np.int64)
