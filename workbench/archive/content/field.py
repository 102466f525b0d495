"""A field: values at the points of a grid, and a mask beside them if it has one."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive import checks
from workbench.archive import region as regions
from workbench.archive.archive import Archive
from workbench.archive.certificate import Promise
from workbench.archive.checks import Inspected
from workbench.archive.compress import source_of
from workbench.archive.content.consistency import are_lengths, type_and_shape, wrong_array
from workbench.archive.content.content import Content, Ends
from workbench.archive.fields import MASK, codec_for, compress_field, token_for
from workbench.archive.frame import Damaged, as_source
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.linear_combination import linear_combination
from workbench.archive.missing import COMMENT
from workbench.archive.plausibility import spread_of
from workbench.archive.preview import MOST_LEVEL, every
from workbench.archive.reading import StoredArray
from workbench.archive.request import Compression, Request
from workbench.archive.salvage import salvage, salvage_mask
from workbench.archive.slices import joined_ends
from workbench.archive.statistics.staged_sums import wrong_block
from workbench.archive.verify import Examination, decoded
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.codecs.staged import Staged
from workbench.data import Field
from workbench.data.labelled import FILLS, PACKING
from workbench.data.readers import left_out
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, PerSlice, Relative, SliceLimits
from workbench.guarantees.slice_ends import SliceEnds
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.executors import Executor
from workbench.slabs import Slices
from workbench.subdomains.sources import scratch_folder

VALUES = "values"
COORDINATES = "coordinates"   # the attribute of CF that names coordinates with other axes than their own
SHOWN = ("units", "standard_name", "long_name")   # attributes of a field's values that plotting programs read


class FieldExamination(Examination):
    """The verification of a field: where its mask is true, values must be bit-identical."""

    @classmethod
    def reachable(cls, given: Any, executor: Executor, folder: Path) -> Any:
        """The original where workers can read it."""
        return ChunkedField.of(given).reachable(executor, folder, "original")

    def arrays(self) -> dict[str, Inspected]:
        """The findings in the values and in the mask, and in what stands beside blocks for statistics."""
        found = self._compared()
        if isinstance(self.archive.codec, Staged) and not any(one.damage for one in found.values()):
            found[VALUES] += self.inspected(VALUES, _sums, (self.archive.data, self.archive.arrays.get(MASK)))
        return found

    def _compared(self) -> dict[str, Inspected]:
        if self.given is None:
            return super().arrays()
        archive, executor, original = self.archive, self.executor, ChunkedField.of(self.given)
        values, mask, promise = archive.data, archive.arrays.get(MASK), archive.certificate[VALUES]
        shape, step = values.layout.chunk_shape, functools.partial(_chunk, (values, mask, promise))
        checks.require_shape(values.layout, original.shape, original.dtype)
        if isinstance(promise.limit, SliceLimits):
            promise.limit.require_shape(original.shape)
        if isinstance(promise.bound, PerSlice):
            self._require_same_limits(promise, promise.bound, original)
        elif promise.bound is not None:
            self.require_same_limit(promise, promise.bound, original)
        found = map_parts(executor, "examine-values", step, shape, [original], together=not values.decoder.holds_gil)
        return {name: Inspected.joined([of[name] for of in found]) for name in found[0]}

    def require_same_limit(self, promise: Promise, bound: Bound, original: ChunkedField) -> None:
        """Refuse an original for which the bound has another limit."""
        pieces = [np.empty(0, original.dtype)]   # type: list[np.ndarray | None]
        if isinstance(bound, Relative):
            step, shape = functools.partial(_ends, self.archive.arrays.get(MASK)), self.archive.data.layout.chunk_shape
            pieces = map_parts(self.executor, "find-range", step, shape, [original])
        ends = [piece for piece in pieces if piece is not None]
        if len(ends) == len(pieces):   # otherwise the mask is damaged, as is seen afterwards
            checks.require_same_limit(promise, bound.limit(np.concatenate(ends)))

    def _require_same_limits(self, promise: Promise, stated: PerSlice, original: ChunkedField) -> None:
        """Refuse an original whose slices have other limits."""
        bound, shape, ends = stated.for_data(original.described), self.archive.data.layout.chunk_shape, None
        assert isinstance(bound.axis, int)   # since `for_data`
        bound.require_shape(original.shape)
        if bound.needs_ranges:
            step = functools.partial(_ends_of_slices, self.archive.arrays.get(MASK), bound.axis)
            pieces = map_parts(self.executor, "find-range", step, shape, [original])
            known = [piece for piece in pieces if piece is not None]
            if len(known) < len(pieces):   # the mask is damaged, as is seen afterwards
                return
            ends = joined_ends(bound.axis, original, known, shape)
        checks.require_same_limit(promise, bound.limits(original.shape[bound.axis], ends))


class FieldContent(Content):
    """What an archive knows of a field."""

    kind, words = "field", "a field"
    data, beside = VALUES, (MASK,)
    classes = (Field, ChunkedField)
    takes, told = "wb.Safeguard(...)", ("name", "spacing")
    examination = FieldExamination

    def require_fit(self, data: Any, metadata: Mapping[str, Any], request: Request) -> None:
        if isinstance(request.bound, PerSlice) or request.chunks is not None:
            field = ChunkedField.of(data).with_metadata(metadata)
            bound = request.bound.for_data(field.described)
            if isinstance(bound, PerSlice):
                bound.require_shape(field.shape)
            codec_for(field, replace(request, bound=bound))

    def compressed(self, call: Compression) -> Archive:
        field = ChunkedField.of(call.data).with_metadata(call.metadata)
        request = replace(call.request, bound=call.request.bound.for_data(field.described))
        codec_for(field, request)   # refuses what cannot be done, before a draft is begun
        with scratch_folder(call.scratch, call.executor) as folder, call.place(token_for(field, request)) as place:
            return compress_field(field, request, place, call.executor.within(folder), folder)

    def contradiction(self, attributes: Mapping[str, Any], layouts: Mapping[str, ArrayLayout], damaged: bool) -> str | None:
        values = layouts[VALUES]
        dimensions, name = len(values.shape), attributes.get("name")
        if values.dtype.kind not in "fiu" or dimensions > 4:
            return f"the values of a field are numbers of 1 to 4 dimensions; got {type_and_shape(values)}"
        if not are_lengths(attributes.get("spacing", [1.0] * dimensions), dimensions):
            return f"spacing must be {dimensions} positive numbers; got {attributes.get('spacing')!r:.80}"
        if not isinstance(name, str | None):
            return f"the name of a field must be text; got {name!r:.80}"
        return wrong_array(layouts.get(MASK), values.shape, "b")

    def axes(self, layout: ArrayLayout, about: Mapping[str, Any]) -> tuple[str, ...]:
        return axes_of_grid(layout, about)

    def shown(self, layout: ArrayLayout, about: Mapping[str, Any]) -> dict[str, str]:
        return shown_of_grid(layout, about)

    def assembled(self, archive: Archive, arrays: Mapping[str, np.ndarray]) -> Field:
        name, metadata = (archive.attributes.get(key) for key in ("name", "metadata"))
        return Field(backend.read_only(arrays[VALUES]), archive.spacing, name, arrays.get(MASK), metadata)

    def read(self, archive: Archive, region: Any) -> Field:
        slices = regions.slices_of(region, archive.data.layout.shape)
        arrays = archive.data_arrays.items()
        return self.assembled(archive, {name: regions.grid_part(stored, slices) for name, stored in arrays})

    def region(self, ends: Ends) -> list[slice]:
        return grid_region(ends)

    def salvaged(self, archive: Archive) -> tuple[Field, list[Damaged]]:
        values, gone, damage = salvage({VALUES: archive.data}, len(archive.data.layout.shape), VALUES)
        if gone.any():
            values[MASK] = gone
        if MASK in archive.arrays:
            masked, of_mask = salvage_mask(archive.arrays[MASK], values[VALUES], archive.data.layout.attributes)
            values[MASK], damage = masked | gone, [*damage, *of_mask]
        return self.assembled(archive, values), damage

    def lost(self, archive: Archive, data: Field, damage: Sequence[Damaged]) -> int:
        gone, damaged = np.zeros(data.shape, bool), {found.where for found in damage}
        for layout in (stored.layout for stored in archive.data_arrays.values()):
            if layout.name == VALUES or COMMENT in archive.data.layout.attributes:
                for index in layout.chunk_indices():
                    shard = layout.shard_key(layout.shard_of(index))
                    gone[layout.chunk_slices(index)] |= bool(damaged & {shard, layout.chunk_key(index)})
        return int(gone.sum())

    def source(self, archive: Archive) -> ChunkedField:
        return self.chunked_field(archive)

    def chunked_field(self, archive: Archive) -> ChunkedField:
        about = archive.attributes
        return ChunkedField(ArchivedArray(archive), archive.spacing, about.get("name"), metadata=about.get("metadata"))

    def combined(self, terms: Sequence[tuple[float, Archive]]) -> Archive:
        return linear_combination(terms)

    def preview(self, archive: Archive, level: int) -> Field:
        step = 1 << whole_number("level", level, least=0, most=MOST_LEVEL)
        found = self.assembled(archive, {name: every(stored, step) for name, stored in archive.data_arrays.items()})
        return Field(found.values, [length * step for length in found.spacing], found.name, found.mask, found.metadata)

    def original(self, given: Any) -> Any:
        return super().original(source_of(given))

    def arrays(self, data: Field) -> dict[str, Array]:
        return {VALUES: data.values} if data.mask is None else {VALUES: data.values, MASK: data.mask}

    def exported(self, data: Field) -> dict[str, Any]:
        return {**self.arrays(data), "spacing": data.spacing}

    def summary(self, data: Field) -> dict[str, Any]:
        valid = backend.to_host(data.valid)
        values = backend.to_host(data.values)[valid]
        return {
            "name": data.name,
            "shape": list(data.shape),
            "dtype": str(data.values.dtype),
            "spacing": list(data.spacing),
            "minimum": values.min().item() if values.size else None,
            "maximum": values.max().item() if values.size else None,
            "mean": _mean(values) if values.size else None,
            "invalid_or_masked": int(valid.size - valid.sum()),
            "left_out": left_out(data),
        }

    def scale(self, data: Field) -> tuple[dict[str, Any], np.ndarray]:
        spread, units = spread_of(data.values, data.mask), data.metadata.get("units")
        found = {"range": spread.range, "lower": spread.lower, "upper": spread.upper} if spread else {"range": None}
        ends = np.array([spread.lower, spread.upper] if spread else [0.0])
        return found | ({} if units is None else {"units": str(units)}), ends

    def size(self, archive: Archive) -> str:
        return f"field of {' x '.join(map(str, archive.data.layout.shape))}"


FIELD = FieldContent()


def axes_of_grid(layout: ArrayLayout, about: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the axes that came with the values, or numbers."""
    given, count = about.get("metadata", {}).get("dimensions"), len(layout.shape)
    names = [name for name in given if isinstance(name, str) and 0 < len(name) <= 64] if isinstance(given, list) else []
    return tuple(names) if len(names) == len(set(names)) == count else tuple(f"axis_{axis}" for axis in range(count))


