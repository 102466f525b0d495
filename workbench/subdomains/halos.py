"""The catalogue of groups that are spread over subdomains, without gathering their particles.

Each subdomain adds up its part of every group (`clusters/moments.py`), and the parts are combined. Groups that one
subdomain holds alone and that are too small are dropped there. Masses and velocities travel to the subdomains only when a
catalogue is asked for: the search, which decides how much memory is needed, does without them. Groups go from worker to
worker through files (`shards.py`), so the client may get no more than their summary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from workbench.clusters import Catalogue
from workbench.clusters.catalogue import checked_velocities
from workbench.clusters.catalogue_summary import CatalogueSummary
from workbench.clusters.moments import Moments
from workbench.data.chunked import ChunkedParticles
from workbench.data.masses import checked_masses
from workbench.run.executors import Executor
from workbench.run.scratch_files import load_together, make_folder
from workbench.subdomains.decomposition import Owners
from workbench.subdomains.exchange import Exchange
from workbench.subdomains.fof import Labels
from workbench.subdomains.shards import Numpy, Sent, Shards

MASSES, VELOCITIES = "masses", "velocities"
MEASURED = (MASSES, VELOCITIES)
BLOCK = 2**17   # labels that are looked up together


@dataclass(frozen=True)
class Columns:
    """Masses and velocities as cargo of an exchange, in float64."""

    source: ChunkedParticles
    names: tuple[str, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of each column in a row."""
        return tuple(self.source.dimensions if name == VELOCITIES else 1 for name in self.names)

    @property
    def row_bytes(self) -> int:
        """Eight for each number."""
        return 8 * sum(self.widths)

    def rows(self, chunk: int) -> np.ndarray:
        """The rows of a chunk, checked."""
        count, columns = self.source.sizes[chunk], []
        for name, width in zip(self.names, self.widths, strict=True):
            given = self.source.column(chunk, name)
            checked = checked_masses(given, count) if name == MASSES else checked_velocities(given, (count, width))
            columns.append(np.asarray(checked, np.float64).reshape(count, width))
        return np.ascontiguousarray(np.concatenate(columns, axis=1)).view(np.uint8)

    def of(self, cargo: np.ndarray) -> dict[str, np.ndarray]:
        """The columns by name, from the cargo of a subdomain."""
        numbers, ends = cargo.view(np.float64), np.cumsum(self.widths).tolist()
        places = zip(self.names, self.widths, ends, strict=True)
        return {
            name: numbers[:, end - 1] if name == MASSES else numbers[:, end - width : end] for name, width, end in places
        }


def catalogue_of(labels: Labels, min_members: int, executor: Executor, columns: Sequence[str] = ()) -> Catalogue:
    """The groups with at least `min_members` members, the largest first; with masses and velocities by these columns."""
    with TemporaryDirectory(dir=labels.folder, prefix="catalogue-") as folder:
        shards = Shards(Path(folder), Numpy(), {})
        measure(labels, min_members, executor, columns, shards=shards)
        files = map(shards.file, range(labels.division.parts + _owners_of(labels)))
        return Catalogue.joined([Catalogue(**load_together(file)) for file in files])


def measure(
    labels: Labels, min_members: int, executor: Executor, columns: Sequence[str] = (), largest: int = 10,
    shards: Shards | None = None,
) -> CatalogueSummary:
    """Measure all groups with at least `min_members` members, and write them to shards, if any; returns their summary.

    A group that one subdomain holds alone is measured there. What subdomains know of the other groups goes to files, by
    label to one of few owners, which put these groups together: about the root of the number of subdomains, so that the
    pieces of files stay large. One shard follows for each subdomain, and then one for each owner.
    """
    names = tuple(name for name in MEASURED if name in columns)
    if names:
        exchange = _with_columns(labels, names)
        if not exchange.complete:
            make_folder(exchange.folder)
            exchange.distribute(executor, "send-columns")
    with TemporaryDirectory(dir=labels.folder, prefix="moments-") as folder:
        measuring = _Measuring(labels, min_members, names, largest, Path(folder), shards)
        parts, owners = range(labels.division.parts), range(_owners_of(labels))
        summaries = executor.map("measure-groups", _Measuring.inside, parts, "subdomain", shared=measuring)
        summaries += executor.map("join-groups", _Measuring.across, owners, "owner of groups", shared=measuring)
    return CatalogueSummary.joined(summaries, largest)


