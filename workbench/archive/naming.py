"""The metadata of arrays for Zarr and xarray: the names of their axes, and units.

xarray opens a Zarr group when every array names its axes. Names that a field brought from its file are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from workbench.archive.layout import ArrayLayout

PARTICLE_AXES = {
    "positions": ("particle", "axis"),
    "velocities": ("particle", "axis"),
    "ids": ("particle",),
    "masses": ("particle",),
    "permutation": ("particle",),
    "extents": ("chunk", "end", "axis"),
}
SHOWN = ("units", "standard_name", "long_name")   # attributes of a field's values that plotting programs read


def named(layout: ArrayLayout, kind: str, metadata: Mapping[str, Any]) -> ArrayLayout:
    """The layout with the names of its axes, and the units of its values.

    >>> import numpy as np
    >>> layout = named(ArrayLayout("ids", (8,), (8,), np.dtype("int64")), "particles", {})
    >>> layout.dimension_names, layout.role
    (('particle',), 'data')
    """
    axes = PARTICLE_AXES.get(layout.name) if kind == "particles" else _axes(metadata, len(layout.shape))
    if layout.role == "model":
        axes = tuple(f"{layout.name}_{axis}" for axis in range(len(layout.shape)))
    shown = _shown(metadata) if layout.name == "values" else {}
    return dataclasses.replace(layout, attributes={**shown, **layout.attributes}, dimension_names=axes)


def _axes(metadata: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """The names of a field's axes: those of its file, or default ones."""
    given = metadata.get("dimensions")
    names = [name for name in given if isinstance(name, str) and 0 < len(name) <= 64] if isinstance(given, list) else []
    if len(names) == len(set(names)) == count:
        return tuple(names)
    return tuple(f"axis_{axis}" for axis in range(count))


def _shown(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Units and names of a field, from the metadata of its file."""
    attributes = metadata.get("attributes")
    found = attributes if isinstance(attributes, Mapping) else {}
    return {name: found[name] for name in SHOWN if isinstance(found.get(name), str)}
