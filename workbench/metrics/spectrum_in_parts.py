"""Power spectra of two fields in parts: a transform in two steps through files, as on clusters since long ago.

Each part is written down less the mean. Planes of the last two axes are transformed, a few at a time, and written by
columns: the coefficients with one wave number along these axes, for all planes of the few. Then columns are transformed
along the remaining axis, and their power is added up in shells. So a process holds a few planes or columns at a time, and
every line is transformed as in one process (`metrics/spectrum.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from workbench.data import Field
from workbench.metrics.pairs import as_measured
from workbench.metrics.spectrum import Shells, Spectrum, contrast, mean_spectrum, three_axes, wave_numbers
from workbench.run.array_in_files import ArrayInFiles
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.executors import Executor
from workbench.run.scratch_files import load, save
from workbench.slabs import rows_of

VALUES = 2**22   # that a step holds at a time, beside their transform; at least a plane or a column


@dataclass(frozen=True)
class Mesh:
    """The grid of both fields, in parts, planes and columns; their files are in a folder that all workers see.

    `means` are in units of 2^`exponents`, one for each field. The files take 32 bytes for each value.
    """

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    part_shape: tuple[int, ...]
    folder: Path
    means: tuple[float, ...]
    exponents: tuple[int, ...]

    def spectra(self, fields: Sequence[ChunkedField], executor: Executor) -> tuple[Spectrum, Spectrum]:
        """The spectra of the original and of the decoded field, over the points where the original is valid."""
        map_parts(executor, "write-parts", self.write, self.part_shape, fields)
        executor.map("transform-planes", self.transform, range(self.leads * len(self.slabs)))
        of_columns = executor.map("add-waves", self.sums, range(self.leads * len(self.columns)))
        sums = np.reshape(of_columns, (self.leads, len(self.columns), 2, *self.shells.table)).sum(axis=1)
        original, decoded = (
            replace(mean_spectrum([self.shells.spectrum(lead[which]) for lead in sums]), exponent=2 * exponent)
            for which, exponent in enumerate(self.exponents)
        )
        return original, decoded

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

    def write(self, number: int, original: Field, decoded: Field) -> None:
        """Write the values of a part less their mean, in float64; 0 where the original is invalid."""
        for which, field in enumerate((original, as_measured(original, decoded))):
            self._contrasts(which).write(number, contrast(field, self.means[which], self.exponents[which]))

    def transform(self, item: int) -> None:
        """Transform the planes of a slab, and write their coefficients by columns."""
        lead, slab = divmod(item, len(self.slabs))
        place = [slice(0, size) for size in self.shape]
        if len(place) > 1:   # one line is one plane
            place[len(place[:-3])] = self.slabs[slab]
        if len(place) == 4:
            place[0] = slice(lead, lead + 1)
        for which in (0, 1):
            planes = self._contrasts(which)[tuple(place)].reshape(-1, *self.axes[1:])
            waves = np.fft.rfft(planes, axis=2)
            waves = np.fft.fft(waves, axis=1, out=waves)
            save(self._slab(which, item), waves.reshape(len(waves), -1).T)

    def sums(self, item: int) -> np.ndarray:
        """Transform some columns, and add up the power of both fields in shells."""
        lead, run = divmod(item, len(self.columns))
        columns, sums = self.columns[run], []
        k, count = self._waves(columns)
        for which in (0, 1):
            slabs = range(lead * len(self.slabs), (lead + 1) * len(self.slabs))
            waves = np.concatenate([load(self._slab(which, slab), columns) for slab in slabs], axis=1)
            sums.append(self.shells.sums(k, count, np.fft.fft(waves, axis=1, out=waves)))
        return np.stack(sums)

    def _waves(self, columns: slice) -> tuple[np.ndarray, np.ndarray]:
        """The wave number of each coefficient of some columns, and how many waves each stands for."""
        points = self.axes[2]
        planes, rows, last = (wave**2 for wave in wave_numbers(self.axes, three_axes(self.shells.lengths, 1.0)))
        row, place = np.divmod(np.arange(columns.start, columns.stop), len(last))
        mirrored = (place > 0) & ((points % 2 == 1) | (place < len(last) - 1))
        k = np.sqrt(planes + rows[row][:, None] + last[place][:, None])
        return k, np.where(mirrored, 2.0, 1.0)[:, None]

    def _contrasts(self, which: int) -> ArrayInFiles:
        return ArrayInFiles(self.folder / f"part-{which}", self.shape, np.dtype(np.float64), self.part_shape)

    def _slab(self, which: int, item: int) -> Path:
        return self.folder / f"planes-{which}-{item}.npy"
