"""Labels that every subdomain gives to its particles by itself, made the same for all.

Each subdomain writes the indices and labels of its ghosts, sorted by owner. Then each compares what others call its
particles with its own names, and `merging.py` renames the labels that differ. Only pairs of labels and the sizes of groups
that several subdomains know pass through the scheduler; each subdomain reads those of its own groups (`Known`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from workbench.run.scratch_files import (
    Mapped,
    complete,
    load,
    read_summed,
    save,
    save_blocks,
    size_of_summed,
    unreadable,
    write_summed,
)
from workbench.subdomains.merging import Renaming, different, distinct

BLOCK = 2**16   # rows that are written together


class Compared(NamedTuple):
    """The pairs of different labels of the same particles; and how many particles have each shared label here."""

    edges: np.ndarray
    shared: np.ndarray
    members: np.ndarray


@dataclass(frozen=True)
class JointLabels:
    """The labels of one kind in a folder that all workers see."""

    folder: Path
    name: str

    def lend(self, part: int, index: np.ndarray, head: np.ndarray, owned: np.ndarray, owner: np.ndarray) -> None:
        """Write the labels of ghosts. `head` is the first row there of each particle's group: its index is the label.

        `owner` is the subdomain that owns each ghost.
        """
        ghost = np.flatnonzero(~owned)[np.argsort(owner, kind="stable")]
        with complete(self._ghosts(part)) as file:
            write_summed(file, [np.stack([index[ghost], index[head[ghost]]], axis=1)])

    def write(self, part: int, index: np.ndarray, head: np.ndarray, owned: np.ndarray) -> None:
        """Write the labels of the particles that a subdomain owns."""
        own = (index[head[rows][owned[rows]]] for rows in _blocks(len(index)))
        kind = np.int32 if not len(index) or index[-1] < 2**31 else np.int64
        save_blocks(self.file("own", part), (int(np.count_nonzero(owned)),), np.dtype(kind), own)

    def own(self, part: int, places: slice = slice(None)) -> np.ndarray:
        """The labels of the particles that a subdomain owns, or some of them, in the order of their indices."""
        return load(self.file("own", part), places)

    def order(self, starts: np.ndarray) -> None:
        """Write where ghosts begin: those of the owner `o` at `starts[s, o]` of the ghosts of `s`.

        A table of all subdomains by all, of which each reads a few rows: with a task it would be sent to each of them.
        """
        save(self.folder / f"{self.name}-starts.npy", starts.T)

    def compare(self, part: int, label_of: Callable[[np.ndarray], np.ndarray]) -> Compared:
        """What others call the particles of this subdomain, once `order` has written where they are.

        `label_of` returns its own labels of particles, of which it gets the indices. Members are not counted.
        """
        begin, end = load(self.folder / f"{self.name}-starts.npy", slice(part, part + 2))
        others = np.flatnonzero(end > begin).tolist()
        nothing = np.empty((0, 2), np.int64)
        lent = np.concatenate([nothing, *(self._given(other, int(begin[other]), int(end[other])) for other in others)])
        here = label_of(lent[:, 0]).astype(np.int64)
        edges = different(lent[:, 1], here)
        shared = distinct(np.concatenate([here, self._given(part)[:, 1]]))
        save(self.file("shared", part), shared)
        return Compared(edges, shared, np.zeros(len(shared), np.int64))

    def shared(self, part: int) -> np.ndarray:
        """The labels (rising), as the subdomain wrote them, that other subdomains know too."""
        return load(self.file("shared", part))

    def _given(self, part: int, begin: int = 0, end: int | None = None) -> np.ndarray:
        """The indices and labels (M, 2) of some ghosts of a subdomain; headers of files would take long to read."""
        path = self._ghosts(part)
        try:
            with path.open("rb") as file:
                size = size_of_summed(file)
                found = read_summed(file, size, 16 * begin, size if end is None else 16 * end)
        except OSError as error:
            raise unreadable(path, error) from error
        return found.view(np.int64).reshape(-1, 2)

    def tell(self, joined: Joined) -> None:
        """Write what concerns each subdomain, for `known`."""
        of_parts = [joined.known(part) for part in range(len(joined.labels))]
        save(self.folder / f"{self.name}-ends.npy", np.cumsum([0, *(len(one.label) for one in of_parts)]))
        table = [np.concatenate([getattr(one, name) for one in of_parts]) for name in ("label", "final", "members")]
        save(self.folder / f"{self.name}-known.npy", np.stack(table, axis=1))

    def known(self, part: int) -> Known:
        """What concerns a subdomain."""
        begin, end = load(self.folder / f"{self.name}-ends.npy", slice(part, part + 2)).tolist()
        return Known(*np.ascontiguousarray(load(self.folder / f"{self.name}-known.npy", slice(begin, end)).T))

    def _ghosts(self, part: int) -> Path:
        return self.folder / f"{self.name}-ghosts-{part}"

    def file(self, kind: str, part: int) -> Path:
        """The file of a subdomain."""
        return self.folder / f"{self.name}-{kind}-{part}.npy"


def _blocks(count: int) -> Iterator[slice]:
    """Rows in blocks: all of them together would be the most that a search holds."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


