"""Power spectra of two fields in parts: a transform in two steps through files, as on clusters since long ago.

Each part is written down less the mean. Planes of the last two axes are transformed, a few at a time, and written by
columns: the coefficients with one wave number along these axes, for all planes of the few. Then columns are transformed
along the remaining axis, and their power is added up in shells. So a process holds a few planes or columns at a time, and
every line is transformed as in one process (`metrics/spectrum.py`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.data import Field
from workbench.metrics.spectrum import Shells, Spectrum, mean_spectrum, three_axes, wave_numbers
from workbench.run.chunked_field import ChunkedField, Slices, grid, map_parts
from workbench.run.executors import Executor
from workbench.run.scratch_files import Mapped, load, save
from workbench.slabs import rows_of

VALUES = 2**22   # that a step holds at a time, beside their transform; at least a plane or a column


def spectra_of(
    fields: tuple[ChunkedField, ChunkedField], means: tuple[float, float], chunk_shape: tuple[int, ...], folder: Path,
    executor: Executor,
) -> tuple[Spectrum, Spectrum]:
    """The spectra of the original and of the decoded field, over the points where the original is valid."""
    mesh = Mesh(fields[0].shape, tuple(fields[0].spacing), chunk_shape, folder)
    map_parts(executor, "write-parts", functools.partial(mesh.write, means), chunk_shape, fields)
    executor.map("transform-planes", mesh.transform, range(mesh.leads * len(mesh.slabs)))
    found = executor.map("add-waves", mesh.sums, range(mesh.leads * len(mesh.columns)))
    sums = np.reshape(found, (mesh.leads, len(mesh.columns), 2, *mesh.shells.table)).sum(axis=1)
    original, decoded = (mean_spectrum([mesh.shells.spectrum(lead[which]) for lead in sums]) for which in (0, 1))
    return original, decoded


@dataclass(frozen=True)
class Mesh:
    """The grid of both fields, in chunks, planes and columns; their files are in a folder that all workers see."""

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    chunk_shape: tuple[int, ...]
    folder: Path

    @property
    def leads(self) -> int:
        """How many fields of at most three axes there are: four axes are averaged over the first."""
        return self.shape[0] if len(self.shape) == 4 else 1

    @property
    def shells(self) -> Shells:
        """The shells of wave numbers."""
        shape, spacing = self.shape[-3:], self.spacing[-3:]
        return Shells(shape, tuple(points * step for points, step in zip(shape, spacing, strict=True)))

    @property
    def axes(self) -> tuple[int, int, int]:
        """The points along three axes, as a transform takes them."""
        planes, rows, points = three_axes(self.shape[-3:], 1)
        return planes, rows, points

    @property
    def slabs(self) -> list[slice]:
        """Runs of planes that are transformed together."""
        return rows_of(self.axes, VALUES)

    @property
    def columns(self) -> list[slice]:
        """Runs of columns that are transformed together."""
        planes, rows, points = self.axes
        return rows_of((rows * (points // 2 + 1), planes), VALUES // 2)

    def write(self, means: tuple[float, float], number: int, original: Field, decoded: Field) -> None:
        """Write the values of a chunk less their mean, in float64; 0 where the original is invalid."""
        for which, (field, mean) in enumerate(zip((original, decoded), means, strict=True)):
            contrast = np.zeros(field.shape)
            np.subtract(field.values, mean, out=contrast, where=original.valid)
            save(self._part(which, number), contrast)

    def transform(self, item: int) -> None:
        """Transform the planes of a slab, and write their coefficients by columns."""
        lead, slab = divmod(item, len(self.slabs))
        for which in (0, 1):
            waves = np.fft.rfft(self._planes(which, lead, self.slabs[slab]), axis=2)
            waves = np.fft.fft(waves, axis=1, out=waves)
            save(self._slab(which, item), waves.reshape(len(waves), -1).T)

    def sums(self, item: int) -> np.ndarray:
        """Transform some columns, and add up the power of both fields in shells."""
        lead, run = divmod(item, len(self.columns))
        here, found = self.columns[run], []
        k, count = self._waves(here)
        for which in (0, 1):
            pieces = [load(self._slab(which, lead * len(self.slabs) + slab), here) for slab in range(len(self.slabs))]
            waves = np.concatenate(pieces, axis=1)
            found.append(self.shells.sums(k, count, np.fft.fft(waves, axis=1, out=waves)))
        return np.stack(found)

    def _waves(self, columns: slice) -> tuple[np.ndarray, np.ndarray]:
        """The wave number of each coefficient of some columns, and how many waves each stands for."""
        points = self.axes[2]
        planes, rows, last = (wave**2 for wave in wave_numbers(self.axes, three_axes(self.shells.lengths, 1.0)))
        row, place = np.divmod(np.arange(columns.start, columns.stop), len(last))
        mirrored = (place > 0) & ((points % 2 == 1) | (place < len(last) - 1))
        k = np.sqrt(planes + rows[row][:, None] + last[place][:, None])
        return k, np.where(mirrored, 2.0, 1.0)[:, None]

    def _planes(self, which: int, lead: int, slab: slice) -> np.ndarray:
        """Some planes of a field, put together from the parts."""
        own = self.shape[-3:]
        found = np.empty((slab.stop - slab.start, *own[1:]) if len(own) > 1 else own)
        for number, place in enumerate(grid(self.shape, self.chunk_shape)):
            if inside := self._overlap(place, lead, slab):
                source, target = inside
                found[target] = Mapped(self._part(which, number))[source]
        return found.reshape(slab.stop - slab.start, *self.axes[1:])

    def _overlap(self, place: Slices, lead: int, slab: slice) -> tuple[Slices | tuple[int, ...], Slices] | None:
        """Which values of a part belong to a slab, and where: slices of the part and of the slab."""
        front: tuple[int, ...] = ()
        if len(place) == 4:
            if not place[0].start <= lead < place[0].stop:
                return None
            front, place = (lead - place[0].start,), place[1:]
        if len(place) == 1:   # one line is one plane
            return (slice(None),), place
        begin, end = max(place[0].start, slab.start), min(place[0].stop, slab.stop)
        if begin >= end:
            return None
        rest = tuple(slice(0, part.stop - part.start) for part in place[1:])
        source = (*front, slice(begin - place[0].start, end - place[0].start), *rest)
        return source, (slice(begin - slab.start, end - slab.start), *place[1:])   # type: ignore[return-value]

    def _part(self, which: int, number: int) -> Path:
        return self.folder / f"part-{which}-{number}.npy"

    def _slab(self, which: int, item: int) -> Path:
        return self.folder / f"planes-{which}-{item}.npy"
