"""The comparison of the demo: one snapshot at one error bound, compressed in three ways.

The ways are: the codec alone; the codec corrected by the published method in its strongest mode; and `KeepClusters`.
The halos of each result are found and matched anew, independently of what a method reports.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from workbench.archive import Archive, compress
from workbench.backend import Array
from workbench.clusters import Groups, KeepClusters
from workbench.clusters.baselines import published
from workbench.data import Particles
from workbench.guarantees import Absolute
from workbench.metrics import displacements, mass_function, match_halos

SHARE = 0.1   # error bound / linking length: users choose such bounds, although clusters break
HEADER = ("", "bits/particle", "overhead", "halos broken", "split", "merged", "same groups", "error/bound", "seconds")
NO_SCIPY = "not compared with the published method, which needs SciPy here: pip install scipy"

Result = TypeVar("Result")


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
    """The ways at one bound, and the original number of halos by size; `note` names a missing method."""

    bound: float
    min_members: int
    halos: tuple[int, ...]
    ways: tuple[Way, ...]
    note: str = ""


def compare_ways(particles: Particles, groups: Groups, min_members: int) -> Comparison:
    """Compress the positions of a snapshot in every way; `groups` are its groups."""
    given, length = Particles(particles.positions, particles.box), groups.linking_length
    bound = SHARE * length

    def archive(keep: Sequence[KeepClusters] = ()) -> Archive:
        return compress(given, Absolute(bound), keep=keep, order="free")

    archive()   # loads libraries and kernels, so that the first way is not charged for it
    plain, seconds = _timed(archive)
    kept, seconds_kept = _timed(lambda: archive([KeepClusters(length, "length")]))
    positions, bits = _positions(plain), plain.bits_per_particle
    judge = _Judge(given.select(plain.permutation(given)), bound, length, min_members)
    ways = [judge.way("plain", positions, bits, 0.0, seconds)]
    if installed := _scipy_is_there():
        found, more = _timed(lambda: published(judge.original, positions, bound, length, mode="forest"))
        ways.append(judge.way("published method", found.positions, bits, found.bits_per_particle, seconds + more))
    ways.append(judge.way("clusters kept", _positions(kept), bits, kept.bits_per_particle - bits, seconds_kept))
    halos = tuple(mass_function(groups, groups, min_members).original.tolist())
    return Comparison(bound, min_members, halos, tuple(ways), "" if installed else NO_SCIPY)


@dataclass(frozen=True)
class _Judge:
    """Measures the result of each way on these particles, independently of what the method reports."""

    original: Particles
    bound: float
    length: float
    min_members: int

    def way(self, name: str, positions: Array, plain: float, overhead: float, seconds: float) -> Way:
        decoded = Particles(positions, self.original.box)
        halos = match_halos(self.original, decoded, self.length, "length", self.min_members)
        error = displacements(self.original, decoded).coordinates.max_error / self.bound
        split, merged = int(halos.split.sum()), int(halos.merged.sum())
        counts = tuple(halos.mass_function.decoded.tolist())
        return Way(name, plain + overhead, overhead, split, merged, halos.kept, error, seconds, counts)


def _scipy_is_there() -> bool:
    """Whether the published method can run; loads its libraries, so that loading is not timed."""
    try:
        for name in ("scipy.spatial", "scipy.sparse.csgraph"):
            importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def _timed(run: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def _positions(archive: Archive) -> Array:
    decoded = archive.decompress()
    assert isinstance(decoded, Particles)
    return decoded.positions
