"""Friends of friends over subdomains: the same groups, particle for particle, for every division and number of workers.

The steps, each done once whatever the groups look like: particles are sent to their subdomains, with ghosts as wide as the
linking length; each subdomain is searched by the kernels for one machine; the labels of ghosts are compared with those of
their owners; and the pairs that differ are merged into one renaming, which is applied where labels are read. This is the
scheme of ArborX's distributed DBSCAN. A label is the smallest index of its group in the whole set, as in one process.
"""

from __future__ import annotations

import functools
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from workbench import backend
from workbench.clusters.friends import link
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles, rows_between
from workbench.run.executors import Executor
from workbench.run.gpu_workers import on_card
from workbench.run.scratch_files import Mapped, make_folder
from workbench.subdomains.by_chunk import UNSET, ByChunk, Owned, require_set
from workbench.subdomains.decomposition import Decomposition, WithGhosts
from workbench.subdomains.exchange import Exchange, Shipped, in_chunk, index_type
from workbench.subdomains.joint import JointLabels
from workbench.subdomains.label_tree import LabelTree
from workbench.subdomains.merging import distinct
from workbench.subdomains.sources import sample_of, share_of

UNEVEN = 1.5   # times as many particles as a subdomain should have, and
FEW = 1000     # some more: then the space is divided again


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of all subdomains, in files of a folder; the ghost width is the linking length.

    The files of the exchange are in a folder of their own in it.
    """

    source: ChunkedParticles
    division: WithGhosts
    folder: Path
    sent: Path

    @cached_property
    def exchange(self) -> Exchange:
        """The exchange of the particles."""
        return Exchange(self.source, self.division, self.sent)

    @property
    def length(self) -> float:
        """The linking length, in the unit of the positions."""
        return self.division.width

    @property
    def joint(self) -> JointLabels:
        """The labels before they are final."""
        return JointLabels(self.folder, "label", self.division.parts)

    @property
    def tree(self) -> LabelTree:
        """What makes labels final."""
        return self.joint.tree

    def own(self, part: int, places: slice = slice(None)) -> np.ndarray:
        """The final labels of the particles that a subdomain owns, or of some, in the order of their indices."""
        return self.tree.renaming(part).applied(self.joint.own(part, places).astype(np.int64))

    def of_chunk(self, chunk: int) -> np.ndarray:
        """The final labels of the particles in a chunk of the source."""
        labels = np.full(self.source.sizes[chunk], UNSET, np.int64)
        if len(self.exchange.groups) == 1:
            for part, rows, places in self.exchange.owners(chunk):
                labels[rows] = self.own(part, places)
        else:
            for rows, (final,) in self._by_chunk.read(chunk):
                labels[rows] = final.view(index_type(self.source))[:, 0]
        require_set(labels, chunk, self.folder)
        return labels

    def between(self, start: int, end: int) -> np.ndarray:
        """The final labels of the particles with these indices in the whole set."""
        return np.concatenate([self.of_chunk(chunk)[rows] for chunk, rows in rows_between(self.source.starts, start, end)])

    def groups_in(self, part: int) -> int:
        """The number of groups whose particle of the smallest index this subdomain owns."""
        return int((self.joint.index(part) == self.own(part)).sum())

    def shared(self, part: int) -> np.ndarray:
        """The final labels (rising) of the groups of this subdomain that other subdomains know, too."""
        return distinct(self.tree.renaming(part).final)

    def compare(self, part: int) -> None:
        """Write which labels of other subdomains name the groups of this one."""
        self.joint.compare(part, self.division.neighbours(part), functools.partial(self._labels_of, part))

    def _labels_of(self, part: int, index: np.ndarray) -> np.ndarray:
        """The labels, before they are final, of particles of these indices that a subdomain owns."""
        labels: np.ndarray = self.joint.own(part)[np.searchsorted(self.joint.index(part), index)]
        return labels

    def arrange(self, group: int) -> None:
        """Write the final labels of all particles that a group of subdomains owns, a piece for each chunk."""
        self._by_chunk.write(group, [self._owned(part) for part in self.exchange.groups[group]])

    def _owned(self, part: int) -> Owned:
        """The final labels of the particles that a subdomain owns, read where they are wanted."""
        kind, names = index_type(self.source), self.tree.renaming(part)
        index, own = (Mapped(self.joint.file(name, part)) for name in ("index", "own"))
        return Owned(index, lambda places: [names.applied(own[places].astype(np.int64)).astype(kind)])

    @property
    def _by_chunk(self) -> ByChunk:
        """The final labels, where there are many subdomains."""
        return ByChunk(self.exchange, "labels", (index_type(self.source).itemsize,))


def find_groups(
    source: ChunkedParticles, length: float, parts: int, folder: Path, executor: Executor
) -> tuple[Labels, int]:
    """Find the labels of all particles with so many subdomains; returns the number of ghosts, too."""
    labels, shipped = _sent(source, length, parts, folder, executor)
    executor.map("find-groups", _link, range(parts), "subdomain", on_gpu=True, shared=labels)
    executor.map("compare-labels", Labels.compare, range(parts), "subdomain", shared=labels)
    labels.joint.merge(executor)
    if len(groups := labels.exchange.groups) > 1:
        executor.map("arrange-labels", Labels.arrange, range(len(groups)), "group of subdomains", shared=labels)
    return labels, int(shipped.counts.sum() - shipped.owned.sum())


def _sent(
    source: ChunkedParticles, length: float, parts: int, folder: Path, executor: Executor
) -> tuple[Labels, Shipped]:
    """Divide the space and send all particles; again, by a larger sample, if the sample has misled.

    Each division has a folder of its own: a worker that was given up may still write files of an earlier one.
    """
    times = 1
    while True:
        sample = sample_of(source, executor, folder, parts, times)
        division = WithGhosts(Decomposition.of(sample, parts, source.box), length)
        labels = Labels(source, division, folder, folder / f"sent-{times}")
        make_folder(labels.sent)
        shipped = labels.exchange.distribute(executor)
        if share_of(source, parts, times) == 1 or _as_sampled(shipped.owned, division.decomposition.owners(sample)):
            return labels, shipped
        shutil.rmtree(labels.sent, ignore_errors=True)
        times *= 4


def _as_sampled(owned: np.ndarray, owners: np.ndarray) -> bool:
    """Whether no subdomain owns far more particles than the mean and than these owners of a sample promise.

    What the sample shows cannot be divided better: many particles at one place.
    """
    promised = np.bincount(owners, minlength=len(owned)) * (owned.sum() / len(owners))
    return bool((owned <= UNEVEN * np.maximum(promised, owned.mean()) + FEW).all())


def _link(labels: Labels, part: int) -> None:
    """Search one subdomain."""
    signed, owner, head = _searched(labels, part)
    index, owned = in_chunk(signed).astype(np.int64), signed >= 0
    labels.joint.lend(part, index, head, owned, owner)
    labels.joint.write(part, index, head, owned)


def _searched(labels: Labels, part: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The signed indices of a subdomain, the owners of its ghosts, and for each particle the first row of its group there.

    Positions are held only until they are sorted: the search decides how large a subdomain may be.
    """
    signed, positions = labels.exchange.signed_positions(part)
    owner = labels.division.decomposition.owners(positions[signed < 0])
    if not len(positions):
        return signed, owner, np.empty(0, np.int64)
    particles = Particles(on_card(backend.read_only(positions)), labels.source.box)
    del positions
    cells = SortedCells.of(particles, labels.length)
    del particles
    return signed, owner, backend.to_host(link(cells).labels)
