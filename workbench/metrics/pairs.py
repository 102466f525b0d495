"""The input of every comparison: two compatible data sets, and chunks or tiles of them that need little memory.

All metrics take the original first and the decoded second. Incompatible data are refused here, once; the metrics
themselves do not check again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data import Field, Particles
from workbench.data.taking import as_array
from workbench.errors import WorkbenchError, briefly

CHUNK_VALUES = 2**18          # 2 MB in float64: a handful of temporaries stays in a cache
DEVICE_CHUNK_VALUES = 2**22   # a GPU has to be kept busy


def field_pair(original: Field | Array, decoded: Field | Array) -> tuple[Field, Field]:
    """Two fields on one grid; arrays become fields, with their masks and the spacing of the other one.

    >>> field_pair(np.zeros(4), Field(np.ones(4), spacing=0.5))[0].spacing
    (0.5,)
    """
    first, second = (Field.of(given) for given in (original, decoded))
    if first.shape != second.shape:
        raise WorkbenchError(f"both fields must have the same shape; got {first.shape} and {second.shape}")
    backend.namespace(first.values, second.values)
    if not isinstance(decoded, Field):
        return first, Field(second.values, first.spacing, mask=second.mask)
    if not isinstance(original, Field):
        return Field(first.values, second.spacing, mask=first.mask), second
    if first.spacing != second.spacing:
        raise WorkbenchError(f"both fields must have the same spacing; got {first.spacing} and {second.spacing}")
    return first, second


def reshaped(field: Field, shape: tuple[int, ...] = (-1,)) -> Field:
    """The same values and mask in another shape, one-dimensional by default.

    >>> reshaped(Field(np.zeros((2, 3)))).shape
    (6,)
    """
    return Field(field.values.reshape(shape), mask=None if field.mask is None else field.mask.reshape(shape))


def as_measured(original: Field, decoded: Field) -> Field:
    """The decoded field, masked where the original is invalid, so that both are measured at the same points.

    >>> as_measured(Field([1.0, np.nan]), Field([1.0, 2.0])).mask.tolist()
    [False, True]
    """
    valid = original.valid
    return decoded if bool(valid.all()) else Field(decoded.values, decoded.spacing, decoded.name, ~valid)


def check_particles(original: Particles, decoded: Particles) -> None:
    """Refuse what is no set of particles, and two sets that differ in number, dimensions or box."""
    for name, given in (("original", original), ("decoded", decoded)):
        if not isinstance(given, Particles):
            raise WorkbenchError(f"{name} must be Particles; got {briefly(given)}")
    shapes = original.positions.shape, decoded.positions.shape
    if shapes[0] != shapes[1]:
        raise WorkbenchError(f"both sets must have the same number of particles; got shapes {shapes[0]} and {shapes[1]}")
    if original.box != decoded.box:
        raise WorkbenchError(f"both sets must have the same box; got {original.box} and {decoded.box}")
    backend.namespace(original.positions, decoded.positions)


def checked_order(order: Any, particles: Particles) -> Array | None:
    """The permutation of the decoded particles, checked, or None when they kept their order.

    >>> checked_order([1, 0], Particles([[0.0, 0.0], [1.0, 1.0]])).tolist()
    [1, 0]
    """
    if order is None:
        return None
    xp = backend.namespace(particles.positions)
    indices = as_array("order", order)
    backend.namespace(indices, particles.positions)
    count = len(particles)
    if indices.shape != (count,) or indices.dtype.kind not in "iu":
        raise WorkbenchError(f"order must be {count:,} indices; got {indices.dtype} of shape {indices.shape}")
    within = bool((indices >= 0).all()) and bool((indices < count).all())
    if not within or int(xp.bincount(indices.astype(xp.int64), minlength=count).max()) > 1:
        raise WorkbenchError(f"order must contain each of 0 to {count - 1:,} once; got other or repeated indices")
    return indices


def require_host(metric: str, array: Array) -> None:
    """Refuse a GPU array where only the CPU can compute."""
    if backend.on_device(array):
        raise WorkbenchError(f"{metric} must be given NumPy arrays; got CuPy arrays: copy them with .get() first")


def chunks(values: Array) -> Iterator[slice]:
    """Slices along the first axis that together cover an array, none with many more than `CHUNK_VALUES` values."""
    most = DEVICE_CHUNK_VALUES if backend.on_device(values) else CHUNK_VALUES
    rows = max(1, most // (values.size // len(values)))
    return (slice(start, start + rows) for start in range(0, len(values), rows))


def tiles(shape: Sequence[int], reach: int) -> Iterator[tuple[tuple[slice, ...], tuple[int, ...]]]:
    """Tiles that cover a grid: the slices of each, extended by `reach` points, and its own number of points.

    >>> list(tiles((300_000,), reach=2))
    [((slice(0, 262146, None),), (262144,)), ((slice(262144, 300000, None),), (37856,))]
    """
    edges = _edges(shape)
    for place in np.ndindex(*(-(-points // edge) for points, edge in zip(shape, edges, strict=True))):
        starts = [index * edge for index, edge in zip(place, edges, strict=True)]
        ends = [min(start + edge, points) for start, edge, points in zip(starts, edges, shape, strict=True)]
        wide = tuple(slice(start, min(end + reach, points)) for start, end, points in zip(starts, ends, shape, strict=True))
        yield wide, tuple(end - start for start, end in zip(starts, ends, strict=True))


def _edges(shape: Sequence[int]) -> tuple[int, ...]:
    """The edges of a tile of about `CHUNK_VALUES`: short axes whole, long ones cut alike."""
    edges, room = dict.fromkeys(range(len(shape)), 1), CHUNK_VALUES
    by_length = sorted(edges, key=lambda axis: shape[axis])
    for left, axis in zip(range(len(shape), 0, -1), by_length, strict=True):
        edges[axis] = max(1, min(shape[axis], round(room ** (1 / left))))
        room = max(1, room // edges[axis])
    return tuple(edges.values())


def valid_in(field: Field, place: Any) -> Array:
    """Where part of a field is finite and not masked."""
    valid = backend.namespace(field.values).isfinite(field.values[place])
    return valid if field.mask is None else valid & ~field.mask[place]
