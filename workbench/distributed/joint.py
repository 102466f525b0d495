"""Labels that every subdomain gives to its particles by itself, made the same for all.

Each subdomain writes the labels of its own particles and, sorted by owner, the indices and labels of its ghosts. Then each
compares what others call its particles with its own names, and `merging.py` renames the labels that differ. Only pairs of
labels and the sizes of groups that several subdomains know pass through the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from workbench.distributed.merging import Renaming, different, distinct
from workbench.distributed.scratch_files import complete, load, save, save_blocks, unreadable

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

    def write(self, part: int, index: np.ndarray, head: np.ndarray, owned: np.ndarray, owner: np.ndarray) -> None:
        """Write the labels of a subdomain. `head` is the first row there of each particle's group: its index is the label.

        `owner` is the subdomain that owns each ghost.
        """
        ghost = np.flatnonzero(~owned)[np.argsort(owner, kind="stable")]
        with complete(self._ghosts(part)) as file:
            file.write(np.stack([index[ghost], index[head[ghost]]], axis=1).data)
        own = (index[head[rows][owned[rows]]] for rows in _blocks(len(index)))
        kind = np.int32 if not len(index) or index[-1] < 2**31 else np.int64
        save_blocks(self.file("own", part), (len(index) - len(ghost),), np.dtype(kind), own)

    def own(self, part: int) -> np.ndarray:
        """The labels of the particles that a subdomain owns, in the order of their indices."""
        return load(self.file("own", part))

    def compare(self, starts: np.ndarray, part: int, index: np.ndarray, counted: bool = True) -> Compared:
        """What others call the particles of this subdomain; those of `o` begin at `starts[s, o]` of the ghosts of `s`.

        `index` is that of its own particles. Members are zero unless they are counted, which looks at every particle.
        """
        label, others = self.own(part), np.flatnonzero(starts[:, part + 1] > starts[:, part]).tolist()
        nothing = np.empty((0, 2), np.int64)
        lent = np.concatenate([nothing, *(self._given(other, *starts[other, part : part + 2]) for other in others)])
        here = label[np.searchsorted(index, lent[:, 0])].astype(np.int64)
        edges = different(lent[:, 1], here)
        shared = distinct(np.concatenate([here, self._given(part, 0, starts[part, -1])[:, 1]]))
        save(self.file("shared", part), shared)
        if not counted:
            return Compared(edges, shared, np.zeros(len(shared), np.int64))
        place = np.minimum(np.searchsorted(shared, label), max(len(shared) - 1, 0))
        known = place[shared[place] == label] if len(shared) else place[:0]
        return Compared(edges, shared, np.bincount(known, minlength=len(shared)))

    def shared(self, part: int) -> np.ndarray:
        """The labels (rising), as the subdomain wrote them, that other subdomains know too."""
        return load(self.file("shared", part))

    def _given(self, part: int, begin: int, end: int) -> np.ndarray:
        """The indices and labels (M, 2) of some ghosts of a subdomain; headers of files would take long to read."""
        path = self._ghosts(part)
        try:
            return np.fromfile(path, np.int64, 2 * (end - begin), offset=16 * begin).reshape(end - begin, 2)
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from error

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

    @classmethod
    def of(cls, compared: Sequence[Compared]) -> Self:
        """The result of all comparisons."""
        renaming = Renaming.of(np.concatenate([one.edges for one in compared]))
        final = renaming.applied(np.concatenate([one.shared for one in compared]))
        members = np.concatenate([one.members for one in compared])
        shared, place = np.unique(final, return_inverse=True)
        total = np.zeros(len(shared), np.int64)
        np.add.at(total, place.ravel(), members)
        return cls(renaming, shared, total)

    def named(self, head: np.ndarray, index: np.ndarray) -> Named:
        """The final names of groups of a subdomain, of which `head` gives the first row of each particle's group there."""
        heads = np.flatnonzero(head == np.arange(len(head)))
        name = index[heads]   # rising, and many: the few labels that are renamed or shared are looked up there
        changed, which = _places(name, self.renaming.label)
        final = name.copy()
        final[changed] = new = self.renaming.final[which]
        home, label = np.arange(len(head), dtype=np.int32), np.empty(len(head), np.int64)
        label[heads] = final
        place, here = _places(name, new)
        home[heads[changed[here]]] = heads[place]
        away = np.delete(np.arange(len(new)), here)
        _, first, where = np.unique(new[away], return_index=True, return_inverse=True)
        home[heads[changed[away]]] = heads[changed[away]][first][where.ravel()]
        members = np.zeros(len(head), np.int64)
        for at, number in (_places(name, self.shared), _turned(_places(self.shared, new), changed)):
            members[heads[at]] = self.members[number]
        return Named(label[head], home[head], members)


def _places(rising: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where these values are in an array that rises, and which of them are there."""
    if not len(rising):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    place = np.minimum(np.searchsorted(rising, wanted), len(rising) - 1)
    which = np.flatnonzero(rising[place] == wanted)
    return place[which], which


def _turned(found: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows whose values were found, and where."""
    return rows[found[1]], found[0]


@dataclass(frozen=True, eq=False)
class Named:
    """The final label of each particle of a subdomain, and the first row there of its group."""

    label: np.ndarray
    head: np.ndarray
    _members: np.ndarray   # at the first row of each piece of a group that other subdomains know, its members; else 0

    @property
    def shared(self) -> np.ndarray:
        """Whether other subdomains know the group of each particle."""
        found: np.ndarray = self._members[self.head] > 0
        return found

    def sizes(self, owned: np.ndarray) -> np.ndarray:
        """The number of members, in the whole set, of the group of each particle; `owned` marks those that count here."""
        here = np.bincount(self.head[owned], minlength=len(self.head))
        found: np.ndarray = np.where(self._members > 0, self._members, here)[self.head]
        return found
