"""Quantiles and histograms of an archived field, as a user asks for them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics.chunk_parts import FieldPart
from workbench.archive.statistics.figure import Statistic
from workbench.archive.statistics.order_statistics import quantile_ends, shares_of
from workbench.archive.statistics.reductions import statistics
from workbench.archive.statistics.selection import part_of_grid
from workbench.archive.statistics.value_counts import Histogram, edges_of, histogram_of
from workbench.run.executors import Executor

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


def quantiles(
    archive: Archive, q: Any, region: Any = None, executor: Executor | None = None
) -> Statistic | list[Statistic]:
    """One quantile, or several from the same passes.

    >>> import numpy as np, workbench as wb
    >>> print(*quantiles(wb.compress(np.arange(101.0), wb.Absolute(0.5)), [0.25, 0.5]), sep=", ")
    25.000 ± 0.501, 50.000 ± 0.501
    """
    shares = shares_of(q)
    field = FieldPart(archive, part_of_grid(archive, region), executor)
    ends, count = quantile_ends(field, shares)
    named = zip(shares, ends, strict=True)
    several = [field.statistic(f"quantile {float(share):g}", one, count) for share, one in named]
    return several if np.ndim(q) else several[0]


def median(archive: Archive, region: Any = None) -> Statistic:
    """The median."""
    (middle,) = quantiles(archive, [0.5], region)   # type: ignore[misc]
    return middle


def histogram(
    archive: Archive, bins: Any, ends: tuple[float, float] | None, region: Any = None, executor: Executor | None = None
) -> Histogram:
    """The counts of bins, which by default reach from the least to the largest that the original values can be."""
    if ends is None and isinstance(bins, int | np.integer):
        least, largest = statistics(archive, ["min", "max"], region, executor)
        ends = reach(least, largest)
    edges = edges_of(bins, ends)
    return histogram_of(FieldPart(archive, part_of_grid(archive, region), executor), edges)


def reach(least: Statistic, largest: Statistic) -> tuple[float, float]:
    """From where to where the bins of a histogram reach, given the extremes: no original value is an infinity."""
    most = sys.float_info.max
    return max(least.low, -most), min(largest.high, most)
