"""The description of an archive, checked against its arrays before any of them is decoded.

Its documents are known to be whole, and each array to be no larger than its bytes allow. But anyone can write such
documents, so every number that is used in decoding is checked here: a box of two lengths around points in space would let a
kernel read beyond its memory.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from workbench.archive.layout import ArrayLayout
from workbench.archive.root import Description
from workbench.codecs.curve import MOST_CELL_BITS, Lattice
from workbench.data.particles import COMPANIONS
from workbench.errors import WorkbenchError

FORMAT = 3   # raised when older versions could not read what is written
DATA = {"particles": "positions", "field": "values"}
DATA_ARRAYS = {"particles": ("positions", *COMPANIONS), "field": ("values", "mask")}


def require_consistent(described: Description, name: str, damaged: bool = False) -> None:
    """Refuse an archive (`name`, for messages) whose description and arrays do not belong together.

    When `damaged`, arrays other than the data may be missing.
    """
    attributes, layouts = described.attributes, described.layouts
    known, kind = attributes.get("format"), attributes.get("kind")
    fits = type(known) is int and known == FORMAT and isinstance(kind, str) and kind in DATA
    if not fits:
        raise WorkbenchError(
            f"{name} must be an archive of format {FORMAT} with particles or a field; got format {known!r:.40}, "
            f"{kind!r:.40}: another version of lossbench may read it"
        )
    if DATA[str(kind)] not in layouts:
        raise WorkbenchError(f"{name} has no {DATA[str(kind)]}, though it says that it holds {kind}")
    wrong = _wrong_metadata(attributes) or (_wrong_particles if kind == "particles" else _wrong_field)(attributes, layouts)
    if not wrong and kind == "particles" and "extents" not in layouts and not damaged:
        wrong = "there are positions, but no extents"
    if wrong:
        raise WorkbenchError(f"{name} contradicts itself: {wrong}")


def curve_from(described: Any, dimensions: int) -> Lattice:
    """The curve along which particles were sorted, as an archive describes it."""
    try:
        names, given = ("origin", "last", "top"), dict(described)
        origin, last, top = (tuple(given[name]) for name in names)
        numbers = [*origin, *last, *top, given["step"]]
        fits = all(len(axes) == dimensions for axes in (origin, last, top)) and all(map(_is_finite, numbers))
        fits = fits and given["step"] > 0 and all(isinstance(n, int) and 0 <= n < 1 << MOST_CELL_BITS for n in last)
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise WorkbenchError("the archive does not state the curve along which its particles are sorted")
    ends = tuple(map(float, origin)), tuple(map(float, top))
    return Lattice(ends[0], float(given["step"]), last, ends[1], bool(given.get("periodic")))


def _wrong_metadata(attributes: Mapping[str, Any]) -> str | None:
    found = attributes.get("metadata")
    return None if isinstance(found, Mapping) else f"metadata must map names to values; got {found!r:.80}"


def _wrong_field(attributes: Mapping[str, Any], layouts: Mapping[str, ArrayLayout]) -> str | None:
    """The contradiction in the description of a field, if any."""
    values = layouts["values"]
    dimensions, name = len(values.shape), attributes.get("name")
    if values.dtype.kind not in "fiu" or dimensions > 4:
        return f"the values of a field are numbers of 1 to 4 dimensions; got {_described(values)}"
    if not _are_lengths(attributes.get("spacing", [1.0] * dimensions), dimensions):
        return f"spacing must be {dimensions} positive numbers; got {attributes.get('spacing')!r:.80}"
    if not isinstance(name, str | None):
        return f"the name of a field must be text; got {name!r:.80}"
    return _wrong_array(layouts.get("mask"), values.shape, "b")


def _wrong_particles(attributes: Mapping[str, Any], layouts: Mapping[str, ArrayLayout]) -> str | None:
    """The contradiction in the description of particles, if any."""
    positions = layouts["positions"]
    if len(positions.shape) != 2 or positions.shape[1] not in (2, 3) or positions.dtype.kind != "f":
        return f"positions are floating-point numbers of shape (N, 2) or (N, 3); got {_described(positions)}"
    count, dimensions = positions.shape
    box, order = attributes.get("box"), attributes.get("order")
    if box is not None and not _are_lengths(box, dimensions):
        return f"box must be null or {dimensions} positive lengths; got {box!r:.80}"
    if order not in ("keep", "free"):
        return f"order must be 'keep' or 'free'; got {order!r:.80}"
    mass = attributes.get("mass")
    if mass is not None and not (_is_finite(mass) and mass >= 0):
        return f"mass must be a number, finite and not negative; got {mass!r:.80}"
    split = [name for name in ("positions", "velocities") if name in layouts and layouts[name].chunk_grid[1:] != (1,)]
    return (
        _wrong_array(layouts.get("velocities"), positions.shape, "fiu")
        or _wrong_array(layouts.get("ids"), (count,), "iu")
        or _wrong_array(layouts.get("masses"), (count,), "f")
        or _wrong_array(layouts.get("permutation"), (count,), "iu")
        or _wrong_array(layouts.get("extents"), (positions.chunk_grid[0], 2, dimensions), "f")
        or (f"a chunk of {split[0]} must hold all coordinates of its particles" if split else None)
    )


def _wrong_array(layout: ArrayLayout | None, shape: tuple[int, ...], kinds: str) -> str | None:
    if layout is None or (layout.shape == shape and layout.dtype.kind in kinds):
        return None
    words = {"b": "boolean", "f": "floating-point numbers", "iu": "integers", "fiu": "numbers"}[kinds]
    return f"{layout.name} must be {words} of shape {shape}; got {_described(layout)}"


def _described(layout: ArrayLayout) -> str:
    return f"{layout.dtype} of shape {layout.shape}"


def _are_lengths(given: Any, count: int) -> bool:
    return isinstance(given, list) and len(given) == count and all(_is_finite(x) and x > 0 for x in given)


def _is_finite(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= sys.float_info.max
