"""More particles, equally clustered: copies of one periodic snapshot side by side."""

from __future__ import annotations

import workbench as wb
from workbench import backend


def side_by_side(snapshot: wb.Particles, copies: int) -> wb.Particles:
    """`copies` of a periodic snapshot along each axis, on the machine where it lives."""
    assert snapshot.box is not None
    box = snapshot.box[0]
    xp = backend.namespace(snapshot.positions)
    offsets = xp.stack(xp.meshgrid(*[xp.arange(copies)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3) * box
    positions = snapshot.positions[None] + offsets.astype(snapshot.positions.dtype)
    return wb.Particles.wrapped(positions.reshape(-1, 3), copies * box)
