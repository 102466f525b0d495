"""Linear combinations of archived fields: an archive whose promise is about the combination of the originals.

Chunk by chunk, the sources are decoded, combined in float64 and rounded to the type of the result; what these roundings can
add is bounded from the sizes of the numbers. The result is encoded as any field is, and its error is measured. The sum of
all this is the promise (`derivation.py`).

Where all sources are `staged`, the integers of their lattices are combined instead, and stored on a lattice whose step is a
common one: nothing is rounded to a lattice again. Steps that are nearly multiples of each other, as those of archives of
one bound are, are taken for multiples where the difference adds less than encoding anew may.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench import codecs
from workbench.archive import region as regions
from workbench.archive.archive import Archive
from workbench.archive.certificate import SHARE
from workbench.archive.chunking import chunk_shape
from workbench.archive.derivation import NOTHING, Derivation, Source, checksum_of, expression, is_relative, largest, summed
from workbench.archive.documents import Outline
from workbench.archive.encoding import Task
from workbench.archive.fields import MASK, FieldChunk, FieldPlan, arrays_of, mask_layout, write_chunk
from workbench.archive.frame import as_source
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.request import Request, archive_of
from workbench.archive.statistics.selection import dimensions
from workbench.archive.statistics.staged_chunk import StagedChunk
from workbench.archive.statistics.staged_sums import lattice_rounding
from workbench.archive.statistics.sums import ABOVE, TINY
from workbench.archive.statistics.together import readers
from workbench.archive.store import MemoryStore
from workbench.archive.writing import Draft, Place
from workbench.codecs.codec import Codec
from workbench.codecs.staged import Staged
from workbench.data import Field
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Absolute, Limit, Limits, SliceLimits
from workbench.guarantees.correction import apply_correction, corrected_places
from workbench.progress import Progress
from workbench.run.executors import Executor, OnDask
from workbench.run.submission import submittable
from workbench.slabs import Slices

EXTRA = 1 / 16               # of the bounds of the sources: what encoding the result may add
UNIT = Fraction(1, 2**53)    # of a rounding in float64, relative to the result
MOST_TIMES = 2**20           # a common step goes into that of a source at most so often
MOST_NUMBER = 2**51          # lattice numbers up to here, times a step, are distinct as floats
LONGEST = 200                # letters of a name that is an expression
ON_LATTICE = 2.0**-20        # the tolerance, in steps, for values that are on the lattice already


@submittable
def linear_combination(
    terms: Sequence[tuple[float, Archive]], *, extra: float = EXTRA, out: str | os.PathLike[str] | None = None,
    overwrite: bool = False, client: Any = None, scratch: str | Path | None = None, progress: Progress | None = None,
) -> Archive:
    """The archive of a linear combination of archived fields; `a - b`, `a + b`, `2.0 * a` and `-a` of archives call it.

    `terms` are pairs of a coefficient and an archive of a field of floats, on one grid. The result promises that each value
    is within the sum of |coefficient| x bound of that of the original fields, and a little more: the roundings of the
    arithmetic, and the error of encoding the result, which is at most the share `extra` of that sum. Its certificate says
    how much each adds. No original is compared, so the promise holds if those of the sources do. A cell that is masked or
    not finite in one source is missing.

    Sources are decoded chunk by chunk. Of `staged` archives that have one bound, the integers of the lattice are combined,
    and nothing is rounded to a lattice again. `out` is where the archive is written, as for `wb.compress`. Chunks are made
    in this process or on the workers of a Dask `client` (or the address of a scheduler), which must see the archives, `out`
    and the `scratch` folder; the bytes are the same. `progress` is called with the completed share of the chunks.

    >>> import workbench as wb
    >>> x = np.linspace(0, 6, 10_000)
    >>> a, b = (wb.compress(values, wb.Absolute(1e-3), "staged") for values in (np.sin(x), np.cos(x)))
    >>> difference, half = a - b, 0.5 * a
    >>> bool(abs(difference.decompress().values - (np.sin(x) - np.cos(x))).max() <= 0.002001)
    True
    >>> [round(one.certificate["values"].bound.eb, 9) for one in (difference, half)]
    [0.002, 0.0005]
    """
    combination = Combination.of(terms, extra)
    with readers(combination.archives, client, scratch, progress) as executor:
        if isinstance(executor, OnDask) and out is None:
            raise WorkbenchError("workers write the archive: give out=, a path on a file system that all of them see")
        with _place(out, overwrite) as place:
            made = combination.written(place, executor)
    made.beside = combination.archives[0].beside
    return made


@dataclass(frozen=True, eq=False)
class Part:
    """The combination in one chunk, NaN where it is missing, and what the arithmetic can have added.

    With a step, the values are on a lattice.
    """

    values: np.ndarray
    mask: np.ndarray | None
    rounding: Fraction
    step: float | None = None


@dataclass(frozen=True, eq=False)
class Combination:
    """Archives on one grid, with their coefficients, and the limits of what they add and of encoding their sum."""

    sources: tuple[Source, ...]
    archives: tuple[Archive, ...]
    extra: Limits

    @classmethod
    def of(cls, terms: Any, extra: Any) -> Combination:
        """The combination of these terms, which fit together."""
        pairs = _pairs(terms)
        share = float(extra) if isinstance(extra, numbers.Real) and not isinstance(extra, bool) else math.nan
        if not 0 <= share < math.inf:
            raise WorkbenchError(f"extra must be a share of the bounds of the sources, 0 or more; got {briefly(extra)}")
        archives = tuple(archive for _, archive in pairs)
        _require_alike(archives)
        sources = tuple(_source(number, *pair) for number, pair in enumerate(pairs, start=1))
        weighted = [(Fraction(one.coefficient) * Fraction(share), one.limit) for one in sources]
        return cls(sources, archives, summed(weighted))

    @property
    def dtype(self) -> np.dtype:
        """The type of the result."""
        return np.result_type(*(one.data.layout.dtype for one in self.archives))

    @functools.cached_property
    def plan(self) -> FieldPlan:
        """How the result is encoded: as the first source is, in its chunks where limits of slices let them be."""
        first, extra = self.archives[0].data.layout, self.extra
        fitting = (one.codec for one in self.archives if self.dtype.name in one.codec.dtypes)
        codec = next(fitting, codecs.get("prequantised"))
        request = Request(Absolute(0.0), codec, chunks=self._chunks(first, codec))   # the limits are those of `extra`
        return FieldPlan.of(first.shape, self.dtype, codec, extra, request, self.outline)

    def _chunks(self, first: ArrayLayout, codec: Codec) -> tuple[int, ...]:
        """The shape of chunks, none of which crosses slices where the limit of any source changes."""
        sliced = [one.limit for one in self.sources if isinstance(one.limit, SliceLimits)]
        if not sliced:
            return first.chunk_shape
        axis, kinds = sliced[0].axis, {}   # type: int, dict[tuple[Limit, ...], int]
        numbers_of = [kinds.setdefault(row, len(kinds)) for row in zip(*(one.limits for one in sliced), strict=True)]
        changes = SliceLimits(axis, tuple(Limit("absolute", number) for number in numbers_of))
        axes = tuple(None if each == axis else size for each, size in enumerate(first.chunk_shape))
        return chunk_shape(first.shape, codec.chunk_values, axes, changes)

    @functools.cached_property
    def outline(self) -> Outline:
        """What the archive says of the result: what all sources say of theirs."""
        first, names = self.archives[0], [one.attributes.get("name") for one in self.archives]
        known = [one.attributes.get("metadata", {}) for one in self.archives]
        shared = {key: known[0][key] for key in ("dimensions", "coordinates", "units") if key in known[0]}
        shared = {key: stated for key, stated in shared.items() if all(one.get(key) == stated for one in known)}
        named = [(one.coefficient, one.name) for one in self.sources]
        name = expression(named) if all(names) else ""
        masked = any(MASK in one.arrays for one in self.archives)
        return Outline(
            first.data.layout.shape, self.dtype, first.spacing, name if 0 < len(name) <= LONGEST else None, shared, masked
        )

    def written(self, place: Place, executor: Executor) -> Archive:
        """The archive of the combination."""
        plan, mask = self.plan, mask_layout(self.plan, self.outline.masked)
        layout, indices = plan.layout, list(plan.layout.chunk_indices())
        alone = plan.codec.holds_gil or isinstance(plan.codec, Staged)   # these use threads themselves
        given = self, plan.task(), mask, place
        parts = executor.map("combine-chunks", _encoded_chunk, indices, "chunk", shared=given, together=not alone)
        chunks, places = [chunk for chunk, _, _ in parts], [layout.chunk_slices(index) for index in indices]
        rounding = largest(self.extra, list(zip(places, (one for _, one, _ in parts), strict=True)))
        encoding = largest(self.extra, list(zip(places, (one for _, _, one in parts), strict=True)))
        derivation = Derivation(self.sources, rounding, encoding)
        arrays = arrays_of(plan, mask, chunks)
        promise = arrays[0].promise
        assert promise is not None   # values have one
        figures = {name: figure for name, figure in promise.figures.items() if name not in ("largest_error", SHARE)}
        promise = dataclasses.replace(
            promise, bound=derivation.bound, limit=derivation.limit, figures=figures, derived=derivation
        )
        arrays[0] = dataclasses.replace(arrays[0], promise=promise)
        return archive_of(arrays, plan.described(self.outline), plan.codec, self.outline.metadata, place, executor)

    def encoded(
        self, task: Task, mask: ArrayLayout | None, place: Place, index: Index
    ) -> tuple[FieldChunk, Fraction, Fraction]:
        """A chunk that is written, what the arithmetic can have added to it, and what encoding has."""
        task = task.of_chunk(index)
        part = self._part(task.layout.chunk_slices(index), index, task.limit)
        if part.step is not None and isinstance(task.codec, Staged):
            codec, limit = dataclasses.replace(task.codec, step=part.step), Limit("absolute", part.step * ON_LATTICE)
            task = dataclasses.replace(task, codec=codec, limit=limit)
        chunk = write_chunk(task, mask, place, index, Field(part.values, mask=part.mask))
        error = Fraction(chunk.values.figures.largest_error)   # rounded, but 0 only if there is none
        added = min(error * ABOVE + TINY, Fraction(task.limit.value)) if error else error
        return chunk, part.rounding, added

    def _part(self, place: Slices, index: Index, limit: Limit) -> Part:
        """The combination of the sources at a place."""
        hidden = [_read(one, MASK, place) for one in self.archives if MASK in one.arrays]
        mask = np.logical_or.reduce(hidden) if hidden else None
        if isinstance(self.plan.codec, Staged):
            chunks = [_staged(one, place, index) for one in self.archives]
            part = self._on_lattice([chunk for chunk in chunks if chunk is not None], mask, Fraction(limit.value))
            if part is not None:
                return part
        return self._by_values([_read(one, "values", place) for one in self.archives], mask)

    def _by_values(self, values: Sequence[np.ndarray], mask: np.ndarray | None) -> Part:
        missing = _missing(values, mask)
        coefficients = [one.coefficient for one in self.sources]
        total, count = np.zeros(missing.shape, np.float64), len(coefficients)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for coefficient, each in zip(coefficients, values, strict=True):
                total += np.multiply(each, coefficient, dtype=np.float64)
            rounded = total.astype(self.dtype)
        pairs = zip(coefficients, values, strict=True)
        size = sum((abs(Fraction(one)) * _size(each, missing) for one, each in pairs), Fraction(0))
        rounded = self._finite(rounded, missing)
        rounding = (size * UNIT * count * ABOVE + count * TINY) + _last_rounding(_size(total, missing), self.dtype)
        return Part(rounded, mask, rounding)

    def _on_lattice(self, chunks: Sequence[StagedChunk], mask: np.ndarray | None, limit: Fraction) -> Part | None:
        """The combination of the lattice numbers; None where the sources have no common lattice."""
        if len(chunks) < len(self.archives):
            return None
        numbers_of = [_numbers(chunk) for chunk in chunks]
        with np.errstate(over="ignore"):
            values = [
                apply_correction((each * chunk.stream.lattice.step).astype(chunk.dtype), chunk.fix)
                for chunk, each in zip(chunks, numbers_of, strict=True)
            ]
        missing = _missing(values, mask)
        sizes = [int(_size(each, missing)) for each in numbers_of]
        coefficients = [Fraction(one.coefficient) for one in self.sources]
        steps = [one * Fraction(chunk.stream.lattice.step) for one, chunk in zip(coefficients, chunks, strict=True)]
        common = common_step(steps, sizes)
        if common is None or common.drift > limit:
            return None
        step, times = common.step, common.times
        total = np.zeros(missing.shape, np.int64)
        for many, each in zip(times, numbers_of, strict=True):
            total += many * each
        with np.errstate(over="ignore", under="ignore"):
            result = np.multiply(total, step, dtype=np.float64).astype(self.dtype)
        size = _size(total, missing) * Fraction(step)
        # A decoded value is a lattice point rounded in float64, and to its type; so is the result.
        before = sum(
            (abs(one) * lattice_rounding(count * Fraction(chunk.stream.lattice.step), chunk.dtype)
             for one, count, chunk in zip(coefficients, sizes, chunks, strict=True)), Fraction(0),
        )
        rounding = common.drift + before + lattice_rounding(size, self.dtype)
        corrected = np.unique(np.concatenate([corrected_places(one.fix, one.shape, one.dtype) for one in chunks]))
        if corrected.size:   # there, values are on no lattice
            beside = self._by_values(values, mask)
            result.reshape(-1)[corrected] = beside.values.reshape(-1)[corrected]
            rounding = max(rounding, beside.rounding)
        return Part(self._finite(result, missing), mask, rounding, step)

    def _finite(self, result: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """The result with NaN where it is missing; refused where it is too large for its type."""
        result[missing] = np.nan
        if not np.isfinite(result[~missing]).all():
            words = expression([(one.coefficient, one.name) for one in self.sources])
            raise WorkbenchError(f"{words} is beyond the range of {self.dtype}: use smaller coefficients")
        return result


def _encoded_chunk(
    given: tuple[Combination, Task, ArrayLayout | None, Place], index: Index
) -> tuple[FieldChunk, Fraction, Fraction]:
    combination, task, mask, place = given
    return combination.encoded(task, mask, place, index)


@dataclass(frozen=True)
class CommonStep:
    """A step, how often it goes into that of each term, and the largest error of saying so."""

    step: float
    times: tuple[int, ...]
    drift: Fraction


def common_step(steps: Sequence[Fraction], sizes: Sequence[int]) -> CommonStep | None:
    """The step, among those of terms, of which the others are most nearly multiples; `sizes` are the largest numbers.

    >>> common_step([Fraction(1, 2), Fraction(-1, 4)], [100, 100])
    CommonStep(step=0.25, times=(2, -1), drift=Fraction(0, 1))
    >>> common_step([Fraction(1, 2)] * 2, [2**52, 1]) is None   # too large for integers that a float tells apart
    True
    """
    best: CommonStep | None = None
    for one in {abs(each) for each in steps if each}:
        try:
            step = float(one)
        except OverflowError:
            continue
        if not step:
            continue
        times = tuple(round(each / Fraction(step)) for each in steps)
        pairs = list(zip(steps, times, sizes, strict=True))
        drift = sum((abs(each - many * Fraction(step)) * size for each, many, size in pairs), Fraction(0))
        fits = all(abs(many) <= MOST_TIMES for many in times)
        fits = fits and sum(abs(many) * size for _, many, size in pairs) < MOST_NUMBER
        if fits and (best is None or drift < best.drift):
            best = CommonStep(step, times, drift)
    return best


def _numbers(chunk: StagedChunk) -> np.ndarray:
    """The lattice numbers of a chunk."""
    stream = chunk.stream
    return np.asarray(stream.blocks(np.arange(stream.grid.blocks)).numbers(stream.grid.whole)).reshape(chunk.shape)


def _staged(archive: Archive, place: Slices, index: Index) -> StagedChunk | None:
    """The chunk of an archive at a place; None if it has other chunks, or this one is not in blocks."""
    layout = archive.data.layout
    inside = all(at < count for at, count in zip(index, layout.chunk_grid, strict=True))
    if not isinstance(archive.codec, Staged) or not inside or layout.chunk_slices(index) != place:
        return None
    with as_source(archive.store.name):
        return StagedChunk.opened(archive.data, index, None)


def _read(archive: Archive, array: str, place: Slices) -> np.ndarray:
    with as_source(archive.store.name):
        return regions.grid_part(archive.arrays[array], place)


def _missing(values: Sequence[np.ndarray], mask: np.ndarray | None) -> np.ndarray:
    """Where a source is masked or not finite."""
    missing = np.logical_or.reduce([~np.isfinite(each) for each in values])
    return np.asarray(missing if mask is None else missing | mask)


def _size(values: np.ndarray, missing: np.ndarray) -> Fraction:
    """The largest magnitude where nothing is missing."""
    there = values[~missing]
    return Fraction(max(abs(there.max().item()), abs(there.min().item()))) if there.size else Fraction(0)


def _last_rounding(size: Fraction, dtype: np.dtype) -> Fraction:
    """At most the error of rounding a float64 of this size to a type."""
    return Fraction(0) if dtype == np.float64 else size / 2**24 + Fraction(1, 2**149)


def _pairs(terms: Any) -> list[tuple[float, Archive]]:
    """The coefficients and archives that were given."""
    given = list(terms) if isinstance(terms, list | tuple) else []
    if not given or not all(isinstance(one, tuple) and len(one) == 2 for one in given):
        wanted = "pairs of a coefficient and an archive, as [(1, a), (-1, b)]"
        raise WorkbenchError(f"terms must be a list of {wanted}; got {briefly(terms)}")
    pairs = []
    for coefficient, archive in given:
        try:
            factor = float(coefficient) if isinstance(coefficient, numbers.Real) else math.nan
        except OverflowError:   # of a large integer
            factor = math.inf
        if isinstance(coefficient, bool) or not math.isfinite(factor):
            raise WorkbenchError(f"a coefficient must be a finite number; got {briefly(coefficient)}")
        if not isinstance(archive, Archive):
            raise WorkbenchError(f"a combination takes archives of fields; got {briefly(archive)}: compress it first")
        pairs.append((factor, archive))
    return pairs


def _require_alike(archives: Sequence[Archive]) -> None:
    """Refuse archives that are not fields of floats on one grid."""
    for one in archives:
        dtype = one.data.layout.dtype
        if one.kind != "field" or dtype.kind != "f":
            what = f"{dtype} values" if one.kind == "field" else one.content.words
            raise WorkbenchError(f"a combination takes archives of fields of floats; got {what}: decompress them")
    names = [dimensions(one) for one in archives]
    compared: dict[str, list[Any]] = {
        "shape": [one.data.layout.shape for one in archives],
        "spacing": [one.spacing for one in archives],
        "names of dimensions": [tuple(each) for each in names if each is not None],
        "units": [one.attributes["metadata"]["units"] for one in archives if "units" in one.attributes.get("metadata", {})],
    }
    for what, stated in compared.items():
        if other := [each for each in stated if each != stated[0]]:
            got = f"{what} {stated[0]} and {other[0]}"
            raise WorkbenchError(f"a combination takes fields on one grid, in one unit; got {got}")
    for axis in names[0] or []:
        for along in ([_stated(one, axis) for one in archives], [_beside(one, axis) for one in archives]):
            known = [each for each in along if each is not None]
            if any(each != known[0] for each in known):
                raise WorkbenchError(f"a combination takes fields on one grid; their coordinates along {axis!r} differ")


def _stated(archive: Archive, name: str) -> Any:
    """The values of the coordinate of a dimension, as the metadata state them."""
    stated = archive.attributes.get("metadata", {}).get("coordinates")
    coordinate = stated.get(name) if isinstance(stated, dict) else None
    return coordinate.get("values") if isinstance(coordinate, dict) else None


def _beside(archive: Archive, name: str) -> Any:
    """Those of a coordinate that is a member of the same dataset, as they are stored."""
    coordinate = archive.beside.get(name)
    return None if coordinate is None else coordinate.whole(coordinate.data.layout.name).tolist()


def _source(number: int, coefficient: float, archive: Archive) -> Source:
    """What is stated of a source."""
    limit = archive.certificate["values"].limit or NOTHING
    if is_relative(limit):
        raise WorkbenchError(
            f"a combination needs absolute bounds; {archive!r} has a bound relative to each value, which says nothing of a "
            "sum: compress the field with wb.Absolute or wb.Relative"
        )
    name = archive.attributes.get("name") or ("" if archive.store.in_memory else Path(archive.store.name).stem)
    return Source(coefficient, str(name or f"field {number}"), checksum_of(archive.documents), limit)


@contextmanager
def _place(out: str | os.PathLike[str] | None, overwrite: bool) -> Iterator[Place]:
    """Where the parts go: into memory, or to a draft."""
    if out is None:
        yield MemoryStore()
        return
    draft = Draft(out, overwrite)
    try:
        yield draft
    except BaseException:
        draft.discard()
        raise


