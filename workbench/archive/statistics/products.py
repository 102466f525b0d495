"""Norms of a field, and its dot product with another one on the same grid, between proven ends.

Norms obey the triangle inequality: that of the original is within the norm of the errors of that of the decoded values. A
product of original values is between the least and the largest product of the ends of their intervals.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics import sums
from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart
from workbench.archive.statistics.envelopes import lower, upper
from workbench.archive.statistics.figure import VALUES, Statistic, interval
from workbench.archive.statistics.selection import part_of_grid, require_field
from workbench.archive.statistics.sums import Ends, Sums
from workbench.errors import WorkbenchError, briefly

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

ORDERS = (1, 2, math.inf)
ROUNDED = Fraction(1, 2**44)   # more than the roundings of a product, of a row of sums and of their sum


def norm(archive: Archive, order: float, region: Any = None) -> Statistic:
    """The sum of magnitudes (1), the root of the sum of squares (2), or the largest magnitude (infinity)."""
    if isinstance(order, bool) or np.ndim(order) or order not in ORDERS:
        raise WorkbenchError(f"order must be 1, 2 or math.inf; got {briefly(order)}")
    field = FieldPart(archive, part_of_grid(archive, region))
    if order == 1:
        parts = [part for several in field.each(_magnitudes) for part in several]
        ends = sums.total(parts)
    else:
        parts = [part for several in field.each(ChunkPart.sums) for part in several]
        ends = _root_of_squares(parts) if order == 2 else _largest(parts)
    sums.mean(parts)   # refuses fields without valid values
    return field.statistic(f"norm {order:g}", (max(ends[0], Fraction(0)), ends[1]), sum(part.count for part in parts))


def dot(archive: Archive, other: Archive, region: Any = None) -> Statistic:
    """The sum of the products of two fields, where both are valid."""
    if not hasattr(other, "content"):
        raise WorkbenchError(f"dot takes an archive of a field; got {briefly(other)}")
    require_field(other)
    shapes = archive.data.layout.shape, other.data.layout.shape
    if shapes[0] != shapes[1]:
        raise WorkbenchError(f"dot takes two fields on one grid; got {shapes[0]} and {shapes[1]}")
    field = FieldPart(archive, part_of_grid(archive, region))
    low, high, count, nbytes = Fraction(0), Fraction(0), 0, 0
    for ends, valid, read in field.each(lambda part: _products(part, other)):
        low, high, count, nbytes = low + ends[0], high + ends[1], count + valid, nbytes + read
    value, bound = interval("dot product", (low, high))
    stored = field.nbytes_stored + FieldPart(other, field.slices).nbytes_stored
    return Statistic("dot", value, bound, VALUES, field.nbytes + nbytes, stored, count, field.cells - count)


def _magnitudes(part: ChunkPart) -> list[Sums]:
    """The sums of the magnitudes of the values of a chunk: an original magnitude is off by no more than its value."""
    values, valid = part.whole()
    kept = values if valid is None else values[valid]
    if kept.dtype.kind == "i":
        kept = kept.astype(f"u{kept.itemsize}", copy=False) if kept.min(initial=0) >= 0 else np.abs(kept.astype(np.float64))
    return [Sums.of(np.abs(kept), part.limit)] if kept.size else []


def _root_of_squares(parts: list[Sums]) -> Ends:
    squares = error = moved = Fraction(0)
    for part in parts:
        squares += part.squares + 2 * part.centre * part.sum + part.count * part.centre**2
        error += part.squares_error + 2 * abs(part.centre) * part.sum_error
        moved += part.moved_squares
    off, low = sums.roots(moved)[1], sums.roots(max(squares - error, Fraction(0)))[0]
    return low - off, sums.roots(squares + error)[1] + off


def _largest(parts: list[Sums]) -> Ends:
    least, largest = sums.least(parts), sums.largest(parts)
    return max(-least[1], largest[0]), max(-least[0], largest[1])


def _products(part: ChunkPart, other: Archive) -> tuple[Ends, int, int]:
    """The ends of the sum of the products in a chunk, how many there are, and the bytes that were read of the other one."""
    low, high, valid = _intervals(part)
    beside = FieldPart(other, part.in_grid)
    others = [np.empty(low.shape) for _ in range(2)]
    also = np.empty(low.shape, bool)
    for into, (below, above, known) in beside.each(lambda one: (one.in_region, _intervals(one))):
        others[0][into], others[1][into], also[into] = below, above, known
    valid &= also
    ends = _sum_of_products((low[valid], high[valid]), (others[0][valid], others[1][valid]))
    return ends, int(valid.sum()), beside.nbytes_of_chunks


def _intervals(part: ChunkPart) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values, valid = part.whole()
    known = np.ones(values.shape, bool) if valid is None else valid
    shown = values if valid is None else np.where(valid, values, values.dtype.type(0))
    return lower(shown, part.limit), upper(shown, part.limit), known


def _sum_of_products(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> Ends:
    """Between which numbers a sum of products of numbers in intervals is."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        products = [a * b for a in one for b in other]
        least, most = np.minimum.reduce(products), np.maximum.reduce(products)
        sizes = np.maximum(np.abs(least), np.abs(most))
        if not np.isfinite(sizes).all():
            raise WorkbenchError("the dot product of these fields is beyond the range of float64: scale one of them")
    low, high, size = (Fraction(math.fsum(each.tolist())) for each in (least, most, sizes))
    error = size * ROUNDED + len(sizes) * Fraction(1, 2**1070)
    return low - error, high + error
