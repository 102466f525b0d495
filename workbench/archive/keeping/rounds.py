"""Keeping clusters of particles that are spread over many processes, until nothing is wrong.

A look at all particles comes first. After each round of repairs, a proof names suspects (`proof.py`), and only these, their
groups and all near them are looked at again. Small groups that do not count may merge unseen by the proof, and where
suspects are many it is of no use: then all particles are looked at again. The proof tests all that have moved, and the ends
of all constraints of the first look, moved or not: `clusters/keep/attempts.py` says why no other particle can be in a
violated constraint.

None of this decides. In the end the finder searches all particles as they will be decoded. If it finds other groups, all
particles are looked at again; where that finds nothing to repair, they get their original coordinates.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.archive.encoded import Encoded
from workbench.archive.keeping.look import Violated, look
from workbench.archive.keeping.members import Cast, Decoded
from workbench.archive.keeping.moved import Moved
from workbench.archive.keeping.original import Sizes, joined, name_groups, same_groups
from workbench.archive.keeping.proof import Doubted, Scope, find_exempt, prove, scope_of
from workbench.archive.keeping.repairs import Left, Repaired, repair
from workbench.archive.keeping.terms import Terms
from workbench.clusters.keep import Allowance, TooExpensive
from workbench.clusters.keep.state import PINNED
from workbench.errors import GuaranteeBroken
from workbench.run.executors import Executor
from workbench.subdomains.decomposition import Decomposition, WithGhosts
from workbench.subdomains.exchange import Exchange

EXACT_AFTER = 24   # rounds: the last resort, all particles get their original coordinates


@dataclass(frozen=True, eq=False)
class Settled:
    """The groups are kept: where everybody's moves are, and the figures."""

    cast: Cast
    sizes: list[Sizes]
    opened: int
    needs: int
    attempts: int
    descent: int
    exact: int
    close_calls: int


def settle(
    encoded: Encoded, terms: Terms, decomposition: Decomposition, folder: Path, executor: Executor, allowance: Allowance
) -> Settled:
    """Find and repair all violated constraints; raises TooExpensive where this takes more than the allowance."""
    division = WithGhosts(decomposition, terms.ghost_width)
    cast = Cast(Exchange(encoded, division, folder, Decoded(encoded, terms, folder), asks_owners=True), terms)
    cast.exchange.distribute(executor)
    executor.map("find-groups", Cast.enter, cast.parts, shared=cast)
    groups = joined(cast, "original", executor)
    sizes = name_groups(cast, groups, executor)
    found = look(cast, executor)
    needs, opened, works, exempted = found.count, 0, [], found.exempted   # type: int, int, list[list[Repaired]], bool
    proofs: list[Doubted | None] = [None for _ in cast.parts]
    restored = False
    while found.count or _differ(cast, executor):
        if restored:
            raise GuaranteeBroken("exact particles are found in groups that are not the original's: please report this")
        if not found.count:
            found, proofs = look(cast, executor), [None for _ in cast.parts]
        restored = not found.count or cast.round >= EXACT_AFTER
        if restored:
            executor.map("restore-particles", _restore, cast.parts, shared=cast)
        else:
            repaired, left, changed = repair(cast, found.links, allowance, executor)
            works.append(repaired)
            proofs = [None if new else proof for new, proof in zip(changed, proofs, strict=True)]
            opened = opened or _opened(left)
            _require_affordable(allowance, works, 0)
        before, cast = cast, cast.next
        before.forget_state()
        if restored:
            found = look(cast, executor)
        else:
            found, proofs = _look_again(cast, executor, proofs)
        exempted = exempted or found.exempted
        _require_affordable(allowance, works, found.exact)
    return Settled(
        cast, sizes, opened, needs, sum(max(one.attempts for one in work) for work in works),
        sum(max(one.descent for one in work) for work in works), found.exact,
        _close_calls(cast, executor) if exempted else 0,
    )


def _look_again(
    cast: Cast, executor: Executor, earlier: list[Doubted | None]
) -> tuple[Violated, list[Doubted | None]]:
    """Find all violated constraints after a round of repairs, and the proofs; `earlier` are those that still hold."""
    if cast.terms.promise.min_members > 1:
        return look(cast, executor), earlier
    proofs = prove(cast, executor, earlier)
    known = [proof if proof.known else None for proof in proofs]
    if (scope := scope_of(cast, proofs)) is None:
        return look(cast, executor), known
    exact, used = sum(one.exact for one in proofs), any(one.exempted for one in proofs)
    if not any(one.count for one in proofs):
        return Violated(0, used, exact, []), known
    found = look(cast, executor, scope=scope)
    return dataclasses.replace(found, exempted=found.exempted or used, exact=exact), known


def _require_affordable(allowance: Allowance, works: list[list[Repaired]], exact: int) -> None:
    every = [one for work in works for one in work]
    evaluated = sum(one.evaluated for one in every)
    if any(one.dear for one in every) or exact > allowance.exact or evaluated > allowance.evaluated:
        raise TooExpensive


def _opened(left: list[Left]) -> int:
    """How many groups have constraints, at all linking lengths together."""
    shared = sum(len(np.unique(np.concatenate(labels))) for labels in zip(*[one.opened for one in left], strict=True))
    return shared + sum(one.alone for one in left)


def _restore(cast: Cast, part: int) -> None:
    """Give all particles their original coordinates."""
    members = cast.of(part)
    exact = np.full(len(members), PINNED, np.int32)
    state = {"current": members["original"], "rank": exact, "tries": members["tries"]}
    Moved(np.arange(len(members)), state).save(cast.next.of(part).moves)


def _differ(cast: Cast, executor: Executor) -> bool:
    """Whether the finder, which knows of no constraint, sees any particle in another group than in the original."""
    executor.map("find-groups-again", _find_again, cast.parts, shared=cast)
    joined(cast, "now", executor)
    return any(executor.map("compare-groups", same_groups, cast.parts, shared=cast))


def _find_again(cast: Cast, part: int) -> None:
    cast.find(part, "now", "current")


def _close_calls(cast: Cast, executor: Executor) -> int:
    """The deciding pairs that remain within the margin of a linking length because they are so in the original."""
    scope: Scope | None = find_exempt(cast, executor) if cast.terms.promise.min_members == 1 else None
    return look(cast, executor, exempt=False, scope=scope).count
