"""`wb.distributed.compare`: the differences of fields that do not fit into memory, chunk by chunk.

The figures are those of `wb.compare`. Errors of parts add up to those of the whole; this is the first pass over the data.
The second needs the range and the mean of the first, and a few points beyond each chunk: windows of SSIM and pairs of
errors belong to the chunk that they begin in. Spectra need all values together, by way of the scratch folder
(`fields_spectrum.py`).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.metrics import ErrorHistogram, Errors, Report, error_histogram, pointwise
from workbench.metrics.compare import report_on_field, require_bound
from workbench.metrics.pairs import reshaped
from workbench.metrics.similarity import WINDOW, similarity_sum
from workbench.metrics.spectrum import Spectrum
from workbench.metrics.spectrum_in_parts import spectra_of
from workbench.metrics.structure import LAGS, AutocorrelationSums
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, Progress
from workbench.subdomains.sources import scratch_folder

NARROW = 2 * LAGS       # points along an axis: of narrower chunks, several are taken together,
MOST_VALUES = 2**24     # as long as they do not have more values


def compare(
    original: Any, decoded: Any, *, bound: float | None = None, quick: bool = False, client: Any = None,
    scratch: str | Path | None = None, progress: Progress | None = None,
) -> Report:
    """The differences of a decoded field, chunk by chunk: `wb.compare` for fields that do not fit into memory.

    Both are a `ChunkedField` or an array that it takes, an archive of a field, or a `wb.Field`. With a `bound`, the report
    says whether any absolute error exceeds it. `quick` computes only errors, PSNR and SSIM. Otherwise, fields are read
    three times, and power spectra need 32 bytes for each value in the `scratch` folder, and a plane of the field in memory.
    `progress` is called with the completed share of each step and its name.

    >>> import numpy as np
    >>> from workbench.data.synthetic import gaussian_field
    >>> wave = gaussian_field((32, 32), seed=1)
    >>> report = compare(wave, np.round(wave.values, 2), bound=0.005001)
    >>> report.passed, report.max_error < 0.00501, round(report.ssim, 3)
    (True, True, 1.0)
    """
    require_bound(bound)
    fields = _pair(original, decoded)
    executor = executor_of(client, progress, *fields)
    with scratch_folder(scratch, executor) as folder:
        executor = executor.within(folder)
        first, second = (field.reachable(executor, folder, name) for field, name in zip(fields, "ab", strict=True))
        shape = min((second, first), key=_cost_of_other_chunks).chunk_shape
        found = map_parts(executor, "compare-chunks", functools.partial(Totals.of, bound), shape, [first, second])
        totals = sum(found, Totals())
        windows = Windows(first.shape, _wider(shape, first.shape), totals.errors, bound or totals.errors.max_error, quick)
        structure = _Parts(executor, folder, (first, second), shape, windows, totals.means)
        subject = f"{fields[0]!r}, original and decoded"
        return report_on_field(subject, first.shape, totals.errors, bound, structure, quick)


@dataclass(frozen=True)
class Totals:
    """Of parts of two fields: the errors, and the sums of both where the original is valid."""

    errors: Errors = field(default_factory=Errors)
    original: float = 0.0
    decoded: float = 0.0

    @classmethod
    def of(cls, bound: float | None, number: int, original: Field, decoded: Field) -> Self:
        """The totals of one part."""
        valid = original.valid
        sums = (float(one.values.sum(where=valid, dtype=np.float64)) for one in (original, decoded))
        with np.errstate(invalid="ignore", over="ignore"):   # decoded values may be infinite or NaN
            return cls(pointwise(original, decoded, bound), *sums)

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.errors + other.errors, self.original + other.original, self.decoded + other.decoded)

    @property
    def means(self) -> tuple[float, float]:
        """The means of both fields."""
        count = max(self.errors.count, 1)
        return self.original / count, self.decoded / count


@dataclass(frozen=True)
class Together:
    """Sums over windows and pairs of points that begin in some parts."""

    similarity: float
    windows: int
    pairs: AutocorrelationSums | None = None
    histogram: ErrorHistogram | None = None

    def __add__(self, other: Together) -> Together:
        pairs = None if self.pairs is None or other.pairs is None else self.pairs + other.pairs
        counts = None if self.histogram is None or other.histogram is None else self.histogram + other.histogram
        return Together(self.similarity + other.similarity, self.windows + other.windows, pairs, counts)


@dataclass(frozen=True)
class Windows:
    """The second pass: what is summed over windows and pairs of points, for chunks of this shape of a whole field."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    errors: Errors
    unit: float   # of the histogram
    quick: bool   # SSIM alone

    @property
    def beyond(self) -> int:
        """How many points beyond a chunk are needed."""
        return WINDOW - 1 if self.quick else max(WINDOW - 1, LAGS)

    def sums(self, number: int, original: Field, decoded: Field) -> Together:
        """The sums of one chunk, given with the points beyond it."""
        own = self._own(number)
        similarity, windows = self._similarity(own, original, decoded)
        if self.quick:
            return Together(similarity, windows)
        pairs = AutocorrelationSums.of(original, decoded, self.errors, own=own)
        inside = tuple(slice(size) for size in own)
        histogram = None if not self.unit else error_histogram(_cut(original, inside), _cut(decoded, inside), self.unit)
        return Together(similarity, windows, pairs, histogram)

    def _own(self, number: int) -> tuple[int, ...]:
        """The number of points of a chunk along each axis."""
        chunks = [-(-size // step) for size, step in zip(self.shape, self.chunk_shape, strict=True)]
        index = np.unravel_index(number, chunks)
        return tuple(
            min(step, size - int(at) * step) for at, step, size in zip(index, self.chunk_shape, self.shape, strict=True)
        )

    def _similarity(self, own: tuple[int, ...], original: Field, decoded: Field) -> tuple[float, int]:
        """Of the windows that begin in the chunk; axes of one point count as none, and the first of four has no windows."""
        axes = [axis for axis, points in enumerate(self.shape) if points > 1]
        sides = [self.shape[axis] for axis in axes[-3:]]
        if len(axes) < 2 or min(sides) < WINDOW or not self.errors.value_range > 0:
            return 0.0, 0
        wide = [own[axis] + (WINDOW - 1 if axis in axes[-3:] else 0) for axis in range(len(own))]
        pair = [_cut(field, tuple(slice(size) for size in wide)) for field in (original, decoded)]
        shape = tuple(pair[0].shape[axis] for axis in axes)
        return similarity_sum(reshaped(pair[0], shape), reshaped(pair[1], shape), self.errors)


@dataclass(frozen=True)
class _Parts:
    """The structure of two fields in parts."""

    executor: Executor
    folder: Path
    fields: tuple[ChunkedField, ChunkedField]
    chunk_shape: tuple[int, ...]
    windows: Windows
    means: tuple[float, float]

    @functools.cached_property
    def _sums(self) -> Together:
        name, shape = "compare-neighbours", self.windows.chunk_shape
        found = map_parts(self.executor, name, self.windows.sums, shape, self.fields, self.windows.beyond)
        return functools.reduce(Together.__add__, found)

    def ssim(self) -> float | None:
        return self._sums.similarity / self._sums.windows if self._sums.windows else math.nan

    def autocorrelation(self) -> np.ndarray:
        assert self._sums.pairs is not None
        return self._sums.pairs.means(self.windows.errors)

    def histogram(self, width: float) -> ErrorHistogram:
        assert self._sums.histogram is not None
        assert self._sums.histogram.width == width
        return self._sums.histogram

    def spectra(self) -> tuple[Spectrum, Spectrum]:
        return spectra_of(self.fields, self.means, self.chunk_shape, self.folder, self.executor)


def _cut(field: Field, place: tuple[slice, ...]) -> Field:
    return Field(field.values[place], mask=None if field.mask is None else field.mask[place])


def _pair(original: Any, decoded: Any) -> tuple[ChunkedField, ChunkedField]:
    """Two fields on one grid; one without a spacing gets that of the other."""
    first, second = (ChunkedField.of(given) for given in (original, decoded))
    if first.shape != second.shape:
        raise WorkbenchError(f"both fields must have the same shape; got {first.shape} and {second.shape}")
    if first.knows_spacing and second.knows_spacing and first.spacing != second.spacing:
        raise WorkbenchError(f"both fields must have the same spacing; got {first.spacing} and {second.spacing}")
    spacing = first.spacing if first.knows_spacing else second.spacing
    return ChunkedField(first.values, spacing, first.name, first.mask, first.metadata), second


def _wider(chunk_shape: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Several chunks together, so that what is read beyond them is not more than they are, as far as memory allows.

    >>> _wider((1, 100, 64), (365, 100, 1000)), _wider((1, 2000, 3000), (365, 2000, 3000))
    ((20, 100, 64), (2, 2000, 3000))
    """
    found = [min(step, size) for step, size in zip(chunk_shape, shape, strict=True)]
    for axis, step in enumerate(found):
        times = min(-(-NARROW // step), max(MOST_VALUES // math.prod(found), 1))
        found[axis] = min(step * times, shape[axis])
    return tuple(found)


def _cost_of_other_chunks(field: ChunkedField) -> int:
    """Whose chunks to use: an archive decodes a whole chunk for any part of it, Dask has to cut and join blocks."""
    return 0 if hasattr(field.values, "whole_chunks") else 1 if field.on_dask else 2
