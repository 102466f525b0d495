"""Particles in chunks, encoded for an archive by the steps of an executor: this process, or workers.

Each step writes its chunk to the archive's hidden folder (`writing.py`), with a record, so that a run that was killed, or
failed, goes on from the chunks that are done (`encoded.py`). A free order, and clusters to keep, need the scratch folder.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from workbench.archive import provenance
from workbench.archive.column_bounds import bounds_beside
from workbench.archive.encoded import RECORDS, Beside, Encoded, token_of
from workbench.archive.encoding import assembled
from workbench.archive.in_order import Columns, OrderedInChunks, Rows
from workbench.archive.keeping.finish import finished_file
from workbench.archive.keeping.keeping import keep_clusters
from workbench.archive.keeping.terms import Terms
from workbench.archive.particles import Plan, Positions, guarantee_of, particles_in_chunk, usual_codec
from workbench.archive.plausibility import notes_on_outline, notes_on_spread, on_earlier_loss
from workbench.archive.request import Request
from workbench.archive.survey import Survey
from workbench.archive.writing import Place
from workbench.clusters.keep import KeepClusters
from workbench.codecs import Codec
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.data.triclinic import require_no_triclinic_cell
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.guarantee import Allowance
from workbench.run.executors import Executor
from workbench.run.scratch_files import make_folder
from workbench.subdomains.curve_order import SortedRows, sort_along
from workbench.subdomains.decomposition import Decomposition
from workbench.subdomains.plan import chosen_parts, require_room
from workbench.subdomains.planned_steps import Order
from workbench.subdomains.sources import outline_of, surveyed


class InChunks:
    """Particles in chunks, what is requested of their archive, and who encodes them."""

    def __init__(
        self, source: ChunkedParticles, metadata: Mapping[str, Any], request: Request, executor: Executor, folder: Path,
        parts: int | None,
    ) -> None:
        self.metadata, self.guarantee = metadata, _clusters_of(request)
        particles_in_chunk(len(source), source.dimensions, request, request.chosen_codec(usual_codec(request)))
        self.source, self._request, self._executor, self._folder = source, request, executor, folder
        self._parts = chosen_parts(parts, len(source))
        self.columns = Columns.of(source, executor)
        self.bounds = bounds_beside(self.columns.dtypes, request, metadata)
        self._sample: np.ndarray | None = None   # for a free order, and to keep clusters
        if request.keep:
            require_no_triclinic_cell(source, "keeping clusters")
        if request.keep or request.order == "free":
            self.outline, self._sample = surveyed(source, executor, folder, self._parts)
        else:
            self.outline = outline_of(source, executor).known
        self._encoded: dict[Limit, Positions] = {}
        self._surveys: dict[str, Survey] = {}   # of columns with a bound
        if names := tuple(self.bounds):
            shared = self.columns, names
            pieces = executor.map("survey-columns", _survey, range(len(source.sizes)), "chunk", shared=shared)
            self._surveys = {name: functools.reduce(Survey.__add__, [piece[name] for piece in pieces]) for name in names}

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
        for name, bound in self.bounds.items():
            found += notes_on_spread(name, self._surveys[name].statistics.spread, bound)
        return tuple(found)

    def token(self) -> str:
        """A name for this call: the same for the same arguments and particles of the same outline."""
        request, outline = self._request, self.outline
        codec = request.chosen_codec(usual_codec(request))
        bounds = {name: bound.to_dict() for name, bound in self.bounds.items()}
        return token_of({
            "bound": request.bound.to_dict(), "codec": codec.to_dict(), "order": request.order, "parts": self._parts,
            "keep": self.guarantee and {**self.guarantee.to_dict(), "solver": self.guarantee.solver},
            "chunk": request.chunk_values, "chunks": request.chunks,
            "versions": provenance.versions(codec), "count": len(outline), "dtype": str(outline.dtype),
            "box": outline.box, "lower": outline.lower.tolist(), "upper": outline.upper.tolist(),
            "columns": {name: str(dtype) for name, dtype in self.columns.dtypes.items()}, "mass": self.mass,
            "bounds": bounds, "permutation": request.store_permutation, "column_codec": _described(request.column_codec),
            **request.step_token,
        })

    def encoded(self, limit: Limit, place: Place) -> Positions:
        """The positions within this limit: as parts of the archive or, if they are to be corrected, beside it."""
        if limit in self._encoded:
            return self._encoded[limit]
        request, keep = self._request, self.guarantee is not None
        plan = Plan.of(Particles(self.outline.corners, self.outline.box), len(self.outline), request, limit)
        self._require_room(plan)
        rows: Rows | SortedRows = Rows(self.source)
        if plan.curve is not None:
            folder = self._folder / f"sorted-{limit.value.hex()}"
            make_folder(folder)
            assert self._sample is not None
            chunks, cargo = -(-plan.count // plan.chunk), self.columns if self.columns.dtypes else None
            rows = sort_along(
                plan.curve, self.source, self._sample, chunks, folder, self._executor, keep, cargo,
                request.store_permutation,
            )
        hidden = self._hidden(place)
        beside = hidden / f".within-{limit.value.hex()}" if keep else hidden
        within = Beside(beside) if keep else place
        encoded = Encoded(plan.task(request), rows, within, beside / RECORDS)
        numbers = range(len(encoded.sizes))
        done = self._executor.map("encode-chunks", Encoded.encode, numbers, "chunk of the archive", shared=encoded)
        if keep and isinstance(rows, SortedRows):
            rows.exchange.delete()   # chunks will be read as they were sorted
        array = assembled(encoded.task, [one.ready for one in done])
        ends = {name: survey.ends for name, survey in self._surveys.items()}
        companions = OrderedInChunks(self.columns, rows, encoded.starts[:-1], ends)
        nbytes = sum(one.nbytes for one in done)
        self._encoded[limit] = Positions(plan, array, nbytes, companions, (encoded, done))
        return self._encoded[limit]

    def _require_room(self, plan: Plan) -> None:
        """Refuse a scratch folder without enough room, before anything is encoded."""
        order: Order = "free" if self._request.order == "free" else "keep"
        guarantee, cargo = self.guarantee, self.columns.row_bytes
        if self._encoded or (order == "keep" and guarantee is None):
            return
        width, chunks = 0.0, -(-plan.count // plan.chunk)
        if guarantee is not None:
            terms, spacing = Terms.of(guarantee, plan.limit, self.outline), self.outline.spacing
            width = terms.ghost_width / spacing if spacing else math.inf
        require_room(self._folder, self.source, self._parts, width, chunks, order, cargo)

    def kept(self, place: Place, finer: Limit, allowance: Allowance) -> Positions:
        """The positions within this limit, corrected so that clusters are kept; the corrected chunks are in files."""
        within = self.encoded(finer, place)
        encoded, done = within.source
        assert self._sample is not None
        assert self.guarantee is not None
        decomposition = Decomposition.of(self._sample, self._parts, self.outline.box)
        name, terms = f"kept-{finer.value.hex()}", Terms.of(self.guarantee, finer, self.outline)
        folder, lasting = self._folder / name, self._hidden(place) / f".{name}"
        make_folder(folder)
        try:
            array, nbytes = keep_clusters(
                encoded, done, terms, decomposition, folder, lasting, self._executor, allowance
            )
        finally:
            rmtree(folder, ignore_errors=True)
        return dataclasses.replace(within, array=array, nbytes=nbytes)

    def write(self, chosen: Positions, place: Place) -> None:
        """Make corrected chunks parts of the archive."""
        if self.guarantee is not None:
            encoded, _ = chosen.source
            self._executor.map("write-chunks", _take, range(len(encoded.sizes)), shared=(encoded, place))

    def _hidden(self, place: Place) -> Path:
        """The folder for what a later run of the same call goes on from."""
        return self._folder / "chunks" if place.unfinished is None else place.unfinished


def _described(codec: str | Codec | None) -> Any:
    return codec.to_dict() if isinstance(codec, Codec) else codec


def _clusters_of(request: Request) -> KeepClusters | None:
    """The promise beyond the bound: others than this one need all particles together."""
    guarantee = guarantee_of(request)
    if guarantee is None or isinstance(guarantee, KeepClusters):
        return guarantee
    raise WorkbenchError(
        f"keep of particles in chunks takes wb.KeepClusters(...); got {guarantee!r}, which needs all particles together: "
        "give wb.Particles, and neither client= nor parts="
    )


def _survey(shared: tuple[Columns, tuple[str, ...]], chunk: int) -> dict[str, Survey]:
    columns, names = shared
    return {name: Survey.of(values) for name, values in columns.read(chunk, names).items()}


def _take(shared: tuple[Encoded, Place], chunk: int) -> None:
    """Make a corrected chunk a part of the archive."""
    encoded, place = shared
    place.put(encoded.task.layout.chunk_key((chunk, 0)), finished_file(encoded, chunk).read_bytes())
