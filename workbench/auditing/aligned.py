"""Two members brought into one form: axes in one order, the part that both have; and what had to be done for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.auditing.finding import FAILED, NOTE, WARNING, Finding
from workbench.auditing.places import axes_of
from workbench.run.chunked_field import ChunkedField
from workbench.slabs import Slices


@dataclass(frozen=True, eq=False)
class View:
    """The first values of an array along each axis, with its axes in this order; each part is read where it is needed."""

    values: Any
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """Their type."""
        return np.dtype(self.values.dtype)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of the chunks of the file."""
        chunks = getattr(self.values, "chunks", None)
        return None if chunks is None else tuple(chunks[axis] for axis in self.order)

    def __getitem__(self, place: Slices) -> Any:
        own = [slice(None)] * len(self.order)
        for axis, part in zip(self.order, place, strict=True):
            own[axis] = part
        return self.values[tuple(own)].transpose(self.order)


def aligned(
    member: str, original: ChunkedField, lossy: ChunkedField, names: tuple[Any, Any]
) -> tuple[ChunkedField, ChunkedField, list[Finding]] | Finding:
    """Both arrays in the form of the original, and findings; one finding alone where they cannot be compared.

    `names` are the two members, whose metadata name the axes.
    """
    findings = []
    own, other = axes_of(names[0], original.shape), axes_of(names[1], lossy.shape)
    if own != other and sorted(own) == sorted(other) and len(set(own)) == len(own):
        order = tuple(other.index(axis) for axis in own)
        lossy = _viewed(lossy, tuple(lossy.shape[axis] for axis in order), order)
        words = f"the dimensions are in another order, {', '.join(other)}; values are compared by their names"
        findings.append(Finding(WARNING, member, "dimension order", words, {"original": list(own), "lossy": list(other)}))
    elif own != other and other[:1] != ("axis_0",) and own[:1] != ("axis_0",):
        words = f"the dimensions have other names: {', '.join(other)} in place of {', '.join(own)}"
        findings.append(Finding(NOTE, member, "dimension names", words, {}))
    if original.shape == lossy.shape:
        return original, lossy, findings
    different_shapes = of_shapes(member, original.shape, lossy.shape, own)
    if len(original.shape) != len(lossy.shape) or sum(a != b for a, b in zip(original.shape, lossy.shape, strict=True)) > 1:
        return different_shapes
    common = tuple(map(min, original.shape, lossy.shape))
    axes_in_order = tuple(range(len(common)))
    first, second = (_viewed(field, common, axes_in_order) for field in (original, lossy))
    return first, second, [*findings, different_shapes]


def of_shapes(member: str, own: Sequence[int], other: Sequence[int], axes: Sequence[str]) -> Finding:
    """What is wrong with a shape."""
    evidence = {"original": list(own), "lossy": list(other)}
    if len(own) == len(other):
        different = [(axis, a, b) for axis, a, b in zip(axes, own, other, strict=True) if a != b]
        if len(different) == 1:
            axis, a, b = different[0]
            what = f"it ends after {b:,} of {a:,} along {axis}" if b < a else (
                f"it has {b:,} along {axis}, and the original {a:,}")
            return Finding(FAILED, member, "truncated" if b < a else "longer", what, evidence)
        if sorted(own) == sorted(other):
            words = f"the shape is {_by(other)} in place of {_by(own)}: its axes are swapped; nothing is compared"
            return Finding(FAILED, member, "axes swapped", words, evidence)
    words = f"the shape is {_by(other)} in place of {_by(own)}; nothing is compared"
    return Finding(FAILED, member, "shape", words, evidence)


def _by(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _viewed(field: ChunkedField, shape: tuple[int, ...], order: tuple[int, ...]) -> ChunkedField:
    """The field as far as this shape, with its axes in this order."""
    def view(values: Any) -> Any:
        if hasattr(values, "transpose"):   # arrays in memory and those of Dask make views of their own
            return values.transpose(order)[tuple(map(slice, shape))]
        return None if values is None else View(values, shape, order)

    spacing = [field.spacing[axis] for axis in order] if field.knows_spacing else None
    return ChunkedField(view(field.values), spacing, field.name, view(field.mask))
