"""The comparison of the demo: one snapshot at one error bound, compressed by the codec alone and with `KeepClusters`.

The halos of each result are found and matched anew, independently of what the certificate says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.archive import Archive, compress
from workbench.clusters import Groups, KeepClusters
from workbench.data import Particles
from workbench.guarantees import Absolute
from workbench.metrics import displacements, mass_function, match_halos

SHARE = 0.1   # error bound / linking length: users choose such bounds, although clusters break
HEADER = ("", "bits/particle", "overhead", "halos broken", "split", "merged", "same groups", "error/bound", "seconds")


@dataclass(frozen=True)
class Way:
    """The result of one way: bits per particle, of which `overhead` is spent on clusters, and the halos still broken.

    `split` halos lost members, `merged` ones lost none but gained some; together they are the broken ones.
    `largest_error` is in units of the bound; `halos` are counts in bins of size that double, from the smallest halo on.
    """

    name: str
    bits: float
    overhead: float
    split: int
    merged: int
    same_groups: bool
    largest_error: float
    seconds: float
    halos: tuple[int, ...]

    @property
    def broken(self) -> int:
        """The halos that lost or gained members."""
        return self.split + self.merged

    def cells(self) -> list[str]:
        """A row of a table, below `HEADER`."""
        halos = [f"{number:,}" for number in (self.broken, self.split, self.merged)]
        error, same = f"{self.largest_error:.5f}", "yes" if self.same_groups else "NO"
        return [self.name, f"{self.bits:.2f}", f"{self.overhead:.3f}", *halos, same, error, f"{self.seconds:.2f}"]


@dataclass(frozen=True)
class Comparison:
    """The ways at one bound, and the original number of halos by size."""

    bound: float
    min_members: int
    halos: tuple[int, ...]
    ways: tuple[Way, ...]


def compare_ways(particles: Particles, groups: Groups, min_members: int) -> Comparison:
    """Compress the positions of a snapshot without and with its clusters kept; `groups` are its groups."""
    given, length = Particles(particles.positions, particles.box), groups.linking_length
    bound = SHARE * length

    def archive(keep: Sequence[KeepClusters] = ()) -> Archive:
        return compress(given, Absolute(bound), keep=keep, order="free")

    archive()   # loads libraries and kernels, so that the first way is not charged for it
    plain, seconds = _timed(archive)
    kept, seconds_kept = _timed(lambda: archive([KeepClusters(length, "length")]))
    judge = _Judge(given.select(plain.permutation(given)), bound, length, min_members, plain.bits_per_particle)
    ways = judge.way("plain", plain, seconds), judge.way("clusters kept", kept, seconds_kept)
    halos = tuple(mass_function(groups, groups, min_members).original.tolist())
    return Comparison(bound, min_members, halos, ways)


@dataclass(frozen=True)
class _Judge:
    """Measures an archive of these particles, independently of its certificate; `plain_bits` is without clusters kept."""

    original: Particles
    bound: float
    length: float
    min_members: int
    plain_bits: float

    def way(self, name: str, archive: Archive, seconds: float) -> Way:
        decoded = archive.decompress()
        assert isinstance(decoded, Particles)
        halos = match_halos(self.original, decoded, self.length, "length", self.min_members)
        error = displacements(self.original, decoded).coordinates.max_error / self.bound
        split, merged = int(halos.split.sum()), int(halos.merged.sum())
        counts, bits = tuple(halos.mass_function.decoded.tolist()), archive.bits_per_particle
        return Way(name, bits, bits - self.plain_bits, split, merged, halos.kept, error, seconds, counts)


def _timed(run: Callable[[], Archive]) -> tuple[Archive, float]:
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start
