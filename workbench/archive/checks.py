"""The single checks of an archive, and their outcome in words.

The comparison is the same as when the archive was written (`workbench.guarantees.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from workbench.archive.certificate import SHARE, Certificate, Promise, share_of
from workbench.archive.frame import Damaged
from workbench.archive.key import is_document
from workbench.archive.layout import ArrayLayout
from workbench.archive.reading import StoredArray
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Limit, Limits, SliceLimits
from workbench.guarantees.check import check
from workbench.guarantees.guarantee import Guarantee
from workbench.metrics.report import Check, Report

LISTED = 8   # damaged parts that a message names


@dataclass
class Inspected:
    """The findings in one chunk, or in all of an array; those of chunks add up."""

    damage: list[tuple[str, str]] = field(default_factory=list)   # keys and reasons
    different: list[str] = field(default_factory=list)   # chunks that must be bit-identical to the original and are not
    broken: int = 0
    largest_error: float = 0.0
    largest_share: float = 0.0   # of the limit
    compared: bool = False
    chunks: list[np.ndarray] = field(default_factory=list)   # the decoded values, if they are needed afterwards

    @classmethod
    def joined(cls, pieces: Sequence[Inspected]) -> Self:
        """The findings of all pieces together."""
        return cls(
            [damage for one in pieces for damage in one.damage], [key for one in pieces for key in one.different],
            sum(one.broken for one in pieces), max((one.largest_error for one in pieces), default=0.0),
            max((one.largest_share for one in pieces), default=0.0),
            any(one.compared for one in pieces), [chunk for one in pieces for chunk in one.chunks],
        )

    def __add__(self, other: Inspected) -> Inspected:
        return Inspected.joined([self, other])


def require_undamaged(damage: Sequence[Damaged], arrays: Mapping[str, StoredArray]) -> None:
    """An error that names the damage, if there is any."""
    if not damage:
        return
    chunks = sum(stored.layout.chunk_count for stored in arrays.values())
    listed = "; ".join(f"{found.where}: {found.reason}" for found in damage[:LISTED])
    more = f"; and {len(damage) - LISTED} more" if len(damage) > LISTED else ""
    documents = sum(is_document(found.where) for found in damage)
    keys = [found.where for found in damage if not is_document(found.where)]
    lost = sum(arrays[key.split("/")[0]].layout.chunks_at(key) for key in keys)
    what = [f"{lost:,} of {chunks:,} chunks are damaged"] if keys else []
    what += [f"{documents:,} documents are damaged"] if documents else []
    raise GuaranteeBroken(f"{' and '.join(what)}, and the others can still be read: {listed}{more}")


def report(
    certificate: Certificate, layouts: Mapping[str, ArrayLayout], found: Mapping[str, Inspected],
    kept: Callable[[], Mapping[type[Guarantee], Mapping[str, Any]]],
) -> Report:
    """The findings in arrays without damage; an error where one breaks its promise.

    `kept` then checks the guarantees beyond the bound, and returns their figures.
    """
    figures: dict[str, Any] = {
        "chunks": sum(layout.chunk_count for layout in layouts.values()),
        "numbers": sum(int(np.prod(layout.shape)) for layout in layouts.values() if layout.name != "extents"),
    }
    checks, notes = [Check("damaged_chunks", 0, 0)], [promise.describe() for promise in certificate.promises]
    compared = any(one.compared for one in found.values())
    for name, one in found.items():
        if one.compared:
            checks.append(_kept(certificate[name], one, layouts[name]))
            if certificate[name].limit is not None:
                figures[f"{name}_max_error"] = one.largest_error
        elif compared and layouts[name].role == "data":
            notes.append(f"{name}: checked against checksums only, because the original has none")
    held = kept()
    checks += [Check(guarantee.violations, 0, 0) for guarantee in held]
    if not compared:
        checked = " and ".join(["checksums", *(guarantee.certified for guarantee in held if guarantee.certified)])
        needed = "the combination of the originals; verify its sources" if certificate.derived else "the original"
        notes.append(f"checked against its {checked} only; the bound itself was not checked, which needs {needed}")
    figures |= {name: figure for of_one in held.values() for name, figure in of_one.items()}
    subject = "the archive and its original" if compared else "the archive"
    return Report(subject, figures, checks=tuple(checks), notes=tuple(notes))


def permutation_of(stored: np.ndarray) -> np.ndarray:
    """The stored permutation, which must be one: otherwise several decoded particles could match one of the original."""
    count = len(stored)
    found = np.zeros(count, bool)
    if stored.min() >= 0 and stored.max() < count:
        found[stored] = True
    if not found.all():
        raise GuaranteeBroken(f"the stored permutation must contain each of {count:,} particles once, and does not")
    return stored


def require_same_checksum(stated: Any, found: str) -> None:
    """Refuse an order with another checksum than the recorded one."""
    if stated is not None and stated != found:
        raise GuaranteeBroken(
            "these particles have another order along the curve than the original of the archive, so values of positions "
            "break the promise: pass the original"
        )


def require_shape(layout: ArrayLayout, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse an original of another shape or type than the array."""
    if shape != layout.shape or dtype != layout.dtype:
        raise WorkbenchError(
            f"the original {layout.name} must be {layout.dtype} of shape {layout.shape}, as in the archive; "
            f"got {dtype} of shape {shape}"
        )


