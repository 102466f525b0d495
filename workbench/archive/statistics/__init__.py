"""Statistics of archived fields, each with an interval that is proven for the original data."""

from workbench.archive.statistics.along_axes import along_axes
from workbench.archive.statistics.answer import Answer
from workbench.archive.statistics.block_means import BlockMeans
from workbench.archive.statistics.distributions import quantiles, reach
from workbench.archive.statistics.explanations import explained
from workbench.archive.statistics.figure import METADATA, SOME, VALUES, Explanation, FieldStatistic, Statistic
from workbench.archive.statistics.reductions import KNOWN, statistic, statistics
from workbench.archive.statistics.value_counts import Count, Histogram
from workbench.archive.statistics.vectors import curl, divergence

__all__ = [
    "KNOWN", "METADATA", "SOME", "VALUES", "Answer", "BlockMeans", "Count", "Explanation", "FieldStatistic", "Histogram",
    "Statistic", "along_axes", "curl", "divergence", "explained", "quantiles", "reach", "statistic", "statistics",
]
