"""Divergence and curl of a vector field whose components are archived, each component by itself.

Each derivative has its own bound (`operators.py`), and a sum of figures has the sum of their bounds and of its rounding.
Error bounds may differ from component to component; grids may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics.figure import FieldStatistic
from workbench.archive.statistics.operators import operator, rounded_up
from workbench.errors import WorkbenchError
from workbench.rounding import ABOVE

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

ROUNDED = {np.dtype(np.float32): 2.0**-23, np.dtype(np.float64): 2.0**-52}   # twice the share that one rounding changes


def divergence(archives: Sequence[Archive], region: Any = None) -> FieldStatistic:
    """The divergence of a vector field in two or three dimensions; archive k has the component along axis k.

    Derivatives are those of `archive.derivative`, and the bound is proven for the original data.

    >>> import workbench as wb
    >>> y, x = np.indices((20, 30), float)
    >>> u, v = (wb.compress(values, wb.Absolute(1e-3)) for values in (3 * y, 4 * x))
    >>> sources = wb.divergence([u, v], region=[(1, 9), (1, 9)])
    >>> bool(abs(sources.values - 7).max() <= sources.bound), round(sources.bound, 6)
    (True, 0.002)
    """
    _require_vector("divergence", archives)
    return _summed("divergence", [(operator(one, "derivative", axis, region), 1) for axis, one in enumerate(archives)])


def curl(archives: Sequence[Archive], region: Any = None) -> FieldStatistic | tuple[FieldStatistic, ...]:
    """The curl of a vector field; archive k has the component along axis k.

    In three dimensions, its three components; in two, the only one: the derivative of the second component along the first
    axis, less that of the first component along the second axis. Otherwise as `divergence`.

    >>> import workbench as wb
    >>> y, x = np.indices((20, 30), float)
    >>> u, v = (wb.compress(values, wb.Absolute(1e-3)) for values in (-x, y))
    >>> float(wb.curl([u, v]).values[5, 5].round(3))
    2.0
    """
    _require_vector("curl", archives)

    def component(name: str, first: int, second: int) -> FieldStatistic:
        positive = operator(archives[second], "derivative", first, region)
        return _summed(name, [(positive, 1), (operator(archives[first], "derivative", second, region), -1)])

    if len(archives) == 2:
        return component("curl", 0, 1)
    return tuple(component(f"curl, component {axis}", (axis + 1) % 3, (axis + 2) % 3) for axis in range(3))


def _require_vector(name: str, archives: Sequence[Archive]) -> None:
    """Refuse what is no vector field on one grid."""
    given = list(archives) if isinstance(archives, list | tuple) else []
    if not given or not all(getattr(one, "kind", None) == "field" for one in given):
        raise WorkbenchError(f"{name} takes a sequence of archives of fields, one for each axis; got {archives!r:.200}")
    shapes = {one.data.layout.shape for one in given}
    if len(given) not in (2, 3) or len(shapes) != 1 or len(next(iter(shapes))) != len(given):
        listed = ", ".join(str(one.data.layout.shape) for one in given)
        raise WorkbenchError(
            f"{name} takes two archives of one shape with two axes, or three with three; got {len(given)}: {listed}"
        )
    spacings = [one.spacing for one in given]
    if len(set(spacings)) > 1:
        raise WorkbenchError(f"{name} needs components with one spacing; got {', '.join(map(str, spacings))}")


def _summed(name: str, terms: Sequence[tuple[FieldStatistic, int]]) -> FieldStatistic:
    """The sum of figures with signs."""
    first = terms[0][0]
    dtype = np.result_type(*(one.values for one, _ in terms))
    total, bound, plain = first.values.astype(dtype), np.asarray(first.bound, np.float64), isinstance(first.bound, float)
    with np.errstate(over="ignore", invalid="ignore"):
        for one, sign in terms[1:]:
            missing = np.isnan(total) | np.isnan(one.values)
            total = total + sign * one.values
            total[np.isnan(total) & ~missing] = np.inf
            rounded = np.abs(total.astype(np.float64)) * ROUNDED[dtype]
            plain = plain and isinstance(one.bound, float) and not np.isinf(total).any()
            if plain:
                rounded = np.asarray(np.nanmax(rounded) if not missing.all() else 0.0)
            bound = (bound + one.bound + rounded) * ABOVE
        if not plain:
            bound = np.where(np.isinf(total), dtype.type(np.inf), rounded_up(bound, dtype))
    read, stored = (sum(getattr(one, each) for one, _ in terms) for each in ("bytes_read", "bytes_stored"))
    return FieldStatistic(
        name, total, float(bound) if plain else bound, first.stage, read, stored, int(np.isnan(total).sum())
    )
