"""The operators of archives: sums, differences and multiples of fields, as `linear_combination.py` makes them."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, ClassVar, cast

from workbench.errors import WorkbenchError, briefly

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


class Algebra:
    """Sums and differences of archived fields, and multiples of one: each is an archive, with a derived promise.

    >>> import numpy as np, workbench as wb
    >>> a, b = (wb.compress(np.full((8, 8), value), wb.Absolute(1e-3)) for value in (1.0, 0.25))
    >>> [float(one.decompress().values[0, 0].round(2)) for one in (a - b, 2.0 * a + b, a / 2, sum([a, b, b]))]
    [0.75, 2.25, 0.5, 1.5]

    A quotient is the product with the float nearest to the inverse, which the certificate states. A sum of many archives
    is made pair by pair: `wb.linear_combination` makes it at once, and promises less error.
    """

    __array_ufunc__: ClassVar[None] = None   # so that NumPy's numbers leave the product to an archive

    @property
    def _archive(self) -> Archive:
        return cast("Archive", self)

    def __add__(self, other: Any) -> Archive:
        return self._archive.content.combined([(1.0, self._archive), (1.0, _second("+", other))])

    def __radd__(self, other: Any) -> Archive:
        """The archive itself for 0, with which `sum` begins."""
        if isinstance(other, numbers.Real) and other == 0:
            return self._archive
        return _second("+", other) + self._archive

    def __sub__(self, other: Any) -> Archive:
        return self._archive.content.combined([(1.0, self._archive), (-1.0, _second("-", other))])

    def __mul__(self, factor: Any) -> Archive:
        if not isinstance(factor, numbers.Real) or isinstance(factor, bool):
            raise WorkbenchError(f"an archive can be multiplied by a number; got {briefly(factor)}: decompress it")
        return self._archive.content.combined([(cast("float", factor), self._archive)])

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Archive:
        if not isinstance(divisor, numbers.Real) or isinstance(divisor, bool) or divisor == 0:
            raise WorkbenchError(f"an archive can be divided by a number that is not 0; got {briefly(divisor)}")
        return self * (1 / float(divisor))

    def __neg__(self) -> Archive:
        return self * -1.0


def _second(operator: str, other: Any) -> Archive:
    if not isinstance(other, Algebra):
        raise WorkbenchError(f"archive {operator} takes another archive; got {briefly(other)}: decompress it for others")
    return other._archive
