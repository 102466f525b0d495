"""Statistics of archived fields, each with an interval that is proven for the original data."""

from workbench.archive.statistics.along_axes import along_axes
from workbench.archive.statistics.distributions import quantiles
from workbench.archive.statistics.field_figure import FieldStatistic
from workbench.archive.statistics.figure import METADATA, SOME, VALUES, Explanation, Statistic
from workbench.archive.statistics.reductions import KNOWN, explain, statistic, statistics
from workbench.archive.statistics.value_counts import Count, Histogram

__all__ = [
    "KNOWN", "METADATA", "SOME", "VALUES", "Count", "Explanation", "FieldStatistic", "Histogram", "Statistic", "along_axes",
    "explain", "quantiles", "statistic", "statistics",
]
