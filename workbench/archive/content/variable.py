"""A variable: an array of any type and shape, stored as numbers on a grid (its form), and bounded like a field.

A bound is about the numbers that a user sees. A complex number is two, so each part gets a share of the bound; a number of
16 bits is rounded to its type when it is decoded, so the bound is finer by half of the coarsest step of the values. The
certificate states the bound that was asked for, the finer limit of what is stored, and the largest error of the numbers
that a user sees, which are compared with the original when they are encoded, and again when they are verified.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive import checks
from workbench.archive import region as regions
from workbench.archive.archive import Archive
from workbench.archive.assembling import stored_chunk
from workbench.archive.certificate import Promise
from workbench.archive.checks import Inspected
from workbench.archive.chunk import opened_chunk
from workbench.archive.chunking import WHOLE, Axes, Chunks, axes_of
from workbench.archive.content.consistency import type_and_shape
from workbench.archive.content.content import Content, Ends
from workbench.archive.content.field import VALUES, FieldExamination, axes_of_grid, grid_region, shown_of_grid
from workbench.archive.encoding import EncodedArray
from workbench.archive.fields import codec_for, compress_field, token_for
from workbench.archive.frame import Damaged
from workbench.archive.layout import ArrayLayout
from workbench.archive.request import Compression, Request
from workbench.archive.writing import Place
from workbench.backend import Array
from workbench.codecs.portable import Portable
from workbench.data import Field
from workbench.data.variable import Form, Variable
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Absolute, Bound, Exact, PerSlice, PointwiseRelative
from workbench.run.chunked_field import ChunkedField
from workbench.run.executors import Executor
from workbench.subdomains.sources import scratch_folder

UNITS_OF_TIME = {
    "D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds",
    "ns": "nanoseconds",
}


class VariableExamination(FieldExamination):
    """The verification of a variable: the numbers of the original, in the form of the archive, are compared."""

    @classmethod
    def reachable(cls, given: Any, executor: Executor, folder: Path) -> Any:
        """The original where workers can read it."""
        return given

    def arrays(self) -> dict[str, Inspected]:
        """The findings in the numbers; an error if the values that a user sees are beyond the bound."""
        if not isinstance(self.given, Variable):
            return super().arrays()
        self.variable, form, own = self.given, form_of(self.archive), Form.of(self.given.values)
        if own != form:
            got = f"{own.dtype} of shape {own.shape}"
            raise WorkbenchError(f"the original must be {form.dtype} of shape {form.shape}; got {got}")
        self.given = Field(form.numbers(self.variable.values, self.archive.data.layout.dtype == np.float32))
        inspected, promise = super().arrays(), self.archive.certificate[VALUES]
        if promise.bound is not None and promise.bound.eb > 0 and not inspected[VALUES].damage:
            error_within(promise.bound, self.variable, self.archive.decompress().values)
        return inspected

    def require_same_limit(self, promise: Promise, bound: Bound, original: ChunkedField) -> None:
        """Refuse an original for which the bound has another limit for its numbers."""
        numbers, finer = numbers_within(self.variable, form_of(self.archive), bound)
        checks.require_same_limit(promise, finer.limit(numbers))


class VariableContent(Content):
    """What an archive knows of a variable."""

    kind, words = "variable", "a variable"
    data = VALUES
    classes = (Variable,)
    takes, told = "nothing", ("name", "dtype", "shape")
    examination = VariableExamination

    def require_fit(self, data: Variable, metadata: Mapping[str, Any], request: Request) -> None:
        if isinstance(request.bound, PerSlice):
            raise WorkbenchError(f"wb.PerSlice is for fields of 1 to 4 axes; got {data!r}: give one bound for all values")
        if request.chunks is not None:
            chunks_of_numbers(request.chunks, Form.of(data.values), metadata)

    def compressed(self, call: Compression) -> Archive:
        variable, form = call.data, Form.of(call.data.values)
        numbers, bound = numbers_within(variable, form, call.request.bound)
        field = ChunkedField(Field(numbers).values, name=variable.name, metadata=call.metadata)
        chunks = call.request.chunks and chunks_of_numbers(call.request.chunks, form, call.metadata)
        request = replace(call.request, bound=bound, chunks=chunks)
        if bound.eb == 0 and not isinstance(request.codec, Portable):
            request = replace(request, codec="pcodec", speed="small")
        codec_for(field, request)
        about = {"kind": self.kind, "dtype": form.dtype, "shape": list(form.shape)}
        with scratch_folder(call.scratch, call.executor) as folder, call.place(token_for(field, request)) as place:
            promised = functools.partial(_promised, variable, form, call.request) if bound.eb > 0 else None
            return compress_field(field, request, place, call.executor.within(folder), folder, about, promised)

    def contradiction(self, attributes: Mapping[str, Any], layouts: Mapping[str, ArrayLayout], damaged: bool) -> str | None:
        dtype, given = attributes.get("dtype"), attributes.get("shape")
        values, form = layouts[VALUES], Form.stated(dtype, given)
        if form is None:
            return f"a variable has a type and a shape; got {dtype!r:.40} and {given!r:.40}"
        shape = form.stored_shape(values.dtype)
        if values.dtype.name not in form.stored_kinds() or shape not in (None, values.shape) or len(values.shape) > 4:
            return f"{form.dtype} of shape {form.shape} is not stored as {type_and_shape(values)}"
        name = attributes.get("name")
        return None if isinstance(name, str | None) else f"the name of a variable must be text; got {name!r:.80}"

    def axes(self, layout: ArrayLayout, about: Mapping[str, Any]) -> tuple[str, ...]:
        as_it_is = list(layout.shape) == list(about.get("shape", ()))
        return axes_of_grid(layout, about if as_it_is else {})

    def shown(self, layout: ArrayLayout, about: Mapping[str, Any]) -> dict[str, str]:
        """What other programs need to read dates and truth values from numbers, as CF and xarray define it."""
        return {**shown_of_grid(layout, about), **_meaning(about.get("dtype", ""))}

    def assembled(self, archive: Archive, arrays: Mapping[str, np.ndarray]) -> Variable:
        name, metadata = (archive.attributes.get(key) for key in ("name", "metadata"))
        return Variable(form_of(archive).values(arrays[VALUES]), name, metadata)

    def read(self, archive: Archive, region: Any) -> Variable:
        form, layout = form_of(archive), archive.data.layout
        slices = regions.slices_of(region, form.shape)
        if form.stored_shape(layout.dtype) is not None and layout.shape[: len(slices)] == form.shape:
            inner = tuple(slice(0, size) for size in layout.shape[len(slices) :])
            numbers = regions.grid_part(archive.data, (*slices, *inner))
            values = Form(form.dtype, tuple(part.stop - part.start for part in slices)).values(numbers)
        else:
            values = archive.decompress().values[slices]
        name, metadata = (archive.attributes.get(key) for key in ("name", "metadata"))
        return Variable(values, name, metadata)

    def salvaged(self, archive: Archive) -> tuple[Variable, list[Damaged]]:
        if damage := archive.data.damage():
            raise damage[0]
        return archive.decompress(), []

    def lost(self, archive: Archive, data: Any, damage: Sequence[Damaged]) -> int:
        return 0

    def region(self, ends: Ends) -> list[slice]:
        return grid_region(ends)

    def original(self, given: Any) -> Any:
        return given if isinstance(given, Variable) else Variable(given)

    def arrays(self, data: Variable) -> dict[str, Array]:
        return {VALUES: data.values}

    def exported(self, data: Variable) -> dict[str, Any]:
        return {VALUES: data.values.astype(str) if data.values.dtype.kind == "O" else data.values}

    def summary(self, data: Variable) -> dict[str, Any]:
        return {"name": data.name, "shape": list(data.shape), "dtype": Form.of(data.values).dtype}

    def scale(self, data: Variable) -> tuple[dict[str, Any], np.ndarray]:
        return {}, np.array([0.0])

    def size(self, archive: Archive) -> str:
        form = form_of(archive)
        return f"{form.dtype} of {' x '.join(map(str, form.shape)) or 'one value'}"


VARIABLE = VariableContent()


def _meaning(dtype: str) -> dict[str, str]:
    """The attributes that say what numbers stand for: dates since 1970, lengths of time, or truth values."""
    if dtype == "bool":
        return {"dtype": "bool"}
    kind, unit = dtype[1:2], UNITS_OF_TIME.get(dtype.partition("[")[2].rstrip("]"), "")
    if kind == "M" and unit:
        return {"units": f"{unit} since 1970-01-01", "calendar": "proleptic_gregorian"}
    return {"units": unit, "dtype": f"timedelta64[{dtype.partition('[')[2]}"} if kind == "m" and unit else {}


def form_of(archive: Archive) -> Form:
    """The type and shape of the array that an archive holds."""
    form = Form.stated(archive.attributes.get("dtype"), archive.attributes.get("shape"))
    assert form is not None   # the description was checked
    return form


def chunks_of_numbers(chunks: Chunks, form: Form, metadata: Mapping[str, Any]) -> Axes:
    """The shape of chunks of the stored numbers of an array, from what is asked for along its own axes."""
    axes = axes_of(chunks, form.shape, metadata.get("dimensions"))
    if not form.keeps_axes:
        raise WorkbenchError(f"{form.dtype} of shape {form.shape} is stored without its axes: leave chunks out")
    return (*axes, *([WHOLE] if form.has_parts else []))


def numbers_within(variable: Variable, form: Form, bound: Bound) -> tuple[np.ndarray, Bound]:
    """The numbers of an array that are stored, and the bound of these from which that of the array follows."""
    if bound.eb == 0:
        return form.numbers(variable.values), Exact()
    if not form.is_number:
        raise WorkbenchError(f"only numbers have a bound; got {variable!r} and {bound!r}: give wb.Exact()")
    if isinstance(bound, PointwiseRelative):
        if form.is_half:
            raise WorkbenchError(f"the bound of {form.dtype} must be wb.Absolute or wb.Relative; got {bound!r}")
        return form.numbers(variable.values), bound
    numbers = form.numbers(variable.values, widened=True)
    if not (form.is_half or form.is_complex):
        return numbers, bound
    limit = bound.for_data(Field([0.0], metadata=variable.metadata)).limit(numbers).value
    if form.is_complex:
        return numbers, Absolute(math.nextafter(limit * math.sqrt(0.5), 0) * (1 - 2**-50))
    finer = limit - _coarsest_step(numbers, form) / 2
    return (numbers, Absolute(finer)) if finer > 0 else (form.numbers(variable.values), Exact())


def error_within(bound: Bound, variable: Variable, decoded: np.ndarray) -> float:
    """The largest error of the values that a user sees; an error if one is beyond the bound.

    >>> error_within(Absolute(0.5), Variable(np.array([1 + 1j])), np.array([1.25 + 1j]))
    0.25
    """
    wide = np.complex128 if decoded.dtype.kind == "c" else np.float64
    original, found = variable.values.astype(wide), decoded.astype(wide)
    finite = np.isfinite(original)
    errors = np.abs(found[finite] - original[finite])
    if isinstance(bound, PointwiseRelative):
        allowed: Any = bound.eb * np.abs(original[finite])
    else:
        numbers = Form.of(variable.values).numbers(variable.values, widened=True)
        allowed = bound.for_data(Field([0.0], metadata=variable.metadata)).limit(numbers).value
    if not (errors <= allowed).all():
        raise GuaranteeBroken(f"{variable!r} must keep {bound.describe()}; the largest error is {float(errors.max()):.9g}")
    return float(errors.max()) if errors.size else 0.0


def _promised(variable: Variable, form: Form, request: Request, array: EncodedArray, place: Place) -> Promise:
    """The promise about the values that a user sees, which are decoded from what is stored and compared."""
    layout, stored = array.layout, request.written(array.layout, place)
    numbers = np.empty(layout.shape, layout.dtype)
    for index in layout.chunk_indices():
        opened = opened_chunk(layout, index, stored_chunk(stored.store, layout, index), None)
        numbers[layout.chunk_slices(index)] = stored.values_of(opened, index)
    stated = request.bound.for_data(Field([0.0], metadata=variable.metadata))
    assert array.promise is not None
    figures = {**array.promise.figures, "largest_error": error_within(stated, variable, form.values(numbers))}
    return replace(array.promise, bound=stated, figures=figures)


def _coarsest_step(numbers: np.ndarray, form: Form) -> float:
    """The largest distance to the next number of 16 bits, beyond the largest value."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    if not finite.size:
        return 0.0
    largest = np.nextafter(finite.max(), np.float32(np.inf))
    _, exponent = np.frexp(np.float64(largest))
    digits = {"float16": 11, "bfloat16": 8, "float8_e4m3fn": 4, "float8_e5m2": 3}[form.dtype]
    least = {"float16": -24, "bfloat16": -133, "float8_e4m3fn": -9, "float8_e5m2": -16}[form.dtype]
    return 2.0 ** max(int(exponent) + 1 - digits, least)
