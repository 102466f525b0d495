"""The particles of each subdomain, in files: what they were, what they are now, and what their groups are called.

Rows rise by the index in the archive, own particles and ghosts together. All steps of keeping clusters read and write these
files, so that no worker must remember anything. What repairs have changed has a file for each round (`moved.py`): a step
reads one round and writes the next, so that it may be begun again, wherever a worker died.

Labels are not written: a group is named by its first particle, except for those that other subdomains know, too.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from workbench.archive.encoded import Encoded
from workbench.archive.keeping.moved import STATE, Moved
from workbench.archive.keeping.terms import Terms
from workbench.clusters.friends import link
from workbench.clusters.keep.edits import Surmise
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.run.scratch_files import Mapped, load, save
from workbench.subdomains.exchange import Exchange
from workbench.subdomains.joint import Compared, JointLabels, Named, Names

Rows = slice | np.ndarray   # of a subdomain
EVERY = slice(None)
HEADS = {"label": "head", "shared": "head", "joined": "piece"}   # what follows from the first row of a group, or of a part


@dataclass(frozen=True)
class Members:
    """The arrays of one subdomain by name; those of STATE are as they were when a round of repairs began (`moved`).

    For each linking length, `head` is the first row of each particle's group, `group` the same or UNASKED, and `label` its
    name in all subdomains; `shared` tells whether others know the group. `piece` and `joined` are the first row and the
    name of the part of a group.
    """

    folder: Path
    part: int
    round: int
    all_count: bool   # so that no group is UNASKED

    def save(self, **arrays: Any) -> None:
        """Write these arrays."""
        for name, array in arrays.items():
            save(self.file(name), array)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.take(name, EVERY)

    def mapped(self, name: str) -> Mapped:
        """An array of which a part is wanted."""
        return Mapped(self.file(name))

    def take(self, name: str, rows: Rows) -> np.ndarray:
        """Some rows of an array."""
        kind, number = name.rstrip("0123456789"), name.lstrip(string.ascii_letters)
        if kind in HEADS:
            head, names = self.take(HEADS[kind] + number, rows), self.names(kind + number)
            return names.known(head) if kind == "shared" else names.labels(head, self.mapped("index"))
        if name in STATE:
            before = self.take("decoded", rows) if name == "current" else np.zeros(len(self.take("owned", rows)), np.int32)
            return self.moved.among(name, rows, before)
        if isinstance(rows, slice):
            return load(self.file(name))
        return np.asarray(self.mapped(name)[rows])

    def call(self, name: str, names: Names) -> None:
        """Write what groups, or parts of groups, are called."""
        self.save(**{f"{name}-names": np.stack([names.row, names.label])})

    def names(self, name: str) -> Names:
        """What groups, or parts of groups, are called."""
        return Names(*load(self.file(f"{name.replace('shared', 'label')}-names")))

    def labelled(self, kind: str, number: int, everything: bool) -> Rows:
        """The rows that have labels of one kind, at one linking length."""
        return EVERY if everything else self[f"{kind}-rows{number}"]

    def __len__(self) -> int:
        return len(self.mapped("index"))

    def file(self, name: str) -> Path:
        """The file of an array."""
        if name.startswith("group") and self.all_count:
            return self.file(name.replace("group", "head"))
        return self.folder / f"{name}-{self.part}.npy"

    @property
    def moved(self) -> Moved:
        """What repairs have changed before this round."""
        if self.round:
            return Moved.load(self.moves)
        positions, nothing = self.mapped("decoded")[:0], np.empty(0, np.int32)
        return Moved(nothing, {"current": np.asarray(positions), "rank": nothing, "tries": nothing})

    @property
    def moves(self) -> Path:
        """The file for what repairs have changed."""
        return self.folder / f"moves-{self.round}-{self.part}.npz"


class Table(Protocol):
    """Arrays by name, with a row for each particle."""

    def take(self, name: str, rows: Rows, /) -> np.ndarray:
        """Some rows of one of the arrays."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some rows (rising) of all arrays of a table, each read when it is asked for, and not held."""

    table: Table
    rows: np.ndarray

    def __getitem__(self, name: str, /) -> np.ndarray:
        return self.table.take(name, self.rows)


@dataclass(frozen=True)
class Decoded:
    """What travels with each original position: the decoded one, and the side information about its moves.

    The side information of each chunk stays in a file, too, for the step that codes the moves.
    """

    encoded: Encoded
    terms: Terms
    folder: Path

    @property
    def row_bytes(self) -> int:
        """A position, and two bytes."""
        return self.terms.dimensions * self.terms.dtype.itemsize + 2

    def rows(self, chunk: int) -> np.ndarray:
        """The rows of a chunk."""
        decoded, terms = self.encoded.decoded(chunk), self.terms
        surmise = Surmise.of(decoded, terms.bound, terms.lengths, terms.box)
        save(self.surmise_file(chunk), np.stack([surmise.context, surmise.forward]))
        columns = decoded.view(np.uint8).reshape(len(decoded), -1), surmise.context[:, None], surmise.forward[:, None]
        return np.concatenate(columns, axis=1)

    def surmise_file(self, chunk: int) -> Path:
        """The side information of a chunk."""
        return self.folder / f"surmise-{chunk}.npy"


