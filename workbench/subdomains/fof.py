"""Friends of friends over subdomains: the same groups, particle for particle, for every division and number of workers.

The steps, each done once whatever the groups look like: particles are sent to their subdomains, with ghosts as wide as the
linking length; each subdomain is searched by the kernels for one machine; the labels of ghosts are compared with those of
their owners; and the pairs that differ are merged into one renaming, which is applied where labels are read. This is the
scheme of ArborX's distributed DBSCAN. A label is the smallest index of its group in the whole set, as in one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench import backend
from workbench.clusters.friends import link
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.run.executors import Executor
from workbench.run.gpu_workers import on_card
from workbench.run.scratch_files import load, save
from workbench.subdomains.decomposition import Decomposition, WithGhosts
from workbench.subdomains.exchange import Exchange, Shipped
from workbench.subdomains.joint import Compared, Joined, JointLabels, starts_of
from workbench.subdomains.merging import Renaming
from workbench.subdomains.sources import sample_of, share_of

UNEVEN = 1.5   # times as many particles as a subdomain should have, and
FEW = 1000     # some more: then the space is divided again


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of all subdomains, in files beside those of the exchange; the ghost width is the linking length."""

    source: ChunkedParticles
    division: WithGhosts
    folder: Path

    @property
    def exchange(self) -> Exchange:
        """The exchange of the particles."""
        return Exchange(self.source, self.division, self.folder)

    @property
    def length(self) -> float:
        """The linking length, in the unit of the positions."""
        return self.division.width

    @property
    def joint(self) -> JointLabels:
        """The labels before they are final."""
        return JointLabels(self.folder, "label")

    def own(self, part: int) -> np.ndarray:
        """The final labels of the particles that a subdomain owns, in the order of their indices."""
        return self.renaming.applied(self.joint.own(part).astype(np.int64))

    def of_chunk(self, chunk: int) -> np.ndarray:
        """The final labels of the particles in a chunk of the source."""
        found = np.empty(self.source.sizes[chunk], np.int64)
        for part, rows, places in self.exchange.owners(chunk):
            found[rows] = self.joint.own(part, places)
        return self.renaming.applied(found)

    def between(self, start: int, end: int) -> np.ndarray:
        """The final labels of the particles with these indices in the whole set."""
        starts = self.source.starts
        first, last = int(np.searchsorted(starts, start, "right")) - 1, int(np.searchsorted(starts, end))
        found = np.concatenate([self.of_chunk(chunk) for chunk in range(first, last)])
        return found[start - starts[first] : end - starts[first]]

    def groups_in(self, part: int) -> int:
        """The number of groups whose particle of the smallest index this subdomain owns."""
        index, owned = self.exchange.members(part)
        return int((index[owned] == self.own(part)).sum())

    def compare(self, part: int) -> Compared:
        """What other subdomains call the particles of this one."""
        index, owned = self.exchange.members(part)
        own, label = index[owned], self.joint.own(part)
        return self.joint.compare(part, lambda wanted: label[np.searchsorted(own, wanted)])

    def shared(self, part: int) -> np.ndarray:
        """The final labels (rising) of the groups of this subdomain that other subdomains know, too."""
        return np.unique(self.renaming.applied(self.joint.shared(part)))

    @property
    def renaming(self) -> Renaming:
        """What makes labels final."""
        return Renaming(*load(self.folder / "renaming.npy"))


def find_groups(
    source: ChunkedParticles, length: float, parts: int, folder: Path, executor: Executor
) -> tuple[Labels, int]:
    """Find the labels of all particles with so many subdomains; returns the number of ghosts, too."""
    labels, shipped = _sent(source, length, parts, folder, executor)
    counts = executor.map("find-groups", _link, range(parts), "subdomain", on_gpu=True, shared=labels)
    labels.joint.order(starts_of(counts))
    compared = executor.map("compare-labels", Labels.compare, range(parts), "subdomain", shared=labels)
    renaming = Joined.of(compared).renaming
    save(folder / "renaming.npy", np.stack([renaming.label, renaming.final]))
    return labels, int(shipped.counts.sum() - shipped.owned.sum())


def _sent(
    source: ChunkedParticles, length: float, parts: int, folder: Path, executor: Executor
) -> tuple[Labels, Shipped]:
    """Divide the space and send all particles; again, by a larger sample, if the sample has misled."""
    times = 1
    while True:
        sample = sample_of(source, executor, parts, times)
        division = WithGhosts(Decomposition.of(sample, parts, source.box), length)
        labels = Labels(source, division, folder)
        shipped = labels.exchange.distribute(executor)
        if share_of(source, parts, times) == 1 or _as_sampled(shipped.owned, division.decomposition.owners(sample)):
            return labels, shipped
        times *= 4


def _as_sampled(owned: np.ndarray, owners: np.ndarray) -> bool:
    """Whether no subdomain owns far more particles than the mean and than these owners of a sample promise.

    What the sample shows cannot be divided better: many particles at one place.
    """
    promised = np.bincount(owners, minlength=len(owned)) * (owned.sum() / len(owners))
    return bool((owned <= UNEVEN * np.maximum(promised, owned.mean()) + FEW).all())


def _link(labels: Labels, part: int) -> np.ndarray:
    """Search one subdomain; returns how many of its ghosts each other subdomain owns."""
    owner, head = _searched(labels, part)
    index, owned = labels.exchange.members(part)
    labels.joint.lend(part, index, head, owned, owner)
    labels.joint.write(part, index, head, owned)
    return np.bincount(owner, minlength=labels.division.parts)


def _searched(labels: Labels, part: int) -> tuple[np.ndarray, np.ndarray]:
    """The owners of the ghosts of a subdomain, and for each particle the first row of its group there.

    Only positions are held, and only until they are sorted: the search decides how large a subdomain may be.
    """
    positions = labels.exchange.positions(part)
    owner = labels.division.decomposition.owners(positions[~labels.exchange.owned(part)])
    if not len(positions):
        return owner, np.empty(0, np.int64)
    particles = Particles(on_card(backend.read_only(positions)), labels.source.box)
    del positions
    cells = SortedCells.of(particles, labels.length)
    del particles
    return owner, backend.to_host(link(cells).labels)
