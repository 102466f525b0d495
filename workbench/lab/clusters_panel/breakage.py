"""The slow part of the clusters panel: the halos of the original, and how a codec changes them at a given bound.

Results independent of the bound are computed once for each linking length. No result depends on the minimum number of
members: it only selects among the halos found, so a slider can change it at once.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from workbench.archive import Archive, compress
from workbench.clusters import Catalogue, Groups, broken_links, catalogue, friends_of_friends, matching
from workbench.clusters.broken import distances
from workbench.clusters.matching import Match, match_groups
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute
from workbench.lab.clusters_panel.state import FEWEST_MEMBERS, ClustersState
from workbench.lab.density import density_picture, pixels_of
from workbench.metrics.pairs import require_host
from workbench.progress import Progress


@dataclass(frozen=True, eq=False)
class Halos:
    """The groups of the original, and a catalogue of those with at least two members, the largest first."""

    groups: Groups
    catalogue: Catalogue

    @property
    def nbytes(self) -> int:
        """Its memory in bytes."""
        own = self.catalogue
        return self.groups.labels.nbytes + sum(each.nbytes for each in (own.labels, own.members, own.centres, own.radii))

    def matched(self, others: Groups, min_members: int) -> Match:
        """What has become of them in other groups of the same particles."""
        halos = matching.Halos(self.catalogue.labels, self.catalogue.members)
        return match_groups(halos, self.groups.labels, others, min_members)

    def count(self, min_members: int) -> int:
        """How many have at least `min_members` members; they are the first of the catalogue."""
        return int(np.searchsorted(-self.catalogue.members, -min_members, side="right"))

    def place(self, label: int) -> int | None:
        """The place of the group with this label in the catalogue; None for single particles and unknown labels."""
        places = np.flatnonzero(self.catalogue.labels == label)
        return int(places[0]) if len(places) else None


@dataclass(frozen=True, eq=False)
class Links:
    """Broken links (M, 2), the largest groups first, with the middle and the length of each in the decoded set."""

    pairs: np.ndarray
    middles: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def nbytes(self) -> int:
        """Its memory in bytes."""
        return self.pairs.nbytes + self.middles.nbytes + self.lengths.nbytes

    @classmethod
    def of(cls, pairs: np.ndarray, decoded: Particles, groups: Groups) -> Links:
        """These pairs of particles, in the order of display."""
        members = np.bincount(groups.labels, minlength=len(decoded))[groups.labels[pairs]].max(axis=1, initial=0)
        pairs = pairs[np.argsort(-members, kind="stable")]
        one, other = (decoded.positions[pairs[:, end]].astype(np.float64) for end in (0, 1))
        middles = one + nearest_image(other - one, decoded.box) / 2
        return cls(pairs, middles.astype(np.float32), distances(decoded.positions, pairs, decoded.box))


@dataclass(frozen=True, eq=False)
class Outcome:
    """Decoded particles, in the order of the original: their groups, the status of each halo, and the broken links.

    `status` is for each entry of the catalogue INTACT (the same members), SPLIT (members are missing) or MERGED (all
    members and others); `members` is the size of the group that has most of its members now. `sizes` are the sizes of all
    groups of two or more particles, the largest first.
    """

    decoded: Particles
    groups: Groups
    status: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    missing: Links
    false: Links

    @property
    def nbytes(self) -> int:
        """Its memory, including two columns of positions for drawing."""
        positions = self.decoded.positions
        arrays = positions, positions[:, :2], self.groups.labels, self.status, self.members, self.sizes
        return sum(array.nbytes for array in arrays) + self.missing.nbytes + self.false.nbytes

    def counts(self, halos: int) -> tuple[int, int, int]:
        """How many of the first halos are intact, split and merged; the last two are the broken ones."""
        intact, split, merged = np.bincount(self.status[:halos], minlength=3).tolist()
        return intact, split, merged


@dataclass(frozen=True, eq=False)
class Breakage:
    """The result of a codec at a bound, without a promise about halos: the archive, and the decoded particles."""

    archive: Archive
    outcome: Outcome

    @property
    def nbytes(self) -> int:
        """Its memory in bytes."""
        return self.archive.nbytes + self.outcome.nbytes

    @functools.cached_property
    def bits_per_particle(self) -> float:
        """Bits for the position of each particle."""
        return self.archive.bits_per_particle


def groups_of(particles: Particles, state: ClustersState, progress: Progress) -> Halos:
    """The groups of the original at the linking length."""
    require_host("the clusters panel", particles.positions)
    progress(0.0, "finding groups of the original")
    groups = friends_of_friends(particles, state.linking_length, state.unit)
    progress(0.5, "measuring halos")
    return Halos(groups, catalogue(particles, groups, FEWEST_MEMBERS))


def break_halos(particles: Particles, state: ClustersState, halos: Halos, progress: Progress) -> Breakage:
    """Compress positions alone, without a promise about halos, and compare the groups."""
    archive = compress(
        positions_of(particles), Absolute(state.bound), state.codec, order=state.order,
        progress=lambda share, text: progress(0.4 * share, f"compressing {text}"),
    )
    progress(0.4, "decompressing")
    decoded = in_original_order(archive, particles)
    rest = outcome_of(particles, state, halos, decoded, lambda share, text: progress(0.5 + share / 2, text))
    return Breakage(archive, rest)


def outcome_of(
    particles: Particles, state: ClustersState, halos: Halos, decoded: Particles, progress: Progress
) -> Outcome:
    """The halos in decoded particles; also prepares their picture."""
    progress(0.0, "finding groups of the decoded particles")
    groups = friends_of_friends(decoded, halos.groups.linking_length, "length")
    progress(0.4, "finding broken links")
    broken = broken_links(particles, decoded, halos.groups)
    progress(0.9, "comparing halos")
    missing, false = (Links.of(pairs, decoded, halos.groups) for pairs in (broken.missing, broken.false))
    pixels_of(decoded, state.axis, density_picture(particles, state.axis, state.window, state.pixels)[0])
    sizes = np.sort(groups.sizes[groups.sizes >= FEWEST_MEMBERS])[::-1]
    match = halos.matched(groups, FEWEST_MEMBERS)
    return Outcome(decoded, groups, match.status, match.counterpart_members, sizes, missing, false)


def positions_of(particles: Particles) -> Particles:
    """The particles without velocities, ids and masses, which a codec for positions does not touch."""
    return Particles(particles.positions, particles.box)


def in_original_order(archive: Archive, particles: Particles) -> Particles:
    """The decoded particles of an archive, in the order of the original."""
    decoded = archive.decompress()
    if not isinstance(decoded, Particles):
        raise WorkbenchError(f"the archive must hold particles; got {archive!r}")
    if not archive.reordered:
        return decoded
    positions = np.empty_like(decoded.positions)
    positions[archive.permutation(positions_of(particles))] = decoded.positions
    return Particles(positions, decoded.box)
