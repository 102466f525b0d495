"""Whether an archive keeps its promise: its chunks decoded once, and each compared with its checksum and the original.

The comparison is the same as when the archive was written (`workbench.guarantees.check`). Groups of particles are found
again (`clusters.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive.certificate import Certificate, Promise
from workbench.archive.frame import Damaged
from workbench.archive.key import is_document
from workbench.archive.layout import ArrayLayout
from workbench.archive.reading import Index, StoredArray
from workbench.backend import Array
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.check import check
from workbench.guarantees.guarantee import required
from workbench.metrics.report import Check, Report
from workbench.ordering import stored_index

LISTED = 8   # damaged parts that a message names


@dataclass(frozen=True, eq=False)
class Original:
    """The original values of one array, in the order of the archive."""

    values: np.ndarray
    period: tuple[float, ...] | None = None
    mask: np.ndarray | None = None


@dataclass(eq=False)
class Inspected:
    """The findings of one pass over the chunks of an array."""

    layout: ArrayLayout
    damage: list[Damaged] = field(default_factory=list)
    chunks: list[np.ndarray] = field(default_factory=list)   # in order, if the values are needed afterwards
    largest_error: float = 0.0
    broken: int = 0
    different: list[str] = field(default_factory=list)       # chunks that must be bit-identical and are not

    def values(self) -> np.ndarray:
        """The decoded array, of which all chunks are kept."""
        return np.concatenate(self.chunks)


@dataclass(frozen=True)
class Outcome:
    """Figures, checks and remarks of all arrays together."""

    figures: dict[str, Any]
    checks: list[Check]
    notes: list[str]


def inspected(stored: StoredArray, original: Original | None, promise: Promise | None, keep: bool = False) -> Inspected:
    """Decode each chunk once and compare it with its checksum and the original; `keep` holds on to the values."""
    found = Inspected(stored.layout)
    if original is not None and promise is not None:
        _require_like(original, stored.layout, promise)
    for index, values in stored.examined():
        if isinstance(values, Damaged):
            found.damage.append(values)
            continue
        if original is not None and promise is not None:
            slices = found.layout.chunk_slices(index)
            masked = None if original.mask is None else original.mask[slices]
            compare_chunk(found, index, values, original.values[slices], promise.limit, original.period, masked)
        if keep:
            found.chunks.append(values)
    return found


def require_undamaged(damage: Sequence[Damaged], arrays: Mapping[str, StoredArray]) -> None:
    """An error that names the damage, if there is any."""
    if not damage:
        return
    chunks = sum(stored.layout.chunk_count for stored in arrays.values())
    listed = "; ".join(f"{found.where}: {found.reason}" for found in damage[:LISTED])
    more = f"; and {len(damage) - LISTED} more" if len(damage) > LISTED else ""
    documents = sum(is_document(found.where) for found in damage)
    what = [f"{len(damage) - documents:,} of {chunks:,} chunks are damaged"] if len(damage) > documents else []
    what += [f"{documents:,} documents are damaged"] if documents else []
    raise GuaranteeBroken(f"{' and '.join(what)}, and the others can still be read: {listed}{more}")


def outcome(certificate: Certificate, found: Mapping[str, Inspected], originals: Mapping[str, Original]) -> Outcome:
    """Figures and checks of arrays without damage; an error where one breaks its promise."""
    layouts = [one.layout for one in found.values()]
    figures: dict[str, Any] = {
        "chunks": sum(layout.chunk_count for layout in layouts),
        "numbers": sum(int(np.prod(layout.shape)) for layout in layouts if layout.name != "extents"),
    }
    checks, notes = [Check("damaged_chunks", 0, 0)], []
    for name, one in found.items():
        if name in originals:
            checks.append(_kept(certificate[name], one))
            if certificate[name].limit is not None:
                figures[f"{name}_max_error"] = one.largest_error
        elif originals and one.layout.role == "data":
            notes.append(f"{name}: checked against checksums only, because the original has none")
    return Outcome(figures, checks, notes)


def report(
    found: Outcome, originals: Mapping[str, Original], kept: Mapping[str, Mapping[str, Any]], certificate: Certificate
) -> Report:
    """The outcome as a table; `kept` are figures of the guarantees beyond the bound that hold, by kind."""
    classes = [required(kind) for kind in kept]
    checks = [*found.checks, *(Check(one.violations, 0, 0) for one in classes)]
    notes = [promise.describe() for promise in certificate.promises] + found.notes
    if not originals:
        checked = " and ".join(["checksums", *(one.certified for one in classes if one.certified)])
        notes.append(f"checked against its {checked} only; the bound itself was not checked, which needs the original")
    subject = "the archive and its original" if originals else "the archive"
    figures = {name: figure for of_kind in kept.values() for name, figure in of_kind.items()}
    return Report(subject, {**found.figures, **figures}, checks=tuple(checks), notes=tuple(notes))


def permutation_of(stored: np.ndarray) -> np.ndarray:
    """The stored permutation, which must be one: otherwise several decoded particles could match one of the original."""
    count = len(stored)
    found = np.zeros(count, bool)
    if stored.min() >= 0 and stored.max() < count:
        found[stored] = True
    if not found.all():
        raise GuaranteeBroken(f"the stored permutation must contain each of {count:,} particles once, and does not")
    return stored


def checksum_of(order: Array) -> str:
    """The checksum of an order of particles: CRC-32 over 32-bit integers, or of 64 bits for more than 2^31 particles."""
    return f"{zlib.crc32(np.ascontiguousarray(backend.to_host(order), stored_index(len(order))).data):08x}"


def require_same_order(stated: Any, order: Array) -> None:
    """Refuse an order other than the recorded one."""
    if stated is not None:
        require_same_checksum(stated, checksum_of(order))


def require_same_checksum(stated: Any, found: str) -> None:
    """Refuse an order with another checksum than the recorded one."""
    if stated is not None and stated != found:
        raise GuaranteeBroken(
            "these particles have another order along the curve than the original of the archive, so values of positions "
            "break the promise: pass the original"
        )


def _require_like(original: Original, layout: ArrayLayout, promise: Promise) -> None:
    """Refuse an original of another shape or type, or one with another value of the bound."""
    values = original.values
    require_shape(layout, tuple(values.shape), values.dtype)
    if promise.bound is not None:
        require_same_limit(promise, promise.bound.limit(values, _valid(original)))


def require_shape(layout: ArrayLayout, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse an original of another shape or type than the array."""
    if shape != layout.shape or dtype != layout.dtype:
        raise WorkbenchError(
            f"the original {layout.name} must be {layout.dtype} of shape {layout.shape}, as in the archive; "
            f"got {dtype} of shape {shape}"
        )


