"""Friends of friends over subdomains: the same groups, particle for particle, for every division and number of workers.

The steps, each done once whatever the groups look like: particles are sent to their subdomains, with ghosts as wide as the
linking length; each subdomain is searched by the kernels for one machine; the labels of ghosts are compared with those of
their owners; the pairs that differ are merged; and each subdomain renames its labels. This is the scheme of ArborX's
distributed DBSCAN. A label is the smallest index of its group in the whole set, as in one process.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.clusters import friends_of_friends
from workbench.data.chunked import ChunkedParticles
from workbench.distributed.decomposition import WithGhosts
from workbench.distributed.exchange import Exchange, Shipped
from workbench.distributed.executors import Executor
from workbench.distributed.joint import Joined, JointLabels, starts_of
from workbench.distributed.merging import Renaming


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

    def file(self, part: int) -> Path:
        """The file of a subdomain with the final labels: rows of an index and a label."""
        return self.folder / f"final-{part}.npy"

    def own(self, part: int) -> tuple[np.ndarray, np.ndarray]:
        """The index and the final label of each particle that a subdomain owns, by rising index."""
        index, label = np.load(self.file(part), mmap_mode="r")
        return index, label

    def shared(self, part: int) -> np.ndarray:
        """The final labels (rising) of the groups of this subdomain that other subdomains know, too."""
        return np.load(self.folder / f"known-{part}.npy")


def find_groups(labels: Labels, executor: Executor) -> list[Shipped]:
    """Find the labels of all particles; returns what was sent."""
    parts = range(labels.division.parts)
    shipped = executor.map("send-particles", labels.exchange.send, range(len(labels.source.sizes)))
    labels.exchange.sent(shipped)
    ghosts = executor.map("find-groups", functools.partial(_link, labels), parts)
    step = functools.partial(labels.joint.compare, starts_of(ghosts))
    renaming = Joined.of(executor.map("compare-labels", step, parts)).renaming
    executor.map("rename-groups", functools.partial(_rename, labels, renaming), parts)
    return shipped


def _link(labels: Labels, part: int) -> np.ndarray:
    """Search one subdomain; returns how many of its ghosts each other subdomain owns."""
    subdomain, label = labels.exchange.receive(part), np.empty(0, np.int64)
    if len(subdomain):
        found = friends_of_friends(subdomain.particles(labels.source.box), labels.length, unit="length")
        label = subdomain.index[found.labels]
    owner = labels.division.decomposition.owners(subdomain.positions[~subdomain.owned])
    labels.joint.write(part, subdomain.index, label, subdomain.owned, owner)
    return np.bincount(owner, minlength=labels.division.parts)


def _rename(labels: Labels, renaming: Renaming, part: int) -> None:
    """Write the final labels of the particles that this subdomain owns, and those of groups that others know, too."""
    index, label = np.load(labels.joint.file("own", part))
    np.save(labels.file(part), np.stack([index, renaming.applied(label)]))
    np.save(labels.folder / f"known-{part}.npy", np.unique(renaming.applied(labels.joint.shared(part))))
