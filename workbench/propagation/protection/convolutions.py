"""Convolutions with checksums: faults are detected, located and corrected.

A line of the result, along the last axis, must add up to the stencil times sums of the input over windows as long as the
line. That holds for any way to compute a convolution (FT-CNN, arXiv 2003.12203, checks sums over images and filters; a
single field has neither). A line that does not add up is computed again in double, and the values that round-off cannot
explain are replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.repair import repaired
from workbench.propagation.protection.roundoff import MOST, certain, deviation

Edges = Literal["valid", "zero", "periodic"]
Correlation = Callable[[Array, Array], Array]


def protected_convolve(
    values: Any, stencil: Any, edges: Edges = "periodic", *, correlate: Correlation | None = None
) -> tuple[Array, Findings]:
    """The convolution of a field of 1 to 3 axes with a stencil of as many, and what its checksums have found.

    `edges` says what lies beyond the field: its other side ("periodic") or zeros ("zero"); then the result has the shape of
    the field, and the centre of the stencil is at index size // 2. "valid" returns only what needs nothing beyond.
    `correlate(input, weights)` computes all sums of input[p + q] weights[q] within the input, by default a kernel. Lines
    with values that are not finite are not checked.

    >>> protected_convolve(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.0, -0.5]))
    (array([-1.,  1.,  1., -1.]), Findings(checks=1, detected=0, corrected=0, recomputed=0, unchecked=0))
    """
    values, stencil = _checked(values, stencil, edges)
    field, weights = _three_axes(_extended(values, stencil, edges)), _three_axes(stencil)
    xp = backend.namespace(field)
    weights = xp.ascontiguousarray(weights[::-1, ::-1, ::-1])
    result, found = repaired(_Lines(field, weights, correlate))
    return result.reshape(result.shape[3 - values.ndim :]), found


def checked_convolve(
    values: Array, stencil: Array, result: Array, compute: Callable[[], Array]
) -> tuple[Array, Findings]:
    """A periodic convolution that was computed before, corrected where it does not add up; it is not written to.

    `compute` computes it again.

    >>> values, stencil = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.0, -0.5])
    >>> right = protected_convolve(values, stencil)[0]
    >>> checked_convolve(values, stencil, right + [0.0, 1e9, 0.0, 0.0], lambda: right)[0]
    array([-1.,  1.,  1., -1.])
    """
    known = [backend.read_only(result)]   # which is copied before it is corrected

    def given(field: Array, weights: Array) -> Array:
        return _three_axes(known.pop() if known else compute())

    return protected_convolve(values, stencil, "periodic", correlate=given)


class _Lines:
    """The lines of the result, what they must add up to, and how far off round-off may bring them."""

    def __init__(self, field: Array, weights: Array, correlate: Correlation | None = None) -> None:
        xp = backend.namespace(field, weights)
        self.field, self.weights, self.correlate, self.terms = field, weights, correlate, weights.size
        self.shape = tuple(n - k + 1 for n, k in zip(field.shape, weights.shape, strict=True))
        planes, height, length = self.shape
        self.count = planes * height
        self.named = {
            "height": height, "stencil_planes": weights.shape[0], "stencil_rows": weights.shape[1],
            "stencil_points": weights.shape[2], "input_planes": field.shape[0], "input_rows": field.shape[1],
            "weight": weights,
        }
        inputs = field.shape[0] * field.shape[1]
        window, squares = xp.empty((inputs, weights.shape[2])), xp.empty(inputs)
        self._kernel("window_sums")(
            inputs, length=length, places=weights.shape[2], value=field, sum=window, squares=squares
        )
        self.expected, products = xp.empty(self.count), xp.empty(self.count)
        self._kernel("expected_sums")(
            self.count, self.named, window=window, squares=squares, expected=self.expected, products=products
        )
        largest = xp.where(xp.isfinite(squares), squares, 0.0).max()
        products = products + 1e-290 * (1 + largest)   # for numbers whose squares underflow
        spread = deviation(weights.size, products, self.expected / length**0.5, field.dtype)
        checking = 2 * deviation(length, products, self.expected, np.float64)
        smallest = length * weights.size * float(np.finfo(field.dtype).smallest_subnormal)
        self.threshold = MOST * (spread + checking) + smallest
        size = (weights.size * length * products) ** 0.5
        self.largest = certain(weights.size + length, size, field.dtype) + self.threshold
        self.known = xp.isfinite(self.expected) & xp.isfinite(self.threshold)
        self.checks = int(self.known.sum())
        self.unchecked = (self.count - self.checks) * length

    def _kernel(self, name: str) -> Any:
        return backend.kernel("convolution", name, self.field.dtype)

    def compute(self) -> Array:
        """The result, from whoever computes it."""
        if self.correlate is not None:
            return self._checked(self.correlate(self.field, self.weights))
        result = backend.namespace(self.field).empty(self.shape, self.field.dtype)
        self._kernel("correlate")(self.count, self.named, length=self.shape[2], input=self.field, output=result)
        return result

    def _checked(self, result: Any) -> Array:
        """A result from elsewhere, which may be written to."""
        if getattr(result, "shape", None) != self.shape or result.dtype != self.field.dtype:
            got = f"{getattr(result, 'dtype', type(result).__name__)} of shape {getattr(result, 'shape', ())}"
            raise WorkbenchError(f"correlate must return {self.field.dtype} of shape {self.shape}; got {got}")
        contiguous = backend.namespace(result).ascontiguousarray(result)
        return contiguous if getattr(contiguous.flags, "writeable", True) else contiguous.copy()

    def _off(self, result: Array) -> Array:
        xp = backend.namespace(result)
        sums, squares = xp.empty((self.count, 1)), xp.empty(self.count)
        self._kernel("window_sums")(self.count, length=self.shape[2], places=1, value=result, sum=sums, squares=squares)
        return abs(sums[:, 0] - self.expected)

    def suspects(self, result: Array) -> Array:
        """The lines that do not add up."""
        differ = ~(self._off(result) <= self.threshold)   # not a number differs
        return backend.namespace(result).flatnonzero(differ & self.known)

    def possible(self, result: Array, chosen: Array) -> Array:
        """Which lines are no further off than any order of summation allows."""
        return (self._off(result) <= self.largest)[chosen]

    def take(self, result: Array, chosen: Array) -> Array:
        """Lines, one in each row."""
        return result.reshape(self.count, -1)[chosen]

    def put(self, result: Array, chosen: Array, values: Array) -> None:
        """Replace lines."""
        result.reshape(self.count, -1)[chosen] = values

    def exact(self, chosen: Array) -> tuple[Array, Array]:
        """Lines in double, and the sums of the sizes of their products."""
        xp, length = backend.namespace(self.field), self.shape[2]
        value, size = xp.empty((len(chosen), length)), xp.empty((len(chosen), length))
        self._kernel("exact_lines")(
            len(chosen), self.named, length=length, input=self.field, line=chosen, value=value, size=size
        )
        return value, size


def _extended(values: Array, stencil: Array, edges: Edges) -> Array:
    """The field with what lies beyond its edges."""
    xp = backend.namespace(values)
    if edges == "valid":
        return xp.ascontiguousarray(values)
    for axis, (count, width) in enumerate(zip(values.shape, stencil.shape, strict=True)):
        before = (width - 1) - width // 2
        index = xp.arange(-before, count + width // 2)
        taken = values.take(index % count, axis=axis)
        if edges == "zero":
            inside = (index >= 0) & (index < count)
            outward = (1,) * axis + (-1,) + (1,) * (values.ndim - axis - 1)
            taken = xp.where(inside.reshape(outward), taken, values.dtype.type(0))
        values = taken
    return xp.ascontiguousarray(values)


def _three_axes(array: Array) -> Array:
    return array.reshape((1,) * (3 - array.ndim) + array.shape)


def _checked(values: Any, stencil: Any, edges: str) -> tuple[Array, Array]:
    if edges not in get_args(Edges):
        raise WorkbenchError(f"edges must be one of {', '.join(get_args(Edges))}; got {edges!r}")
    xp = backend.namespace(values) if not hasattr(stencil, "dtype") else backend.namespace(values, stencil)
    field = xp.asarray(values)
    if field.dtype not in (np.float32, np.float64) or not 1 <= field.ndim <= 3 or field.size == 0:
        raise WorkbenchError(
            f"the field must be float32 or float64 with 1 to 3 axes; got {field.dtype} of shape {field.shape}"
        )
    weights = xp.asarray(stencil)
    if weights.ndim != field.ndim or weights.size == 0 or weights.dtype.kind not in "fiu":
        raise WorkbenchError(
            f"the stencil must be numbers with {field.ndim} axes, as the field; got {weights.dtype}, shape {weights.shape}"
        )
    if any(k > n for n, k in zip(field.shape, weights.shape, strict=True)):
        raise WorkbenchError(f"the stencil {weights.shape} must not be larger than the field {field.shape}")
    weights = weights.astype(field.dtype)
    if not bool(xp.isfinite(weights).all()):
        raise WorkbenchError("the stencil must be finite; got NaN or infinity")
    return field, weights