def require_same_limit(promise: Promise, limit: Limit) -> None:
    """Refuse an original for which the bound has another value."""
    if promise.limit is not None and limit != promise.limit:
        raise GuaranteeBroken(
            f"the bound of {promise.array} is {promise.limit.value!r} in the archive, but "
            f"{limit.value!r} for this original: it is another one"
        )


def compare_chunk(
    found: Inspected,
    index: Index,
    values: np.ndarray,
    original: np.ndarray,
    limit: Limit | None,
    period: tuple[float, ...] | None = None,
    masked: np.ndarray | None = None,
) -> None:
    """Compare one chunk with its part of the original."""
    expected = np.ascontiguousarray(original)
    if limit is None:
        if expected.tobytes() != values.tobytes():
            found.different.append(found.layout.chunk_key(index))
        return
    seen = check(expected, values, limit, period, masked)
    found.largest_error = max(found.largest_error, seen.largest_error)
    found.broken += int(seen.broken.size)


def _kept(promise: Promise, found: Inspected) -> Check:
    """The check of an array that keeps its promise; else an error."""
    name = promise.array
    if found.different:
        raise GuaranteeBroken(f"{name} must be bit-identical to the original, and is not in chunk {found.different[0]}")
    if promise.limit is None:
        return Check(f"{name}_differing", 0, 0)
    if found.broken:
        raise GuaranteeBroken(
            f"{found.broken:,} of {int(np.prod(found.layout.shape)):,} values of {name} break the promise "
            f"({promise.describe()}); the largest error is {found.largest_error!r}, and {promise.limit.value!r} was "
            "promised: is this the original that the archive was made from?"
        )
    return Check(f"{name}_max_error", promise.limit.value, found.largest_error)


def _valid(original: Original) -> np.ndarray:
    finite = np.isfinite(original.values)
    return finite if original.mask is None else finite & ~original.mask
