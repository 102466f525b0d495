"""The catalogue of groups that are spread over subdomains, without gathering their particles.

Each subdomain adds up its part of every group (`clusters/moments.py`), and the parts are combined. Groups that one
subdomain holds alone and that are too small are dropped there. Masses and velocities travel to the subdomains only when a
catalogue is asked for: the search, which decides how much memory is needed, does without them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.clusters import Catalogue
from workbench.clusters.catalogue import checked_velocities
from workbench.clusters.moments import Moments
from workbench.data.chunked import ChunkedParticles
from workbench.data.masses import checked_masses
from workbench.run.executors import Executor
from workbench.subdomains.decomposition import Owners
from workbench.subdomains.exchange import Exchange
from workbench.subdomains.fof import Labels

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
    names = tuple(name for name in MEASURED if name in columns)
    if names:
        exchange = _with_columns(labels, names)
        if not exchange.complete:
            exchange.folder.mkdir(exist_ok=True)
            exchange.distribute(executor, "send-columns")
    step, subdomains = functools.partial(_moments, min_members, names), range(labels.division.parts)
    parts = executor.map("measure-groups", step, subdomains, "subdomain", shared=labels)
    box = labels.source.box
    return Catalogue.of(Moments.combined(parts, box), min_members, box, MASSES in names)


def _with_columns(labels: Labels, names: tuple[str, ...]) -> Exchange:
    """The exchange of columns: subdomains receive the particles that they own."""
    division, cargo = Owners(labels.division.decomposition), Columns(labels.source, names)
    return Exchange(labels.source, division, labels.folder / "-".join(("columns", *names)), cargo)


def _moments(min_members: int, names: tuple[str, ...], labels: Labels, part: int) -> Moments:
    """The parts of groups that this subdomain owns; small groups that nobody else knows are left out."""
    label = labels.own(part)
    known, members = _counted(label)
    wanted = known[(members >= min_members) | np.isin(known, labels.shared(part), assume_unique=True)]
    order = _rows_among(label, wanted)
    order = order[np.argsort(label[order], kind="stable")]
    label = label[order]
    if not names:
        order = np.flatnonzero(labels.exchange.owned(part))[order]
        return Moments.of(label, labels.exchange.positions(part), labels.source.box, order=order)
    received = _with_columns(labels, names).receive(part)
    columns = Columns(labels.source, names).of(received.cargo)
    return Moments.of(
        label, received.positions, labels.source.box, columns.get(MASSES), columns.get(VELOCITIES), order
    )


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
