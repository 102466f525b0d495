"""Raw floats without any header, as many simulations and compressors exchange them: the caller gives the shape."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.data.field import Field
from workbench.data.particles import Box, Particles
from workbench.data.readers.arrays import Spacing, particles_or_field
from workbench.data.readers.format import Format
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError


def read(
    source: Source,
    *,
    shape: int | Sequence[int] | None = None,
    dtype: Any = np.float32,
    kind: str | None = None,
    frame: int | None = None,
    box: Box = None,
    wrap: bool = False,
    spacing: Spacing = None,
) -> Particles | Field:
    """Raw floats of a shape, slowest axis first, and a type (">f4" for big-endian)."""
    if shape is None:
        raise WorkbenchError(f"{source.name} as raw floats needs their shape: pass shape=(nz, ny, nx), slowest axis first")
    axes, floats = _shape(shape), float_type(dtype)
    expected = math.prod(axes) * floats.itemsize
    if expected != source.size:
        raise WorkbenchError(
            f"shape {axes} of {floats.name} takes {expected:,} bytes; {source.name} has {source.size:,}: "
            "check shape= and dtype=, or whether the file is complete"
        )
    array = source.array(0, math.prod(axes), floats, "values").reshape(axes)
    return particles_or_field(array, kind, frame, box, spacing, metadata={"format": f"raw {floats.name}"}, wrap=wrap)


def float_type(given: Any) -> np.dtype:
    """A dtype of 4- or 8-byte floats.

    >>> float_type(">f4")
    dtype('>f4')
    """
    try:
        floats = np.dtype(given)
    except TypeError:
        floats = np.dtype(object)
    if floats.kind != "f" or floats.itemsize not in (4, 8):
        raise WorkbenchError(f"dtype must be float32 or float64, perhaps with a byte order as in '>f4'; got {given!r}")
    return floats


def what_it_may_be(source: Source) -> str:
    """Text, or raw floats with the shapes that its size allows: advice about a file of no known format."""
    if _is_text(source.head):
        return "It looks like text: numbers in columns are taken as arrays, as np.loadtxt(path) makes them"
    for floats in (np.dtype(np.float32), np.dtype(np.float64)):
        count, rest = divmod(source.size, floats.itemsize)
        if shapes := [] if rest else _even_shapes(count):
            options = " or ".join(f"shape={shape}" for shape in shapes)
            return f"Raw floats need their shape, slowest axis first: {count:,} of {floats.name} may be {options}"
    return "Raw floats need shape=(nz, ny, nx), slowest axis first"


def _even_shapes(count: int) -> list[tuple[int, ...]]:
    """The cube and the square of this many values, if there are any.

    >>> _even_shapes(262144), _even_shapes(1000), _even_shapes(7)
    ([(64, 64, 64), (512, 512)], [(10, 10, 10)], [])
    """
    sides = {axes: round(count ** (1 / axes)) for axes in (3, 2)}
    return [(side,) * axes for axes, side in sides.items() if side > 1 and side**axes == count]


def _is_text(head: bytes) -> bool:
    return not head.translate(None, bytes([*range(32, 127), *range(128, 256), *b"\t\r\n"]))


def _shape(given: Any) -> tuple[int, ...]:
    try:
        axes = tuple(operator.index(axis) for axis in (given if np.iterable(given) else (given,)))
    except TypeError:
        axes = ()
    if not axes or min(axes) < 1:
        raise WorkbenchError(f"shape must be whole numbers of at least 1; got {given!r}")
    return axes


RAW = Format("raw", "raw float32 or float64 (give shape=)", lambda source: False, read)
