"""After repairs: which particles may be in a violated constraint, without a second look at all particles.

The proof of `clusters/keep/proof.py`, subdomain by subdomain. The first repair leaves the neighbours that it has listed and
the constraints that it knew; from these, each subdomain tests the particles that it owns. Ghosts reach so far that all
which such a particle may conflict with is there. Suspects are few. Only their groups, in all subdomains that know these,
and the particles near them are looked at again (`Scope`); if there are none, no constraint is violated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.archive.keeping.members import Cast, Chosen, Members
from workbench.archive.keeping.moved import Moved
from workbench.archive.keeping.patch import Excerpt
from workbench.archive.keeping.terms import Terms
from workbench.archive.keeping.vicinity import near
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.proof import FirstLook
from workbench.clusters.keep.region import WORTHWHILE
from workbench.clusters.keep.surroundings import MOST_LISTED, Surroundings
from workbench.data.periodic import squared_lengths
from workbench.run.executors import Executor
from workbench.run.scratch_files import load, load_together, save, save_together

ROUNDING = 1e-6   # of displacements and distances
LOOK, PROOF, EXEMPT = "look", "proof", "exempt"


@dataclass(frozen=True)
class Doubted:
    """What one subdomain has found: how many suspects it owns (-1: too many), and their groups that others know."""

    name: str                   # of the file with the suspects
    count: int
    exempted: bool              # whether the original distance of some pair has decided
    exact: int                  # particles with their original coordinates
    shared: list[np.ndarray]    # at each linking length

    @property
    def known(self) -> bool:
        """Whether the suspects are in their file."""
        return self.count >= 0


@dataclass(frozen=True)
class Scope:
    """What is to be looked at again: some particles of each subdomain, by the names of their files; and their groups.

    `shared` are the labels of those groups that several subdomains know (rising), at each linking length.
    """

    names: list[str]
    shared: list[np.ndarray]

    def suspects(self, members: Members) -> np.ndarray:
        """The suspects (rows) that a subdomain knows: its own, and those that others own."""
        index, found = members.mapped("index"), []
        for part in [members.part, *np.unique(members["owner"]).tolist()]:
            given = load(suspects_file(members.folder, self.names[part], part))
            place = np.minimum(np.searchsorted(index, given), max(len(index) - 1, 0))
            found.append(place[index[place] == given] if len(index) else place[:0])
        return np.unique(np.concatenate(found))


def suspects_file(folder: Path, name: str, part: int) -> Path:
    """The indices of the suspects that a subdomain owns."""
    return folder / f"{name}-{part}.npy"


def remember(members: Members, rows: np.ndarray, listed: Surroundings | None, pairs: np.ndarray, kind: np.ndarray) -> None:
    """Write what the proof will need: the constraints of a subdomain, and the neighbours of their ends that it owns.

    `listed` numbers particles by their places in `rows`.
    """
    nothing = np.empty(0, np.int32)
    candidate, reach, sizes, neighbours = nothing, np.empty(0), nothing, nothing
    if listed is not None:
        mine = np.flatnonzero(members["owned"][rows[listed.candidates]])
        start, sizes = listed.start[mine], (listed.end - listed.start)[mine]
        before = np.cumsum(sizes) - sizes
        entries = np.repeat(start - before, sizes) + np.arange(int(sizes.sum()))
        candidate, reach = rows[listed.candidates[mine]], listed.reach[mine]
        neighbours = rows[listed.neighbours[entries]]
    save_together(_first(members), {
        "pairs": pairs, "kind": kind, "candidate": candidate.astype(np.int32), "reach": reach,
        "ends": np.cumsum(sizes), "neighbours": neighbours.astype(np.int32),
    })


def prove(cast: Cast, executor: Executor, earlier: Sequence[Doubted | None]) -> list[Doubted]:
    """Find the suspects of all subdomains after a round of repairs.

    `earlier` is what is known of those where nothing has changed since the last proof.
    """
    parts = [part for part in cast.parts if earlier[part] is None]
    found = iter(executor.map("find-suspects", _suspects, parts, shared=cast))
    return [known if known is not None else next(found) for known in earlier]


def scope_of(cast: Cast, found: Sequence[Doubted]) -> Scope | None:
    """All subdomains' suspects; None if they are too many."""
    if not all(one.known for one in found) or sum(one.count for one in found) > WORTHWHILE * len(cast.exchange.source):
        return None
    numbers = range(len(cast.terms.lengths))
    names = [one.name for one in found]
    return Scope(names, [np.unique(np.concatenate([one.shared[number] for one in found])) for number in numbers])


