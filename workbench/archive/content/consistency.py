"""The description of an archive, checked against its arrays before any of them is decoded.

Its documents are known to be whole, and each array to be no larger than its bytes allow. But anyone can write such
documents, so every number that is used in decoding is checked: a box of two lengths around points in space would let a
kernel read beyond its memory. The rules of each kind of content are its own; what several of them need is here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from workbench.archive.content import registry
from workbench.archive.layout import ArrayLayout
from workbench.archive.root import Description
from workbench.data.columns import require_names
from workbench.errors import WorkbenchError

FORMAT = 3   # raised when older versions could not read what is written


def require_consistent(described: Description, name: str, damaged: bool = False) -> None:
    """Refuse an archive (`name`, for messages) whose description and arrays do not belong together.

    When `damaged`, arrays other than the data may be missing.
    """
    attributes, layouts = described.attributes, described.layouts
    known, kind = attributes.get("format"), attributes.get("kind")
    content = registry.KINDS.get(kind) if isinstance(kind, str) else None
    if content is None or type(known) is not int or known != FORMAT:
        raise WorkbenchError(
            f"{name} must be an archive of format {FORMAT} with {registry.in_words()}; got format {known!r:.40}, "
            f"{kind!r:.40}: {reader_of(known)}"
        )
    if content.data not in layouts:
        raise WorkbenchError(f"{name} has no {content.data}, though it says that it holds {kind}")
    metadata = attributes.get("metadata")
    wrong = None if isinstance(metadata, Mapping) else f"metadata must map names to values; got {metadata!r:.80}"
    if wrong := wrong or content.contradiction(attributes, layouts, damaged):
        raise WorkbenchError(f"{name} contradicts itself: {wrong}")


def reader_of(known: Any) -> str:
    """What reads an archive that states another format.

    >>> reader_of(FORMAT + 1)
    'a later version of lossbench reads it (pip install --upgrade lossbench)'
    """
    if type(known) is int and FORMAT < known < 1000:
        return "a later version of lossbench reads it (pip install --upgrade lossbench)"
    return "another version of lossbench may read it"


def wrong_array(layout: ArrayLayout | None, shape: tuple[int, ...], kinds: str) -> str | None:
    """How an array differs from this shape and these kinds of numbers, if it is there and does."""
    if layout is None or (layout.shape == shape and layout.dtype.kind in kinds):
        return None
    words = {"b": "boolean", "f": "floating-point numbers", "iu": "integers", "fiu": "numbers"}[kinds]
    return f"{layout.name} must be {words} of shape {shape}; got {type_and_shape(layout)}"


def wrong_column(layouts: Mapping[str, ArrayLayout], count: int) -> str | None:
    """What is wrong with columns of particles: arrays of any name with a row for each of them; None if nothing is."""
    try:
        require_names(layouts)
    except WorkbenchError as error:
        return str(error)
    for name, layout in layouts.items():
        if len(layout.shape) not in (1, 2) or layout.shape[0] != count:
            return f"the column {name} must have shape ({count},) or ({count}, k); got {type_and_shape(layout)}"
    return None


def type_and_shape(layout: ArrayLayout) -> str:
    """An array in words."""
    return f"{layout.dtype} of shape {layout.shape}"


def are_lengths(given: Any, count: int) -> bool:
    """Whether these are so many positive numbers."""
    return isinstance(given, list) and len(given) == count and all(is_finite(x) and x > 0 for x in given)


def is_finite(given: Any) -> bool:
    """Whether this is a number that arithmetic can use."""
    return isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= sys.float_info.max