def _owners_of(labels: Labels) -> int:
    """How many put groups together that several subdomains know: nobody where there is one subdomain."""
    return math.ceil(math.sqrt(labels.division.parts)) if labels.division.parts > 1 else 0


@dataclass(frozen=True, eq=False)
class _Measuring:
    """The two steps of a catalogue, with the files between them."""

    labels: Labels
    min_members: int
    names: tuple[str, ...]
    largest: int
    folder: Path
    shards: Shards | None

    def inside(self, part: int) -> CatalogueSummary:
        """Measure the groups of a subdomain: those of nobody else are written, its parts of others sent to their owners."""
        found, shared = _moments(self.labels, self.min_members, self.names, part)
        if owners := _owners_of(self.labels):
            Sent(self.folder, part).write(found.chosen(np.flatnonzero(shared)), owners)
        return self._written(part, found.chosen(np.flatnonzero(~shared)))

    def across(self, owner: int) -> CatalogueSummary:
        """Put the groups of an owner together, which several subdomains know."""
        parts = range(self.labels.division.parts)
        axes = self.labels.source.dimensions, self.labels.source.dimensions if VELOCITIES in self.names else 0
        pieces = [Sent(self.folder, part).read(owner, axes) for part in parts]
        return self._written(len(parts) + owner, Moments.combined(pieces, self.labels.source.box))

    def _written(self, shard: int, groups: Moments) -> CatalogueSummary:
        catalogue = Catalogue.of(groups, self.min_members, self.labels.source.box, MASSES in self.names)
        if self.shards is not None:
            self.shards.write(shard, catalogue)
        return CatalogueSummary.of(catalogue, self.min_members, self.largest)


def _with_columns(labels: Labels, names: tuple[str, ...]) -> Exchange:
    """The exchange of columns: subdomains receive the particles that they own."""
    division, cargo = Owners(labels.division.decomposition), Columns(labels.source, names)
    return Exchange(labels.source, division, labels.folder / "-".join(("columns", *names)), cargo)


def _moments(labels: Labels, min_members: int, names: tuple[str, ...], part: int) -> tuple[Moments, np.ndarray]:
    """The parts of groups that this subdomain owns, and which of these groups other subdomains know, too.

    Small groups that nobody else knows are left out.
    """
    label = labels.own(part)
    known, members = _counted(label)
    shared = np.isin(known, labels.shared(part), assume_unique=True)
    measured = (members >= min_members) | shared
    order = _rows_among(label, known[measured])
    order = order[np.argsort(label[order], kind="stable")]
    label = label[order]
    if not names:
        order = np.flatnonzero(labels.exchange.owned(part))[order]
        return Moments.of(label, labels.exchange.positions(part), labels.source.box, order=order), shared[measured]
    received = _with_columns(labels, names).receive(part)
    columns = Columns(labels.source, names).of(received.cargo)
    found = Moments.of(
        label, received.positions, labels.source.box, columns.get(MASSES), columns.get(VELOCITIES), order
    )
    return found, shared[measured]


def _counted(label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels, rising, and how many particles have each."""
    ordered = np.sort(label)
    begins = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    start = np.flatnonzero(begins)
    return ordered[start], np.diff(start, append=len(label))


def _rows_among(label: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The particles (rising) whose label is one of these, which rise."""
    rows = [np.empty(0, np.int64)]
    for start in range(0, len(label) if len(wanted) else 0, BLOCK):
        here = label[start : start + BLOCK]
        place = np.minimum(np.searchsorted(wanted, here), len(wanted) - 1)
        rows.append(start + np.flatnonzero(wanted[place] == here))
    return np.concatenate(rows)
