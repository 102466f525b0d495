"""The statistics of an archive, as its methods. What they compute is in the other modules of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from workbench.archive.statistics.block_means import BlockMeans, Sides, block_means, explain_block_means
from workbench.archive.statistics.field_figure import FieldStatistic
from workbench.archive.statistics.figure import Explanation, Statistic
from workbench.archive.statistics.operators import OPERATIONS, explain_operator, operator
from workbench.archive.statistics.reductions import explain, statistic

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


class Statistics:
    """Statistics of the original data of an archive, each with a proven bound."""

    @property
    def _itself(self) -> Archive:
        return cast("Archive", self)

    def mean(self, region: Any = None) -> Statistic:
        """The mean of a field, or of a region of it, with a bound that is proven for the original data.

        Masked and non-finite cells do not count. Of the codec `staged`, the metadata of blocks suffice; of others, chunks
        are decoded one by one. `explain` says what is read.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> print(archive.mean(), "from", archive.mean().stage)
        0.50000 ± 0.00101 from metadata of blocks
        """
        return statistic(self._itself, "mean", region)

    def sum(self, region: Any = None) -> Statistic:
        """The sum of the values, as `mean`."""
        return statistic(self._itself, "sum", region)

    def std(self, region: Any = None) -> Statistic:
        """The standard deviation of the values (of the population), as `mean`."""
        return statistic(self._itself, "std", region)

    def min(self, region: Any = None) -> Statistic:
        """The smallest value, as `mean`."""
        return statistic(self._itself, "min", region)

    def max(self, region: Any = None) -> Statistic:
        """The largest value, as `mean`."""
        return statistic(self._itself, "max", region)

    # Operators.

    def derivative(self, axis: int | str = 0, region: Any = None) -> FieldStatistic:
        """The derivative of a field at each point along an axis (a number or a name), with bounds for the original data.

        As `numpy.gradient` has it with the spacing of the field: (x[i + 1] - x[i - 1]) / 2h, and at the ends of an axis the
        difference of two neighbours over h. A region has the derivative of the whole field there. A value whose stencil has
        a masked or non-finite cell is NaN.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(wb.Field(np.arange(400.0).reshape(20, 20), spacing=0.5), wb.Absolute(1e-3), "staged")
        >>> archive.derivative(1, region=[(0, 20), (5, 9)])
        FieldStatistic(derivative of 20 x 4, float64, bound 0.002, from values, ... bytes read)
        """
        return operator(self._itself, "derivative", axis, region)

    def gradient_magnitude(self, region: Any = None) -> FieldStatistic:
        """The length of the gradient, the root of the sum of the squares of all derivatives; otherwise as `derivative`.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.add.outer(3.0 * np.arange(20), 4.0 * np.arange(30)), wb.Absolute(1e-3))
        >>> bool(abs(archive.gradient_magnitude().values - 5).max() < 0.01)
        True
        """
        return operator(self._itself, "gradient_magnitude", None, region)

    def laplacian(self, region: Any = None) -> FieldStatistic:
        """The Laplacian: the sum of the second differences (x[i - 1] - 2 x[i] + x[i + 1]) / h² along all axes.

        At the ends of an axis, it is the second difference of the last three points. Otherwise as `derivative`.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.add.outer(np.arange(20.0) ** 2, np.arange(30.0) ** 2), wb.Absolute(1e-3))
        >>> bool(abs(archive.laplacian().values - 4).max() < 0.01)
        True
        """
        return operator(self._itself, "laplacian", None, region)

    def block_means(self, sides: Sides = None) -> BlockMeans:
        """The mean of each block of a field, a coarse view of it, with bounds for the original data.

        `sides` is one number, or one for each axis; without it, blocks are those of the codec `staged`, or have 8 points
        along each axis. Blocks begin anew in each chunk, as `edges` of the result say. With `staged`, the metadata suffice
        where each side is a multiple of the codec's.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> found = archive.block_means(32)
        >>> found.values.round(3).tolist(), found.sides, found.stage
        ([[0.246, 0.254], [0.746, 0.754]], (32, 32), 'metadata of blocks')
        """
        return block_means(self._itself, sides)

    def explain(self, name: str, region: Any = None, axis: int | str = 0) -> Explanation:
        """How a statistic is answered: what is decoded, how many bytes that takes, and the bound.

        `axis` is that of a derivative.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "prequantised")
        >>> archive.explain("mean").stage, archive.explain("mean").bound
        ('values', 0.001)
        """
        if name in OPERATIONS:
            return explain_operator(self._itself, name, axis if name == "derivative" else None, region)
        if name == "block_means":
            return explain_block_means(self._itself)
        return explain(self._itself, name, region)
