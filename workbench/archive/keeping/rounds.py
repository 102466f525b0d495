"""Keeping clusters of particles that are spread over many processes, until nothing is wrong.

It is the loop of `clusters/keep/attempts.py`: a search for violated constraints, an attempt to repair these, a search where
anything has changed, and so on. Each round is one attempt, by all subdomains together.

None of this decides. In the end the finder searches all particles as they will be decoded. If it finds other groups, all
particles are searched again; where that finds nothing to repair, they get their original coordinates.

Each round that is complete is recorded where the unfinished archive is, so that a run that was killed goes on from there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.archive.encoded import DoneChunk, Encoded, put_hidden
from workbench.archive.keeping.constraints import Violated, search
from workbench.archive.keeping.labels import Sizes, find_original_groups, groups_differ
from workbench.archive.keeping.members import Subdomains
from workbench.archive.keeping.moved import Moved
from workbench.archive.keeping.repairs import Repaired, repair
from workbench.clusters.keep.attempts import RESORT_AFTER
from workbench.clusters.keep.state import PINNED
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.guarantee import Allowance, TooExpensive
from workbench.run.executors import Executor

EXACT_AFTER = RESORT_AFTER   # rounds: the last resort, all particles get their original coordinates
RECORD = "rounds.json"


@dataclass(frozen=True)
class Progressed:
    """What all rounds so far have taken, of particles that `source` stands for."""

    source: str
    rounds: int = 0
    opened: int = 0       # groups with constraints in the beginning,
    needs: int = 0        # and the constraints
    evaluated: int = 0
    descent: int = 0
    exact: int = 0        # particles with their original coordinates
    restored: bool = False

    def after(self, needs: int, repaired: Repaired) -> Progressed:
        """The same after one more round."""
        return dataclasses.replace(
            self, rounds=self.rounds + 1, opened=self.opened or repaired.opened, needs=self.needs or needs,
            evaluated=self.evaluated + sum(one.evaluated for one in repaired.efforts),
            descent=self.descent + max(one.descent for one in repaired.efforts),
            exact=sum(one.exact for one in repaired.applied),
        )


@dataclass(frozen=True, eq=False)
class Settled:
    """The groups are kept: the subdomains after the last round, and the figures."""

    subdomains: Subdomains
    sizes: list[Sizes]
    progressed: Progressed
    close_calls: int


def settle(
    subdomains: Subdomains, encoded: Encoded, done: Sequence[DoneChunk], executor: Executor, allowance: Allowance
) -> Settled:
    """Find and repair all violated constraints; raises TooExpensive where this takes more than the allowance."""
    subdomains.exchange.distribute(executor)
    sizes = find_original_groups(subdomains, executor)
    subdomains, progressed = _recalled(subdomains, _name_of(subdomains, done), executor)
    _require_affordable(allowance, progressed)
    violated = search(subdomains, executor)
    while violated.count or groups_differ(subdomains, executor):
        if progressed.restored:
            raise GuaranteeBroken("exact particles are found in groups that are not the original's: please report this")
        if not violated.count:
            violated = search(subdomains, executor)
        before: Violated | None = None
        changed: list[int] = []
        if not violated.count or progressed.rounds >= EXACT_AFTER:
            subdomains.run(executor, "restore-particles", _restore)
            rounds = progressed.rounds + 1
            progressed = dataclasses.replace(progressed, rounds=rounds, exact=len(encoded), restored=True)
        else:
            repaired = repair(subdomains, allowance, executor)
            before, changed = violated, [part for part, one in enumerate(repaired.applied) if one.changed]
            progressed = progressed.after(violated.count, repaired)
        subdomains = _recorded(subdomains.next, progressed)
        _require_affordable(allowance, progressed)
        violated = search(subdomains, executor, before, changed)
    return Settled(subdomains, sizes, progressed, _close_calls(subdomains, violated, executor))


def _require_affordable(allowance: Allowance, progressed: Progressed) -> None:
    if progressed.exact > allowance.exact or progressed.evaluated > allowance.evaluated:
        raise TooExpensive


def _close_calls(subdomains: Subdomains, violated: Violated, executor: Executor) -> int:
    """The deciding pairs that remain within the margin of a linking length because they are so in the original."""
    if not any(one.exempted for one in violated.searched):
        return 0
    return search(subdomains, executor, exempt=False).count


def _restore(subdomains: Subdomains, part: int) -> None:
    """Give all particles their original coordinates."""
    members = subdomains.of(part)
    tries = members.moved.over("tries", np.zeros(len(members), np.int32))
    state = {"current": members.original(), "rank": np.full(len(members), PINNED, np.int32), "tries": tries}
    Moved(np.arange(len(members), dtype=np.int32), state).save(subdomains.next.of(part).moves)


def _name_of(subdomains: Subdomains, done: Sequence[DoneChunk]) -> str:
    """A name for what the rounds start from: the original and the decoded particles, and how they are divided."""
    described = repr((subdomains.decomposition, subdomains.terms))
    digest = hashlib.blake2b(described.encode(), digest_size=16)
    for chunk in done:
        digest.update(chunk.source.to_bytes(4, "little") + chunk.ready.data.checksum)
    return digest.hexdigest()


def _recorded(subdomains: Subdomains, progressed: Progressed) -> Subdomains:
    """The subdomains after a round, which is complete from here on; what was there before it is deleted."""
    put_hidden(subdomains.lasting / RECORD, json.dumps(dataclasses.asdict(progressed)).encode())
    earlier = dataclasses.replace(subdomains, round=subdomains.round - 1)
    for part in subdomains.parts:
        earlier.of(part).moves.unlink(missing_ok=True)
    return subdomains


def _recalled(subdomains: Subdomains, source: str, executor: Executor) -> tuple[Subdomains, Progressed]:
    """The subdomains after the last round that an earlier run has recorded, if it was of these particles."""
    try:
        progressed = Progressed(**json.loads((subdomains.lasting / RECORD).read_text()))
    except (FileNotFoundError, ValueError, TypeError):   # none, or written when power failed
        progressed = Progressed("")
    later = dataclasses.replace(subdomains, round=progressed.rounds)
    if progressed.source == source and all(later.run(executor, "recall-moves", _readable)):
        return later, progressed
    return subdomains, Progressed(source)


def _readable(subdomains: Subdomains, part: int) -> bool:
    """Whether what an earlier run has written is there, and undamaged."""
    try:
        Moved.load(subdomains.of(part).moves)
    except WorkbenchError:
        return False
    return True
