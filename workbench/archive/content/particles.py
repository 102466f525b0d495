"""Particles: positions, in chunks whose extents are stored, and velocities, ids, masses and columns beside them."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend, ordering
from workbench.archive import checks
from workbench.archive import region as regions
from workbench.archive.archive import Archive
from workbench.archive.compress import source_of
from workbench.archive.content.consistency import are_lengths, is_finite, type_and_shape, wrong_array, wrong_column
from workbench.archive.content.content import Content
from workbench.archive.content.particles_examination import ParticlesExamination, curve_of, require_like, space
from workbench.archive.frame import Damaged, as_source
from workbench.archive.in_order import checksum_of
from workbench.archive.layout import ArrayLayout
from workbench.archive.particles import compress_particles, guarantee_of
from workbench.archive.particles_in_chunks import InChunks
from workbench.archive.particles_in_memory import InMemory
from workbench.archive.reading import StoredArray
from workbench.archive.request import Compression, Request
from workbench.archive.store import MemoryStore
from workbench.backend import Array
from workbench.codecs import CodecFailed
from workbench.codecs.portable import Portable
from workbench.data import Particles, Trajectory
from workbench.data.chunked import POSITIONS, ChunkedParticles, even_sizes
from workbench.data.particles import COMPANIONS, named
from workbench.data.readers import left_out, open_file
from workbench.data.readers.source import Source
from workbench.data.readers.tables import Table
from workbench.data.triclinic import KEY, in_triclinic_cell
from workbench.errors import WorkbenchError
from workbench.guarantees import PerSlice
from workbench.guarantees.enforce import decoded_permutation
from workbench.run.executors import InProcess
from workbench.subdomains.sources import chunked, scratch_folder

AXES = {
    "positions": ("particle", "axis"),
    "velocities": ("particle", "axis"),
    "ids": ("particle",),
    "masses": ("particle",),
    "permutation": ("particle",),
    "extents": ("chunk", "end", "axis"),
    "series.vanished": ("vanished",),
    "series.appeared": ("appeared",),
}


class ParticlesContent(Content):
    """What an archive knows of particles."""

    kind = words = "particles"
    data, beside = "positions", COMPANIONS
    classes = (Particles, ChunkedParticles)
    takes, told = "wb.KeepClusters(...)", ("box", "order")
    examination = ParticlesExamination

    def require(self, request: Request) -> None:
        if isinstance(request.codec, Portable):
            raise WorkbenchError(
                "profile='portable' is for fields and datasets of them; got particles: leave it out, and write the decoded "
                "particles by `workbench convert archive.zip particles.hdf5` for other programs"
            )
        guarantee_of(request)
        if isinstance(request.bound, PerSlice):
            raise WorkbenchError(f"wb.PerSlice is for fields; got {request.bound!r} for particles: give one bound")
        if not isinstance(request.chunks, int | None):
            raise WorkbenchError(f"chunks of particles must be how many a chunk holds, or -1; got {request.chunks!r}")

    def compressed(self, call: Compression) -> Archive:
        given, request = call.data, call.request
        if isinstance(given, Particles) and isinstance(call.executor, InProcess) and call.parts is None:
            given = given if call.metadata is given.metadata else replace(given, metadata=call.metadata)
            request = replace(request, bound=request.bound.for_data(given))
            return call.kept(compress_particles(InMemory(given, request), request, MemoryStore(), call.executor))
        with scratch_folder(call.scratch, call.executor) as folder:
            executor = call.executor.within(folder)
            source = chunked(given, executor, folder)
            one = Particles(np.zeros((1, source.dimensions)), metadata=call.metadata)   # says what the unit is
            request = replace(request, bound=request.bound.for_data(one))
            supply = InChunks(source, call.metadata, request, executor, folder, call.parts)
            with call.place(supply.token()) as place:
                return compress_particles(supply, request, place, executor)

    def original(self, given: Any) -> Any:
        found = source_of(given) if isinstance(given, str | os.PathLike) else given
        return super().original(open_file(given) if isinstance(found, Trajectory) else found)   # the first of its frames

    def contradiction(self, attributes: Mapping[str, Any], layouts: Mapping[str, ArrayLayout], damaged: bool) -> str | None:
        positions = layouts["positions"]
        if len(positions.shape) != 2 or positions.shape[1] not in (2, 3) or positions.dtype.kind != "f":
            return f"positions are floating-point numbers of shape (N, 2) or (N, 3); got {type_and_shape(positions)}"
        count, dimensions = positions.shape
        box, order, mass = (attributes.get(name) for name in ("box", "order", "mass"))
        if box is not None and not are_lengths(box, dimensions):
            return f"box must be null or {dimensions} positive lengths; got {box!r:.80}"
        if order not in ("keep", "free"):
            return f"order must be 'keep' or 'free'; got {order!r:.80}"
        if mass is not None and not (is_finite(mass) and mass >= 0):
            return f"mass must be a number, finite and not negative; got {mass!r:.80}"
        columns = {name: layouts[name] for name in _columns_in(layouts)}
        rows = {name: layouts[name] for name in ("positions", "velocities", *columns) if name in layouts}
        split = [name for name, one in rows.items() if one.chunk_grid[1:] not in ((), (1,))]
        return (
            wrong_array(layouts.get("velocities"), positions.shape, "fiu")
            or wrong_array(layouts.get("ids"), (count,), "iu")
            or wrong_array(layouts.get("masses"), (count,), "f")
            or wrong_array(layouts.get("permutation"), (count,), "iu")
            or wrong_array(layouts.get("extents"), (positions.chunk_grid[0], 2, dimensions), "f")
            or wrong_column(columns, count)
            or (f"a chunk of {split[0]} must hold all coordinates of its particles" if split else None)
            or (None if damaged or "extents" in layouts else "there are positions, but no extents")
        )

    def axes(self, layout: ArrayLayout, about: Mapping[str, Any]) -> tuple[str, ...] | None:
        further = tuple(f"component_{size}" for size in layout.shape[1:])   # columns of as many components share an axis
        return AXES.get(layout.name, ("particle", *further))

    def data_names(self, layouts: Mapping[str, ArrayLayout]) -> tuple[str, ...]:
        return (self.data, *self.beside, *_columns_in(layouts))

    def assembled(self, archive: Archive, arrays: Mapping[str, np.ndarray]) -> Particles:
        beside = {name: backend.read_only(values) for name, values in arrays.items() if name != self.data}
        own = {"masses": archive.mass, **named(beside)}
        positions = backend.read_only(arrays[self.data])
        return Particles(positions, archive.box, metadata=archive.attributes.get("metadata"), **own)

    def read(self, archive: Archive, region: Any) -> Particles:
        if "extents" not in archive.arrays:
            raise WorkbenchError("the extents of the chunks are lost, and reading a region needs them: use salvage()")
        wanted = regions.cuboids(region, archive.data.layout.shape[1], archive.box)
        positions, places = regions.particles_in(archive.data, archive.whole("extents"), wanted)
        if not len(positions):
            raise WorkbenchError(f"no particle lies in the region {region!r}")
        beside = {name: rows_of(stored, places) for name, stored in archive.data_arrays.items() if name != "positions"}
        return self.assembled(archive, {"positions": positions, **beside})

    def permutation(self, archive: Archive, original: Any) -> Array:
        if archive.step is not None and original is not None and not archive.reordered:
            return archive.step.permutation(archive, original)
        if "permutation" in archive.arrays:
            return checks.permutation_of(archive.arrays["permutation"].values())
        if original is None and archive.reordered:
            raise WorkbenchError("the permutation was not stored: pass the original, from which it is computed")
        if original is None or not archive.reordered:
            return np.arange(len(archive), dtype=ordering.stored_index(len(archive)))
        require_like(archive, original)
        order = _order_of(archive, original.positions)
        checks.require_same_checksum(archive.attributes.get("permutation"), checksum_of(order))
        return order

    def bits_per_particle(self, archive: Archive) -> float:
        return 8 * archive.data.nbytes / len(archive)

    def table(self, archive: Archive, source: Source, options: dict[str, Any]) -> Table:
        return ArchiveTable.of(archive, source, options)

    def arrays(self, data: Particles) -> dict[str, Array]:
        return {"positions": data.positions, **data.companions}

    def exported(self, data: Particles) -> dict[str, Any]:
        found: dict[str, Any] = self.arrays(data)
        if data.box is not None:
            found["box"] = data.box
        if in_triclinic_cell(data.metadata):
            found["cell"] = data.metadata[KEY]["edges"]
        return found | ({"masses": data.masses} if isinstance(data.masses, float) else {})

    def summary(self, data: Particles) -> dict[str, Any]:
        return {
            "count": len(data),
            "dimensions": data.dimensions,
            "dtype": str(data.positions.dtype),
            "box": list(data.box) if data.box else None,
            "lower": data.lower.tolist(),
            "upper": data.upper.tolist(),
            "mean_spacing": data.spacing,
            "velocities": data.velocities is not None,
            "ids": data.ids is not None,
            "masses": data.masses is not None,
            **({"columns": list(data.columns)} if data.columns else {}),
            "left_out": left_out(data),
        }

    def scale(self, data: Particles) -> tuple[dict[str, Any], np.ndarray]:
        ends = np.array([*data.lower.tolist(), *data.upper.tolist()])
        return {"mean_spacing": data.spacing, "extent": list(data.lengths)}, ends

    def figures(self, archive: Archive) -> dict[str, float]:
        return {"bits_per_particle": self.bits_per_particle(archive)}

    def size(self, archive: Archive) -> str:
        return f"{len(archive):,} particles"

    def space(self, archive: Archive) -> str:
        return space(archive.box)


PARTICLES = ParticlesContent()


@dataclass(frozen=True, kw_only=True)
class ArchiveTable(Table):
    """The columns of an archive, in its own order."""

    address: str | None                  # of an archive that is not on this machine
    options: str                         # of `Archive.open`, as JSON
    names: tuple[str, ...]
    unit: int                            # particles in a chunk

    @classmethod
    def of(cls, archive: Archive, source: Source, options: dict[str, Any]) -> ArchiveTable:
        """The table of an archive of particles, which workers open again with the same options."""
        try:
            stated = json.dumps(options)
        except TypeError:
            raise WorkbenchError("storage_options of particles in chunks must be text and numbers") from None
        layout = archive.data.layout
        count, dimensions = layout.shape
        names = tuple(name for name in archive.data_arrays if name != POSITIONS)
        return cls(
            path=source.path.absolute(), count=count, dtype=layout.dtype, dimensions=dimensions, box=archive.box,
            mass=archive.mass, address=source.address, options=stated, names=names, unit=layout.chunk_shape[0],
        )

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the archive, without positions."""
        return self.names

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`; only chunks that hold them are decoded."""
        with as_source(self.name):
            modified = 0 if self.address else self.path.stat().st_mtime_ns
            stored = _archive_at(self.address or self.path, self.options, modified).arrays[column]
            whole = tuple(slice(0, size) for size in stored.layout.shape[1:])
            return regions.grid_part(stored, (slice(start, stop), *whole))

    def _require_room(self, column: str, nbytes: int) -> None:
        """Archives have limits of their own."""

    def sizes(self, most: int) -> tuple[int, ...]:
        """Whole chunks of the positions, so that none is decoded twice."""
        return even_sizes(self.count, most, self.unit)


@functools.lru_cache(maxsize=2)
def _archive_at(place: Path | str, options: str, modified: int) -> Archive:
    """An archive that was opened for another chunk before."""
    return Archive.open(place, **json.loads(options))


def _columns_in(layouts: Mapping[str, ArrayLayout]) -> list[str]:
    """The names of further columns."""
    return [name for name, layout in layouts.items() if name not in AXES and layout.role == "data"]


def _order_of(archive: Archive, positions: Array) -> Array:
    """The permutation from these positions, which must be those of the original, to the decoded ones."""
    curve, data = curve_of(archive), archive.data
    order = ordering.sort_by_key(curve.keys(positions), curve.key_bits)
    for index in data.layout.chunk_indices():
        rows = data.layout.chunk_slices(index)[0]
        sections = {tag: bytes(part) for tag, part in data.frame(index).sections.items()}
        try:
            within = decoded_permutation(data.decoder, sections, positions[order[rows]])
        except CodecFailed as error:
            raise Damaged(data.layout.chunk_key(index), str(error)) from error
        if within is not None:
            order[rows] = order[rows][within]
    return order


def rows_of(stored: StoredArray, places: np.ndarray) -> np.ndarray:
    """Some rows of an array; only the chunks that hold them are decoded."""
    step = stored.layout.chunk_shape[0]
    rest = (0,) * (len(stored.layout.shape) - 1)
    found = [chunk[places[places // step == i[0]] - i[0] * step] for i, chunk in stored.chunks(
        (number, *rest) for number in np.unique(places // step).tolist()
    )]
    return np.concatenate(found)   # `places` increase, so they are in the order of the chunks