def find_exempt(cast: Cast, executor: Executor) -> Scope | None:
    """The particles about which original distances have decided, in any round; None if they are many."""
    return scope_of(cast, executor.map("find-exempt-pairs", _exempt, cast.parts, shared=cast))


def _exempt(cast: Cast, part: int) -> Doubted:
    members = cast.of(part)
    files = [exempt_file(members, kind, number) for kind in (LOOK, PROOF) for number in range(cast.round + 1)]
    rows = np.unique(np.concatenate([load(file) for file in files if file.exists()]))
    return _doubted(cast, members, EXEMPT, rows, True, 0)


def _suspects(cast: Cast, part: int) -> Doubted:
    """The particles that a subdomain owns and that may be in a violated constraint."""
    members, terms = cast.of(part), cast.terms
    owned, moved = members["owned"], members.moved
    first = load_together(_first(members))
    rows, place = _concerned(members, terms, first, owned, moved)
    suspects, used = np.empty(0, np.int32), np.zeros(len(rows), np.uint8)
    if len(rows):
        state = Excerpt.of(terms, Chosen(members, rows)).state()
        needs = Needs(place[first["pairs"]].reshape(-1, 2), first["kind"])
        found = FirstLook(needs, _listed(first, place, len(rows))).suspects(state, used)
        if found is None:
            return Doubted("", -1, False, 0, [])
        suspects = found
    save(exempt_file(members, PROOF, cast.round), rows[np.flatnonzero(used)])
    return _doubted(cast, members, f"suspects-{cast.round}", rows[suspects], bool(used.any()), moved.exact(owned))


def exempt_file(members: Members, kind: str, number: int) -> Path:
    """The rows of particles about which original distances have decided in one look or proof."""
    return members.folder / f"exempt-{kind}-{number}-{members.part}.npy"


def _doubted(cast: Cast, members: Members, name: str, rows: np.ndarray, used: bool, exact: int) -> Doubted:
    """Write the suspects for the subdomains around, and tell their groups."""
    owned = rows[members.mapped("owned")[rows]]
    save(suspects_file(members.folder, name, members.part), members["index"][owned])
    shared = []
    for number in range(len(cast.terms.lengths)):
        label, known = members.take(f"label{number}", owned), members.take(f"shared{number}", owned)
        shared.append(np.unique(label[known]))
    return Doubted(name, len(owned), used, exact, shared)


def _concerned(
    members: Members, terms: Terms, first: Mapping[str, np.ndarray], owned: np.ndarray, moved: Moved
) -> tuple[np.ndarray, np.ndarray]:
    """The particles (rows) that decide about those which have moved or were ends, and the place of each row among them."""
    checked, chosen = np.zeros((2, len(owned)), bool)
    checked[moved.rows[moved.state["rank"] != 0]] = True
    checked[first["pairs"].ravel()] = True
    chosen[first["neighbours"]] = True
    chosen |= checked
    beyond = np.full(len(owned), -1.0)
    is_full = np.diff(first["ends"], prepend=0) >= MOST_LISTED
    beyond[first["candidate"]] = np.where(is_full, -1.0, first["reach"] - terms.far * (1 + ROUNDING))
    rows = np.flatnonzero(checked & owned)
    moves = members.take("current", rows).astype(np.float64) - members.mapped("decoded")[rows]
    short = rows[np.sqrt(squared_lengths(moves, terms.box)) * (1 + ROUNDING) >= beyond[rows]]
    if len(short):
        original = members["original"]
        width = terms.far + 4 * terms.shift
        chosen[near(original, original[short], np.zeros(len(short), np.int64), width, terms.box)[0]] = True
    found, place = np.flatnonzero(chosen), np.full(len(owned), -1, np.int32)
    place[found] = np.arange(len(found), dtype=np.int32)
    return found, place


def _listed(first: Mapping[str, np.ndarray], place: np.ndarray, count: int) -> Surroundings | None:
    """The neighbours that the first repair has listed, by the places of particles among `count`."""
    candidates = place[first["candidate"]]
    if not len(candidates):
        return None
    slot, ends = np.full(count, -1, np.int32), first["ends"].astype(np.int64)
    slot[candidates] = np.arange(len(candidates), dtype=np.int32)
    nothing = np.empty(0, np.int32)
    return Surroundings(
        candidates, slot, first["reach"], np.concatenate([[0], ends[:-1]]), ends, place[first["neighbours"]],
        np.zeros(len(candidates) + 1, np.int64), nothing, nothing,
    )


def _first(members: Members) -> Path:
    return members.folder / f"first-{members.part}.npz"