def shown_of_grid(layout: ArrayLayout, about: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of the values that plotting programs read."""
    attributes = about.get("metadata", {}).get("attributes")
    own = attributes if isinstance(attributes, Mapping) and layout.name == VALUES else {}
    if layout.bare:   # its readers may have nothing but this
        kept = (*FILLS, *PACKING, *layout.attributes, COORDINATES)
        return {name: entry for name, entry in own.items() if name not in kept and not name.startswith("lossbench:")}
    return {name: own[name] for name in SHOWN if isinstance(own.get(name), str)}


def grid_region(ends: Ends) -> list[slice]:
    """A region that was given as text, as slices of grid points."""
    if not all(end.is_integer() for pair in ends for end in pair if end is not None):
        words = ",".join(":".join("" if end is None else f"{end:g}" for end in pair) for pair in ends)
        raise WorkbenchError(f"the region of a field must be whole numbers of grid points; got {words}")
    return [slice(*(None if end is None else int(end) for end in pair)) for pair in ends]


@dataclass(frozen=True)
class ArchivedArray:
    """The values of an archive of a field, decoded and checked where they are read: an array like any other."""

    archive: Archive

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along each axis."""
        return self.archive.data.layout.shape

    @property
    def dtype(self) -> np.dtype:
        """Their type."""
        return self.archive.data.layout.dtype

    @property
    def whole_chunks(self) -> tuple[int, ...]:
        """The shape of chunks: one is decoded as a whole, for any part of it."""
        return self.archive.data.layout.chunk_shape

    @property
    def is_masked(self) -> bool:
        """Whether parts may have masks."""
        return MASK in self.archive.arrays

    def __getitem__(self, place: Slices) -> Any:
        with as_source(self.archive.store.name):
            found = FIELD.read(self.archive, [(part.start, part.stop) for part in place])
        return found.values if found.mask is None else np.ma.MaskedArray(found.values, found.mask)


def _chunk(stored: tuple[StoredArray, StoredArray | None, Promise], number: int, original: Field) -> dict[str, Inspected]:
    """The findings in one chunk of a field, and in its mask, which says what must be bit-identical."""
    values, mask, promise = stored
    index = values.layout.index_of(number)
    found, hidden = {}, None
    if mask is not None:
        hidden, found[MASK] = decoded(mask, index)
        if original.mask is not None and hidden is not None:
            found[MASK] += checks.compared(mask.layout.chunk_key(index), hidden, backend.to_host(original.mask), None)
    here, of_values = decoded(values, index)
    if here is not None and (mask is None or hidden is not None):
        key, part = values.layout.chunk_key(index), backend.to_host(original.values)
        limit = promise.limit_at(values.layout.chunk_slices(index))
        of_values += checks.compared(key, here, part, limit, None, hidden)
    return {VALUES: of_values, **found}


def _sums(stored: tuple[StoredArray, StoredArray | None], index: Index) -> Inspected:
    """Whether the sums beside the blocks of a chunk are those of its values."""
    values, mask = stored
    wrong = wrong_block(values, index, values.chunk(index), None if mask is None else mask.chunk(index))
    return Inspected([(values.layout.chunk_key(index), wrong)] if wrong else [])


def _ends(mask: StoredArray | None, number: int, part: Field) -> np.ndarray | None:
    """The smallest and the largest value of a part that are finite and not masked in the archive.

    None if the mask is damaged there.
    """
    values, valid = backend.to_host(part.values), _valid(mask, number, part)
    if valid is None:
        return None
    kept = values[valid]
    return np.array([kept.min(), kept.max()]) if kept.size else kept


def _ends_of_slices(mask: StoredArray | None, axis: int, number: int, part: Field) -> SliceEnds | None:
    """The same for each slice along an axis."""
    valid = _valid(mask, number, part)
    return None if valid is None else SliceEnds.of(backend.to_host(part.values), axis, valid)


def _valid(mask: StoredArray | None, number: int, part: Field) -> np.ndarray | None:
    """Where the values of a part are finite and not masked in the archive; None if the mask is damaged there."""
    valid = np.isfinite(backend.to_host(part.values))
    if mask is None:
        return valid
    hidden, _ = decoded(mask, mask.layout.index_of(number))
    return None if hidden is None else valid & ~hidden


def _mean(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean(dtype=np.float64))
        return mean if math.isfinite(mean) else float((values / values.size).sum(dtype=np.float64))   # the sum overflows
