"""Friends of friends over subdomains: the same groups, particle for particle, for every division and number of workers.

The steps, each done once whatever the groups look like: particles are sent to their subdomains, with ghosts as wide as the linking
length; each subdomain is searched by the kernels for one machine; the labels of ghosts are compared with those of their owners;
the pairs that differ are merged; and each subdomain renames its labels. This is the scheme of ArborX's distributed DBSCAN. A
label is the smallest index of its group in the whole set, as in one process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.clusters import Groups, friends_of_friends
from workbench.data.chunked import ChunkedParticles
from workbench.distributed.decomposition import Decomposition
from workbench.distributed.exchange import Shipment, received, ship
from workbench.distributed.executors import Executor
from workbench.distributed.merging import Renaming, different


@dataclass(frozen=True, eq=False)
class Linked:
    """What a subdomain says after its search; its labels are in files."""

    part: int
    owned: int
    ghosts: np.ndarray   # of each other subdomain: how many of its particles are ghosts here


@dataclass(frozen=True, eq=False)
class Setting:
    """What all steps of one search share."""

    folder: Path
    decomposition: Decomposition
    length: float

    @property
    def box(self) -> tuple[float, ...] | None:
        """The periods of the box."""
        return self.decomposition.box

    def file(self, kind: str, part: int) -> Path:
        """The file of a subdomain."""
        return self.folder / f"{kind}-{part}.npy"


def groups_in_parts(
    source: ChunkedParticles, decomposition: Decomposition, length: float, folder: Path, executor: Executor
) -> DistributedGroups:
    """The groups at this linking length, in the unit of the positions; `folder` is seen by all workers."""
    setting = Setting(folder, decomposition, length)
    shipping = functools.partial(_ship, source, setting)
    shipments = executor.map("send-particles", shipping, range(len(source.sizes)))
    parts = range(decomposition.parts)
    linked = executor.map("find-groups", functools.partial(_link, setting, shipments), parts)
    edges = executor.map("compare-labels", functools.partial(_edges, setting, linked), parts)
    renaming = Renaming.of(np.concatenate(edges))
    executor.map("rename-groups", functools.partial(_rename, setting, renaming), parts)
    return DistributedGroups(setting, source, tuple(shipments), tuple(linked))


@dataclass(frozen=True, eq=False, repr=False)
class DistributedGroups:
    """A partition of particles into groups, in files of the subdomains."""

    setting: Setting
    source: ChunkedParticles
    shipments: tuple[Shipment, ...]
    linked: tuple[Linked, ...]

    @property
    def linking_length(self) -> float:
        """In the unit of the positions."""
        return self.setting.length

    @property
    def ghost_share(self) -> float:
        """How many copies of particles were sent, compared with the particles."""
        return sum(shipment.ghosts for shipment in self.shipments) / len(self.source)

    def of_part(self, part: int) -> tuple[np.ndarray, np.ndarray]:
        """The index and the label of each particle that a subdomain owns."""
        index, label = np.load(self.setting.file("final", part), mmap_mode="r")
        return index, label

    def chunk(self, number: int) -> np.ndarray:
        """The labels (int64) of the particles in a chunk of the source."""
        start, end = self.source.starts[number], self.source.starts[number + 1]
        found = np.empty(end - start, np.int64)
        for part in range(len(self.linked)):
            index, label = self.of_part(part)
            first, last = np.searchsorted(index, [start, end])
            found[index[first:last] - start] = label[first:last]
        return found

    def chunks(self) -> Iterator[np.ndarray]:
        """The labels of all chunks."""
        return map(self.chunk, range(len(self.source.sizes)))

    def gathered(self) -> Groups:
        """All labels in this process."""
        return Groups(np.concatenate(list(self.chunks())), self.linking_length)

    def __repr__(self) -> str:
        return f"DistributedGroups({len(self.source):,} particles in {len(self.linked)} subdomains, linking length {self.linking_length:.6g})"


def _ship(source: ChunkedParticles, setting: Setting, number: int) -> Shipment:
    return ship(source, number, setting.decomposition, setting.length, setting.folder)


def _link(setting: Setting, shipments: Sequence[Shipment], part: int) -> Linked:
    """Search one subdomain, and write the labels of its own particles and of its ghosts."""
    subdomain = received(shipments, part)
    label = np.empty(0, np.int64)
    if len(subdomain):
        found = friends_of_friends(subdomain.particles(setting.box), setting.length, unit="length")
        label = subdomain.index[found.labels]
    own = np.flatnonzero(subdomain.owned)
    np.save(setting.file("own", part), np.stack([subdomain.index[own], label[own]]))
    ghost = np.flatnonzero(~subdomain.owned)
    owner = setting.decomposition.owners(subdomain.positions[ghost])
    ghost = ghost[np.argsort(owner, kind="stable")]
    np.save(setting.file("ghosts", part), np.stack([subdomain.index[ghost], label[ghost]]))
    return Linked(part, len(own), np.bincount(owner, minlength=setting.decomposition.parts))


def _edges(setting: Setting, linked: Sequence[Linked], part: int) -> np.ndarray:
    """The pairs of labels that this subdomain and others give to the particles that it owns."""
    index, label = np.load(setting.file("own", part))
    found = [np.empty((0, 2), np.int64)]
    for other in linked:
        if not other.ghosts[part]:
            continue
        begin = int(other.ghosts[:part].sum())
        ghosts = np.load(setting.file("ghosts", other.part), mmap_mode="r")[:, begin : begin + int(other.ghosts[part])]
        found.append(different(ghosts[1], label[np.searchsorted(index, ghosts[0])]))
    return np.unique(np.concatenate(found), axis=0)


def _rename(setting: Setting, renaming: Renaming, part: int) -> None:
    """Write the final labels of the particles that this subdomain owns."""
    index, label = np.load(setting.file("own", part))
    np.save(setting.file("final", part), np.stack([index, renaming.applied(label)]))
