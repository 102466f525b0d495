"""Linear operators given as matrices: the sharpest interval that a bound on each value allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array, to_host
from workbench.errors import WorkbenchError
from workbench.propagation.enclosures import WIDER, Ball, rounding, unless_overflowing
from workbench.propagation.error_sizes import norm as norm_of
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.matrices import checked_matmul
from workbench.propagation.stage import Stage


def linear_operator(name: str, matrix: Array, inputs: tuple[str, ...] | None = None) -> Stage:
    """The stage y = A x for a matrix of shape (M, N), on arrays of shape (N,) or (N, K): with a guaranteed interval.

    >>> from workbench.propagation import Pipeline
    >>> mean = linear_operator("mean", np.full((1, 4), 0.25))
    >>> Pipeline([mean])(np.arange(4.0)).tolist()
    [1.5]
    """
    if matrix.ndim != 2 or matrix.dtype.kind not in "fc" or not bool(backend.namespace(matrix).isfinite(matrix).all()):
        got = f"{matrix.dtype} of shape {tuple(matrix.shape)}"
        raise WorkbenchError(f"a linear operator needs a matrix of finite floats; got {got}")
    operator = _Operator(backend.read_only(matrix.copy()))
    verify = operator.verify if matrix.dtype in (np.float32, np.float64) else None
    return Stage(name, operator.apply, inputs, linear=True, enclose=operator.enclosure, verify=verify)


@dataclass(frozen=True, eq=False)
class _Operator:
    """A matrix that multiplies from the left."""

    matrix: Array

    def apply(self, values: Array) -> Array:
        return self.matrix @ values

    def verify(self, inputs: Sequence[Any], output: Array) -> tuple[Array, Findings]:
        """The product, corrected by its checksums; products of numbers of two types have none."""
        values = inputs[0]
        if not self.matrix.dtype == values.dtype == output.dtype:
            return output, Findings(unchecked=output.size)
        product, found = checked_matmul(self.matrix, _columns(values), _columns(output))
        return product.reshape(output.shape), found

    def enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
        """The sizes of the entries times the radius, and the rounding of both products."""
        ball, values = enclosures[0], to_host(inputs[0])
        if not isinstance(ball, Ball):
            return None
        sizes = abs(to_host(self.matrix)).astype(np.float64)
        radius = np.broadcast_to(np.minimum(ball.radius, ball.norm), values.shape)
        dtype = np.result_type(values, to_host(self.matrix))
        wide = abs(values.astype(np.promote_types(values.dtype, np.float64)))
        largest = sizes @ (wide + radius)
        slack = 4 * rounding(4 * values.shape[0] + 8, dtype) * largest
        tiny = 4 * values.shape[0] * float(np.finfo(dtype).tiny)   # products that underflow
        most = unless_overflowing(WIDER * (sizes @ radius + slack + tiny), largest, dtype)
        if not np.isfinite(most).all():
            return Ball(most)
        norm = norm_of(sizes) * ball.norm + norm_of(slack + tiny)
        return Ball(most, min(WIDER * norm, norm_of(most)))


def _columns(values: Array) -> Array:
    return values.reshape(len(values), -1)
