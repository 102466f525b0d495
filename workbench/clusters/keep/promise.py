"""The promise to keep clusters: which groups, at which linking lengths."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from workbench.arguments import one_of, whole_number
from workbench.backend import Array
from workbench.clusters.friends import Unit, absolute_linking_length
from workbench.clusters.keep.words import clusters_in_words, listed, short
from workbench.data import Particles
from workbench.data.outline import Outlined
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Limit
from workbench.guarantees.guarantee import Allowance, Correction, Guarantee
from workbench.progress import Progress

Solver = Literal["auto", "pgd", "refine"]

MOST_LENGTHS = 64
MOST_MEMBERS = 2**63 - 1   # that a certificate can state


@dataclass(frozen=True)
class KeepClusters(Guarantee):
    """Decoded particles have exactly the friends-of-friends groups of the original ones; for `keep=[...]`.

    `linking_length` may be several lengths. Groups with fewer than `min_members` members may change, but do not reach that
    size and do not join larger groups. `solver` chooses how particles are moved: "pgd" by projected gradient descent,
    "refine" by more bits of their residual, "auto" by the simplest move that suffices, and descent for the rest.

    >>> KeepClusters(0.2)
    KeepClusters(linking_length=(0.2,), unit='spacing', min_members=1, solver='auto')
    """

    kind: ClassVar[str] = "clusters"
    certified: ClassVar[str] = "the fingerprint of its groups"
    violations: ClassVar[str] = "groups_not_as_certified"

    linking_length: float | Sequence[float] = 0.2
    unit: Unit = "spacing"
    min_members: int = 1
    solver: Solver = "auto"

    def __post_init__(self) -> None:
        given = self.linking_length
        given = given.tolist() if isinstance(given, np.ndarray) else given
        several = tuple(given) if isinstance(given, list | tuple) else (given,)
        if not 1 <= len(several) <= MOST_LENGTHS:
            raise WorkbenchError(
                f"linking_length must be a number, or 1 to {MOST_LENGTHS} of them; got {len(several)} of them"
            )
        for length in several:
            if not _is_length(length):
                raise WorkbenchError(f"linking_length must be positive and finite; got {briefly(length)}")
        one_of("unit", self.unit, get_args(Unit))
        members = whole_number("min_members", self.min_members, least=1)
        if members > MOST_MEMBERS:
            raise WorkbenchError(f"min_members must be less than 2^63; got {members}")
        one_of("solver", self.solver, get_args(Solver))
        object.__setattr__(self, "linking_length", tuple(sorted({float(length) for length in several})))
        object.__setattr__(self, "min_members", members)

    def lengths(self, particles: Outlined) -> tuple[float, ...]:
        """The linking lengths in the unit of the positions, ascending."""
        assert isinstance(self.linking_length, tuple)
        return tuple(absolute_linking_length(particles, length, self.unit) for length in self.linking_length)

    def to_dict(self) -> dict[str, Any]:
        """The promise, ready for JSON; without the solver, which is not part of it."""
        return {
            "kind": self.kind, "linking_length": list(self.linking_length), "unit": self.unit,   # type: ignore[arg-type]
            "min_members": self.min_members,
        }

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> KeepClusters:
        """The promise from the output of `to_dict`.

        >>> KeepClusters.from_dict(KeepClusters(0.2, min_members=20).to_dict()).min_members
        20
        """
        try:
            return cls(described["linking_length"], described["unit"], described["min_members"])
        except (KeyError, TypeError) as error:
            raise WorkbenchError(f"the promise to keep clusters cannot be read: {error!r}") from None

    def attach(
        self, original: Particles, decoded: Array, limit: Limit, chunk: int, progress: Progress | None, allowance: Allowance
    ) -> Correction:
        """The moves of decoded particles that restore the groups of the original."""
        from workbench.clusters.keep.correct import keep_clusters  # which needs this class

        return keep_clusters(original, decoded, limit, self, progress, chunk, allowance)

    def stated(self, correction: Any, added: int) -> dict[str, Any]:
        """The promise, its exact meaning, and the figures."""
        from workbench.clusters.keep.statement import details_of

        return {**self.to_dict(), **details_of(correction, added)}

    @classmethod
    def check(cls, stated: Mapping[str, Any], decoded: Particles, original: Particles | None) -> dict[str, Any]:
        """The number of groups, found again; an error unless they are those of the certificate, and of the original."""
        from workbench.clusters.keep.statement import require_fingerprint, require_same_groups

        figures = require_fingerprint(stated, decoded)
        if original is not None:
            require_same_groups(stated, original, decoded)
        return figures

    @classmethod
    def describe(cls, stated: Mapping[str, Any]) -> str:
        """Which groups are kept."""
        lengths = " and ".join(short(length) for length in listed(stated, "lengths"))
        members = stated.get("min_members", 1)
        least = f" of at least {members} members" if members != 1 else ""
        return f"the friends-of-friends groups{least} at linking length {lengths}, exactly"

    @classmethod
    def rows(cls, stated: Mapping[str, Any]) -> list[tuple[str, str]]:
        """What was changed, and what follows from the promise."""
        return clusters_in_words(stated)

    def scale(self, particles: Outlined) -> float:
        """The shortest linking length."""
        return min(self.lengths(particles))


def _is_length(given: Any) -> bool:
    """Whether this is a positive number that a float can hold."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return 0 < int(given) <= sys.float_info.max
    return isinstance(given, float | np.floating) and 0 < float(given) <= sys.float_info.max
