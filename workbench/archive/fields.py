"""A field as an archive: blocks of the grid, and the mask beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from workbench import backend
from workbench.archive import choice, encoding, provenance
from workbench.archive.archive import Archive
from workbench.archive.encoding import Part, Slices, Task, layout_for
from workbench.archive.layout import ArrayLayout
from workbench.archive.request import Request, archive_of, require_about
from workbench.backend import Array
from workbench.codecs import Codec, ParticleCodec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, PointwiseRelative

MASK = "mask"

Values = tuple[Array, Array | None]   # and where they are masked


def compress_field(field: Field, request: Request) -> Archive:
    """The archive of a field."""
    codec, limit = codec_for(field, field.values.dtype, request), request.bound.limit(field.values, field.valid)
    codec, request = settled(codec, request, field.shape, field.values.dtype, limit, partial(_part, field))
    plan = Plan.of(field.shape, field.values.dtype, codec.fitted(field.values, limit.tolerance), limit, request, field)
    arrays = [encoding.encode(plan.task(Part(field.values), field.mask), request.progress)]
    if field.mask is not None:
        arrays.append(encoding.encode_exactly(MASK, field.mask, plan.layout.chunk_shape))
    return archive_of(arrays, plan.described(field), plan.codec, field.metadata, request)


class Described(Protocol):
    """What an archive says about a field beside its values."""

    @property
    def spacing(self) -> tuple[float, ...]:
        """The distance between neighbouring points along each axis."""

    @property
    def name(self) -> str | None:
        """Its name."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Anything else."""


@dataclass(frozen=True)
class Plan:
    """What is decided about a field before any value is encoded; it depends on shape, type and limit alone."""

    layout: ArrayLayout
    codec: Codec
    limit: Limit
    request: Request

    @classmethod
    def of(
        cls, shape: tuple[int, ...], dtype: np.dtype, codec: Codec, limit: Limit, request: Request, field: Described
    ) -> Self:
        """The plan for a field of this shape and type."""
        whole = any(kept.needs_neighbours for kept in request.keep)
        chunk_shape = shape if whole else _block_shape(shape, request.chunk_values or codec.chunk_values)
        units = field.metadata.get("units")
        attributes = provenance.plain({} if units is None else {"units": units})
        return cls(layout_for("values", shape, dtype, chunk_shape, codec, **attributes), codec, limit, request)

    def task(self, part: Callable[[Slices], Array], mask: Array | None = None) -> Task:
        """The values to encode; `part` returns those of a chunk."""
        return Task(self.layout, part, self.codec, self.request.bound, self.limit, mask=mask, keep=self.request.keep)

    def described(self, field: Described) -> dict[str, Any]:
        """The description of the archive."""
        spacing = {} if set(field.spacing) == {1.0} else {"spacing": list(field.spacing)}
        return {"kind": "field", **spacing, "name": field.name}


def codec_for(field: Any, dtype: np.dtype, request: Request) -> Codec:
    """The codec of a field of this type; refused if it cannot do what is requested."""
    chosen = request.chosen_codec(choice.usual(dtype, request.speed))
    if isinstance(chosen, ParticleCodec):
        raise WorkbenchError(f"{chosen.id} is for particles; got {field!r}")
    if dtype.kind in "iu":
        _require_for_integers(field, dtype, request, chosen)
    require_about("field", request.keep)
    return chosen


def settled(
    codec: Codec, request: Request, shape: tuple[int, ...], dtype: np.dtype, limit: Limit, part: Callable[[Slices], Values]
) -> tuple[Codec, Request]:
    """The codec after trials on the middle of a field, and the request with what came of them in words."""
    on_trial = choice.needs_trial(request.codec, request.speed, dtype, limit)
    if not on_trial and type(codec).tuned is Codec.tuned:
        return codec, request
    values, mask = part(choice.middle(shape))
    if not on_trial or backend.on_device(values):
        codec, words = choice.worthwhile(codec, values, mask, limit, math.prod(shape))
        return choice.tuned(codec, values, mask, limit), replace(request, choice=words)
    codec, words = choice.chosen(values, mask, limit)
    return codec, replace(request, choice=words)


def _part(field: Field, place: Slices) -> Values:
    return field.values[place], None if field.mask is None else field.mask[place]


def _require_for_integers(field: Any, dtype: np.dtype, request: Request, codec: Codec) -> None:
    """Refuse options that are only for floating-point numbers."""
    convert = "or convert with field.values.astype('float32')"
    if dtype.name not in codec.dtypes:
        raise WorkbenchError(
            f"{codec.id} does not take integers; got {field!r}: use codec='auto', 'prequantised' or 'pcodec', {convert}"
        )
    if isinstance(request.bound, PointwiseRelative) and request.bound.eb > 0:
        got = f"got {request.bound!r}: use one of them, {convert}"
        raise WorkbenchError(f"the bound of integers must be wb.Absolute or wb.Relative; {got}")
    if request.keep:
        raise WorkbenchError(f"keep must be empty for integers; got {request.keep[0]!r}: leave it out, {convert}")


def _block_shape(shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The shape of blocks of at most `most` values: the longest side is halved until they fit."""
    block = list(shape)
    while np.prod(block, dtype=np.float64) > most:
        longest = int(np.argmax(block))
        block[longest] = -(-block[longest] // 2)
    return tuple(block)
