"""A scalar field on a regular grid of one to four dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """Values on a grid, 1-D to 4-D, in float32 or float64; NaN and infinities are allowed and kept.

    `spacing` is the distance between neighbouring points along each axis (one number, or one per axis; 1 when not
    given). `mask` is true where a value means nothing: a fill value, or land in an ocean field.

    >>> Field(np.zeros((64, 32), np.float32), spacing=0.5, name="temperature")
    Field('temperature', 64 x 32, float32)
    """

    values: Array
    spacing: tuple[float, ...]
    name: str | None = None
    mask: Array | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        values: Any,
        spacing: float | Sequence[float] | None = None,
        name: str | None = None,
        mask: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        checked = _values(values)
        entries = {
            "values": checked,
            "spacing": _spacing(spacing, checked.ndim),
            "name": name,
            "mask": _mask(mask, checked),
            "metadata": MappingProxyType(dict(metadata or {})),
        }
        for key, value in entries.items():
            object.__setattr__(self, key, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of points along each axis."""
        return tuple(self.values.shape)

    @property
    def valid(self) -> Array:
        """Where the values are finite and not masked."""
        xp = backend.namespace(self.values)
        finite = xp.isfinite(self.values)
        return finite if self.mask is None else finite & ~self.mask

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        masked = "" if self.mask is None else f", {int(self.mask.sum()):,} masked"
        return f"Field({name}{' x '.join(map(str, self.shape))}, {self.values.dtype}{masked})"


def _values(given: Any) -> Array:
    array = given if backend.on_device(given) else np.asarray(given)
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise WorkbenchError(f"values must be float32 or float64; got {array.dtype}: convert with .astype(...)")
    if not 1 <= array.ndim <= 4:
        raise WorkbenchError(f"values must have 1 to 4 dimensions; got shape {array.shape}")
    if array.size == 0:
        raise WorkbenchError(f"values must not be empty; got shape {array.shape}")
    xp = backend.namespace(array)
    array = xp.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return backend.read_only(array)


def _spacing(given: float | Sequence[float] | None, dimensions: int) -> tuple[float, ...]:
    try:
        spacing = np.broadcast_to(np.asarray(1.0 if given is None else given, np.float64), dimensions)
    except (ValueError, TypeError):
        raise WorkbenchError(f"spacing must be one number or {dimensions} of them; got {given!r}") from None
    if not (np.isfinite(spacing).all() and (spacing > 0).all()):
        raise WorkbenchError(f"spacing must be positive and finite; got {given!r}")
    return tuple(spacing.tolist())


def _mask(given: Any, values: Array) -> Array | None:
    if given is None:
        return None
    mask = given if backend.on_device(given) else np.asarray(given)
    backend.namespace(mask, values)
    if mask.dtype != bool or mask.shape != values.shape:
        raise WorkbenchError(f"mask must be boolean of shape {values.shape}; got {mask.dtype} of shape {mask.shape}")
    return mask
