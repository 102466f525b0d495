"""The statistics of an archive, as its methods. What they compute is in the other modules of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from workbench.archive.statistics.chunk_parts import FieldPart
from workbench.archive.statistics.counts import Count, Histogram, count_between
from workbench.archive.statistics.distributions import histogram, median, quantiles
from workbench.archive.statistics.figure import Explanation, Statistic
from workbench.archive.statistics.reductions import explain, statistic
from workbench.archive.statistics.selection import slices_of

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

    # Distributions.

    def quantile(self, q: Any, region: Any = None) -> Any:
        """A quantile, or a list of several, by NumPy's definition `linear`: between the values of two ranks in proportion.

        No quantile moves by more than the values do, so the bound is that of the archive. Of the codec `staged`, only
        blocks whose extremes do not exclude them are decoded; at no time are more than 2^24 values held.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> print(*archive.quantile([0.25, 0.75]), sep=", ")
        0.25000 ± 0.00101, 0.75000 ± 0.00101
        """
        return quantiles(self._itself, q, region)

    def median(self, region: Any = None) -> Statistic:
        """The median, as `quantile(0.5)`."""
        return median(self._itself, region)

    def count(self, above: float | None = None, below: float | None = None, region: Any = None) -> Count:
        """How many values are above one number, below another, or between them: from `low` to `high`.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> print(archive.count(above=0.5))
        2,044 (2,044 to 2,052)
        """
        return count_between(FieldPart(self._itself, slices_of(self._itself, region)), above, below)

    def histogram(self, bins: Any = 10, range: tuple[float, float] | None = None, region: Any = None) -> Histogram:
        """How many values each bin has: from `low` to `high`, those that are in it certainly and those that may be.

        `bins` is a number of equal bins in `range` (by default: all that the original values can be), or their edges.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> counts = archive.histogram(2, (0, 1))
        >>> bool((counts.low <= 2048).all() and (counts.high >= 2048).all())
        True
        """
        return histogram(self._itself, bins, range, region)

    def explain(self, name: str, region: Any = None) -> Explanation:
        """How a statistic is answered: what is decoded, how many bytes that takes, and the bound.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "prequantised")
        >>> archive.explain("mean").stage, archive.explain("mean").bound
        ('values', 0.001)
        """
        return explain(self._itself, name, region)
