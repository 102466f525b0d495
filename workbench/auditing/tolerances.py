"""Limits for figures: `{"spectrum_worst": 0.01, "T": {"ssim": 0.99}}`, at most or, where more is better, at least."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.archive.collection.names import require_known
from workbench.archive.collection.rules import matching, require_some
from workbench.auditing.finding import FAILED, Finding
from workbench.auditing.row import IDENTICAL, Row
from workbench.errors import WorkbenchError, briefly
from workbench.metrics.report import MEANINGS

AT_LEAST = {"ssim", "psnr", "halo_recall", "clusters_kept", "halos_identical", "halos_matched", "invalid_kept"}
OWN = ("gradient_error", "largest_error")   # figures of an audit beside those of wb.compare


@dataclass(frozen=True)
class Tolerance:
    """A limit for a figure of the members that a name or pattern is about; of all that have it, without one."""

    figure: str
    limit: float
    member: str | None = None

    @property
    def words(self) -> str:
        """The limit in words.

        >>> Tolerance("ssim", 0.99).words
        'ssim of at least 0.99'
        """
        return f"{self.figure} of at {'least' if self.figure in AT_LEAST else 'most'} {self.limit:g}"

    def __str__(self) -> str:
        return self.words if self.member is None else f"{self.member}: {self.words}"

    def allows(self, value: float) -> bool:
        """Whether a figure, or the size of a signed one, is within the limit; NaN never is.

        >>> Tolerance("mean_error", 0.1).allows(-5.0)
        False
        """
        return value >= self.limit if self.figure in AT_LEAST else abs(value) <= self.limit


def tolerances_of(given: Any) -> tuple[Tolerance, ...]:
    """The limits that are given, checked.

    >>> tolerances_of({"spectrum_worst": 0.01, "T": {"ssim": 0.99}})[1]
    Tolerance(figure='ssim', limit=0.99, member='T')
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        example = '{"spectrum_worst": 0.01, "T": {"ssim": 0.99}}'
        raise WorkbenchError(f"tolerance must be as {example}; got {briefly(given)}")
    found = []
    for name, entry in given.items():
        if isinstance(entry, Mapping):
            found += [_checked(figure, limit, str(name)) for figure, limit in entry.items()]
        else:
            found.append(_checked(name, entry, None))
    return tuple(found)


def _checked(figure: Any, limit: Any, member: str | None) -> Tolerance:
    require_known(figure, dict.fromkeys((*MEANINGS, *OWN)), "a figure of wb.compare")
    if isinstance(limit, bool) or not isinstance(limit, int | float) or math.isnan(limit):
        raise WorkbenchError(f"the tolerance of {figure} must be a number; got {briefly(limit)}")
    return Tolerance(figure, float(limit), member)


def exceeded(tolerances: Sequence[Tolerance], rows: Sequence[Row]) -> Iterator[Finding]:
    """The figures beyond their limits, and those that there are none of."""
    for one in tolerances:
        about = [row for row in rows if one.member is None or matching(one.member, [row.name])]
        if one.member is not None:
            require_some(one.member, [row.name for row in rows])
        having = [(row, value) for row in about if (value := figure_of(row, one.figure)) is not None]
        lacking = [row for row in about if row.outcome != IDENTICAL and figure_of(row, one.figure) is None]
        for row, value in having:
            if not one.allows(value):
                words = f"{one.figure} is {value:.6g}; the tolerance is {one.words}"
                evidence = {"figure": one.figure, "value": value, "limit": one.limit}
                yield Finding(FAILED, row.name, "tolerance", words, evidence)
        if lacking and (one.member is not None or not having):
            notes = (note for row in lacking for note in row.notes if one.figure.split("_")[0] in note)
            why = next(notes, "it was not measured")
            words = f"there is no {one.figure}, for which the tolerance is {one.words}: {why}"
            yield Finding(FAILED, lacking[0].name, "tolerance", words, {"figure": one.figure, "limit": one.limit})


def figure_of(row: Row, name: str) -> float | None:
    """A figure of a row; None if it has none."""
    return row.largest_error if name == "largest_error" else row.figures.get(name)
