"""Matrix products with checksums (ABFT): faults are detected, located and corrected.

The columns of C = A B must add up to the column sums of A times B. That takes one pass over each matrix. Where a column
does not add up, it is computed again in double, and the elements that round-off cannot explain are replaced. So several
faults in one column do no harm, and neither do results that are not a number. Where many columns differ, the whole product
is computed again first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.repair import repaired
from workbench.propagation.protection.roundoff import MOST, certain, deviation

_HEIGHT = 64      # rows that are added before sums of runs are added
_LEAST = 1e-290   # added to sums of squares, for numbers whose squares underflow

Product = Callable[[Array, Array], Array]


def protected_matmul(a: Any, b: Any, *, product: Product | None = None) -> tuple[Array, Findings]:
    """The matrix product, and what its checksums have found.

    `product` computes it, by default the library of the arrays. Elements that are correct stay as it returned them. Rows of
    `a` and columns of `b` that are not finite are not checked.

    >>> a, b = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
    >>> def faulty(a, b):
    ...     c = a @ b
    ...     c[1, 0] = 1e30
    ...     return c
    >>> protected_matmul(a, b, product=faulty)
    (array([[ 3.,  3.],
           [12., 12.]]), Findings(checks=2, detected=1, corrected=1, recomputed=0, unchecked=0))
    """
    a, b = _checked(a, b)
    return repaired(_Sums(a, b, _plain if product is None else product))


def checked_matmul(a: Array, b: Array, c: Array) -> tuple[Array, Findings]:
    """A product that was computed before, corrected where it does not add up; it is not written to.

    >>> a, b = np.ones((2, 3)), np.ones((3, 2))
    >>> checked_matmul(a, b, np.array([[3.0, 3.0], [3.0, -3.0]]))[0].tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    known = [backend.read_only(c)]   # which is copied before it is corrected
    return protected_matmul(a, b, product=lambda a, b: known.pop() if known else a @ b)


def _plain(a: Array, b: Array) -> Array:
    return a @ b


class _Sums:
    """What the columns of the product must add up to, and how far off round-off may bring them."""

    def __init__(self, a: Array, b: Array, product: Product = _plain) -> None:
        xp, (rows, terms), columns = backend.namespace(a, b), a.shape, b.shape[1]
        self.given, self.a, self.b, self.product, self.terms = a, a, b, product, terms
        self.rows = None   # which rows take part: None for all
        of_a, squares_a = column_sums(a)
        if not bool(xp.isfinite(of_a).all()):
            self.rows = xp.isfinite(a).all(axis=1)
            self.a = xp.where(self.rows[:, None], a, a.dtype.type(0))
            of_a, squares_a = column_sums(self.a)
        self.expected, squares_b = column_sums(b, of_a)
        squares_a, squares_b = squares_a.sum() + _LEAST, squares_b + _LEAST
        # Products have the squares |a|² |b_j|² / terms on average; of one sign, they are all near the mean of the column.
        squares = squares_a * squares_b / terms
        spread = deviation(terms, squares, self.expected / rows**0.5, a.dtype)
        projecting = deviation(terms, (of_a**2).sum() * squares_b / terms, self.expected, np.float64)
        adding = 2 * deviation(rows, squares, self.expected / terms**0.5, np.float64)
        smallest = rows * terms * float(np.finfo(a.dtype).smallest_subnormal)
        self.threshold = MOST * (spread + projecting + adding) + smallest
        self.largest = certain(terms + rows, (rows * squares_a * squares_b) ** 0.5, a.dtype) + self.threshold
        known = xp.isfinite(self.expected) & xp.isfinite(self.threshold)
        self.known = None if bool(known.all()) else known
        self.checks = int(known.sum())
        unknown_rows = 0 if self.rows is None else rows - int(self.rows.sum())
        self.unchecked = rows * columns - (rows - unknown_rows) * self.checks

    def compute(self) -> Array:
        """The product, from whoever computes it."""
        return _computed(self.product, self.given, self.b)

    def _off(self, result: Array) -> Array:
        if self.rows is not None:
            result = backend.namespace(result).where(self.rows[:, None], result, result.dtype.type(0))
        return abs(column_sums(result)[0] - self.expected)

    def suspects(self, result: Array) -> Array:
        """The columns that do not add up."""
        differ = ~(self._off(result) <= self.threshold)   # not a number differs
        return backend.namespace(result).flatnonzero(differ if self.known is None else differ & self.known)

    def possible(self, result: Array, chosen: Array) -> Array:
        """Which columns are no further off than any order of summation allows."""
        return (self._off(result) <= self.largest)[chosen]

    def take(self, result: Array, chosen: Array) -> Array:
        """Columns, one in each row; rows that take no part are zero."""
        values = result[:, chosen].T
        return values if self.rows is None else backend.namespace(result).where(self.rows, values, result.dtype.type(0))

    def put(self, result: Array, chosen: Array, values: Array) -> None:
        """Replace columns, except in rows that take no part."""
        if self.rows is not None:
            values = backend.namespace(result).where(self.rows, values, result[:, chosen].T)
        result[:, chosen] = values.T

    def exact(self, chosen: Array) -> tuple[Array, Array]:
        """Columns in double, and the sums of the sizes of their products."""
        xp, rows = backend.namespace(self.a), len(self.a)
        value, size = xp.empty((len(chosen), rows)), xp.empty((len(chosen), rows))
        backend.kernel("checksums", "exact_columns", self.a.dtype)(
            rows, terms=self.terms, chosen=len(chosen), a=self.a, columns=xp.ascontiguousarray(self.b[:, chosen].T),
            value=value, size=size,
        )
        return value, size


def column_sums(matrix: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """The weighted column sums, and the sums of squares, in double.

    >>> column_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    (array([4., 6.]), array([10., 20.]))
    """
    xp, (rows, columns) = backend.namespace(matrix), matrix.shape
    runs, width = -(-rows // _HEIGHT), 1 if backend.on_device(matrix) else columns
    sums, squares = xp.empty((runs, columns)), xp.empty((runs, columns))
    backend.kernel("checksums", "column_sums", matrix.dtype)(
        runs * -(-columns // width), rows=rows, columns=columns, height=_HEIGHT, width=width, matrix=matrix,
        weight=xp.ones(rows) if weight is None else weight, sum=sums, squares=squares,
    )
    return sums.sum(axis=0), squares.sum(axis=0)


def _checked(a: Any, b: Any) -> tuple[Array, Array]:
    xp = backend.namespace(a, b)
    first, second = xp.asarray(a), xp.asarray(b)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[0] or 0 in (*first.shape, *second.shape):
        raise WorkbenchError(
            f"a product needs two non-empty matrices (n, m) and (m, k); got shapes {first.shape} and {second.shape}"
        )
    if first.dtype != second.dtype or first.dtype not in (np.float32, np.float64):
        raise WorkbenchError(f"both matrices must be float32, or both float64; got {first.dtype} and {second.dtype}")
    return xp.ascontiguousarray(first), xp.ascontiguousarray(second)


def _computed(product: Product, a: Array, b: Array) -> Array:
    """A result that may be written to."""
    result = product(a, b)
    shape = (a.shape[0], b.shape[1])
    if getattr(result, "shape", None) != shape or result.dtype != a.dtype:
        got = f"{getattr(result, 'dtype', type(result).__name__)} of shape {getattr(result, 'shape', ())}"
        raise WorkbenchError(f"the product must be {a.dtype} of shape {shape}; got {got}")
    contiguous = backend.namespace(result).ascontiguousarray(result)
    return contiguous if getattr(contiguous.flags, "writeable", True) else contiguous.copy()