def starts_of(ghosts: Sequence[np.ndarray]) -> np.ndarray:
    """Where the ghosts of each owner begin, from their counts in each subdomain."""
    return np.cumsum([np.concatenate([[0], row]) for row in ghosts], axis=1)


@dataclass(frozen=True, eq=False)
class Joined:
    """What all subdomains call their groups: final labels, and the sizes of groups that several subdomains know."""

    renaming: Renaming
    shared: np.ndarray    # final labels, rising
    members: np.ndarray
    labels: Sequence[np.ndarray]   # for each subdomain, its labels that others know

    @classmethod
    def of(cls, compared: Sequence[Compared]) -> Self:
        """The result of all comparisons."""
        renaming = Renaming.of(np.concatenate([one.edges for one in compared]))
        labels = [one.shared for one in compared]
        final = renaming.applied(np.concatenate(labels))
        members = np.concatenate([one.members for one in compared])
        shared, place = np.unique(final, return_inverse=True)
        total = np.zeros(len(shared), np.int64)
        np.add.at(total, place.ravel(), members)
        return cls(renaming, shared, total, labels)

    def known(self, part: int) -> Known:
        """What concerns one subdomain."""
        label = self.labels[part]
        final = self.renaming.applied(label)
        return Known(label, final, self.members[np.searchsorted(self.shared, final)])


@dataclass(frozen=True, eq=False)
class Known:
    """The groups of a subdomain that others know: their labels there (rising) and in the end, and how many members."""

    label: np.ndarray
    final: np.ndarray
    members: np.ndarray

    def named(self, head: np.ndarray, index: np.ndarray) -> Named:
        """The groups of the subdomain, of which `head` gives the first row of each particle's group there."""
        row = np.searchsorted(index, self.label)
        final, first, which = np.unique(self.final, return_index=True, return_inverse=True)
        home = np.arange(len(head), dtype=np.int32)
        home[row] = row[first][which.ravel()]   # pieces of one group: the first row of all of them
        order = np.argsort(row[first])
        return Named(home[head], Names(row[first][order], final[order]), self.members[first][order])


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

    def rows(self, label: np.ndarray) -> np.ndarray:
        """The first rows of the groups with these labels."""
        return self.row[np.isin(self.label, label)]


@dataclass(frozen=True, eq=False)
class Named:
    """The first row of each particle's group in a subdomain; of groups that others know, labels and members."""

    head: np.ndarray
    names: Names
    members: np.ndarray

    def sizes(self, owned: np.ndarray) -> np.ndarray:
        """The number of members, in the whole set, of each group, at its first row; `owned` marks those that count here."""
        here = np.bincount(self.head[owned], minlength=len(self.head))
        here[self.names.row] = self.members
        return here
