"""Particles in chunks, encoded for an archive by the steps of an executor: this process, or workers.

Each step writes its chunk to the archive's hidden folder (`writing.py`), with a record, so that a run that was killed, or
failed, goes on from the chunks that are done (`encoded.py`). A free order, and clusters to keep, need the scratch folder.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from workbench.archive import provenance
from workbench.archive.companions import PERMUTATION, VELOCITIES, require_floats
from workbench.archive.encoded import Encoded, put_hidden, token_of
from workbench.archive.encoding import Slices, assembled
from workbench.archive.keeping.finish import finished_file
from workbench.archive.keeping.keeping import keep_clusters
from workbench.archive.keeping.terms import Terms
from workbench.archive.particles import Plan, Positions
from workbench.archive.plausibility import notes_on_outline, notes_on_spread, on_earlier_loss
from workbench.archive.request import Request
from workbench.archive.store import MemoryStore
from workbench.archive.survey import Survey
from workbench.archive.writing import Draft
from workbench.clusters.keep import Allowance, KeepClusters
from workbench.data import Particles
from workbench.data.chunked import MASSES, ChunkedParticles
from workbench.data.particles import COMPANIONS
from workbench.data.triclinic import require_no_triclinic_cell
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit
from workbench.ordering import stored_index
from workbench.run.executors import Executor
from workbench.subdomains.curve_order import SortedRows, sort_along
from workbench.subdomains.decomposition import Decomposition
from workbench.subdomains.plan import chosen_parts
from workbench.subdomains.sources import PART, outline_of, surveyed

Place = MemoryStore | Draft


class InChunks:
    """Particles in chunks, what is requested of their archive, and who encodes them."""

    def __init__(
        self, source: ChunkedParticles, metadata: Mapping[str, Any], request: Request, executor: Executor, folder: Path,
        parts: int | None,
    ) -> None:
        self.metadata = metadata
        self.source, self._request, self._executor, self._folder = source, request, executor, folder
        self._parts = chosen_parts(parts, len(source))
        self.columns = Columns.of(source, executor)
        self._sample: np.ndarray | None = None   # for a free order, and to keep clusters
        if request.keep:
            require_no_triclinic_cell(source, "keeping clusters")
        if request.keep or request.order == "free":
            self.outline, self._sample = surveyed(source, executor)
        else:
            self.outline = outline_of(source, executor).known
        self._encoded: dict[Limit, Positions] = {}
        self._velocities: Survey | None = None
        if request.velocities is not None and VELOCITIES in self.columns.dtypes:
            step = functools.partial(_survey, self.columns, VELOCITIES)
            pieces = executor.map("survey-velocities", step, range(len(source.sizes)), "chunk")
            self._velocities = functools.reduce(Survey.__add__, pieces)

    @property
    def mass(self) -> float | None:
        """The mass of each particle, where all have the same."""
        return self.source.mass

    def limit(self) -> Limit:
        """The limit of the requested bound for these particles."""
        return self._request.bound.limit(self.outline.corners)

    def notes(self) -> tuple[str, ...]:
        """What is unusual about the request for these particles."""
        request, one = self._request, Particles(self.outline.corners, self.outline.box, metadata=self.metadata)
        found = [*on_earlier_loss(one, request.bound, self.outline.corners)]
        found += notes_on_outline(self.outline, request.bound, request.keep)
        if request.velocities is not None and self._velocities is not None:
            found += notes_on_spread(VELOCITIES, self._velocities.statistics.spread, request.velocities)
        return tuple(found)

    def token(self) -> str:
        """A name for this call: the same for the same arguments and particles of the same outline."""
        request, outline = self._request, self.outline
        codec = request.chosen_codec("lattice")
        velocities = None if request.velocities is None else request.velocities.to_dict()
        return token_of({
            "bound": request.bound.to_dict(), "codec": codec.to_dict(), "order": request.order, "parts": self._parts,
            "keep": [{**kept.to_dict(), "solver": kept.solver} for kept in request.keep], "chunk": request.chunk_values,
            "versions": provenance.versions(codec), "count": len(outline), "dtype": str(outline.dtype),
            "box": outline.box, "lower": outline.lower.tolist(), "upper": outline.upper.tolist(),
            "columns": {name: str(dtype) for name, dtype in self.columns.dtypes.items()}, "mass": self.mass,
            "velocities": velocities, "permutation": request.store_permutation,
        })

    def encoded(self, limit: Limit, place: Place) -> Positions:
        """The positions within this limit: as parts of the archive or, if they are to be corrected, beside it."""
        if limit in self._encoded:
            return self._encoded[limit]
        request, keep = self._request, bool(self._request.keep)
        plan = Plan.of(Particles(self.outline.corners, self.outline.box), len(self.outline), request, limit)
        rows: Rows | SortedRows = Rows(self.source)
        if plan.curve is not None:
            folder = self._folder / f"sorted-{limit.value.hex()}"
            folder.mkdir()
            assert self._sample is not None
            chunks, cargo = -(-plan.count // plan.chunk), self.columns if self.columns.dtypes else None
            rows = sort_along(
                plan.curve, self.source, self._sample, chunks, folder, self._executor, keep, cargo,
                request.store_permutation,
            )
        hidden = place.partial if isinstance(place, Draft) else self._folder / "chunks"
        within = hidden / f".within-{limit.value.hex()}" if keep else hidden
        put = functools.partial(_put_beside, within) if keep else place.put
        encoded = Encoded(plan.task(request, decoded=keep), rows, within, put)
        done = self._executor.map("encode-chunks", encoded.encode, range(len(encoded.sizes)), "chunk of the archive")
        array = assembled(encoded.task, [one.ready for one in done])
        ends = None if self._velocities is None else self._velocities.ends
        companions = OrderedColumns(self.columns, rows, encoded.starts[:-1], ends)
        nbytes = sum(one.nbytes for one in done)
        self._encoded[limit] = Positions(plan, array, nbytes, companions, (encoded, done))
        return self._encoded[limit]

    def kept(self, promise: KeepClusters, place: Place, finer: Limit, allowance: Allowance) -> Positions:
        """The positions within this limit, corrected so that clusters are kept; the corrected chunks are in files."""
        within = self.encoded(finer, place)
        encoded, done = within.source
        assert self._sample is not None
        decomposition = Decomposition.of(self._sample, self._parts, self.outline.box)
        folder, terms = self._folder / f"kept-{finer.value.hex()}", Terms.of(promise, finer, self.outline)
        folder.mkdir(exist_ok=True)
        try:
            found = keep_clusters(encoded, done, terms, decomposition, folder, self._executor, allowance)
        finally:
            rmtree(folder, ignore_errors=True)
        return dataclasses.replace(within, array=found.positions, nbytes=found.nbytes)

    def write(self, chosen: Positions, place: Place) -> None:
        """Make corrected chunks parts of the archive."""
        if self._request.keep:
            encoded, _ = chosen.source
            self._executor.map("write-chunks", functools.partial(_take, encoded, place), range(len(encoded.sizes)))


@dataclass(frozen=True)
class Rows:
    """The positions of a chunk of the archive, from the chunks of the source."""

    source: ChunkedParticles

    def __call__(self, slices: Slices) -> np.ndarray:
        """The positions at these places."""
        begin, end = slices[0].start, slices[0].stop
        return _between(self.source, begin, end, lambda chunk: self.source.chunk(chunk).positions)


@dataclass(frozen=True)
class Columns:
    """The columns of a source that an archive keeps beside the positions; as cargo, their bytes side by side."""

    source: ChunkedParticles
    dtypes: dict[str, np.dtype]

    @classmethod
    def of(cls, source: ChunkedParticles, executor: Executor) -> Columns:
        """Those that the source has; the first chunk tells their types."""
        names = tuple(name for name in COMPANIONS if name in source.columns and (name != MASSES or source.mass is None))
        if not names:
            return cls(source, {})
        dtypes = executor.map("read-types", functools.partial(_dtypes, source, names), [0], "chunk")[0]
        if VELOCITIES in dtypes:
            require_floats(dtypes[VELOCITIES])
        return cls(source, dtypes)

    @property
    def row_bytes(self) -> int:
        """The bytes of all columns of one particle."""
        return sum(dtype.itemsize * self.width(name) for name, dtype in self.dtypes.items())

    def width(self, name: str) -> int:
        """The numbers of a column in one row."""
        return self.source.dimensions if name == VELOCITIES else 1

    def rows(self, chunk: int) -> np.ndarray:
        """The bytes of all columns in a chunk of the source."""
        columns = self.read(chunk, tuple(self.dtypes)).values()
        return np.concatenate([column.reshape(len(column), -1).view(np.uint8) for column in columns], axis=1)

    def unpacked(self, cargo: np.ndarray, name: str) -> np.ndarray:
        """A column, from rows of bytes."""
        begin = 0
        for other, dtype in self.dtypes.items():
            end = begin + dtype.itemsize * self.width(other)
            if other == name:
                break
            begin = end
        column = np.ascontiguousarray(cargo[:, begin:end]).view(self.dtypes[name])
        return column if name == VELOCITIES else column[:, 0]

    def read(self, chunk: int, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Columns of a chunk of the source, checked."""
        particles, columns = self.source.chunk(chunk, names), {}
        for name in names:
            columns[name] = column = np.ascontiguousarray(getattr(particles, name))
            if column.dtype != self.dtypes[name]:
                raise WorkbenchError(
                    f"{name} must have one type in all of {self.source.name}: chunk 1 has {self.dtypes[name]}, "
                    f"chunk {chunk + 1} has {column.dtype}"
                )
        return columns

    def between(self, name: str, begin: int, end: int) -> np.ndarray:
        """A column of the particles at these places in the source."""
        return _between(self.source, begin, end, lambda chunk: self.read(chunk, (name,))[name])