@dataclass(frozen=True)
class Cast:
    """All subdomains, how they are cut, and how many rounds of repairs there were."""

    exchange: Exchange
    terms: Terms
    round: int = 0

    @property
    def folder(self) -> Path:
        """Where everything is."""
        return self.exchange.folder

    @property
    def parts(self) -> range:
        """The numbers of the subdomains."""
        return range(self.exchange.division.parts)

    def of(self, part: int) -> Members:
        """The particles of one subdomain."""
        return Members(self.folder, part, self.round, self.terms.promise.min_members == 1)

    def surmise(self, chunk: int) -> Surmise:
        """The side information about the moves of a chunk."""
        cargo, terms = self.exchange.cargo, self.terms
        assert isinstance(cargo, Decoded)
        context, forward = load(cargo.surmise_file(chunk))
        return Surmise(context, forward, (terms.bound, terms.lengths, terms.box))

    @property
    def next(self) -> Cast:
        """The same after one more round."""
        return replace(self, round=self.round + 1)

    def forget_state(self) -> None:
        """Delete what repairs had changed before this round."""
        for part in self.parts:
            self.of(part).moves.unlink(missing_ok=True)

    def labels(self, kind: str, number: int) -> JointLabels:
        """The labels of one kind, at one linking length."""
        return JointLabels(self.folder, f"{kind}{number}-{self.round}")

    def enter(self, part: int) -> None:
        """Receive the particles and find the groups of the original."""
        decomposition = self.exchange.division.decomposition   # type: ignore[attr-defined]
        terms, members, positions = self.terms, self.of(part), self.exchange.positions(part)
        index, owned = self.exchange.members(part)
        owner = decomposition.owners(positions[~owned])
        own, deep = np.flatnonzero(owned), owned.copy()
        deep[own[decomposition.ghosts(positions[own], terms.depth)[0]]] = False
        members.save(index=index, owned=owned, owner=owner, deep=deep, original=positions)
        del positions, index, owned, own, deep   # one array after the other: memory is that of the search
        members.save(**_unloaded(self.exchange.cargo_of(part), terms))
        self.find(part, "original", "original")

    def find(self, part: int, kind: str, name: str) -> None:
        """Find the groups of the positions of this name in a subdomain, at each linking length."""
        members = self.of(part)
        for number, length in enumerate(self.terms.lengths):
            label = np.empty(0, np.int64)
            if len(members):
                label = link(SortedCells.of(Particles(members[name], self.terms.box), length)).labels
            self.name(part, kind, number, label)

    def name(self, part: int, kind: str, number: int, label: np.ndarray, rows: Rows = EVERY) -> None:
        """Write the labels of these rows of a subdomain: for each, the place among them of the first one of its group."""
        members = self.of(part)
        owned, owner = members["owned"], members["owner"]
        if isinstance(rows, np.ndarray):
            owner = owner[(np.cumsum(~owned) - 1)[rows[~owned[rows]]]]
            members.save(**{f"{kind}-rows{number}": rows})   # for `labelled`
        members.save(**{f"{kind}{number}": label.astype(np.int32)})
        self.labels(kind, number).lend(part, members.take("index", rows), label, owned[rows], owner)

    def compare(self, part: int, kind: str, number: int, everything: bool) -> Compared:
        """What other subdomains call the labelled particles of this one; and the members of groups that they know."""
        members = self.of(part)
        rows, head = members.labelled(kind, number, everything), members.mapped(f"{kind}{number}")
        index = members.mapped("index") if everything else members.take("index", rows)
        neighbours = self.exchange.division.neighbours(part)   # type: ignore[attr-defined]
        found = self.labels(kind, number).compare(
            part, neighbours, lambda wanted: index[head[np.searchsorted(index, wanted)]]
        )
        if kind == "part" or not len(found.shared):   # nobody asks how large parts are
            return found
        sizes = np.bincount(head[members.take("owned", rows)], minlength=len(head))
        return found._replace(members=sizes[np.searchsorted(index, found.shared)])

    def named(self, part: int, kind: str, number: int, rows: Rows = EVERY) -> Named:
        """The labels of these rows of a subdomain, with the names that all subdomains agree on."""
        members, known = self.of(part), self.labels(kind, number).known(part)
        return known.named(members[f"{kind}{number}"], members.take("index", rows))


def _unloaded(cargo: np.ndarray, terms: Terms) -> dict[str, np.ndarray]:
    """The decoded positions and the side information, from the cargo."""
    width = cargo.shape[1] - 2
    decoded = np.ascontiguousarray(cargo[:, :width]).view(terms.dtype).reshape(-1, terms.dimensions)
    context, forward = (np.ascontiguousarray(cargo[:, width + column]) for column in (0, 1))
    return {"decoded": decoded, "context": context, "forward": forward}
