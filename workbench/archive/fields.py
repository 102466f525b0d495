"""A field as an archive: blocks of the grid, and the mask beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import codecs
from workbench.archive import encoding, provenance
from workbench.archive.archive import Archive
from workbench.archive.encoding import Part, Task, layout_of
from workbench.archive.request import Request, archive_of
from workbench.codecs import Codec, ParticleCodec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import PointwiseRelative, Safeguard


def compress_field(field: Field, request: Request) -> Archive:
    """The archive of a field."""
    whole_numbers = field.values.dtype.kind in "iu"
    chosen = request.chosen_codec("prequantised" if whole_numbers or "sz3" not in codecs.available() else "sz3")
    if isinstance(chosen, ParticleCodec):
        raise WorkbenchError(f"{chosen.id} is for particles; got {field!r}")
    if whole_numbers:
        _require_for_integers(field, request, chosen)
    if strangers := [kept for kept in request.keep if not isinstance(kept, Safeguard)]:
        raise WorkbenchError(f"keep of a field takes wb.Safeguard(...); got {strangers[0]!r}")
    whole = any(kept.needs_neighbours for kept in request.keep)
    shape = field.shape if whole else _block_shape(field.shape, request.chunk_values or chosen.chunk_values)
    units = provenance.plain({"units": field.metadata["units"]} if field.metadata.get("units") is not None else {})
    bound, limit = request.bound, request.bound.limit(field.values, field.valid)
    chosen = chosen.fitted(field.values, limit.tolerance)
    layout = layout_of("values", field.values, shape, chosen, **units)
    task = Task(layout, Part(field.values), chosen, bound, limit, mask=field.mask, keep=request.keep)
    arrays = [encoding.encode(task, request.progress)]
    if field.mask is not None:
        arrays.append(encoding.encode_exactly("mask", field.mask, shape))
    described: dict[str, Any] = {"kind": "field", "spacing": list(field.spacing), "name": field.name}
    return archive_of(arrays, described, chosen, field.metadata, request.notes)


def _require_for_integers(field: Field, request: Request, codec: Codec) -> None:
    """Refuse options that are only for floating-point numbers."""
    convert = "or convert with field.values.astype('float32')"
    if field.values.dtype.name not in codec.dtypes:
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
