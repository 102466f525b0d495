"""The statistics of an archive, as its methods. What they compute is in the other modules of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from workbench.archive.statistics.figure import Explanation, Statistic
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

    def explain(self, name: str, region: Any = None) -> Explanation:
        """How a statistic is answered: what is decoded, how many bytes that takes, and the bound.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "prequantised")
        >>> archive.explain("mean").stage, archive.explain("mean").bound
        ('values', 0.001)
        """
        return explain(self._itself, name, region)
