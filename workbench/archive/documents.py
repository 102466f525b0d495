"""How many bytes the documents of an archive take, asked of its writer before anything is encoded.

In small archives they are much of the whole, so predictions of ratios need them.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from workbench.archive import missing
from workbench.archive.certificate import Promise
from workbench.archive.chunk import CHECKSUMS, EncodedChunk
from workbench.archive.encoding import EncodedArray, even_chunks, exact_layout, layout_for
from workbench.archive.fields import MASK, FieldPlan
from workbench.archive.layout import ArrayLayout
from workbench.archive.members import nbytes_in_zip
from workbench.archive.request import Request, documents_for
from workbench.codecs import Codec, Columns, ParticleCodec
from workbench.data import Particles
from workbench.guarantees import Absolute, Bound, Relative

OF_CHECKSUM = 9.2   # bytes for the checksum of each file after the first: eight digits, deflated twice
TYPICAL, OF_RANGE = Absolute(0.0123), Relative(0.0123)
ENDS = np.array([-31.4159274, 27.1828175])   # of a range
HIDDEN = missing.Hidden((9.969209968386869e36,) * 2, (-31.4159274, 27.1828175))   # what a mask hides
FIGURES = {"largest_error": 0.012299999594688416}
CURVE = {"origin": [0.0123456789] * 3, "step": 0.0246, "last": [4064] * 3, "top": [99.98765432] * 3, "periodic": True}


@dataclass(frozen=True)
class Outline:
    """What an archive says of a field beside its values, without these."""

    shape: tuple[int, ...]
    dtype: np.dtype
    spacing: tuple[float, ...]
    name: str | None
    metadata: Mapping[str, Any] = field(hash=False)
    masked: bool

    @classmethod
    def of(cls, data: Any) -> Self:
        """The outline of a field, or of one in chunks."""
        dtype = data.dtype if hasattr(data, "dtype") else data.values.dtype
        return cls(data.shape, dtype, data.spacing, data.name, data.metadata, data.mask is not None)


def documents_nbytes(data: Outline | Particles, codec: Codec, order: str = "keep", relative: bool = False) -> float:
    """The bytes of the documents of an archive of these data with this codec and a bound, `relative` to the range or not.

    >>> from workbench.codecs import get
    >>> from workbench.data import Field
    >>> documents_nbytes(Outline.of(Field(np.zeros((64, 64)))), get("prequantised")) < 1000
    True
    """
    if isinstance(data, Outline):
        bound = OF_RANGE if relative else TYPICAL
        plan = FieldPlan.of(data.shape, data.dtype, codec, bound.limit(ENDS), Request(bound, codec), data)
        layout = plan.layout
        if data.masked:
            layout = dataclasses.replace(layout, attributes={**layout.attributes, **missing.attributes([HIDDEN])})
        exact = [exact_layout(MASK, data.shape, np.dtype(bool), layout.chunk_shape)] if data.masked else []
        return _nbytes([layout, *exact], plan.described(data), codec, data.metadata, bound)
    used = codec if isinstance(codec, ParticleCodec | Columns) else Columns(codec)
    count, axes = data.positions.shape
    chunk = even_chunks(count, used.chunk_values // axes)
    layout = layout_for("positions", (count, axes), data.positions.dtype, (chunk, axes), used)
    ends = (-(-count // chunk), 2, axes)
    companions = {name: (values.shape, values.dtype) for name, values in data.companions.items()}
    others = [exact_layout(name, shape, dtype, (chunk, *shape[1:])) for name, (shape, dtype) in companions.items()]
    free = {"curve": CURVE, "permutation": "00000000"} if order == "free" else {}
    described = {"kind": "particles", "order": order, "box": data.box, **free}
    extents = exact_layout("extents", ends, np.dtype(np.float64), ends)
    return _nbytes([layout, extents, *others], described, used, data.metadata)


def _nbytes(
    layouts: Sequence[ArrayLayout], described: Mapping[str, Any], codec: Codec, metadata: Mapping[str, Any],
    bound: Bound = TYPICAL,
) -> float:
    """The bytes of the documents of these arrays, the first of which has a bound."""
    limit = bound.limit(ENDS)
    arrays = []
    for number, layout in enumerate(layouts):
        chunk = EncodedChunk(b"", zlib.crc32(layout.name.encode()).to_bytes(4, "little"))
        promise = Promise(layout.name, None, None) if number else Promise(layout.name, bound, limit, (), FIGURES)
        attributes = {**layout.attributes, CHECKSUMS: chunk.checksum.hex()}
        arrays.append(EncodedArray(dataclasses.replace(layout, attributes=attributes), [chunk], promise))
    further = sum(layout.shard_count - 1 for layout in layouts)
    return nbytes_in_zip(documents_for(arrays, described, codec, metadata)) + OF_CHECKSUM * further
