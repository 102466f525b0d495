"""A bare array without a header: particles or a field, by its shape unless the caller gives its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.data.field import Field
from workbench.data.particles import Box, Particles
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.options import chosen_frame, particles
from workbench.errors import WorkbenchError

Spacing = float | Sequence[float] | None


def particles_or_field(
    array: np.ndarray,
    kind: str | None = None,
    frame: int | None = None,
    box: Box = None,
    spacing: Spacing = None,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    wrap: bool = False,
) -> Particles | Field:
    """Floats of shape (N, 2) or (N, 3) are particles, all other arrays are fields; `kind` overrides this.

    Particles that are such by their shape alone say so in their metadata.

    A trajectory (frames, N, 3) is a field unless `kind` is "particles"; then `frame` selects a frame.

    >>> particles_or_field(np.zeros((5, 3), np.float32))
    Particles(5 in 3-D, float32, open)
    >>> particles_or_field(np.zeros((5, 3), np.float32), kind="field")
    Field(5 x 3, float32)
    >>> particles_or_field(np.zeros((9, 5, 3), np.float32), kind="particles", frame=8)
    Particles(5 in 3-D, float32, open)
    """
    if kind not in (None, "particles", "field"):
        raise WorkbenchError(f"kind must be 'particles' or 'field'; got {kind!r}")
    pointlike = array.ndim == 2 and array.shape[1] in (2, 3) and array.dtype.kind == "f"
    if kind == "particles" or (kind is None and pointlike):
        _refuse("particles", "field", spacing=spacing)
        if kind is None:
            by_shape = f"particles, by the shape (N, {array.shape[1]}) of an array of floats; kind='field' reads a field"
            metadata = {**(metadata or {}), "kind": by_shape}
        others = other_frames(frame or 0, len(array)) if array.ndim == 3 else []
        return particles(_one_frame(array, frame), None, box, metadata=noted(metadata or {}, others), wrap=wrap)
    _refuse("a field", "particles", box=box, frame=frame, wrap=wrap or None)
    return Field(backend.read_only(array), spacing, name, metadata=metadata)


def _one_frame(array: np.ndarray, frame: int | None) -> np.ndarray:
    if array.ndim == 3:
        return array[chosen_frame(0 if frame is None else frame, len(array))]
    if frame is not None:
        raise WorkbenchError(f"frame needs a trajectory of shape (frames, N, 3); this array has shape {array.shape}")
    return array


def _refuse(this: str, other: str, **options: Any) -> None:
    for option, value in options.items():
        if value is not None:
            raise WorkbenchError(f"{option} makes no sense for {this}: leave it out, or say kind={other!r}")
