"""Particles in the memory of this process, encoded for an archive by its threads or by a GPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench import backend, ordering
from workbench.archive import encoding
from workbench.archive.column_bounds import bounds_beside
from workbench.archive.encoding import EncodedArray, Part
from workbench.archive.guaranteed import with_guarantee
from workbench.archive.in_order import VELOCITIES, OrderedInMemory
from workbench.archive.particles import Plan, Positions, guarantee_of
from workbench.archive.plausibility import notes_on, notes_on_values
from workbench.archive.request import Request
from workbench.archive.writing import Place
from workbench.backend import Array
from workbench.clusters.keep.repair import Step
from workbench.data import Particles
from workbench.guarantees import Limit
from workbench.guarantees.guarantee import Allowance
from workbench.progress import Progress


class InMemory:
    """Particles in memory, and what is requested of their archive."""

    def __init__(self, particles: Particles, request: Request) -> None:
        self.bounds = bounds_beside(OrderedInMemory(particles, None).dtypes, request, particles.metadata)
        self.outline, self._request, self.guarantee = particles, request, guarantee_of(request)
        self._requested: Positions | None = None   # within the requested bound
        self._repairs = 0

    @property
    def mass(self) -> float | None:
        """The mass of each particle, where all have the same."""
        return self.outline.masses if isinstance(self.outline.masses, float) else None

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Anything else."""
        return self.outline.metadata

    def limit(self) -> Limit:
        """The limit of the requested bound for these particles."""
        return self._request.bound.limit(self.outline.positions)

    def notes(self) -> tuple[str, ...]:
        """What is unusual about the request for these particles."""
        columns = {name: bound for name, bound in self.bounds.items() if name != VELOCITIES}
        return (
            *notes_on(self.outline, self._request.bound, self._request.keep, self._request.velocities),
            *(note for name, one in columns.items() for note in notes_on_values(name, self.outline.columns[name], one)),
        )

    def encoded(self, limit: Limit, place: Place) -> Positions:
        """The positions within this limit."""
        self._requested = self._within(limit, self._request.progress)
        return self._requested

    def kept(self, place: Place, finer: Limit, allowance: Allowance) -> Positions:
        """The positions within this limit, corrected so that the guarantee is true."""
        assert self.guarantee is not None
        progress = self._request.progress
        if progress is not None and self._repairs:
            progress = _Trial(progress)
        self._repairs += 1
        requested = self._requested
        within = requested if requested and finer == requested.plan.limit else self._within(finer, progress)
        array = with_guarantee(within.array, self.outline, within.source, finer, self.guarantee, progress, allowance)
        return dataclasses.replace(within, array=array, nbytes=_nbytes(array))

    def write(self, chosen: Positions, place: Place) -> None:
        """Bring the chunks of positions to the archive."""
        for key, data in chosen.array.entries():
            place.put(key, data)

    def _within(self, limit: Limit, progress: Progress | None) -> Positions:
        particles, request = self.outline, self._request
        plan = Plan.of(particles, len(particles), request, limit)
        curve = plan.curve
        places = None if curve is None else ordering.sort_by_key(curve.keys(particles.positions), curve.key_bits)
        task = plan.task(request, decoded=bool(request.keep))
        array = encoding.encode(task, Part(particles.positions, places), progress)
        order = _final_order(places, array, len(particles))
        return Positions(plan, array, _nbytes(array), OrderedInMemory(particles, order), order)


@dataclass(frozen=True)
class _Trial:
    """Progress of a trial of a finer bound, after the first one."""

    progress: Progress

    def __call__(self, share: float, text: str) -> None:
        self.progress(1.0, f"clusters: a finer bound, {text.removeprefix('clusters: ')}")

    @property
    def watch(self) -> Callable[[Step], object] | None:
        """What is told every step, with its bound."""
        return getattr(self.progress, "watch", None)


def _nbytes(array: EncodedArray) -> int:
    """The size of all chunks."""
    return sum(len(chunk.data) for chunk in array.chunks)


def _final_order(places: Array | None, encoded: EncodedArray, count: int) -> Array | None:
    """The original index of each decoded particle, with reordering inside chunks; None for the original order."""
    if all(order is None for order in encoded.orders):
        return places
    xp = backend.namespace(*[order for order in encoded.orders if order is not None])
    start = xp.arange(count, dtype=xp.int32) if places is None else places
    chunk = encoded.layout.chunk_shape[0]
    pieces = [start[i * chunk : (i + 1) * chunk] for i in range(len(encoded.orders))]
    ordered = zip(pieces, encoded.orders, strict=True)
    return xp.concatenate([piece if order is None else piece[order] for piece, order in ordered])
