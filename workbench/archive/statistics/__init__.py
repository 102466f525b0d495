"""Statistics of archived fields, each with an interval that is proven for the original data."""

from workbench.archive.statistics.figure import METADATA, SOME, VALUES, Explanation, Statistic
from workbench.archive.statistics.reductions import KNOWN, explain, statistic, statistics

__all__ = ["KNOWN", "METADATA", "SOME", "VALUES", "Explanation", "Statistic", "explain", "statistic", "statistics"]
