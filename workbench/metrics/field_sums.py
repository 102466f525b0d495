"""Two fields in parts, and the sums over all parts from which a comparison makes its figures.

Errors of parts add up to those of the whole; this is the first pass over the data. The second needs the range and the mean
of the first, and a few points beyond each part: windows of SSIM and pairs of errors belong to the part that they begin in.
Spectra need all values together. Two fields in memory have one part, and their spectra are computed there; those of others
go by way of the scratch folder (`spectrum_in_parts.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.metrics.errors import Errors, pointwise
from workbench.metrics.pairs import as_measured, reshaped
from workbench.metrics.similarity import WINDOW, similarity_sum
from workbench.metrics.spectrum import Spectrum, exponent_of, field_spectrum, largest, mean_of
from workbench.metrics.spectrum_in_parts import Mesh
from workbench.metrics.structure import LAGS, AutocorrelationSums, ErrorHistogram, error_histogram
from workbench.progress import Progress
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.clients import executor_of
from workbench.run.executors import Executor
from workbench.slabs import Slices
from workbench.subdomains.sources import scratch_folder

NARROW = 2 * LAGS       # points along an axis: of narrower parts, several are taken together,
MOST_VALUES = 2**24     # as long as they do not have more values


@dataclass(frozen=True)
class Totals:
    """Of parts of two fields: the errors and, if they were asked for, what the spectra of both need to know."""

    errors: Errors = field(default_factory=Errors)
    means: tuple[float, ...] = (0.0, 0.0)
    peaks: tuple[float, ...] = (0.0, 0.0)

    def __add__(self, other: Totals) -> Totals:
        errors = self.errors + other.errors
        shares = [part.errors.count / max(errors.count, 1) for part in (self, other)]   # sums might be beyond float64
        means = tuple(a * shares[0] + b * shares[1] for a, b in zip(self.means, other.means, strict=True))
        return Totals(errors, means, tuple(map(max, self.peaks, other.peaks)))


@dataclass(frozen=True)
class WindowSums:
    """Sums over windows and pairs of points that begin in some parts."""

    similarity: float
    windows: int
    pairs: AutocorrelationSums | None = None
    histogram: ErrorHistogram | None = None

    def __add__(self, other: WindowSums) -> WindowSums:
        pairs = None if self.pairs is None or other.pairs is None else self.pairs + other.pairs
        counts = None if self.histogram is None or other.histogram is None else self.histogram + other.histogram
        return WindowSums(self.similarity + other.similarity, self.windows + other.windows, pairs, counts)

    @property
    def ssim(self) -> float:
        """The mean similarity; NaN without windows."""
        return self.similarity / self.windows if self.windows else math.nan


@dataclass(frozen=True)
class FieldPair:
    """Two fields on one grid, where steps read them, and the folder for what steps write."""

    original: ChunkedField
    decoded: ChunkedField
    executor: Executor
    folder: Path

    @classmethod
    @contextmanager
    def opened(cls, given: Sequence[Any], client: Any, scratch: Any, progress: Progress | None) -> Iterator[Self]:
        """The pair of an original and a decoded field; one without a spacing gets that of the other."""
        first, second = map(ChunkedField.of, given)
        if first.shape != second.shape:
            raise WorkbenchError(f"both fields must have the same shape; got {first.shape} and {second.shape}")
        if not first.knows_spacing:
            first = first.over(*first.arrays, second.spacing)
        elif second.knows_spacing and first.spacing != second.spacing:
            raise WorkbenchError(f"both fields must have the same spacing; got {first.spacing} and {second.spacing}")
        executor = executor_of(client, progress, first, second)
        with scratch_folder(scratch, executor) as folder:
            executor = executor.within(folder)
            yield cls(first.reachable(executor, folder, "a"), second.reachable(executor, folder, "b"), executor, folder)

    @property
    def fields(self) -> tuple[ChunkedField, ChunkedField]:
        """The original and the decoded field."""
        return self.original, self.decoded

    @property
    def in_memory(self) -> tuple[Field, Field] | None:
        """Both fields, if they are in the memory of this process."""
        first, second = self.original.in_memory, self.decoded.in_memory
        return None if first is None or second is None else (first, second)

    @property
    def part_shape(self) -> tuple[int, ...]:
        """The shape of parts: an archive decodes a whole chunk for any part of it, Dask has to cut and join blocks."""
        def cost_of_others(field: ChunkedField) -> int:
            return 0 if field.in_memory is not None else 3 if is_archive(field) else 2 if field.on_dask else 1

        return max((self.decoded, self.original), key=cost_of_others).chunk_shape

    def decoded_once(self) -> FieldPair:
        """The pair for several passes: parts of archives are decoded into files."""
        first, second = (
            field.saved(self.executor, self.folder, name) if is_archive(field) else field
            for field, name in zip(self.fields, ("first", "second"), strict=True)
        )
        return FieldPair(first, second, self.executor, self.folder)

    def totals(self, bound: float | None, quick: bool) -> Totals:
        """The first pass."""
        step = functools.partial(_totals, bound, not quick and self.in_memory is None)
        return sum(map_parts(self.executor, "compare-chunks", step, self.part_shape, self.fields), Totals())

    def window_sums(self, errors: Errors, unit: float, quick: bool) -> WindowSums:
        """The second pass."""
        shape = _wider(self.part_shape, self.original.shape)
        windows = Windows(self.original.shape, shape, errors, unit, quick)
        sums = map_parts(self.executor, "compare-neighbours", windows.sums, shape, self.fields, windows.beyond)
        return functools.reduce(WindowSums.__add__, sums)

    def spectra(self, totals: Totals) -> tuple[Spectrum, Spectrum]:
        """The spectra of the original and of the decoded field, over the points where the original is valid."""
        if self.in_memory is not None:
            original, decoded = self.in_memory
            return field_spectrum(original), field_spectrum(as_measured(original, decoded))
        exponents = tuple(map(exponent_of, totals.peaks))
        means = tuple(math.ldexp(mean, -exponent) for mean, exponent in zip(totals.means, exponents, strict=True))
        mesh = Mesh(self.original.shape, tuple(self.original.spacing), self.part_shape, self.folder, means, exponents)
        return mesh.spectra(self.fields, self.executor)


@dataclass(frozen=True)
class Windows:
    """The second pass: what is summed over windows and pairs of points, for parts of this shape of a whole field."""

    shape: tuple[int, ...]
    part_shape: tuple[int, ...]
    errors: Errors
    unit: float   # of the histogram
    quick: bool   # SSIM alone

    @property
    def beyond(self) -> int:
        """How many points beyond a part are needed."""
        return WINDOW - 1 if self.quick else max(WINDOW - 1, LAGS)

    def sums(self, number: int, original: Field, decoded: Field) -> WindowSums:
        """The sums of one part, given with the points beyond it."""
        own = self._own(number)
        similarity, windows = self._similarity(own, original, decoded)
        if self.quick:
            return WindowSums(similarity, windows)
        pairs = AutocorrelationSums.of(original, decoded, self.errors, own=own)
        inside = tuple(slice(size) for size in own)
        histogram = None if not self.unit else error_histogram(_cut(original, inside), _cut(decoded, inside), self.unit)
        return WindowSums(similarity, windows, pairs, histogram)

    def _own(self, number: int) -> tuple[int, ...]:
        """The number of points of a part along each axis."""
        parts = [-(-size // step) for size, step in zip(self.shape, self.part_shape, strict=True)]
        index = np.unravel_index(number, parts)
        return tuple(
            min(step, size - int(at) * step) for at, step, size in zip(index, self.part_shape, self.shape, strict=True)
        )

    def _similarity(self, own: tuple[int, ...], original: Field, decoded: Field) -> tuple[float, int]:
        """Of the windows that begin in the part; axes of one point count as none, and the first of four has no windows."""
        axes = [axis for axis, points in enumerate(self.shape) if points > 1]
        sides = [self.shape[axis] for axis in axes[-3:]]
        if len(axes) < 2 or min(sides) < WINDOW or not self.errors.value_range > 0:
            return 0.0, 0
        wide = [own[axis] + (WINDOW - 1 if axis in axes[-3:] else 0) for axis in range(len(own))]
        pair = [_cut(field, tuple(slice(size) for size in wide)) for field in (original, decoded)]
        shape = tuple(pair[0].shape[axis] for axis in axes)
        return similarity_sum(reshaped(pair[0], shape), reshaped(pair[1], shape), self.errors)


def is_archive(field: ChunkedField) -> bool:
    """Whether a chunk is decoded for any part of it."""
    return hasattr(field.values, "whole_chunks")


def _totals(bound: float | None, for_spectra: bool, number: int, original: Field, decoded: Field) -> Totals:
    """The totals of one part."""
    errors = pointwise(original, decoded, bound)
    if not for_spectra or not errors.count or not math.isfinite(errors.max_error):
        return Totals(errors)
    measured = original, as_measured(original, decoded)
    peaks = tuple(map(largest, measured))
    exponents = tuple(map(exponent_of, peaks))
    means = (math.ldexp(mean_of(*one), one[1]) for one in zip(measured, exponents, strict=True))
    return Totals(errors, tuple(means), peaks)


def _cut(field: Field, place: Slices) -> Field:
    return Field(field.values[place], mask=None if field.mask is None else field.mask[place])


def _wider(part_shape: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Several parts together, so that what is read beyond them is not more than they are, as far as memory allows.

    >>> _wider((1, 100, 64), (365, 100, 1000)), _wider((1, 2000, 3000), (365, 2000, 3000))
    ((20, 100, 64), (2, 2000, 3000))
    """
    wider = [min(step, size) for step, size in zip(part_shape, shape, strict=True)]
    for axis, step in enumerate(wider):
        times = min(-(-NARROW // step), max(MOST_VALUES // math.prod(wider), 1))
        wider[axis] = min(step * times, shape[axis])
    return tuple(wider)
