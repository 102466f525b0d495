"""Whether an archive keeps its promise: recomputed from its bytes, by other means than those that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive.certificate import Promise
from workbench.archive.reading import StoredArray
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.check import check
from workbench.metrics.report import Check, Report


def undamaged(arrays: Mapping[str, StoredArray]) -> dict[str, Any]:
    """Figures of an archive whose every chunk decodes to what it was written from; else an error that names the damage."""
    damage = [found for stored in arrays.values() for found in stored.damage()]
    if damage:
        chunks = sum(stored.layout.chunk_count for stored in arrays.values())
        listed = "; ".join(f"{found.where}: {found.reason}" for found in damage[:8])
        more = f"; and {len(damage) - 8} more" if len(damage) > 8 else ""
        raise GuaranteeBroken(
            f"{len(damage):,} of {chunks:,} chunks are damaged, and the others can still be read: {listed}{more}"
        )
    return {
        "chunks": sum(stored.layout.chunk_count for stored in arrays.values()),
        "numbers": sum(int(np.prod(stored.layout.shape)) for name, stored in arrays.items() if name != "extents"),
    }


def kept(
    promise: Promise, stored: StoredArray, original: Any, period: tuple[float, ...] | None = None, mask: Any = None
) -> tuple[dict[str, Any], Check | None]:
    """Hold what an array decodes to against what it was made from; `original` is in the order of the archive."""
    name, layout = promise.array, stored.layout
    original = backend.to_host(original)
    if original.shape != layout.shape or original.dtype != layout.dtype:
        raise WorkbenchError(
            f"the original {name} must be {layout.dtype} of shape {layout.shape}, as in the archive; "
            f"got {original.dtype} of shape {original.shape}"
        )
    if promise.limit is None:
        return _same_bits(name, stored, original)
    if promise.bound is not None and promise.bound.limit(original, _valid(original, mask)) != promise.limit:
        raise GuaranteeBroken(
            f"the bound of {name} comes to {promise.limit.value!r} in the archive, but to "
            f"{promise.bound.limit(original, _valid(original, mask)).value!r} for this original: it is another one"
        )
    largest, broken = 0.0, 0
    for index, values in stored.chunks():
        slices = layout.chunk_slices(index)
        masked = None if mask is None else mask[slices]
        found = check(np.ascontiguousarray(original[slices]), values, promise.limit, period, masked)
        largest, broken = max(largest, found.largest_error), broken + int(found.broken.size)
    if broken:
        raise GuaranteeBroken(
            f"{broken:,} of {original.size:,} values of {name} break the promise ({promise.describe()}); the largest error "
            f"is {largest!r}, and {promise.limit.value!r} was promised: is this the original it was made from?"
        )
    return {f"{name}_max_error": largest}, Check(f"{name}_max_error", promise.limit.value, largest)


def permutation_of(stored: np.ndarray) -> np.ndarray:
    """A permutation that was stored, if it is one: else several decoded particles would pass for one of the original."""
    count = len(stored)
    found = np.zeros(count, bool)
    if stored.min() >= 0 and stored.max() < count:
        found[stored] = True
    if not found.all():
        raise GuaranteeBroken(f"the stored permutation must name each of {count:,} particles once, and does not")
    return stored


def report(subject: str, figures: Mapping[str, Any], checks: list[Check], notes: list[str]) -> Report:
    """The outcome, as a table."""
    return Report(subject, dict(figures), checks=tuple(checks), notes=tuple(notes))


def _same_bits(name: str, stored: StoredArray, original: np.ndarray) -> tuple[dict[str, Any], None]:
    for index, values in stored.chunks():
        expected = np.ascontiguousarray(original[stored.layout.chunk_slices(index)])
        if expected.tobytes() != values.tobytes():
            where = stored.layout.chunk_key(index)
            raise GuaranteeBroken(f"{name} must come back bit for bit, and did not in chunk {where}")
    return {}, None


def _valid(original: np.ndarray, mask: Any) -> np.ndarray:
    finite = np.isfinite(original)
    return finite if mask is None else finite & ~mask