@dataclass(frozen=True)
class OrderedColumns:
    """The companions of particles in chunks, in the order of an archive whose chunks of positions begin at these places."""

    columns: Columns
    rows: Rows | SortedRows
    begins: tuple[int, ...]
    velocities: np.ndarray | None   # the smallest and the largest, where they have a bound
    rows_together: int = PART

    @property
    def dtypes(self) -> dict[str, np.dtype]:
        """Their types by name."""
        return self.columns.dtypes

    def read(self, name: str, begin: int, end: int) -> np.ndarray:
        """A column, or the permutation, between two places."""
        if isinstance(self.rows, SortedRows):
            if name == PERMUTATION:
                return self.rows.index(self.begins, begin, end)
            return self.columns.unpacked(self.rows.cargo(self.begins, begin, end), name)
        if name == PERMUTATION:
            return np.arange(begin, end, dtype=stored_index(len(self.columns.source)))
        return self.columns.between(name, begin, end)

    def checksum(self) -> str | None:
        """The checksum of a free order."""
        return self.rows.checksum(self.begins) if isinstance(self.rows, SortedRows) else None

    def limit(self, name: str, bound: Bound) -> Limit:
        """The limit of a bound for all velocities, which alone may have one."""
        assert name == VELOCITIES
        assert self.velocities is not None
        return bound.limit(self.velocities)


def _between(
    source: ChunkedParticles, begin: int, end: int, read: Callable[[int], np.ndarray]
) -> np.ndarray:
    """What chunks hold of the particles between two places in the source."""
    starts = source.starts
    first, last = int(np.searchsorted(starts, begin, "right")) - 1, int(np.searchsorted(starts, end))
    pieces = [read(chunk)[max(begin - starts[chunk], 0) : end - starts[chunk]] for chunk in range(first, last)]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _survey(columns: Columns, name: str, chunk: int) -> Survey:
    return Survey.of(columns.read(chunk, (name,))[name])


def _dtypes(source: ChunkedParticles, names: tuple[str, ...], chunk: int) -> dict[str, np.dtype]:
    particles = source.chunk(chunk, names)
    return {name: getattr(particles, name).dtype for name in names}


def _put_beside(folder: Path, key: str, data: bytes) -> None:
    """Write a chunk that is to be corrected."""
    put_hidden(folder / key, data)


def _take(encoded: Encoded, place: Place, chunk: int) -> None:
    """Make a corrected chunk a part of the archive."""
    place.put(encoded.task.layout.chunk_key((chunk, 0)), finished_file(encoded, chunk).read_bytes())
