"""The statistics of an archive, as its methods. What they compute is in the other modules of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from workbench.archive.statistics.along_axes import reduced
from workbench.archive.statistics.chunk_parts import FieldPart
from workbench.archive.statistics.distributions import histogram, median, quantiles
from workbench.archive.statistics.explanations import explained
from workbench.archive.statistics.figure import Explanation, Statistic
from workbench.archive.statistics.selection import slices_of
from workbench.archive.statistics.value_counts import Count, Histogram, count_between

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


class Statistics:
    """Statistics of the original data of an archive, each with a proven bound."""

    @property
    def _itself(self) -> Archive:
        return cast("Archive", self)

    def mean(self, region: Any = None, *, axis: Any = None, weights: Any = None) -> Any:
        """The mean of a field, or of a region of it, with a bound that is proven for the original data.

        Masked and non-finite cells do not count. Of the codec `staged`, the metadata of blocks suffice; of others, chunks
        are decoded one by one. `explain` says what is read.

        Given an `axis` or several, by number or name, it is an array of means along these (`FieldStatistic`); names may
        come first, as in `mean("time")`. `weights` are arrays by axis, whose product counts, one of the field's shape, or
        "area": the cosine of the latitude.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> print(archive.mean(), "from", archive.mean().stage)
        0.50000 ± 0.00101 from metadata of blocks
        >>> archive.mean(axis=0).values.shape, str(archive.mean(weights={0: np.arange(64.0)}))
        ((64,), '0.67200 ± 0.00101')
        """
        return reduced(self._itself, "mean", region, axis, weights)

    def sum(self, region: Any = None, *, axis: Any = None, weights: Any = None) -> Any:
        """The sum of the values, each times its weight, as `mean`."""
        return reduced(self._itself, "sum", region, axis, weights)

    def std(self, region: Any = None, *, axis: Any = None, weights: Any = None) -> Any:
        """The standard deviation of the values (of the population), as `mean`."""
        return reduced(self._itself, "std", region, axis, weights)

    def min(self, region: Any = None, *, axis: Any = None) -> Any:
        """The smallest value, as `mean`; without weights."""
        return reduced(self._itself, "min", region, axis)

    def max(self, region: Any = None, *, axis: Any = None) -> Any:
        """The largest value, as `mean`; without weights."""
        return reduced(self._itself, "max", region, axis)

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

    def explain(self, name: str, region: Any = None, **options: Any) -> Explanation:
        """How a statistic is answered: what is decoded, how many bytes that takes, and the bound.

        `options` are those of its method: `explain("mean", axis="time")`, `explain("count", above=1.0)`.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "prequantised")
        >>> archive.explain("mean").stage, archive.explain("mean").bound
        ('values', 0.001)
        """
        return explained(self._itself, name, region, **options)
