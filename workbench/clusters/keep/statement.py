"""What an archive states about kept clusters, and the check of it.

Verification uses nothing of a repair: it finds the groups of the decoded and of the original particles again.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.clusters.friends import friends_of_friends
from workbench.clusters.keep.correction import Correction
from workbench.clusters.keep.partition import PREDICATE, fingerprint, kept_labels
from workbench.clusters.keep.promise import KeepClusters
from workbench.data import Particles
from workbench.data.outline import Outlined
from workbench.errors import GuaranteeBroken, WorkbenchError

HOLDS = (
    "the mass function, multiplicities and memberships of these groups are those of the original, and no centre of mass "
    "moves by more than the bound along any axis"
)
NOT_IMPLIED = "most bound or densest particles, spherical overdensities, profiles, velocity dispersions"


@dataclass(frozen=True)
class Figures:
    """What a certificate says about kept clusters, in its words and order."""

    lengths: Sequence[float]
    precision: str
    margin: float
    partition: list[str]
    groups: list[int]
    largest: list[int]
    groups_opened: int
    pairs_set_right: int
    edited: int
    exact: int
    bytes: int
    attempts: int
    descent_steps: int
    violations: int
    close_calls: int


def require_fingerprint(kept: Mapping[str, Any], decoded: Particles) -> dict[str, Any]:
    """Figures of the groups of decoded particles; an error if the fingerprints differ from the certificate's."""
    lengths, fingerprints, members = stated(kept)
    figures: dict[str, Any] = {}
    for length, expected in zip(lengths, fingerprints, strict=True):
        groups = friends_of_friends(decoded, length, unit="length")
        require_certified(fingerprint(kept_labels(groups, members)), expected, length)
        figures[f"groups_at_{length!r}"] = groups.count(members)
    return figures


def require_same_groups(kept: Mapping[str, Any], original: Particles, decoded: Particles) -> None:
    """An error unless both have the same groups; their particles are in the same order."""
    require_same_lengths(kept, original)
    lengths, fingerprints, members = stated(kept)
    for length, expected in zip(lengths, fingerprints, strict=True):
        wanted, found = (kept_labels(friends_of_friends(p, length, unit="length"), members) for p in (original, decoded))
        require_same_original(fingerprint(wanted), expected)
        if differs := int((wanted != found).sum()):
            raise GuaranteeBroken(
                f"{differs:,} of {len(wanted):,} particles are in another group at linking length {length:g} than in the "
                "original: please report this"
            )


def require_same_lengths(kept: Mapping[str, Any], original: Outlined) -> None:
    """An error unless the linking lengths are those of the certificate for this original."""
    here, lengths = KeepClusters.from_dict(kept).lengths(original), stated(kept)[0]
    if here != lengths:
        raise GuaranteeBroken(f"the linking lengths are {here} for this original, but {lengths} in the archive")


def require_certified(found: str, expected: str, length: float) -> None:
    """An error unless the fingerprint of the decoded groups is the one in the certificate."""
    if found != expected:
        raise GuaranteeBroken(
            f"the groups of the decoded particles at linking length {length:g} differ from those in the certificate: "
            "was the archive made by another program, or changed?"
        )


def require_same_original(found: str, expected: str) -> None:
    """An error unless the fingerprint of the original groups is the one in the certificate."""
    if found != expected:
        raise GuaranteeBroken("the groups of this original differ from those in the certificate: it is another one")


def details(found: Figures) -> dict[str, Any]:
    """The details of a certificate beside the promise: its exact meaning, and the figures."""
    return {
        "lengths": list(found.lengths),
        "predicate": PREDICATE,
        **{name: value for name, value in dataclasses.asdict(found).items() if name != "lengths"},
        "holds": HOLDS,
        "not_implied": NOT_IMPLIED,
    }


def details_of(correction: Correction, added: int) -> dict[str, Any]:
    """The same for a correction in one process, which added so many bytes."""
    members = correction.promise.min_members
    return details(Figures(
        lengths=correction.lengths,
        precision=correction.positions.dtype.name,
        margin=correction.margin,
        partition=[fingerprint(kept_labels(groups, members)) for groups in correction.groups],
        groups=[groups.count(members) for groups in correction.groups],
        largest=[groups.largest_size for groups in correction.groups],
        groups_opened=correction.opened,
        pairs_set_right=correction.needs,
        edited=correction.edited,
        exact=len(correction.pinned),
        bytes=added,
        attempts=correction.attempts,
        descent_steps=len(correction.descent),
        violations=correction.violations,
        close_calls=correction.close_calls,
    ))


def stated(kept: Mapping[str, Any]) -> tuple[tuple[float, ...], list[str], int]:
    """The linking lengths, fingerprints and smallest group size that a certificate states; else an error."""
    match kept:
        case {"lengths": [*lengths], "partition": [*found], "min_members": int(members)} if len(lengths) == len(found) > 0:
            usable = [isinstance(length, int | float) and 0 < length <= sys.float_info.max for length in lengths]
            if all(usable) and abs(members) < 2**63:
                return tuple(map(float, lengths)), found, members
    raise WorkbenchError("the certificate cannot be read: it does not say which groups were kept")
