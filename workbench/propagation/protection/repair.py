"""From a checksum that differs to a correct result: which values are wrong, and what they should be.

Values come in groups with a checksum each: columns of a product, lines of a convolution. What is done about a group that
does not add up depends on how sure the fault is.

1. Where many groups differ, all is computed again, and the better result kept.
2. Values of a suspect group are computed in double. Those that are off by more than any order of summation allows are
   wrong, and replaced. Most faults end here.
3. A group that still does not add up has a small fault, or round-off that is not random (equal numbers round equally). All
   is computed again: values that differ between the two results are replaced by those nearer to the exact ones. Values that
   are the same twice are round-off, stay, and count as no fault.

So a correct value is never changed, a group counts as faulty only if a value of it was, and every fault above the threshold
that does not repeat itself is corrected.
"""

from __future__ import annotations

from typing import Protocol

from workbench import backend
from workbench.backend import Array
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.roundoff import certainly_wrong

_SHARE = 64   # all is computed again when more than one in so many groups differ
_AT_ONCE = 64   # groups that are computed in double at a time


class Checksums(Protocol):
    """A computation whose result comes in groups that must add up; `chosen` are numbers of groups."""

    checks: int      # groups that can be checked
    unchecked: int   # values that cannot
    terms: int       # products in the sum that is one value

    def compute(self) -> Array:
        """The result, as a new array."""

    def suspects(self, result: Array) -> Array:
        """The groups that do not add up."""

    def possible(self, result: Array, chosen: Array) -> Array:
        """Which of these groups are no further off than any order of summation allows."""

    def take(self, result: Array, chosen: Array) -> Array:
        """The values of these groups, one row each."""

    def put(self, result: Array, chosen: Array, values: Array) -> None:
        """Replace the values of these groups."""

    def exact(self, chosen: Array) -> tuple[Array, Array]:
        """The values of these groups in double, and the sums of the sizes of their products."""


def repaired(sums: Checksums) -> tuple[Array, Findings]:
    """The result, correct where its checksums differed, and what was found."""
    result, again = sums.compute(), None
    suspects = first = sums.suspects(result)
    before, recomputed = sums.take(result, first).copy(), 0
    if len(first) > max(1, sums.checks // _SHARE):
        again, recomputed = sums.compute(), 1
        others = sums.suspects(again)
        if len(others) <= len(first):
            result, again, suspects = again, result, others
        alike = (sums.take(result, suspects) == sums.take(again, suspects)).all(axis=1)
        suspects = suspects[~(alike & sums.possible(result, suspects))]
    corrected = _replace_certain(sums, result, suspects)
    if corrected or len(suspects):
        doubtful = _common(sums.suspects(result), suspects)
        if len(doubtful):
            if again is None:
                again, recomputed = sums.compute(), 1
            corrected += _settle(sums, result, again, doubtful)
    changed = (sums.take(result, first) != before).any(axis=1) if len(first) else first
    return result, Findings(sums.checks, int(changed.sum()), corrected, recomputed, sums.unchecked)


def _replace_certain(sums: Checksums, result: Array, suspects: Array) -> int:
    """Replace what is certainly wrong; returns how many values that were."""
    xp, replaced = backend.namespace(result), 0
    for start in range(0, len(suspects), _AT_ONCE):
        chosen = suspects[start : start + _AT_ONCE]
        exact, size = sums.exact(chosen)
        values = sums.take(result, chosen)
        wrong = certainly_wrong(values, exact, size, sums.terms)
        sums.put(result, chosen, xp.where(wrong, exact.astype(values.dtype), values))
        replaced += int(wrong.sum())
    return replaced


def _settle(sums: Checksums, result: Array, again: Array, doubtful: Array) -> int:
    """Where two results differ, take the values nearer to the exact ones; returns how many were replaced."""
    xp, replaced = backend.namespace(result), 0
    differ = (sums.take(result, doubtful) != sums.take(again, doubtful)).any(axis=1)
    doubtful = doubtful[differ]
    for start in range(0, len(doubtful), _AT_ONCE):
        chosen = doubtful[start : start + _AT_ONCE]
        exact, _ = sums.exact(chosen)
        first, second = sums.take(result, chosen), sums.take(again, chosen)
        nearer = abs(second - exact) < abs(first - exact)
        sums.put(result, chosen, xp.where(nearer, second, first))
        replaced += int(nearer.sum())
    return replaced


def _common(first: Array, second: Array) -> Array:
    """The numbers that stand in both of two rising rows."""
    xp = backend.namespace(first, second)
    if not len(second):
        return second
    place = xp.minimum(xp.searchsorted(second, first), len(second) - 1)
    return first[second[place] == first]