def require_same_limit(promise: Promise, limit: Limits) -> None:
    """Refuse an original for which the bound has another value, in any slice."""
    if promise.limit is not None and limit != promise.limit:
        where, stated, own = _difference(promise.limit, limit)
        raise GuaranteeBroken(
            f"the bound of {promise.array}{where} is {stated} in the archive, but "
            f"{own} for this original: it is another one"
        )


def compared(
    key: str, values: np.ndarray, original: np.ndarray, limit: Limit | None, period: tuple[float, ...] | None = None,
    masked: np.ndarray | None = None,
) -> Inspected:
    """One chunk compared with its part of the original."""
    expected = np.ascontiguousarray(original)
    if limit is None:
        return Inspected(different=[] if expected.tobytes() == values.tobytes() else [key], compared=True)
    seen = check(expected, values, limit, period, masked)
    error = seen.largest_error
    return Inspected(
        broken=int(seen.broken.size), largest_error=error, largest_share=share_of(error, limit), compared=True
    )


def _difference(stated: Limits, own: Limits) -> tuple[str, str, str]:
    """Where two limits differ first, and both values in words."""
    if isinstance(stated, Limit) and isinstance(own, Limit):
        return "", repr(stated.value), repr(own.value)
    if isinstance(stated, SliceLimits) and isinstance(own, SliceLimits) and stated.axis == own.axis:
        pairs = enumerate(zip(stated.limits, own.limits, strict=False))
        for number, (one, other) in pairs:
            if one != other:
                return f" in slice {number} along axis {own.axis}", repr(one.value), repr(other.value)
    return "", _counted(stated), _counted(own)


def _counted(limits: Limits) -> str:
    return f"{len(limits.limits):,} along axis {limits.axis}" if isinstance(limits, SliceLimits) else "one for all slices"


def _kept(promise: Promise, found: Inspected, layout: ArrayLayout) -> Check:
    """The check of an array that keeps its promise; else an error."""
    name = promise.array
    if found.different:
        raise GuaranteeBroken(f"{name} must be bit-identical to the original, and is not in chunk {found.different[0]}")
    if promise.limit is None:
        return Check(f"{name}_differing", 0, 0)
    if found.broken:
        error, limit = repr(found.largest_error), promise.limit
        said = f"at most {max(limit.values)!r}" if isinstance(limit, SliceLimits) else repr(limit.value)
        raise GuaranteeBroken(
            f"{found.broken:,} of {int(np.prod(layout.shape)):,} values of {name} break the promise "
            f"({promise.describe()}); the largest error is {error}, and {said} was "
            "promised: is this the original that the archive was made from?"
        )
    if isinstance(promise.limit, SliceLimits):
        return Check(f"{name}_{SHARE}", 1.0, found.largest_share)
    return Check(f"{name}_max_error", promise.limit.value, found.largest_error)
