"""Grids in HDF5 files of no particular layout, such as the `native_fields` of Nyx: any array of floats, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import backend
from workbench.data.field import Field
from workbench.data.labelled import PACKING
from workbench.data.readers import cf, hdf5
from workbench.data.readers.arrays import Spacing
from workbench.data.readers.format import Format
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.options import chosen_name
from workbench.data.readers.source import Source, plain

CONVENTIONS = ("_FillValue", "missing_value", "valid_range", "valid_min", "valid_max", "_Unsigned", *PACKING)


def read(source: Source, *, name: str | None = None, scaled: bool | None = None, spacing: Spacing = None) -> Field:
    """The array of that name; without one, the only array, or the only one with the most axes.

    Attributes for masks and packing have their NetCDF meaning.
    """
    with hdf5.opened(source) as file:
        shapes = _shapes(file)
        chosen = chosen_name(name, shapes, "file")
        dataset = file[chosen]
        hdf5.refuse_missing_sources(dataset, source.path)
        hdf5.require_room(dataset, chosen, source)
        described = {key: dataset.attrs[key] for key in CONVENTIONS if key in dataset.attrs}
        found = cf.decoded(dataset[()], {key: _number(value) for key, value in described.items()}, scaled)
        metadata = {
            "format": "HDF5 grid",
            "path": chosen,
            "units": plain(dataset.attrs.get("units", dataset.attrs.get("unit", "not stated"))),   # "unit" is H5MD's
            **found.metadata,
            "attributes": hdf5.attributes(dataset),
            "file_attributes": _description(file),
        }
        steps = _nyx_spacing(file, dataset.shape) if spacing is None else spacing
    metadata = noted(metadata, named("data set", shapes.keys() - {chosen}))
    return Field(backend.read_only(found.values), steps, chosen.rpartition("/")[2], found.mask, metadata)


def _number(given: Any) -> Any:
    """An attribute as NetCDF has it: one number where HDF5 keeps a row of one; text as text."""
    value = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
    return value[0] if isinstance(value, np.ndarray) and value.shape == (1,) else value


def _shapes(file: Any) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}

    def note(path: str, node: Any) -> None:
        shape = getattr(node, "shape", None)
        if shape and node.dtype.kind in "fiu" and node.size and isinstance(path, str):   # bytes are no text
            shapes[path] = tuple(shape)

    file.visititems(note)
    return shapes


def _description(file: Any) -> dict[str, Any]:
    """The attributes of the file and of its groups at the top, where Nyx keeps cosmology and domain."""
    groups = {key: hdf5.attributes(node) for key, node in file.items() if not hasattr(node, "shape")}
    return {**hdf5.attributes(file), **{key: entries for key, entries in groups.items() if entries}}


def _nyx_spacing(file: Any, shape: tuple[int, ...]) -> list[float] | None:
    """The spacing from the domain size that Nyx stores; for other files the caller must give it."""
    domain = hdf5.attributes(file["domain"]) if "domain" in file else {}
    size, points = domain.get("size"), domain.get("shape")
    if isinstance(size, list) and points == list(shape) and len(size) == len(shape):
        return [float(np.float64(length) / count) for length, count in zip(size, shape, strict=True)]
    return None


HDF5_GRID = Format("hdf5-grid", "HDF5 grid (Nyx and others)", lambda source: hdf5.kind(source) == "grid", read)
