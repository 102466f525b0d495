"""Friends of friends over subdomains: the same groups, particle for particle, for every division and number of workers.

The steps, each done once whatever the groups look like: particles are sent to their subdomains, with ghosts as wide as the
linking length; each subdomain is searched by the kernels for one machine; the labels of ghosts are compared with those of
their owners; and the pairs that differ are merged into one renaming, which is applied where labels are read. This is the
scheme of ArborX's distributed DBSCAN. A label is the smallest index of its group in the whole set, as in one process.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench import backend
from workbench.clusters import friends_of_friends
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.distributed.decomposition import WithGhosts
from workbench.distributed.exchange import Exchange, Shipped
from workbench.distributed.executors import Executor
from workbench.distributed.gpu_workers import on_card
from workbench.distributed.merging import Renaming, different
from workbench.distributed.scratch_files import load, save


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

    def file(self, kind: str, part: int) -> Path:
        """The file of a subdomain: rows of an index and a label that is not final."""
        return self.folder / f"{kind}-{part}.npy"

    def own(self, part: int, begin: int = 0, end: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The indices (rising), from `begin` on and below `end`, of the particles of a subdomain; their final labels."""
        index, label = load(self.file("own", part))
        first = np.searchsorted(index, begin)
        last = len(index) if end is None else np.searchsorted(index, end)
        return index[first:last], self.renaming.applied(label[first:last])

    def shared(self, part: int) -> np.ndarray:
        """The final labels (rising) of the groups of this subdomain that other subdomains know, too."""
        known = load(self.file("lent", part)), load(self.file("ghosts", part))[1]
        return np.unique(self.renaming.applied(np.concatenate(known)))

    @property
    def renaming(self) -> Renaming:
        """What makes labels final."""
        return Renaming(*load(self.folder / "renaming.npy"))


def find_groups(labels: Labels, executor: Executor) -> list[Shipped]:
    """Find the labels of all particles; returns what was sent."""
    parts = range(labels.division.parts)
    shipped = executor.map("send-particles", labels.exchange.send, range(len(labels.source.sizes)), "chunk")
    labels.exchange.sent(shipped)
    ghosts = executor.map("find-groups", functools.partial(_link, labels), parts, "subdomain", on_gpu=True)
    starts = np.cumsum([np.concatenate([[0], row]) for row in ghosts], axis=1)
    edges = executor.map("compare-labels", functools.partial(_compare, labels, starts), parts, "subdomain")
    renaming = Renaming.of(np.concatenate(edges))
    save(labels.folder / "renaming.npy", np.stack([renaming.label, renaming.final]))
    return shipped


def _link(labels: Labels, part: int) -> np.ndarray:
    """Search one subdomain; returns how many of its ghosts each other subdomain owns."""
    subdomain, label = labels.exchange.receive(part), np.empty(0, np.int64)
    if len(subdomain):
        particles = Particles(on_card(backend.read_only(subdomain.positions)), labels.source.box)
        found = friends_of_friends(particles, labels.length, unit="length")
        label = subdomain.index[backend.to_host(found.labels)]
    own, ghost = np.flatnonzero(subdomain.owned), np.flatnonzero(~subdomain.owned)
    owner = labels.division.decomposition.owners(subdomain.positions[ghost])
    ghost = ghost[np.argsort(owner, kind="stable")]
    for kind, chosen in (("own", own), ("ghosts", ghost)):
        save(labels.file(kind, part), np.stack([subdomain.index[chosen], label[chosen]]))
    return np.bincount(owner, minlength=labels.division.parts)


def _compare(labels: Labels, starts: np.ndarray, part: int) -> np.ndarray:
    """The pairs of different labels that other subdomains and this one give to particles of this one."""
    index, label = load(labels.file("own", part))
    pairs, shared = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)]
    for other in np.flatnonzero(starts[:, part + 1] > starts[:, part]).tolist():
        ghosts = load(labels.file("ghosts", other))[:, starts[other, part] : starts[other, part + 1]]
        here = label[np.searchsorted(index, ghosts[0])]
        pairs.append(different(ghosts[1], here))
        shared.append(np.unique(here))
    save(labels.file("lent", part), np.unique(np.concatenate(shared)))
    return np.unique(np.concatenate(pairs), axis=0)
